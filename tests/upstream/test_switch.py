"""Calls that another protocol may answer: their connections, through proxies and TLS."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from sidecar.errors import UpstreamBroken, UpstreamUnreachable
from sidecar.server import tunnel
from sidecar.upstream import client as module
from sidecar.upstream.client import Client
from sidecar.upstream.connection import HIGH_WATER, Call
from sidecar.upstream.proxies import Proxy
from sidecar.upstream.targets import Provider
from tests.server.talk import sidecar, wait_for

OFFER = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
YES = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    issuer = trustme.CA()
    context = ssl.create_default_context()
    issuer.configure_trust(context)
    monkeypatch.setattr(module, "_tls", lambda: context)
    return issuer


def server_side(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@asynccontextmanager
async def listening(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0.05)  # lets the connections end before the loop does


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says the request's line and host in the new protocol, then what it hears, to the end."""
    asked = (await head(reader)).split(b"\r\n")
    writer.write(YES + b"|".join(asked[:3]) + b"\n")
    await pour(reader, writer)
    writer.write(b"end")
    writer.close()


async def connecting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy for CONNECT alone. It lets through who knows its password."""
    asked = await head(reader)
    if b"Proxy-Authorization: Basic bWU6cHc=\r\n" not in asked or not asked.startswith(b"CONNECT "):
        writer.write(b"HTTP/1.1 403 No\r\n\r\n")
        writer.close()
        return
    host, port = asked.split(b" ")[1].decode().split(":")
    there, here = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Fine\r\n\r\n")
    await asyncio.gather(through(reader, here), through(there, writer))
    here.close()
    writer.close()


async def pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)


async def through(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    await pour(source, sink)
    if not sink.is_closing():
        sink.write_eof()


async def switched(client: Client) -> Call:
    call = await client.switch("GET", b"/v1/realtime?a=1", OFFER)
    reply = await call.answer()
    assert (reply.status, call.switched) == (101, True)
    return call


async def line(call: Call) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        data += await call.read()
    return data[:-1]


async def rest(call: Call) -> bytes:
    data = b""
    while piece := await call.read():
        data += piece
    return data


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("by_proxy", [False, True])
async def test_it_goes_to_the_provider_itself(authority: trustme.CA, scheme: str, by_proxy: bool) -> None:
    context = server_side(authority) if scheme == "https" else None
    async with listening(echoing, context) as port, listening(connecting) as at:
        proxy = Proxy("http", "127.0.0.1", at, b"Basic bWU6cHc=") if by_proxy else None
        client = Client(Provider("p", f"{scheme}://127.0.0.1:{port}/v1"), proxy)
        call = await switched(client)
        asked = b"GET /v1/realtime?a=1 HTTP/1.1|host: 127.0.0.1:%d|connection: Upgrade" % port
        assert await line(call) == asked
        await call.write(b"hi\n", chunked=False)
        assert await line(call) == b"hi"
        if scheme == "http":
            assert call.half_close()
            assert await rest(call) == b"end"
        else:
            assert not call.half_close()
        call.close()
        assert client.idle == 0
        client.close()


@pytest.mark.anyio
async def test_a_proxy_that_refuses(authority: trustme.CA) -> None:
    async with listening(connecting) as at:
        client = Client(Provider("p", "http://127.0.0.1:9/v1"), Proxy("http", "127.0.0.1", at))
        with pytest.raises(UpstreamUnreachable, match="the proxy refused"):
            await client.switch("GET", b"/", OFFER)


@pytest.mark.anyio
async def test_a_connection_is_not_taken_from_the_pool_nor_given_to_it() -> None:
    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await head(reader):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno")
        writer.close()

    async with listening(answering) as port:
        client = Client(Provider("p", f"http://127.0.0.1:{port}"))
        first = await client.send("GET", b"/", [])
        await first.read()
        first.close()
        assert client.idle == 1
        call = await client.switch("GET", b"/", OFFER)
        reply = await call.answer()
        assert (reply.status, call.switched, await reply.read(), reply.complete) == (200, False, b"no", True)
        assert client.idle == 1
        reply.close()
        assert client.idle == 1
        client.close()


@pytest.mark.anyio
async def test_what_nobody_reads_stays_with_the_provider() -> None:
    sent = 0

    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await head(reader)
        writer.write(YES)
        try:
            while sent < 200:
                writer.write(b"x" * 1_000_000)
                await writer.drain()
                sent += 1
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with listening(talking) as port:
        client = Client(Provider("p", f"http://127.0.0.1:{port}"))
        call = await switched(client)
        await asyncio.sleep(0.3)
        assert 0 < sent < 50
        assert sum(map(len, call.pieces)) < 3 * HIGH_WATER
        call.close()
        await asyncio.sleep(0.05)


@pytest.mark.anyio
async def test_the_last_words_of_both_sides_arrive() -> None:
    """Ours are still in our buffer when both have ended."""
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def leaving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(YES + b"bye")
        writer.write_eof()
        await asyncio.sleep(0.2)
        heard.set_result(await reader.read(-1))
        writer.close()

    async with listening(leaving) as port:
        client = Client(Provider("p", f"http://127.0.0.1:{port}"))
        call = await switched(client)
        assert await rest(call) == b"bye"
        connection = call._live()
        connection.write(b"x" * 20_000_000)
        assert call.half_close()
        call.close()
        async with asyncio.timeout(5):
            assert await heard == b"x" * 20_000_000


@pytest.mark.anyio
async def test_a_provider_that_closed_takes_nothing_more(authority: trustme.CA) -> None:
    async def leaving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(YES)
        writer.close()

    async with listening(leaving, server_side(authority)) as port:
        call = await switched(Client(Provider("p", f"https://127.0.0.1:{port}")))
        assert await rest(call) == b""
        await asyncio.sleep(0.05)
        with pytest.raises(UpstreamBroken, match="is closed"):
            await call.write(b"x", chunked=False)
        call.close()


def test_with_tls_a_client_that_has_left_is_let_go_soon(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider cannot be told that only one side has ended."""
    monkeypatch.setattr(tunnel, "_UNTOLD_SECONDS", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def provide() -> None:
        with server_side(authority).wrap_socket(listener.accept()[0], server_side=True) as secured:
            asked = b""
            while not asked.endswith(b"\r\n\r\n"):
                asked += secured.recv(65536)
            secured.sendall(YES + b"hi")
            try:
                while secured.recv(65536):
                    pass
            except OSError:
                pass
            ended.set()

    thread = threading.Thread(target=provide)
    thread.start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
    text = f'version: 1\nproviders: {{p: {{base_url: "{url}"}}}}\ninspect: {{websocket: pass}}\n'
    with sidecar(policy=text, folder=tmp_path) as running:
        with running.connect() as client:
            offer = b"".join(b"%b: %b\r\n" % header for header in OFFER)
            client.send(b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\n%b\r\n" % offer)
            assert client.head().status == 101
            assert client.until(b"hi") == b"hi"
        assert ended.wait(2)
        wait_for(lambda: running.runtime.active == 0)
    thread.join(2)
    listener.close()
