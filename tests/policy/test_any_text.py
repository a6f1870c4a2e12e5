"""Whatever is given as a policy: a snapshot or faults, and nothing else."""

import json
import os
import random
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.errors import PolicyError
from sidecar.policy.check import FAULTY, Report, as_json, human
from sidecar.policy.load import parse

VALID = """version: 1
providers:
  openai: {base_url: 'https://api.openai.com/v1'}
  local:
    base_url: ${U:-http://127.0.0.1:11434/v1}
    api_key: ${K}
    auth: bearer
    timeouts: {connect: 5s, first_byte: 60s, idle: 1m, total: 10m}
models: {smart: [openai/gpt-5, local/qwen3], fast: local/x}
server: {auth: optional, cors_origins: ['*'], max_body: 20MB, max_concurrent: 1000, drain: 5s}
tenants:
  - name: acme
    keys: ["sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"]
guardrails:
  - &rule
    name: numbers
    patterns: [{name: ticket, regex: 'ACME-\\d{6}'}]
    words: [{list: [project-x], ignore_case: true}]
    on: [user, reply]
    action: redact
    mode: enforce
  - {<<: *rule, name: more, mode: shadow}
scrub: {replacement: "[{name}]", max_chars: {tool_results: 20_000, errors: 512}}
telemetry: {log: stderr}
"""
ENVIRON = {"K": "canary-key", "SIDECAR_SERVER_DRAIN": "7s"}
NIGHTLY = bool(os.environ.get("FUZZ"))
SIZE = settings(
    max_examples=50_000 if NIGHTLY else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
_PIECES = (
    *"[]{}:,&*!|>'\"%@`#?-~\\\t\n \x00\x07é😀\u2028",
    "<<: ",
    "- ",
    "${",
    "${X}",
    "*rule",
    "&rule",
    "null",
    "9" * 40,
    "---\n",
)


def loads_or_faults(content: bytes) -> None:
    try:
        assert len(parse([("p.yaml", content)], ENVIRON).digest) == 16
    except PolicyError as error:
        told(error, content)


def told(error: PolicyError, content: bytes) -> None:
    """The faults can be shown, come from somewhere and show nothing of the environment."""
    lines = {"p.yaml": content.decode("utf-8", "replace").splitlines()}
    report = Report("p.yaml", FAULTY, None, error.faults, lines)
    assert error.faults
    assert "canary" not in human(report) + as_json([report])
    assert {fault.file for fault in error.faults} <= {"p.yaml", "SIDECAR_SERVER_DRAIN"}


def test_the_valid_policy_is_valid() -> None:
    assert not parse([("p.yaml", VALID.encode())], ENVIRON).inert


@SIZE
@given(st.text())
def test_any_text(text: str) -> None:
    loads_or_faults(text.encode("utf-8", "surrogatepass"))


@SIZE
@given(st.binary())
def test_any_bytes(content: bytes) -> None:
    loads_or_faults(content)


def _cut(chance: random.Random, text: str) -> str:
    begin, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text[:begin] + text[min(end, begin + 20) :]


def _insert(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return f"{text[:at]}{chance.choice(_PIECES)}{text[at:]}"


def _swap_lines(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


def _repeat_line(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines or [""]))
    return "".join(lines)


def _change_word(chance: random.Random, text: str) -> str:
    words = text.split(" ")
    words[chance.randrange(len(words))] = chance.choice(words)
    return " ".join(words)


Change = Callable[[random.Random, str], str]
_CHANGES: tuple[Change, ...] = (
    _cut,
    _insert,
    _insert,
    _repeat_line,
    _change_word,
    _change_word,
    _swap_lines,
)


@SIZE
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_a_valid_policy_with_changes(seed: int, changes: int) -> None:
    chance = random.Random(seed)
    text = VALID
    for _ in range(changes):
        change: Change = chance.choice(_CHANGES[:-1] if chance.random() < 0.9 else _CHANGES)
        text = change(chance, text) or VALID
    loads_or_faults(text.encode())


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["secrets", "email", "redact", "p/x", "sha256:" + "0" * 64, "5s", "1MB", "http://u", "${K}", "(", "off"]
    ),
)
_KEYS = st.one_of(
    st.sampled_from(
        [
            "version",
            "providers",
            "models",
            "server",
            "tenants",
            "guardrails",
            "scrub",
            "telemetry",
            "base_url",
            "api_key",
            "auth",
            "timeouts",
            "idle",
            "name",
            "keys",
            "detect",
            "patterns",
            "regex",
            "words",
            "list",
            "on",
            "action",
            "mode",
            "replacement",
            "max_chars",
            "errors",
            "max_body",
            "drain",
            "log",
            "p",
        ]
    ),
    st.text(max_size=4),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@SIZE
@given(st.dictionaries(_KEYS, _VALUES, max_size=6))
def test_any_values_under_the_languages_own_keys(policy: dict[str, object]) -> None:
    loads_or_faults(json.dumps({"version": 1, **policy}).encode())
