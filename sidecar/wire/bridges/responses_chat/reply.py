"""A chat reply told as a response. A whole reply is a stream of one frame: there is one way for both.

Text items stand one after the other: when another one begins, the open one is over. Calls may take turns, so they stay
open to the end. Items are counted in the order in which they begin.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from ....errors import UpstreamBroken
from ...stream import Document
from . import heard
from .failure import error_of
from .fields import copied
from .items import CALLS, PREFIXES, SPEECH, Call, Item, Told


class _End(NamedTuple):
    """How a response ends: its status, which also names the last event, and why it is incomplete."""

    status: str
    why: str | None = None


_COMPLETED = _End("completed")
_CUT = _End("incomplete", "max_output_tokens")
_FAILED = _End("failed")
# By finish reason; any other is a reply that came to its end. Beside OpenAI's: Mistral's, OpenRouter's and DeepSeek's.
_ENDS = {
    "length": _CUT,
    "model_length": _CUT,
    "content_filter": _End("incomplete", "content_filter"),
    "error": _FAILED,
    "insufficient_system_resource": _FAILED,
}
_BROKEN = "The provider's stream ended before its reply was complete."
_GAVE_UP = "The provider ended its reply with an error."
_SERVER_FAULT = 500

# What a response says again of its request, and what it says where the request does not.
_ECHO: Document = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": None,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


def whole_reply(request: Document, document: Document) -> Document:
    """The response that a whole chat completion becomes. Raises UpstreamBroken where it is none."""
    choice = heard.first_choice(document)
    if choice is None or not isinstance(choice.get("message"), dict):
        raise UpstreamBroken("The provider's reply is no chat completion.")
    told = Reply(request)
    reason = choice.get("finish_reason") or "stop"
    frame = {**document, "choices": [{**choice, "delta": choice["message"], "finish_reason": reason}]}
    response: Document = [*told.feed(frame), *told.finish()][-1]["response"]
    return response


class Reply:
    """One reply, frame by frame. Every frame for the client is a document of its own."""

    def __init__(self, request: Document) -> None:
        self._request = request
        self._thoughts = "summary_text" if _wants_summary(request) else "reasoning_text"
        self._head: Document = {}
        self._key = ""
        self._items: list[Item] = []
        self._text: Told | None = None
        self._told: Counter[str] = Counter()
        self._calls: dict[int, Call] = {}
        self._waiting: Call | None = None
        self._open: dict[str, Call] = {}
        self._usage: Document | None = None
        self._reason: str | None = None
        self._over = False
        self._sequence = 0

    def feed(self, document: Document) -> Sequence[Document]:
        if self._over:
            return []
        return [self._numbered(frame) for frame in self._frames(document)]

    def finish(self) -> Sequence[Document]:
        if self._over:
            return []
        return [self._numbered(frame) for frame in self._ending()]

    def _numbered(self, frame: Document) -> Document:
        frame["sequence_number"] = self._sequence
        self._sequence += 1
        return frame

    # --- frames ---

    def _frames(self, document: Document) -> Iterator[Document]:
        choice = heard.first_choice(document)
        if choice is not None and not self._head:
            yield from self._begin(document)
        if document.get("error"):
            yield from self._fail(error_of(document, _SERVER_FAULT))
            return
        self._usage = heard.usage(document) or self._usage
        if choice is not None:
            yield from self._choice(choice)

    def _choice(self, choice: Document) -> Iterator[Document]:
        said = choice.get("delta")
        if isinstance(said, dict):
            yield from self._say(said, heard.logprobs(choice))
        if isinstance(choice.get("finish_reason"), str):
            self._reason = choice["finish_reason"]

    def _begin(self, document: Document) -> Iterator[Document]:
        """Id, time and model are those of the first frame that says anything."""
        created = document.get("created")
        self._key = str(document.get("id") or created or 0)
        self._head = {
            "id": f"resp_{self._key}",
            "object": "response",
            "created_at": created if isinstance(created, int) else 0,
            "model": document.get("model") or self._request.get("model"),
        }
        if isinstance(document.get("service_tier"), str):
            self._head["service_tier"] = document["service_tier"]
        yield self._event("created", "in_progress")
        yield self._event("in_progress", "in_progress")

    def _say(self, said: Document, logprobs: list[Document]) -> Iterator[Document]:
        for kind, text in heard.pieces(said):
            speech = {"reasoning": self._thoughts, "content": "output_text"}.get(kind, kind)
            told = yield from self._telling(SPEECH[speech].item)
            yield from told.more(speech, text, logprobs if speech == "output_text" else [])
        for citation in heard.citations(said):
            told = yield from self._telling("message")
            yield from told.annotate(citation)
        for piece in heard.calls(said):
            yield from self._end_text("completed")
            yield from self._call(piece)

    # --- text items ---

    def _telling(self, kind: str) -> Generator[Document, None, Told]:
        """The open item of a kind, begun where there is none."""
        if self._text is not None and self._text.kind == kind:
            return self._text
        yield from self._end_text("completed")
        yield from self._open_call()
        earlier = self._told[kind]
        self._told[kind] += 1
        name = f"{PREFIXES[kind]}_{self._key}" + (f"_{earlier}" if earlier else "")
        self._text = Told(kind, name, len(self._items))
        self._items.append(self._text)
        yield from self._text.open()
        return self._text

    def _end_text(self, status: str) -> Iterator[Document]:
        if self._text is not None:
            yield from self._text.close(status)
            self._text = None

    # --- calls ---

    def _call(self, piece: heard.CallPiece) -> Iterator[Document]:
        call = self._calls.get(piece.number)
        if call is None or _another(call, piece):
            yield from self._open_call()
            call = self._waiting = self._calls[piece.number] = Call(CALLS[piece.kind], piece.id, piece.name)
        elif call is self._waiting:
            call.name += "" if _again(call, piece) else piece.name
            call.call_id = call.call_id or piece.id
        if piece.text:
            if call is self._waiting:
                yield from self._open_call()
            yield from call.more(piece.text)

    def _open_call(self) -> Iterator[Document]:
        """Tells the call that has begun and waits for more of its name."""
        call, self._waiting = self._waiting, None
        if call is not None:
            call.call_id = self._free(call.call_id or f"call_{self._key}_{len(self._open)}")
            self._open[call.call_id] = call
            yield from call.open(len(self._items))
            self._items.append(call)

    def _free(self, call_id: str) -> str:
        """An id that no earlier call has: clients know calls by it."""
        while call_id in self._open:
            call_id = f"{call_id}_{len(self._open)}"
        return call_id

    # --- the end ---

    def _ending(self) -> Iterator[Document]:
        self._over = True
        if not self._head or self._reason is None:
            broken = {"message": _BROKEN, "type": UpstreamBroken.type, "param": None, "code": UpstreamBroken.code}
            yield from self._fail(broken)
            return
        end = _ENDS.get(self._reason, _COMPLETED)
        if end is _FAILED:
            yield from self._fail({"message": _GAVE_UP, "type": "server_error", "param": None, "code": self._reason})
            return
        yield from self._close(end.status)
        yield self._event(end.status, end.status, why=end.why)

    def _close(self, status: str) -> Iterator[Document]:
        """Ends what is open. A reply in which nothing was said is an empty text."""
        yield from self._open_call()
        if not self._items:
            told = yield from self._telling("message")
            yield from told.more("output_text", "", [])
        yield from self._end_text(status)
        for call in self._open.values():
            yield from call.close(status)

    def _fail(self, error: Document) -> Iterator[Document]:
        """An error event, which clients raise, and the response as far as it came. Both forms of the event are in use:
        the documented one with the fields beside the type, and OpenAI's own with an `error`."""
        self._over = True
        flat = {key: error[key] for key in ("code", "message", "param")}
        yield {"type": "error", **flat, "error": error}
        if not self._head:
            return
        for item in self._items:
            if item.status == "in_progress":
                item.status = "incomplete"
        yield self._event("failed", "failed", error={"code": "server_error", "message": error["message"]})

    def _event(self, name: str, status: str, why: str | None = None, error: Document | None = None) -> Document:
        return {"type": f"response.{name}", "response": self._response(status, why, error)}

    def _response(self, status: str, why: str | None, error: Document | None) -> Document:
        asked = {key: value for key in _ECHO if (value := self._request.get(key)) is not None}
        return {
            **copied(_ECHO | asked | self._head),
            "status": status,
            "error": error,
            "incomplete_details": {"reason": why} if why else None,
            "output": [item.document() for item in self._items],
            "store": False,
            "usage": copied(self._usage) if status != "in_progress" else None,
        }


def _wants_summary(request: Document) -> bool:
    reasoning: Any = request.get("reasoning")
    return isinstance(reasoning, dict) and bool(reasoning.get("summary") or reasoning.get("generate_summary"))


def _another(call: Call, piece: heard.CallPiece) -> bool:
    """Whether a piece with a known number begins a call of its own: some servers count every call as the first. Others
    give each piece of a call a new id, or say its name again, so it takes a name, and another id or name than before.
    """
    if piece.id and call.call_id:
        return bool(piece.name) and piece.id != call.call_id
    return call.opened and bool(piece.name) and piece.name != call.name


def _again(call: Call, piece: heard.CallPiece) -> bool:
    """Whether a name is said once more, as some servers do with every piece, and is not more of it."""
    return bool(piece.id) and piece.id == call.call_id and piece.name == call.name
