"""Tools and structured output together: what is denied, repaired and mended, the agent does not notice."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import reduce
from operator import add
from typing import Any, Literal

import anthropic
import pytest
import yaml
from langchain_core.messages import HumanMessage, ToolMessage
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, ConfigDict

from tests.cases.upstream import Upstream
from tests.running import Process, serve

from .clerk import ASK, CALLS_TOLD, COLOUR, FORM, PARAMETERS, REASON, RESULT, SAYS, TOOLS, clerk, rules, told
from .provider import CLIENT_KEY

agents = pytest.importorskip("agents", reason="openai-agents is not installed")
langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
# How the provider is spoken to: with the fields of each API; as chat with tools; as chat without tools or forms.
SPOKEN: dict[str, dict[str, Any]] = {
    "native": {},
    "chat": {"responses": "chat", "messages": "chat"},
    "text": {"responses": "chat", "messages": "chat", "tools": "prompt", "response_format": "none"},
}


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    colour: Literal["black", "white"]


@pytest.fixture(scope="module", params=SPOKEN)
def clerks(request: pytest.FixtureRequest, _upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(rules(_upstream.origin, **SPOKEN[request.param]), sort_keys=False), "utf-8")
    process = serve(folder / "output", policy=path)
    yield process
    process.stop()


@pytest.fixture
def acting(clerks: Process, _upstream: Upstream) -> Iterator[Upstream]:
    """The model says all it has to say, and each time it is told why it must say something else."""
    _upstream.play([clerk(*SAYS)])
    yield _upstream
    texts = told(_upstream.requests)
    assert len(texts) == sum(CALLS_TOLD)
    assert REASON in texts[1]
    assert "nom" in texts[2]
    assert RESULT in texts[3]
    assert "dark" in texts[4]


def look_up(called: list[str], arguments: dict[str, Any]) -> str:
    called.append(arguments["name"])
    return RESULT


@STREAM
def test_openai_chat(stream: bool, clerks: Process, acting: Upstream) -> None:
    called: list[str] = []
    tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in TOOLS]
    form = {"type": "json_schema", "json_schema": {"name": "cat", "schema": FORM, "strict": True}}
    messages: list[Any] = [{"role": "user", "content": ASK}]
    client = OpenAI(base_url=f"{clerks.url}/v1", api_key=CLIENT_KEY, timeout=20)
    asked: dict[str, Any] = {"model": "m", "tools": tools, "response_format": form}

    def ask() -> Any:
        if not stream:
            raw = client.chat.completions.with_raw_response.create(messages=messages, **asked)
            numbers.append(int(raw.headers["x-sidecar-calls"]))
            return raw.parse().choices[0].message
        with client.chat.completions.stream(messages=messages, **asked) as told:
            return told.get_final_completion().choices[0].message

    numbers: list[int] = []
    while (said := ask()).tool_calls:
        messages.append(said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        for call in said.tool_calls:
            content = look_up(called, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    assert json.loads(said.content) == {"colour": COLOUR}
    assert called == ["Ann"]
    assert stream or tuple(numbers) == CALLS_TOLD


@STREAM
def test_anthropic(stream: bool, clerks: Process, acting: Upstream) -> None:
    called: list[str] = []
    tools: list[Any] = [{"name": name, "input_schema": PARAMETERS} for name in TOOLS]
    messages: list[Any] = [{"role": "user", "content": ASK}]
    client = anthropic.Anthropic(base_url=clerks.url, api_key=CLIENT_KEY, timeout=20)
    form: Any = {"format": {"type": "json_schema", "schema": FORM}}
    asked: dict[str, Any] = {"model": "m", "max_tokens": 99, "tools": tools, "output_config": form}

    def ask() -> Any:
        if not stream:
            return client.messages.create(messages=messages, **asked)
        with client.messages.stream(messages=messages, **asked) as told:
            return told.get_final_message()

    while (said := ask()).stop_reason == "tool_use":
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": look_up(called, block.input)}
            for block in said.content
            if block.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
    assert json.loads(said.content[-1].text) == {"colour": COLOUR}
    assert called == ["Ann"]


class TestAgentsSdk:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    async def client(self, clerks: Process, acting: Upstream) -> AsyncIterator[AsyncOpenAI]:
        agents.set_tracing_disabled(True)
        async with AsyncOpenAI(base_url=f"{clerks.url}/v1", api_key=CLIENT_KEY, timeout=20) as client:
            yield client

    @STREAM
    @pytest.mark.parametrize("api", ["Responses", "ChatCompletions"])
    async def test_a_run(self, stream: bool, api: str, client: AsyncOpenAI) -> None:
        called: list[str] = []

        @agents.function_tool(name_override="look_up")
        def look(name: str) -> str:
            """Looks a person up."""
            return look_up(called, {"name": name})

        @agents.function_tool(name_override="run_shell")
        def shell(name: str) -> str:
            """Runs a command."""
            raise AssertionError(name)

        model = getattr(agents, f"OpenAI{api}Model")(model="m", openai_client=client)
        agent = agents.Agent(name="a", instructions="Be exact.", model=model, tools=[look, shell], output_type=Cat)
        if stream:
            done = agents.Runner.run_streamed(agent, ASK)
            async for _ in done.stream_events():
                pass
        else:
            done = await agents.Runner.run(agent, ASK)
        assert done.final_output == Cat(colour=COLOUR)
        assert called == ["Ann"]


# The client warns of its own parsed message when it puts a stream together.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@STREAM
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_langchain(stream: bool, responses: bool, clerks: Process, acting: Upstream) -> None:
    called: list[str] = []
    tools = [{"name": name, "description": name, "parameters": PARAMETERS} for name in TOOLS]
    model = langchain.ChatOpenAI(
        model="m", base_url=f"{clerks.url}/v1", api_key=CLIENT_KEY, timeout=20, use_responses_api=responses
    ).bind_tools(tools, response_format=Cat)
    history: list[Any] = [HumanMessage(ASK)]

    def ask() -> Any:
        return reduce(add, model.stream(history)) if stream else model.invoke(history)

    while (said := ask()).tool_calls:
        history.append(said)
        history += [ToolMessage(look_up(called, call["args"]), tool_call_id=call["id"]) for call in said.tool_calls]
    assert json.loads(said.text) == {"colour": COLOUR}
    assert called == ["Ann"]
