"""`GET /v1/models` over several providers and names of the policy."""

import json
from pathlib import Path
from typing import Any

import pytest

from .talk import Answer, Sidecar, request, sidecar
from .under import JSON
from .upstream import Upstream, reply

POLICY = """
version: 1
providers:
  a: {{base_url: "{a}/v1", timeouts: {{first_byte: 500ms}}}}
  b: {{base_url: "{b}/v1"{key}, timeouts: {{first_byte: 500ms}}}}
{more}
"""
NAMES = "models: {smart: [a/big, b/small], 'gpt-*': a/*}"


def listing(*ids: str, **more: Any) -> bytes:
    data = [{"id": id, "object": "model", "created": 7, "owned_by": "them", **more} for id in ids]
    return reply(json.dumps({"object": "list", "data": data}).encode(), b"200 OK", JSON)


@pytest.fixture
def start(two_providers: tuple[Upstream, Upstream], tmp_path: Path) -> Any:
    a, b = two_providers
    a.play(listing("big", "gpt-9", "hidden"))
    b.play(listing("small"))

    def begin(more: str = NAMES, key: str = "") -> Any:
        return sidecar(policy=POLICY.format(a=a.url, b=b.url, more=more, key=key), folder=tmp_path)

    return begin


def listed(running: Sidecar, *headers: tuple[bytes, bytes]) -> Any:
    answer = running.ask(request(b"GET", b"/v1/models", None, *headers))
    assert (answer.status, answer.header(b"content-type")) == (200, b"application/json")
    return json.loads(answer.body)


def ids(found: Any) -> list[str]:
    return [entry["id"] for entry in found["data"]]


def get(running: Sidecar, name: bytes) -> Answer:
    return running.ask(request(b"GET", b"/v1/models/" + name))


def test_one_list_of_what_can_be_asked_for(start: Any) -> None:
    with start() as running:
        found = listed(running)
    assert ids(found) == ["smart", "gpt-9", "a/big", "a/gpt-9", "a/hidden", "b/small"]
    assert found["data"][0] == {"id": "smart", "object": "model", "created": 7, "owned_by": "them"}
    assert found["object"] == "list"


def test_without_names_of_the_policy(start: Any) -> None:
    with start("") as running:
        assert ids(listed(running)) == ["big", "gpt-9", "hidden", "a/big", "a/gpt-9", "a/hidden", "b/small"]


def test_a_provider_that_does_not_answer_lists_nothing(start: Any, two_providers: tuple[Upstream, Upstream]) -> None:
    two_providers[0].play([5.0])
    with start() as running:
        assert ids(listed(running)) == ["smart", "b/small"]


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"data": {}}', b'{"data": [1, {"id": 2}]}'])
def test_what_is_no_list_counts_as_empty(start: Any, two_providers: tuple[Upstream, Upstream], answer: bytes) -> None:
    two_providers[1].play(reply(answer, b"200 OK", JSON))
    with start() as running:
        assert ids(listed(running)) == ["smart", "gpt-9", "a/big", "a/gpt-9", "a/hidden"]


def test_where_nothing_is_listed_the_first_provider_answers(
    start: Any, two_providers: tuple[Upstream, Upstream]
) -> None:
    refused = reply(b'{"error": {"message": "no key"}}', b"401 Unauthorized", JSON)
    for provider in two_providers:
        provider.play(refused)
    with start("") as running:
        answer = running.ask(request())
    assert (answer.status, json.loads(answer.body)) == (401, {"error": {"message": "no key"}})


def test_the_callers_key_goes_to_the_first_provider_alone(start: Any, two_providers: tuple[Upstream, Upstream]) -> None:
    a, b = two_providers
    mine = (b"authorization", b"Bearer sk-mine")
    with start() as running:
        listed(running, mine)
        assert a.requests[-1].header(b"authorization") == b"Bearer sk-mine"
        assert b.requests[-1].header(b"authorization") is None
    with start(key=", api_key: sk-of-the-policy-01") as running:
        listed(running, mine)
        assert b.requests[-1].header(b"authorization") == b"Bearer sk-of-the-policy-01"


def test_one_model(start: Any) -> None:
    with start() as running:
        assert json.loads(get(running, b"smart").body)["id"] == "smart"
        assert json.loads(get(running, b"a/big").body)["id"] == "a/big"
        missing = get(running, b"smrt")
    assert (missing.status, json.loads(missing.body)["error"]["code"]) == (404, "model_not_found")
    assert "Did you mean smart" in json.loads(missing.body)["error"]["message"]


def test_an_unknown_model_is_refused_with_near_names(start: Any, two_providers: tuple[Upstream, Upstream]) -> None:
    with start() as running:
        body = json.dumps({"model": "smrt", "messages": []}).encode()
        answer = running.ask(request(b"POST", b"/v1/chat/completions", body, JSON))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "model_not_found")
    assert "Did you mean smart" in json.loads(answer.body)["error"]["message"]
    assert two_providers[0].requests == []


def test_anthropics_clients_get_one_page(start: Any) -> None:
    with start() as running:
        found = listed(running, (b"anthropic-version", b"2023-06-01"))
    assert (found["has_more"], found["first_id"], found["last_id"]) == (False, "smart", "b/small")


def test_one_provider_without_names_is_passed_through(two_providers: tuple[Upstream, Upstream], tmp_path: Path) -> None:
    a, _ = two_providers
    a.play(listing("big", extra=1))
    policy = f'version: 1\nproviders: {{a: {{base_url: "{a.url}/v1"}}}}\nresilience: {{retry: {{}}}}\n'
    with sidecar(policy=policy, folder=tmp_path) as running:
        answer = running.ask(request(b"GET", b"/v1/models?limit=1"))
    assert answer.body == listing("big", extra=1).partition(b"\r\n\r\n")[2]
    assert a.requests[-1].target == b"/v1/models?limit=1"
