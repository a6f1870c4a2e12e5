"""The npm client under Node, installed into tests/.work on first use."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.upstream import Upstream
from tests.running import WORK, Process, clean_env

from .conftest import clean
from .provider import CLIENT_KEY, CLIENTS, PLACEHOLDER, answer

HERE = Path(__file__).with_name("node")
INSTALL_SECONDS = 120
TALK_SECONDS = 60
ECHO = f"You said my key is {PLACEHOLDER}. I say {PLACEHOLDER}, no more."
ARGUMENTS = [{"query": f"Oslo {PLACEHOLDER}", "n": 0}, {"query": f"Lima {PLACEHOLDER}", "n": 1}]


@pytest.fixture(scope="module")
def folder(worker_id: str) -> Path:
    """Where the client is installed; a skip where there is no Node or no registry."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    folder = WORK / f"node-{worker_id}"
    wanted = (HERE / "package.json").read_text()
    if not (folder / "node_modules").exists() or (folder / "package.json").read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(wanted)
        _install(folder)
    shutil.copy(HERE / "talk.mjs", folder)
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
    command = ["node", "talk.mjs", f"{sidecar.url}/v1", CLIENT_KEY, CLIENTS]
    done = subprocess.run(command, cwd=folder, timeout=TALK_SECONDS, capture_output=True, env=clean_env(), check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert all(CLIENTS not in seen.everything for seen in _upstream.requests)
    return json.loads(clean(done.stdout.decode())), list(_upstream.requests)


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
