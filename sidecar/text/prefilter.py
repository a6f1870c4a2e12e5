"""Which patterns of many a text may hold, and where the beginning of one may stand at its end.

Both answers err on one side only: what is not named is not there. They are quick because they look for keys alone.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Final

from .engine import Program, ProgramSet
from .keys import LONGEST_COUNT, Key, Kind
from .matcher import floor
from .pattern import EMPTY, Alt, Cat, Node, prefixes, render, widths
from .places import SHORT_TEXT, Remembered, anywhere, whole_characters

# What begins somewhere shows in so many bytes, nearly always.
_WINDOW: Final = 4
# What may begin at a place.
_KEY, _FRONT = 1, 2
_STOPPED: Final = -1


class Prefilter:
    """For patterns by their numbers, each with its keys; `parts` is which kinds of keys go together."""

    def __init__(self, keys: Sequence[Sequence[Key]], parts: Iterable[Collection[Kind]]) -> None:
        found = [(key, number) for number, each in enumerate(keys) for key in each]
        chosen = [[pair for pair in found if pair[0].kind in kinds] for kinds in parts]
        self._parts = [_Part(pairs) for pairs in chosen if pairs]
        self._keys = [key for key, _ in found]

    def names(self, text: bytes) -> Sequence[int]:
        """The patterns whose keys are in the text, in their order."""
        found: set[int] = set()
        for part in self._parts:
            for index in part.keys.names(text):
                found |= part.owners[index]
        return sorted(found) if found else ()

    @cached_property
    def beginnings(self) -> "Beginnings":
        return Beginnings(self._keys)


class _Part:
    """Some of the keys, each with the patterns that have it."""

    def __init__(self, found: Sequence[tuple[Key, int]]) -> None:
        by_source: dict[str, set[int]] = {}
        for key, number in found:
            by_source.setdefault(_rendered(key), set()).add(number)
        self.owners = list(by_source.values())
        self.keys = ProgramSet(list(by_source))


class Beginnings:
    """Where matches may have begun whose keys are not complete, at the end of a text.

    Most pieces of a stream are a few bytes long, and nothing begins in them. What a few bytes say of the place where
    they stand is remembered, so that a piece costs some look-ups, and one search where something does begin.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._fronts = _fronts(keys)
        self._begun = _begun(self._fronts)
        self._whole = Program("|".join(dict.fromkeys(map(_rendered, keys))))
        self._half = _begun([_tree(key.body.items for key in keys)])
        self._pairs = Remembered(lambda pair: anywhere(pair, self._within))
        self._inner = Remembered(self._within)
        self._last = Remembered(self._at_end)
        self._width = max((most for front in self._fronts if (most := widths(front)[1]) is not None), default=0)

    def begun_from(self, text: bytes, start: int) -> int:
        """The first position from `start` on where a match may have begun; the text's end if there is none."""
        if start and len(text) - start <= SHORT_TEXT:
            return self._looked_for(text, start, 0)
        return self._searched_for(text, start)

    def quiet_until(self, text: bytes, start: int) -> int | None:
        """The same for a short text; None where one of the keys begins at `start` or later.

        `start` is not the text's beginning: one byte at least stands before it.
        """
        first = self._looked_for(text, start, _KEY)
        return None if first == _STOPPED else first

    def _searched_for(self, text: bytes, start: int) -> int:
        # What is held has begun where it is held, mostly.
        span = self._begun.at(text, start) or self._begun.search(text, start)
        if span is None:
            return len(text)
        width = self._width
        if span[0] >= len(text) - width:
            return span[0]
        # Counts are forgotten: what looks as if it had begun before a short one can have is a long one or nothing.
        spans = (self._short.search(text, floor(text, max(start, len(text) - width))), self._long.search(text, start))
        return min((span[0] for span in spans if span is not None), default=len(text))

    @cached_property
    def _short(self) -> Program:
        return _begun(front for front in self._fronts if widths(front)[1] is not None)

    @cached_property
    def _long(self) -> Program:
        return _begun(front for front in self._fronts if widths(front)[1] is None)

    def _looked_for(self, text: bytes, start: int, stop: int) -> int:
        """Place by place. With `stop`, _STOPPED where a key begins."""
        end = first = len(text)
        inner = max(start, end - _WINDOW + 1)
        pairs, known = self._pairs, self._inner
        for at in range(start, inner):
            if pairs[text[at : at + 2]] and (says := known[text[at - 1 : at + _WINDOW]]):
                if says & stop and self._whole.at(text, at) is not None:
                    return _STOPPED
                if says & _FRONT and first == end and self._begun.at(text, at) is not None:
                    first = at
        last = self._last
        for at in range(inner, end):
            if says := last[text[at - 1 :]]:
                if says & stop:
                    return _STOPPED
                if says & _FRONT:
                    first = min(first, at)
        return first if end - first <= self._width else self._searched_for(text, first)

    def _within(self, text: bytes, at: int = 1) -> int:
        """What may begin at `at`, whatever follows."""
        if text[at] & 0xC0 == 0x80:
            return 0
        text = text[:at] + whole_characters(text[at:])
        key = self._half.at(text, at) is not None or self._whole.at(text, at) is not None
        return _KEY * key | _FRONT * (self._begun.at(text, at) is not None)

    def _at_end(self, text: bytes) -> int:
        """What begins at the second byte, where nothing follows."""
        if text[1] & 0xC0 == 0x80:
            return 0
        return _KEY * (self._whole.at(text, 1) is not None) | _FRONT * (self._begun.at(text, 1) is not None)


def _rendered(key: Key) -> str:
    return render(key.body, wide=LONGEST_COUNT)


def _begun(fronts: Iterable[Node]) -> Program:
    """What ends with a beginning of one of these."""
    return Program(rf"(?:{'|'.join(prefixes(front, loose=True) for front in fronts)})\z")


def _fronts(found: Iterable[Key]) -> list[Node]:
    """What matches begin with up to their keys' ends; what keys have in common at their beginnings is said once."""
    by_before: dict[Cat, dict[tuple[Node, ...], None]] = {}
    for key in found:
        by_before.setdefault(key.before, {})[key.body.items] = None
    return [Cat((*before.items, _tree(bodies))) for before, bodies in by_before.items()]


def _tree(bodies: Iterable[tuple[Node, ...]]) -> Node:
    """One node for several sequences; where one begins another, the longer one."""
    by_first: dict[Node, list[tuple[Node, ...]]] = {}
    for first, *rest in filter(None, bodies):
        by_first.setdefault(first, []).append(tuple(rest))
    if not by_first:
        return EMPTY
    return Alt(tuple(Cat((first, _tree(rests))) if any(rests) else first for first, rests in by_first.items()))
