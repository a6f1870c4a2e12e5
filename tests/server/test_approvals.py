"""Calls that wait for an admin, through real sockets; and the rules about tools where only a server shows them."""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores import approvals as store
from tests.running import Process, serve
from tests.stores.ledgers import redis_server

from .talk import Answer, Sidecar, request, sidecar, wait_for
from .under import CHAT, JSON
from .upstream import Upstream, reply

ADMIN, ACME = b"admin-key", b"acme-key"
APPROVALS = b"/sidecar/v1/approvals"
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("send_mail", "read", "vault_read")
]
ASK = '{name: ask-first, tool: "send_*", decision: confirm, reason: "ask first"}'


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "POLL_SECONDS", 0.02)


def digest(key: bytes) -> str:
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def bearer(key: bytes) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + key


def called(*calls: tuple[str, dict[str, Any]], content: str | None = None) -> bytes:
    made = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": made} if made else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
    body = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
    return reply(json.dumps(body).encode(), b"200 OK", JSON)


def streamed(name: str, *pieces: str) -> bytes:
    first = {"index": 0, "id": "c0", "type": "function", "function": {"name": name, "arguments": ""}}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "tool_calls": [first]}, None)]
    deltas += [({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, None) for piece in pieces]
    frames = [
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in [*deltas, ({}, "tool_calls")]
    ]
    body = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"
    return reply(body, b"200 OK", (b"content-type", b"text/event-stream"))


MAIL = ("send_mail", {"to": "ana@example.com", "key": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})


class Office:
    """A sidecar whose policy asks an admin, and its log."""

    def __init__(self, running: Sidecar, log: Path) -> None:
        self.running, self.log = running, log

    def ask(self, **fields: Any) -> Answer:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS, **fields}
        headers = (JSON, bearer(ACME), (b"x-sidecar-session", b"s"), (b"x-sidecar-agent", b"mailer"))
        return self.running.ask(request(b"POST", CHAT, json.dumps(body).encode(), *headers))

    @contextmanager
    def asking(self, **fields: Any) -> Iterator[list[Answer]]:
        """Someone asks, and waits. The list holds the answer when the block has ended."""
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(self.ask(**fields)))
        thread.start()
        yield answers
        thread.join(10)

    def waiting(self, key: bytes = ADMIN) -> list[dict[str, Any]]:
        answer = self.running.ask(request(b"GET", APPROVALS, None, bearer(key)))
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = json.loads(answer.body)["approvals"]
        return found

    def one(self) -> dict[str, Any]:
        wait_for(lambda: bool(self.waiting()))
        (found,) = self.waiting()
        return found

    def decide(self, id: str, key: bytes = ADMIN, **fields: Any) -> Answer:
        path = APPROVALS + b"/" + id.encode()
        return self.running.ask(request(b"POST", path, json.dumps(fields).encode(), JSON, bearer(key)))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self._lines(f'"{name}"') if line.get("event") == name]

    def exchanges(self) -> list[dict[str, Any]]:
        """The log's lines of exchanges at the provider."""
        return [line for line in self._lines('"endpoint"') if "endpoint" in line]

    def _lines(self, sign: str) -> list[dict[str, Any]]:
        wait_for(lambda: sign in self.log.read_text())
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def policy_of(
    upstream: Upstream,
    log: str,
    *rules: str,
    tools: str = "",
    more: str = "",
    kept: str = "memory:",
    server: str = "",
    provider: str = "",
) -> str:
    return f"""
version: 1
providers: {{p: {{base_url: "{upstream.url}/v1"{provider}}}}}
server: {{admin_keys: ["{digest(ADMIN)}"]{server}}}
tenants: [{{name: acme, keys: ["{digest(ACME)}"]}}]
tools: {{rules: [{", ".join(rules)}]{tools}}}
store: "{kept}"
telemetry: {{log: "{log}"}}
{more}"""


@pytest.fixture
def office(upstream: Upstream, tmp_path: Path) -> Any:
    @contextmanager
    def start(*rules: str, at: str = ".", **said: str) -> Iterator[Office]:
        folder = tmp_path / at
        folder.mkdir(exist_ok=True)
        log = folder / "log"
        policy = policy_of(upstream, str(log), *rules, **said)
        with sidecar(policy=policy, folder=folder) as running:
            yield Office(running, log)

    return start


def names(answer: Answer) -> Sequence[str]:
    message = json.loads(answer.body)["choices"][0]["message"]
    return [each["function"]["name"] for each in message.get("tool_calls") or ()]


@pytest.mark.parametrize("kept", ["memory:", "sqlite"])
def test_a_call_that_an_admin_approves(office: Any, upstream: Upstream, tmp_path: Path, kept: str) -> None:
    upstream.play(called(MAIL))
    with office(ASK, kept=f"sqlite:///{tmp_path / 'state.db'}" if kept == "sqlite" else kept) as talk:
        with talk.asking() as answers:
            found = talk.one()
            assert not answers
            assert talk.decide(found["id"], decision="approve").status == 200
        assert names(answers[0]) == ["send_mail"]
        assert talk.waiting() == []
        (event,) = talk.events("approval_decided")
        assert talk.events("approval_asked")[0]["approval"] == found["id"]
        log = talk.log.read_text()
    assert event["admin"] == hashlib.sha256(ADMIN).hexdigest()[:12]
    assert (event["decision"], event["tenant"], event["rule"]) == ("approve", "acme", "ask-first")
    shown = {name: found[name] for name in ("rule", "tool", "tenant", "agent", "run")}
    assert shown == {"rule": "ask-first", "tool": "send_mail", "tenant": "acme", "agent": "mailer", "run": "header:s"}
    assert json.loads(found["arguments"])["to"] == "[REDACTED:email]"
    assert found["expires_at"] > found["asked_at"]
    assert "sk-proj" not in found["arguments"] + log
    assert "ana@" not in log
    assert len(upstream.requests) == 1


def test_a_call_that_an_admin_denies(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL), called(content="Then not."))
    with office(ASK) as talk, talk.asking() as answers:
        talk.decide(talk.one()["id"], decision="deny", reason="not this week")
    assert json.loads(answers[0].body)["choices"][0]["message"]["content"] == "Then not."
    assert json.loads(upstream.requests[1].body)["messages"][-1]["content"] == "denied: not this week"


def test_nobody_answers_in_time(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(ASK, tools=", on_deny: drop, confirm: {timeout: 200ms}") as talk:
        answer = talk.ask()
        assert names(answer) == []
        assert b"nobody has approved it in time" in answer.body
        assert talk.waiting() == []
        (line,) = talk.exchanges()
        assert line["total_ms"] - line["overhead_ms"] >= 200


def test_a_client_that_leaves_takes_its_entry_away(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with office(ASK) as talk:
        with talk.running.connect() as client:
            client.send(request(b"POST", CHAT, body, JSON, bearer(ACME)))
            id = talk.one()["id"]
        wait_for(lambda: talk.waiting() == [])
        assert talk.decide(id, decision="approve").status == 404


def test_a_stream_waits_with_comments(office: Any, upstream: Upstream) -> None:
    upstream.play(streamed("send_mail", '{"to": ', '"bob"}'))
    with office(ASK, server=", keep_alive: 20ms") as talk, talk.asking(stream=True) as answers:
        id = talk.one()["id"]
        time.sleep(0.1)
        talk.decide(id, decision="approve")
    assert answers[0].body.startswith(b": keep-alive\n\n")
    assert b'"name":"send_mail"' in answers[0].body.replace(b": ", b":")
    assert answers[0].body.endswith(b"data: [DONE]\n\n")


def test_a_stream_of_lines_waits_without_comments(office: Any, upstream: Upstream) -> None:
    """Each line that Ollama's clients get must be JSON."""
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "send_mail", "arguments": {}}}]}
    line = json.dumps({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}).encode()
    upstream.play(reply(line + b"\n", b"200 OK", (b"content-type", b"application/x-ndjson")))
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    with office(ASK, server=", keep_alive: 20ms") as talk, talk.running.connect() as client:
        client.send(request(b"POST", b"/api/chat", body, JSON, bearer(ACME)))
        id = talk.one()["id"]
        time.sleep(0.1)
        talk.decide(id, decision="approve")
        answer = client.answer(b"POST")
    (said,) = map(json.loads, answer.body.splitlines())
    assert said["message"]["tool_calls"][0]["function"]["name"] == "send_mail"


def test_a_client_that_leaves_is_settled(office: Any, upstream: Upstream) -> None:
    """Nothing of it stays reserved while nobody decides."""
    upstream.play(called(MAIL))
    body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
    budget = "budgets: [{name: b, scope: session, calls: 10, concurrent: 1}]"
    with office(ASK, more=budget) as talk:
        with talk.running.connect() as client:
            client.send(request(b"POST", CHAT, body, JSON, bearer(ACME)))
            talk.one()

        def rows() -> dict[str, tuple[int, int]]:
            answer = talk.running.ask(request(b"GET", b"/sidecar/v1/budgets", None, bearer(ADMIN)))
            return {row["unit"]: (row["spent"], row["reserved"]) for row in json.loads(answer.body)["budgets"]}

        wait_for(lambda: rows().get("calls") == (1, 0) and rows().get("concurrent", (0, 0))[1] == 0, seconds=1.5)
        assert talk.waiting() == []


@pytest.mark.parametrize("kept", ["sqlite", "redis"])
def test_another_replica_approves(office: Any, upstream: Upstream, tmp_path: Path, kept: str) -> None:
    upstream.play(called(MAIL))
    with stored(kept, tmp_path) as url, office(ASK, kept=url, at="a") as talk, office(ASK, kept=url, at="b") as other:
        with talk.asking() as answers:
            found = other.one()
            assert other.decide(found["id"], decision="approve").status == 200
            assert other.decide(found["id"], decision="deny").status == 404
        assert names(answers[0]) == ["send_mail"]
        assert talk.waiting() == other.waiting() == []
        assert other.events("approval_decided")[0]["approval"] == found["id"]


@contextmanager
def stored(kept: str, folder: Path) -> Iterator[str]:
    if kept == "sqlite":
        yield f"sqlite:///{folder / 'state.db'}"
    else:
        with redis_server() as server:
            yield server.url


@contextmanager
def apart(upstream: Upstream, folder: Path, kept: str) -> Iterator[tuple[Process, socket.socket]]:
    """A sidecar in a process of its own, and a client that has asked it for what has to be confirmed."""
    path = folder / "policy.yaml"
    path.write_text(policy_of(upstream, "off", ASK, kept=kept, server=", drain: 200ms"), "utf-8")
    process = serve(folder / "output", policy=path)
    try:
        with socket.create_connection(("127.0.0.1", int(process.url.rpartition(":")[2])), timeout=10) as client:
            body = json.dumps({"model": "m", "messages": [], "tools": TOOLS}).encode()
            client.sendall(request(b"POST", CHAT, body, JSON, bearer(ACME)))
            yield process, client
    finally:
        process.stop()


def test_what_was_asked_by_a_process_that_died(office: Any, upstream: Upstream, tmp_path: Path) -> None:
    """It can be seen until its time is over; what is decided of it reaches nobody, and opens nothing for others."""
    upstream.play(called(MAIL))
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with office(ASK, tools=", on_deny: drop, confirm: {timeout: 300ms}", kept=url, at="b") as other:
        with apart(upstream, tmp_path, url) as (process, client):
            found = other.one()
            process.process.kill()
            process.process.wait()
            assert other.decide(found["id"], decision="approve").status == 200
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert other.waiting() == []
        assert names(other.ask()) == []


def test_a_process_that_is_stopped_takes_its_calls_back(office: Any, upstream: Upstream, tmp_path: Path) -> None:
    upstream.play(called(MAIL))
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with office(ASK, kept=url, at="b") as other, apart(upstream, tmp_path, url) as (process, _):
        found = other.one()
        process.stop()
        assert other.waiting() == []
        assert other.decide(found["id"], decision="approve").status == 404


def test_an_exchange_ends_at_its_providers_total(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(ASK, provider=", timeouts: {total: 500ms}") as talk:
        answer = talk.ask()
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (504, "upstream_timeout")
        assert talk.waiting() == []


def test_all_calls_of_a_reply_wait_at_once(office: Any, upstream: Upstream) -> None:
    second = ("send_sms", {"to": "bob"})
    tools = [*TOOLS, {"type": "function", "function": {"name": "send_sms"}}]
    upstream.play(called(MAIL, second, ("read", {})))
    with office(ASK, tools=", on_deny: drop") as talk, talk.asking(tools=tools) as answers:
        wait_for(lambda: len(talk.waiting()) == 2)
        for found in talk.waiting():
            talk.decide(found["id"], decision="approve" if found["tool"] == "send_sms" else "deny")
    assert names(answers[0]) == ["send_sms", "read"]


def test_it_is_too_late_to_approve(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(ASK, tools=", on_deny: drop, confirm: {timeout: 300ms}") as talk:
        with talk.asking() as answers:
            id = talk.one()["id"]
        assert names(answers[0]) == []
        assert talk.decide(id, decision="approve").status == 404


def test_what_hides_in_odd_texts_is_not_shown_either(office: Any, upstream: Upstream) -> None:
    """Arguments that are no JSON object, names that a model has made up, halves of surrogate pairs."""
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    odd = '{"a": 1, "a": "\\u0073k' + key[2:] + '", "b": "\ud800"}'
    made = {"id": "c0", "type": "function", "function": {"name": f"send_{key}", "arguments": odd}}
    message = {"role": "assistant", "content": None, "tool_calls": [made]}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    upstream.play(reply(json.dumps(body).encode(), b"200 OK", JSON))
    with office(ASK) as talk, talk.asking(prompt_cache_key="\udc80", metadata={"run_id": f"r {key}"}) as answers:
        found = talk.one()
        assert talk.decide(found["id"], decision="approve").status == 200
    assert key[2:] not in json.dumps(found)
    assert "[REDACTED:openai_key]" in found["arguments"]
    assert found["run"].startswith("metadata:r [REDACTED:")
    assert names(answers[0]) == [f"send_{key}"]


def test_arguments_are_cut_after_they_are_redacted(office: Any, upstream: Upstream) -> None:
    """A secret that stands across the bound leaves nothing of itself."""
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    upstream.play(called(("send_mail", {"to": "x" * 3_970 + " " + key + " " + "y" * 9_000})))
    with office(ASK) as talk, talk.asking():
        found = talk.one()
        talk.decide(found["id"], decision="approve")
    assert "sk-" not in found["arguments"]
    assert found["arguments"].endswith("characters in all]")
    assert len(found["arguments"]) < 4_100


def test_only_an_admin_may(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(ASK) as talk, talk.asking() as answers:
        id = talk.one()["id"]
        for key, status in ((ACME, 403), (b"wrong", 401), (b"", 401)):
            assert talk.running.ask(request(b"GET", APPROVALS, None, bearer(key))).status == status
            assert talk.decide(id, key, decision="approve").status == status
        assert not answers
        assert talk.decide(id, decision="maybe").status == 400
        assert talk.decide(id, decision="deny", reason=5).status == 400
        assert talk.decide(id, decision="deny", reason="x" * 1001).status == 400
        assert talk.decide("apr_0", decision="approve").status == 404
        assert talk.decide(id, decision="approve").status == 200
        assert talk.decide(id, decision="deny").status == 404


def test_without_calls_that_wait_there_are_none(office: Any) -> None:
    with office("{tool: x, decision: deny}") as talk:
        assert talk.waiting() == []
        assert talk.decide("apr_0", decision="approve").status == 404


def test_a_call_that_is_approved_is_scrubbed_no_further(office: Any, upstream: Upstream) -> None:
    """What an admin sees is redacted; what the client runs is the call."""
    upstream.play(called(MAIL))
    with office(ASK) as talk, talk.asking() as answers:
        talk.decide(talk.one()["id"], decision="approve")
    call = json.loads(answers[0].body)["choices"][0]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == MAIL[1]


# --- the rules ---

SHELL = '{name: no-mail, tool: "send_*", decision: deny, reason: "no mail today"}'


def test_a_denied_call_in_a_stream_is_asked_on(office: Any, upstream: Upstream) -> None:
    upstream.play(streamed("send_mail", "{}"), called(content="Then not."))
    with office(SHELL) as talk:
        answer = talk.ask(stream=True)
        line = talk.log.read_text
        wait_for(lambda: '"outcome"' in line())
        record = json.loads(line().splitlines()[-1])
    assert b"Then not." in answer.body
    assert b"send_mail" not in answer.body
    assert json.loads(upstream.requests[1].body)["messages"][-1]["content"] == "denied: no mail today"
    assert [(each["rule"], each["action"]) for each in record["decisions"]] == [("no-mail", "deny")]


def test_a_block_names_the_rule_and_nothing_of_the_call(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(SHELL, tools=", on_deny: block") as talk:
        answer = talk.ask()
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (400, "guardrail_tripped")
    assert "no-mail" in error["message"]
    assert b"ana@" not in answer.body


def test_a_finish_says_why(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(SHELL, tools=", on_deny: finish") as talk:
        answer = talk.ask()
    choice = json.loads(answer.body)["choices"][0]
    assert choice["message"]["content"] == "The call of send_mail was denied: no mail today."
    assert (choice["finish_reason"], answer.header(b"x-sidecar-stop-reason")) == ("stop", b"guardrail")


def test_a_run_is_known_by_its_session_though_the_history_is_gone(office: Any, upstream: Upstream) -> None:
    upstream.play(called(("vault_read", {})), called(MAIL))
    with office('{tool: "send_*", after: "vault_*", decision: deny}', tools=", on_deny: drop") as talk:
        assert names(talk.ask()) == ["vault_read"]
        assert names(talk.ask(messages=[{"role": "user", "content": "go on"}])) == []


def test_every_call_is_charged(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    budget = "budgets: [{name: b, scope: session, calls: 10}]"
    with office(SHELL, tools=", max_denied: 2", more=budget) as talk:
        talk.ask()
        rows = talk.running.ask(request(b"GET", b"/sidecar/v1/budgets", None, bearer(ADMIN)))
    assert json.loads(rows.body)["budgets"][0]["spent"] == 3
    assert len(upstream.requests) == 3


def test_an_off_section_changes_no_byte(office: Any, upstream: Upstream) -> None:
    upstream.play(called(MAIL))
    with office(SHELL, tools=", mode: off, results: {frame: true}") as talk:
        history = [{"role": "tool", "tool_call_id": "x", "content": "y" * 30000}]
        assert names(talk.ask(messages=history)) == ["send_mail"]
    assert json.loads(upstream.requests[0].body)["messages"] == history
