"""The way to a provider: TLS, proxies, addresses, the pool. Replies' faults are told in tests/server/test_faults.py."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import pytest
import uvloop

from sidecar.errors import UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from sidecar.upstream import client as module
from sidecar.upstream.client import Client
from sidecar.upstream.proxies import Proxy
from sidecar.upstream.targets import Provider, Timeouts
from tests.server.upstream import CHUNKED, END, Upstream, chunk, reply

cryptography = pytest.importorskip("cryptography", reason="makes the certificate for the TLS tests")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 and localhost, with its key, in one PEM file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(module, "_tls", lambda: context)


@asynccontextmanager
async def listening(talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object], **options: object):
    server = await asyncio.start_server(talk, "127.0.0.1", 0, **options)  # type: ignore[arg-type]
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0.05)  # lets the connections end before the loop does


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        while await reader.readline() != b"\r\n":
            pass
        writer.write(reply(b"you asked " + line.split(b" ")[1]))
    writer.close()


@asynccontextmanager
async def tls_provider(certificate: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with listening(answering, ssl=context) as port:
        yield port


async def body_of(client: Client, target: bytes = b"/v1/models") -> bytes:
    answer = await client.send("GET", target, [])
    pieces = []
    while not answer.complete:
        pieces.append(await answer.read())
    answer.close()
    return b"".join(pieces)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_tls(certificate: Path, trusting: None, host: str):
    async with tls_provider(certificate) as port:
        client = Client(Provider("p", f"https://{host}:{port}"))
        for _ in range(2):
            assert await body_of(client) == b"you asked /v1/models"
        assert client.idle == 1
        client.close()


@pytest.mark.anyio
async def test_a_certificate_that_is_not_trusted(certificate: Path):
    async with tls_provider(certificate) as port:
        with pytest.raises(UpstreamUnreachable, match="certificate is not trusted"):
            await body_of(Client(Provider("p", f"https://127.0.0.1:{port}")))


@pytest.mark.anyio
async def test_a_provider_that_does_not_speak_tls():
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.test ESMTP\r\n")
        await reader.read()
        writer.close()

    async with listening(plain) as port:
        with pytest.raises(UpstreamUnreachable, match="the TLS handshake failed"):
            await body_of(Client(Provider("p", f"https://127.0.0.1:{port}")))


class Tunnels:
    """An HTTP proxy that opens tunnels, each in threads of its own, and keeps the heads of what it was asked."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.heads: list[bytes] = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._open, args=(client,), daemon=True).start()

    def _open(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        self.heads.append(head)
        client.sendall(self._answer)
        if b" 200 " not in self._answer:
            client.close()
            return
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        with client, socket.create_connection((host.strip("[]"), int(port))) as provider:
            back = threading.Thread(target=_pump, args=(provider, client), daemon=True)
            back.start()
            _pump(client, provider)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.anyio
async def test_tls_through_a_proxys_tunnel(certificate: Path, trusting: None):
    with Tunnels() as tunnels:
        async with tls_provider(certificate) as port:
            proxy = Proxy("http", "127.0.0.1", tunnels.port, b"Basic c2VjcmV0")
            client = Client(Provider("p", f"https://localhost:{port}/v1"), proxy)
            for _ in range(2):
                assert await body_of(client, client.target(b"/v1/models", b"")) == b"you asked /v1/models"
            client.close()
    assert len(tunnels.heads) == 1
    assert tunnels.heads[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % port)
    assert b"Proxy-Authorization: Basic c2VjcmV0" in tunnels.heads[0]


@pytest.mark.anyio
async def test_a_proxy_that_refuses_the_tunnel():
    with Tunnels(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as tunnels:
        proxy = Proxy("http", "127.0.0.1", tunnels.port, b"Basic c2VjcmV0")
        with pytest.raises(UpstreamUnreachable, match=r"through the proxy .*refused.*407") as error:
            await body_of(Client(Provider("p", "https://localhost:1"), proxy))
    assert "c2VjcmV0" not in str(error.value)


@pytest.mark.anyio
async def test_http_through_a_proxy_names_the_whole_url(upstream: Upstream):
    upstream.play(reply(b"by proxy"))
    proxy = Proxy("http", "127.0.0.1", upstream.port, b"Basic c2VjcmV0")
    client = Client(Provider("p", "http://provider.test:81/v1"), proxy)
    assert await body_of(client, client.target(b"/v1/models", b"?a=1")) == b"by proxy"
    client.close()
    seen = upstream.requests[0]
    assert seen.target == b"http://provider.test:81/v1/models?a=1"
    assert (seen.header(b"host"), seen.header(b"proxy-authorization")) == (b"provider.test:81", b"Basic c2VjcmV0")


@pytest.mark.anyio
async def test_ipv6():
    with Upstream("::1") as upstream:
        upstream.play(reply(b"six"))
        client = Client(Provider("p", upstream.url))
        assert await body_of(client) == b"six"
        client.close()
        assert upstream.requests[0].header(b"host") == b"[::1]:%d" % upstream.port


@pytest.mark.anyio
async def test_a_connection_that_does_not_stand_in_time():
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        hanging = [socket.socket() for _ in range(4)]
        for each in hanging:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        with pytest.raises(UpstreamTimeout, match=r"connect limit of 0\.2 s"):
            await body_of(Client(Provider("p", f"http://127.0.0.1:{port}", timeouts=Timeouts(connect=0.2))))
        for each in hanging:
            each.close()


@pytest.mark.anyio
async def test_connections_are_kept_the_last_used_first(upstream: Upstream):
    upstream.play(reply(b"a"))
    client = Client(Provider("p", upstream.url))
    replies = [await client.send("GET", b"/", []) for _ in range(3)]
    for each in replies:
        while not each.complete:
            await each.read()
        each.close()
        each.close()
    assert client.idle == 3
    await body_of(client)
    assert upstream.requests[-1].connection == upstream.requests[2].connection
    client.close()
    assert client.idle == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer",
    [
        reply(b"bye", b"200 OK", (b"connection", b"close")),
        b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nbye",
        reply(b"bye", b"200 OK", (b"keep-alive", b"timeout=1")),
        reply(b"bye") + b"more than was announced",
    ],
    ids=["close", "1.0", "short-lived", "unasked bytes"],
)
async def test_connections_that_will_not_last_are_not_used_again(upstream: Upstream, answer: bytes):
    upstream.play(answer)
    client = Client(Provider("p", upstream.url))
    for _ in range(2):
        assert await body_of(client) == b"bye"
        await asyncio.sleep(0.02)
    assert upstream.requests[0].connection != upstream.requests[1].connection
    client.close()


@pytest.mark.anyio
async def test_a_closed_client_finishes_what_runs_and_keeps_nothing(upstream: Upstream):
    upstream.play([CHUNKED + chunk(b"a"), 0.05, chunk(b"b") + END])
    client = Client(Provider("p", upstream.url))
    answer = await client.send("GET", b"/", [])
    client.close()
    assert await answer.read() == b"a"
    assert await answer.read() == b"b"
    answer.close()
    assert client.idle == 0


@pytest.mark.anyio
async def test_a_reply_that_is_not_read_stays_in_the_kernel(upstream: Upstream):
    upstream.play([CHUNKED, *[chunk(b"x" * 65536)] * 500, END])
    client = Client(Provider("p", upstream.url))
    answer = await client.send("GET", b"/", [])
    await asyncio.sleep(0.3)
    held = sum(map(len, answer._call.pieces))
    assert held < 2 * 1024 * 1024
    size = 0
    while not answer.complete:
        size += len(await answer.read())
    assert size == 500 * 65536
    answer.close()
    assert client.idle == 1
    client.close()


@pytest.mark.anyio
async def test_errors_name_the_host_and_nothing_secret(upstream: Upstream):
    upstream.play([])
    url = f"http://user:pw-1@127.0.0.1:{upstream.port}/v1?key=qk-2"
    upstream.close()
    with pytest.raises(UpstreamUnreachable) as error:
        await body_of(Client(Provider("p", url, api_key="sk-3")))
    assert f"127.0.0.1:{upstream.port}" in str(error.value)
    assert not any(secret in str(error.value) for secret in ("pw-1", "qk-2", "sk-3", "/v1"))


def test_the_tests_run_on_the_loop_that_serves():
    async def loop_name() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert uvloop.run(loop_name()).startswith("uvloop")
    assert issubclass(UpstreamBroken, Exception)
