"""What every store of approvals promises, whatever keeps it, and how an exchange waits on one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from sidecar.errors import StoreUnavailable
from sidecar.stores import approvals as module
from sidecar.stores.approvals import NOT_ASKED, Approvals, Decided, Desk, Pending, open_approvals
from tests.stores.ledgers import Bank

pytestmark = pytest.mark.anyio
YES, NO = Decided(True, "", "admin1"), Decided(False, "not now", "admin2")


def open_one(bank: Bank) -> Approvals:
    return open_approvals(bank.url, lambda: bank.now, timeout=10)


async def _opened(bank: Bank) -> AsyncGenerator[Approvals]:
    store = open_one(bank)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(bank: Bank) -> AsyncIterator[Approvals]:
    async with aclosing(_opened(bank)) as opened:
        async for store in opened:
            yield store


def pending(bank: Bank, id: str = "a", *, seconds: float = 60, after: float = 0) -> Pending:
    asked = bank.now + after
    return Pending(id, "rule-1", "shell", '{"cmd": "ls"}', "acme", "agent", "run", asked, asked + seconds)


# --- the stores ---


async def test_put_decided_and_taken_away(bank: Bank, store: Approvals) -> None:
    one = pending(bank)
    assert await store.put(one)
    assert await store.listed() == [one]
    assert await store.look("a") is None
    assert await store.decide("a", YES) == one
    assert await store.look("a") == YES
    assert await store.listed() == []
    assert await store.end("a") == YES
    assert await store.end("a") is None


async def test_decided_once(bank: Bank, store: Approvals) -> None:
    await store.put(pending(bank))
    assert await store.decide("a", NO) is not None
    assert await store.decide("a", YES) is None
    assert await store.look("a") == NO


async def test_what_nobody_waits_on_cannot_be_decided(bank: Bank, store: Approvals) -> None:
    assert await store.decide("a", YES) is None
    await store.put(pending(bank))
    assert await store.end("a") is None
    assert await store.decide("a", YES) is None
    assert await store.listed() == []


async def test_the_oldest_first_and_no_more_than_asked_for(bank: Bank, store: Approvals) -> None:
    for id, after in (("c", 3), ("a", 1), ("b", 2)):
        await store.put(pending(bank, id, after=after))
    await store.decide("a", YES)
    assert [one.id for one in await store.listed()] == ["b", "c"]
    assert [one.id for one in await store.listed(1)] == ["b"]


async def test_two_wait_apart(bank: Bank, store: Approvals) -> None:
    await store.put(pending(bank, "a"))
    await store.put(pending(bank, "b"))
    await store.decide("b", NO)
    assert (await store.look("a"), await store.look("b")) == (None, NO)


async def test_an_entry_of_a_process_that_died_goes_when_its_time_is_over(bank: Bank, store: Approvals) -> None:
    if bank.kind == "redis":
        await store.put(pending(bank, seconds=0.05))
        await asyncio.sleep(0.1)  # the server's own clock
    else:
        await store.put(pending(bank))
        bank.now += 60
    assert await store.listed() == []
    assert await store.decide("a", YES) is None


async def test_their_number_is_bounded(bank: Bank, store: Approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    name = {"memory": "approvals", "sqlite": "approvals_sqlite", "redis": "approvals_redis"}[bank.kind]
    monkeypatch.setattr(f"sidecar.stores.{name}.MAX_PENDING", 2)
    assert [await store.put(pending(bank, id)) for id in "abc"] == [True, True, False]
    await store.end("a")
    assert await store.put(pending(bank, "d"))


async def test_processes_share_a_store(bank: Bank, store: Approvals) -> None:
    if bank.kind == "memory":
        return
    other = open_one(bank)
    await store.put(pending(bank))
    assert [one.id for one in await other.listed()] == ["a"]
    assert await other.decide("a", YES) is not None
    assert await store.end("a") == YES
    await other.close()


async def test_odd_texts_come_back_as_they_were(bank: Bank, store: Approvals) -> None:
    one = Pending(
        "a'; DROP TABLE approval; --", "r", "t", '{"ä": "\\u0000\n"}', "a/b:c", "", "{x}:*", bank.now, bank.now + 60
    )
    await store.put(one)
    assert await store.listed() == [one]
    assert await store.decide(one.id, Decided(False, "«no»\n", "x")) == one
    assert await store.end(one.id) == Decided(False, "«no»\n", "x")


async def test_a_ledger_in_the_same_store(bank: Bank, store: Approvals) -> None:
    ledger = bank.open()
    await store.put(pending(bank))
    assert await ledger.read() == []
    assert [one.id for one in await store.listed()] == ["a"]
    await ledger.close()


@pytest.mark.parametrize("url", ["file:x", "sqlite", ""])
async def test_what_is_no_store(url: str) -> None:
    with pytest.raises((ValueError, StoreUnavailable)):
        open_approvals(url, lambda: 0.0)


async def test_a_store_that_is_not_there() -> None:
    with pytest.raises(StoreUnavailable):
        open_approvals("sqlite:////no/such/folder/x.db", lambda: 0.0)
    gone = open_approvals("redis://127.0.0.1:1/0", lambda: 0.0)
    for ask in (gone.look("a"), gone.listed(), gone.decide("a", YES), gone.end("a")):
        with pytest.raises(StoreUnavailable):
            await ask
    await gone.close()


# --- waiting ---


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)


async def listed(store: Approvals, count: int) -> None:
    for _ in range(1000):
        if len(await store.listed()) == count:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nothing came of it")


async def test_a_call_waits_until_it_is_decided(bank: Bank, store: Approvals, quick: None) -> None:
    told: list[dict[str, Any]] = []
    desk = Desk(store, told.append)
    asked = asyncio.create_task(desk.ask(pending(bank), 30))
    await listed(store, 1)
    assert not asked.done()
    await store.decide("a", YES)
    assert await asked == YES
    assert desk.waiting == 0
    assert await store.end("a") is None
    assert [one["event"] for one in told] == ["approval_asked"]
    assert "ls" not in repr(told)


async def test_nobody_decides_in_time(bank: Bank, store: Approvals, quick: None) -> None:
    assert await Desk(store).ask(pending(bank), 0.05) is None
    assert await store.listed() == []


async def test_a_client_that_leaves_takes_its_entry_away(bank: Bank, store: Approvals, quick: None) -> None:
    desk = Desk(store)
    asked = asyncio.create_task(desk.ask(pending(bank), 30))
    await listed(store, 1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await listed(store, 0)
    assert desk.waiting == 0


async def test_a_decision_in_the_last_moment_counts(bank: Bank, store: Approvals, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 10)
    asked = asyncio.create_task(Desk(store).ask(pending(bank), 0.3))
    await listed(store, 1)
    await store.decide("a", YES)
    assert await asked == YES


async def test_too_many_wait(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(module.MemoryApprovals):
        async def put(self, pending: Pending) -> bool:
            return False

    assert await Desk(Full(lambda: 0.0)).ask(pending(bank), 5) == NOT_ASKED


async def test_a_store_out_of_reach_means_no(bank: Bank, quick: None) -> None:
    assert await Desk(open_approvals("redis://127.0.0.1:1/0", lambda: 0.0)).ask(pending(bank), 5) == NOT_ASKED


async def test_a_client_that_leaves_while_its_call_is_put_down(bank: Bank, store: Approvals) -> None:
    """A store goes on with what was asked of it: what it has put down then is taken away all the same."""

    class Slow(module.MemoryApprovals):
        async def put(self, pending: Pending) -> bool:
            await super().put(pending)
            await asyncio.sleep(3600)
            return True

    slow = Slow(lambda: bank.now)
    asked = asyncio.create_task(Desk(slow).ask(pending(bank), 30))
    await listed(slow, 1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await slow.listed() == []


async def test_a_store_that_is_away_for_a_moment_is_asked_again(bank: Bank, quick: None) -> None:
    class Shaky(module.MemoryApprovals):
        left = 3

        async def look(self, id: str) -> Decided | None:
            self.left -= 1
            if self.left > 0:
                raise StoreUnavailable("away")
            return await super().look(id)

    shaky = Shaky(lambda: bank.now)
    asked = asyncio.create_task(Desk(shaky).ask(pending(bank), 30))
    await listed(shaky, 1)
    await shaky.decide("a", YES)
    assert await asked == YES


async def test_what_is_decided_too_late_is_not_decided(bank: Bank, store: Approvals, quick: None) -> None:
    assert await Desk(store).ask(pending(bank), 0.05) is None
    assert await store.decide("a", YES) is None
