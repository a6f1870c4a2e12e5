"""Streams that fail before and after their first content, and clients and time that end before a call does."""

import json
import time

import pytest

from .mishaps import (
    BEGUN,
    DONE,
    GOOD,
    GOOD_STREAM,
    START,
    error,
    event,
    refusal,
)
from .pair import BUDGET, PLANS, Start, check_served, documents, text_of, trail_of
from .talk import request, wait_for
from .under import CHAT, JSON
from .upstream import CHUNKED, END, FIN, RST, Step, chunk

# --- after the first content ---

_HEL = BEGUN + chunk(event({"content": "hel"}))
CUTS: dict[str, tuple[list[Step], str]] = {
    "reset": ([_HEL, 0.05, RST], "network"),
    "closed": ([_HEL, 0.05, FIN], "network"),
    "bad chunks": ([_HEL + b"zz\r\n"], "network"),
    "an early end": ([_HEL + END], "network"),
    "silence": ([_HEL, 5.0], "timeout"),
    "an error": ([_HEL + chunk(b"data: " + error() + b"\n\n") + END], "server_error"),
}


@pytest.mark.parametrize("how", CUTS)
def test_after_content_nothing_is_asked_again(pair: Start, how: str) -> None:
    steps, failure = CUTS[how]
    with pair(PLANS["both"], BUDGET) as talk:
        talk.a.play(steps)
        answer = talk.ask(streamed=True)
        assert talk.counts == (1, 0)
        assert (answer.status, answer.whole, text_of(answer, True)) == (200, True, "hel")
        assert [("error" in document) for document in documents(answer)] == [False, False, True]
        assert DONE not in answer.body
        line = talk.line()
        assert [one["class"] for one in line["trail"]] == [failure]
        assert line["outcome"] in ("upstream_error", "timeout")
        assert talk.charged["calls"] == 1


def test_a_target_that_breaks_its_streams_is_left_out(pair: Start) -> None:
    with pair("{fallback: {allowed_fails: 2}}") as talk:
        talk.a.play(CUTS["an early end"][0])
        talk.b.play([GOOD_STREAM])
        for _ in range(3):
            talk.ask(streamed=True)
        check_served(talk.ask(streamed=True), True)
        assert talk.counts == (3, 1)


# --- streams before their content ---


def test_the_start_leaves_with_the_content_and_as_it_came(pair: Start) -> None:
    with pair(PLANS["both"]) as talk, talk.running.connect() as client:
        talk.a.play([CHUNKED, 0.1, chunk(b": wait\n\n"), 0.1, chunk(START), 0.1, GOOD_STREAM.partition(b"\r\n\r\n")[2]])
        document = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
        client.send(request(b"POST", CHAT, document, JSON))
        answer = client.answer(b"POST")
        assert answer.body.startswith(b": wait\n\n" + START + START)
        assert answer.header(b"x-sidecar-trail") is None
        assert trail_of(answer) == []


def test_what_is_held_is_bounded(pair: Start) -> None:
    comment = chunk(b": " + b"x" * 65_000 + b"\n\n")
    with pair(PLANS["both"]) as talk:
        talk.a.play([CHUNKED + comment * 40, 0.2, RST])
        answer = talk.ask(streamed=True)
        assert len(answer.body) > 40 * 65_000
        assert talk.counts == (1, 0)
        assert [("error" in document) for document in documents(answer)] == [True]


def test_a_whole_reply_that_trickles_in_is_one_attempt(pair: Start) -> None:
    with pair(PLANS["both"]) as talk:
        talk.a.play([step for at in range(0, len(GOOD), 60) for step in (GOOD[at : at + 60], 0.02)])
        check_served(talk.ask(), False)
        assert talk.counts == (1, 0)


# --- leaving, and running out of time ---


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        ("{retry: {max_attempts: 3, initial: 10s, jitter: false}}", [refusal(b"500 Oops")]),
        ("{retry: {max_attempts: 3}}", [BEGUN, 5.0]),
        ("{retry: {max_attempts: 3}}", [5.0]),
    ],
    ids=["in a wait", "in a held start", "before the headers"],
)
def test_a_client_that_leaves_ends_it(pair: Start, plan: str, steps: list[Step]) -> None:
    with pair(plan, BUDGET, times="first_byte: 9s") as talk:
        talk.a.play(steps)
        with talk.running.connect() as client:
            document = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
            client.send(request(b"POST", CHAT, document, JSON))
            wait_for(lambda: len(talk.a.requests) == 1)
            time.sleep(0.1)
        began = time.monotonic()
        assert talk.line()["outcome"] == "client_gone"
        assert time.monotonic() - began < 4
        assert talk.running.runtime.active == 0
        time.sleep(0.3)
        assert talk.counts == (1, 0)
        assert talk.charged["calls"] == 1


def test_a_deadline_covers_attempts_and_waits(pair: Start) -> None:
    with pair("{retry: {max_attempts: 20, initial: 50ms, factor: 1, jitter: false, deadline: 400ms}}") as talk:
        talk.a.play([0.1, refusal(b"500 Oops")])
        began = time.monotonic()
        answer = talk.ask()
        assert time.monotonic() - began < 4
        assert 2 <= len(talk.a.requests) <= 4
        assert answer.status == 500


def test_a_deadline_in_the_middle_of_an_attempt(pair: Start) -> None:
    with pair("{retry: {max_attempts: 3, deadline: 150ms}}") as talk:
        talk.a.play([5.0])
        answer = talk.ask()
        said = json.loads(answer.body)["error"]
        assert (answer.status, said["code"]) == (504, "upstream_timeout")
        assert "deadline limit of 0.15 s" in said["message"]
        assert talk.line()["phase"] == "deadline"
        assert talk.counts == (1, 0)


def test_when_the_exchange_is_over_nothing_more_is_begun(pair: Start) -> None:
    times = "first_byte: 9s, total: 1s"
    with pair("{retry: {max_attempts: 5, initial: 10ms}}", times=times, models="m: [b/n]") as talk:
        talk.b.play([5.0])
        answer = talk.ask()
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (504, "upstream_timeout")
        assert talk.counts == (0, 1)
        assert talk.line()["phase"] == "total"


def test_a_time_limit_that_passed_does_not_count_while_waiting(pair: Start) -> None:
    """The limits of the attempt before must not end the wait for the next one."""
    with pair("{retry: {max_attempts: 2, initial: 700ms, jitter: false}}") as talk:
        talk.a.play([0.1, FIN], GOOD)
        check_served(talk.ask(), False)
        assert talk.counts == (2, 0)
