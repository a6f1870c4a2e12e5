"""A policy that changes under a running sidecar: a bad one is refused and told, the old one stays."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running import Process, serve, wait_for

from .catalogue import load
from .client import ask
from .policy import setup
from .upstream import Upstream

# Twice what it takes to look at the file again.
NOTICED_SECONDS = 4.0
BAD = {
    "broken YAML": load().get("H05", {"input": {"yaml": "rules: [\n"}})["input"]["yaml"],
    "empty file": "",
    "misspelt section": "version: 1\nguardrail: []\n",
    "regex that does not compile": (
        "version: 1\nproviders: {a: {base_url: 'http://127.0.0.1:9'}}\n"
        "guardrails: [{name: a, patterns: [{name: b, regex: '('}]}]\n"
    ),
}


@dataclass(frozen=True, slots=True)
class Running:
    """A sidecar that masks e-mail addresses, and its policy's file."""

    process: Process
    path: Path
    provider: Upstream

    def write(self, placeholder: str) -> None:
        """Puts a good policy in place with one rename."""
        rule = {"name": "email", "regex": r"[\w.]+@[\w.]+\.\w+", "replace": placeholder}
        intents = [{"action": "redact", "rule": rule, "on": ["prompt"]}]
        new = self.path.with_suffix(".new")
        new.write_text(yaml.safe_dump(setup(intents, f"{self.provider.origin}/v1").policy), "utf-8")
        new.replace(self.path)

    def sent(self) -> str:
        """What an e-mail address becomes on its way to the provider."""
        self.provider.play([{"status": 200, "json": {}}])
        message = {"role": "user", "content": "ana.fict@example.com"}
        document = {"model": "m1", "messages": [message]}
        ask(self.process.url, {"method": "POST", "path": "/v1/chat/completions", "json": document})
        content: str = self.provider.requests[0].json["messages"][0]["content"]
        return content

    def health(self) -> Any:
        return ask(self.process.url, {"method": "GET", "path": "/healthz"}).json


@pytest.fixture(scope="module")
def _running(_provider: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("reload")
    path = folder / "policy.yaml"
    Running(None, path, _provider).write("[MASK]")  # type: ignore[arg-type]
    running = Running(serve(folder / "output", policy=path), path, _provider)
    yield running
    running.process.stop()


@pytest.fixture
def running(_running: Running) -> Running:
    """With a good policy in force."""
    _running.write("[MASK]")
    assert wait_for(lambda: _running.sent() == "[MASK]", NOTICED_SECONDS, every=0.1)
    assert wait_for(lambda: "policy_fault" not in _running.health(), NOTICED_SECONDS, every=0.1)
    return _running


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_changes_nothing(text: str, running: Running) -> None:
    before = running.health()
    said = len(running.process.said())
    running.path.write_text(text)
    assert wait_for(lambda: "policy_fault" in running.health(), NOTICED_SECONDS, every=0.1)
    assert running.sent() == "[MASK]"
    assert running.health()["policy"] == before["policy"]
    assert wait_for(lambda: "policy.yaml" in running.process.said()[said:], 1), "the log does not tell"
    running.write("[NEW]")
    assert wait_for(lambda: running.sent() == "[NEW]", NOTICED_SECONDS, every=0.1)
    assert "policy_fault" not in running.health()


def test_a_missing_file_changes_nothing(running: Running) -> None:
    away = running.path.with_suffix(".away")
    running.path.rename(away)
    assert wait_for(lambda: "policy_fault" in running.health(), NOTICED_SECONDS, every=0.1)
    assert running.sent() == "[MASK]"
    away.rename(running.path)
    assert wait_for(lambda: "policy_fault" not in running.health(), NOTICED_SECONDS, every=0.1)
    assert running.sent() == "[MASK]"
