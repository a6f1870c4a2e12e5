"""However a chat reply is cut into frames, the client builds the message of the whole reply; and what it sends back
is what the provider said."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire import jsondoc
from sidecar.wire.bridges.messages_chat import Bridge

from ..fuzz import examples
from .messages_client import (
    ASKED,
    Document,
    accumulated,
    asking,
    buffered,
    chunk,
    completion,
    plain,
    through,
    usage_chunk,
)

WORDS = st.text(max_size=20)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(WORDS, JSON_VALUES, max_size=4).map(json.dumps)
ARGUMENTS = OBJECTS | OBJECTS.map(lambda said: said[:-1]) | st.text(alphabet='{}[]":,1a\\ud8 ', max_size=12)
USAGES = st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 99), "completion_tokens": st.integers(0, 99)},
    optional={"prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": st.integers(0, 99)})},
)
FINISHES = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])


@st.composite
def messages(draw: st.DrawFn, arguments: st.SearchStrategy[str] = ARGUMENTS) -> Document:
    said: Document = {"content": draw(st.none() | WORDS)}
    for field in ("reasoning_content", "refusal"):
        if text := draw(WORDS):
            said[field] = text
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": f"tool_{at}", "arguments": draw(arguments)}}
        for at in range(draw(st.integers(0, 3)))
    ]
    return said | ({"tool_calls": calls} if calls else {})


def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def interleaved(draw: st.DrawFn, lanes: Sequence[Sequence[Document]]) -> list[Document]:
    """Frames of several lanes, each in its own order."""
    order = draw(st.permutations([at for at, lane in enumerate(lanes) for _ in lane]))
    left = [iter(lane) for lane in lanes]
    return [next(left[at]) for at in order]


def call_pieces(draw: st.DrawFn, index: int, made: Document) -> list[Document]:
    first, *rest = cut(draw, made["function"]["arguments"])
    head = made | {"index": index, "function": made["function"] | {"arguments": first}}
    more = [{"index": index, "function": {"arguments": piece}} for piece in rest]
    return [{"tool_calls": [piece]} for piece in (head, *more)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Document, list[Document]]:
    """A whole reply, and frames that say the same. Calls come in any order among themselves and with the texts."""
    message, finish, usage = draw(messages()), draw(FINISHES), draw(USAGES)
    texts = [
        {field: piece}
        for field in ("reasoning_content", "content", "refusal")
        if message.get(field)
        for piece in cut(draw, message[field])
    ]
    calls = [call_pieces(draw, at, made) for at, made in enumerate(message.get("tool_calls", ()))]
    begun = [{"role": "assistant", "content": ""}, *([calls[0].pop(0)] if calls else [])]
    # Calls are in the order in which they begin.
    begun += [{"tool_calls": lane.pop(0)["tool_calls"]} for lane in calls[1:]]
    deltas = [*begun, *interleaved(draw, [texts, *calls])]
    return completion(message, finish, usage), [*map(chunk, deltas), chunk({}, finish), usage_chunk(usage)]


@examples(200)
@given(streams())
def test_any_cut_of_a_reply_is_the_same_message(drawn: tuple[Document, list[Document]]) -> None:
    whole, chunks = drawn
    assert accumulated(through(Bridge(ASKED), chunks)) == buffered(whole)


@examples(200)
@given(streams())
def test_one_block_is_open_at_a_time(drawn: tuple[Document, list[Document]]) -> None:
    _, chunks = drawn
    kinds = [(frame["type"], frame.get("index")) for frame in through(Bridge(ASKED), chunks) if frame["type"] != "ping"]
    assert kinds[0] == ("message_start", None)
    assert kinds[-2:] == [("message_delta", None), ("message_stop", None)]
    now, is_open = 0, False
    for kind, index in kinds[1:-2]:
        assert index == now
        assert is_open == (kind != "content_block_start")
        is_open = kind != "content_block_stop"
        now += not is_open
    assert not is_open


@examples(200)
@given(messages(OBJECTS))
def test_a_history_of_calls_comes_back_as_it_was_said(message: Document) -> None:
    said = buffered(completion(message, "tool_calls"))
    asked = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": said["content"]}]
    answered = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in said["content"]
        if block["type"] == "tool_use"
    ]
    history = asking(messages=[*asked, {"role": "user", "content": [*answered, {"type": "text", "text": "Well?"}]}])
    _, back, *results, last = plain(Bridge(history).request())["messages"]
    assert (back.get("content") or "") == (message["content"] or "") + message.get("refusal", "")
    assert back.get("reasoning_content") == message.get("reasoning_content")
    assert list(map(parsed, back.get("tool_calls", ()))) == list(map(parsed, message.get("tool_calls", ())))
    assert [result["tool_call_id"] for result in results] == [made["id"] for made in message.get("tool_calls", ())]
    assert last == {"role": "user", "content": "Well?"}


def parsed(made: Document) -> Any:
    """A call, its arguments with their keys in order."""
    function = made["function"]
    pairs = json.loads(function["arguments"], object_pairs_hook=list)
    return made["id"], function["name"], pairs


@examples(200)
@given(JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_no_frame_breaks_the_stream(choice: Any, delta: Any, call: Any) -> None:
    odd = [
        {"choices": [choice]},
        {"choices": choice},
        chunk(delta),
        chunk({"tool_calls": [call]}),
        chunk({"content": call}),
    ]
    frames = through(Bridge(ASKED), [chunk({"content": "a"}), *odd, chunk({}, "stop")])
    assert frames[-1]["type"] == "message_stop"
    assert jsondoc.encode({"frames": frames})
