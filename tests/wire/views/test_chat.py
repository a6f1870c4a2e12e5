"""The view of chat completions: what is asked, what is replied, and streams of it, against the official client."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from sidecar.wire import jsondoc
from sidecar.wire.conversation import Asked, Called, Choice, Format, Result, Tool, gathered
from sidecar.wire.stream import SSE
from sidecar.wire.views import chat, view_of
from tests.wire.fuzz import examples

from .anything import OBJECTS, ask_all, hear_all, mutated

Document = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}
SHELL = {"type": "custom", "custom": {"name": "shell", "description": "Runs it."}}


def call(name: str, arguments: str = "{}", ident: str = "") -> Document:
    return {"id": ident or f"id-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(*messages: Document, reason: str = "stop", **more: Any) -> Document:
    choices = [
        {"index": at, "message": {"role": "assistant", "content": None} | message, "finish_reason": reason}
        for at, message in enumerate(messages)
    ]
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": choices, **more}


def chunk(delta: Document, reason: str | None = None, index: int = 0, **more: Any) -> Document:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return head | {"choices": [{"index": index, "delta": delta, "finish_reason": reason}]} | more


def piece(index: int | None, arguments: str, **more: Any) -> Document:
    """A delta with a piece of one call."""
    name = {"name": more.pop("name")} if "name" in more else {}
    place = {} if index is None else {"index": index}
    return {"tool_calls": [{**place, **more, "function": {**name, "arguments": arguments}}]}


def gather(*frames: Document) -> Document | None:
    gatherer = chat.gather()
    for frame in frames:
        gatherer.feed(frame)
    return gatherer.reply


def message_of(*frames: Document) -> Document:
    reply = gather(*frames, chunk({}, "stop"))
    assert reply is not None
    message: Document = reply["choices"][0]["message"]
    return message


def asked(**request: Any) -> Asked:
    return chat.asked({"model": "m", "messages": [], **request})


# --- the request -------------------------------------------------------------------------------------------------


def test_it_stands_in_the_table() -> None:
    assert view_of("chat") is chat
    assert view_of("embeddings") is None


def test_tools() -> None:
    hosted = {"type": "web_search_preview"}
    assert asked(tools=[WEATHER, hosted, SHELL, {"type": "function"}, 7]).tools == [
        Tool("weather", "Tells it.", SCHEMA, WEATHER),
        Tool("shell", "Runs it.", None, SHELL),
    ]
    older = WEATHER["function"]
    assert asked(functions=[older]).tools == [Tool("weather", "Tells it.", SCHEMA, older)]


@pytest.mark.parametrize(
    ("request_", "choice"),
    [
        ({}, Choice()),
        ({"tool_choice": "auto"}, Choice()),
        ({"tool_choice": "none"}, Choice("none")),
        ({"tool_choice": "required"}, Choice("required")),
        ({"tool_choice": "any"}, Choice("required")),
        ({"tool_choice": "weather"}, Choice()),
        ({"tool_choice": {"type": "function", "function": {"name": "weather"}}}, Choice("required", "weather")),
        ({"tool_choice": {"type": "custom", "custom": {"name": "shell"}}}, Choice("required", "shell")),
        ({"tool_choice": {"type": "function", "function": {}}}, Choice()),
        ({"function_call": "none"}, Choice("none")),
        ({"function_call": {"name": "weather"}}, Choice("required", "weather")),
        ({"tool_choice": "none", "function_call": {"name": "weather"}}, Choice("none")),
    ],
)
def test_tool_choice(request_: Document, choice: Choice) -> None:
    assert asked(**request_).choice == choice


def allowed(mode: str, *names: str) -> Document:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_tools_that_are_not_allowed_are_not_there() -> None:
    tools = [WEATHER, SHELL]
    one = asked(tools=tools, tool_choice=allowed("required", "weather"))
    assert ([tool.name for tool in one.tools], one.choice) == (["weather"], Choice("required", "weather"))
    several = asked(tools=tools, tool_choice=allowed("required", "weather", "shell"))
    assert ([tool.name for tool in several.tools], several.choice) == (["weather", "shell"], Choice("required"))
    may = asked(tools=tools, tool_choice=allowed("auto", "weather"))
    assert ([tool.name for tool in may.tools], may.choice) == (["weather"], Choice())
    assert len(asked(tools=tools, tool_choice={"type": "allowed_tools"}).tools) == 2


def test_parallel_calls_and_choices() -> None:
    assert asked().parallel
    assert asked(parallel_tool_calls=None).parallel
    assert not asked(parallel_tool_calls=False).parallel
    assert not asked(functions=[WEATHER["function"]]).parallel
    assert [asked(n=n).choices for n in (1, 3, 0, -1, True, "2", None)] == [1, 3, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("given_", "form"),
    [
        (None, None),
        ("json", None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, Format("", None)),
        ({"type": "json_object", "schema": SCHEMA}, Format("", SCHEMA)),
        ({"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA}}, Format("t", SCHEMA, False)),
        ({"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA, "strict": True}}, Format("t", SCHEMA)),
        ({"type": "json_schema", "json_schema": {"name": "t"}}, Format("t", None, False)),
        ({"type": "json_schema", "json_schema": {"name": "t", "schema": "none"}}, None),
        ({"type": "json_schema"}, None),
    ],
)
def test_form_of_the_reply(given_: Any, form: Format | None) -> None:
    assert asked(response_format=given_).format == form


def test_a_form_is_set_and_taken_away() -> None:
    request: Document = {"messages": []}
    view = chat.asked(request)
    for form in (Format("ticket", SCHEMA), Format("ticket", SCHEMA, False), Format("", None)):
        view.set_format(form)
        assert view.format == form
    view.set_format(Format("Ein Zettel! " * 9, SCHEMA))
    name = request["response_format"]["json_schema"]["name"]
    assert (name[:12], len(name)) == ("Ein_Zettel__", 64)
    view.set_format(Format("", SCHEMA))
    assert request["response_format"]["json_schema"]["name"] == "reply"
    view.set_format(None)
    assert request == {"messages": []}


def test_history() -> None:
    parts = [{"type": "text", "text": "sun"}, {"type": "image_url", "image_url": {"url": "x"}}, {"text": "rain"}]
    messages: list[Document] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call("weather", '{"a":1}', "c1"), "x", {"id": "c0", "function": {}}]},
        {"role": "tool", "tool_call_id": "c1", "content": parts},
        {"role": "tool", "tool_call_id": "c9", "content": "lost"},
        {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "shell", "input": "ls"}}]},
        {"role": "assistant", "function_call": {"name": "older", "arguments": "{}"}},
        {"role": "function", "name": "older", "content": "yes"},
    ]
    told = asked(messages=messages).history
    assert [each for each in told if isinstance(each, Called)] == [
        Called("c1", "weather", '{"a":1}'),
        Called("call_1", "shell", "ls", free=True),
        Called("call_2", "older", "{}"),
    ]
    results = [each for each in told if isinstance(each, Result)]
    assert [(each.id, each.name, [part.text for part in each.texts]) for each in results] == [
        ("c1", "weather", ["sun", "rain"]),
        ("c9", "", ["lost"]),
        ("call_2", "older", ["yes"]),
    ]
    results[0].texts[1].replace("snow")
    results[1].texts[0].replace("found")
    assert parts[2] == {"text": "snow"}
    assert messages[3]["content"] == "found"


def test_system_text() -> None:
    messages: list[Document] = [
        {"role": "system", "content": "One."},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}, {"type": "text", "text": "Three."}]},
    ]
    assert asked(messages=messages).system == "One.\n\nTwo.\n\nThree."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [{"role": "system", "content": "Do."}]),
        ([{"role": "system", "content": "One."}], [{"role": "system", "content": "One.\n\nDo."}]),
        ([{"role": "developer", "content": None}], [{"role": "developer", "content": "Do."}]),
        (
            [
                {"role": "system", "content": "One."},
                {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
            ],
            [
                {"role": "system", "content": "One."},
                {"role": "developer", "content": [{"type": "text", "text": "Two."}, {"type": "text", "text": "Do."}]},
            ],
        ),
        # What a client says later is its own: it is not ours to add to.
        (
            [{"role": "user", "content": "hi"}, {"role": "system", "content": "One."}],
            [
                {"role": "system", "content": "Do."},
                {"role": "user", "content": "hi"},
                {"role": "system", "content": "One."},
            ],
        ),
    ],
)
def test_an_instruction_is_added(before: list[Document], after: list[Document]) -> None:
    asked(messages=before).instruct("Do.")
    assert before == after


def test_a_reply_and_its_results_go_back() -> None:
    messages: list[Document] = [{"role": "user", "content": "hi"}]
    message = {
        "content": None,
        "refusal": None,
        "annotations": [{"type": "url_citation"}],
        "reasoning_content": "Hm.",
        "audio": {"id": "a1", "data": "UklGRg==", "transcript": "x", "expires_at": 1},
        "tool_calls": [
            call("weather", '{"a":1}', "c1") | {"index": 0, "extra_content": {"google": {"thought_signature": "s"}}},
            {"custom": {"name": "shell", "input": "ls"}},
            call("other", "{}", "c3"),
        ],
    }
    reply = completion(message, {"content": "another"}, reason="tool_calls")
    whole = deepcopy(reply)
    view = asked(messages=messages)
    view.answer(reply, {"c1": "sun", "call_1": "denied", "c9": "nobody"})
    view.say("Go on.")
    assert reply == whole
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "audio": {"id": "a1"},
            "tool_calls": [
                call("weather", '{"a":1}', "c1") | {"extra_content": {"google": {"thought_signature": "s"}}},
                {"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
                call("other", "{}", "c3"),
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sun"},
        {"role": "tool", "tool_call_id": "call_1", "content": "denied"},
        {"role": "user", "content": "Go on."},
    ]
    assert [each.id for each in view.history] == ["c1", "call_1", "c3", "c1", "call_1"]


@pytest.mark.parametrize(
    ("content", "then"),
    [
        ("hi", "hi\n\nGo on."),
        ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}, {"type": "text", "text": "Go on."}]),
    ],
)
def test_the_user_goes_on(content: Any, then: Any) -> None:
    messages = [{"role": "user", "name": "ann", "content": content}]
    asked(messages=messages).say("Go on.")
    assert messages == [{"role": "user", "name": "ann", "content": then}]


@pytest.mark.parametrize("last", [{"role": "assistant", "content": "hi"}, {"role": "user", "content": 1}, {}, 7])
def test_the_user_speaks_after_what_is_not_his(last: Any) -> None:
    messages = [last]
    asked(messages=messages).say("Go on.")
    assert messages == [last, {"role": "user", "content": "Go on."}]


def test_a_refusal_and_a_call_in_the_older_form_go_back() -> None:
    messages: list[Document] = []
    asked(messages=messages).answer(completion({"refusal": "No."}), {})
    reply = completion({"function_call": {"name": "f", "arguments": "{}"}}, reason="function_call")
    asked(messages=messages).answer(reply, {"call_0": "yes"})
    assert messages == [
        {"role": "assistant", "content": "", "refusal": "No."},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "yes"},
    ]


# --- the reply ---------------------------------------------------------------------------------------------------


def test_what_a_reply_says() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [thought, {"type": "text", "text": "Good "}, {"type": "text", "text": "day."}]
    reply = completion({"content": "Hello."}, {"content": parts}, {"refusal": "No.", "reasoning_content": "Hm."})
    view = chat.replied(reply)
    assert view.texts == {0: "Hello.", 1: "Good day.", 2: ""}
    assert [view.refused(choice) for choice in (0, 1, 2, 3)] == [False, False, True, False]
    view.say(1, "Bye.")
    view.say(0, "Bye.")
    view.say(9, "Bye.")
    assert reply["choices"][1]["message"]["content"] == [thought, {"type": "text", "text": "Bye."}]
    assert view.texts == {0: "Bye.", 1: "Bye.", 2: ""}


def test_what_was_computed_over_a_text_goes_with_it() -> None:
    reply = completion({"content": "a", "annotations": [{"type": "url_citation"}]}, {"content": "b"})
    for choice in reply["choices"]:
        choice["logprobs"] = {"content": [{"token": choice["message"]["content"]}]}
    chat.replied(reply).say(0, "c")
    assert reply["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "c", "annotations": []},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert reply["choices"][1]["logprobs"] == {"content": [{"token": "b"}]}


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "calls"),
        ("function_call", "calls"),
        ("content_filter", "filtered"),
        ("error", "other"),
        (None, "other"),
        ([], "other"),
    ],
)
def test_how_it_ended(reason: Any, ending: str) -> None:
    assert chat.replied(completion({"content": "x"}, reason=reason)).ending(0) == ending


def test_a_reply_that_calls_and_stops_waits_for_tools() -> None:
    view = chat.replied(completion({"tool_calls": [call("f")]}, {"content": "x"}))
    assert [view.ending(choice) for choice in (0, 1, 2)] == ["calls", "stop", "other"]


def test_calls_of_a_reply() -> None:
    first = {"tool_calls": [call("f", '{"a":1}'), {"function": {"name": "g", "arguments": {"b": 2}}}]}
    second = {
        "tool_calls": [{"type": "custom", "custom": {"name": "h", "input": "ls"}}],
        "function_call": {"name": "i"},
    }
    assert chat.replied(completion(first, second)).calls == [
        Called("id-f", "f", '{"a":1}'),
        Called("call_1", "g", '{"b":2}', position=1),
        Called("call_1_0", "h", "ls", free=True, choice=1),
        Called("call_1_1", "i", "", position=1, choice=1),
    ]


def test_some_calls_are_dropped() -> None:
    reply = completion(
        {"content": "Let me see.", "tool_calls": [call("f"), call("g"), call("h")]},
        {"tool_calls": [call("f")]},
        reason="tool_calls",
    )
    view = chat.replied(reply)
    view.drop([each for each in view.calls if each.name in "fg"], "Not allowed.")
    first, second = reply["choices"]
    assert first["message"]["tool_calls"] == [call("h")]
    assert (first["message"]["content"], first["finish_reason"]) == ("Let me see.\n\nNot allowed.", "tool_calls")
    assert second["message"] == {"role": "assistant", "content": "Not allowed."}
    assert second["finish_reason"] == "stop"


def test_dropped_calls_are_told_by_their_places() -> None:
    """Whatever a server says of their index, and of the choices'."""
    same = {"content": "x", "tool_calls": [call("f") | {"index": 0}, call("g") | {"index": 0}]}
    reply = completion(same, deepcopy(same), reason="tool_calls")
    reply["choices"][1]["index"] = 0
    view = chat.replied(reply)
    view.drop([each for each in view.calls if (each.name, each.choice) in (("f", 0), ("g", 1))], "")
    assert [(each.name, each.choice) for each in view.calls] == [("g", 0), ("f", 1)]
    assert view.texts == {0: "x", 1: "x"}


def test_a_call_in_the_older_form_is_dropped() -> None:
    parts = [{"type": "text", "text": "x"}]
    reply = completion({"content": parts, "function_call": {"name": "f"}}, reason="function_call")
    view = chat.replied(reply)
    view.drop(view.calls, "No.")
    assert view.texts == {0: "xNo."}
    assert (view.calls, view.ending(0)) == ([], "stop")


# --- a stream becomes a reply ------------------------------------------------------------------------------------


def token(text: str) -> Document:
    return {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}


def with_logprobs(frame: Document, **logprobs: Any) -> Document:
    frame["choices"][0]["logprobs"] = {"content": None, "refusal": None} | logprobs
    return frame


USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
USED: Document = chunk({}) | {"choices": [], "usage": USAGE}
# As the API streams them.
GOLDEN: dict[str, list[Document]] = {
    "a text": [
        chunk({"role": "assistant", "content": "", "refusal": None}, system_fingerprint="fp"),
        chunk({"content": "Hel"}, system_fingerprint="fp"),
        chunk({"content": "lo."}, system_fingerprint="fp"),
        chunk({}, "stop", system_fingerprint="fp"),
        USED | {"system_fingerprint": "fp"},
    ],
    "a refusal": [
        chunk({"role": "assistant", "content": None, "refusal": ""}),
        chunk({"refusal": "I ca"}),
        chunk({"refusal": "nnot."}),
        chunk({}, "stop"),
    ],
    "calls": [
        chunk({"role": "assistant", "content": None, **piece(0, "", id="c1", type="function", name="weather")}),
        chunk(piece(0, '{"ci')),
        chunk(piece(0, 'ty":"Bern"}')),
        chunk(piece(1, "", id="c2", type="function", name="time")),
        chunk(piece(1, "{}")),
        chunk({}, "tool_calls"),
        USED,
    ],
    "text, reasoning and a call": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "H"}),
        chunk({"reasoning_content": "m."}),
        chunk({"content": "Let me "}),
        chunk({"content": "see."}),
        chunk(piece(0, "{}", id="c1", type="function", name="f")),
        chunk({}, "tool_calls"),
        USED,
    ],
    "the older form": [
        chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({}, "function_call"),
    ],
    "two choices": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"role": "assistant", "content": ""}, index=1),
        chunk({"content": "a"}),
        chunk({"content": "b"}, index=1),
        chunk({"content": "c"}),
        chunk({}, "length", index=1),
        chunk({}, "stop"),
        USED,
    ],
    "logprobs": [
        with_logprobs(chunk({"role": "assistant", "content": ""}), content=[]),
        with_logprobs(chunk({"content": "a"}), content=[token("a")]),
        with_logprobs(chunk({"content": "b"}), content=[token("b")]),
        chunk({}, "stop"),
    ],
    "a sound": [
        chunk({"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "He"}}),
        chunk({"audio": {"data": "UklG", "transcript": "llo."}}),
        chunk({"audio": {"data": "Rg=="}}),
        chunk({}, "stop"),
        chunk({"audio": {"expires_at": 99}}),
    ],
}


def client(frames: list[Document]) -> Document:
    """What the official client makes of a stream."""
    state: Any = ChatCompletionStreamState()
    for frame in frames:
        state.handle_chunk(ChatCompletionChunk.model_validate(frame))
    return compared(json.loads(state.current_completion_snapshot.model_dump_json()))


def compared(reply: Document) -> Document:
    """As the client's type for whole replies has it, without what is null and what it holds of frames and parsing."""
    reply = deepcopy(reply)
    for choice in reply["choices"]:
        for each in choice["message"].get("tool_calls") or ():
            each.pop("index", None)
            each["function"].pop("parsed_arguments", None)
    done: Document = json.loads(ChatCompletion.model_validate(reply).model_dump_json(exclude_none=True))
    return done


@pytest.mark.parametrize("name", GOLDEN)
def test_it_gathers_what_the_client_gathers(name: str) -> None:
    reply = gather(*GOLDEN[name])
    assert reply is not None
    assert compared(reply) == client(GOLDEN[name])


@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_gathered_is_told_again(name: str) -> None:
    reply = gather(*GOLDEN[name])
    assert reply is not None
    frames = chat.frames(reply)
    assert gather(*frames) == reply
    assert client(list(frames)) == compared(reply)


def test_a_stream_as_bytes() -> None:
    raw = b"".join(b"data: %b\n\n" % jsondoc.encode(frame) for frame in GOLDEN["calls"]) + b": on\n\ndata: [DONE]\n\n"
    assert gathered(chat.gather(), SSE.cutter().feed(raw), jsondoc.readable) == gather(*GOLDEN["calls"])


def test_a_reply_in_full() -> None:
    assert gather(*GOLDEN["calls"]) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [call("weather", '{"city":"Bern"}', "c1"), call("time", "{}", "c2")],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }


def test_what_is_no_whole_reply() -> None:
    begun = chunk({"role": "assistant", "content": "x"})
    error = {"error": {"message": "Overloaded."}}
    assert gather() is None
    assert gather(begun) is None
    assert gather(USED) is None
    assert gather(begun, chunk({}, "stop"), error) is None
    assert gather(begun, chunk({}, "error") | error) is None
    assert gather(begun, chunk({"content": "y"}, index=1), chunk({}, "stop")) is None
    assert gather(begun, chunk({}, "stop")) is not None


def calls_of(*frames: Document) -> list[tuple[str, str, str]]:
    calls = message_of(*frames)["tool_calls"]
    return [(each.get("id", ""), each["function"]["name"], each["function"]["arguments"]) for each in calls]


def test_servers_that_repeat_a_name_or_an_id() -> None:
    repeats = [chunk(piece(0, part, id="c1", type="function", name="f")) for part in ('{"a"', ":", "1}")]
    assert calls_of(*repeats) == [("c1", "f", '{"a":1}')]
    anew = [chunk(piece(0, '{"a"', id="c1", name="f")), chunk(piece(0, ":1}", id="c2"))]
    assert calls_of(*anew) == [("c1", "f", '{"a":1}')]
    halves = [chunk(piece(0, "", id="c1", name="get_")), chunk(piece(0, "{}", name="time"))]
    assert calls_of(*halves) == [("c1", "get_time", "{}")]


def test_servers_that_do_not_count_calls() -> None:
    zero = [chunk(piece(0, "{}", id="c1", name="f")), chunk(piece(0, "{}", id="c2", name="f"))]
    assert calls_of(*zero) == [("c1", "f", "{}"), ("c2", "f", "{}")]
    none = [chunk(piece(None, "{", id="c1", name="f")), chunk(piece(None, "}")), chunk(piece(None, "{}", name="g"))]
    assert calls_of(*none) == [("c1", "f", "{}"), ("", "g", "{}")]
    mixed = [chunk(piece(None, "{", id="c1", name="f")), chunk(piece(None, "{", id="c2", name="g"))]
    ends = [chunk(piece(None, "}", id="c1")), chunk(piece(None, "}", id="c2"))]
    assert calls_of(*mixed, *ends) == [("c1", "f", "{}"), ("c2", "g", "{}")]
    from_one = [chunk(piece(2, "{}", id="c2", name="g")), chunk(piece(1, "{}", id="c1", name="f"))]
    assert calls_of(*from_one) == [("c1", "f", "{}"), ("c2", "g", "{}")]


def test_content_in_parts() -> None:
    def thought(text: str) -> Document:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    frames: list[Document] = [
        {"role": "assistant", "content": ""},
        {"content": [thought("H")]},
        {"content": [thought("m.")]},
    ]
    more: list[Document] = [{"content": "Good "}, {"content": "day"}, {"content": [{"type": "text", "text": "."}]}]
    content = message_of(*map(chunk, frames + more))["content"]
    assert content == [thought("Hm."), {"type": "text", "text": "Good day."}]


def test_reasoning_details() -> None:
    def detail(index: int, **more: Any) -> Document:
        return chunk({"reasoning_details": [{"type": "reasoning.text", "index": index, "format": "x", **more}]})

    sealed = {"type": "reasoning.encrypted", "index": 1, "data": "s"}
    frames = [detail(0, text="H"), detail(0, text="m."), detail(0, signature="sig"), detail(1, text="So.")]
    assert message_of(*frames, chunk({"reasoning_details": [sealed]}))["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": "x", "text": "Hm.", "signature": "sig"},
        {"type": "reasoning.text", "index": 1, "format": "x", "text": "So."},
        sealed,
    ]


def test_fields_that_no_api_documents() -> None:
    reply = gather(
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        chunk({"role": "assistant", "poem": "Ro"}, citations=["a"], obfuscation="xxxx"),
        chunk({"poem": "ses."}, citations=["a", "b"]),
        chunk({"numbers": [1]}),
        {"type": "ping"},
        chunk({"numbers": [2]}, "stop"),
    )
    assert reply is not None
    message = {"role": "assistant", "content": None, "poem": "Roses.", "numbers": [1, 2]}
    assert reply["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert {name: value for name, value in reply.items() if name != "choices"} == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "prompt_filter_results": [{"prompt_index": 0}],
        "citations": ["a", "b"],
    }


def test_floats_keep_their_digits() -> None:
    frame = jsondoc.decode(jsondoc.encode(chunk({"role": "assistant"}, "stop"))[:-1] + b',"score":1.50}')
    assert b'"score":1.50' in jsondoc.encode(gather(frame))


def test_halves_of_a_character_meet() -> None:
    assert message_of(chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}))["content"] == "\U0001f600"


def test_what_was_fed_stays_as_it_is() -> None:
    frames = deepcopy(GOLDEN["text, reasoning and a call"])
    reply = gather(*frames)
    assert reply is not None
    view = chat.replied(reply)
    view.say(0, "x")
    view.drop(view.calls, "No.")
    assert frames == GOLDEN["text, reasoning and a call"]


# --- a reply becomes a stream ------------------------------------------------------------------------------------


def test_frames() -> None:
    reply = completion({"tool_calls": [call("f", '{"a":1}')], "content": "x", "refusal": None}, reason="tool_calls")
    frames = chat.frames(reply | {"usage": USAGE, "citations": ["a"]})
    assert [frame["choices"][0] if frame["choices"] else frame["usage"] for frame in frames] == [
        {"index": 0, "delta": {"refusal": None, "role": "assistant", "content": ""}, "finish_reason": None},
        {"index": 0, "delta": {"content": "x"}, "finish_reason": None},
        {"index": 0, "delta": {"tool_calls": [{"index": 0, **call("f", '{"a":1}')}]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
        USAGE,
    ]
    assert {frame["object"] for frame in frames} == {"chat.completion.chunk"}
    assert [frame.get("citations") for frame in frames] == [["a"], None, None, None, None]


TEXT = st.text(max_size=5)
CALL = st.builds(call, st.text(min_size=1, max_size=5), TEXT, st.text(min_size=1, max_size=5))
DETAIL = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning.text", "x"]), "index": st.integers(0, 1), "text": TEXT}
)
PART = st.fixed_dictionaries({"type": st.sampled_from(["text", "x"]), "text": TEXT})
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | TEXT | st.lists(PART, min_size=1, max_size=3)},
    optional={
        "refusal": st.none() | TEXT,
        "reasoning_content": TEXT,
        "reasoning_details": st.lists(DETAIL, max_size=3),
        "tool_calls": st.lists(CALL, max_size=3),
        "function_call": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT}),
        "annotations": st.lists(st.fixed_dictionaries({"type": TEXT}), max_size=2),
        "audio": st.fixed_dictionaries({"id": TEXT, "data": TEXT, "expires_at": st.integers(0, 9)}),
        "poem": TEXT,
    },
)
CHOICES = st.lists(
    st.fixed_dictionaries(
        {"message": MESSAGES, "finish_reason": st.sampled_from(["stop", "length", "tool_calls"])},
        optional={
            "logprobs": st.none() | st.just({"content": [token("a"), token("b")], "refusal": None}),
            "content_filter_results": st.just({"hate": {"filtered": False}}),
            "token_ids": st.none() | st.lists(st.integers(0, 9), max_size=3),
        },
    ),
    min_size=1,
    max_size=3,
)


@examples(100)
@given(choices=CHOICES, usage=st.none() | st.just(USAGE), more=st.booleans())
def test_every_whole_reply_is_gathered_from_its_frames(choices: list[Document], usage: Any, more: bool) -> None:
    head = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    extra = {"system_fingerprint": "fp", "citations": ["a"]} if more else {}
    reply = head | extra | {"choices": [{"index": at} | choice for at, choice in enumerate(choices)]}
    assert gather(*chat.frames(reply)) == reply


def cut(choice: Document, at: int) -> list[Document]:
    """The choice of a frame in two, where its text or the arguments in it are cut."""
    delta = choice["delta"]
    name, value = next(iter(delta.items()), ("", None))
    if len(delta) != 1 or choice.keys() & {"logprobs", "token_ids"}:
        return [choice]
    if isinstance(value, str):
        return [{**choice, "delta": {name: part}} for part in (value[:at], value[at:])]
    if name != "tool_calls":
        return [choice]
    return [{**choice, "delta": {name: [half]}} for each in delta[name] for half in halves(each, at)]


def halves(each: Document, at: int) -> list[Document]:
    function = each["function"]
    before, after = function["arguments"][:at], function["arguments"][at:]
    return [
        {**each, "function": {**function, "arguments": before}},
        {"index": each["index"], "function": {"arguments": after}},
    ]


@examples(100)
@given(choices=CHOICES, at=st.integers(0, 5))
def test_it_does_not_matter_where_a_stream_is_cut(choices: list[Document], at: int) -> None:
    reply = completion() | {"choices": [{"index": n} | choice for n, choice in enumerate(choices)]}
    told = [(frame, choice) for frame in chat.frames(reply) for choice in frame["choices"]]
    assert gather(*(frame | {"choices": [part]} for frame, choice in told for part in cut(choice, at))) == reply


# --- anything ----------------------------------------------------------------------------------------------------

REQUESTS: list[Document] = [
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [call("f"), call("g")]},
            {"role": "tool", "tool_call_id": "id-f", "content": "one"},
            {"role": "tool", "tool_call_id": "id-g", "content": [{"type": "text", "text": "two"}]},
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "three"},
        ],
        "tools": [WEATHER, SHELL],
        "tool_choice": allowed("required", "weather"),
        "functions": [WEATHER["function"]],
        "function_call": {"name": "f"},
        "response_format": {"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA, "strict": True}},
        "parallel_tool_calls": False,
        "n": 2,
    }
]
REPLIES = [
    *(reply for frames in GOLDEN.values() if (reply := gather(*frames)) is not None),
    completion({"content": [{"type": "text", "text": "a"}], "tool_calls": [call("f"), call("g")]}, {"content": "x"}),
]


@examples(150)
@given(OBJECTS | mutated(REQUESTS), st.sampled_from(REPLIES) | mutated(REPLIES))
def test_any_request(request: Document, reply: Document) -> None:
    ask_all(chat, request, reply)


@examples(150)
@given(OBJECTS | mutated(REPLIES))
def test_any_reply(reply: Document) -> None:
    hear_all(chat, reply)


@examples(150)
@given(st.lists(OBJECTS | mutated([frame for frames in GOLDEN.values() for frame in frames]), max_size=6))
def test_any_stream(frames: list[Document]) -> None:
    before = deepcopy(frames)
    reply = gather(*frames)
    assert frames == before
    if reply is not None:
        hear_all(chat, reply)
