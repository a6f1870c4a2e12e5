"""A sidecar in a thread, and a client that speaks raw bytes to it: what a test needs for a conversation."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import uvloop

from sidecar.runtime import Runtime, load_policy
from sidecar.server.app import App
from sidecar.server.serve import Server, bind, config


@dataclass(slots=True)
class Sidecar:
    """One that listens at `port`. `runtime` is its inside, to be looked at and not touched."""

    port: int
    runtime: Runtime
    server: Server

    def connect(self) -> "Client":
        return Client(socket.create_connection(("127.0.0.1", self.port), timeout=10))

    def ask(self, request: bytes) -> "Answer":
        """One request on a connection of its own."""
        with self.connect() as client:
            client.send(request)
            return client.answer(request.split(b" ", 1)[0])

    def call(self, function: Callable[[], object]) -> None:
        """Runs a function in the sidecar's own event loop."""
        loop = self.runtime._loop
        assert loop is not None
        done = threading.Event()
        loop.call_soon_threadsafe(lambda: (function(), done.set()))
        assert done.wait(5)


@contextmanager
def sidecar(
    upstream: str | None = None, policy: str | None = None, folder: Path | None = None, **environ: str
) -> Iterator[Sidecar]:
    """A running sidecar under a policy's text, which is written into `folder`."""
    path = None
    if policy is not None:
        assert folder is not None
        path = folder / "policy.yaml"
        path.write_text(policy, "utf-8")
    runtime = Runtime(path, upstream, environ)
    snapshot = load_policy(path, environ, upstream)
    listener = bind("127.0.0.1", 0)
    server = Server(config(App(runtime, snapshot), snapshot))
    server.config.load()
    thread = threading.Thread(target=lambda: uvloop.run(server.serve([listener])), daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield Sidecar(listener.getsockname()[1], runtime, server)
    finally:
        server.should_exit = True
        server.force_exit = False
        thread.join(10)


@dataclass(slots=True)
class Answer:
    """A reply as the client saw it. `whole` is False when the connection broke off before the body's end."""

    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    whole: bool = True
    pieces: list[bytes] = field(default_factory=list)

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)


class Client:
    """One connection. Reads what comes and keeps it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._data = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send_some(self, data: bytes, patience: float = 0.2) -> int:
        """Sends until the sidecar has taken nothing for `patience` seconds; returns how much it took."""
        sent = 0
        self.sock.settimeout(patience)
        with suppress(TimeoutError, ConnectionError):
            while sent < len(data):
                sent += self.sock.send(data[sent : sent + 65536])
        self.sock.settimeout(10)
        return sent

    def reset(self) -> None:
        """Leaves without a word."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def answer(self, method: bytes = b"GET") -> Answer:
        """The next reply, read to its end or to where it broke off."""
        answer = self.head()
        if method == b"HEAD" or answer.status in (204, 304) or answer.status < 200:
            return answer
        try:
            answer.body = self._body(answer)
        except (EOFError, ConnectionError):
            answer.whole = False
        return answer

    def head(self) -> Answer:
        """The next reply's status line and headers."""
        while b"\r\n\r\n" not in self._data:
            self._more()
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        _, status, reason = [*line.split(b" ", 2), b""][:3]
        fields = [(name.lower(), value) for name, _, value in (each.partition(b": ") for each in lines)]
        return Answer(int(status), reason, fields)

    def until(self, mark: bytes) -> bytes:
        """Reads up to and with `mark`."""
        while mark not in self._data:
            self._more()
        end = self._data.index(mark) + len(mark)
        found, self._data = self._data[:end], self._data[end:]
        return found

    def ends(self) -> bool:
        """Whether the sidecar closes the connection now, without another byte."""
        with suppress(ConnectionError):
            return not self._data and self.sock.recv(1) == b""
        return True

    def _body(self, answer: Answer) -> bytes:
        if (length := answer.header(b"content-length")) is not None:
            return self._exactly(int(length))
        if answer.header(b"transfer-encoding") == b"chunked":
            return self._chunks(answer)
        return self._until_end()

    def _chunks(self, answer: Answer) -> bytes:
        while size := int(self.until(b"\r\n"), 16):
            answer.pieces.append(self._exactly(size))
            self.until(b"\r\n")
        self.until(b"\r\n")
        return b"".join(answer.pieces)

    def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            self._more()
        found, self._data = self._data[:size], self._data[size:]
        return found

    def _until_end(self) -> bytes:
        with suppress(EOFError):
            while True:
                self._more()
        found, self._data = self._data, b""
        return found

    def _more(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError
        self._data += data


def request(
    method: bytes = b"GET",
    target: bytes = b"/v1/models",
    body: bytes | None = None,
    *headers: tuple[bytes, bytes],
) -> bytes:
    """A request's bytes, with a Content-Length if there is a body."""
    lines = [b"host: sidecar.test", *(b"%b: %b" % header for header in headers)]
    if body is not None:
        lines.append(b"content-length: %d" % len(body))
    return b"%b %b HTTP/1.1\r\n%b\r\n\r\n%b" % (method, target, b"\r\n".join(lines), body or b"")


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Returns as soon as the condition holds; fails if it does not come to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
