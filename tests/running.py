"""Starts a real `sidecar serve` for tests and ends it again, by its own process id."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
SHARED = REPO.parent / "shared"
WORK = REPO / "tests" / ".work"
READY_SECONDS = 20.0
# What a developer's shell may hold must not decide a test.
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


def shared_path(*parts: str) -> Path:
    """A file of the folder `shared` beside the repository; a FileNotFoundError names one that is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{Path('../shared', *parts)} is not here: it lies beside the repository")
    return path


def shared(*parts: str) -> Path:
    """The same for a test, which is skipped when the file is missing."""
    try:
        return shared_path(*parts)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def free_port(host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def clean_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k.lower() not in _PROXIES and not k.startswith("SIDECAR_")}
    return {**kept, "PYTHONUNBUFFERED": "1", **(extra or {})}


def answers(url: str) -> bool:
    """Whether a GET of `url` is answered with a success."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=1) as reply:
            return 200 <= reply.status < 300
    except (urllib.error.URLError, OSError):
        return False


@dataclass(slots=True)
class Process:
    """A server of ours in a process of its own; all it prints is in the file `output`."""

    process: subprocess.Popen[bytes]
    output: Path
    url: str

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        output: Path,
        url: str,
        *,
        ready: str,
        env: Mapping[str, str] | None = None,
    ) -> "Process":
        """Returns once `url + ready` answers; raises RuntimeError with what it printed if it never does."""
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as sink:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=clean_env(env), cwd=REPO
            )
        started = cls(process, output, url)
        if not wait_for(lambda: process.poll() is not None or answers(url + ready), READY_SECONDS):
            started.stop()
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} did not become ready; it said:\n{started.said()}")
        return started

    def said(self) -> str:
        return self.output.read_text("utf-8", "replace")

    @property
    def rss_mb(self) -> float:
        """Resident memory in MB."""
        return self._memory("VmRSS")

    @property
    def peak_mb(self) -> float:
        """The most resident memory it ever had, in MB."""
        return self._memory("VmHWM")

    def _memory(self, word: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(word)) / 1024

    def stop(self, patience: float = 10.0) -> int:
        """SIGTERM, then SIGKILL; returns the exit code. Stopping twice is harmless."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


def serve(
    output: Path,
    *,
    policy: Path | None = None,
    upstream: str | None = None,
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> Process:
    """A ready `sidecar serve` on a free port of 127.0.0.1."""
    port = free_port()
    command = [*sidecar("serve"), "--host", "127.0.0.1", "--port", str(port), *options]
    command += ["--policy", str(policy)] if policy else []
    command += ["--upstream", upstream] if upstream else []
    return Process.start(command, output, f"http://127.0.0.1:{port}", ready="/readyz", env=env)


def sidecar(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("sidecar")), *arguments]


def wait_for(condition: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
