"""What is remembered is bounded, apart for each tenant, and never anything but the outcome."""

from sidecar.text.memo import CLEAN, MAX_TENANTS, SHORTEST, Memo, Outcome
from sidecar.text.scrubber import Hit

LONG = "x" * SHORTEST
OUTCOME = Outcome("y", (Hit("n", 0, 1),), overflowed=False)


def test_a_text_is_remembered_for_its_tenant_alone() -> None:
    memo = Memo()
    memo.of("a").put(LONG, OUTCOME)
    assert memo.of("a").get(LONG) == OUTCOME
    assert memo.of("b").get(LONG) is None
    assert memo.of("a").get(LONG + "x") is None


def test_short_texts_are_not_worth_it() -> None:
    pages = Memo().of("a")
    pages.put("x" * (SHORTEST - 1), CLEAN)
    assert pages.get("x" * (SHORTEST - 1)) is None


def test_the_one_unused_for_longest_goes_first() -> None:
    pages = Memo(limit=4_000).of("a")
    for name in "abc":
        pages.put(name * 200, CLEAN)
    assert pages.get("a" * 200) == CLEAN
    for name in "def":
        pages.put(name * 200, CLEAN)
        assert pages.size <= 4_000
    assert pages.get("a" * 200) is not None or pages.get("f" * 200) is not None
    assert pages.get("b" * 200) is None


def test_one_text_does_not_push_out_all_others() -> None:
    pages = Memo(limit=4_000).of("a")
    pages.put("x" * 1_000, CLEAN)
    assert pages.get("x" * 1_000) is None


def test_tenants_are_bounded() -> None:
    memo = Memo()
    memo.of("first").put(LONG, CLEAN)
    for number in range(MAX_TENANTS):
        memo.of(str(number))
    assert memo.of("first").get(LONG) is None
