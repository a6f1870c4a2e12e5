"""RE2, as this product uses it: UTF-8 bytes in, byte offsets out, memory bounded, errors as PatternError.

The library's `search` makes a generator and a match object for each call; the scanner asks several times per
piece of a stream, so it talks to the compiled object beneath, here and nowhere else.
"""

from collections.abc import Sequence
from typing import Final

import re2

from ..errors import PatternError

# What an automaton may take while it runs. RE2 falls back to a slower search when it is full, never to a wrong one.
PROGRAM_MEMORY: Final = 64 << 20
# RE2 keeps an instruction in 16 bytes.
INSTRUCTION_BYTES: Final = 16
# What a pattern of a policy's own may compile to, and what one of ours may.
MAX_PATTERN_BYTES: Final = 64 << 10
MAX_BUILT_IN_BYTES: Final = 256 << 10
# What all of a policy's own may compile to together, and how many there may be, words included.
MAX_PATTERNS_BYTES: Final = 4 << 20
MAX_PATTERNS: Final = 10_000

Span = tuple[int, int]
_NONE: Final = (-1, -1)
_ANYWHERE = re2._Anchor.UNANCHORED
_AT_START = re2._Anchor.ANCHOR_START


class Program:
    """One compiled pattern. Offsets are bytes."""

    __slots__ = ("_match", "_value", "size", "source")

    def __init__(self, source: str, *, longest: bool = False) -> None:
        options = _options()
        options.longest_match = longest
        try:
            compiled = re2.compile(source, options)
        except re2.error as exc:
            raise PatternError(_said(exc)) from None
        self.source = source
        self._match = compiled._regexp.Match
        self._value: int | None = dict(compiled.groupindex).get("value")
        self.size: int = compiled.programsize * INSTRUCTION_BYTES

    def __repr__(self) -> str:
        return f"Program({self.source!r})"

    def search(self, text: bytes, start: int) -> Span | None:
        """The leftmost match that begins at `start` or later."""
        span: Span = self._match(_ANYWHERE, text, start, len(text))[0]
        return None if span == _NONE else span

    def at(self, text: bytes, start: int) -> Span | None:
        """The match that begins at `start`."""
        span: Span = self._match(_AT_START, text, start, len(text))[0]
        return None if span == _NONE else span

    def find(self, text: bytes, start: int) -> tuple[Span, Span] | None:
        """`search`, and the value group of what it finds, or all of that."""
        return self._with_value(self._match(_ANYWHERE, text, start, len(text)))

    def find_at(self, text: bytes, start: int) -> tuple[Span, Span] | None:
        """`at`, and the value group of what it finds, or all of that."""
        return self._with_value(self._match(_AT_START, text, start, len(text)))

    def _with_value(self, spans: Sequence[Span]) -> tuple[Span, Span] | None:
        if spans[0] == _NONE:
            return None
        value = spans[self._value] if self._value is not None else _NONE
        return spans[0], value if value != _NONE else spans[0]


class ProgramSet:
    """Which of many patterns match a text, in one pass.

    A set that runs out of memory says that nothing matches. So each has one pattern more that always does: where
    it is missing from the answer, every pattern is named. It matches at the beginning only, because a set that finds
    something at every byte takes twice the time. Raises PatternError when the patterns together are too large.
    """

    __slots__ = ("_canary", "_everything", "_names", "_nothing")

    def __init__(self, sources: Sequence[str], *, whole: bool = False) -> None:
        options = _options()
        built = re2.Set.FullMatchSet(options) if whole else re2.Set.SearchSet(options)
        try:
            for source in sources:
                built.Add(source)
            self._canary: int = built.Add("(?s:.)*" if whole else r"\A")
            built.Compile()
        except re2.error as exc:
            raise PatternError(_said(exc)) from None
        self._names = built._set.Match
        self._everything = range(len(sources))
        self._nothing = [self._canary]

    def names(self, text: bytes) -> Sequence[int]:
        """The indexes of the patterns that match, in their order. Assertions see `text` alone."""
        found = self._names(text)
        if found == self._nothing:
            return ()
        if not found or self._canary not in found:
            return self._everything
        return sorted(index for index in found if index != self._canary)


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_MEMORY
    return options


def _said(exc: Exception) -> str:
    reason = exc.args[0] if exc.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
