"""Anthropic's `/v1/messages` and `/v1/messages/count_tokens`: where their texts live, and how to write their streams.

Fields as in the types of the official Python SDK, 2.14.0, beta fields and blocks among them. A stream is a row of
events: `message_start`, then for each block of content `content_block_start`, deltas and `content_block_stop`, then
`message_delta` with the reason for the end, and `message_stop`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from typing import Any, Literal

from ..core.surface import Kind, Lane, Slot, Surface
from ..core.usage import Usage
from ..errors import ExchangeError
from . import asking, jsondoc, small, sse
from . import usage as reported
from .errors import anthropic_shape
from .hosted import in_messages
from .stream import Spoken
from .walk import optional, others, payload, walk

NAME = "messages"

DONE = b""

_Role = Literal["text", "cited", "result", "name", "input", "thinking", "summary", "tools"]
"""What a field of a block holds: `input` is a JSON object, `result` whatever a tool has to say."""

UNKNOWN = Surface("messages.request (undocumented fields)", Kind.USER, unknown=True)

REQUEST_RESULT = Surface("messages.request.messages[].content[].content", Kind.TOOL_RESULTS)
REQUEST_REASONING = Surface("messages.request.messages[].content[].thinking", Kind.REASONING)
REQUEST_TOOL_NAME = Surface("messages.request.messages[].content[].name", Kind.TOOL_CALLS)
REQUEST_TOOL_INPUT = Surface("messages.request.messages[].content[].input", Kind.TOOL_CALLS, json=True)
REQUEST_TOOL_CHANGE = Surface("messages.request.messages[].content[].tool", Kind.TOOLS)


def _place(path: str, kind: Kind) -> dict[_Role, Surface]:
    """Where the texts of a request's blocks are."""
    text = Surface(path, kind)
    return {
        "text": text,
        "cited": text,
        "summary": text,
        "result": REQUEST_RESULT,
        "name": REQUEST_TOOL_NAME,
        "input": REQUEST_TOOL_INPUT,
        "thinking": REQUEST_REASONING,
        "tools": REQUEST_TOOL_CHANGE,
    }


_SYSTEM = _place("messages.request.system", Kind.SYSTEM)
_MESSAGES = {
    role: _place("messages.request.messages[].content", kind)
    for role, kind in (("system", Kind.SYSTEM), ("user", Kind.USER), ("assistant", Kind.ASSISTANT))
}
REQUEST_FIELDS = {
    field: Surface(f"messages.request.{field}", kind)
    for field, kind in (
        ("metadata", Kind.USER),
        ("stop_sequences", Kind.USER),
        ("context_management", Kind.SYSTEM),
        ("compaction", Kind.SYSTEM),
        ("tools", Kind.TOOLS),
        ("tool_choice", Kind.TOOLS),
        ("mcp_servers", Kind.TOOLS),
        ("output_config", Kind.TOOLS),
        ("output_format", Kind.TOOLS),
        ("fallbacks", Kind.TOOLS),
    )
}

TEXT = Surface("messages.reply.content[].text", Kind.REPLY)
CITATION = Surface("messages.reply.content[].citations[]", Kind.REPLY)
THINKING = Surface("messages.reply.content[].thinking", Kind.REASONING)
TOOL_NAME = Surface("messages.reply.content[].name", Kind.TOOL_CALLS, calls="fixed")
TOOL_INPUT = Surface("messages.reply.content[].input", Kind.TOOL_CALLS, json=True)
RESULT = Surface("messages.reply.content[].content", Kind.TOOL_RESULTS)
SUMMARY = Surface("messages.reply.content[].content (compaction)", Kind.REPLY)
TOOL_CHANGE = Surface("messages.reply.content[].tools", Kind.TOOLS)
STOP_SEQUENCE = Surface("messages.reply.stop_sequence", Kind.REPLY)
STOP_DETAILS = Surface("messages.reply.stop_details", Kind.REPLY)
ERROR = Surface("messages.reply.error.message", Kind.REPLY)
OPAQUE = Surface("messages.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("messages.reply (undocumented fields)", Kind.REPLY, unknown=True)

_REPLY: dict[_Role, Surface] = {
    "text": TEXT,
    "cited": CITATION,
    "summary": SUMMARY,
    "result": RESULT,
    "name": TOOL_NAME,
    "input": TOOL_INPUT,
    "thinking": THINKING,
    "tools": TOOL_CHANGE,
}

# Every place, in the order of the request and then the reply.
REQUEST_SURFACES = (
    _SYSTEM["text"],
    *(place["text"] for place in _MESSAGES.values()),
    *(REQUEST_RESULT, REQUEST_REASONING, REQUEST_TOOL_NAME, REQUEST_TOOL_INPUT, REQUEST_TOOL_CHANGE),
    *REQUEST_FIELDS.values(),
    UNKNOWN,
)
REPLY_SURFACES = (
    *(TEXT, CITATION, THINKING, TOOL_NAME, TOOL_INPUT, RESULT, SUMMARY, TOOL_CHANGE),
    *(STOP_SEQUENCE, STOP_DETAILS, ERROR, OPAQUE, UNKNOWN_REPLY),
)

# A tool's name comes whole, in its block's first event.
NAMES: frozenset[Surface] = frozenset()
COPIES = False

# Fields of a block by its type. In all others nothing but words of the API is expected.
_CALL: dict[str, _Role] = {"name": "name", "server_name": "name", "toolset_name": "name", "input": "input"}
_OUTCOME: dict[str, _Role] = {"content": "result", "toolset_name": "name"}
_BLOCKS: dict[str, dict[str, _Role]] = {
    "text": {"text": "text", "citations": "cited"},
    "image": {"source": "text"},
    "document": {"source": "text", "title": "text", "context": "text"},
    "search_result": {"content": "text", "source": "text", "title": "text"},
    "thinking": {"thinking": "thinking"},
    "redacted_thinking": {},
    "tool_use": _CALL,
    "server_tool_use": _CALL,
    "mcp_tool_use": _CALL,
    "tool_result": _OUTCOME,
    "mcp_tool_result": _OUTCOME,
    "web_search_tool_result": _OUTCOME,
    "web_fetch_tool_result": _OUTCOME,
    "code_execution_tool_result": _OUTCOME,
    "bash_code_execution_tool_result": _OUTCOME,
    "text_editor_code_execution_tool_result": _OUTCOME,
    "tool_search_tool_result": _OUTCOME,
    "advisor_tool_result": _OUTCOME,
    "container_upload": {},
    "compaction": {"content": "summary", "tool_changes": "tools"},
    "tool_addition": {"tool": "tools"},
    "tool_removal": {"tool": "tools"},
    "mcp_tool_listing": {"mcp_server_name": "tools", "tools": "tools"},
    "fallback": {},
}
_DELTAS: dict[str, dict[str, _Role]] = {
    "text_delta": {"text": "text"},
    "thinking_delta": {"thinking": "thinking"},
    "input_json_delta": {"partial_json": "input"},
    "citations_delta": {"citation": "cited"},
    "compaction_delta": {"content": "summary"},
    "signature_delta": {},
}
# Texts of which more follows in further deltas. A compaction's delta is the whole summary.
_RUNNING = {
    TEXT: ("text_delta", "text"),
    THINKING: ("thinking_delta", "thinking"),
    TOOL_INPUT: ("input_json_delta", "partial_json"),
}

# A string under one of these is a word or an id of the API; anything else is walked.
_WORDS = frozenset(
    (
        *("type", "id", "index", "role", "model", "category", "stop_reason", "version", "ttl", "media_type"),
        *("tool_use_id", "tool_id", "file_id", "tab_id", "download_id", "skill_id", "oversized_image"),
        *("error_code", "file_type", "retrieved_at", "page_age", "expires_at"),
    )
)
# What is the provider's alone, or must come back to it as it was. A signature stays beside thinking that has changed:
# the provider goes on from what it holds sealed in there, and refuses the block without it. Where a placeholder became
# a value, it is the placeholder again on its way back, and the signature is true.
_SEALED = frozenset(
    (
        *("signature", "encrypted_content", "encrypted_index", "encrypted_stdout"),
        *("authorization_token", "fallback_credit_token"),
    )
)
_NO_TEXT = _WORDS | _SEALED
# Fields of a request that hold words and numbers of the API. A string there is one, anything else is walked.
_SETTINGS = frozenset(
    ("model", "service_tier", "inference_geo", "speed", "container", "fallback_credit_token", "fallbacks")
)
# Objects of settings: what they hold are words, too.
_SETTING_OBJECTS = frozenset(
    ("thinking", "cache_control", "container", "diagnostics", "thread", "billing_policy", "fallback_credit_token")
)
_SETTING_WORDS = _NO_TEXT | {"display", "prefix_mismatch_behavior", "previous_message_id", "bill_to", "token", "mode"}
_MESSAGE_WORDS = _NO_TEXT | {"clear_at", "effort"}
_REPLY_WORDS = _NO_TEXT | {"reason", "recommended_model", "path"}
_USAGE_WORDS = _REPLY_WORDS | {"service_tier", "inference_geo", "speed"}


# --- the request -------------------------------------------------------------------------------------------


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


def but_tools(document: dict[str, Any]) -> list[Slot]:
    """The same, without definitions of tools."""
    return list(_request_slots(document, without=_DEFINITIONS))


_DEFINITIONS = frozenset(("tools",))


def _request_slots(document: dict[str, Any], without: AbstractSet[str] = frozenset()) -> Iterator[Slot]:
    if "system" in document:
        for _, slot in _content(document, "system", _SYSTEM, UNKNOWN):
            yield slot
    messages = document.get("messages")
    if isinstance(messages, list):
        for index, message in enumerate(messages):
            if isinstance(message, dict):
                yield from _request_message(message)
            else:
                yield from walk(messages, index, _MESSAGES["user"]["text"])
    elif messages is not None:
        yield from walk(document, "messages", _MESSAGES["user"]["text"])
    for field, value in document.items():
        if type(value) in (str, dict, list) and field not in ("system", "messages") and field not in without:
            yield from _field(document, field, value)


def _field(document: dict[str, Any], field: str, value: Any) -> Iterator[Slot]:
    """A field beside the messages."""
    if field in _SETTINGS and type(value) is str:
        return
    if field == "mcp_servers":
        yield from _below(document, field, REQUEST_FIELDS[field], _NO_TEXT)
    elif field in REQUEST_FIELDS:
        yield from walk(document, field, REQUEST_FIELDS[field])
    elif field in _SETTING_OBJECTS:
        yield from _below(document, field, UNKNOWN, _SETTING_WORDS)
    else:
        yield from walk(document, field, UNKNOWN)


def _request_message(message: dict[str, Any]) -> Iterator[Slot]:
    role = message.get("role")
    place = _MESSAGES.get(role, _MESSAGES["user"]) if isinstance(role, str) else _MESSAGES["user"]
    for _, slot in _content(message, "content", place, UNKNOWN):
        yield slot
    for field in message.keys() - {"content"}:
        yield from _under(message, field, UNKNOWN, _MESSAGE_WORDS)


# --- blocks of content, in requests and replies ------------------------------------------------------------


def _content(
    holder: dict[str, Any], field: str, place: Mapping[_Role, Surface], unknown: Surface
) -> Iterator[tuple[int, Slot]]:
    """The texts of a text or of a list of blocks, each with the index of its block."""
    blocks = holder.get(field)
    if not isinstance(blocks, list):
        for slot in optional(holder, field, place["text"]):
            yield 0, slot
        return
    for index, block in enumerate(blocks):
        slots = _block(block, place, unknown) if isinstance(block, dict) else walk(blocks, index, place["text"])
        for slot in slots:
            yield index, slot


def _block(block: dict[str, Any], place: Mapping[_Role, Surface], unknown: Surface) -> Iterator[Slot]:
    """The texts of a block. One of a type that no API documents is walked."""
    kind = block.get("type")
    roles = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if roles is None:
        yield from others(block, frozenset(), _TYPE, unknown)
        return
    words = _REDACTED if kind == "redacted_thinking" else _NO_TEXT
    for field in block:
        role = roles.get(field)
        if role is None:
            yield from _under(block, field, unknown, words)
        else:
            yield from _of_role(block, field, role, place[role])


_TYPE = frozenset(("type",))
_REDACTED = _NO_TEXT | {"data"}


def _of_role(holder: dict[str, Any], field: str, role: _Role, surface: Surface) -> Iterator[Slot]:
    value = holder[field]
    if isinstance(value, str) or role == "tools":
        yield from walk(holder, field, surface)
    elif role == "input" and value:  # in a stream it begins empty
        yield ObjectSlot(surface, holder, field)
    elif surface is CITATION:
        yield from _citations(holder, field)
    else:
        yield from _below(holder, field, surface, _NO_TEXT)


def _under(holder: dict[str, Any], field: str, surface: Surface, words: AbstractSet[str]) -> Iterator[Slot]:
    """The texts at and below a field that may itself be a word."""
    if not (field in words and isinstance(holder[field], str)):
        yield from _below(holder, field, surface, words)


def _below(holder: Any, key: str | int, surface: Surface, words: AbstractSet[str]) -> Iterator[Slot]:
    """Every string at and below a place, but for `words` and for payloads that are no text."""
    value = holder[key]
    if isinstance(value, str):
        yield Slot(surface, holder, key)
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from _below(value, index, surface, words)
    elif isinstance(value, dict):
        kind = value.get("type")
        encoded = _ENCODED.get(kind) if isinstance(kind, str) else None
        for field in value:
            yield from payload(value, field, surface) if field == encoded else _under(value, field, surface, words)


# What holds the payload of a source.
_ENCODED = {"base64": "data", "url": "url"}


class ObjectSlot(Slot):
    """A JSON value as the text that it is in a stream, so that the same is seen of it, its keys and numbers too."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return jsondoc.encode(self._holder[self._key]).decode()

    def replace(self, text: str) -> None:
        # Half of a surrogate pair is written as JSON's own escape.
        self._holder[self._key] = jsondoc.decode(text.encode("utf-8", "backslashreplace"))


def _citations(holder: dict[str, Any], field: str) -> Iterator[Slot]:
    """The texts of a reply's citations: a list in a block, a single one in a delta."""
    value = holder[field]
    if not isinstance(value, list):
        yield from _citation(holder, field, partial(_empty, holder))
        return
    for index, citation in enumerate(value):
        yield from _citation(value, index, partial(value.remove, citation))


def _citation(holder: Any, key: str | int, drop: Callable[[], None]) -> Iterator[Slot]:
    citation = holder[key]
    if isinstance(citation, dict) and citation.get("type") == "char_location":
        for field in citation:
            if field == "cited_text" and isinstance(citation[field], str):
                yield CountedSlot(citation, field, drop)
            else:
                yield from _under(citation, field, CITATION, _NO_TEXT)
    else:
        yield from _below(holder, key, CITATION, _NO_TEXT)


def _empty(delta: dict[str, Any]) -> None:
    delta.clear()
    delta.update(type="text_delta", text="")


class CountedSlot(Slot):
    """A quotation beside the places of its first and last character. Where it changes, the whole citation goes.

    Citations say where in the source something stands, not where in the answer: an answer that changes keeps them.
    """

    __slots__ = ("_drop",)

    def __init__(self, citation: dict[str, Any], field: str, drop: Callable[[], None]) -> None:
        super().__init__(CITATION, citation, field)
        self._drop = drop

    def replace(self, text: str) -> None:
        self._drop()


# --- the reply, buffered or one frame of a stream --------------------------------------------------------------


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one frame. What is none of this API's is walked."""
    kind = document.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return list(read(document))
    return list(_alone(others(document, frozenset(), _TYPE, ERROR if document.get("error") else OPAQUE)))


_LANES = {surface: Lane(surface) for surface in (OPAQUE, UNKNOWN_REPLY, ERROR, STOP_SEQUENCE, STOP_DETAILS)}


def _alone(slots: Iterable[Slot]) -> Iterator[Spoken]:
    """A text that is whole as it stands: nothing of it is held back for a next frame."""
    return (Spoken(_LANES[slot.surface], slot, whole=True) for slot in slots)


def _spoken(slot: Slot, index: int) -> Spoken:
    """A text of a block. Of some, more may follow."""
    if slot.surface in _LANES:
        return Spoken(_LANES[slot.surface], slot, whole=True)
    whole = slot.surface not in _RUNNING or isinstance(slot, ObjectSlot)
    part = _SERVER if slot.surface is TOOL_NAME and slot.key == _SERVER else 0
    return Spoken(_lane(slot.surface, index, part), slot, whole)


@lru_cache(maxsize=512)
def _lane(surface: Surface, index: int, part: int | str = 0) -> Lane:
    return Lane(surface, index, part)


# Beside the name of a call: it has a lane of its own.
_SERVER = "server_name"


def _index(document: dict[str, Any]) -> int:
    index = document.get("index")
    return index if isinstance(index, int) else 0


def _rest(holder: dict[str, Any], known: AbstractSet[str]) -> Iterator[Spoken]:
    """What an object holds besides the `known` fields."""
    for field in holder:
        if field not in known:
            words = _USAGE_WORDS if field == "usage" else _REPLY_WORDS
            yield from _alone(_under(holder, field, _ENDING.get(field, UNKNOWN_REPLY), words))


_ENDING = {"stop_sequence": STOP_SEQUENCE, "stop_details": STOP_DETAILS}
_NONE: frozenset[str] = frozenset()


def _inside(
    document: dict[str, Any], field: str, read: Callable[[dict[str, Any], int], Iterator[Spoken]]
) -> Iterator[Spoken]:
    """What an event holds in its one field, and what else it holds."""
    inner = document.get(field)
    if isinstance(inner, dict):
        yield from read(inner, _index(document))
    else:
        yield from _alone(optional(document, field, OPAQUE))
    yield from _rest(document, {field})


def _message(message: dict[str, Any], _: int = 0) -> Iterator[Spoken]:
    for index, slot in _content(message, "content", _REPLY, UNKNOWN_REPLY):
        yield _spoken(slot, index)._replace(whole=True)
    yield from _rest(message, {"content"})


def _begun(block: dict[str, Any], index: int) -> Iterator[Spoken]:
    return (_spoken(slot, index) for slot in _block(block, _REPLY, UNKNOWN_REPLY))


def _delta(delta: dict[str, Any], index: int) -> Iterator[Spoken]:
    kind = delta.get("type")
    roles = _DELTAS.get(kind, {}) if isinstance(kind, str) else {}
    for field in delta:
        role = roles.get(field)
        if role is None:
            yield from _alone(_under(delta, field, UNKNOWN_REPLY, _REPLY_WORDS))
        else:
            for slot in _of_role(delta, field, role, _REPLY[role]):
                yield _spoken(slot, index)


def _error(document: dict[str, Any]) -> Iterator[Spoken]:
    yield from _alone(optional(document, "error", ERROR))
    yield from _rest(document, {"error", "request_id"})


_READERS: dict[str, Callable[[dict[str, Any]], Iterator[Spoken]]] = {
    "message": _message,
    "message_start": partial(_inside, field="message", read=_message),
    "content_block_start": partial(_inside, field="content_block", read=_begun),
    "content_block_delta": partial(_inside, field="delta", read=_delta),
    "content_block_stop": partial(_rest, known=_NONE),
    "message_delta": partial(_inside, field="delta", read=lambda delta, _: _rest(delta, _NONE)),
    "message_stop": partial(_rest, known=_NONE),
    "ping": partial(_rest, known=_NONE),
    "error": _error,
}


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a frame that holds nothing else: nearly every frame of a stream, told with few questions."""
    if document.get("type") != "content_block_delta" or not document.keys() <= _PLAIN:
        return None
    delta = document.get("delta")
    if type(delta) is not dict or len(delta) != 2:
        return None
    kind = delta.get("type")
    surface, field = _PLAIN_DELTAS.get(kind, (None, "")) if type(kind) is str else (None, "")
    text = delta.get(field)
    if surface is None or type(text) is not str or not text or type(document.get("index")) is not int:
        return None
    return _lane(surface, document["index"]), Slot(surface, delta, field), text


_PLAIN = frozenset(("type", "index", "delta"))
_PLAIN_DELTAS = {kind: (surface, field) for surface, (kind, field) in _RUNNING.items()}


def choices_in(document: dict[str, Any]) -> list[int]:
    return []


def ended(document: dict[str, Any], lanes: Iterable[Lane]) -> list[Lane]:
    """The lanes of the block that stops; all of them where the message is over."""
    if document.get("type") == "content_block_stop":
        index = _index(document)
        return [lane for lane in lanes if lane.choice == index]
    return list(lanes) if _is_over(document) else []


def _is_over(document: dict[str, Any]) -> bool:
    delta = document.get("delta")
    match document.get("type"):
        case "message_delta":
            return isinstance(delta, dict) and delta.get("stop_reason") is not None
        case "message_stop":
            return True
    return False


def is_error(document: dict[str, Any]) -> bool:
    return document.get("type") == "error" or (bool(document.get("error")) and "type" not in document)


error_text = small.error_text


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Nothing of this API counts in an answer's text, and a signature stays: `_SEALED` says why."""


def event_of(document: dict[str, Any]) -> bytes | None:
    kind = document.get("type")
    return kind.encode() if isinstance(kind, str) and kind.isidentifier() else None


class Writer:
    """Which blocks the client has seen, which of them are open, and what is known of the message."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._tokens = 0
        self._began = False
        self._open: dict[int, str] = {}
        self._next = 0
        self._over = False
        self.done = False

    @property
    def complete(self) -> bool:
        return self._over and not self._open

    def begin(self, document: dict[str, Any]) -> None:
        if document.get("type") == "content_block_delta":
            return
        message = document.get("message")
        if document.get("type") == "message_start" and isinstance(message, dict):
            self._message = message
        if (tokens := usage(document)) is not None and tokens.completion is not None:
            self._tokens = tokens.completion

    def end(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "message_start":
                self._began = True
            case "content_block_start":
                block = document.get("content_block")
                self._opened(_index(document), str(block.get("type")) if isinstance(block, dict) else "")
            case "content_block_stop":
                self._open.pop(_index(document), None)
            case "message_delta" if _is_over(document):
                self._over = True
            case "message_stop":
                self._over = self.done = True

    def _opened(self, index: int, kind: str) -> None:
        self._open[index] = kind
        self._next = max(self._next, index + 1)

    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        """A delta. Where the block's own first event does not leave, as it was stopped, one that begins the block."""
        kind, field = _RUNNING[lane.surface]
        if template is None and lane.choice >= self._next and field in _EMPTY:
            self._opened(lane.choice, field)
            return _start(lane.choice, _EMPTY[field] | {field: text})
        return {"type": "content_block_delta", "index": lane.choice, "delta": {"type": kind, field: text}}

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[dict[str, Any]]:
        return [] if self.done else [*self._opening(), *self._closing("refusal")]

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[dict[str, Any]]:
        index = next((index for index, kind in self._open.items() if kind == "text"), None)
        reason = "max_tokens" if cut else "end_turn"
        if self.done:
            return []
        if index is not None or not message:
            rest = [_text(index, message)] if index is not None and message else []
            return [*self._opening(), *rest, *self._closing(reason)]
        stops = self._stops()
        return [*self._opening(), *stops, *_text_block(self._next, message), *self._closing(reason)]

    def _opening(self) -> list[dict[str, Any]]:
        """The message's own first event, where it has not left."""
        return [] if self._began or self._next else [{"type": "message_start", "message": _head(self._message, {})}]

    def _stops(self) -> list[dict[str, Any]]:
        stops = [_stop(index) for index in sorted(self._open)]
        self._open.clear()
        return stops

    def _closing(self, reason: str) -> list[dict[str, Any]]:
        return [*self._stops(), *_end(reason, self._tokens)]


writer = Writer

_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"type": "text"},
    "thinking": {"type": "thinking", "signature": ""},
}


def _start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _text(index: int, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def _text_block(index: int, text: str) -> list[dict[str, Any]]:
    return [_start(index, {"type": "text", "text": ""}), _text(index, text), _stop(index)]


def _end(reason: str, tokens: int) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]


def usage(document: dict[str, Any]) -> Usage | None:
    """What a reply or frame reports. Of a stream, the first event has the prompt's tokens and a later one the
    completion's, as running totals.

    What is read from a cache and written to it is counted apart from `input_tokens`; the prompt is all three.
    """
    message = document.get("message")
    return reported.anthropic(document.get("usage") or (message.get("usage") if isinstance(message, dict) else None))


ask_usage = asking.nothing_to_ask
hosted = in_messages


# --- replies of our own --------------------------------------------------------------------------------------


def _head(identity: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """A message without content. Its id begins as this API's do."""
    nothing = {"input_tokens": 0, "output_tokens": 0}
    return {
        "id": str(identity.get("id") or "msg_").replace("chatcmpl-", "msg_", 1),
        "type": "message",
        "role": "assistant",
        "model": identity.get("model") or "",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": identity.get("usage") or nothing,
    } | rest


def answer(identity: dict[str, Any], text: str) -> dict[str, Any] | None:
    """A whole, complete reply with this text. `identity` holds id and model, and may hold more."""
    return _head(identity, {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    """The same as a complete stream."""
    start = {"type": "message_start", "message": _head(identity, {})}
    frames = [start, *_text_block(0, text), *_end("end_turn", 0)]
    return b"".join(sse.render(jsondoc.encode(frame), event_of(frame)) for frame in frames)


error_body = anthropic_shape


def error_frames(error: ExchangeError) -> Sequence[dict[str, Any]]:
    """The official client raises an event of the name `error`."""
    return [error_body(error)]
