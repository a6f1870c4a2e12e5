"""Bad policies: `sidecar check` and `sidecar serve` refuse them, with the place and name of the fault."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.running import clean_env, free_port, shared, sidecar

from .catalogue import load
from .client import ask
from .conftest import Sidecars
from .policy import setup
from .upstream import Upstream

PROVIDER = "version: 1\nproviders: {upstream: {base_url: 'http://127.0.0.1:9/v1'}}\n"
START_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    text: str


def run(command: str, *arguments: str) -> Said:
    done = subprocess.run(
        sidecar(command, *arguments), capture_output=True, timeout=START_SECONDS, env=clean_env(), check=False
    )
    return Said(done.returncode, (done.stdout + done.stderr).decode())


@pytest.fixture
def write(tmp_path: Path) -> "Write":
    return Write(tmp_path / "policy.yaml")


@dataclass(frozen=True, slots=True)
class Write:
    path: Path

    def refused(self, text: str, *names: str) -> str:
        """`check` refuses this policy and names these; returns what it said."""
        self.path.write_text(text, "utf-8")
        return self._refuses(run("check", str(self.path)), names)

    def refused_by_serve(self, text: str, *names: str) -> str:
        self.path.write_text(text, "utf-8")
        return self._refuses(run("serve", "--policy", str(self.path), "--port", str(free_port())), names)

    def _refuses(self, said: Said, names: Sequence[str]) -> str:
        assert said.code != 0
        assert [name for name in names if name not in said.text] == []
        assert "Traceback" not in said.text
        return said.text

    def accepted(self, text: str) -> None:
        self.path.write_text(text, "utf-8")
        said = run("check", str(self.path))
        assert said.code == 0, said.text


MISSPELT = "version: 1\nguardrail:\n  - redact: email\n"
TWICE = "guardrails:\n  - name: {}\n    action: block\n    words: [{{list: [x]}}]\n"
TWICE_OVER = PROVIDER + TWICE.format("a") + TWICE.format("b")
BACKSPACE = r"""
guardrails:
- name: a
  action: redact
  patterns: [{name: k, regex: "\bzk-[A-Za-z0-9]{16}\b"}]
"""


def test_misspelt_section(write: Write) -> None:
    said = write.refused(MISSPELT, "guardrail", ":2:1")
    assert "guardrails" in said, "the nearest valid name is not told"


@pytest.mark.parametrize("name", ["H01", "H02"])
def test_the_words_of_the_case(name: str, write: Write) -> None:
    case = load().get(name) or shared("cases", "open.jsonl")
    write.refused(case["input"]["yaml"], *case["expect"]["message_names"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(MISSPELT, ["guardrail", ":2:1"], id="misspelt"),
        pytest.param(TWICE_OVER, ["guardrails", ":7:1"], id="twice"),
        pytest.param(PROVIDER + BACKSPACE, ["U+0008", ":7:"], id="backspace"),
        pytest.param("version: 1\nguardrails: [\n", ["policy.yaml:"], id="broken"),
    ],
)
def test_serve_refuses_too(text: str, names: list[str], write: Write) -> None:
    write.refused_by_serve(text, *names)


def test_rules_at_top_level(write: Write) -> None:
    write.refused("version: 1\nrules:\n  - name: a\n", "rules", ":2:1")


def test_unknown_key_below(write: Write) -> None:
    write.refused(PROVIDER.replace("base_url", "timeouts: {idel: 5s}, base_url"), "idel", "idle", ":2:")


def test_misspelt_key(write: Write) -> None:
    rule = "guardrails:\n- name: a\n  action: redact\n  patterns:\n  - {name: x, pattren: 'a+'}\n"
    write.refused(PROVIDER + rule, "pattren", ":7:")


def test_every_fault_at_once(write: Write) -> None:
    first = "guardrails:\n- {name: a, action: erase, words: [{list: [x]}]}\n"
    second = "- {name: b, patterns: [{name: x, regex: '('}]}\ntelemetri: {}\n"
    write.refused(PROVIDER + first + second, "guardrails[0].action", ":4:", ":5:", "telemetri", ":6:1")


def test_duplicate_section(write: Write) -> None:
    write.refused(TWICE_OVER, "guardrails", ":7:1")


def test_duplicate_below(write: Write) -> None:
    rule = "guardrails:\n- name: a\n  action: block\n  action: redact\n  words: [{list: [x]}]\n"
    write.refused(PROVIDER + rule, "action", ":6:3")


def test_merge_key(write: Write) -> None:
    rules = (
        "guardrails:\n- &base\n  name: a\n  action: redact\n  words: [{list: [x]}]\n"
        "- <<: *base\n  name: b\n  action: block\n"
    )
    write.accepted(PROVIDER + rules)


def test_control_character(write: Write) -> None:
    write.refused(PROVIDER + BACKSPACE, "U+0008", ":7:")


def test_broken_escape(write: Write) -> None:
    rule = 'guardrails:\n- name: a\n  action: redact\n  patterns: [{name: k, regex: "zk-\\d"}]\n'
    write.refused(PROVIDER + rule, ":6:")


def test_single_quoted(write: Write, sidecars: Sidecars, provider: Upstream) -> None:
    key = {"name": "key", "regex": r"\bzk-[A-Za-z0-9]{16}\b", "replace": "[MASK]"}
    policy = setup([{"action": "redact", "rule": key, "on": ["prompt"]}], f"{provider.origin}/v1").policy
    provider.play([{"status": 200, "json": {}}])
    message = {"role": "user", "content": "k zk-A1b2C3d4E5f6G7h8 ."}
    document = {"model": "m1", "messages": [message]}
    ask(sidecars.get(policy).url, {"method": "POST", "path": "/v1/chat/completions", "json": document})
    assert provider.requests[0].json["messages"][0]["content"] == "k [MASK] ."


@pytest.mark.parametrize("text", ["", "[]\n", "guardrails: [\n", "version: 2\n", "\tversion: 1\n", "version: 1\n\x00"])
def test_not_a_policy(text: str, write: Write) -> None:
    write.refused(text, str(write.path))
