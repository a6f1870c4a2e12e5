"""Random histories of many exchanges, on every ledger, beside a ledger so simple that one sees that it is right."""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.stores.ledger import SLOT, Claim, Ending, Granted, Ledger
from tests.stores.ledgers import KINDS, NOON, Bank, RedisServer

FUZZ = bool(os.environ.get("FUZZ"))
HISTORIES = settings(
    max_examples=10_000 if FUZZ else 60,
    deadline=None,
    derandomize=not FUZZ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# --- the reference ---


@dataclass
class Held:
    claims: tuple[Claim, ...]
    starts: tuple[int, ...]
    until: int
    over: bool = False


@dataclass
class Reference:
    """Keeps every reservation and charge ever made and adds them up when asked."""

    held: dict[str, Held] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    charges: list[tuple[str, int, int]] = field(default_factory=list)
    latest: dict[str, int] = field(default_factory=dict)

    def lapse(self, now: float) -> None:
        for held in self.held.values():
            held.over = held.over or held.until <= now

    def start(self, claim: Claim, now: float) -> int:
        begins = int(now) // claim.window * claim.window if claim.window else 0
        self.latest[claim.key] = max(begins, self.latest.get(claim.key, 0))
        return self.latest[claim.key]

    def spent(self, key: str, start: int) -> int:
        return sum(amount for of, at, amount in self.charges if (of, at) == (key, start))

    def reserved(self, key: str, start: int) -> int:
        living = [held for held in self.held.values() if not held.over]
        pairs = [(c, at) for held in living for c, at in zip(held.claims, held.starts, strict=True)]
        return sum(c.amount for c, at in pairs if (c.key, at) == (key, start))

    def reserve(self, id: str, claims: tuple[Claim, ...], lease: float, now: float) -> bool:
        if id in self.held or id in self.ended:
            return True
        starts: list[int] = []
        for index, claim in enumerate(claims):
            start = self.start(claim, now)
            before = sum(c.amount for c in claims[:index] if c.key == claim.key)
            taken = self.spent(claim.key, start) + self.reserved(claim.key, start) + before
            if claim.limit is not None and claim.hard and taken + max(claim.amount, 1) > claim.limit:
                return False
            starts.append(start)
        self.held[id] = Held(claims, tuple(starts), -int(-(now + lease) // 1))
        return True

    def settle(self, id: str, used: dict[int, int]) -> bool:
        held = self.held.pop(id, None)
        if held is None:
            return False
        self.ended.add(id)
        for index, (claim, start) in enumerate(zip(held.claims, held.starts, strict=True)):
            if claim.unit != SLOT:
                self.charges.append((claim.key, start, used.get(index, claim.amount)))
        return True

    def release(self, id: str) -> bool:
        self.ended.update([id] if id in self.held else [])
        return self.held.pop(id, None) is not None

    def extend(self, id: str, lease: float, now: float) -> bool:
        if id in self.held:
            self.held[id].until, self.held[id].over = -int(-(now + lease) // 1), False
        return id in self.held


# --- histories ---

Step = tuple[Any, ...]
CLAIMS = st.builds(
    Claim,
    account=st.sampled_from(["run", "tenant"]),
    unit=st.sampled_from(["tokens", "calls"]),
    amount=st.integers(0, 40),
    limit=st.sampled_from([None, 0, 30, 50, 100]),
    window=st.sampled_from([0, 7, 60]),
    hard=st.sampled_from([True, True, True, False]),
) | st.builds(Claim, account=st.just("run"), unit=st.just(SLOT), amount=st.just(1), limit=st.just(2))
IDS = st.sampled_from([f"id{number}" for number in range(8)])
LEASES = st.sampled_from([1, 2.5, 20])
STEPS = st.one_of(
    st.tuples(st.just("reserve"), IDS, st.lists(CLAIMS, min_size=1, max_size=4).map(tuple), LEASES),
    st.tuples(st.just("settle"), IDS, st.dictionaries(st.integers(0, 3), st.integers(0, 60), max_size=4)),
    st.tuples(st.just("release"), IDS),
    st.tuples(st.just("extend"), IDS, LEASES),
    st.tuples(st.just("clock"), st.sampled_from([0.3, 1, 3, 8, 25, -2, -10])),
    st.tuples(st.just("crash")),
    st.tuples(st.just("read")),
)


@dataclass
class Life:
    """A ledger and the reference that lives the same history."""

    bank: Bank
    ledger: Ledger
    model: Reference = field(default_factory=Reference)

    async def reserve(self, id: str, claims: tuple[Claim, ...], lease: float) -> None:
        answer = await self.ledger.reserve(id, claims, lease)
        assert isinstance(answer, Granted) == self.model.reserve(id, claims, lease, self.bank.now)

    async def settle(self, id: str, used: dict[int, int]) -> None:
        assert ((await self.ledger.settle(id, used)).ending is Ending.DONE) == self.model.settle(id, used)

    async def release(self, id: str) -> None:
        assert (await self.ledger.release(id) is Ending.DONE) == self.model.release(id)

    async def extend(self, id: str, lease: float) -> None:
        assert await self.ledger.extend(id, lease) == self.model.extend(id, lease, self.bank.now)

    async def clock(self, seconds: float) -> None:
        """What has lapsed is seen before the clock goes back, so that it stays so for both."""
        if seconds < 0:
            await self.read()
        self.bank.now += seconds

    async def crash(self) -> None:
        """The end of a process: another one opens what is kept. Memory keeps nothing, so it goes on there.

        Which ids have ended only Redis knows beyond that.
        """
        if self.bank.kind == "sqlite":
            self.model.ended.clear()
        if self.bank.kind != "memory":
            await self.ledger.close()
            self.ledger = self.bank.open()

    async def read(self) -> None:
        model = self.model
        for row in await self.ledger.read():
            key = Claim(row.account, row.unit, 0, window=row.window).key
            assert (row.spent, row.reserved) == (model.spent(key, row.start), model.reserved(key, row.start)), row
            assert row.spent >= 0 <= row.reserved


async def live(bank: Bank, history: list[Step]) -> None:
    life = Life(bank, bank.open())
    try:
        for name, *values in [*history, ("read",)]:
            life.model.lapse(bank.now)
            await getattr(life, name)(*values)
    finally:
        await life.ledger.close()


def check(kind: str, server: RedisServer | None, history: list[Step]) -> None:
    with TemporaryDirectory() as folder, Bank(kind, Path(folder), server) as bank:
        asyncio.run(live(bank, history))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_history(kind: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("redis") if kind == "redis" else None

    @HISTORIES
    @given(history=st.lists(STEPS, max_size=40))
    def run(history: list[Step]) -> None:
        check(kind, server, history)

    run()


# --- the bound ---


@HISTORIES
@given(
    exchanges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 45)), max_size=60),
    order=st.randoms(use_true_random=False),
)
def test_spending_is_never_beyond_the_limit_by_more_than_the_estimates_were_wrong(
    exchanges: list[tuple[int, int]], order: Any
) -> None:
    """Each exchange estimates one amount and uses another; they begin and end in any order."""

    async def run(bank: Bank) -> None:
        ledger, waiting, open_, wrong, used = bank.open(), list(enumerate(exchanges)), [], 0, 0
        while waiting or open_:
            if waiting and (not open_ or order.random() < 0.5):
                number, (estimate, truth) = waiting.pop()
                answer = await ledger.reserve(str(number), [Claim("run", "tokens", estimate, 200)], 60)
                open_ += [(number, estimate, truth)] if isinstance(answer, Granted) else []
            else:
                number, estimate, truth = open_.pop(order.randrange(len(open_)))
                await ledger.settle(str(number), {0: truth})
                wrong, used = wrong + max(0, truth - estimate), used + truth
        assert used <= 200 + wrong
        assert [row.spent for row in await ledger.read()] in ([], [used])

    with TemporaryDirectory() as folder, Bank("memory", Path(folder)) as bank:
        asyncio.run(run(bank))


# --- histories that were found ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_heartbeat_after_the_clock_went_back(kind: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("redis") if kind == "redis" else None
    one = (Claim("run", "tokens", 30, 50),)
    check(
        kind, server, [("reserve", "id0", one, 1), ("clock", 3), ("clock", -10), ("extend", "id0", 2.5), ("clock", 8)]
    )


def test_the_clock_of_these_histories_begins_where_no_window_does() -> None:
    assert NOON % 7 != 0
