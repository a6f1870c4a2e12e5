"""Budgets at the stage: what is reserved when a client leaves, when the store is away, and what it is called."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from sidecar.core.decision import Pass, Refuse
from sidecar.core.exchange import Exchange, Request
from sidecar.core.identity import Identity
from sidecar.core.stage import UNREACHABLE
from sidecar.errors import StoreUnavailable
from sidecar.stages.budgets import BudgetConfig, Budgets, account
from sidecar.stages.prices import Prices, PricesConfig
from sidecar.stores.accounts import Accounts
from sidecar.stores.ledger import Answer, Claim
from sidecar.stores.ledger_memory import MemoryLedger


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Far(MemoryLedger):
    """A ledger whose answer takes a while, or does not come."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.delay = 0.0
        self.away = False

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        if self.away:
            raise StoreUnavailable("away")
        answer = await super().reserve(id, claims, lease_seconds)
        await asyncio.sleep(self.delay)
        return answer

    async def sums(self) -> tuple[int, int]:
        rows = await self.read()
        return sum(row.spent for row in rows), sum(row.reserved for row in rows)


class Desk:
    """Calls under one budget."""

    def __init__(self, **budget: Any) -> None:
        self.far, self.told = Far(), list[str]()
        self.accounts = Accounts(self.far, lambda: 0.0, self.told.append)
        config = BudgetConfig.model_validate({"name": "b", "scope": "tenant", **budget})
        self.stage = Budgets.of([config], Prices.of(PricesConfig()))
        self._count = 0

    def visit(self) -> Any:
        self._count += 1
        return self.stage.open(Exchange(f"x{self._count}", "chat", accounts=self.accounts))


def hello() -> Request:
    return Request({"model": "m", "messages": []}, [], "m")


@pytest.mark.anyio
async def test_a_client_that_leaves_while_it_is_reserved_holds_nothing() -> None:
    desk = Desk(calls=1)
    desk.far.delay = 5.0
    visit = desk.visit()
    asking = asyncio.ensure_future(visit.request(hello()))
    await asyncio.sleep(0.01)
    assert await desk.far.sums() == (0, 1)
    asking.cancel()
    await asyncio.wait([asking])
    await visit.done(UNREACHABLE)
    assert await desk.far.sums() == (0, 0)
    desk.far.delay = 0
    assert isinstance(await desk.visit().request(hello()), Pass)


@pytest.mark.anyio
async def test_what_is_used_while_the_store_is_away_is_paid_once() -> None:
    desk = Desk(calls=8, on_store_error="local")
    desk.far.away = True
    visit = desk.visit()
    assert isinstance(await visit.request(hello()), Pass)
    await visit.done("completed")
    assert await desk.far.sums() == (0, 0)
    for _ in range(2):
        await desk.accounts.pay()
    assert await desk.far.sums() == (1, 0)


@pytest.mark.anyio
async def test_without_leave_nothing_passes_while_the_store_is_away() -> None:
    desk = Desk(calls=8)
    desk.far.away = True
    visits = [desk.visit() for _ in range(3)]
    for visit in visits:
        assert isinstance(await visit.request(hello()), Refuse)
        await visit.done(UNREACHABLE)
    desk.far.away = False
    assert isinstance(await desk.visit().request(hello()), Pass)
    assert desk.told == ["the ledger is out of reach: away", "the ledger is back"]
    assert await desk.far.sums() == (0, 1)


@pytest.mark.parametrize(
    ("scope", "identity", "named"),
    [
        ("all", Identity(), "b/all"),
        ("tenant", Identity(tenant="a/run/x"), "b/a%2Frun%2Fx"),
        ("run", Identity(run="run:7"), "b/default/run/run:7"),
        ("session", Identity(session="header:a/b"), "b/default/session/header:a/b"),
        ("agent", Identity(agent="team:bot"), "b/default/agent/team:bot"),
        ("session", Identity(session="user:ana@x.org"), "b/default/session/user:c73880466f02c8bb"),
    ],
)
def test_what_an_account_is_called(scope: Any, identity: Identity, named: str) -> None:
    budget = BudgetConfig.model_validate({"name": "b", "scope": scope, "calls": 1})
    assert account(budget, identity) == named


def test_what_a_client_calls_itself_is_never_of_another_tenant() -> None:
    budget = BudgetConfig.model_validate({"name": "b", "scope": "run", "calls": 1})
    pairs = [("a", "b/run/c"), ("a/run/b", "c"), ("a%2Frun", "b"), ("a", "run:b")]
    names = {account(budget, Identity(tenant=tenant, run=run)) for tenant, run in pairs}
    assert len(names) == len(pairs)
