"""Everything that is wrong with a policy, at once, each at its place and with advice."""

import re
from collections.abc import Sequence

import pytest

from sidecar.core.chain import Step
from sidecar.errors import PatternError, PolicyError
from sidecar.policy import load, snapshot
from sidecar.policy.load import parse
from sidecar.stages.guardrails import GuardrailConfig

from .texts import HEAD, LINES, faults_in, only_fault, places

HASH = "sha256:" + "ab" * 32


def check_only(text: str, where: str, message: str, hint: str) -> None:
    fault = only_fault(HEAD + text + "\n")
    assert (fault.where, fault.file) == (where, "p.yaml")
    assert fault.line > LINES
    assert fault.column > 0
    assert message in fault.message
    assert hint in fault.hint
    assert "canary" not in str(fault)


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("guardrail: []", "guardrail", "there is no section `guardrail`", "Did you mean `guardrails`?"),
        ("vault: []", "vault", "there is no section `vault`", "There are: version, providers"),
        ("guardrails: {name: r}", "guardrails", "expected a list, not a table", "dash"),
        ("guardrails:", "guardrails", "a value is missing", "remove the key"),
        ("guardrails: [x]", "guardrails[0]", "expected a table, not text", ""),
        ("guardrails: [{name: r}]", "guardrails[0]", "looks for nothing", ""),
        ("guardrails: [{detect: [email]}]", "guardrails[0].name", "`name` is missing", ""),
        ("server: {max_concurrent: '5'}", "server.max_concurrent", "expected a whole number, not text", "quotes"),
        ("server: {max_concurrent: 5.5}", "server.max_concurrent", "expected a whole number", ""),
        ("server: {max_concurrent: 0}", "server.max_concurrent", "expected more than 0", ""),
        ("server: {drain: 30}", "server.drain", "expected a duration with its unit", ""),
        ("server: {drain: 0s}", "server.drain", "expected more than 0", ""),
        ("server: {max_body: 20 MBit}", "server.max_body", "expected a size", ""),
        ("server: {max_body: -1}", "server.max_body", "expected", ""),
        ("server: {max_body: %s}" % ("9" * 400), "server.max_body", "expected a size", ""),
        ("server: [auth]", "server", "expected a table, not a list", "dashes"),
        ("server: {cors_origins: x}", "server.cors_origins", "expected a list, not text", "brackets"),
        ("server: {auth: required}", "server.auth", "a key is required, but no tenant has one", "tenants"),
        ("server: {auth: required}\ntenants: []", "server.auth", "a key is required, but no tenant", "tenants"),
        ("tenants: [{name: a, keys: []}]", "tenants[0].keys", "expected a list of at least 1", ""),
        ("tenants: [{name: a, keys: [canary]}]", "tenants[0].keys[0]", "expected `sha256:` and the 64 hex", ""),
        (f"tenants: [{{name: a, keys: ['{HASH[:-1]}']}}]", "tenants[0].keys[0]", "expected `sha256:`", ""),
        (f"tenants: [{{name: ' a', keys: ['{HASH}']}}]", "tenants[0].name", "expected a name", ""),
        ("models: {m: p}", "models.m", "expected `provider/model`", ""),
        ("models: {m: []}", "models.m", "expected a list of at least 1", ""),
        ("models: {m: [p/x, P/y]}", "models.m[1]", "there is no provider `P`", "`p`"),
        ("models: {m: q/x}", "models.m", "there is no provider `q`", "There are: p"),
        ("models: {m: [1]}", "models.m[0]", "expected text, not a number", "quotes"),
        ("telemetry: {log: ''}", "telemetry.log", "expected text of at least 1", "Where one JSON line"),
        ("telemetry: {log: false}", "telemetry.log", "expected text, not true or false", "quotes"),
    ],
)
def test_one_fault_in_its_words(text: str, where: str, message: str, hint: str) -> None:
    check_only(text, where, message, hint)


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("detect: [email], pattren: x", "pattren", "there is no key `pattren`", "`patterns`"),
        ("patterns: [{name: p, regx: x}]", "patterns[0].regx", "there is no key `regx`", "`regex`"),
        ("words: [{list: [a], ignorecase: true}]", "words[0].ignorecase", "there is no key", "`ignore_case`"),
        ("detect: secrets", "detect", "expected a list, not text", "brackets"),
        ("detect: [email], mode: shadwo", "mode", "expected one of off, shadow, enforce", "`shadow`"),
        ("detect: [email], mode: no", "mode", "expected one of off, shadow, enforce", ""),
        ("detect: [email], on: [usr]", "on[0]", "expected one of system, user", "`user`"),
        ("words: [{list: [007]}]", "words[0].list[0]", "expected text, not a number", "quotes"),
        ("words: [{list: [a], whole_word: yes}]", "words[0].whole_word", "expected true or false", "Write true"),
        ("patterns: [{name: p, regex: '(?=x)y'}]", "patterns[0].regex", "look-ahead", ""),
    ],
)
def test_one_fault_of_a_guardrail(text: str, where: str, message: str, hint: str) -> None:
    check_only(f"guardrails: [{{name: r, {text}}}]", f"guardrails[0].{where}", message, hint)


@pytest.mark.parametrize(
    ("provider", "where", "message"),
    [
        ("{}", "providers.p.base_url", "`base_url` is missing"),
        ("{base_url: ftp://u}", "providers.p.base_url", "expected an http or https URL"),
        ("{base_url: u}", "providers.p.base_url", "expected an http or https URL"),
        ("{base_url: ''}", "providers.p.base_url", "expected an http or https URL"),
        ("{base_url: 'http://h:canary'}", "providers.p.base_url", "expected an http or https URL"),
        ("{base_url: 'http://[canary'}", "providers.p.base_url", "expected an http or https URL"),
        ("{base_url: 'http://a:canary@u'}", "providers.p.base_url", "user name or a password"),
        ("{base_url: 'http://u/?key=canary'}", "providers.p.base_url", "carries a query"),
        ("{base_url: 'http://u', api_key: 'canary two'}", "providers.p.api_key", "expected"),
        ("{base_url: 'http://u', api_key: \"canary\\n\"}", "providers.p.api_key", "expected"),
        ("{base_url: 'http://u', api_key: 12}", "providers.p.api_key", "expected text, not a number"),
        ("{base_url: 'http://u', apikey: canary}", "providers.p.apikey", "there is no key `apikey`"),
        ("{base_url: 'http://u', auth: x-api}", "providers.p.auth", "expected one of bearer, x-api-key, api-key"),
        ("{base_url: 'http://u', timeouts: {total: 5}}", "providers.p.timeouts.total", "expected a duration"),
        ("{base_url: 'http://u', timeouts: {totl: 5s}}", "providers.p.timeouts.totl", "there is no key `totl`"),
    ],
)
def test_one_fault_of_a_provider(provider: str, where: str, message: str) -> None:
    fault = only_fault(f"version: 1\nproviders:\n  p: {provider}\n")
    assert (fault.line, fault.where) == (3, where)
    assert message in fault.message
    assert "canary" not in str(fault)


@pytest.mark.parametrize("name", ["a b", "a/b", "''", "-a", "é"])
def test_a_providers_name_has_a_form(name: str) -> None:
    fault = only_fault(f"version: 1\nproviders:\n  {name}: {{base_url: 'http://u'}}\n")
    assert (fault.line, fault.column) == (3, 3)
    assert "a provider's name" in fault.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("providers: {}", 1),
        ("version: 2", 1),
        ("version: '1'", 1),
        ("version: 1.0", 1),
        ("version: true", 1),
        ("version: [1]", 1),
        ("\nserver: {}", 2),
    ],
)
def test_the_version_is_1(text: str, line: int) -> None:
    found = [fault for fault in faults_in(text) if fault.where == "version"]
    assert [fault.line for fault in found] == [line]


@pytest.mark.parametrize("text", ["[]", "- version: 1", "just text", "12", "'version: 1'"])
def test_a_policy_is_a_table(text: str) -> None:
    assert only_fault(text).message == "expected a table of sections"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "~", "null\n"])
def test_an_empty_file_is_a_fault(text: str) -> None:
    assert only_fault(text).message == "the file is empty"


def test_all_faults_are_told_at_once_in_the_order_of_the_text() -> None:
    """Each `<<…>>` marks the place of the fault that the field in it has."""
    marked = f"""version: 1
<<provider>>provider: {{}}
providers:
  p:
    base_url: <<providers.p.base_url>>ftp://u
    api_key: <<providers.p.api_key>>${{NOPE}}
  <<providers.p>>p: {{base_url: 'http://u'}}
models: {{m: [<<models.m[0]>>pp/x]}}
guardrails:
  - {{name: r, detect: [email], mode: <<guardrails[0].mode>>shadwo}}
  - name: <<guardrails[1].name>>r
    patterns:
      - {{name: a, regex: 'a<<guardrails[1].patterns[0].regex>>('}}
      - {{name: b, <<guardrails[1].patterns[1].regx>>regx: b}}
tenants:
  - {{name: t, keys: ['{HASH}', <<tenants[0].keys[1]>>x]}}
  - {{name: <<tenants[1].name>>t, keys: [<<tenants[1].keys[0]>>'sha256:{"AB" * 32}']}}
"""
    expected = []
    for number, line in enumerate(marked.splitlines(), 1):
        before = 0
        for mark in re.finditer(r"<<(.*?)>>", line):
            expected.append((number, mark.start() - before + 1, mark[1]))
            before += len(mark[0])
    text = re.sub(r"<<.*?>>", "", marked)
    assert places(text, {"SIDECAR_NOPE": "1"}) == [*expected, (0, 0, "")]


def test_a_key_may_not_be_shared() -> None:
    text = HEAD + f"tenants: [{{name: a, keys: ['{HASH}']}}, {{name: b, keys: ['{HASH}']}}]\n"
    fault = only_fault(text)
    assert fault.where == "tenants[1].keys[0]"
    assert "the same key is already given at p.yaml:3:" in fault.message
    assert "abab" not in str(fault)


@pytest.mark.parametrize(
    ("scalar", "offset"),
    [("'ab('", 3), ("'it''s('", 6), ("ab(", 2), ('"a\\u0042("', 8)],
)
def test_a_bad_pattern_is_shown_at_the_character(scalar: str, offset: int) -> None:
    text = HEAD + f"guardrails:\n  - name: r\n    patterns:\n      - name: p\n        regex: {scalar}\n"
    fault = only_fault(text)
    assert (fault.line, fault.column) == (LINES + 5, 16 + offset)


def test_a_bad_pattern_in_a_block_is_shown_at_the_block() -> None:
    text = HEAD + "guardrails:\n  - name: r\n    patterns:\n      - name: p\n        regex: |-\n          a(\n"
    assert places(text) == [(LINES + 5, 16, "guardrails[0].patterns[0].regex")]


def test_a_pattern_that_ends_with_a_line_break_is_a_fault() -> None:
    text = HEAD + "guardrails:\n  - name: r\n    patterns:\n      - name: p\n        regex: |\n          ab\n"
    assert "line break" in only_fault(text).message


@pytest.mark.parametrize(
    ("scalar", "code"),
    [('"\\bzk-"', "U+0008"), ('"a\\0"', "U+0000"), ('"\\ex"', "U+001B"), ('"\\N"', "U+0085"), ('"\\P{L}"', "U+2029")],
)
@pytest.mark.parametrize("rule", ["patterns: [{name: p, regex: %s}]", "words: [{list: [%s]}]"])
def test_control_characters_in_patterns_and_words_are_named(scalar: str, code: str, rule: str) -> None:
    fault = only_fault(HEAD + f"guardrails: [{{name: r, {rule % scalar}}}]\n")
    assert code in fault.message
    assert "single quotes" in fault.hint


def test_faults_before_a_syntax_fault_are_told_too_and_none_that_may_be_untrue() -> None:
    text = "guardrails:\n  - {name: r, detect: [email], mode: x}\nmodels: {m: later/x}\nserver:\n  auth: [\n"
    assert [where for _, _, where in places(text)] == ["guardrails[0].mode", ""]


def test_two_files_tell_their_faults_together() -> None:
    files = [("a.yaml", b"version: 1\nproviders: {p: {}}\n"), ("b.yaml", b"models: {m: [\n")]
    with pytest.raises(PolicyError) as caught:
        parse(files, {})
    assert [(fault.file, fault.where) for fault in caught.value.faults] == [
        ("a.yaml", "providers.p.base_url"),
        ("b.yaml", ""),
    ]


def test_a_key_that_a_terminal_would_obey_is_shown_harmlessly() -> None:
    fault = only_fault(HEAD + '"\\e[2Jx": 1\n')
    assert "\x1b" not in fault.message


def test_every_rule_that_is_too_large_as_a_whole_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(rules: Sequence[GuardrailConfig], *_: object, **__: object) -> tuple[Step, ...]:
        if any(rule.name != "fine" for rule in rules):
            raise PatternError("the rule is too large", hint="Split it.")
        return ()

    monkeypatch.setattr(load, "build", refuse)
    monkeypatch.setattr(snapshot, "build", refuse)
    rules = "".join(f"  - {{name: {name}, words: [{{list: [x]}}]}}\n" for name in ("a", "fine", "b"))
    found = faults_in(HEAD + "guardrails:\n" + rules)
    assert [(fault.line, fault.where, fault.hint) for fault in found] == [
        (LINES + 2, "guardrails[0]", "Split it."),
        (LINES + 4, "guardrails[2]", "Split it."),
    ]


BLIND = [
    (
        "websocket",
        "what WebSocket connections carry",
        "Write `inspect: {websocket: deny}`, or `accept_blind",
    ),
    ("unknown", "undocumented endpoints and fields", "Write `inspect: {unknown: deny}` or `scan`, or `accept_blind"),
]


@pytest.mark.parametrize(("spot", "what", "hint"), BLIND)
def test_a_rule_in_enforce_may_be_blind_only_where_it_says_so(spot: str, what: str, hint: str) -> None:
    other = {"websocket": "unknown", "unknown": "websocket"}[spot]
    seeing = f"{HEAD}inspect: {{{spot}: pass}}\nguardrails:\n"
    for fine in (f"accept_blind: [{spot}]", f"accept_blind: [{other}, {spot}]", "mode: shadow", 'mode: "off"'):
        assert faults_in(f"{seeing}  - {{name: r, detect: [email], {fine}}}\n") == ()
    for blind in ("", ", mode: enforce", f", accept_blind: [{other}]", ", accept_blind: []"):
        fault = only_fault(f"{seeing}  - {{name: r, detect: [email]{blind}}}\n")
        assert (fault.line, fault.column, fault.where) == (LINES + 3, 12, "guardrails[0].name")
        assert "the rule is in enforce and cannot see " + what in fault.message
        assert fault.hint.startswith(hint)
