"""`python -m bench.scan.footprint NAME`: one subject in a process of its own; prints its memory as JSON."""

import json
import subprocess
import sys
import time
from pathlib import Path

from bench.scan import texts
from bench.scan.speed import MAKERS, made
from bench.subjects import ROOT

_PAGE_KIB = 4


def resident() -> float:
    """MiB resident in this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KIB / 1024


def measure(name: str) -> dict[str, float]:
    """What a subject adds: when it is ready, after clean texts, after random ones; and its first look."""
    clean = [make(333_000, 3) for make in texts.CLEAN.values()]
    noise = [make(100_000, seed) for make in texts.RANDOM.values() for seed in range(3)]
    first = texts.prose(10_000, 99)
    before = resident()
    subject = made(name, MAKERS[name])
    ready = resident()
    began = time.process_time()
    subject.look(first)
    took = time.process_time() - began
    for text in clean:
        subject.look(text)
    after_clean = resident()
    for text in noise:
        subject.look(text)
    sizes = {"ready": ready, "clean": after_clean, "random": resident()}
    return {"first_us": took * 1e6, **{key: value - before for key, value in sizes.items()}}


def of(name: str) -> dict[str, float]:
    """`measure` in a fresh process; empty when that fails."""
    command = (sys.executable, "-m", "bench.scan.footprint", name)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    result: dict[str, float] = json.loads(done.stdout) if done.returncode == 0 else {}
    return result


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
