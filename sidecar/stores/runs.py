"""What is remembered of runs and sessions between their exchanges, for rules about tools. In this process's memory.

Of a run: which tools it has called. Of a session: the digests of its tools' definitions. Both bounded in number and in
size; the one unused for the longest is forgotten first. With several workers each remembers what went through it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

MAX_RUNS: Final = 10_000
MAX_SESSIONS: Final = 10_000
# Of one run: the last calls, and the names of all tools that were called. Of one session: tools.
MAX_RECENT: Final = 128
MAX_NAMES: Final = 1_000
MAX_NAME: Final = 256
# Of all runs together, and of all sessions. Agents with tools by the dozen stay far below.
MAX_BYTES: Final = 64 << 20
# What an entry takes beside its characters.
_OVERHEAD: Final = 100

Whose = tuple[str, str]
"""Who it belongs to (a tenant, or the key of a caller without one), and its name there."""
Call = tuple[str, str]
"""A call's id, which may be empty, and its tool's name."""


class Load:
    """How much is remembered together, in bytes, about."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0


class Weighed:
    """What is remembered of one: it tells the load it is part of how it grows, until it is forgotten."""

    __slots__ = ("_load", "size")

    def __init__(self, load: Load | None = None) -> None:
        self._load, self.size = load or Load(), 0

    def grow(self, by: int) -> None:
        self.size += by
        self._load.size += by

    def forgotten(self) -> None:
        """An exchange that is under way may still add to it."""
        self._load.size -= self.size
        self._load = Load()


class Ran(Weighed):
    """One run's calls that have gone to the client. `overflowed`: more tools were called than are remembered.

    A request that comes once more is the same turn, and its earlier answer was not used.
    """

    __slots__ = ("_fresh", "_turn", "names", "overflowed", "recent")

    def __init__(self, load: Load | None = None) -> None:
        super().__init__(load)
        self.names: set[str] = set()
        self.overflowed = False
        self.recent: deque[Call] = deque()
        self._turn = 0  # marks the request that the newest calls answer
        self._fresh = 0  # how many they are

    def begin(self, turn: int) -> None:
        if turn == self._turn:
            for _ in range(min(self._fresh, len(self.recent))):
                self.grow(-_weight(*self.recent.pop()))
        self._turn, self._fresh = turn, 0

    def add(self, calls: Iterable[Call]) -> None:
        for id, name in calls:
            self._note(id[:MAX_NAME], name[:MAX_NAME])
            if name in self.names:
                continue
            if len(self.names) >= MAX_NAMES or len(name) > MAX_NAME:
                self.overflowed = True
            else:
                self.names.add(name)
                self.grow(_weight(name))

    def _note(self, id: str, name: str) -> None:
        self.recent.append((id, name))
        self.grow(_weight(id, name))
        self._fresh += 1
        if len(self.recent) > MAX_RECENT:
            self.grow(-_weight(*self.recent.popleft()))

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


def _weight(*texts: str) -> int:
    return sum(map(len, texts)) + _OVERHEAD * len(texts)


class Pins(Weighed):
    """The digest of each tool's definition in a session, by the tool's name."""

    __slots__ = ("_known",)

    def __init__(self, load: Load | None = None) -> None:
        super().__init__(load)
        self._known: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> bytes | None:
        return self._known.get(name)

    def pin(self, name: str, digest: bytes) -> None:
        if name not in self._known:
            self.grow(_weight(name) + _OVERHEAD)
        self._known[name] = digest


W = TypeVar("W", bound=Weighed)


class _Memory(Generic[W]):
    """The ones used last, bounded in number and in what they hold together."""

    def __init__(self, make: Callable[[Load], W], most: int, most_bytes: int) -> None:
        self._make, self._most, self._most_bytes = make, most, most_bytes
        self._load = Load()
        self._known: OrderedDict[Whose, W] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, whose: Whose) -> W:
        found = self._known.get(whose)
        if found is None:
            found = self._known[whose] = self._make(self._load)
            found.grow(_weight(*whose))
        else:
            self._known.move_to_end(whose)
        while len(self._known) > 1 and (len(self._known) > self._most or self._load.size > self._most_bytes):
            self._known.popitem(last=False)[1].forgotten()
        return found


class Runs:
    """All that is remembered, by whose it is."""

    def __init__(self, *, runs: int = MAX_RUNS, sessions: int = MAX_SESSIONS, most_bytes: int = MAX_BYTES) -> None:
        self._runs = _Memory(Ran, runs, most_bytes)
        self._pins = _Memory(Pins, sessions, most_bytes)

    def run(self, whose: Whose) -> Ran:
        return self._runs.of(whose)

    def pins(self, whose: Whose) -> Pins:
        return self._pins.of(whose)

    def __len__(self) -> int:
        return len(self._runs) + len(self._pins)
