"""A provider that does exactly as it is told, over raw sockets, and keeps every request as it came."""

import base64
import gzip
import json
import re
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from io import BufferedReader
from typing import Any

import brotli
import zstandard

# What to answer one request with, in the words of the case file: `status`, `headers`, and one of `json`,
# `body` (text), `steps` or `generate`; also `compress`, `delay_ms`, `close` (fin, rst) and `framing`
# (chunked, close). `then_add_before_done` is an event for requests that have the field `if_request_has`. With
# `for_model` in the first script each of them answers the requests for one model with its `reply`.
Script = Mapping[str, Any]
Answer = Script | Callable[["Seen"], Script]

_MEGABYTE = 1 << 20
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, mtime=0),
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came over the wire. `fault` says what is wrong with its framing, if anything is."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fault: str = ""
    at: float = field(default_factory=time.monotonic)

    def header(self, name: str) -> str | None:
        """The values of a header joined by a comma, or None."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def everything(self) -> str:
        """All that was sent, as text, to look for what should not be there."""
        head = "".join(f"{key}: {value}\n" for key, value in self.headers)
        return f"{self.method} {self.target}\n{head}\n{self.body.decode('utf-8', 'replace')}"


class _Gone(Exception):
    """The client closed the connection."""


class Upstream:
    """Answers request number i with script number i, and all later ones with the last script."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.origin = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.play(())
        threading.Thread(target=self._accept, daemon=True).start()

    def play(self, answers: Sequence[Answer]) -> None:
        """Forgets what was and answers from this script on."""
        with self._lock:
            self._answers = tuple(answers)
            self.requests: list[Seen] = []
            self.left_at: list[float] = []

    @property
    def open_connections(self) -> int:
        with self._lock:
            return len(self._open)

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection, connection.makefile("rb") as reader:
                while (seen := read_request(reader, connection)) and _play(connection, seen, self._take(seen)):
                    pass
        except (_Gone, OSError):
            self.left_at.append(time.monotonic())
        finally:
            with self._lock:
                self._open.discard(connection)

    def _take(self, seen: Seen) -> Script:
        with self._lock:
            self.requests.append(seen)
            if not self._answers:
                return {"status": 500, "body": "no script"}
            answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
            if not callable(answer) and "for_model" in answer:
                answer = self._for_model(seen.json["model"])
        return answer(seen) if callable(answer) else _as_asked(answer, seen)

    def _for_model(self, model: str) -> Script:
        replies: dict[str, Script] = {script["for_model"]: script["reply"] for script in self._scripts()}
        return replies.get(model, {"status": 404, "body": "no script for this model"})

    def _scripts(self) -> Iterator[Script]:
        return (answer for answer in self._answers if not callable(answer))


def _as_asked(script: Script, seen: Seen) -> Script:
    if "if_request_has" not in script:
        return script
    value = seen.json
    for key in script["if_request_has"].split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not value:
        return script
    before, done, after = b"".join(map(payload, script["steps"])).partition(b"data: [DONE]")
    added = b"data: %b\n\n" % json.dumps(script["then_add_before_done"]).encode()
    return {**script, "steps": [{"send_bytes": piece} for piece in (before, added, done + after)]}


def read_request(reader: BufferedReader, connection: socket.socket) -> Seen | None:
    """The next request of a connection, or None at its end."""
    line = reader.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").rstrip("\r\n").split(" ", 2)
    headers: list[tuple[str, str]] = []
    while (line := reader.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    named = {name.lower(): value for name, value in headers}
    if "100-continue" in named.get("expect", ""):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body, fault = _read_body(reader, named)
    return Seen(method, target, tuple(headers), body, fault)


def _read_body(reader: BufferedReader, named: Mapping[str, str]) -> tuple[bytes, str]:
    length, coding = named.get("content-length"), named.get("transfer-encoding")
    if coding and length:
        return _read_chunks(reader), "both Content-Length and Transfer-Encoding"
    if coding:
        return _read_chunks(reader), "" if coding == "chunked" else f"Transfer-Encoding: {coding}"
    body = reader.read(int(length)) if length else b""
    return body, "" if len(body) == int(length or 0) else f"{len(body)} bytes of {length} came"


def _read_chunks(reader: BufferedReader) -> bytes:
    body = bytearray()
    while size := int(reader.readline().split(b";")[0] or b"0", 16):
        body += reader.read(size)
        reader.readline()
    while reader.readline().strip():
        pass
    return bytes(body)


def _play(connection: socket.socket, seen: Seen, script: Script) -> bool:
    """Answers one request; False when the connection is to be closed."""
    _pause(connection, script.get("delay_ms", 0))
    if "status" not in script and "generate" not in script:
        _close(connection, script.get("close", "fin"))
        return False
    if "steps" in script or "generate" in script:
        return _play_steps(connection, script)
    body = _coded(script, whole_body(script))
    headers = {**script.get("headers", {}), "content-length": str(len(body))}
    sent = b"" if seen.method == "HEAD" else body
    connection.sendall(_head(script, headers) + sent)
    return "close" not in script


def whole_body(script: Script) -> bytes:
    """The body of a reply that is not streamed, before compression."""
    if "json" in script:
        return json.dumps(script["json"], ensure_ascii=False).encode()
    text: str = script.get("body", "")
    return text.encode()


def _coded(script: Script, body: bytes) -> bytes:
    return COMPRESS[script["compress"]](body) if "compress" in script else body


def _head(script: Script, headers: Mapping[str, str]) -> bytes:
    status = script.get("status", 200)
    coding = {"content-encoding": script["compress"]} if "compress" in script else {}
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}"]
    lines += [f"{name}: {_dated(value)}" for name, value in {**headers, **coding}.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _dated(value: str) -> str:
    """`$HTTPDATE(now+2s)` as that date."""
    found = re.fullmatch(r"\$HTTPDATE\(now([+-]\d+)s\)", value)
    return formatdate(time.time() + int(found[1]), usegmt=True) if found else value


def _play_steps(connection: socket.socket, script: Script) -> bool:
    steps = script["steps"] if "steps" in script else list(_generated(script))
    ends = next((step["close"] for step in steps if "close" in step), None)
    chunked = script.get("framing", "close" if ends else "chunked") == "chunked"
    framing = {"transfer-encoding": "chunked"} if chunked else {"connection": "close"}
    headers = script.get("headers", {"content-type": "text/event-stream"})
    connection.sendall(_head(script, {**headers, **framing}))
    for step in _compressed(script, steps):
        if "sleep_ms" in step:
            _pause(connection, step["sleep_ms"])
        elif "close" in step:
            _close(connection, step["close"])
            return False
        else:
            data = payload(step)
            connection.sendall(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
    if chunked:
        connection.sendall(b"0\r\n\r\n")
    return chunked


def payload(step: Mapping[str, Any]) -> bytes:
    """The bytes of a `send`, `send_b64` or `send_bytes` step; an unknown word is an error of the script."""
    match step:
        case {"send": str(text)}:
            return text.encode()
        case {"send_b64": str(text)}:
            return base64.b64decode(text)
        case {"send_bytes": bytes(data)}:
            return data
    raise ValueError(f"unknown step {sorted(step)}")


def _compressed(script: Script, steps: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """With `compress`, the stream is one compressed document in two pieces, without its pauses and closes."""
    if "compress" not in script:
        return steps
    whole = COMPRESS[script["compress"]](
        b"".join(payload(step) for step in steps if not {"sleep_ms", "close"} & set(step))
    )
    half = len(whole) // 2
    return [{"send_bytes": whole[:half]}, {"sleep_ms": 20}, {"send_bytes": whole[half:]}]


def _generated(script: Script) -> Sequence[Mapping[str, Any]]:
    if script["generate"] != "bytes_without_newline":
        raise ValueError(f"unknown generator {script['generate']!r}")
    return [{"send": "data: "}, *[{"send_bytes": b"x" * _MEGABYTE}] * int(script["mb"])]


def _pause(connection: socket.socket, milliseconds: float) -> None:
    """Waits, but not for a client that leaves meanwhile."""
    if not milliseconds:
        return
    readable, _, _ = select.select([connection], [], [], milliseconds / 1000)
    if readable and not connection.recv(1, socket.MSG_PEEK):
        raise _Gone
    if readable:
        time.sleep(milliseconds / 1000)


def _close(connection: socket.socket, how: str) -> None:
    if how == "rst":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif how != "fin":
        raise ValueError(f"unknown way to close {how!r}")
