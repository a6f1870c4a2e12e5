"""The official Python client: an unmodified agent talks, and no secret crosses in either direction."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from tests.cases.upstream import Upstream
from tests.running import Process

from .conftest import MAX_BODY, clean
from .provider import CLIENT_KEY, CLIENTS, FORBIDDEN, PLACEHOLDER, PROVIDER_KEY, PROVIDERS, QUIET

ECHO = f"You said my key is {PLACEHOLDER}. I say {PLACEHOLDER}, no more."
ASK: list[Any] = [{"role": "user", "content": f"my key is {CLIENTS}"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["query", "n"],
                "additionalProperties": False,
            },
        },
    }
]
ARGUMENTS = [{"query": f"Oslo {PLACEHOLDER}", "n": 0}, {"query": f"Lima {PLACEHOLDER}", "n": 1}]


@pytest.fixture
def client(sidecar: Process, provider: Upstream) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{sidecar.url}/v1", api_key=CLIENT_KEY, timeout=20) as client:
        yield client


def says(word: str) -> dict[str, Any]:
    """A question whose answer holds the word."""
    return {"model": f"says-{word}", "messages": [{"role": "user", "content": "hi"}]}


class TestBuffered:
    def test_prompt_and_reply(self, client: OpenAI, provider: Upstream) -> None:
        reply = client.chat.completions.create(model="m", messages=ASK)
        assert reply.choices[0].message.content == ECHO
        assert reply.usage is not None
        assert reply.usage.total_tokens == 12
        assert provider.requests[0].header("authorization") == f"Bearer {PROVIDER_KEY}"

    def test_every_choice(self, client: OpenAI, provider: Upstream) -> None:
        reply = client.chat.completions.create(model="m", messages=ASK, n=3)
        assert [choice.message.content for choice in reply.choices] == [ECHO] * 3

    def test_tools_there_and_back(self, client: OpenAI, provider: Upstream) -> None:
        first = client.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
        calls = first.choices[0].message.tool_calls or []
        assert [json.loads(call.function.arguments) for call in calls if call.type == "function"] == ARGUMENTS
        reply = client.chat.completions.create(model="m", messages=history(first), tools=TOOLS)
        assert clean(reply.choices[0].message.content or "").count(PLACEHOLDER) == 4
        told = provider.requests[1].json["messages"]
        assert [message["content"] for message in told[2:]] == [f"found {PLACEHOLDER}"] * 2
        assert json.loads(told[1]["tool_calls"][0]["function"]["arguments"])["again"] == PLACEHOLDER

    def test_parsed(self, client: OpenAI, provider: Upstream) -> None:
        class Person(BaseModel):
            name: str
            age: int

        reply = client.chat.completions.parse(model="m", messages=ASK, response_format=Person)
        assert reply.choices[0].message.parsed == Person(name=PLACEHOLDER, age=7)
        assert provider.requests[0].json["response_format"]["json_schema"]["name"] == "Person"

    def test_raw_response(self, client: OpenAI, provider: Upstream) -> None:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=ASK)
        assert raw.status_code == 200
        assert raw.headers["x-request-id"] == "req_provider"
        assert raw.headers["x-sidecar-policy"]
        assert "main/m" in raw.headers["x-sidecar-target"]
        assert clean(raw.text)
        assert raw.parse().choices[0].message.content == ECHO

    def test_streaming_response(self, client: OpenAI, provider: Upstream) -> None:
        with client.chat.completions.with_streaming_response.create(model="m", messages=ASK) as raw:
            assert ECHO in clean("".join(raw.iter_text()))

    def test_other_endpoints_pass(self, client: OpenAI, provider: Upstream) -> None:
        assert client.models.list().data == []
        assert provider.requests[0].target == "/v1/models"


def history(first: ChatCompletion) -> list[Any]:
    """The next turn: the calls with a secret in their arguments, and a secret in each result."""
    message = first.choices[0].message.model_dump(exclude_none=True)
    message["tool_calls"][0]["function"]["arguments"] = json.dumps({"again": CLIENTS})
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"found {CLIENTS}"} for call in message["tool_calls"]
    ]
    return [*ASK, message, *results]


def spoken(stream: Iterable[ChatCompletionChunk]) -> Iterator[str]:
    """The text of each chunk of a stream of one choice."""
    return (chunk.choices[0].delta.content or "" for chunk in stream)


class TestStreamed:
    def test_one_character_a_frame(self, client: OpenAI, provider: Upstream) -> None:
        deltas = list(spoken(client.chat.completions.create(model="m", messages=ASK, stream=True)))
        assert clean("".join(deltas)) == ECHO
        assert len([delta for delta in deltas if delta]) > 10

    def test_every_choice(self, client: OpenAI, provider: Upstream) -> None:
        texts = ["", "", ""]
        for chunk in client.chat.completions.create(model="m", messages=ASK, stream=True, n=3):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
        assert texts == [ECHO] * 3

    def test_usage(self, client: OpenAI, provider: Upstream) -> None:
        options: Any = {"include_usage": True}
        chunks = list(client.chat.completions.create(model="m", messages=ASK, stream=True, stream_options=options))
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 12

    def test_parallel_tool_calls(self, client: OpenAI, provider: Upstream) -> None:
        with client.chat.completions.stream(model="m", messages=ASK, tools=TOOLS) as stream:
            clean("".join(map(repr, stream)))
            final = stream.get_final_completion()
        calls = final.choices[0].message.tool_calls or []
        assert [call.function.parsed_arguments for call in calls] == ARGUMENTS
        assert [call.id for call in calls] == ["call_0", "call_1"]

    def test_interleaved_tool_calls(self, client: OpenAI, provider: Upstream) -> None:
        arguments = ["", ""]
        ask = client.chat.completions.create(model="interleaved", messages=ASK, tools=TOOLS, stream=True)
        for call in (call for chunk in ask for call in chunk.choices[0].delta.tool_calls or ()):
            arguments[call.index] += (call.function and call.function.arguments) or ""
        assert list(map(json.loads, arguments)) == ARGUMENTS

    def test_helper(self, client: OpenAI, provider: Upstream) -> None:
        with client.chat.completions.stream(model="m", messages=ASK) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
        assert text == ECHO

    def test_raw(self, client: OpenAI, provider: Upstream) -> None:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=ASK, stream=True)
        assert raw.headers["content-type"].startswith("text/event-stream")
        assert "".join(spoken(raw.parse())) == ECHO

    def test_lines(self, client: OpenAI, provider: Upstream) -> None:
        ask = client.chat.completions.with_streaming_response.create(model="m", messages=ASK, stream=True)
        with ask as raw:
            lines = [line for line in raw.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"


@pytest.mark.anyio
class TestAsync:
    async def test_many_at_once(self, sidecar: Process, provider: Upstream) -> None:
        async with AsyncOpenAI(base_url=f"{sidecar.url}/v1", api_key=CLIENT_KEY, timeout=20) as client:
            asks = [client.chat.completions.create(model=f"m{i}", messages=ASK) for i in range(20)]
            replies = await asyncio.gather(*asks)
        assert [reply.model for reply in replies] == [f"m{i}" for i in range(20)]
        assert {reply.choices[0].message.content for reply in replies} == {ECHO}

    async def test_streams_at_once(self, sidecar: Process, provider: Upstream) -> None:
        async with AsyncOpenAI(base_url=f"{sidecar.url}/v1", api_key=CLIENT_KEY, timeout=20) as client:
            assert await asyncio.gather(*(self.read(client) for _ in range(10))) == [ECHO] * 10

    async def read(self, client: AsyncOpenAI) -> str:
        stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


class TestErrors:
    """Each becomes the class that the client's users catch, with our code, and none is asked for again."""

    def test_blocked_request(self, client: OpenAI, provider: Upstream) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"about {FORBIDDEN}"}])
        assert caught.value.code == "guardrail_tripped"
        assert caught.value.param
        assert "topics" in caught.value.message
        assert FORBIDDEN not in str(caught.value.response.text)
        assert provider.requests == []

    def test_blocked_reply(self, client: OpenAI, provider: Upstream) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**says(FORBIDDEN))
        assert caught.value.code == "guardrail_tripped"
        assert FORBIDDEN not in str(caught.value.response.text)
        assert len(provider.requests) == 1

    def test_blocked_stream(self, client: OpenAI, provider: Upstream) -> None:
        heard: list[str] = []
        with pytest.raises(openai.APIError) as caught:
            heard.extend(spoken(client.chat.completions.create(**says(FORBIDDEN), stream=True)))
        assert caught.value.code == "guardrail_tripped"
        assert "".join(heard) == "You said hi. I say "
        assert len(provider.requests) == 1

    def test_blocked_stream_by_finish_reason(self, client: OpenAI, provider: Upstream) -> None:
        chunks = list(client.chat.completions.create(**says(QUIET), stream=True))
        assert chunks[-1].choices[0].finish_reason == "content_filter"
        assert "".join(spoken(chunks)) == "You said hi. I say "
        assert len(provider.requests) == 1

    def test_wrong_key(self, sidecar: Process, provider: Upstream) -> None:
        with (
            OpenAI(base_url=f"{sidecar.url}/v1", api_key="pk-other") as client,
            pytest.raises(openai.AuthenticationError) as caught,
        ):
            client.chat.completions.create(model="m", messages=ASK)
        assert caught.value.code == "unauthorized"
        assert "pk-other" not in caught.value.response.text
        assert provider.requests == []

    def test_too_large(self, client: OpenAI, provider: Upstream) -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x" * (MAX_BODY + 1)}])
        assert (caught.value.status_code, caught.value.code) == (413, "payload_too_large")
        assert provider.requests == []

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, openai.BadRequestError),
            (401, openai.AuthenticationError),
            (404, openai.NotFoundError),
            (429, openai.RateLimitError),
            (500, openai.InternalServerError),
            (529, openai.InternalServerError),
        ],
    )
    @pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
    def test_the_providers_own(
        self, status: int, kind: type[openai.APIStatusError], stream: bool, client: OpenAI, provider: Upstream
    ) -> None:
        once: Any = client.with_options(max_retries=0).chat.completions
        with pytest.raises(kind) as caught:
            once.create(model=f"status-{status}", messages=ASK, stream=stream)
        assert (caught.value.code, caught.value.param) == (f"provider_{status}", "messages")
        assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        assert len(provider.requests) == 1

    def test_the_client_retries_what_it_always_did(self, client: OpenAI, provider: Upstream) -> None:
        with pytest.raises(openai.RateLimitError):
            client.with_options(max_retries=2).chat.completions.create(model="status-429", messages=ASK)
        assert len(provider.requests) == 3

    def test_dead_provider(self, client: OpenAI, provider: Upstream) -> None:
        with pytest.raises(openai.InternalServerError) as caught:
            client.with_options(max_retries=0).chat.completions.create(model="dead", messages=ASK)
        assert caught.value.status_code == 502
        assert len(provider.requests) == 1

    def test_too_many_at_once(self, narrow: Process, provider: Upstream) -> None:
        with OpenAI(base_url=f"{narrow.url}/v1", api_key=CLIENT_KEY, max_retries=0) as client:

            def ask(_: int) -> tuple[int, str | None, bool]:
                try:
                    client.chat.completions.create(model="slow", messages=ASK)
                except openai.APIStatusError as error:
                    return error.status_code, error.code, "retry-after" in error.response.headers
                return 200, None, False

            with ThreadPoolExecutor(3) as pool:
                told = sorted(pool.map(ask, range(3)), key=str)
        refused = (503, "overloaded", True)
        assert told == [(200, None, False), refused, refused]
        assert len(provider.requests) == 1


def test_nothing_of_it_is_in_the_log(client: OpenAI, sidecar: Process, provider: Upstream) -> None:
    client.chat.completions.create(model="m", messages=ASK)
    assert clean(sidecar.said())
    assert CLIENT_KEY not in sidecar.said()
    assert PROVIDERS not in sidecar.said()
