"""`SIDECAR_<SECTION>_<FIELD>`."""

import pytest

from sidecar.policy.overrides import names
from sidecar.policy.schema import Policy

from .texts import HEAD, faults_in, load_text, only_fault

TEXT = """
version: 1
providers:
  open-ai: {base_url: 'http://u/v1'}
  x: {base_url: 'http://x'}
models: {smart-1: [open-ai/a]}
guardrails:
  - {name: no-secrets, detect: [email]}
  - {name: other, words: [{name: w, list: [a]}]}
tenants: [{name: acme.com, keys: ['sha256:%s']}]
""" % ("0" * 64)


def test_a_variable_stands_over_a_value() -> None:
    environ = {
        "SIDECAR_SERVER_MAX_BODY": "1MB",
        "SIDECAR_SERVER_MAX_CONCURRENT": "7",
        "SIDECAR_SERVER_AUTH": "off",
        "SIDECAR_PROVIDERS_OPEN_AI_BASE_URL": "http://other/v1",
        "SIDECAR_PROVIDERS_OPEN_AI_API_KEY": "123",
        "SIDECAR_PROVIDERS_X_TIMEOUTS_FIRST_BYTE": "9s",
        "SIDECAR_MODELS_SMART_1": "x/b",
        "SIDECAR_GUARDRAILS_NO_SECRETS_MODE": "shadow",
        "SIDECAR_GUARDRAILS_OTHER_WORDS_W_IGNORE_CASE": "true",
        "SIDECAR_SCRUB_MAX_CHARS_TOOL_RESULTS": "99",
        "SIDECAR_SCRUB_REPLACEMENT": "1",
        "SIDECAR_TELEMETRY_LOG": "off",
        "SIDECAR_TENANTS_ACME_COM_NAME": "acme",
        "SIDECAR_VERSION": "1",
    }
    snapshot = load_text(TEXT, environ)
    policy = snapshot.policy
    assert (policy.server.max_body, policy.server.max_concurrent, policy.server.auth) == (1_000_000, 7, "off")
    assert (policy.providers["open-ai"].base_url, policy.providers["open-ai"].api_key) == ("http://other/v1", "123")
    assert policy.providers["x"].timeouts.first_byte == 9.0
    assert [str(target) for target in snapshot.models["smart-1"]] == ["x/b"]
    assert [rule.mode for rule in policy.guardrails] == ["shadow", "enforce"]
    assert policy.guardrails[1].words[0].ignore_case is True
    assert (policy.scrub.max_chars.tool_results, policy.scrub.replacement) == (99, "1")
    assert (policy.telemetry.log, policy.tenants[0].name) == ("off", "acme")


def test_a_variable_spares_the_reference_it_stands_over() -> None:
    text = "version: 1\nproviders: {p: {base_url: '${NOPE}'}}\n"
    snapshot = load_text(text, {"SIDECAR_PROVIDERS_P_BASE_URL": "http://u"})
    assert snapshot.policy.providers["p"].base_url == "http://u"


def test_a_variables_value_is_taken_as_it_is() -> None:
    snapshot = load_text(HEAD, {"SIDECAR_SCRUB_REPLACEMENT": "<${NAME}>"})
    assert snapshot.policy.scrub.replacement == "<${NAME}>"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("SIDECAR_SERVR_DRAIN", "SIDECAR_SERVER_DRAIN"),
        ("SIDECAR_SERVER_MAXBODY", "SIDECAR_SERVER_MAX_BODY"),
        ("SIDECAR_PROVIDERS_OPENAI_BASE_URL", "SIDECAR_PROVIDERS_OPEN_AI_BASE_URL"),
        ("SIDECAR_GUARDRAILS_NO_SECRET_MODE", "SIDECAR_GUARDRAILS_NO_SECRETS_MODE"),
        ("SIDECAR_server_auth", "SIDECAR_SERVER_AUTH"),
        ("SIDECAR_SERVER", ""),
        ("SIDECAR_", ""),
        ("SIDECAR_SERVER_AUTH_", "SIDECAR_SERVER_AUTH"),
        ("SIDECAR_BUDGET", ""),
    ],
)
def test_a_variable_that_names_nothing_is_a_fault(name: str, near: str) -> None:
    fault = only_fault(TEXT, {name: "off"})
    assert (fault.file, fault.line) == (name, 0)
    assert fault.message == "this variable names nothing in the policy"
    assert near in fault.hint


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SIDECAR_SERVER_MAX_CONCURRENT", "many", "expected a whole number"),
        ("SIDECAR_SERVER_MAX_CONCURRENT", "0", "expected more than 0"),
        ("SIDECAR_SERVER_MAX_BODY", "canary", "expected a size"),
        ("SIDECAR_SERVER_AUTH", "canary", "expected one of required, optional, off"),
        ("SIDECAR_SCRUB_MAX_CHARS_TOOL_RESULTS", "", "expected a whole number"),
        ("SIDECAR_PROVIDERS_X_BASE_URL", "canary://", "expected an http or https URL"),
        ("SIDECAR_MODELS_SMART_1", "canary", "expected `provider/model`"),
        ("SIDECAR_SERVER_CORS_ORIGINS", "canary", "a variable cannot hold a list"),
        ("SIDECAR_GUARDRAILS", "canary", "a variable cannot hold a list"),
        ("SIDECAR_TELEMETRY_LOG", "\udcff", "not UTF-8"),
    ],
)
def test_a_variable_that_does_not_fit_is_a_fault_under_its_name(name: str, value: str, said: str) -> None:
    fault = only_fault(TEXT, {name: value})
    assert (fault.file, fault.line) == (name, 0)
    assert said in fault.message
    assert "canary" not in str(fault)


def test_a_variable_that_can_mean_two_things_is_a_fault() -> None:
    text = "version: 1\nproviders: {a-b: {base_url: 'http://u'}, a_b: {base_url: 'http://u'}}\n"
    fault = only_fault(text, {"SIDECAR_PROVIDERS_A_B_AUTH": "bearer"})
    assert fault.message == "this variable can mean providers.a-b.auth and providers.a_b.auth"


def test_underscores_are_tried_in_every_way() -> None:
    text = "version: 1\nproviders: {a: {base_url: 'http://u'}, a-timeouts: {base_url: 'http://u'}}\n"
    environ = {"SIDECAR_PROVIDERS_A_TIMEOUTS_IDLE": "3s", "SIDECAR_PROVIDERS_A_TIMEOUTS_AUTH": "api-key"}
    snapshot = load_text(text, environ)
    assert snapshot.policy.providers["a"].timeouts.idle == 3.0
    assert snapshot.policy.providers["a-timeouts"].auth == "api-key"


@pytest.mark.parametrize(
    "name",
    [
        *(f"SIDECAR_{name}" for name in ("UPSTREAM", "POLICY", "HOST", "PORT", "WORKERS")),
        *(f"SIDECAR_SERVICE_{name}" for name in ("HOST", "PORT", "PORT_HTTP")),
        *(f"SIDECAR_PORT_8080_TCP{name}" for name in ("", "_PROTO", "_PORT", "_ADDR")),
    ],
)
def test_variables_that_are_not_policy_are_left_alone(name: str) -> None:
    assert not faults_in(TEXT, {name: "tcp://10.0.0.1:8080"})


def test_every_single_value_of_the_models_has_a_variable() -> None:
    snapshot_names = set(names(Policy, None))
    assert {"SIDECAR_SERVER_DRAIN", "SIDECAR_SCRUB_MAX_CHARS_ERRORS", "SIDECAR_TELEMETRY_LOG"} <= snapshot_names
    assert not any(name.endswith("CORS_ORIGINS") for name in snapshot_names)
