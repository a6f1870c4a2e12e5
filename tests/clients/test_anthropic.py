"""Anthropic's client: the tools loop, its own runner, streams and errors, natively and over chat completions."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.upstream import Upstream
from tests.running import Process

from . import agent
from .conftest import MAX_BODY, clean
from .model import EMAIL
from .provider import CLIENT_KEY, FORBIDDEN, PLACEHOLDER, QUIET

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")

Client = Any
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}, "copies": {"type": "integer"}},
}
TOOLS: list[Any] = [{"name": name, "description": f"Does {name}.", "input_schema": SCHEMA} for name in agent.TOOLS]
HI: dict[str, Any] = {"max_tokens": 99, "messages": [{"role": "user", "content": agent.HI}]}


@pytest.fixture
def client(sides: Process, acting: Upstream) -> Iterator[Client]:
    with anthropic.Anthropic(base_url=sides.url, api_key=CLIENT_KEY, timeout=20) as client:
        yield client


def ask(client: Client, stream: bool, **asked: Any) -> Any:
    """A message, whole or put together from its stream."""
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream_:
        clean("".join(map(repr, stream_)))
        return stream_.get_final_message()


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_tools(stream: bool, client: Client, acting: Upstream) -> None:
    desk = agent.Desk()
    asked: dict[str, Any] = {"model": "m", "max_tokens": 99, "system": agent.SYSTEM, "tools": TOOLS}
    messages: list[Any] = [{"role": "user", "content": agent.ASK}]
    while (said := ask(client, stream, messages=messages, **asked)).stop_reason == "tool_use":
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": desk.use(block.name, block.input)}
            for block in said.content
            if block.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
        clean(said.to_json())
    agent.check_final(said.content[-1].text)
    desk.check()
    agent.check_seen(acting.requests, turns=2)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_tool_runner(stream: bool, client: Client, acting: Upstream) -> None:
    desk = agent.Desk()
    runner = client.beta.messages.tool_runner(
        model="m",
        max_tokens=99,
        system=agent.SYSTEM,
        messages=[{"role": "user", "content": agent.ASK}],
        tools=runnable(desk),
        stream=stream,
    )
    agent.check_final(runner.until_done().content[-1].text)
    desk.check()
    assert [seen.json.get("thread", {}).get("type") for seen in acting.requests] in (
        ["create", "continue"],
        [None, None],
    )


def test_tool_runner_where_no_state_is_to_be_kept(stateless: Process, acting: Upstream) -> None:
    """Told that threads are not to be had, the runner sends the whole conversation each time."""
    desk = agent.Desk()
    with anthropic.Anthropic(base_url=stateless.url, api_key=CLIENT_KEY, timeout=20) as client:
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=99, messages=[{"role": "user", "content": agent.ASK}], tools=runnable(desk)
        )
        agent.check_final(runner.until_done().content[-1].text)
    desk.check()
    agent.check_seen(acting.requests, turns=2)
    assert all("thread" not in seen.json for seen in acting.requests)


def runnable(desk: agent.Desk) -> list[Any]:
    @anthropic.beta_tool
    def send_mail(to: str, text: str, copies: int) -> str:
        """Sends a mail."""
        return desk.use("send_mail", {"to": to, "text": text, "copies": copies})

    @anthropic.beta_tool
    def take_note(to: str, text: str, copies: int) -> str:
        """Takes a note."""
        return desk.use("take_note", {"to": to, "text": text, "copies": copies})

    return [send_mail, take_note]


def test_text_stream(client: Client, acting: Upstream) -> None:
    with client.messages.stream(model="m", **HI) as stream:
        pieces = list(stream.text_stream)
    assert "".join(pieces) == f"You told me: {agent.HI}. I mail {EMAIL} and say {PLACEHOLDER}, no more."
    assert len(pieces) > 10


def test_blocked_request(client: Client, acting: Upstream) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": FORBIDDEN}])
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert "guardrail" in caught.value.body["error"]["message"]
    assert acting.requests == []


def test_blocked_reply(client: Client, acting: Upstream) -> None:
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=f"says-{FORBIDDEN}", **HI)
    assert len(acting.requests) == 1


def test_blocked_stream(client: Client, acting: Upstream) -> None:
    heard: list[str] = []
    with (
        client.messages.stream(model=f"says-{FORBIDDEN}", **HI) as stream,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        heard.extend(stream.text_stream)
    assert "topics" in str(caught.value)
    assert FORBIDDEN not in str(caught.value)
    assert "".join(heard) == agent.BLOCKED_AT
    assert len(acting.requests) == 1


def test_stream_that_is_cut(client: Client, acting: Upstream) -> None:
    with client.messages.stream(model=f"says-{QUIET}", **HI) as stream:
        said = stream.get_final_message()
    assert said.stop_reason == "refusal"
    assert said.content[-1].text == agent.BLOCKED_AT
    assert len(acting.requests) == 1


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


@pytest.mark.parametrize(
    ("content", "kind"),
    [([IMAGE], anthropic.PermissionDeniedError), ("x" * (MAX_BODY + 1), anthropic.RequestTooLargeError)],
    ids=["403", "413"],
)
def test_refused(content: Any, kind: Any, client: Client, acting: Upstream) -> None:
    with pytest.raises(kind) as caught:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": content}])
    assert caught.value.body["type"] == "error"
    assert acting.requests == []


def test_wrong_key(sides: Process, acting: Upstream) -> None:
    with (
        anthropic.Anthropic(base_url=sides.url, api_key="pk-other") as client,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        client.messages.create(model="m", **HI)
    assert caught.value.body["error"]["type"] == "authentication_error"
    assert acting.requests == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (404, anthropic.NotFoundError),
        (429, anthropic.RateLimitError),
        (529, anthropic.InternalServerError),
    ],
)
def test_the_providers_own(status: int, kind: Any, client: Client, acting: Upstream) -> None:
    with pytest.raises(kind) as caught:
        client.with_options(max_retries=0).messages.create(model=f"status-{status}", **HI)
    assert caught.value.status_code == status
    assert caught.value.body["error"]["message"] == "no"
    assert len(acting.requests) == 1


def test_what_the_bridge_cannot_say(bridged: Process, acting: Upstream) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    with anthropic.Anthropic(base_url=bridged.url, api_key=CLIENT_KEY) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(model="m", tools=[search], **HI)
        assert "tools[0]" in caught.value.body["error"]["message"]
        with pytest.raises(anthropic.BadRequestError, match="counted"):
            client.messages.count_tokens(model="m", messages=HI["messages"])
    assert acting.requests == []
