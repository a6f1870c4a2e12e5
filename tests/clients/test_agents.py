"""The OpenAI Agents SDK in its default mode, which is Responses: tools, a handoff, streams."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.cases.upstream import Upstream
from tests.running import Process

from .agent import ASK, BLOCKED_AT, HI, SYSTEM, Desk, check_final, check_seen
from .conftest import MAX_BODY, clean
from .provider import CLIENT_KEY, FORBIDDEN, QUIET

agents = pytest.importorskip("agents", reason="openai-agents is not installed")

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(sides: Process, acting: Upstream) -> AsyncIterator[AsyncOpenAI]:
    agents.set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=f"{sides.url}/v1", api_key=CLIENT_KEY, timeout=20) as client:
        agents.set_default_openai_client(client, use_for_tracing=False)
        yield client


def tools(desk: Desk) -> list[Any]:
    @agents.function_tool
    def send_mail(to: str, text: str, copies: int) -> str:
        """Sends a mail."""
        return desk.use("send_mail", {"to": to, "text": text, "copies": copies})

    @agents.function_tool
    def take_note(to: str, text: str, copies: int) -> str:
        """Takes a note."""
        return desk.use("take_note", {"to": to, "text": text, "copies": copies})

    return [send_mail, take_note]


def front(desk: Desk) -> Any:
    """An agent that hands over to another one, which has the tools."""
    writer = agents.Agent(name="writer", instructions=SYSTEM, model="m", tools=tools(desk))
    return agents.Agent(name="front", instructions=SYSTEM, model="m", handoffs=[writer])


def alone(model: str) -> Any:
    return agents.Agent(name="alone", instructions=SYSTEM, model=model)


async def streamed(agent: Any, ask: str, heard: list[Any]) -> Any:
    """The run's result; each text delta is kept in `heard` as it comes."""
    run = agents.Runner.run_streamed(agent, ask)
    async for event in run.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            heard.append(event.data.delta)
    return run


async def test_tools_and_a_handoff(client: AsyncOpenAI, acting: Upstream) -> None:
    desk = Desk()
    done = await agents.Runner.run(front(desk), ASK)
    check_final(done.final_output)
    assert done.last_agent.name == "writer"
    clean(repr(done.raw_responses))
    desk.check()
    check_seen(acting.requests, turns=3)


async def test_streamed(client: AsyncOpenAI, acting: Upstream) -> None:
    desk, heard = Desk(), []
    done = await streamed(front(desk), ASK, heard)
    check_final(done.final_output)
    check_final("".join(heard))
    assert len(heard) > 10
    clean(repr(done.raw_responses))
    desk.check()
    check_seen(acting.requests, turns=3)


async def test_a_second_run_goes_on(client: AsyncOpenAI, acting: Upstream) -> None:
    """The history of a run, calls and results and reasoning included, is a valid request again."""
    desk = Desk()
    first = await agents.Runner.run(front(desk), ASK)
    again = [*first.to_input_list(), {"role": "user", "content": "once more"}]
    done = await agents.Runner.run(alone("m"), again)
    check_final(done.final_output)
    check_seen(acting.requests, turns=4)


async def test_a_blocked_request(client: AsyncOpenAI, acting: Upstream) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await agents.Runner.run(alone("m"), f"tell me about {FORBIDDEN}")
    assert caught.value.code == "guardrail_tripped"
    assert acting.requests == []


async def test_a_blocked_reply(client: AsyncOpenAI, acting: Upstream) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await agents.Runner.run(alone(f"says-{FORBIDDEN}"), HI)
    assert caught.value.code == "guardrail_tripped"
    assert len(acting.requests) == 1


async def test_a_blocked_stream(client: AsyncOpenAI, acting: Upstream) -> None:
    heard: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        await streamed(alone(f"says-{FORBIDDEN}"), HI, heard)
    assert caught.value.code == "guardrail_tripped"
    assert "".join(heard) == BLOCKED_AT
    assert len(acting.requests) == 1


async def test_a_stream_that_is_cut(client: AsyncOpenAI, acting: Upstream) -> None:
    """Ended with `incomplete`, which this client takes for a fault of the model."""
    heard: list[str] = []
    with pytest.raises(agents.ModelBehaviorError, match="content_filter"):
        await streamed(alone(f"says-{QUIET}"), HI, heard)
    assert "".join(heard) == BLOCKED_AT
    assert len(acting.requests) == 1


IMAGE = [
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}]}
]


@pytest.mark.parametrize(
    ("ask", "kind", "code"),
    [
        (IMAGE, openai.PermissionDeniedError, "uninspected"),
        ("x" * (MAX_BODY + 1), openai.APIStatusError, "payload_too_large"),
    ],
    ids=["403", "413"],
)
async def test_refused(
    ask: Any, kind: type[openai.APIStatusError], code: str, client: AsyncOpenAI, acting: Upstream
) -> None:
    with pytest.raises(kind) as caught:
        await agents.Runner.run(alone("m"), ask)
    assert caught.value.code == code
    assert acting.requests == []


async def test_a_wrong_key(sides: Process, acting: Upstream) -> None:
    async with AsyncOpenAI(base_url=f"{sides.url}/v1", api_key="pk-other") as client:
        agents.set_default_openai_client(client, use_for_tracing=False)
        with pytest.raises(openai.AuthenticationError):
            await agents.Runner.run(alone("m"), "hi")
    assert acting.requests == []


@pytest.mark.parametrize(
    ("status", "kind"), [(401, openai.AuthenticationError), (404, openai.NotFoundError), (429, openai.RateLimitError)]
)
async def test_the_providers_own(
    status: int, kind: type[openai.APIStatusError], client: AsyncOpenAI, acting: Upstream
) -> None:
    agents.set_default_openai_client(client.with_options(max_retries=0), use_for_tracing=False)
    with pytest.raises(kind) as caught:
        await agents.Runner.run(alone(f"status-{status}"), "hi")
    assert caught.value.code == f"provider_{status}"
    assert len(acting.requests) == 1


async def test_what_the_bridge_cannot_say(bridged: Process, acting: Upstream) -> None:
    async with AsyncOpenAI(base_url=f"{bridged.url}/v1", api_key=CLIENT_KEY) as client:
        agents.set_default_openai_client(client, use_for_tracing=False)
        with pytest.raises(openai.BadRequestError) as caught:
            await agents.Runner.run(alone("m"), "hi", previous_response_id="resp_0")
    assert caught.value.param == "previous_response_id"
    assert acting.requests == []
