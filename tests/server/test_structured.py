"""Structured output through the server, beside guardrails and tools, buffered and streamed."""

import json
from typing import Any

import pytest

from .test_guarded import REDACT, answers, frame, stream, whole
from .under import JSON, Start, Talk
from .upstream import Upstream, reply

SCHEMA = {
    "type": "object",
    "properties": {"pet": {"type": "string", "maxLength": 6}},
    "required": ["pet"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "pet", "schema": SCHEMA}}
ON = "structured_output: {%s}\n"
GOOD, BAD = '{"pet":"cat"}', '{"pet":1}'


def asked(upstream: Upstream) -> list[list[dict[str, Any]]]:
    return [json.loads(request.body)["messages"] for request in upstream.requests]


def rules(talk: Talk) -> set[tuple[str, str, str]]:
    return {(each["rule"], each["action"], each["mode"]) for each in talk.line()["decisions"]}


def said(body: bytes) -> str:
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text


def test_a_reply_that_is_right_is_the_bytes_that_came(under: Start, upstream: Upstream) -> None:
    sent = whole(GOOD, odd={"a": 1.50})
    with under(more=ON % "") as talk:
        upstream.play(answers(sent))
        answer = talk.ask(response_format=FORM)
        assert (answer.status, answer.body) == (200, sent)
        assert "decisions" not in talk.line()


def test_what_a_guardrail_takes_out_is_not_said_again(under: Start, upstream: Upstream) -> None:
    """The reply is judged as guardrails leave it, which is too long. Neither the quote nor the error has the word."""
    with under(REDACT % "", more=ON % "") as talk:
        upstream.play(answers(whole('{"pet":"otter"}')))
        answer = talk.ask(response_format=FORM)
        error = json.loads(answer.body)["error"]
        assert ("structured_output.invalid", "refuse", "enforce") in rules(talk)
    assert (answer.status, error["code"]) == (502, "structured_output_invalid")
    assert (error["param"], error["attempts"]) == ("/pet", 2)
    assert error["output"] == '{"pet":"[REDACTED:animal]"}'
    assert answer.header(b"x-should-retry") == b"false"
    assert b"otter" not in answer.body
    quote = asked(upstream)[1][-1]["content"]
    assert "[REDACTED:animal]" in quote
    assert "otter" not in quote


def test_a_stream_is_held_and_then_told(under: Start, upstream: Upstream) -> None:
    with under(more=ON % "") as talk:
        upstream.play(stream(frame("```\n"), frame(BAD), frame("\n```"), frame(reason="stop")))
        failed = talk.ask(stream=True, response_format=FORM)
        upstream.play(stream(frame("```\n"), frame(GOOD), frame("\n```"), frame(reason="stop")))
        told = talk.ask(stream=True, response_format=FORM)
    assert (failed.status, json.loads(failed.body)["error"]["code"]) == (502, "structured_output_invalid")
    frames = [json.loads(line[6:]) for line in told.body.split(b"\n\n") if line.startswith(b"data: {")]
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in frames if each["choices"]) == GOOD
    assert told.body.endswith(b"data: [DONE]\n\n")


def test_a_stream_that_passes_is_recorded(under: Start, upstream: Upstream) -> None:
    sent = stream(frame('{"pet"'), frame(":1}"), frame(reason="stop"))
    with under(more=ON % "stream: pass") as talk:
        upstream.play(sent)
        answer = talk.ask(stream=True, response_format=FORM)
        assert answer.status == 200
        assert b'"pet\\"' in answer.body
        assert rules(talk) == {("structured_output.invalid", "flag", "enforce")}
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_shadow_changes_nothing_and_records(under: Start, upstream: Upstream, streamed: bool) -> None:
    with under(more=ON % "mode: shadow") as talk:
        upstream.play(stream(frame(BAD), frame(reason="stop")) if streamed else answers(whole(BAD)))
        answer = talk.ask(stream=streamed, response_format=FORM)
        assert answer.status == 200
        assert rules(talk) == {("structured_output.invalid", "flag", "shadow")}
    assert len(upstream.requests) == 1


def test_tools_and_a_form_together(under: Start, upstream: Upstream) -> None:
    """A call is no answer yet; what follows the tool's result is."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    calling = json.dumps({"id": "x", "choices": [choice]}).encode()
    with under(more=ON % "") as talk:
        upstream.play(answers(calling))
        assert talk.ask(response_format=FORM, tools=tools).body == calling
        upstream.play(answers(whole(BAD)), answers(whole(f"So: {GOOD}")))
        result = {"role": "tool", "tool_call_id": "c", "content": "a cat"}
        turns = [{"role": "user", "content": "hi"}, message, result]
        assert said(talk.ask(messages=turns, response_format=FORM, tools=tools).body) == GOOD
    assert len(upstream.requests) == 2


def test_an_unusable_schema_is_refused_before_anything_is_sent(under: Start, upstream: Upstream) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "http://127.0.0.1:9/x"}}}
    with under(more=ON % "") as talk:
        upstream.play(answers(whole(GOOD)))
        answer = talk.ask(response_format=form)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_request", "response_format")
    assert not upstream.requests


def test_a_providers_error_is_handed_down(under: Start, upstream: Upstream) -> None:
    with under(more=ON % "") as talk:
        upstream.play(reply(b'{"error":{"message":"no"}}', b"400 Bad Request", JSON))
        answer = talk.ask(response_format=FORM)
    assert (answer.status, answer.body) == (400, b'{"error":{"message":"no"}}')
    assert len(upstream.requests) == 1
