"""What the kernel knows about a process tree: CPU time and resident memory. Linux only."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
# Fields of /proc/PID/stat after the name in parentheses, counted from `state`.
_SESSION, _UTIME, _STIME = 3, 11, 12


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a tree in KiB, now and at its highest (the sum of each process's own peak)."""

    rss: int
    peak: int


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def session_pids(leader: int) -> list[int]:
    """Every process of the session that `leader` started, itself included."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int(_stat(int(entry.name))[_SESSION]) == leader:
                    found.append(int(entry.name))
    return found


def _cpu_of(pid: int) -> float:
    # The process's own CPU clock (see clock_getcpuclockid(3)) is utime + stime of all its threads, living and
    # ended, in nanoseconds; /proc/PID/stat rounds the same sum to ticks of 10 ms.
    with suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    fields = _stat(pid)
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS


def cpu_seconds(leader: int) -> float:
    """User and system CPU time used so far by the living processes of the session."""
    total = 0.0
    for pid in session_pids(leader):
        with suppress(OSError):
            total += _cpu_of(pid)
    return total


def memory(leader: int) -> Memory:
    """Resident memory of the session's processes."""
    rss = peak = 0
    for pid in session_pids(leader):
        with suppress(OSError):
            status = dict(line.split(":", 1) for line in (_PROC / str(pid) / "status").read_text().splitlines())
            rss += int(status.get("VmRSS", "0 kB").split()[0])
            peak += int(status.get("VmHWM", "0 kB").split()[0])
    return Memory(rss, peak)
