"""The request: every field of the client's API has a counterpart, is a documented hint, or is refused by name."""

import json
from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types import ContentBlockParam, ToolParam, ToolUnionParam, message_create_params
from anthropic.types.beta import message_create_params as beta_create_params
from openai.types.chat import completion_create_params

from sidecar.errors import InvalidRequest
from sidecar.wire import jsondoc
from sidecar.wire.bridges.messages_chat import Bridge, counting

from .messages_client import ASKED, Document, asking, call, chat_request

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
WEATHER = {"name": "weather", "description": "Says it.", "input_schema": {"type": "object", "properties": {}}}


def text(said: str, **more: Any) -> Document:
    return {"type": "text", "text": said, **more}


def user(*blocks: Document) -> Document:
    return {"role": "user", "content": list(blocks)}


def told(*messages: Document, **fields: Any) -> Any:
    return chat_request(messages=list(messages), **fields)["messages"]


def use(name: str, given: Document, id_: str = "call_1", **more: Any) -> Document:
    return {"type": "tool_use", "id": id_, "name": name, "input": given, **more}


def result(content: Any, id_: str = "call_1", **more: Any) -> Document:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def refused(document: Document) -> str | None:
    with pytest.raises(InvalidRequest) as fault:
        Bridge(document).request()
    assert fault.value.param is not None
    assert f"`{fault.value.param}`" in fault.value.message
    return fault.value.param


# --- fields ---------------------------------------------------------------------------------------------------

MAPPED: dict[str, tuple[Any, Document]] = {
    "model": ("other", {"model": "other"}),
    "max_tokens": (7, {"max_tokens": 7}),
    "temperature": (1, {"temperature": 1}),
    "top_p": (1, {"top_p": 1}),
    "top_k": (40, {"top_k": 40}),
    "stop_sequences": (["END"], {"stop": ["END"]}),
    "stream": (True, {"stream": True, "stream_options": {"include_usage": True}}),
    "metadata": ({"user_id": "u1"}, {"user": "u1"}),
    "service_tier": ("standard_only", {"service_tier": "default"}),
    "tools": (
        [WEATHER | {"type": "custom", "strict": True}],
        {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "weather",
                        "description": "Says it.",
                        "parameters": WEATHER["input_schema"],
                        "strict": True,
                    },
                }
            ]
        },
    ),
    "tool_choice": (
        {"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}, "parallel_tool_calls": False},
    ),
    "thinking": ({"type": "enabled", "budget_tokens": 8192}, {"reasoning_effort": "medium"}),
    "output_config": (
        {"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        {
            "reasoning_effort": "max",
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "output", "schema": {"type": "object"}, "strict": True},
            },
        },
    ),
    "system": ("Be brief.", {"messages": [{"role": "system", "content": "Be brief."}, *ASKED["messages"]]}),
    "messages": ([{"role": "user", "content": "Hi"}], {"messages": [{"role": "user", "content": "Hi"}]}),
    # Of these two only what changes nothing.
    "speed": ("standard", {}),
    "context_management": ({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, {}),
}
HINTS: Document = {"cache_control": {"type": "ephemeral"}}
REFUSED: Document = {
    "billing_policy": {"bill_to": "workspace"},
    "compaction": {"type": "auto"},
    "container": "container_1",
    "diagnostics": {"previous_message_id": "msg_1"},
    "fallback_credit_token": "t",
    "fallbacks": [],
    "inference_geo": "eu",
    "mcp_servers": [{"type": "url", "url": "http://mcp.test", "name": "m"}],
    "thread": {"id": "t"},
    "user_profile_id": "p",
    "workspace_id": "w",
}
# The client's own: it sends the first as a header.
_NOT_SENT = {"betas"}


@pytest.mark.parametrize("module", [message_create_params, beta_create_params], ids=["released", "beta"])
def test_each_field_of_the_official_client_is_known_here(module: Any) -> None:
    fields = {
        *get_type_hints(module.MessageCreateParamsNonStreaming),
        *get_type_hints(module.MessageCreateParamsStreaming),
    }
    assert fields - _NOT_SENT <= {*MAPPED, *HINTS, *REFUSED}


@pytest.mark.parametrize("field", MAPPED)
def test_a_field_with_a_counterpart_becomes_it(field: str) -> None:
    given, counterpart = MAPPED[field]
    assert chat_request(**{field: given}) == chat_request() | counterpart


@pytest.mark.parametrize("field", HINTS)
def test_a_hint_changes_nothing(field: str) -> None:
    assert chat_request(**{field: HINTS[field]}) == chat_request()


@pytest.mark.parametrize("field", [*REFUSED, "surprise"])
def test_a_field_without_a_counterpart_is_refused_by_name(field: str) -> None:
    assert refused(asking(**{field: REFUSED.get(field, 1)})) == field


def test_a_thread_is_refused_with_the_code_at_which_clients_go_on_without() -> None:
    with pytest.raises(InvalidRequest) as fault:
        Bridge(asking(thread={"type": "create"})).request()
    assert fault.value.code == "thread_unsupported_request"
    assert InvalidRequest.code == "invalid_request"


def test_null_is_as_good_as_absent() -> None:
    assert (
        chat_request(**dict.fromkeys([*REFUSED, "tools", "thinking", "metadata", "stop_sequences"])) == chat_request()
    )


def test_what_is_sent_is_in_the_providers_api() -> None:
    fields = {field: given for field, (given, _) in MAPPED.items()}
    known = get_type_hints(completion_create_params.CompletionCreateParamsStreaming)
    assert Bridge(fields).request().keys() - known.keys() == {"top_k"}


def test_the_limit_goes_where_the_provider_takes_it() -> None:
    request = Bridge(ASKED, limit="max_completion_tokens").request()
    assert request["max_completion_tokens"] == 100
    assert "max_tokens" not in request


def test_digits_of_numbers_stay() -> None:
    document = jsondoc.decode(b'{"model": "m", "messages": [], "temperature": 0.70}')
    assert jsondoc.encode(Bridge(document).request()) == b'{"model":"m","messages":[],"temperature":0.70}'


def test_empty_lists_are_not_sent() -> None:
    assert chat_request(tools=[], stop_sequences=[]) == chat_request()


def test_the_clients_document_stays_as_it_was() -> None:
    document = asking(system="s", tools=[WEATHER], messages=[user(text("a"), result([text("b")]))])
    before = json.dumps(document)
    Bridge(document).request()
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any", "disable_parallel_tool_use": False}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"tool_choice": "auto", "parallel_tool_calls": False}),
    ],
)
def test_tool_choice(choice: Document, chosen: Document) -> None:
    assert chat_request(tool_choice=choice) == chat_request() | chosen


@pytest.mark.parametrize(
    ("thinking", "effort"),
    [
        ({"type": "enabled", "budget_tokens": 1024}, "low"),
        ({"type": "enabled", "budget_tokens": 8191}, "low"),
        ({"type": "enabled", "budget_tokens": 24575}, "medium"),
        ({"type": "enabled", "budget_tokens": 24576, "display": "summarized"}, "high"),
        ({"type": "adaptive"}, None),
        ({"type": "disabled"}, None),
    ],
)
def test_a_budget_for_thinking_becomes_an_effort(thinking: Document, effort: str | None) -> None:
    assert chat_request(thinking=thinking).get("reasoning_effort") == effort


def test_an_effort_that_is_asked_for_counts_more_than_the_budget() -> None:
    request = chat_request(thinking={"type": "enabled", "budget_tokens": 1024}, output_config={"effort": "high"})
    assert request["reasoning_effort"] == "high"


def test_the_older_name_of_the_output_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    newer = chat_request(output_config={"format": {"type": "json_schema", "schema": schema}})
    assert chat_request(output_format={"type": "json_schema", "schema": schema}) == newer


def test_hints_of_a_tool_change_nothing() -> None:
    hints = {"cache_control": {"type": "ephemeral"}, "eager_input_streaming": True, "defer_loading": False}
    assert chat_request(tools=[WEATHER | hints | {"allowed_callers": ["direct"]}]) == chat_request(tools=[WEATHER])


_TOOL = {"name", "description", "input_schema", "type", "strict"}
_TOOL_HINTS = {"cache_control", "eager_input_streaming"}
_TOOL_REFUSED: Document = {
    "defer_loading": True,
    "allowed_callers": ["code_execution_20250825"],
    "input_examples": [{"a": 1}],
}


def test_each_field_of_a_tool_is_known_here() -> None:
    assert get_type_hints(ToolParam).keys() == _TOOL | _TOOL_HINTS | _TOOL_REFUSED.keys()


@pytest.mark.parametrize("field", _TOOL_REFUSED)
def test_a_field_of_a_tool_without_a_counterpart_is_refused_by_name(field: str) -> None:
    assert refused(asking(tools=[WEATHER, WEATHER | {field: _TOOL_REFUSED[field]}])) == f"tools[1].{field}"


def _types(union: Any) -> list[str]:
    """The `type` of each member of a union, as the client spells it."""
    literals = [get_args(hint) for member in get_args(union) if (hint := get_type_hints(member).get("type"))]
    return sorted({word for found in literals for word in found if isinstance(word, str)})


SERVER_TOOLS = _types(ToolUnionParam)


def _first(field: str) -> str:
    """The path of a field in the first block."""
    return f"messages[0].content[0].{field}"


def test_the_client_has_server_tools() -> None:
    assert {"web_search_20250305", "bash_20250124", "text_editor_20250728"} <= {*SERVER_TOOLS}


@pytest.mark.parametrize("kind", [*SERVER_TOOLS, "computer_20250124", "mcp_toolset"])
def test_a_tool_of_the_servers_is_refused_by_its_type(kind: str) -> None:
    assert refused(asking(tools=[{"type": kind, "name": "t"}])) == "tools[0].type"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"speed": "fast"}, "speed"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"metadata": {"user_id": "u", "team": "t"}}, "metadata.team"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"metadata": "u"}, "metadata"),
        ({"stream": "yes"}, "stream"),
        ({"tools": WEATHER}, "tools"),
        ({"tools": ["weather"]}, "tools[0]"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tool_choice": {}}, "tool_choice.type"),
        ({"tool_choice": {"type": "most"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "auto", "name": "x"}}, "tool_choice.name"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, "thinking.display"),
        ({"output_config": {"format": {"type": "regex"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"output_config": {"task_budget": {}}}, "output_config.task_budget"),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "context_management.edits[0].type"),
        (
            {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
            "context_management.edits[0].keep",
        ),
        ({"system": [{"type": "image", "source": PNG}]}, "system[0].type"),
        ({"system": 5}, "system"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "Hi", "name": "n"}]}, "messages[0].name"),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well"}]}, "messages[1]"),
        ({"messages": [user(text("a"), {"text": "b"})]}, "messages[0].content[1].type"),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0].text"),
        ({"messages": [user(text("a", colour="red"))]}, "messages[0].content[0].colour"),
        ({"messages": [user(use("f", {}))]}, "messages[0].content[0].type"),
        ({"messages": [user({"type": "image", "source": {"type": "file", "file_id": "f"}})]}, _first("source.type")),
        ({"messages": [user({"type": "image"})]}, "messages[0].content[0].source"),
        ({"messages": [user({"type": "image", "source": PNG, "transformations": {}})]}, _first("transformations")),
        ({"messages": [user({"type": "document", "source": {"type": "url", "url": "u"}})]}, _first("source.type")),
        ({"messages": [user({"type": "document", "source": PNG})]}, _first("source.media_type")),
        (
            {"messages": [user({"type": "document", "source": PDF, "citations": {"enabled": True}})]},
            _first("citations.enabled"),
        ),
        ({"messages": [user(result([{"type": "tool_reference", "tool_name": "f"}]))]}, _first("content[0].type")),
        ({"messages": [user(result("a", toolset_name="t"))]}, _first("toolset_name")),
        (
            {"messages": [{"role": "assistant", "content": [use("f", {}, caller={"type": "code"})]}, user(text("a"))]},
            _first("caller.type"),
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "image", "source": PNG}]}, user(text("a"))]},
            _first("type"),
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_has_no_counterpart_is_refused_by_its_path(fields: Document, param: str) -> None:
    assert refused(asking(**fields)) == param


def test_counting_is_refused_with_a_400() -> None:
    assert counting().status == 400
    assert "chat completions" in counting().message


# --- the conversation -----------------------------------------------------------------------------------------


def test_texts_of_the_system_are_one_message() -> None:
    blocks = [text("Be brief.", cache_control={"type": "ephemeral"}), text("Be kind.")]
    assert told(user(text("Hi")), system=blocks) == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "Hi"},
    ]


def test_a_message_of_the_system_stays_in_its_place() -> None:
    said = {"role": "system", "content": [text("From now on in French.")]}
    assert told(user(text("Hi")), said, user(text("Go on"))) == [
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "From now on in French."},
        {"role": "user", "content": "Go on"},
    ]


def test_texts_of_a_user_are_one_text_unless_there_is_more_than_text() -> None:
    image = {"type": "image", "source": PNG}
    there = {"type": "image", "source": {"type": "url", "url": "https://pictures.test/a.png"}}
    assert told(user(text("a"), text("b"))) == [{"role": "user", "content": "a\n\nb"}]
    assert told(user(text("a"), image, there)) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "image_url", "image_url": {"url": "https://pictures.test/a.png"}},
            ],
        }
    ]


def test_documents() -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "Once upon a time."}
    blocks = {"type": "content", "content": [text("One."), text("Two.")]}
    head = {"title": "Tales", "context": "For children.", "citations": {"enabled": False}}
    assert told(user({"type": "document", "source": plain, **head})) == [
        {"role": "user", "content": "Tales\nFor children.\n\nOnce upon a time."}
    ]
    assert told(user({"type": "document", "source": blocks})) == [{"role": "user", "content": "One.\n\nTwo."}]
    named = told(user({"type": "document", "source": PDF, "title": "a.pdf", "context": "Signed."}))
    assert named[0]["content"] == [
        {"type": "text", "text": "Signed."},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
    ]
    unnamed = told(user({"type": "document", "source": PDF}))
    assert unnamed[0]["content"][0]["file"]["filename"] == "document.pdf"


def test_a_search_result_is_a_text() -> None:
    found = {"type": "search_result", "title": "Tales", "source": "https://tales.test", "content": [text("Once.")]}
    assert told(user(found)) == [{"role": "user", "content": "Tales\nhttps://tales.test\n\nOnce."}]


def test_a_conversation_with_tools() -> None:
    asked = {
        "role": "assistant",
        "content": [text("Let me look."), use("weather", {"z": 1, "a": [0.5]}), use("time", {}, "call_2")],
    }
    answered = user(result("Sunny", "call_1"), result([text("9"), text("o'clock")], "call_2"), text("Be quick."))
    assert told(user(text("Hi")), asked, answered) == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [call("weather", '{"z":1,"a":[0.5]}'), call("time", "{}", "call_2")],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"},
        {"role": "tool", "tool_call_id": "call_2", "content": "9\n\no'clock"},
        {"role": "user", "content": "Be quick."},
    ]


def test_results_stand_right_after_the_calls_wherever_the_client_put_them() -> None:
    asked = [{"role": "assistant", "content": [use("f", {}, id_)]} for id_ in ("call_1", "call_2")]
    answered = [user(text("a"), result("one", "call_1")), user(result("two", "call_2")), user(text("b"))]
    said = told(user(text("Hi")), *asked, *answered)
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [made["id"] for made in said[1]["tool_calls"]] == ["call_1", "call_2"]
    assert [message["content"] for message in said[2:]] == ["one", "two", "a", "b"]


def test_calls_without_a_text_have_null_for_content() -> None:
    said = told(user(text("Hi")), {"role": "assistant", "content": [use("f", {})]}, user(result("a")))
    assert said[1] == {"role": "assistant", "content": None, "tool_calls": [call("f", "{}")]}


@pytest.mark.parametrize(
    ("content", "said"),
    [("No such file", "Error: No such file"), ("error 5", "error 5"), ("", "Error: "), (None, "Error: ")],
)
def test_a_result_that_is_an_error_says_so(content: str | None, said: str) -> None:
    assert told(user(result(content, is_error=True))) == [{"role": "tool", "tool_call_id": "call_1", "content": said}]


def test_an_image_of_a_result_follows_in_the_users_message() -> None:
    image = {"type": "image", "source": PNG}
    said = told(user(result([image]), result([text("Shot."), image], "call_2"), text("See?")))
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert said == [
        {"role": "tool", "tool_call_id": "call_1", "content": "The result is in the user's next message."},
        {"role": "tool", "tool_call_id": "call_2", "content": "Shot."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "From the result of the tool call call_1:"},
                part,
                {"type": "text", "text": "From the result of the tool call call_2:"},
                part,
                {"type": "text", "text": "See?"},
            ],
        },
    ]


def test_an_empty_message_is_still_a_message() -> None:
    assert told({"role": "user", "content": ""}, {"role": "assistant", "content": []}, user()) == [
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": ""},
    ]


def test_thinking_goes_back_to_who_thought_it() -> None:
    thought = {"type": "thinking", "thinking": "Hm. ", "signature": "reasoning_content"}
    other = {"type": "thinking", "thinking": "Secret.", "signature": "EqQBCgIYAhIM"}
    sealed = {"type": "redacted_thinking", "data": "EmwKAhgB"}
    said = told(user(text("Hi")), {"role": "assistant", "content": [thought, other, sealed, text("Yes.")]}, user())
    assert said[1] == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm. "}


_BLOCKS = {"text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result"}


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("kind", sorted({*_types(ContentBlockParam), "mcp_tool_use", "compaction"} - _BLOCKS))
def test_a_block_of_the_servers_tools_is_refused_by_its_type(role: str, kind: str) -> None:
    block = {"role": role, "content": [text("a"), {"type": kind}]}
    assert refused(asking(messages=[block, user(text("b"))])) == "messages[0].content[1].type"


def test_the_blocks_of_the_official_client_are_known_here() -> None:
    assert {*_types(ContentBlockParam)} >= _BLOCKS
