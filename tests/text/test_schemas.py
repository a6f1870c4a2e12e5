"""What a schema says of a value, and which schemas are refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.text import schemas
from sidecar.text.schemas import Checker, SchemaError, SchemaFault

INNER = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "required": ["v", "next"],
    "additionalProperties": False,
}
LIST = {"$defs": {"Node": NODE}, "$ref": "#/$defs/Node"}


def faults(schema: Any, value: Any, limit: int = 8) -> list[tuple[str, str]]:
    return [tuple(fault) for fault in Checker.of(schema).faults(value, limit)]  # type: ignore[misc]


def fits(schema: Any, value: Any) -> bool:
    checker = Checker.of(schema)
    assert checker.fits(value) == (not checker.faults(value))
    return checker.fits(value)


def refused(schema: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        Checker.of(schema)
    return caught.value


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "integer"}, msgspec.Raw(b"1.0"), msgspec.Raw(b"1.5")),
        ({"type": "integer"}, 1, "1"),
        ({"type": "string"}, "1", 1),
        ({"type": "number"}, 1, True),
        ({"type": "null"}, None, False),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], {"0": 1}),
        ({"const": 9007199254740993}, 9007199254740993, 9007199254740992),
        ({"type": "integer", "maximum": 10**40}, 10**40, 10**40 + 1),
        ({"multipleOf": 0.1}, msgspec.Raw(b"0.3"), msgspec.Raw(b"0.35")),
        ({"format": "date-time"}, "2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z"),
        ({"format": "email"}, "a@example.com", "a"),
        ({"format": "uuid"}, "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ({"enum": [1, "a"]}, "a", "b"),
        ({"maxLength": 1}, "\ud800", "\ud800x"),
        ({"pattern": r"^\p{L}+$"}, "é", "1"),
        ({"pattern": r"^\d+$"}, "3", "٣"),
        ({"pattern": r"^(?=.*[A-Z]).+$"}, "aBc", "abc"),
        ({"$defs": {"a": {"$anchor": "q", "type": "string"}}, "$ref": "#q"}, "", 1),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": "strng"}),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}, 2, 3),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["a", 1], [1]),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        (LIST, {"v": 1, "next": {"v": 2, "next": None}}, {"v": 1, "next": {"v": 2}}),
        ({"not": {"type": "null"}}, 1, None),
    ],
)
def test_what_fits(schema: Any, good: Any, bad: Any) -> None:
    assert fits(schema, good)
    assert not fits(schema, bad)


def test_a_format_that_nobody_knows_says_nothing() -> None:
    assert fits({"format": "of-our-own"}, "anything")


def test_true_allows_everything_and_false_nothing() -> None:
    assert fits(True, None)
    assert not fits(False, None)


def test_faults_say_where() -> None:
    schema = {"type": "object", "properties": {"in/ner": INNER, "list": {"items": {"type": "integer"}}}}
    assert faults(schema, {"in/ner": {"a": 1, "x": 2}, "list": [1, "b"]}) == [
        ("/in~1ner", "Additional properties are not allowed ('x' was unexpected)"),
        ("/list/1", 'the value is not of type "integer"'),
    ]


def test_no_more_faults_than_asked_for_and_always_the_first() -> None:
    schema = {"items": {"type": "integer"}}
    value = ["a", "b", "c"]
    assert (
        faults(schema, value, 2) == faults(schema, value)[:2] == faults(schema, value, 1) + faults(schema, value)[1:2]
    )


def test_a_choice_is_explained_by_the_branch_that_was_meant() -> None:
    optional = {"$defs": {"I": INNER}, "properties": {"i": {"anyOf": [{"$ref": "#/$defs/I"}, {"type": "null"}]}}}
    assert faults(optional, {"i": {"a": "x"}}) == [("/i/a", 'the value is not of type "integer"')]
    kinds = [
        {"type": "object", "properties": {"k": {"const": name}, "v": {"type": kind}}, "required": ["k", "v"]}
        for name, kind in (("a", "string"), ("b", "integer"))
    ]
    assert faults({"oneOf": kinds}, {"k": "b", "v": "x"}) == [("/v", 'the value is not of type "integer"')]


def test_a_choice_where_nothing_was_meant_says_so() -> None:
    assert faults({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1) == [
        ("", "the value fits none of the forms that the schema allows there")
    ]
    assert faults({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 5) == [
        ("", "the value fits more than one of the forms, of which the schema allows one")
    ]


@pytest.mark.parametrize("name", ["a b", "é", "a/b", "a~b", "%41", "anyOf"])
def test_choices_under_any_name(name: str) -> None:
    schema = {"properties": {name: {"anyOf": [INNER, {"type": "null"}]}}}
    [(where, _)] = faults(schema, {name: {"a": "x"}})
    assert where.startswith(schemas.pointer([name]))


def test_what_cannot_be_explained_is_still_a_fault() -> None:
    into_a_choice = {"properties": {"a": {"anyOf": [INNER]}, "b": {"$ref": "#/properties/a/anyOf/0/properties/a"}}}
    assert faults(into_a_choice, {"b": "x"}) == [("", "the value does not fit the schema")]
    unevaluated = {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert faults(unevaluated, {"b": 1}) == [("", "the value does not fit the schema")]


def test_choices_among_data_are_data() -> None:
    schema: dict[str, Any] = {"const": {"anyOf": [{}]}, "default": {"oneOf": [{}]}}
    assert fits(schema, {"anyOf": [{}]})
    assert not fits(schema, {"anyOf": [{"a": 1}]})


@pytest.mark.parametrize("limit", [1, 8])
def test_faults_hold_no_value_and_are_bounded(limit: int) -> None:
    secret = "hunter2-" * 1000
    schema: dict[str, Any] = {
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x"]},
            "c": {"pattern": "^x$"},
            "d": {"format": "date"},
            "e": {"maxLength": 3},
            "f": {"anyOf": [{"type": "null"}, {"const": 1}]},
        },
        "additionalProperties": {"type": "null"},
    }
    for fault in Checker.of(schema).faults(dict.fromkeys("abcdef", secret) | {"k" * 5000: 1}, limit):
        assert "hunter2" not in fault.message
        assert len(str(fault)) < 600


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"properties": {"a": {"type": "strng"}}}, "/properties/a/type"),
        ({"required": "a"}, "/required"),
        ({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
        ({"pattern": "(a{1000}){1000}"}, "/pattern"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}, "/properties/a/$ref"),
        ({"$ref": "file:///etc/passwd"}, "/$ref"),
        ({"$ref": "other.json"}, "/$ref"),
        ({"items": {"$ref": "#/$defs/none"}}, "/items/$ref"),
        ({"$dynamicRef": "#none"}, "/$dynamicRef"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}}}, "/$defs/a/$ref"),
        ({"$schema": "http://example.com/own"}, ""),
        ({"maxLength": "\ud800"}, ""),
        ({"enum": ["x" * schemas.MAX_SCHEMA_BYTES]}, ""),
        ("string", ""),
        (None, ""),
        ([], ""),
        ({"a": object()}, ""),
    ],
)
def test_a_schema_that_cannot_be_used(schema: Any, where: str) -> None:
    assert refused(schema).where == where


def test_why_a_schema_is_refused_quotes_nothing_of_it() -> None:
    assert "sk-hunter2" not in str(refused({"properties": {"a": {"minimum": "sk-hunter2"}}}))
    assert "nothing is fetched" in str(refused({"$ref": "https://hunter2@example.com/x"}))


def test_a_chain_of_references_has_an_end() -> None:
    defs: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(5000)}
    assert "deeper" in str(refused({"$defs": {**defs, "a5000": {}}, "$ref": "#/$defs/a0"}))


def doubling(levels: int, word: str) -> dict[str, Any]:
    defs: dict[str, Any] = {"a0": {"type": "string"}}
    for i in range(1, levels):
        defs[f"a{i}"] = {word: [{"$ref": f"#/$defs/a{i - 1}"}, {"$ref": f"#/$defs/a{i - 1}"}]}
    return {"$defs": defs, "$ref": f"#/$defs/a{levels - 1}"}


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_is_refused_or_quick(word: str) -> None:
    assert "too many ways" in str(refused(doubling(40, word)))
    checker = Checker.of(doubling(17, word))
    assert len(checker.faults(3)) == 1


def test_a_deep_value_of_a_recursive_choice_is_explained() -> None:
    """Ten ways at each of sixty levels: tried one by one, they would never end."""
    kinds = [{"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}, "k": {"const": k}}} for k in range(10)]
    checker = Checker.of({"$defs": {"n": {"anyOf": kinds}}, "$ref": "#/$defs/n"})
    value: Any = 3
    for _ in range(60):
        value = {"x": value, "k": 1}
    assert checker.faults(value)


def test_patterns_that_backtrack_are_bounded() -> None:
    checker = Checker.of({"pattern": r"^(?:(?=a)a+)+$"})
    assert checker.faults("a" * 10_000 + "b") == (SchemaFault("", "its pattern takes too long to match"),)
    assert "look-around" in checker.faults("a" * schemas.MAX_BACKTRACKED_BYTES)[0].message
    assert not checker.fits("a" * schemas.MAX_BACKTRACKED_BYTES)


def test_a_large_value_full_of_faults_is_told_the_first() -> None:
    assert faults({"items": {"type": "string"}}, [1] * 100_000) == [("/0", 'the value is not of type "string"')]


@pytest.mark.parametrize("kind", ["objekt", ["string", "int"], 3])
def test_a_type_that_there_is_not(kind: Any) -> None:
    fault = refused({"properties": {"type": {"type": kind}}})
    assert "write array, boolean, integer, null, number, object or string" in fault.message
    assert fault.where == "/properties/type/type"


def test_a_schema_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"title": "compiled once"}
    assert Checker.of(schema) is Checker.of(dict(schema))
    monkeypatch.setattr(schemas, "_CACHE_BYTES", 40)
    Checker.of({"title": "a later one, and there is room for one"})
    assert Checker.of(schema) is not Checker.of({"title": "another"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(json_values, json_values)
def test_any_value_and_a_constant(one: Any, other: Any) -> None:
    assert fits({"const": one}, one)
    assert fits({"anyOf": [{"const": one}, {"const": other}]}, other)


@given(st.dictionaries(st.sampled_from(["type", "anyOf", "$ref", "properties", "not", "enum", "x"]), json_values))
def test_any_object_is_a_schema_or_is_refused(schema: Any) -> None:
    try:
        checker = Checker.of(schema)
    except SchemaError:
        return
    assert checker.fits({}) == (not checker.faults({}))
