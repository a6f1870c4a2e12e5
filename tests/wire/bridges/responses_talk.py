"""A chat provider's replies, whole and cut, and what a client of Responses makes of the frames."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from openai.types.responses import Response, ResponseStreamEvent

from sidecar.wire.bridges import Bridge as Protocol
from sidecar.wire.bridges.responses_chat import Bridge

Document = dict[str, Any]

ASK: Document = {"model": "qwen3", "input": "hello"}
USAGE: Document = {
    "prompt_tokens": 7,
    "completion_tokens": 5,
    "total_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
USED: Document = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 12,
}


def bridge(**fields: Any) -> Protocol:
    return Bridge({**ASK, **fields})


def function(name: str, arguments: Any, call_id: str = "call_1") -> Document:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(message: Mapping[str, Any], reason: str | None = "stop", **fields: Any) -> Document:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": reason}
    return {**_head("chat.completion"), "choices": [choice], "usage": USAGE, **fields}


def chunk(delta: Mapping[str, Any], reason: str | None = None, **choice: Any) -> Document:
    said = {"index": 0, "delta": dict(delta), "finish_reason": reason, **choice}
    return {**_head("chat.completion.chunk"), "choices": [said]}


def call_chunk(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "") -> Document:
    """A delta of a tool call: the first of each has id and name."""
    head = {"id": call_id, "type": "function"} if call_id else {}
    said = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{"index": index, **head, "function": said}]})


def tail(reason: str = "stop") -> list[Document]:
    return [chunk({}, reason), {**_head("chat.completion.chunk"), "choices": [], "usage": USAGE}]


def _head(kind: str) -> Document:
    return {"id": "chatcmpl-9", "object": kind, "created": 1700000000, "model": "qwen3:8b"}


def told(chunks: Iterable[Document], **request: Any) -> list[Document]:
    """All frames for the client."""
    speaking = bridge(**request)
    return [frame for document in chunks for frame in speaking.feed(document)] + list(speaking.finish())


_EVENTS = {
    get_args(event.model_fields["type"].annotation)[0]: event for event in get_args(get_args(ResponseStreamEvent)[0])
}


def checked(frames: Sequence[Document]) -> list[str]:
    """The frames' types. Each is what the official client's types say, and they are numbered without a gap."""
    for frame in frames:
        _EVENTS[frame["type"]].model_validate(frame, strict=True)
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    return [frame["type"].removeprefix("response.") for frame in frames]


def response(document: Document) -> Document:
    """A response that the official client's types hold."""
    Response.model_validate(document, strict=True)
    return document


def said(output: Iterable[Document]) -> list[tuple[str, str]]:
    """The items' types and texts."""
    return [(item["type"], _text_of(item)) for item in output]


def _text_of(item: Document) -> str:
    match item["type"]:
        case "function_call":
            return f"{item['name']}({item['arguments']})"
        case "custom_tool_call":
            return f"{item['name']}<{item['input']}>"
        case _:
            parts = [*item.get("summary", ()), *item["content"]]
            return "".join(part.get("text") or part.get("refusal", "") for part in parts)
