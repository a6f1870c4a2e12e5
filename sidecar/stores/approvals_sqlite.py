"""Approvals in the SQLite file of the ledger, shared by the worker processes of one machine.

A connection and a thread of their own: what waits for an admin need not be quick, and must not stop the event loop.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import msgspec

from ..errors import StoreUnavailable
from .approvals import MAX_PENDING, Clock, Decided, Pending

# How long a locked file is waited for.
PATIENCE_SECONDS: Final = 2.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS approval (
  id TEXT PRIMARY KEY, asked REAL NOT NULL, expires REAL NOT NULL, pending BLOB NOT NULL, decided BLOB
) WITHOUT ROWID
"""
_FORGET: Final = "DELETE FROM approval WHERE expires <= ?"
_PUT: Final = "INSERT INTO approval SELECT ?, ?, ?, ?, NULL WHERE (SELECT count(*) FROM approval) < ?"
_LOOK: Final = "SELECT decided FROM approval WHERE id = ?"
_END: Final = "DELETE FROM approval WHERE id = ? RETURNING decided"
_DECIDE: Final = "UPDATE approval SET decided = ? WHERE id = ? AND decided IS NULL RETURNING pending"
_LIST: Final = "SELECT pending FROM approval WHERE decided IS NULL ORDER BY asked LIMIT ?"

_encode = msgspec.json.encode
_pending = msgspec.json.Decoder(Pending).decode
_decided = msgspec.json.Decoder(Decided).decode
_T = TypeVar("_T")


class SqliteApprovals:
    """`path` is that of the file. Raises StoreUnavailable."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._thread = ThreadPoolExecutor(1, "approvals")
        try:
            self._db = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_SCHEMA)
        except sqlite3.Error as error:
            raise self._unavailable(error) from None

    async def put(self, pending: Pending) -> bool:
        row = (pending.id, pending.asked_at, pending.expires_at, _encode(pending), MAX_PENDING)
        return await self._run(lambda: self._fresh().execute(_PUT, row).rowcount == 1)

    async def look(self, id: str) -> Decided | None:
        return await self._run(partial(self._decision, _LOOK, id))

    async def end(self, id: str) -> Decided | None:
        return await self._run(partial(self._decision, _END, id))

    def _decision(self, statement: str, id: str) -> Decided | None:
        found = self._db.execute(statement, (id,)).fetchall()
        return _decided(found[0][0]) if found and found[0][0] is not None else None

    async def decide(self, id: str, decided: Decided) -> Pending | None:
        found = await self._run(lambda: self._fresh().execute(_DECIDE, (_encode(decided), id)).fetchall())
        return _pending(found[0][0]) if found else None

    async def listed(self, limit: int = MAX_PENDING) -> Sequence[Pending]:
        return [
            _pending(body) for (body,) in await self._run(lambda: self._fresh().execute(_LIST, (limit,)).fetchall())
        ]

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
        self._db.close()

    def _fresh(self) -> sqlite3.Connection:
        self._db.execute(_FORGET, (self._clock(),))
        return self._db

    async def _run(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        return StoreUnavailable(f"The store {self._path} cannot be used: {error}.")
