"""Ledgers for tests: one of each kind on a clock that the test moves, and a real Redis or Valkey for the third."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from redis import Redis
from redis.exceptions import RedisError

from sidecar.stores import ledger_redis
from sidecar.stores.ledger import RETENTION, Answer, Claim, Granted, Ledger, Refused, Row, open_ledger
from tests.running import free_port

KINDS = ("memory", "sqlite", "redis")
# A Thursday noon, on no border of a window of 7 seconds.
NOON = 1_800_014_400.0
READY_SECONDS = 10.0
# The scripts ask a key instead of the server's clock.
SET_CLOCK = "local seconds = tonumber(redis.call('GET', ARGV[1] .. 'clock'))\n"

_names = count()


@dataclass(frozen=True, slots=True)
class RedisServer:
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> "Redis":
        return Redis("127.0.0.1", self.port, decode_responses=True)


def redis_program() -> str:
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        pytest.skip("needs redis-server or valkey-server in PATH")
    return found


@contextmanager
def redis_server(*options: str, port: int = 0) -> Iterator[RedisServer]:
    """A server of our own that keeps nothing; skips the test when there is none to start."""
    program, port = redis_program(), port or free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(port)
            yield RedisServer(port, process)
        finally:
            process.kill()
            process.wait()


def _wait(port: int) -> None:
    patience = time.monotonic() + READY_SECONDS
    with Redis("127.0.0.1", port) as client:
        while True:
            try:
                client.ping()
                return
            except (RedisError, OSError):
                if time.monotonic() > patience:
                    raise
                time.sleep(0.02)


class Bank:
    """Opens ledgers of one kind on the same data. `now` is their clock."""

    def __init__(self, kind: str, folder: Path, server: RedisServer | None = None) -> None:
        self.kind, self._folder, self._server, self._name = kind, folder, server, f"bank{next(_names)}"
        self._client = server.client() if server else None
        self._patch = pytest.MonkeyPatch()
        self.now = NOON

    def __enter__(self) -> Self:
        self._patch.setattr(ledger_redis, "CLOCK", SET_CLOCK)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._patch.undo()
        if self._client:
            self._client.close()

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, now: float) -> None:
        self._now = now
        if self._client:
            self._client.set(f"{{{self._name}}}:clock", repr(now))

    @property
    def url(self) -> str:
        if self._server:
            return f"{self._server.url}?ledger={self._name}"
        return "memory:" if self.kind == "memory" else f"sqlite:///{self._folder / f'{self._name}.db'}"

    def open(self, *, retention: int = RETENTION) -> Ledger:
        # Patient: what the test asks for is an answer, not a quick one, on a machine that does other things too.
        return open_ledger(self.url, lambda: self._now, retention=retention, timeout=10)


def claim(amount: int = 1, limit: int | None = None, *, account: str = "acme/run/1", **more: Any) -> Claim:
    return Claim(account, more.pop("unit", "tokens"), amount, limit, **more)


async def reserve(ledger: Ledger, id: str, *claims: Claim, lease: float = 60) -> Answer:
    return await ledger.reserve(id, claims, lease)


async def granted(ledger: Ledger, id: str, *claims: Claim, lease: float = 60) -> Granted:
    answer = await ledger.reserve(id, claims, lease)
    assert isinstance(answer, Granted), answer
    return answer


async def refused(ledger: Ledger, id: str, *claims: Claim, lease: float = 60) -> Refused:
    answer = await ledger.reserve(id, claims, lease)
    assert isinstance(answer, Refused), answer
    return answer


async def balance(ledger: Ledger, account: str = "acme/run/1") -> tuple[int, int]:
    """Spent and reserved of an account with one balance."""
    (row,) = await rows(ledger, account)
    return row.spent, row.reserved


async def rows(ledger: Ledger, account: str) -> Sequence[Row]:
    return [row for row in await ledger.read(account) if row.account == account]
