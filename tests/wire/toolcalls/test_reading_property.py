"""For every cut of a reply into deltas the pieces are the same; arguments that ended are JSON; no text gets lost."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.text import literals
from sidecar.text.scrubber import paired
from sidecar.wire.toolcalls import named, reading, tape
from sidecar.wire.toolcalls.dialects import DIALECTS
from sidecar.wire.toolcalls.pieces import joined
from sidecar.wire.toolcalls.reading import Argued, Begun, Ended, Piece, Reader, Said

from ..fuzz import examples
from .envelopes import REPLIES, TEXTS, TOOLS

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
    "   ",
    "\r\n",
    "[CALL_ID]",
    "<|constrain|>json",
    '"arguments":""',
    '{"name":"find","arguments":{}},',
    "```tool_call\n",
)
LISTED = '{"name":"find","arguments":{}}'
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


def pieces_of(dialect: str, texts: list[str], *, cut: bool = False, **more: Any) -> list[Piece]:
    reader = Reader(DIALECTS[dialect], TOOLS, **more)
    pieces = [piece for text in texts for piece in reader.feed(text)]
    return joined([*pieces, *reader.finish(cut=cut)])


def check(dialect: str, text: str, places: list[int], *, cut: bool, **more: Any) -> None:
    whole = pieces_of(dialect, [text], cut=cut, **more)
    ends = sorted({0, len(text), *(place for place in places if place < len(text))})
    assert pieces_of(dialect, list(text), cut=cut, **more) == whole
    assert pieces_of(dialect, [text[at:to] for at, to in pairwise(ends)], cut=cut, **more) == whole
    arguments: dict[int, str] = {}
    for piece in whole:
        match piece:
            case Begun(name=name):
                assert name in TOOLS
            case Argued(index=index, text=part):
                arguments[index] = arguments.get(index, "") + part
            case Ended(index=index):
                assert isinstance(json.loads(arguments[index]), dict)
            case _:
                pass
    if dialect != "harmony" and not any(isinstance(piece, Begun) for piece in whole):
        assert "".join(piece.text for piece in whole if isinstance(piece, Said)) == paired(text)


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(100)
@given(text=replies, places=st.lists(st.integers(0, 400), max_size=4), cut=st.booleans(), in_thoughts=st.booleans())
@example(text="``{a``[TOOL_CALLS]<|end|>x", places=[], cut=False, in_thoughts=False)
@example(text="<function=find><parameter=q> \ude00x</parameter>", places=[], cut=False, in_thoughts=False)
@example(text=";\ude00{x\ud83d\ude00a", places=[], cut=False, in_thoughts=False)
@example(text=f"[TOOL_CALLS][{LISTED},{LISTED}]", places=[], cut=False, in_thoughts=False)
@example(text=f"a{LISTED}{' ' * 1001}x", places=[], cut=False, in_thoughts=False)
def test_cuts_change_nothing(dialect: str, text: str, places: list[int], cut: bool, in_thoughts: bool) -> None:
    check(dialect, text, places, cut=cut, in_thoughts=in_thoughts)


BOUNDS: dict[str, tuple[Any, str, list[int]]] = {
    "held": (tape, "MAX_HELD", [8, 20, 40, 80, 200]),
    "space": (tape, "MAX_SPACE", [1, 2, 5]),
    "parameter": (named, "MAX_HELD", [2, 8, 40]),
    "name": (named, "MAX_NAME", [3, 8]),
    "header": (named, "MAX_HEADER", [10, 40]),
    "label": (reading, "MAX_LABEL", [2]),
    "ticks": (reading, "MAX_TICKS", [4]),
    "word": (literals, "MAX_WORD", [3, 8]),
    "depth": (literals, "MAX_DEPTH", [2, 4]),
    "keys": (literals, "MAX_KEYS", [1, 3]),
}


@contextmanager
def bounded(sizes: Mapping[str, int]) -> Iterator[None]:
    """Bounds that are soon met: what happens at them is then seen in texts of a few words."""
    with pytest.MonkeyPatch.context() as patch:
        for bound, size in sizes.items():
            module, name, _ = BOUNDS[bound]
            patch.setattr(module, name, size)
        yield


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(100)
@given(
    text=replies,
    places=st.lists(st.integers(0, 400), max_size=4),
    cut=st.booleans(),
    sizes=st.fixed_dictionaries({}, optional={bound: st.sampled_from(sizes) for bound, (*_, sizes) in BOUNDS.items()}),
)
@example(text=f"a{LISTED}  x", places=[], cut=False, sizes={"space": 1})
@example(text=f"<|python_tag|><tool_call><tool_call>{LISTED}", places=[], cut=False, sizes={"held": 20})
@example(text=f"<|python_tag|><|python_tag|>[{LISTED}]", places=[], cut=False, sizes={"held": 20})
@example(text='````json\n{"tool":"{find","arguments":{}}\n````\nok', places=[], cut=False, sizes={"held": 8})
def test_nor_do_they_at_the_bounds(
    dialect: str, text: str, places: list[int], cut: bool, sizes: dict[str, int]
) -> None:
    with bounded(sizes):
        check(dialect, text, places, cut=cut)


WORDS = st.text(alphabet="abc .,\n(){}", max_size=30).map(lambda text: f"A{text}z")


@examples(100)
@given(before=WORDS, behind=WORDS, number=st.integers(0, 10_000))
def test_text_around_a_call_is_kept(before: str, behind: str, number: int) -> None:
    in_tags = [reply for reply in REPLIES.values() if not reply.said and reply.text.endswith("</tool_call>")]
    reply = in_tags[number % len(in_tags)]
    pieces = pieces_of(reply.dialect, [before, reply.text, behind])
    assert [piece for piece in pieces if isinstance(piece, Ended)] == [Ended(at) for at in range(len(reply.calls))]
    said = "".join(piece.text for piece in pieces if isinstance(piece, Said))
    assert said[: len(before)] == before
    assert said[len(before) :].lstrip() == behind
