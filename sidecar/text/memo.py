"""Remembers what a rule set made of whole texts: agents send their whole conversation again with every turn.

What is remembered is the outcome of a pure function, so results are the same with and without it. It is bounded in
bytes, oldest use first out, and kept apart for each tenant, so that nobody can tell from timing what another sent.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from .scrubber import Hit

# Looking up a shorter text costs as much as looking through it.
SHORTEST: Final = 64
# An entry's own weight beside its text.
OVERHEAD: Final = 200
MAX_BYTES: Final = 16 << 20
MAX_TENANTS: Final = 64


class Outcome(NamedTuple):
    """What a text becomes (None: stays as it is), what was found, and whether something overflowed."""

    text: str | None
    hits: tuple[Hit, ...]
    overflowed: bool


CLEAN: Final = Outcome(None, (), overflowed=False)


class Memo:
    """One rule set's memory for all tenants. Keys are the texts themselves: no digest that could collide."""

    __slots__ = ("_limit", "_tenants")

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._tenants: OrderedDict[str, Pages] = OrderedDict()

    def of(self, tenant: str) -> "Pages":
        pages = self._tenants.get(tenant)
        if pages is None:
            pages = self._tenants[tenant] = Pages(self._limit)
            if len(self._tenants) > MAX_TENANTS:
                self._tenants.popitem(last=False)
        return pages


class Pages:
    """One tenant's part."""

    __slots__ = ("_known", "_limit", "size")

    def __init__(self, limit: int) -> None:
        self._known: OrderedDict[str, Outcome] = OrderedDict()
        self._limit = limit
        self.size = 0

    def get(self, text: str) -> Outcome | None:
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
        return known

    def put(self, text: str, outcome: Outcome) -> None:
        weight = _weight(text, outcome)
        if len(text) < SHORTEST or weight > self._limit // 4 or text in self._known:
            return
        self._known[text] = outcome
        self.size += weight
        while self.size > self._limit:
            self.size -= _weight(*self._known.popitem(last=False))


def _weight(text: str, outcome: Outcome) -> int:
    """Bytes, by the widest a character can be kept in."""
    return OVERHEAD + 4 * (len(text) + len(outcome.text or "")) + 100 * len(outcome.hits)
