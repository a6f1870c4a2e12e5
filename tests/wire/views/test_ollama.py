"""The view of Ollama's chat: what is asked, what is replied, and streams of it."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama import ChatResponse

from sidecar.wire import jsondoc
from sidecar.wire.conversation import Called, Choice, Format, Result, Tool, gathered
from sidecar.wire.ndjson import NDJSON
from sidecar.wire.views import ollama, view_of
from tests.wire.fuzz import examples

from .anything import OBJECTS, ask_all, hear_all, mutated

Document = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}
COUNTERS = {"total_duration": 9, "prompt_eval_count": 3, "eval_count": 4}


def call(name: str, **arguments: Any) -> Document:
    return {"function": {"name": name, "arguments": arguments}}


def line(**message: Any) -> Document:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "2026-01-02T03:04:05.678Z", "message": said, "done": False}


def last(reason: str | None = "stop", **message: Any) -> Document:
    told = {} if reason is None else {"done_reason": reason}
    return line(**message) | {"done": True, **told, **COUNTERS}


def gather(*lines: Document) -> Document | None:
    gatherer = ollama.gather()
    for one in lines:
        gatherer.feed(one)
    return gatherer.reply


def asked(**request: Any) -> ollama.Asked:
    return ollama.asked({"model": "m", "messages": [], **request})


# --- the request -------------------------------------------------------------------------------------------------


def test_it_stands_in_the_table() -> None:
    assert view_of("ollama_chat") is ollama
    assert view_of("ollama_generate") is None


def test_tools() -> None:
    view = asked(tools=[WEATHER, {"type": "function"}, 7], tool_choice="required", n=3)
    assert view.tools == [Tool("weather", "Tells it.", SCHEMA, WEATHER)]
    assert (view.choice, view.parallel, view.choices) == (Choice(), True, 1)


@pytest.mark.parametrize(
    ("given_", "form"),
    [(None, None), ("", None), ("json", Format("", None)), (SCHEMA, Format("", SCHEMA)), ([], None), (True, None)],
)
def test_form_of_the_reply(given_: Any, form: Format | None) -> None:
    assert asked(format=given_).format == form


def test_a_form_is_set_and_taken_away() -> None:
    request: Document = {"messages": []}
    view = ollama.asked(request)
    view.set_format(Format("ticket", SCHEMA))
    assert request["format"] == SCHEMA
    view.set_format(Format("ticket", None))
    assert request["format"] == "json"
    view.set_format(None)
    assert request == {"messages": []}


def test_history() -> None:
    """By the names of tools, as results are told; by ids, where the server gives them."""
    messages: list[Document] = [
        {"role": "assistant", "tool_calls": [call("f", a=1), call("g"), call("g", b=2)]},
        {"role": "tool", "tool_name": "g", "content": "one"},
        {"role": "tool", "tool_name": "g", "content": "two"},
        {"role": "tool", "content": "three"},
        {"role": "tool", "tool_name": "g", "content": "four"},
        {"role": "assistant", "tool_calls": [call("h"), {"id": "c5", **call("h")}]},
        {"role": "tool", "tool_call_id": "c5", "tool_name": "h", "content": "five"},
    ]
    told = asked(messages=messages).history
    assert [each for each in told if isinstance(each, Called)] == [
        Called("call_0", "f", '{"a":1}'),
        Called("call_1", "g", "{}", position=1),
        Called("call_2", "g", '{"b":2}', position=2),
        Called("call_3", "h", "{}"),
        Called("c5", "h", "{}", position=1),
    ]
    results = [each for each in told if isinstance(each, Result)]
    assert [(each.id, each.name, each.texts[0].text) for each in results] == [
        ("call_1", "g", "one"),
        ("call_2", "g", "two"),
        ("call_0", "f", "three"),
        ("", "", "four"),
        ("c5", "h", "five"),
    ]
    results[0].texts[0].replace("1")
    assert messages[1]["content"] == "1"


def test_what_is_said_in_it() -> None:
    messages: list[Document] = [{"role": "user", "content": "hi"}]
    view = asked(messages=messages)
    view.instruct("Be kind.")
    view.instruct("Be brief.")
    view.say("Go on.")
    assert view.system == "Be kind.\n\nBe brief."
    assert messages == [
        {"role": "system", "content": "Be kind.\n\nBe brief."},
        {"role": "user", "content": "hi\n\nGo on."},
    ]


def test_a_reply_and_its_results_go_back() -> None:
    messages: list[Document] = []
    calls = [call("f", a=1), {"id": "c1", **call("g")}, call("h")]
    reply = last(thinking="Hm.", tool_calls=calls)
    view = asked(messages=messages)
    view.answer(reply, {"call_0": "one", "c1": "two"})
    assert messages == [
        {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": calls},
        {"role": "tool", "tool_name": "f", "content": "one"},
        {"role": "tool", "tool_name": "g", "tool_call_id": "c1", "content": "two"},
    ]
    view.say("Go on.")
    messages[0]["tool_calls"].clear()
    assert reply == last(thinking="Hm.", tool_calls=calls)


# --- the reply ---------------------------------------------------------------------------------------------------


def test_what_a_reply_says() -> None:
    reply = last(content="Hello.", thinking="Hm.") | {"logprobs": [{"token": "Hello."}]}
    view = ollama.replied(reply)
    assert (view.texts, view.calls, view.refused(0)) == ({0: "Hello."}, [], False)
    view.say(1, "Bye.")
    view.say(0, "Bye.")
    assert reply == last(content="Bye.", thinking="Hm.") | {"logprobs": None}
    nothing: Document = {}
    ollama.replied(nothing).say(0, "Bye.")
    assert (nothing, ollama.replied(nothing).texts) == ({}, {})


@pytest.mark.parametrize(
    ("reason", "ending"),
    [("stop", "stop"), (None, "stop"), ("length", "length"), ("content_filter", "filtered"), ("load", "other")],
)
def test_how_it_ended(reason: str | None, ending: str) -> None:
    assert ollama.replied(last(reason)).ending(0) == ending


def test_it_has_not_ended_before_it_says_so() -> None:
    assert ollama.replied(line()).ending(0) == "other"


def test_calls_of_a_reply() -> None:
    view = ollama.replied(last(tool_calls=[call("f", a=1.5), {"id": "c1", "function": {"name": "g"}}]))
    assert view.calls == [Called("call_0", "f", '{"a":1.5}'), Called("c1", "g", "{}", position=1)]
    assert view.ending(0) == "calls"


def test_calls_are_dropped() -> None:
    reply = last(content="Let me see.", tool_calls=[call("f"), call("g")])
    view = ollama.replied(reply)
    view.drop(view.calls[:1], "Not f.")
    assert reply == last(content="Let me see.\n\nNot f.", tool_calls=[call("g")])
    view.drop(view.calls, "")
    assert reply == last(content="Let me see.\n\nNot f.")
    assert view.ending(0) == "stop"


def test_an_ending_that_tells_of_calls_goes_with_them() -> None:
    reply = last("tool_calls", tool_calls=[call("f")])
    view = ollama.replied(reply)
    view.drop(view.calls, "No.")
    assert reply == last(content="No.")


# --- streams -----------------------------------------------------------------------------------------------------

STREAM = [
    line(thinking="H"),
    line(thinking="m."),
    line(content="Let me "),
    line(content="see."),
    line(tool_calls=[call("f", a=1)]),
    line(tool_calls=[call("g")]),
    last(),
]
WHOLE = last(thinking="Hm.", content="Let me see.", tool_calls=[call("f", a=1), call("g")])


def test_a_stream_becomes_a_reply() -> None:
    assert gather(*STREAM) == WHOLE
    assert gather(*({**one, "logprobs": [{"token": "x"}]} for one in STREAM[2:4]), last()) == last(
        content="Let me see."
    ) | {"logprobs": [{"token": "x"}, {"token": "x"}]}


def test_a_stream_as_bytes() -> None:
    raw = b"".join(NDJSON.render(jsondoc.encode(one), None) for one in STREAM)
    assert gathered(ollama.gather(), NDJSON.cutter().feed(raw), jsondoc.readable) == WHOLE


def test_what_is_no_whole_reply() -> None:
    assert gather() is None
    assert gather(*STREAM[:-1]) is None
    assert gather(*STREAM[:2], {"error": "out of memory"}) is None
    assert gather({"error": "out of memory"}, last()) is None


def test_lines() -> None:
    told = ollama.frames(WHOLE)
    assert told == [
        line(thinking="Hm."),
        line(content="Let me see."),
        line(tool_calls=[call("f", a=1), call("g")]),
        last(),
    ]
    assert [ChatResponse.model_validate(one).message.content for one in told] == ["", "Let me see.", "", ""]


MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.text(max_size=5)},
    optional={
        "thinking": st.text(max_size=5),
        "tool_calls": st.lists(st.builds(call, st.text(max_size=5), a=st.integers()), max_size=3),
        "images": st.none() | st.lists(st.text(max_size=5), max_size=2),
    },
)


@examples(100)
@given(MESSAGES, st.fixed_dictionaries({}, optional={"logprobs": st.lists(st.just({"token": "x"}), max_size=2)}))
def test_every_whole_reply_is_gathered_from_its_lines(message: Document, more: Document) -> None:
    reply = last() | more | {"message": message}
    assert gather(*ollama.frames(reply)) == reply


# --- anything ----------------------------------------------------------------------------------------------------

REQUESTS: list[Document] = [
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call("f", a=1), call("g"), {"id": "c", **call("h")}]},
            {"role": "tool", "tool_name": "f", "content": "one"},
            {"role": "tool", "content": "two"},
            {"role": "tool", "tool_call_id": "c", "content": "three"},
        ],
        "tools": [WEATHER],
        "format": SCHEMA,
    }
]
REPLIES = [WHOLE, last(content="x"), last("tool_calls", tool_calls=[call("f")])]


@examples(150)
@given(OBJECTS | mutated(REQUESTS), st.sampled_from(REPLIES) | mutated(REPLIES))
def test_any_request(request: Document, reply: Document) -> None:
    ask_all(ollama, request, reply)


@examples(150)
@given(OBJECTS | mutated(REPLIES))
def test_any_reply(reply: Document) -> None:
    hear_all(ollama, reply)


@examples(150)
@given(st.lists(OBJECTS | mutated(STREAM), max_size=6))
def test_any_stream(lines: list[Document]) -> None:
    before = deepcopy(lines)
    reply = gather(*lines)
    assert lines == before
    if reply is not None:
        hear_all(ollama, reply)
