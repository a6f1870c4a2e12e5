"""The output items of a reply that is being told, and the events that tell each of them.

Every event and every item is written anew from the texts, so that nobody who edits one in place edits another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ...stream import Document
from .fields import copied


class Speech(NamedTuple):
    """How a kind of text is told: in which item, in which of its lists, and under which names."""

    item: str
    event: str
    field: str = "text"
    holder: str = "content"
    part: str = "response.content_part"
    place: str = "content_index"


SPEECH = {
    "output_text": Speech("message", "response.output_text"),
    "refusal": Speech("message", "response.refusal", field="refusal"),
    "reasoning_text": Speech("reasoning", "response.reasoning_text"),
    "summary_text": Speech(
        *("reasoning", "response.reasoning_summary_text"),
        holder="summary",
        part="response.reasoning_summary_part",
        place="summary_index",
    ),
}
_EMPTY: dict[str, Document] = {
    "message": {"type": "message", "role": "assistant", "content": []},
    "reasoning": {"type": "reasoning", "summary": [], "content": []},
}
PREFIXES = {"message": "msg", "reasoning": "rs"}


class CallKind(NamedTuple):
    """How a kind of call is told: its item, its event, and the field with the text for the tool."""

    item: str
    prefix: str
    event: str
    field: str


CALLS = {
    "function": CallKind("function_call", "fc", "response.function_call_arguments", "arguments"),
    "custom": CallKind("custom_tool_call", "ctc", "response.custom_tool_call_input", "input"),
}


class Item(Protocol):
    """One item of the output, at its place there. `status` is that of the item."""

    status: str

    def document(self) -> Document:
        """The item as it is by now."""

    def close(self, status: str) -> Iterator[Document]:
        """The events that end it."""


@dataclass(slots=True)
class Part:
    """A text of an item, with what was computed over it."""

    kind: str
    pieces: list[str] = field(default_factory=list)
    annotations: list[Document] = field(default_factory=list)
    logprobs: list[Document] = field(default_factory=list)

    def document(self) -> Document:
        said = {"type": self.kind, SPEECH[self.kind].field: "".join(self.pieces)}
        if self.kind == "output_text":
            said |= {"annotations": copied(self.annotations), "logprobs": copied(self.logprobs)}
        return said


@dataclass(slots=True)
class Told:
    """A message or a reasoning item. Only its last part is open."""

    kind: str
    id: str
    index: int
    parts: list[Part] = field(default_factory=list)
    status: str = "in_progress"

    def document(self) -> Document:
        said = {"id": self.id, **copied(_EMPTY[self.kind]), "status": self.status}
        for part in self.parts:
            said[SPEECH[part.kind].holder].append(part.document())
        return said

    def open(self) -> Iterator[Document]:
        yield _added(self.index, self.document())

    def close(self, status: str) -> Iterator[Document]:
        yield from self._close_part()
        self.status = status
        yield _done(self.index, self.document())

    def more(self, kind: str, text: str, logprobs: list[Document]) -> Iterator[Document]:
        yield from self._part(kind)
        part = self.parts[-1]
        part.pieces.append(text)
        part.logprobs.extend(logprobs)
        yield self._event(SPEECH[kind].event + ".delta", delta=text, **_beside(kind, logprobs))

    def annotate(self, annotation: Document) -> Iterator[Document]:
        yield from self._part("output_text")
        place = len(self.parts[-1].annotations)
        self.parts[-1].annotations.append(annotation)
        about = {"annotation_index": place, "annotation": dict(annotation)}
        yield self._event("response.output_text.annotation.added", **about)

    def _part(self, kind: str) -> Iterator[Document]:
        """Makes the last part one of this kind."""
        if self.parts and self.parts[-1].kind == kind:
            return
        yield from self._close_part()
        self.parts.append(Part(kind))
        yield self._event(SPEECH[kind].part + ".added", part=self.parts[-1].document())

    def _close_part(self) -> Iterator[Document]:
        if not self.parts:
            return
        part = self.parts[-1]
        speech = SPEECH[part.kind]
        whole = {speech.field: "".join(part.pieces), **_beside(part.kind, part.logprobs)}
        yield self._event(speech.event + ".done", **whole)
        yield self._event(speech.part + ".done", part=part.document())

    def _event(self, name: str, **fields: Any) -> Document:
        where = {"item_id": self.id, "output_index": self.index, SPEECH[self.parts[-1].kind].place: len(self.parts) - 1}
        return {"type": name, **where, **fields}


@dataclass(slots=True)
class Call:
    """A call of a tool. It is told from its first argument on: until then more of its name may come."""

    kind: CallKind
    call_id: str = ""
    name: str = ""
    index: int = -1
    pieces: list[str] = field(default_factory=list)
    status: str = "in_progress"

    @property
    def opened(self) -> bool:
        return self.index >= 0

    def document(self) -> Document:
        head = {"id": self._id, "type": self.kind.item, "status": self.status, "call_id": self.call_id}
        return {**head, "name": self.name, self.kind.field: "".join(self.pieces)}

    def open(self, index: int) -> Iterator[Document]:
        self.index = index
        yield _added(index, self.document())

    def more(self, text: str) -> Iterator[Document]:
        self.pieces.append(text)
        yield self._event("delta", delta=text)

    def close(self, status: str) -> Iterator[Document]:
        name = {"name": self.name} if self.kind is CALLS["function"] else {}
        yield self._event("done", **name, **{self.kind.field: "".join(self.pieces)})
        self.status = status
        yield _done(self.index, self.document())

    @property
    def _id(self) -> str:
        return f"{self.kind.prefix}_{self.call_id}"

    def _event(self, end: str, **fields: Any) -> Document:
        return {"type": f"{self.kind.event}.{end}", "item_id": self._id, "output_index": self.index, **fields}


def _beside(kind: str, logprobs: list[Document]) -> Document:
    """What stands beside a text in its events."""
    return {"logprobs": copied(logprobs)} if kind == "output_text" else {}


def _added(index: int, item: Document) -> Document:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _done(index: int, item: Document) -> Document:
    return {"type": "response.output_item.done", "output_index": index, "item": item}
