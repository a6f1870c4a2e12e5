"""The reply, frame by frame. A whole one takes the same way, as one frame."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ....errors import UpstreamBroken
from ... import jsondoc
from ...stream import Document
from . import errors

REASONING = ("reasoning_content", "reasoning")
"""Where servers say what the model thinks; one that uses both says the same in each. The field's name is the
`signature` of the thinking block, so that the text goes back under the name that it came under."""

INVALID = "INVALID_JSON"

_STOPS = {
    "length": "max_tokens",
    "content_filter": "refusal",
    "model_length": "model_context_window_exceeded",  # Mistral
}
# Where servers say which stop sequence they met: vLLM, SGLang. A number is a token of the model's own.
_MATCHED = ("stop_reason", "matched_stop")


@dataclass(slots=True)
class _Call:
    """A tool call, as far as it has come."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def add(self, id_: str, name: str, arguments: str) -> None:
        # A server that says the id again says the name again too, and not more of it.
        if not (id_ and id_ == self.id and name == self.name):
            self.name += name
        self.id = self.id or id_
        self.pieces.append(arguments)

    def is_over(self, id_: str, name: str) -> bool:
        """Whether what comes under the same index is another call: some servers give every call the index 0."""
        return bool(id_ and name and id_ != self.id and _is_object(self.arguments))


class Reply:
    """One reply on its way from chat frames to Messages frames. `model` is what it is called where it says nothing.

    At any time one block at most is open. Tool calls wait for the end.
    """

    def __init__(self, model: str, stops: Sequence[Any] = ()) -> None:
        self._model, self._stops = model, stops
        self._id = ""
        self._started = self._failed = self._refused = False
        self._blocks = 0
        self._open: tuple[str, str] | None = None
        self._calls: list[_Call] = []
        self._at: dict[int | str, _Call] = {}
        self._reason: str | None = None
        self._matched: str | None = None
        self._usage: Document = {}

    def feed(self, document: Document) -> list[Document]:
        if self._failed:
            return []
        self._usage = _usage(document) or self._usage
        choice = _first_choice(document)
        frames = [] if choice is None else [*self._start(document), *self._choice(choice)]
        if document.get("error"):
            self._failed = True
            frames.append(errors.message({"error": document["error"]}))
        return frames

    def finish(self, *, whole: bool = False) -> list[Document]:
        """The rest: the tool calls, why it ended, what it cost. `whole` says that it is complete as it is."""
        if self._failed or not self._started or not (self._reason or whole):
            return []
        frames = self._close()
        for number, call in enumerate(self._calls):
            frames += self._tool_use(number, call)
        reason = self._stop_reason()
        met = self._matched if reason == "stop_sequence" else None
        delta = {"stop_reason": reason, "stop_sequence": met, "stop_details": None}
        usage = _NO_USAGE | self._usage
        return [*frames, {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]

    def _start(self, document: Document) -> list[Document]:
        if self._started:
            return []
        self._started = True
        self._id = f"msg_{_str(document.get('id'))}"
        message: Document = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": _str(document.get("model")) or self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": _NO_USAGE | self._usage,
        }
        return [{"type": "message_start", "message": message}]

    def _choice(self, choice: Document) -> list[Document]:
        frames: list[Document] = []
        for place in ("delta", "message"):
            if isinstance(said := choice.get(place), dict):
                for kind, mark, text in _texts(said):
                    frames += self._say(kind, mark, text)
                if self._call_all(said, whole=place == "message") and not frames:
                    frames.append({"type": "ping"})
        if choice.get("finish_reason"):
            self._reason = _str(choice["finish_reason"]) or "stop"
            self._matched = next((met for met in map(choice.get, _MATCHED) if met in self._stops), None)
        return frames

    # --- blocks ---

    def _say(self, kind: str, mark: str, text: str) -> list[Document]:
        self._refused = self._refused or mark == "refusal"
        frames: list[Document] = []
        if self._open != (kind, mark):
            frames = self._close()
            self._open = (kind, mark)
            frames.append(self._block_start(dict(_EMPTY[kind])))
        return [*frames, self._block_delta({"type": f"{kind}_delta", kind: text})]

    def _close(self) -> list[Document]:
        if self._open is None:
            return []
        kind, mark = self._open
        self._open = None
        sealed = [self._block_delta({"type": "signature_delta", "signature": mark})] if kind == "thinking" else []
        return [*sealed, self._block_stop()]

    def _tool_use(self, number: int, call: _Call) -> list[Document]:
        id_ = call.id or f"toolu_{self._id}_{number}"
        return [
            self._block_start({"type": "tool_use", "id": id_, "name": call.name, "input": {}}),
            self._block_delta({"type": "input_json_delta", "partial_json": _input(call.arguments)}),
            self._block_stop(),
        ]

    def _block_start(self, block: Document) -> Document:
        return {"type": "content_block_start", "index": self._blocks, "content_block": block}

    def _block_delta(self, delta: Document) -> Document:
        return {"type": "content_block_delta", "index": self._blocks, "delta": delta}

    def _block_stop(self) -> Document:
        self._blocks += 1
        return {"type": "content_block_stop", "index": self._blocks - 1}

    # --- tool calls ---

    def _call_all(self, said: Document, *, whole: bool) -> bool:
        calls = list(_calls(said, whole))
        for index, id_, function in calls:
            self._call(index, id_, function)
        return bool(calls)

    def _call(self, index: int | str | None, id_: str, function: Document) -> None:
        name = _str(function.get("name"))
        call = self._begun(index, id_, name)
        if call is None:
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._at[index] = call
        call.add(id_, name, _arguments(function))

    def _begun(self, index: int | str | None, id_: str, name: str) -> _Call | None:
        """The call that a piece belongs to, None where it begins one. Without an index its id tells, or its name."""
        if index is not None:
            call = self._at.get(index)
            return None if call is None or call.is_over(id_, name) else call
        if id_:
            return next((call for call in self._calls if call.id == id_), None)
        return self._calls[-1] if self._calls and not name else None

    def _stop_reason(self) -> str:
        """Clients act on `tool_use` alone, and some servers end a reply with calls by a plain `stop`."""
        if (cut := _STOPS.get(self._reason or "")) is not None:
            return cut
        if self._calls:
            return "tool_use"
        if self._refused:
            return "refusal"
        return "end_turn" if self._matched is None else "stop_sequence"


_EMPTY: dict[str, Document] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


def whole(stream: Reply, document: Document) -> Document:
    """The message that a client would build from the frames."""
    frames = [*stream.feed(document), *stream.finish(whole=True)]
    if not frames or frames[-1]["type"] != "message_stop":
        raise UpstreamBroken("The provider's reply is no chat completion.")
    return _folded(frames)


def _folded(frames: list[Document]) -> Document:
    message: Document = {}
    blocks: list[Document] = []
    for frame in frames:
        match frame["type"]:
            case "message_start":
                message = frame["message"]
            case "content_block_start":
                blocks.append(frame["content_block"])
            case "content_block_delta":
                _grow(blocks[-1], frame["delta"])
            case "message_delta":
                message |= frame["delta"] | {"usage": frame["usage"]}
    return message | {"content": blocks}


def _grow(block: Document, delta: Document) -> None:
    match delta["type"]:
        case "input_json_delta":
            block["input"] = jsondoc.decode(delta["partial_json"].encode())
        case "signature_delta":
            block["signature"] = delta["signature"]
        case _:
            block[block["type"]] += delta[block["type"]]


# --- what a chat frame says ----------------------------------------------------------------------------------


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _first_choice(document: Document) -> Document | None:
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            return choice
    return None


def _texts(said: Document) -> Iterator[tuple[str, str, str]]:
    """Kind of block, what tells it from its neighbour, and a text that is not empty. Reasoning comes first."""
    for kind, mark, text in (
        *_reasoning(said),
        *_content(said.get("content")),
        ("text", "refusal", said.get("refusal")),
    ):
        if isinstance(text, str) and text:
            yield kind, mark, text


def _reasoning(said: Document) -> Iterator[tuple[str, str, Any]]:
    for name in REASONING:
        if isinstance(said.get(name), str) and said[name]:
            yield "thinking", name, said[name]
            return
    details = said.get("reasoning_details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield "thinking", "", detail.get("text") or detail.get("summary")


def _content(content: Any) -> Iterator[tuple[str, str, Any]]:
    """A text or, from Mistral, a list of parts. A part of another kind is quoted: nothing is lost."""
    for part in content if isinstance(content, list) else [content]:
        match part:
            case None | str():
                yield "text", "", part
            case {"type": "text", "text": str(text)}:
                yield "text", "", text
            case {"type": "thinking", "thinking": list(inner)}:
                yield from (("thinking", "", text) for _, _, text in _content(inner))
            case _:
                yield "text", "", jsondoc.encode(part).decode()


def _calls(said: Document, whole: bool) -> Iterator[tuple[int | str | None, str, Document]]:
    """Index, id and function of each call, or piece of one; `function_call` is the older, single form."""
    calls = said.get("tool_calls")
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            index = position if whole else call.get("index")
            function = call.get("function") or call.get("custom")
            place = index if isinstance(index, int) else None
            yield place, _str(call.get("id")), function if isinstance(function, dict) else {}
    if isinstance(alone := said.get("function_call"), dict):
        yield "function_call", "", alone


def _arguments(function: Document) -> str:
    given = function.get("arguments", function.get("input"))
    if given is None or isinstance(given, str):
        return given or ""
    return jsondoc.encode(given).decode()


def _input(arguments: str) -> str:
    """The JSON object that these arguments are, or one that holds them."""
    text = _whole_characters(arguments)
    if not text.strip():
        return "{}"
    return text if _is_object(text) else jsondoc.encode({INVALID: text}).decode()


def _whole_characters(text: str) -> str:
    """Joins the halves of a character that came apart. A half that has no other is written as its escape."""
    if not _HALF.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return joined.encode(errors="backslashreplace").decode()


_HALF = re.compile("[\ud800-\udfff]")


def _is_object(text: str) -> bool:
    """Stricter than a document's reader: no escape of half a character, at which clients' readers stop."""
    try:
        raw = text.encode()
        jsondoc.decode(raw)
        return isinstance(msgspec.json.decode(raw), dict)
    except (jsondoc.JsonFault, msgspec.DecodeError, UnicodeEncodeError):
        return False


# --- what it cost --------------------------------------------------------------------------------------------

_NO_USAGE: Document = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}


def _usage(document: Document) -> Document | None:
    """`input_tokens` does not hold what was read from the cache or written to it; chat's `prompt_tokens` does."""
    said = document.get("usage")
    if not isinstance(said, dict):
        return None
    read = min(_cached(said), prompt := _count(said, "prompt_tokens"))
    written = min(_count(said.get("prompt_tokens_details"), "cache_write_tokens"), prompt - read)
    usage = {"input_tokens": prompt - read - written, "cache_read_input_tokens": read}
    usage["cache_creation_input_tokens"] = written
    usage["output_tokens"] = _count(said, "completion_tokens")
    thought = _count(said.get("completion_tokens_details"), "reasoning_tokens")
    return usage | ({"output_tokens_details": {"thinking_tokens": thought}} if thought else {})


def _cached(said: Document) -> int:
    """OpenAI and most; Moonshot; DeepSeek."""
    details = _count(said.get("prompt_tokens_details"), "cached_tokens")
    return details or _count(said, "cached_tokens") or _count(said, "prompt_cache_hit_tokens")


def _count(holder: Any, name: str) -> int:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if type(value) is int and value > 0 else 0
