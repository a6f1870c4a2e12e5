"""One shape that a rule looks for, and all the questions a stream asks about it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from ..errors import PatternError
from .engine import MAX_BUILT_IN_BYTES, Program, Span
from .pattern import Node, has_value, only_grows, parse, prefixes, render, widths

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """A name and what it looks like. `check` sees the matched value and may turn it down."""

    name: str
    node: Node
    check: Check | None = None

    @classmethod
    def of(cls, name: str, regex: str, check: Check | None = None) -> "Shape":
        """Raises PatternError with the offset of the fault."""
        return cls(name, parse(regex), check)

    def lenient(self) -> "Shape":
        """The same, but a check that fails turns the value down."""
        return self if self.check is None else Shape(self.name, self.node, partial(_passing, self.check))


def _passing(check: Check, value: str) -> bool:
    try:
        return check(value)
    except Exception:
        return False


class Found(NamedTuple):
    """A match and its value, in byte offsets."""

    start: int
    end: int
    value_start: int
    value_end: int

    def moved(self, by: int) -> "Found":
        return Found(self.start + by, self.end + by, self.value_start + by, self.value_end + by)


class Matcher:
    """One compiled shape.

    `width` is the longest match in bytes, None without bound. `certain` says that a match, once there, can only
    grow. Raises PatternError when the shape compiles to more than `max_bytes`.
    """

    def __init__(self, shape: Shape, max_bytes: int = MAX_BUILT_IN_BYTES) -> None:
        self.name, self.node, self._check = shape.name, shape.node, shape.check
        self._exact = Program(render(shape.node, values=True))
        if self._exact.size > max_bytes:
            raise PatternError(
                f"compiles to {self._exact.size} bytes, more than the {max_bytes} allowed",
                hint="Lower its counts, or split it",
            )
        self._has_value = has_value(shape.node)
        self.width = widths(shape.node)[1]
        self.certain = only_grows(shape.node) and shape.check is None and not self._has_value

    # Compiled when first asked for: most rules of a policy never meet anything like them.

    @cached_property
    def _unfinished(self) -> Program:
        """A beginning of a match that ends where the text ends."""
        return Program(rf"(?:{prefixes(self.node)})\z")

    @cached_property
    def _beginning(self) -> Program:
        """The longest beginning of a match."""
        return Program(prefixes(self.node), longest=True)

    def find(self, text: bytes, start: int, upto: int) -> Found | None:
        """The first match that begins at `start` or later, but before `upto`, and passes the check."""
        while (span := self._exact.search(text, start)) is not None and span[0] < upto:
            if (found := self._checked(text, span)) is not None:
                return found
            start = after(text, span[0])
        return None

    def match_at(self, text: bytes, start: int) -> Found | None:
        """The match that begins at `start`, if it passes the check."""
        span = self._exact.at(text, start)
        return None if span is None else self._checked(text, span)

    def _checked(self, text: bytes, span: Span) -> Found | None:
        value = self._exact.value(text, span[0]) if self._has_value else span
        if self._check is None or self._check(text[value[0] : value[1]].decode("utf-8", "replace")):
            return Found(*span, *value)
        return None

    def could_grow(self, text: bytes, start: int) -> bool:
        """True when the text from `start` to its end is the beginning of a match."""
        return self._unfinished.at(text, start) is not None

    def growing_from(self, text: bytes, start: int) -> int:
        """The first position from `start` on where a match could still be growing; the text's end if none is."""
        start = min(start, len(text))
        low = start if self.width is None else floor(text, max(start, len(text) - self.width))
        span = self._unfinished.search(text, low)
        return len(text) if span is None else span[0]

    def reach(self, text: bytes, start: int) -> int:
        """How far from `start` the text stays the beginning of a match."""
        span = self._beginning.at(text, start)
        return start if span is None else span[1]


def after(text: bytes, at: int) -> int:
    """The offset of the character that follows the one at `at`."""
    at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at


def floor(text: bytes, at: int) -> int:
    """The offset of the character that `at` falls into."""
    while 0 < at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    return at
