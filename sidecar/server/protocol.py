"""The client's side of the wire: uvicorn's httptools protocol with bounds, our error shape and exact framing.

What differs from uvicorn: heads are bounded in bytes, fields and time; what cannot be parsed is answered in the
API's error shape; a reply goes out as the provider framed it (204 and 304 with a length, any status and reason,
HTTP/1.0 clients without chunks); a reply that breaks off is never ended cleanly; and whoever serves the exchange
learns at once that the client has left, also while the socket is not read.

A request for a WebSocket may be answered by 101: `scope["sidecar.switches"]` says so. What comes behind its head is
kept until it is answered. After a 101 it is the first of the bytes that `receive` gives, as they are, and `send`
takes; `more_body` False is the end of one side, which leaves the other open. After any other answer it is HTTP.
"""

import asyncio
import select
import socket
import struct
from asyncio.events import TimerHandle
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..errors import ExchangeError, InvalidRequest
from ..wire.errors import openai_error

# A request's line and fields must be here this long after their connection or their first byte.
HEAD_SECONDS = 30.0
MAX_URL = 16 * 1024
MAX_FIELDS = 256
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
# The rest of a body that nobody wants any more is read and dropped up to here, so that the client sees the answer.
MAX_LINGER = 64 * 1024 * 1024
# How often a socket that is not read is asked whether the client is still there.
_PAUSED_SECONDS = 0.25
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
_RESET = struct.pack("ii", 1, 0)
# What a client is still to be given when its WebSocket has ended may take so long to leave.
_FLUSH_SECONDS = 10.0
_SWITCHED = 101


class HeadersTooLarge(ExchangeError):
    status, code, type = 431, "headers_too_large", "invalid_request_error"


class UrlTooLong(ExchangeError):
    status, code, type = 414, "url_too_long", "invalid_request_error"


class RequestTimeout(ExchangeError):
    status, code, type = 408, "request_timeout", "invalid_request_error"


class _Refused(Exception):
    """Ends parsing from inside a callback; carries the answer."""

    def __init__(self, error: ExchangeError) -> None:
        self.error = error
        super().__init__(error.code)


class Cycle(RequestResponseCycle):
    """One exchange on a connection. `on_leave` is called once, at the moment the client is known to have left."""

    on_leave: Callable[[], None] | None = None
    switches = False
    switched = False

    def leave(self) -> None:
        if not self.response_complete:
            self.disconnected = True
            on_leave, self.on_leave = self.on_leave, None
            if on_leave is not None:
                on_leave()
        self.message_event.set()

    def watch(self, on_leave: Callable[[], None]) -> None:
        """Asks to be told when the client leaves; at once if it has left already."""
        self.on_leave = on_leave
        if self.disconnected:
            on_leave()

    async def run_asgi(self, app: ASGI3Application) -> None:
        """A reply that the application leaves incomplete is broken off: the client must not take it for whole."""
        try:
            await app(self.scope, self.receive, self.send)
        finally:
            self.on_response = _nothing
            self.on_leave = None
            self.scope.pop("sidecar.watch", None)  # type: ignore[typeddict-item]  # ends a reference cycle
            if not self.response_complete and not self.disconnected:
                self._break_off()

    def _break_off(self) -> None:
        self._flush_head()
        if self._lasts_until_close and (sock := self.transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        self.transport.close()
        if self.switched:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.transport.abort)

    _lasts_until_close = False

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started:
            self._start(message)
        else:
            self._body(message.get("body", b""), message.get("more_body", False))

    def _start(self, message: Any) -> None:
        status: int = message["status"]
        headers: list[tuple[bytes, bytes]] = message.get("headers", [])
        self.response_started = True
        if self.waiting_for_100_continue:  # the body may or may not follow now: the connection cannot go on
            self.keep_alive = False
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, message.get("reason", b"") or _phrase(status))]
        for name, value in headers:
            if name == b"content-length":
                self.chunked_encoding, self.expected_content_length = False, int(value)
            lines.append(b"%b: %b\r\n" % (name, value))
        if status == _SWITCHED:
            self._switch()
        elif self.scope["method"] == "HEAD" or status in (204, 304):
            self.chunked_encoding, self.expected_content_length = False, 0
        elif self.chunked_encoding is None:
            self._frame(lines)
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        self._head = b"".join(lines)
        asyncio.get_running_loop().call_soon(self._flush_head)

    def _switch(self) -> None:
        """From here on the body is what comes and goes; its beginning may be here."""
        self.switched = self.keep_alive = self.more_body = True
        self.waiting_for_100_continue = False
        if not self.body:
            self.message_event.clear()

    _head = b""

    def _flush_head(self) -> None:
        """A head goes out with the first of its body, in one write, or alone if that is not here yet."""
        if self._head and not self.transport.is_closing():
            head, self._head = self._head, b""
            self.transport.write(head)

    def _write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self.transport.write(data)

    def _frame(self, lines: list[bytes]) -> None:
        """No length is known: chunks, or for HTTP/1.0 all that comes until the close."""
        if self.scope["http_version"] == "1.1":
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        else:
            self._lasts_until_close, self.keep_alive = True, False

    def _body(self, body: bytes, more: bool) -> None:
        if self.switched:
            self._write_raw(body, more)
            return
        if self.chunked_encoding:
            self._write_chunk(body, more)
        elif self._lasts_until_close:
            self._write(body)
        else:
            self._write_counted(body)
        if not more:
            self._complete()

    def _write_chunk(self, body: bytes, more: bool) -> None:
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        self._write(chunk if more else chunk + b"0\r\n\r\n")

    def _write_raw(self, body: bytes, more: bool) -> None:
        self._write(body)
        if not more and not self.transport.is_closing():
            self.transport.write_eof()

    def _write_counted(self, body: bytes) -> None:
        """No more than was announced may go out: the next bytes would be taken for another reply."""
        self._write(body[: self.expected_content_length])
        self.expected_content_length -= len(body)

    def _complete(self) -> None:
        if self.expected_content_length > 0:
            self._break_off()
            return
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class Protocol(HttpToolsProtocol):
    """A client's connection. `app` is a `sidecar.server.app.App`: it knows the limit on heads."""

    serving: Cycle | None = None
    head_timer: TimerHandle | None = None
    paused_timer: TimerHandle | None = None
    head_bytes = 0
    in_head = False
    in_trailer = False
    mixed = False
    refused: ExchangeError | None = None
    _stopped_by: ExchangeError | None = None
    lingered = 0
    aside = False
    """Whether what arrives is no HTTP, or is not to be read as such yet: the last request may be answered by 101."""

    # --- the connection ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel_timers()
        for cycle in (self.serving, *(cycle for cycle, _ in self.pipeline)):
            if isinstance(cycle, Cycle):
                cycle.leave()
        self.pipeline.clear()

    def _cancel_timers(self) -> None:
        for timer in (self.head_timer, self.paused_timer, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        self.head_timer = self.paused_timer = None

    def _expect_head(self) -> None:
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _head_is_late(self) -> None:
        self.head_timer = None
        if self.serving is None or self.serving.response_complete:
            self.refuse(RequestTimeout(f"The request's headers did not arrive within {HEAD_SECONDS:g} s."))

    def refuse(self, error: ExchangeError) -> None:
        """Answers what is not a request, and closes; replies to what came before it are still given.

        A client that already gets the reply to what is broken is only cut off.
        """
        if self.transport.is_closing():
            return
        self.refused = error
        serving, last = self.serving, self.cycle
        if serving is None or serving.response_complete:
            self._answer(error)
        elif not last.more_body:
            last.keep_alive = False
        elif last is serving and not serving.response_started:
            serving.leave()
            self._answer(error)
        else:
            self.transport.close()

    def _answer(self, error: ExchangeError) -> None:
        body = openai_error(error)
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
            % (error.status, _phrase(error.status), len(body), body)
        )
        self.transport.close()

    # --- what arrives ---

    def data_received(self, data: bytes) -> None:
        if self.refused is not None:
            return
        self._unset_keepalive_if_required()
        if self.aside:
            self.on_body(data)
            return
        self.mixed = False
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self.refuse(self._stopped_by or _malformed(error))
            return
        if self.in_head or self.in_trailer:
            self._count_fields(len(data))
        elif self.cycle is not None and self.cycle.response_complete:
            self._idle_again()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = data[offer.args[0] :]
                if isinstance(self.cycle, Cycle) and self.cycle.switches:
                    self.aside = True
                    self.on_body(data)
                    return
                self._decline()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that ends its side of a WebSocket still listens; any other has left."""
        cycle = self.cycle
        if not (isinstance(cycle, Cycle) and cycle.switched):
            return False
        cycle.more_body = False
        cycle.message_event.set()
        return True

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.aside and self.cycle.response_complete and not self.transport.is_closing():
            self.aside = False
            self._decline()
            self.data_received(bytes(self.cycle.body))

    def _decline(self) -> None:
        """The client offers another protocol, and is answered in this one.

        The parser takes an offer for the end of the message, so a new one reads its body and what follows.
        """
        self.cycle.more_body = True
        self.cycle.message_event.clear()
        self.parser = httptools.HttpRequestParser(_Remainder(self))
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in _FRAMING]
        self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing))

    def _count_fields(self, size: int) -> None:
        """Fields that have not ended. What came with them in a packet is not told apart, and not counted."""
        if self.in_head:
            self._expect_head()
        if not self.mixed:
            self.head_bytes += size
        if self.head_bytes > self._max_header():
            self.refuse(self._headers_too_large())

    def _idle_again(self) -> None:
        """What came belongs to a request that is answered already; its connection may not stay idle for ever."""
        if self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _max_header(self) -> int:
        limit: int = self.config.loaded_app.max_header
        return limit

    def _headers_too_large(self) -> ExchangeError:
        bounds = f"{self._max_header()} bytes or {MAX_FIELDS} fields"
        return HeadersTooLarge(f"The request's headers are larger than {bounds}.")

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.in_head = True
        self.head_bytes = self.lingered = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > MAX_URL:
            self._stop(UrlTooLong(f"The request's URL is longer than {MAX_URL} bytes."))

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return  # a trailer: too late to mean anything here
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def _stop(self, error: ExchangeError) -> None:
        self._stopped_by = error
        raise _Refused(error)

    def on_headers_complete(self) -> None:
        self.in_head = False
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None
        self._check_head()
        path, mark, query = self.url.partition(b"?")
        method = self.parser.get_method().decode("ascii")
        version = self.parser.get_http_version()
        self.scope = {  # type: ignore[typeddict-unknown-key]
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "root_path": self.root_path,
            "headers": self.headers,
            "state": self.app_state,
            "method": method,
            "path": _decoded(path),
            "raw_path": path,
            "query_string": query,
            "sidecar.query": mark + query,
            "sidecar.switches": self._wants_websocket(method, version),
        }
        self._begin(keep_alive=version != "1.0" and self.parser.should_keep_alive())

    def _wants_websocket(self, method: str, version: str) -> bool:
        """Whether this is the opening handshake of RFC 6455, 4.1: a GET without a body that offers nothing else."""
        offers = [value.lower() for name, value in self.headers if name == b"upgrade"]
        return (
            offers == [b"websocket"]
            and (method, version) == ("GET", "1.1")
            and self.parser.should_upgrade()
            and all(value == b"0" for name, value in self.headers if name in _FRAMING)
        )

    def _check_head(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._max_header() or len(self.headers) > MAX_FIELDS:
            self._stop(self._headers_too_large())
        if self.url[:1] != b"/" and self.url != b"*":
            self._stop(InvalidRequest("The request's target must be a path that begins with a slash."))

    def _begin(self, keep_alive: bool) -> None:
        before = self.cycle
        cycle = self.cycle = Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        self.scope["sidecar.watch"] = cycle.watch  # type: ignore[typeddict-unknown-key]
        cycle.switches = self.scope["sidecar.switches"]  # type: ignore[typeddict-item]
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))
            self._look_while_paused()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self.serving = cycle  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def on_chunk_header(self) -> None:
        """Until a byte of the chunk comes it may be the last, with a trailer."""
        self.in_trailer, self.head_bytes = True, 0

    def on_body(self, body: bytes) -> None:
        self.in_trailer, self.mixed = False, True
        cycle = self.cycle
        if cycle.response_complete:
            self.lingered += len(body)
            if self.lingered > MAX_LINGER:
                self.transport.close()
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
            self._look_while_paused()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        self.in_trailer, self.mixed = False, True
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    # --- a client that leaves unheard ---

    def _look_while_paused(self) -> None:
        """A socket that is not read does not tell that its peer has left; the kernel knows."""
        if self.paused_timer is None:
            self.paused_timer = self.loop.call_later(_PAUSED_SECONDS, self._look)

    def _look(self) -> None:
        self.paused_timer = None
        if not self.flow.read_paused or self.transport.is_closing():
            return
        sock = self.transport.get_extra_info("socket")
        poll = select.poll()
        poll.register(sock.fileno(), _GONE)
        # A WebSocket's client may have ended both sides and still have bytes on the way: HUP is reported unasked.
        gone = select.POLLERR if isinstance(self.cycle, Cycle) and self.cycle.switched else _GONE
        if any(events & gone for _, events in poll.poll(0)):
            self.transport.abort()
        else:
            self._look_while_paused()


class _Remainder:
    """Callbacks for a parser that starts in the middle: it is given a head to know the framing, then all is real."""

    def __init__(self, protocol: Protocol) -> None:
        self._begun = False
        self._protocol = protocol
        self.on_body = protocol.on_body
        self.on_chunk_header = protocol.on_chunk_header
        self.on_message_complete = protocol.on_message_complete

    def on_message_begin(self) -> None:
        if self._begun:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._begun:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._begun:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._begun:
            self._protocol.on_headers_complete()
        self._begun = True


def _nothing() -> None:
    """Stands where a finished exchange had its callback."""


def _phrase(status: int) -> bytes:
    return _PHRASES.get(status, b"")


_PHRASES = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}


def _decoded(path: bytes) -> str:
    text = path.decode("latin-1")
    return unquote(text) if "%" in text else text


def _malformed(error: Exception) -> ExchangeError:
    return InvalidRequest(f"This is not a valid HTTP request: {error}.")
