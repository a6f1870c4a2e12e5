"""The benchmark in an environment of its own under tests/.work, and its two commands."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.running import WORK, Process, clean_env, free_port, serve

FOLDER = WORK / "leakbench"
BIN = FOLDER / "venv" / "bin"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
POLICY = Path(__file__).with_name("policy.yaml")
INSTALL_SECONDS = 300
RUN_SECONDS = 600
SEED = "a1b2c3d4e5f60001"


class Unavailable(Exception):
    """The benchmark cannot be installed here; says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """How one of its commands ended."""

    code: int
    said: str


def install() -> None:
    """Raises Unavailable."""
    ready = FOLDER / "venv" / "ready"
    if ready.exists() and ready.read_text() == REQUIREMENTS.read_text():
        return
    for step in (
        [sys.executable, "-m", "venv", "--clear", str(FOLDER / "venv")],
        [str(BIN / "python"), "-m", "pip", *_PIP, "-r", str(REQUIREMENTS)],
    ):
        if (done := run(step, INSTALL_SECONDS)).code:
            last = done.said.strip().splitlines()[-1:] or ["it said nothing"]
            raise Unavailable(f"pii-leak-benchmark cannot be installed here: {last[0]}")
    ready.write_text(REQUIREMENTS.read_text())


_PIP = ("--disable-pip-version-check", "install", "-qq", "--retries", "1", "--timeout", "10")


def run(command: Sequence[str], seconds: int = RUN_SECONDS) -> Command:
    # The benchmark does not stop when told to: it is ended at the limit, which counts as a failure.
    try:
        done = subprocess.run(
            command, env=clean_env(), capture_output=True, text=True, timeout=seconds, check=False, cwd=WORK
        )
    except subprocess.TimeoutExpired:
        return Command(124, f"{command[0]} took longer than {seconds} s")
    return Command(done.returncode, done.stdout + done.stderr)


@contextmanager
def gateway(name: str) -> Iterator[tuple[Process, int]]:
    """A sidecar, and the port on which its provider is expected."""
    port = free_port()
    env = {"SIDECAR_PROVIDERS_OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    process = serve(FOLDER / f"{name}.out", policy=POLICY, env=env)
    try:
        yield process, port
    finally:
        process.stop()


def requests(sidecar: Process, port: int) -> Command:
    """Does a value reach the provider, and does it come back?"""
    report = FOLDER / f"requests-{free_port()}"
    command = [str(BIN / "pii-leak-benchmark"), "ci", "--target-base-url", f"{sidecar.url}/v1", "--duty", "restore"]
    return run([*command, "--capture-port", str(port), "--target-api-key", "any", "--out", str(report)])


def replies(sidecar: Process, port: int, *options: str, seed: str = SEED) -> tuple[Command, dict[str, Any]]:
    """Does what only the provider says come through, whole, encoded or cut? Also its two reports, as one."""
    out = FOLDER / "replies"
    command = [str(BIN / "pii-leak-benchmark-v2"), "--validate", "--out", str(out), "--only", "sidecar", "--seed", seed]
    where = ["--gateway-url", f"{sidecar.url}/v1/chat/completions", "--upstream-port", str(port)]
    done = run([*command, *where, "--partial-emission", *options])
    return done, {name: _read(out / f"sidecar{suffix}.json") for name, suffix in _REPORTS.items()}


_REPORTS = {"report": "", "partial": ".partial-emission"}


def _read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return loaded
