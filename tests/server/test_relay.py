"""What goes up and what comes down, byte by byte."""

import gzip

import pytest

from .talk import Sidecar, request
from .upstream import CHUNKED, END, FIN, Script, Upstream, chunk, reply


def test_a_request_arrives_as_it_was_sent_and_its_reply_comes_back_as_it_was_given(inert: Sidecar, upstream: Upstream):
    upstream.play(
        reply(b'{"ok": 1.0}', b"200 Fine", (b"x-one", b"a"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"))
    )
    answer = inert.ask(request(b"POST", b"/v1/x?a=b%2Fc&&d", b'{"n": 1e3}', (b"x-two", b"1"), (b"x-two", b"2")))
    seen = upstream.requests[0]
    assert (seen.method, seen.target, seen.body) == (b"POST", b"/v1/x?a=b%2Fc&&d", b'{"n": 1e3}')
    assert seen.headers == [
        (b"host", upstream.authority.encode()),
        (b"x-two", b"1"),
        (b"x-two", b"2"),
        (b"content-length", b"10"),
    ]
    assert (answer.status, answer.reason, answer.body) == (200, b"Fine", b'{"ok": 1.0}')
    assert answer.headers == [
        (b"x-one", b"a"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"content-length", b"11"),
    ]


def test_header_bytes_that_are_no_utf_8_go_through_both_ways(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"", b"200 OK", (b"x-name", b"M\xfcller")))
    answer = inert.ask(request(b"GET", b"/", None, (b"x-name", b"Caf\xe9 \xf0\x9f\x98\x8a")))
    assert upstream.requests[0].header(b"x-name") == b"Caf\xe9 \xf0\x9f\x98\x8a"
    assert answer.header(b"x-name") == b"M\xfcller"


def test_compressed_replies_stay_compressed(inert: Sidecar, upstream: Upstream):
    packed = gzip.compress(b"hello" * 100)
    upstream.play(reply(packed, b"200 OK", (b"content-encoding", b"gzip")))
    answer = inert.ask(request(b"GET", b"/v1/models", None, (b"accept-encoding", b"gzip, br")))
    assert upstream.requests[0].header(b"accept-encoding") == b"gzip, br"
    assert (answer.body, answer.header(b"content-encoding")) == (packed, b"gzip")


@pytest.mark.parametrize("method", [b"GET", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"PROPFIND"])
def test_any_method_goes_through(inert: Sidecar, upstream: Upstream, method: bytes):
    upstream.play(reply(b"done"))
    assert inert.ask(request(method, b"/v1/any/thing")).body == b"done"
    assert upstream.requests[0].line == method + b" /v1/any/thing HTTP/1.1"
    assert upstream.requests[0].header(b"content-length") is None


def test_head_keeps_the_length_of_the_body_it_does_not_have(inert: Sidecar, upstream: Upstream):
    upstream.play([b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n"])
    with inert.connect() as client:
        for _ in range(2):
            client.send(request(b"HEAD", b"/v1/files/f"))
            answer = client.answer(b"HEAD")
            assert (answer.status, answer.header(b"content-length")) == (200, b"1234")
    assert upstream.requests[0].connection == upstream.requests[1].connection


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_replies_without_a_body_may_carry_a_length(inert: Sidecar, upstream: Upstream, status: bytes):
    upstream.play([b"HTTP/1.1 " + status + b"\r\ncontent-length: 5\r\netag: x\r\n\r\n"])
    with inert.connect() as client:
        client.send(request())
        assert client.answer().header(b"etag") == b"x"
        client.send(request())
        assert client.answer().status == int(status[:3])


def test_odd_status_codes_and_reasons_go_through(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"busy", b"529 Overloaded, sorry"), reply(b"what", b"799 "))
    answer = inert.ask(request())
    assert (answer.status, answer.reason) == (529, b"Overloaded, sorry")
    assert inert.ask(request()).status == 799


def test_a_length_of_nothing_stays(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b""))
    assert inert.ask(request(b"POST", b"/v1/x", b"")).header(b"content-length") == b"0"
    assert upstream.requests[0].header(b"content-length") == b"0"


def test_hop_by_hop_headers_stay_on_their_hop(inert: Sidecar, upstream: Upstream):
    named = (
        (b"connection", b"keep-alive, x-mine"),
        (b"x-mine", b"1"),
        (b"te", b"trailers"),
        (b"keep-alive", b"5"),
    )
    ours = (
        (b"x-sidecar-run", b"r1"),
        (b"proxy-connection", b"keep-alive"),
        (b"proxy-authorization", b"Basic eA=="),
    )
    upstream.play(reply(b"", b"200 OK", (b"connection", b"x-yours"), (b"x-yours", b"1"), (b"keep-alive", b"timeout=9")))
    answer = inert.ask(request(b"POST", b"/v1/x", b"hi", *named, *ours, (b"x-kept", b"1")))
    assert [name for name, _ in upstream.requests[0].headers] == [b"host", b"x-kept", b"content-length"]
    assert [name for name, _ in answer.headers] == [b"content-length"]


def test_connection_cannot_name_away_the_framing(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"abc", b"200 OK", (b"connection", b"content-length")))
    answer = inert.ask(request(b"POST", b"/v1/x", b"hi", (b"connection", b"content-length, host")))
    assert upstream.requests[0].body == b"hi"
    assert (answer.header(b"content-length"), answer.body) == (b"3", b"abc")


def test_a_chunked_upload_is_streamed_and_its_framing_is_valid(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"got it"))
    with inert.connect() as client:
        client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"one "))
        client.send(chunk(b"two " * 50_000))
        client.send(chunk(b"three") + END)
        assert client.answer().body == b"got it"
    seen = upstream.requests[0]
    assert seen.body == b"one " + b"two " * 50_000 + b"three"
    assert (seen.header(b"transfer-encoding"), seen.header(b"content-length")) == (b"chunked", None)


def test_an_upload_begins_upstream_before_it_has_ended_here(inert: Sidecar, upstream: Upstream):
    upstream.play(Script([reply(b"early", b"413 Too Large")], early=True))
    with inert.connect() as client:
        client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n" + b"x" * 1000)
        answer = client.answer()
    assert (answer.status, answer.body) == (413, b"early")


def test_expect_is_answered_here_and_the_body_goes_up(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"thanks"))
    with inert.connect() as client:
        client.send(b"POST /v1/x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
        assert client.head().status == 100
        client.send(b"hello")
        assert client.answer().body == b"thanks"
    assert upstream.requests[0].body == b"hello"
    assert upstream.requests[0].header(b"expect") is None


def test_informational_replies_are_skipped(inert: Sidecar, upstream: Upstream):
    upstream.play([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", 0.05, reply(b"real")])
    answer = inert.ask(request())
    assert (answer.status, answer.body, answer.header(b"link")) == (200, b"real", None)


def test_a_stream_comes_down_as_it_arrives(inert: Sidecar, upstream: Upstream):
    upstream.play([CHUNKED, 0.1, chunk(b"data: 1\n\n"), 0.3, chunk(b"data: 2\n\n") + END])
    with inert.connect() as client:
        client.send(request())
        answer = client.head()
        assert answer.header(b"content-type") == b"text/event-stream"
        assert client.until(b"data: 1\n\n").endswith(b"data: 1\n\n")
        assert client.until(b"data: 2\n\n")
        assert client.until(END)


def test_a_body_that_lasts_until_the_close_is_whole_by_it(inert: Sidecar, upstream: Upstream):
    upstream.play([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall ", 0.05, b"of it", FIN])
    answer = inert.ask(request())
    assert (answer.body, answer.whole, answer.header(b"transfer-encoding")) == (
        b"all of it",
        True,
        b"chunked",
    )


def test_pipelined_requests_are_answered_in_their_order(inert: Sidecar, upstream: Upstream):
    upstream.play([0.1, reply(b"first")], reply(b"second"), reply(b"third"))
    with inert.connect() as client:
        client.send(request(b"GET", b"/1") + request(b"POST", b"/2", b"body") + request(b"GET", b"/3"))
        assert [client.answer().body for _ in range(3)] == [b"first", b"second", b"third"]
    assert [seen.target for seen in upstream.requests] == [b"/1", b"/2", b"/3"]
    assert upstream.requests[1].body == b"body"


def test_an_http_1_0_client_gets_no_chunks(inert: Sidecar, upstream: Upstream):
    upstream.play([CHUNKED + chunk(b"all of ") + chunk(b"it") + END])
    with inert.connect() as client:
        client.send(b"GET /v1/models HTTP/1.0\r\nhost: x\r\n\r\n")
        answer = client.answer()
    assert (answer.body, answer.header(b"transfer-encoding")) == (b"all of it", None)


def test_a_reply_in_many_packets_and_lf_only_line_ends_is_read(inert: Sidecar, upstream: Upstream):
    whole = b"HTTP/1.1 200 OK\nx-a: 1\ncontent-length: 3\n\nabc"
    upstream.play([step for i in range(len(whole)) for step in (whole[i : i + 1], 0.001)])
    answer = inert.ask(request())
    assert (answer.header(b"x-a"), answer.body) == (b"1", b"abc")


def test_cookies_are_not_kept_and_redirects_not_followed(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"", b"302 Found", (b"location", b"/elsewhere"), (b"set-cookie", b"s=1")), reply(b"next"))
    answer = inert.ask(request())
    assert (answer.status, answer.header(b"location")) == (302, b"/elsewhere")
    assert inert.ask(request()).body == b"next"
    assert upstream.requests[1].header(b"cookie") is None


def test_websocket_requests_are_refused_with_the_reason(inert: Sidecar, upstream: Upstream):
    upstream.play(reply())
    asked = request(b"GET", b"/v1/realtime", None, (b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
    answer = inert.ask(asked)
    assert answer.status == 400
    assert b"WebSocket" in answer.body
    assert upstream.requests == []
