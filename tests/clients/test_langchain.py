"""LangChain's ChatOpenAI: invoke, stream, tools, and an agent that calls them, over chat and over Responses."""

from functools import reduce
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool

from tests.cases.upstream import Upstream
from tests.running import Process

from . import agent
from .conftest import MAX_BODY, clean
from .provider import CLIENT_KEY, CLIENTS, FORBIDDEN, PLACEHOLDER, QUIET

langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

ECHO = f"You said my key is {PLACEHOLDER}. I say {PLACEHOLDER}, no more."
ASK = f"my key is {CLIENTS}"
SEARCH = {
    "name": "search",
    "description": "Searches.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "n": {"type": "integer"}}},
}
ARGUMENTS = [{"query": f"Oslo {PLACEHOLDER}", "n": 0}, {"query": f"Lima {PLACEHOLDER}", "n": 1}]


@pytest.fixture
def model(sidecar: Process, provider: Upstream) -> Any:
    return langchain.ChatOpenAI(model="m", base_url=f"{sidecar.url}/v1", api_key=CLIENT_KEY, timeout=20)


def test_invoke(model: Any) -> None:
    assert model.invoke(ASK).content == ECHO


def test_stream(model: Any) -> None:
    chunks = [chunk.content for chunk in model.stream(ASK)]
    assert clean("".join(chunks)) == ECHO
    assert len(chunks) > 10


def test_tools(model: Any) -> None:
    reply = model.bind_tools([SEARCH]).invoke(ASK)
    assert [call["args"] for call in reply.tool_calls] == ARGUMENTS


def test_streamed_tools(model: Any) -> None:
    whole = None
    for chunk in model.bind_tools([SEARCH]).stream(ASK):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert [call["args"] for call in whole.tool_calls] == ARGUMENTS
    clean(str(whole))


class TestAgent:
    """The loop that every agent of LangChain comes down to, in both modes of the client."""

    @pytest.fixture(params=["chat", "responses", "responses bridged"])
    def mode(self, request: pytest.FixtureRequest, acting: Upstream) -> dict[str, Any]:
        side: Process = request.getfixturevalue("bridged" if "bridged" in request.param else "native")
        spoken = {"use_responses_api": request.param != "chat"}
        return {"base_url": f"{side.url}/v1", "api_key": CLIENT_KEY, "timeout": 20, "max_retries": 2, **spoken}

    @pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
    def test_tools(self, stream: bool, mode: dict[str, Any], acting: Upstream) -> None:
        desk = agent.Desk()
        model = langchain.ChatOpenAI(model="m", **mode).bind_tools(tools(desk))
        history: list[Any] = [SystemMessage(agent.SYSTEM), HumanMessage(agent.ASK)]
        while (said := ask(model, history, stream=stream)).tool_calls:
            assert not said.invalid_tool_calls
            history += [said, *(run(desk, call) for call in said.tool_calls)]
        agent.check_final(said.text)
        desk.check()
        agent.check_seen(acting.requests, turns=2)

    def test_blocked_request(self, mode: dict[str, Any], acting: Upstream) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            langchain.ChatOpenAI(model="m", **mode).invoke(f"about {FORBIDDEN}")
        assert caught.value.code == "guardrail_tripped"
        assert acting.requests == []

    def test_blocked_stream(self, mode: dict[str, Any], acting: Upstream) -> None:
        heard: list[str] = []
        with pytest.raises(openai.APIError) as caught:
            heard.extend(
                chunk.text for chunk in langchain.ChatOpenAI(model=f"says-{FORBIDDEN}", **mode).stream(agent.HI)
            )
        assert caught.value.code == "guardrail_tripped"
        assert "".join(heard) == agent.BLOCKED_AT
        assert len(acting.requests) == 1

    def test_stream_that_is_cut(self, mode: dict[str, Any], acting: Upstream) -> None:
        whole = reduce(add, langchain.ChatOpenAI(model=f"says-{QUIET}", **mode).stream(agent.HI))
        assert whole.text == agent.BLOCKED_AT
        assert "content_filter" in str(whole.response_metadata)
        assert len(acting.requests) == 1

    def test_too_large(self, mode: dict[str, Any], acting: Upstream) -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            langchain.ChatOpenAI(model="m", **mode).invoke("x" * (MAX_BODY + 1))
        assert caught.value.status_code == 413
        assert acting.requests == []

    def test_wrong_key(self, mode: dict[str, Any], acting: Upstream) -> None:
        with pytest.raises(openai.AuthenticationError):
            langchain.ChatOpenAI(model="m", **{**mode, "api_key": "pk-other"}).invoke("hi")
        assert acting.requests == []


def tools(desk: agent.Desk) -> list[StructuredTool]:
    def send_mail(to: str, text: str, copies: int) -> str:
        """Sends a mail."""
        return desk.use("send_mail", {"to": to, "text": text, "copies": copies})

    def take_note(to: str, text: str, copies: int) -> str:
        """Takes a note."""
        return desk.use("take_note", {"to": to, "text": text, "copies": copies})

    return [StructuredTool.from_function(send_mail), StructuredTool.from_function(take_note)]


def ask(model: Any, history: list[Any], *, stream: bool) -> AIMessage:
    said: AIMessage = reduce(add, model.stream(history)) if stream else model.invoke(history)
    clean(str(said))
    return said


def run(desk: agent.Desk, call: Any) -> ToolMessage:
    """The call's result, by the tool of its name."""
    tool = next(tool for tool in tools(desk) if tool.name == call["name"])
    result: ToolMessage = tool.invoke(call)
    return result
