"""A stage that asks again: its calls go through everything inside it, and the client gets one whole reply.

The stage here is made up: it wants a reply that says "right", asks as often as it may, and may change what it gets.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from openai import OpenAI

from sidecar.core.chain import Chain, Step
from sidecar.core.decision import PASS, Answer, Decision, Mode
from sidecar.core.exchange import Exchange, Request
from sidecar.core.stage import Visit
from sidecar.core.surface import Finding
from sidecar.server import asking as server_asking
from sidecar.wire import chat
from sidecar.wire.views import VIEWS

from .talk import wait_for
from .test_guarded import REDACT, answers, frame, stream, whole
from .under import Start, Talk
from .upstream import FIN, Upstream, reply

MESSAGES = b"/v1/messages"


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks until the reply has the word, `most` times at most; with `says` that is what it makes of the reply."""

    most: int = 3
    says: str = ""
    name: str = "asker"

    def open(self, exchange: Exchange) -> Visit:
        return _Visit(self, exchange)


class _Visit(Visit):
    def __init__(self, stage: Asker, exchange: Exchange) -> None:
        self._stage, self._view = stage, VIEWS.get(exchange.endpoint)

    async def request(self, request: Request) -> Decision:
        if request.port is None or self._view is None:
            return PASS
        heard = await request.port.ask(request.document)
        for _ in range(self._stage.most - 1):
            if heard.document is None or "right" in self._view.replied(heard.document).texts[0]:
                break
            self._view.asked(request.document).say("Once more.")
            request.rewritten()
            heard = await request.port.ask(request.document)
        if heard.document is None or not self._stage.says:
            return Answer(heard, findings=(Finding("asker", "asked", chat.CONTENT),), action="repair")
        self._view.replied(heard.document).say(0, self._stage.says)
        return Answer(heard, heard.document)


@contextmanager
def asking(
    start: Start, *guardrails: str, stage: Asker = Asker(), mode: Mode = Mode.ENFORCE, more: str = ""
) -> Iterator[Talk]:
    with start(*guardrails, more=more) as talk:
        runtime = talk.running.runtime
        force = runtime.now
        chain = Chain.of([*force.snapshot.chain.down, Step(stage, mode, 600, asks=True)])
        runtime._now = replace(force, snapshot=replace(force.snapshot, chain=chain, looks=True, inert=False))
        yield talk


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}}


def test_a_reply_that_needs_no_second_call_is_the_bytes_that_came(under: Start, upstream: Upstream) -> None:
    sent = whole("All right.", odd={"a": 1.50})
    with asking(under) as talk:
        upstream.play(answers(sent))
        answer = talk.ask()
        line = talk.line()
    assert (answer.status, answer.body) == (200, sent)
    assert len(upstream.requests) == 1
    assert answer.header(b"x-sidecar-calls") is None
    assert line["calls"] == 1


def test_the_request_leaves_as_the_bytes_that_came(under: Start, upstream: Upstream) -> None:
    body = b'{"model" : "m",  "temperature": 0.70, "messages": [{"role": "user", "content": "hi"}]}'
    with asking(under) as talk:
        upstream.play(answers(whole("right")))
        talk.send(b"POST", b"/v1/chat/completions", body, (b"content-type", b"application/json"))
    assert upstream.requests[-1].body == body


def test_it_asks_again_with_the_stages_inside(under: Start, upstream: Upstream) -> None:
    """Both calls are guarded on both ways, and charged; the client gets the second reply."""
    budget = "budgets: [{name: b, scope: all, calls: 10, tokens: 1000}]\n"
    with asking(under, REDACT % "", more=budget) as talk:
        upstream.play(answers(whole("an otter", **usage(5, 2))), answers(whole("right, otter", **usage(7, 3))))
        answer = talk.ask("my otter")
        line = talk.line()
    first, second = [json.loads(request.body)["messages"] for request in upstream.requests]
    assert [each["content"] for each in first] == ["my [REDACTED:animal]"]
    assert [each["content"] for each in second] == ["my [REDACTED:animal]\n\nOnce more."]
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "right, [REDACTED:animal]"
    assert answer.header(b"x-sidecar-calls") == b"2"
    assert (line["calls"], line["attempts"]) == (2, 2)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (12, 5)
    assert {(each["rule"], each["action"], each["surface"]) for each in line["decisions"]} == {
        ("no-otters", "redact", "chat.request.messages[].content"),
        ("no-otters", "redact", "chat.reply.content"),
        ("asker", "repair", "chat.reply.content"),
    }


def test_a_budget_that_is_used_up_stops_the_second_call(under: Start, upstream: Upstream) -> None:
    with asking(under, more="budgets: [{name: two, scope: all, calls: 2}]\n") as talk:
        upstream.play(answers(whole("wrong")))
        answer = talk.ask()
        line = talk.line()
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (429, "budget_exceeded")
    assert (len(upstream.requests), line["calls"], line["stop_reason"]) == (2, 2, "call_limit")


def test_a_block_inside_is_an_error_also_where_a_stream_had_begun(under: Start, upstream: Upstream) -> None:
    block = "{name: no-otters, words: [{list: [otter]}], action: block}"
    with asking(under, block) as talk:
        upstream.play(stream(frame("Well, "), frame("an "), frame("otter."), frame(reason="stop")))
        answer = talk.ask(stream=True)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "guardrail_tripped")


def test_what_a_stage_inside_answers_is_handed_down_as_it_is(under: Start, upstream: Upstream) -> None:
    finish = "{name: no-otters, words: [{list: [otter]}], action: finish, message: 'Ask me something else.'}"
    with asking(under, finish) as talk:
        upstream.play(answers(whole("an otter")))
        assert json.loads(talk.ask().body)["choices"][0]["message"]["content"] == "Ask me something else."
        assert json.loads(talk.ask("otter").body)["choices"][0]["message"]["content"] == "Ask me something else."
    assert len(upstream.requests) == 1


def test_an_error_of_the_provider_passes_as_it_came(under: Start, upstream: Upstream) -> None:
    body = b'{"error": {"message": "no such model", "type": "t", "code": "c", "param": null}}'
    with asking(under) as talk:
        upstream.play(reply(body, b"404 Not Found", (b"content-type", b"application/json")))
        answer = talk.ask(stream=True)
    assert (answer.status, answer.body) == (404, body)


def test_a_stream_is_held_and_leaves_as_the_bytes_that_came(under: Start, upstream: Upstream) -> None:
    frames = [frame("All "), b": a comment\n\n", frame("right."), frame(reason="stop")]
    with asking(under) as talk:
        upstream.play(stream(frame("wrong"), frame(reason="stop")), stream(*frames))
        answer = talk.ask(stream=True)
    assert answer.body == b"".join(frames) + b"data: [DONE]\n\n"
    assert [json.loads(request.body)["stream"] for request in upstream.requests] == [True, True]


def test_a_changed_reply_is_told_anew(under: Start, upstream: Upstream) -> None:
    with asking(under, stage=Asker(says="Something else.")) as talk:
        upstream.play(stream(frame("All "), frame("right."), frame(reason="stop")))
        client = OpenAI(base_url=f"http://127.0.0.1:{talk.running.port}/v1", api_key="k", max_retries=0)
        with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as told:
            reply = told.get_final_completion()
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("Something else.", "stop")


def test_a_stream_that_breaks_off_is_told_as_such(under: Start, upstream: Upstream) -> None:
    with asking(under) as talk:
        upstream.play(stream(frame("half of"), end=(FIN,)))
        answer = talk.ask(stream=True)
        line = talk.line()
    assert b"upstream_broken" in answer.body
    assert (len(upstream.requests), line["outcome"]) == (1, "upstream_error")


def test_who_waits_for_a_stream_is_not_forgotten(under: Start, upstream: Upstream) -> None:
    with asking(under, more="server: {keep_alive: 50ms}\n") as talk:
        upstream.play(stream(frame("right"), frame(reason="stop"), pause=0.2))
        answer = talk.ask(stream=True)
    assert answer.status == 200
    assert answer.body.startswith(b": keep-alive\n\n: keep-alive\n\n")
    assert answer.body.lstrip(b": kep-aliv\n").startswith(frame("right")[:4])
    assert answer.body.count(b"[DONE]") == 1


@pytest.mark.parametrize("path", [b"/v1/chat/completions", MESSAGES])
def test_an_error_after_a_comment_is_an_event(under: Start, upstream: Upstream, path: bytes) -> None:
    block = "{name: no-otters, words: [{list: [otter]}], action: block}"
    with asking(under, block, more="server: {keep_alive: 50ms}\n") as talk:
        body = b'{"error": {"message": "no such otter", "type": "t", "code": "c"}}'
        upstream.play([0.2, reply(body, b"404 Not Found", (b"content-type", b"application/json"))])
        answer = talk.post(
            path, {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "stream": True}
        )
        line = talk.line()
    assert answer.status == 200
    assert b"guardrail_tripped" in answer.body
    assert b"such otter" not in answer.body
    assert (line["outcome"], line["code"]) == ("blocked", "guardrail_tripped")


def test_a_provider_refuses_after_a_comment(under: Start, upstream: Upstream) -> None:
    with asking(under, more="server: {keep_alive: 50ms}\n") as talk:
        body = b'{"error": {"message": "too many", "type": "t", "code": "c"}}'
        upstream.play([0.2, reply(body, b"429 Too Many Requests", (b"content-type", b"application/json"))])
        answer = talk.ask(stream=True)
    assert b'"upstream_error"' in answer.body
    assert b"too many" in answer.body


def test_who_only_watches_asks_for_nothing(under: Start, upstream: Upstream) -> None:
    with asking(under, mode=Mode.SHADOW) as talk:
        upstream.play(answers(whole("wrong")))
        answer = talk.ask()
    assert (len(upstream.requests), answer.body) == (1, whole("wrong"))


def test_a_client_that_leaves_ends_it(under: Start, upstream: Upstream) -> None:
    budget = "budgets: [{name: b, scope: all, calls: 10, tokens: 1000}]\n"
    with asking(under, more=budget) as talk:
        upstream.play(answers(whole("wrong")), [5.0])
        with talk.running.connect() as client:
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
            client.send(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            )
            wait_for(lambda: len(upstream.requests) == 2)
        line = talk.line()
    assert (line["outcome"], line["calls"]) == ("client_gone", 2)


def test_what_is_held_is_bounded(under: Start, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_asking, "MAX_REPLY", 2000)
    with asking(under) as talk:
        upstream.play(stream(*[frame("wrong ")] * 100, end=(5.0,)))
        answer = talk.ask(stream=True)
        line = talk.line()
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (502, "upstream_broken")
    assert (line["outcome"], line["calls"]) == ("upstream_error", 1)
