"""Clients that offer another protocol beside their request, and requests that are broken behind their head.

Java's HttpClient offers HTTP/2 with every request on plain http, and so does `curl --http2`: each is served in the
protocol that it speaks already.
"""

import json
import random
import time

import pytest

from .talk import Client, Sidecar, request, sidecar, wait_for
from .upstream import CHUNKED, END, Script, Upstream, chunk, reply

H2C = (
    (b"connection", b"Upgrade, HTTP2-Settings"),
    (b"upgrade", b"h2c"),
    (b"http2-settings", b"AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"),
)
BODY = b'{"model": "m", "messages": []}'
CHUNKS = b"".join((b"4;name=value\r\nwith\r\n", chunk(b" several "), chunk(b"chunks"), b"0\r\nx-late: 1\r\n\r\n"))


def offer(method: bytes = b"POST", target: bytes = b"/v1/x", body: bytes | None = BODY) -> bytes:
    return request(method, target, body, *H2C)


def chunked_offer(target: bytes = b"/v1/x") -> bytes:
    return request(b"POST", target, None, *H2C, (b"transfer-encoding", b"chunked")) + CHUNKS


def send_in_pieces(client: Client, data: bytes, cuts: list[int]) -> None:
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        client.send(data[start:end])
        time.sleep(0.003)


@pytest.mark.parametrize("target", [b"/v1/x", b"/v1/chat/completions"])
def test_an_offer_with_a_body_is_answered_in_this_protocol(inert: Sidecar, upstream: Upstream, target: bytes):
    upstream.play(reply(b"fine"))
    answer = inert.ask(offer(target=target))
    assert (answer.status, answer.body, answer.header(b"upgrade")) == (200, b"fine", None)
    seen = upstream.requests[0]
    assert seen.body == BODY
    assert [name for name, _ in seen.headers] == [b"host", b"content-length"]


@pytest.mark.parametrize("whole", [offer(), chunked_offer()], ids=["length", "chunks"])
def test_it_may_be_cut_anywhere(inert: Sidecar, upstream: Upstream, whole: bytes):
    upstream.play(reply(b"fine"))
    with inert.connect() as client:
        for at in range(1, len(whole), 3):
            send_in_pieces(client, whole, [at])
            assert client.answer().body == b"fine"
    bodies = {seen.body for seen in upstream.requests}
    assert bodies == {BODY if BODY in whole else b"with several chunks"}
    assert len({seen.connection for seen in upstream.requests}) == 1


def test_byte_by_byte(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    whole = chunked_offer() + offer()
    with inert.connect() as client:
        send_in_pieces(client, whole, list(range(1, len(whole))))
        assert [client.answer().body for _ in range(2)] == [b"fine", b"fine"]
    assert [seen.body for seen in upstream.requests] == [b"with several chunks", BODY]


def test_others_may_follow_in_the_same_packet(inert: Sidecar, upstream: Upstream):
    upstream.play([0.05, reply(b"1")], reply(b"2"), reply(b"3"), reply(b"4"), reply(b"5"))
    kinds = [offer(target=b"/1"), request(b"GET", b"/2"), chunked_offer(b"/3"), offer(b"GET", b"/4", None)]
    with inert.connect() as client:
        client.send(b"".join([*kinds, request(b"POST", b"/5", b"last")]))
        assert [client.answer().body for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
    assert [(seen.target, seen.body) for seen in upstream.requests] == [
        (b"/1", BODY),
        (b"/2", b""),
        (b"/3", b"with several chunks"),
        (b"/4", b""),
        (b"/5", b"last"),
    ]


def test_a_thousand_in_one_packet(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    with inert.connect() as client:
        client.send(request(b"GET", b"/", None, (b"connection", b"upgrade"), (b"upgrade", b"x")) * 600)
        assert {client.answer().body for _ in range(600)} == {b"fine"}


def test_a_large_body_arrives_whole(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    body = random.Random(7).randbytes(3_000_000)
    assert inert.ask(offer(body=body)).body == b"fine"
    assert upstream.requests[0].body == body


def test_expect_is_answered_before_the_body(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    whole = request(b"POST", b"/v1/x", BODY, *H2C, (b"expect", b"100-continue"))
    with inert.connect() as client:
        client.send(whole[: -len(BODY)])
        assert client.head().status == 100
        client.send(BODY)
        assert client.answer().body == b"fine"
    assert upstream.requests[0].body == BODY


@pytest.mark.parametrize(
    "asked",
    [
        request(b"GET", b"/v1/realtime", None, (b"connection", b"Upgrade"), (b"upgrade", b"websocket")),
        request(b"POST", b"/v1/realtime", b"hi", (b"connection", b"Upgrade"), (b"upgrade", b"h2c, WebSocket")),
        request(b"GET", b"/v1/realtime", None, (b"upgrade", b"websocket")),
        request(b"CONNECT", b"/v1/realtime"),
    ],
)
def test_what_only_makes_sense_in_another_protocol_is_refused_and_the_connection_goes_on(
    inert: Sidecar, upstream: Upstream, asked: bytes
):
    upstream.play(reply(b"next"))
    with inert.connect() as client:
        client.send(asked)
        answer = client.answer()
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_request")
        assert b"WebSocket" in answer.body
        client.send(request())
        assert client.answer().body == b"next"
    assert len(upstream.requests) == 1


def test_http2_with_prior_knowledge_is_told_that_it_is_not_spoken(inert: Sidecar):
    with inert.connect() as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        assert client.answer().status == 400
        assert client.ends()


# --- bounds and faults behind a head ---


@pytest.mark.parametrize("first", [offer(body=b""), offer(), chunked_offer()], ids=["no body", "length", "chunks"])
@pytest.mark.parametrize(
    ("head", "status"),
    [(b"GET / HTTP/1.1\r\nx: " + b"a" * 140_000, 431), (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 414)],
)
def test_heads_after_an_offer_are_bounded(inert: Sidecar, upstream: Upstream, first: bytes, head: bytes, status: int):
    upstream.play(reply(b"fine"))
    with inert.connect() as client:
        client.send(first)
        assert client.answer().body == b"fine"
        client.send_some(head)
        assert client.answer().status == status
        assert client.ends()


def test_the_head_of_an_offer_is_bounded(inert: Sidecar):
    with inert.connect() as client:
        client.send_some(request(b"POST", b"/", b"hi", *H2C, (b"x", b"a" * 70_000)))
        assert client.answer().status == 431


def test_what_came_in_a_packet_with_a_head_does_not_count_as_the_head(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    first, second = request(b"POST", b"/1", b"x" * 65_000), request(b"GET", b"/2", None, (b"x", b"a" * 30_000))
    with inert.connect() as client:
        client.send(first[:200])
        wait_for(lambda: len(upstream.requests) == 1)
        client.send(first[200:] + second[:50])
        time.sleep(0.05)
        client.send(second[50:20_000])
        time.sleep(0.05)
        client.send(second[20_000:])
        assert [client.answer().status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("offered", [(), H2C], ids=["plain", "offer"])
@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ((b"transfer-encoding", b"chunked"), b"zz\r\n"),
        ((b"transfer-encoding", b"chunked"), b"3\r\nabcd\r\n"),
        ((b"transfer-encoding", b"chunked"), b"-1\r\n"),
        ((b"transfer-encoding", b"gzip"), b"abc"),
        ((b"transfer-encoding", b"gzip, chunked, gzip"), b"abc"),
    ],
)
def test_a_body_with_broken_framing_gets_a_clear_answer(
    inert: Sidecar,
    upstream: Upstream,
    offered: tuple[tuple[bytes, bytes], ...],
    framing: tuple[bytes, bytes],
    body: bytes,
):
    upstream.play(reply(b"never"))
    with inert.connect() as client:
        client.send(request(b"POST", b"/v1/x", None, *offered, framing) + body)
        answer = client.answer()
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_request")
        assert client.ends()
    wait_for(lambda: inert.runtime.active == 0)


def test_a_body_that_breaks_after_the_reply_began_is_cut_off(inert: Sidecar, upstream: Upstream):
    upstream.play(Script([CHUNKED + chunk(b"early"), 5.0], early=True))
    with inert.connect() as client:
        client.send(request(b"POST", b"/v1/x", None, (b"transfer-encoding", b"chunked")) + chunk(b"abc"))
        assert client.until(b"early")
        client.send(b"zz\r\n")
        assert client.until(b"\r\n") == b"\r\n"
        assert client.ends()
    wait_for(lambda: inert.runtime.active == 0)


@pytest.mark.parametrize(
    "rest", [b"\x00garbage\r\n\r\n", b"GET nowhere HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nx y: 1\r\n"]
)
def test_what_is_broken_behind_a_request_does_not_cost_its_reply(inert: Sidecar, upstream: Upstream, rest: bytes):
    upstream.play([0.1, reply(b"first")], [0.1, reply(b"second")])
    with inert.connect() as client:
        client.send(request(b"POST", b"/1", b"hi") + request(b"GET", b"/2") + rest)
        assert [client.answer().body for _ in range(2)] == [b"first", b"second"]
        assert client.ends()
    assert len(upstream.requests) == 2


def test_trailers_are_no_headers_and_bounded(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    head = request(b"POST", b"/v1/x", None, (b"transfer-encoding", b"chunked")) + chunk(b"abc")
    with inert.connect() as client:
        client.send(head + b"0\r\nx-late: 1\r\nauthorization: Bearer late\r\n\r\n")
        assert client.answer().body == b"fine"
    assert upstream.requests[0].header(b"x-late") is None
    assert upstream.requests[0].header(b"authorization") is None
    with inert.connect() as client:
        client.send(head + b"0\r\n")
        client.send_some(b"x-late: " + b"a" * 300_000)
        assert client.answer().status == 431
        assert client.ends()


def test_many_trailers_are_bounded(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"fine"))
    with inert.connect() as client:
        client.send(request(b"POST", b"/v1/x", None, (b"transfer-encoding", b"chunked")) + b"0\r\n")
        client.send_some(b"x: y\r\n" * 100_000)
        assert client.answer().status == 431


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_an_offer_is_guarded(upstream: Upstream, tmp_path, framing: str):
    policy = f'version: 1\nproviders: {{p: {{base_url: "{upstream.url}"}}}}\n'
    policy += "guardrails: [{name: g, words: [{list: [otter]}]}]\n"
    target, document = b"/v1/chat/completions", b'{"messages": [{"role": "user", "content": "an otter"}]}'
    upstream.play(reply(b'{"choices": []}'))
    if framing == "length":
        asked = offer(target=target, body=document)
    else:
        asked = request(b"POST", target, None, *H2C, (b"transfer-encoding", b"chunked"))
        asked += chunk(document[:45]) + chunk(document[45:]) + END
    with sidecar(policy=policy, folder=tmp_path) as running:
        assert running.ask(asked).status == 200
    assert json.loads(upstream.requests[0].body)["messages"][0]["content"] == "an [REDACTED:word]"
