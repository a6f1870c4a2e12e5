"""JSON out of replies."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.text.extract import MAX_DEPTH, Found, Missed, NotJson, extract, loads
from sidecar.text.mending import MAX_GUESSED, mended
from sidecar.text.schemas import Checker, SchemaFault

CODE = Checker.of(
    {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"], "additionalProperties": False}
).faults


def anything(value: Any) -> Sequence[SchemaFault]:
    return ()


def any_object(value: Any) -> Sequence[SchemaFault]:
    return () if isinstance(value, dict) else (SchemaFault("", "not an object"),)


def found(said: str, judge: Callable[[Any], Sequence[SchemaFault]] = CODE) -> Found:
    outcome = extract(said, judge)
    assert isinstance(outcome, Found), outcome
    return outcome


def missed(said: str, judge: Callable[[Any], Sequence[SchemaFault]] = CODE) -> SchemaFault:
    outcome = extract(said, judge)
    assert isinstance(outcome, Missed), outcome
    return outcome.faults[0]


FENCED = '{"code":"```python\\nx = 1\\n```"}'


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (FENCED, "whole"),
        (f" \n{FENCED}\n", "whole"),
        (f"\ufeff{FENCED}", "whole"),
        (f"```json\n{FENCED}\n```", "fenced"),
        (f"```json\n{FENCED}\n```\nnote: use }} here", "fenced"),
        (f"````json\n{FENCED}\n````", "fenced"),
        (f"~~~\n{FENCED}\n~~~", "fenced"),
        (f"Here it is:\n\n  ``` any label at all\n{FENCED}\n   ```\nBye.", "fenced"),
        (f"```\nnot this\n```\nbut\n```\n{FENCED}\n```", "fenced"),
        (f"```json {FENCED} ```", "inside"),
        (f"```json\n{FENCED}", "inside"),
        (f"Sure! {FENCED} Anything else?", "inside"),
        (f"For {{}} or [1]: {FENCED}", "inside"),
        (f'The schema {{"type": "object"}} gives {FENCED}', "inside"),
        (f"{FENCED} and again {FENCED}", "inside"),
        (f"{FENCED} // use {{ with care", "inside"),
        (f'<think>{{"code": "no"}}</think>\n{FENCED}', "whole"),
        (json.dumps(FENCED), "inside"),
    ],
)
def test_where_json_is_found(said: str, how: str) -> None:
    assert found(said) == Found({"code": "```python\nx = 1\n```"}, FENCED, how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("42", "42"),
        ("```\n-0.50\n```", "-0.50"),
        ("```json\ntrue\n```", "true"),
        ('```\n"a"\n```', '"a"'),
        ("They are [1, 2.50, 1e5].", "[1, 2.50, 1e5]"),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_lists_and_scalars_where_they_are_wanted(said: str, text: str) -> None:
    assert found(said, anything).text == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('{"code": "x",}', '{"code":"x"}'),
        ("{'code': 'x'}", '{"code":"x"}'),
        ("{'code': 'it\\'s \"so\"'}", '{"code":"it\'s \\"so\\""}'),
        ('{code: "x"}', '{"code":"x"}'),
        ('{"code": "x" /* why */} ', '{"code":"x"}'),
        ('{\n  // first\n  "code": "x", # last\n}', '{"code":"x"}'),
        ('{"code": "a\nb\tc"}', '{"code":"a\\nb\\tc"}'),
        ('{"code": "print("hi")"}', '{"code":"print(\\"hi\\")"}'),
        ('{"code" "x"}', '{"code":"x"}'),
        ("{“code”: “x”}", '{"code":"x"}'),
        ("```\n{'code': 'x'}\n```", '{"code":"x"}'),
        ("Here: {'code': 'x'}.", '{"code":"x"}'),
        ('```json\n{"code":"a\n```py\nx\n```\nb"}\n```', '{"code":"a\\n```py\\nx\\n```\\nb"}'),
    ],
)
def test_what_is_nearly_json(said: str, text: str) -> None:
    outcome = found(said)
    assert (outcome.text, outcome.how) == (text, "mended")
    assert json.loads(text) == outcome.value


def test_numbers_of_mended_json_keep_their_digits() -> None:
    assert found("{'a': 1.50, 'b': [1e5, 12345678901234567890123], 'c': None, 'd': True,}", anything).text == (
        '{"a":1.50,"b":[1e5,12345678901234567890123],"c":null,"d":true}'
    )
    assert found('{"a": 1.50 "b": -1 "c": "d "e" f"}', anything).text == '{"a":1.50,"b":-1,"c":"d \\"e\\" f"}'


@pytest.mark.parametrize(
    "said",
    [
        '{"code":"abc',
        '{"code":"abc"',
        '{"a": {"code": "x"}, "b": "un',
        "{'a': {\"code\": \"x\"}, 'b': 'un",
        '[{"code": "x"}, {"code": "y"',
        '```json\n{"a": {"code": "x"}, "b',
        '{"code": ["x"}',
        '{"code": x}',
        '{"code": NaN}',
        '{"code": undefined}',
        '{"code": "x" "y"}',
        '{"code": "x", "code": "y"}',
        "{'code': 'x', 'code': 'y'}",
        '{"code": "x", "y"}',
        '{"code": "\\x41"}',
        "{" + "'a': 1, " * MAX_GUESSED + '"b" c}',
        '{"result": {"code": "x"}}',
        '[{"code": "x"}]',
        'Either {"code": "x"} or {"code": "y"}.',
        '```\n{"code": "x"}\n```\nor\n```\n{"code": "y"}\n```',
        "no JSON at all",
        "",
        "null",
    ],
)
def test_what_is_not_taken_for_an_answer(said: str) -> None:
    missed(said)


@pytest.mark.parametrize(
    "said", ['{"a": 1 2}', '{"a": 1,000}', '{"a": 0x10}', '{"a": 01}', '{"a": (1, 2)}', '{"a": +1}']
)
def test_numbers_are_not_guessed(said: str) -> None:
    missed(said, anything)


@pytest.mark.parametrize(
    ("said", "pointer", "message"),
    [
        ('{"code": 1}', "/code", 'not of type "string"'),
        ('```\n{"code": 1}\n```', "/code", 'not of type "string"'),
        ("{'code': 1}", "/code", 'not of type "string"'),
        ('{"code": "x" "y"}', "", "not JSON: Expecting ',' delimiter (character 13)"),
        ('Here:\n```\n{"code"}\n```', "", "in its block is not JSON"),
        ('{"code":"x","code":"y"}', "", "same key twice"),
        ('{"code": NaN}', "", "NaN is not JSON"),
        ('{"code": "x"} or {"code": "y"}', "", "several"),
        ("Sorry.", "", "holds no JSON"),
    ],
)
def test_what_is_said_of_a_miss(said: str, pointer: str, message: str) -> None:
    fault = missed(said)
    assert fault.pointer == pointer
    assert message in fault.message


def test_depth_is_bounded() -> None:
    for deep in (MAX_DEPTH + 2, 100_000):
        text = "[" * deep + "]" * deep
        assert "deeper" in missed(text, anything).message
        assert "JSON" in missed(f"so: {text}", anything).message
    assert found("[" * MAX_DEPTH + "]" * MAX_DEPTH, anything)


@pytest.mark.parametrize("text", ["{", "NaN", "-Infinity", '{"a":1,"a":1}', "1 2", "\ufeff1", '"\x00"', "1" * 5000])
def test_strict_json(text: str) -> None:
    with pytest.raises((NotJson, ValueError)):
        loads(text)


@pytest.mark.parametrize(
    "part",
    ["{", "[", '{"a":', '{"a', "```\n", '{"a":1} ', "```a\n", "[/*", "{'a':1,", '[{"a":1}, x ', '"', "<think>", "\\"],
)
def test_a_long_text_of_traps_comes_to_an_end(part: str) -> None:
    """Were time to grow with the square of the text, this would take hours."""
    assert isinstance(extract(part * (1_000_000 // len(part)), anything), Found | Missed)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), json_values, max_size=5)
spaced = st.sampled_from([None, 1, 4])
prose = st.text(alphabet="abc .,:;'\"`\n)(}]", max_size=30)


@given(objects, spaced, st.booleans())
def test_any_object_is_found_as_it_was_written(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert found(text, any_object).text == text


@given(objects, spaced, st.text(alphabet="json 1", max_size=6), st.integers(3, 6), prose, prose)
def test_any_object_is_found_in_any_fence(
    value: Any, indent: int | None, label: str, length: int, before: str, after: str
) -> None:
    text = json.dumps(value, indent=indent)
    fence = "`" * length
    before, after = before.replace("`", ""), after.replace("`", "")
    assert found(f"{before}\n{fence}{label}\n{text}\n{fence}\n{after}", any_object).text == text


@given(objects, spaced, prose, prose)
def test_any_object_is_found_in_prose(value: Any, indent: int | None, before: str, after: str) -> None:
    text = json.dumps(value, indent=indent)
    before, after = before.replace("`", ""), after.replace("`", "")
    assert found(f"{before} {text} {after}", any_object).text == text


@given(objects, st.data())
@example({"": "{"}, None)
@example({"a": '"}'}, None)
def test_what_is_cut_is_never_completed(value: Any, data: Any) -> None:
    text = json.dumps(value)
    cuts = range(1, len(text)) if data is None else [data.draw(st.integers(1, len(text) - 1))]
    for cut in cuts:
        missed(text[:cut], any_object)


def scalars(value: Any) -> list[Any]:
    match value:
        case dict():
            return [part for key in value for part in (key, *scalars(value[key]))]
        case list():
            return [part for item in value for part in scalars(item)]
        case msgspec.Raw():
            return [float(bytes(value))]
    return [value]


@given(objects)
def test_python_literals_mean_what_they_say(value: Any) -> None:
    text = mended(repr(value))
    if text is not None:
        assert scalars(loads(text)) == scalars(value)


TEXTS = st.text(alphabet="{}[]\"'`:, \n\\/*#ab1.-eTrue", max_size=40)


@given(st.text(alphabet="{}[]\"'`:, ab12-", max_size=40), st.sampled_from(["{%s}", "[%s]", '{"a": %s}', '{"a": "%s"}']))
def test_mending_keeps_letters_digits_and_brackets_in_their_order(inner: str, form: str) -> None:
    written = mended(form % inner)
    if written is not None:
        json.loads(written)
        assert _marks(written) == _marks(form % inner)


def _marks(text: str) -> str:
    return re.sub(r"[^a-z0-9{}\[\]-]", "", text)


@given(TEXTS)
def test_any_text_is_judged(said: str) -> None:
    outcome = extract(said, anything)
    assert isinstance(outcome, Missed) or loads(outcome.text) == outcome.value
