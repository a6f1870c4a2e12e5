"""A request for a response as a provider of chat completions gets it, and what is refused."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import completion_create_params
from openai.types.responses import (
    ResponseIncludable,
    ResponseInputItemParam,
    ToolParam,
    response_create_params,
)
from pydantic import TypeAdapter

from sidecar.errors import InvalidRequest
from sidecar.wire import jsondoc
from tests.wire.fuzz import examples

from .responses_talk import ASK, Document, bridge, function

_CHAT: TypeAdapter[Any] = TypeAdapter(completion_create_params.CompletionCreateParams)


def asked(**fields: Any) -> Document:
    """The provider's request; the official client's types hold it."""
    request = bridge(**fields).request()
    checked = _CHAT.validate_python(request)
    list(checked["messages"])
    return request


def messages(*items: Document, **fields: Any) -> list[Document]:
    said: list[Document] = asked(input=list(items), **fields)["messages"]
    return said


def user(*parts: Any) -> Document:
    return {"role": "user", "content": list(parts)}


def refused(**fields: Any) -> str | None:
    """The path that the refusal names."""
    with pytest.raises(InvalidRequest) as refusal:
        bridge(**fields).request()
    return refusal.value.param


# --- messages ------------------------------------------------------------------------------------------------


def test_a_text_is_a_user_message_after_the_instructions() -> None:
    assert asked(instructions="be brief") == {
        "model": "qwen3",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
    }


def test_instructions_alone_are_a_request() -> None:
    assert asked(input=None, instructions="greet")["messages"] == [{"role": "system", "content": "greet"}]


def test_messages_in_short_and_in_full_form() -> None:
    said = messages(
        {"role": "developer", "content": "be brief"},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "be kind"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}], "status": "completed"},
        {"role": "assistant", "content": "yes?"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {"type": "output_text", "text": "I am ", "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "here.", "annotations": []},
            ],
        },
    )
    assert said == [
        {"role": "system", "content": "be brief"},
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
        {"role": "assistant", "content": "I am here."},
    ]


def test_a_refusal_stays_one() -> None:
    said = messages({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    assert said == [{"role": "assistant", "content": None, "refusal": "no"}]


def test_every_kind_of_part() -> None:
    mark = {"mode": "explicit"}
    said = messages(
        user(
            {"type": "input_text", "text": "look", "prompt_cache_breakpoint": mark},
            {"type": "input_image", "image_url": "https://host/a.png", "detail": "low"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "file_id": None},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
            {"type": "input_file", "file_id": "file-1", "detail": "auto"},
        )
    )
    assert said[0]["content"] == [
        {"type": "text", "text": "look", "prompt_cache_breakpoint": mark},
        {"type": "image_url", "image_url": {"url": "https://host/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]


def test_a_single_text_with_a_mark_stays_a_part() -> None:
    mark = {"mode": "explicit"}
    said = messages(user({"type": "input_text", "text": "look", "prompt_cache_breakpoint": mark}))
    assert said == [user({"type": "text", "text": "look", "prompt_cache_breakpoint": mark})]


# --- tool calls in the history -------------------------------------------------------------------------------


def call(call_id: str, name: str = "look", arguments: str = "{}", **fields: Any) -> Document:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **fields}


def result(call_id: str, output: Any) -> Document:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def test_parallel_calls_are_one_turn_with_the_text_before_them() -> None:
    said = messages(
        {"role": "user", "content": "weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"role": "assistant", "content": "I look."},
        call("call_1", arguments='{"at":"Rome"}', id="fc_1", status="completed", caller={"type": "direct"}),
        call("call_2", arguments='{"at":"Oslo"}'),
        result("call_2", "cold"),
        result("call_1", [{"type": "input_text", "text": "warm"}]),
        {"role": "assistant", "content": "Rome."},
    )
    calls = [function("look", '{"at":"Rome"}'), function("look", '{"at":"Oslo"}', "call_2")]
    assert said[1:] == [
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_2", "content": "cold"},
        {"role": "tool", "tool_call_id": "call_1", "content": "warm"},
        {"role": "assistant", "content": "Rome."},
    ]


def test_calls_one_after_the_other_are_turns_of_their_own() -> None:
    said = messages(call("call_1"), result("call_1", "a"), call("call_2"), result("call_2", "b"))
    assert [message["role"] for message in said] == ["assistant", "tool", "assistant", "tool"]


def test_nothing_stands_between_a_call_and_its_result() -> None:
    said = messages(
        {"role": "assistant", "content": "I look."},
        call("call_1"),
        {"role": "assistant", "content": "Wait."},
        result("call_1", "a"),
    )
    assert [message["role"] for message in said] == ["assistant", "tool"]
    assert said[0]["content"] == "I look.\n\nWait."


def test_custom_calls() -> None:
    said = messages(
        {"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": "ls", "id": "ctc_1"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a\nb"},
    )
    assert said == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls"}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a\nb"},
    ]


# --- tools ---------------------------------------------------------------------------------------------------

LOOK = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
RUN = {"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}}
CHAT_LOOK = {
    "type": "function",
    "function": {key: LOOK[key] for key in ("name", "description", "parameters", "strict")},
}
CHAT_RUN = {
    "type": "custom",
    "custom": {"name": "run", "format": {"type": "grammar", "grammar": {"definition": "start: /a/", "syntax": "lark"}}},
}


def test_tools_are_nested() -> None:
    bare = {"type": "function", "name": "bare", "description": None, "strict": False, "defer_loading": False}
    request = asked(tools=[LOOK, RUN, bare], parallel_tool_calls=False)
    assert request["tools"] == [
        CHAT_LOOK,
        CHAT_RUN,
        {"type": "function", "function": {"name": "bare", "strict": False}},
    ]
    assert request["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
        ({"type": "custom", "name": "run"}, {"type": "custom", "custom": {"name": "run"}}),
    ],
)
def test_choosing_a_tool(choice: Any, chosen: Any) -> None:
    assert asked(tools=[LOOK, RUN], tool_choice=choice)["tool_choice"] == chosen


def test_only_allowed_tools_are_offered() -> None:
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "run"}]}
    request = asked(tools=[LOOK, RUN], tool_choice=allowed)
    assert request["tools"] == [CHAT_RUN]
    assert request["tool_choice"] == "required"


def test_without_tools_nothing_is_said_about_them() -> None:
    request = asked(tools=[], tool_choice="auto", parallel_tool_calls=True)
    assert request.keys() == {"model", "messages"}
    assert asked(tool_choice="required")["tool_choice"] == "required"


# --- other fields --------------------------------------------------------------------------------------------

SCHEMA = {"type": "json_schema", "name": "out", "schema": {"type": "object"}, "strict": True}

SAID: list[tuple[Document, Document]] = [
    ({"temperature": 0.5, "top_p": 1}, {"temperature": 0.5, "top_p": 1}),
    ({"max_output_tokens": 9}, {"max_tokens": 9}),
    ({"user": "u", "safety_identifier": "s"}, {"user": "u", "safety_identifier": "s"}),
    ({"metadata": {"run": "1"}, "service_tier": "flex"}, {"metadata": {"run": "1"}, "service_tier": "flex"}),
    (
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}},
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}},
    ),
    ({"reasoning": {"effort": "low", "summary": "auto", "context": None}}, {"reasoning_effort": "low"}),
    ({"reasoning": {}}, {}),
    ({"text": {"verbosity": "low", "format": {"type": "text"}}}, {"verbosity": "low"}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    (
        {"text": {"format": SCHEMA}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "out", "schema": {"type": "object"}, "strict": True},
            }
        },
    ),
    ({"include": ["reasoning.encrypted_content"]}, {}),
    ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
    ({"include": [], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    ({"top_logprobs": 0}, {}),
    ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    ({"stream": False, "stream_options": {"include_obfuscation": False}}, {}),
    ({"store": True}, {}),
    ({"store": False, "max_tool_calls": 3, "truncation": "disabled", "background": False}, {}),
    ({"previous_response_id": None, "conversation": None, "prompt": None, "moderation": None}, {}),
]


@pytest.mark.parametrize(("given", "said"), SAID)
def test_fields(given: Document, said: Document) -> None:
    request = asked(**given)
    assert {key: value for key, value in request.items() if key not in ("model", "messages")} == said


def test_numbers_keep_their_digits() -> None:
    given = jsondoc.decode(b'{"model":"m","input":"hi","temperature":0.70,"top_p":1e0}')
    assert jsondoc.encode(bridge(**given).request()) == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.70,"top_p":1e0}'
    )


def test_the_providers_request_is_a_document_of_its_own() -> None:
    tools = [{**LOOK, "parameters": {"type": "object"}}]
    speaking = bridge(tools=tools, metadata={"a": "b"})
    request = speaking.request()
    request["tools"][0]["function"]["parameters"]["type"] = "changed"
    request["metadata"]["a"] = "changed"
    assert speaking.request()["tools"][0]["function"]["parameters"] == {"type": "object"}
    assert speaking.request()["metadata"] == {"a": "b"}


# --- refusals ------------------------------------------------------------------------------------------------

_PART = "input[0].content[0]"
_OTHER_TOOLS = (
    *("file_search", "computer", "computer_use_preview", "web_search", "web_search_preview", "mcp", "code_interpreter"),
    *("programmatic_tool_calling", "image_generation", "local_shell", "shell", "namespace", "tool_search"),
    *("apply_patch", "web_search_2025_08_26", "web_search_preview_2025_03_11"),
)
_OTHER_ITEMS = (
    *("file_search_call", "computer_call", "computer_call_output", "web_search_call", "tool_search_call"),
    *("tool_search_output", "additional_tools", "compaction", "image_generation_call", "code_interpreter_call"),
    *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call"),
    *("apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call"),
    *("compaction_trigger", "item_reference", "program", "program_output", "configuration_update"),
)
_OTHER_INCLUDES = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"),
)
_OTHER_FIELDS: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "background": True,
    "background_options": {"completion_window": "2h"},
    "context_management": [{"type": "compaction"}],
    "conversation": "conv_1",
    "image": {"context_compression": "auto"},
    "moderation": {"model": "m"},
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "truncation": "auto",
}

REFUSED: list[tuple[Document, str]] = [
    *(({field: value}, field) for field, value in _OTHER_FIELDS.items()),
    *(({"tools": [LOOK, {"type": kind}]}, "tools[1].type") for kind in _OTHER_TOOLS),
    *(({"tool_choice": {"type": kind}}, "tool_choice.type") for kind in _OTHER_TOOLS),
    *(({"input": [{"type": kind, "id": "x"}]}, "input[0].type") for kind in _OTHER_ITEMS),
    *(({"include": ["reasoning.encrypted_content", kind]}, "include[1]") for kind in _OTHER_INCLUDES),
    ({"input": [{"id": "msg_1"}]}, "input[0].type"),
    ({"input": None}, "input"),
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": ["text"]}, "input[0]"),
    ({"instructions": [{"role": "user", "content": "hi"}]}, "instructions"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": "x", "name": "n"}]}, "input[0].name"),
    ({"input": [user({"type": "output_text", "text": "x"})]}, f"{_PART}.type"),
    ({"input": [user({"type": "text", "text": "x"})]}, f"{_PART}.type"),
    ({"input": [user({"type": "input_text"})]}, f"{_PART}.text"),
    ({"input": [user({"type": "input_image", "file_id": "file-1"})]}, f"{_PART}.file_id"),
    ({"input": [user({"type": "input_image"})]}, f"{_PART}.image_url"),
    ({"input": [user({"type": "input_audio"})]}, f"{_PART}.input_audio"),
    ({"input": [user({"type": "input_file", "file_url": "https://host/a"})]}, f"{_PART}.file_url"),
    ({"input": [user({"type": "input_file", "file_id": "f", "detail": "high"})]}, f"{_PART}.detail"),
    ({"input": [user({"type": "input_file", "filename": "a"})]}, _PART),
    ({"input": [{"role": "system", "content": [{"type": "input_image", "image_url": "x"}]}]}, f"{_PART}.type"),
    ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, f"{_PART}.type"),
    ({"input": [result("c", [{"type": "input_image", "image_url": "x"}])]}, "input[0].output[0].type"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": [call("c", namespace="n")]}, "input[0].namespace"),
    ({"input": [{**call("c"), "async": True}]}, "input[0].async"),
    ({"input": [call("c", caller={"type": "program", "caller_id": "x"})]}, "input[0].caller"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "n"}]}, "input[0].arguments"),
    ({"tools": {"type": "function"}}, "tools"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{**LOOK, "defer_loading": True}]}, "tools[0].defer_loading"),
    ({"tools": [{**LOOK, "async": True}]}, "tools[0].async"),
    ({"tools": [{**LOOK, "output_schema": {}}]}, "tools[0].output_schema"),
    ({"tools": [{**LOOK, "allowed_callers": ["programmatic"]}]}, "tools[0].allowed_callers"),
    ({"tools": [{**RUN, "format": {"type": "other"}}]}, "tools[0].format.type"),
    ({"tools": [LOOK], "tool_choice": "sometimes"}, "tool_choice"),
    ({"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "mode": "none"}}, "tool_choice.mode"),
    (
        {"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}},
        "tool_choice.tools[0].type",
    ),
    (
        {"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "no"}]}},
        "tool_choice.tools[0]",
    ),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"text": {"format": {**SCHEMA, "extra": 1}}}, "text.format.extra"),
    ({"text": {"tone": "warm"}}, "text.tone"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ({"reasoning": {"context": "all_turns"}}, "reasoning.context"),
    ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm"),
    ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    ({"frobnicate": 1}, "frobnicate"),
]


@pytest.mark.parametrize(("given", "path"), REFUSED)
def test_what_has_no_counterpart_is_refused_by_its_path(given: Document, path: str) -> None:
    assert refused(**given) == path


def test_a_refusal_says_again_only_what_looks_like_a_name() -> None:
    secret = "sk-live 1234567890"
    with pytest.raises(InvalidRequest) as refusal:
        bridge(input=[{"role": "user", "content": "x", secret: secret}]).request()
    assert refusal.value.param == "input[0]"
    assert secret not in str(refusal.value)


WORDS = st.sampled_from(
    [
        *("message", "function_call", "function_call_output", "custom_tool_call", "reasoning", "function", "custom"),
        *("user", "assistant", "system", "input_text", "input_image", "input_file", "output_text", "refusal"),
        *("allowed_tools", "auto", "json_schema", "grammar", "text"),
    ]
)
KEYS = st.sampled_from(
    [
        *("type", "role", "content", "text", "name", "call_id", "arguments", "output", "input", "tools", "mode"),
        *("format", "image_url", "refusal", "caller"),
    ]
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=20,
)
FIELDS = st.sampled_from(sorted({field for given, _ in SAID for field in given} | {"input", "tools", "tool_choice"}))


@examples(300)
@given(st.dictionaries(FIELDS, ANYTHING, max_size=5))
def test_any_request_is_said_or_refused_with_a_path(fields: Document) -> None:
    said, path = outcome(fields)
    assert said if path is None else path.split("[")[0].split(".")[0] in {*fields, "input"}


def outcome(fields: Document) -> tuple[list[Document], str | None]:
    """The messages, or the path that a refusal names."""
    try:
        return bridge(**fields).request()["messages"], None
    except InvalidRequest as refusal:
        return [], refusal.param or "nothing is named"


# --- what a new release of the official client adds ----------------------------------------------------------


def kinds(union: Any) -> Iterator[str]:
    """The values of `type` in a union of the client's types."""
    for member in get_args(union):
        hint = get_type_hints(member)["type"]
        while not all(isinstance(value, str) for value in get_args(hint)):
            hint = next(arg for arg in get_args(hint) if get_args(arg))
        yield from get_args(hint)


def test_every_field_is_known() -> None:
    fields = get_type_hints(response_create_params.ResponseCreateParamsStreaming).keys()
    taken = {field for given, _ in SAID for field in given} | {"tools", "tool_choice", "parallel_tool_calls"}
    assert fields == taken | _OTHER_FIELDS.keys() | ASK.keys() | {"instructions"}


def test_every_item_is_known() -> None:
    taken = {"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
    assert set(kinds(ResponseInputItemParam)) == taken | {"reasoning"} | set(_OTHER_ITEMS)


def test_every_tool_is_known() -> None:
    assert set(kinds(ToolParam)) == {"function", "custom", *_OTHER_TOOLS}


def test_every_include_is_known() -> None:
    taken = {"reasoning.encrypted_content", "message.output_text.logprobs"}
    assert set(get_args(ResponseIncludable)) == taken | set(_OTHER_INCLUDES)
