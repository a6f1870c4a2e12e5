"""What the process remembers of its targets."""

from sidecar.upstream import breaker
from sidecar.upstream.breaker import Health, Limits, Place, RetryBudget, State, Told, Window
from sidecar.upstream.classify import Failure

A = Place("p/a", "#1")
OTHER_KEY = Place("p/a", "#2")


def failing(health: Health, times: int, now: float, place: Place = A, failure: Failure = Failure.SERVER_ERROR) -> None:
    for _ in range(times):
        health.failed(place, now, failure)


def test_three_failures_in_a_row_open_it_for_thirty_seconds():
    health = Health(Limits(allowed_fails=100))
    failing(health, 2, 0.0)
    health.succeeded(A, 0.0)
    failing(health, 2, 1.0)
    assert health.admit(A, 1.0)
    failing(health, 1, 1.0)
    assert health.state(A, 1.0) is State.OPEN
    assert not health.admit(A, 30.9)
    assert health.state(A, 31.0) is State.HALF_OPEN


def test_one_attempt_at_a_time_finds_out_and_two_that_succeed_close_it():
    health = Health()
    failing(health, 3, 0.0)
    assert health.admit(A, 30.0)
    assert not health.admit(A, 30.0)
    health.succeeded(A, 31.0)
    assert health.state(A, 31.0) is State.HALF_OPEN
    assert health.admit(A, 31.0)
    assert not health.admit(A, 31.0)
    health.succeeded(A, 32.0)
    assert health.state(A, 32.0) is State.CLOSED
    assert health.admit(A, 32.0)
    assert health.admit(A, 32.0)


def test_the_one_that_finds_out_fails():
    health = Health()
    failing(health, 3, 0.0)
    assert health.admit(A, 30.0)
    failing(health, 1, 31.0)
    assert not health.admit(A, 60.9)
    assert health.admit(A, 61.0)


def test_the_one_that_finds_out_leaves_without_a_verdict():
    health = Health()
    failing(health, 3, 0.0)
    assert health.admit(A, 30.0)
    health.abandoned(A, 31.0)
    assert health.admit(A, 31.0)
    # Killed without a word: after as long as the circuit stays open another one may go.
    assert not health.admit(A, 60.9)
    assert health.admit(A, 61.0)


def test_late_failures_do_not_keep_it_open_longer():
    health = Health()
    failing(health, 3, 0.0)
    failing(health, 50, 20.0)
    assert health.reopens(A, 20.0) == 10.0


def test_a_target_is_down_for_every_key_and_a_key_is_limited_alone():
    health = Health()
    failing(health, 3, 0.0)
    assert not health.admit(OTHER_KEY, 0.0)
    health = Health()
    health.failed(A, 0.0, Failure.RATE_LIMITED, 20.0)
    assert not health.admit(A, 19.9)
    assert health.admit(OTHER_KEY, 0.0)
    assert health.limited(A, 5.0) == 15.0
    # A limit that has reopened is no illness: everybody may come.
    assert health.admit(A, 20.0)
    assert health.admit(A, 20.0)


def test_a_limit_without_a_time_counts_as_a_failure_of_the_key():
    health = Health()
    failing(health, 3, 0.0, failure=Failure.RATE_LIMITED)
    assert not health.admit(A, 1.0)
    assert health.admit(OTHER_KEY, 1.0)


def test_a_refusal_for_the_keys_sake_shows_that_the_target_is_up():
    health = Health(Limits(allowed_fails=100))
    failing(health, 2, 0.0)
    health.failed(A, 0.0, Failure.RATE_LIMITED, 1.0)
    failing(health, 2, 0.0)
    assert health.admit(OTHER_KEY, 0.0)


def test_a_key_without_quota_is_left_out_at_once():
    health = Health(Limits(cooldown=40.0))
    health.failed(A, 0.0, Failure.QUOTA)
    assert not health.admit(A, 39.9)
    assert health.state(A, 40.0) is State.HALF_OPEN
    health.failed(A, 40.0, Failure.QUOTA, 9e9)
    assert health.reopens(A, 40.0) == breaker.MAX_COOLDOWN


def test_the_callers_faults_say_nothing_of_the_target():
    health = Health()
    failing(health, 2, 0.0)
    for failure in (Failure.BAD_REQUEST, Failure.AUTH, Failure.CONTEXT_WINDOW, Failure.BLANK, Failure.LOCKED):
        failing(health, 5, 0.0, failure=failure)
    assert health.admit(A, 0.0)
    failing(health, 2, 0.0)
    assert health.admit(A, 0.0)


def test_a_target_that_often_fails_but_seldom_in_a_row():
    health = Health(Limits(failures=3, allowed_fails=3, cooldown=10.0))
    for _ in range(3):
        health.succeeded(A, 0.0)
        failing(health, 1, 0.0)
    assert health.admit(A, 1.0)
    health.succeeded(A, 1.0)
    failing(health, 1, 1.0)
    assert not health.admit(A, 10.9)
    assert health.admit(A, 11.0)


def test_a_few_failures_among_many_successes_leave_it_alone():
    health = Health()
    for second in range(50):
        for _ in range(10):
            health.succeeded(A, float(second))
        failing(health, 1, float(second))
        assert health.admit(A, float(second))


def test_what_happened_a_minute_ago_is_forgotten():
    window = Window(60.0)
    window.add(0.0, True)
    window.add(30.0, False)
    assert window.counts(53.0) == (2, 1)
    assert window.counts(61.0) == (1, 0)
    assert window.counts(1e6) == (0, 0)


def test_the_retry_budget_is_a_share_and_a_minimum():
    health = Health(budget=RetryBudget(share=0.2, minimum=2, window=60.0))
    assert health.may_repeat("p/a", 0.0)
    for _ in range(100):
        health.count("p/a", 0.0, repeated=False)
    allowed = 0
    while health.may_repeat("p/a", 1.0):
        health.count("p/a", 1.0, repeated=True)
        allowed += 1
    assert allowed == 20
    assert health.may_repeat("p/b", 1.0)
    assert health.may_repeat("p/a", 100.0)


def test_the_state_is_shown_without_what_is_well():
    health = Health()
    health.succeeded(Place("p/well", "#1"), 0.0)
    failing(health, 3, 0.0)
    health.failed(OTHER_KEY, 0.0, Failure.RATE_LIMITED, 5.0)
    shown = health.snapshot(1.0)
    assert [(one.target, one.key, one.state, one.seconds, one.reason) for one in shown] == [
        ("p/a", "", "open", 29.0, "server_error"),
        ("p/a", "#2", "open", 4.0, "rate_limited"),
    ]


def test_processes_tell_one_another():
    told: list[Told] = []
    one, other = Health(tell=told.append), Health()
    failing(one, 3, 0.0)
    for message in told:
        other.learn(message, 1000.0)
    assert [message.seconds for message in told] == [30.0]
    assert not other.admit(A, 1029.0)
    one.admit(A, 30.0)
    one.succeeded(A, 30.0)
    one.succeeded(A, 30.0)
    other.learn(told[-1], 1029.0)
    assert other.admit(A, 1029.0)


def test_callers_with_ever_new_keys_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(breaker, "MAX_CIRCUITS", 100)
    health = Health()
    for number in range(1000):
        health.failed(Place("p/a", f"key-{number}"), 0.0, Failure.RATE_LIMITED, 1000.0)
        health.count(f"p/{number}", 0.0, repeated=False)
    assert len(health._circuits) <= 101
    assert len(health._traffic) <= 101
    assert not health.admit(Place("p/a", "key-999"), 1.0)


def test_a_new_policy_keeps_what_is_known():
    health = Health()
    failing(health, 3, 0.0)
    health.configure(Limits(failures=1, open_for=5.0), RetryBudget(minimum=0))
    assert not health.admit(A, 29.0)
    assert health.admit(A, 30.0)
    failing(health, 1, 30.0)
    assert health.reopens(A, 30.0) == 5.0
    assert not health.may_repeat("p/a", 30.0)
