"""Schemas in a policy, and in files beside it."""

import json
from pathlib import Path

import pytest

from sidecar.errors import PolicyError
from sidecar.policy.check import check, human
from sidecar.policy.load import load, parse
from sidecar.policy.snapshot import Snapshot

from .texts import HEAD, only_fault

SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, None, 0.5]}}, "default": None}
OWN = "structured_output: {schemas: [{name: s, %s}]}\n"


def loaded(text: str) -> Snapshot:
    return parse([("p.yaml", (HEAD + text).encode())], {})


def form(snapshot: Snapshot) -> object:
    assert snapshot.policy.structured_output is not None
    return snapshot.policy.structured_output.schemas[0].form


def test_a_schema_is_data() -> None:
    """Nulls, and what looks like a reference to the environment, stand for themselves."""
    text = OWN % f"schema: {json.dumps({**SCHEMA, 'const': '${NOT_SET}'})}"
    assert form(loaded(text)) == {**SCHEMA, "const": "${NOT_SET}"}


def test_a_file_stands_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "s.json").write_text(json.dumps(SCHEMA), "utf-8")
    policy = tmp_path / "p.yaml"
    policy.write_text(HEAD + OWN % "schema_file: shapes/s.json", "utf-8")
    by_file = load(policy, {})
    assert form(by_file) == SCHEMA
    (tmp_path / "shapes" / "s.json").write_text('{"type": "object"}', "utf-8")
    assert load(policy, {}).digest != by_file.digest
    assert "at most 2 calls for a reply; streams buffer; s for all; enforce" in human(check(policy, {}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the file cannot be read: No such file or directory"),
        (b"{", "the file holds no JSON Schema: Expecting property name"),
        (b'{"a": 1, "a": 2}', "the file holds no JSON Schema: an object has the same key twice"),
        (b"\xff", "the file is not UTF-8 text"),
        (b'"' + b"x" * 300_000 + b'"', "the file holds no JSON Schema: it is larger than"),
        (b"[]", "a schema is an object, or true or false"),
        (b'{"type": "canary"}', "there is no such type"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "s.json").write_bytes(content)
    policy = tmp_path / "p.yaml"
    policy.write_text(HEAD + OWN % "schema_file: s.json", "utf-8")
    with pytest.raises(PolicyError) as caught:
        load(policy, {})
    [fault] = caught.value.faults
    assert fault.message.startswith(message)
    assert "canary" not in str(fault)
    assert (fault.file, fault.column) == (str(policy), len("structured_output: {schemas: [{name: s, schema_file: ") + 1)


@pytest.mark.parametrize(
    ("own", "where", "message", "at"),
    [
        ("schema: {type: strng}", "schema", "there is no such type", "strng"),
        ("schema: {items: {$ref: '#/$defs/none'}}", "schema", "this refers to nothing in the schema", "'#/$defs/none'"),
        ("schema: {properties: {a: {pattern: '('}}}", "schema", "this is no pattern", "'('"),
        ("schema: {required: a}", "schema", "what stands here is not of type", "a}"),
        ("schema: text", "schema", "a schema is an object", "text"),
        ("schema: {}, schema_file: s.json", "schema_file", "there is a `schema` as well", "s.json"),
    ],
)
def test_what_is_wrong_with_a_schema(own: str, where: str, message: str, at: str) -> None:
    text = OWN % own
    fault = only_fault(HEAD + text)
    assert fault.where == f"structured_output.schemas[0].{where}"
    assert fault.message.startswith(message)
    assert fault.column == text.index(at) + 1


def test_a_form_needs_a_schema_and_a_name_of_its_own() -> None:
    assert only_fault(HEAD + OWN % "agents: a").message == "has no schema: give it `schema` or `schema_file`"
    twice = "structured_output: {schemas: [{name: s, schema: {}}, {name: s, schema: {}}]}\n"
    assert "already the name" in only_fault(HEAD + twice).message


def test_all_faults_at_once() -> None:
    own = "[{name: a, schema: {type: x}}, {name: b c, schema_file: no.json}]"
    text = f"structured_output: {{schemas: {own}, max_quoted: -1}}"
    with pytest.raises(PolicyError) as caught:
        loaded(text)
    assert [fault.where for fault in caught.value.faults] == [
        "structured_output.schemas[0].schema",
        "structured_output.schemas[1].name",
        "structured_output.schemas[1].schema_file",
        "structured_output.max_quoted",
    ]


def test_the_section_is_off_when_absent_or_said_to_be() -> None:
    assert not loaded("").chain.down
    assert not loaded("structured_output: {mode: off}").chain.down
    [step] = loaded("structured_output: {}").chain.down
    assert (step.order, step.asks) == (600, True)
