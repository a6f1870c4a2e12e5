"""What is remembered of runs and sessions between their exchanges, for rules about tools. In this process's memory.

Of a run: which tools it has called. Of a session: the digests of its tools' definitions. Both bounded in number and in
size; the one unused for the longest is forgotten first. With several workers each remembers what went through it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

MAX_RUNS: Final = 10_000
MAX_SESSIONS: Final = 10_000
# Of one run: the last calls, and the names of all tools that were called. Of one session: tools.
MAX_RECENT: Final = 128
MAX_NAMES: Final = 1_000
MAX_NAME: Final = 256

Whose = tuple[str, str]
"""Who it belongs to (a tenant, or the key of a caller without one), and its name there."""
Call = tuple[str, str]
"""A call's id, which may be empty, and its tool's name."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Ran:
    """One run's calls that have gone to the client.

    `turn` marks the request that the newest calls answer, `fresh` is how many they are: a request that comes once more
    is the same turn, and its earlier answer was not used.
    """

    names: set[str] = field(default_factory=set)
    overflowed: bool = False
    """More tools were called than are remembered."""
    recent: deque[Call] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    turn: int = 0
    fresh: int = 0

    def begin(self, turn: int) -> None:
        if turn == self.turn:
            for _ in range(min(self.fresh, len(self.recent))):
                self.recent.pop()
        self.turn, self.fresh = turn, 0

    def add(self, calls: Iterable[Call]) -> None:
        for id, name in calls:
            self.recent.append((id[:MAX_NAME], name[:MAX_NAME]))
            self.fresh += 1
            if name in self.names:
                continue
            if len(self.names) >= MAX_NAMES or len(name) > MAX_NAME:
                self.overflowed = True
            else:
                self.names.add(name)

    def in_order(self, history: Sequence[Call]) -> Sequence[Call]:
        """The run's calls, the newest last: the request's history, or what is remembered where that lacks the newest.

        A history that was shortened, or that the provider keeps, lacks it. Calls without ids, or with ids by their
        place in a reply, go by their number.
        """
        if not self.recent:
            return history
        last = self.recent[-1][0]
        if last and sum(id == last for id, _ in self.recent) == 1:
            shows = any(id == last for id, _ in history)
        else:
            shows = len(history) >= len(self.recent)
        return history if shows else [*self.recent]


class Runs:
    """All that is remembered, by whose it is."""

    def __init__(self, *, runs: int = MAX_RUNS, sessions: int = MAX_SESSIONS) -> None:
        self._runs: OrderedDict[Whose, Ran] = OrderedDict()
        self._pins: OrderedDict[Whose, dict[str, bytes]] = OrderedDict()
        self._most_runs, self._most_sessions = runs, sessions

    def run(self, whose: Whose) -> Ran:
        return _used(self._runs, whose, Ran, self._most_runs)

    def pins(self, whose: Whose) -> dict[str, bytes]:
        """The digest of each tool's definition by the tool's name."""
        return _used(self._pins, whose, dict[str, bytes], self._most_sessions)

    def __len__(self) -> int:
        return len(self._runs) + len(self._pins)


def _used(known: OrderedDict[K, V], key: K, make: Callable[[], V], most: int) -> V:
    found = known.get(key)
    if found is None:
        found = known[key] = make()
        if len(known) > most:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return found
