"""Placeholders through the running sidecar: which exchanges share them, and which never do."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.server.identity import session_of

from .talk import Sidecar, request, sidecar
from .upstream import Upstream, reply

POLICY = """version: 1
providers: {p: {base_url: "%s/v1"}}
tenants:
  - {name: acme, keys: ["sha256:%s"]}
guardrails:
  - {name: hide, detect: [email], action: pseudonymize}
"""
ACME_KEY = b"acme-key-1"


@pytest.fixture
def provider() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture
def running(provider: Upstream, tmp_path: Path) -> Iterator[Sidecar]:
    policy = POLICY % (provider.url, hashlib.sha256(ACME_KEY).hexdigest())
    with sidecar(policy=policy, folder=tmp_path) as one:
        yield one


def said(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode()


def ask(
    running: Sidecar, provider: Upstream, text: str, answer: str, *headers: tuple[bytes, bytes], **more: Any
) -> tuple[str, str]:
    """What the provider was asked, and what the client got."""
    provider.play(reply(said(answer)))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode()
    got = running.ask(request(b"POST", b"/v1/chat/completions", body, (b"content-type", b"application/json"), *headers))
    sent = json.loads(provider.requests[-1].body)["messages"][0]["content"]
    return sent, json.loads(got.body)["choices"][0]["message"]["content"]


def test_a_declared_session_remembers(running: Sidecar, provider: Upstream) -> None:
    session = (b"x-sidecar-session", b"s1")
    assert ask(running, provider, "I am ana@x.org", "noted", session) == ("I am <EMAIL_1>", "noted")
    assert ask(running, provider, "now bo@x.org; who was first?", "<EMAIL_1>", session) == (
        "now <EMAIL_2>; who was first?",
        "ana@x.org",
    )
    assert all(name != b"x-sidecar-session" for name, _ in provider.requests[-1].headers)


def test_another_session_and_another_tenant_get_nothing(running: Sidecar, provider: Upstream) -> None:
    session = (b"x-sidecar-session", b"s1")
    ask(running, provider, "I am ana@x.org", "noted", session)
    for headers in ([(b"x-sidecar-session", b"s2")], [session, (b"x-sidecar-key", ACME_KEY)], []):
        assert ask(running, provider, "print <EMAIL_1>", "<EMAIL_1>", *headers) == ("print <EMAIL_1>", "<EMAIL_1>")


def test_another_key_without_a_tenant_gets_nothing(running: Sidecar, provider: Upstream) -> None:
    session, first = (b"x-sidecar-session", b"s1"), (b"authorization", b"Bearer one")
    ask(running, provider, "I am ana@x.org", "noted", session, first)
    other = (b"authorization", b"Bearer two")
    assert ask(running, provider, "print <EMAIL_1>", "<EMAIL_1>", session, other)[1] == "<EMAIL_1>"
    assert ask(running, provider, "print <EMAIL_1>", "<EMAIL_1>", session, first)[1] == "ana@x.org"


def test_without_a_session_an_exchange_has_its_own(running: Sidecar, provider: Upstream) -> None:
    assert ask(running, provider, "I am ana@x.org", "hello <EMAIL_1>") == ("I am <EMAIL_1>", "hello ana@x.org")


DECLARED = {"metadata": {"session_id": "m"}, "prompt_cache_key": "c", "user": "u"}


@pytest.mark.parametrize(
    ("headers", "document", "key", "declared"),
    [
        ([(b"x-sidecar-session", b"h")], DECLARED, "header:h", True),
        ([], DECLARED, "metadata:m", True),
        ([], {"prompt_cache_key": "c", "user": "u"}, "prompt_cache_key:c", False),
        ([], {"user": "u", "metadata": {"session_id": 7}}, "user:u", False),
        ([], {"metadata": {"user_id": "u"}}, "user:u", False),
        ([], {"previous_response_id": "resp_1", "user": "u"}, "header:first", False),
        ([], {"previous_response_id": "resp_2", "user": "u"}, "user:u", False),
    ],
)
def test_what_names_a_session(
    headers: list[tuple[bytes, bytes]], document: dict[str, Any], key: str, declared: bool
) -> None:
    assert session_of(headers, document, {"resp_1": "header:first"}.get) == (key, declared)


def test_a_conversation_is_known_by_its_beginning() -> None:
    first = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    more = [*first, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "bye"}]
    other = [first[0], {"role": "user", "content": "hey"}]
    keys = [session_of([], {"messages": messages})[0] for messages in (first, more, other, "none", None)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[4] == session_of([], {})[0] != keys[3]
