"""Replies of chat completions, whole and in frames, and what clients make of them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from openai.lib.streaming.chat._completions import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from sidecar.wire import jsondoc
from sidecar.wire.toolcalls.bridge import Bridge

Document = dict[str, Any]
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
HEAD = {"id": "chatcmpl-t", "created": 1700000000, "model": "m"}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("find", "get")]
ASKED: Document = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}


def completion(*contents: Any, reason: Any = "stop", **message: Any) -> Document:
    choices = [
        {
            "index": at,
            "message": {"role": "assistant", "content": content, **message},
            "logprobs": None,
            "finish_reason": reason,
        }
        for at, content in enumerate(contents)
    ]
    return {**HEAD, "object": "chat.completion", "choices": choices, "usage": USAGE}


def frame(delta: Document, reason: Any = None, index: int = 0, **more: Any) -> Document:
    choice = {"index": index, "delta": delta, "finish_reason": reason, **more}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}


def stream(pieces: Iterable[str], reason: Any = "stop") -> list[Document]:
    usage = {**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    return [
        frame({"role": "assistant", "content": ""}),
        *(frame({"content": p}) for p in pieces),
        frame({}, reason),
        usage,
    ]


def through(bridge: Bridge, frames: Iterable[Document]) -> list[Document]:
    """What the client gets; what the bridge is given stays as it was."""
    out: list[Document] = []
    for document in frames:
        before = jsondoc.encode(document)
        out += bridge.feed(document)
        assert jsondoc.encode(document) == before
    return [json.loads(jsondoc.encode(document)) for document in (*out, *bridge.finish())]


def accumulated(frames: Sequence[Document]) -> Document:
    """What the official client makes of a stream."""
    state = ChatCompletionStreamState()
    for document in frames:
        state.handle_chunk(ChatCompletionChunk.model_validate(document))
    return state.current_completion_snapshot.model_dump()


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


class Read(NamedTuple):
    """What a client goes by. Calls are an id, a name, and the arguments to the letter."""

    content: str
    calls: list[tuple[str, str, str]]
    end: Any


def read(document: Document) -> Read:
    """Of a whole reply."""
    choice = document["choices"][0]
    message = choice["message"]
    calls = message.get("tool_calls") or ()
    made = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return Read(message["content"] or "", made, choice["finish_reason"])


def gathered(frames: Iterable[Document]) -> Read:
    """Of a stream: as `accumulated`, and much faster."""
    content = ""
    end: Any = None
    calls: dict[int, tuple[str, str, str]] = {}
    for choice in (choice for document in frames for choice in document["choices"]):
        assert end is None
        content += choice["delta"].get("content") or ""
        end = choice["finish_reason"]
        for call in choice["delta"].get("tool_calls") or ():
            id_, name, arguments = calls.get(call["index"]) or (call["id"], call["function"]["name"], "")
            calls[call["index"]] = id_, name, arguments + call["function"]["arguments"]
    assert list(calls) == list(range(len(calls)))
    return Read(content, list(calls.values()), end)
