"""The one way to a provider: a pool of kept connections, new ones by TCP, TLS and proxy, errors in our family.

Nothing is followed, decoded, stored or sent on its own account: no redirects, no cookies, no default headers, and
no retry but the one of `Connection.usable`, before a byte was written. Messages name the host and never a
credential, a path or a query.
"""

import asyncio
import socket
import ssl
from collections import deque
from functools import cache
from typing import Any

import aiohappyeyeballs

from ..errors import UpstreamTimeout, UpstreamUnreachable
from .connection import Call, Connection, Headers, Reply
from .proxies import Proxy
from .targets import Provider, join

# Below the 60 s of the common load balancers; a server that says less in `Keep-Alive` is believed.
IDLE_SECONDS = 55.0
# RFC 8305: how long one address may hesitate before the next is tried beside it.
_HAPPY_EYEBALLS_SECONDS = 0.25
# A proxy's answer to CONNECT.
_MAX_TUNNEL_HEAD = 16 * 1024


class Client:
    """All connections to one provider. Use it from one event loop; close it when it is over."""

    def __init__(self, provider: Provider, proxy: Proxy | None = None) -> None:
        self.provider, self.proxy = provider, proxy
        self._idle: deque[Connection] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        url = provider.url
        host = b"host: %b\r\n" % url.authority.encode("ascii")
        # What stands before the request's target, and its first lines.
        self._direct = self._usual = (b"", host)
        if proxy is not None and url.scheme == "http":
            secret = b"proxy-authorization: %b\r\n" % proxy.authorization if proxy.authorization else b""
            self._usual = (url.origin.encode("ascii"), host + secret)

    def target(self, raw_path: bytes, query: bytes) -> bytes:
        """The request target for a client's path and query (with its `?`)."""
        return join(self.provider.url, raw_path, query)

    async def send(self, method: str, target: bytes, headers: Headers, body: bytes = b"") -> Reply:
        """Sends a whole request and returns its reply at the headers; read and close it.

        `headers` go out as they are, in their order, after `Host`; they must hold the framing that fits `body`.
        Raises UpstreamUnreachable, UpstreamTimeout("connect") and UpstreamBroken.
        """
        call = await self.open(method, target, headers, body)
        try:
            return await call.answer()
        except BaseException:
            call.close()
            raise

    async def open(self, method: str, target: bytes, headers: Headers, body: bytes | None) -> Call:
        """Sends a request's head and its body; with None the body is to follow by `Call.write` and `Call.end`."""
        connection = self._take() or await self._connect()
        return connection.open(method, _head(method, target, headers, self._usual), body)

    async def switch(self, method: str, target: bytes, headers: Headers) -> Call:
        """Asks for another protocol, on a connection that nobody had before and nobody gets afterwards.

        A proxy is asked for a way through by CONNECT, to an http:// provider too: RFC 6455, 4.1.
        """
        connection = await self._connect(alone=True)
        return connection.open(method, _head(method, target, headers, self._direct), b"", switches=True)

    # --- the pool ---

    @property
    def idle(self) -> int:
        """How many connections wait for another call."""
        return len(self._idle)

    def _take(self) -> Connection | None:
        """The connection used last: the others may grow old and go."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since <= connection.idle_limit and connection.usable():
                return connection
            connection.drop()
        return None

    def _keep(self, connection: Connection) -> None:
        if self._closed:
            connection.drop()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._expire)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = None
        while self._idle and loop.time() - self._idle[0].idle_since >= self._idle[0].idle_limit:
            self._idle.popleft().drop()
        if self._idle:
            self._sweep = loop.call_later(IDLE_SECONDS / 2, self._expire)

    def close(self) -> None:
        """Drops what is idle now, and what is in use as soon as it is given back."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        while self._idle:
            self._idle.pop().drop()

    # --- new connections ---

    async def _connect(self, alone: bool = False) -> Connection:
        limit = self.provider.timeouts.connect
        try:
            async with asyncio.timeout(limit):
                return await self._establish(alone)
        except TimeoutError:
            raise UpstreamTimeout("connect", limit) from None
        except OSError as error:
            raise UpstreamUnreachable(f"{self._whom()} cannot be reached: {_why(error)}.") from None

    def _whom(self) -> str:
        url = self.provider.url
        through = f" through the proxy {self.proxy}" if self.proxy else ""
        return f"The provider {self.provider.name!r} at {url.authority}{through}"

    async def _establish(self, alone: bool) -> Connection:
        connection = Connection(self.provider.name, Connection.drop if alone else self._keep, IDLE_SECONDS)
        proxy, url = self.proxy, self.provider.url
        secure = url.scheme == "https"
        if proxy is None:
            await _dial(connection, url.host, url.port, secure)
        elif secure or alone:
            await _tunnel(connection, proxy, url.host, url.port, secure)
        else:
            await _dial(connection, proxy.host, proxy.port, proxy.scheme == "https")
        return connection


def _head(method: str, target: bytes, headers: Headers, first: tuple[bytes, bytes]) -> bytes:
    prefix, host = first
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b %b%b HTTP/1.1\r\n%b%b\r\n" % (method.encode("ascii"), prefix, target, host, lines)


@cache
def _tls() -> ssl.SSLContext:
    """The system's trust; SSL_CERT_FILE and SSL_CERT_DIR are heeded."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _dial(protocol: asyncio.Protocol, host: str, port: int, tls: bool) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_SECONDS, loop=loop)
    try:
        transport, _ = await loop.create_connection(
            lambda: protocol, sock=sock, ssl=_tls() if tls else None, server_hostname=host if tls else None
        )
    except BaseException:
        sock.close()
        raise
    return transport


async def _tunnel(connection: Connection, proxy: Proxy, host: str, port: int, secure: bool) -> None:
    """CONNECT through the proxy, then TLS with the provider inside, or the provider's plain connection."""
    opening = _Opening()
    transport = await _dial(opening, proxy.host, proxy.port, proxy.scheme == "https")
    try:
        authority = b"[%b]:%d" % (host.encode(), port) if ":" in host else b"%b:%d" % (host.encode(), port)
        secret = b"Proxy-Authorization: %b\r\n" % proxy.authorization if proxy.authorization else b""
        transport.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, secret))
        await opening.done
        through: Any = transport
        if secure:
            loop = asyncio.get_running_loop()
            through = await loop.start_tls(transport, connection, _tls(), server_hostname=host)
        else:
            transport.set_protocol(connection)
        connection.connection_made(through)
    except BaseException:
        transport.abort()
        raise


class _Opening(asyncio.Protocol):
    """Waits for the proxy's answer to CONNECT. `done` raises OSError unless it is a success."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.done.done() or (b"\r\n\r\n" not in self._head and len(self._head) < _MAX_TUNNEL_HEAD):
            return
        words = self._head.split(b"\r\n", 1)[0].split(b" ", 2)
        if len(words) > 1 and words[1][:1] == b"2":
            self.done.set_result(None)
        else:
            self.done.set_exception(OSError(f"the proxy refused with {words[1:2]!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(OSError("the proxy closed the connection"))


def _why(error: OSError) -> str:
    """A reason for people. Texts of the system only: no URL, path or key can be in it."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message})"
        case ssl.SSLError():
            return f"the TLS handshake failed ({(error.reason or 'closed').lower().replace('_', ' ')})"
        case socket.gaierror():
            return "its name cannot be resolved"
        case ConnectionRefusedError():
            return "connection refused"
    return (error.strerror or str(error) or type(error).__name__).lower()
