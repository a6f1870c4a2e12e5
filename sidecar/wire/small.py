"""What the smaller OpenAI APIs share: their errors, what they report as used, and streams in which no text runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ..core.surface import Lane, Slot, Surface
from ..core.usage import Usage
from ..errors import ExchangeError
from . import asking
from . import usage as reported
from .errors import openai_shape
from .hosted import nowhere
from .stream import Spoken
from .walk import optional, others, walk

_WITHHELD = "The rest of this reply was withheld by a policy."


def alone(slots: Iterable[Slot], choice: int = 0) -> Iterator[Spoken]:
    """Texts that are whole as they stand."""
    return (Spoken(Lane(slot.surface, choice), slot, whole=True) for slot in slots)


def entries(document: dict[str, Any], field: str, odd: Surface) -> tuple[list[tuple[int, dict[str, Any]]], list[Slot]]:
    """The objects of a list with their places, and the texts of what should have been one."""
    values = document.get(field)
    if not isinstance(values, list):
        return [], [] if values is None else list(walk(document, field, odd))
    objects = [(at, value) for at, value in enumerate(values) if isinstance(value, dict)]
    return objects, [slot for at, v in enumerate(values) if not isinstance(v, dict) for slot in walk(values, at, odd)]


def settings(holder: dict[str, Any], field: str, words: AbstractSet[str], odd: Surface) -> Iterator[Slot]:
    """The texts of a field that should hold an object of numbers and these words of the API."""
    value = holder.get(field)
    if isinstance(value, dict):
        yield from others(value, frozenset(), words, odd)
    else:
        yield from optional(holder, field, odd)


_STRUCTURED = (str, dict, list)


def numbers(value: Any) -> bool:
    """Whether a value is a list without a text in it."""
    return isinstance(value, list) and set(map(type, value)).isdisjoint(_STRUCTURED)


def flat(document: dict[str, Any], nested: AbstractSet[str]) -> bool:
    """Whether no other field than these holds anything that a text could be in, if its strings are words."""
    for field, value in document.items():
        if (type(value) is dict or type(value) is list) and field not in nested:
            return False
    return True


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """No frame is nearly all of a stream where no text runs."""
    return None


def choices_in(document: dict[str, Any]) -> list[int]:
    return []


def ended(document: dict[str, Any], lanes: Iterable[Lane]) -> list[Lane]:
    return []


def noted(content: Any, notice: str) -> Any:
    """Content, a text or parts, with a notice that follows it."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": notice}] if notice else content
    return "\n\n".join(filter(None, [content if isinstance(content, str) else "", notice]))


def is_error(document: dict[str, Any]) -> bool:
    return bool(document.get("error"))


def error_text(document: dict[str, Any]) -> str:
    """What an error reply says went wrong."""
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Nothing is computed over these texts."""


def usage(document: dict[str, Any]) -> Usage | None:
    """What a reply or frame reports, under either pair of names."""
    return reported.openai(document.get("usage"))


ask_usage = asking.nothing_to_ask
hosted = nowhere


def event_of(document: dict[str, Any]) -> bytes | None:
    """Their events are named by their type."""
    kind = document.get("type")
    return kind.encode() if isinstance(kind, str) and kind.isprintable() else None


def withheld(message: str = _WITHHELD) -> dict[str, Any]:
    """The last frame of a stream whose API has no frame that says it was filtered: the official client raises it."""
    return {"error": {"message": message, "type": "content_filter", "param": None, "code": "content_filter"}}


class Writer:
    """A stream of frames that are each whole."""

    # Which frames say that the stream is over, by their type.
    LAST: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._begun = self.done = False

    @property
    def complete(self) -> bool:
        return self.done or (self._begun and not self.LAST)

    def begin(self, document: dict[str, Any]) -> None:
        self._begun = True

    def end(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        self.done = self.done or (isinstance(kind, str) and kind in self.LAST)

    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        """Never asked: nothing is held back of a text that came whole."""
        raise ValueError("no text of this API runs over frames")

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[dict[str, Any]]:
        return [withheld()]

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[dict[str, Any]]:
        """There is no text that the message could stand for: it is what the error says."""
        return [withheld(message)]


def answer(identity: dict[str, Any], text: str) -> dict[str, Any] | None:
    """No reply of these APIs is a text."""
    return None


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    return b""


error_body = openai_shape


def error_frames(error: ExchangeError) -> Sequence[dict[str, Any]]:
    return [error_body(error)]
