"""The attempts of one call: what next, where and when. And an hour of many calls on a clock that only we turn."""

import heapq
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.upstream.attempts import Attempt, Attempts, Outcome
from sidecar.upstream.breaker import Health, Limits, Place, State
from sidecar.upstream.classify import ONCE, TRANSIENT, Facts, Failure, Phase, classify, words_of
from sidecar.upstream.resilience import FallbackConfig, Plan, ResilienceConfig, RetryConfig
from sidecar.upstream.routing import Candidate, Route, in_order
from sidecar.upstream.targets import Provider, Target
from sidecar.upstream.waits import stated

FUZZ = bool(os.environ.get("FUZZ"))
OK = Outcome(Failure.NONE, 200)
DOWN = Outcome(Failure.SERVER_ERROR, 500)
REFUSED = Outcome(Failure.NETWORK)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def provider(name: str, keys: int = 1) -> Provider:
    own = tuple(f"key-{name}-{number}" for number in range(keys))
    return Provider(name, f"http://{name}", own[0] if own else None, more_keys=own[1:])


def target(name: str, keys: int = 1) -> Target:
    return Target(provider(name, keys), "m")


def chain(*names: str) -> Route:
    return Route("asked", in_order(target(name) for name in names))


def plan(retry: dict[str, Any] | None = None, fallback: dict[str, Any] | None = None, **more: Any) -> Plan:
    config = ResilienceConfig(
        retry=None if retry is None else RetryConfig(**{"jitter": False, **retry}),
        fallback=None if fallback is None else FallbackConfig(**fallback),
        **more,
    )
    return Plan(config)


BOTH = {"retry": {}, "fallback": {}}
NEVER_OPEN = Limits(failures=1000, allowed_fails=1000)


@dataclass
class Call:
    """Plays one call. Each attempt takes `takes` seconds; `asked` is where it went and after what wait."""

    route: Route
    plan: Plan
    health: Health = field(default_factory=Health)
    clock: Clock = field(default_factory=Clock)
    takes: float = 0.1
    more: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)

    def play(self, answer: Callable[[Attempt], Outcome]) -> Outcome:
        self.attempts = Attempts(self.route, self.health, self.plan, lambda: 0.5, self.clock, **self.more)
        attempt: Attempt | None = self.attempts.first()
        outcome = OK
        while attempt is not None:
            self.asked.append((attempt.target.provider.name, round(attempt.wait, 3)))
            self.clock.now += attempt.wait + self.takes
            outcome = answer(attempt)
            attempt = self.attempts.after(outcome)
        return outcome

    def script(self, *outcomes: Outcome) -> Outcome:
        """Answers with these, and then well."""
        left = iter(outcomes)
        return self.play(lambda attempt: next(left, OK))

    @property
    def names(self) -> str:
        return "".join(name for name, _ in self.asked)


# --- one call ---


def test_without_the_section_there_is_one_attempt_and_no_memory():
    health = Health()
    call = Call(chain("a", "b"), plan(), health)
    assert call.script(DOWN) is DOWN
    assert call.names == "a"
    assert health.snapshot(call.clock()) == []


def test_the_same_target_again_with_growing_waits():
    call = Call(chain("a"), plan({"max_attempts": 4}), Health(NEVER_OPEN))
    call.script(DOWN, REFUSED, Outcome(Failure.TIMEOUT))
    assert call.asked == [("a", 0.0), ("a", 0.5), ("a", 1.0), ("a", 2.0)]


def test_jitter_is_drawn():
    call = Call(chain("a"), plan({"jitter": True}))
    call.script(DOWN)
    assert call.asked == [("a", 0.0), ("a", 0.25)]


@pytest.mark.parametrize("failure", sorted(set(Failure) - TRANSIENT - ONCE - {Failure.NONE}))
def test_a_permanent_error_is_neither_repeated_nor_taken_elsewhere(failure: Failure):
    call = Call(chain("a", "b"), plan(**BOTH))
    assert call.script(Outcome(failure, 400)).failure is failure
    assert call.names == "a"


@pytest.mark.parametrize("failure", sorted(TRANSIENT))
def test_what_may_pass_is_repeated_and_then_taken_elsewhere(failure: Failure):
    call = Call(chain("a", "b"), plan(**BOTH), Health(NEVER_OPEN))
    call.script(*[Outcome(failure, 500)] * 3)
    assert call.names == "aaab"


def test_fallback_alone_hops_at_once():
    call = Call(chain("a", "b", "c"), plan(fallback={}))
    call.script(DOWN, REFUSED)
    assert call.asked == [("a", 0.0), ("b", 0.0), ("c", 0.0)]


def test_a_permanent_error_ends_the_repetitions_and_is_the_one_that_is_told():
    call = Call(chain("a"), plan({"max_attempts": 5}))
    last = call.script(Outcome(Failure.RATE_LIMITED, 429), Outcome(Failure.BAD_REQUEST, 400))
    assert (last.status, call.names) == (400, "aa")
    assert call.attempts.trail.answered == 1


def test_a_permanent_error_that_the_policy_falls_back_on_is_asked_once_of_each_target():
    call = Call(chain("a", "b", "c"), plan({}, {"on": ("auth",)}))
    call.play(lambda attempt: Outcome(Failure.AUTH, 401))
    assert call.names == "abc"


def test_statuses_choose_as_portkeys_do():
    call = Call(chain("a", "b"), plan({"retry_on": (429, 500)}, {"on": (418,)}), Health(NEVER_OPEN))
    call.script(DOWN, Outcome(Failure.BAD_REQUEST, 418))
    assert call.names == "aab"
    call = Call(chain("a"), plan({"retry_on": (429, 500)}))
    call.script(Outcome(Failure.OVERLOADED, 503))
    assert call.names == "a"


def test_quota_hops_at_once_and_is_never_waited_for():
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(Outcome(Failure.QUOTA, 429, 2.0))
    assert call.asked == [("a", 0.0), ("b", 0.0)]
    assert call.health.state(Place("a/m", "#1"), call.clock()) is State.OPEN


def test_a_blank_reply_is_not_asked_for_again():
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(Outcome(Failure.BLANK, 200))
    assert call.names == "a"


# --- context windows ---


def windows(**sizes: int | None) -> Route:
    listed = enumerate(sizes.items(), 1)
    return Route("m", tuple(Candidate.of(target(n), priority=at, context_window=size) for at, (n, size) in listed))


TOO_LONG = Outcome(Failure.CONTEXT_WINDOW, 400)


def test_a_request_that_is_too_long_goes_only_to_a_larger_window():
    call = Call(windows(a=8000, b=4000, c=8000, d=32000), plan(**BOTH))
    call.script(TOO_LONG)
    assert call.names == "ad"


def test_a_request_that_fits_no_window_ends_with_the_first_error():
    call = Call(windows(a=8000, b=None, c=8000), plan(**BOTH))
    assert call.script(TOO_LONG) is TOO_LONG
    assert call.names == "a"


def test_after_a_request_was_too_long_no_smaller_window_is_asked_for_another_reason_either():
    call = Call(windows(a=8000, big=32000, b=None, c=64000), plan(fallback={}))
    call.script(TOO_LONG, DOWN)
    assert [name for name, _ in call.asked] == ["a", "big", "c"]


def test_the_fallback_for_long_requests_is_not_the_one_for_errors():
    for outcome, names in ((TOO_LONG, ["m1", "big"]), (DOWN, ["m1", "small"])):
        call = Call(windows(m1=None, small=None, big=32000), plan(fallback={}))
        call.script(outcome)
        assert [name for name, _ in call.asked] == names


# --- rate limits ---


def limited(wait: float | None) -> Outcome:
    return Outcome(Failure.RATE_LIMITED, 429, wait)


def test_a_rate_limit_is_waited_for_before_anything_else():
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(limited(20.0))
    assert call.asked == [("a", 0.0), ("a", 20.0)]


def test_waits_at_one_target_are_bounded_together():
    call = Call(chain("a", "b"), plan({"max_attempts": 10}, {}))
    call.script(limited(40.0), limited(30.0))
    assert call.asked == [("a", 0.0), ("a", 40.0), ("b", 0.0)]


def test_a_longer_delay_is_told_in_full_and_not_slept():
    call = Call(chain("a"), plan(**BOTH))
    assert call.script(limited(7200.0)).status == 429
    assert call.names == "a"
    assert call.attempts.trail.retry_after == 7200.0
    assert call.attempts.trail.error().retry_after == 7200


def test_a_longer_delay_goes_elsewhere():
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(limited(61.0))
    assert call.asked == [("a", 0.0), ("b", 0.0)]


def test_without_pacing_a_stated_delay_goes_elsewhere_and_backoff_stays():
    call = Call(chain("a", "b"), plan({}, {"pace": "off"}))
    call.script(limited(5.0))
    assert call.names == "ab"
    call = Call(chain("a", "b"), plan({}, {"pace": "off"}))
    call.script(limited(None), limited(None))
    assert call.asked == [("a", 0.0), ("a", 0.5), ("a", 1.0)]
    call = Call(chain("a"), plan({}, {"pace": "off"}))
    call.script(limited(5.0))
    assert call.asked == [("a", 0.0), ("a", 5.0)]


def test_pacing_without_retry_asks_once_more():
    call = Call(chain("a", "b"), plan(fallback={}))
    call.script(limited(2.0), limited(2.0))
    # Half of the tenth by which those who were told the same time are spread.
    assert call.asked == [("a", 0.0), ("a", 2.1), ("b", 0.0)]


def test_a_server_error_that_states_a_delay_is_not_waited_for_where_there_is_another_target():
    slow = Outcome(Failure.OVERLOADED, 503, 20.0)
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(slow)
    assert call.names == "ab"
    call = Call(chain("a"), plan({}))
    call.script(slow)
    assert call.asked == [("a", 0.0), ("a", 20.0)]


def test_the_next_call_waits_for_a_limit_that_it_knows_of():
    health, clock = Health(), Clock()
    Call(chain("a"), plan({"max_attempts": 1}), health, clock).script(limited(10.0))
    call = Call(chain("a"), plan({"max_attempts": 1}), health, clock)
    call.script()
    assert call.asked == [("a", 10.0)]


def test_the_next_call_goes_where_no_limit_is():
    health, clock = Health(), Clock()
    Call(chain("a", "b"), plan(**BOTH), health, clock).script(limited(100.0))
    call = Call(chain("a", "b"), plan(**BOTH), health, clock)
    call.script()
    assert call.asked == [("b", 0.0)]


# --- keys ---


def keyed(keys: int, *names: str) -> Route:
    return Route("m", in_order(target(name, keys) for name in names))


def test_another_key_of_the_same_provider_is_asked_before_another_provider():
    used: list[str | None] = []
    call = Call(keyed(3, "a", "b"), plan(**BOTH))
    outcomes = iter([limited(5.0), Outcome(Failure.QUOTA, 429)])

    def answer(attempt: Attempt) -> Outcome:
        used.append(attempt.target.provider.api_key)
        return next(outcomes, OK)

    call.play(answer)
    assert call.asked == [("a", 0.0)] * 3
    assert sorted(map(str, used)) == ["key-a-0", "key-a-1", "key-a-2"]


def test_a_dead_provider_is_dead_with_every_key():
    call = Call(keyed(3, "a", "b"), plan(fallback={"pace": "off"}))
    call.script(DOWN)
    assert call.names == "ab"


def test_a_callers_used_up_key_keeps_nobody_else_away():
    route = Route("m", in_order([target("a", 0)]))
    health, clock = Health(), Clock()
    Call(route, plan({"max_attempts": 1}), health, clock, more={"caller": "one"}).script(limited(30.0))
    call = Call(route, plan({"max_attempts": 1}), health, clock, more={"caller": "two"})
    call.script()
    assert call.asked == [("a", 0.0)]


# --- content, deadline, memory ---


def test_nothing_is_asked_again_once_content_has_left():
    call = Call(chain("a", "b"), plan(**BOTH))
    call.script(Outcome(Failure.NETWORK, 200, content_left=True))
    assert call.names == "a"


def test_content_that_has_begun_counts_even_where_the_shell_forgets_to_say_so():
    health = Health()
    attempts = Attempts(chain("a", "b"), health, plan(**BOTH), random.random, Clock())
    attempts.first()
    attempts.content()
    assert attempts.after(Outcome(Failure.NETWORK, 200)) is None


def test_a_stream_that_stalls_after_its_beginning_still_counts_against_the_target():
    health, clock = Health(), Clock()
    for _ in range(4):
        attempts = Attempts(chain("a", "b"), health, plan(**BOTH), random.random, clock)
        attempts.first()
        attempts.content()
        attempts.after(Outcome(Failure.TIMEOUT, 200, content_left=True))
    assert health.state(Place("a/m"), clock()) is State.OPEN


def test_the_deadline_covers_attempts_and_waits():
    call = Call(chain("a", "b"), plan({"deadline": "10s", "max_attempts": 9}, {}), Health(NEVER_OPEN), takes=4.0)
    call.play(lambda attempt: DOWN)
    # After 4 and after 8.5 s there is time for one more; at 12.5 s, and after another wait of 1 s, there is not.
    assert call.asked == [("a", 0.0), ("a", 0.5), ("a", 1.0)]


def test_a_wait_that_would_pass_the_deadline_is_not_begun():
    call = Call(chain("a"), plan({"deadline": "10s"}))
    call.script(limited(9.95))
    assert call.names == "a"
    call = Call(chain("a"), plan({"deadline": "10s"}))
    call.script(limited(9.8))
    assert call.names == "aa"


def test_an_attempt_knows_how_long_its_content_may_take():
    clock = Clock()
    attempts = Attempts(chain("a"), Health(), plan({"deadline": "10s"}), random.random, clock)
    assert attempts.first().left == 10.0
    clock.now += 3.0
    again = attempts.after(DOWN)
    assert again is not None
    assert again.left == pytest.approx(6.5)


def test_a_dead_primary_is_not_tried_first_by_every_call():
    health, clock = Health(), Clock()
    calls = []
    for _ in range(20):
        calls.append(Call(chain("a", "b"), plan(**BOTH), health, clock))
        calls[-1].play(lambda attempt: DOWN if attempt.target.provider.name == "a" else OK)
    assert [call.names for call in calls] == ["aaab"] + ["b"] * 19


def test_when_all_are_out_the_least_bad_one_gets_one_attempt():
    health, clock = Health(), Clock()
    for name, when in (("b", 1000.0), ("a", 1005.0)):
        for _ in range(3):
            health.failed(Place(f"{name}/m", "#1"), when, Failure.SERVER_ERROR)
    clock.now = 1006.0
    call = Call(chain("a", "b"), plan(**BOTH), health, clock)
    call.play(lambda attempt: DOWN)
    assert call.names == "b"


def test_a_half_open_target_is_not_asked_twice_by_one_call():
    health, clock = Health(), Clock()
    for _ in range(3):
        health.failed(Place("a/m", "#1"), 1000.0, Failure.SERVER_ERROR)
    clock.now = 1031.0
    call = Call(chain("a", "b"), plan(**BOTH), health, clock)
    call.play(lambda attempt: DOWN if attempt.target.provider.name == "a" else OK)
    assert call.names == "ab"


def test_a_client_that_leaves_gives_back_the_place_of_the_one_that_finds_out():
    health, clock = Health(), Clock()
    for _ in range(3):
        health.failed(Place("a/m", "#1"), 1000.0, Failure.SERVER_ERROR)
    clock.now = 1031.0
    attempts = Attempts(chain("a", "b"), health, plan(**BOTH), random.random, clock)
    assert attempts.first().target.provider.name == "a"
    attempts.abandon()
    assert health.admit(Place("a/m", "#1"), clock.now)


def test_the_retry_budget_ends_repetitions():
    health = Health(NEVER_OPEN, ResilienceConfig().retry_budget)
    clock = Clock()
    asked = Counter[str]()
    for _ in range(200):
        call = Call(chain("a"), plan({}), health, clock, takes=0.0)
        call.play(lambda attempt: DOWN)
        asked[call.names] += 1
        clock.now = 1000.0
    assert sum(len(names) * count for names, count in asked.items()) <= 200 * 1.2 + 1
    assert asked["aaa"] > 0


# --- telling ---


def test_the_trail_tells_every_attempt():
    call = Call(chain("a", "b"), plan({"max_attempts": 2}, {}))
    call.script(DOWN, REFUSED)
    trail = call.attempts.trail
    assert trail.header() == (
        '"a/m";class=server_error;status=500;ms=100, "a/m";class=network;ms=100;wait=500, '
        '"b/m";class=none;status=200;ms=100'
    )
    assert trail.told()[1] == {"target": "a/m", "class": "network", "ms": 100, "wait_ms": 500}
    assert trail.answered == 0


def test_the_error_has_the_status_of_the_last_provider_that_answered():
    call = Call(chain("a", "b"), plan(fallback={}))
    call.play(lambda attempt: DOWN if attempt.target.provider.name == "a" else REFUSED)
    error = call.attempts.trail.error()
    assert (error.status, error.code, len(error.attempts)) == (500, "all_targets_failed", 2)
    assert error.message == "Every attempt failed: a/m (server_error), b/m (network)."


@pytest.mark.parametrize(("failure", "status"), [(Failure.NETWORK, 502), (Failure.TIMEOUT, 504)])
def test_the_error_has_our_status_where_nobody_answered(failure: Failure, status: int):
    call = Call(chain("a", "b"), plan(fallback={}))
    call.play(lambda attempt: Outcome(failure))
    assert call.attempts.trail.error().status == status


def test_a_strange_model_name_does_not_break_the_header():
    odd = Route("m", in_order([Target(provider("a"), 'x"\r\n;ü')]))
    call = Call(odd, plan({}))
    call.script()
    assert call.attempts.trail.header() == '"a/x???;?";class=none;status=200;ms=100'


# --- from a provider's answer to what is asked next ---


def answer(status: int, code: str | None = None, kind: str | None = None, **headers: str) -> Outcome:
    """The outcome of an attempt that a provider answered so."""
    names, param = words_of({"error": {"message": "slow", "type": kind, "param": None, "code": code}})
    said = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    failure = classify(Facts(Phase.BODY, status, names, param, said_error=status < 400))
    return Outcome(failure, status, stated(said, WALL))


WALL = 1_770_000_000.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_malformed_request_costs_one_call(status: int):
    call = Call(chain("a", "b"), plan(**BOTH))
    assert call.script(answer(status, "invalid_value", "invalid_request_error")).status == status
    assert call.names == "a"


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        (formatdate(WALL + 2, usegmt=True), [0.0, 2.0]),
        (formatdate(WALL - 60, usegmt=True), [0.0, 0.5]),
        ("soon", [0.0, 0.5]),
        ("7200", [0.0]),
    ],
)
def test_every_kind_of_retry_after(said: str, waits: list[float]):
    call = Call(chain("a"), plan({"max_attempts": 2}))
    call.script(answer(429, "rate_limit_exceeded", "requests", retry_after=said))
    assert [wait for _, wait in call.asked] == waits


def test_a_stream_that_fails_before_its_content_falls_back():
    call = Call(chain("a", "b"), plan(fallback={}))
    assert call.script(answer(200, "overloaded", "server_error")) is OK
    assert call.names == "ab"


@pytest.mark.parametrize("code", ["context_length_exceeded", "model_max_prompt_tokens_exceeded"])
def test_a_context_window_is_told_by_its_code(code: str):
    call = Call(windows(m1=8192, small=None, big=32768), plan(fallback={}))
    call.script(answer(413, code))
    assert [name for name, _ in call.asked] == ["m1", "big"]


# --- laws ---

FAILURES = st.sampled_from([failure for failure in Failure if failure is not Failure.NONE])
STATUSES = {Failure.RATE_LIMITED: 429, Failure.QUOTA: 402, Failure.CONTEXT_WINDOW: 400, Failure.SERVER_ERROR: 500}


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    failure = draw(st.sampled_from(sorted(TRANSIENT)) | FAILURES | st.just(Failure.NONE))
    wait = draw(st.none() | st.floats(0.001, 7200.0))
    return Outcome(failure, STATUSES.get(failure, 0), wait, draw(st.integers(0, 9)) == 0)


@st.composite
def routes(draw: st.DrawFn) -> Route:
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    return Route(
        "m",
        tuple(
            Candidate.of(
                target(name, draw(st.integers(0, 3))),
                weight=draw(st.floats(0, 10)),
                priority=draw(st.integers(0, 3)),
                context_window=draw(st.none() | st.integers(1, 5)),
            )
            for name in names
        ),
    )


SOME = st.lists(st.sampled_from(["transient", "auth", "bad_request", "quota", "context_window", "blank", 429, 500]))
RETRIES = st.none() | st.fixed_dictionaries(
    {
        "max_attempts": st.integers(1, 6),
        "deadline": st.sampled_from(["1s", "30s", "10m"]),
        "jitter": st.booleans(),
        "retry_on": SOME.map(lambda some: tuple(one for one in some if one not in ONCE)),
    }
)
FALLBACKS = st.none() | st.fixed_dictionaries(
    {"on": SOME.map(tuple), "pace": st.sampled_from(["off", "10s", "60s"]), "sticky": st.booleans()}
)


@settings(max_examples=50_000 if FUZZ else 400, derandomize=not FUZZ, deadline=None)
@given(routes(), RETRIES, FALLBACKS, st.lists(outcomes(), max_size=60), st.randoms(use_true_random=False))
def test_laws_of_a_call(route: Route, retry: Any, fallback: Any, told: list[Outcome], chance: random.Random):
    made, health, clock = plan(retry, fallback), Health(), Clock()
    answers: Iterator[Outcome] = iter(told)
    for _ in range(4):
        began, waits, at_target = clock.now, 0.0, Counter[str]()
        attempts = Attempts(route, health, made, chance.random, clock, session="s", caller="c")
        attempt: Attempt | None = attempts.first()
        count, over = 0, False
        while attempt is not None:
            assert not over
            count += 1
            assert attempt.number == count
            name = attempt.target.provider.name
            at_target[name] += 1
            waits += attempt.wait
            assert attempt.wait >= 0
            if count > 1:
                assert made.deadline is not None
                assert clock.now + attempt.wait < began + made.deadline
            clock.now += attempt.wait + chance.random() * 3
            outcome = next(answers, OK)
            over = outcome.failure is Failure.NONE or outcome.content_left or not made.active
            before, attempt = attempt, attempts.after(outcome)
            if attempt is not None and outcome.failure in ONCE:
                assert not attempt.repeated
                assert attempt.target != before.target
        assert count <= made.bound(route.candidates)
        assert made.deadline is None or waits <= made.deadline
        assert len(attempts.trail.tried) == count
        most = {one.target.provider.name: made.max_attempts + len(one.targets) - 1 for one in route.candidates}
        assert all(number <= most[name] for name, number in at_target.items())


@settings(max_examples=50_000 if FUZZ else 200, derandomize=not FUZZ, deadline=None)
@given(routes(), st.sampled_from(["auth", "bad_request", "model_not_found", "content_filter", "blank"]))
def test_a_permanent_error_is_asked_once_of_each_target(route: Route, failure: str):
    call = Call(route, plan({"max_attempts": 5}, {"on": (failure,)}))
    call.play(lambda attempt: Outcome(Failure(failure), 400))
    assert sorted(call.names) == sorted(one.target.provider.name for one in route.candidates)


# --- an hour ---


@dataclass
class Hour:
    """Calls that arrive evenly, each an attempt after the other, all on one clock. `behave` is what a target does."""

    route: Route
    plan: Plan
    behave: Callable[[str, float], tuple[Outcome, float]]
    rate: float = 10.0
    seconds: float = 3600.0

    def run(self) -> "Hour":
        clock, chance, queue = Clock(0.0), random.Random(7), []
        limits = ResilienceConfig(retry=RetryConfig(), fallback=FallbackConfig())
        health = Health(limits.limits, limits.retry_budget)
        self.upstream: Counter[str] = Counter()
        self.wasted: list[float] = []
        self.served, self.failed, self.slowest = 0, 0, 0.0
        count = int(self.seconds * self.rate)
        for number in range(count):
            heapq.heappush(queue, (number / self.rate, number, None, None, None))
        while queue:
            clock.now, number, attempts, outcome, began = heapq.heappop(queue)
            if attempts is None:
                began = clock.now
                attempts = Attempts(self.route, health, self.plan, chance.random, clock)
                attempt: Attempt | None = attempts.first()
            else:
                attempt = attempts.after(outcome)
            if attempt is None:
                self.served += outcome.failure is Failure.NONE
                self.failed += outcome.failure is not Failure.NONE
                self.slowest = max(self.slowest, clock.now - began)
                continue
            starts = clock.now + attempt.wait
            name = attempt.target.provider.name
            told, takes = self.behave(name, starts)
            self.upstream[name] += 1
            if told.failure is not Failure.NONE:
                self.wasted.append(starts)
            heapq.heappush(queue, (starts + takes, number, attempts, told, began))
        return self


def dies(kind: Outcome, takes: float, who: str = "a") -> Callable[[str, float], tuple[Outcome, float]]:
    """One target is dead from minute 10 to minute 40."""

    def behave(name: str, now: float) -> tuple[Outcome, float]:
        return (kind, takes) if name == who and 600.0 <= now < 2400.0 else (OK, 0.3)

    return behave


OUTAGES = [(REFUSED, 0.001), (DOWN, 0.05), (Outcome(Failure.OVERLOADED, 503, 15.0), 0.05)]


@pytest.mark.parametrize(("kind", "takes"), OUTAGES)
def test_an_hour_in_which_the_primary_dies_and_returns(kind: Outcome, takes: float):
    hour = Hour(chain("a", "b"), plan(**BOTH), dies(kind, takes)).run()
    calls = hour.served + hour.failed
    assert calls == 36_000
    assert hour.failed <= calls * 0.001
    # Until the first cooldown begins some calls have already set out.
    first = [when for when in hour.wasted if when < 605.0]
    cooldowns = (2400.0 - 600.0) / 30.0
    assert len(first) <= 10
    assert len(hour.wasted) - len(first) <= 2 * cooldowns
    assert sum(hour.upstream.values()) <= 1.2 * calls
    # It is taken back when it returns.
    assert hour.upstream["a"] >= (600 + 1200 - 60) * 10
    assert hour.slowest < 5.0


def test_an_hour_in_which_the_primary_stalls():
    hour = Hour(chain("a", "b"), plan({"max_attempts": 1}, {}), dies(Outcome(Failure.TIMEOUT), 5.0)).run()
    first = [when for when in hour.wasted if when < 610.0]
    assert hour.failed == 0
    assert len(first) <= 5.0 * 10 + 10  # all that had set out before the first of them had timed out
    assert len(hour.wasted) - len(first) <= 2 * 60
    assert hour.slowest < 6.0


def test_an_hour_in_which_the_only_target_dies_makes_no_storm():
    hour = Hour(chain("a"), plan({}), dies(DOWN, 0.05)).run()
    assert sum(hour.upstream.values()) <= 1.2 * 36_000
    assert hour.failed <= 1800 * 10 + 100
    assert hour.served >= 1800 * 10 - 10


def test_an_hour_of_rate_limits_makes_no_storm():
    """The primary serves 5 calls a second and says when it will serve again; 10 a second arrive."""
    served: Counter[int] = Counter()

    def behave(name: str, now: float) -> tuple[Outcome, float]:
        second = int(now)
        if name == "a":
            served[second] += 1
            if served[second] > 5:
                return limited(max(0.001, second + 1 - now)), 0.02
        return OK, 0.3

    hour = Hour(chain("a", "b"), plan(**BOTH), behave, seconds=600.0).run()
    assert hour.failed == 0
    assert sum(hour.upstream.values()) <= 1.3 * 6000


def test_a_flapping_primary_costs_clients_nothing():
    chance = random.Random(3)

    def behave(name: str, now: float) -> tuple[Outcome, float]:
        return (DOWN, 0.05) if name == "a" and chance.random() < 0.5 else (OK, 0.3)

    hour = Hour(chain("a", "b"), plan(**BOTH), behave, seconds=900.0).run()
    assert hour.failed <= 9000 * 0.001
    assert sum(hour.upstream.values()) <= 1.2 * 9000


# --- targets that cannot be asked, and replies that break off ---


def test_a_target_that_cannot_say_what_is_asked_is_passed_over_unharmed():
    health, clock = Health(), Clock()
    attempts = Attempts(chain("a", "b"), health, plan(**BOTH), lambda: 0.5, clock)
    attempts.first()
    attempt = attempts.unfit()
    assert attempt is not None
    assert (attempt.target.provider.name, attempt.number) == ("b", 1)
    assert attempts.after(OK) is None
    assert health.snapshot(clock()) == []


def test_without_fallback_nothing_follows_a_target_that_cannot_be_asked():
    attempts = Attempts(chain("a", "b"), Health(), plan({}), lambda: 0.5, Clock())
    attempts.first()
    assert attempts.unfit() is None
    assert attempts.trail.tried == []


def test_a_reply_that_breaks_off_counts_against_its_target():
    health = Health(Limits(allowed_fails=1))
    clock = Clock()
    for _ in range(2):
        attempts = Attempts(chain("a", "b"), health, plan(**BOTH), lambda: 0.5, clock)
        attempts.first()
        attempts.content()
        assert attempts.after(OK) is None
        attempts.broke(Failure.NETWORK)
        assert [one.failure for one in attempts.trail.tried] == [Failure.NETWORK]
    call = Call(chain("a", "b"), plan(**BOTH), health, clock)
    call.script()
    assert call.names == "b"
