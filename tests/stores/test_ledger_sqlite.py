"""SQLite alone: the file, its log, and who waits for whom."""

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

from sidecar.errors import StoreUnavailable
from sidecar.stores import ledger_sqlite
from sidecar.stores.ledger import Granted, Ledger
from sidecar.stores.ledger_sqlite import SqliteLedger
from tests.stores.ledgers import NOON, balance, claim, granted, refused, reserve

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


def opened(path: str) -> SqliteLedger:
    return SqliteLedger(path, lambda: NOON)


def asked(path: str, question: str) -> object:
    with sqlite3.connect(path) as db:
        (answer,) = db.execute(question).fetchone()
    db.close()
    return answer


def size_of_log(path: str) -> int:
    return Path(f"{path}-wal").stat().st_size


async def exchanges(ledger: Ledger, name: str, count: int) -> None:
    for number in range(count):
        await granted(ledger, f"{name}{number}", claim(5))
        await ledger.settle(f"{name}{number}", {0: 1})
        await asyncio.sleep(0)


async def folded(ledger: SqliteLedger) -> None:
    if ledger._fold is not None:
        await asyncio.wrap_future(ledger._fold)


async def test_another_versions_file_is_refused(path: str) -> None:
    await opened(path).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE sidecar_schema SET version = 7 WHERE part = 'ledger'")
    db.close()
    with pytest.raises(StoreUnavailable, match=r"ledger\.db has version 7, expected 1\. Use"):
        opened(path)


def test_a_file_that_is_none_of_ours_is_refused(path: str) -> None:
    Path(path).write_text("these are my notes, of more than a hundred bytes, and they are not to be touched " * 9)
    before = Path(path).read_text()
    with pytest.raises(StoreUnavailable, match=r"ledger\.db cannot be used: file is not a database"):
        opened(path)
    assert Path(path).read_text() == before


async def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be used: unable to open"):
        opened(str(tmp_path / "missing" / "ledger.db"))


async def test_the_loops_connection_waits_for_no_disk(path: str) -> None:
    """1 is NORMAL: in write-ahead mode the disk is waited for at checkpoints only, and the loop makes none."""
    ledger = opened(path)
    wanted = {"journal_mode": "wal", "synchronous": 1, "wal_autocheckpoint": 0, "busy_timeout": 0}
    assert {name: ledger._db.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted
    await ledger.close()


async def test_the_log_is_folded_into_the_tables(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "FOLD_EVERY", 40)
    ledger = opened(path)
    await granted(ledger, "open", claim(7))
    for batch in range(10):
        await exchanges(ledger, f"x{batch}-", 30)
        await folded(ledger)
    assert asked(path, "SELECT count(*) FROM ledger_log") <= 100  # type: ignore[operator]
    assert asked(path, "SELECT count(*) FROM ledger_held") == 1
    assert await balance(ledger) == (300, 7)
    await ledger.close()
    again = opened(path)
    assert await balance(again) == (300, 7)
    await again.settle("open", {0: 7})
    assert await balance(again) == (307, 0)
    await again.close()


async def test_one_that_was_away_during_a_fold_catches_up(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "FOLD_EVERY", 40)
    busy, away = opened(path), opened(path)
    await granted(away, "mine", claim(50))
    await exchanges(busy, "x", 50)
    await busy.settle("mine", {0: 50})
    await exchanges(busy, "y", 50)
    await folded(busy)
    assert (await refused(away, "z", claim(1, 150))).spent == 150
    assert not away._held
    await busy.close()
    await away.close()


async def test_sqlites_own_log_begins_anew(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "FOLD_EVERY", 40)
    monkeypatch.setattr(ledger_sqlite, "LOG_BYTES", 100_000)
    ledger = opened(path)
    for batch in range(20):
        await exchanges(ledger, f"x{batch}-", 50)
        await folded(ledger)
    assert size_of_log(path) < 600_000
    await ledger.close()


async def test_memory_is_bounded_by_beginning_anew(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "FOLD_EVERY", 40)
    monkeypatch.setattr(ledger_sqlite, "MIRRORED", 50)
    ledger = opened(path)
    for number in range(500):
        await ledger.spend(f"s{number}", [claim(1, account=f"run{number}")])
        if number % 20 == 0:
            await folded(ledger)
    assert len(ledger._balances) < 200
    assert [row.spent for row in await ledger.read()] == [1] * 500
    await ledger.close()


async def test_what_is_asked_in_one_turn_shares_a_transaction(path: str) -> None:
    ledger = opened(path)
    before = ledger._seq
    answers = await asyncio.gather(*(reserve(ledger, f"a{n}", claim(1, 40)) for n in range(100)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 40
    assert ledger._seq - before == 2
    await asyncio.gather(*(ledger.settle(f"a{n}", {0: 2}) for n in range(40)))
    assert await balance(ledger) == (80, 0)
    await ledger.close()


async def test_all_of_a_turn_are_told_when_it_fails(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "_PAUSES", (0.0, 0.001))
    ledger, other = opened(path), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    asked = [reserve(ledger, f"a{n}", claim(1)) for n in range(5)]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in told] == [StoreUnavailable] * 5
    other.execute("ROLLBACK")
    assert await ledger.read() == []
    other.close()
    await ledger.close()


async def test_one_who_left_does_not_take_the_others_along(path: str) -> None:
    ledger = opened(path)
    tasks = [asyncio.create_task(reserve(ledger, f"a{n}", claim(1))) for n in range(5)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, Granted) for each in told] == [True, True, True, False, True]
    await ledger.close()


async def test_a_locked_file_is_waited_for_without_holding_up_the_loop(path: str) -> None:
    ledger, other, turns = opened(path), sqlite3.connect(path, isolation_level=None), 0
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(granted(ledger, "a", claim(5)))
    patience = time.monotonic() + 0.3
    while time.monotonic() < patience:
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 20
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    assert await balance(ledger) == (0, 5)
    other.close()
    await ledger.close()


async def test_patience_ends(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_sqlite, "_PAUSES", (0.0, 0.001))
    ledger, other = opened(path), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="was locked by others"):
        await granted(ledger, "a", claim(5))
    other.execute("ROLLBACK")
    await granted(ledger, "a", claim(5))
    other.close()
    await ledger.close()


async def test_what_could_not_be_written_did_not_happen(path: str) -> None:
    """A disk that is full, here a file that may not grow."""
    ledger = opened(path)
    await granted(ledger, "a", claim(5))
    (pages,) = ledger._db.execute("PRAGMA page_count").fetchone()
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match="full"):
        await exchanges(ledger, "x", 1000)
    ledger._db.execute(f"PRAGMA max_page_count = {pages + 1000}")
    other = opened(path)
    assert await balance(ledger) == await balance(other)
    assert ledger._held == other._held
    await ledger.close()
    await other.close()
