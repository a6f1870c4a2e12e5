"""From a policy to a snapshot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.errors import PolicyError
from sidecar.policy.load import load
from sidecar.policy.schema import key_hash

from .texts import HEAD, load_text

FULL = """
version: 1
providers:
  openai: {base_url: 'https://api.openai.com/v1/'}
  local: {base_url: 'http://127.0.0.1:11434/v1', api_key: '${KEY}', auth: x-api-key, timeouts: {idle: 1m}}
models: {smart: [openai/gpt-5, local/org/qwen3], fast: local/mini}
tenants: [{name: acme, keys: ['sha256:%s']}]
guardrails:
  - {name: b, words: [{list: [x]}], mode: shadow}
  - {name: a, words: [{list: [y]}]}
  - {name: c, words: [{list: [z]}], mode: off}
""" % ("AB" * 32)


def test_a_snapshot_has_what_the_runtime_needs() -> None:
    snapshot = load_text(FULL, {"KEY": "s3cret"})
    local = snapshot.providers["local"]
    assert snapshot.default is snapshot.providers["openai"]
    assert (local.api_key, local.auth, local.timeouts.idle, local.timeouts.connect) == (
        "s3cret",
        "x-api-key",
        60.0,
        5.0,
    )
    assert [(target.provider.name, target.model) for target in snapshot.models["smart"]] == [
        ("openai", "gpt-5"),
        ("local", "org/qwen3"),
    ]
    assert snapshot.models["fast"][0].provider is local
    assert snapshot.tenants == {"ab" * 32: "acme"}
    assert [step.stage.name for step in snapshot.chain.down] == ["b", "a"]
    assert not snapshot.inert
    assert "s3cret" not in repr(snapshot)


def test_a_snapshot_cannot_be_changed() -> None:
    snapshot = load_text(HEAD)
    with pytest.raises(AttributeError):
        snapshot.inert = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        snapshot.providers["x"] = snapshot.providers["p"]  # type: ignore[index]


def test_no_policy_is_inert_and_goes_to_the_upstream() -> None:
    snapshot = load(None, {}, "http://u:1/v1")
    assert snapshot.inert
    assert snapshot.default is not None
    assert (snapshot.default.name, snapshot.default.base_url) == ("default", "http://u:1/v1")


def test_no_policy_takes_overrides() -> None:
    environ = {"SIDECAR_TELEMETRY_LOG": "stderr", "SIDECAR_PROVIDERS_DEFAULT_TIMEOUTS_IDLE": "9s"}
    snapshot = load(None, environ, "http://u")
    assert snapshot.telemetry.log == "stderr"
    assert snapshot.providers["default"].timeouts.idle == 9.0


def test_neither_policy_nor_upstream_is_a_fault() -> None:
    with pytest.raises(PolicyError, match=r"nothing says where requests go.*--upstream"):
        load(None, {})


@pytest.mark.parametrize("upstream", ["", "u", "ftp://u", "http://a:canary@u", "http://u?canary", "http://[canary"])
def test_a_bad_upstream_is_a_fault(upstream: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load(None, {}, upstream)
    (fault,) = caught.value.faults
    assert (fault.file, fault.where) == ("--upstream", "providers.default.base_url")
    assert "canary" not in str(fault)


def test_an_upstream_stands_over_the_first_provider() -> None:
    snapshot = load_text(FULL, {"KEY": "k"}, "http://other")
    assert [provider.base_url for provider in snapshot.providers.values()] == [
        "http://other",
        "http://127.0.0.1:11434/v1",
    ]


def test_a_policy_may_leave_the_provider_to_the_command_line() -> None:
    assert load_text("version: 1\n").default is None
    assert list(load_text("version: 1\n", {}, "http://u").providers) == ["default"]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nope.yaml: cannot be read: No such file"):
        load(tmp_path / "nope.yaml", {})


INERT = ["", "server: {max_concurrent: 5, drain: 1s}\n", "telemetry: {log: stderr}\n", "scrub: {replacement: x}\n"]
ACTING = [
    "models: {m: p/x}\n",
    f"tenants: [{{name: a, keys: ['sha256:{'0' * 64}']}}]\n",
    "server: {max_body: 1MB}\n",
    "server: {auth: optional}\n",
    "guardrails: [{name: r, words: [{list: [x]}], mode: shadow}]\n",
    "scrub: {max_chars: {tool_results: 9}}\n",
]


@pytest.mark.parametrize(("section", "inert"), [*((text, True) for text in INERT), *((text, False) for text in ACTING)])
def test_what_looks_at_nothing_is_inert(section: str, inert: bool) -> None:
    assert load_text(HEAD + section).inert is inert


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        (HEAD + "guardrails: [{name: r, words: [{list: [x]}], mode: off}]\n", True),
        ("version: 1\nproviders: {p: {base_url: 'http://u', api_key: k}}\n", False),
        ("version: 1\nproviders: {p: {base_url: 'http://u'}, q: {base_url: 'http://u'}}\n", False),
    ],
)
def test_rules_that_are_off_and_providers(text: str, inert: bool) -> None:
    assert load_text(text).inert is inert


def digest(text: str, **environ: str) -> str:
    return load_text(text, environ).digest


def test_a_digest_is_16_hex_digits_and_tells_policies_apart() -> None:
    assert len(digest(HEAD)) == 16
    assert set(digest(HEAD)) <= set("0123456789abcdef")
    assert digest(HEAD) == digest("# a comment\n" + HEAD)
    assert digest(HEAD) == digest(HEAD + "guardrails: []\n")
    assert digest(HEAD) != digest(HEAD + "server: {drain: 1s}\n")


def test_a_digest_does_not_hold_secrets_but_whether_there_are_any() -> None:
    text = "version: 1\nproviders: {p: {base_url: 'http://u', api_key: '${K}'}}\n"
    assert digest(text, K="one") == digest(text, K="two")
    assert digest(text, K="one") != digest("version: 1\nproviders: {p: {base_url: 'http://u'}}\n")


def test_the_order_of_keys_counts_only_where_it_means_something() -> None:
    one, two = "a: {base_url: 'http://a'}", "b: {base_url: 'http://b'}"
    models = "models: {%s}\n"
    ordered = "version: 1\nproviders: {%s, %s}\n"
    assert digest(ordered % (one, two)) != digest(ordered % (two, one))
    both = ordered % (one, two)
    assert digest(both + models % "x: a/1, y: a/2") == digest(both + models % "y: a/2, x: a/1")
    assert digest(both + models % "x: [a/1, b/2]") != digest(both + models % "x: [b/2, a/1]")


def test_a_digest_is_the_same_in_every_process() -> None:
    program = "import sys; from tests.policy.test_load import FULL, digest; sys.stdout.write(digest(FULL, KEY='x'))"
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.decode()
        for seed in ("1", "2")
    }
    assert said == {digest(FULL, KEY="y")}


def test_key_hashes_are_compared_in_lower_case() -> None:
    assert key_hash("sha256:" + "AbCd" * 16) == "abcd" * 16
