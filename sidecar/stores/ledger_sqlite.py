"""The ledger in one SQLite file, shared by the worker processes of one machine.

An operation is one transaction on the event loop; what is asked for in the same turn of the loop shares one. The log is
written ahead, with `synchronous=NORMAL`. What was committed is in it: the death of any process, `kill -9` too, loses
nothing. The loss of power or of the kernel may take the operations since the last checkpoint; the file stays sound.

A transaction writes one row, to `ledger_log`: the balances and reservations it changed, as they are now. Each process
keeps what it has seen in memory and reads what others have added before it decides. From time to time a thread with a
connection of its own folds the log into the tables, and brings SQLite's own log into the file: so the loop waits
neither for the disk nor, since a locked file is tried again from a timer, for another process.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from random import random
from typing import Any, Final, TypeVar

import msgspec

from ..errors import StoreUnavailable
from .ledger import (
    LATE_SECONDS,
    RETENTION,
    SWEEP,
    Answer,
    Balance,
    Claim,
    Clock,
    Ended,
    Ending,
    Granted,
    Hold,
    Row,
    Settled,
    charge,
    charge_claims,
    check_amount,
    check_used,
    forgotten,
    give_back,
    keys_of,
    lease_end,
    row,
    take,
    take_again,
    touch,
)

VERSION: Final = 1
# How long a locked file is tried again, and the longest pause between two tries.
PATIENCE_SECONDS: Final = 2.0
_LONGEST_PAUSE: Final = 0.01
# How many operations are folded into the tables at once: a few milliseconds of work.
FOLD_EVERY: Final = 1_000
# The size of SQLite's own log at which it is brought into the file.
LOG_BYTES: Final = 16 << 20
# How many balances a process keeps in memory; more, and it begins anew when the log has been folded.
MIRRORED: Final = 50_000
# Rows are small: half of the usual page writes fewer bytes, and a quarter would be full too soon.
_PAGE: Final = 2_048

_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS sidecar_schema (part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO sidecar_schema VALUES ('ledger', {version});
CREATE TABLE IF NOT EXISTS ledger_log (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS ledger_account (
    key TEXT PRIMARY KEY, start INTEGER NOT NULL, spent INTEGER NOT NULL, reserved INTEGER NOT NULL,
    credit INTEGER NOT NULL, cap INTEGER, soft_told INTEGER NOT NULL, limit_told INTEGER NOT NULL,
    idle INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ledger_account_idle ON ledger_account (idle);
CREATE TABLE IF NOT EXISTS ledger_held (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
COMMIT;
"""
_VERSION: Final = "SELECT version FROM sidecar_schema WHERE part = 'ledger'"
_BALANCE: Final = "SELECT * FROM ledger_account WHERE key = ?"
_BALANCES: Final = "SELECT * FROM ledger_account WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
_NEWER: Final = "SELECT seq, body FROM ledger_log WHERE seq > ? ORDER BY seq"
_FORGET: Final = (
    "DELETE FROM ledger_account WHERE key IN "
    "(SELECT key FROM ledger_account WHERE idle <= ? AND reserved = 0 ORDER BY idle LIMIT ?)"
)
_LAST: Final = "\U0010ffff"

_T = TypeVar("_T")
_Work = Callable[[float], Any]
"""A step of a transaction, at an instant."""


class _Held(msgspec.Struct, array_like=True):
    """`until` is the lease's end or, for one that has outlived it, when it is forgotten."""

    until: int
    late: bool
    holds: list[Hold]
    granted: Granted


class _Change(msgspec.Struct, array_like=True):
    """A row of the log. None: the reservation is gone. An empty change is the mark of a fold."""

    balances: dict[str, Balance]
    held: dict[str, _Held | None]


class _Raw(msgspec.Struct, array_like=True):
    """A change of which only the names are read."""

    balances: dict[str, msgspec.Raw]
    held: dict[str, msgspec.Raw]


_encode = msgspec.msgpack.Encoder().encode
_change = msgspec.msgpack.Decoder(_Change).decode
_raw = msgspec.msgpack.Decoder(_Raw).decode
_balance = msgspec.msgpack.Decoder(Balance).decode
_held = msgspec.msgpack.Decoder(_Held).decode
_NONE: Final = _encode(None)


class SqliteLedger:
    """Raises StoreUnavailable when the file cannot be opened or has another version's tables."""

    def __init__(self, path: str, clock: Clock, *, retention: int = RETENTION) -> None:
        self._path, self._clock, self._retention = path, clock, retention
        self._balances: dict[str, Balance] = {}
        self._held: dict[str, _Held] = {}
        self._new = _Change({}, {})
        self._seq = self._folded = self._swept = -1
        self._ended = Ended()
        self._ending: list[tuple[str, Granted | None, int]] = []
        self._turn = False
        self._waiting: list[tuple[_Work, asyncio.Future[Any]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = ThreadPoolExecutor(1, "ledger")
        self._fold: Future[None] | None = None
        self._db = _open(path)
        # One cursor for all: what a statement finds is fetched before the next one runs.
        self._cursor = self._db.cursor()
        self._run = self._cursor.execute

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        return await self._write(partial(self._reserve, id, claims, lease_seconds))

    async def settle(self, id: str, used: Mapping[int, int]) -> Settled:
        check_used(used)
        return await self._write(partial(self._settle, id, used))

    async def release(self, id: str) -> Ending:
        return await self._write(partial(self._release, id))

    async def extend(self, id: str, lease_seconds: float) -> bool:
        return await self._write(partial(self._extend, id, lease_seconds))

    async def spend(self, id: str, claims: Sequence[Claim]) -> Settled:
        return await self._write(partial(self._spend, id, claims))

    async def read(self, prefix: str = "", limit: int = 1000) -> list[Row]:
        return await self._write(partial(self._read, prefix, limit))

    async def reset(self, account: str) -> list[Row]:
        return await self._write(partial(self._reset, account))

    async def top_up(self, account: str, unit: str, amount: int) -> list[Row]:
        check_amount(amount)
        return await self._write(partial(self._top_up, account, unit, amount))

    async def close(self) -> None:
        """To be called when nobody asks any more."""
        await asyncio.gather(*self._tasks)
        await asyncio.to_thread(self._thread.shutdown)
        self._db.close()

    # --- transactions ---

    async def _write(self, work: Callable[[float], _T]) -> _T:
        """The first of a turn of the event loop is carried out at once, all others of that turn together after it."""
        if self._turn:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._waiting.append((work, future))
            result: _T = await future
            return result
        self._turn = True
        asyncio.get_running_loop().call_soon(self._end_turn)
        (result,) = await self._attempt((work,))
        return result

    def _end_turn(self) -> None:
        self._turn = False
        if self._waiting:
            batch, self._waiting = self._waiting, []
            task = asyncio.create_task(self._together(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _together(self, batch: Sequence[tuple[_Work, "asyncio.Future[Any]"]]) -> None:
        try:
            results = await self._attempt([work for work, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    async def _attempt(self, works: Sequence[_Work]) -> list[Any]:
        for pause in _PAUSES:
            try:
                return self._transact(works)
            except sqlite3.Error as error:
                if not _locked(error):
                    raise _unavailable(self._path, error) from None
            await asyncio.sleep(pause * (0.5 + random()))  # noqa: S311 (no secret)
        raise StoreUnavailable(f"The store {self._path} was locked by others for {PATIENCE_SECONDS:g} s.")

    def _transact(self, works: Sequence[_Work]) -> list[Any]:
        self._run("BEGIN IMMEDIATE")
        try:
            clock = self._clock()
            if newer := self._run(_NEWER, (self._seq,)).fetchall():
                self._catch_up(newer)
            if int(clock) != self._swept:
                self._sweep(int(clock))
            results = [work(clock) for work in works]
            self._commit()
        except BaseException:
            self._doubt()
            raise
        if self._seq - self._folded >= FOLD_EVERY and (self._fold is None or self._fold.done()):
            self._fold = self._thread.submit(_fold, self._path, int(clock))
        return results

    def _commit(self) -> None:
        new = self._new
        if new.balances or new.held:
            self._run("INSERT INTO ledger_log VALUES (?, ?)", (self._seq + 1, _encode(new)))
            self._seq += 1
            self._new = _Change({}, {})
        self._run("COMMIT")
        if self._ending:
            for ending in self._ending:
                self._ended.add(*ending)
            self._ending.clear()

    def _doubt(self) -> None:
        """What is in memory may not be in the file: all of it is read again."""
        self._seq = self._swept = -1
        self._new, self._ending = _Change({}, {}), []
        with suppress(sqlite3.Error):
            self._run("ROLLBACK")

    def _catch_up(self, newer: Sequence[tuple[int, bytes]]) -> None:
        """Takes up what others have written. A gap says that some of it is only in the tables by now."""
        if newer[0][0] != self._seq + 1 or self._seq < 0:
            self._forget_all()
        for seq, body in newer:
            change = _change(body)
            self._seq = seq
            if not change.balances and not change.held:
                self._folded = seq
                if len(self._balances) > MIRRORED:
                    self._forget_all()
            self._balances.update(change.balances)
            for id, held in change.held.items():
                self._keep(id, held)

    def _forget_all(self) -> None:
        self._balances.clear()
        self._held = {id: _held(body) for id, body in self._run("SELECT id, body FROM ledger_held")}

    # --- operations, inside a transaction ---

    def _reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float, clock: float) -> Answer:
        if known := self._known(id):
            return known
        answer, holds = take(claims, int(clock), self._find)
        if type(answer) is Granted:
            self._hold(id, _Held(lease_end(clock, lease_seconds), False, holds, answer))
        return answer

    def _settle(self, id: str, used: Mapping[int, int], clock: float) -> Settled:
        held = self._end(id, int(clock))
        if held is None:
            return Settled(self._missing(id))
        now = int(clock)
        charged = charge(held.holds, used, partial(self._remembered, now), partial(self._again, now), late=held.late)
        return Settled(Ending.DONE, charged)

    def _release(self, id: str, clock: float) -> Ending:
        held = self._end(id, int(clock))
        if held is None:
            return self._missing(id)
        if not held.late:
            give_back(held.holds, self._of)
        return Ending.DONE

    def _extend(self, id: str, lease_seconds: float, clock: float) -> bool:
        held = self._held.get(id)
        if held is None:
            return False
        if held.late:
            take_again(held.holds, self._of)
        self._hold(id, _Held(lease_end(clock, lease_seconds), False, held.holds, held.granted))
        return True

    def _spend(self, id: str, claims: Sequence[Claim], clock: float) -> Settled:
        if self._known(id):
            return Settled(Ending.AGAIN)
        self._ending.append((id, None, int(clock)))
        return Settled(Ending.DONE, charge_claims(claims, int(clock), self._find))

    def _read(self, prefix: str, limit: int, clock: float) -> list[Row]:
        now = int(clock)
        in_file = self._run(_BALANCES, (prefix, prefix + _LAST, limit)).fetchall()
        found = {key: Balance(*values) for key, *values in in_file}
        found |= {key: balance for key, balance in self._balances.items() if key.startswith(prefix)}
        rows = [row(key, balance, now) for key, balance in sorted(found.items()) if not forgotten(balance, now)]
        return rows if limit < 0 else rows[:limit]

    def _reset(self, account: str, clock: float) -> list[Row]:
        before = self._read(keys_of(account), -1, clock)
        for _, balance in self._all(before, int(clock)):
            balance.clear()
        return before

    def _top_up(self, account: str, unit: str, amount: int, clock: float) -> list[Row]:
        rows = self._read(keys_of(account, unit), -1, clock)
        for _, balance in self._all(rows, int(clock)):
            balance.credit += amount
        return self._read(keys_of(account, unit), -1, clock)

    # --- what is known, and what this operation changes of it ---

    def _of(self, key: str) -> Balance | None:
        balance = self._balances.get(key)
        if balance is None:
            found = self._run(_BALANCE, (key,)).fetchone()
            if found is None:
                return None
            balance = self._balances[key] = Balance(*found[1:])
        self._new.balances[key] = balance
        return balance

    def _remembered(self, now: int, key: str) -> Balance | None:
        balance = self._of(key)
        return None if balance is None or forgotten(balance, now) else balance

    def _find(self, claim: Claim, now: int) -> Balance:
        balance = self._remembered(now, claim.key)
        if balance is None:
            balance = self._balances[claim.key] = self._new.balances[claim.key] = Balance()
        touch(balance, claim, now, self._retention)
        return balance

    def _again(self, now: int, key: str) -> Balance:
        balance = self._balances[key] = self._new.balances[key] = Balance(idle=now + self._retention)
        balance.start = row(key, balance, now).start
        return balance

    def _all(self, rows: Sequence[Row], now: int) -> Iterator[tuple[Row, Balance]]:
        for each in rows:
            key = f"{keys_of(each.account, each.unit)}{each.window}"
            balance = self._of(key) or self._again(now, key)
            if balance.start < each.start:
                balance.roll(each.start)
            yield each, balance

    def _known(self, id: str) -> Granted | None:
        if id in self._held:
            return self._held[id].granted
        return self._ended.answer(id) if id in self._ended.known else None

    def _hold(self, id: str, held: _Held) -> None:
        self._held[id] = self._new.held[id] = held

    def _keep(self, id: str, held: _Held | None) -> None:
        if held is None:
            self._held.pop(id, None)
        else:
            self._held[id] = held

    def _end(self, id: str, now: int) -> _Held | None:
        held = self._held.pop(id, None)
        if held is not None:
            self._new.held[id] = None
            self._ending.append((id, held.granted, now))
        return held

    def _missing(self, id: str) -> Ending:
        return Ending.AGAIN if id in self._ended.known else Ending.UNKNOWN

    def _sweep(self, now: int) -> None:
        """Once a second is enough: leases end on whole ones."""
        due = [(id, held) for id, held in self._held.items() if held.until <= now][:SWEEP]
        for id, held in due:
            if held.late:
                del self._held[id]
                self._new.held[id] = None
            else:
                give_back(held.holds, self._of)
                self._hold(id, _Held(now + LATE_SECONDS, True, held.holds, held.granted))
        self._ended.forget(now)
        self._swept = now if len(due) < SWEEP else -1


def _open(path: str) -> sqlite3.Connection:
    """A connection whose statements begin and end transactions themselves and never wait."""
    try:
        db = _connect(path)
        db.execute(f"PRAGMA page_size = {_PAGE}")
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA.format(version=VERSION))
        (version,) = db.execute(_VERSION).fetchone()
        db.execute("PRAGMA busy_timeout = 0")
    except sqlite3.Error as error:
        raise _unavailable(path, error) from None
    if version != VERSION:
        db.close()
        hint = "Use the sidecar that wrote it, or another file."
        raise StoreUnavailable(f"The ledger in {path} has version {version}, expected {VERSION}. {hint}")
    return db


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def _fold(path: str, now: int) -> None:
    """Brings the log into the tables. What fails is left for the next time."""
    with suppress(sqlite3.Error), closing(_connect(path)) as db:
        early = db.execute(_NEWER, (-1,)).fetchall()
        if len(early) < FOLD_EVERY // 2:
            return
        folded = _Raw({}, {})
        _merge(folded, early)
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT min(seq) FROM ledger_log").fetchone()[0] == early[0][0]:
            newer = db.execute(_NEWER, (early[-1][0],)).fetchall()
            _merge(folded, newer)
            _store(db, folded, (newer or early)[-1][0])
            db.execute(_FORGET, (now, FOLD_EVERY * 10))
        db.execute("COMMIT")
        if os.stat(f"{path}-wal").st_size > LOG_BYTES:
            # The first, long one lets others write meanwhile; the second, short one lets SQLite's log begin anew.
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            db.execute("PRAGMA wal_checkpoint(RESTART)")


def _merge(folded: _Raw, rows: Sequence[tuple[int, bytes]]) -> None:
    for _, body in rows:
        change = _raw(body)
        folded.balances.update(change.balances)
        folded.held.update(change.held)


def _store(db: sqlite3.Connection, folded: _Raw, last: int) -> None:
    accounts = [(key, *msgspec.structs.astuple(_balance(body))) for key, body in folded.balances.items()]
    db.executemany("INSERT OR REPLACE INTO ledger_account VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", accounts)
    ended = [(id,) for id, body in folded.held.items() if bytes(body) == _NONE]
    db.executemany("DELETE FROM ledger_held WHERE id = ?", ended)
    kept = [(id, bytes(body)) for id, body in folded.held.items() if bytes(body) != _NONE]
    db.executemany("INSERT OR REPLACE INTO ledger_held VALUES (?, ?)", kept)
    db.execute("DELETE FROM ledger_log")
    db.execute("INSERT INTO ledger_log VALUES (?, ?)", (last + 1, _encode(_Change({}, {}))))


def _pauses() -> Iterator[float]:
    """A writer is done in some 20 µs: at first only other tasks get their turn, then longer, apart from one another."""
    yield from (0.0, 0.0, 0.0)
    waited, pause = 0.0, 0.0005
    while waited < PATIENCE_SECONDS:
        yield pause
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


_PAUSES: Final = tuple(_pauses())


def _locked(error: sqlite3.Error) -> bool:
    return error.sqlite_errorname.startswith("SQLITE_BUSY")


def _unavailable(path: str, error: sqlite3.Error) -> StoreUnavailable:
    return StoreUnavailable(f"The store {path} cannot be used: {error}.")
