"""For every cut of a reply into deltas the pieces are the same; arguments that ended are JSON; no text gets lost."""

import json
import os
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.text.scrubber import paired
from sidecar.wire.toolcalls.dialects import DIALECTS
from sidecar.wire.toolcalls.pieces import joined
from sidecar.wire.toolcalls.reading import Argued, Begun, Ended, Piece, Reader, Said

from .envelopes import REPLIES, TEXTS, TOOLS

MANY = settings(max_examples=50_000 if os.environ.get("FUZZ") else 100, deadline=None)

FRAGMENTS = (
    *"{}[],:\"'`\n \\;x<>",
    "```",
    "```json\n",
    "````\n",
    "<tool_call>",
    "</tool_call>",
    '"tool"',
    '"find"',
    '"arguments"',
    '{"tool":"find","arguments":{',
    '{"arguments":{"a":1},',
    '"tool":"find"}',
    '"q":1',
    '"q":"a',
    "}}",
    '"name":"nope"',
    "<think>",
    "</think>",
    "<function=find>",
    "<parameter=q>",
    "</parameter>",
    "</function>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[THINK]",
    "[/THINK]",
    "find",
    "nope",
    "<|channel|>",
    "<|message|>",
    "<|start|>",
    "<|end|>",
    "<|call|>",
    "analysis",
    " to=functions.find",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    "\\x41",
    "\ud83d",
    "\ude00",
    "True",
    "NaN",
    "é",
    "a" * 50,
    " " * 1001,
)
CORPUS = (*(reply.text for reply in REPLIES.values()), *TEXTS.values())


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 8))
        text = text[:at] + draw(st.sampled_from(("", *FRAGMENTS))) + text[at + gone :]
    return text


replies = st.one_of(
    mutated(),
    st.tuples(mutated(), mutated()).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join),
    st.text(max_size=40),
)


def pieces_of(dialect: str, texts: list[str], *, cut: bool = False) -> list[Piece]:
    reader = Reader(DIALECTS[dialect], TOOLS)
    pieces = [piece for text in texts for piece in reader.feed(text)]
    return joined([*pieces, *reader.finish(cut=cut)])


@pytest.mark.parametrize("dialect", DIALECTS)
@MANY
@given(text=replies, places=st.lists(st.integers(0, 400), max_size=4), cut=st.booleans())
@example(text="``{a``[TOOL_CALLS]<|end|>x", places=[], cut=False)
@example(text="<function=find><parameter=q> \ude00x</parameter>", places=[], cut=False)
@example(text=";\ude00{x\ud83d\ude00a", places=[], cut=False)
@example(text='[TOOL_CALLS][{"name":"find","arguments":{}},{"name":"get","arguments":{}}]', places=[], cut=False)
def test_cuts_change_nothing(dialect: str, text: str, places: list[int], cut: bool) -> None:
    whole = pieces_of(dialect, [text], cut=cut)
    ends = sorted({0, len(text), *(place for place in places if place < len(text))})
    assert pieces_of(dialect, list(text), cut=cut) == whole
    assert pieces_of(dialect, [text[at:to] for at, to in pairwise(ends)], cut=cut) == whole
    arguments: dict[int, str] = {}
    for piece in whole:
        match piece:
            case Argued(index=index, text=more):
                arguments[index] = arguments.get(index, "") + more
            case Ended(index=index):
                assert isinstance(json.loads(arguments[index]), dict)
            case _:
                pass
    if dialect != "harmony" and not any(isinstance(piece, Begun) for piece in whole):
        assert "".join(piece.text for piece in whole if isinstance(piece, Said)) == paired(text)


WORDS = st.text(alphabet="abc .,\n(){}", max_size=30).map(lambda text: f"A{text}z")


@MANY
@given(before=WORDS, behind=WORDS, number=st.integers(0, 10_000))
def test_text_around_a_call_is_kept(before: str, behind: str, number: int) -> None:
    in_tags = [reply for reply in REPLIES.values() if not reply.said and reply.text.endswith("</tool_call>")]
    reply = in_tags[number % len(in_tags)]
    pieces = pieces_of(reply.dialect, [before, reply.text, behind])
    assert [piece for piece in pieces if isinstance(piece, Ended)] == [Ended(at) for at in range(len(reply.calls))]
    said = "".join(piece.text for piece in pieces if isinstance(piece, Said))
    assert said[: len(before)] == before
    assert said[len(before) :].lstrip() == behind
