"""What a policy may say of tools, and what is told of it."""

from pathlib import Path

import pytest

from sidecar.errors import Fault, PolicyError
from sidecar.policy.check import check, human, summary
from sidecar.policy.load import parse
from sidecar.policy.snapshot import Snapshot

HEAD = 'version: 1\nproviders: {p: {base_url: "http://p/v1"}}\n'
ADMIN = f'server: {{admin_keys: ["sha256:{"a" * 64}"]}}\n'


def load(text: str) -> Snapshot:
    return parse([("policy.yaml", (HEAD + text).encode())], {}, None)


def all_of(text: str) -> tuple[Fault, ...]:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return caught.value.faults


def faults(text: str) -> list[str]:
    return [f"{fault.line}:{fault.column} {fault.where}: {fault.message}" for fault in all_of(text)]


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
    """Its place is that of what cannot be used in it."""
    (fault,) = faults("tools: {rules: [{arguments: [{path: $.a, schema: {type: wrong}}], decision: deny}]}")
    assert fault.startswith("3:57 tools.rules[0].arguments[0].schema: ")
    (fault,) = faults("tools: {rules: [{arguments: [{schema: 5}], decision: deny}]}")
    assert fault.startswith("3:39 tools.rules[0].arguments[0].schema: a schema is an object")


@pytest.mark.parametrize(
    ("rule", "place", "hint"),
    [
        ("toool: x, decision: deny", "3:18 tools.rules[0].toool", "Did you mean `tool`?"),
        ("tool: x, decision: denied", "3:37 tools.rules[0].decision", "Did you mean `deny`?"),
        ("tool: x", "3:17 tools.rules[0].decision", "allow lets the call through"),
        ("tool: [], decision: deny", "3:24 tools.rules[0].tool", "names or globs"),
        (
            "arguments: [{patern: x}], decision: deny",
            "3:31 tools.rules[0].arguments[0].patern",
            "Did you mean `pattern`?",
        ),
        ("tenants: acne, decision: deny", "3:27 tools.rules[0].tenants", "Did you mean `acme`?"),
        ("tenants: [acme, beta], decision: deny", "3:34 tools.rules[0].tenants[1]", "There are: acme, default."),
    ],
)
def test_typos_are_faults_with_a_place_and_a_hint(rule: str, place: str, hint: str) -> None:
    tenants = f'\ntenants: [{{name: acme, keys: ["sha256:{"b" * 64}"]}}]'
    (fault,) = all_of(f"tools: {{rules: [{{{rule}}}]}}{tenants}")
    assert f"{fault.line}:{fault.column} {fault.where}" == place
    assert hint in fault.hint


def test_globs_of_tenants_may_name_none_yet() -> None:
    assert not load("tools: {rules: [{tenants: 'a*', decision: deny}, {tenants: default, decision: deny}]}").inert


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
    tenants = f'tenants: [{{name: acme, keys: ["sha256:{"b" * 64}"]}}]'
    file.write_text(f"{HEAD}{ADMIN}{tenants}\ntools: {{rules: [{rules}], stream: pass, pin: flag}}\n", "utf-8")
    said = human(check(file, {}))
    assert "tools      rule-1: confirm a, b* with 1 condition on arguments after c of acme for agents s-*" in said
    assert "tools      rule-2: deny every tool when called more than 2 times in a row" in said
    assert "tools      others: allow; denied calls: answer; invalid calls: pass; enforce" in said
    assert "tools      results: at most 20000 characters; changed definitions: flag; approvals: within 5m" in said
    assert said.count("note       ") >= 4
    assert "approved only at the worker that holds it" in said


def test_a_policy_means_the_same_wherever_it_is_compiled() -> None:
    text = "tools: {rules: [{tool: a, arguments: [{schema: {b: 1, a: 2}}], decision: deny}]}"
    again = "tools: {rules: [{decision: deny, arguments: [{schema: {a: 2, b: 1}}], tool: [a]}]}"
    assert load(text).digest == load(again).digest
    assert load(text).digest != load(text.replace("deny", "allow")).digest


def notes(rules: str, more: str = "", head: str = HEAD) -> list[str]:
    snapshot = parse([("policy.yaml", f"{head}{ADMIN}tools: {{rules: [{rules}]{more}}}\n".encode())], {}, None)
    return [line for line in summary(snapshot) if line.startswith("note")]


DENY = ", decision: deny}"


@pytest.mark.parametrize(
    ("rules", "never"),
    [
        ("{decision: allow}, {tool: x, decision: deny}", [("rule-2", "rule-1")]),
        ('{tool: "*", decision: allow}, {decision: deny}', [("rule-2", "rule-1")]),
        ('{tool: "shell*"%s, {tool: [shell, shell_x], decision: allow}', [("rule-2", "rule-1")]),
        ('{tool: "shell*"%s, {tool: "shell_*_?x", decision: allow}', [("rule-2", "rule-1")]),
        ('{tool: "shell*"%s, {tool: [shell, exec], decision: allow}', []),
        ('{tool: "shell_*"%s, {tool: "shell*", decision: allow}', []),
        ('{tool: "?"%s, {tool: "*", decision: allow}', []),
        ('{tool: "*b]*"%s, {tool: "[ab]", decision: allow}', []),
        ('{tool: "[ab]"%s, {tool: "[ab]", decision: allow}', [("rule-2", "rule-1")]),
        ("{tool: x, after: y%s, {tool: x, decision: allow}", []),
        ("{tool: x, more_than_in_a_row: 2%s, {tool: x, decision: allow}", []),
        ("{tool: x, arguments: [{pattern: x}]%s, {tool: x, decision: allow}", []),
        ("{tool: x, tenants: default%s, {tool: x, decision: allow}", []),
        ("{tool: x, tenants: 'd*'%s, {tool: x, tenants: default, decision: allow}", [("rule-2", "rule-1")]),
        ("{tool: x, agents: a%s, {tool: x, agents: [a, b], decision: allow}", []),
        ("{tool: [x, y]%s, {tool: [y, x], decision: allow}", [("rule-2", "rule-1")]),
        ("{tool: x%s, {tool: z, decision: allow}, {decision: deny}", []),
    ],
)
def test_rules_that_no_call_can_come_to(rules: str, never: list[tuple[str, str]]) -> None:
    found = [note for note in notes(rules.replace("%s", DENY)) if "never fits" in note]
    told = [
        f"note       the tool rule {rule} never fits: {taker} before it takes all its calls" for rule, taker in never
    ]
    assert found == told


def test_calls_that_wait_longer_than_their_exchange_may_take() -> None:
    rule, late = (
        "{tool: x, decision: confirm}",
        "calls wait 1h for an admin, and exchanges end before: timeouts.total of p",
    )
    assert any(late in note for note in notes(rule, ", confirm: {timeout: 1h}"))
    assert not any("exchanges end" in note for note in notes(rule))
    short = HEAD.replace('/v1"', '/v1", timeouts: {total: 1m}')
    assert any("calls wait 5m" in note for note in notes(rule, head=short))
    assert not any("exchanges end" in note for note in notes("{tool: x, decision: deny}", head=short))


def test_places_that_no_rule_sees_are_told() -> None:
    rule, unknown = "{tool: x, decision: deny}", "endpoints that no API documents: inspect.unknown is not deny"
    assert any(unknown in note for note in notes(rule))
    assert not any("sees what is called" in note for note in notes(rule, head=f"{HEAD}inspect: {{unknown: deny}}\n"))
    passing = notes(rule, head=f"{HEAD}inspect: {{websocket: pass}}\n")
    assert any("WebSocket connections pass, and no tool rule sees" in note for note in passing)
