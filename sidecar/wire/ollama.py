"""Ollama's own API: `/api/chat`, `/api/generate`, `/api/embed` and `/api/embeddings`: the wires CHAT, GENERATE, EMBED.

Fields as in docs/api.md of ollama/ollama and in the types of its Python client 0.6.3. No field means two things in two
of the endpoints, so all are read by the same functions. A stream is newline-delimited JSON (`ndjson.NDJSON`), and a
request asks for one unless `stream` is false (`streamed`). Its last line has `done: true`; there is no terminator.

`context` is a conversation in tokens: it cannot be read, and no rule sees what it spells. Pictures are bare base64.
Tool calls come whole, their arguments as an object: a rule sees them as the JSON text they are, keys and numbers
included, as it does in APIs that send them as a string.

A stream that a rule ends has a last line with `done_reason: "content_filter"`: to Ollama's own clients the reason is a
string of any kind, and so the client can tell. An error is `{"error": "message"}`, which they raise in a stream too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..core.surface import Kind, Lane, Slot, Surface
from ..core.usage import Usage, count
from ..errors import ExchangeError
from . import jsondoc, ndjson, small
from . import usage as reported
from .stream import Spoken
from .walk import content, optional, others, payload, walk

_KINDS = (Kind.SYSTEM, Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULTS)
REQUEST_CONTENT = {kind: Surface("ollama.request.messages[].content", kind) for kind in _KINDS}
REQUEST_IMAGES = {kind: Surface("ollama.request.messages[].images[]", kind) for kind in _KINDS}
REQUEST_THINKING = Surface("ollama.request.messages[].thinking", Kind.REASONING)
REQUEST_RESULT_NAME = Surface("ollama.request.messages[].tool_name", Kind.TOOL_RESULTS)
REQUEST_TOOL_NAME = Surface("ollama.request.messages[].tool_calls[].function.name", Kind.TOOL_CALLS)
REQUEST_TOOL_ARGUMENTS = Surface(
    "ollama.request.messages[].tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True
)
REQUEST_TOOLS = Surface("ollama.request.tools[]", Kind.TOOLS)
REQUEST_FORMAT = Surface("ollama.request.format", Kind.TOOLS)
REQUEST_FIELDS = {
    "system": Surface("ollama.request.system", Kind.SYSTEM),
    "template": Surface("ollama.request.template", Kind.SYSTEM),
    "prompt": Surface("ollama.request.prompt", Kind.USER),
    "suffix": Surface("ollama.request.suffix", Kind.USER),
    "input": Surface("ollama.request.input", Kind.USER),
}
REQUEST_IMAGE = Surface("ollama.request.images[]", Kind.USER)
REQUEST_STOP = Surface("ollama.request.options.stop", Kind.USER)
UNKNOWN = Surface("ollama.request (undocumented fields)", Kind.USER, unknown=True)

CONTENT = Surface("ollama.reply.message.content", Kind.REPLY)
THINKING = Surface("ollama.reply.message.thinking", Kind.REASONING)
RESPONSE = Surface("ollama.reply.response", Kind.REPLY)
RESPONSE_THINKING = Surface("ollama.reply.thinking", Kind.REASONING)
RESULT_NAME = Surface("ollama.reply.message.tool_name", Kind.TOOL_CALLS)
TOOL_NAME = Surface("ollama.reply.message.tool_calls[].function.name", Kind.TOOL_CALLS, calls="fixed")
TOOL_ARGUMENTS = Surface("ollama.reply.message.tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True)
IMAGE = Surface("ollama.reply.image", Kind.REPLY)
ERROR = Surface("ollama.reply.error", Kind.REPLY)
OPAQUE = Surface("ollama.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("ollama.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (
    *REQUEST_CONTENT.values(),
    *REQUEST_IMAGES.values(),
    *(REQUEST_THINKING, REQUEST_RESULT_NAME, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOLS, REQUEST_FORMAT),
    *REQUEST_FIELDS.values(),
    *(REQUEST_IMAGE, REQUEST_STOP, UNKNOWN),
)
REPLY_SURFACES = (
    *(CONTENT, THINKING, RESPONSE, RESPONSE_THINKING, RESULT_NAME, TOOL_NAME, TOOL_ARGUMENTS, IMAGE),
    *(ERROR, OPAQUE, UNKNOWN_REPLY),
)

_ROLES = {
    "system": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "tool": Kind.TOOL_RESULTS,
}
# Fields that hold a word of the API. A string there is one, anything else is walked.
_SETTINGS = frozenset(("model", "keep_alive", "think"))
_MESSAGE_WORDS = frozenset(("role", "tool_call_id"))
_MESSAGE_FIELDS = frozenset(("content", "thinking", "tool_name", "tool_calls", "images"))
_CALL_WORDS = frozenset(("id", "type"))
_WORDS = frozenset(("model", "created_at", "done_reason", "remote_model", "remote_host"))
_NUMBERS = frozenset(("context", "embeddings", "embedding"))
_LANES = {"response": RESPONSE, "thinking": RESPONSE_THINKING}
_HEAD = frozenset(("message", "image", "error", "logprobs", *_LANES, *_NUMBERS))
_PLAIN = _WORDS | {"message", "response", "done", "logprobs"}
_NESTED = frozenset(("message", "logprobs"))
_PLAIN_MESSAGE = frozenset(("role", "content"))
# What a line of our own takes over from one of the provider's.
_IDENTITY = ("model", "remote_model", "remote_host", "created_at")


class JsonSlot(Slot):
    """An object as the JSON text that it would be in an API that sends it as a string."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return jsondoc.encode(self._holder[self._key]).decode()

    def replace(self, text: str) -> None:
        """Text that is no JSON, which no rule makes of JSON, stands as a string."""
        try:
            self._holder[self._key] = jsondoc.decode(text.encode())
        except (jsondoc.JsonFault, UnicodeEncodeError):
            self._holder[self._key] = text


# --- the request -------------------------------------------------------------------------------------------


def streamed(document: dict[str, Any]) -> bool:
    """Whether a request to chat or generate asks for a stream; embeddings come in none."""
    return document.get("stream") is not False


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    messages, odd = small.entries(document, "messages", REQUEST_CONTENT[Kind.USER])
    yield from odd
    for _, message in messages:
        yield from _message(message)
    for field, surface in REQUEST_FIELDS.items():
        yield from optional(document, field, surface)
    yield from _images(document, REQUEST_IMAGE)
    yield from optional(document, "tools", REQUEST_TOOLS)
    if not isinstance(document.get("format"), str):
        yield from optional(document, "format", REQUEST_FORMAT)
    yield from _options(document)
    known = {*REQUEST_FIELDS, "messages", "images", "tools", "format", "options"}
    if small.numbers(document.get("context")):
        known.add("context")
    yield from others(document, known, _SETTINGS, UNKNOWN)


def _message(message: dict[str, Any]) -> Iterator[Slot]:
    role = message.get("role")
    kind = _ROLES.get(role, Kind.USER) if isinstance(role, str) else Kind.USER
    yield from content(message, REQUEST_CONTENT[kind])
    yield from optional(message, "thinking", REQUEST_THINKING)
    yield from optional(message, "tool_name", REQUEST_RESULT_NAME)
    for _, slot in _tool_calls(message, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOL_ARGUMENTS):
        yield slot
    yield from _images(message, REQUEST_IMAGES[kind])
    yield from others(message, _MESSAGE_FIELDS, _MESSAGE_WORDS, UNKNOWN)


def _images(holder: dict[str, Any], surface: Surface) -> Iterator[Slot]:
    images = holder.get("images")
    if isinstance(images, list):
        for index in range(len(images)):
            yield from payload(images, index, surface)
    else:
        yield from optional(holder, "images", surface)


def _options(document: dict[str, Any]) -> Iterator[Slot]:
    options = document.get("options")
    if isinstance(options, dict):
        yield from optional(options, "stop", REQUEST_STOP)
        yield from others(options, {"stop"}, frozenset(), UNKNOWN)
    else:
        yield from optional(document, "options", UNKNOWN)


def _tool_calls(holder: dict[str, Any], name: Surface, arguments: Surface, odd: Surface) -> Iterator[tuple[int, Slot]]:
    """The texts of tool calls, each with the place of its call."""
    calls, strange = small.entries(holder, "tool_calls", odd)
    yield from ((0, slot) for slot in strange)
    for place, call in calls:
        function = call.get("function")
        found = _function(function, name, arguments, odd) if isinstance(function, dict) else ()
        yield from ((place, slot) for slot in found)
        known = {"function"} if isinstance(function, dict) else frozenset[str]()
        yield from ((place, slot) for slot in others(call, known, _CALL_WORDS, odd))


def _function(function: dict[str, Any], name: Surface, arguments: Surface, odd: Surface) -> Iterator[Slot]:
    yield from optional(function, "name", name)
    if isinstance(function.get("arguments"), dict | list):
        yield JsonSlot(arguments, function, "arguments")
    else:
        yield from optional(function, "arguments", arguments)
    yield from others(function, {"name", "arguments"}, _CALL_WORDS, odd)


# --- the reply, buffered or one line of a stream ---------------------------------------------------------------


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one line. What is neither is walked."""
    found: list[Spoken] = []
    message = document.get("message")
    if isinstance(message, dict):
        found.extend(_said(message))
    elif message is not None:
        found.extend(small.alone(walk(document, "message", OPAQUE)))
    # Reasoning comes before the answer, also where one line holds both.
    for field in ("thinking", "response"):
        found.extend(_running(document, field, _LANES[field]))
    found.extend(small.alone(_rest(document)))
    return found


def _said(message: dict[str, Any]) -> Iterator[Spoken]:
    yield from _running(message, "thinking", THINKING)
    yield from _running(message, "content", CONTENT)
    yield from small.alone(optional(message, "tool_name", RESULT_NAME))
    for place, slot in _tool_calls(message, TOOL_NAME, TOOL_ARGUMENTS, OPAQUE):
        yield Spoken(Lane(slot.surface, 0, place), slot, whole=True)
    yield from small.alone(_images(message, IMAGE))
    yield from small.alone(others(message, _MESSAGE_FIELDS, _MESSAGE_WORDS, UNKNOWN_REPLY))


def _running(holder: dict[str, Any], field: str, surface: Surface) -> Iterator[Spoken]:
    if isinstance(holder.get(field), str):
        yield Spoken(_lane(surface), Slot(surface, holder, field))
    elif holder.get(field) is not None:
        yield from small.alone(walk(holder, field, OPAQUE))


@lru_cache(maxsize=8)
def _lane(surface: Surface) -> Lane:
    return Lane(surface)


def _rest(document: dict[str, Any]) -> Iterator[Slot]:
    yield from optional(document, "error", ERROR)
    if document.get("image") is not None:
        yield from payload(document, "image", IMAGE)
    for field in _NUMBERS & document.keys():
        if not _only_numbers(document[field]):
            yield from optional(document, field, OPAQUE)
    yield from others(document, _HEAD, _WORDS, UNKNOWN_REPLY if document.keys() & _HEAD else OPAQUE)


def _only_numbers(value: Any) -> bool:
    return small.numbers(value) or (isinstance(value, list) and all(map(small.numbers, value)))


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a line that holds nothing else."""
    if document.get("done") is not False or not document.keys() <= _PLAIN or not small.flat(document, _NESTED):
        return None
    message = document.get("message")
    if message is None:
        return _plain_text(document, "response", RESPONSE)
    if type(message) is not dict or "response" in document or not message.keys() <= _PLAIN_MESSAGE:
        return None
    return _plain_text(message, "content", CONTENT) if type(message.get("role")) is str else None


def _plain_text(holder: dict[str, Any], field: str, surface: Surface) -> tuple[Lane, Slot, str] | None:
    text = holder.get(field)
    return (_lane(surface), Slot(surface, holder, field), text) if type(text) is str and text else None


def ended(document: dict[str, Any], lanes: Iterable[Lane]) -> list[Lane]:
    return list(lanes) if document.get("done") is True else []


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Drops the log probabilities of a text that has changed, and the tokens that it would go on from."""
    for field in ("logprobs", "context"):
        if document.get(field):
            document[field] = None


def usage(document: dict[str, Any]) -> Usage | None:
    """What the last line reports."""
    return reported.known(Usage(count(document.get("prompt_eval_count")), count(document.get("eval_count"))))


class Writer:
    """A line to write others like it, and whether the last one has come. `surface` is where answers stand."""

    def __init__(self, surface: Surface | None) -> None:
        self._surface = surface
        self._template: dict[str, Any] = {}
        self.done = False

    @property
    def complete(self) -> bool:
        return self.done

    def begin(self, document: dict[str, Any]) -> None:
        self._template = document

    def end(self, document: dict[str, Any]) -> None:
        self.done = self.done or document.get("done") is True

    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        return _line(template or self._template, _texts(lane.surface, text))

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[dict[str, Any]]:
        if self._surface is None:
            return [{"error": _WITHHELD}]
        return [_line(self._template, _texts(self._surface, ""), "content_filter")]

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[dict[str, Any]]:
        if self._surface is None:
            return [{"error": message}]
        texts = _texts(self._surface, message), _texts(self._surface, "")
        rest = [_line(self._template, texts[0])] if message else []
        return [*rest, _line(self._template, texts[1], "length" if cut else "stop")]


_WITHHELD = "This reply was withheld by a policy."


def _texts(surface: Surface, text: str) -> dict[str, Any]:
    """The fields of a line that says nothing but this."""
    match surface:
        case _ if surface is THINKING:
            return {"message": {"role": "assistant", "content": "", "thinking": text}}
        case _ if surface is RESPONSE:
            return {"response": text}
        case _ if surface is RESPONSE_THINKING:
            return {"response": "", "thinking": text}
        case _:
            return {"message": {"role": "assistant", "content": text}}


def _line(template: dict[str, Any], texts: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    """Of the provider's line only its identity: nothing else in it need have been looked at yet."""
    head = {key: template[key] for key in _IDENTITY if isinstance(template.get(key), str)}
    return head | texts | ({"done": False} if reason is None else {"done": True, "done_reason": reason})


# --- replies of our own --------------------------------------------------------------------------------------


def _reply(identity: dict[str, Any], texts: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    made = identity.get("created")
    stamp = {"created_at": _stamp(made)} if isinstance(made, int) else {}
    return _line(stamp | identity, texts, reason)


def _stamp(seconds: int) -> str:
    """Seconds since 1970 as RFC 3339 writes them. Years begin in March here, so that a leap day is the last."""
    days, second = divmod(seconds, 86_400)
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    date = day - (153 * month + 2) // 5 + 1
    number = month + 3 if month < 10 else month - 9
    years = year + 400 * era + (number <= 2)
    return f"{years:04}-{number:02}-{date:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def error_body(error: ExchangeError) -> dict[str, Any]:
    return {"error": error.message}


class Api:
    """An endpoint as a wire. `surface` is where its answers stand, None where they are numbers."""

    DONE = b""
    # Names of tools come whole.
    NAMES: frozenset[Surface] = frozenset()
    COPIES = False
    UNKNOWN = UNKNOWN
    OPAQUE = OPAQUE
    REQUEST_SURFACES = REQUEST_SURFACES
    REPLY_SURFACES = REPLY_SURFACES

    request_slots = but_tools = staticmethod(request_slots)
    reply_texts = staticmethod(reply_texts)
    plain = staticmethod(plain)
    choices_in = staticmethod(small.choices_in)
    ended = staticmethod(ended)
    is_error = staticmethod(small.is_error)
    error_text = staticmethod(small.error_text)
    spoil = staticmethod(spoil)
    usage = staticmethod(usage)
    ask_usage = staticmethod(small.ask_usage)
    hosted = staticmethod(small.hosted)
    error_body = staticmethod(error_body)

    def __init__(self, name: str, surface: Surface | None) -> None:
        self.NAME, self._surface = name, surface

    def writer(self) -> Writer:
        return Writer(self._surface)

    def event_of(self, document: dict[str, Any]) -> bytes | None:
        return None

    def answer(self, identity: dict[str, Any], text: str) -> dict[str, Any] | None:
        """A whole, complete reply with this text. `identity` holds created and model, and may hold more."""
        return None if self._surface is None else _reply(identity, _texts(self._surface, text), "stop")

    def answer_frames(self, identity: dict[str, Any], text: str) -> bytes:
        """The same as a complete stream."""
        if self._surface is None:
            return b""
        lines = (
            _reply(identity, _texts(self._surface, text)),
            _reply(identity, _texts(self._surface, ""), "stop"),
        )
        return b"".join(ndjson.render(jsondoc.encode(line)) for line in lines)

    def error_frames(self, error: ExchangeError) -> Sequence[dict[str, Any]]:
        return [error_body(error)]


CHAT = Api("ollama_chat", CONTENT)
GENERATE = Api("ollama_generate", RESPONSE)
EMBED = Api("ollama_embed", None)
