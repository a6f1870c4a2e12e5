"""Memory alone: how much of it an account may take."""

from sidecar.stores.ledger import Claim
from sidecar.stores.ledger_memory import MemoryCore
from tests.stores.ledgers import NOON


def core(accounts: int) -> MemoryCore:
    return MemoryCore(lambda: NOON, max_accounts=accounts)


def touch(ledger: MemoryCore, name: str, *, keep: bool = False) -> None:
    ledger.reserve(f"{name} again", [Claim(name, "calls", 1, keep=keep)], 60)
    ledger.settle(f"{name} again", {})


def names(ledger: MemoryCore) -> list[str]:
    return [row.account for row in ledger.read("", 100)]


def test_the_account_that_was_idle_for_the_longest_makes_room() -> None:
    ledger = core(3)
    for name in "abcd":
        touch(ledger, name)
    assert names(ledger) == ["b", "c", "d"]


def test_what_is_in_use_or_kept_stays() -> None:
    ledger = core(3)
    ledger.reserve("live", [Claim("a", "calls", 1)], 60)
    touch(ledger, "b", keep=True)
    for name in "cdef":
        touch(ledger, name)
    assert names(ledger) == ["a", "b", "f"]


def test_nothing_is_forgotten_of_what_is_all_in_use() -> None:
    ledger = core(3)
    for name in "abcdef":
        ledger.reserve(name, [Claim(name, "calls", 1)], 60)
    assert len(ledger) == 6
    ledger.release("a")
    touch(ledger, "g")
    assert names(ledger) == ["b", "c", "d", "e", "f", "g"]


def test_accounts_that_come_and_go_do_not_add_up() -> None:
    ledger = core(100)
    for number in range(5000):
        touch(ledger, f"run{number}")
    assert len(ledger) == 100
