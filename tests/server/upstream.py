"""A provider that does exactly as it is told, over raw sockets, and keeps every request byte by byte.

A script answers one request: bytes are sent, numbers are slept, FIN and RST end the connection. Scripts answer
requests in the order they come in; the last one answers all later ones too.

    with Upstream() as upstream:
        upstream.play([b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n", 0.1, b"ok"])
        ...
        assert upstream.requests[0].header(b"host") == b"127.0.0.1"
"""

import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Self


class End(Enum):
    """How a connection ends: in order, or by a reset."""

    FIN = "fin"
    RST = "rst"


# How long a connection waits for data before it looks whether it was closed from this side.
_LOOK = 0.02

FIN, RST = End.FIN, End.RST
Step = bytes | float | End


@dataclass(frozen=True, slots=True)
class Script:
    """`early`: begin before the request's body is read. `reads`: how many bytes of the body to read; None is all."""

    steps: Sequence[Step]
    early: bool = False
    reads: int | None = None


@dataclass(slots=True)
class Seen:
    """One request. `head` is everything before the body; `wire` is the body with its chunk framing."""

    head: bytes
    body: bytes = b""
    wire: bytes = b""
    at: float = field(default_factory=time.monotonic)
    connection: int = 0

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]

    @property
    def method(self) -> bytes:
        return self.line.split(b" ")[0]

    @property
    def target(self) -> bytes:
        return self.line.split(b" ")[1]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.split(b"\r\n")[1:-2]
        return [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]

    def header(self, name: bytes) -> bytes | None:
        """The values of a header, joined by a comma and a space; None if it did not come."""
        found = [value for key, value in self.headers if key.lower() == name]
        return b", ".join(found) if found else None


class Upstream:
    """Listens at `url`; `requests` is what came, `ended` when each connection was seen to end by the other side."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=1024)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.authority = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.url = f"http://{self.authority}"
        self.requests: list[Seen] = []
        self.ended: list[float] = []
        self.accepted = 0
        self._scripts: list[Script] = []
        self._answered = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def play(self, *scripts: Script | Sequence[Step] | bytes) -> None:
        """Forgets what was, and answers from these scripts on. Bytes are a whole reply."""
        with self._lock:
            self._scripts = [_script(script) for script in scripts]
            self._answered = 0
            self.requests, self.ended = [], []

    @property
    def open(self) -> int:
        with self._lock:
            return len(self._open)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close_idle(self, how: End = FIN) -> None:
        """Ends every connection from this side, now."""
        with self._lock:
            for connection in self._open:
                _end(connection, how)
        time.sleep(2 * _LOOK)  # a reset leaves when nobody waits in `select` any more

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection, self.accepted), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            while self._one(connection, number):
                pass
        except (OSError, ValueError):  # ValueError: closed while it was waited for
            self.ended.append(time.monotonic())
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _one(self, connection: socket.socket, number: int) -> bool:
        head, rest = _until(connection, b"\r\n\r\n", b"")
        if not head:
            return False
        seen = Seen(head, connection=number)
        with self._lock:
            self.requests.append(seen)
            script = self._scripts[min(self._answered, len(self._scripts) - 1)]
            self._answered += 1
        if not script.early:
            _read_body(connection, seen, rest, script.reads)
        return _play(connection, script.steps)


def reply(body: bytes = b"ok", status: bytes = b"200 OK", *headers: tuple[bytes, bytes]) -> bytes:
    """A whole reply with a Content-Length."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, lines, len(body), body)


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _script(given: Script | Sequence[Step] | bytes) -> Script:
    if isinstance(given, Script):
        return given
    return Script([given] if isinstance(given, bytes) else given)


def _recv(connection: socket.socket) -> bytes:
    """What comes next. Not blocked inside `recv`: there a reset from another thread would not reach the wire."""
    while connection.fileno() >= 0:
        readable, _, _ = select.select([connection], [], [], _LOOK)
        if readable:
            return connection.recv(1 << 20)
    raise ConnectionError("reset from this side")


def _until(connection: socket.socket, mark: bytes, data: bytes) -> tuple[bytes, bytes]:
    while mark not in data:
        more = _recv(connection)
        if not more:
            if data:
                raise ConnectionError("the head did not end")
            return b"", b""
        data += more
    end = data.index(mark) + len(mark)
    return data[:end], data[end:]


def _read_body(connection: socket.socket, seen: Seen, data: bytes, reads: int | None) -> None:
    coding, length = seen.header(b"transfer-encoding"), seen.header(b"content-length")
    if coding is not None:
        _read_chunks(connection, seen, data)
        return
    wanted = int(length or 0) if reads is None else reads
    pieces, size = [data], len(data)
    while size < wanted:
        more = _recv(connection)
        if not more:
            raise ConnectionError("the body did not end")
        pieces.append(more)
        size += len(more)
    seen.body = seen.wire = b"".join(pieces)


def _read_chunks(connection: socket.socket, seen: Seen, data: bytes) -> None:
    body, wire = [], []
    while True:
        line, data = _until(connection, b"\r\n", data)
        if not line:
            raise ConnectionError("the chunks did not end")
        size = int(line, 16)
        while len(data) < size + 2:
            more = _recv(connection)
            if not more:
                raise ConnectionError("the chunks did not end")
            data += more
        wire.append(line + data[: size + 2])
        body.append(data[:size])
        data = data[size + 2 :]
        if size == 0:
            seen.body, seen.wire = b"".join(body), b"".join(wire)
            return


def _play(connection: socket.socket, steps: Sequence[Step]) -> bool:
    for step in steps:
        match step:
            case bytes():
                connection.sendall(step)
            case End():
                _end(connection, step)
                return False
            case _:
                _sleep(connection, step)
    return True


def _sleep(connection: socket.socket, seconds: float) -> None:
    """Waits; notices when the other side leaves meanwhile, also behind bytes that nobody has read."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    if poll.poll(seconds * 1000):
        raise ConnectionError("the other side left")


def _end(connection: socket.socket, how: End) -> None:
    with suppress(OSError):
        if how is RST:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            connection.shutdown(socket.SHUT_WR)
