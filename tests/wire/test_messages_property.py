"""Law 2 for Messages: however a reply is cut into deltas, events and packets, the client reads the same."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire import jsondoc, messages, sse
from sidecar.wire.stream import ReplyStream, edit_reply
from tests.test_streams_property import (
    EXAMPLES,
    PATTERNS,
    Framing,
    arguments,
    framings,
    guardrail,
    in_values,
    opened,
    packets,
    pieces,
    prose,
    rulesets,
    substituted,
)
from tests.test_streams_property import whole as joined

from .messages_talk import events_of, start

KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "text": ({"type": "text", "text": ""}, "text_delta", "text"),
    "thinking": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"),
    "tool_use": ({"type": "tool_use", "id": "t", "name": "n", "input": {}}, "input_json_delta", "partial_json"),
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A block of a reply, the pieces its text comes in, and how many of them stand in its first event."""

    kind: str
    pieces: tuple[str, ...]
    at_once: int

    @property
    def text(self) -> str:
        return joined("".join(self.pieces))

    def events(self, index: int) -> Iterator[dict[str, Any]]:
        begins, delta, field = KINDS[self.kind]
        first = "".join(self.pieces[: self.at_once])
        begun = begins if self.kind == "tool_use" else begins | {field: first}
        yield {"type": "content_block_start", "index": index, "content_block": dict(begun)}
        for piece in self.pieces if self.kind == "tool_use" else self.pieces[self.at_once :]:
            yield {"type": "content_block_delta", "index": index, "delta": {"type": delta, field: piece}}
        yield {"type": "content_block_stop", "index": index}

    def block(self) -> dict[str, Any]:
        """The same in a whole reply."""
        begins, _, field = KINDS[self.kind]
        return begins | ({"input": json.loads(self.text)} if self.kind == "tool_use" else {field: self.text})


@st.composite
def spoken(draw: st.DrawFn) -> Spoken:
    kind = draw(st.sampled_from(list(KINDS)))
    text = draw(arguments if kind == "tool_use" else prose)
    return Spoken(kind, draw(pieces(text)), draw(st.integers(0, 1)))


replies = st.lists(spoken(), max_size=4)


def stream(blocks: Sequence[Spoken], framing: Framing) -> bytes:
    events = [start(), *(event for index, block in enumerate(blocks) for event in block.events(index))]
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}]
    events += [{"type": "message_stop"}]
    told = ""
    for event in events:
        data = json.dumps(event, ensure_ascii=framing.ascii_only)
        halves = any("\ud800" <= character <= "\udfff" for character in data)
        told += f"{framing.between}event: {event['type']}\ndata: {json.dumps(event) if halves else data}\n\n"
    return told.replace("\n", framing.newline).encode()


def through(patterns: Sequence[str], action: str, data: bytes, sizes: Sequence[int]) -> bytes:
    reply, frames = ReplyStream(messages, opened([guardrail((each,), action) for each in patterns])), sse.Events()
    out = b"".join(reply.feed(frames.feed(packet)) for packet in packets(data, sizes))
    return out + reply.feed(frames.finish()) + reply.finish() + reply.ending()


def read(got: bytes) -> list[Any]:
    """What clients put together: the text or the arguments of each block."""
    found: dict[int, str] = {}
    kinds: dict[int, str] = {}
    for event in events_of(got):
        if event["type"] == "content_block_start":
            assert event["index"] == len(found)
            block = event["content_block"]
            kinds[event["index"]] = block["type"]
            found[event["index"]] = block.get("text", block.get("thinking", ""))
        elif event["type"] == "content_block_delta":
            found[event["index"]] += event["delta"][KINDS[kinds[event["index"]]][2]]
    return [json.loads(text) if kinds[index] == "tool_use" else joined(text) for index, text in found.items()]


def said(document: dict[str, Any]) -> list[Any]:
    return [block.get("input", block.get("text", block.get("thinking"))) for block in document["content"]]


@EXAMPLES
@given(replies, rulesets, framings)
def test_one_rule_after_the_other(blocks: list[Spoken], patterns: tuple[str, ...], framing: Framing) -> None:
    exact = [pattern.replace("$", r"\Z") for pattern in patterns]  # to Python's engine `$` is before a last \n, too
    expected = [
        in_values(exact, json.loads(each.text)) if each.kind == "tool_use" else substituted(exact, each.text)
        for each in blocks
    ]
    assert read(through(patterns, "redact", stream(blocks, framing), framing.packets)) == expected
    document = jsondoc.decode(json.dumps({"type": "message", "content": [each.block() for each in blocks]}).encode())
    edit_reply(messages, opened([guardrail((each,), "redact") for each in patterns]), document)
    assert said(json.loads(jsondoc.encode(document))) == expected


@EXAMPLES
@given(replies, st.sampled_from(PATTERNS), framings)
def test_a_stream_that_is_stopped_is_whole(blocks: list[Spoken], pattern: str, framing: Framing) -> None:
    """Every block that the client sees begins once and stops once, and the message ends."""
    data = stream(blocks, framing)
    for action in ("block", "finish"):
        events = events_of(through([pattern], action, data, framing.packets))
        for kind in ("content_block_start", "content_block_stop"):
            indexes = [event["index"] for event in events if event["type"] == kind]
            assert indexes == list(range(len(indexes)))
        types = [event["type"] for event in events]
        assert types.count("content_block_start") == types.count("content_block_stop")
        assert [kind for kind in types if kind.startswith("message_")] == [
            "message_start",
            "message_delta",
            "message_stop",
        ]


@EXAMPLES
@given(replies, framings)
def test_what_no_rule_touches_is_read_as_it_came(blocks: list[Spoken], framing: Framing) -> None:
    # Halves of a character, and of an escape, are put together.
    letters = [Spoken(each.kind, tuple(each.text), each.at_once) for each in blocks if each.kind != "tool_use"]
    data = stream(letters, framing)
    assert through(["ZZZ[0-9]"], "redact", data, framing.packets) == data
