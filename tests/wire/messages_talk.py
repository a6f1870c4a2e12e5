"""Conversations with Anthropic's Messages API under a policy, without a server."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anthropic
import httpx2

from sidecar.core.chain import Chain, Run
from sidecar.core.decision import Stop
from sidecar.core.exchange import NO_DISGUISE, Disguise, Exchange, Request
from sidecar.wire import jsondoc, messages, sse
from sidecar.wire.stream import ReplyStream, Wire, edit_reply

WIRE: Wire = messages


def opened(policy: Chain, disguise: Disguise = NO_DISGUISE) -> Run:
    return policy.open(Exchange("x", "messages", "default", disguise))


def asked(run: Run, document: dict[str, Any]) -> dict[str, Any]:
    """What the provider is asked."""
    asyncio.run(run.request(Request(document, WIRE.request_slots(document))))
    return again(document)


def heard(run: Run, document: dict[str, Any]) -> tuple[dict[str, Any], Stop | None]:
    """A whole reply, as the client gets it."""
    _, stop = edit_reply(WIRE, run, document)
    return again(document), stop


def again(document: dict[str, Any]) -> dict[str, Any]:
    """A document that has been over the wire."""
    read: dict[str, Any] = json.loads(jsondoc.encode(document))
    return read


def frame(event: Mapping[str, Any]) -> sse.Frame:
    data = jsondoc.encode(dict(event))
    return sse.Frame(sse.render(data, event["type"].encode()), data, event["type"].encode())


def told(run: Run, events: Iterable[Mapping[str, Any]], together: int = 1) -> bytes:
    """A stream, as the client gets it; so many events come in one packet."""
    stream = ReplyStream(WIRE, run)
    frames = [frame(event) for event in events]
    out = b""
    for at in range(0, len(frames), together):
        out += stream.feed(frames[at : at + together])
        if stream.stopped:
            return out + stream.ending()
    return out + stream.finish() + stream.ending()


def events_of(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream. Each has its type for a name."""
    frames = [frame for frame in sse.Events().feed(stream) if frame.data is not None]
    documents = [json.loads(frame.data or b"") for frame in frames]
    assert [frame.event for frame in frames] == [document["type"].encode() for document in documents]
    return documents


def client(body: bytes, kind: str = "text/event-stream", status: int = 200) -> anthropic.Anthropic:
    """The official client, whose every request is answered with this."""
    reply = httpx2.Response(status, headers={"content-type": kind}, content=body)
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: reply))
    return anthropic.Anthropic(api_key="k", base_url="http://provider", http_client=http, max_retries=0)


ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}


def read(stream: bytes) -> dict[str, Any]:
    """What the official client makes of a stream."""
    with client(stream) as sdk, sdk.messages.stream(**ASK) as got:
        return got.get_final_message().to_dict(mode="json")


# -- what a provider says


def start(tokens: int = 5) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": tokens, "output_tokens": 1}
    return {"type": "message_start", "message": head | {"stop_reason": None, "stop_sequence": None, "usage": usage}}


def block(index: int, begins: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": dict(begins)},
        *({"type": "content_block_delta", "index": index, "delta": dict(delta)} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, pieces: Sequence[str]) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def thinking(index: int, pieces: Sequence[str]) -> list[dict[str, Any]]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    signed = {"type": "signature_delta", "signature": "c2VhbGVk"}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signed)


def call(index: int, pieces: Sequence[str], name: str = "mail") -> list[dict[str, Any]]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}, *deltas)


def end(reason: str = "end_turn", tokens: int = 20) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens}}, {"type": "message_stop"}]


def whole(*content: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*map(dict, content)]}
    usage = {"input_tokens": 5, "output_tokens": 20}
    return head | {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage} | fields
