"""The conversation view of `/v1/responses`, held against the official client's types and its reader of streams."""

import base64
import zlib
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import Response, ResponseInputItem
from pydantic import TypeAdapter

from sidecar.wire import jsondoc, sse
from sidecar.wire.conversation import Called, Choice, Format, HostedCall, Result, View
from sidecar.wire.views import VIEWS, responses
from tests.wire.bridges.responses_talk import checked
from tests.wire.fuzz import examples
from tests.wire.responses_talk import Cut, Document, copies, heard, said
from tests.wire.responses_talk import events as told_events
from tests.wire.responses_talk import response as told_response

from .anything import OBJECTS, ask_all, hear_all, mutated, over_the_wire

VIEW: View = responses

FIND: Document = {
    "type": "function",
    "name": "find",
    "description": "Finds.",
    "parameters": {"type": "object", "properties": {"at": {"type": "number"}}},
    "strict": True,
}
WRITE: Document = {"type": "custom", "name": "write", "description": "Writes."}
SEARCH: Document = {"type": "web_search"}


USAGE: Document = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 7,
}


def response(items: Sequence[Document], status: Any = "completed", **more: Any) -> Document:
    return told_response(items, status, **{"usage": USAGE, **more})


def events(items: Sequence[Document], cut: Cut) -> list[Document]:
    return told_events(items, cut, usage=USAGE)


def message(*texts: str, at: int = 0, **more: Any) -> Document:
    parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    head = {"id": f"msg_{at}", "type": "message", "role": "assistant", "status": "completed", "content": parts}
    return head | more


def refusal(text: str, at: int = 0) -> Document:
    return message(at=at) | {"content": [{"type": "refusal", "refusal": text}]}


def thought(at: int = 0, **more: Any) -> Document:
    return {"id": f"rs_{at}", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], **more}


def function(name: str = "find", arguments: str = '{"at":1.50}', at: int = 0, **more: Any) -> Document:
    head = {"id": f"fc_{at}", "type": "function_call", "status": "completed", "call_id": f"call_{name}_{at}"}
    return head | {"name": name, "arguments": arguments} | more


CUSTOM: Document = {
    "id": "ctc_0",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_write",
    "name": "write",
    "input": "free text",
}
LOCAL_SHELL: Document = {
    "id": "lsh_0",
    "type": "local_shell_call",
    "status": "completed",
    "call_id": "call_lsh",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
SHELL: Document = {
    "id": "sh_0",
    "type": "shell_call",
    "status": "completed",
    "call_id": "call_sh",
    "environment": {"type": "local"},
    "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": 100},
}
PATCH: Document = {
    "id": "apc_0",
    "type": "apply_patch_call",
    "status": "completed",
    "call_id": "call_patch",
    "operation": {"type": "delete_file", "path": "a.py"},
}
COMPUTER: Document = {
    "id": "cu_0",
    "type": "computer_call",
    "status": "completed",
    "call_id": "call_cu",
    "action": {"type": "click", "button": "left", "x": 1, "y": 2},
    "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "Look."}],
}
TOOL_SEARCH: Document = {
    "id": "tsc_0",
    "type": "tool_search_call",
    "status": "completed",
    "call_id": "call_ts",
    "execution": "client",
    "arguments": {"query": "mail"},
}
WEB: Document = {
    "id": "ws_0",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "x", "queries": ["x"]},
}
MCP: Document = {
    "id": "mcp_0",
    "type": "mcp_call",
    "status": "completed",
    "server_label": "s",
    "name": "find",
    "arguments": "{}",
    "output": "found",
    "error": None,
}
APPROVAL: Document = {
    "id": "mcpr_0",
    "type": "mcp_approval_request",
    "server_label": "s",
    "name": "send",
    "arguments": '{"to":1.50}',
}
RUN_BY_CLIENT = (function(), CUSTOM, LOCAL_SHELL, SHELL, PATCH, COMPUTER, TOOL_SEARCH)


def asked(**request: Any) -> Any:
    return VIEW.asked({"model": "m", "input": "hello", **request})


def replied(*items: Document, **more: Any) -> Any:
    return VIEW.replied(response(deepcopy(list(items)), **more))


# --- tools -------------------------------------------------------------------------------------------------------


def test_it_is_in_the_table() -> None:
    assert VIEWS["responses"] is VIEW


def test_functions_and_custom_tools() -> None:
    first, second = asked(tools=[FIND, SEARCH, WRITE]).tools
    assert first == ("find", "Finds.", FIND["parameters"], FIND)
    assert second == ("write", "Writes.", None, WRITE)


@pytest.mark.parametrize(
    ("definition", "names"),
    [
        ({"type": "local_shell"}, ["local_shell"]),
        ({"type": "shell"}, ["shell"]),
        ({"type": "shell", "environment": {"type": "local"}}, ["shell"]),
        ({"type": "shell", "environment": {"type": "container_auto"}}, []),
        ({"type": "apply_patch"}, ["apply_patch"]),
        ({"type": "computer"}, ["computer"]),
        ({"type": "computer_use_preview", "environment": "linux"}, ["computer"]),
        ({"type": "tool_search", "execution": "client"}, ["tool_search"]),
        ({"type": "tool_search"}, []),
        ({"type": "namespace", "name": "crm", "description": "", "tools": [FIND, WRITE]}, ["find", "write"]),
        ({"type": "mcp", "server_label": "s"}, []),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, []),
        ({"type": "file_search"}, []),
        ({"type": "function"}, []),
        ({"type": ["function"], "name": "f"}, []),
    ],
)
def test_who_runs_a_tool(definition: Document, names: list[str]) -> None:
    assert [tool.name for tool in asked(tools=[definition]).tools] == names


def test_tools_that_came_with_an_item() -> None:
    items = [{"type": "additional_tools", "role": "developer", "tools": [WRITE]}]
    items.append({"type": "tool_search_output", "call_id": "c", "tools": [FIND]})
    assert [tool.name for tool in asked(input=items).tools] == ["write", "find"]


@pytest.mark.parametrize(
    ("given", "tools", "choice"),
    [
        (None, [FIND], Choice()),
        ("auto", [FIND], Choice()),
        ("none", [FIND], Choice("none")),
        ("required", [FIND], Choice("required")),
        ("required", [FIND, SEARCH], Choice()),  # a search is a call as well
        ("required", [], Choice()),
        ({"type": "function", "name": "find"}, [FIND], Choice("required", "find")),
        ({"type": "custom", "name": "write"}, [WRITE], Choice("required", "write")),
        ({"type": "shell"}, [{"type": "shell"}], Choice("required", "shell")),
        ({"type": "computer_use_preview"}, [], Choice("required", "computer")),
        ({"type": "web_search_preview"}, [SEARCH], Choice()),
        ({"type": "mcp", "server_label": "s"}, [], Choice()),
        (["required"], [FIND], Choice()),
    ],
)
def test_whether_it_must_call(given: Any, tools: list[Document], choice: Choice) -> None:
    assert asked(tool_choice=given, tools=tools).choice == choice


def test_only_what_is_allowed_is_there() -> None:
    only = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "write"}]}
    view = asked(tool_choice=only, tools=[FIND, WRITE])
    assert [tool.name for tool in view.tools] == ["write"]
    assert view.choice == Choice("required", "write")
    both = only | {"tools": [*only["tools"], {"type": "function", "name": "find"}]}
    assert asked(tool_choice=both, tools=[FIND, WRITE]).choice == Choice("required")
    assert asked(tool_choice=only | {"mode": "auto"}, tools=[FIND, WRITE]).choice == Choice()


def test_several_at_once() -> None:
    assert asked().parallel is True
    assert asked(parallel_tool_calls=False).parallel is False


# --- the form of the reply -----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {}}


def test_the_form_is_read_and_written() -> None:
    told = {"type": "json_schema", "name": "t", "description": "A ticket.", "schema": SCHEMA, "strict": True}
    request: Document = {"text": {"format": told, "verbosity": "low"}}
    view = VIEW.asked(request)
    assert view.format == Format("t", SCHEMA, strict=True)
    before = deepcopy(request)
    view.set_format(view.format)
    assert request == before
    view.set_format(Format("", None))
    assert request == {"text": {"format": {"type": "json_object"}, "verbosity": "low"}}
    assert view.format == Format("", None)
    view.set_format(None)
    assert request == {"text": {"verbosity": "low"}}
    view.set_format(Format("a ticket", SCHEMA, strict=False))
    assert request["text"]["format"] == {"type": "json_schema", "name": "a_ticket", "schema": SCHEMA, "strict": False}


def test_no_form_leaves_nothing() -> None:
    request: Document = {"text": {"format": {"type": "text"}}}
    assert VIEW.asked(request).format is None
    VIEW.asked(request).set_format(None)
    assert request == {}


# --- the conversation ----------------------------------------------------------------------------------------------


def test_the_history() -> None:
    items: list[Document] = [
        {"role": "user", "content": "hello"},
        thought(),
        *RUN_BY_CLIENT,
        WEB,
        {"type": "function_call_output", "call_id": "call_find_0", "output": "one"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_write",
            "output": [
                {"type": "input_text", "text": "two"},
                {"type": "input_image", "image_url": "https://a/b.png"},
                {"type": "input_text", "text": "three"},
            ],
        },
        {"type": "local_shell_call_output", "id": "call_lsh", "output": "four"},
        {
            "type": "shell_call_output",
            "call_id": "call_sh",
            "output": [{"stdout": "five", "stderr": "six", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "apply_patch_call_output", "call_id": "call_patch", "status": "completed", "output": "seven"},
        {"type": "computer_call_output", "call_id": "call_cu", "output": {"type": "computer_screenshot"}},
        {"type": "tool_search_output", "call_id": "call_ts", "tools": []},
        {"type": "function_call_output", "call_id": "gone", "output": "eight"},
        function(at=1),
    ]
    history = asked(input=items).history
    calls = [each for each in history if isinstance(each, Called)]
    assert calls == [
        Called("call_find_0", "find", '{"at":1.50}', position=0),
        Called("call_write", "write", "free text", free=True, position=1),
        Called("call_lsh", "local_shell", '{"type":"exec","command":["ls"],"env":{}}', position=2),
        Called("call_sh", "shell", '{"commands":["ls","pwd"],"timeout_ms":null,"max_output_length":100}', position=3),
        Called("call_patch", "apply_patch", '{"type":"delete_file","path":"a.py"}', position=4),
        Called("call_cu", "computer", '{"actions":[{"type":"click","button":"left","x":1,"y":2}]}', position=5),
        Called("call_ts", "tool_search", '{"query":"mail"}', position=6),
        Called("call_find_1", "find", '{"at":1.50}', position=0),
    ]
    results = [each for each in history if isinstance(each, Result)]
    assert [(each.name, [part.text for part in each.texts]) for each in results] == [
        ("find", ["one"]),
        ("write", ["two", "three"]),
        ("local_shell", ["four"]),
        ("shell", ["five", "six"]),
        ("apply_patch", ["seven"]),
        ("computer", []),
        ("tool_search", []),
        ("", ["eight"]),
    ]
    results[1].texts[1].replace("3")
    assert items[11]["output"][2]["text"] == "3"


def test_what_the_provider_ran_is_no_call_of_the_history() -> None:
    theirs = SHELL | {"environment": {"type": "container_reference", "container_id": "c"}}
    output = {"type": "shell_call_output", "call_id": "call_sh", "output": []}
    found = TOOL_SEARCH | {"execution": "server"}
    assert asked(input=[theirs, output, found, MCP, WEB]).history == [
        HostedCall("call_sh", "shell"),
        HostedCall("call_ts", "tool_search"),
        HostedCall("mcp_0", "find"),
        HostedCall("ws_0", "web_search"),
    ]


@pytest.mark.parametrize(
    ("item", "call"),
    [
        ({"type": "file_search_call", "id": "fs_0", "queries": ["x"]}, HostedCall("fs_0", "file_search")),
        ({"type": "code_interpreter_call", "id": "ci_0", "code": "1"}, HostedCall("ci_0", "code_interpreter")),
        ({"type": "image_generation_call", "id": "ig_0", "result": None}, HostedCall("ig_0", "image_generation")),
        ({"type": "program", "id": "pg_0", "call_id": "c", "code": "1"}, HostedCall("c", "programmatic_tool_calling")),
        (MCP | {"approval_request_id": "mcpr_0"}, HostedCall("mcpr_0", "find")),  # the call that was approved
        ({"type": "web_search_call"}, HostedCall("", "web_search")),
        ({"type": "mcp_call", "id": "mcp_1"}, None),
        ({"type": "mcp_list_tools", "id": "mcpl_0", "server_label": "s", "tools": []}, None),
    ],
)
def test_what_is_called_that_the_provider_runs(item: Document, call: HostedCall | None) -> None:
    found = [] if call is None else [call]
    assert asked(input=[item]).history == found
    assert replied(item).hosted == found
    assert replied(item).calls == []


def test_a_call_that_waits_for_an_approval_is_in_the_history() -> None:
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_0", "approve": True}
    assert asked(input=[APPROVAL, answer]).history == [
        Called("mcpr_0", "send", '{"to":1.50}', hosted=True),
        Result("mcpr_0", "send", []),
    ]


@pytest.mark.parametrize(
    ("told", "may"),
    [
        ({}, True),  # always, if nobody says otherwise
        ({"require_approval": "always"}, True),
        ({"require_approval": {"never": {"tool_names": ["find"]}}}, True),
        ({"require_approval": "never"}, False),
    ],
)
def test_whether_an_approval_may_be_asked_for(told: Document, may: bool) -> None:
    server = {"type": "mcp", "server_label": "s", **told}
    assert asked(tools=[FIND, server]).approvals is may
    assert asked(input=[{"type": "additional_tools", "tools": [server]}]).approvals is may
    assert not asked(tools=[FIND, SEARCH]).approvals


def test_system_text_is_where_it_may_be() -> None:
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Two."}]},
        {"role": "user", "content": "hello"},
        {"role": "system", "content": "Three."},
    ]
    assert asked(instructions="One.", input=items).system == "One.\n\nTwo.\n\nThree."
    assert asked().system == ""


def told(document: Document, text: str = "Be kind.") -> Document:
    VIEW.asked(document).instruct(text)
    return document


def test_instructions_go_where_the_system_text_is() -> None:
    assert told({"input": "hello"}) == {"input": "hello", "instructions": "Be kind."}
    assert told({"instructions": "One."}) == {"instructions": "One.\n\nBe kind."}
    first, user = {"role": "developer", "content": "One."}, {"role": "user", "content": "hello"}
    said = told({"instructions": "Zero.", "input": [deepcopy(first), user]})
    assert said == {"instructions": "Zero.", "input": [first | {"content": "One.\n\nBe kind."}, user]}
    parts = [{"type": "input_text", "text": "One."}]
    said = told({"input": [first | {"content": parts}, user]})
    assert said["input"][0]["content"] == [
        {"type": "input_text", "text": "One."},
        {"type": "input_text", "text": "Be kind."},
    ]
    assert told({"input": [user, first]})["instructions"] == "Be kind."


def test_the_user_speaks() -> None:
    def said(given: Any) -> Any:
        request: Document = {"input": deepcopy(given)}
        VIEW.asked(request).say("And?")
        return request["input"]

    user, alone = {"type": "message", "role": "user"}, {"type": "message", "role": "user", "content": "And?"}
    parts = [{"type": "input_text", "text": "hello"}]
    assert said("hello") == [user | {"content": "hello\n\nAnd?"}]
    assert said([user | {"content": parts}]) == [user | {"content": [*parts, {"type": "input_text", "text": "And?"}]}]
    result = {"type": "function_call_output", "call_id": "c", "output": "sun"}
    for last in (result, {"role": "assistant", "content": "Hm."}, user, {"role": "user", "content": 1}, 7):
        assert said([last]) == [last, alone]
    assert said([]) == said(None) == [alone]


# --- a reply that becomes history ------------------------------------------------------------------------------------

ITEMS = TypeAdapter[Any](list[ResponseInputItem])


def answered(reply: Document, results: dict[str, str], **request: Any) -> list[Document]:
    """The input that follows, of which every item is one that the API takes."""
    document: Document = {"model": "m", "input": "hello", **request}
    VIEW.asked(document).answer(reply, results)
    ITEMS.validate_python(document["input"], strict=True)
    said: list[Document] = document["input"]
    return said


def test_a_turn_goes_back_with_its_reasoning_and_results() -> None:
    reply = response(
        [thought(encrypted_content="sealed", status=None), message("Let me see."), function(), function("b")]
    )
    before = deepcopy(reply)
    user, *items = answered(reply, {"call_find_0": "denied", "call_b_0": "ok"}, store=False)
    assert reply == before
    assert user == {"type": "message", "role": "user", "content": "hello"}
    assert items[0] == thought(encrypted_content="sealed")  # a null is more than the API takes
    assert items[1:4] == reply["output"][1:]
    assert items[4:] == [
        {"type": "function_call_output", "call_id": "call_find_0", "output": "denied"},
        {"type": "function_call_output", "call_id": "call_b_0", "output": "ok"},
    ]


@pytest.mark.parametrize(
    ("request_store", "reply_store", "more", "kept"),
    [
        (None, None, {}, True),
        (True, True, {}, True),
        (False, None, {}, False),
        (None, False, {}, False),
        (False, False, {"encrypted_content": "sealed"}, True),
        (False, False, {"content": [{"type": "reasoning_text", "text": "Hm."}]}, True),
    ],
)
def test_reasoning_that_nobody_could_read_is_left_out(
    request_store: Any, reply_store: Any, more: Document, kept: bool
) -> None:
    items = answered(response([thought(**more), message("x")], store=reply_store), {}, store=request_store)
    assert [item["type"] for item in items] == ["message", *(["reasoning"] if kept else []), "message"]


def test_every_kind_of_call_gets_its_own_kind_of_result() -> None:
    reply = response([*RUN_BY_CLIENT])
    calls = VIEW.replied(reply).calls
    items = answered(reply, {call.id: f"no {call.name}" for call in calls})
    results = items[1 + len(RUN_BY_CLIENT) :]
    assert results[:5] == [
        {"type": "function_call_output", "call_id": "call_find_0", "output": "no find"},
        {"type": "custom_tool_call_output", "call_id": "call_write", "output": "no write"},
        {"type": "local_shell_call_output", "id": "call_lsh", "output": "no local_shell"},
        {
            "type": "shell_call_output",
            "call_id": "call_sh",
            "output": [{"stdout": "", "stderr": "no shell", "outcome": {"type": "exit", "exit_code": 1}}],
            "max_output_length": 100,
        },
        {"type": "apply_patch_call_output", "call_id": "call_patch", "status": "failed", "output": "no apply_patch"},
    ]
    screen, found, *said = results[5:]
    assert screen["acknowledged_safety_checks"] == COMPUTER["pending_safety_checks"]
    assert found == {"type": "tool_search_output", "call_id": "call_ts", "execution": "client", "tools": []}
    assert [each["content"] for each in said] == [
        "Result of computer (call_cu): no computer",
        "Result of tool_search (call_ts): no tool_search",
    ]
    history = asked(input=items).history
    assert [each.name for each in history if isinstance(each, Result)] == [call.name for call in calls]


def test_an_approval_is_refused() -> None:
    *_, request, result = answered(response([APPROVAL]), {"mcpr_0": "not that"})
    assert request == APPROVAL
    refusal = {"type": "mcp_approval_response", "approval_request_id": "mcpr_0", "approve": False, "reason": "not that"}
    assert result == refusal
    TypeAdapter(ResponseInputItem).validate_python(result)


def test_an_approval_request_without_an_id_gets_one() -> None:
    bare = {"type": "mcp_approval_request", "server_label": "s", "name": "send", "arguments": "{}"}
    *_, request, result = answered(response([bare]), {"call_0": "no"})
    assert request == bare | {"id": "call_0"}
    assert result["approval_request_id"] == "call_0"


def test_the_picture_of_nothing_is_a_png() -> None:
    shown = answered(response([COMPUTER]), {"call_cu": "no"})[2]["output"]["image_url"]
    data = base64.b64decode(shown.removeprefix("data:image/png;base64,"), validate=True)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    sizes = []
    rest = data[8:]
    while rest:
        size = int.from_bytes(rest[:4])
        assert zlib.crc32(rest[4 : 8 + size]) == int.from_bytes(rest[8 + size : 12 + size])
        sizes.append(rest[4:8])
        rest = rest[12 + size :]
    assert sizes == [b"IHDR", b"IDAT", b"IEND"]


def test_a_call_out_of_a_program_is_answered_there() -> None:
    caller = {"type": "program", "caller_id": "prog_1"}
    *_, result = answered(response([function(caller=caller)]), {"call_find_0": "no"})
    assert result["caller"] == caller


def test_a_call_without_an_id_gets_one() -> None:
    bare = {"type": "function_call", "name": "find", "arguments": "{}"}
    reply = response([bare, dict(bare)])
    assert [call.id for call in VIEW.replied(reply).calls] == ["call_0", "call_1"]
    assert [item.get("call_id") for item in answered(reply, {"call_1": "no"})] == [None, "call_0", "call_1", "call_1"]


def test_what_went_before_stays_beside_a_previous_response() -> None:
    document: Document = {"previous_response_id": "resp_0", "input": "hello"}
    VIEW.asked(document).answer(response([function()]), {"call_find_0": "no"})
    assert document["previous_response_id"] == "resp_0"
    assert [item["type"] for item in document["input"]] == ["message", "function_call", "function_call_output"]


def test_a_conversation_holds_the_turn_already() -> None:
    document: Document = {"conversation": {"id": "conv_1"}, "input": "hello"}
    VIEW.asked(document).answer(response([function()]), {"call_find_0": "no"})
    assert document["input"] == [{"type": "function_call_output", "call_id": "call_find_0", "output": "no"}]


# --- the reply -------------------------------------------------------------------------------------------------------


def test_what_a_reply_says_and_calls() -> None:
    reply = replied(thought(), message("a", "b"), MCP, *RUN_BY_CLIENT, message("c", at=1))
    assert reply.texts == {0: "abc"}
    assert [(call.name, call.position) for call in reply.calls] == [
        ("find", 0),
        ("write", 1),
        ("local_shell", 2),
        ("shell", 3),
        ("apply_patch", 4),
        ("computer", 5),
        ("tool_search", 6),
    ]
    assert reply.ending(0) == "calls"
    assert reply.ending(1) == "other"


def test_what_the_provider_ran_is_no_call() -> None:
    theirs = SHELL | {"environment": {"type": "container_reference", "container_id": "c"}}
    done = [SHELL | {"environment": None}, {"type": "shell_call_output", "call_id": "call_sh", "output": []}]
    reply = replied(theirs, *done, WEB, MCP, TOOL_SEARCH | {"execution": "server"})
    assert reply.calls == []
    assert [call.name for call in reply.hosted] == ["shell", "shell", "web_search", "find", "tool_search"]
    assert reply.ending(0) == "stop"


def test_a_reply_that_waits_for_an_approval() -> None:
    reply = replied(message("Hm."), APPROVAL)
    assert reply.calls == [Called("mcpr_0", "send", '{"to":1.50}', hosted=True)]
    assert reply.hosted == []
    assert reply.ending(0) == "calls"
    reply.drop(reply.calls, "No.")
    assert (reply.calls, reply.texts, reply.ending(0)) == ([], {0: "Hm.\n\nNo."}, "stop")


@pytest.mark.parametrize(
    ("status", "reason", "ending"),
    [
        ("completed", None, "stop"),
        (None, None, "stop"),
        ("incomplete", "max_output_tokens", "length"),
        ("incomplete", "content_filter", "filtered"),
        ("incomplete", None, "other"),
        ("failed", None, "other"),
        ("in_progress", None, "other"),
    ],
)
def test_how_it_ended(status: Any, reason: Any, ending: str) -> None:
    details = {"reason": reason} if reason else None
    assert replied(message("x"), status=status, incomplete_details=details).ending(0) == ending


def test_a_cut_reply_with_a_call_was_cut() -> None:
    details = {"reason": "max_output_tokens"}
    assert replied(function(), status="incomplete", incomplete_details=details).ending(0) == "length"


def test_a_refusal() -> None:
    reply = replied(refusal("I cannot."))
    assert reply.refused(0) is True
    assert reply.texts == {0: ""}
    assert replied(message("x")).refused(0) is False


def test_comments_on_the_work_are_not_the_answer() -> None:
    comment, answer = message("Let me see.", phase="commentary"), message("{}", at=1, phase="final_answer")
    document = response([comment, answer])
    assert VIEW.replied(document).texts == {0: "{}"}
    VIEW.replied(document).say(0, "[]")
    assert [item["content"][0]["text"] for item in document["output"]] == ["Let me see.", "[]"]
    assert replied(comment, function()).texts == {0: "Let me see."}


# --- edits of a reply ------------------------------------------------------------------------------------------------


def changed(document: Document) -> Document:
    """What the official client's types hold."""
    return Response.model_validate(document, strict=True).to_dict(mode="json")


def test_say_puts_one_text_in_the_place_of_all() -> None:
    noted = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "u"}
    last = message("b", "c", at=1)
    last["content"][0] |= {"annotations": [noted], "logprobs": [{"token": "b", "bytes": [98], "logprob": -1.0}]}
    document = response([thought(), message("a"), thought(1), last, function()], output_text="abc", temperature=1.0)
    VIEW.replied(document).say(0, "new")
    assert [item["id"] for item in document["output"]] == ["rs_1", "msg_1", "fc_0"]
    assert document["output"][1]["content"] == message("new")["content"]
    assert document["output_text"] == "new"
    assert changed(document)["output"][1]["content"][0]["text"] == "new"


def test_say_where_nothing_was_said() -> None:
    document = response([thought(), function()])
    VIEW.replied(document).say(0, "new")
    assert [item["type"] for item in document["output"]] == ["reasoning", "function_call", "message"]
    assert VIEW.replied(document).texts == {0: "new"}
    assert changed(document)["output"][2]["role"] == "assistant"


def test_say_to_no_choice() -> None:
    document = response([message("a")])
    VIEW.replied(document).say(1, "new")
    assert document == response([message("a")])


def test_drop_takes_calls_and_tells_why() -> None:
    document = response(
        [thought(), message("Let me see."), function(), CUSTOM, function("b")], output_text="Let me see."
    )
    first, _, third = VIEW.replied(document).calls
    VIEW.replied(document).drop([first, third], "Not allowed.")
    assert [item["type"] for item in document["output"]] == ["reasoning", "message", "custom_tool_call"]
    assert VIEW.replied(document).texts == {0: "Let me see.\n\nNot allowed."}
    assert document["output_text"] == "Let me see.\n\nNot allowed."
    assert VIEW.replied(document).ending(0) == "calls"
    VIEW.replied(document).drop(VIEW.replied(document).calls, "")
    assert VIEW.replied(document).ending(0) == "stop"


def test_drop_takes_along_the_reasoning_that_led_to_nothing_else() -> None:
    document = response([thought(), function(), thought(1), function("b"), function("c")])
    first, second, third = VIEW.replied(document).calls
    VIEW.replied(document).drop([first, second], "No.")
    assert [item["id"] for item in document["output"]] == ["rs_1", "fc_0", "msg_1_2"]
    assert [call.name for call in VIEW.replied(document).calls] == [third.name]
    assert changed(document)["output"][2]["content"][0]["text"] == "No."


# --- streams ---------------------------------------------------------------------------------------------------------


def gathered(frames: Sequence[Document]) -> Document | None:
    gather = VIEW.gather()
    for frame in frames:
        gather.feed(frame)
    return gather.reply


def listened(frames: Sequence[Document]) -> tuple[list[Document], list[str]]:
    """What the official client makes of a stream: the output, and the answers and arguments as deltas built them up."""
    body = b"".join(sse.render(jsondoc.encode(frame), frame["type"].encode()) for frame in frames)
    reply = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: reply))
    grown: dict[tuple[int, int], str] = {}
    with (
        OpenAI(api_key="k", base_url="http://provider/v1", http_client=http, max_retries=0) as sdk,
        sdk.responses.stream(model="m", input="hello") as stream,
    ):
        for event in stream:
            if event.type in ("response.output_text.delta", "response.function_call_arguments.delta"):
                grown[event.output_index, getattr(event, "content_index", 0)] = event.snapshot
        output = stream.get_final_response().to_dict(mode="json")["output"]
    return unparsed(output), list(grown.values())


def unparsed(value: Any) -> Any:
    """Without what the client itself has read out of it."""
    if isinstance(value, list):
        return [unparsed(inner) for inner in value]
    if isinstance(value, dict):
        return {key: unparsed(inner) for key, inner in value.items() if key not in ("parsed", "parsed_arguments")}
    return value


def answers(items: Sequence[Document]) -> list[str]:
    """The answers and arguments of items, but for empty ones."""
    parts = [part.get("text", "") for item in items for part in item.get("content", ()) if item["type"] == "message"]
    calls = [item["arguments"] for item in items if item["type"] == "function_call"]
    return [text for text in (*parts, *calls) if text]


NOTED: Document = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "u"}
CITED = message("See this.", "And that.")
CITED["content"][1] |= {
    "annotations": [NOTED, NOTED | {"start_index": 1}],
    "logprobs": [{"token": "b", "bytes": [98], "logprob": -1, "top_logprobs": []}],
}
CODE: Document = {
    "id": "ci_0",
    "type": "code_interpreter_call",
    "status": "completed",
    "code": "print(1)",
    "container_id": "c",
    "outputs": None,
}
GOLDEN: list[list[Document]] = [
    [message("Hello, world.")],
    [thought(encrypted_content="sealed"), CITED],
    [thought(content=[{"type": "reasoning_text", "text": "So."}]), message("a"), function(), function("b", at=1)],
    [refusal("I cannot.")],
    [message("Let me see.", phase="commentary"), WEB, MCP, CODE, message("", at=1, phase="final_answer")],
    [CUSTOM, LOCAL_SHELL, SHELL, PATCH, COMPUTER, TOOL_SEARCH],
    [],
]


def pieces(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


@pytest.mark.parametrize("items", GOLDEN)
def test_a_stream_is_gathered_as_the_official_client_reads_it(items: list[Document]) -> None:
    frames = events(items, pieces)
    before = deepcopy(frames)
    reply = gathered(frames)
    assert reply == response(items)
    assert frames == before
    assert listened(frames) == (items, answers(items))


@pytest.mark.parametrize("items", GOLDEN)
def test_a_stream_that_tells_a_reply(items: list[Document]) -> None:
    reply = response(items)
    frames = VIEW.frames(reply)
    checked(frames)
    assert gathered(frames) == reply
    assert listened(frames) == (items, answers(items))
    texts = {key: text for key, text in said(items).items() if text}
    assert heard(frames) == texts
    assert [{key: text for key, text in copy.items() if text} for copy in copies(frames)][-1] == texts
    assert frames[0]["response"]["output"] == []
    assert frames[0]["response"]["usage"] is None


def test_the_events_of_a_reply() -> None:
    names = checked(VIEW.frames(response([thought(), CITED, function(), SHELL])))
    assert names == [
        *("created", "in_progress", "output_item.added"),
        *("reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
        *("reasoning_summary_part.done", "output_item.done", "output_item.added"),
        *("content_part.added", "output_text.delta", "output_text.done", "content_part.done"),
        *("content_part.added", "output_text.delta", *["output_text.annotation.added"] * 2),
        *("output_text.done", "content_part.done", "output_item.done", "output_item.added"),
        *("function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "output_item.added"),
        *["shell_call_command.added", "shell_call_command.delta", "shell_call_command.done"] * 2,
        *("output_item.done", "completed"),
    ]


def test_frames_stand_alone() -> None:
    reply = response([CITED, function()])
    before = deepcopy(reply)
    frames = VIEW.frames(reply)
    for frame in frames:
        kept = [deepcopy(other) for other in frames if other is not frame]
        for value in frame.values():
            if isinstance(value, dict | list):
                value.clear()
        assert [other for other in frames if other is not frame] == kept
    assert reply == before


def test_a_reply_that_was_cut() -> None:
    details = {"reason": "max_output_tokens"}
    reply = response([message("Hel", status="incomplete")], status="incomplete", incomplete_details=details)
    frames = VIEW.frames(reply)
    assert frames[-1]["type"] == "response.incomplete"
    assert frames[0]["response"]["incomplete_details"] is None
    assert gathered(frames) == reply


@pytest.mark.parametrize("last", ["response.failed", "error", "response.cancelled"])
def test_a_stream_that_failed_tells_no_reply(last: str) -> None:
    frames = [*events([message("x")], pieces)[:-1], {"type": last, "response": response([], "failed")}]
    assert gathered(frames) is None
    assert gathered(frames[:-1]) is None


@pytest.mark.parametrize("empty", [[], None])
def test_an_output_that_a_server_leaves_empty_is_put_together(empty: Any) -> None:
    items = [message("x"), function()]
    frames = events(items, pieces)
    frames[-1]["response"]["output"] = empty
    assert gathered(frames) == response(items)


# --- anything --------------------------------------------------------------------------------------------------------

REQUESTS: list[Document] = [
    {
        "model": "m",
        "instructions": "Be kind.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "One."}]},
            {"role": "user", "content": "hi"},
            *RUN_BY_CLIENT,
            {"type": "function_call_output", "call_id": "call_find_0", "output": [{"type": "input_text", "text": "x"}]},
            {"type": "shell_call_output", "call_id": "call_sh", "output": [{"stdout": "a", "stderr": "b"}]},
            {"type": "additional_tools", "role": "developer", "tools": [WRITE]},
            *(APPROVAL, {"type": "mcp_approval_response", "approval_request_id": "mcpr_0", "approve": True}),
            *(MCP, WEB),
        ],
        "tools": [
            *(FIND, WRITE, SEARCH, {"type": "shell"}, {"type": "namespace", "name": "n", "tools": [FIND]}),
            {"type": "mcp", "server_label": "s", "require_approval": "always"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "find"}]},
        "text": {"format": {"type": "json_schema", "name": "t", "schema": SCHEMA, "strict": True}},
        "store": False,
    }
]
REPLIES = [
    *(response(items) for items in GOLDEN),
    response([thought(), *RUN_BY_CLIENT, message("x")], output_text="x"),
    response([WEB, MCP, APPROVAL]),
]
FRAMES = [frame for items in GOLDEN for frame in events(items, pieces)]


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


@examples(100)
@given(mutated(REPLIES))
def test_what_a_stream_tells_is_what_is_gathered(reply: Document) -> None:
    reply = over_the_wire(reply) | {"status": "completed"}
    assert gathered([over_the_wire(frame) for frame in VIEW.frames(reply)]) == (reply | _output(reply))


def _output(reply: Document) -> Document:
    """What is no output is put together from the items that there are: none."""
    return {} if reply.get("output") else {"output": reply["output"]} if "output" in reply else {}


@examples(60)
@given(st.lists(st.sampled_from([thought(), message("a", "b"), CITED, function(), CUSTOM, WEB]), max_size=6))
def test_nothing_but_what_is_dropped_goes(items: list[Document]) -> None:
    items = [deepcopy(item) | {"id": f"{item['id']}_{at}", "call_id": f"c{at}"} for at, item in enumerate(items)]
    document = response(items)
    view = VIEW.replied(document)
    view.drop(view.calls[::2], "")
    gone = {call.id for call in VIEW.replied(response(items)).calls[::2]}
    kept = [
        item for item in items if item["call_id"] not in gone or item["type"] not in ("function_call", CUSTOM["type"])
    ]
    assert [item for item in document["output"] if item["type"] != "reasoning"] == [
        item for item in kept if item["type"] != "reasoning"
    ]
