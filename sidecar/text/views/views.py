"""Several looks at one text: what one of them finds is acted on in the text that all of them share.

What is found in a text is defined without any pieces. Each look finds its spans as Scrubber defines them, each in
the original. Of all these the leftmost comes first, then that of the earlier look; those that overlap are one span
under the first one's name. A position is decided when every look has decided it.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..scrubber import Hit, Op
from .spelling import merged
from .view import Look


class _Said:
    """What one look has said and the text has not: its next steps, `number` counting its findings.

    `late`: it says what stands for a finding behind it, not before it.
    """

    __slots__ = ("_late", "_ops", "begins", "gone", "look", "number", "size", "start", "text", "texts")

    def __init__(self, look: Look, *, late: bool) -> None:
        self.look = look
        self._late = late
        self._ops: deque[Op] = deque()
        self.begins = False  # a finding begins here
        self.number = -1
        self.texts: list[str] = []  # what stands for each finding
        self.gone = False  # the next characters are swallowed
        self.text = ""  # or kept, from `start` on
        self.start = 0
        self.size = 0  # how many of them there are

    @property
    def decided(self) -> bool:
        return self.size > 0 or self.begins

    @property
    def waits(self) -> bool:
        """There is something that the text has not said."""
        return self.decided or bool(self._ops)

    @property
    def goes_on(self) -> bool:
        """A finding that began before goes on here."""
        return self.gone and self.size > 0 and not self.begins

    def hear(self, ops: Sequence[Op]) -> None:
        self._ops += ops
        self.advance(0)

    def advance(self, count: int) -> None:
        """Past the next characters, to where there are more or nothing is decided yet."""
        self.size -= count
        self.start += count
        while not self.size and self._ops:
            self._next(self._ops.popleft())

    def _next(self, op: Op) -> None:
        if op.taken:
            if self._late and not op.kept and len(self.texts) > self.number:
                self._begin()
            self.gone, self.text, self.start, self.size = not op.kept, op.text, 0, op.taken
            return
        self.texts.append(op.text)
        if not self._late:
            self._begin()

    def _begin(self) -> None:
        self.begins = True
        self.number += 1


class _Open(NamedTuple):
    """A span: whose finding it is, which of its findings, and where."""

    said: _Said
    number: int
    start: int
    end: int

    # These are known when the span is over: the look has gone on behind its finding.

    @property
    def hit(self) -> Hit:
        return Hit(self.said.look.hits[self.number].name, self.start, self.end)

    @property
    def text(self) -> str:
        return self.said.texts[self.number]


class Views:
    """The same shape as Scrubber's, around looks at the same text; the earlier ones take precedence.

    `late`: they say what stands for a finding behind it, as Scrubber does where that depends on the finding.
    """

    __slots__ = ("_late", "_open", "_said", "found", "hits", "length", "overflowed")

    def __init__(self, looks: Sequence[Look], *, late: bool = False) -> None:
        self._late = late
        self._said = [_Said(look, late=late) for look in looks]
        self._open: _Open | None = None  # the last span, which may still grow
        self.length = 0
        self.found: str | None = None
        self.overflowed: str | None = None
        self.hits: list[Hit] = []

    @property
    def held(self) -> int:
        return max(said.look.held for said in self._said)

    def feed(self, text: str) -> list[Op]:
        each = [said.look.feed(text) for said in self._said]
        if self._open is None and _same_step(each) and not any(said.waits for said in self._said):
            self.length += each[0][0].taken
            return each[0]
        for said, ops in zip(self._said, each, strict=True):
            said.hear(ops)
        return self._agreed()

    def finish(self) -> list[Op]:
        for said in self._said:
            said.hear(said.look.finish())
        ops = self._agreed()
        self._close(ops)
        return ops

    def _agreed(self) -> list[Op]:
        """What all looks have decided."""
        ops: list[Op] = []
        looks = self._said
        while all(said.decided for said in looks):
            self._begin(ops)
            count = min(said.size for said in looks)
            if not count:
                break
            self._say(count, ops)
            for said in looks:
                said.advance(count)
        if self.found is not None:
            self.overflowed = next((said.look.overflowed for said in looks if said.look.overflowed), None)
        return merged(ops) if len(ops) > 1 else ops

    def _begin(self, ops: list[Op]) -> None:
        """A span begins here if a finding does, unless another goes on."""
        begins = [said for said in self._said if said.begins]
        if begins and not any(said.goes_on for said in self._said):
            first = begins[0]
            self._close(ops)
            self._open = _Open(first, first.number, self.length, self.length)
            self.found = self.found or first.look.found
            if not self._late:
                ops.append(Op(False, self._open.text, 0))
        for said in begins:
            said.begins = False

    def _say(self, count: int, ops: list[Op]) -> None:
        first = self._said[0]
        gone = any(said.gone for said in self._said)
        if not gone:
            self._close(ops)
        self.length += count
        if self._open is not None:
            self._open = self._open._replace(end=self.length)
        ops.append(Op(not gone, "" if gone else first.text[first.start : first.start + count], count))

    def _close(self, ops: list[Op]) -> None:
        if self._open is None:
            return
        if self._late:
            ops.append(Op(False, self._open.text, 0))
        self.hits.append(self._open.hit)
        self._open = None


def _same_step(each: Sequence[Sequence[Op]]) -> bool:
    """Every look keeps the same next piece of the text, and no more: this is nearly every piece of a stream."""
    first = each[0]
    return len(first) == 1 and first[0].kept and all(len(ops) == 1 and ops[0] == first[0] for ops in each)
