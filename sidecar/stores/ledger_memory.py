"""The ledger in this process's memory: the quickest, shared with nobody, gone with the process."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from .ledger import (
    LATE_SECONDS,
    NEVER,
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
    give_back,
    keys_of,
    lease_end,
    row,
    take,
    take_again,
    touch,
)

MAX_ACCOUNTS: Final = 100_000
_DONE: Final = Settled(Ending.DONE)


class _Held(msgspec.Struct):
    holds: list[Hold]
    granted: Granted
    until: int
    """The lease's end; for one that has outlived it, when it is forgotten."""
    late: bool = False


class MemoryCore:
    """Every method is one step of the event loop. Accounts stand in the order in which they were touched."""

    def __init__(self, clock: Clock, retention: int = RETENTION, max_accounts: int = MAX_ACCOUNTS) -> None:
        self._clock, self._retention, self._max = clock, retention, max_accounts
        self._accounts: OrderedDict[str, Balance] = OrderedDict()
        self._held: dict[str, _Held] = {}
        self._ended = Ended()
        self._swept = -1

    def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        clock = self._clock()
        now = int(clock)
        if now != self._swept:
            self._sweep(now)
        if id in self._held or id in self._ended.known:
            return self._known(id)
        answer, holds = take(claims, now, self._find)
        if type(answer) is Granted:
            self._held[id] = _Held(holds, answer, lease_end(clock, lease_seconds))
        if len(self._accounts) > self._max:
            self._bound()
        return answer

    def settle(self, id: str, used: Mapping[int, int]) -> Settled:
        check_used(used)
        held = self._end(id)
        if held is None:
            return Settled(self._missing(id))
        notices = charge(held.holds, used, self._accounts.get, self._again, late=held.late)
        return Settled(Ending.DONE, notices) if notices else _DONE

    def release(self, id: str) -> Ending:
        held = self._end(id)
        if held is None:
            return self._missing(id)
        if not held.late:
            give_back(held.holds, self._accounts.get)
        return Ending.DONE

    def extend(self, id: str, lease_seconds: float) -> bool:
        held = self._held.get(id)
        if held is None:
            return False
        if held.late:
            take_again(held.holds, self._accounts.get)
        held.until, held.late = lease_end(self._clock(), lease_seconds), False
        return True

    def spend(self, id: str, claims: Sequence[Claim]) -> Settled:
        now = int(self._clock())
        if id in self._ended.known or id in self._held:
            return Settled(Ending.AGAIN)
        self._ended.add(id, None, now)
        return Settled(Ending.DONE, charge_claims(claims, now, self._find))

    def read(self, prefix: str, limit: int) -> list[Row]:
        now = int(self._clock())
        self._sweep(now)
        keys = sorted(key for key in self._accounts if key.startswith(prefix))
        return [row(key, self._accounts[key], now) for key in keys[:limit]]

    def reset(self, account: str) -> list[Row]:
        before = self.read(keys_of(account), len(self._accounts))
        for key in [key for key in self._accounts if key.startswith(keys_of(account))]:
            self._accounts[key].clear()
        return before

    def top_up(self, account: str, unit: str, amount: int) -> list[Row]:
        check_amount(amount)
        now = int(self._clock())
        for key in [key for key in self._accounts if key.startswith(keys_of(account, unit))]:
            balance = self._accounts[key]
            if (start := row(key, balance, now).start) > balance.start:
                balance.roll(start)
            balance.credit += amount
        return self.read(keys_of(account, unit), len(self._accounts))

    def __len__(self) -> int:
        return len(self._accounts)

    # --- accounts ---

    def _find(self, claim: Claim, now: int) -> Balance:
        balance = self._accounts.get(claim.key)
        if balance is None:
            balance = self._accounts[claim.key] = Balance()
        else:
            self._accounts.move_to_end(claim.key)
        touch(balance, claim, now, self._retention)
        return balance

    def _again(self, key: str) -> Balance:
        now = int(self._clock())
        balance = self._accounts[key] = Balance(idle=now + self._retention)
        balance.start = row(key, balance, now).start
        return balance

    def _bound(self) -> None:
        """Forgets the account that was not touched for the longest. One that is in use or kept goes to the end."""
        for _ in range(min(SWEEP, len(self._accounts))):
            key, balance = next(iter(self._accounts.items()))
            if balance.reserved or balance.idle == NEVER:
                self._accounts.move_to_end(key)
            else:
                del self._accounts[key]
                return

    # --- reservations ---

    def _known(self, id: str) -> Granted:
        held = self._held.get(id)
        return held.granted if held else self._ended.answer(id)

    def _end(self, id: str) -> _Held | None:
        held = self._held.pop(id, None)
        if held is not None:
            self._ended.add(id, held.granted, int(self._clock()))
        return held

    def _missing(self, id: str) -> Ending:
        return Ending.AGAIN if id in self._ended.known else Ending.UNKNOWN

    def _sweep(self, now: int) -> None:
        """Once a second is enough: leases end on whole ones."""
        due = [(id, held) for id, held in self._held.items() if held.until <= now][:SWEEP]
        for id, held in due:
            if held.late:
                del self._held[id]
            else:
                give_back(held.holds, self._accounts.get)
                held.late, held.until = True, now + LATE_SECONDS
        self._forget(now)
        self._ended.forget(now)
        self._swept = now if len(due) < SWEEP else -1

    def _forget(self, now: int) -> None:
        for _ in range(min(SWEEP, len(self._accounts))):
            key, balance = next(iter(self._accounts.items()))
            if balance.idle == NEVER or balance.reserved:
                self._accounts.move_to_end(key)
            elif balance.idle <= now:
                del self._accounts[key]
            else:
                return


class MemoryLedger:
    """The core behind the ledger's protocol."""

    def __init__(self, clock: Clock, *, retention: int = RETENTION, max_accounts: int = MAX_ACCOUNTS) -> None:
        self.core = MemoryCore(clock, retention, max_accounts)

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        return self.core.reserve(id, claims, lease_seconds)

    async def settle(self, id: str, used: Mapping[int, int]) -> Settled:
        return self.core.settle(id, used)

    async def release(self, id: str) -> Ending:
        return self.core.release(id)

    async def extend(self, id: str, lease_seconds: float) -> bool:
        return self.core.extend(id, lease_seconds)

    async def spend(self, id: str, claims: Sequence[Claim]) -> Settled:
        return self.core.spend(id, claims)

    async def read(self, prefix: str = "", limit: int = 1000) -> list[Row]:
        return self.core.read(prefix, limit)

    async def reset(self, account: str) -> list[Row]:
        return self.core.reset(account)

    async def top_up(self, account: str, unit: str, amount: int) -> list[Row]:
        return self.core.top_up(account, unit, amount)

    async def close(self) -> None:
        return
