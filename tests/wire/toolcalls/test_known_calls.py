"""Calls that are known are written in every way that models write them, cut anywhere, and read back: the same calls."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.wire.toolcalls.bridge import Bridge
from sidecar.wire.toolcalls.writing import WRITINGS, Call

from ..fuzz import examples
from .talk import ASKED, completion, cut, gathered, read, stream, through

Spell = Callable[[Any], str]

# What strings in arguments are made of: all that could end them, their envelope or what is around it.
NASTY = (
    *("{", "}", "[", "]", '"', "'", "\\", "\n", "\r\n", "\t", "\x00", ",", ":", " ", "a", "é", "😀", "\u2028", "```"),
    *("</tool_call>", "<tool_call>", "</function>", "</parameter>", "<think>", "</think>", "[TOOL_CALLS]", "[ARGS]"),
    *(
        "<|call|>",
        "<|end|>",
        "<|channel|>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
        "; ",
        "\\u0041",
        '{"tool": "get"',
    ),
)
STRINGS = st.lists(st.sampled_from(NASTY), max_size=6).map("".join)
NUMBERS = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(
    st.builds(Call, st.sampled_from(("find", "get")), st.dictionaries(STRINGS, VALUES, max_size=3)),
    min_size=1,
    max_size=3,
)
# Nothing of these begins anything.
PROSE = st.text(alphabet="ab .,\n(){}", max_size=20).map(lambda text: f"A{text}z")


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_ascii(value: Any) -> str:
    return json.dumps(value)


def on_lines(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\r\n")


def untidy(value: Any) -> str:
    """With a comma too many."""
    return json.dumps(value, separators=(" ,", " : "))[:-1] + (", }" if value else "}")


SPELLINGS: tuple[Spell, ...] = (as_json, in_ascii, on_lines, untidy, repr)


def envelope(call: Call, spell: Spell) -> str:
    return spell({"tool": call.name, "arguments": call.arguments})


def openai(call: Call, spell: Spell) -> str:
    return spell({"id": "c", "type": "function", "function": {"name": call.name, "arguments": call.arguments}})


def arguments_first(call: Call, spell: Spell) -> str:
    return spell({"parameters": call.arguments, "name": call.name})


def encoded_twice(call: Call, spell: Spell) -> str:
    return spell({"name": call.name, "arguments": spell(call.arguments)})


def with_more_behind(call: Call, spell: Spell) -> str:
    return spell({"function": call.name, "input": call.arguments, "why": {"tool": "get", "arguments": {"no": [1]}}})


ENVELOPES = (envelope, openai, arguments_first, encoded_twice, with_more_behind)


def bare(texts: Sequence[str]) -> str:
    return "\n".join(texts)


def fences(texts: Sequence[str]) -> str:
    return "\n".join(f"```json\n{text}\n```" for text in texts)


def one_fence(texts: Sequence[str]) -> str:
    return "````tool_call\r\n" + "\r\n".join(texts) + "\r\n````"


def tags(texts: Sequence[str]) -> str:
    return "".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def one_list(texts: Sequence[str]) -> str:
    return f"[\n {', '.join(texts)}\n]"


def list_in_fence_in_tag(texts: Sequence[str]) -> str:
    return f"<tool_calls>```\n[{','.join(texts)}]\n```</tool_calls>"


AROUND = (bare, fences, one_fence, tags, one_list, list_in_fence_in_tag)


class Written(NamedTuple):
    dialect: str
    text: str
    calls: list[Call]
    before: str
    behind: str


@st.composite
def written(draw: st.DrawFn) -> Written:
    dialect, calls = draw(st.sampled_from(sorted(WRITINGS))), draw(CALLS)
    if draw(st.integers(0, 4)):
        spell = draw(st.sampled_from(SPELLINGS))
        text = draw(st.sampled_from(AROUND))([draw(st.sampled_from(ENVELOPES))(call, spell) for call in calls])
    else:
        text = WRITINGS[dialect].called(calls)
    before, behind = draw(st.just("") | PROSE), draw(st.just("") | PROSE)
    apart = "\n" if text.endswith("`") else ""  # else it would be a fence's label
    return Written(dialect, before + text + apart + behind, calls, before, behind)


@given(written(), st.lists(st.integers(1, 30), min_size=1, max_size=6))
@example(Written("hermes", 'A[\n {"tool": "get", "arguments": {}}\n]z', [Call("get", {})], "A", "z"), [1])
@examples(150)
def test_known_calls_come_back(made: Written, sizes: list[int]) -> None:
    content, calls, end = read(Bridge(ASKED, made.dialect).reply(completion(made.text)))
    assert [Call(name, json.loads(arguments)) for _, name, arguments in calls] == made.calls
    assert end == "tool_calls"
    assert content.startswith(made.before)
    assert content.removeprefix(made.before).lstrip() == made.behind
    for pieces in (list(made.text), cut(made.text, sizes)):
        assert gathered(through(Bridge(ASKED, made.dialect), stream(pieces))) == (content, calls, end)


@given(written(), st.lists(st.integers(1, 30), min_size=1, max_size=6))
@examples(150)
def test_under_other_names_they_are_text(made: Written, sizes: list[int]) -> None:
    """To the byte: the reply stays the same document, and so do the texts of a stream, put together."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("findings", "ge")]
    document = completion(made.text)
    between = Bridge({**ASKED, "tools": tools}, made.dialect)
    if made.dialect == "harmony" and "<|" in made.text:
        return  # What stands between its messages is in no text.
    assert between.reply(document) is document
    streamed = through(Bridge({**ASKED, "tools": tools}, made.dialect), stream(cut(made.text, sizes)))
    assert gathered(streamed) == (made.text, [], "stop")


@given(written(), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.booleans())
@examples(100)
def test_native_calls_are_never_overridden(made: Written, sizes: list[int], first: bool) -> None:
    own = {"id": "own", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    document = completion(made.text, reason="tool_calls", tool_calls=[own])
    assert Bridge(ASKED, made.dialect).reply(document) is document
    if first:
        head, *said, last, usage = stream(cut(made.text, sizes), "tool_calls")
        head["choices"][0]["delta"]["tool_calls"] = [{"index": 0, **own}]
        out = gathered(through(Bridge(ASKED, made.dialect), [head, *said, last, usage]))
        assert out == (made.text, [("own", "get", "{}")], "tool_calls")
