"""One JSON line for each exchange and each event of the process, to stdout, stderr or a file.

Writing happens on a thread of its own: a pipe that nobody reads or a slow disk never holds up an exchange. When
more than MAX_WAITING lines wait, new ones are dropped and counted, and the count is told in a line of its own.
"""

import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec

from .record import Record

MAX_WAITING = 10_000
# Lines wait so long for others to be written together with them.
_GATHER_SECONDS = 0.02

_encode = msgspec.json.Encoder().encode


class LogLine:
    """A sink of lines. `destination` is stdout, stderr or a file's path; raises OSError if that cannot be opened."""

    def __init__(self, destination: str) -> None:
        self.destination = destination
        self._fd = _open(destination)
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._more = threading.Event()
        self._closing = False
        self._writing = False
        self._thread: threading.Thread | None = None

    def write(self, record: Record) -> None:
        """Puts an exchange's line on its way. Never blocks, never raises."""
        self.tell(record.line(time.perf_counter()))

    def tell(self, fields: dict[str, Any]) -> None:
        """Puts a line on its way. Never blocks, never raises."""
        if len(self._lines) >= MAX_WAITING:
            self._dropped += 1
            return
        with suppress(msgspec.MsgspecError, TypeError, ValueError):
            self._lines.append(_encode(fields) + b"\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log", daemon=True)
            self._thread.start()
        if not self._more.is_set():
            self._more.set()

    def flush(self, patience: float = 0.5) -> None:
        """Waits, at most `patience` seconds, until what was told is written."""
        end = time.monotonic() + patience
        while (self._lines or self._writing) and time.monotonic() < end:
            time.sleep(0.005)

    def close(self, patience: float = 2.0) -> None:
        """Writes what waits, for at most `patience` seconds, and closes a file."""
        self._closing = True
        self._more.set()
        if self._thread is not None:
            self._thread.join(patience)
        if self._fd > 2 and (self._thread is None or not self._thread.is_alive()):
            os.close(self._fd)

    def _run(self) -> None:
        while not self._closing:
            self._more.wait()
            if not self._closing:
                time.sleep(_GATHER_SECONDS)
            self._more.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        self._writing = True
        waiting = [self._lines.popleft() for _ in range(len(self._lines))]
        if self._dropped:
            count, self._dropped = self._dropped, 0
            waiting.append(_encode({"ts": time.time(), "event": "log_lines_dropped", "count": count}) + b"\n")
        with suppress(OSError):  # a closed pipe or a full disk: the lines are lost, the sidecar is not
            _write_all(self._fd, b"".join(waiting))
        self._writing = False


def _open(destination: str) -> int:
    if destination in ("stdout", "stderr"):
        stream = sys.__stdout__ if destination == "stdout" else sys.__stderr__
        return stream.fileno() if stream is not None else os.open(os.devnull, os.O_WRONLY)
    return os.open(destination, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
