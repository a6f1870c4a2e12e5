"""WebSockets under `inspect: {websocket: pass}`: the handshake, and bytes both ways until both sides have ended.

The test holds both ends: `client` speaks to the sidecar, `peer` is the provider's end of the connection.
"""

import asyncio
import hashlib
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest
import websockets
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect as ws_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as ws_serve

from sidecar.server import tunnel
from tests.running import Process
from tests.running import serve as started
from tests.wire.fuzz import examples

from .talk import Client, Sidecar, request, sidecar, wait_for
from .upstream import Upstream, reply

ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3: the answer to the key below
OFFER = ((b"connection", b"keep-alive, Upgrade"), (b"upgrade", b"websocket"))
SEC = ((b"sec-websocket-version", b"13"), (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="))
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
YES = SWITCH + b"Sec-WebSocket-Accept: " + ACCEPT + b"\r\n\r\n"
SOON = 4.0
MEGABYTE = 1 << 20


def asks(*headers: tuple[bytes, bytes], target: bytes = b"/v1/realtime?model=gpt-realtime") -> bytes:
    return request(b"GET", target, None, *OFFER, *SEC, *headers)


class Provider:
    """Listens at `url`; the test holds its end of each connection itself."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(5)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> Client:
        connection, _ = self._listener.accept()
        connection.settimeout(10)
        return Client(connection)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    listening = Provider()
    yield listening
    listening.close()


def policy(url: str, more: str = "", limits: str = "", server: str = "{}") -> str:
    text = f'version: 1\nproviders: {{p: {{base_url: "{url}/v1"{limits}}}}}\nserver: {server}\n'
    return text + f"inspect: {{websocket: pass}}\n{more}"


@contextmanager
def passing(
    provider: Provider, folder: Path, more: str = "", limits: str = "", server: str = "{}"
) -> Iterator[Sidecar]:
    more += f'\ntelemetry: {{log: "{folder / "log"}"}}\n'
    with sidecar(policy=policy(provider.url, more, limits, server), folder=folder) as running:
        yield running


@pytest.fixture(scope="module")
def running(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with passing(provider, tmp_path_factory.mktemp("passing")) as sidecar_:
        yield sidecar_


@contextmanager
def opened(running: Sidecar, provider: Provider, *headers: tuple[bytes, bytes]) -> Iterator[tuple[Client, Client]]:
    """A client and its peer with an open WebSocket between them."""
    with running.connect() as client:
        client.send(asks(*headers))
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
            peer.send(YES)
            assert client.head().status == 101
            yield client, peer


def exactly(end: Client, size: int) -> bytes:
    return end._exactly(size)


def everything(end: Client) -> bytes:
    return end._until_end()


def finish(end: Client) -> None:
    end.sock.shutdown(socket.SHUT_WR)


def last(folder: Path) -> dict[str, Any]:
    """The record's last line."""
    log = folder / "log"
    wait_for(lambda: log.exists() and log.read_text().endswith("}\n"))
    line: dict[str, Any] = json.loads(log.read_text().splitlines()[-1])
    return line


# --- the handshake ---


def test_the_handshake_goes_up_and_its_answer_comes_down(running: Sidecar, provider: Provider):
    own = ((b"authorization", b"Bearer theirs"), (b"sec-websocket-protocol", b"realtime, openai-beta.realtime-v1"))
    own += ((b"sec-websocket-extensions", b"permessage-deflate"), (b"x-sidecar-session", b"s"), (b"keep-alive", b"9"))
    with running.connect() as client:
        client.send(asks(*own, target=b"/v1/realtime?model=a%2Fb&x="))
        with provider.accept() as peer:
            line, *lines = peer.until(b"\r\n\r\n").split(b"\r\n")[:-2]
            peer.send(SWITCH + b"sec-websocket-protocol: realtime\r\nx-request-id: theirs\r\ncontent-length: 0\r\n\r\n")
            answer = client.head()
    assert line == b"GET /v1/realtime?model=a%2Fb&x= HTTP/1.1"
    fields = [tuple(field.split(b": ", 1)) for field in lines]
    assert fields == [(b"host", provider.url[7:].encode()), *SEC, *own[:3], (b"connection", b"Upgrade"), OFFER[1]]
    digest = running.runtime.now.snapshot.digest.encode()
    assert (answer.status, answer.reason) == (101, b"Switching Protocols")
    assert answer.headers == [
        (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
        (b"sec-websocket-protocol", b"realtime"),
        (b"x-request-id", b"theirs"),
        (b"x-sidecar-policy", digest),
        (b"x-sidecar-target", b"p"),
        (b"x-sidecar-attempts", b"1"),
    ]


def test_what_comes_right_behind_either_head_is_not_lost(running: Sidecar, provider: Provider):
    with running.connect() as client:
        client.send(asks() + b"GET / HTTP/1.1\r\n\r\n")
        client.send(b"\x00" * 100_000)
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
            peer.send(b"HTTP/1.1 100 Continue\r\n\r\n" + YES + b"HTTP/1.1 200 OK\r\n\r\n")
            assert client.head().status == 101
            assert client.until(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"
            assert exactly(peer, 100_018) == b"GET / HTTP/1.1\r\n\r\n" + b"\x00" * 100_000


def test_the_handshake_may_be_cut_anywhere_and_stand_behind_others(running: Sidecar, provider: Provider):
    whole = asks(target=b"/v1/realtime") + b"first"
    for at in (1, 20, len(whole) - 8, len(whole) - 5, len(whole) - 2):
        with running.connect() as client:
            client.send(request(b"GET", b"/healthz") + whole[:at])
            time.sleep(0.005)
            client.send(whole[at:])
            assert client.answer().status == 200
            with provider.accept() as peer:
                peer.until(b"\r\n\r\n")
                peer.send(YES + b"second")
                assert (client.head().status, exactly(client, 6), exactly(peer, 5)) == (101, b"second", b"first")


def test_a_client_that_expects_to_continue_is_answered_by_the_switch_alone(running: Sidecar, provider: Provider):
    with opened(running, provider, (b"expect", b"100-continue")) as (client, peer):
        client.send(b"x")
        assert exactly(peer, 1) == b"x"
        peer.send(b"y")
        assert exactly(client, 1) == b"y"


@pytest.mark.parametrize("status", [b"401 Unauthorized", b"426 Upgrade Required", b"200 OK", b"503 Busy"])
def test_any_other_answer_comes_down_as_it_is_and_the_connection_goes_on(
    running: Sidecar, provider: Provider, status: bytes
):
    with running.connect() as client:
        client.send(asks() + request(b"GET", b"/healthz"))
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
            peer.send(reply(b'{"error": "no"}', status, (b"upgrade", b"websocket"), (b"www-authenticate", b"Bearer")))
            answer = client.answer()
            assert b"%d %b" % (answer.status, answer.reason) == status
            assert (answer.body, answer.header(b"www-authenticate")) == (b'{"error": "no"}', b"Bearer")
            assert client.answer().status == 200
            client.send(request(b"GET", b"/readyz"))
            assert client.answer().status == 200
            assert peer.ends()  # the provider's connection serves nobody else


@pytest.mark.parametrize(
    "odd",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_a_switch_to_something_else_is_none(running: Sidecar, provider: Provider, odd: bytes):
    with running.connect() as client:
        client.send(asks())
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
            peer.send(odd)
            answer = client.answer()
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (502, "upstream_broken")


@pytest.mark.parametrize(
    "asked",
    [
        request(b"POST", b"/v1/realtime", b"hi", *OFFER),
        request(b"GET", b"/v1/realtime", b"hi", *OFFER),
        request(b"GET", b"/v1/realtime", None, (b"upgrade", b"websocket")),
        request(b"GET", b"/v1/realtime", None, OFFER[0], (b"upgrade", b"h2c, websocket")),
        request(b"GET", b"/v1/realtime", None, *OFFER, (b"upgrade", b"h2c")),
        asks().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request(b"CONNECT", b"/v1/realtime", None, *OFFER),
    ],
)
def test_what_is_no_handshake_is_refused(running: Sidecar, asked: bytes):
    answer = running.ask(asked)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_request")
    assert b"WebSocket" in answer.body


def test_other_requests_are_served_as_ever(running: Sidecar, provider: Provider):
    with running.connect() as client:
        client.send(request(b"GET", b"/v1/models", None, (b"connection", b"upgrade"), (b"upgrade", b"h2c")))
        with provider.accept() as peer:
            assert b"upgrade" not in peer.until(b"\r\n\r\n").lower()
            peer.send(reply(b"fine"))
            assert client.answer().body == b"fine"


# --- who may, and whose keys go where ---

TENANT = f"""
tenants:
  - {{name: acme, keys: ["sha256:{hashlib.sha256(b"tk-local-1").hexdigest()}"]}}
  - {{name: else, keys: ["sha256:{hashlib.sha256(b"tk-local-2").hexdigest()}"]}}
"""


def sent(running: Sidecar, provider: Provider, *headers: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    """The headers that reach the provider."""
    with running.connect() as client:
        client.send(asks(*headers))
        with provider.accept() as peer:
            lines = peer.until(b"\r\n\r\n").split(b"\r\n")[1:-2]
            peer.send(YES)
            assert client.head().status == 101
    return dict(line.split(b": ", 1) for line in lines)  # type: ignore[misc]


def shown(*entries: bytes) -> tuple[bytes, bytes]:
    return b"sec-websocket-protocol", b", ".join(entries)


def test_a_browsers_own_key_goes_through(running: Sidecar, provider: Provider):
    entries = (b"realtime", b"openai-insecure-api-key.sk-theirs", b"openai-beta.realtime-v1")
    assert sent(running, provider, shown(*entries))[b"sec-websocket-protocol"] == b", ".join(entries)


@pytest.mark.parametrize("auth", ["required", "optional", '"off"'])
def test_a_tenants_key_opens_and_stays_here(provider: Provider, tmp_path: Path, auth: str):
    entry = b"OpenAI-Insecure-API-Key.tk-local-1" if auth == "optional" else b"openai-insecure-api-key.tk-local-1"
    with passing(provider, tmp_path, TENANT, server=f"{{auth: {auth}}}") as running:
        seen = sent(running, provider, shown(b"realtime", entry), (b"authorization", b"Bearer sk-theirs"))
        assert seen[b"sec-websocket-protocol"] == b"realtime"
        assert seen[b"authorization"] == b"Bearer sk-theirs"
        seen = sent(running, provider, shown(entry))
        assert b"sec-websocket-protocol" not in seen
        seen = sent(running, provider, shown(b"realtime"), (b"authorization", b"Bearer tk-local-1"))
        assert b"authorization" not in seen
        assert seen[b"sec-websocket-protocol"] == b"realtime"
    assert last(tmp_path)["tenant"] == ("default" if auth == '"off"' else "acme")
    assert "tk-local" not in (tmp_path / "log").read_text()


def test_a_tenants_key_stays_here_also_where_nothing_switches(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path, TENANT) as running, running.connect() as client:
        client.send(request(b"GET", b"/v1/models", None, shown(b"openai-insecure-api-key.tk-local-1")))
        with provider.accept() as peer:
            assert b"tk-local-1" not in peer.until(b"\r\n\r\n")
            peer.send(reply())
            assert client.answer().status == 200


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (shown(b"realtime", b"openai-insecure-api-key.sk-theirs"),),
        (shown(b"tk-local-1"),),
        (shown(b"openai-insecure-api-key.tk-local-1", b"openai-insecure-api-key.tk-local-2"),),
        (shown(b"openai-insecure-api-key.tk-local-1"), (b"x-sidecar-key", b"tk-local-2")),
    ],
)
def test_required_means_required(provider: Provider, tmp_path: Path, headers: tuple[tuple[bytes, bytes], ...]):
    with passing(provider, tmp_path, TENANT, server="{auth: required}") as running:
        assert running.ask(asks(*headers)).status == 401
    assert last(tmp_path)["code"] == "unauthorized"


def test_the_providers_key_takes_the_place_of_every_other_and_does_not_come_down(provider: Provider, tmp_path: Path):
    mine = ((b"authorization", b"Bearer sk-mine"), shown(b"realtime", b"openai-insecure-api-key.sk-mine"))
    with passing(provider, tmp_path, limits=", api_key: pk-remote-1") as running, running.connect() as client:
        client.send(asks(*mine))
        with provider.accept() as peer:
            head = peer.until(b"\r\n\r\n")
            peer.send(SWITCH + b"x-echo: pk-remote-1\r\n\r\n")
            answer = client.head()
    assert b"authorization: Bearer pk-remote-1\r\n" in head
    assert b"sec-websocket-protocol: realtime\r\n" in head
    assert b"sk-mine" not in head
    assert answer.header(b"x-echo") == b"***********"


@pytest.mark.parametrize(("listed", "status"), [("[]", 403), ("[https://a.test]", 101), ('["*"]', 101)])
def test_a_page_opens_one_only_from_an_origin_that_is_listed(
    provider: Provider, tmp_path: Path, listed: str, status: int
):
    with passing(provider, tmp_path, server=f"{{cors_origins: {listed}}}") as running, running.connect() as client:
        client.send(asks((b"origin", b"https://a.test")))
        if status == 101:
            with provider.accept() as peer:
                assert b"origin: https://a.test\r\n" in peer.until(b"\r\n\r\n")
                peer.send(YES)
                assert client.head().status == 101
                return
        answer = client.answer()
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize(
    ("query", "goes_as"),
    [
        (b"?a=1&model=voice&b=%20", b"?a=1&model=gpt-realtime&b=%20"),
        (b"?model=other%2Fgpt%20x", b"?model=gpt+x"),
        (b"", b""),
    ],
)
def test_the_model_in_the_query_decides_where_it_goes(provider: Provider, tmp_path: Path, query: bytes, goes_as: bytes):
    first = Provider()
    text = f'version: 1\nproviders: {{p: {{base_url: "{first.url}/v1"}}, other: {{base_url: "{provider.url}/x"}}}}\n'
    text += "models: {voice: other/gpt-realtime}\ninspect: {websocket: pass}\n"
    with sidecar(policy=text, folder=tmp_path) as running, running.connect() as client:
        client.send(asks(target=b"/v1/realtime" + query))
        with (provider if query else first).accept() as peer:
            base = b"/x" if query else b"/v1"
            assert peer.until(b"\r\n\r\n").split(b" ")[1] == base + b"/realtime" + goes_as
            peer.send(YES)
            assert client.head().status == 101
    first.close()


@pytest.mark.parametrize(("query", "status"), [(b"?model=gpt-4", 404), (b"?model=voice&mod%65l=x", 400)])
def test_a_model_that_the_policy_does_not_list_is_none(provider: Provider, tmp_path: Path, query: bytes, status: int):
    with passing(provider, tmp_path, "models: {voice: p/x}\n") as running:
        answer = running.ask(asks(target=b"/v1/realtime" + query))
    assert (answer.status, json.loads(answer.body)["error"]["param"]) == (status, "model")


# --- bytes ---


@given(
    up=st.binary(max_size=3000),
    down=st.binary(max_size=3000),
    cuts=st.lists(st.integers(0, 3000), max_size=6),
    early=st.integers(0, 200),
)
@examples(40)
def test_any_bytes_cut_anywhere_arrive_as_they_are(
    running: Sidecar, provider: Provider, up: bytes, down: bytes, cuts: list[int], early: int
):
    with running.connect() as client:
        client.send(asks() + up[:early])
        with provider.accept() as peer:
            head = peer.until(b"\r\n\r\n")
            peer.send(YES + down[:early])
            assert (head[:4], client.head().status) == (b"GET ", 101)
            marks = sorted({early, *(cut for cut in cuts if cut > early), 3000})
            for start, end in pairwise(marks):
                peer.send(down[start:end])
                client.send(up[start:end])
            finish(client)
            finish(peer)
            assert (everything(peer), everything(client)) == (up, down)


def test_both_ways_at_once_and_much_of_it(running: Sidecar, provider: Provider):
    up, down = bytes(range(256)) * 40_000, bytes(reversed(range(256))) * 40_000
    with opened(running, provider) as (client, peer):
        threads = [
            threading.Thread(target=lambda: (client.sock.sendall(up), finish(client))),
            threading.Thread(target=lambda: (peer.sock.sendall(down), finish(peer))),
        ]
        for thread in threads:
            thread.start()
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(everything(peer)))
        reader.start()
        assert everything(client) == down
        reader.join()
        assert got == [up]


@pytest.fixture(scope="module")
def process(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """In a process of its own, whose memory is nobody else's."""
    folder = tmp_path_factory.mktemp("tunnel")
    (folder / "p.yaml").write_text(policy(provider.url, server="{drain: 1s}"))
    serving = started(folder / "out", policy=folder / "p.yaml")
    yield serving
    serving.stop()


@contextmanager
def opened_in(process: Process, provider: Provider) -> Iterator[tuple[Client, Client]]:
    port = int(process.url.rpartition(":")[2])
    with Client(socket.create_connection(("127.0.0.1", port), timeout=10)) as client:
        client.send(asks())
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
            peer.send(YES)
            assert client.head().status == 101
            yield client, peer


@pytest.mark.parametrize("talker", ["client", "peer"])
def test_a_slow_reader_holds_the_other_side_up_and_loses_nothing(process: Process, provider: Provider, talker: str):
    with opened_in(process, provider) as ends:
        source, sink = ends if talker == "client" else reversed(ends)
        before = process.rss_mb
        data = bytes(range(251)) * (100 * MEGABYTE // 251)
        taken = source.send_some(data, patience=0.5)
        assert taken < len(data)
        assert process.rss_mb - before < 8
        finish(source)
        assert hashlib.sha256(everything(sink)).digest() == hashlib.sha256(data[:taken]).digest()


# --- ends ---


@pytest.mark.parametrize("first", ["client", "peer"])
def test_one_side_ends_and_the_other_still_talks(provider: Provider, tmp_path: Path, first: str):
    with passing(provider, tmp_path) as running:
        with opened(running, provider) as ends:
            one, other = ends if first == "client" else reversed(ends)
            one.send(b"the last")
            finish(one)
            assert everything(other) == b"the last"
            for _ in range(3):
                other.send(b"more ")
                assert exactly(one, 5) == b"more "
                time.sleep(0.05)
            assert running.runtime.active == 1
            finish(other)
            assert everything(one) == b""
        wait_for(lambda: running.runtime.active == 0)
        line = last(tmp_path)
    assert (line["outcome"], line["status"], line["endpoint"], line["attempts"]) == ("completed", 101, "websocket", 1)
    sizes = (8, 15) if first == "client" else (15, 8)
    assert (line["bytes_in"], line["bytes_out"]) == sizes
    assert (line["target"], line["path"], line["method"]) == ("p", "/v1/realtime", "GET")
    assert "gpt-realtime" not in json.dumps(line)
    assert line["first_byte_ms"] > 0
    assert line["overhead_ms"] < 50 < 150 < line["total_ms"]


@pytest.mark.parametrize(("first", "outcome"), [("client", "client_gone"), ("peer", "completed")])
def test_one_side_ends_and_the_other_is_silent(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, outcome: str
):
    monkeypatch.setattr(tunnel, "LAST_SECONDS", 0.3)
    with passing(provider, tmp_path) as running:
        with opened(running, provider) as ends:
            one, other = ends if first == "client" else reversed(ends)
            finish(one)
            assert everything(other) == b""
            assert running.runtime.active == 1
            wait_for(lambda: running.runtime.active == 0, 2)
            assert one.ends()
        assert last(tmp_path)["outcome"] == outcome


def test_both_have_ended_and_much_is_still_on_its_way(running: Sidecar, provider: Provider):
    """The client's socket is not read meanwhile, and looks as if nobody was there."""
    data = bytes(range(251)) * 20_000
    with opened(running, provider) as (client, peer):
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        finish(peer)
        assert everything(client) == b""
        sender = threading.Thread(target=lambda: (client.sock.sendall(data), finish(client)))
        sender.start()
        time.sleep(0.7)
        assert everything(peer) == data
        sender.join()


def test_a_client_that_breaks_off_takes_the_providers_connection_with_it(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path) as running:
        with opened(running, provider) as (client, peer):
            client.send(b"x")
            assert exactly(peer, 1) == b"x"
            began = time.monotonic()
            client.reset()
            assert peer.ends()
            assert time.monotonic() - began < SOON
        wait_for(lambda: running.runtime.active == 0)
        line = last(tmp_path)
    assert (line["outcome"], line["status"], line["bytes_in"]) == ("client_gone", 101, 1)


def test_a_client_that_breaks_off_while_nobody_reads_it(running: Sidecar, provider: Provider):
    with opened(running, provider) as (client, _):
        assert client.send_some(b"x" * 50 * MEGABYTE) < 50 * MEGABYTE
        client.reset()
        wait_for(lambda: running.runtime.active == 0, SOON)


def test_a_client_that_closes_is_gone_as_soon_as_the_provider_says_something(running: Sidecar, provider: Provider):
    with opened(running, provider) as (client, peer):
        client.sock.close()
        assert everything(peer) == b""
        with suppress(ConnectionError):
            for _ in range(10):
                peer.send(b"are you there?")
                time.sleep(0.02)
        wait_for(lambda: running.runtime.active == 0, SOON)


def test_a_client_that_leaves_before_the_answer(running: Sidecar, provider: Provider):
    client = running.connect()
    client.send(asks())
    with provider.accept() as peer:
        peer.until(b"\r\n\r\n")
        client.sock.close()
        assert peer.ends()
    wait_for(lambda: running.runtime.active == 0, SOON)


def test_a_provider_that_breaks_off(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path) as running:
        with opened(running, provider) as (client, peer):
            peer.send(b"the last")
            assert exactly(client, 8) == b"the last"
            peer.reset()
            assert client.ends()
        wait_for(lambda: running.runtime.active == 0)
        line = last(tmp_path)
    assert (line["outcome"], line["code"], line["status"]) == ("upstream_error", "upstream_broken", 101)


def test_a_provider_that_is_not_there(tmp_path: Path):
    gone = Provider()
    gone.close()
    with passing(gone, tmp_path) as running, running.connect() as client:
        client.send(asks())
        answer = client.answer()
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (502, "upstream_unreachable")
        client.send(request(b"GET", b"/healthz"))
        assert client.answer().status == 200
    assert (last(tmp_path)["endpoint"], last(tmp_path)["outcome"]) == ("websocket", "upstream_error")


def test_a_provider_that_closes_without_an_answer(running: Sidecar, provider: Provider):
    with running.connect() as client:
        client.send(asks())
        with provider.accept() as peer:
            peer.until(b"\r\n\r\n")
        assert client.answer().status == 502


def test_a_provider_that_does_not_answer(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path, limits=", timeouts: {first_byte: 200ms}") as running, running.connect() as client:
        client.send(asks())
        with provider.accept():
            answer = client.answer()
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (504, "upstream_timeout")
    assert last(tmp_path)["phase"] == "first_byte"


@pytest.mark.parametrize("talker", ["client", "peer"])
def test_silence_in_both_directions_is_bounded_and_talk_in_either_is_none(
    provider: Provider, tmp_path: Path, talker: str
):
    with passing(provider, tmp_path, limits=", timeouts: {idle: 400ms}") as running:
        with opened(running, provider) as ends:
            source, sink = ends if talker == "client" else reversed(ends)
            for _ in range(12):
                source.send(b"x")
                assert exactly(sink, 1) == b"x"
                time.sleep(0.1)
            began = time.monotonic()
            assert ends[0].ends()
            assert ends[1].ends()
            assert 0.2 < time.monotonic() - began < 8
        line = last(tmp_path)
    assert (line["outcome"], line["phase"], line["status"]) == ("timeout", "idle", 101)


def test_the_total_limit_holds_while_it_talks(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path, limits=", timeouts: {total: 500ms}") as running:
        with opened(running, provider) as (client, peer):
            began = time.monotonic()
            with suppress(ConnectionError):
                while time.monotonic() - began < 5:
                    peer.send(b"x")
                    time.sleep(0.02)
            assert time.monotonic() - began < 8
            assert everything(client).strip(b"x") == b""
        assert last(tmp_path)["phase"] == "total"


def test_open_ones_count_among_the_exchanges(provider: Provider, tmp_path: Path):
    with passing(provider, tmp_path, server="{max_concurrent: 1}") as running:
        with opened(running, provider) as (client, peer):
            assert running.ask(asks()).status == 503
            finish(client)
            finish(peer)
        wait_for(lambda: running.runtime.active == 0)
        with opened(running, provider):
            pass


def test_they_end_with_the_drain(process: Process, provider: Provider):
    """The last test of this process."""
    with opened_in(process, provider) as (client, peer):
        process.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        peer.send(b"still")
        assert exactly(client, 5) == b"still"
        began = time.monotonic()
        assert client.ends()
        assert peer.ends()
        assert time.monotonic() - began < 8
    assert process.process.wait(5) == 0
    assert "Traceback" not in process.said()


def test_many_leave_nothing_behind(running: Sidecar, provider: Provider):
    for how in range(60):
        with opened(running, provider) as (client, peer):
            [client.reset, peer.reset, lambda: None][how % 3]()
    wait_for(lambda: running.runtime.active == 0 and not running.server.server_state.connections)


def test_without_the_policys_word_there_are_none(upstream: Upstream, inert: Sidecar, tmp_path: Path):
    text = f'version: 1\nproviders: {{p: {{base_url: "{upstream.url}/v1"}}}}\ninspect: {{images: deny}}\n'
    with sidecar(policy=text, folder=tmp_path) as running:
        for each in (inert, running):
            answer = each.ask(asks())
            assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_request")
            assert b"inspect.websocket" in answer.body
    assert upstream.requests == []


# --- real clients ---


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


@contextmanager
def before(port: int, folder: Path) -> Iterator[int]:
    """A sidecar before a provider at this port; gives the sidecar's."""
    with sidecar(policy=policy(f"http://127.0.0.1:{port}"), folder=folder) as running:
        yield running.port


@pytest.mark.anyio
@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_the_websockets_library(tmp_path: Path, compression: Any):
    async with ws_serve(echo, "127.0.0.1", 0, subprotocols=["realtime"], compression=compression, max_size=None) as at:  # type: ignore[list-item]
        with before(at.sockets[0].getsockname()[1], tmp_path) as port:
            url = f"ws://127.0.0.1:{port}/v1/realtime"
            options: Any = {"subprotocols": ["realtime"], "compression": compression, "max_size": None, "proxy": None}
            async with ws_connect(url, **options) as client:
                assert client.subprotocol == "realtime"
                for message in ("", "hi", "ü" * 70_000, b"\x00\xff" * 1_500_000):
                    await client.send(message)
                    assert await client.recv() == message
                await (await client.ping())
            assert (client.close_code, client.protocol.close_rcvd_then_sent) == (1000, False)


@pytest.mark.anyio
async def test_a_provider_that_closes_with_a_reason(tmp_path: Path):
    async def leave(connection: ServerConnection) -> None:
        await connection.close(4001, "session expired")

    async with ws_serve(leave, "127.0.0.1", 0) as at:
        with before(at.sockets[0].getsockname()[1], tmp_path) as port:
            async with ws_connect(f"ws://127.0.0.1:{port}/v1/realtime", proxy=None) as client:
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await client.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "session expired")


@pytest.mark.anyio
async def test_openais_own_realtime_client(tmp_path: Path):
    asked = []

    async def talk(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.append((connection.request.path, connection.request.headers["authorization"]))
        event = json.loads(await connection.recv())
        await connection.send(json.dumps({"type": "session.updated", "event_id": "1", "session": event["session"]}))
        await asyncio.sleep(0.05)

    async with ws_serve(talk, "127.0.0.1", 0) as at:
        with before(at.sockets[0].getsockname()[1], tmp_path) as port:
            own = openai.AsyncOpenAI(api_key="sk-theirs", base_url=f"http://127.0.0.1:{port}/v1")
            async with own, own.realtime.connect(model="gpt-realtime") as connection:
                await connection.session.update(session={"type": "realtime", "instructions": "be brief"})
                event = await connection.recv()
    assert event.type == "session.updated"
    assert asked == [("/v1/realtime?model=gpt-realtime", "Bearer sk-theirs")]
