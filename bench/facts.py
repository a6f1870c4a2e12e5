"""What a reader must know about the machine to judge the figures."""

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.subjects import LITELLM, Cores, find_nginx

_PACKAGES = ("uvicorn", "uvloop", "httptools", "msgspec", "google-re2")
# Above this many waiting processes per core the figures of one run are not worth keeping.
_BUSY = 0.5


def gather(cores: Cores) -> dict[str, str]:
    """Machine, versions and where things run, as lines to print."""
    return {
        "machine": f"{_cpu()}, {os.cpu_count()} cores, Linux {platform.release()}",
        "cores": _where(cores),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
        "references": f"{_nginx()}, {LITELLM}",
        "load average": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


def warning() -> str | None:
    """A warning when others are using the machine too."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores * _BUSY:
        return None
    return f"WARNING: the load average is {load:.2f} on {cores} cores; others are running, figures will be noisy"


def _where(cores: Cores) -> str:
    if cores.subject is None:
        return "only one core: subject, load and upstream share it; ratios suffer"
    return f"subject under test on core {cores.subject}; upstream and load together on core {cores.load}"


def _cpu() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    with suppress(PackageNotFoundError):
        return version(package)
    return "missing"


def _nginx() -> str:
    if not (binary := find_nginx()):
        return "no nginx yet"
    run = subprocess.run((binary, "-v"), capture_output=True, text=True, check=False)
    return run.stderr.strip().removeprefix("nginx version: ")
