"""Several processes on one ledger, and processes that are killed."""

import asyncio
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from sidecar.stores.ledger import Ledger, Row, open_ledger
from tests.running import REPO, clean_env
from tests.stores.ledgers import RedisServer
from tests.stores.worker import LEASE, USED

KILLS = 200 if os.environ.get("FUZZ") else 4
SHARED = ("sqlite", "redis")
PATIENCE = 60.0


@pytest.fixture
def url(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if kind == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        return f"{server.url}?ledger={tmp_path.name}"
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def worker(what: str, url: str, name: str, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.stores.worker", what, url, name, *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=REPO, env=clean_env(), stdin=pipe, stdout=pipe, text=True)


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def _read(url: str) -> list[Row]:
    ledger: Ledger = open_ledger(url, time.time, timeout=10)
    try:
        return await ledger.read()
    finally:
        await ledger.close()


def read(url: str) -> dict[tuple[str, str], Row]:
    return {(row.account, row.unit): row for row in asyncio.run(_read(url))}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_of_200_in_four_processes_on_a_limit_of_50_exactly_50_pass(url: str) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(worker("burst", url, f"w{n}", "50", "50")) for n in range(4)]
        assert [line(process) for process in workers] == ["ready"] * 4
        for process in workers:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        passed = [int(line(process)) for process in workers]
    assert sum(passed) == 50
    assert read(url)["run", "tokens"].reserved == 250


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_a_killed_process_loses_no_spending_and_leaves_nothing_reserved(url: str) -> None:
    """Two at a time on one ledger, each killed at a random point."""
    chance = random.Random(7)
    asked = settled = 0
    for number in range(KILLS // 2):
        with ExitStack() as stack:
            workers = [stack.enter_context(worker("work", url, f"k{number}-{n}")) for n in range(2)]
            assert [line(process) for process in workers] == ["ready"] * 2
            for process in workers:
                time.sleep(chance.uniform(0.0, 0.15))
                process.kill()
            said = "".join(process.stdout.read() for process in workers if process.stdout)
        asked, settled = asked + said.count("+"), settled + said.count("=")
    rows = read(url)
    for account in ("run", "tenant"):
        assert settled * USED <= rows[account, "tokens"].spent <= asked * USED
    assert settled > 0
    _wait_until_free(url)


def _wait_until_free(url: str) -> None:
    """A lease is rounded up to a whole second; one reading clears a bounded number."""
    patience = time.monotonic() + PATIENCE
    time.sleep(LEASE + 1)
    while any(row.reserved for row in read(url).values()):
        assert time.monotonic() < patience
        time.sleep(0.05)
    assert all(row.reserved == 0 for row in read(url).values())
