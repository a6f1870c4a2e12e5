"""Where matches may begin next, in a text all of which is there.

A matcher is searched for from where its last search ended, and one that has found nothing is not searched for again:
so all searches together read the text once.
"""

from collections.abc import Mapping, Sequence

from .engine import Program

# Beyond every text.
_NOWHERE = 1 << 62


class Ahead:
    """`openings` says for each matcher what each of its matches, and each text in which it overflows, begins with."""

    __slots__ = ("_next", "_openings", "_text")

    def __init__(self, text: bytes, openings: Mapping[int, Program]) -> None:
        self._text, self._openings = text, openings
        self._next = dict.fromkeys(openings, -1)

    def next(self, index: int, start: int) -> int:
        """Where the matcher may begin at `start` or later."""
        known = self._next[index]
        if known < start:
            span = self._openings[index].search(self._text, start) if start <= len(self._text) else None
            known = self._next[index] = _NOWHERE if span is None else span[0]
        return known

    def first(self, start: int, skip: Mapping[int, int]) -> int:
        """Where any of them may begin at `start` or later, and no earlier than `skip` says of it."""
        return min((self.next(index, max(start, skip.get(index, 0))) for index in self._openings), default=_NOWHERE)

    def before(self, cut: int, start: int, skip: Mapping[int, int]) -> Sequence[int]:
        """Which of them may begin before `cut`."""
        return [index for index in self._openings if self.next(index, max(start, skip.get(index, 0))) < cut]
