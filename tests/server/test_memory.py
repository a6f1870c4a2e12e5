"""Bytes pass through; they do not pile up."""

import gc
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.running import Process
from tests.running import serve as started

from .talk import Sidecar, request, wait_for
from .upstream import CHUNKED, END, Script, Upstream, chunk, reply

MEGABYTE = 1 << 20
# A connection's buffers on both sides, and what the allocator keeps of them.
GROWTH_MB = 25.0


@pytest.fixture(scope="module")
def process(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """In a process of its own, whose memory is nobody else's."""
    running = started(tmp_path_factory.mktemp("memory") / "out", upstream=upstream.url)
    yield running
    running.stop()


def connect(process: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(process.url.rpartition(":")[2])), timeout=30)


def warmed(process: Process, upstream: Upstream) -> float:
    upstream.play(reply())
    with connect(process) as client:
        client.sendall(request())
        client.recv(65536)
    return process.rss_mb


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_an_upload_of_fifty_megabytes(process: Process, upstream: Upstream, framing: str):
    before = warmed(process, upstream)
    upstream.play(reply(b"got it"))
    piece = b"x" * MEGABYTE
    head = b"POST /v1/files HTTP/1.1\r\nhost: x\r\n"
    most = 0.0
    with connect(process) as client:
        client.sendall(
            head
            + (b"transfer-encoding: chunked\r\n\r\n" if framing == "chunked" else b"content-length: 52428800\r\n\r\n")
        )
        for _ in range(50):
            client.sendall(chunk(piece) if framing == "chunked" else piece)
            most = max(most, process.rss_mb)
        client.sendall(END if framing == "chunked" else b"")
        data = b""
        while not data.endswith(b"got it"):
            data += client.recv(65536)
    assert len(upstream.requests[0].body) == 50 * MEGABYTE
    assert most - before < GROWTH_MB


def test_a_client_that_does_not_read(process: Process, upstream: Upstream):
    before = warmed(process, upstream)
    upstream.play([CHUNKED, *[chunk(b"x" * MEGABYTE)] * 200, END])
    with connect(process) as client:
        client.sendall(request())
        time.sleep(1.0)
        assert process.rss_mb - before < GROWTH_MB
    wait_for(lambda: bool(upstream.ended))


def test_a_provider_that_does_not_read(process: Process, upstream: Upstream):
    before = warmed(process, upstream)
    upstream.play(Script([3.0], early=True))
    with connect(process) as client:
        client.sendall(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 200000000\r\n\r\n")
        thread = threading.Thread(target=pour, args=(client,), daemon=True)
        thread.start()
        time.sleep(1.0)
        assert process.rss_mb - before < GROWTH_MB
    thread.join(5)


def pour(client: socket.socket) -> None:
    try:
        for _ in range(200):
            client.sendall(b"x" * 1_000_000)
    except OSError:
        pass


@pytest.mark.slow
def test_many_exchanges_leave_nothing_behind(process: Process, upstream: Upstream):
    upstream.play(reply(b"x" * 1000))
    with connect(process) as client:

        def ask(times: int) -> None:
            for _ in range(times):
                client.sendall(request(b"POST", b"/v1/x", b"y" * 1000))
                data = b""
                while not data.endswith(b"x" * 1000):
                    data += client.recv(65536)

        ask(500)
        before = process.rss_mb
        ask(3000)
    assert process.rss_mb - before < 3.0


def test_an_exchange_leaves_no_cycles_for_the_collector(inert: Sidecar, upstream: Upstream):
    upstream.play(reply())
    with inert.connect() as client:

        def ask(times: int) -> None:
            for _ in range(times):
                client.send(request(b"POST", b"/v1/x", b"hi"))
                client.answer()

        ask(20)
        gc.collect()
        gc.disable()
        ask(100)
        found = gc.collect()
        gc.enable()
    assert found < 100
