"""A client that keeps what it got, byte by byte and with its times, and reads chat replies out of it."""

import gzip
import json
import select
import socket
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import brotli
import zstandard

PATIENCE_SECONDS = 15.0
# How long a reply that is over may take to show that it is not.
SETTLE_SECONDS = 0.01
_READ = 1 << 16
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}


@dataclass
class Reply:
    """A reply as it came. `broken` is how the connection failed before the framing said that it was over."""

    status: int
    headers: list[tuple[str, str]]
    raw: bytes
    pieces: list[tuple[float, bytes]]
    started: float
    ended: float
    broken: str = ""
    surplus: bool = False
    aborted: bool = False
    """Whether the client left before the end."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def everything(self) -> str:
        head = "".join(f"{key}: {value}\n" for key, value in self.headers)
        return f"{self.status}\n{head}\n{self.text}"

    @property
    def milliseconds(self) -> float:
        return (self.ended - self.started) * 1000

    @cached_property
    def body(self) -> bytes:
        return DECOMPRESS[self.header("content-encoding") or ""](self.raw)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @cached_property
    def data(self) -> list[str]:
        """The data of every event that has a data field, as the SSE specification reads it."""
        return [data for _, data in events(self.text) if data is not None]

    @property
    def is_stream(self) -> bool:
        return (self.header("content-type") or "").startswith("text/event-stream")

    @cached_property
    def documents(self) -> list[Any]:
        """Every chunk of a stream, or the one document of a buffered reply."""
        if not self.is_stream:
            return [self.json]
        return [json.loads(data) for data in self.data if data not in ("", "[DONE]")]

    def deltas(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """(choice index, delta or message, choice) for every choice of every chunk."""
        for document in self.documents:
            for choice in document.get("choices", ()):
                yield str(choice["index"]), choice.get("delta") or choice.get("message") or {}, choice

    def joined(self, key: str = "content") -> dict[str, str]:
        """The whole text of a delta field, by choice."""
        texts: dict[str, str] = {}
        for index, delta, _ in self.deltas():
            if isinstance(delta.get(key), str):
                texts[index] = texts.get(index, "") + delta[key]
        return texts

    def finish_reasons(self) -> dict[str, str]:
        return {index: choice["finish_reason"] for index, _, choice in self.deltas() if choice.get("finish_reason")}

    def tool_calls(self) -> list[dict[str, str]]:
        """The calls of all choices, put together by index as the official client does."""
        calls: dict[tuple[str, int], dict[str, str]] = {}
        for choice, delta, _ in self.deltas():
            for position, part in enumerate(delta.get("tool_calls") or ()):
                call = calls.setdefault((choice, part.get("index", position)), {"id": "", "name": "", "arguments": ""})
                call["id"] = part.get("id") or call["id"]
                call["name"] += part["function"].get("name") or ""
                call["arguments"] += part["function"].get("arguments") or ""
        return [calls[key] for key in sorted(calls)]

    def errors(self) -> list[dict[str, Any]]:
        return [document["error"] for document in self.documents if "error" in document]


def events(text: str) -> Iterator[tuple[dict[str, str], str | None]]:
    """(fields, data) of every dispatched block of an event stream; data is None where no line gave any."""
    fields: dict[str, str] = {}
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            data.append(value) if name == "data" else fields.update({name: value})
        elif data or fields:
            yield fields, "\n".join(data) if data else None
            fields, data = {}, []


Body = bytes | Iterator[bytes] | None


class Broken(Exception):
    """The reply does not keep to its own framing."""


class Client:
    """One keep-alive connection to a sidecar, as strict about framing as the specification is."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host = parts.netloc
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80), PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: Body = None) -> Reply:
        started = time.monotonic()
        self.send(method, target, headers, body)
        return self.read(started, bodiless=method == "HEAD")

    def send(self, method: str, target: str, headers: Mapping[str, str], body: Body = None) -> None:
        """Sends a request: bytes with Content-Length, an iterator chunked."""
        chunked = body is not None and not isinstance(body, bytes)
        framing = {"transfer-encoding": "chunked"} if chunked else {}
        if isinstance(body, bytes):
            framing = {"content-length": str(len(body))}
        head = {"host": self._host, **headers, **framing}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if "expect" in headers:
            self._continued()
        for piece in _chunks(body) if chunked else [body or b""]:
            self._socket.sendall(piece)

    def _continued(self) -> None:
        if not self._line().startswith("HTTP/1.1 100"):
            raise Broken("no 100 Continue")
        self._line()

    def read(self, started: float, *, bodiless: bool = False, until: Callable[[bytes], bool] | None = None) -> Reply:
        """The next reply; stops early when `until` says so of the body that has come so far."""
        status = int(self._line().split(" ", 2)[1])
        headers = list(iter(self._header, ("", "")))
        pieces: list[tuple[float, bytes]] = []
        raw, broken = bytearray(), ""
        try:
            for piece in () if bodiless or status in (204, 304) else self._body(dict(headers)):
                pieces.append((time.monotonic(), piece))
                raw += piece
                if until and until(bytes(raw)):
                    break
        except (Broken, OSError) as error:
            broken = f"{type(error).__name__}: {error}"
        ended = time.monotonic()
        return Reply(status, headers, bytes(raw), pieces, started, ended, broken, self._surplus())

    def _header(self) -> tuple[str, str]:
        name, _, value = self._line().partition(":")
        return name.lower(), value.strip()

    def _body(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        length, coding = headers.get("content-length"), headers.get("transfer-encoding")
        if length and coding:
            raise Broken("both Content-Length and Transfer-Encoding")
        if coding:
            yield from self._chunked()
        elif length is not None:
            yield from self._exactly(int(length))
        else:
            while self._buffer or self._fill():
                yield self._take(len(self._buffer))

    def _chunked(self) -> Iterator[bytes]:
        while size := int(self._line(), 16):
            yield from self._exactly(size)
            if self._line():
                raise Broken("a chunk is longer than it says")
        while self._line():
            pass

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            self._need(1)
            piece = self._take(min(size, len(self._buffer)))
            size -= len(piece)
            yield piece

    def _line(self) -> str:
        while b"\r\n" not in self._buffer:
            self._need(len(self._buffer) + 1)
        line = self._take(self._buffer.index(b"\r\n") + 2)
        return line[:-2].decode("latin-1")

    def _need(self, size: int) -> None:
        while len(self._buffer) < size:
            if not self._fill():
                raise Broken("the connection ended early")

    def _fill(self) -> bool:
        data = self._socket.recv(_READ)
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _surplus(self) -> bool:
        """Whether bytes wait that belong to no reply."""
        waiting, _, _ = select.select([self._socket], [], [], SETTLE_SECONDS)
        with suppress(OSError):
            return bool(self._buffer or (waiting and self._fill()))
        return False


def _chunks(body: Iterator[bytes]) -> Iterator[bytes]:
    for piece in body:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def ask(url: str, request: Mapping[str, Any]) -> Reply:
    """Sends a request in the words of the case file on a connection of its own."""
    with Client(url) as client:
        return client.ask(*wire(request))


def ask_and_leave(url: str, request: Mapping[str, Any], events: int) -> Reply:
    """The same, but the client leaves after so many events of the reply."""
    with Client(url) as client:
        started = time.monotonic()
        client.send(*wire(request))
        reply = client.read(started, until=lambda body: body.count(b"data:") >= events)
    reply.aborted = True
    return reply


def wire(request: Mapping[str, Any]) -> tuple[str, str, dict[str, str], Body]:
    """(method, target, headers, body) of a request of the case file."""
    headers = dict(request.get("headers", {}))
    if "json" not in request:
        return request["method"], request["path"], headers, request.get("body")
    body = json.dumps(request["json"], ensure_ascii=False).encode()
    headers.setdefault("content-type", "application/json")
    if request.get("chunked"):
        return request["method"], request["path"], headers, iter([body[:20], body[20:]])
    return request["method"], request["path"], headers, body
