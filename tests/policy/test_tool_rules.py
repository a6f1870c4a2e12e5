"""What a policy may say of tools, and what is told of it."""

from pathlib import Path

import pytest

from sidecar.errors import PolicyError
from sidecar.policy.check import check, human
from sidecar.policy.load import parse
from sidecar.policy.snapshot import Snapshot

HEAD = 'version: 1\nproviders: {p: {base_url: "http://p/v1"}}\n'
ADMIN = f'server: {{admin_keys: ["sha256:{"a" * 64}"]}}\n'


def load(text: str) -> Snapshot:
    return parse([("policy.yaml", (HEAD + text).encode())], {}, None)


def faults(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return [f"{fault.line}:{fault.column} {fault.where}: {fault.message}" for fault in caught.value.faults]


def test_absent_and_off_are_inert() -> None:
    assert load("").inert
    assert load("tools: {mode: off, rules: [{decision: deny}]}").inert
    assert not load("tools: {}").inert


@pytest.mark.parametrize(
    ("path", "column", "message"),
    [
        ("url", 38, "a path begins with $"),
        ("$.a[", 41, "expected [0], [*] or a name in quotes and brackets here"),
        ("$.", 39, "expected the name of a field here"),
        ("$a", 39, "expected . or [ here"),
        ("$.a.[0]", 42, "expected the name of a field here"),
        ("$[?(@.a)]", 39, "expected [0], [*] or a name in quotes and brackets here"),
        ("$" + ".a" * 21, 79, "a path has at most 20 steps"),
    ],
)
def test_a_path_with_a_fault(path: str, column: int, message: str) -> None:
    text = f"tools: {{rules: [{{arguments: [{{path: '{path}', pattern: x}}], decision: deny}}]}}"
    assert faults(text) == [f"3:{column} tools.rules[0].arguments[0].path: {message}"]


def test_a_pattern_with_a_fault() -> None:
    (fault,) = faults("tools: {rules: [{arguments: [{pattern: 'ab(?=c)'}], decision: deny}]}")
    assert fault.startswith("3:43 tools.rules[0].arguments[0].pattern: look-ahead is not available")


def test_a_pattern_that_is_too_large() -> None:
    text = "limits: {max_pattern_bytes: 100}\ntools: {rules: [{arguments: [{pattern: 'a{90}'}], decision: deny}]}"
    (fault,) = faults(text)
    assert fault.startswith("4:40 tools.rules[0].arguments[0].pattern: compiles to")


def test_a_schema_of_no_use() -> None:
    (fault,) = faults("tools: {rules: [{arguments: [{schema: {type: wrong}}], decision: deny}]}")
    assert fault.startswith("3:39 tools.rules[0].arguments[0].schema: ")


@pytest.mark.parametrize("condition", ["{}", "{path: $.a}", "{pattern: x, schema: {}}"])
def test_a_condition_says_one_thing(condition: str) -> None:
    (fault,) = faults(f"tools: {{rules: [{{arguments: [{condition}], decision: deny}}]}}")
    assert fault.endswith("a condition has a `pattern` or a `schema`, one of them")


def test_two_rules_of_one_name() -> None:
    text = "tools:\n  rules:\n    - {decision: allow}\n    - {name: a, decision: deny}\n"
    assert faults(text + "    - {name: a, decision: deny}\n") == [
        "7:14 tools.rules[2].name: `a` is already the name at policy.yaml:6:14"
    ]
    assert faults(text + "    - {name: rule-1, decision: deny}\n")[0].startswith("7:14 tools.rules[2].name: `rule-1`")


def test_a_confirmation_that_nobody_could_give() -> None:
    rule = "tools: {rules: [{decision: confirm}]}"
    assert faults(rule) == ["3:28 tools.rules[0].decision: nobody could approve the call: server.admin_keys is absent"]
    assert not load(ADMIN + rule).inert


def test_patterns_do_not_read_the_environment() -> None:
    (fault,) = faults("tools: {rules: [{arguments: [{pattern: '${HOME}'}], decision: deny}]}")
    assert "do not read the environment" in fault


def test_what_check_says(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    rules = (
        '{tool: [a, "b*"], arguments: [{pattern: x}], after: c, tenants: acme, agents: "s-*", decision: confirm}, '
        "{more_than_in_a_row: 2, decision: deny}"
    )
    file.write_text(f"{HEAD}{ADMIN}tools: {{rules: [{rules}], stream: pass}}\n", "utf-8")
    said = human(check(file, {}))
    assert "tools      rule-1: confirm a, b* with 1 condition on arguments after c of acme for agents s-*" in said
    assert "tools      rule-2: deny every tool when called more than 2 times in a row" in said
    assert "tools      others: allow; denied calls: answer; invalid calls: pass; enforce" in said
    assert said.count("note       ") >= 4
    assert "approved only at the worker that holds it" in said


def test_a_policy_means_the_same_wherever_it_is_compiled() -> None:
    text = "tools: {rules: [{tool: a, arguments: [{schema: {b: 1, a: 2}}], decision: deny}]}"
    again = "tools: {rules: [{decision: deny, arguments: [{schema: {a: 2, b: 1}}], tool: [a]}]}"
    assert load(text).digest == load(again).digest
    assert load(text).digest != load(text.replace("deny", "allow")).digest
