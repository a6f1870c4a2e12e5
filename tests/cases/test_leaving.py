"""A client that leaves takes its request to the provider with it."""

import time
from typing import Any

import pytest

from tests.running import Process, shared, wait_for

from .catalogue import load
from .client import Client, ask, wire
from .conftest import Sidecars
from .policy import setup
from .upstream import Upstream
from .variants import frames

GONE_SECONDS = load()["G09"]["expect"]["upstream"]["connection_closed_within_ms"] / 1000 if load() else 2.0
KEY = [
    {
        "action": "redact",
        "rule": {"name": "key", "regex": "zk-[A-Za-z0-9]{16}", "replace": "[MASK]"},
        "on": ["reply"],
    }
]
OK = {"status": 200, "headers": {"content-type": "application/json"}, "json": {"choices": []}}
SILENT_MS = 20_000


@pytest.fixture(params=[[], KEY], ids=["inert", "guarded"])
def sidecar(request: pytest.FixtureRequest, sidecars: Sidecars, provider: Upstream) -> Process:
    base = f"{provider.origin}/v1"
    policy = setup(request.param, base).policy
    return sidecars.get(policy, upstream=None if policy else base)


def request(**more: Any) -> dict[str, Any]:
    document = {"model": "m1", "messages": [{"role": "user", "content": "hi"}], **more}
    return {"method": "POST", "path": "/v1/chat/completions", "json": document}


def leaves(provider: Upstream) -> bool:
    """Whether the provider's connection was closed in time."""
    return wait_for(lambda: bool(provider.left_at), GONE_SECONDS)


def test_streamed(sidecar: Process, provider: Upstream) -> None:
    case = load().get("G09") or shared("cases", "open.jsonl")
    provider.play(case["setup"]["upstream"])
    with Client(sidecar.url) as client:
        client.send(*wire(case["input"]["request"]))
        reply = client.read(time.monotonic(), until=lambda body: b"data:" in body)
    assert b'"a"' in reply.raw
    assert leaves(provider)


def test_buffered(sidecar: Process, provider: Upstream) -> None:
    provider.play([{**OK, "delay_ms": SILENT_MS}])
    with Client(sidecar.url) as client:
        client.send(*wire(request()))
        time.sleep(0.3)
    assert leaves(provider)


def test_before_the_head(sidecar: Process, provider: Upstream) -> None:
    provider.play([{**OK, "delay_ms": SILENT_MS}])
    with Client(sidecar.url) as client:
        client.send(*wire(request(stream=True)))
        assert wait_for(lambda: bool(provider.requests), 2)
    assert leaves(provider)


def test_two_hundred_times(sidecar: Process, provider: Upstream) -> None:
    first, *_ = frames([{"content": "a"}], "stop")
    stream = {"status": 200, "steps": [first, {"sleep_ms": SILENT_MS}]}
    provider.play([stream] * 200 + [OK])
    before = provider.open_connections
    for _ in range(200):
        with Client(sidecar.url) as client:
            client.send(*wire(request(stream=True)))
            client.read(time.monotonic(), until=lambda body: b"data:" in body)
    assert ask(sidecar.url, request()).status == 200
    assert wait_for(lambda: provider.open_connections <= before + 1, GONE_SECONDS)
    assert len(provider.requests) == 201
