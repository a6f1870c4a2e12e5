"""A whole reply: what it says, which tools it calls, how it ended, and how to say it otherwise."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ... import hosted
from ...conversation import Called, Ending, HostedCall
from ...stream import Document
from ..shape import mapping, objects, paragraphs, sequence, text_of
from . import tools

_CUT: Final[Mapping[str, Ending]] = {"max_output_tokens": "length", "content_filter": "filtered"}
# In which phase a message is the answer. Of those that comment on the work meanwhile, the official client takes none
# for a structured result either.
_ANSWERS: Final = (None, "final_answer")


class Replied:
    """There is one choice, 0. It says what its answering messages say, or its comments where it does not answer."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def texts(self) -> Mapping[int, str]:
        alone = self._document.get("output_text")
        if isinstance(self._document.get("output"), list):
            return {0: "".join(text_of(part.get("text")) for part in self._parts("output_text"))}
        return {0: alone} if isinstance(alone, str) else {}

    @property
    def calls(self) -> Sequence[Called]:
        return [call for _, call in self.items()]

    @property
    def hosted(self) -> Sequence[HostedCall]:
        items = objects(self._document.get("output"))
        done = _done(items)
        return [call for call in (_ran(item, done) for item in items) if call is not None]

    def items(self) -> Iterator[tuple[Document, Called]]:
        """The calls that the client decides about, each with its item; one whose output is there has been run.

        A call without an id has one by its place.
        """
        items = objects(self._document.get("output"))
        done = _done(items)
        position = 0
        for item in items:
            call = tools.called(item, position)
            if call is not None and call.id not in done:
                position += 1
                yield item, call if call.id else call._replace(id=f"call_{call.position}")

    def ending(self, choice: int) -> Ending:
        match self._document.get("status") or "completed":
            case "completed" if choice == 0:
                return "calls" if self.calls else "stop"
            case "incomplete" if choice == 0:
                reason = mapping(self._document.get("incomplete_details")).get("reason")
                return _CUT.get(text_of(reason), "other")
        return "other"

    def refused(self, choice: int) -> bool:
        return choice == 0 and any(text_of(part.get("refusal")) for part in self._parts("refusal"))

    # --- edits ---

    def say(self, choice: int, text: str) -> None:
        output = self._document.get("output")
        if choice != 0:
            return
        if not isinstance(output, list):
            self._mirror(text)
            return
        *others, last = self._answers() or [self._new_message(output)]
        _put(last, text)
        for message in others:
            message["content"] = _unspoken(message)
        output[:] = _without(output, [message for message in others if not message["content"]])
        self._mirror(self.texts[0])

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        gone = {call.position for call in calls if call.choice == 0}
        dropped = [item for item, call in self.items() if call.position in gone]
        if not dropped:
            return
        output = sequence(self._document.get("output"))
        output[:] = _without(output, dropped)
        if notice:
            *_, last = self._answers() or [self._new_message(output)]
            _append(last, notice)
        self._mirror(self.texts[0])

    def _messages(self) -> list[Document]:
        return [item for item in objects(self._document.get("output")) if item.get("type") == "message"]

    def _answers(self) -> list[Document]:
        messages = self._messages()
        return [message for message in messages if message.get("phase") in _ANSWERS] or messages

    def _parts(self, kind: str) -> Iterator[Document]:
        return (part for message in self._answers() for part in _of_type(message, kind))

    def _new_message(self, output: list[Any]) -> Document:
        """One at the end: reasoning has to stand before the item that it led to."""
        name = text_of(self._document.get("id")).removeprefix("resp_") or "0"
        message: Document = {"id": f"msg_{name}_{len(output)}", "type": "message", "status": "completed"}
        message |= {"role": "assistant", "content": []}
        output.append(message)
        return message

    def _mirror(self, text: str) -> None:
        """Some providers say all text once more."""
        if isinstance(self._document.get("output_text"), str):
            self._document["output_text"] = text


def _done(items: Iterable[Document]) -> set[str]:
    """The ids of the calls whose results are there."""
    return {tools.id_of(item) for item in items if tools.is_result(item)} - {""}


def _ran(item: Document, done: Collection[str]) -> HostedCall | None:
    call, told = tools.called(item, 0), hosted.of_item(item)
    if call is not None:
        return HostedCall(call.id, call.name) if call.id in done else None
    return None if told is None else HostedCall(told.id, told.name)


def _of_type(message: Document, kind: str) -> list[Document]:
    return [part for part in objects(message.get("content")) if part.get("type") == kind]


def _unspoken(message: Document) -> list[Document]:
    """A refusal, or parts of a kind that no API documents."""
    return [part for part in objects(message.get("content")) if part.get("type") != "output_text"]


def _put(message: Document, text: str) -> None:
    """Makes a message say this."""
    first = next(iter(_of_type(message, "output_text")), None) or _new_part()
    _change(first, text)
    if "annotations" in first:
        first["annotations"] = []
    message["content"] = [first, *_unspoken(message)]


def _append(message: Document, notice: str) -> None:
    """Annotations stay: what they point to has not moved."""
    parts = _of_type(message, "output_text")
    if parts:
        _change(parts[-1], paragraphs(text_of(parts[-1].get("text")), notice))
    else:
        message["content"] = [*sequence(message.get("content")), _new_part() | {"text": notice}]


def _change(part: Document, text: str) -> None:
    part["text"] = text
    if "logprobs" in part:
        part["logprobs"] = []


def _new_part() -> Document:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}


def _without(output: list[Any], gone: Collection[Document]) -> list[Any]:
    """The items that stay. Reasoning goes too where nothing that it led to is left: the provider refuses it alone."""
    names = {id(item) for item in gone}
    kept: list[Any] = []
    cut_off = False
    for item in reversed(output):
        alone = cut_off and _is_reasoning(item) and (not kept or _is_reasoning(kept[-1]))
        if id(item) in names:
            cut_off = True
        elif not alone:
            kept.append(item)
            cut_off = False
    return kept[::-1]


def _is_reasoning(item: Any) -> bool:
    return mapping(item).get("type") == "reasoning"
