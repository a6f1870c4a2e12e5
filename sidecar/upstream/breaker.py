"""What the process remembers of its targets: which are down, whose limits are used up, how much is asked again.

One `Health` is shared by all exchanges. Nothing in it waits; every call is told the time, in seconds of a clock that
never goes back. Two circuits stand before a target: one for the target as such, for which everybody's failures count
(network, time limits, server errors), and one for the key that is used there (rate limits, quota), so that one
caller's used-up key keeps nobody else away.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeVar

from .classify import Failure

T = TypeVar("T")


class State(StrEnum):
    """Closed: asked as usual. Open: not asked. Half-open: one attempt at a time finds out."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Place(NamedTuple):
    """A target and the key that is used there: an index or a hash, never the key itself."""

    target: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a circuit opens and closes; times in seconds.

    `failures` in a row open it for `open_for`; then `successes` in a row close it. More than `allowed_fails` failures
    within `WINDOW` open it for `cooldown` where they were at least half of all attempts: a target that fails now and
    then but seldom in a row.
    """

    failures: int = 3
    open_for: float = 30.0
    successes: int = 2
    allowed_fails: int = 3
    cooldown: float = 30.0


WINDOW: Final = 60.0
# A limit that reopens later than this is tried again all the same: it may have been raised.
MAX_COOLDOWN: Final = 3600.0
# Callers choose their keys, and often the model's name. Beyond this many circuits those are forgotten that have nothing
# to tell, and then the older half.
MAX_CIRCUITS: Final = 10_000

# Failures that are the key's and say nothing of the target.
OF_KEY: Final = frozenset((Failure.RATE_LIMITED, Failure.QUOTA))
# Failures that are the request's: the target is well.
OF_REQUEST: Final = frozenset(
    (
        Failure.LOCKED,
        Failure.CONTEXT_WINDOW,
        Failure.CONTENT_FILTER,
        Failure.MODEL_NOT_FOUND,
        Failure.AUTH,
        Failure.BAD_REQUEST,
        Failure.BLANK,
    )
)


class Shown(NamedTuple):
    """One circuit, for people and metrics. `seconds`: how long it stays open."""

    target: str
    key: str
    state: State
    failures: int
    seconds: float
    reason: str


class Told(NamedTuple):
    """What one process tells the others: a circuit opened for so many seconds, or closed (0)."""

    place: Place
    seconds: float
    reason: str


class Breakers(Protocol):
    """What attempts ask and tell. `Health` is the one of a process; another may share it between processes."""

    def state(self, place: Place, now: float) -> State:
        """Of the target and the key together: the worse of the two."""

    def admit(self, place: Place, now: float) -> bool:
        """Whether an attempt may begin now. Takes the place of the one that finds out, where the state is half-open."""

    def enter(self, place: Place, now: float) -> None:
        """An attempt begins although it was not admitted, because every other place is worse."""

    def succeeded(self, place: Place, now: float) -> None: ...
    def failed(self, place: Place, now: float, failure: Failure, wait: float | None = None) -> None:
        """`wait`: the seconds after which the provider wants to be asked again."""

    def abandoned(self, place: Place, now: float) -> None:
        """The attempt ended without a verdict: the client left."""

    def reopens(self, place: Place, now: float) -> float:
        """Seconds until the place is asked again; 0 where it is now."""

    def limited(self, place: Place, now: float) -> float:
        """Seconds until the key's rate limit reopens, as the provider said; 0 where there is none."""

    def may_repeat(self, target: str, now: float) -> bool:
        """Whether the retry budget has room for one more."""

    def count(self, target: str, now: float, repeated: bool) -> None:
        """An attempt goes out."""


@dataclass(slots=True)
class Window:
    """Two counts over the last `span` seconds, in steps of a tenth of it."""

    span: float
    _steps: deque[tuple[int, list[int]]] = field(default_factory=deque)

    def add(self, now: float, marked: bool) -> None:
        step = int(now / self.span * 10)
        if not self._steps or self._steps[-1][0] != step:
            self._steps.append((step, [0, 0]))
        counts = self._steps[-1][1]
        counts[0] += 1
        counts[1] += marked
        self._forget(step)

    def counts(self, now: float) -> tuple[int, int]:
        """How many there were, and how many of them were marked."""
        self._forget(int(now / self.span * 10))
        return sum(counts[0] for _, counts in self._steps), sum(counts[1] for _, counts in self._steps)

    def clear(self) -> None:
        self._steps.clear()

    def _forget(self, step: int) -> None:
        while self._steps and self._steps[0][0] <= step - 10:
            self._steps.popleft()


@dataclass(slots=True)
class Circuit:
    """One circuit. `until` is when it half-opens; `trying` when the attempt that finds out was let in."""

    limits: Limits
    failures: int = 0
    good: int = 0
    until: float | None = None
    trying: float | None = None
    limited: float = 0.0
    reason: str = ""
    recent: Window = field(default_factory=lambda: Window(WINDOW))

    def state(self, now: float) -> State:
        if now < self.limited:
            return State.OPEN
        if self.until is None:
            return State.CLOSED
        return State.OPEN if now < self.until else State.HALF_OPEN

    def admits(self, now: float) -> bool:
        match self.state(now):
            case State.CLOSED:
                return True
            case State.OPEN:
                return False
            case State.HALF_OPEN:
                # One whose end nobody told, such as in a killed task, does not stand in the way for ever.
                return self.trying is None or now - self.trying >= self.limits.open_for

    def enter(self, now: float) -> None:
        if self.state(now) is State.HALF_OPEN:
            self.trying = now

    def leave(self) -> None:
        self.trying = None

    def succeeded(self, now: float) -> bool:
        """Tells whether this closed the circuit."""
        self.recent.add(now, False)
        self.failures, self.trying = 0, None
        if self.until is None:
            return False
        self.good += 1
        if self.good < self.limits.successes:
            return False
        self.close()
        return True

    def close(self) -> None:
        self.until, self.good, self.failures, self.reason = None, 0, 0, ""
        self.recent.clear()

    def failed(self, now: float, reason: str) -> float:
        """The seconds for which this opened the circuit; 0 where it did not."""
        self.recent.add(now, True)
        self.failures += 1
        self.good, was_open = 0, self.until is not None and now < self.until
        self.trying = None
        seconds = 0.0 if was_open else self._opening(now)
        if seconds:
            self.open(now, seconds, reason)
        return seconds

    def _opening(self, now: float) -> float:
        if self.until is not None or self.failures >= self.limits.failures:
            return self.limits.open_for
        asked, failed = self.recent.counts(now)
        return self.limits.cooldown if failed > self.limits.allowed_fails and failed * 2 >= asked else 0.0

    def open(self, now: float, seconds: float, reason: str) -> None:
        self.until, self.reason, self.good, self.trying = now + seconds, reason, 0, None

    def limit(self, now: float, seconds: float, reason: str) -> None:
        """The provider said when it may be asked again: until then it is not, and then as usual."""
        self.limited, self.reason = max(self.limited, now + seconds), reason

    def opens_in(self, now: float) -> float:
        return max(0.0, (self.until or 0.0) - now, self.limited - now)

    def tells(self, now: float) -> bool:
        """Whether forgetting it would change anything."""
        return self.state(now) is not State.CLOSED or self.failures > 0 or self.recent.counts(now)[1] > 0


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How much may be asked again: a share of the attempts of `window` seconds at a target, and always `minimum`."""

    share: float = 0.2
    minimum: int = 10
    window: float = 60.0


class Health:
    """The state of one process. `tell` hears of every circuit that opens or closes; `learn` takes what others told."""

    def __init__(
        self,
        limits: Limits | None = None,
        budget: RetryBudget | None = None,
        tell: Callable[[Told], None] | None = None,
    ) -> None:
        self.limits, self.budget, self._tell = limits or Limits(), budget or RetryBudget(), tell
        self._circuits: dict[Place, Circuit] = {}
        self._traffic: dict[str, Window] = {}

    def configure(self, limits: Limits, budget: RetryBudget) -> None:
        """A new policy is in force. What is known of targets stays; windows of another length begin anew."""
        if budget.window != self.budget.window:
            self._traffic.clear()
        self.limits, self.budget = limits, budget
        for circuit in self._circuits.values():
            circuit.limits = limits

    # --- what attempts ask ---

    def state(self, place: Place, now: float) -> State:
        states = [circuit.state(now) for circuit in self._of(place)]
        return next((state for state in (State.OPEN, State.HALF_OPEN) if state in states), State.CLOSED)

    def admit(self, place: Place, now: float) -> bool:
        known = list(self._of(place))
        if not all(circuit.admits(now) for circuit in known):
            return False
        for circuit in known:
            circuit.enter(now)
        return True

    def enter(self, place: Place, now: float) -> None:
        for circuit in self._of(place):
            circuit.enter(now)

    def reopens(self, place: Place, now: float) -> float:
        return max((circuit.opens_in(now) for circuit in self._of(place)), default=0.0)

    def limited(self, place: Place, now: float) -> float:
        circuit = self._circuits.get(place)
        return 0.0 if circuit is None else max(0.0, circuit.limited - now)

    def may_repeat(self, target: str, now: float) -> bool:
        traffic = self._traffic.get(target)
        asked, repeated = traffic.counts(now) if traffic else (0, 0)
        return repeated < max(self.budget.minimum, self.budget.share * (asked - repeated))

    # --- what attempts tell ---

    def count(self, target: str, now: float, repeated: bool) -> None:
        traffic = self._traffic.get(target)
        if traffic is None:
            if len(self._traffic) >= MAX_CIRCUITS:
                self._traffic = dict(_newest(one for one in self._traffic.items() if one[1].counts(now)[0]))
            traffic = self._traffic[target] = Window(self.budget.window)
        traffic.add(now, repeated)

    def succeeded(self, place: Place, now: float) -> None:
        self._circuit(_whole(place), now)
        for at, circuit in self._known(place):
            if circuit.succeeded(now):
                self._say(at, 0.0, "closed")

    def failed(self, place: Place, now: float, failure: Failure, wait: float | None = None) -> None:
        if failure in OF_REQUEST:
            self.succeeded(place, now)
            return
        of_key = failure in OF_KEY and place != _whole(place)
        if of_key:
            self._alive(place, now)
        at = place if of_key else _whole(place)
        circuit = self._circuit(at, now)
        if not of_key:
            self.abandoned(place, now)
        if failure is Failure.RATE_LIMITED and wait is not None:
            seconds = min(wait, MAX_COOLDOWN)
            circuit.leave()
            circuit.limit(now, seconds, failure)
        elif failure is Failure.QUOTA:
            seconds = min(max(wait or 0.0, self.limits.cooldown), MAX_COOLDOWN)
            circuit.open(now, seconds, failure)
        else:
            seconds = circuit.failed(now, failure)
        if seconds:
            self._say(at, seconds, failure)

    def _alive(self, place: Place, now: float) -> None:
        """A refusal for the key's sake is an answer: the target is up."""
        circuit = self._circuits.get(_whole(place))
        if circuit is not None and circuit.succeeded(now):
            self._say(_whole(place), 0.0, "closed")

    def abandoned(self, place: Place, now: float) -> None:
        for circuit in self._of(place):
            circuit.leave()

    # --- sharing and showing ---

    def learn(self, told: Told, now: float) -> None:
        """What another process told."""
        circuit = self._circuit(told.place, now)
        if told.seconds > 0:
            circuit.open(now, min(told.seconds, MAX_COOLDOWN), told.reason)
        else:
            circuit.close()

    def snapshot(self, now: float) -> list[Shown]:
        """Every circuit that has something to tell, by name."""
        return sorted(
            Shown(*place, circuit.state(now), circuit.failures, round(circuit.opens_in(now), 3), circuit.reason)
            for place, circuit in self._circuits.items()
            if circuit.tells(now)
        )

    def _say(self, place: Place, seconds: float, reason: str) -> None:
        if self._tell is not None:
            self._tell(Told(place, seconds, reason))

    # --- the circuits ---

    def _of(self, place: Place) -> Iterable[Circuit]:
        return (circuit for _, circuit in self._known(place))

    def _known(self, place: Place) -> Iterator[tuple[Place, Circuit]]:
        whole = _whole(place)
        for at in (whole, place) if place.key else (whole,):
            if (circuit := self._circuits.get(at)) is not None:
                yield at, circuit

    def _circuit(self, place: Place, now: float) -> Circuit:
        circuit = self._circuits.get(place)
        if circuit is None:
            if len(self._circuits) >= MAX_CIRCUITS:
                self._circuits = dict(_newest(at for at in self._circuits.items() if at[1].tells(now)))
            circuit = self._circuits[place] = Circuit(self.limits)
        return circuit


def _newest(entries: Iterable[T]) -> list[T]:
    found = list(entries)
    return found[-MAX_CIRCUITS // 2 :]


def _whole(place: Place) -> Place:
    """The circuit of the target as such."""
    return Place(place.target)
