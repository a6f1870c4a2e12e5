"""The small JSON path of conditions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.stages.tools.path import parse

STORE = {"a": {"b": [1, {"c": "x"}], "c": "y"}, "a.b": "dot", "it's": "quote", "": "empty", "é": "wide", "a-b": 5}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [STORE]),
        ("$.a.b[0]", [1]),
        ("$.a.b[-1].c", ["x"]),
        ("$.a.b[2]", []),
        ("$.a.b.c", []),
        ("$['a.b']", ["dot"]),
        ('$["it\'s"]', ["quote"]),
        (r"$['it\'s']", ["quote"]),
        ("$['']", ["empty"]),
        ("$.é", ["wide"]),
        ("$.a-b", [5]),
        ("$..c", ["y", "x"]),
        ("$.a.b[*]", [1, {"c": "x"}]),
        ("$.a.b.*", [1, {"c": "x"}]),
        ("$..b[ 0 ]", [1]),
        ("$..[1].c", ["x"]),
        ("$.a..c", ["y", "x"]),
    ],
)
def test_what_stands_there(path: str, values: list[Any]) -> None:
    assert parse(path).values(STORE) == values


@pytest.mark.parametrize(
    "path", ["", "a", "$x", "$..", "$[", "$[x]", "$['a", "$.a..", "$.a[1", "$.*x", "$[1.5]", "$ .a"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(path)
    assert 0 <= caught.value.offset <= len(path)
    assert caught.value.hint


@given(st.text(alphabet="$.[]*'\"\\ab01 -"))
def test_any_text_is_a_path_or_a_fault(text: str) -> None:
    try:
        path = parse(text)
    except PatternError:
        return
    path.values(STORE)


def test_looking_is_linear_however_many_steps_go_deep() -> None:
    """Were each way down walked by itself, there would be more of them than atoms."""
    levels = 200
    document = json.loads('{"a": [' * levels + "1" + "]}" * levels)
    found = list(parse("$" + "..*" * 20).values(document))
    assert len(found) == 2 * levels - 19
    assert found.count(1) == 1
