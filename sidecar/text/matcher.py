"""One shape that a rule looks for, and all the questions a stream asks about it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from ..errors import PatternError
from .engine import MAX_BUILT_IN_BYTES, Program, Span
from .pattern import Node, has_value, only_grows, parse, prefixes, render, widths
from .places import SHORT_TEXT, Places

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """A name and what it looks like. `check` sees the matched value and may turn it down.

    One that `is_ours` is known to be small enough, and compiled when it is first asked.
    """

    name: str
    node: Node
    check: Check | None = None
    is_ours: bool = False

    @classmethod
    def of(cls, name: str, regex: str, check: Check | None = None, *, is_ours: bool = False) -> "Shape":
        """Raises PatternError with the offset of the fault."""
        return cls(name, parse(regex), check, is_ours)

    def lenient(self) -> "Shape":
        """The same, but a check that fails turns the value down."""
        return self if self.check is None else replace(self, check=partial(_passing, self.check))

    def matcher(self, max_bytes: int = MAX_BUILT_IN_BYTES) -> "Matcher":
        """Raises PatternError when the shape compiles to more than `max_bytes`."""
        return Matcher(self, max_bytes)


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

    `size` is what it compiles to in bytes, `width` the longest match in bytes, None without bound. `certain` says
    that a match, once there, can only grow. `context` is how many bytes to the left of a match count for it;
    `gave_up` says that it found nothing more in a text for want of time. Raises PatternError when the shape compiles
    to more than `max_bytes`.
    """

    context = 1  # an assertion looks at one byte to its left

    def __init__(self, shape: Shape, max_bytes: int = MAX_BUILT_IN_BYTES) -> None:
        self.name, self.node, self._check = shape.name, shape.node, shape.check
        self.width = widths(shape.node)[1]
        if not shape.is_ours and self.size > max_bytes:
            raise PatternError(
                f"compiles to {self.size} bytes, more than the {max_bytes} allowed",
                hint="Lower its counts, or split it",
            )

    @property
    def size(self) -> int:
        return self._exact.size

    # Compiled when first asked for: most rules of a policy never meet anything like them.

    @cached_property
    def _exact(self) -> Program:
        return Program(render(self.node, values=True))

    @cached_property
    def certain(self) -> bool:
        return only_grows(self.node) and self._check is None and not has_value(self.node)

    @cached_property
    def _unfinished(self) -> Program:
        """A beginning of a match that ends where the text ends."""
        return Program(rf"(?:{prefixes(self.node)})\z")

    @cached_property
    def _places(self) -> Places:
        return Places(self._unfinished)

    @cached_property
    def _beginning(self) -> Program:
        """The longest beginning of a match."""
        return Program(prefixes(self.node), longest=True)

    @property
    def gave_up(self) -> bool:
        return False

    def opened(self) -> "Matcher":
        """For one text."""
        return self

    def find(self, text: bytes, start: int, upto: int) -> Found | None:
        """The first match that begins at `start` or later, but before `upto`, and passes the check."""
        while (spans := self._exact.find(text, start)) is not None and spans[0][0] < upto:
            if (found := self._checked(text, *spans)) is not None:
                return found
            start = after(text, spans[0][0])
        return None

    def match_at(self, text: bytes, start: int) -> Found | None:
        """The match that begins at `start`, if it passes the check."""
        spans = self._exact.find_at(text, start)
        return None if spans is None else self._checked(text, *spans)

    def has_value_at(self, text: bytes, start: int) -> bool:
        """A match begins at `start` with its value."""
        found = self.match_at(text, start)
        return found is not None and found.value_start == start

    def _checked(self, text: bytes, span: Span, value: Span) -> Found | None:
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
        if low and len(text) - low <= SHORT_TEXT:
            return self._places.first(text, low)
        span = self._unfinished.at(text, low) or self._unfinished.search(text, low)
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
