"""A whole chat completion as a response, and a provider's errors in the client's words."""

from typing import Any

import pytest

from sidecar.errors import UpstreamBroken
from sidecar.wire import jsondoc

from .responses_talk import ASK, USED, Document, bridge, call_chunk, completion, function, response, said


def replied(message: Document, reason: str | None = "stop", **fields: Any) -> Document:
    """The response to a plain request."""
    return response(dict(bridge().reply(completion(message, reason, **fields))))


def text(said: str, **fields: Any) -> Document:
    return {"type": "output_text", "text": said, "annotations": [], "logprobs": [], **fields}


def test_a_text() -> None:
    reply = replied({"content": "Hi.", "refusal": None})
    assert reply["output"] == [
        {
            "id": "msg_chatcmpl-9",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [text("Hi.")],
        }
    ]
    head = {key: reply[key] for key in ("id", "object", "created_at", "model", "status", "error", "usage", "store")}
    assert head == {
        "id": "resp_chatcmpl-9",
        "object": "response",
        "created_at": 1700000000,
        "model": "qwen3:8b",
        "status": "completed",
        "error": None,
        "usage": USED,
        "store": False,
    }


def test_the_reply_says_again_what_was_asked() -> None:
    tool = {"type": "function", "name": "look", "parameters": {}, "strict": True, "description": None}
    asked = {
        "instructions": "be brief",
        "tools": [tool],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "metadata": {"run": "1"},
        "temperature": 0.5,
        "text": {"verbosity": "low"},
        "max_output_tokens": 9,
    }
    reply = response(dict(bridge(**asked, store=True).reply(completion({"content": "Hi."}))))
    assert {key: reply[key] for key in asked} == asked
    assert reply["store"] is False


def test_the_reply_shares_nothing_with_the_request() -> None:
    request = {**ASK, "metadata": {"run": "1"}, "tools": []}
    reply = bridge(**request).reply(completion({"content": "Hi."}))
    reply["metadata"]["run"] = "changed"
    assert request["metadata"] == {"run": "1"}
    assert bridge().reply(completion({"content": "Hi."}))["metadata"] == {}


def test_reasoning_text_and_calls() -> None:
    message = {
        "reasoning_content": "Hm.",
        "content": "I look.",
        "tool_calls": [function("look", '{"at":"Rome"}'), function("look", "{}", "call_2")],
    }
    output = replied(message, "tool_calls")["output"]
    assert said(output) == [
        ("reasoning", "Hm."),
        ("message", "I look."),
        ("function_call", 'look({"at":"Rome"})'),
        ("function_call", "look({})"),
    ]
    assert output[0] == {
        "id": "rs_chatcmpl-9",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        "status": "completed",
    }
    assert output[2] == {
        "id": "fc_call_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"at":"Rome"}',
    }


def test_reasoning_is_the_summary_where_one_is_asked_for() -> None:
    speaking = bridge(reasoning={"effort": "low", "summary": "auto"})
    reply = response(dict(speaking.reply(completion({"reasoning": "Hm.", "content": "Hi."}))))
    assert reply["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert reply["output"][0]["content"] == []


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning": "Hm.", "content": "Hi."},
        {"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}], "content": "Hi."},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}], "content": "Hi."},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "Hi."},
            ]
        },
    ],
)
def test_reasoning_in_the_ways_that_servers_say_it(message: Document) -> None:
    assert said(replied(message)["output"]) == [("reasoning", "Hm."), ("message", "Hi.")]


def test_a_refusal() -> None:
    output = replied({"content": None, "refusal": "I will not."})["output"]
    assert output[0]["content"] == [{"type": "refusal", "refusal": "I will not."}]


def test_a_custom_call() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    output = replied({"content": None, "tool_calls": [call]}, "tool_calls")["output"]
    assert said(output) == [("custom_tool_call", "run<ls>")]
    assert output[0]["id"] == "ctc_call_1"


def test_nothing_said_is_an_empty_text() -> None:
    assert said(replied({"content": ""})["output"]) == [("message", "")]


@pytest.mark.parametrize(
    ("call", "arguments", "call_id"),
    [
        ({"function": {"name": "look", "arguments": {"at": "Rome"}}}, '{"at":"Rome"}', "call_chatcmpl-9_0"),
        ({"id": "", "function": {"name": "look", "arguments": None}}, "", "call_chatcmpl-9_0"),
        ({"id": "c", "function": {"name": "look"}}, "", "c"),
    ],
)
def test_calls_as_less_careful_servers_send_them(call: Document, arguments: str, call_id: str) -> None:
    output = replied({"tool_calls": [call]}, "tool_calls")["output"]
    assert (output[0]["arguments"], output[0]["call_id"]) == (arguments, call_id)


def test_two_calls_with_one_id_can_be_told_apart() -> None:
    calls = [function("look", "{}", "x"), function("look", "{}", "x"), function("look", "{}", "x_1")]
    output = replied({"tool_calls": calls}, "tool_calls")["output"]
    assert [item["call_id"] for item in output] == ["x", "x_1", "x_1_2"]


def test_the_older_form_of_a_call() -> None:
    message = {"content": None, "function_call": {"name": "look", "arguments": "{}"}}
    assert said(replied(message, "function_call")["output"]) == [("function_call", "look({})")]


def test_citations_and_log_probabilities() -> None:
    cited = {"start_index": 0, "end_index": 3, "title": "A", "url": "https://host/a"}
    annotations = [{"type": "url_citation", "url_citation": cited}, {"type": "other"}, {"url_citation": {"url": "x"}}]
    token = {"token": "Hi", "bytes": None, "logprob": -0.5}
    reply = completion({"content": "Hi.", "annotations": annotations})
    reply["choices"][0]["logprobs"] = {"content": [{**token, "top_logprobs": [token]}], "refusal": None}
    part = response(dict(bridge().reply(reply)))["output"][0]["content"][0]
    assert part["annotations"] == [{"type": "url_citation", **cited}]
    plain = {"token": "Hi", "bytes": [], "logprob": -0.5}
    assert part["logprobs"] == [{**plain, "top_logprobs": [plain]}]


def test_numbers_keep_their_digits() -> None:
    raw = (
        b'{"id":"c","created":1,"model":"m","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop",'
        b'"logprobs":{"content":[{"token":"Hi","logprob":-0.50,"bytes":[72],"top_logprobs":[]}]}}]}'
    )
    assert b'"logprob":-0.50' in jsondoc.encode(bridge().reply(jsondoc.decode(raw)))


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        (None, "completed", None),
        ("eos", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("model_length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_how_a_reply_ends(reason: str | None, status: str, why: str | None) -> None:
    reply = replied({"content": "Hi"}, reason)
    assert reply["status"] == status
    assert reply["incomplete_details"] == ({"reason": why} if why else None)
    assert reply["output"][0]["status"] == status


def test_a_reply_that_the_provider_gave_up() -> None:
    reply = replied({"content": "Hi"}, "error")
    assert (reply["status"], reply["error"]["code"]) == ("failed", "server_error")
    assert said(reply["output"]) == [("message", "Hi")]
    reply = replied({"content": "Hi"}, "error", error={"message": "overheated", "code": 502})
    assert reply["error"] == {"code": "server_error", "message": "overheated"}


def test_usage_that_is_not_reported_or_only_in_part() -> None:
    assert replied({"content": "Hi"}, usage=None)["usage"] is None
    assert replied({"content": "Hi"}, usage={"prompt_tokens": 7, "completion_tokens": 5})["usage"]["total_tokens"] == 12


def test_only_the_first_choice_counts() -> None:
    reply = completion({"content": "a"})
    reply["choices"].insert(0, {**reply["choices"][0], "index": 1, "message": {"content": "b"}})
    assert said(bridge().reply(reply)["output"]) == [("message", "a")]


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"error": {"message": "no"}}, call_chunk(0, "c", "look")])
def test_what_is_no_chat_completion_is_a_broken_reply(document: Document) -> None:
    with pytest.raises(UpstreamBroken):
        bridge().reply(document)


# --- there and back again ------------------------------------------------------------------------------------

HISTORIES: list[Document] = [
    {"content": "Hi."},
    {"content": None, "refusal": "No."},
    {"content": "I look.", "tool_calls": [function("look", '{"at":"Rome"}'), function("find", "{}", "call_2")]},
    {"content": None, "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls"}}]},
]


@pytest.mark.parametrize("message", HISTORIES)
def test_what_the_model_said_comes_back_to_it_as_it_said_it(message: Document) -> None:
    output = replied({"reasoning_content": "Hm.", **message}, "tool_calls")["output"]
    messages = bridge(input=[{"role": "user", "content": "go"}, *output]).request()["messages"]
    assert messages[1:] == [{"role": "assistant", **message}]


# --- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "status", "error"),
    [
        (
            {"error": {"message": "no", "type": "t", "param": "messages[3].content", "code": "c"}},
            400,
            {"message": "no", "type": "t", "param": "input", "code": "c"},
        ),
        (
            {"error": {"message": "no", "param": "max_tokens", "code": 400}},
            400,
            {"message": "no", "type": "invalid_request_error", "param": "max_output_tokens", "code": "400"},
        ),
        (
            {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400},
            400,
            {"message": "no", "type": "BadRequestError", "param": None, "code": "400"},
        ),
        (
            {"error": "slow down"},
            429,
            {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None},
        ),
        ({"detail": "no"}, 401, {"message": "no", "type": "authentication_error", "param": None, "code": None}),
        (
            {"detail": [{"msg": "no"}]},
            422,
            {"message": '[{"msg":"no"}]', "type": "invalid_request_error", "param": None, "code": None},
        ),
        (
            {},
            503,
            {
                "message": "The provider answered with status 503 and no message.",
                "type": "server_error",
                "param": None,
                "code": None,
            },
        ),
        (
            {"error": {"message": "no", "type": "t", "param": "tools[0]", "code": None}},
            400,
            {"message": "no", "type": "t", "param": "tools[0]", "code": None},
        ),
    ],
)
def test_errors(document: Document, status: int, error: Document) -> None:
    assert bridge().error(document, status) == {"error": error}
