"""Calls that wait for an admin: put down by the exchange that holds them, decided by whoever has an admin's key.

All workers and replicas that share a store share these. An entry is taken away by the exchange that waits on it, when
it has been decided or the client has left; one whose process died goes when its time is over.
docs/tool-rules.md says what is told of them.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from ..errors import StoreUnavailable

Clock = Callable[[], float]
"""Seconds since the epoch."""

MAX_PENDING: Final = 1_000
"""How many calls may wait at once in one store; one more is denied."""
POLL_SECONDS: Final = 0.25
"""How often a call that waits looks for its decision."""


class Pending(msgspec.Struct, frozen=True, array_like=True):
    """`arguments` is scrubbed and bounded by whoever puts it down. Times are seconds since the epoch."""

    id: str
    rule: str
    tool: str
    arguments: str
    tenant: str
    agent: str
    run: str
    asked_at: float
    expires_at: float


class Decided(msgspec.Struct, frozen=True, array_like=True):
    """`by` is the beginning of an admin key's hash."""

    approved: bool
    reason: str
    by: str


NOT_ASKED: Final = Decided(False, "nobody can be asked now", "")
"""Too many wait already, or the store is out of reach."""


class Approvals(Protocol):
    """Every method raises StoreUnavailable."""

    async def put(self, pending: Pending) -> bool:
        """False where too many wait already."""

    async def look(self, id: str) -> Decided | None:
        """What was decided, if anything."""

    async def end(self, id: str) -> Decided | None:
        """Takes an entry away; what was decided until then, if anything. Once it is away nothing can be decided."""

    async def decide(self, id: str, decided: Decided) -> Pending | None:
        """None where nothing waits under this id: never, no more, or decided already."""

    async def listed(self, limit: int = MAX_PENDING) -> Sequence[Pending]:
        """What waits and is not decided, the oldest first."""

    async def close(self) -> None: ...


def open_approvals(url: str, clock: Clock, *, timeout: float = 0.25) -> Approvals:
    """The store of a policy, as `open_ledger` takes it. Raises ValueError and StoreUnavailable."""
    scheme = url.partition(":")[0]
    if url == "memory:":
        return MemoryApprovals(clock)
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from .approvals_sqlite import SqliteApprovals

        return SqliteApprovals(url.removeprefix("sqlite:///"), clock)
    if scheme in ("redis", "rediss", "unix") and url.startswith(f"{scheme}://"):
        from .approvals_redis import RedisApprovals

        return RedisApprovals(url, clock, timeout=timeout)
    raise ValueError(f"a store is memory:, sqlite:///FILE or redis://HOST:PORT/DB, not {scheme}:")


class MemoryApprovals:
    """Of one process alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[Pending, Decided | None]] = {}

    async def put(self, pending: Pending) -> bool:
        self._forget()
        if len(self._known) >= MAX_PENDING:
            return False
        self._known[pending.id] = (pending, None)
        return True

    async def look(self, id: str) -> Decided | None:
        return self._known[id][1] if id in self._known else None

    async def end(self, id: str) -> Decided | None:
        return self._known.pop(id, (None, None))[1]

    async def decide(self, id: str, decided: Decided) -> Pending | None:
        self._forget()
        pending, before = self._known.get(id, (None, None))
        if pending is None or before is not None:
            return None
        self._known[id] = (pending, decided)
        return pending

    async def listed(self, limit: int = MAX_PENDING) -> Sequence[Pending]:
        self._forget()
        waiting = [pending for pending, decided in self._known.values() if decided is None]
        return sorted(waiting, key=lambda one: one.asked_at)[:limit]

    async def close(self) -> None:
        self._known.clear()

    def _forget(self) -> None:
        now = self._clock()
        self._known = {id: known for id, known in self._known.items() if known[0].expires_at > now}


class Desk:
    """The approvals as exchanges use them: put down, waited for, taken away, and told to the operator."""

    def __init__(self, approvals: Approvals, notify: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.store, self._notify = approvals, notify
        self.waiting = 0
        """How many calls of this process wait."""

    async def ask(self, pending: Pending, seconds: float) -> Decided | None:
        """Waits for a decision; None where none came in time.

        However it ends, a client that leaves included, the entry is taken away.
        """
        self.waiting += 1
        try:
            return await self._asked(pending, seconds)
        finally:
            self.waiting -= 1

    async def _asked(self, pending: Pending, seconds: float) -> Decided | None:
        ended: Decided | None = NOT_ASKED
        try:
            if await self.store.put(pending):
                self._tell(pending)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._decided(pending.id), seconds)
                ended = None
        except StoreUnavailable:
            pass
        finally:
            # Also where the client has left while it was put down. What was decided in the last moment counts: the
            # admin has been told so. A store that is away must not hide that the client has left.
            with suppress(StoreUnavailable):
                ended = await asyncio.shield(asyncio.ensure_future(self.store.end(pending.id))) or ended
        return ended

    def _tell(self, pending: Pending) -> None:
        told = {"approval": pending.id, "rule": pending.rule, "tenant": pending.tenant}
        self._notify({"event": "approval_asked", **told})

    async def _decided(self, id: str) -> None:
        """A store that is away for a moment is asked again."""
        while True:
            with suppress(StoreUnavailable):
                if await self.store.look(id) is not None:
                    return
            await asyncio.sleep(POLL_SECONDS)
