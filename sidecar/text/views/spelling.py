"""How a text that was read differently was spelt: turns what an inner scrubber says back into the original.

A view of a text is a series of units: some text, and how the original spells it. The text goes to a scrubber; its
steps come back through Spelling, which says what is kept as it was spelt and swallows the spelling of what was found.

A cell, the smallest piece that can be respelt, goes as a whole: it is kept if all of it is kept. What spells nothing,
such as an invisible character, goes the way of the character before it.
"""

from collections import deque
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ..scrubber import Op, is_high, is_low


class Unit(NamedTuple):
    """A piece of a view.

    `spelt` is its original, None where that is the text itself. Each `grain` characters of the text are spelt by an
    equal share of the original: 1 and as many as there are characters, or all of them for one that is spelt as a
    whole. An empty text spells nothing.
    """

    text: str
    spelt: str | None = None
    grain: int = 1


class Span(NamedTuple):
    """A finding's place in the original; `number` counts the inner scrubber's findings."""

    number: int
    start: int
    end: int


class Spelling:
    """The spelling of what an inner scrubber has been given and has not decided yet.

    `at` counts characters of the original that have been said or swallowed; `spans` grows as findings are complete.
    `late`: the inner scrubber says what stands for a finding behind it, not before it.
    """

    __slots__ = (
        "_done",
        "_found",
        "_high",
        "_inside",
        "_joined",
        "_kept",
        "_late",
        "_open",
        "_run",
        "_text",
        "_torn",
        "_units",
        "at",
        "spans",
    )

    def __init__(self, at: int = 0, *, late: bool = False) -> None:
        self._late = late
        self._units: deque[tuple[int, str | None, int, int]] = deque()  # width, spelling, cell in text and spelling
        self._run = 0  # characters after the units that are spelt as they are
        self._done = 0  # characters of the first unit that are decided
        self._torn = False  # something of its cell under way is swallowed
        self._kept = True  # what became of the last character
        self._high = ""  # the last character, where it is half of a surrogate pair
        self._open: Span | None = None  # the last span, which may still grow
        self._found = 0  # the inner scrubber's findings
        self._inside = False  # the last of them is under way; only where they are late
        self._joined = False  # it is part of the one before
        self._text = ""  # what stands for the last span, where that is late
        self.at = at
        self.spans: list[Span] = []

    def passes(self, count: int, said: list[Op]) -> bool:
        """The next characters are spelt as they are, and are not halves of surrogate pairs.

        True when what the inner scrubber said then may be passed on: kept text, where all that was undecided is spelt
        as it is.
        """
        self._run += count
        self._high = ""
        if self._units or self._open is not None or len(said) > 1:
            return False
        if said:
            kept, _, taken = said[0]
            if not kept:
                return False
            self._run -= taken
            self.at += taken
            self._kept = True
        return True

    def add(self, unit: Unit) -> None:
        text, spelt, grain = unit
        if not text:
            self._append(0, spelt or "", 1, 0)
            return
        if self._high and is_low(text[0]):
            unit = self._pair(unit)
            text, spelt, grain = unit
        if not text:
            return
        self._high = text[-1] if is_high(text[-1]) else ""
        if spelt is None:
            self._run += len(text)
        else:
            self._append(len(text), spelt, grain, len(spelt) * grain // len(text))

    def _append(self, width: int, spelt: str | None, cell: int, size: int) -> None:
        if self._run:
            self._units.append((self._run, None, 1, 1))
            self._run = 0
        self._units.append((width, spelt, cell, size))

    def _pair(self, unit: Unit) -> Unit:
        """Joins the first character to the last one given: two halves are one character. Returns the rest."""
        text, spelt, grain = unit
        original = text if spelt is None else spelt
        size = len(original) * grain // len(text)
        self._append(1, self._last() + original[:size], 1, 0)
        width, whole, cell, _ = self._units.pop()
        self._units.append((width, whole, cell, len(whole or "")))
        self._high = ""
        return Unit(text[1:], None if spelt is None else spelt[size:], grain)

    def _last(self) -> str:
        """Takes back the last character given, and what spells nothing after it: their spelling."""
        loose = ""
        while self._units and not self._run and not self._units[-1][0]:
            loose = (self._units.pop()[1] or "") + loose
        if self._run:
            self._run -= 1
            return self._high + loose
        width, spelt, cell, size = self._units.pop()
        original = self._high if spelt is None else spelt[(width - 1) * size :]
        if width - 1 > (0 if self._units else self._done):
            self._units.append((width - 1, None if spelt is None else spelt[: (width - 1) * size], cell, size))
        elif not self._units:
            self._done = 0
        return original + loose

    # A unit that ends in half of a pair is charwise: it spells that half alone, or each of its characters alone.

    def respell(self, said: Iterable[Op], *, final: bool = False) -> list[Op]:
        """The inner scrubber's steps as steps through the original."""
        ops: list[Op] = []
        self._loose(ops)
        for op in said:
            if not op.taken:
                self._replacement(op, ops)
            else:
                if self._late and not op.kept and not self._inside:
                    self._begin(ops)
                self._inside = not op.kept
                self._take(op, ops)
        if final:
            self._close(ops)
        return merged(ops) if len(ops) > 1 else ops

    def _replacement(self, op: Op, ops: list[Op]) -> None:
        if not self._late:
            self._begin(ops)
        self._inside = False
        if self._joined:
            return
        if self._late:
            self._text = op.text
        else:
            ops.append(op)

    def _begin(self, ops: list[Op]) -> None:
        """A finding. One that begins in a cell that another has torn is part of that one."""
        self._joined = self._torn
        if not self._joined:
            self._close(ops)
            self._open = Span(self._found, self.at, self.at)
        self._found += 1

    def _take(self, op: Op, ops: list[Op]) -> None:
        start, end = 0, op.taken
        while start < end:
            if not self._units:
                self._say(op.kept, op.text[start:end], end - start, ops)
                self._run -= end - start
                return
            start += self._take_unit(op, start, ops)

    def _take_unit(self, op: Op, start: int, ops: list[Op]) -> int:
        """Takes as much of the first unit as is of one kind: the rest of a cell, or whole cells. Returns how much."""
        width, spelt, cell, size = self._units[0]
        left = op.taken - start
        inside = self._done % cell
        if inside or left < cell:
            count = min(left, cell - inside)
            self._torn = self._torn or not op.kept
            if inside + count == cell:
                self._say_cells(op.kept and not self._torn, spelt or "", self._done // cell * size, size, ops)
                self._torn = False
        else:
            count = min(left, width - self._done) // cell * cell
            if spelt is None:
                self._say(op.kept, op.text[start : start + count], count, ops)
            else:
                self._say_cells(op.kept, spelt, self._done // cell * size, count // cell * size, ops)
        self._done += count
        if self._done == width:
            self._drop(ops)
        return count

    def _drop(self, ops: list[Op]) -> None:
        self._units.popleft()
        self._done = 0
        self._loose(ops)

    def _loose(self, ops: list[Op]) -> None:
        """What spells nothing and is next."""
        while self._units and not self._units[0][0]:
            spelt = self._units.popleft()[1] or ""
            self._say(self._kept, spelt, len(spelt), ops)

    def _say_cells(self, kept: bool, spelt: str, start: int, size: int, ops: list[Op]) -> None:
        self._say(kept, spelt[start : start + size], size, ops)

    def _say(self, kept: bool, text: str, size: int, ops: list[Op]) -> None:
        self._kept = kept
        if kept:
            self._close(ops)
        self.at += size
        if self._open is not None:
            self._open = self._open._replace(end=self.at)
        ops.append(Op(kept, text if kept else "", size))

    def _close(self, ops: list[Op]) -> None:
        if self._open is None:
            return
        if self._late:
            ops.append(Op(False, self._text, 0))
        self.spans.append(self._open)
        self._open = None


def merged(ops: list[Op]) -> list[Op]:
    """Neighbours of one kind in one step."""
    merged: list[Op] = []
    for (_, found), group in groupby(ops, key=lambda op: (op.kept, not op.taken)):
        same = list(group)
        if found or len(same) == 1:
            merged += same
        else:
            merged.append(Op(same[0].kept, "".join(op.text for op in same), sum(op.taken for op in same)))
    return merged
