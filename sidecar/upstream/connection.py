"""One HTTP/1.1 connection to a provider: a request goes out as given, its reply comes in as it was sent.

A connection serves one `Call` at a time. Bytes are never decoded, decompressed or re-cased. What the reader does
not take stays in the kernel: at HIGH_WATER unread bytes the socket is no longer read.

A call that `switches` may be answered by 101. From then on its connection carries bytes both ways by `Call.write` and
`Reply.read`, and each side may end its own before the other does.
"""

import asyncio
import select
import socket
import struct
from collections.abc import Callable
from typing import Any

import httptools

from ..errors import ExchangeError, UpstreamBroken

# Reply bytes a slow reader may leave with us before the socket is no longer read.
HIGH_WATER = 256 * 1024
# A reply's status line and headers. Servers send a few kilobytes; a peer that sends more is broken.
MAX_HEAD = 256 * 1024
# Bodies up to this size are copied behind the head into one write.
_JOINED = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
# What is still to be sent when both sides of a switched connection have ended may take so long to leave.
_FLUSH_SECONDS = 10.0
SWITCHED = 101

Headers = list[tuple[bytes, bytes]]


class Reply:
    """A provider's answer. `reason` and `headers` are the bytes that came; `headers` are lower-cased in name only."""

    __slots__ = ("_call", "headers", "reason", "status")

    def __init__(self, call: "Call", status: int, reason: bytes, headers: Headers) -> None:
        self._call, self.status, self.reason, self.headers = call, status, reason, headers

    @property
    def complete(self) -> bool:
        """Whether the whole body has been read."""
        return self._call.complete and not self._call.pieces

    @property
    def ready(self) -> bool:
        """Whether `read` will not wait."""
        return self._call.ready

    async def read(self) -> bytes:
        """The next bytes of the body as they arrive, or b"" at its end. Raises UpstreamBroken if it ends early."""
        return await self._call.read()

    def close(self) -> None:
        """Gives the connection back if the reply is complete; otherwise drops it at once. Idempotent."""
        self._call.close()


class Call:
    """A request on its connection, and what has come back so far."""

    __slots__ = (
        "_bodiless",
        "_connection",
        "_error",
        "_head",
        "_reader",
        "_size",
        "_until_close",
        "complete",
        "pieces",
        "reply",
        "sent",
        "switched",
        "switches",
    )

    def __init__(self, connection: "Connection", bodiless: bool, switches: bool = False) -> None:
        self._connection: Connection | None = connection
        self._bodiless = bodiless
        self.switches = switches
        self.switched = False
        self._reader: asyncio.Future[None] | None = None
        self._error: ExchangeError | None = None
        self._head: tuple[bytes, Headers] = (b"", [])
        self._until_close = False
        self._size = 0
        self.pieces: list[bytes] = []
        self.complete = False
        self.reply: Reply | None = None
        self.sent = False

    # --- the request ---

    async def write(self, piece: bytes, chunked: bool) -> None:
        """More of a streamed request body. Waits while the provider does not take it."""
        connection = self._live()
        connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if connection.full is not None:
            await connection.full

    def end(self, chunked: bool) -> None:
        """The request is complete."""
        if chunked:
            self._live().write(b"0\r\n\r\n")
        self.sent = True

    def half_close(self) -> bool:
        """We have nothing more to say on a switched connection. False where the provider cannot be told: with TLS."""
        return self._live().half_close()

    def _live(self) -> "Connection":
        if self._connection is None or self._error is not None or self._connection.gone:
            raise self._error or UpstreamBroken("The connection to the provider is closed.")
        return self._connection

    # --- the reply ---

    async def answer(self) -> Reply:
        """The reply, as soon as its headers are here. Raises UpstreamBroken."""
        while self.reply is None:
            if self._error is not None:
                raise self._error
            await self._wait()
        return self.reply

    @property
    def ready(self) -> bool:
        return bool(self.pieces) or self.complete or self._error is not None

    async def read(self) -> bytes:
        while not self.pieces:
            if self._error is not None:
                raise self._error
            if self.complete:
                return b""
            await self._wait()
        pieces, self.pieces, self._size = self.pieces, [], 0
        if self._connection is not None:
            self._connection.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _wait(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def fail(self, error: ExchangeError) -> None:
        """Ends the call from our side: whoever waits for its reply gets this error."""
        if not self.complete:
            self._error = error
            self._wake()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self.reply = None  # breaks a reference cycle: the collector stays idle
        if connection is not None:
            complete = self.complete and self.sent and self._error is None
            connection.finish(complete, flush=self.switched)

    # --- what the parser says ---

    def on_status(self, reason: bytes) -> None:
        self._head = (self._head[0] + reason, self._head[1])

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.reply is None:
            self._head[1].append((name.lower(), value))

    def on_headers_complete(self) -> None:
        connection = self._connection
        if connection is None:
            return
        status = connection.parser.get_status_code()
        reason, headers = self._head
        self._head = (b"", [])
        if status < 200 and not (self.switches and status == SWITCHED):
            return
        self._until_close = connection.note(status, headers)
        self.switched = status == SWITCHED and connection.parser.should_upgrade()
        self.reply = Reply(self, status, reason, headers)
        if self._bodiless:
            self.complete = True
        self._wake()

    def on_body(self, data: bytes) -> None:
        if self._bodiless or self._connection is None:
            return
        self.pieces.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER:
            self._connection.pause()
        self._wake()

    def on_message_complete(self) -> None:
        if self.reply is not None and not self.switched:
            self.complete = True
            self._wake()

    def on_end(self) -> None:
        """The provider has nothing more to say on a switched connection."""
        self.complete = True
        self._wake()

    def lost(self, error: ExchangeError) -> None:
        """The connection is gone. A body that lasts until the close is complete by that; any other is broken."""
        if self.complete:
            return
        if self.reply is not None and self._until_close and isinstance(error, _CleanEnd):
            self.complete = True
        else:
            self._error = error
        self._wake()


class _CleanEnd(UpstreamBroken):
    """The provider closed the connection in the ordinary way."""


class Connection(asyncio.Protocol):
    """The transport's side. `release` takes a connection that can serve another call."""

    __slots__ = (
        "_call",
        "_head_bytes",
        "_keep_alive",
        "_poll",
        "_reading",
        "_release",
        "_transport",
        "full",
        "idle_limit",
        "idle_since",
        "name",
        "parser",
    )

    def __init__(self, name: str, release: Callable[["Connection"], None], idle_limit: float) -> None:
        self.name, self._release, self.idle_limit = name, release, idle_limit
        self.idle_since = 0.0
        self.full: asyncio.Future[None] | None = None
        self.parser: Any = None
        self._call: Call | None = None
        self._transport: Any = None
        self._poll = select.poll()
        self._reading = True
        self._keep_alive = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN | select.POLLHUP)

    def secure(self, transport: asyncio.BaseTransport) -> None:
        """TLS was put on top: from now on this is the transport."""
        self._transport = transport

    # --- calls ---

    def open(self, method: str, head: bytes, body: bytes | None, switches: bool = False) -> Call:
        """Sends a request's head, and its body if it is all there. With None the body follows by `Call.write`."""
        call = self._call = Call(self, method == "HEAD", switches)
        self.parser = httptools.HttpResponseParser(call)
        self.parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._head_bytes = 0
        self._keep_alive = False
        if body is not None and len(body) <= _JOINED:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body or b"")
        call.sent = body is not None
        return call

    def usable(self) -> bool:
        """Whether an idle connection still stands. The only retry there is: before a byte was written.

        The event loop learns of a close when it next looks; a request written before that is lost or sent
        twice. So the socket is asked: an idle one that is readable was closed or speaks out of turn.
        """
        return self._transport is not None and not self._transport.is_closing() and not self._poll.poll(0)

    def note(self, status: int, headers: Headers) -> bool:
        """Learns from a reply's headers how the connection goes on; True if the body lasts until it closes."""
        self._keep_alive = status != SWITCHED and self.parser.should_keep_alive()
        framed = status in (204, 304)
        for name, value in headers:
            if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
                framed = True
            elif name == b"keep-alive":
                self.idle_limit = min(self.idle_limit, _stated_limit(value, self.idle_limit))
        return not framed

    def finish(self, complete: bool, flush: bool = False) -> None:
        """The call is over. One that was cut short ends by a reset: a close would wait behind what is unsent."""
        call, self._call = self._call, None
        if call is None or self._transport is None:
            return
        if complete and self._keep_alive and not self._transport.is_closing():
            self.resume()
            self._release(self)
            return
        if not complete:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        elif flush:
            self._transport.close()
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.drop)
            return
        self.drop()

    def drop(self) -> None:
        """Closes at once; nothing that is still buffered is sent."""
        if self._transport is not None:
            self._transport.abort()

    # --- flow ---

    @property
    def gone(self) -> bool:
        return self._transport is None

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def half_close(self) -> bool:
        can: bool = self._transport.can_write_eof() and not self._transport.is_closing()
        if can:
            self._transport.write_eof()
        return can

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def resume(self) -> None:
        if not self._reading:
            self._reading = True
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.full = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self.full is not None and not self.full.done():
            self.full.set_result(None)
        self.full = None

    # --- what arrives ---

    def data_received(self, data: bytes) -> None:
        call = self._call
        if call is None:
            self.drop()
            return
        if call.complete:
            self._keep_alive = False
            return
        if call.switched:
            call.on_body(data)
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            self._switch(call, data[switch.args[0] :])
            return
        except httptools.HttpParserError:
            self._unreadable(call)
            return
        if call.reply is None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._fail(f"The provider {self.name!r} sent more than {MAX_HEAD // 1024} KiB of headers.")

    def _switch(self, call: Call, rest: bytes) -> None:
        if not call.switched:
            self._unreadable(call)
        elif rest:
            call.on_body(rest)

    def eof_received(self) -> bool:
        """The provider's end leaves our side of a switched connection open; any other is closed by it."""
        call = self._call
        if call is None or not call.switched:
            return False
        call.on_end()
        return self._transport is not None and self._transport.can_write_eof()

    def _unreadable(self, call: Call) -> None:
        """Bytes after a complete reply cost only the connection; anything else costs the reply."""
        self._keep_alive = False
        if not call.complete:
            self._fail(f"The provider {self.name!r} sent a reply that is not valid HTTP.")

    def _fail(self, message: str) -> None:
        if self._call is not None:
            self._call.lost(UpstreamBroken(message))
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.resume_writing()
        if (call := self._call) is not None:
            call.lost(self._loss(call, exc))

    def _loss(self, call: Call, exc: Exception | None) -> ExchangeError:
        when = "in the middle of its reply" if call.reply is not None else "without a reply"
        how = "reset" if exc is not None else "closed"
        kind = UpstreamBroken if exc is not None else _CleanEnd
        return kind(f"The provider {self.name!r} {how} the connection {when}.")


def _stated_limit(value: bytes, otherwise: float) -> float:
    """The seconds of `Keep-Alive: timeout=N`, less one for the way."""
    for part in value.split(b","):
        name, _, number = part.strip().partition(b"=")
        if name.lower() == b"timeout" and number.strip().isdigit():
            return max(0.0, float(number) - 1.0)
    return otherwise
