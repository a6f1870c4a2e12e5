"""The ledger as exchanges use it: reservations are kept alive while they run, and nothing used is lost in an outage."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar

from ..errors import StoreUnavailable
from .ledger import Answer, Claim, Clock, Ledger, Notice
from .ledger_memory import MemoryLedger

# How long a reservation outlives a process that died, and how often it is renewed.
LEASE_SECONDS: Final = 120.0
RENEW_SECONDS: Final = 40.0
# How often it is tried to pay what is owed, and to reach a ledger that is out of reach.
PAY_SECONDS: Final = 1.0
# How long nobody waits for a ledger that has just failed: longer than it takes to try again in the background. Where
# nobody does, one call then finds out.
PAUSE_SECONDS: Final = 3.0
# What is owed to a ledger that cannot be reached, at most; beyond it the oldest is told and dropped.
MAX_OWED: Final = 100_000

# Accounts that have crossed a soft line and whose next call is still to be told; beyond it they are forgotten.
MAX_WARNED: Final = 10_000

# A reservation that never was: asking to renew it tells whether the ledger can be reached.
_NOBODY: Final = "nobody"

Tell = Callable[[str], None]
"""Something worth telling the operator."""
Notify = Callable[[dict[str, Any]], None]
"""An event for the log."""

P = ParamSpec("P")
T = TypeVar("T")


class Accounts:
    """One ledger, the reservations that are open in it, and what could not be charged yet.

    `local` stands in while the ledger is out of reach, for budgets whose policy lets it.
    """

    def __init__(self, ledger: Ledger, clock: Clock, tell: Tell, notify: Notify = lambda _: None) -> None:
        self.ledger, self._tell, self.notify = ledger, tell, notify
        self.local = MemoryLedger(clock)
        self._open: set[str] = set()
        self._owed: deque[Callable[[], Awaitable[object]]] = deque()
        self._down = ""
        """Why the ledger is out of reach."""
        self._paused_until = 0.0
        self._warned: set[str] = set()
        self._pay_now = asyncio.Event()

    async def reserve(self, id: str, claims: Sequence[Claim]) -> Answer:
        """Raises StoreUnavailable."""
        return await self._reached(self.ledger.reserve, id, claims, LEASE_SECONDS)

    async def _reached(self, work: Callable[P, Awaitable[T]], *args: P.args, **named: P.kwargs) -> T:
        """Raises StoreUnavailable: at once while the ledger is known to be away, so that calls do not pile up."""
        if self._down:
            self._wait_not()
        try:
            answer = await work(*args, **named)
        except StoreUnavailable as error:
            self._note_down(error)
            raise
        self._note_up()
        return answer

    def _wait_not(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._paused_until:
            raise StoreUnavailable(self._down)
        self._paused_until = now + PAUSE_SECONDS

    @property
    def idle(self) -> bool:
        """Whether no reservation is open."""
        return not self._open

    def hold(self, id: str) -> None:
        """The reservation's call goes on: it is renewed until it is settled or released."""
        self._open.add(id)

    async def settle(self, id: str, used: Mapping[int, int]) -> Sequence[Notice]:
        """Charges what was used; later, if the ledger cannot be reached now."""
        try:
            return (await self._reached(self.ledger.settle, id, used)).notices
        except StoreUnavailable:
            self._owe(lambda: self.ledger.settle(id, used))
            return ()
        finally:
            self._open.discard(id)

    async def release(self, id: str) -> None:
        try:
            await self._reached(self.ledger.release, id)
        except StoreUnavailable:
            self._owe(lambda: self.ledger.release(id))
        finally:
            self._open.discard(id)

    def warn(self, claims: Sequence[Claim]) -> None:
        """These accounts have crossed a soft line with what was settled: the next call is to be told."""
        if claims and len(self._warned) < MAX_WARNED:
            self._warned.update(claim.key for claim in claims)

    def was_warned(self, claim: Claim) -> bool:
        """Whether this call is the one to be told; once."""
        if claim.key not in self._warned:
            return False
        self._warned.discard(claim.key)
        return True

    def charge_later(self, id: str, claims: Sequence[Claim]) -> None:
        """What was used while the ledger was out of reach."""
        self._owe(lambda: self.ledger.spend(id, claims))

    def _owe(self, work: Callable[[], Awaitable[object]]) -> None:
        if len(self._owed) >= MAX_OWED:
            self._owed.popleft()
            self._tell("more is owed to the ledger than is kept: the oldest charge was dropped")
        self._owed.append(work)
        self._pay_now.set()

    # --- the background ---

    async def keep(self) -> None:
        """Renews what is open and pays what is owed, until it is cancelled."""
        now = asyncio.get_running_loop().time
        due = now() + RENEW_SECONDS
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._pay_now.wait(), max(0.0, due - now()))
                await asyncio.sleep(PAY_SECONDS)
            if now() >= due:
                due = now() + RENEW_SECONDS
                await self.tend()
            else:
                await self.pay()

    async def tend(self) -> None:
        try:
            await self._pay()
            for id in list(self._open):
                if not await self.ledger.extend(id, LEASE_SECONDS):
                    self._open.discard(id)
        except StoreUnavailable as error:
            self._note_down(error)

    async def pay(self) -> None:
        try:
            await self._pay()
        except StoreUnavailable as error:
            self._note_down(error)

    async def _pay(self) -> None:
        if self._down:
            await self.ledger.extend(_NOBODY, LEASE_SECONDS)
            self._note_up()
        while self._owed:
            work = self._owed.popleft()
            try:
                await work()
            except BaseException:
                self._owed.appendleft(work)
                raise
        self._pay_now.clear()

    async def close(self) -> None:
        await self.pay()
        if self._owed:
            self._tell(f"{len(self._owed)} charges could not be written to the ledger")
        await self.ledger.close()

    # --- one warning per outage ---

    def _note_down(self, error: StoreUnavailable) -> None:
        if not self._down:
            self._tell(f"the ledger is out of reach: {error}")
        self._down = self._down or str(error) or type(error).__name__
        self._paused_until = asyncio.get_running_loop().time() + PAUSE_SECONDS
        self._pay_now.set()

    def _note_up(self) -> None:
        if self._down:
            self._down = ""
            self._tell("the ledger is back")
