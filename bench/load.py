"""Load, bounded in count and in time.

The generator holds a fixed number of connections, each of which sends its next request when the reply to the
last one is complete. Of a stream it keeps the time of the first body byte and the number of `\\n\\n`.
"""

import asyncio
import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import httptools
import uvloop

from bench.prose import PROMPT_SYSTEM, PROMPT_USER

PATH = "/v1/chat/completions"
_DONE = b"data: [DONE]"
_TAIL = 32


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send requests, and the bearer key to send with them."""

    port: int
    key: str = "sk-bench-none"
    host: str = "127.0.0.1"


@dataclass(slots=True)
class Load:
    """What came of a run. `first_bytes`: seconds from sending the request to the first byte of the body."""

    requests: int = 0
    errors: int = 0
    frames: int = 0
    seconds: float = 0.0
    first_bytes: list[float] = field(default_factory=list)


Fields = Mapping[str, object]


def body(model: str, stream: bool, more: Fields | None = None) -> bytes:
    """A chat request of about 800 bytes, as the official client writes it, with `more` fields."""
    request: dict[str, object] = {
        "messages": [
            {"role": "system", "content": PROMPT_SYSTEM},
            {"role": "user", "content": PROMPT_USER},
        ],
        "model": model,
        "temperature": 0.2,
    }
    if stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    request.update(more or {})
    return json.dumps(request, separators=(",", ":")).encode()


def headers(target: Target) -> dict[str, str]:
    """The headers that the official Python client sends."""
    return {
        "Host": f"{target.host}:{target.port}",
        "Accept-Encoding": "identity",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "OpenAI/Python 2.6.1",
        "X-Stainless-Lang": "python",
        "X-Stainless-Package-Version": "2.6.1",
        "X-Stainless-OS": "Linux",
        "X-Stainless-Arch": "x64",
        "X-Stainless-Runtime": "CPython",
        "X-Stainless-Runtime-Version": "3.11.7",
        "X-Stainless-Async": "false",
        "x-stainless-retry-count": "0",
        "x-stainless-read-timeout": "600",
        "Authorization": f"Bearer {target.key}",
    }


def request_bytes(target: Target, model: str, stream: bool, more: Fields | None = None) -> bytes:
    """The whole request as it goes onto the wire."""
    content = body(model, stream, more)
    lines = [
        f"POST {PATH} HTTP/1.1",
        *(f"{k}: {v}" for k, v in headers(target).items()),
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


class Job:
    """A number of requests shared by all connections of one run, and what came of them."""

    def __init__(self, request: bytes, count: int, stream: bool) -> None:
        self.request, self.count, self.stream = request, count, stream
        self.started = 0
        self.load = Load()
        self.over = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        """Claim the next request; False when all have been claimed."""
        if self.started >= self.count:
            return False
        self.started += 1
        return True

    def settle(self, ok: bool) -> None:
        """Count one claimed request as answered, well or badly."""
        self.load.requests += 1
        self.load.errors += not ok
        if self.load.requests >= self.count and not self.over.done():
            self.over.set_result(None)


class Connection(asyncio.Protocol):
    """One connection of the closed loop, and the callbacks of its response parser."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport
        self.busy = False
        self.sent = 0.0
        self.tail = b""
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.next()

    def next(self) -> None:
        self.busy, self.tail = self.job.take(), b""
        if not self.busy:
            self.transport.close()
            return
        self.sent = time.perf_counter()
        self.transport.write(self.job.request)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def on_body(self, data: bytes) -> None:
        if not self.tail:
            self.job.load.first_bytes.append(time.perf_counter() - self.sent)
        # A separator cut in two by a read is counted by its second half.
        self.job.load.frames += data.count(b"\n\n") + (self.tail[-1:] == b"\n" == data[:1] != data[1:2])
        self.tail = (self.tail + data)[-_TAIL:]

    def on_message_complete(self) -> None:
        whole = not self.job.stream or _DONE in self.tail
        self.busy = False
        self.job.settle(whole and self.parser.get_status_code() == 200)
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.busy:
            self.job.settle(ok=False)
        self.closed.set_result(None)


async def _worker(target: Target, job: Job) -> None:
    loop = asyncio.get_running_loop()
    while job.started < job.count:
        _, protocol = await loop.create_connection(lambda: Connection(job), target.host, target.port)
        await protocol.closed


async def _drive(target: Target, request: bytes, count: int, connections: int, stream: bool, limit: float) -> Load:
    job = Job(request, count, stream)
    began = time.perf_counter()
    workers = [asyncio.create_task(_worker(target, job)) for _ in range(min(connections, count))]
    await asyncio.wait({job.over, *workers}, timeout=limit, return_when=asyncio.FIRST_EXCEPTION)
    job.load.seconds = time.perf_counter() - began
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    job.load.errors += count - job.load.requests
    return job.load


def once(target: Target, model: str, *, stream: bool) -> bytes:
    """The body of one reply."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=30)
    try:
        connection.request("POST", PATH, body(model, stream), headers(target))
        return connection.getresponse().read()
    finally:
        connection.close()


def closed_loop(
    target: Target,
    model: str,
    *,
    stream: bool,
    count: int,
    connections: int,
    limit: float = 60.0,
    more: Fields | None = None,
) -> Load:
    """Send `count` requests over `connections` connections; what is not answered in `limit` s is an error."""
    request = request_bytes(target, model, stream, more)
    return uvloop.run(_drive(target, request, count, connections, stream, limit))
