"""The attempts of one call: which target next, with which key, after what wait. Decided from facts; nothing waits here.

    attempts = Attempts(route, health, plan, random.random, time.monotonic)
    attempt = attempts.first()
    while attempt is not None:
        ...                                   # sleep attempt.wait, send, then at the first content: attempts.content()
        attempt = attempts.after(Outcome(failure, status, wait))
    attempts.trail                            # what happened

Laws: nothing is asked again once content has left. The waits and attempts before it fit the deadline. No call takes
more attempts than `Plan.bound` says. A wait that is longer than allowed is told (`Trail.retry_after`), never slept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

from ..errors import AllTargetsFailed
from .breaker import OF_KEY, Breakers, Place
from .classify import ONCE, Failure
from .resilience import Plan
from .routing import Candidate, Route
from .targets import Target
from .waits import Random

Clock = Callable[[], float]
"""Seconds of a clock that never goes back."""


class Attempt(NamedTuple):
    """One request to send: `target` holds the provider with the key to use, `candidate` how its request differs.

    `number` counts from 1. `wait`: seconds to sleep before. `left`: seconds from then until the reply's content must
    have begun, None without a deadline. `repeated`: the same target was asked right before.
    """

    target: Target
    candidate: Candidate
    number: int
    wait: float = 0.0
    left: float | None = None
    repeated: bool = False


class Outcome(NamedTuple):
    """How an attempt ended. `status` is 0 without a reply; `wait` the seconds that the provider asked for.

    `content_left`: some of the reply's content has gone to the client.
    """

    failure: Failure
    status: int = 0
    wait: float | None = None
    content_left: bool = False


class Tried(NamedTuple):
    """One attempt that is over. `seconds` is how long it took, `wait` how long was waited before; `key` is an index."""

    target: str
    key: int
    failure: Failure
    status: int
    seconds: float
    wait: float

    def told(self) -> dict[str, str | int]:
        """For records and error bodies: names and numbers."""
        reply: dict[str, str | int] = {"status": self.status} if self.status else {}
        times = {"ms": _milliseconds(self.seconds), "wait_ms": _milliseconds(self.wait)}
        return {"target": self.target, "class": self.failure.value, **reply, **times}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


# Own errors' statuses, where no provider answered.
_WITHOUT_REPLY: Final = {Failure.TIMEOUT: 504}
# What a header says of a call stays short, whatever the policy allows.
_MAX_TOLD: Final = 20


@dataclass(slots=True)
class Trail:
    """Every attempt of a call in turn. `retry_after`: the seconds that the last answer asked for, in full."""

    tried: list[Tried] = field(default_factory=list)
    retry_after: float | None = None

    @property
    def answered(self) -> int | None:
        """The index of the last attempt in which a provider answered with an error: what the client should see."""
        return next((at for at in range(len(self.tried) - 1, -1, -1) if self.tried[at].status >= 400), None)

    def told(self) -> list[dict[str, str | int]]:
        return [one.told() for one in self.tried]

    def header(self) -> str:
        """`"openai/gpt-5";class=server_error;status=500;ms=120, …`, a list of RFC 9651."""
        return ", ".join(map(_item, self.tried[:_MAX_TOLD]))

    def error(self) -> AllTargetsFailed:
        """What the client is told where no provider's own error can be given."""
        last = self.tried[-1]
        answered = self.answered
        status = _WITHOUT_REPLY.get(last.failure, 502) if answered is None else self.tried[answered].status
        said = ", ".join(f"{one.target} ({one.failure.value})" for one in self.tried[:_MAX_TOLD])
        return AllTargetsFailed(
            f"Every attempt failed: {said}.",
            attempts=self.told(),
            status=status,
            retry_after=None if self.retry_after is None else ceil(self.retry_after),
        )


def _item(one: Tried) -> str:
    name = "".join(char if " " <= char <= "~" and char not in '"\\' else "?" for char in one.target)
    status = f";status={one.status}" if one.status else ""
    wait = f";wait={_milliseconds(one.wait)}" if one.wait else ""
    return f'"{name}";class={one.failure.value}{status};ms={_milliseconds(one.seconds)}{wait}'


class _At(NamedTuple):
    """Where an attempt goes: a candidate by its rank in the call's order, and one of its keys."""

    rank: int
    key: int


class Attempts:
    """One call's attempts. `session` keeps a call where its session was, if the plan is sticky.

    `caller` names the caller's own key, by a hash or otherwise, for providers that are sent it.
    """

    def __init__(
        self,
        route: Route,
        breakers: Breakers,
        plan: Plan,
        random: Random,
        clock: Clock,
        *,
        session: str | None = None,
        caller: str = "",
    ) -> None:
        self._breakers, self._plan, self._random, self._clock = breakers, plan, random, clock
        self._caller = caller or "caller"
        session = session if plan.sticky else None
        self._order = route.ordered(random, session)
        self._keys = [route.keys(candidate, random, session) for candidate in self._order]
        self._began = clock()
        self._deadline = None if plan.deadline is None else self._began + plan.deadline
        self._at = _At(0, self._keys[0][0])
        self._left_behind: set[int] = set()
        self._used_keys: set[_At] = set()
        self._known_places: dict[_At, Place] = {}
        self._repeats = 0  # attempts at this target with the same key, after its first
        self._waited = 0.0  # at this target
        self._window: int | None = None  # what a target must be larger than
        self._forced = False
        self._attempt: Attempt | None = None
        self._content = False
        self.trail = Trail()

    # --- what the shell calls ---

    def first(self) -> Attempt:
        """The first attempt. There always is one: where every target is left out, the least bad gets it."""
        at = next(self._ready(), None) if self._plan.active else self._at
        if at is not None:
            return self._go(at)
        return self._force(list(self._places()))

    def content(self) -> None:
        """The reply's content begins: the target is well, whatever happens to the rest of the stream."""
        self._content = True
        if self._plan.active:
            self._breakers.succeeded(self._place(self._at), self._clock())

    def after(self, outcome: Outcome) -> Attempt | None:
        """The attempt is over. The next one, or None where the call is."""
        now = self._clock()
        self._note(outcome, now)
        if not self._plan.active:
            return None
        self._tell(outcome, now)
        if outcome.failure is Failure.NONE or outcome.content_left or self._content:
            return None
        return self._other_key(outcome) or self._again(outcome, now) or self._elsewhere(outcome)

    def unfit(self) -> Attempt | None:
        """The target's API cannot say what is asked: nothing went out. The next attempt, or None."""
        self.abandon()
        self._left_behind.add(self._at.rank)
        at = next(self._ready(), None)
        return None if at is None else self._go(at)

    def broke(self, failure: Failure) -> None:
        """The reply that was being handed down broke off: nothing is asked again, and the target is told on."""
        self.trail.tried[-1] = self.trail.tried[-1]._replace(failure=failure)
        if self._plan.active:
            self._breakers.failed(self._place(self._at), self._clock(), failure)

    def abandon(self) -> None:
        """The attempt ends without a verdict: the client left."""
        if self._plan.active:
            self._breakers.abandoned(self._place(self._at), self._clock())

    # --- what happened ---

    def _note(self, outcome: Outcome, now: float) -> None:
        attempt = self._attempt
        assert attempt is not None, "first() comes before after()"  # noqa: S101
        seconds = max(0.0, now - self._began)
        self.trail.tried.append(
            Tried(str(attempt.target), self._at.key, outcome.failure, outcome.status, round(seconds, 6), attempt.wait)
        )
        if outcome.status >= 400:
            self.trail.retry_after = outcome.wait

    def _tell(self, outcome: Outcome, now: float) -> None:
        place = self._place(self._at)
        if outcome.failure is not Failure.NONE:
            self._breakers.failed(place, now, outcome.failure, outcome.wait)
        elif not self._content:
            self._breakers.succeeded(place, now)

    # --- what next ---

    def _other_key(self, outcome: Outcome) -> Attempt | None:
        """Limits are the key's: another key of the same provider is asked at once."""
        if outcome.failure not in OF_KEY or not self._in_time(0.0):
            return None
        for key in self._keys[self._at.rank]:
            at = _At(self._at.rank, key)
            if at not in self._used_keys and self._breakers.admit(self._place(at), self._clock()):
                return self._go(at)
        return None

    def _again(self, outcome: Outcome, now: float) -> Attempt | None:
        """The same target once more."""
        if self._repeats + 1 >= self._plan.max_attempts or not self._repeatable(outcome):
            return None
        wait = self._wait(outcome, now)
        if wait is None or not self._in_time(wait):
            return None
        place = self._place(self._at)
        if not self._breakers.may_repeat(place.target, now) or not self._breakers.admit(place, now + wait):
            return None
        self._repeats += 1
        return self._go(self._at, wait, repeated=True)

    def _repeatable(self, outcome: Outcome) -> bool:
        if outcome.failure in ONCE:
            return False
        paced = outcome.failure is Failure.RATE_LIMITED and outcome.wait is not None and self._plan.pace > 0
        return paced or self._plan.retry_on.covers(outcome.failure, outcome.status)

    def _wait(self, outcome: Outcome, now: float) -> float | None:
        """How long to wait before the same target is asked again; None where that is too long."""
        backoff = self._plan.backoff
        if outcome.wait is None:
            return backoff.delay(self._repeats + 1, self._random)
        paced = outcome.failure is Failure.RATE_LIMITED and self._plan.pace > 0
        limit = self._plan.pace - self._waited if paced else backoff.maximum
        if outcome.wait > limit or (not paced and self._has_next(outcome, now)):
            return None
        return min(backoff.after(outcome.wait, self._random), limit)

    def _has_next(self, outcome: Outcome, now: float) -> bool:
        """Whether another target would be asked after this outcome."""
        if not self._hops_on(outcome):
            return False
        others = (at for at in self._places() if at.rank != self._at.rank)
        return any(self._breakers.reopens(self._place(at), now) == 0.0 for at in others)

    def _hops_on(self, outcome: Outcome) -> bool:
        chosen = self._plan.fallback_on
        return chosen is not None and chosen.covers(outcome.failure, outcome.status)

    def _elsewhere(self, outcome: Outcome) -> Attempt | None:
        """Another target, at once."""
        self._left_behind.add(self._at.rank)
        if not self._hops_on(outcome) or not self._in_time(0.0):
            return None
        if outcome.failure is Failure.CONTEXT_WINDOW:
            self._window = max(self._window or 0, self._order[self._at.rank].context_window or 0)
        at = next(self._ready(), None)
        if at is not None:
            return self._go(at)
        worse = list(self._places())
        return self._force(worse) if worse and not self._forced else None

    # --- where ---

    def _places(self) -> Iterator[_At]:
        """All that this call may still ask, in its order."""
        for index, candidate in enumerate(self._order):
            if index not in self._left_behind and self._is_large_enough(candidate):
                yield from (_At(index, key) for key in self._keys[index])

    def _is_large_enough(self, candidate: Candidate) -> bool:
        return self._window is None or (candidate.context_window or 0) > self._window

    def _ready(self) -> Iterator[_At]:
        now = self._clock()
        # Without fallback a call stays with its first target, however that is.
        only = None if self._plan.fallback_on is not None else 0
        for at in self._places():
            if only in (None, at.rank) and self._breakers.admit(self._place(at), now):
                yield at

    def _force(self, places: Sequence[_At]) -> Attempt:
        """Everything is left out: the place that reopens first gets one attempt, after its wait if that is allowed."""
        now = self._clock()
        if self._plan.fallback_on is None:
            places = [at for at in places if at.rank == 0]
        at = min(places, key=lambda at: self._breakers.reopens(self._place(at), now))
        self._forced = True
        wait = self._breakers.limited(self._place(at), now)
        allowed = self._plan.pace or self._plan.backoff.maximum
        if wait:
            wait = min(self._plan.backoff.after(wait, self._random), allowed) if wait <= allowed else 0.0
        wait = wait if self._in_time(wait) else 0.0
        self._breakers.enter(self._place(at), now + wait)
        return self._go(at, wait)

    def _place(self, at: _At) -> Place:
        place = self._known_places.get(at)
        if place is None:
            place = self._known_places[at] = self._named(at)
        return place

    def _named(self, at: _At) -> Place:
        candidate = self._order[at.rank]
        own = candidate.targets[at.key].provider.api_key is not None
        return Place(candidate.name, f"#{at.key + 1}" if own else self._caller)

    def _go(self, at: _At, wait: float = 0.0, *, repeated: bool = False) -> Attempt:
        now = self._clock()
        if at.rank != self._at.rank:
            self._repeats, self._waited = 0, 0.0
        self._waited += wait
        self._at, self._began = at, now + wait
        self._used_keys.add(at)
        candidate = self._order[at.rank]
        if self._plan.active:
            self._breakers.count(self._place(at).target, now, repeated)
        left = None if self._deadline is None else max(0.0, self._deadline - now - wait)
        number = len(self.trail.tried) + 1
        self._attempt = Attempt(candidate.targets[at.key], candidate, number, wait, left, repeated)
        return self._attempt

    def _in_time(self, wait: float) -> bool:
        return self._deadline is None or self._clock() + wait < self._deadline
