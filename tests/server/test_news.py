"""What one process learns of a target, the others know: over Redis, and without it each for itself."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests.stores.ledgers import RedisServer, redis_server

from .talk import Answer, Sidecar, request, sidecar, wait_for
from .under import CHAT, JSON
from .upstream import Upstream, reply

GOOD = reply(b'{"choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}]}', b"200 OK", JSON)
POLICY = """version: 1
providers: {one: {base_url: "%s/v1"}, two: {base_url: "%s/v1"}}
models: {m: [one/a, two/b]}
resilience: {fallback: {}, breaker: {failures: 1, open_for: 60s}}
store: "redis://127.0.0.1:%d/0"
"""


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def second() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider


@pytest.fixture
def replica(upstream: Upstream, second: Upstream, redis: RedisServer, tmp_path: Path) -> Callable[[str], Any]:
    """A sidecar, one of several under the same policy."""

    def start(name: str) -> Any:
        (folder := tmp_path / name).mkdir()
        return sidecar(policy=POLICY % (upstream.url, second.url, redis.port), folder=folder)

    return start


def ask(running: Sidecar) -> Answer:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    return running.ask(request(b"POST", CHAT, body, JSON))


def out(running: Sidecar) -> list[str]:
    return [shown.target for shown in running.runtime.now.health.snapshot(time.monotonic())]


def listeners(redis: RedisServer) -> int:
    with Redis("127.0.0.1", redis.port) as client:
        return int(client.pubsub_numsub("sidecar:news")[0][1])


def test_a_target_that_one_replica_leaves_out_is_left_out_by_all(
    replica: Callable[[str], Any], upstream: Upstream, second: Upstream, redis: RedisServer
) -> None:
    upstream.play(reply(b"{}", b"500 Oops", JSON))
    second.play(GOOD)
    with replica("x") as x, replica("y") as y:
        wait_for(lambda: listeners(redis) == 2)
        assert ask(x).header(b"x-sidecar-target") == b"two/b"
        wait_for(lambda: out(y) == ["one/a"])
        before = len(upstream.requests)
        assert ask(y).header(b"x-sidecar-target") == b"two/b"
        assert len(upstream.requests) == before


def test_what_is_no_news_is_passed_over(
    replica: Callable[[str], Any], upstream: Upstream, second: Upstream, redis: RedisServer
) -> None:
    upstream.play(GOOD)
    with replica("x") as x, Redis("127.0.0.1", redis.port) as client:
        wait_for(lambda: listeners(redis) == 1)
        for odd in (
            b"\xff",
            b"{",
            b"[]",
            b'{"by": "z", "target": 1}',
            b'{"by": "z", "seconds": "x", "target": ["a", ""]}',
        ):
            client.publish("sidecar:news", odd)
        told = {"by": "z", "target": ["two/b", ""], "seconds": 5, "reason": "told"}
        client.publish("sidecar:news", json.dumps(told))
        wait_for(lambda: out(x) == ["two/b"])
        assert ask(x).header(b"x-sidecar-target") == b"one/a"


def test_without_the_store_each_knows_for_itself(upstream: Upstream, second: Upstream, tmp_path: Path) -> None:
    upstream.play(reply(b"{}", b"500 Oops", JSON))
    second.play(GOOD)
    with sidecar(policy=POLICY % (upstream.url, second.url, 1), folder=tmp_path) as running:
        assert ask(running).header(b"x-sidecar-target") == b"two/b"
        assert out(running) == ["one/a"]
