"""Conversations under a policy, through the running sidecar: what goes up, what comes down, what the record says."""

import dataclasses
import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import brotli
import pytest
import zstandard

from sidecar.core.surface import Kind
from sidecar.stages.guardrails import GuardrailVisit
from sidecar.text.detectors import Detector, resolve
from sidecar.wire import chat

from .talk import Answer, request, wait_for
from .under import CHAT, JSON, Start
from .upstream import CHUNKED, END, FIN, RST, Step, chunk, reply

CARD = "4111 1111 1111 1111"
BLOCK = "{name: no-otters, words: [{list: [otter]}], action: block%s}"
REDACT = "{name: no-otters, words: [{list: [otter], name: animal}]%s}"
FINISH = "{name: no-otters, words: [{list: [otter]}], action: finish, message: 'Ask me something else.'%s}"
DONE = b"data: [DONE]\n\n"


def asked(content: Any = "hi", **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more}).encode()


def whole(*contents: str, **more: Any) -> bytes:
    """A complete reply with a choice for each text."""
    choices = [
        {"index": at, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for at, text in enumerate(contents)
    ]
    return json.dumps({"id": "c1", "object": "chat.completion", "choices": choices, **more}).encode()


def answers(body: bytes, *headers: tuple[bytes, bytes]) -> bytes:
    return reply(body, b"200 OK", JSON, *headers)


def frame(text: str | None = None, choice: int = 0, reason: str | None = None, **more: Any) -> bytes:
    delta = {} if text is None else {"content": text}
    document = {"id": "c1", "object": "chat.completion.chunk", **more}
    document["choices"] = [{"index": choice, "delta": delta, "finish_reason": reason}]
    return b"data: %b\n\n" % json.dumps(document).encode()


def stream(*frames: bytes, end: Sequence[Step] = (chunk(DONE), END), pause: float = 0.0) -> list[Step]:
    steps: list[Step] = [CHUNKED]
    for each in frames:
        steps += [chunk(each), pause] if pause else [chunk(each)]
    return [*steps, *end]


def frames(answer: Answer) -> list[dict[str, Any]]:
    lines = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


def said(answer: Answer, choice: int = 0) -> str:
    """The text of a choice, buffered or streamed."""
    documents = frames(answer) or [json.loads(answer.body)]
    texts = [
        (each.get("delta") or each.get("message") or {}).get("content") or ""
        for document in documents
        for each in document.get("choices", ())
        if each["index"] == choice
    ]
    return "".join(texts)


def reasons(answer: Answer) -> list[str]:
    found = [each["finish_reason"] for document in frames(answer) for each in document.get("choices", ())]
    return [reason for reason in found if reason is not None]


def error_of(answer: Answer) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(answer.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def decision(action: str, surface: str, mode: str = "enforce", count: int = 1) -> dict[str, Any]:
    return {"rule": "no-otters", "action": action, "mode": mode, "surface": surface, "count": count}


USER = str(chat.REQUEST_CONTENT[Kind.USER])
REPLY = "chat.reply.content"


# --- block ---


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_that_is_blocked_never_goes_up(under: Start, streamed: bool):
    with under(BLOCK % "") as talk:
        talk.upstream.play(reply(b"never"))
        answer = talk.ask("tell me of the otter", stream=streamed)
        assert (answer.status, answer.header(b"x-should-retry")) == (400, b"false")
        error = error_of(answer)
        assert (error["code"], error["param"]) == ("guardrail_tripped", USER)
        assert "no-otters" in error["message"]
        assert b"otter " not in answer.body
        assert talk.upstream.requests == []
        line = talk.line()
        assert (line["outcome"], line["status"], line["code"]) == ("blocked", 400, "guardrail_tripped")
        assert line["decisions"] == [decision("block", USER)]
        assert (line["streamed"], line["attempts"]) == (streamed, 0)


@pytest.mark.parametrize("surface", ["name", "arguments"])
def test_the_error_names_the_surface(under: Start, surface: str):
    function = {"name": "f", "arguments": "{}", surface: '{"a": "otter"}' if surface == "arguments" else "otter"}
    message = {"role": "assistant", "tool_calls": [{"id": "t", "type": "function", "function": function}]}
    with under(BLOCK % "") as talk:
        answer = talk.running.ask(request(b"POST", CHAT, json.dumps({"model": "m", "messages": [message]}).encode()))
        assert error_of(answer)["param"] == f"chat.request.messages[].tool_calls[].function.{surface}"


def test_a_reply_that_is_blocked_is_a_clean_error(under: Start):
    with under(BLOCK % "") as talk:
        talk.upstream.play(answers(whole("an otter it is")))
        answer = talk.ask()
        assert (answer.status, error_of(answer)["param"]) == (400, REPLY)
        line = talk.line()
        assert (line["outcome"], line["decisions"]) == ("blocked", [decision("block", REPLY)])


def test_a_stream_blocked_before_its_first_byte_is_a_clean_error(under: Start):
    with under(BLOCK % "") as talk:
        talk.upstream.play(stream(frame("otter it is"), frame("more")))
        answer = talk.ask(stream=True)
        assert (answer.status, answer.header(b"content-type")) == (400, b"application/json")
        assert error_of(answer)["param"] == REPLY
        assert talk.line()["outcome"] == "blocked"


def test_a_stream_blocked_half_way_ends_as_filtered(under: Start):
    with under(BLOCK % "") as talk:
        talk.upstream.play(stream(frame("it is an "), frame("ott"), frame("er, "), frame("you see"), pause=0.02))
        answer = talk.ask(stream=True)
        assert (answer.status, answer.whole, said(answer)) == (200, True, "it is an ")
        assert reasons(answer) == ["content_filter"]
        assert answer.body.endswith(DONE)
        assert answer.body.count(DONE) == 1
        line = talk.line()
        assert (line["outcome"], line["code"], line["status"]) == ("blocked", "guardrail_tripped", 200)
        assert line["decisions"] == [decision("block", REPLY)]


def test_a_stream_blocked_half_way_ends_with_an_error_where_the_policy_says_so(under: Start):
    with under(BLOCK % ", on_block: error") as talk:
        talk.upstream.play(stream(frame("it is an "), frame("otter "), pause=0.02))
        answer = talk.ask(stream=True)
        assert (answer.status, said(answer), reasons(answer)) == (200, "it is an ", [])
        error = next(document["error"] for document in frames(answer) if "error" in document)
        assert (error["code"], error["param"]) == ("guardrail_tripped", REPLY)
        assert talk.line()["outcome"] == "blocked"


def test_a_blocked_stream_lets_go_of_the_provider_at_once(under: Start):
    with under(BLOCK % "") as talk:
        talk.upstream.play(stream(frame("it is an "), frame("otter "), end=[20.0]))
        answer = talk.ask(stream=True)
        assert answer.body.endswith(DONE)
        wait_for(lambda: bool(talk.upstream.ended), 1.0)


def test_every_choice_of_a_blocked_stream_is_ended(under: Start):
    with under(BLOCK % "") as talk:
        talk.upstream.play(stream(frame("one ", 0), frame("two ", 1), frame("otter ", 1), pause=0.02))
        answer = talk.ask(stream=True, n=2)
        last = [each for document in frames(answer) for each in document["choices"] if each["finish_reason"]]
        assert [(each["index"], each["finish_reason"]) for each in last] == [
            (0, "content_filter"),
            (1, "content_filter"),
        ]


# --- finish ---


def test_a_request_can_be_answered_in_the_models_place(under: Start):
    with under(FINISH % "") as talk:
        talk.upstream.play(reply(b"never"))
        answer = talk.ask("an otter")
        assert (answer.status, answer.header(b"content-type")) == (200, b"application/json")
        document = json.loads(answer.body)
        assert document["object"] == "chat.completion"
        assert document["model"] == "m"
        assert document["choices"][0]["message"] == {
            "role": "assistant",
            "content": "Ask me something else.",
            "refusal": None,
        }
        assert document["choices"][0]["finish_reason"] == "stop"
        assert set(document["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}
        assert talk.upstream.requests == []
        line = talk.line()
        assert (line["outcome"], line["status"], line["decisions"]) == ("finished", 200, [decision("finish", USER)])


def test_a_streamed_request_can_be_answered_in_the_models_place(under: Start):
    with under(FINISH % "") as talk:
        answer = talk.ask("an otter", stream=True)
        assert (answer.status, answer.header(b"content-type")) == (200, b"text/event-stream")
        assert (said(answer), reasons(answer)) == ("Ask me something else.", ["stop"])
        assert answer.body.endswith(DONE)
        assert {document["object"] for document in frames(answer)} == {"chat.completion.chunk"}
        assert talk.line()["outcome"] == "finished"


def test_a_reply_can_be_replaced_by_an_answer(under: Start):
    with under(FINISH % "") as talk:
        talk.upstream.play(answers(whole("an otter"), (b"etag", b'"1"')))
        answer = talk.ask()
        assert (answer.status, said(answer), answer.header(b"etag")) == (200, "Ask me something else.", None)
        assert json.loads(answer.body)["id"] == "c1"
        assert talk.line()["outcome"] == "finished"


def test_a_stream_can_be_finished_half_way(under: Start):
    with under(FINISH % "") as talk:
        talk.upstream.play(stream(frame("it is an "), frame("ott"), frame("er, "), frame("more"), pause=0.02))
        answer = talk.ask(stream=True)
        assert said(answer) == "it is an Ask me something else."
        assert (reasons(answer), answer.whole) == (["stop"], True)
        assert answer.body.endswith(DONE)
        assert talk.line()["outcome"] == "finished"


# --- shadow and flag ---


@pytest.mark.parametrize(
    ("rule", "action", "mode"),
    [
        (REDACT % ", mode: shadow", "redact", "shadow"),
        (BLOCK % ", mode: shadow", "block", "shadow"),
        (FINISH % ", mode: shadow", "finish", "shadow"),
        (REDACT % ", action: flag", "flag", "enforce"),
    ],
    ids=["redact", "block", "finish", "flag"],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_only_looks_changes_no_byte(under: Start, rule: str, action: str, mode: str, streamed: bool):
    body = whole("otter  \u00e9 1.0", usage={"n": 1.50})
    parts = [frame("an ott"), frame("er; the "), b": ping\n\n", frame(reason="stop")]
    with under(rule) as talk:
        talk.upstream.play(stream(*parts) if streamed else answers(body))
        answer = talk.ask("the otter", stream=streamed)
        assert talk.upstream.requests[0].body == asked("the otter", stream=streamed)
        assert answer.body == (b"".join(parts) + DONE if streamed else body)
        line = talk.line()
        assert line["outcome"] == "completed"
        decided = [{**each, "count": 1} for each in line["decisions"]]
        assert decided == [decision(action, USER, mode), decision(action, REPLY, mode)]


# --- order, places, spellings ---


def test_a_later_rule_sees_what_an_earlier_one_left(under: Start):
    first, second = (
        "{name: one, words: [{list: [alpha]}], replacement: beta}",
        "{name: two, words: [{list: [beta]}], action: block}",
    )
    with under(first, second) as talk:
        talk.upstream.play(answers(whole("fine")))
        assert error_of(talk.ask("alpha"))["message"].count("'two'") == 1
        assert [(each["rule"], each["action"]) for each in talk.line()["decisions"]] == [
            ("one", "redact"),
            ("two", "block"),
        ]
    with under(second, first) as talk:
        talk.upstream.play(answers(whole("alpha again")))
        answer = talk.ask("alpha")
        assert talk.sent["messages"][0]["content"] == "beta"
        assert said(answer) == "beta again"
        rules = [(each["rule"], each["action"]) for each in talk.line()["decisions"]]
        assert rules == [("one", "redact"), ("one", "redact")]


def test_the_first_stop_ends_it(under: Start):
    with under("{name: one, words: [{list: [otter]}], action: block}", FINISH % "") as talk:
        assert error_of(talk.ask("otter"))["code"] == "guardrail_tripped"
        assert [each["rule"] for each in talk.line()["decisions"]] == ["one"]


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        (b"//v1//chat/completions/", b"/v1//v1//chat/completions/"),
        (b"/v1/%63hat/completions", b"/v1/%63hat/completions"),
        (b"/v1/%2563hat/completions", b"/v1/%2563hat/completions"),
        (b"/V1/Chat/Completions", b"/v1/V1/Chat/Completions"),
        (b"/v1/chat/completions;x=1", None),
        (
            b"/openai/deployments/x/chat/completions?api-version=1",
            b"/v1/openai/deployments/x/chat/completions?api-version=1",
        ),
    ],
)
def test_odd_spellings_of_the_path_are_guarded_both_ways(under: Start, path: bytes, arrives: bytes | None):
    with under(REDACT % "") as talk:
        talk.upstream.play(answers(whole("an otter")))
        answer = talk.ask("otter", path=path)
        assert talk.sent["messages"][0]["content"] == "[REDACTED:animal]"
        assert said(answer) == "an [REDACTED:animal]"
        if arrives is not None:
            assert talk.upstream.requests[0].target == arrives


def test_every_choice_is_guarded(under: Start):
    with under(REDACT % "") as talk:
        talk.upstream.play(answers(whole("otter", "fine", "no otter")))
        answer = talk.ask(n=3)
        assert [said(answer, n) for n in range(3)] == ["[REDACTED:animal]", "fine", "no [REDACTED:animal]"]
        talk.upstream.play(
            stream(
                frame("ott", 0),
                frame("an ot", 1),
                frame("er", 0),
                frame("ter!", 1),
                frame(None, 0, "stop"),
                frame(None, 1, "stop"),
            )
        )
        answer = talk.ask(n=2, stream=True)
        assert [said(answer, n) for n in range(2)] == ["[REDACTED:animal]", "an [REDACTED:animal]!"]
        assert reasons(answer) == ["stop", "stop"]


# --- the record and our headers ---

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@pytest.mark.parametrize("content", ["fine", "an otter"], ids=["unchanged", "changed"])
@pytest.mark.parametrize("streamed", [False, True])
def test_tokens_are_recorded(under: Start, content: str, streamed: bool):
    last = b'data: {"id": "c1", "choices": [], "usage": %b}\n\n' % json.dumps(USAGE).encode()
    with under(REDACT % "") as talk:
        steps = stream(frame(content), frame(reason="stop"), last)
        talk.upstream.play(steps if streamed else answers(whole(content, usage=USAGE)))
        answer = talk.ask(stream=streamed)
        assert json.dumps(USAGE)[1:-1].replace(" ", "") in answer.body.decode().replace(" ", "")
        line = talk.line()
        assert (line["prompt_tokens"], line["completion_tokens"]) == (11, 7)
        assert (line["outcome"], line["streamed"], line["model"], line["attempts"]) == ("completed", streamed, "m", 1)


def test_what_was_decided_is_told_in_a_header(under: Start):
    with under(REDACT % "") as talk:
        talk.upstream.play(answers(whole("an otter")))
        answer = talk.ask("otter and otter")
        assert answer.header(b"x-sidecar-decisions") == (b"no-otters=redact;mode=enforce;n=3")
        talk.upstream.play(answers(whole("fine")))
        assert talk.ask().header(b"x-sidecar-decisions") is None


# --- replies that fail ---


@pytest.mark.parametrize("how", [RST, FIN], ids=["reset", "closed"])
def test_a_stream_that_breaks_off_ends_with_an_error_event(under: Start, how: Step):
    with under(REDACT % "") as talk:
        talk.upstream.play(stream(frame("an "), frame("ott"), end=[0.1, how]))
        answer = talk.ask(stream=True)
        assert (answer.status, answer.whole, said(answer)) == (200, True, "an ott")
        assert frames(answer)[-1]["error"]["code"] == "upstream_broken"
        assert DONE not in answer.body
        line = talk.line()
        assert (line["outcome"], line["code"]) == ("upstream_error", "upstream_broken")


def test_a_stream_that_ends_without_its_end_is_an_error(under: Start):
    with under(REDACT % "") as talk:
        talk.upstream.play(stream(frame("an otter"), end=[END]))
        answer = talk.ask(stream=True)
        assert said(answer) == "an [REDACTED:animal]"
        assert frames(answer)[-1]["error"]["code"] == "upstream_broken"
        assert talk.line()["outcome"] == "upstream_error"


def test_a_stream_that_stalls_ends_with_an_error_event(under: Start):
    with under(REDACT % "", provider=", timeouts: {idle: 300ms}") as talk:
        talk.upstream.play(stream(frame("an "), frame("ott"), end=[10.0]))
        answer = talk.ask(stream=True)
        assert (answer.status, answer.whole, said(answer)) == (200, True, "an ott")
        assert frames(answer)[-1]["error"]["code"] == "upstream_timeout"
        line = talk.line()
        assert (line["outcome"], line["code"], line["phase"]) == ("timeout", "upstream_timeout", "idle")


def test_a_stream_that_fails_before_its_first_byte_is_a_clean_error(under: Start):
    with under(REDACT % "") as talk:
        talk.upstream.play([CHUNKED, 0.05, RST])
        answer = talk.ask(stream=True)
        assert (answer.status, error_of(answer)["code"]) == (502, "upstream_broken")
        assert talk.line()["outcome"] == "upstream_error"


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("when", ["before the reply", "in the stream"])
def test_a_client_that_leaves_settles_the_stages(under: Start, monkeypatch: pytest.MonkeyPatch, how: str, when: str):
    settled: list[str] = []

    async def done(self: GuardrailVisit, outcome: str) -> None:
        settled.append(outcome)

    monkeypatch.setattr(GuardrailVisit, "done", done, raising=False)
    with under(REDACT % "") as talk:
        begins = when == "in the stream"
        talk.upstream.play(stream(frame("an "), end=[20.0]) if begins else [20.0])
        client = talk.running.connect()
        client.send(request(b"POST", CHAT, asked(stream=True)))
        if begins:
            client.until(b"an ")
        else:
            wait_for(lambda: len(talk.upstream.requests) == 1)
        client.reset() if how == "reset" else client.sock.close()
        wait_for(lambda: bool(talk.upstream.ended), 1.0)
        assert talk.line()["outcome"] == "client_gone"
        wait_for(lambda: talk.running.runtime.active == 0)
    assert len(settled) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (b"400 Bad Request", b"application/json", b'{"error": {"message": "no \\u00e9", "code": null},  "x": 1.0}'),
        (b"401 Unauthorized", b"application/json", b'{"error": "who are you?"}'),
        (b"404 Not Found", b"text/html", b"<h1>Not found</h1>\n"),
        (b"422 Unprocessable Entity", b"application/json", b'{"detail": [{"loc": ["body"], "msg": "x y"}]}'),
        (b"429 Slow Down", b"application/json", b"{}"),
        (b"500 Oops", b"text/plain", b"caf\xe9"),
        (b"502 Bad Gateway", b"text/html", b"<html>\r\n<center>nginx</center>\r\n</html>"),
        (b"503 Busy", b"application/octet-stream", b""),
    ],
)
def test_the_providers_own_errors_come_down_unchanged(
    under: Start, streamed: bool, status: bytes, kind: bytes, body: bytes
):
    with under(REDACT % "") as talk:
        talk.upstream.play(reply(body, status, (b"content-type", kind), (b"retry-after", b"3"), (b"etag", b'"1"')))
        answer = talk.ask(stream=streamed)
        assert (answer.status, answer.reason, answer.body) == (int(status[:3]), status[4:], body)
        told = [answer.header(name) for name in (b"content-type", b"retry-after", b"etag")]
        assert told == [kind, b"3", b'"1"']
        line = talk.line()
        assert (line["status"], line["outcome"]) == (int(status[:3]), "completed")


def test_a_secret_in_the_providers_error_is_redacted(under: Start):
    with under(REDACT % "") as talk:
        talk.upstream.play(reply(b'{"error": {"message": "no otter"}}', b"400 Bad Request", JSON))
        answer = talk.ask()
        assert (answer.status, json.loads(answer.body)) == (400, {"error": {"message": "no [REDACTED:animal]"}})
        talk.upstream.play(reply(b"<p>no otter</p>", b"502 Bad Gateway", (b"content-type", b"text/html")))
        assert talk.ask().body == b"<p>no [REDACTED:animal]</p>"


# --- codings and keys ---

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", PACK)
def test_a_coded_reply_keeps_its_bytes_unless_it_is_changed(under: Start, coding: str):
    marks = (b"content-encoding", coding.encode()), (b"etag", b'"1"'), (b"content-md5", b"x"), (b"x-kept", b"1")
    with under(REDACT % "") as talk:
        packed = PACK[coding](whole("fine"))
        talk.upstream.play(answers(packed, *marks))
        answer = talk.ask("hi", (b"accept-encoding", coding.encode()))
        assert answer.body == packed
        assert [answer.header(name) for name, _ in marks] == [value for _, value in marks]
        assert answer.header(b"content-length") == b"%d" % len(packed)
        talk.upstream.play(answers(PACK[coding](whole("an otter")), *marks))
        answer = talk.ask("hi", (b"accept-encoding", coding.encode()))
        assert said(answer) == "an [REDACTED:animal]"
        assert [answer.header(name) for name, _ in marks] == [None, None, None, b"1"]
        assert answer.header(b"content-length") == b"%d" % len(answer.body)


@pytest.mark.parametrize(
    ("offered", "asks"),
    [(b"gzip, compress, br", b"gzip, br"), (b"compress", b"identity"), (None, b"identity"), (b"identity", b"identity")],
)
def test_only_codings_that_can_be_undone_are_asked_for(under: Start, offered: bytes | None, asks: bytes):
    with under(REDACT % "") as talk:
        talk.upstream.play(answers(whole("fine")))
        talk.ask("hi", *([(b"accept-encoding", offered)] if offered else []))
        assert talk.upstream.requests[0].header(b"accept-encoding") == asks


@pytest.mark.parametrize("coding", [None, "gzip"])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_providers_key_does_not_come_down_beside_a_rule(under: Start, coding: str | None, streamed: bool):
    key = "pk-4f5e6d7c8b9a0f1e2d3c"
    with under(REDACT % "", provider=f', api_key: "{key}"') as talk:
        body = b"".join([frame(f"you sent {key}"), frame(reason="stop"), DONE]) if streamed else whole(f"sent {key}")
        kind = (b"content-type", b"text/event-stream" if streamed else b"application/json")
        headers = [(b"content-encoding", coding.encode())] if coding else []
        packed = gzip.compress(body) if coding else body
        talk.upstream.play(reply(packed, b"200 OK", kind, (b"x-echo", key.encode()), *headers))
        answer = talk.ask(stream=streamed)
        assert talk.upstream.requests[0].header(b"authorization") == b"Bearer " + key.encode()
        assert said(answer).endswith("sent " + "*" * len(key))
        assert (answer.header(b"x-echo"), answer.header(b"content-encoding")) == (b"*" * len(key), None)


# --- rules that fail ---


def broken(value: str) -> bool:
    raise RuntimeError(f"this check is broken: {value}")


@pytest.fixture
def broken_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(names: Sequence[str]) -> list[Detector]:
        return [dataclasses.replace(detector, check=broken) for detector in resolve(names)]

    monkeypatch.setattr("sidecar.stages.guardrails.resolve", resolved)


@pytest.mark.usefixtures("broken_check")
@pytest.mark.parametrize("action", ["redact", "block", "flag"])
def test_a_rule_that_fails_blocks(under: Start, action: str):
    with under(f"{{name: cards, detect: [credit_card], action: {action}}}") as talk:
        talk.upstream.play(answers(whole(f"yours is {CARD}.")))
        error = error_of(talk.ask(f"mine is {CARD}."))
        assert (error["code"], error["param"]) == ("guardrail_tripped", USER)
        assert "could not be applied" in error["message"]
        assert talk.upstream.requests == []
        assert talk.line()["outcome"] == "blocked"
        error = error_of(talk.ask("hi"))
        assert (error["param"], talk.line()["outcome"]) == (REPLY, "blocked")
        talk.upstream.play(stream(frame("yours is "), frame(f"{CARD}. "), frame("more"), pause=0.02))
        answer = talk.ask(stream=True)
        assert (said(answer), reasons(answer)) == ("yours is ", ["content_filter"])
        assert "1111" not in talk.log.read_text()


@pytest.mark.usefixtures("broken_check")
def test_a_rule_that_fails_lets_pass_where_the_policy_says_so(under: Start):
    with under("{name: cards, detect: [credit_card, us_ssn], on_error: pass}") as talk:
        body = whole(f"yours is {CARD}.")
        talk.upstream.play(answers(body))
        answer = talk.ask(f"mine is {CARD}.")
        assert (answer.status, answer.body) == (200, body)
        assert talk.upstream.requests[0].body == asked(f"mine is {CARD}.")
        talk.upstream.play(stream(frame("yours is "), frame(f"{CARD}. "), frame("more")))
        assert said(talk.ask(stream=True)) == f"yours is {CARD}. more"


# --- odd text and bounds ---


def spelt(content: bytes) -> bytes:
    """A frame whose content is spelt in JSON just so."""
    return frame("CONTENT").replace(b"CONTENT", content)


def test_halves_of_a_character_that_come_apart_pass(under: Start):
    high, low, alone = b"\\ud83d", b"\\ude00", b"\\ud83d "
    parts = [frame("a "), spelt(high), spelt(low), frame(" otter"), spelt(alone), frame(reason="stop")]
    with under(REDACT % "") as talk:
        talk.upstream.play(stream(*parts))
        answer = talk.ask(stream=True)
        assert answer.status == 200
        assert said(answer).encode("utf-16", "surrogatepass").decode("utf-16", "replace") == (
            "a \U0001f600 [REDACTED:animal]\ufffd "
        )
        assert answer.body.endswith(DONE)


def test_a_character_is_found_though_it_comes_in_halves(under: Start):
    with under("{name: faces, words: [{list: ['\U0001f600x'], whole_word: false, name: face}]}") as talk:
        parts = [spelt(b"a \\ud83d"), spelt(b"\\ude00"), frame("x b")]
        talk.upstream.play(stream(*parts, frame(reason="stop")))
        assert said(talk.ask(stream=True)) == "a [REDACTED:face] b"


def test_tool_results_are_bounded_after_they_are_redacted(under: Start):
    """A bound that came first would cut the word in two and let its half pass."""
    results = ["x" * 17 + " otter and more", "short", "o" * 21]
    messages = [{"role": "tool", "tool_call_id": "t", "content": text} for text in results]
    messages.append({"role": "user", "content": "u" * 50})
    with under(REDACT % "", more="scrub: {max_chars: {tool_results: 20}}\n") as talk:
        talk.upstream.play(answers(whole("fine")))
        talk.running.ask(request(b"POST", CHAT, json.dumps({"model": "m", "messages": messages}).encode()))
        contents = [message["content"] for message in talk.sent["messages"]]
    redacted = "x" * 17 + " [REDACTED:animal] and more"
    assert contents[0] == f"{redacted[:20]}… [{len(redacted)} characters in all]"
    assert contents[1:] == ["short", "o" * 20 + "… [21 characters in all]", "u" * 50]


def test_the_sidecar_goes_on_after_all_of_it(under: Start):
    with under(BLOCK % "") as talk, talk.running.connect() as client:
        for content, status in (("otter", 400), ("fine", 200), ("an otter", 400), ("fine", 200)):
            talk.upstream.play(answers(whole("fine")))
            client.send(request(b"POST", CHAT, asked(content)))
            assert client.answer().status == status
        talk.upstream.play(stream(frame("an "), frame("otter "), frame("more"), pause=0.02))
        client.send(request(b"POST", CHAT, asked(stream=True)))
        assert client.answer().body.endswith(DONE)
        talk.upstream.play(answers(whole("fine")))
        client.send(request(b"POST", CHAT, asked()))
        assert client.answer().body == whole("fine")
