"""Every case of the file that this release covers, and its variants."""

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.running import Process, shared, wait_for

from .catalogue import BY_HAND, LATER, NOT_YET, Play, load, plays
from .client import Reply, ask, ask_and_leave
from .conftest import Sidecars
from .expect import Outcome, check, flat
from .policy import ADMIN, setup
from .upstream import Upstream
from .variants import NAMED, ByHand

# The log line of an exchange is written after the client has its last byte.
LINE_SECONDS = 2.0
# Between a client that leaves and its next request.
GAP_MS = 500
BUDGETS = "/sidecar/v1/budgets"
PLAYS = list(plays())
NAMED_TESTS = [how.test for titles in NAMED.values() for how in titles.values() if isinstance(how, ByHand)]


@pytest.mark.parametrize("play", [pytest.param(play, id=play.name) for play in PLAYS])
def test_case(play: Play, sidecars: Sidecars, provider: Upstream) -> None:
    case = play.case
    base = f"{provider.origin}/v1"
    wanted = setup(case["setup"]["policy"], base)
    sidecar = sidecars.get(wanted.policy, env=wanted.env, upstream=None if wanted.policy else base)
    provider.play(case["setup"]["upstream"])
    check(case["expect"], converse(sidecar, provider, case), LATER.get(case["id"], {}))


def converse(sidecar: Process, provider: Upstream, case: Mapping[str, Any]) -> Outcome:
    """Sends what the case says and gathers all that came of it."""
    said, memory = len(sidecar.said()), sidecar.rss_mb
    requests, replies = send(sidecar.url, case["input"])
    wait_for(lambda: len(lines(sidecar.said()[said:])) >= len(requests), LINE_SECONDS)
    output = sidecar.said()[said:]
    growth = sidecar.peak_mb - memory
    outcome = Outcome(requests, replies, case["setup"]["upstream"], provider.requests, output, growth, lines(output))
    if any(reply.aborted for reply in replies):
        outcome.left_at.extend(provider.left_at)
    if any(intent["action"] == "budget" for intent in case["setup"]["policy"]):
        assert wait_for(lambda: not any(float(row["reserved"]) for row in counted(sidecar.url)), LINE_SECONDS)
        outcome.rows.extend(counted(sidecar.url))
    return outcome


def counted(url: str) -> list[dict[str, Any]]:
    """What budgets say of themselves."""
    reply = ask(url, {"method": "GET", "path": BUDGETS, "headers": {"authorization": f"Bearer {ADMIN}"}})
    rows: list[dict[str, Any]] = reply.json["budgets"]
    return rows


def one(url: str, step: Mapping[str, Any]) -> Reply:
    if "client_aborts_after_events" in step:
        return ask_and_leave(url, step["request"], step["client_aborts_after_events"])
    return ask(url, step)


def in_turn(url: str, steps: Sequence[Mapping[str, Any]], gap_ms: float = 0) -> list[Reply]:
    replies = []
    for step in steps:
        time.sleep(gap_ms / 1000 if replies else 0)
        replies.append(one(url, step))
    return replies


def send(url: str, given: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], list[Reply]]:
    match given:
        case {"parallel": int(count), "request": request}:
            return send(url, {"parallel": [request] * count})
        case {"parallel": requests}:
            with ThreadPoolExecutor(len(requests)) as pool:
                return requests, list(pool.map(lambda request: ask(url, request), requests))
        case {"sequence": requests} | {"repeat": requests}:
            return requests, in_turn(url, requests, given.get("gap_ms", 0))
        case {"client_aborts_after_events": _, "request": _, "then": then}:
            return [given["request"], then], in_turn(url, [given, then], GAP_MS)
        case {"method": _}:
            return [given], [ask(url, given)]
    raise ValueError(f"no way to send {sorted(given)}")


def lines(output: str) -> list[dict[str, Any]]:
    """The lines of exchanges in an output."""
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]
    return [line for line in found if "outcome" in line]


class TestAccount:
    """Nothing in the file is left out without a reason that can be read."""

    def test_every_case_runs_or_waits(self) -> None:
        shared("cases", "open.jsonl")
        played = {play.case["id"] for play in PLAYS}
        assert played | set(NOT_YET) | set(BY_HAND) == set(load())
        assert played & set(NOT_YET) == set()

    def test_every_variant_is_written_out(self) -> None:
        shared("cases", "open.jsonl")
        told = {
            (name, title)
            for name, case in load().items()
            if name not in NOT_YET
            for title in case["expect"].get("variants", ())
        }
        assert told == {(name, title) for name, titles in NAMED.items() for title in titles}

    def test_every_expectation_that_waits_exists(self) -> None:
        shared("cases", "open.jsonl")
        for name, keys in LATER.items():
            assert set(keys) <= {key for key, _ in flat(load()[name]["expect"])}

    @pytest.mark.parametrize("test", [*BY_HAND.values(), *NAMED_TESTS])
    def test_what_is_played_by_hand_exists(self, test: str) -> None:
        file, _, name = test.partition("::")
        assert f"def {name}(" in Path(__file__).with_name(file).read_text("utf-8")

    def test_an_unknown_expectation_fails(self) -> None:
        with pytest.raises(AssertionError, match=r"unknown expectation client\.mood"):
            check({"client": {"mood": "good"}}, Outcome((), (), (), ()), {})
