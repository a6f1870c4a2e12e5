"""Guardrails, breakers, an outage and the other APIs, under retry and fallback."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

from .mishaps import (
    BEGUN,
    DONE,
    GOOD,
    TEXT,
    completion,
    error,
    event,
    good,
    refusal,
)
from .pair import MODES, PLANS, RETRY, Start, check_served, documents, text_of, trail_of
from .talk import Answer, request, wait_for
from .under import CHAT, JSON
from .upstream import CHUNKED, END, RST, chunk, reply

# --- guardrails ---

NO_SECRETS = "guardrails: [{name: g, patterns: [{name: t, regex: 'ACME-[0-9]+'}], action: %s}]"


@MODES
def test_a_blocked_request_is_sent_nowhere(pair: Start, streamed: bool) -> None:
    with pair(PLANS["both"], NO_SECRETS % "block") as talk:
        talk.a.play([GOOD])
        answer = talk.ask(streamed, messages=[{"role": "user", "content": "ACME-1"}])
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "guardrail_tripped")
        assert talk.counts == (0, 0)


@MODES
def test_the_serving_reply_passes_the_guardrails(pair: Start, streamed: bool) -> None:
    with pair(PLANS["fallback"], NO_SECRETS % "redact") as talk:
        talk.a.play([refusal(b"500 Oops")])
        stream = CHUNKED + b"".join(chunk(event({"content": text})) for text in ("so AC", "ME-1", "7 ")) + chunk(DONE)
        talk.b.play([stream + END if streamed else reply(completion("so ACME-17 "), b"200 OK", JSON)])
        answer = talk.ask(streamed, messages=[{"role": "user", "content": "ACME-1"}])
        assert text_of(answer, streamed) == "so [REDACTED:t] "
        assert b"ACME" not in talk.a.requests[0].body + talk.b.requests[0].body
        assert talk.counts == (1, 1)


@MODES
def test_a_blocked_reply_is_not_asked_for_again(pair: Start, streamed: bool) -> None:
    with pair(PLANS["both"], NO_SECRETS % "block") as talk:
        talk.a.play([CHUNKED + chunk(event({"content": "ACME-1 "})) + chunk(DONE) + END])
        if not streamed:
            talk.a.play([reply(completion("ACME-1"), b"200 OK", JSON)])
        answer = talk.ask(streamed)
        assert b"ACME" not in answer.body
        assert talk.counts == (1, 0)


def test_what_failed_attempts_said_stays(pair: Start) -> None:
    with pair(PLANS["both"], NO_SECRETS % "redact") as talk:
        talk.a.play(reply(error(message="about canary ACME-1"), b"500 Oops", JSON))
        talk.b.play(
            reply(error(message="second canary"), b"500 Oops", JSON),
            reply(error(message="last word ACME-2"), b"503 Oops", JSON),
        )
        answer = talk.ask()
        log = json.dumps(talk.line())
        assert answer.status == 503
        assert json.loads(answer.body)["error"]["message"] == "last word [REDACTED:t]"
        assert answer.header(b"x-sidecar-target") == b"b/n"
        for where in (answer.body, *(value for _, value in answer.headers), log.encode()):
            assert b"canary" not in where
            assert b"ACME" not in where


def test_a_providers_error_outlives_a_network_failure_after_it(pair: Start) -> None:
    """Also one of which more was to come when its connection was given up."""
    half_error = CHUNKED + chunk(b"data: " + error("overloaded", message="mine") + b"\n\n")
    with pair(PLANS["fallback"]) as talk:
        talk.a.play([half_error, 5.0])
        talk.b.play([RST])
        answer = talk.ask(streamed=True)
        assert trail_of(answer) == ["overloaded", "network"]
        assert [document["error"]["message"] for document in documents(answer)] == ["mine"]
        assert answer.header(b"x-sidecar-target") == b"a/m"
        assert answer.whole


# --- breakers ---


def test_a_dead_target_is_found_out_once_for_all(pair: Start) -> None:
    with pair("{fallback: {}, breaker: {failures: 3, open_for: 30s}}") as talk, ThreadPoolExecutor(8) as pool:
        talk.a.play([refusal(b"500 Oops")])
        for answer in pool.map(lambda _: talk.ask(), range(40)):
            check_served(answer, False)
        assert 3 <= talk.counts[0] <= 3 + 8
        assert talk.counts[1] == 40


def test_one_attempt_at_a_time_finds_out(pair: Start) -> None:
    plan = "{fallback: {}, breaker: {failures: 1, open_for: 300ms, successes: 2}}"
    with pair(plan) as talk, ThreadPoolExecutor(8) as pool:
        talk.a.play(refusal(b"500 Oops"), [0.25, GOOD], GOOD)
        check_served(talk.ask(), False)
        time.sleep(0.35)
        for answer in pool.map(lambda _: talk.ask(), range(8)):
            check_served(answer, False)
        assert talk.counts == (2, 8)
        check_served(talk.ask(), False)  # the second good one brings it back
        for answer in pool.map(lambda _: talk.ask(), range(8)):
            check_served(answer, False)
        assert talk.counts == (11, 8)


def test_a_client_that_leaves_gives_the_probe_back(pair: Start) -> None:
    plan = "{fallback: {}, breaker: {failures: 1, open_for: 200ms}}"
    with pair(plan) as talk:
        talk.a.play(refusal(b"500 Oops"), [BEGUN, 0.25], GOOD)
        check_served(talk.ask(), False)
        time.sleep(0.25)
        with talk.running.connect() as client:
            document = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
            client.send(request(b"POST", CHAT, document, JSON))
            wait_for(lambda: len(talk.a.requests) == 2)
            time.sleep(0.05)
        wait_for(lambda: talk.running.runtime.active == 0)
        assert talk.ask().header(b"x-sidecar-target") == b"a/m"


def test_opening_and_closing_is_told(pair: Start) -> None:
    with pair("{fallback: {}, breaker: {failures: 1, open_for: 50ms, successes: 1}}") as talk:
        talk.a.play(refusal(b"500 Oops"), GOOD)
        talk.ask()
        time.sleep(0.1)
        talk.ask()
        wait_for(lambda: talk.log.read_text().count('"event"') == 2)
        told = [line for line in map(json.loads, talk.log.read_text().splitlines()) if "event" in line]
    assert [(one["event"], one["target"], one["state"]) for one in told] == [
        ("target", "a/m", "open"),
        ("target", "a/m", "closed"),
    ]
    assert (told[0]["reason"], told[0]["seconds"]) == ("server_error", 0.05)


ADMIN = b"admin-key"
TARGETS = b"/sidecar/v1/targets"


def test_the_state_of_targets_is_shown_to_an_admin(pair: Start) -> None:
    tenants = f'tenants: [{{name: t, keys: ["sha256:{sha256(b"tenant-key").hexdigest()}"]}}]'
    server = f'server: {{admin_keys: ["sha256:{sha256(ADMIN).hexdigest()}"]}}\n{tenants}'
    with pair("{fallback: {}, breaker: {failures: 1}}", server) as talk:
        talk.a.play(refusal(b"500 Oops"))
        talk.ask()

        def shown(key: bytes) -> Answer:
            return talk.running.ask(request(b"GET", TARGETS, None, (b"authorization", b"Bearer " + key)))

        rows = json.loads(shown(ADMIN).body)["targets"]
        assert [(row["target"], row["state"], row["reason"]) for row in rows] == [
            ("a/m", "open", "server_error"),
            ("b/n", "closed", None),
        ]
        assert 29 < rows[0]["seconds"] <= 30
        assert [shown(key).status for key in (b"tenant-key", b"nobody")] == [403, 401]
    with pair("{fallback: {}}") as talk:
        assert talk.running.ask(request(b"GET", TARGETS)).status == 404


# --- an outage ---


@MODES
def test_an_outage(pair: Start, streamed: bool) -> None:
    """The first provider dies under load and comes back: nobody notices, and it is hardly asked meanwhile."""
    cooldown, parallel = 0.4, 4
    plan = f"{{retry: {RETRY}, fallback: {{}}, breaker: {{failures: 3, open_for: {cooldown}s}}}}"
    with pair(plan) as talk, ThreadPoolExecutor(parallel) as pool:

        def load(seconds: float) -> list[Answer]:
            end = time.monotonic() + seconds
            answers = []
            while time.monotonic() < end:
                answers.append(talk.ask(streamed))
                time.sleep(0.01)
            return answers

        def phase(seconds: float) -> list[Answer]:
            return [answer for found in pool.map(load, [seconds] * parallel) for answer in found]

        talk.a.play([good(streamed)])
        talk.b.play([good(streamed)])
        answers = phase(0.5)
        assert talk.counts[1] == 0
        talk.a.play([refusal(b"503 Service Unavailable")])
        answers += phase(2.0)
        # All that was under way when it died, and from then on one each time that it may have come back.
        assert len(talk.a.requests) <= 2 * parallel + 3 + 2 * (2.0 / cooldown)
        talk.a.play([good(streamed)])
        answers += phase(1.2)
        served = [answer.header(b"x-sidecar-target") for answer in answers[-parallel:]]
        assert served == [b"a/m"] * parallel
        assert len(answers) > 100
        for answer in answers:
            check_served(answer, streamed)


# --- other APIs ---


def test_responses(pair: Start) -> None:
    item = {"type": "message", "id": "m", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    start: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", "item_id": "m", "output_index": 0, "content_index": 0, "part": part},
    ]
    failed = {"type": "error", "code": "server_error", "message": "no", "param": None, "sequence_number": 9}
    said = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "hi"}
    done = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    with pair(PLANS["fallback"]) as talk:
        talk.a.play([CHUNKED + named(*start, failed) + END])
        talk.b.play([CHUNKED + named(*start, said, done) + END])
        answer = talk.ask(True, b"/v1/responses", input="hi")
        found = documents(answer)
        assert [one["type"] for one in found] == [one["type"] for one in (*start, said, done)]
        assert talk.counts == (1, 1)


def named(*documents: dict[str, Any]) -> bytes:
    frames = (b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in documents)
    return b"".join(map(chunk, frames))


def test_a_response_that_is_still_being_made_is_one(pair: Start) -> None:
    queued: dict[str, Any] = {"id": "r", "object": "response", "status": "queued", "output": [], "error": None}
    with pair(PLANS["both"]) as talk:
        talk.a.play(reply(json.dumps(queued).encode(), b"200 OK", JSON))
        answer = talk.ask(path=b"/v1/responses", input="hi", background=True)
        assert json.loads(answer.body) == queued
        assert talk.counts == (1, 0)


def test_a_failed_response_is_asked_for_again_and_given_as_it_came(pair: Start) -> None:
    failed = {"id": "r", "object": "response", "status": "failed", "output": [], "error": {"code": "server_error"}}
    with pair(PLANS["retry"]) as talk:
        talk.a.play(reply(json.dumps(failed).encode(), b"200 OK", JSON))
        answer = talk.ask(path=b"/v1/responses", input="hi")
        assert (answer.status, json.loads(answer.body)) == (200, failed)
        assert trail_of(answer) == ["server_error"] * 2


MESSAGES = b"/v1/messages"
_USED = {"input_tokens": 1}
_MESSAGE = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": _USED}
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@MODES
def test_a_bridged_target_helps_a_native_one(pair: Start, streamed: bool) -> None:
    with pair(PLANS["fallback"], about_b=", messages: chat") as talk:
        talk.a.play(
            [CHUNKED + named({"type": "message_start", "message": _MESSAGE}, {"type": "ping"}, _OVERLOADED) + END]
        )
        if not streamed:
            talk.a.play(reply(json.dumps(_OVERLOADED).encode(), b"529 Overloaded", JSON))
        talk.b.play([good(streamed)])
        answer = talk.ask(streamed, MESSAGES, max_tokens=9)
        assert (answer.status, trail_of(answer)) == (200, ["overloaded", "none"])
        if streamed:
            kinds = [one["type"] for one in documents(answer)]
            assert (kinds.count("message_start"), kinds[-1]) == (1, "message_stop")
            assert "".join(one["delta"].get("text", "") for one in documents(answer) if "delta" in one) == TEXT
        else:
            assert json.loads(answer.body)["content"] == [{"type": "text", "text": TEXT}]
        assert talk.b.requests[0].target == b"/v1/chat/completions"


def test_a_target_that_cannot_be_asked_is_passed_over(pair: Start) -> None:
    """Chat completions have nothing like a PDF: the error of the one that could take it is what the client gets."""
    part = {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}}
    with pair(PLANS["fallback"], about_b=", messages: chat") as talk:
        talk.a.play(reply(json.dumps(_OVERLOADED).encode(), b"529 Overloaded", JSON))
        answer = talk.ask(path=MESSAGES, max_tokens=9, messages=[{"role": "user", "content": [part]}])
        assert (answer.status, json.loads(answer.body)) == (529, _OVERLOADED)
        assert talk.counts == (1, 0)
    with pair(PLANS["fallback"], about_a=", messages: chat") as talk:
        talk.b.play(
            reply(json.dumps({**_MESSAGE, "content": [{"type": "text", "text": "ok"}]}).encode(), b"200 OK", JSON)
        )
        answer = talk.ask(path=MESSAGES, max_tokens=9, messages=[{"role": "user", "content": [part]}])
        assert answer.status == 200
        assert talk.counts == (0, 1)


def test_apis_without_conversation_are_asked_again_too(pair: Start) -> None:
    vectors = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}], "model": "m"}
    with pair(PLANS["both"]) as talk:
        talk.a.play(refusal(b"500 Oops"), reply(json.dumps(vectors).encode(), b"200 OK", JSON))
        answer = talk.ask(path=b"/v1/embeddings", input="hi")
        assert (json.loads(answer.body), talk.counts) == (vectors, (2, 0))
