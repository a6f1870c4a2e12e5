"""A stream of chat completions becomes the reply that it tells, and a whole reply a stream."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ... import several
from ..folding import WORDS, Way, first, folded, grown, joined, overlay
from ..shape import Object, mapping, objects, text_of
from .entries import name_in, numbered


def _content(values: Sequence[Any]) -> Any:
    """Texts, or parts; what runs as texts beside parts is one of them."""
    if not any(isinstance(value, list) for value in values):
        return joined(values)
    texts = ([{"type": "text", "text": value}] if isinstance(value, str) and value else value for value in values)
    return grown(value for value in texts if isinstance(value, list))


def _name(values: Sequence[Any]) -> Any:
    """Names come in pieces, and some servers repeat them in every frame."""
    name = ""
    for value in values:
        if isinstance(value, str) and value != name:
            name += value
    return name


def _named_object(values: Sequence[Any]) -> Any:
    return folded((value for value in values if isinstance(value, dict)), {"name": _name})


@dataclass(slots=True)
class _Told:
    """What frames have said of a call."""

    index: int
    id: str = ""
    pieces: list[Object] = field(default_factory=list)


class _Calls:
    """Tells which call a piece belongs to: by its index, else by its id, else by its name, which begins a new one.

    A server that gives every call the index 0 tells them apart by id and name; one that gives every piece an id of its
    own names the call in the first alone.
    """

    def __init__(self) -> None:
        self._at: dict[int, _Told] = {}
        self._known: dict[str, _Told] = {}
        self._all: list[_Told] = []

    def add(self, piece: Object) -> None:
        ident = text_of(piece.get("id"))
        call = self._find(piece.get("index"), ident, named=bool(name_in(piece)))
        call.pieces.append(piece)
        if ident:
            call.id = call.id or ident
            self._known.setdefault(ident, call)

    def _find(self, index: Any, ident: str, *, named: bool) -> _Told:
        if not isinstance(index, int):
            call = self._known.get(ident) or (None if named or not self._all else self._all[-1])
            return call or self._new(max(self._at, default=-1) + 1)
        call = self._at.get(index)
        if call is None or (named and ident and call.id and ident != call.id):
            return self._new(index)
        return call

    def _new(self, index: int) -> _Told:
        call = self._at[index] = _Told(index)
        self._all.append(call)
        return call

    def whole(self) -> list[Object]:
        calls = sorted(self._all, key=lambda call: call.index)
        found = [folded(call.pieces, _CALL_WAYS) for call in calls]
        return [{name: value for name, value in call.items() if name != "index"} for call in found]


def _tool_calls(values: Sequence[Any]) -> list[Object]:
    calls = _Calls()
    for piece in chain.from_iterable(map(objects, values)):
        calls.add(piece)
    return calls.whole()


_CALL_WAYS: Mapping[str, Way] = {**WORDS, "function": _named_object, "custom": _named_object}
_MESSAGE_WAYS: Mapping[str, Way] = {
    **WORDS,
    "role": first,
    "content": _content,
    "tool_calls": _tool_calls,
    "function_call": _named_object,
}
# Of a frame: what is put together apart, and what only pads it. Of a choice as well; clients of a stream read no
# `message` in it.
_APART = frozenset(("choices", "obfuscation"))
_GROWING = ("logprobs", "token_ids")
_CHOICE_APART = frozenset(("index", "delta", "message", *_GROWING))


@dataclass(slots=True)
class _Choice:
    """What frames have said of a choice."""

    deltas: list[Object] = field(default_factory=list)
    growing: list[Object] = field(default_factory=list)
    rest: Object = field(default_factory=dict)

    def feed(self, choice: Object) -> None:
        self.deltas.append(mapping(choice.get("delta")))
        self.growing.append({name: choice[name] for name in _GROWING if name in choice})
        overlay(self.rest, {name: value for name, value in choice.items() if name not in _CHOICE_APART})

    def whole(self, index: int) -> Object:
        message = {"role": "assistant", "content": None} | folded(self.deltas, _MESSAGE_WAYS)
        return {"index": index, "message": message} | folded(self.growing, {}) | self.rest


class Gather:
    """See `conversation.Gather`. A reply is whole when every choice that has begun has told why it ended."""

    def __init__(self) -> None:
        self._head: Object = {}
        self._choices: dict[int, _Choice] = {}
        self._failed = False

    def feed(self, document: Object) -> None:
        self._failed = self._failed or bool(document.get("error"))
        if not isinstance(document.get("choices"), list):
            return
        overlay(self._head, {name: value for name, value in document.items() if name not in _APART})
        for index, choice in several.numbered(document):
            self._choices.setdefault(index, _Choice()).feed(choice)

    @property
    def reply(self) -> Object | None:
        ended = all(choice.rest.get("finish_reason") for choice in self._choices.values())
        if self._failed or not self._choices or not ended:
            return None
        choices = [choice.whole(index) for index, choice in sorted(self._choices.items())]
        return self._head | {"object": "chat.completion", "choices": choices}


# --- a reply becomes a stream ---


# What every frame says of its reply.
_IDENTITY = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
# What a client should read first and last; anything else is between.
_BEFORE = ("reasoning_content", "reasoning", "reasoning_details")
_AFTER = ("tool_calls", "function_call")


def frames(document: Object) -> list[Object]:
    """See `conversation.View`. What stands beside the choices is told by the first frame, usage by the last.

    What gathers again is the same reply, but for an `index` in its calls, for choices and calls that are no objects,
    and for a choice's `index` and a message's `role` and `content`, which are there even where the reply has none.
    """
    head = {name: document[name] for name in _IDENTITY if name in document} | {"object": "chat.completion.chunk"}
    choices = [frame for index, choice in numbered(document) for frame in _told(index, choice)]
    found = [head | {"choices": [choice]} for choice in choices] or [head | {"choices": []}]
    usage = document.get("usage") or None
    apart = {"choices", *(("usage",) if usage else ())}
    found[0] |= {name: value for name, value in document.items() if name not in head and name not in apart}
    return [*found, *([head | {"choices": [], "usage": usage}] if usage else ())]


def _told(index: int, choice: Object) -> list[Object]:
    """The choices of the frames that tell one: logprobs beside the text, the rest at its end."""
    deltas = list(_deltas(mapping(choice.get("message"))))
    found: list[Object] = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    rest = {name: value for name, value in choice.items() if name not in _CHOICE_APART}
    last = {"index": index, "delta": {}, "finish_reason": None} | rest
    spoken = next((frame for frame in found if frame["delta"].get("content")), last)
    spoken.update((name, choice[name]) for name in _GROWING if name in choice)
    return [*found, last]


def _deltas(message: Object) -> Iterator[Object]:
    """What holds nothing begins the message, then each field is whole in a frame of its own."""
    text = "" if isinstance(message.get("content"), str) else None
    role = text_of(message.get("role")) or "assistant"
    yield {name: value for name, value in message.items() if not value} | {"role": role, "content": text}
    for name in sorted(message, key=lambda name: (name in _AFTER) - (name in _BEFORE)):
        value = message[name]
        if value and name != "role":
            yield {name: _indexed(value) if name == "tool_calls" else value}


def _indexed(calls: Any) -> list[Object]:
    return [{"index": at} | call | {"index": at} for at, call in enumerate(objects(calls))]
