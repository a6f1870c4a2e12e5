"""`${NAME}` in a policy."""

import pytest

from .texts import HEAD, LINES, faults_in, load_text, only_fault

REPLACEMENT = HEAD + "scrub: {replacement: %s}\n"


def replacement(scalar: str, **environ: str) -> str:
    return load_text(REPLACEMENT % scalar, environ).policy.scrub.replacement


@pytest.mark.parametrize(
    ("scalar", "environ", "text"),
    [
        ("'${A}'", {"A": "x"}, "x"),
        ("'<${A}-${B}>'", {"A": "x", "B": "y"}, "<x-y>"),
        ("'${A:-z}'", {}, "z"),
        ("'${A:-z}'", {"A": ""}, "z"),
        ("'${A:-z}'", {"A": "x"}, "x"),
        ("'${A:-}!'", {}, "!"),
        ("'${A:-a:-b}'", {}, "a:-b"),
        ("'$${A}'", {}, "${A}"),
        ("'$${A} ${A}'", {"A": "x"}, "${A} x"),
        ("'$5 $A $$'", {}, "$5 $A $$"),
        ("'${A}'", {"A": "${B}", "B": "no"}, "${B}"),
        ("'${A}'", {"A": "12"}, "12"),
        ("'${A}'", {"A": "true"}, "true"),
        ("'${A}'", {"A": "null"}, "null"),
    ],
)
def test_references_in_text(scalar: str, environ: dict[str, str], text: str) -> None:
    assert replacement(scalar, **environ) == text


@pytest.mark.parametrize("scalar", ["${N}", "'${N}'", "${N:-12}", '"1${N:-2}"'])
def test_a_reference_has_the_fields_type(scalar: str) -> None:
    environ = {} if ":-" in scalar else {"N": "12"}
    assert load_text(HEAD + f"server:\n  max_concurrent: {scalar}\n", environ).server.max_concurrent == 12


def test_a_number_in_quotes_that_is_no_reference_stays_text() -> None:
    assert only_fault(HEAD + "server: {max_concurrent: '12'}\n").message == "expected a whole number, not text"


def test_an_unquoted_reference_in_braces_is_a_fault_that_says_so() -> None:
    fault = only_fault(HEAD + "server: {max_concurrent: ${N}}\n", {"N": "12"})
    assert "quotes around a `${NAME}`" in fault.hint


def test_a_reference_serves_booleans_words_and_measures() -> None:
    rule = "guardrails: [{name: r, words: [{list: [x], whole_word: '${W}'}], mode: '${M}'}]\nserver: {drain: '${D}'}\n"
    snapshot = load_text(HEAD + rule, {"W": "false", "M": "shadow", "D": "7s"})
    (found,) = snapshot.policy.guardrails
    assert (found.words[0].whole_word, found.mode, snapshot.server.drain) == (False, "shadow", 7.0)


def test_an_unset_variable_is_a_fault_where_it_is_named() -> None:
    fault = only_fault(REPLACEMENT % "'<${A:-x}${NOPE}>'")
    assert (fault.line, fault.column, fault.where) == (LINES + 1, 31, "scrub.replacement")
    assert fault.message == "the environment variable NOPE is not set"
    assert "${NOPE:-default}" in fault.hint


def test_every_unset_variable_is_named() -> None:
    found = faults_in(REPLACEMENT % "'${A} ${B}'")
    assert ["A" in fault.message for fault in found] == [True, False]
    assert len(found) == 2


@pytest.mark.parametrize("scalar", ["'${'", "'${}'", "'${1A}'", "'${A'", "'${A-b}'", "'${ A }'"])
def test_what_begins_like_a_reference_must_be_one(scalar: str) -> None:
    fault = only_fault(REPLACEMENT % scalar, {"A": "x"})
    assert "${NAME}" in fault.message
    assert "$${" in fault.hint


@pytest.mark.parametrize(
    "rule", ["patterns: [{name: p, regex: 'a${A}'}]", "words: [{list: [b, 'a${A}']}]", "words: [{list: ['${A:-x}']}]"]
)
def test_patterns_and_words_read_no_variables(rule: str) -> None:
    fault = only_fault(HEAD + f"guardrails: [{{name: r, {rule}}}]\n", {"A": "secret-value"})
    assert fault.message == "patterns and words do not read the environment"
    assert fault.column == (HEAD + f"guardrails: [{{name: r, {rule}}}]\n").splitlines()[LINES].index("$") + 1
    assert "secret-value" not in str(fault)


@pytest.mark.parametrize("regex", [r"\$\{A\}", "^x$", r"\${", "[${}]"])
def test_dollars_in_patterns_are_left_alone(regex: str) -> None:
    text = HEAD + f"guardrails: [{{name: r, patterns: [{{name: p, regex: '{regex}'}}]}}]\n"
    (rule,) = load_text(text).policy.guardrails
    assert rule.patterns[0].regex == regex


def test_bytes_that_are_no_text_are_a_fault() -> None:
    assert "not UTF-8" in only_fault(REPLACEMENT % "'${A}'", {"A": "\udcff"}).message


def test_a_value_from_the_environment_is_never_shown() -> None:
    text = "version: 1\nproviders: {p: {base_url: '${U}', api_key: '${K}', auth: '${M}'}}\nmodels: {m: '${T}'}\n"
    environ = {"U": "ftp://canary", "K": "canary key", "M": "canary", "T": "canary/x"}
    found = faults_in(text, environ)
    assert [fault.where for fault in found] == [
        "providers.p.base_url",
        "providers.p.api_key",
        "providers.p.auth",
        "models.m",
    ]
    assert "canary" not in "\n".join(map(str, found))


@pytest.mark.parametrize("value", ["", "~", "null"])
def test_a_missing_value_is_a_fault(value: str) -> None:
    fault = only_fault(f"version: 1\nproviders:\n  p:\n    base_url: http://u\n    api_key: {value}\n")
    assert (fault.where, fault.message) == ("providers.p.api_key", "a value is missing")
