"""Ollama's client against `/api/chat`: the tools loop, streams of lines, errors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.cases.upstream import Upstream
from tests.running import Process

from . import agent
from .conftest import MAX_BODY, clean
from .provider import CLIENT_KEY, FORBIDDEN, QUIET

ollama = pytest.importorskip("ollama", reason="ollama is not installed")

Client = Any
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}, "copies": {"type": "integer"}},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in agent.TOOLS]
HI = [{"role": "user", "content": agent.HI}]


def connect(url: str, key: str = CLIENT_KEY) -> Client:
    return ollama.Client(host=url, headers={"authorization": f"Bearer {key}"}, timeout=20, trust_env=False)


@pytest.fixture
def client(native: Process, acting: Upstream) -> Iterator[Client]:
    with connect(native.url) as client:
        yield client


def ask(client: Client, stream: bool, messages: list[Any]) -> Any:
    """A message, whole or put together from its lines."""
    if not stream:
        return client.chat("m", messages, tools=TOOLS).message
    return joined(client.chat("m", messages, tools=TOOLS, stream=True))


def joined(lines: Iterable[Any]) -> Any:
    content, calls = "", []
    for line in lines:
        content += line.message.content or ""
        calls += line.message.tool_calls or []
    assert line.done
    return ollama.Message(role="assistant", content=content, tool_calls=calls or None)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_tools(stream: bool, client: Client, acting: Upstream) -> None:
    desk = agent.Desk()
    messages: list[Any] = [{"role": "system", "content": agent.SYSTEM}, {"role": "user", "content": agent.ASK}]
    while (said := ask(client, stream, messages)).tool_calls:
        clean(said.model_dump_json())
        calls = [call.function for call in said.tool_calls]
        results = [desk.use(call.name, dict(call.arguments)) for call in calls]
        messages += [said, *({"role": "tool", "content": result} for result in results)]
    agent.check_final(said.content)
    desk.check()
    agent.check_seen(acting.requests, turns=2)


def test_generate(client: Client, acting: Upstream) -> None:
    """An endpoint that this provider does not have: its own error."""
    with pytest.raises(ollama.ResponseError) as caught:
        client.generate("m", agent.ASK)
    assert caught.value.status_code == 404
    assert acting.requests[0].target == "/api/generate"


def test_blocked_request(client: Client, acting: Upstream) -> None:
    with pytest.raises(ollama.ResponseError, match="topics") as caught:
        client.chat("m", [{"role": "user", "content": FORBIDDEN}])
    assert caught.value.status_code == 400
    assert acting.requests == []


def test_blocked_stream(client: Client, acting: Upstream) -> None:
    heard: list[str] = []
    with pytest.raises(ollama.ResponseError, match="topics"):
        heard.extend(line.message.content for line in client.chat(f"says-{FORBIDDEN}", HI, stream=True))
    assert "".join(heard) == agent.BLOCKED_AT
    assert len(acting.requests) == 1


def test_stream_that_is_cut(client: Client, acting: Upstream) -> None:
    lines = list(client.chat(f"says-{QUIET}", HI, stream=True))
    assert "".join(line.message.content for line in lines) == agent.BLOCKED_AT
    assert (lines[-1].done, lines[-1].done_reason) == (True, "content_filter")
    assert len(acting.requests) == 1


@pytest.mark.parametrize(
    ("message", "status"),
    [({"content": "?", "images": [b"\x89PNG"]}, 403), ({"content": "x" * (MAX_BODY + 1)}, 413)],
    ids=["403", "413"],
)
def test_refused(message: dict[str, Any], status: int, client: Client, acting: Upstream) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("m", [{"role": "user", **message}])
    assert caught.value.status_code == status
    assert "policy" in caught.value.error or "larger" in caught.value.error
    assert acting.requests == []


def test_wrong_key(native: Process, acting: Upstream) -> None:
    with connect(native.url, "pk-other") as client, pytest.raises(ollama.ResponseError) as caught:
        client.chat("m", HI)
    assert caught.value.status_code == 401
    assert acting.requests == []


@pytest.mark.parametrize("status", [400, 404, 500])
def test_the_providers_own(status: int, client: Client, acting: Upstream) -> None:
    with pytest.raises(ollama.ResponseError, match=f"no, provider_{status}") as caught:
        client.chat(f"status-{status}", HI)
    assert caught.value.status_code == status
