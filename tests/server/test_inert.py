"""Inertness as a property: whatever a client sends reaches the provider, and whatever it says reaches the client."""

import os
import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .talk import Sidecar
from .upstream import END, Upstream, chunk

EXAMPLES = 5000 if os.environ.get("FUZZ") else 100

_TOKEN = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
_SEGMENT = string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@/%\\^|{}[]\"<>`"
# These have a meaning on a hop, or are ours.
_RESERVED = frozenset(
    (
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)

methods = st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"REPORT", b"QUERY"])
paths = st.text(_SEGMENT, max_size=60).map(lambda text: b"/" + text.encode())
queries = st.one_of(st.just(b""), st.text(_SEGMENT + "?", max_size=60).map(lambda text: b"?" + text.encode()))
names = st.text(_TOKEN, min_size=1, max_size=20).filter(
    lambda name: name.lower() not in _RESERVED and not name.lower().startswith("x-sidecar-")
)
_VALUE = st.integers(0x21, 0xFF).filter(lambda code: code != 0x7F)
values = st.lists(st.one_of(_VALUE, st.sampled_from([0x20, 0x09])), max_size=40).map(
    lambda codes: bytes(codes).strip(b" \t")
)
headers = st.lists(st.tuples(names.map(str.encode), values), max_size=12)
bodies = st.one_of(st.none(), st.binary(max_size=200), st.binary(min_size=70_000, max_size=70_001))


def lower(pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in pairs]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(method=methods, path=paths, query=queries, sent=headers, body=bodies, chunked=st.booleans())
def test_any_request_arrives_as_it_was_sent(
    inert: Sidecar,
    upstream: Upstream,
    method: bytes,
    path: bytes,
    query: bytes,
    sent: list[tuple[bytes, bytes]],
    body: bytes | None,
    chunked: bool,
):
    if path in (b"/healthz", b"/readyz"):
        return
    upstream.play(b"HTTP/1.1 204 No Content\r\n\r\n")
    framing, wire = framed(body, chunked)
    lines = b"".join(b"%b: %b\r\n" % header for header in [*sent, *framing])
    assert inert.ask(b"%b %b%b HTTP/1.1\r\nhost: h\r\n%b\r\n%b" % (method, path, query, lines, wire)).status == 204
    seen = upstream.requests[0]
    assert (seen.method, seen.target, seen.body) == (method, path + query, body or b"")
    assert [h for h in seen.headers if h[0] not in (b"host", b"content-length", b"transfer-encoding")] == lower(sent)


def framed(body: bytes | None, chunked: bool) -> tuple[list[tuple[bytes, bytes]], bytes]:
    if body is None:
        return [], b""
    if chunked:
        return [(b"transfer-encoding", b"chunked")], (chunk(body) if body else b"") + END
    return [(b"content-length", b"%d" % len(body))], body


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    status=st.integers(200, 599).filter(lambda code: code not in (204, 304)),
    said=headers,
    pieces=st.lists(st.binary(min_size=1, max_size=3000), max_size=6),
    chunked=st.booleans(),
)
def test_any_reply_comes_back_as_it_was_given(
    inert: Sidecar, upstream: Upstream, status: int, said: list[tuple[bytes, bytes]], pieces: list[bytes], chunked: bool
):
    body = b"".join(pieces)
    lines = b"".join(b"%b: %b\r\n" % header for header in said)
    framing = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(body)
    wire = b"".join(map(chunk, pieces)) + END if chunked else body
    upstream.play(b"HTTP/1.1 %d Any Reason\r\n%b%b\r\n\r\n%b" % (status, lines, framing, wire))
    answer = inert.ask(b"GET /v1/x HTTP/1.1\r\nhost: h\r\n\r\n")
    assert (answer.status, answer.reason, answer.body, answer.whole) == (status, b"Any Reason", body, True)
    assert [h for h in answer.headers if h[0] not in (b"content-length", b"transfer-encoding")] == lower(said)
