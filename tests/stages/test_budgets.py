"""Budgets at the stage: what is reserved when a client leaves, when the store is away, and what it is called."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sidecar.core.decision import Pass, Refuse
from sidecar.core.events import Text
from sidecar.core.exchange import Exchange, Request
from sidecar.core.identity import Identity
from sidecar.core.stage import UNREACHABLE
from sidecar.core.surface import Lane
from sidecar.errors import StoreUnavailable
from sidecar.stages.budgets import BudgetConfig, Budgets, account
from sidecar.stages.prices import Prices, PricesConfig
from sidecar.stores import accounts
from sidecar.stores.accounts import Accounts
from sidecar.stores.ledger import Answer, Claim
from sidecar.stores.ledger_memory import MemoryLedger
from sidecar.wire import chat


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Far(MemoryLedger):
    """A ledger whose answer takes a while, or does not come."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.delay = 0.0
        self.away = False
        self.asked = 0

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        self.asked += 1
        self._be_there()
        answer = await super().reserve(id, claims, lease_seconds)
        await asyncio.sleep(self.delay)
        return answer

    async def extend(self, id: str, lease_seconds: float) -> bool:
        self._be_there()
        return await super().extend(id, lease_seconds)

    def _be_there(self) -> None:
        if self.away:
            raise StoreUnavailable("away")

    async def sums(self) -> tuple[int, int]:
        rows = await self.read()
        return sum(row.spent for row in rows), sum(row.reserved for row in rows)


class Desk:
    """Calls under one budget."""

    def __init__(self, **budget: Any) -> None:
        self.far, self.told = Far(), list[str]()
        self.news = asyncio.Event()
        self.accounts = Accounts(self.far, lambda: 0.0, self._hear)
        config = BudgetConfig.model_validate({"name": "b", "scope": "tenant", **budget})
        self.stage = Budgets.of([config], Prices.of(PricesConfig()))
        self._count = 0

    def _hear(self, said: str) -> None:
        self.told.append(said)
        self.news.set()

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
    await desk.accounts.pay()
    assert await desk.far.sums() == (0, 0)
    desk.far.away = False
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
    # One has found out, for all.
    assert desk.far.asked == 1
    desk.far.away = False
    await desk.accounts.pay()
    assert isinstance(await desk.visit().request(hello()), Pass)
    assert desk.told == ["the ledger is out of reach: away", "the ledger is back"]
    assert await desk.far.sums() == (0, 1)


@pytest.mark.anyio
async def test_a_store_that_is_away_is_asked_again_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "PAY_SECONDS", 0.01)
    desk = Desk(calls=8)
    desk.far.away = True
    keeper = asyncio.ensure_future(desk.accounts.keep())
    assert isinstance(await desk.visit().request(hello()), Refuse)
    await asyncio.sleep(0.05)
    assert desk.told == ["the ledger is out of reach: away"]
    desk.far.away = False
    desk.news.clear()
    await asyncio.wait_for(desk.news.wait(), 5)
    assert isinstance(await desk.visit().request(hello()), Pass)
    assert desk.far.asked == 2
    keeper.cancel()


@pytest.mark.anyio
async def test_where_nobody_asks_in_the_background_one_call_does_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "PAUSE_SECONDS", 0.05)
    desk = Desk(calls=8)
    desk.far.away = True
    for _ in range(2):
        assert isinstance(await desk.visit().request(hello()), Refuse)
    await asyncio.sleep(0.06)
    for _ in range(2):
        assert isinstance(await desk.visit().request(hello()), Refuse)
    assert desk.far.asked == 2
    await asyncio.sleep(0.06)
    desk.far.away = False
    assert isinstance(await desk.visit().request(hello()), Pass)


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


def proposed(count: int) -> Iterator[Text]:
    """A reply's tool calls, by name."""
    for index in range(count):
        yield Text(Lane(chat.TOOL_NAME, 0, index), "find", last=True)


async def passed(desk: Desk, count: int) -> int:
    """How many of so many tool calls in one reply reach the client."""
    visit = desk.visit()
    await visit.request(hello())
    said = [out for event in proposed(count) for out in visit.feed(event)]
    await visit.done("completed")
    return sum(isinstance(event, Text) for event in said)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limit", "proposes", "passes"),
    [(10, 12, 10), (100, 20, 16), (128, 20, 16), (400, 60, 50), (10_000, 200, 128)],
)
async def test_how_many_tool_calls_one_reply_may_have(limit: int, proposes: int, passes: int) -> None:
    assert await passed(Desk(tool_calls=limit), proposes) == passes


@pytest.mark.anyio
async def test_calls_that_run_at_once_share_what_is_left_of_a_limit_on_tools() -> None:
    desk = Desk(tool_calls=40)
    visits = [desk.visit() for _ in range(4)]
    for visit in visits:
        assert isinstance(await visit.request(hello()), Pass)
    said = [[out for event in proposed(20) for out in visit.feed(event)] for visit in visits]
    assert [sum(isinstance(event, Text) for event in each) for each in said] == [16, 16, 8, 0]


def test_what_a_client_calls_itself_is_never_of_another_tenant() -> None:
    budget = BudgetConfig.model_validate({"name": "b", "scope": "run", "calls": 1})
    pairs = [("a", "b/run/c"), ("a/run/b", "c"), ("a%2Frun", "b"), ("a", "run:b")]
    names = {account(budget, Identity(tenant=tenant, run=run)) for tenant, run in pairs}
    assert len(names) == len(pairs)
