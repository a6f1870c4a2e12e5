"""The provider the subjects talk to: one asyncio protocol that answers chat requests from ready-made bytes.

A body with `"stream": true` gets an event stream; its model says which: `stream-200-0ms` is 200 words back to
back, `stream-50-20ms` is 50 words, one every 20 ms. Anything else gets a buffered reply of about 700 bytes.
The model `leak` says something that looks like a key, buffered or streamed. Buffered, `calls` calls a tool, `told` says
the same call as text, and `object` says an object.
"""

import argparse
import asyncio
import json
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, NamedTuple, cast

import uvloop

from bench.prose import LEAK, PROSE, words

# What a stream carries beside its words: the role frame, the finish frame, the usage frame and [DONE].
FRAMES_AROUND = 4

_CREATED = 1_760_000_000
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]+)[^\r\n]*\r\n")
_STREAM = re.compile(rb'"stream":\s*true')
_LEAK = re.compile(rb'"model":\s*"(?:[^"]*/)?leak"')
_KIND = re.compile(rb'"model":\s*"(?:[^"]*/)?(calls|told|object)"')
_SHAPE = re.compile(rb'"model":\s*"(?:[^"]*/)?stream-(\d+)-(\d+)ms"')
# Successive streams start their pacing at evenly spread phases, so that frames of different streams do not
# arrive in one read-ready round: multiples of the golden ratio never cluster.
_GOLDEN = 0.618_033_988_749_895

_USAGE = {
    "prompt_tokens": 142,
    "completion_tokens": 60,
    "total_tokens": 202,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


# A call of a tool, as fields and as text.
ARGUMENTS = {"query": "the page that we spoke of", "most": 3}
CALL = {"id": "call_1", "type": "function", "function": {"name": "tool_3", "arguments": json.dumps(ARGUMENTS)}}
TOLD = {"tool": "tool_3", "arguments": ARGUMENTS}


class Request(NamedTuple):
    """One request as far as it matters here."""

    chat: bool
    body: bytes
    close: bool


class Shape(NamedTuple):
    """How a stream runs: number of words and seconds between them (0: all at once)."""

    words: int
    delay: float


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def buffered_reply(content: str | None, calls: Sequence[dict[str, Any]] = ()) -> bytes:
    """Head and body of the answer to a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if calls:
        message["tool_calls"] = list(calls)
    reason = "tool_calls" if calls else "stop"
    body = _json(
        {
            "id": "chatcmpl-CJ5w1bQx0pYhT3sVnE8mZkR2uLdGa",
            "object": "chat.completion",
            "created": _CREATED,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            "usage": _USAGE,
            "service_tier": "default",
            "system_fingerprint": "fp_560af6e559",
        }
    )
    return _head(b"application/json", b"content-length: %d" % len(body)) + body


def _head(content_type: bytes, framing: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: " + content_type + b"\r\n"
        b"x-request-id: req_7f3c0a5be2d94b1d8f6e\r\nopenai-processing-ms: 12\r\n"
        b"openai-version: 2020-10-01\r\n" + framing + b"\r\n\r\n"
    )


def _chunk_frame(choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    return _json(
        {
            "id": "chatcmpl-CJ5w1bQx0pYhT3sVnE8mZkR2uLdGa",
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": "gpt-4o-mini-2024-07-18",
            "service_tier": "default",
            "system_fingerprint": "fp_560af6e559",
            "choices": choices,
            "usage": usage,
        }
    )


def _choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]


def _events(deltas: Iterable[str]) -> Iterator[bytes]:
    yield _chunk_frame(_choice({"role": "assistant", "content": "", "refusal": None}), None)
    for word in deltas:
        yield _chunk_frame(_choice({"content": word}), None)
    yield _chunk_frame(_choice({}, "stop"), None)
    yield _chunk_frame([], _USAGE)
    yield b"[DONE]"


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream_writes(deltas: Iterable[str]) -> tuple[bytes, ...]:
    """What is written for a stream of these deltas: head with role frame, each delta, and the rest."""
    frames = [_http_chunk(b"data: " + event + b"\n\n") for event in _events(deltas)]
    first = _head(b"text/event-stream; charset=utf-8", b"transfer-encoding: chunked") + frames[0]
    return (first, *frames[1:-3], b"".join(frames[-3:]) + b"0\r\n\r\n")


@lru_cache
def prose_writes(count: int) -> tuple[bytes, ...]:
    """The same for a stream of `count` words of prose."""
    return stream_writes(words(count))


def _dechunk(data: bytes, start: int) -> tuple[bytes, int] | None:
    """The chunked body that begins at `start` and where it ends; None when it is not all here yet."""
    parts: list[bytes] = []
    while match := _CHUNK_SIZE.match(data, start):
        size = int(match[1], 16)
        start = match.end() + size + 2
        if len(data) < start:
            return None
        if not size:
            return b"".join(parts), start
        parts.append(data[match.end() : match.end() + size])
    return None


def take_request(data: bytes) -> tuple[Request, int] | None:
    """The first request in `data` and where it ends; None when it is not all here yet."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, start = data[: end + 2], end + 4
    body = _dechunk(data, start) if _CHUNKED.search(head) else _sized_body(data, start, head)
    if body is None:
        return None
    target = head.split(b" ", 2)[1].split(b"?", 1)[0]
    return Request(target.endswith(b"/chat/completions"), body[0], bool(_CLOSE.search(head))), body[1]


def _sized_body(data: bytes, start: int, head: bytes) -> tuple[bytes, int] | None:
    match = _LENGTH.search(head)
    end = start + (int(match[1]) if match else 0)
    return (data[start:end], end) if len(data) >= end else None


class Provider(asyncio.Protocol):
    """One connection. Requests on it are answered in order; the next waits until a stream has ended."""

    reply = buffered_reply(PROSE[:240])
    leak = buffered_reply(LEAK)
    leak_stream = b"".join(stream_writes([LEAK[i : i + 4] for i in range(0, len(LEAK), 4)]))
    kinds: ClassVar = {
        b"calls": buffered_reply(None, [CALL]),
        b"told": buffered_reply("Let me see.\n```tool_call\n" + json.dumps(TOLD) + "\n```"),
        b"object": buffered_reply('{"colour": "black", "words": 4}'),
    }
    empty = _head(b"application/json", b"content-length: 2") + b"{}"
    phases = count()

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.pending = b""
        self.timer: asyncio.TimerHandle | None = None
        self.close_after = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()

    def data_received(self, data: bytes) -> None:
        self.pending += data
        self.answer_all()

    def answer_all(self) -> None:
        while not self.timer and self.pending and (taken := take_request(self.pending)):
            request, end = taken
            self.pending = self.pending[end:]
            self.answer(request)

    def answer(self, request: Request) -> None:
        self.close_after = request.close
        if not request.chat:
            self.transport.write(self.empty)
        elif _LEAK.search(request.body):
            self.transport.write(self.leak_stream if _STREAM.search(request.body) else self.leak)
        elif kind := _KIND.search(request.body):
            self.transport.write(self.kinds[kind[1]])
        elif not _STREAM.search(request.body):
            self.transport.write(self.reply)
        else:
            self.stream(request.body)
        if not self.timer:
            self.answered()

    def answered(self) -> None:
        if self.close_after:
            self.transport.close()

    def stream(self, body: bytes) -> None:
        match = _SHAPE.search(body)
        shape = Shape(int(match[1]), int(match[2]) / 1000) if match else Shape(20, 0)
        first, *rest = prose_writes(shape.words)
        self.transport.write(first)
        if not shape.delay:
            self.transport.writelines(rest)
            return
        due = self.loop.time() + shape.delay * (next(self.phases) * _GOLDEN % 1)
        self.timer = self.loop.call_at(due, self.tick, due, shape.delay, rest[::-1])

    def tick(self, due: float, delay: float, rest: list[bytes]) -> None:
        self.transport.write(rest.pop())
        if rest:
            self.timer = self.loop.call_at(due + delay, self.tick, due + delay, delay, rest)
            return
        self.timer = None
        self.answered()
        self.answer_all()


async def serve(port: int) -> None:
    """Answer on 127.0.0.1 until SIGTERM or SIGINT."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(Provider, "127.0.0.1", port, backlog=1024)
    await stop.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.upstream", description=__doc__)
    parser.add_argument("--port", type=int, default=9100)
    with suppress(KeyboardInterrupt):
        uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
