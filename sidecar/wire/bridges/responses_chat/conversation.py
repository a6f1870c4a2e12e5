"""`instructions` and the items of `input` as chat messages.

What one turn of the model said is one assistant message: its text and, beside it, all calls that follow.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...stream import Document
from .fields import ANY, Fields, below, given, invalid, kind_of, need, objects, only, present, refuse

_Messages = list[Document]


def messages(document: Document) -> _Messages:
    said: _Messages = []
    instructions = document.get("instructions")
    if instructions is not None:
        said.append({"role": "system", "content": given(instructions, "instructions", str)})
    asked = document.get("input")
    if isinstance(asked, str):
        said.append({"role": "user", "content": asked})
    elif asked is not None:
        for item, path in objects(asked, "input"):
            _item(said, item, path)
    if not said:
        invalid("input", "a string or a list of items")
    return said


def _item(said: _Messages, item: Document, path: str) -> None:
    kind = kind_of(item, path, _ITEMS, default="message" if "role" in item else None)
    only(item, path, _ITEM_FIELDS[kind])
    _ITEMS[kind](said, item, path)


# --- messages ------------------------------------------------------------------------------------------------


def _message(said: _Messages, item: Document, path: str) -> None:
    role = need(item, path, "role")
    if role == "assistant":
        _spoken(said, item, path)
    elif role in _ROLES:
        role = _ROLES[role]
        said.append({"role": role, "content": _content(item.get("content"), f"{path}.content", _HEARD[role])})
    else:
        refuse(below(path, "role"))


_ROLES = {"user": "user", "system": "system", "developer": "system"}


def _spoken(said: _Messages, item: Document, path: str) -> None:
    """What the model said. A text that follows calls is part of their turn: nothing may stand before the results."""
    spoken = _answer(item.get("content"), f"{path}.content")
    if not said or "tool_calls" not in said[-1]:
        said.append({"role": "assistant", **spoken})
        return
    for field, text in spoken.items():
        if text:
            said[-1][field] = f"{said[-1][field]}\n\n{text}" if said[-1].get(field) else text


def _answer(content: Any, path: str) -> Document:
    """The content and the refusal of an assistant message."""
    if isinstance(content, str):
        return {"content": content}
    texts: dict[str, list[str]] = {"content": [], "refusal": []}
    for part, at in objects(content, path):
        field, text, fields = _ANSWERS[kind_of(part, at, _ANSWERS)]
        only(part, at, fields)
        texts[field].append(need(part, at, text))
    refusal = {"refusal": "".join(texts["refusal"])} if texts["refusal"] else {}
    return {"content": "".join(texts["content"]) if texts["content"] or not refusal else None, **refusal}


# A part's type: the field of the message, the part's field, and what else it may hold.
_ANSWERS: dict[str, tuple[str, str, Fields]] = {
    "output_text": ("content", "text", dict.fromkeys(("type", "text", "annotations", "logprobs"), ANY)),
    "refusal": ("refusal", "refusal", dict.fromkeys(("type", "refusal"), ANY)),
}


# --- parts of what the model hears ---------------------------------------------------------------------------


def _content(content: Any, path: str, known: Mapping[str, "_Part"]) -> Any:
    """A text or a list of parts. A single text is a string, which servers take that know no parts."""
    if isinstance(content, str):
        return content
    parts = [_part(part, at, known) for part, at in objects(content, path)]
    match parts:
        case [{"type": "text", "text": text, **more}] if not more:
            return text
        case _:
            return parts


def _part(part: Document, path: str, known: Mapping[str, "_Part"]) -> Document:
    kind = kind_of(part, path, known)
    only(part, path, _PART_FIELDS[kind])
    return known[kind](part, path) | present(prompt_cache_breakpoint=part.get("prompt_cache_breakpoint"))


def _text(part: Document, path: str) -> Document:
    return {"type": "text", "text": need(part, path, "text")}


def _image(part: Document, path: str) -> Document:
    return {
        "type": "image_url",
        "image_url": {"url": need(part, path, "image_url"), **present(detail=part.get("detail"))},
    }


def _audio(part: Document, path: str) -> Document:
    return {"type": "input_audio", "input_audio": given(part.get("input_audio"), f"{path}.input_audio", dict)}


def _file(part: Document, path: str) -> Document:
    file = present(**{key: part.get(key) for key in ("file_id", "filename", "file_data")})
    if "file_id" not in file and "file_data" not in file:
        invalid(path, "a file with 'file_data' or 'file_id'")
    return {"type": "file", "file": file}


_Part = Callable[[Document, str], Document]
_TEXTS: dict[str, _Part] = {"input_text": _text}
_PARTS: dict[str, _Part] = {**_TEXTS, "input_image": _image, "input_audio": _audio, "input_file": _file}
_HEARD: dict[str, dict[str, _Part]] = {"user": _PARTS, "system": _TEXTS}
_PART: Fields = {"type": ANY, "prompt_cache_breakpoint": ANY}
_PART_FIELDS: dict[str, Fields] = {
    "input_text": {**_PART, "text": ANY},
    "input_image": {**_PART, "image_url": ANY, "detail": ANY},
    "input_audio": {**_PART, "input_audio": ANY},
    "input_file": {**_PART, "file_id": ANY, "filename": ANY, "file_data": ANY, "detail": ("auto",)},
}


# --- calls and their results ---------------------------------------------------------------------------------


def _function_call(said: _Messages, item: Document, path: str) -> None:
    function = {"name": need(item, path, "name"), "arguments": need(item, path, "arguments")}
    _call(said, {"id": need(item, path, "call_id"), "type": "function", "function": function})


def _custom_call(said: _Messages, item: Document, path: str) -> None:
    custom = {"name": need(item, path, "name"), "input": need(item, path, "input")}
    _call(said, {"id": need(item, path, "call_id"), "type": "custom", "custom": custom})


def _call(said: _Messages, call: Document) -> None:
    """A call belongs to the message before it, if the model said that."""
    if not said or said[-1]["role"] != "assistant":
        said.append({"role": "assistant", "content": None})
    said[-1].setdefault("tool_calls", []).append(call)


def _result(said: _Messages, item: Document, path: str) -> None:
    content = _content(item.get("output"), f"{path}.output", _TEXTS)
    said.append({"role": "tool", "tool_call_id": need(item, path, "call_id"), "content": content})


def _left_out(said: _Messages, item: Document, path: str) -> None:
    """What the model that made it needs no more."""


_DIRECT: Fields = {"type": ANY, "id": ANY, "call_id": ANY, "status": ANY, "caller": ({"type": "direct"},)}
_CALL: Fields = {**_DIRECT, "name": ANY, "async": (False,)}
_ITEM_FIELDS: dict[str, Fields] = {
    "message": dict.fromkeys(("type", "id", "role", "content", "status", "phase"), ANY),
    "function_call": {**_CALL, "arguments": ANY},
    "custom_tool_call": {**_CALL, "input": ANY},
    "function_call_output": {**_DIRECT, "name": ANY, "output": ANY},
    "custom_tool_call_output": {**_DIRECT, "output": ANY},
    "reasoning": dict.fromkeys(("type", "id", "summary", "content", "encrypted_content", "status"), ANY),
}
_ITEMS: dict[str, Callable[[_Messages, Document, str], None]] = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "function_call_output": _result,
    "custom_tool_call_output": _result,
    "reasoning": _left_out,
}
