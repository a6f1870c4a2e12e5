"""The official client, the OpenAI Agents SDK and LangChain speak Responses with a provider that speaks only chat."""

import json
from collections.abc import AsyncIterator, Callable
from functools import reduce
from operator import add
from typing import Any

import httpx2
import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import APIError, AsyncOpenAI, BadRequestError, OpenAI, RateLimitError
from pydantic import BaseModel, SecretStr

from sidecar.errors import InvalidRequest
from sidecar.wire import jsondoc, sse
from sidecar.wire.bridges.responses_chat import Bridge
from sidecar.wire.errors import openai_error

from .responses_talk import Document, call_chunk, chunk, completion, function, tail

Provider = Callable[[Document], Any]
"""Takes a chat request; gives a completion, the frames of a stream, or a status with an error body."""


def bridged(provider: Provider) -> Callable[[httpx2.Request], httpx2.Response]:
    """A server that speaks Responses in front of a provider that does not."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/v1/responses"
        bridge = Bridge(jsondoc.decode(request.content))
        try:
            said = provider(jsondoc.decode(jsondoc.encode(bridge.request())))
        except InvalidRequest as refusal:
            return httpx2.Response(refusal.status, content=openai_error(refusal))
        match said:
            case (int(status), error):
                return httpx2.Response(status, content=jsondoc.encode(bridge.error(error, status)))
            case list():
                frames = [frame for document in said for frame in bridge.feed(document)] + list(bridge.finish())
                body = b"".join(sse.render(jsondoc.encode(frame), frame["type"].encode()) for frame in frames)
                return httpx2.Response(200, content=body, headers={"content-type": "text/event-stream"})
            case _:
                return httpx2.Response(200, content=jsondoc.encode(bridge.reply(said)))

    return answer


def client(provider: Provider) -> OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(bridged(provider)))
    return OpenAI(api_key="k", base_url="http://host/v1", http_client=http, max_retries=0)


def streamed(message: Document, reason: str) -> list[Document]:
    """A completion's message as a stream, with texts in single characters and calls that take turns."""
    texts = [chunk({kind: letter}) for kind in ("reasoning_content", "content") for letter in message.get(kind) or ""]
    calls = list(enumerate(message.get("tool_calls", ())))
    begun = [call_chunk(at, call["id"], call["function"]["name"]) for at, call in calls]
    width = max((len(call["function"]["arguments"]) for _, call in calls), default=0)
    turns = [(at, call["function"]["arguments"][place : place + 1]) for place in range(width) for at, call in calls]
    return [*texts, *begun, *(call_chunk(at, arguments=letter) for at, letter in turns), *tail(reason)]


def says(asked: Document, message: Document) -> Any:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return streamed(message, reason) if asked.get("stream") else completion(message, reason)


# --- the official client -------------------------------------------------------------------------------------


class Place(BaseModel):
    city: str


def test_a_reply_and_a_stream() -> None:
    with client(lambda asked: says(asked, {"reasoning_content": "Hm.", "content": "Hi."})) as speaking:
        reply = speaking.responses.create(model="m", input="hello")
        with speaking.responses.stream(model="m", input="hello") as stream:
            deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert reply.output_text == final.output_text == "".join(deltas) == "Hi."
    assert reply.usage == final.usage
    assert reply.usage is not None
    assert reply.usage.input_tokens_details.cached_tokens == 3


def test_parsed_output() -> None:
    def provider(asked: Document) -> Any:
        assert asked["response_format"]["json_schema"]["strict"] is True
        return says(asked, {"content": '{"city":"Rome"}'})

    with client(provider) as speaking:
        reply = speaking.responses.parse(model="m", input="where?", text_format=Place)
        with speaking.responses.stream(model="m", input="where?", text_format=Place) as stream:
            final = stream.get_final_response()
    assert reply.output_parsed == final.output_parsed == Place(city="Rome")


def test_parallel_calls_and_their_results() -> None:
    calls = [function("look", '{"at":"Rome"}'), function("look", '{"at":"Oslo"}', "call_2")]

    def provider(asked: Document) -> Any:
        results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        return says(asked, {"content": f"It is {' and '.join(results)}."} if results else {"tool_calls": calls})

    tools: Any = [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}]
    history: list[Any] = [{"role": "user", "content": "weather?"}]
    with client(provider) as speaking:
        for _ in range(2):
            with speaking.responses.stream(model="m", input=history, tools=tools) as stream:
                reply = stream.get_final_response()
            history += [item.to_dict() for item in reply.output]
            for call in reply.output:
                if call.type == "function_call":
                    output = f"warm in {json.loads(call.arguments)['at']}"
                    history.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    assert reply.output_text == "It is warm in Rome and warm in Oslo."


def test_a_refused_field_is_named() -> None:
    with client(lambda asked: None) as speaking, pytest.raises(BadRequestError) as refusal:
        speaking.responses.create(model="m", input="hello", previous_response_id="resp_1")
    assert (refusal.value.param, refusal.value.code) == ("previous_response_id", "invalid_request")


def test_the_providers_error_is_the_clients() -> None:
    error = {"error": {"message": "slow down", "type": "limit", "param": None, "code": "too_fast"}}
    with client(lambda asked: (429, error)) as speaking, pytest.raises(RateLimitError) as refusal:
        speaking.responses.create(model="m", input="hello")
    assert (refusal.value.code, refusal.value.type) == ("too_fast", "limit")


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([chunk({"content": "Hi"}), {"error": {"message": "overheated"}}], "overheated"),
        ([{"error": {"message": "overheated"}}], "overheated"),
        ([chunk({"content": "Hi"})], "The provider's stream ended before its reply was complete."),
    ],
)
def test_a_stream_that_fails_is_raised(frames: list[Document], message: str) -> None:
    with client(lambda asked: frames) as speaking, pytest.raises(APIError) as failure:
        list(speaking.responses.create(model="m", input="hello", stream=True))
    assert failure.value.message == message


# --- the Agents SDK ------------------------------------------------------------------------------------------


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def desk(asked: Document) -> Any:
    """A model that hands over to the one who knows the weather, who looks at two places and tells."""
    offered = [tool["function"]["name"] for tool in asked.get("tools", ())]
    results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
    if "transfer_to_forecaster" in offered:
        return says(
            asked, {"content": "One moment.", "tool_calls": [function("transfer_to_forecaster", "{}", "call_0")]}
        )
    if len(results) == 1:
        calls = [function("look", '{"place":"Rome"}'), function("look", '{"place":"Oslo"}', "call_2")]
        return says(asked, {"reasoning_content": "I look.", "tool_calls": calls})
    return says(asked, {"content": " ".join(results[1:])})


def system(asked: Document) -> str:
    text: str = asked["messages"][0]["content"]
    return text


@pytest.fixture
async def model() -> AsyncIterator[tuple[OpenAIResponsesModel, list[Document]]]:
    """The SDK's default model, and what the provider was asked."""
    seen: list[Document] = []

    def provider(asked: Document) -> Any:
        seen.append(asked)
        return desk(asked)

    set_tracing_disabled(True)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(bridged(provider)))
    async with AsyncOpenAI(api_key="k", base_url="http://host/v1", http_client=http, max_retries=0) as speaking:
        yield OpenAIResponsesModel(model="m", openai_client=speaking), seen


def front(model: OpenAIResponsesModel) -> Agent[Any]:
    @function_tool
    def look(place: str) -> str:
        """Looks at the weather of a place."""
        return f"{place} is fine."

    settings = ModelSettings(parallel_tool_calls=True, store=False, response_include=["reasoning.encrypted_content"])
    forecaster = Agent[Any](
        name="forecaster", instructions="You know the weather.", model=model, tools=[look], model_settings=settings
    )
    return Agent[Any](name="front", instructions="You hand over.", model=model, handoffs=[forecaster])


@pytest.mark.anyio
async def test_an_agent_hands_over_and_uses_tools(model: tuple[OpenAIResponsesModel, list[Document]]) -> None:
    speaking, seen = model
    result = await Runner.run(front(speaking), "weather?")
    assert result.final_output == "Rome is fine. Oslo is fine."
    assert result.last_agent.name == "forecaster"
    assert [system(asked) for asked in seen] == ["You hand over.", *["You know the weather."] * 2]
    assert [message["role"] for message in seen[-1]["messages"]] == [
        *("system", "user", "assistant", "tool"),
        *("assistant", "tool", "tool"),
    ]
    assert result.context_wrapper.usage.input_tokens == 3 * 7


@pytest.mark.anyio
async def test_an_agent_streams(model: tuple[OpenAIResponsesModel, list[Document]]) -> None:
    speaking, seen = model
    result = Runner.run_streamed(front(speaking), "weather?")
    deltas = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert result.final_output == "Rome is fine. Oslo is fine."
    assert "".join(deltas) == f"One moment.{result.final_output}"
    assert all(asked["stream"] for asked in seen)
    assert len(seen) == 3


# --- LangChain -----------------------------------------------------------------------------------------------


@tool
def look(place: str) -> str:
    """Looks at the weather of a place."""
    return f"{place} is fine."


@pytest.mark.parametrize("version", ["v0", "responses/v1", "v1"])
def test_langchain_in_its_responses_mode(version: Any) -> None:
    def provider(asked: Document) -> Any:
        results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        calls = [function("look", '{"place":"Rome"}')]
        return says(
            asked, {"reasoning_content": "Hm.", **({"content": results[0]} if results else {"tool_calls": calls})}
        )

    with httpx2.Client(transport=httpx2.MockTransport(bridged(provider))) as http:
        model = ChatOpenAI(
            model="m",
            api_key=SecretStr("k"),
            base_url="http://host/v1",
            http_client=http,
            use_responses_api=True,
            output_version=version,
            reasoning={"summary": "auto"},
        ).bind_tools([look])
        asked: list[BaseMessage] = [HumanMessage("weather?")]
        called = reduce(add, model.stream(asked))
        assert isinstance(called, AIMessage)
        answer = model.invoke([*asked, called, look.invoke(called.tool_calls[0])])
    assert answer.text == "Rome is fine."
