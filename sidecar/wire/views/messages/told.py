"""From a stream to the whole reply, and back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from ... import jsondoc
from ...bridges.messages_chat.reply import INVALID
from ...stream import Document, joined
from ..shape import json_text, mapping, sequence, text_of

# Texts that come in pieces, by the type of their deltas: the delta's field, and the block's.
_RUNNING: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("partial_json", "input"),
}


class Gather:
    """The reply is whole when it has been told why it ended."""

    __slots__ = ("_blocks", "_failed", "_message", "_over", "_pieces")

    def __init__(self) -> None:
        self._message: Document | None = None
        self._blocks: dict[int, Document] = {}
        self._pieces: dict[int, dict[str, list[str]]] = {}
        self._over = self._failed = False

    def feed(self, document: Document) -> None:
        step = _STEPS.get(text_of(document.get("type")))
        if step is not None:
            step(self, document)

    @property
    def reply(self) -> Document | None:
        if self._message is None or self._failed or not self._over:
            return None
        blocks = [_whole(block, self._pieces.get(index, {})) for index, block in self._blocks.items()]
        return deepcopy(self._message | {"content": blocks})

    def _begin(self, document: Document) -> None:
        if self._message is None and isinstance(document.get("message"), dict):
            self._message = deepcopy(document["message"])

    def _block(self, document: Document) -> None:
        index, block = document.get("index"), document.get("content_block")
        if isinstance(index, int) and isinstance(block, dict):
            self._blocks[index] = deepcopy(block)
            self._serve(block)

    def _serve(self, block: Document) -> None:
        """Where another model goes on, the reply is the last one's."""
        model = mapping(block.get("to")).get("model")
        if block.get("type") == "fallback" and isinstance(model, str) and self._message is not None:
            self._message["model"] = model

    def _delta(self, document: Document) -> None:
        index, delta = document.get("index"), mapping(document.get("delta"))
        if not isinstance(index, int) or index not in self._blocks:
            return
        kind = text_of(delta.get("type"))
        if kind in _RUNNING:
            said, field = _RUNNING[kind]
            self._pieces.setdefault(index, {}).setdefault(field, []).append(text_of(delta.get(said)))
        elif kind in _SETTING:
            _SETTING[kind](self._blocks[index], deepcopy(delta))

    def _end(self, document: Document) -> None:
        if self._message is None:
            return
        delta = mapping(document.get("delta"))
        beside = {field: value for field, value in document.items() if field not in ("type", "delta", "usage")}
        _overwrite(self._message, delta | beside)
        if isinstance(usage := document.get("usage"), dict):
            self._message["usage"] = _overwrite(mapping(self._message.get("usage")), usage)
        self._over = self._over or self._message.get("stop_reason") is not None

    def _stop(self, document: Document) -> None:
        self._over = True

    def _fail(self, document: Document) -> None:
        self._failed = True


_STEPS: Final[Mapping[str, Callable[[Gather, Document], None]]] = {
    "message_start": Gather._begin,
    "content_block_start": Gather._block,
    "content_block_delta": Gather._delta,
    "message_delta": Gather._end,
    "message_stop": Gather._stop,
    "error": Gather._fail,
}


def _cite(block: Document, delta: Document) -> None:
    block["citations"] = [*sequence(block.get("citations")), delta.get("citation")]


def _set(block: Document, delta: Document) -> None:
    block.update((field, value) for field, value in delta.items() if field != "type")


# Deltas that hold all there is to say.
_SETTING: Final[Mapping[str, Callable[[Document, Document], None]]] = {
    "signature_delta": _set,
    "citations_delta": _cite,
    "compaction_delta": _set,
}


def _overwrite(was: Document, said: Document) -> Document:
    """Totals and other fields that are said again. What is null says nothing new."""
    was.update((field, deepcopy(value)) for field, value in said.items() if value is not None or field not in was)
    return was


def _whole(block: Document, pieces: Mapping[str, list[str]]) -> Document:
    grown = {field: text_of(block.get(field)) + joined(texts) for field, texts in pieces.items() if field != "input"}
    text = joined(pieces.get("input", ()))
    return block | grown | ({"input": _input(text)} if text.strip() else {})


def _input(text: str) -> Any:
    """What is no JSON object, as where the reply was cut, is told under a name, as Anthropic tells it."""
    given = jsondoc.readable(text.encode(errors="backslashreplace"))
    return given if isinstance(given, dict) else {INVALID: text}


# --- the stream that tells a whole reply -------------------------------------------------------------------------

# What is known only at the end: of the message, beside it, and of its usage.
_LATE: Final = ("stop_reason", "stop_sequence", "stop_details", "container")
_BESIDE: Final = ("context_management", "input_transformations")
_TOTALS: Final = frozenset(
    (
        *("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        *("server_tool_use", "output_tokens_details", "iterations", "fallback_credit"),
    )
)


def frames(document: Document) -> Sequence[Document]:
    """The events of a stream, each a document of its own. Every text comes in one delta."""
    return [deepcopy(event) for event in _events(document)]


def _events(message: Document) -> Iterator[Document]:
    usage = mapping(message.get("usage"))
    begun = message | {"content": []} | {field: None for field in _LATE if field in message}
    if "output_tokens" in usage:
        begun["usage"] = usage | {"output_tokens": 0}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(sequence(message.get("content"))):
        yield from _block_events(index, block)
    totals = {"output_tokens": 0} | {field: value for field, value in usage.items() if field in _TOTALS}
    beside = {field: message[field] for field in _BESIDE if message.get(field) is not None}
    delta = {field: message[field] for field in _LATE if field in message}
    yield {"type": "message_delta", "delta": delta, "usage": totals, **beside}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Any) -> Iterator[Document]:
    tell = _TELL.get(text_of(mapping(block).get("type")))
    begun, deltas = (block, []) if tell is None else tell(block)
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


_Told = tuple[Document, list[Document]]
"""A block as it begins, and the deltas that follow."""


def _text(block: Document) -> _Told:
    begun, deltas = dict(block), []
    if isinstance(citations := block.get("citations"), list):
        begun["citations"] = []
        deltas = [{"type": "citations_delta", "citation": citation} for citation in citations]
    if text := text_of(block.get("text")):
        begun["text"] = ""
        deltas.append({"type": "text_delta", "text": text})
    return begun, deltas


def _thinking(block: Document) -> _Told:
    begun, deltas = dict(block), []
    for field in ("thinking", "signature"):
        if text := text_of(block.get(field)):
            begun[field] = ""
            deltas.append({"type": f"{field}_delta", field: text})
    return begun, deltas


def _call(block: Document) -> _Told:
    given = block.get("input")
    if not isinstance(given, dict) or not given:
        return block, []
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json_text(given)}]


def _compaction(block: Document) -> _Told:
    told: Document = {field: block[field] for field in ("content", "encrypted_content") if field in block}
    return block | dict.fromkeys(told), [{"type": "compaction_delta", **told}]


_TELL: Final[Mapping[str, Callable[[Document], _Told]]] = {
    "text": _text,
    "thinking": _thinking,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "compaction": _compaction,
}
