"""What budgets stand on: amounts are reserved before a call and settled with what was really used, exactly once.

An *account* is an opaque key made by the caller (tenant, scope, id and budget in one). It has a *balance* for each unit
and window: what is spent, what is reserved, and what was topped up. All amounts are non-negative integers in the
unit's smallest step: calls, tokens, tool calls; money in 1e-9 of the currency; `SLOT` for exchanges in parallel.
docs/decisions/0012-the-ledger.md says why it is so.

Laws, for every backend:

- A reservation is taken for all its claims or for none. Once taken it ends once: settled or released, whichever
  came first. Whatever comes twice with the same id changes nothing the second time.
- A claim fits when `spent + reserved + amount <= limit`, and a claim of nothing (amount 0) when something is left: a
  balance that stands at its limit refuses, one that arrives exactly there does not.
- A reservation that outlives its lease gives back what it held. What was spent under it still counts when settled.
- Windows tumble, aligned to 1970-01-01T00:00:00Z. What was reserved in one window is charged to that window; when
  it is over, neither the reservation nor the charge touches the next one. A clock that goes back opens no old window.
- Leases and windows end on whole seconds; a lease is rounded up.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

Clock = Callable[[], float]
"""Seconds since the epoch."""

SLOT: Final = "slot"
"""The unit of parallel exchanges: held while the reservation lives, never spent."""

# A hundred times less than what fits 64 bits with money in 1e-9: 10 million of a currency in one amount.
MAX_AMOUNT: Final = 10**16
MAX_LIMIT: Final = 10**18

RETENTION: Final = 30 * 86_400
"""Seconds after which an account that nobody touches is forgotten."""
NEVER: Final = 2**52
"""The `idle` of an account that is kept."""
ENDED_SECONDS: Final = 600
"""How long an id is known after its end: by all on Redis, else by the process that ended it (a duplicate comes over a
network or not at all), which knows not more than the last ENDED_COUNT."""
ENDED_COUNT: Final = 10_000
LATE_SECONDS: Final = 86_400
"""How long a reservation that has outlived its lease can still be settled."""
SWEEP: Final = 100
"""How many reservations or accounts one operation clears away."""

_SEPARATOR: Final = "\x1f"
_set: Final = msgspec.structs.force_setattr


class Claim(msgspec.Struct, frozen=True):
    """`amount` of one unit from one account.

    `limit` is the ceiling; None only counts. `window` is in seconds; 0 is the account's lifetime. With `hard` false the
    limit never refuses: the claim is granted and named in `Granted.over` (shadow budgets, limits that only inform).
    `soft` is a line that gives a notice once per window, when what is spent reaches it. `keep` says that the account is
    never forgotten however long it is idle: for scopes whose number the policy bounds, not for runs and sessions.
    Raises ValueError.
    """

    account: str
    unit: str
    amount: int
    limit: int | None = None
    window: int = 0
    hard: bool = True
    soft: int | None = None
    keep: bool = False
    key: str = ""
    """Account, unit and window in one; made here."""

    def __post_init__(self) -> None:
        _set(self, "key", f"{self.account}{_SEPARATOR}{self.unit}{_SEPARATOR}{self.window}")
        check_amount(self.amount)
        if self.limit is not None and not 0 <= self.limit <= MAX_LIMIT:
            raise ValueError(f"a limit must be between 0 and {MAX_LIMIT}, not {self.limit}")
        if self.window < 0 or (self.window and self.unit == SLOT):
            raise ValueError("a window is a number of seconds, or 0; slots have none")
        if not self.unit or _SEPARATOR in self.unit:
            raise ValueError("a unit has a name without control characters")

    def of(self, amount: int) -> "Claim":
        """The same of another amount, in a third of the time."""
        if not 0 <= amount <= MAX_AMOUNT:
            check_amount(amount)
        claim: Claim = self.__copy__()  # type: ignore[attr-defined]  # copy() takes three times as long
        _set(claim, "amount", amount)
        return claim


class Line(StrEnum):
    SOFT = "soft"
    LIMIT = "limit"


class Notice(msgspec.Struct, frozen=True, array_like=True):
    """Worth telling once per account, unit, window and line: the balance of claim number `claim` has reached `at`.

    For LIMIT: a claim did not fit for the first time. A line that is raised gives a notice again.
    """

    claim: int
    line: Line
    at: int


class Granted(msgspec.Struct, frozen=True, array_like=True):
    """One entry per claim. `remaining` counts this reservation as gone and is None where there is no limit, `resets_at`
    is in seconds since the epoch and None without a window. `over` names the claims that would not have fitted."""

    remaining: tuple[int | None, ...]
    resets_at: tuple[int | None, ...]
    over: tuple[int, ...] = ()
    notices: tuple[Notice, ...] = ()


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """Nothing was reserved, because of claim number `claim`, the first in order that does not fit.

    `limit` counts what was topped up. An id that was refused is free to be reserved again.
    """

    claim: int
    spent: int
    reserved: int
    limit: int
    resets_at: int | None
    notices: tuple[Notice, ...] = ()


Answer = Granted | Refused


class Ending(StrEnum):
    DONE = "done"
    AGAIN = "again"
    """Ended before; nothing was changed."""
    UNKNOWN = "unknown"
    """Never reserved here, or forgotten; nothing was changed."""


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """The soft lines that were crossed are numbered as the reservation's claims were."""

    ending: Ending
    notices: tuple[Notice, ...] = ()


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One balance as it stands now. `start` is 0 and `resets_at` None for a lifetime; `limit` is the one last seen and
    does not count `credit`, which was topped up."""

    account: str
    unit: str
    window: int
    start: int
    resets_at: int | None
    spent: int
    reserved: int
    credit: int
    limit: int | None


class Ledger(Protocol):
    """Every method raises StoreUnavailable; a call that was cancelled may or may not have been carried out."""

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        """Takes all claims or none. The same id again gets the same grant and takes nothing more."""

    async def settle(self, id: str, used: Mapping[int, int]) -> Settled:
        """Ends a reservation with what was really used, by the claims' numbers; also when its lease is over.

        A claim that is not named is charged as it was reserved. Raises ValueError for a negative amount.
        """

    async def release(self, id: str) -> Ending:
        """Ends a reservation with nothing spent."""

    async def extend(self, id: str, lease_seconds: float) -> bool:
        """A new lease from now on; takes back what an outlived lease had freed, over the limit if need be.

        False when the reservation has ended or is not known.
        """

    async def spend(self, id: str, claims: Sequence[Claim]) -> Settled:
        """Charges without a reservation and whatever the limits say. The id is one of its own."""

    async def read(self, prefix: str = "", limit: int = 1000) -> list[Row]:
        """The balances whose account begins with `prefix`, in their order; at most `limit`."""

    async def reset(self, account: str) -> list[Row]:
        """Makes what is spent and topped up nought, in every unit and window. What is reserved stays so.

        Returns the balances as they were before.
        """

    async def top_up(self, account: str, unit: str, amount: int) -> list[Row]:
        """Lets the account spend `amount` more in the window that is open, or in its lifetime.

        Returns the balances as they are now; none for an account that is not known.
        """

    async def close(self) -> None: ...


def open_ledger(url: str, clock: Clock, *, retention: int = RETENTION, timeout: float = 0.25) -> Ledger:
    """`memory:`, `sqlite:///relative`, `sqlite:////absolute`, `redis://host:6379/0` (rediss, unix; `?ledger=NAME` keeps
    several apart in one database).

    `timeout` in seconds is for Redis, whose own clock counts there. Raises ValueError for any other URL and
    StoreUnavailable for a file that cannot be used; Redis is first spoken to when it is needed.
    """
    scheme = url.partition(":")[0]
    if url == "memory:":
        from .ledger_memory import MemoryLedger

        return MemoryLedger(clock, retention=retention)
    if scheme == "sqlite" and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from .ledger_sqlite import SqliteLedger

        return SqliteLedger(url.removeprefix("sqlite:///"), clock, retention=retention)
    if scheme in ("redis", "rediss", "unix") and url.startswith(f"{scheme}://"):
        from .ledger_redis import RedisLedger

        return RedisLedger(url, retention=retention, timeout=timeout)
    raise ValueError(f"a store is memory:, sqlite:///FILE or redis://HOST:PORT/DB, not {scheme}:")


# --- arithmetic that memory and SQLite share; Redis says the same in Lua ---


class Balance(msgspec.Struct, array_like=True):
    """`idle` is when it may be forgotten if nobody touches it; `soft_told` and `limit_told` are the highest lines that
    gave a notice in this window, -1 for none."""

    start: int = 0
    spent: int = 0
    reserved: int = 0
    credit: int = 0
    limit: int | None = None
    soft_told: int = -1
    limit_told: int = -1
    idle: int = 0

    def roll(self, start: int) -> None:
        """Opens the window that begins at `start`."""
        self.start, self.spent, self.reserved, self.credit = start, 0, 0, 0
        self.soft_told = self.limit_told = -1

    def clear(self) -> None:
        self.spent = self.credit = 0
        self.soft_told = self.limit_told = -1


Hold = tuple[str, int, int, int | None, bool]
"""What a reservation holds for a claim: key, start of the window, amount, soft line, whether it can be spent."""

Find = Callable[[Claim, int], Balance]
"""The balance of a claim at an instant, made when there is none and with its window opened."""


def window_start(now: int, window: int) -> int:
    return now - now % window if window else 0


def resets_at(start: int, window: int) -> int | None:
    return start + window if window else None


def lease_end(now: float, lease_seconds: float) -> int:
    return -int(-(now + lease_seconds) // 1)


def touch(balance: Balance, claim: Claim, now: int, retention: int) -> None:
    """Opens the window in which `now` lies and puts off forgetting; a window is not forgotten before it is over."""
    window = claim.window
    if window and balance.start < (start := now - now % window):
        balance.roll(start)
    balance.idle = NEVER if claim.keep else now + (window if window > retention else retention)


def forgotten(balance: Balance, now: int) -> bool:
    return balance.idle <= now and not balance.reserved


def row(key: str, balance: Balance, now: int) -> Row:
    """As it stands at `now`: a window that is over counts as a new one."""
    account, unit, seconds = key.rsplit(_SEPARATOR, 2)
    window = int(seconds)
    start = max(balance.start, window_start(now, window))
    spent, reserved, credit = (balance.spent, balance.reserved, balance.credit) if start == balance.start else (0, 0, 0)
    return Row(account, unit, window, start, resets_at(start, window), spent, reserved, credit, balance.limit)


def keys_of(account: str, unit: str | None = None) -> str:
    """What the keys of an account, or of one of its units, begin with."""
    return f"{account}{_SEPARATOR}" if unit is None else f"{account}{_SEPARATOR}{unit}{_SEPARATOR}"


def check_used(used: Mapping[int, int]) -> None:
    for amount in used.values():
        check_amount(amount)


def check_amount(amount: int) -> None:
    if not 0 <= amount <= MAX_AMOUNT:
        raise ValueError(f"an amount must be between 0 and {MAX_AMOUNT}, not {amount}")


def take(claims: Sequence[Claim], now: int, find: Find) -> tuple[Answer, list[Hold]]:
    """Reserves in the balances, all or none."""
    remaining: list[int | None] = []
    ends: list[int | None] = []
    over: list[int] = []
    holds: list[Hold] = []
    taken: list[Balance] = []
    told = False
    for claim in claims:
        balance = find(claim, now)
        amount, limit = claim.amount, claim.limit
        left = None
        if limit is not None:
            left = limit + balance.credit - balance.spent - balance.reserved - amount
            if left < 0 or not (left or amount):
                if claim.hard:
                    refused = _refuse(len(holds), claim, balance)
                    _undo(taken, holds)
                    return refused, []
                over.append(len(holds))
                left = 0
        if claim.soft is not None and balance.spent >= claim.soft:
            told = True
        balance.limit = limit
        balance.reserved += amount
        taken.append(balance)
        remaining.append(left)
        ends.append(balance.start + claim.window if claim.window else None)
        holds.append((claim.key, balance.start, amount, claim.soft, claim.unit != SLOT))
    if not told and not over:
        return Granted(tuple(remaining), tuple(ends)), holds
    notices = _tell(claims, taken, over)
    return Granted(tuple(remaining), tuple(ends), tuple(over), notices), holds


def _undo(taken: Sequence[Balance], holds: Sequence[Hold]) -> None:
    for balance, hold in zip(taken, holds, strict=True):
        balance.reserved -= hold[2]


def _refuse(index: int, claim: Claim, balance: Balance) -> Refused:
    balance.limit = claim.limit
    limit = (claim.limit or 0) + balance.credit
    notices = (Notice(index, Line.LIMIT, limit),) if _new_limit(balance, limit) else ()
    return Refused(index, balance.spent, balance.reserved, limit, resets_at(balance.start, claim.window), notices)


def _tell(claims: Sequence[Claim], balances: Sequence[Balance], over: Iterable[int]) -> tuple[Notice, ...]:
    soft = [soft_notice(index, balances[index], claim.soft) for index, claim in enumerate(claims)]
    reached = [(index, (claims[index].limit or 0) + balances[index].credit) for index in over]
    limits = [Notice(index, Line.LIMIT, limit) for index, limit in reached if _new_limit(balances[index], limit)]
    return tuple([notice for notice in soft if notice] + limits)


def soft_notice(index: int, balance: Balance, soft: int | None) -> Notice | None:
    if soft is None or balance.spent < soft or balance.soft_told >= soft:
        return None
    balance.soft_told = soft
    return Notice(index, Line.SOFT, soft)


def _new_limit(balance: Balance, limit: int) -> bool:
    new = balance.limit_told < limit
    balance.limit_told = max(balance.limit_told, limit)
    return new


def give_back(holds: Iterable[Hold], balance_of: Callable[[str], Balance | None]) -> None:
    """Frees what was reserved, where its window is still open."""
    for key, start, amount, _, _ in holds:
        balance = balance_of(key)
        if balance is not None and balance.start == start:
            balance.reserved -= amount


def take_again(holds: Iterable[Hold], balance_of: Callable[[str], Balance | None]) -> None:
    """Undoes `give_back`."""
    for key, start, amount, _, _ in holds:
        balance = balance_of(key)
        if balance is not None and balance.start == start:
            balance.reserved += amount


def charge(
    holds: Iterable[Hold],
    used: Mapping[int, int],
    balance_of: Callable[[str], Balance | None],
    again: Callable[[str], Balance],
    *,
    late: bool,
) -> tuple[Notice, ...]:
    """Turns what was reserved into what was used, where its window is still open.

    `late`: it was given back before. `again` makes the balance of an account that was forgotten meanwhile, so that
    nothing spent is lost.
    """
    notices: tuple[Notice, ...] = ()
    for index, (key, start, amount, soft, spendable) in enumerate(holds):
        balance = balance_of(key) or again(key)
        if balance.start == start:
            if not late:
                balance.reserved -= amount
            if spendable:
                balance.spent += used.get(index, amount)
                if soft is not None and (notice := soft_notice(index, balance, soft)):
                    notices += (notice,)
    return notices


def charge_claims(claims: Sequence[Claim], now: int, find: Find) -> tuple[Notice, ...]:
    notices: tuple[Notice, ...] = ()
    for index, claim in enumerate(claims):
        balance = find(claim, now)
        balance.limit = claim.limit
        balance.spent += claim.amount if claim.unit != SLOT else 0
        if notice := soft_notice(index, balance, claim.soft):
            notices += (notice,)
    return notices


class Ended:
    """Ids that have ended in this process, with what was answered when they were reserved."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, tuple[Granted | None, int]] = OrderedDict()

    def add(self, id: str, answer: Granted | None, now: int) -> None:
        self.known[id] = (answer, now)
        if len(self.known) > ENDED_COUNT:
            self.known.popitem(last=False)

    def forget(self, now: int) -> None:
        while self.known and next(iter(self.known.values()))[1] <= now - ENDED_SECONDS:
            self.known.popitem(last=False)

    def answer(self, id: str) -> Granted:
        """What an id that is known was granted; nothing for one that was spent without a reservation."""
        return self.known[id][0] or Granted((), ())
