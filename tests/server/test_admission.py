"""Who may call, what they present, and how much at once."""

import hashlib
import json
import threading
import time
from pathlib import Path

import pytest

from .talk import Sidecar, request, sidecar, wait_for
from .upstream import Script, Upstream, reply


def hashed(key: str) -> str:
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


POLICY = f"""
version: 1
providers:
  main:
    base_url: "{{url}}/v1"
    {{key}}
server: {{{{auth: {{auth}}, max_upload: 1MB}}}}
tenants:
  - name: tenant-a
    keys: ["{hashed("pk-local-1")}"]
  - name: tenant-b
    keys: ["{hashed("pk-local-2")}", "{hashed("pk-local-3")}"]
"""
OWN = 'api_key: "uk-remote-2"'


def policy(upstream: Upstream, auth: str = "required", key: str = "") -> str:
    return POLICY.format(url=upstream.url, auth=auth, key=key)


def test_the_sidecars_own_key_stops_here_and_the_providers_takes_its_place(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    client = ((b"openai-organization", b"org-t"), (b"cookie", b"sid=1"), (b"x-session-id", b"s1"))
    with sidecar(policy=policy(upstream, key=OWN), folder=tmp_path) as running:
        for method, target in ((b"POST", b"/v1/chat/completions"), (b"GET", b"/v1/some/unknown/endpoint")):
            asked = request(
                method, target, None, (b"authorization", b"Bearer pk-local-1"), (b"api-key", b"ak"), *client
            )
            assert running.ask(asked).status == 200
            seen = upstream.requests[-1]
            assert seen.header(b"authorization") == b"Bearer uk-remote-2"
            assert seen.header(b"accept-encoding") == b"identity"
            assert [seen.header(name) for name, _ in client] == [value for _, value in client]
            assert b"pk-local-1" not in seen.head
            assert seen.header(b"api-key") is None


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [("x-api-key", b"x-api-key", b"uk-remote-2"), ("api-key", b"api-key", b"uk-remote-2")],
)
def test_the_providers_key_goes_in_the_header_it_wants(
    upstream: Upstream, tmp_path: Path, auth: str, name: bytes, value: bytes
):
    upstream.play(reply())
    key = f'api_key: "uk-remote-2"\n    auth: {auth}'
    with sidecar(policy=policy(upstream, "optional", key), folder=tmp_path) as running:
        running.ask(request(b"GET", b"/v1/models", None, (b"authorization", b"Bearer mine")))
    assert upstream.requests[0].header(name) == value
    assert upstream.requests[0].header(b"authorization") is None


@pytest.mark.parametrize("carrier", [b"authorization", b"x-api-key", b"api-key", b"x-sidecar-key"])
def test_a_key_of_ours_may_come_in_any_header_and_the_clients_own_goes_on(
    upstream: Upstream, tmp_path: Path, carrier: bytes
):
    upstream.play(reply())
    value = b"Bearer pk-local-2" if carrier == b"authorization" else b"pk-local-2"
    other = b"x-api-key" if carrier == b"authorization" else b"authorization"
    with sidecar(policy=policy(upstream), folder=tmp_path) as running:
        assert running.ask(request(b"GET", b"/", None, (carrier, value), (other, b"Bearer theirs"))).status == 200
    assert b"pk-local-2" not in upstream.requests[0].head
    assert upstream.requests[0].header(other) == b"Bearer theirs"


@pytest.mark.parametrize("headers", [(), ((b"authorization", b"Bearer wrong"),), ((b"x-api-key", b""),)])
def test_required_means_required(upstream: Upstream, tmp_path: Path, headers: tuple[tuple[bytes, bytes], ...]):
    upstream.play(reply())
    with sidecar(policy=policy(upstream), folder=tmp_path) as running:
        answer = running.ask(request(b"POST", b"/v1/x", b"hi", *headers))
    assert answer.status == 401
    assert json.loads(answer.body)["error"]["code"] == "unauthorized"
    assert upstream.requests == []


def test_keys_of_two_tenants_are_no_key(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    both = ((b"authorization", b"Bearer pk-local-1"), (b"x-api-key", b"pk-local-2"))
    with sidecar(policy=policy(upstream), folder=tmp_path) as running:
        assert running.ask(request(b"GET", b"/", None, *both)).status == 401


@pytest.mark.parametrize("auth", ["optional", '"off"'])
def test_without_a_duty_anyone_may_call_and_a_key_of_ours_still_stops_here(
    upstream: Upstream, tmp_path: Path, auth: str
):
    upstream.play(reply())
    with sidecar(policy=policy(upstream, auth), folder=tmp_path) as running:
        assert running.ask(request()).status == 200
        running.ask(request(b"GET", b"/", None, (b"authorization", b"Bearer pk-local-3")))
    assert b"pk-local-3" not in upstream.requests[1].head


def test_the_providers_key_never_comes_down(upstream: Upstream, tmp_path: Path):
    """An echo server: in a header, and in a body in which every cut goes through the key."""
    body = b"1: uk-remote-2 2: uk-remote-uk-remote-2 3: uk-remote"
    head = b"HTTP/1.1 401 Unauthorized\r\nx-echo: Bearer uk-remote-2\r\ncontent-length: %d\r\n\r\n" % len(body)
    upstream.play([head, *[step for i in range(len(body)) for step in (body[i : i + 1], 0.002)]])
    with sidecar(policy=policy(upstream, "optional", OWN), folder=tmp_path) as running:
        answer = running.ask(request())
    assert answer.body == b"1: *********** 2: uk-remote-*********** 3: uk-remote"
    assert answer.header(b"x-echo") == b"Bearer ***********"


def test_a_compressed_echo_of_the_providers_key_is_opened(upstream: Upstream, tmp_path: Path):
    import gzip

    upstream.play(reply(gzip.compress(b"you sent uk-remote-2"), b"200 OK", (b"content-encoding", b"gzip")))
    with sidecar(policy=policy(upstream, "optional", OWN), folder=tmp_path) as running:
        answer = running.ask(request())
    assert answer.body == b"you sent ***********"
    assert answer.header(b"content-encoding") is None


def test_a_declared_length_beyond_the_limit_is_refused_before_anything_is_sent(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    with sidecar(policy=policy(upstream, "optional"), folder=tmp_path) as running, running.connect() as client:
        client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 5000000\r\n\r\n" + b"x" * 5_000_000)
        answer = client.answer()
        assert answer.status == 413
        assert json.loads(answer.body)["error"]["code"] == "payload_too_large"
        client.send(request())
        assert client.answer().status == 200


def test_chunks_beyond_the_limit_are_counted(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    with sidecar(policy=policy(upstream, "optional"), folder=tmp_path) as running, running.connect() as client:
        client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(40):
            client.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        assert client.answer().status == 413
    wait_for(lambda: upstream.open == 0)


def test_more_exchanges_than_allowed_are_told_to_come_back(upstream: Upstream, tmp_path: Path):
    text = policy(upstream, "optional").replace("max_upload: 1MB", "max_concurrent: 2")
    upstream.play([1.0, reply(b"late")])
    with sidecar(policy=text, folder=tmp_path) as running:
        threads = [threading.Thread(target=running.ask, args=(request(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_for(lambda: running.runtime.active == 2)
        answer = running.ask(request())
        assert (answer.status, answer.header(b"retry-after")) == (503, b"1")
        assert json.loads(answer.body)["error"]["code"] == "overloaded"
        for thread in threads:
            thread.join()
        assert running.ask(request()).status == 200
        assert running.runtime.active == 0


def test_an_active_policy_says_what_it_is_and_an_inert_one_nothing(upstream: Upstream, inert: Sidecar, tmp_path: Path):
    upstream.play(reply(b"", b"200 OK", (b"x-request-id", b"theirs")), reply())
    with sidecar(policy=policy(upstream, "optional"), folder=tmp_path) as running:
        theirs, ours = running.ask(request()), running.ask(request())
        digest = running.runtime.now.snapshot.digest.encode()
    assert (theirs.header(b"x-sidecar-policy"), theirs.header(b"x-request-id")) == (digest, b"theirs")
    assert (ours.header(b"x-sidecar-target"), ours.header(b"x-sidecar-attempts")) == (b"main", b"1")
    assert (ours.header(b"x-request-id") or b"").startswith(b"req_")
    assert [name for name, _ in inert.ask(request()).headers] == [b"content-length"]


def test_browsers_of_the_named_origins_may_call(upstream: Upstream, tmp_path: Path):
    text = policy(upstream, "optional").replace("max_upload: 1MB", 'cors_origins: ["https://app.test"]')
    upstream.play(reply(b"hi"))
    preflight = (b"access-control-request-method", b"POST"), (b"access-control-request-headers", b"authorization")
    with sidecar(policy=text, folder=tmp_path) as running:
        asked = running.ask(request(b"OPTIONS", b"/v1/x", None, (b"origin", b"https://app.test"), *preflight))
        assert (asked.status, asked.header(b"access-control-allow-origin")) == (200, b"https://app.test")
        assert upstream.requests == []
        answer = running.ask(request(b"GET", b"/v1/x", None, (b"origin", b"https://app.test")))
        assert (answer.body, answer.header(b"access-control-allow-origin")) == (b"hi", b"https://app.test")
        other = running.ask(request(b"GET", b"/v1/x", None, (b"origin", b"https://evil.test")))
        assert other.header(b"access-control-allow-origin") is None


ROUTED = """
version: 1
providers:
  one: {{base_url: "{one}/v1"}}
  two: {{base_url: "{two}/v1", api_key: "key-of-two-22"}}
models:
  smart: [two/gpt-5, one/gpt-4]
  plain: one/plain
"""


@pytest.mark.parametrize(
    ("model", "where", "served"),
    [("smart", "two", "gpt-5"), ("plain", "one", "plain"), ("two/any-model", "two", "any-model")],
)
def test_the_model_decides_where_a_request_goes(
    upstream: Upstream, tmp_path: Path, model: str, where: str, served: str
):
    with Upstream() as two:
        upstream.play(reply(b"one"))
        two.play(reply(b"two"))
        body = b'{"seed": 9007199254740993, "t": 1.0, "model": "%b", "x": [1e5]}' % model.encode()
        with sidecar(policy=ROUTED.format(one=upstream.url, two=two.url), folder=tmp_path) as running:
            asked = request(b"POST", b"/v1/embeddings", body, (b"content-type", b"application/json"))
            answer = running.ask(asked)
            seen = (upstream if where == "one" else two).requests[0]
    assert answer.body == where.encode()
    assert json.loads(seen.body)["model"] == served
    assert b"9007199254740993" in seen.body
    assert b"1.0" in seen.body
    assert seen.header(b"content-length") == b"%d" % len(seen.body)
    assert (seen.body == body) == (model == served)
    target = answer.header(b"x-sidecar-target")
    assert target == f"{where}/{served}".encode()


def test_an_unknown_model_is_told_with_near_names(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    with sidecar(policy=ROUTED.format(one=upstream.url, two=upstream.url), folder=tmp_path) as running:
        asked = request(b"POST", b"/v1/embeddings", b'{"model": "smrt"}', (b"content-type", b"application/json"))
        answer = running.ask(asked)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert "smart" in error["message"]
    assert upstream.requests == []


def test_bodies_without_a_model_go_to_the_first_provider(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    with sidecar(policy=ROUTED.format(one=upstream.url, two="http://127.0.0.1:9"), folder=tmp_path) as running:
        for body in (b"{broken", b"[1]", b'{"model": 5}', b""):
            asked = request(b"POST", b"/v1/x", body, (b"content-type", b"application/json"))
            assert running.ask(asked).status == 200
            assert upstream.requests[-1].body == body


def test_uploads_need_not_end_before_the_answer(upstream: Upstream, tmp_path: Path):
    upstream.play(Script([reply(b"no", b"403 Forbidden")], early=True))
    with sidecar(policy=policy(upstream, "optional"), folder=tmp_path) as running, running.connect() as client:
        client.send(b"POST /v1/x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        began = time.monotonic()
        assert client.answer().status == 403
        assert time.monotonic() - began < 1
