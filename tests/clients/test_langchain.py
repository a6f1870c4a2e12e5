"""LangChain's ChatOpenAI: invoke, stream, tools."""

from typing import Any

import pytest

from tests.cases.upstream import Upstream
from tests.running import Process

from .conftest import clean
from .provider import CLIENT_KEY, CLIENTS, PLACEHOLDER

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
