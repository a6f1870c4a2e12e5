"""The conversation of a request: turns of blocks become chat messages."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from ... import jsondoc
from ...stream import Document
from .fields import Fields, expected, no_counterpart
from .reply import REASONING

_PARAGRAPH = "\n\n"
_ROLES = ("user", "assistant", "system")


def messages(source: Fields) -> list[Document]:
    """The system's text, then the turns. Consecutive messages of one role are one turn, as Anthropic reads them."""
    told = _text_blocks(source, "system")
    turns = [(_role(message), message) for message in source.items("messages")]
    if turns and turns[-1][0] == "assistant":
        raise no_counterpart(turns[-1][1].path)
    said = [{"role": "system", "content": told}] if told else []
    for role, turn in groupby(turns, key=lambda one: one[0]):
        said.extend(_TURNS[role](message for _, message in turn))
    return said


def _role(message: Fields) -> str:
    role = message.needed("role")
    if role not in _ROLES:
        raise expected(message.at("role"), "user, assistant or system")
    return role


def _kind(block: Fields) -> str:
    return block.needed("type")


def _blocks(message: Fields) -> Iterator[Fields]:
    yield from message.blocks("content")
    message.done()


def _text_blocks(holder: Fields, field: str) -> str:
    """Content in which nothing but text has a place."""
    return _PARAGRAPH.join(part["text"] for block in holder.blocks(field) for part in _text(_only_text(block)))


def _only_text(block: Fields) -> Fields:
    if _kind(block) != "text":
        raise no_counterpart(block.at("type"))
    return block


def _system(turn: Iterable[Fields]) -> Iterator[Document]:
    for message in turn:
        yield {"role": "system", "content": _text_blocks(message, "content")}
        message.done()


# --- the user ------------------------------------------------------------------------------------------------


def _user(turn: Iterable[Fields]) -> list[Document]:
    """Results of tools come first: chat takes them only right after the calls."""
    results: list[Document] = []
    said: list[Document] = []
    for message in turn:
        parts: list[Document] = []
        before = len(results)
        for block in _blocks(message):
            if (kind := _kind(block)) == "tool_result":
                result, rest = _tool_result(block)
                results.append(result)
                parts += rest
            else:
                parts += _part(kind, block)
        if parts or len(results) == before:
            said.append({"role": "user", "content": _content(parts)})
    return results + said


def _tool_result(block: Fields) -> tuple[Document, list[Document]]:
    """The tool's message, and what of its result has to follow in the user's."""
    call = block.needed("tool_use_id")
    failed = block.flag("is_error")
    parts = [part for inner in block.blocks("content") for part in _part(_kind(inner), inner)]
    block.done()
    rest = [part for part in parts if part["type"] != "text"]
    text = _PARAGRAPH.join(part["text"] for part in parts if part["type"] == "text")
    if rest:
        rest.insert(0, {"type": "text", "text": f"From the result of the tool call {call}:"})
        text = text or "The result is in the user's next message."
    if failed and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": call, "content": text}, rest


def _content(parts: list[Document]) -> str | list[Document]:
    if all(part["type"] == "text" for part in parts):
        return _PARAGRAPH.join(part["text"] for part in parts)
    return parts


def _part(kind: str, block: Fields) -> list[Document]:
    """A block as parts of a message."""
    if kind not in _PARTS:
        raise no_counterpart(block.at("type"))
    return _PARTS[kind](block)


def _text(block: Fields) -> list[Document]:
    text = block.needed("text")
    block.skip("citations")
    block.done()
    return [_text_part(text)]


def _text_part(text: str) -> Document:
    return {"type": "text", "text": text}


def _image(block: Fields) -> list[Document]:
    source = _source(block)
    match source.take("type"):
        case "base64":
            url = f"data:{source.needed('media_type')};base64,{source.needed('data')}"
        case "url":
            url = source.needed("url")
        case _:
            raise no_counterpart(source.at("type"))
    source.done()
    block.done()
    return [{"type": "image_url", "image_url": {"url": url}}]


def _document(block: Fields) -> list[Document]:
    title, context = block.text("title"), block.text("context")
    _refuse_citations(block)
    source = _source(block)
    match source.take("type"):
        case "text":
            source.only("media_type", "text/plain")
            parts = [_text_part(source.needed("data"))]
        case "content":
            parts = [part for inner in source.blocks("content") for part in _part(_kind(inner), inner)]
        case "base64":
            parts = [_pdf(source, title)]
            title = None
        case _:
            raise no_counterpart(source.at("type"))
    source.done()
    block.done()
    return _headed((title, context), parts)


def _pdf(source: Fields, title: str | None) -> Document:
    source.only("media_type", "application/pdf")
    data = f"data:application/pdf;base64,{source.needed('data')}"
    return {"type": "file", "file": {"filename": title or "document.pdf", "file_data": data}}


def _search_result(block: Fields) -> list[Document]:
    head = (block.needed("title"), block.needed("source"))
    _refuse_citations(block)
    text = _text_blocks(block, "content")
    block.done()
    return _headed(head, [_text_part(text)])


def _headed(head: Iterable[str | None], parts: list[Document]) -> list[Document]:
    text = "\n".join(line for line in head if line)
    return [_text_part(text), *parts] if text else parts


def _source(block: Fields) -> Fields:
    source = block.inner("source")
    if source is None:
        raise expected(block.at("source"), "an object")
    return source


def _refuse_citations(block: Fields) -> None:
    """To ask for citations is more than a hint: the reply would have none."""
    asked = block.inner("citations")
    if asked is not None:
        asked.only("enabled", False)
        asked.done()


_PARTS: dict[str, Callable[[Fields], list[Document]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
}


# --- the assistant -------------------------------------------------------------------------------------------


def _assistant(turn: Iterable[Fields]) -> list[Document]:
    said: list[str] = []
    calls: list[Document] = []
    reasoning: dict[str, str] = {}
    for message in turn:
        for block in _blocks(message):
            match _kind(block):
                case "text":
                    said += [part["text"] for part in _text(block)]
                case "tool_use":
                    calls.append(_tool_use(block))
                case "thinking":
                    _think(block, reasoning)
                case "redacted_thinking":
                    pass
                case _:
                    raise no_counterpart(block.at("type"))
    content = "".join(said) if said or not calls else None
    answer: Document = {"role": "assistant", "content": content, **reasoning}
    return [answer | {"tool_calls": calls} if calls else answer]


def _think(block: Fields, reasoning: dict[str, str]) -> None:
    """Adds to what goes back to the provider. Only what it said itself: nobody else can read a sealed thought."""
    field, text = block.text("signature"), block.needed("thinking")
    block.done()
    if field in REASONING:
        reasoning[field] = reasoning.get(field, "") + text


def _tool_use(block: Fields) -> Document:
    given = block.take("input")
    if not isinstance(given, dict):
        raise expected(block.at("input"), "an object")
    function = {"name": block.needed("name"), "arguments": jsondoc.encode(given).decode()}
    call = {"id": block.needed("id"), "type": "function", "function": function}
    caller = block.inner("caller")
    if caller is not None:
        caller.only("type", "direct")
        caller.done()
    block.done()
    return call


_TURNS: dict[str, Callable[[Iterable[Fields]], Iterable[Document]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
}
