"""A reply and an error of the provider, whole, as the client's API says them."""

import json
from typing import Any

import pytest
from anthropic.types import ErrorResponse

from sidecar.errors import UpstreamBroken
from sidecar.wire import jsondoc
from sidecar.wire.bridges.messages_chat import Bridge

from .messages_client import ASKED, Document, asking, buffered, call, completion, plain

WEATHER = call("weather", '{"city": "Rome"}')


def test_a_reply() -> None:
    said = {"content": "Hello.", "refusal": None, "tool_calls": None, "annotations": [], "audio": None}
    assert buffered(completion(said)) == {
        "id": "msg_chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "model": "local-7b",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 4,
        },
    }


def test_a_reply_that_does_not_say_its_model_has_the_one_that_was_asked_for() -> None:
    document = completion({"content": "Hello."})
    del document["model"], document["id"]
    assert (buffered(document)["model"], buffered(document)["id"]) == ("local", "msg_")


def test_reasoning_text_and_calls_are_blocks_in_this_order() -> None:
    said = {"tool_calls": [WEATHER], "content": "I look.", "reasoning_content": "Hm.", "reasoning": "Hm."}
    assert buffered(completion(said, "tool_calls"))["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "reasoning_content"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}},
    ]


@pytest.mark.parametrize(
    ("said", "block"),
    [
        ({"reasoning": "Hm."}, {"type": "thinking", "thinking": "Hm.", "signature": "reasoning"}),
        (
            {"reasoning_details": [{"type": "reasoning.text", "text": "H"}, {"summary": "m."}, {"data": "x"}, 5]},
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
        ),
        ({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}, {"text": "Hello"}),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
        ),
        ({"content": [{"type": "reference", "ids": [1]}]}, {"text": '{"type":"reference","ids":[1]}'}),
    ],
)
def test_what_other_servers_say_in_their_own_ways(said: Document, block: Document) -> None:
    assert buffered(completion(said))["content"] == [{"type": "text"} | block]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),
        ("model_length", "model_context_window_exceeded"),
        ("eos_token", "end_turn"),
        (None, "end_turn"),
    ],
)
def test_why_a_text_ends(finish: str | None, reason: str) -> None:
    assert buffered(completion({"content": "Hello."}, finish))["stop_reason"] == reason


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("tool_calls", "tool_use"), ("stop", "tool_use"), (None, "tool_use"), ("length", "max_tokens")],
)
def test_why_a_reply_with_calls_ends(finish: str | None, reason: str) -> None:
    assert buffered(completion({"tool_calls": [WEATHER]}, finish))["stop_reason"] == reason


@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])
@pytest.mark.parametrize(
    ("met", "expected"),
    [("END", ("stop_sequence", "END")), ("<|im_end|>", ("end_turn", None)), (151645, ("end_turn", None))],
)
def test_a_stop_sequence_where_the_server_says_which(field: str, met: Any, expected: Any) -> None:
    message = buffered(completion({"content": "Hello."}, **{field: met}), stop_sequences=["END"])
    assert (message["stop_reason"], message["stop_sequence"]) == expected


def test_a_refusal_is_a_text_and_the_reason() -> None:
    message = buffered(completion({"content": None, "refusal": "I will not."}))
    assert message["content"] == [{"type": "text", "text": "I will not."}]
    assert message["stop_reason"] == "refusal"


def test_an_empty_reply_has_no_blocks() -> None:
    assert buffered(completion({"content": ""}))["content"] == []


# --- arguments ------------------------------------------------------------------------------------------------


def given(arguments: Any) -> Any:
    return buffered(completion({"tool_calls": [call("f", arguments)]}))["content"][0]["input"]


@pytest.mark.parametrize("arguments", ["", "  ", None, {}, "{}"])
def test_no_arguments(arguments: Any) -> None:
    assert given(arguments) == {}


@pytest.mark.parametrize(
    "arguments",
    ['{"a": "hel', "{'a': 1}", "[1]", '"a"', "null", '{"a": NaN}', '{"a": 1}{"b": 2}', "\ufeff{}", '{"a": "\\ud83d"}'],
)
def test_arguments_that_are_no_object_are_wrapped_whole(arguments: str) -> None:
    assert given(arguments) == {"INVALID_JSON": arguments}


def test_arguments_nested_too_deep_are_wrapped() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    assert given(deep) == {"INVALID_JSON": deep}


def test_arguments_that_a_server_parsed_already() -> None:
    assert given({"b": 1, "a": 2}) == {"b": 1, "a": 2}
    assert given([1]) == {"INVALID_JSON": "[1]"}


def test_halves_of_a_character() -> None:
    assert given('{"a": "\ud83d\ude00"}') == {"a": "\N{GRINNING FACE}"}
    assert given('{"a": "\ud83d"}') == {"INVALID_JSON": '{"a": "\\ud83d"}'}


def test_order_and_digits_stay() -> None:
    document = Bridge(ASKED).reply(completion({"tool_calls": [call("f", '{"z": 0.10, "a": 12345678901234567890}')]}))
    assert b'{"z":0.10,"a":12345678901234567890}' in jsondoc.encode(document)


def test_calls_without_ids_get_some_of_their_own() -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in "fg"]
    blocks = buffered(completion({"tool_calls": calls}))["content"]
    assert [block["id"] for block in blocks] == ["toolu_msg_chatcmpl-1_0", "toolu_msg_chatcmpl-1_1"]


def test_calls_with_one_id_stay_two() -> None:
    blocks = buffered(completion({"tool_calls": [call("f", "{}"), call("g", "{}")]}))["content"]
    assert [block["name"] for block in blocks] == ["f", "g"]


def test_the_older_single_form_and_custom_tools() -> None:
    older = buffered(completion({"function_call": {"name": "f", "arguments": '{"a": 1}'}}, "function_call"))
    assert (older["stop_reason"], older["content"][0]["input"]) == ("tool_use", {"a": 1})
    custom = buffered(completion({"tool_calls": [{"id": "c", "custom": {"name": "g", "input": "ls"}}]}))
    assert custom["content"][0] == {"type": "tool_use", "id": "c", "name": "g", "input": {"INVALID_JSON": "ls"}}


# --- usage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cached", "read"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 40}}, 40),
        ({"cached_tokens": 40}, 40),
        ({"prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 60}, 40),
        ({"prompt_tokens_details": {"cached_tokens": 400}}, 100),
        ({"prompt_tokens_details": None}, 0),
    ],
)
def test_input_tokens_do_not_hold_what_was_cached(cached: Document, read: int) -> None:
    usage = buffered(completion({"content": "a"}, usage={"prompt_tokens": 100, "completion_tokens": 5} | cached))[
        "usage"
    ]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (100 - read, read, 5)


@pytest.mark.parametrize(("wrote", "written"), [(30, 30), (400, 60), (-1, 0)])
def test_nor_what_was_written_to_the_cache(wrote: int, written: int) -> None:
    details = {"cached_tokens": 40, "cache_write_tokens": wrote}
    told = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}
    usage = buffered(completion({"content": "a"}, usage=told))["usage"]
    assert (usage["input_tokens"], usage["cache_creation_input_tokens"]) == (60 - written, written)


def test_tokens_of_reasoning_are_told() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}
    assert buffered(completion({"content": "a"}, usage=usage))["usage"]["output_tokens_details"] == {
        "thinking_tokens": 7
    }


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": "5"}])
def test_usage_that_is_not_reported_is_zero(usage: Any) -> None:
    reported = buffered(completion({"content": "a"}) | {"usage": usage})["usage"]
    assert (reported["input_tokens"], reported["output_tokens"]) == (0, 0)


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"choices": None}, {"choices": ["a"]}, {"object": "list"}])
def test_what_is_no_chat_completion_is_a_broken_reply(document: Document) -> None:
    with pytest.raises(UpstreamBroken):
        Bridge(ASKED).reply(document)


def error(document: Document, status: int) -> Document:
    envelope = plain(Bridge(ASKED).error(document, status))
    ErrorResponse.model_validate(envelope)
    said: Document = envelope["error"]
    return said


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_type_of_its_status(status: int, kind: str) -> None:
    assert error({"error": {"message": "No.", "type": "whatever"}}, status)["type"] == kind


def test_the_type_of_a_body_that_is_too_large() -> None:
    assert Bridge(ASKED).error({"error": {"message": "No."}}, 413)["error"]["type"] == "request_too_large"


def test_an_error_keeps_message_code_and_param() -> None:
    said = {"message": "Unknown.", "type": "invalid_request_error", "param": "top_k", "code": "unknown_parameter"}
    assert error({"error": said}, 400) == said
    assert error({"error": said | {"param": None, "code": None}}, 400) == {
        "type": "invalid_request_error",
        "message": "Unknown.",
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"error": "No such model."}, "No such model."),
        ({"object": "error", "message": "Too long.", "code": 400}, "Too long."),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body"], "msg": "missing"}]}, '{"detail":[{"loc":["body"],"msg":"missing"}]}'),
        ({"error": {"code": 7}}, '{"error":{"code":7}}'),
        ({}, "{}"),
    ],
)
def test_other_shapes_of_errors_lose_nothing(document: Document, message: str) -> None:
    assert error(document, 400)["message"] == message


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"code": 429}, "rate_limit_error"),
        ({"code": "429"}, "rate_limit_error"),
        ({"code": "insufficient_quota"}, "rate_limit_error"),
        ({"type": "invalid_request_error", "code": None}, "invalid_request_error"),
        ({"type": "server_error"}, "api_error"),
        ({}, "api_error"),
    ],
)
def test_an_error_that_came_as_a_reply_is_an_error(said: Document, kind: str) -> None:
    document = {"error": {"message": "No."} | said}
    envelope = Bridge(asking()).reply(document)
    assert (envelope["type"], envelope["error"]["type"]) == ("error", kind)
    assert json.loads(json.dumps(envelope))["error"]["message"] == "No."
