"""Law 2: however a reply is cut into deltas, frames and packets, the client reads the same text, and no match of it.

The provider's text is known, so what the client must read is computed apart from the product: one substitution over
the whole text for each rule, with the standard library's engine.
"""

import json
import os
import re
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sidecar.core.chain import Chain, Run, Step
from sidecar.core.decision import Mode
from sidecar.core.exchange import Exchange, Request
from sidecar.stages.guardrails import Guardrail, GuardrailConfig
from sidecar.wire import chat, jsondoc, sse
from sidecar.wire.stream import ReplyStream, edit_reply
from tests.cases.client import events

FUZZ = os.environ.get("FUZZ") == "1"
# Without the explanation phase: it multiplies the time a failure takes.
EXAMPLES = settings(
    max_examples=50_000 if FUZZ else 250,
    deadline=None,
    derandomize=not FUZZ,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

# Shapes that make holding back hard: open ends, optional middles, anchors, word ends, letters beyond ASCII and
# beyond the first plane. In all of them the first match is also the only one at its place for both engines.
PATTERNS = (
    "abc",
    "ab+c",
    "a(?:bc)?d",
    "sk-[a-c0-9]{4,8}",
    "[0-9]{3}-[0-9]{2}",
    r"\bcab\b",
    r"k[0-9]+",
    r"b0$",
    "é+n",
    "😀[ab]",
    "(?i)BaC",
    r"begin[^!]*!",
)
FRAGMENTS = ("sk-", "abc", "cab", "BAC", "begin", "123-", "12", "é", "én", "😀", "😀a", "k0", "b0", "ad", "abcd")
PLACEHOLDER = "#"

texts = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text('abck01-é😀 n!\n"\\', max_size=6)), max_size=10)
prose = texts.map("".join)


@dataclass(frozen=True, slots=True)
class Lane:
    """One text of a reply and the pieces it comes in."""

    choice: int
    field: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return whole("".join(self.pieces))

    @property
    def is_json(self) -> bool:
        return self.field == "arguments"


def whole(text: str) -> str:
    """Halves of surrogate pairs joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@st.composite
def pieces(draw: st.DrawFn, text: str) -> tuple[str, ...]:
    """The text in pieces, cut between any two UTF-16 units, as servers that count in those do."""
    units = text.encode("utf-16-le", "surrogatepass")
    size = len(units) // 2
    if draw(st.booleans()):
        places = list(range(size + 1))
    else:
        places = sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=8))})
    return tuple(units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass") for a, b in pairwise(places))


values = st.recursive(prose, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pq"), inner))
arguments = st.builds(
    lambda value, ascii_only: json.dumps({"p": value, "n": 1}, ensure_ascii=ascii_only), values, st.booleans()
)


@st.composite
def lanes(draw: st.DrawFn) -> list[Lane]:
    fields = draw(st.lists(st.sampled_from(["content", "reasoning_content", "arguments"]), min_size=1, unique=True))
    found = []
    for choice in range(draw(st.integers(1, 2))):
        for field in fields:
            text = draw(arguments if field == "arguments" else prose)
            found.append(Lane(choice, field, draw(pieces(text))))
    return found


@dataclass(frozen=True, slots=True)
class Framing:
    """How a stream is written: line ends, ASCII escapes, what stands between frames, and the size of packets."""

    newline: str
    ascii_only: bool
    between: str
    packets: tuple[int, ...]


framings = st.builds(
    Framing,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from(["", ": ping\n\n", "id: 7\n\n", "event: ping\nretry: 10\n\n"]),
    st.lists(st.integers(1, 40), min_size=1, max_size=5).map(tuple),
)
rulesets = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True).map(tuple)


# -- the provider's side


def delta(lane: Lane, piece: str) -> dict[str, Any]:
    if lane.is_json:
        return {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
    return {lane.field: piece}


def chunk(choice: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": choice, "delta": delta, "finish_reason": reason}], "x": 1.0}


def documents(spoken: Sequence[Lane], order: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The chunks of a reply; `order` says which lane speaks next, over and over."""
    waiting = [list(lane.pieces) for lane in spoken]
    turn = 0
    while any(waiting):
        index = order[turn % len(order)] % len(spoken)
        index = index if waiting[index] else next(i for i, left in enumerate(waiting) if left)
        yield chunk(spoken[index].choice, delta(spoken[index], waiting[index].pop(0)))
        turn += 1
    for choice in sorted({lane.choice for lane in spoken}):
        yield chunk(choice, {}, "stop")


def wire_bytes(chunks: Sequence[dict[str, Any]], framing: Framing) -> bytes:
    """The event stream. Lone halves of surrogate pairs can only be told as escapes."""
    text = ""
    for document in chunks:
        told = json.dumps(document, ensure_ascii=framing.ascii_only)
        if any("\ud800" <= character <= "\udfff" for character in told):
            told = json.dumps(document)
        text += f"{framing.between}data: {told}\n\n"
    return (text + "data: [DONE]\n\n").replace("\n", framing.newline).encode()


def packets(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    place = turn = 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        yield data[place : place + size]
        place, turn = place + size, turn + 1


# -- the sidecar


@lru_cache(maxsize=4096)
def guardrail(patterns: tuple[str, ...], action: str) -> Guardrail:
    own = [{"name": f"p{index}", "regex": regex} for index, regex in enumerate(patterns)]
    fields = {"name": "g", "patterns": own, "action": action, "replacement": PLACEHOLDER, "max_hold": 65536}
    return Guardrail.of(GuardrailConfig.model_validate(fields))


def opened(rules: Sequence[Guardrail]) -> Run:
    run = Chain.of(Step(rule, Mode.ENFORCE, 400) for rule in rules).open(Exchange("e", "chat"))
    at_once(run.request(Request({}, [])))
    return run


def at_once(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Runs a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


def through(rules: Sequence[Guardrail], data: bytes, sizes: Sequence[int]) -> str:
    """What a client gets of a stream, as text."""
    stream, frames = ReplyStream(chat, opened(rules)), sse.Events()
    out = b"".join(stream.feed(frames.feed(packet)) for packet in packets(data, sizes))
    out += stream.feed(frames.finish())
    return (out + stream.finish() + stream.ending()).decode()


def buffered(rules: Sequence[Guardrail], spoken: Sequence[Lane]) -> dict[tuple[int, str], str]:
    """The texts of the same reply when it is not streamed."""
    run = opened(rules)
    read: dict[tuple[int, str], str] = {}
    for lane in spoken:
        told = chunk(lane.choice, delta(lane, lane.text), "stop")
        told["choices"][0]["message"] = told["choices"][0].pop("delta")
        document = jsondoc.decode(json.dumps(told).encode())
        edit_reply(chat, run, document)
        read[lane.choice, lane.field] = joined([document], "message").get((lane.choice, lane.field), "")
    return read


# -- the client's side


def joined(chunks: Sequence[Any], side: str = "delta") -> dict[tuple[int, str], str]:
    """Every text of a reply by choice and field, put together as clients do."""
    read: dict[tuple[int, str], str] = {}
    for choice in (choice for document in chunks for choice in document["choices"]):
        for field, text in fields(choice[side]):
            key = (choice["index"], field)
            read[key] = read.get(key, "") + text
    return {key: whole(text) for key, text in read.items()}


def fields(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in said.items():
        if field == "tool_calls":
            yield from (("arguments", call["function"]["arguments"]) for call in value)
        else:
            yield field, value


def read_stream(got: str) -> tuple[list[Any], dict[tuple[int, str], str]]:
    """The chunks and texts of a stream, which must end with its terminator and hold nothing but JSON before."""
    told = [data for _, data in events(got) if data is not None]
    assert told.pop() == "[DONE]"
    chunks = [json.loads(data) for data in told]
    return chunks, joined(chunks)


def substituted(patterns: Sequence[str], text: str) -> str:
    """What one rule after the other leaves of a text."""
    for pattern in patterns:
        # `$` is the text's end alone, and not also before a last line end.
        text = re.sub(pattern.replace("$", r"\Z"), PLACEHOLDER, text, flags=re.ASCII)
    return text


def in_values(patterns: Sequence[str], value: Any) -> Any:
    match value:
        case str():
            return substituted(patterns, value)
        case list():
            return [in_values(patterns, inner) for inner in value]
        case dict():
            return {key: in_values(patterns, inner) for key, inner in value.items()}
    return value


# -- the law


@EXAMPLES
@given(lanes(), rulesets, framings, st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_one_rule_after_the_other(
    spoken: list[Lane], patterns: tuple[str, ...], framing: Framing, order: list[int]
) -> None:
    data = wire_bytes(list(documents(spoken, order)), framing)
    rules = [guardrail((pattern,), "redact") for pattern in patterns]
    got = through(rules, data, framing.packets)
    chunks, read = read_stream(got)
    for lane in spoken:
        text = read.get((lane.choice, lane.field), "")
        if lane.is_json:
            assert json.loads(text) == in_values(patterns, json.loads(lane.text))
        else:
            assert text == substituted(patterns, lane.text)
    ends = [c["choices"][0]["index"] for c in chunks if c["choices"][0]["finish_reason"] == "stop"]
    assert ends == sorted({lane.choice for lane in spoken})
    pings = len(list(documents(spoken, order))) if framing.between.startswith(": ping") else 0
    assert got.splitlines().count(": ping") == pings


@EXAMPLES
@given(lanes(), rulesets, framings, st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_many_patterns_at_once(
    spoken: list[Lane], patterns: tuple[str, ...], framing: Framing, order: list[int]
) -> None:
    rules = [guardrail(patterns, "redact")]
    data = wire_bytes(list(documents(spoken, order)), framing)
    _, read = read_stream(through(rules, data, framing.packets))
    expected = buffered(rules, spoken)
    assert {key: text for key, text in read.items() if text} == {key: text for key, text in expected.items() if text}


@EXAMPLES
@given(prose, st.sampled_from(PATTERNS), framings, st.data())
def test_a_block_lets_out_what_was_before(text: str, pattern: str, framing: Framing, data: st.DataObject) -> None:
    lane = Lane(0, "content", data.draw(pieces(text)))
    stream = wire_bytes(list(documents([lane], [0])), framing)
    chunks, read = read_stream(through([guardrail((pattern,), "block")], stream, framing.packets))
    found = re.search(pattern, lane.text, flags=re.ASCII)
    assert read.get((0, "content"), "") == (lane.text[: found.start()] if found else lane.text)
    assert chunks[-1]["choices"][0]["finish_reason"] == ("content_filter" if found else "stop")


@EXAMPLES
@given(st.lists(prose, min_size=1, max_size=2), framings, st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_what_no_rule_touches_keeps_its_bytes(told: list[str], framing: Framing, order: list[int]) -> None:
    spoken = [Lane(choice, "content", tuple(text)) for choice, text in enumerate(told)]
    data = wire_bytes(list(documents(spoken, order)), framing)
    assert through([guardrail(("ZZZ[0-9]",), "redact")], data, framing.packets) == data.decode()
