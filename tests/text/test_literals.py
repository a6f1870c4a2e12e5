import json
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.text.literals import MAX_DEPTH, MAX_KEYS, Literals, whole

MANY = settings(max_examples=50_000 if os.environ.get("FUZZ") else 400, deadline=None)

SAME_IN_BOTH = {
    '{"a": 1}': '{"a":1}',
    " [ ] ": "[]",
    "{'q': 'it\\'s \"x\"', 'b': True, 'c': False, 'z': None,}": '{"q":"it\'s \\"x\\"","b":true,"c":false,"z":null}',
    '"\\u00e9 é \\n \\/"': '"\\u00e9 é \\n \\/"',
    '"\\x41 \\d \\ud83d\\ude00 \\ud83d \\ude00 \\u12"': '"\\u0041 \\\\d \\ud83d\\ude00 \ufffd \ufffd \\\\u12"',
    "1.10": "1.10",
    "-0": "-0",
    "9" * 900: "9" * 900,
    '{"a":1,"a":{"b":[2],"c":3},"\\u0061":4,"c":{"a":5}}': '{"a":1,"c":{"a":5}}',
    '"a\tb\x00"': '"a\\tb\\u0000"',
}

MENDED = {
    '{"a": NaN, b: -Infinity, "c": 0x1F}': '{"a":"NaN","b":"-Infinity","c":"0x1F"}',
    '{"d": 01, "e": a b}': '{"d":"01","e":"a b"}',
    '{"a": [1, {"b": 2}}': '{"a":[1,{"b":2}]}',
    '{"a": [1, 2}': '{"a":[1,2]}',
    "[1,, 2,]": "[1,2]",
    '{"q": "say "hi" now"}': '{"q":"say \\"hi\\" now"}',
    '{"a": "x"\n"b": 2}': '{"a":"x","b":2}',
    '{"a": "x\ny"}': '{"a":"x\\ny"}',
    '{"u": http://x/y?z}': '{"u":"http://x/y?z"}',
}

NONE = (
    "",
    '{"a": [1, {"b": 2}',
    '"x',
    '{"a"}',
    '{"a":}',
    '{"a":,}',
    "{:1}",
    "{?: 1}",
    "]",
    '{"a":1]',
    "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    '{"' + "k" * 1001 + '":1}',
    "[" + "9" * 1001 + "]",
    "{" + ",".join(f'"{n}":0' for n in range(MAX_KEYS + 1)) + "}",
    '{"a":1} x',
)


@pytest.mark.parametrize(("text", "made"), SAME_IN_BOTH.items())
def test_literals(text: str, made: str) -> None:
    assert whole(text) == made
    assert whole(text, strict=True) == made


@pytest.mark.parametrize(("text", "made"), MENDED.items())
def test_what_can_be_mended_is_not_strict(text: str, made: str) -> None:
    assert whole(text) == made
    assert whole(text, strict=True) is None


@pytest.mark.parametrize("text", NONE)
def test_what_is_none(text: str) -> None:
    assert whole(text) is None
    assert whole(text, strict=True) is None


def test_deepest() -> None:
    assert whole("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None


def test_what_is_open_at_the_end_is_closed_by_finish() -> None:
    reader = Literals()
    assert reader.feed('{"a": [1, {"b": "x"') == '{"a":[1,{"b":"x'
    assert not reader.done
    assert reader.finish() == '"}]}'
    assert reader.done


def test_a_string_is_not_closed() -> None:
    reader = Literals()
    reader.feed('{"a": "x')
    reader.finish()
    assert reader.broken
    assert not reader.done


def test_stops() -> None:
    reader = Literals(stops=("</tool_call>",))
    assert reader.feed('{"a": ["x</tool_call>"</tool_') == '{"a":["x</tool_call>'
    assert reader.feed("call> b") == '"]}'
    assert reader.rest == "</tool_call> b"


@pytest.mark.parametrize("word", ["12", "yes <b> x", "</tool_calls>"])
def test_a_bare_word_ends_before_a_stop(word: str) -> None:
    text = f'{{"a": [{word}</tool_call> b'
    whole_, cut = Literals(stops=("</tool_call>",)), Literals(stops=("</tool_call>",))
    made = whole_.feed(text)
    assert json.loads(made) == {"a": [12 if word == "12" else word]}
    assert "".join(map(cut.feed, text)) == made
    assert whole_.rest == cut.rest == "</tool_call> b"


def test_a_stop_is_no_value() -> None:
    reader = Literals(stops=("</tool_call>",))
    reader.feed('{"a": </tool_call>')
    assert reader.broken


def test_text_behind_is_left() -> None:
    reader = Literals()
    assert reader.feed('{"a":1}} x') == '{"a":1}'
    assert reader.feed("y") == ""
    assert reader.rest == "} xy"


def test_a_string_comes_out_while_it_arrives() -> None:
    reader = Literals()
    assert reader.feed('["lorem ') == '["lorem '
    assert reader.feed("ipsum\\") == "ipsum"
    assert reader.feed("n") == "\\n"


FRAGMENTS = (
    *"{}[],:\"'\\\n -.",
    '"a":',
    "'b': ",
    "True",
    "None",
    "NaN",
    "1",
    "1e5",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "x",
    "é",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


def fed(texts: list[str], *, strict: bool) -> tuple[str, bool, bool]:
    reader = Literals(strict=strict)
    made = "".join(map(reader.feed, texts)) + reader.finish()
    return made, reader.done, reader.broken


@MANY
@given(parts=st.lists(st.sampled_from(FRAGMENTS), max_size=20), strict=st.booleans())
@example(parts=["{", '"a":', '"', '"', "\n", '"', "}"], strict=False)
def test_garbage_becomes_json_or_nothing(parts: list[str], strict: bool) -> None:
    text = "".join(parts)
    made, done, broken = fed([text], strict=strict)
    assert done is not broken
    assert fed(list(text), strict=strict) == (made, done, broken)
    assert fed(parts, strict=strict) == (made, done, broken)
    if done:
        json.loads(made)


@MANY
@given(value=VALUES, indent=st.none() | st.integers(0, 2), ascii_only=st.booleans())
def test_json_stays_what_it_is(value: object, indent: int | None, ascii_only: bool) -> None:
    for strict in (False, True):
        made = whole(json.dumps(value, indent=indent, ensure_ascii=ascii_only), strict=strict)
        assert made is not None
        assert json.loads(made) == value


@MANY
@given(value=VALUES)
def test_python_means_what_json_means(value: object) -> None:
    made = whole(repr(value))
    assert made is not None
    # Python spells some characters as \Uxxxxxxxx, which JSON has not: those are read as they stand.
    if "\\U" not in repr(value):
        assert json.loads(made) == value
