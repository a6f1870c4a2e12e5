"""What is compared: the sidecar's scanner in this process, and its peers in environments of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.scan.peers.wire import nanoseconds
from bench.scan.surroundings import deltas
from bench.subjects import LITELLM, ROOT, WORK, Skipped
from sidecar.text.detectors import resolve
from sidecar.text.matcher import Shape
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import Scrubber, scrub

PEERS = ROOT / "bench" / "scan" / "peers"
_BATCH = 200
Found = list[tuple[int, int]]


class Finder(Protocol):
    """Finds spans, in characters."""

    def find(self, texts: Sequence[str]) -> list[Found]: ...
    def nanoseconds(self, text: str, seconds: float) -> float: ...


def ruleset(names: Iterable[str]) -> Ruleset:
    """A warm rule set of detectors and packs."""
    rules = Ruleset([Shape.of(d.name, d.regex, d.check, is_ours=True) for d in resolve(names)])
    rules.warm()
    return rules


class Sidecar:
    """Some packs in one rule set."""

    def __init__(self, *packs: str) -> None:
        self.rules = ruleset(packs)

    def find(self, texts: Sequence[str]) -> list[Found]:
        return [[(hit.start, hit.end) for hit in scrub(self.rules, text)[1]] for text in texts]

    def find_streamed(self, text: str, size: int) -> tuple[Found, str]:
        """The spans and the text that is left, when it comes in deltas of `size` characters."""
        scrubber = Scrubber(self.rules)
        ops = [op for delta in deltas(text, size) for op in scrubber.feed(delta)]
        ops.extend(scrubber.finish())
        return [(hit.start, hit.end) for hit in scrubber.hits], "".join(op.text for op in ops)

    def nanoseconds(self, text: str, seconds: float) -> float:
        return nanoseconds(lambda: scrub(self.rules, text)[1], seconds)


@dataclass(frozen=True, slots=True)
class Package:
    """A peer: the requirement it is installed from, the script that drives it, and the environment it lives in."""

    name: str
    requirement: str
    script: str
    home: Path


PACKAGES = (
    Package("detect-secrets", "detect-secrets==1.5.0", "detect_secrets_peer.py", WORK / "scan" / "detect-secrets"),
    Package("presidio", "presidio-analyzer==2.2.366", "presidio_peer.py", WORK / "scan" / "presidio"),
    # Shares its environment with the comparison of proxies, which needs the same release.
    Package("litellm", LITELLM, "litellm_peer.py", WORK / "litellm"),
)


class Peer:
    """A running peer."""

    def __init__(self, process: subprocess.Popen[str], version: str) -> None:
        self._process, self.version = process, version

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return _line(self._process)

    def of(self, kind: str) -> "PeerFinder":
        return PeerFinder(self, kind)


@dataclass(frozen=True, slots=True)
class PeerFinder:
    """A peer that looks for one kind of thing."""

    peer: Peer
    kind: str

    def find(self, texts: Sequence[str]) -> list[Found]:
        found: list[Found] = []
        for start in range(0, len(texts), _BATCH):
            answer = self.peer.ask({"kind": self.kind, "texts": texts[start : start + _BATCH]})
            found += [[(span[0], span[1]) for span in spans] for spans in answer["spans"]]
        return found

    def nanoseconds(self, text: str, seconds: float) -> float:
        return float(self.peer.ask({"kind": self.kind, "time": text, "for": seconds})["ns"])


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise Skipped("it ended by itself; its last words are in bench/.work/scan")
    answer: dict[str, Any] = json.loads(line)
    return answer


@contextmanager
def running(package: Package, *, install: bool) -> Iterator[Peer]:
    """A peer, installed where it is not yet. Raises Skipped."""
    python = _installed(package, install=install)
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONUTF8": "1"}
    (WORK / "scan").mkdir(parents=True, exist_ok=True)
    with (WORK / "scan" / f"{package.name}.log").open("w") as log:
        command = (str(python), str(PEERS / package.script))
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, text=True, encoding="utf-8"
        )
        try:
            yield Peer(process, _line(process)["ready"])
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _installed(package: Package, *, install: bool) -> Path:
    python = package.home / "bin" / "python"
    ready = package.home / f"ready-{package.requirement.rpartition('=')[2]}"
    if not ready.exists():
        if not install:
            raise Skipped(f"{package.requirement} is not installed; `make bench-scan` without --quick does that")
        _install(package, python)
        ready.touch()
    return python


def _install(package: Package, python: Path) -> None:
    print(f"installing {package.requirement} into {package.home.relative_to(ROOT)}", flush=True)
    base = Path(sys.base_prefix) / "bin" / "python3"
    steps = (
        (str(base) if base.exists() else sys.executable, "-m", "venv", str(package.home)),
        (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package.requirement),
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"cannot install {package.requirement}: {done.stderr.strip()[-300:]}")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the detection tables."""

    label: str
    finder: Finder


def own_columns() -> dict[str, list[Column]]:
    """The sidecar's columns by kind."""
    return {
        "secrets": [Column("sidecar", Sidecar("secrets"))],
        "pii": [
            Column("sidecar", Sidecar("pii")),
            Column("sidecar +bare", Sidecar("pii", "pii-bare")),
            Column("sidecar +bare +loose", Sidecar("pii", "pii-bare", "pii-loose")),
        ],
        "injection": [Column("sidecar", Sidecar("injection"))],
    }


# What each peer can be asked for: kind, column, and how the peer calls it.
PEER_COLUMNS = {
    "detect-secrets": (("secrets", "detect-secrets", "secrets"),),
    "presidio": (("pii", "presidio", "pii"), ("pii", "presidio ≥0.5", "pii-sure")),
    "litellm": (("secrets", "litellm", "secrets"), ("pii", "litellm", "pii"), ("injection", "litellm", "injection")),
}


def add_peer(columns: dict[str, list[Column]], name: str, peer: Peer) -> None:
    for kind, label, asked in PEER_COLUMNS[name]:
        columns[kind].append(Column(label, peer.of(asked)))
