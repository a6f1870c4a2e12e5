"""What every ledger promises, whatever keeps it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from sidecar.stores.ledger import (
    ENDED_SECONDS,
    MAX_AMOUNT,
    MAX_LIMIT,
    SLOT,
    Claim,
    Ending,
    Granted,
    Ledger,
    Line,
    Notice,
    Refused,
    Row,
    Settled,
    open_ledger,
)
from tests.stores.ledgers import NOON, Bank, balance, claim, granted, refused, reserve, rows

pytestmark = pytest.mark.anyio
DONE, AGAIN, UNKNOWN = Settled(Ending.DONE), Settled(Ending.AGAIN), Settled(Ending.UNKNOWN)


async def _opened(bank: Bank) -> AsyncIterator[Ledger]:
    ledger = bank.open()
    try:
        yield ledger
    finally:
        await ledger.close()


@pytest.fixture
async def ledger(bank: Bank) -> AsyncIterator[Ledger]:
    async with aclosing(_opened(bank)) as opened:
        async for ledger in opened:
            yield ledger


# --- reserve ---


async def test_reserves_and_says_what_remains(ledger: Ledger) -> None:
    assert await reserve(ledger, "a", claim(30, 100)) == Granted((70,), (None,))
    assert await reserve(ledger, "b", claim(30, 100)) == Granted((40,), (None,))
    assert await balance(ledger) == (0, 60)


async def test_refuses_what_does_not_fit_beside_what_is_spent_and_reserved(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30))
    await ledger.settle("a", {0: 50})
    await reserve(ledger, "b", claim(30, 100))
    assert await reserve(ledger, "c", claim(21, 100)) == Refused(0, 50, 30, 100, None, (Notice(0, Line.LIMIT, 100),))
    assert await reserve(ledger, "d", claim(20, 100)) == Granted((0,), (None,))


async def test_arriving_exactly_at_the_limit_fits_and_standing_there_refuses(ledger: Ledger) -> None:
    await granted(ledger, "a", claim(100, 100))
    await refused(ledger, "b", claim(1, 100))
    await refused(ledger, "c", claim(0, 100))
    await ledger.settle("a", {0: 99})
    await granted(ledger, "d", claim(0, 100))
    await granted(ledger, "e", claim(1, 100))


async def test_a_limit_of_nought_denies_all(ledger: Ledger) -> None:
    assert (await refused(ledger, "a", claim(0, 0))).limit == 0
    assert (await refused(ledger, "a", claim(1, 0))).limit == 0


async def test_without_a_limit_it_only_counts(ledger: Ledger) -> None:
    assert await reserve(ledger, "a", claim(MAX_AMOUNT)) == Granted((None,), (None,))
    assert await balance(ledger) == (0, MAX_AMOUNT)


async def test_all_claims_or_none_and_the_first_that_does_not_fit_is_named(ledger: Ledger) -> None:
    key, tenant = claim(5, 10, account="key"), claim(5, 4, account="tenant")
    last = claim(5, 3, account="all")
    assert (await refused(ledger, "a", key, tenant, last)).claim == 1
    assert [(row.account, row.reserved) for row in await ledger.read() if row.reserved] == []
    await granted(ledger, "b", key)


async def test_two_claims_on_one_balance_are_taken_together(ledger: Ledger) -> None:
    answer = await refused(ledger, "a", claim(6, 10), claim(6, 10))
    assert (answer.claim, answer.spent, answer.reserved) == (1, 0, 6)
    assert await balance(ledger) == (0, 0)
    await granted(ledger, "b", claim(6, 10), claim(4, 10))
    assert await balance(ledger) == (0, 10)
    await ledger.settle("b", {0: 1, 1: 2})
    assert await balance(ledger) == (3, 0)


async def test_the_same_id_again_gets_the_same_answer_and_takes_nothing_more(ledger: Ledger) -> None:
    first = await granted(ledger, "a", claim(30, 100, window=60, soft=0), claim(1, 0, hard=False, account="shadow"))
    await reserve(ledger, "b", claim(30, 100, window=60))
    again = claim(30, 100, window=60, soft=0), claim(1, 0, hard=False, account="shadow")
    assert await reserve(ledger, "a", *again) == first
    assert await balance(ledger) == (0, 60)
    await ledger.settle("a", {})
    assert await reserve(ledger, "a", *again) == first
    assert await balance(ledger) == (30, 30)


async def test_a_refused_id_is_free(ledger: Ledger) -> None:
    await granted(ledger, "a", claim(100, 100))
    await refused(ledger, "b", claim(1, 100))
    await ledger.release("a")
    await granted(ledger, "b", claim(1, 100))


async def test_units_and_windows_of_an_account_are_apart(ledger: Ledger) -> None:
    minute, hour, calls = claim(5, window=60), claim(5, window=3600), claim(1, unit="calls")
    await reserve(ledger, "a", minute, hour, calls)
    await ledger.settle("a", {0: 7, 1: 8, 2: 1})
    assert [(row.unit, row.window, row.spent) for row in await ledger.read("acme/run/1")] == [
        ("calls", 0, 1),
        ("tokens", 3600, 8),
        ("tokens", 60, 7),
    ]


async def test_money_is_exact_beyond_what_a_float_holds(ledger: Ledger) -> None:
    """9 million of a currency in 1e-9 is beyond 2^53."""
    for number in range(20):
        await ledger.spend(f"s{number}", [claim(9_007_199_254_740_993)])
    spent = 20 * 9_007_199_254_740_993
    assert (await granted(ledger, "a", claim(1, spent + 2))).remaining == (1,)
    assert (await granted(ledger, "b", claim(1, spent + 2))).remaining == (0,)
    assert (await refused(ledger, "c", claim(1, spent + 2))).spent == spent
    await ledger.settle("a", {0: 3})
    assert await balance(ledger) == (spent + 3, 1)


# --- settle and release ---


async def test_settling_counts_what_was_used_not_what_was_reserved(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30, 100), claim(5, account="counted"))
    assert await ledger.settle("a", {0: 12, 1: 700}) == DONE
    assert await balance(ledger) == (12, 0)
    assert await balance(ledger, "counted") == (700, 0)


async def test_what_was_used_beyond_the_limit_counts_too(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30, 100))
    await ledger.settle("a", {0: 150})
    assert await balance(ledger) == (150, 0)
    assert (await refused(ledger, "b", claim(0, 100))).spent == 150


async def test_a_claim_that_is_not_named_is_charged_as_reserved(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30, 100))
    await ledger.settle("a", {})
    assert await balance(ledger) == (30, 0)


async def test_a_claim_of_nothing_is_charged_what_was_used(ledger: Ledger) -> None:
    for number, ending in enumerate((ledger.settle("a0", {0: 4}), ledger.release("a1"))):
        await granted(ledger, f"a{number}", claim(0, 5), claim(0, account="other"))
        await ending
    assert await balance(ledger) == (4, 0)


async def test_the_first_ending_counts(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30))
    await reserve(ledger, "b", claim(30))
    assert [await ledger.settle("a", {0: 10}), await ledger.settle("a", {0: 10})] == [DONE, AGAIN]
    assert await ledger.release("a") == Ending.AGAIN
    assert [await ledger.release("b"), await ledger.release("b")] == [Ending.DONE, Ending.AGAIN]
    assert await ledger.settle("b", {0: 10}) == AGAIN
    assert await balance(ledger) == (10, 0)


async def test_an_unknown_id_changes_nothing(ledger: Ledger) -> None:
    assert await ledger.settle("nobody", {0: 10}) == UNKNOWN
    assert await ledger.release("nobody") == Ending.UNKNOWN
    assert await ledger.extend("nobody", 60) is False
    assert await ledger.read() == []


async def test_release_gives_all_back(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30, 30), claim(1, 1, unit="calls"))
    await ledger.release("a")
    assert [(row.spent, row.reserved) for row in await ledger.read()] == [(0, 0), (0, 0)]


async def test_slots_are_held_and_never_spent(ledger: Ledger) -> None:
    slot = claim(1, 2, unit=SLOT)
    await granted(ledger, "a", slot)
    await granted(ledger, "b", slot)
    assert (await refused(ledger, "c", slot)).reserved == 2
    await ledger.settle("a", {0: 1})
    await granted(ledger, "c", slot)
    await ledger.release("b")
    assert await balance(ledger) == (0, 1)


async def test_spend_charges_whatever_the_limit_says_and_once(ledger: Ledger) -> None:
    charge = [claim(30, 10), claim(1, unit=SLOT)]
    assert [await ledger.spend("a", charge), await ledger.spend("a", charge)] == [DONE, AGAIN]
    assert [(row.unit, row.spent) for row in await ledger.read()] == [(SLOT, 0), ("tokens", 30)]
    assert await ledger.settle("a", {0: 5}) == AGAIN


async def test_spend_with_the_id_of_a_reservation_changes_nothing(ledger: Ledger) -> None:
    await reserve(ledger, "a", claim(30))
    assert await ledger.spend("a", [claim(30)]) == AGAIN
    assert await balance(ledger) == (0, 30)


# --- leases ---


async def test_a_lease_that_is_over_frees_what_was_reserved(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(100, 100), claim(1, 1, unit=SLOT), lease=10)
    bank.now += 9.9
    await refused(ledger, "b", claim(1, 100))
    bank.now += 0.1
    await granted(ledger, "b", claim(100, 100), claim(1, 1, unit=SLOT))


async def test_a_lease_ends_on_the_next_whole_second(ledger: Ledger, bank: Bank) -> None:
    bank.now = NOON + 0.5
    await granted(ledger, "a", claim(1, 1), lease=1)
    bank.now = NOON + 1.9
    await refused(ledger, "b", claim(1, 1))
    bank.now = NOON + 2
    await granted(ledger, "b", claim(1, 1))


async def test_reading_shows_no_lease_that_is_over(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(100, 100), lease=10)
    bank.now += 10
    assert await balance(ledger) == (0, 0)


@pytest.mark.parametrize("swept", [False, True])
async def test_settling_after_the_lease_still_counts_and_once(ledger: Ledger, bank: Bank, swept: bool) -> None:
    await granted(ledger, "a", claim(100, 100), lease=10)
    bank.now += 11
    if swept:
        await ledger.read()
    assert [await ledger.settle("a", {0: 40}), await ledger.settle("a", {0: 40})] == [DONE, AGAIN]
    assert await balance(ledger) == (40, 0)


async def test_releasing_after_the_lease_gives_back_once(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(100, 100), lease=10)
    bank.now += 11
    await granted(ledger, "b", claim(100, 100))
    assert await ledger.release("a") == Ending.DONE
    assert await balance(ledger) == (0, 100)


async def test_a_heartbeat_keeps_what_is_reserved(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(100, 100), lease=10)
    for _ in range(5):
        bank.now += 8
        assert await ledger.extend("a", 10)
        await refused(ledger, "b", claim(1, 100))
    bank.now += 10
    await granted(ledger, "b", claim(1, 100))


async def test_a_late_heartbeat_takes_back_what_was_freed_over_the_limit_if_need_be(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(100, 100), lease=10)
    bank.now += 11
    await granted(ledger, "b", claim(100, 100))
    assert await ledger.extend("a", 10)
    assert await balance(ledger) == (0, 200)
    await ledger.settle("a", {0: 1})
    assert await balance(ledger) == (1, 100)


async def test_what_has_ended_has_no_heartbeat(ledger: Ledger) -> None:
    await granted(ledger, "a", claim(100, 100))
    await ledger.settle("a", {})
    assert await ledger.extend("a", 10) is False


async def test_many_leases_end_at_once_and_each_operation_does_a_bounded_part(ledger: Ledger, bank: Bank) -> None:
    for number in range(250):
        await granted(ledger, f"crashed{number}", claim(1, 250), lease=10)
    bank.now += 10
    left = [(await balance(ledger))[1] for _ in range(4)]
    assert left == [150, 50, 0, 0]


# --- windows ---


async def test_windows_tumble_and_are_aligned(ledger: Ledger, bank: Bank) -> None:
    hourly = claim(60, 100, window=3600)
    bank.now = NOON + 3599
    assert (await granted(ledger, "a", hourly)).resets_at == (int(NOON) + 3600,)
    assert (await refused(ledger, "b", hourly)).resets_at == int(NOON) + 3600
    bank.now = NOON + 3600
    assert (await granted(ledger, "b", hourly)).resets_at == (int(NOON) + 7200,)


async def test_a_reservation_of_the_last_window_is_charged_to_it(ledger: Ledger, bank: Bank) -> None:
    minute, forever = claim(60, 100, window=60), claim(60, 100)
    bank.now = NOON + 59
    await granted(ledger, "a", minute, forever)
    bank.now = NOON + 61
    await granted(ledger, "b", minute)
    await ledger.settle("a", {0: 70, 1: 70})
    assert [(row.window, row.spent, row.reserved) for row in await rows(ledger, "acme/run/1")] == [
        (0, 70, 0),
        (60, 0, 60),
    ]
    await ledger.settle("b", {0: 5})
    assert [(row.window, row.spent, row.reserved) for row in await rows(ledger, "acme/run/1")] == [
        (0, 70, 0),
        (60, 5, 0),
    ]


@pytest.mark.parametrize("how", ["release", "settle", "lapse"])
async def test_the_new_window_is_never_negative(ledger: Ledger, bank: Bank, how: str) -> None:
    bank.now = NOON + 59
    await granted(ledger, "a", claim(60, 100, window=60), lease=2)
    bank.now = NOON + 63
    if how == "release":
        await ledger.release("a")
    elif how == "settle":
        await ledger.settle("a", {0: 1})
    assert await balance(ledger) == (0, 0)
    assert (await granted(ledger, "b", claim(100, 100, window=60))).remaining == (0,)


async def test_a_late_heartbeat_takes_nothing_from_a_new_window(ledger: Ledger, bank: Bank) -> None:
    bank.now = NOON + 50
    await granted(ledger, "a", claim(60, 100, window=60), lease=5)
    bank.now = NOON + 63
    await granted(ledger, "b", claim(1, 100, window=60))
    assert await ledger.extend("a", 10)
    assert await balance(ledger) == (0, 1)


async def test_a_clock_that_goes_back_opens_no_old_window(ledger: Ledger, bank: Bank) -> None:
    await ledger.spend("a", [claim(90, 100, window=60)])
    bank.now = NOON - 30
    await refused(ledger, "b", claim(11, 100, window=60))
    assert (await granted(ledger, "c", claim(10, 100, window=60))).resets_at == (int(NOON) + 60,)


async def test_reading_shows_the_window_that_is_open(ledger: Ledger, bank: Bank) -> None:
    await ledger.spend("a", [claim(90, 100, window=60)])
    row = Row("acme/run/1", "tokens", 60, int(NOON), int(NOON) + 60, 90, 0, 0, 100)
    assert await ledger.read() == [row]
    bank.now = NOON + 61
    assert await ledger.read() == [Row("acme/run/1", "tokens", 60, int(NOON) + 60, int(NOON) + 120, 0, 0, 0, 100)]


# --- notices ---


async def test_a_soft_line_gives_a_notice_once_when_spending_reaches_it(ledger: Ledger, bank: Bank) -> None:
    soft = claim(40, 100, window=60, soft=80)
    await granted(ledger, "a", soft)
    assert await ledger.settle("a", {0: 79}) == DONE
    await granted(ledger, "b", claim(1, 100, window=60, soft=80))
    assert await ledger.settle("b", {}) == Settled(Ending.DONE, (Notice(0, Line.SOFT, 80),))
    assert (await granted(ledger, "c", claim(1, 100, window=60, soft=80))).notices == ()
    assert await ledger.settle("c", {}) == DONE
    bank.now += 60
    await granted(ledger, "d", soft)
    assert await ledger.settle("d", {0: 80}) == Settled(Ending.DONE, (Notice(0, Line.SOFT, 80),))


async def test_a_line_that_was_passed_before_it_was_drawn_gives_its_notice_when_reserving(ledger: Ledger) -> None:
    await ledger.spend("a", [claim(80)])
    other = claim(1, account="other")
    assert (await granted(ledger, "b", other, claim(1, soft=80))).notices == (Notice(1, Line.SOFT, 80),)
    assert (await granted(ledger, "c", claim(1, soft=80))).notices == ()
    assert (await granted(ledger, "d", claim(1, soft=70))).notices == ()


async def test_a_raised_line_gives_a_notice_again(ledger: Ledger) -> None:
    assert await ledger.spend("a", [claim(80, soft=80)]) == Settled(Ending.DONE, (Notice(0, Line.SOFT, 80),))
    assert await ledger.spend("b", [claim(10, soft=90)]) == Settled(Ending.DONE, (Notice(0, Line.SOFT, 90),))


async def test_a_refusal_uses_up_no_other_notice(ledger: Ledger) -> None:
    await ledger.spend("a", [claim(80)])
    warned, full = claim(1, soft=80), claim(1, 0, account="full")
    assert (await refused(ledger, "b", warned, full)).notices == (Notice(1, Line.LIMIT, 0),)
    assert (await granted(ledger, "c", warned)).notices == (Notice(0, Line.SOFT, 80),)


async def test_refusals_give_a_notice_once_per_window_and_limit(ledger: Ledger, bank: Bank) -> None:
    def of(limit: int) -> Claim:
        return claim(2, limit, window=60)

    first, second = await refused(ledger, "a", of(1)), await refused(ledger, "b", of(1))
    assert (first.notices, second.notices) == ((Notice(0, Line.LIMIT, 1),), ())
    assert (await refused(ledger, "c", of(0))).notices == ()
    bank.now += 60
    assert (await refused(ledger, "d", of(1))).notices == (Notice(0, Line.LIMIT, 1),)


async def test_a_limit_that_is_not_hard_lets_through_and_says_so(ledger: Ledger) -> None:
    shadow = claim(60, 100, hard=False)
    assert await reserve(ledger, "a", shadow) == Granted((40,), (None,))
    assert await reserve(ledger, "b", shadow) == Granted((0,), (None,), (0,), (Notice(0, Line.LIMIT, 100),))
    assert await reserve(ledger, "c", shadow) == Granted((0,), (None,), (0,))
    assert await balance(ledger) == (0, 180)


# --- reading and the operator's hand ---


async def test_reads_by_prefix_in_order_and_bounded(ledger: Ledger) -> None:
    names = ["b/2", "a/1", "b/1", "b*", "b?", "[b]/1"]
    await ledger.spend("x", [claim(1, account=name) for name in names])
    assert [row.account for row in await ledger.read("b/")] == ["b/1", "b/2"]
    assert [row.account for row in await ledger.read("b*")] == ["b*"]
    assert [row.account for row in await ledger.read("[b]")] == ["[b]/1"]
    assert [row.account for row in await ledger.read()] == sorted(names)
    assert [row.account for row in await ledger.read(limit=2)] == sorted(names)[:2]


async def test_any_text_names_an_account(ledger: Ledger) -> None:
    names = ["{x}", "a b", "ä/ü/✓", "new\nline", 'quote"\\', "}{"]
    for number, name in enumerate(names):
        await granted(ledger, f"id {number} {name}", claim(2, 5, account=name))
        await ledger.settle(f"id {number} {name}", {0: 3})
    assert {row.account: row.spent for row in await ledger.read()} == dict.fromkeys(names, 3)


async def test_reset_says_what_was_and_keeps_what_is_reserved(ledger: Ledger) -> None:
    await ledger.spend("a", [claim(80, 100), claim(3, unit="calls"), claim(9, account="acme/run/10")])
    await granted(ledger, "b", claim(20, 100))
    before = await ledger.reset("acme/run/1")
    assert [(row.unit, row.spent, row.reserved) for row in before] == [("calls", 3, 0), ("tokens", 80, 20)]
    assert [(row.unit, row.spent, row.reserved) for row in await rows(ledger, "acme/run/1")] == [
        ("calls", 0, 0),
        ("tokens", 0, 20),
    ]
    assert await balance(ledger, "acme/run/10") == (9, 0)
    await ledger.settle("b", {0: 7})
    assert (await granted(ledger, "c", claim(93, 100))).remaining == (0,)


async def test_reset_lets_notices_come_again(ledger: Ledger) -> None:
    await ledger.spend("a", [claim(80, soft=80)])
    await refused(ledger, "b", claim(1, 80))
    await ledger.reset("acme/run/1")
    assert (await ledger.spend("c", [claim(80, soft=80)])).notices
    assert (await refused(ledger, "d", claim(1, 80))).notices


async def test_top_up_lets_spend_more_in_this_window_only(ledger: Ledger, bank: Bank) -> None:
    def of(amount: int) -> Claim:
        return claim(amount, 100, window=60)

    await ledger.spend("a", [of(100)])
    assert (await refused(ledger, "b", of(1))).notices
    (row,) = await ledger.top_up("acme/run/1", "tokens", 50)
    assert (row.credit, row.spent, row.limit) == (50, 100, 100)
    assert (await granted(ledger, "c", of(30))).remaining == (20,)
    assert (await refused(ledger, "d", of(30))) == Refused(
        0, 100, 30, 150, int(NOON) + 60, (Notice(0, Line.LIMIT, 150),)
    )
    bank.now += 60
    assert (await granted(ledger, "e", of(30))).remaining == (70,)


async def test_a_top_up_after_the_window_is_for_the_new_one(ledger: Ledger, bank: Bank) -> None:
    await ledger.spend("a", [claim(100, 100, window=60)])
    bank.now += 60
    (row,) = await ledger.top_up("acme/run/1", "tokens", 50)
    assert (row.start, row.spent, row.credit) == (int(NOON) + 60, 0, 50)
    assert (await granted(ledger, "b", claim(100, 100, window=60))).remaining == (50,)


async def test_a_top_up_is_for_one_unit_and_for_an_account_that_is_known(ledger: Ledger) -> None:
    await ledger.spend("a", [claim(1), claim(1, unit="calls")])
    assert [row.unit for row in await ledger.top_up("acme/run/1", "calls", 5)] == ["calls"]
    assert await ledger.top_up("acme/run/2", "calls", 5) == []
    assert await ledger.reset("acme/run/2") == []


# --- forgetting ---


async def test_forgets_accounts_that_nobody_touches(bank: Bank) -> None:
    ledger = bank.open(retention=1000)
    await ledger.spend("a", [claim(5, 100, account="run"), claim(5, account="tenant", keep=True)])
    await ledger.spend("b", [claim(5, account="week", window=604_800)])
    await granted(ledger, "c", claim(5, account="live"), lease=5000)
    bank.now += 2000
    assert (await granted(ledger, "d", claim(100, 100, account="run"))).remaining == (0,)
    assert [(row.account, row.spent) for row in await ledger.read() if row.account != "run"] == [
        ("live", 0),
        ("tenant", 5),
        ("week", 5),
    ]
    await ledger.close()


async def test_what_is_touched_is_not_forgotten(bank: Bank) -> None:
    ledger = bank.open(retention=1000)
    for number in range(8):
        await ledger.spend(f"s{number}", [claim(1)])
        bank.now += 700
    assert await balance(ledger) == (8, 0)
    await ledger.close()


async def test_spending_settled_after_the_account_was_forgotten_is_not_lost(bank: Bank) -> None:
    ledger = bank.open(retention=1000)
    await granted(ledger, "a", claim(5, 100), lease=10)
    bank.now += 500
    await ledger.read()
    bank.now += 3000
    await ledger.read()
    assert await ledger.settle("a", {0: 7}) == DONE
    assert await balance(ledger) == (7, 0)
    await ledger.close()


# --- at once ---


async def test_of_many_at_once_exactly_as_many_pass_as_fit(ledger: Ledger) -> None:
    slots = claim(1, 50, unit=SLOT)
    answers = await asyncio.gather(*(reserve(ledger, f"a{n}", claim(2, 100), slots) for n in range(200)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 50
    await asyncio.gather(*(ledger.settle(f"a{n}", {0: 1}) for n in range(200)))
    assert [(row.unit, row.spent, row.reserved) for row in await ledger.read()] == [(SLOT, 0, 0), ("tokens", 50, 0)]


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_ledgers_on_the_same_data_are_one(bank: Bank) -> None:
    one, two = bank.open(), bank.open()
    await granted(one, "a", claim(60, 100))
    await refused(two, "b", claim(60, 100))
    assert await two.settle("a", {0: 10}) == DONE
    assert (await one.settle("a", {0: 10})).ending in (Ending.AGAIN, Ending.UNKNOWN)
    assert await balance(one) == await balance(two) == (10, 0)
    await one.close()
    assert await balance(two) == (10, 0)
    await two.close()
    three = bank.open()
    assert await balance(three) == (10, 0)
    await three.close()


# --- what is not accepted ---


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": -1},
        {"amount": MAX_AMOUNT + 1},
        {"limit": -1},
        {"limit": MAX_LIMIT + 1},
        {"window": -1},
        {"unit": SLOT, "window": 60},
        {"unit": ""},
        {"unit": "a\x1fb"},
    ],
)
def test_a_claim_that_means_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"amount|limit|window|unit"):
        Claim(**{"account": "a", "unit": "calls", "amount": 1, **wrong})


async def test_a_negative_amount_is_not_used_up(ledger: Ledger) -> None:
    await granted(ledger, "a", claim(5))
    with pytest.raises(ValueError, match="amount"):
        await ledger.settle("a", {0: -1})
    with pytest.raises(ValueError, match="amount"):
        await ledger.top_up("acme/run/1", "tokens", -1)
    assert await balance(ledger) == (0, 5)


async def test_an_id_is_known_for_a_while_after_its_end(ledger: Ledger, bank: Bank) -> None:
    await granted(ledger, "a", claim(5))
    await ledger.settle("a", {})
    bank.now += ENDED_SECONDS - 1
    await ledger.read()
    assert await ledger.settle("a", {}) == AGAIN


@pytest.mark.parametrize(
    "url", ["", "memory", "file:///x", "sqlite:x.db", "sqlite:///", "redis:x", "redis://h/0?ledger={"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"store|ledger"):
        open_ledger(url, lambda: 0.0)
