"""A stream of the provider, as the client's API streams; the official client reads every frame of it."""

import anthropic
import pytest
from anthropic import beta_tool

from sidecar.wire.bridges.messages_chat import Bridge

from .messages_client import (
    ASKED,
    Document,
    Provider,
    accumulated,
    asking,
    buffered,
    call,
    chunk,
    completion,
    through,
    usage_chunk,
)

USAGE: Document = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
ROME = '{"city": "Rome"}'
TOOL: Document = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def piece(index: int | None, arguments: str = "", name: str | None = None, id_: str | None = None) -> Document:
    """A piece of a call; only its first has a name and an id."""
    head = {} if name is None else {"id": id_, "type": "function"}
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    return {"tool_calls": [head | {"function": function} | ({} if index is None else {"index": index})]}


def blocks(*deltas: Document, finish: str = "tool_calls") -> list[Document]:
    frames = through(Bridge(ASKED), [*map(chunk, deltas), chunk({}, finish)])
    content: list[Document] = accumulated(frames)["content"]
    return content


def test_the_frames_of_a_stream() -> None:
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo."}),
        chunk(piece(0, '{"city"', "weather", "call_1")),
        chunk(piece(0, ': "Rome"}')),
        chunk({}, "tool_calls"),
        usage_chunk(USAGE),
    ]
    nothing = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    }
    assert through(Bridge(ASKED), chunks) == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_chatcmpl-1",
                "type": "message",
                "role": "assistant",
                "model": "local-7b",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "stop_details": None,
                "usage": nothing,
            },
        },
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, {"type": "thinking_delta", "thinking": "Hm."}),
        delta(0, {"type": "signature_delta", "signature": "reasoning_content"}),
        stop(0),
        start(1, {"type": "text", "text": ""}),
        delta(1, {"type": "text_delta", "text": "Hel"}),
        delta(1, {"type": "text_delta", "text": "lo."}),
        {"type": "ping"},
        {"type": "ping"},
        stop(1),
        start(2, {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}),
        delta(2, {"type": "input_json_delta", "partial_json": ROME}),
        stop(2),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None},
            "usage": nothing | {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 4},
        },
        {"type": "message_stop"},
    ]


def start(index: int, block: Document) -> Document:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, said: Document) -> Document:
    return {"type": "content_block_delta", "index": index, "delta": said}


def stop(index: int) -> Document:
    return {"type": "content_block_stop", "index": index}


def test_each_text_leaves_with_its_own_frame() -> None:
    bridge = Bridge(ASKED)
    assert [frame["type"] for frame in bridge.feed(chunk({"content": "Hel"}))] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
    ]
    assert bridge.feed(chunk({"content": "lo"})) == [delta(0, {"type": "text_delta", "text": "lo"})]


def test_calls_in_alternating_pieces_are_one_after_the_other() -> None:
    said = blocks(
        piece(0, '{"city": ', "weather", "call_1"),
        piece(1, "{", "time", "call_2"),
        {"content": "Let me "},
        piece(0, '"Rome"}'),
        {"content": "look."},
        piece(1, "}"),
    )
    assert said == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}},
        {"type": "tool_use", "id": "call_2", "name": "time", "input": {}},
    ]


def test_thinking_between_texts_is_a_block_of_its_own() -> None:
    said = blocks({"content": "a"}, {"reasoning": "Hm."}, {"content": "b"}, finish="stop")
    assert [block.get("text") or block["thinking"] for block in said] == ["a", "Hm.", "b"]


@pytest.mark.parametrize(
    "deltas",
    [
        [piece(0, "{}", "f", "call_1"), piece(0, "{}", "g", "call_2")],
        [piece(None, "{}", "f", "call_1"), piece(None, "{", "g", "call_2"), piece(None, "}")],
        [piece(None, "{}", "f", "call_1"), piece(None, "{", "g", "call_2"), piece(None, "}", "", "call_2")],
        [piece(0, "{", "f", "call_1"), piece(0, "}", "f", "call_1"), piece(1, "{}", "g", "call_2")],
        [piece(0, "{", "f", "call_1"), piece(0, "}", "", "other"), piece(5, "{}", "g", "call_2")],
    ],
    ids=["one index for all", "no index", "no index, but ids", "name and id again", "a new id for each piece"],
)
def test_servers_that_number_their_calls_in_other_ways(deltas: list[Document]) -> None:
    assert [(block["id"], block["name"], block["input"]) for block in blocks(*deltas)] == [
        ("call_1", "f", {}),
        ("call_2", "g", {}),
    ]


def test_calls_without_index_and_id_are_told_by_their_names() -> None:
    said = blocks(piece(None, '{"a"', "f"), piece(None, ": 1}"), piece(None, "", "g"))
    assert [(block["name"], block["input"]) for block in said] == [("f", {"a": 1}), ("g", {})]


def test_arguments_that_break_off_do_not_look_like_a_call() -> None:
    message = accumulated(
        through(Bridge(ASKED), [chunk(piece(0, '{"city": "Ro', "weather", "call_1")), chunk({}, "length")])
    )
    assert message["stop_reason"] == "max_tokens"
    assert message["content"][0]["input"] == {"INVALID_JSON": '{"city": "Ro'}


def test_a_first_frame_without_choices_begins_nothing() -> None:
    bridge = Bridge(ASKED)
    assert bridge.feed(usage_chunk({}) | {"id": "", "model": "", "prompt_filter_results": []}) == []
    assert bridge.feed(chunk({"content": "a"}))[0]["message"]["id"] == "msg_chatcmpl-1"


def test_choices_but_the_first_are_left_out() -> None:
    said = through(Bridge(ASKED), [chunk({"content": "a"}), chunk({"content": "b"}, index=1), chunk({}, "stop")])
    assert accumulated(said)["content"] == [{"type": "text", "text": "a"}]


def test_the_stop_sequence_of_a_stream() -> None:
    said = through(Bridge(asking(stop_sequences=["END"])), [chunk({"content": "a"}, "stop", stop_reason="END")])
    assert accumulated(said)["stop_sequence"] == "END"


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [chunk({"content": "a"})],
        [chunk(piece(0, "{}", "f", "call_1")), usage_chunk(USAGE)],
    ],
)
def test_a_stream_that_breaks_off_does_not_look_whole(chunks: list[Document]) -> None:
    kinds = {frame["type"] for frame in through(Bridge(ASKED), chunks)}
    assert not kinds & {"message_delta", "message_stop", "input_json_delta"}


def test_an_error_in_the_stream_is_its_last_frame() -> None:
    broken = {"error": {"message": "Overloaded.", "code": 503}}
    said = through(Bridge(ASKED), [chunk({"content": "a"}), broken, chunk({"content": "b"}, "stop")])
    assert said[-1] == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded.", "code": 503},
    }
    assert [frame["type"] for frame in said].count("content_block_delta") == 1


def test_an_error_beside_a_last_choice() -> None:
    last = chunk({"content": "a"}, "error") | {"error": {"message": "Gone.", "code": 502}}
    assert [frame["type"] for frame in through(Bridge(ASKED), [last])] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "error",
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": [None, 5]},
        {"choices": [{}]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": 5, "reasoning_content": [], "tool_calls": {}}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [None, {}, {"function": 5}, {"index": "0"}]}}]},
        {"choices": [{"index": 0, "delta": {"content": {"type": "text"}}, "finish_reason": ["stop"]}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": [1]},
    ],
)
def test_odd_frames_break_nothing(odd: Document) -> None:
    said = through(Bridge(ASKED), [chunk({"content": "a"}), odd, chunk({}, "stop")])
    assert accumulated(said)["content"][0]["text"].startswith("a")


# --- the official client --------------------------------------------------------------------------------------


def test_the_client_gets_a_reply_and_a_stream_of_it() -> None:
    chunks = [chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"), usage_chunk(USAGE)]
    provider = Provider(completion({"content": "Hello."}, usage=USAGE), chunks)
    client = provider.client()
    whole = client.messages.create(**ASKED)
    with client.messages.stream(**ASKED) as stream:
        assert "".join(stream.text_stream) == "Hello."
        streamed = stream.get_final_message()
    assert streamed.to_dict() == whole.to_dict()
    assert [request.get("stream") for request in provider.asked] == [None, True]


def test_the_client_hears_its_tools_arguments() -> None:
    chunks = [chunk(piece(0, ROME[:5], "weather", "call_1")), chunk(piece(0, ROME[5:])), chunk({}, "tool_calls")]
    with Provider(chunks).client().messages.stream(**ASKED) as stream:
        heard = [event.snapshot for event in stream if event.type == "input_json"]
    assert heard == [{"city": "Rome"}]


def test_the_client_raises_what_the_provider_refuses() -> None:
    refusal = {"status": 429, "body": {"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit"}}}
    with pytest.raises(anthropic.RateLimitError, match=r"Slow down\."):
        Provider(refusal).client().messages.create(**ASKED)


def test_the_client_raises_an_error_in_the_stream() -> None:
    chunks = [chunk({"content": "Hel"}), {"error": {"message": "Gone.", "code": 500}}]
    with (
        pytest.raises(anthropic.APIStatusError, match=r"Gone\."),
        Provider(chunks).client().messages.stream(**ASKED) as stream,
    ):
        stream.until_done()


def test_the_client_raises_what_has_no_counterpart() -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"tools\[0\]\.type"):
        Provider().client().messages.create(**ASKED, tools=[{"type": "web_search_20250305", "name": "web_search"}])


@pytest.mark.parametrize("streamed", [False, True])
def test_the_clients_own_agent_loop(streamed: bool) -> None:
    @beta_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"Sunny in {city}"

    calls = [call("weather", ROME), call("weather", '{"city": "Oslo"}', "call_2")]
    wholes = [
        completion({"content": "I look.", "reasoning_content": "Hm.", "tool_calls": calls}, "tool_calls"),
        completion({"content": "Sunny in both."}),
    ]
    provider = Provider(*(map(as_stream, wholes) if streamed else wholes))
    runner = provider.client().beta.messages.tool_runner(**ASKED, tools=[weather], stream=streamed)
    assert runner.until_done().content[0].text == "Sunny in both."
    assert provider.asked[1]["messages"] == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": rewritten(calls)},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny in Rome"},
        {"role": "tool", "tool_call_id": "call_2", "content": "Sunny in Oslo"},
    ]


def as_stream(whole: Document) -> list[Document]:
    (choice,) = whole["choices"]
    message = choice["message"]
    texts = [{field: message[field]} for field in ("reasoning_content", "content") if message.get(field)]
    calls = [{"tool_calls": [made | {"index": at}]} for at, made in enumerate(message.get("tool_calls", ()))]
    return [*map(chunk, texts), *map(chunk, calls), chunk({}, choice["finish_reason"]), usage_chunk(whole["usage"])]


def rewritten(calls: list[Document]) -> list[Document]:
    """Arguments without the white space, which the client does not keep."""
    return [made | {"function": made["function"] | {"arguments": _compact(made)}} for made in calls]


def _compact(made: Document) -> str:
    arguments: str = made["function"]["arguments"]
    return arguments.replace(": ", ":")


def test_a_stream_comes_to_the_message_of_the_whole_reply() -> None:
    whole = completion({"content": "a", "tool_calls": [call("f", "{}")]}, "tool_calls", USAGE)
    assert accumulated(through(Bridge(ASKED), as_stream(whole))) == buffered(whole)
