"""Bridged frames on their way through the chain: rules hold as if the provider spoke the client's API."""

import asyncio
from collections.abc import Iterable

from sidecar.core.chain import Run
from sidecar.core.exchange import Exchange, Request
from sidecar.core.usage import Usage
from sidecar.wire import jsondoc, messages, sse
from sidecar.wire.bridges.messages_chat import Bridge
from sidecar.wire.stream import ReplyStream
from tests.stages.talk import chain

from .messages_client import ASKED, Document, accumulated, call, chunk, plain, usage_chunk

RULE = {"name": "keys", "patterns": [{"name": "key", "regex": "sk-[0-9]{4}"}], "action": "redact", "replacement": "#"}


def run() -> Run:
    """A call whose request has gone through."""
    reached = chain([RULE]).open(Exchange("x", "messages"))
    asyncio.run(reached.request(Request({}, [])))
    return reached


def frame(document: Document) -> sse.Frame:
    data, name = jsondoc.encode(document), document["type"].encode()
    return sse.Frame(sse.render(data, name), data, name)


def told(chunks: Iterable[Document]) -> tuple[ReplyStream, list[Document]]:
    bridge, stream = Bridge(ASKED), ReplyStream(messages, run())
    out = b"".join(stream.feed(map(frame, bridge.feed(one))) for one in chunks)
    out += stream.feed(map(frame, bridge.finish())) + stream.finish()
    read = [plain(jsondoc.decode(found.data)) for found in sse.Events().feed(out) if found.data]
    return stream, read


def test_a_match_over_two_frames_and_one_in_arguments() -> None:
    made = call("f", '{"key": "sk-12', index=0)
    rest = {"tool_calls": [{"index": 0, "function": {"arguments": '34"}'}}]}
    texts = [chunk({"content": "It is sk-1"}), chunk({"content": "234."})]
    calls = [chunk({"tool_calls": [made]}), chunk(rest), chunk({}, "tool_calls")]
    usage = usage_chunk({"prompt_tokens": 9, "completion_tokens": 4})
    stream, read = told([*texts, *calls, usage])
    assert [block.get("text") or block["input"] for block in accumulated(read)["content"]] == ["It is #.", {"key": "#"}]
    assert stream.done
    assert stream.tokens == Usage(9, 4, 0, 0)


def test_a_stream_that_broke_off_is_known_to_be_incomplete() -> None:
    assert not told([chunk({"content": "It is sk-1"})])[0].complete


def test_an_error_in_the_stream_is_known_as_one() -> None:
    stream, read = told([chunk({"content": "It is"}), {"error": {"message": "No sk-1234.", "code": 500}}])
    assert stream.failed
    assert read[-1]["error"]["message"] == "No #."
