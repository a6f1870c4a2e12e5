"""What chat completions and the older completions share: numbered choices, each with an end of its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.surface import Lane

Document = dict[str, Any]


def index_of(choice: Document, position: int) -> int:
    """A choice's number; its place in the list where it names none."""
    index = choice.get("index")
    return index if isinstance(index, int) else position


def numbered(document: Document) -> list[tuple[int, Document]]:
    """The choices of a reply or frame that are objects, each with its number."""
    choices = document.get("choices")
    found = enumerate(choices) if isinstance(choices, list) else ()
    return [(index_of(choice, position), choice) for position, choice in found if isinstance(choice, dict)]


def choices_in(document: Document) -> list[int]:
    return [index for index, _ in numbered(document)]


def over(document: Document) -> list[int]:
    """The choices whose last frame this is."""
    return [index for index, choice in numbered(document) if choice.get("finish_reason")]


def ended(document: Document, lanes: Iterable[Lane]) -> list[Lane]:
    """The lanes of the choices whose last frame this is."""
    ends = over(document)
    return [lane for lane in lanes if lane.choice in ends] if ends else []


def is_error(document: Document) -> bool:
    return bool(document.get("error")) and not document.get("choices")


class Writer:
    """Which choices have begun and which are open, and a frame to write others like it."""

    # Only `[DONE]` says that such a stream is over.
    done = False

    def __init__(self) -> None:
        self._template: Document = {}
        self._open: set[int] = set()
        self._seen: set[int] = set()

    @property
    def complete(self) -> bool:
        return bool(self._seen) and not self._open

    def begin(self, document: Document) -> None:
        self._template = document
        choices = choices_in(document)
        self._seen.update(choices)
        self._open.update(choices)

    def end(self, document: Document) -> None:
        self._open.difference_update(over(document))

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[Document]:
        return self._closing("content_filter")

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[Document]:
        rest = [self._frame(min(self._seen, default=0), message)] if message else []
        return [*rest, *self._closing("length" if cut else "stop")]

    def _closing(self, reason: str) -> list[Document]:
        choices = sorted(self._open) or ([] if self._seen else [0])
        return [self._frame(choice, "", reason) for choice in choices]

    def _frame(self, choice: int, text: str, reason: str | None = None) -> Document:
        """A frame with more of the choice's text, or the reason for its end."""
        raise NotImplementedError
