"""A reply that is not held: what it says is gathered, and checked when it is over."""

from collections.abc import Sequence
from typing import Final

from ...core.events import Began, Event, Found, Text
from ...core.surface import Kind, Surface
from ...text.extract import Found as FoundJson
from ...text.extract import extract
from ...wire import chat, messages, ollama
from ...wire.responses import places
from .form import Form
from .held import finding

# Where the APIs say what they answer.
_ANSWERS: Final = frozenset((chat.CONTENT, messages.TEXT, places.TEXT, ollama.CONTENT))
# More is not kept for checking, in characters.
MAX_KEPT: Final = 4_000_000


_ERROR: Final = 400


def _excuses(surface: Surface) -> bool:
    return surface.kind is Kind.TOOL_CALLS or surface.name.endswith(".refusal")


class Watching:
    """One reply. A choice that calls tools, or refuses, has given no answer."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._said: dict[int, list[str]] = {}
        self._excused: set[int] = set()
        self._left = MAX_KEPT

    def feed(self, event: Event) -> Sequence[Event]:
        match event:
            case Text(lane, text) if lane.surface in _ANSWERS:
                self._left -= len(text)
                if self._left >= 0:
                    self._said.setdefault(lane.choice, []).append(text)
            case Text(lane, text) if text and _excuses(lane.surface):
                self._excused.add(lane.choice)
            case Began(status) if status >= _ERROR:
                self._left = -1
        return (event,)

    def finish(self) -> Sequence[Event]:
        """What is found of it: one finding for each choice that has not the form."""
        if self._left < 0:
            return ()
        answers = {choice: "".join(parts) for choice, parts in self._said.items() if choice not in self._excused}
        words = (self._word(said) for _, said in sorted(answers.items()))
        return [Found(finding(word), "flag") for word in words if word]

    def _word(self, said: str) -> str:
        outcome = extract(said, self._form.faults)
        if not isinstance(outcome, FoundJson):
            return "invalid"
        return "" if outcome.text == said.strip() else "not_alone"
