"""The official Anthropic client, in front of a bridge, in front of a scripted chat provider."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import anthropic
import httpx2
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from sidecar.errors import ExchangeError
from sidecar.wire import jsondoc, sse
from sidecar.wire.bridges.messages_chat import Bridge

Document = dict[str, Any]
Frames = list[Document]

_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)

ASKED: Document = {"model": "local", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}


def asking(**fields: Any) -> Document:
    return ASKED | fields


def chat_request(**fields: Any) -> Document:
    return Bridge(asking(**fields)).request()


def plain(document: Document) -> Document:
    """A document as a client reads it."""
    read: Document = json.loads(jsondoc.encode(document))
    return read


def through(bridge: Bridge, chunks: Iterable[Document]) -> Frames:
    """A stream's frames as a client reads them; each is of a type that the client knows."""
    frames = [frame for chunk in chunks for frame in bridge.feed(chunk)]
    frames = list(map(plain, [*frames, *bridge.finish()]))
    for frame in frames:
        if frame["type"] not in ("ping", "error"):
            _EVENT.validate_python(frame)
    return frames


def accumulated(frames: Iterable[Document]) -> Document:
    """What the client's own accumulator makes of them."""
    message: Any = None
    buffers: dict[int, bytes] = {}
    for frame in frames:
        if frame["type"] != "ping":
            event = _EVENT.validate_python(frame)
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
    done: Document = message.to_dict(exclude_unset=True)
    return done


def buffered(document: Document, **fields: Any) -> Document:
    """A whole reply as a client reads it."""
    message = plain(Bridge(asking(**fields)).reply(document))
    Message.model_validate(message)
    return message


def chunk(delta: Document, finish: str | None = None, **choice: Any) -> Document:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "local-7b",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}],
    }


def usage_chunk(usage: Document) -> Document:
    return chunk({}) | {"choices": [], "usage": usage}


def completion(
    message: Document, finish: str | None = "stop", usage: Document | None = None, **choice: Any
) -> Document:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "local-7b",
        "choices": [{"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish, **choice}],
        "usage": usage or {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }


def call(name: str, arguments: str, id_: str = "call_1", **more: Any) -> Document:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


class Provider:
    """Answers each request with the next of its script, and keeps what it was asked."""

    def __init__(self, *script: Document | Sequence[Document]) -> None:
        self._script: Iterator[Document | Sequence[Document]] = iter(script)
        self.asked: list[Document] = []

    def client(self) -> anthropic.Anthropic:
        transport = httpx2.MockTransport(self._serve)
        http = anthropic.DefaultHttpxClient(transport=transport)
        return anthropic.Anthropic(api_key="none", base_url="http://sidecar.test", http_client=http, max_retries=0)

    def _serve(self, request: httpx2.Request) -> httpx2.Response:
        bridge = Bridge(jsondoc.decode(request.read()))
        try:
            self.asked.append(plain(bridge.request()))
        except ExchangeError as refused:
            said = {"type": refused.type, "message": refused.message, "details": {"error_code": refused.code}}
            return httpx2.Response(refused.status, json={"type": "error", "error": said})
        match next(self._script):
            case {"status": int(status), "body": body}:
                return httpx2.Response(status, content=jsondoc.encode(bridge.error(body, status)))
            case dict() as whole:
                return _json(bridge.reply(whole))
            case chunks:
                return _events(lambda: [*(f for c in chunks for f in bridge.feed(c)), *bridge.finish()])


def _json(document: Document) -> httpx2.Response:
    return httpx2.Response(200, content=jsondoc.encode(document), headers={"content-type": "application/json"})


def _events(frames: Callable[[], Frames]) -> httpx2.Response:
    body = b"".join(sse.render(jsondoc.encode(frame), frame["type"].encode()) for frame in frames())
    return httpx2.Response(200, content=body, headers={"content-type": "text/event-stream"})
