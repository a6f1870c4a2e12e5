"""Everything that can go wrong at a provider, under retry and fallback: what is seen, sent, charged and told."""

import json
import time
from typing import Any

import pytest

from .mishaps import (
    GOOD,
    MISHAPS,
    WAITS,
    Mishap,
    Wait,
    dated,
    error,
    good,
    refusal,
)
from .pair import BUDGET, MODES, PLANS, Start, check_served, documents, trail_of
from .talk import Answer
from .upstream import Upstream

EACH = pytest.mark.parametrize("mishap", MISHAPS, ids=str)


# --- every mishap ---


@MODES
@EACH
def test_once_and_then_it_works(pair: Start, mishap: Mishap, streamed: bool) -> None:
    with pair(PLANS["retry"], BUDGET) as talk:
        talk.a.play(mishap.steps(streamed), good(streamed))
        answer = talk.ask(streamed)
        if mishap.kind == "transient":
            check_served(answer, streamed)
            assert talk.counts == (2, 0)
            assert trail_of(answer) == [mishap.failure, "none"]
            assert answer.header(b"x-sidecar-attempts") == b"2"
            assert talk.charged == mishap.costs(streamed)
            assert talk.classes() == [mishap.failure, "none"]
        else:
            check_given_back(answer, mishap, streamed, 1)
            assert talk.counts == (1, 0)


@MODES
@EACH
def test_the_next_target_helps(pair: Start, mishap: Mishap, streamed: bool) -> None:
    models = "m: [{target: a/m, context_window: 1000}, {target: b/n, context_window: 2000}]"
    with pair(PLANS["fallback"], BUDGET, models=models) as talk:
        talk.a.play(mishap.steps(streamed))
        talk.b.play([good(streamed)])
        answer = talk.ask(streamed)
        if mishap.kind in ("transient", "hop"):
            check_served(answer, streamed)
            assert talk.counts == (1, 1)
            assert json.loads(talk.b.requests[0].body)["model"] == "n"
            assert trail_of(answer) == [mishap.failure, "none"]
            assert answer.header(b"x-sidecar-target") == b"b/n"
            assert talk.charged == mishap.costs(streamed)
        else:
            check_given_back(answer, mishap, streamed, 1)
            assert talk.counts == (1, 0)


@MODES
@EACH
def test_nothing_helps(pair: Start, mishap: Mishap, streamed: bool) -> None:
    """The client gets the last error that a provider gave, as it came, or one of ours with the list of attempts."""
    with pair(PLANS["both"], BUDGET) as talk:
        talk.a.play(mishap.steps(streamed))
        talk.b.play(mishap.steps(streamed))
        answer = talk.ask(streamed)
        at_each = {"transient": (2, 2), "hop": (1, 1)}.get(mishap.kind, (1, 0))
        # No window is declared here, so none is larger.
        assert talk.counts == ((1, 0) if mishap.failure == "context_window" else at_each)
        times = sum(talk.counts)
        check_given_back(answer, mishap, streamed, times)
        assert talk.charged["calls"] == 1
        assert talk.line()["attempts"] == times


def check_given_back(answer: Answer, mishap: Mishap, streamed: bool, attempts: int) -> None:
    """An error the client can tell for one, whole, and of one attempt only."""
    assert trail_of(answer) == [mishap.failure] * attempts
    assert answer.whole
    if streamed and answer.header(b"content-type") == b"text/event-stream":
        found = [document for document in documents(answer) if "error" in document]
        assert len(found) == (0 if mishap.kind == "kept" else 1)
        return
    assert answer.status == mishap.status
    if mishap.kind == "kept" or b"json" not in (answer.header(b"content-type") or b""):
        return
    said: Any = json.loads(answer.body) if answer.header(b"content-encoding") is None else {"error": {"code": None}}
    if said["error"]["code"] == "all_targets_failed":
        assert [one["class"] for one in said["error"]["attempts"]] == [mishap.failure] * attempts
    if attempts > 1:
        assert answer.header(b"x-sidecar-target") == (b"b/n" if mishap.failure != "context_window" else b"a/m")


# --- unreachable providers ---


@MODES
def test_a_provider_that_refuses(pair: Start, streamed: bool) -> None:
    with Upstream() as gone:
        pass
    with pair(PLANS["both"], BUDGET, a_url=gone.url) as talk:
        talk.b.play([good(streamed)])
        answer = talk.ask(streamed)
        check_served(answer, streamed)
        assert trail_of(answer) == ["network", "network", "none"]
        assert talk.charged == {"calls": 1, "tokens": 7}


def test_what_reached_nobody_costs_nothing(pair: Start) -> None:
    with Upstream() as gone:
        pass
    with pair(PLANS["retry"], BUDGET, a_url=gone.url) as talk:
        answer = talk.ask()
        said = json.loads(answer.body)["error"]
        assert (answer.status, said["code"]) == (502, "all_targets_failed")
        assert said["message"] == "Every attempt failed: a/m (network), a/m (network)."
        assert [one["target"] for one in said["attempts"]] == ["a/m", "a/m"]
        assert talk.line()["outcome"] == "upstream_error"
        assert set(talk.charged.values()) == {0}


# --- waits ---


@pytest.mark.parametrize("wait", [*WAITS, None], ids=lambda wait: str(wait or "a date"))
def test_how_long_is_waited(pair: Start, wait: Wait | None) -> None:
    wait = dated() if wait is None else wait
    with pair("{retry: {max_attempts: 2, initial: 20ms, jitter: false}}") as talk:
        talk.a.play(refusal(b"429 Too Many", "rate_limit_exceeded", "requests", *wait.headers), GOOD)
        began = time.monotonic()
        check_served(talk.ask(), False)
        took = time.monotonic() - began
        gap = talk.a.requests[1].at - talk.a.requests[0].at
    assert gap >= (0.02 if wait.seconds is None else wait.seconds) - 0.01
    assert took < (wait.seconds or 0.02) + 5.0


def test_a_wait_that_is_too_long_is_told_and_not_slept(pair: Start) -> None:
    with pair("{retry: {max_attempts: 3, initial: 10ms, max: 1s}}") as talk:
        talk.a.play(refusal(b"429 Too Many", "rate_limit_exceeded", "requests", (b"retry-after", b"7200")))
        began = time.monotonic()
        answer = talk.ask()
        assert time.monotonic() - began < 5
        assert talk.counts == (1, 0)
        assert (answer.status, answer.header(b"retry-after")) == (429, b"7200")
        assert answer.body == error("rate_limit_exceeded", "requests")


def test_a_rate_limit_is_waited_for_before_another_target_is_asked(pair: Start) -> None:
    limited = refusal(b"429 Too Many", None, "requests", (b"retry-after-ms", b"100"))
    with pair("{fallback: {pace: 150ms}}") as talk:
        talk.a.play(limited, GOOD)
        assert trail_of(talk.ask()) == ["rate_limited", "none"]
        assert talk.counts == (2, 0)
    with pair("{fallback: {pace: off}}") as talk:
        talk.a.play(limited, GOOD)
        talk.b.play([GOOD])
        assert trail_of(talk.ask()) == ["rate_limited", "none"]
        assert talk.counts == (1, 1)


def test_a_limit_is_remembered_by_other_calls(pair: Start) -> None:
    with pair("{fallback: {pace: off}}") as talk:
        talk.a.play(refusal(b"429 Too Many", None, "requests", (b"retry-after", b"30")))
        for _ in range(5):
            check_served(talk.ask(), False)
        assert talk.counts == (1, 5)


def test_several_keys_take_turns(pair: Start) -> None:
    keys = ", api_keys: [sk-first-00000001, sk-second-0000002]"
    with pair("{fallback: {}}", about_a=keys, models="m: [a/m]") as talk:
        talk.a.play(refusal(b"429 Too Many", "insufficient_quota", "insufficient_quota"), GOOD)
        check_served(talk.ask(), False)
        shown = {seen.header(b"authorization") for seen in talk.a.requests}
    assert shown == {b"Bearer sk-first-00000001", b"Bearer sk-second-0000002"}
