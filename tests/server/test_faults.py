"""Providers that fail, each in its own way. The client always learns of it, and the next request works."""

import json
import time

import pytest

from sidecar.server import protocol

from .talk import Answer, Sidecar, request, sidecar, wait_for
from .upstream import CHUNKED, END, FIN, RST, Script, Upstream, chunk, reply


def error_of(answer: Answer) -> dict[str, str]:
    assert answer.header(b"content-type") == b"application/json"
    error: dict[str, str] = json.loads(answer.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def works(running: Sidecar, upstream: Upstream) -> bool:
    upstream.play(reply(b"fine"))
    return running.ask(request()).body == b"fine"


def test_a_provider_that_refuses():
    with Upstream() as gone:
        pass
    with sidecar(gone.url) as running:
        answer = running.ask(request())
    assert answer.status == 502
    error = error_of(answer)
    assert error["code"] == "upstream_unreachable"
    assert "connection refused" in error["message"]


def test_a_provider_whose_name_does_not_resolve():
    with sidecar("http://nowhere.invalid/v1") as running:
        error = error_of(running.ask(request()))
    assert error["code"] == "upstream_unreachable"
    assert "cannot be resolved" in error["message"]


@pytest.mark.parametrize(
    "steps",
    [
        [RST],
        [FIN],
        [b"HTTP/1.1 200 OK\r\nx-half: ", RST],
        [b"HTTP/1.1 200 OK\r\ncontent-le", FIN],
        [b"SSH-2.0-OpenSSH_9.6\r\n"],
        [b"HTTP/1.1 200 OK\r\n" + b"x-many: %b\r\n" % (b"y" * 1000) * 300],
    ],
    ids=["reset", "closed", "reset in the headers", "closed in the headers", "no HTTP", "endless headers"],
)
def test_a_provider_that_fails_before_its_headers_are_here(inert: Sidecar, upstream: Upstream, steps: list[bytes]):
    upstream.play(steps)
    answer = inert.ask(request(b"POST", b"/v1/x", b"hi"))
    assert (answer.status, error_of(answer)["code"]) == (502, "upstream_broken")
    assert works(inert, upstream)


@pytest.mark.parametrize(
    "steps",
    [
        [CHUNKED + chunk(b"half"), 0.05, RST],
        [CHUNKED + chunk(b"half"), 0.05, FIN],
        [CHUNKED + b"10\r\nhalf", 0.05, FIN],
        [CHUNKED + chunk(b"half") + b"zz\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", 0.05, FIN],
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf", 0.05, RST],
    ],
    ids=["chunks reset", "chunks closed", "chunk cut", "chunk garbled", "length cut", "until close, but reset"],
)
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_reply_that_breaks_off_never_ends_cleanly(
    inert: Sidecar, upstream: Upstream, steps: list[bytes], version: bytes
):
    upstream.play(steps)
    answer = broken_reply(inert, version)
    assert not answer.whole
    assert works(inert, upstream)


def broken_reply(inert: Sidecar, version: bytes) -> Answer:
    with inert.connect() as client:
        client.send(b"GET /v1/x HTTP/%b\r\nhost: x\r\n\r\n" % version)
        return client.answer()


def test_a_connection_that_died_idle_costs_nothing_and_repeats_nothing(inert: Sidecar, upstream: Upstream):
    assert works(inert, upstream)
    for how in (FIN, RST, FIN):
        upstream.close_idle(how)
        upstream.play(reply(b"fresh"))
        assert inert.ask(request(b"POST", b"/v1/x", b"once")).body == b"fresh"
        assert [seen.body for seen in upstream.requests] == [b"once"]


def test_a_request_that_was_sent_is_never_sent_again(inert: Sidecar, upstream: Upstream):
    assert works(inert, upstream)
    upstream.play([FIN], reply(b"should not be asked"))
    for method in (b"POST", b"GET"):
        upstream.play([FIN], reply(b"should not be asked"))
        assert inert.ask(request(method, b"/v1/x", b"hi")).status == 502
        assert len(upstream.requests) == 1


LIMITS = """
version: 1
providers:
  slow:
    base_url: "{url}"
    timeouts: {{connect: 1s, first_byte: 300ms, idle: 300ms, total: {total}}}
"""


def test_a_provider_that_says_nothing(upstream: Upstream, tmp_path):
    upstream.play([5.0])
    with sidecar(policy=LIMITS.format(url=upstream.url, total="1h"), folder=tmp_path) as running:
        began = time.monotonic()
        answer = running.ask(request())
        assert (answer.status, error_of(answer)["code"]) == (504, "upstream_timeout")
        assert "first_byte limit of 0.3 s" in error_of(answer)["message"]
        assert time.monotonic() - began < 2
        wait_for(lambda: bool(upstream.ended), 1)


def test_a_stream_that_stalls_is_broken_off(upstream: Upstream, tmp_path):
    upstream.play([CHUNKED + chunk(b"a"), 0.2, chunk(b"b"), 0.2, chunk(b"c"), 5.0])
    with sidecar(policy=LIMITS.format(url=upstream.url, total="1h"), folder=tmp_path) as running:
        answer = running.ask(request())
        assert (answer.whole, answer.pieces) == (False, [b"a", b"b", b"c"])
        wait_for(lambda: bool(upstream.ended), 1)


def test_an_exchange_that_never_ends_is_ended_by_the_total_limit(upstream: Upstream, tmp_path):
    upstream.play([CHUNKED, *[step for _ in range(50) for step in (0.1, chunk(b"tick"))]])
    with sidecar(policy=LIMITS.format(url=upstream.url, total="1s"), folder=tmp_path) as running:
        answer = running.ask(request())
        assert not answer.whole
        assert 5 <= len(answer.pieces) <= 15


def test_a_client_that_reads_slowly_is_not_taken_for_a_silent_provider(upstream: Upstream, tmp_path):
    piece = chunk(b"x" * 65536)
    upstream.play([CHUNKED, piece * 200 + END])
    with (
        sidecar(policy=LIMITS.format(url=upstream.url, total="1h"), folder=tmp_path) as running,
        running.connect() as client,
    ):
        client.send(request())
        client.head()
        time.sleep(1.0)
        assert len(client._chunks(Answer(200, b"", []))) == 200 * 65536


def test_a_provider_that_does_not_take_an_upload(upstream: Upstream, tmp_path):
    upstream.play(Script([5.0], early=True))
    with (
        sidecar(policy=LIMITS.format(url=upstream.url, total="1h"), folder=tmp_path) as running,
        running.connect() as client,
    ):
        client.send_some(request(b"POST", b"/v1/files", b"x" * 30_000_000))
        answer = client.answer()
    assert (answer.status, error_of(answer)["code"]) == (504, "upstream_timeout")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"NONSENSE\r\n\r\n", 400, "invalid_request"),
        (b"GET /a b HTTP/1.1\r\n\r\n", 400, "invalid_request"),
        (b"GET http://other/v1 HTTP/1.1\r\nhost: x\r\n\r\n", 400, "invalid_request"),
        (b"CONNECT other:443 HTTP/1.1\r\nhost: x\r\n\r\n", 400, "invalid_request"),
        (b"GET / HTTP/1.1\r\nx y: 1\r\n\r\n", 400, "invalid_request"),
        (
            b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "invalid_request",
        ),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 414, "url_too_long"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000, 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"x: a\r\n" * 300 + b"\r\n", 431, "headers_too_large"),
    ],
)
def test_what_is_no_request_gets_a_clear_answer_and_nothing_goes_up(
    inert: Sidecar, upstream: Upstream, sent: bytes, status: int, code: str
):
    upstream.play(reply())
    with inert.connect() as client:
        client.send(sent)
        answer = client.answer()
        assert (answer.status, error_of(answer)["code"]) == (status, code)
        assert client.ends()
    assert upstream.requests == []


def test_headers_that_do_not_come_are_not_waited_for(inert: Sidecar, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    with inert.connect() as silent, inert.connect() as slow:
        slow.send(b"GET / HTTP/1.1\r\nx: ")
        assert (silent.answer().status, slow.answer().status) == (408, 408)
        assert silent.ends()
        assert slow.ends()


def test_a_failure_of_our_own_is_told_without_its_words(
    inert: Sidecar, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    upstream.play(reply())
    monkeypatch.setattr("sidecar.server.door.request_headers", lambda *_: 1 / 0 if "secret-word" else [])
    answer = inert.ask(request())
    assert (answer.status, error_of(answer)["code"]) == (500, "internal_error")
    assert b"Traceback" not in answer.body
    monkeypatch.undo()
    assert works(inert, upstream)
    time.sleep(0.1)
    said = capfd.readouterr().err
    assert "ZeroDivisionError" in said
    assert "secret-word" not in said
