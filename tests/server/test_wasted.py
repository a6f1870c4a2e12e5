"""What attempts have used whose replies nobody gets is charged as well."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .talk import Answer, request, sidecar
from .test_budgets import Ledgered, used, whole
from .under import CHAT, JSON
from .upstream import CHUNKED, END, Upstream, chunk, reply

POLICY = """version: 1
providers: {one: {base_url: "%s/v1"}, two: {base_url: "%s/v1"}}
models: {m: [one/a, two/b]}
resilience: {fallback: {on: [transient, blank]}}
budgets: [{name: t, scope: tenant, calls: 10, tokens: 100000, cost: "1"}]
prices: {models: {one/a: {prompt: "1", completion: "10"}, two/b: {prompt: "2", completion: "20"}}}
"""


@pytest.fixture
def second() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider


def asked(tmp_path: Path, upstream: Upstream, second: Upstream, **more: Any) -> tuple[Answer, dict[str, int]]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}).encode()
    with sidecar(policy=POLICY % (upstream.url, second.url), folder=tmp_path) as running:
        answer = running.ask(request(b"POST", CHAT, body, JSON))
        return answer, {row.unit: row.spent for row in Ledgered(running, upstream).rows}


def test_a_blank_reply_is_charged_beside_the_one_that_came(
    upstream: Upstream, second: Upstream, tmp_path: Path
) -> None:
    blank = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
    document = {"id": "c", "object": "chat.completion", "choices": [blank], "usage": used(10, 500)}
    upstream.play([reply(json.dumps(document).encode(), b"200 OK", JSON)])
    second.play([whole("fine", used(12, 3))])
    answer, spent = asked(tmp_path, upstream, second)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "fine"
    # Each at its own target's price, for a million: 10 at 1 and 500 at 10, then 12 at 2 and 3 at 20.
    assert spent == {"calls": 1, "tokens": 525, "cost": (10 + 5000 + 24 + 60) * 1000}


def test_a_stream_that_says_nothing_but_its_usage(upstream: Upstream, second: Upstream, tmp_path: Path) -> None:
    begins = {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    tells = {"id": "c", "choices": [], "usage": used(10, 40)}
    fails = {"error": {"message": "no", "type": "server_error", "code": None}}
    frames = [chunk(b"data: %b\n\n" % json.dumps(one).encode()) for one in (begins, tells, fails)]
    upstream.play([CHUNKED, *frames, END])
    second.play([whole("fine", used(12, 3))])
    answer, spent = asked(tmp_path, upstream, second)
    assert answer.status == 200
    assert spent["tokens"] == 65
