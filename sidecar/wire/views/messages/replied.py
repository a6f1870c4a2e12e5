"""A whole reply: what it says, which tools it calls, how it ended, and how to say it otherwise."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...conversation import Called, Ending, HostedCall
from ...stream import Document
from ..shape import mapping, objects, paragraphs, sequence, text_of
from . import tools

# A model that was paused, or that has summed up what was said before, goes on when it is asked again.
_ENDINGS: Final[Mapping[str, Ending]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


class Replied:
    """There is one choice, 0. A reply that ends well ends with calls if it has some, whatever its server says."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def texts(self) -> Mapping[int, str]:
        content = self._document.get("content")
        return (
            {0: "".join(text_of(block.get("text")) for block in _texts(content))} if isinstance(content, list) else {}
        )

    @property
    def calls(self) -> Sequence[Called]:
        return [call for _, call in self.blocks()]

    @property
    def hosted(self) -> Sequence[HostedCall]:
        return tools.hosted_in(self._document.get("content"))

    def blocks(self) -> Iterator[tuple[Document, Called]]:
        """The calls, each with its block. A call without an id has one by its place."""
        for block, call in tools.calls_in(self._document.get("content")):
            yield block, call if call.id else call._replace(id=f"toolu_{call.position}")

    def ending(self, choice: int) -> Ending:
        ending = _ENDINGS.get(text_of(self._document.get("stop_reason")), "other") if choice == 0 else "other"
        return "calls" if ending == "stop" and self.calls else ending

    def refused(self, choice: int) -> bool:
        return choice == 0 and self._document.get("stop_reason") == "refusal"

    # --- edits ---

    def say(self, choice: int, text: str) -> None:
        """The first text block says it. An empty text is no block: the API would refuse it when it comes back."""
        content = self._document.get("content")
        if choice != 0 or not isinstance(content, list):
            return
        first, *others = _texts(content) or [_new_block(content)]
        first["text"] = text
        if first.get("citations"):
            first["citations"] = None
        _take_out(content, others if text else [first, *others])

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        gone = {call.position for call in calls if call.choice == 0}
        dropped = [block for block, call in self.blocks() if call.position in gone]
        if not dropped:
            return
        content = sequence(self._document.get("content"))
        _take_out(content, dropped)
        if notice:
            *_, last = _texts(content) or [_new_block(content)]
            last["text"] = paragraphs(text_of(last.get("text")), notice)
        if not self.calls and self._document.get("stop_reason") == "tool_use":
            self._document["stop_reason"] = "end_turn"


def _texts(content: Any) -> list[Document]:
    return [block for block in objects(content) if block.get("type") == "text"]


def _new_block(content: list[Any]) -> Document:
    """A text before the first call, after what was thought."""
    block: Document = {"type": "text", "text": ""}
    calls = (at for at, each in enumerate(content) if mapping(each).get("type") == "tool_use")
    content.insert(next(calls, len(content)), block)
    return block


def _take_out(content: list[Any], gone: Iterable[Document]) -> None:
    names = {id(block) for block in gone}
    content[:] = [block for block in content if id(block) not in names]
