"""The JSON Schema, the reference and the ready policies are those of the models."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sidecar.policy.check import FINE, check
from sidecar.policy.manual import markdown, schema
from sidecar.policy.nodes import plain
from sidecar.policy.reader import read
from sidecar.policy.references import VERBATIM
from sidecar.policy.schema import Policy
from sidecar.policy.shape import leaves, shape_at

from .texts import HEAD, faults_in, load_text

REPO = Path(__file__).resolve().parents[2]
POLICIES = sorted((REPO / "policies").glob("*.yaml"))
EXAMPLES = [(name, info.examples[0]) for name, info in Policy.model_fields.items() if info.examples]


def conforms(value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema()).is_valid(value))


def test_every_field_says_what_it_is() -> None:
    assert [".".join(path) for path, info in leaves(Policy) if not (info.description or "").strip()] == []


def test_every_section_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == Policy.model_fields.keys() - {"version"}


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_the_examples_load(name: str, example: Any) -> None:
    policy: dict[str, Any] = {"version": 1, "providers": dict(EXAMPLES)["providers"], name: example}
    assert not faults_in(yaml.safe_dump(policy, sort_keys=False))
    assert conforms(policy)


def test_the_examples_in_the_reference_are_read_as_they_are_meant() -> None:
    blocks = [block.partition("```")[0] for block in markdown().split("```yaml\n")[1:]]
    shown = [read("f", block.encode()).root for block in blocks if not block.startswith("#")]
    merged: dict[str, Any] = {}
    for root in shown:
        assert root is not None
        merged |= plain(root)
    assert merged == {"version": 1, **dict(EXAMPLES)}


def test_the_reference_is_current() -> None:
    assert (REPO / "docs" / "policy.md").read_text() == markdown(), (
        "run: sidecar schema --format markdown > docs/policy.md"
    )


def test_the_schema_is_current() -> None:
    text = json.dumps(schema(), indent=2) + "\n"
    assert (REPO / "policies" / "policy.schema.json").read_text() == text, (
        "run: sidecar schema > policies/policy.schema.json"
    )


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_every_field_is_in_the_reference() -> None:
    text = markdown()
    assert [path for path, _ in leaves(Policy) if f"{path[-1]}`" not in text and f"## {path[-1]}" not in text] == []


@pytest.mark.parametrize("file", POLICIES, ids=[file.name for file in POLICIES])
def test_the_ready_policies_are_fine_and_lead_editors_to_the_schema(file: Path) -> None:
    text = file.read_text()
    assert text.splitlines()[0] == "# yaml-language-server: $schema=./policy.schema.json"
    assert check(file, {}).code == FINE
    root = read(file.name, text.encode()).root
    assert root is not None
    assert conforms(plain(root))


def test_the_default_policy_redacts_secrets_and_numbers_everywhere() -> None:
    snapshot = check(REPO / "policies" / "default.yaml", {}).snapshot
    assert snapshot is not None
    assert [(rule.detect, rule.action, rule.mode, rule.on) for rule in snapshot.policy.guardrails] == [
        (["secrets"], "redact", "enforce", None),
        (["credit_card", "us_ssn", "iban"], "redact", "enforce", None),
    ]


@pytest.mark.parametrize(
    "section",
    [
        "guardrail: []",
        "server: {drain: 30}",
        "server: {auth: maybe}",
        "server: {max_concurrent: x}",
        "tenants: [{name: a, keys: [x]}]",
        "models: {m: x}",
        "telemetry: {log: 1}",
        "guardrails: [{name: r, on: [usr]}]",
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(section: str) -> None:
    text = HEAD + section
    root = read("f", text.encode()).root
    assert root is not None
    assert not conforms(plain(root))
    assert faults_in(text)


@pytest.mark.parametrize(
    "section", ["server: {max_concurrent: '${N}', auth: '${A}', drain: '${D}'}", "models: {m: '${T}'}"]
)
def test_references_conform_to_the_schema(section: str) -> None:
    root = read("f", (HEAD + section).encode()).root
    assert root is not None
    assert conforms(plain(root))
    assert load_text(HEAD + section, {"N": "1", "A": "off", "D": "1s", "T": "p/x"})


@pytest.mark.parametrize("path", VERBATIM, ids=[str(path) for path in VERBATIM])
def test_the_paths_that_are_taken_as_written_exist(path: tuple[str | int, ...]) -> None:
    assert shape_at(Policy, path) is not None
