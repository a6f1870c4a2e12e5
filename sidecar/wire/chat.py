"""`/v1/chat/completions`: where its texts live, and how to write frames of its streams.

Fields as in the OpenAI API reference, with those that compatible servers add: `reasoning_content` (DeepSeek, vLLM,
llama.cpp), `reasoning` and `reasoning_details` (OpenRouter), content as a list of parts in replies (Mistral).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from ..core.surface import Kind, Lane, Slot, Surface
from . import jsondoc, sse

NAME = "chat"

DONE = sse.render(b"[DONE]")


def _by_kind(field: str) -> dict[Kind, Surface]:
    kinds = (Kind.SYSTEM, Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULTS)
    return {kind: Surface(f"chat.request.messages[].{field}", kind) for kind in kinds}


REQUEST_CONTENT = _by_kind("content")
REQUEST_NAME = _by_kind("name")
REQUEST_REFUSAL = Surface("chat.request.messages[].refusal", Kind.ASSISTANT)
REQUEST_REASONING = Surface("chat.request.messages[].reasoning", Kind.REASONING)
REQUEST_TOOL_NAME = Surface("chat.request.messages[].tool_calls[].function.name", Kind.TOOL_CALLS)
REQUEST_TOOL_ARGUMENTS = Surface("chat.request.messages[].tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True)
REQUEST_TOOL_INPUT = Surface("chat.request.messages[].tool_calls[].custom.input", Kind.TOOL_CALLS)
REQUEST_PREDICTION = Surface("chat.request.prediction.content", Kind.USER)
REQUEST_TOOLS = Surface("chat.request.tools[]", Kind.TOOLS)
REQUEST_FORMAT = Surface("chat.request.response_format", Kind.TOOLS)

CONTENT = Surface("chat.reply.content", Kind.REPLY)
REFUSAL = Surface("chat.reply.refusal", Kind.REPLY)
TRANSCRIPT = Surface("chat.reply.audio.transcript", Kind.REPLY)
REASONING = Surface("chat.reply.reasoning", Kind.REASONING)
TOOL_NAME = Surface("chat.reply.tool_calls[].function.name", Kind.TOOL_CALLS)
TOOL_ARGUMENTS = Surface("chat.reply.tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True)
TOOL_INPUT = Surface("chat.reply.tool_calls[].custom.input", Kind.TOOL_CALLS)
ERROR = Surface("chat.reply.error.message", Kind.REPLY)
OPAQUE = Surface("chat.reply", Kind.REPLY, json=True)

# Every place, in the order of the request and then the reply.
REQUEST_SURFACES = (
    *REQUEST_CONTENT.values(),
    *REQUEST_NAME.values(),
    *(REQUEST_REFUSAL, REQUEST_REASONING, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOL_INPUT),
    *(REQUEST_PREDICTION, REQUEST_TOOLS, REQUEST_FORMAT),
)
REPLY_SURFACES = (CONTENT, REFUSAL, TRANSCRIPT, REASONING, TOOL_NAME, TOOL_ARGUMENTS, TOOL_INPUT, ERROR, OPAQUE)
SURFACES = (*REQUEST_SURFACES, *REPLY_SURFACES)

# A name is one word to a client: it never leaves in halves.
NAMES = frozenset((TOOL_NAME,))
# A text in a place where none is known is whole as it stands: nothing of it is held back for a next frame.
ALONE = frozenset((ERROR, OPAQUE))

_ROLES = {
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "tool": Kind.TOOL_RESULTS,
    "function": Kind.TOOL_RESULTS,
}
_PLAIN_MESSAGE = frozenset(("role", "content", "name", "tool_call_id"))
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_SAID = frozenset(("content", "refusal", "reasoning_details", "tool_calls", "function_call", *_REASONING_FIELDS))
# What an object of a message holds besides texts. A string there is a word of the API, anything else is walked.
_WORDS = frozenset(("role", "tool_call_id", "id", "index", "type", "object"))
_REQUEST_FIELDS = _SAID | {"name", "audio"}
_REPLY_FIELDS = _SAID | {"audio"}
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs", "content_filter_results", "stop_reason"))
_CHOICE_FIELDS = _PLAIN_CHOICE | {"message", "native_finish_reason", "matched_stop", "token_ids"}
_CALL_FIELDS = frozenset(("id", "index", "type", "function", "custom"))
# The last three are sealed by the provider, who must get them back as they are.
_DETAIL_FIELDS = frozenset(("text", "summary", "format", "data", "signature", "encrypted_content"))
_AUDIO_FIELDS = frozenset(("id", "data", "transcript", "expires_at"))
_HEAD = frozenset(("id", "object", "created", "model", "system_fingerprint", "service_tier", "error"))
# Parts whose payload is not text. What else they hold is.
_BINARY = {"image_url": "url", "input_audio": "data", "file": "file_data"}


# --- the request -------------------------------------------------------------------------------------------


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    messages = document.get("messages")
    if isinstance(messages, list):
        for index, message in enumerate(messages):
            if isinstance(message, dict):
                yield from _message(message)
            else:
                yield from walk(messages, index, REQUEST_CONTENT[Kind.USER])
    elif messages is not None:
        yield from walk(document, "messages", REQUEST_CONTENT[Kind.USER])
    for field, surface in (
        ("prediction", REQUEST_PREDICTION),
        ("tools", REQUEST_TOOLS),
        ("functions", REQUEST_TOOLS),
        ("response_format", REQUEST_FORMAT),
    ):
        if document.get(field):
            yield from walk(document, field, surface)


def _message(message: dict[str, Any]) -> Iterator[Slot]:
    role = message.get("role")
    kind = _ROLES.get(role, Kind.USER) if isinstance(role, str) else Kind.USER
    yield from _content(message, REQUEST_CONTENT[kind])
    yield from _optional(message, "name", REQUEST_NAME[kind])
    if message.keys() <= _PLAIN_MESSAGE and type(role) is str and type(message.get("tool_call_id", "")) is str:
        return
    yield from _optional(message, "refusal", REQUEST_REFUSAL)
    for _, slot in _reasoning(message, REQUEST_REASONING, REQUEST_REASONING):
        yield slot
    calls = _tool_calls(message, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOL_INPUT, REQUEST_TOOL_ARGUMENTS)
    for _, slot in calls:
        yield slot
    yield from _others(message, _REQUEST_FIELDS, REQUEST_CONTENT[kind])
    if not isinstance(message.get("audio"), dict):
        yield from _optional(message, "audio", REQUEST_CONTENT[kind])


def _others(holder: dict[str, Any], known: AbstractSet[str], surface: Surface) -> Iterator[Slot]:
    """The texts of the fields that are not known here."""
    for key, value in holder.items():
        if key not in known and not (key in _WORDS and isinstance(value, str)):
            yield from walk(holder, key, surface)


def _content(holder: dict[str, Any], surface: Surface) -> Iterator[Slot]:
    content = holder.get("content")
    if isinstance(content, str):
        yield Slot(surface, holder, "content")
    elif isinstance(content, list):
        for index, part in enumerate(content):
            yield from _part(part, surface) if isinstance(part, dict) else walk(content, index, surface)
    elif content is not None:
        yield from walk(holder, "content", surface)


def _part(part: dict[str, Any], surface: Surface) -> Iterator[Slot]:
    """A content part: its texts, but not the payload of an image, a sound or a file."""
    kind = part.get("type")
    payload = _BINARY.get(kind) if isinstance(kind, str) else None
    for key, value in part.items():
        if value is None or (key == "type" and isinstance(value, str)):
            continue
        inner = value if isinstance(value, dict) else {}
        if payload in inner:
            for field in inner:
                if field != payload or (not str(inner[field]).startswith("data:") and payload == "url"):
                    yield from walk(inner, field, surface)
        else:
            yield from walk(part, key, surface)


def walk(holder: Any, key: str | int, surface: Surface) -> Iterator[Slot]:
    """Every string at and below a place."""
    value = holder[key]
    if isinstance(value, str):
        yield Slot(surface, holder, key)
    elif isinstance(value, dict):
        for inner in value:
            yield from walk(value, inner, surface)
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from walk(value, index, surface)


def _optional(holder: dict[str, Any], field: str, surface: Surface) -> Iterator[Slot]:
    if holder.get(field) is not None:
        yield from walk(holder, field, surface)


def _reasoning(holder: dict[str, Any], surface: Surface, odd: Surface) -> Iterator[tuple[str, Slot]]:
    """Each text with its field's name: servers that send the same reasoning under two names mean two texts.

    `odd` is the surface of texts that have no business where they stand.
    """
    for field in _REASONING_FIELDS:
        for slot in _optional(holder, field, surface):
            yield field, slot
    for slot in _reasoning_details(holder, surface, odd):
        yield "reasoning_details", slot


def _reasoning_details(holder: dict[str, Any], surface: Surface, odd: Surface) -> Iterator[Slot]:
    details = holder.get("reasoning_details")
    if not isinstance(details, list):
        yield from _optional(holder, "reasoning_details", odd)
        return
    for index, detail in enumerate(details):
        if isinstance(detail, dict):
            for field in ("text", "summary"):
                yield from _optional(detail, field, surface)
            yield from _others(detail, _DETAIL_FIELDS, odd)
        else:
            yield from walk(details, index, odd)


def _tool_calls(
    holder: dict[str, Any], name: Surface, arguments: Surface, text: Surface, odd: Surface
) -> Iterator[tuple[int | str, Slot]]:
    """The texts of tool calls, each with the index of its call; `function_call` is the older, single form."""
    calls = holder.get("tool_calls")
    if isinstance(calls, list):
        for position, call in enumerate(calls):
            index = call.get("index") if isinstance(call, dict) else None
            place = index if isinstance(index, int) else position
            for slot in _tool_call(calls, position, name, arguments, text, odd):
                yield place, slot
    elif calls is not None:
        for slot in walk(holder, "tool_calls", odd):
            yield 0, slot
    if holder.get("function_call") is not None:
        for slot in _function(holder, "function_call", name, arguments, odd):
            yield "function_call", slot


def _tool_call(
    calls: list[Any], at: int, name: Surface, arguments: Surface, text: Surface, odd: Surface
) -> Iterator[Slot]:
    call = calls[at]
    if not isinstance(call, dict):
        yield from walk(calls, at, odd)
        return
    if "function" in call:
        yield from _function(call, "function", name, arguments, odd)
    if "custom" in call:
        yield from _function(call, "custom", name, text, odd, "input")
    if not call.keys() <= _CALL_FIELDS:
        yield from _others(call, _CALL_FIELDS, odd)


def _function(
    holder: dict[str, Any], key: str, name: Surface, arguments: Surface, odd: Surface, given: str = "arguments"
) -> Iterator[Slot]:
    function = holder[key]
    if not isinstance(function, dict):
        yield from walk(holder, key, odd)
        return
    yield from _optional(function, "name", name)
    yield from _optional(function, given, arguments)
    if not function.keys() <= (known := {"name", given}):
        yield from _others(function, known, odd)


# --- the reply, buffered or one frame of a stream --------------------------------------------------------------


_ALONE = Lane(OPAQUE)


def reply_texts(document: dict[str, Any]) -> list[tuple[Lane, Slot]]:
    """The texts of a whole reply or of one frame, each with its lane. What is no chat completion is walked."""
    choices = document.get("choices")
    found: list[tuple[Lane, Slot]] = []
    if isinstance(choices, list):
        for position, choice in enumerate(choices):
            if isinstance(choice, dict):
                found.extend(_choice(choice, _index(choice, position)))
            else:
                found.extend((_ALONE, slot) for slot in walk(choices, position, OPAQUE))
    else:
        found.extend((_ALONE, slot) for slot in _others(document, _HEAD, OPAQUE))
    if "error" in document:
        found.extend((Lane(ERROR), slot) for slot in walk(document, "error", ERROR))
    return found


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a frame that holds nothing else: nearly every frame of a stream, told with few questions."""
    choices = document.get("choices")
    if type(choices) is not list or len(choices) != 1 or document.get("usage") or "error" in document:
        return None
    choice = choices[0]
    if type(choice) is not dict or choice.get("finish_reason") is not None or not choice.keys() <= _PLAIN_CHOICE:
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1:
        return None
    text = delta.get("content")
    if type(text) is not str or not text:
        return None
    return _content_lane(_index(choice, 0)), Slot(CONTENT, delta, "content"), text


@lru_cache(maxsize=128)
def _content_lane(choice: int) -> Lane:
    return Lane(CONTENT, choice)


def _index(choice: dict[str, Any], position: int) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else position


def _choice(choice: dict[str, Any], index: int) -> Iterator[tuple[Lane, Slot]]:
    for field in ("delta", "message"):
        said = choice.get(field)
        if isinstance(said, dict):
            yield from _said(said, index)
        elif said is not None:
            for slot in walk(choice, field, OPAQUE):
                yield _ALONE, slot
    if not choice.keys() <= _CHOICE_FIELDS:
        for slot in _others(choice, _CHOICE_FIELDS, OPAQUE):
            yield _ALONE, slot


def _said(said: dict[str, Any], index: int) -> Iterator[tuple[Lane, Slot]]:
    if type(said.get("content")) is str and len(said) == 1:
        yield Lane(CONTENT, index), Slot(CONTENT, said, "content")
        return
    # Reasoning comes before the answer, also where one frame holds both.
    for name, slot in _reasoning(said, REASONING, OPAQUE):
        yield Lane(slot.surface, index, name), slot
    for slot in _content(said, CONTENT):
        yield Lane(CONTENT, index), slot
    for slot in _optional(said, "refusal", REFUSAL):
        yield Lane(REFUSAL, index), slot
    for part, slot in _tool_calls(said, TOOL_NAME, TOOL_ARGUMENTS, TOOL_INPUT, OPAQUE):
        yield Lane(slot.surface, index, part), slot
    audio = said.get("audio")
    if isinstance(audio, dict):
        for slot in _optional(audio, "transcript", TRANSCRIPT):
            yield Lane(TRANSCRIPT, index), slot
        for slot in _others(audio, _AUDIO_FIELDS, OPAQUE):
            yield _ALONE, slot
    elif audio is not None:
        for slot in walk(said, "audio", OPAQUE):
            yield _ALONE, slot
    if not said.keys() <= _REPLY_FIELDS:
        for slot in _others(said, _REPLY_FIELDS, OPAQUE):
            yield _ALONE, slot


def ended(document: dict[str, Any]) -> list[int]:
    """The choices whose last frame this is."""
    choices = document.get("choices")
    if not isinstance(choices, list):
        return []
    return [_index(c, at) for at, c in enumerate(choices) if isinstance(c, dict) and c.get("finish_reason")]


def choices_in(document: dict[str, Any]) -> list[int]:
    choices = document.get("choices")
    return [_index(c, at) for at, c in enumerate(choices) if isinstance(c, dict)] if isinstance(choices, list) else []


def is_error(document: dict[str, Any]) -> bool:
    return bool(document.get("error")) and not document.get("choices")


def error_text(document: dict[str, Any]) -> str:
    """What an error reply says went wrong."""
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Drops what was computed over a text that has changed: logprobs, offsets of annotations, the spoken form."""
    choices = document.get("choices")
    for position, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, dict) or _index(choice, position) != lane.choice:
            continue
        if choice.get("logprobs"):
            choice["logprobs"] = None
        for said in (choice.get("delta"), choice.get("message")):
            if isinstance(said, dict):
                _spoil(said, lane)


def _spoil(said: dict[str, Any], lane: Lane) -> None:
    if said.get("annotations"):
        said["annotations"] = []
    audio = said.get("audio")
    if lane.surface is TRANSCRIPT and isinstance(audio, dict) and audio.get("data"):
        audio["data"] = ""


def carry(template: dict[str, Any], lane: Lane, text: str) -> dict[str, Any]:
    """A frame like `template` that holds nothing but more text on a lane."""
    return _frame(template, lane.choice, _delta(lane, text), None)


def closing(template: dict[str, Any], choice: int, reason: str) -> dict[str, Any]:
    """A choice's last frame."""
    return _frame(template, choice, {}, reason)


def _frame(template: dict[str, Any], choice: int, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    head = {key: value for key, value in template.items() if key not in ("usage", "error")}
    head.setdefault("object", "chat.completion.chunk")
    head["choices"] = [{"index": choice, "delta": delta, "finish_reason": reason}]
    return head


def _delta(lane: Lane, text: str) -> dict[str, Any]:
    match lane.surface:
        case _ if lane.surface is REFUSAL:
            return {"refusal": text}
        case _ if lane.surface is TRANSCRIPT:
            return {"audio": {"transcript": text}}
        case _ if lane.surface is REASONING and lane.part == "reasoning_details":
            return {"reasoning_details": [{"type": "reasoning.text", "text": text}]}
        case _ if lane.surface is REASONING:
            return {str(lane.part): text}
        case _ if lane.surface.kind is Kind.TOOL_CALLS:
            return _tool_delta(lane, text)
        case _:
            return {"content": text}


def _tool_delta(lane: Lane, text: str) -> dict[str, Any]:
    if lane.surface is TOOL_INPUT:
        return {"tool_calls": [{"index": lane.part, "custom": {"input": text}}]}
    function = {"name" if lane.surface is TOOL_NAME else "arguments": text}
    if lane.part == "function_call":
        return {"function_call": function}
    return {"tool_calls": [{"index": lane.part, "function": function}]}


def usage(document: dict[str, Any]) -> tuple[int | None, int | None] | None:
    """Prompt and completion tokens, where a reply or frame reports them."""
    reported = document.get("usage")
    if not isinstance(reported, dict):
        return None
    prompt, completion = reported.get("prompt_tokens"), reported.get("completion_tokens")
    return (prompt if isinstance(prompt, int) else None, completion if isinstance(completion, int) else None)


# --- replies of our own --------------------------------------------------------------------------------------


def answer(identity: dict[str, Any], text: str) -> dict[str, Any]:
    """A whole, complete reply with this text. `identity` holds id, created and model, and may hold more."""
    message = {"role": "assistant", "content": text, "refusal": None}
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    head = {"object": "chat.completion", "usage": nothing} | identity
    return head | {"choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]}


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    """The same as a complete stream."""
    head = {"object": "chat.completion.chunk"} | identity
    frames = [
        _frame(head, 0, {"role": "assistant", "content": text}, None),
        _frame(head, 0, {}, "stop"),
    ]
    return b"".join(sse.render(jsondoc.encode(frame)) for frame in frames) + DONE
