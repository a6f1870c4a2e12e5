"""The conversation view of Anthropic's `/v1/messages`, held against the official client's reader of streams."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import anthropic
import pytest
from anthropic.types.beta import BetaMessage
from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire import jsondoc, sse
from sidecar.wire.conversation import Called, Choice, Format, HostedCall, Result, View
from sidecar.wire.views import VIEWS, messages
from tests.wire.fuzz import examples
from tests.wire.messages_talk import ASK, block, call, client, end, read, start, text, thinking, whole

from .anything import OBJECTS, ask_all, hear_all, mutated, over_the_wire

VIEW: View = messages
Document = dict[str, Any]

FIND: Document = {"name": "find", "description": "Finds.", "input_schema": {"type": "object", "properties": {}}}
SEARCH: Document = {"type": "web_search_20250305", "name": "web_search"}
EPHEMERAL: Document = {"type": "ephemeral"}


def said(text: str, **more: Any) -> Document:
    return {"type": "text", "text": text, **more}


def use(name: str = "find", at: int = 0, given: Any = None, **more: Any) -> Document:
    given = {"at": at} if given is None else given
    return {"type": "tool_use", "id": f"toolu_{name}_{at}", "name": name, "input": given, **more}


def result(call_id: str, content: Any, **more: Any) -> Document:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


THOUGHT: Document = {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbGVk"}


def asked(*turns: Document, **request: Any) -> Any:
    return VIEW.asked({"model": "m", "max_tokens": 9, "messages": list(turns), **request})


def user(*content: Any) -> Document:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> Document:
    return {"role": "assistant", "content": list(content)}


# --- tools -------------------------------------------------------------------------------------------------------


def test_it_is_in_the_table() -> None:
    assert VIEWS["messages"] is VIEW


def test_tools() -> None:
    own = FIND | {"type": "custom", "name": "look", "cache_control": EPHEMERAL}
    first, second = asked(tools=[FIND, SEARCH, own]).tools
    assert first == ("find", "Finds.", FIND["input_schema"], FIND)
    assert second == ("look", "Finds.", FIND["input_schema"], own)


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        ({"type": "bash_20250124", "name": "bash"}, "bash"),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "str_replace_based_edit_tool"),
        ({"type": "computer_20251124", "name": "computer"}, "computer"),
        ({"type": "memory_20250818", "name": "memory"}, "memory"),
        ({"type": "computer_toolset_20260801"}, "computer"),
        ({"type": "browser_toolset_20260801"}, "browser"),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, None),
        ({"type": "code_execution_20250825", "name": "code_execution"}, None),
        ({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, None),
        ({"type": "mcp_toolset", "mcp_server_name": "s"}, None),
        ({"name": ""}, None),
        ({"type": ["custom"], "name": "x"}, None),
    ],
)
def test_who_runs_a_tool(definition: Document, name: str | None) -> None:
    assert [tool.name for tool in asked(tools=[definition]).tools] == ([name] if name else [])


def test_tools_that_came_with_a_message() -> None:
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": FIND}}
    assert [tool.name for tool in asked({"role": "system", "content": [added]}).tools] == ["find"]


@pytest.mark.parametrize(
    ("given", "tools", "choice"),
    [
        (None, [FIND], Choice()),
        ({"type": "auto"}, [FIND], Choice()),
        ({"type": "none"}, [FIND], Choice("none")),
        ({"type": "any"}, [FIND], Choice("required")),
        ({"type": "any"}, [FIND, SEARCH], Choice()),  # a search is a call as well
        ({"type": "any"}, [], Choice()),
        ({"type": "tool", "name": "find"}, [FIND], Choice("required", "find")),
        ({"type": "tool", "name": "web_search"}, [FIND, SEARCH], Choice()),
        ("any", [FIND], Choice()),
    ],
)
def test_whether_it_must_call(given: Any, tools: list[Document], choice: Choice) -> None:
    assert asked(tool_choice=given, tools=tools).choice == choice


def test_several_at_once() -> None:
    assert asked().parallel is True
    assert asked(tool_choice={"type": "auto", "disable_parallel_tool_use": True}).parallel is False


# --- the form of the reply -----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
FORM = {"type": "json_schema", "schema": SCHEMA}


@pytest.mark.parametrize("request_", [{"output_config": {"format": FORM}}, {"output_format": FORM}])
def test_the_form_is_read_and_taken_away(request_: Document) -> None:
    request = deepcopy(request_)
    assert VIEW.asked(request).format == Format("", SCHEMA)
    VIEW.asked(request).set_format(None)
    assert request == {}


def test_the_form_is_written() -> None:
    request: Document = {"output_config": {"effort": "low"}, "output_format": {"type": "json_schema", "schema": {}}}
    VIEW.asked(request).set_format(Format("t", SCHEMA))
    assert request == {"output_config": {"effort": "low", "format": FORM}}
    # There is no word for any JSON object.
    VIEW.asked(request).set_format(Format("", None))
    assert request == {"output_config": {"effort": "low"}}
    assert VIEW.asked(request).format is None


# --- the conversation ----------------------------------------------------------------------------------------------


def test_the_history() -> None:
    turns = [
        user("hi"),
        assistant(THOUGHT, said("Let me see."), use(), use("look", given={})),
        user(
            result("toolu_find_0", "one"),
            result(
                "toolu_look_0",
                [
                    said("two"),
                    {"type": "image", "source": {"type": "url", "url": "https://a/b"}},
                    {"type": "search_result", "source": "s", "title": "t", "content": [said("three")]},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "four"}},
                    {"type": "document", "source": {"type": "content", "content": [said("five")]}},
                ],
            ),
            result("gone", None),
        ),
        assistant(use(at=1)),
    ]
    history = asked(*turns).history
    assert [each for each in history if isinstance(each, Called)] == [
        Called("toolu_find_0", "find", '{"at":0}', position=0),
        Called("toolu_look_0", "look", "{}", position=1),
        Called("toolu_find_1", "find", '{"at":1}', position=0),
    ]
    results = [each for each in history if isinstance(each, Result)]
    assert [(each.id, each.name, [part.text for part in each.texts]) for each in results] == [
        ("toolu_find_0", "find", ["one"]),
        ("toolu_look_0", "look", ["two", "three", "four", "five"]),
        ("gone", "", []),
    ]
    results[1].texts[2].replace("4")
    assert turns[2]["content"][1]["content"][3]["source"]["data"] == "4"


def test_calls_that_the_provider_runs() -> None:
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    remote = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "send", "server_name": "s", "input": {}}
    nameless = {"type": "mcp_tool_use", "id": "mcptoolu_2"}
    found = [HostedCall("srvtoolu_1", "web_search"), HostedCall("mcptoolu_1", "send")]
    # What the client runs is run when all of the turn is there.
    history = asked(assistant(use(), searched, remote, nameless)).history
    assert history == [*found, Called("toolu_find_0", "find", '{"at":0}')]
    assert replied(searched, use(), remote, nameless).hosted == found
    assert not asked(tools=[FIND, SEARCH], mcp_servers=[{"type": "url", "name": "s"}]).approvals


def test_a_call_of_one_of_a_family_is_a_call_of_the_family() -> None:
    click = use("left_click", given={"coordinate": [1, 2]}, toolset_name="computer")
    (called,) = VIEW.replied(whole(click)).calls
    assert called == Called("toolu_left_click_0", "computer", '{"action":"left_click","coordinate":[1,2]}')
    request: Document = {"messages": []}
    VIEW.asked(request).answer(whole(click), {called.id: "no"})
    assert request["messages"][1] == user(result(called.id, "no", toolset_name="computer"))


def test_system_text_is_where_it_may_be() -> None:
    assert asked(system="One.").system == "One."
    blocks = [said("One.", cache_control=EPHEMERAL), said("Two.")]
    late = {"role": "system", "content": "Three."}
    assert asked(user("hi"), late, system=blocks).system == "One.\n\nTwo.\n\nThree."
    assert asked().system == ""


def test_instructions_follow_what_is_cached() -> None:
    cached = said("One.", cache_control=EPHEMERAL)
    for system, then in (
        (None, "Be kind."),
        ("One.", "One.\n\nBe kind."),
        ([cached], [cached, said("Be kind.")]),
        (7, 7),
    ):
        request = {"system": deepcopy(system)}
        VIEW.asked(request).instruct("Be kind.")
        assert request["system"] == then


def test_the_user_goes_on_in_the_users_turn() -> None:
    for before, after in (
        ([], [user(said("And?"))]),
        ([{"role": "user", "content": "hi"}], [user(said("hi"), said("And?"))]),
        ([user(result("c", "x"))], [user(result("c", "x"), said("And?"))]),
        ([assistant(said("a"))], [assistant(said("a")), user(said("And?"))]),
    ):
        request: Document = {"messages": before}
        VIEW.asked(request).say("And?")
        assert request["messages"] == after


# --- a reply that becomes history ------------------------------------------------------------------------------------


def answered(reply: Document, results: dict[str, str], **request: Any) -> Document:
    document: Document = {"messages": [user(said("hi"))], **request}
    VIEW.asked(document).answer(reply, results)
    return document


def test_a_turn_goes_back_as_it_is() -> None:
    hidden = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    reply = whole(THOUGHT, hidden, said(""), said("Let me see.", citations=None), use(), use("look"))
    before = deepcopy(reply)
    request = answered(reply, {"toolu_look_0": "no", "toolu_find_0": "ok"})
    assert reply == before
    assert request["messages"][1:] == [
        assistant(THOUGHT, hidden, said("Let me see.", citations=None), use(), use("look")),
        user(result("toolu_find_0", "ok"), result("toolu_look_0", "no")),
    ]
    VIEW.asked(request).say("And?")
    assert request["messages"][2]["content"][2] == said("And?")


def test_a_turn_that_was_begun_for_the_model_goes_on() -> None:
    document: Document = {"messages": [user(said("hi")), {"role": "assistant", "content": "{"}]}
    VIEW.asked(document).answer(whole(said("}")), {})
    assert document["messages"][1:] == [assistant(said("{"), said("}"))]


def test_a_call_without_an_id_gets_one() -> None:
    bare = {"type": "tool_use", "name": "find", "input": {}}
    request = answered(whole(bare, dict(bare)), {"toolu_1": "no"})
    assert [each["id"] for each in request["messages"][1]["content"]] == ["toolu_0", "toolu_1"]
    assert request["messages"][2] == user(result("toolu_1", "no"))


@pytest.mark.parametrize(
    ("given", "then"),
    [(None, "c1"), ("c0", "c1"), ({"skills": []}, {"skills": [], "id": "c1"}), ([], [])],
)
def test_the_next_call_runs_where_this_one_did(given: Any, then: Any) -> None:
    reply = whole(use(), container={"id": "c1", "expires_at": "2026-01-01T00:00:00Z"})
    assert answered(reply, {}, container=given)["container"] == then
    assert "container" not in answered(whole(use()), {})


# --- the reply -------------------------------------------------------------------------------------------------------


def replied(*content: Document, **fields: Any) -> Any:
    return VIEW.replied(whole(*deepcopy(list(content)), **fields))


def test_what_a_reply_says_and_calls() -> None:
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    reply = replied(THOUGHT, said("a"), server, said("b"), use(), use("bash"), stop_reason="tool_use")
    assert reply.texts == {0: "ab"}
    assert reply.calls == [
        Called("toolu_find_0", "find", '{"at":0}', position=0),
        Called("toolu_bash_0", "bash", '{"at":0}', position=1),
    ]
    assert reply.ending(0) == "calls"
    assert reply.ending(1) == "other"


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filtered"),
        ("pause_turn", "other"),
        ("compaction", "other"),
        (None, "other"),
    ],
)
def test_how_it_ended(reason: Any, ending: str) -> None:
    reply = replied(said("x"), stop_reason=reason)
    assert reply.ending(0) == ending
    assert reply.refused(0) == (reason == "refusal")


def test_a_server_that_does_not_say_that_it_calls() -> None:
    assert replied(use()).ending(0) == "calls"
    assert replied(use(), stop_reason="max_tokens").ending(0) == "length"


# --- edits of a reply ------------------------------------------------------------------------------------------------

CITATION: Document = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
    "file_id": None,
}


def test_say_puts_one_text_in_the_place_of_all() -> None:
    document = whole(THOUGHT, said("a", citations=[CITATION]), said("b"), use())
    VIEW.replied(document).say(0, "new")
    assert document["content"] == [THOUGHT, said("new", citations=None), use()]


def test_say_where_nothing_was_said() -> None:
    document = whole(THOUGHT, use())
    VIEW.replied(document).say(0, "new")
    assert document["content"] == [THOUGHT, said("new"), use()]
    VIEW.replied(document).say(1, "newer")
    assert document["content"] == [THOUGHT, said("new"), use()]


def test_an_empty_text_is_no_block() -> None:
    document = whole(THOUGHT, said("a"), said("b"))
    VIEW.replied(document).say(0, "")
    assert document["content"] == [THOUGHT]


def test_drop_takes_calls_and_tells_why() -> None:
    document = whole(THOUGHT, said("Let me see."), use(), use("look"), stop_reason="tool_use")
    first, second = VIEW.replied(document).calls
    VIEW.replied(document).drop([first], "Not allowed.")
    assert document["content"] == [THOUGHT, said("Let me see.\n\nNot allowed."), use("look")]
    assert document["stop_reason"] == "tool_use"
    VIEW.replied(document).drop([second._replace(position=0)], "")
    assert document["content"] == [THOUGHT, said("Let me see.\n\nNot allowed.")]
    assert document["stop_reason"] == "end_turn"


def test_a_notice_stands_before_the_calls_that_go_on() -> None:
    document = whole(THOUGHT, use(), use("look"), stop_reason="tool_use")
    VIEW.replied(document).drop(VIEW.replied(document).calls[:1], "No.")
    assert document["content"] == [THOUGHT, said("No."), use("look")]


# --- streams ---------------------------------------------------------------------------------------------------------


def gathered(frames: Sequence[Document]) -> Document | None:
    gather = VIEW.gather()
    for frame in frames:
        gather.feed(frame)
    return gather.reply


def rendered(frames: Sequence[Document]) -> bytes:
    return b"".join(sse.render(jsondoc.encode(frame), frame["type"].encode()) for frame in frames)


def listened(frames: Sequence[Document]) -> Document:
    """What the official client makes of a stream, without the fields that it only names."""
    heard: Document = present(read(rendered(frames)))
    return heard


def present(value: Any) -> Any:
    if isinstance(value, list):
        return [present(inner) for inner in value]
    if isinstance(value, dict):
        return {key: present(inner) for key, inner in value.items() if inner is not None}
    return value


def searched() -> list[Document]:
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    cites: list[Document] = [
        {"type": "citations_delta", "citation": CITATION},
        {"type": "text_delta", "text": "It is."},
    ]
    return [
        *block(0, server, {"type": "input_json_delta", "partial_json": '{"query":"x"}'}),
        *block(1, found),
        *block(2, {"type": "text", "text": "", "citations": []}, *cites, cites[0]),
    ]


PING: Document = {"type": "ping"}
GOLDEN: list[list[Document]] = [
    [start(), PING, *text(0, ["Hel", "lo"]), *end()],
    [
        start(),
        *thinking(0, ["H", "m."]),
        *text(1, ["Let me ", "see."]),
        *call(2, ['{"a":', ' [1, "x"]}']),
        *end("tool_use"),
    ],
    [start(), *call(0, [""]), *call(1, ["{}"], "look"), *end("tool_use", 7)],
    [start(), *searched(), *end()],
    [start(), *end("refusal", 0)],
]


@pytest.mark.parametrize("frames", GOLDEN)
def test_a_stream_is_gathered_as_the_official_client_reads_it(frames: list[Document]) -> None:
    before = deepcopy(frames)
    reply = gathered(frames)
    assert frames == before
    assert present(reply) == listened(frames)


WHOLE: list[Document] = [
    whole(said("Hello.", citations=None)),
    whole(
        THOUGHT, said("a", citations=[CITATION, CITATION]), said("b"), use(), use("b", given={}), stop_reason="tool_use"
    ),
    whole({"type": "redacted_thinking", "data": "x"}, THOUGHT | {"signature": ""}, stop_reason="max_tokens"),
    whole(said("x"), stop_reason="stop_sequence", stop_sequence="END", stop_details=None),
    whole(
        said("x"),
        usage={
            "input_tokens": 5,
            "output_tokens": 20,
            "cache_creation_input_tokens": 1,
            "cache_read_input_tokens": 2,
            "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 0},
            "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
            "service_tier": "standard",
        },
        container={"id": "c", "expires_at": "2026-01-01T00:00:00Z"},
    ),
    whole(),
]


@pytest.mark.parametrize("reply", WHOLE)
def test_a_stream_that_tells_a_reply(reply: Document) -> None:
    before = deepcopy(reply)
    frames = VIEW.frames(reply)
    assert gathered(frames) == reply == before
    assert listened(frames) == present(reply)
    assert frames[0]["message"]["content"] == []
    assert frames[0]["message"]["stop_reason"] is None


def test_the_events_of_a_reply() -> None:
    frames = VIEW.frames(whole(THOUGHT, said("a", citations=[CITATION]), use(given={"a": 1})))
    assert [frame.get("delta", {}).get("type") or frame["type"] for frame in frames] == [
        "message_start",
        *("content_block_start", "thinking_delta", "signature_delta", "content_block_stop"),
        *("content_block_start", "citations_delta", "text_delta", "content_block_stop"),
        *("content_block_start", "input_json_delta", "content_block_stop"),
        *("message_delta", "message_stop"),
    ]


COMPACTED = whole(
    {"type": "compaction", "content": "So far.", "encrypted_content": "c2VhbGVk", "signature": "s"},
    {"type": "fallback", "from": {"model": "a"}, "to": {"model": "m"}},
    said("x"),
    context_management={"applied_edits": []},
    input_transformations=[],
)


def test_beta_blocks_and_fields() -> None:
    frames = VIEW.frames(COMPACTED)
    assert gathered(frames) == COMPACTED
    with client(rendered(frames)) as sdk, sdk.beta.messages.stream(**ASK) as stream:
        message: BetaMessage = stream.get_final_message()
    assert present(message.to_dict(mode="json")) == present(COMPACTED)


def test_the_last_of_several_models_has_replied() -> None:
    other = {"type": "fallback", "from": {"model": "m"}, "to": {"model": "n"}}
    reply = gathered([start(), *block(0, other), *text(1, ["x"]), *end()])
    assert reply is not None
    assert reply["model"] == "n"


def test_arguments_that_were_cut_are_told_under_a_name() -> None:
    reply = gathered([start(), *call(0, ['{"a": "b', "c"]), *end("max_tokens")])
    assert reply is not None
    assert reply["content"][0]["input"] == {"INVALID_JSON": '{"a": "bc'}
    assert VIEW.replied(reply).ending(0) == "length"


def test_half_a_character_finds_the_other() -> None:
    reply = gathered([start(), *text(0, ["\ud83d", "\ude00"]), *call(1, ['{"a":"\ud83d', '\ude00"}']), *end()])
    assert reply is not None
    assert reply["content"][0]["text"] == "😀"
    assert reply["content"][1]["input"] == {"a": "😀"}


def test_usage_is_what_was_said_last() -> None:
    frames = [start(5), *text(0, ["x"]), *end(tokens=20)]
    frames[-2]["usage"] |= {"input_tokens": 6, "cache_read_input_tokens": None}
    reply = gathered(frames)
    assert reply is not None
    assert reply["usage"] == {"input_tokens": 6, "output_tokens": 20, "cache_read_input_tokens": None}


@pytest.mark.parametrize("frames", GOLDEN)
def test_a_stream_that_breaks_off_tells_no_reply(frames: list[Document]) -> None:
    for count in range(len(frames) - 1):
        assert gathered(frames[:count]) is None
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert gathered([*frames, error]) is None
    with pytest.raises(anthropic.APIStatusError):
        listened([*frames[:-2], error])


# --- anything --------------------------------------------------------------------------------------------------------

REQUESTS: list[Document] = [
    {
        "model": "m",
        "max_tokens": 9,
        "system": [said("One.", cache_control=EPHEMERAL)],
        "messages": [
            user(said("hi")),
            assistant(THOUGHT, said("a"), use(), use("b")),
            user(result("toolu_find_0", "x"), result("toolu_b_0", [said("y")]), said("z")),
            {"role": "system", "content": [{"type": "tool_addition", "tool": {"definition": FIND}}]},
        ],
        "tools": [FIND, SEARCH, {"type": "bash_20250124", "name": "bash"}, {"type": "computer_toolset_20260801"}],
        "tool_choice": {"type": "tool", "name": "find", "disable_parallel_tool_use": True},
        "output_config": {"format": FORM},
        "output_format": FORM,
        "container": {"id": "c"},
    }
]
REPLIES = [*WHOLE, COMPACTED, whole(use("key", toolset_name="computer"), container={"id": "c"})]
FRAMES = [frame for frames in GOLDEN for frame in frames]


@examples(150)
@given(OBJECTS | mutated(REQUESTS), st.sampled_from(REPLIES) | mutated(REPLIES))
def test_any_request(request: Document, reply: Document) -> None:
    ask_all(VIEW, over_the_wire(request), over_the_wire(reply))


@examples(150)
@given(OBJECTS | mutated(REPLIES))
def test_any_reply(reply: Document) -> None:
    hear_all(VIEW, over_the_wire(reply))


@examples(150)
@given(st.lists(OBJECTS | mutated(FRAMES), max_size=6))
def test_any_stream(frames: list[Document]) -> None:
    before = deepcopy(frames)
    reply = gathered(frames)
    assert frames == before
    if reply is not None:
        hear_all(VIEW, reply)


BLOCKS = st.sampled_from(
    [
        THOUGHT,
        said("a"),
        said("b 😀", citations=[CITATION]),
        use(given={"a": [1, 2.5e3, "\ud800", None], "b": {}}),
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "nobody_knows", "text": "x", "input": {"a": 1}},
    ]
)


@examples(100)
@given(st.lists(BLOCKS, max_size=5), st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn"]))
def test_what_a_stream_tells_is_what_is_gathered(content: list[Document], reason: str) -> None:
    reply = over_the_wire(whole(*content, stop_reason=reason))
    assert gathered([over_the_wire(frame) for frame in VIEW.frames(reply)]) == reply


@examples(100)
@given(st.data())
def test_it_does_not_matter_how_a_text_is_cut(data: st.DataObject) -> None:
    reply = whole(THOUGHT, said("Hello, 😀 world."), use(given={"a": [1, "b\u20ac"], "c": {}}))
    frames: list[Document] = []
    for frame in VIEW.frames(reply):
        frames += cut(frame, data.draw(st.integers(0, 12)))
    assert gathered(frames) == reply


def test_documents_as_deep_as_the_sidecar_takes_them() -> None:
    deep: Any = {}
    for _ in range(jsondoc.MAX_DEPTH - 10):
        deep = {"a": deep}
    reply = over_the_wire(whole(use(given=deep)))
    assert gathered(VIEW.frames(reply)) == reply
    assert answered(reply, {})["messages"][1] == assistant(use(given=deep))


def cut(frame: Document, at: int) -> list[Document]:
    delta = frame.get("delta", {})
    field = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(
        delta.get("type")
    )
    if field is None:
        return [frame]
    parts = (delta[field][:at], delta[field][at:])
    return [frame | {"delta": delta | {field: part}} for part in parts]
