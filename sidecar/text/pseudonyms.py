"""Stable placeholders for values, `<EMAIL_1>`, and the way back.

A placeholder is a label, made of the detector's name, and a number. Models do not always give it back as they got
it: the way back takes it in any case, without one or both of its brackets, and with the backslashes of Markdown.
"""

import re
from collections.abc import Iterable
from typing import Final

from .matcher import Shape
from .pattern import parse
from .rules import Options, Ruleset
from .scrubber import scrub

# One session's values, and its texts in characters: beyond them values are redacted for good.
MAX_VALUES: Final = 10_000
MAX_CHARS: Final = 4 << 20
_DIGITS: Final = 6
_NOT_LABEL: Final = re.compile(r"[^A-Z0-9]+")
_DRESSING: Final = str.maketrans("", "", "<>\\")


def label(name: str) -> str:
    """The label for a detector: `us_ssn` becomes `US_SSN`."""
    return _NOT_LABEL.sub("_", name.upper()).strip("_") or "VALUE"


def canonical(written: str) -> str:
    """A placeholder as we write it, however the model wrote it."""
    return f"<{written.translate(_DRESSING).upper()}>"


def placeholders(names: Iterable[str]) -> Ruleset:
    """Finds the placeholders of these detectors, in all the ways in which they may be written."""
    labels = sorted({label(name) for name in names}, key=len, reverse=True)
    written = "|".join(name.replace("_", r"\\?_") for name in labels)
    source = rf"(?:\\?<|\b)(?i:{written})\\?_[0-9]{{1,{_DIGITS}}}(?:\\?>)?"
    return Ruleset([Shape("placeholder", parse(source))], Options())


def found_in(rules: Ruleset, text: str) -> list[str]:
    """What in the text is written like a placeholder."""
    return [text[hit.start : hit.end] for hit in scrub(rules, text)[1]]


class Pseudonyms:
    """One session's values and their placeholders, in both directions."""

    __slots__ = ("_by_placeholder", "_by_value", "_chars", "_counts")

    def __init__(self) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        self._by_placeholder: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._chars = 0

    def conceal(self, name: str, value: str, avoid: frozenset[str]) -> str | None:
        """The value's placeholder; None when the session holds as many as it may.

        A new one is none of `avoid`: what the client's own text says in that form must not become somebody's value.
        """
        known = self._by_value.get((label(name), value))
        if known is not None:
            return known
        if len(self._by_value) >= MAX_VALUES or self._chars + len(value) > MAX_CHARS:
            return None
        placeholder = self._next(label(name), avoid)
        self._by_value[label(name), value] = placeholder
        self._by_placeholder[placeholder] = value
        self._chars += len(value)
        return placeholder

    def _next(self, kind: str, avoid: frozenset[str]) -> str:
        while True:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            placeholder = f"<{kind}_{self._counts[kind]}>"
            if placeholder not in avoid:
                return placeholder

    def reveal(self, placeholder: str) -> str | None:
        return self._by_placeholder.get(placeholder)


class Disguise:
    """One exchange's use of a session's placeholders.

    Where the session is only guessed from how the conversation begins, two conversations may share it. So an
    exchange gets back what it put in itself, and more only in a `declared` session.
    """

    __slots__ = ("_avoid", "_known", "_session", "declared")

    def __init__(self, session: Pseudonyms, *, declared: bool) -> None:
        self._session, self.declared = session, declared
        self._known: set[str] = set()
        self._avoid: frozenset[str] = frozenset()

    def avoid(self, written: Iterable[str]) -> None:
        self._avoid |= frozenset(map(canonical, written))

    def conceal(self, name: str, value: str) -> str | None:
        placeholder = self._session.conceal(name, value, self._avoid)
        if placeholder is not None:
            self._known.add(placeholder)
        return placeholder

    def reveal(self, written: str) -> str:
        """The value behind a placeholder as the model wrote it; what is none of ours stays as it is."""
        placeholder = canonical(written)
        if not (self.declared or placeholder in self._known):
            return written
        value = self._session.reveal(placeholder)
        return written if value is None else value
