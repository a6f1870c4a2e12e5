"""The npm client and the Vercel AI SDK under Node, installed into tests/.work on first use."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.upstream import Upstream
from tests.running import WORK, Process, clean_env

from . import agent
from .conftest import clean, hidden_in
from .model import Threads
from .provider import CLIENT_KEY, CLIENTS, PLACEHOLDER, answer

HERE = Path(__file__).with_name("node")
INSTALL_SECONDS = 120
OLDEST_NODE = 20
TALK_SECONDS = 60
ECHO = f"You said my key is {PLACEHOLDER}. I say {PLACEHOLDER}, no more."
ARGUMENTS = [{"query": f"Oslo {PLACEHOLDER}", "n": 0}, {"query": f"Lima {PLACEHOLDER}", "n": 1}]


@pytest.fixture(scope="module")
def folder(worker_id: str) -> Path:
    """Where the client is installed; a skip where there is no Node or no registry."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST_NODE:
        pytest.skip(f"the clients need Node.js {OLDEST_NODE} or later, this is {version}")
    folder = WORK / f"node-{worker_id}"
    wanted = (HERE / "package.json").read_text()
    if not (folder / "node_modules").exists() or (folder / "package.json").read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(wanted)
        _install(folder)
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    return folder


def _install(folder: Path) -> None:
    options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    try:
        subprocess.run(["npm", "install", *options], cwd=folder, timeout=INSTALL_SECONDS, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        pytest.skip(f"npm could not install the client: {error}")


@pytest.fixture(scope="module")
def got(folder: Path, sidecar: Process, _upstream: Upstream) -> Any:
    """Everything that the conversation gave the client, without a secret in it."""
    _upstream.play([answer])
    said = _node(folder, "talk.mjs", f"{sidecar.url}/v1", CLIENT_KEY, CLIENTS)
    assert all(CLIENTS not in seen.everything for seen in _upstream.requests)
    return said, list(_upstream.requests)


def _node(folder: Path, *script: str) -> Any:
    """What a script prints, which holds no secret."""
    command = ["node", *script]
    done = subprocess.run(command, cwd=folder, timeout=TALK_SECONDS, capture_output=True, env=clean_env(), check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(clean(done.stdout.decode()))


def test_buffered(got: Any) -> None:
    assert got[0]["buffered"] == ECHO
    assert list(map(json.loads, got[0]["called"])) == ARGUMENTS


def test_streamed(got: Any) -> None:
    assert got[0]["streamed"] == {"text": ECHO, "finish": "stop", "calls": [], "error": None}
    assert got[0]["helper"] == ECHO
    assert list(map(json.loads, got[0]["streamedCalls"]["calls"])) == ARGUMENTS


def test_blocked(got: Any) -> None:
    assert got[0]["blocked"]["name"] == "BadRequestError"
    assert got[0]["blocked"]["code"] == "guardrail_tripped"
    assert got[0]["blocked"]["param"]


def test_blocked_stream(got: Any) -> None:
    assert got[0]["blockedStream"]["error"]["code"] == "guardrail_tripped"
    assert got[0]["filteredStream"]["finish"] == "content_filter"
    assert got[0]["filteredStream"]["error"] is None


def test_limited(got: Any) -> None:
    assert (got[0]["limited"]["name"], got[0]["limited"]["status"]) == ("RateLimitError", 429)


def test_nothing_is_asked_twice(got: Any) -> None:
    models = [seen.json["model"] for seen in got[1]]
    assert models.count("says-forbidden-topic") == 1
    assert models.count("says-quiet-topic") == 1
    assert models.count("status-429") == 1
    assert len(models) == 8


@pytest.fixture(scope="module")
def acted(folder: Path, native: Process, bridged: Process, _upstream: Upstream) -> Any:
    """What the agents came to, and what the provider saw of them, by model."""
    _upstream.play([Threads().answer])
    given = {"system": agent.SYSTEM, "ask": agent.ASK, "hi": agent.HI, "secret": CLIENTS}
    said = _node(folder, "agent.mjs", native.url, bridged.url, CLIENT_KEY, json.dumps(given))
    assert all(not hidden_in(seen.everything) for seen in _upstream.requests)
    return said, list(_upstream.requests)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("responses", "ai-responses"),
        ("bridged", "ai-bridged"),
        ("chat", "ai-chat"),
        ("whole", "ai-whole"),
        ("npm", "npm"),
        ("npmStreamed", "npm-streamed"),
    ],
)
def test_agent(name: str, model: str, acted: Any) -> None:
    got, seen = acted[0][name], [seen for seen in acted[1] if seen.json["model"] == model]
    agent.check_final(got["text"])
    assert sorted(map(tuple, got["calls"])) == [(tool, agent.ARGUMENTS) for tool in agent.TOOLS]
    agent.check_seen(seen, turns=2)


@pytest.mark.parametrize("name", ["responses", "bridged", "chat"])
def test_agent_streams(name: str, acted: Any) -> None:
    assert acted[0][name]["deltas"] > 10
    assert acted[0][name]["finish"] == "stop"


@pytest.mark.parametrize("name", ["blocked", "blockedBridged"])
def test_agent_blocked_in_a_stream(name: str, acted: Any) -> None:
    got = acted[0][name]
    assert got["text"] == agent.BLOCKED_AT
    assert "guardrail_tripped" in got["error"]["raw"]


@pytest.mark.parametrize("name", ["cut", "cutBridged"])
def test_agent_cut_in_a_stream(name: str, acted: Any) -> None:
    got = acted[0][name]
    assert (got["text"], got["finish"], got["error"]) == (agent.BLOCKED_AT, "content-filter", None)


def test_agents_are_refused(acted: Any) -> None:
    refused = {name: acted[0][name] for name in ("refused", "wrongKey", "tooLarge")}
    assert [got["name"] for got in refused.values()] == ["AI_APICallError"] * 3
    assert [got["status"] for got in refused.values()] == [400, 401, 413]
    assert refused["refused"]["code"] == "guardrail_tripped"


def test_agents_ask_nothing_twice(acted: Any) -> None:
    models = [(seen.target, seen.json["model"]) for seen in acted[1]]
    assert all(models.count((target, model)) == 1 for target, model in models if model.startswith("says-"))
    assert all(model != "ai-refused" for _, model in models)
