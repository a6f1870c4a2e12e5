"""One choice of a reply whose model writes its calls as text: the text goes through a reader, its calls come out.

A whole message is a stream of one delta, so that both ways give the same.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from .. import jsondoc
from ..stream import Document
from .asked import INPUT, Asked
from .content import texts_of
from .pieces import Argued, Begun, Ended, Misnamed, Piece, Said, Thought

# The model was stopped: such an end stays what the provider says also where there are calls, and closes none of them.
_STOPPED: Final = ("length", "model_length", "content_filter", "error", "insufficient_system_resource")
_CALLS: Final = ("tool_calls", "function_call")
_MOST_UNKNOWN: Final = 8
# What is computed over a text that has changed.
_COMPUTED: Final = ("logprobs", "token_ids")
# The order in which a delta is read. What comes out of it needs another one.
_RANKS: Final[Mapping[str, int]] = {"reasoning_content": 0, "content": 1, "tool_calls": 2, "function_call": 2}


class Reads(Protocol):
    """Text in, pieces out."""

    def feed(self, text: str) -> list[Piece]: ...
    def finish(self, *, cut: bool = False) -> list[Piece]: ...


class Choice:
    """`id_of` gives a call's id by its number. `unknown` names what the model called and there is not, each once."""

    def __init__(self, reader: Reads, asked: Asked, id_of: Callable[[int], str]) -> None:
        self._reader, self._asked, self._id_of = reader, asked, id_of
        self._native = self._over = self._begun = False
        self._calls = 0
        self._open: set[int] = set()
        # Tools that take a text: their arguments are told when they are whole.
        self._free: dict[int, tuple[str, list[str]]] = {}
        self.unknown: list[str] = []

    def feed(self, choice: Document, said: Document) -> list[Document] | None:
        """A frame's choice and its delta, or the message of a whole one: the choices that take its place.

        None where nothing changes.
        """
        if self._over:
            return None
        if any(said.get(field) for field in _CALLS):
            return self._spoken_natively(choice, said)
        text, others = _text_of(said)
        reason = choice.get("finish_reason")
        pieces = self._reader.feed(text) if text and not self._native else []
        if reason:
            pieces = [*pieces, *self._finish(cut=reason in _STOPPED)]
        same = self._native or ("".join(_said(pieces)) == text and all(isinstance(p, Said | Misnamed) for p in pieces))
        deltas = self._deltas(pieces)
        end = self._reason(reason)
        if same and end == reason:
            self._begun = self._begun or bool(said)
            return None
        if same:
            return [{**choice, "delta": said, "finish_reason": end}]
        rest = {field: value for field, value in said.items() if field != "content"}
        if others:
            rest["content"] = others
        return list(self._steps(choice, rest, deltas, end))

    @property
    def broken(self) -> frozenset[int]:
        """Calls that never came to their end."""
        return frozenset(self._open)

    def finish(self) -> list[Document]:
        """The stream is over: deltas with what was held. Nothing where the choice has had its end."""
        return self._deltas(self._finish(cut=True))

    def _finish(self, *, cut: bool) -> list[Piece]:
        if self._over or self._native:
            self._over = True
            return []
        self._over = True
        return self._reader.finish(cut=cut)

    def _reason(self, reason: Any) -> Any:
        """A call that was begun and never came to its end cannot be made: such a reply was cut off."""
        if not reason or not self._calls or reason in _STOPPED:
            return reason
        if self._open:
            return "length"
        return "function_call" if self._asked.legacy else "tool_calls"

    # --- native calls ---

    def _spoken_natively(self, choice: Document, said: Document) -> list[Document] | None:
        """From here on the model speaks for itself: what it calls is not overridden, and its text is not read."""
        held = [] if self._native else self._deltas(self._reader.finish(cut=True))
        self._native = True
        if not held and not self._calls:
            return None
        behind = {"tool_calls": self._behind(said["tool_calls"])} if said.get("tool_calls") else {}
        deltas = [*held, {**said, **behind}]
        return list(self._steps(choice, {}, deltas, self._reason(choice.get("finish_reason"))))

    def _behind(self, calls: Any) -> Any:
        """Calls counted on from those that were read from text."""
        if not isinstance(calls, list):
            return calls
        return [
            {**call, "index": self._calls + _number(call, at)} if isinstance(call, dict) else call
            for at, call in enumerate(calls)
        ]

    # --- what comes out ---

    def _steps(self, choice: Document, rest: Document, deltas: list[Document], end: Any) -> Iterator[Document]:
        """The deltas as choices: first what else the frame's own held, last the reason for the end, on its own."""
        if not self._begun or any(value for field, value in rest.items() if field != "role"):
            apart = not deltas or rest.keys() & deltas[0].keys()
            deltas = [rest, *deltas] if apart else [{**rest, **deltas[0]}, *deltas[1:]]
        self._begun = True
        kept = {**choice, **{field: None for field in _COMPUTED if choice.get(field)}}
        if end:
            deltas = [*deltas, {}]
        for at, delta in enumerate(deltas, 1):
            yield {**kept, "delta": delta, "finish_reason": end if at == len(deltas) else None}

    def _deltas(self, pieces: Iterable[Piece]) -> list[Document]:
        deltas: list[Document] = []
        for piece in pieces:
            for delta in self._delta(piece):
                _add(deltas, delta)
        return deltas

    def _delta(self, piece: Piece) -> Iterator[Document]:
        match piece:
            case Said(text=text):
                yield {"content": text}
            case Thought(text=text):
                yield {"reasoning_content": text}
            case Begun(index=index, name=name):
                self._calls = index + 1
                self._open.add(index)
                if name in self._asked.free:
                    self._free[index] = name, []
                else:
                    yield self._call(index, {"name": name, "arguments": ""}, begins=True)
            case Argued(index=index, text=text):
                if index in self._free:
                    self._free[index][1].append(text)
                else:
                    yield self._call(index, {"arguments": text})
            case Ended(index=index):
                self._open.discard(index)
                if index in self._free:
                    name, arguments = self._free.pop(index)
                    yield self._custom(index, name, "".join(arguments))
            case Misnamed(name=name):
                if len(self.unknown) < _MOST_UNKNOWN and name not in self.unknown:
                    self.unknown.append(name)

    def _call(self, index: int, function: Document, *, begins: bool = False) -> Document:
        if self._asked.legacy:
            return {"function_call": function}
        head = {"id": self._id_of(index), "type": "function"} if begins else {}
        return {"tool_calls": [{"index": index, **head, "function": function}]}

    def _custom(self, index: int, name: str, arguments: str) -> Document:
        given = jsondoc.readable(arguments.encode("utf-8", "surrogatepass"))
        text = given.get(INPUT) if isinstance(given, dict) else None
        custom = {"name": name, "input": text if isinstance(text, str) else arguments}
        return {"tool_calls": [{"index": index, "id": self._id_of(index), "type": "custom", "custom": custom}]}


def _said(pieces: Iterable[Piece]) -> Iterator[str]:
    return (piece.text for piece in pieces if isinstance(piece, Said))


def _text_of(said: Document) -> tuple[str, list[Document]]:
    texts, others = texts_of(said.get("content"))
    return "".join(texts), others


def _number(call: Document, position: int) -> int:
    index = call.get("index")
    return index if isinstance(index, int) else position


def _add(deltas: list[Document], new: Document) -> None:
    """Puts more into the last delta, where it is read after what stands there already."""
    ((field, value),) = new.items()
    if not deltas or any(_RANKS[held] > _RANKS[field] for held in deltas[-1]):
        deltas.append(new)
    elif field == "tool_calls":
        _add_call(deltas[-1].setdefault(field, []), value[0])
    elif field == "function_call":
        held = deltas[-1].setdefault(field, {"arguments": ""})
        deltas[-1][field] = {**held, **value, "arguments": held["arguments"] + value["arguments"]}
    else:
        deltas[-1][field] = deltas[-1].get(field, "") + value


def _add_call(calls: list[Document], call: Document) -> None:
    if calls and calls[-1]["index"] == call["index"] and "id" not in call:
        calls[-1]["function"]["arguments"] += call["function"]["arguments"]
    else:
        calls.append(call)


def message_of(message: Document, deltas: Iterable[Document], broken: Container[int] = ()) -> Document:
    """The whole message that deltas tell, without broken calls; all else stays as it was."""
    said: dict[str, str] = {}
    parts: list[Any] = []
    calls: list[Document] = []
    alone: list[Document] = []
    for delta in deltas:
        for field in ("content", "reasoning_content"):
            if isinstance(text := delta.get(field), str):
                said[field] = said.get(field, "") + text
        parts += delta["content"] if isinstance(delta.get("content"), list) else []
        for call in delta.get("tool_calls") or ():
            _add_call(calls, call)
        if delta.get("function_call"):
            _add(alone, {"function_call": delta["function_call"]})
    content: Any = said.pop("content", "") or None
    if parts:
        content = [*parts, *([{"type": "text", "text": content}] if content else ())]
    whole = [call for call in calls if call["index"] not in broken]
    made = {"tool_calls": [{key: value for key, value in call.items() if key != "index"} for call in whole]}
    old = alone[0] if alone and 0 not in broken else {}
    return {**message, **said, "content": content, **(made if whole else {}), **old}
