"""Money is exact: whole billionths, rounded once for an exchange."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sidecar.core.usage import Usage
from sidecar.stages.prices import NANO, PER, Price, PriceConfig, Prices, PricesConfig, money, rounded
from tests.policy.texts import HEAD, load_text, only_fault
from tests.wire.fuzz import examples


def prices(models: Any = None, tools: Any = None) -> Prices:
    return Prices.of(PricesConfig.model_validate({"models": models or {}, "tools": tools or {}}))


GPT = {"prompt": "1.25", "cached": "0.125", "completion": "10"}
CLAUDE = {"prompt": "3", "cached": "0.30", "cache_write": "3.75", "completion": "15"}


# --- what is written ---


@pytest.mark.parametrize(
    ("written", "units"),
    [("2.50", 2_500_000_000), ("0", 0), (3, 3 * NANO), ("0.000000001", 1), ("123456789.987654321", 123456789987654321)],
)
def test_a_decimal_is_read_exactly(written: Any, units: int) -> None:
    assert money(written) == units


@pytest.mark.parametrize(
    "written",
    [2.5, True, None, "", ".5", "5.", "-1", "+1", "1e3", "1,5", "NaN", "0.0000000001", "1" * 10, " 1", "١", -1],
)
def test_what_is_no_decimal_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match=r'in quotes such as "2\.50"'):
        money(written)


@given(st.integers(0, 10**9 - 1), st.text("0123456789", max_size=9))
@examples(200)
def test_reading_agrees_with_fractions(whole: int, part: str) -> None:
    written = f"{whole}.{part}" if part else str(whole)
    assert Fraction(money(written), NANO) == Fraction(written)


POLICY = f"""{HEAD}prices:
  models:
    gpt-5: {{prompt: 1.25, completion: "10"}}
"""


def test_a_faulty_decimal_is_a_fault_at_its_place() -> None:
    fault = only_fault(POLICY)
    assert fault.where == "prices.models.gpt-5.prompt"
    assert POLICY.splitlines()[fault.line - 1][fault.column - 1 :].startswith("1.25")
    assert 'such as "2.50"' in fault.message
    load_text(POLICY.replace("1.25", "'1.25'"))


@pytest.mark.parametrize("missing", ["prompt", "completion"])
def test_a_row_needs_prompt_and_completion(missing: str) -> None:
    with pytest.raises(ValidationError):
        prices({"m": {name: "1" for name in ("prompt", "completion") if name != missing}})


# --- whose price it is ---


def test_names_come_before_globs_and_globs_in_their_order() -> None:
    rows = {name: {"prompt": "1", "completion": str(at)} for at, name in enumerate(("gpt-*", "*", "gpt-5", "gpt-5-*"))}
    found = {
        name: None if (price := prices(rows).price_of(name)) is None else price.completion // NANO
        for name in ("gpt-5", "gpt-5-mini", "gpt-4", "claude", "")
    }
    assert found == {"gpt-5": 2, "gpt-5-mini": 0, "gpt-4": 0, "claude": 1, "": 1}


def test_a_model_without_a_row_has_no_price() -> None:
    table = prices({"gpt-5": GPT, "claude-*": CLAUDE})
    assert table.price_of("gpt-5.1") is None
    assert table.price_of("GPT-5") is None
    assert table.price_of("my-claude-4") is None
    assert prices().price_of("gpt-5") is None


def test_a_target_can_have_a_price_of_its_own() -> None:
    table = prices({"azure/*": CLAUDE, "gpt-5": GPT})
    assert table.price_of("azure/gpt-5") == Price.of(PriceConfig.model_validate(CLAUDE))
    assert table.price_of("azure/gpt-5", "gpt-5") == Price.of(PriceConfig.model_validate(GPT))
    assert table.price_of("openai/gpt-5", "gpt-5") == Price.of(PriceConfig.model_validate(GPT))


# --- what it comes to ---


def test_each_part_at_its_own_price() -> None:
    usage = Usage(prompt=100, completion=10, cached=60, cache_write=30)
    cost = prices({"c": CLAUDE}).cost(usage, "c")

    assert cost == 10 * 3000 + 60 * 300 + 30 * 3750 + 10 * 15000


def test_parts_without_a_price_go_at_that_of_their_whole() -> None:
    table = prices({"m": {"prompt": "1", "completion": "2"}})
    assert table.cost(Usage(100, 50, cached=90, cache_write=10, reasoning=50), "m") == table.cost(Usage(100, 50), "m")


def test_a_price_of_nothing_is_a_price() -> None:
    free = prices({"m": {"prompt": "1", "completion": "2", "cached": "0", "reasoning": "0"}})
    assert free.cost(Usage(100, 50, cached=100, reasoning=50), "m") == 0
    assert free.price_of("m") is not None


def test_a_call_costs_its_request_and_its_tools() -> None:
    table = prices({"m": {"prompt": "0", "completion": "0", "request": "0.004"}}, {"web_*": "0.01", "web_fetch": "0.5"})
    assert table.cost(Usage(), "m") == 4_000_000
    assert table.cost(Usage(), "m", ["web_search", "web_search", "web_fetch", "ls"]) == 4_000_000 + 520_000_000
    assert table.cost(Usage(), "m", {"web_search": 2, "web_fetch": 1, "ls": 9}) == 4_000_000 + 520_000_000
    assert table.cost(Usage(9, 9), "unpriced", ["web_search"]) == 10_000_000


@pytest.mark.parametrize(("tokens", "cost"), [(1, 0), (499, 0), (500, 1), (1499, 1), (1500, 2)])
def test_half_a_unit_is_rounded_up_and_only_once(tokens: int, cost: int) -> None:
    table = prices({"m": {"prompt": "0.000001", "completion": "0.000001"}})
    assert table.cost(Usage(tokens, 0), "m") == cost
    assert table.cost(Usage(tokens // 2, tokens - tokens // 2), "m") == cost


@pytest.mark.parametrize(
    "odd", [Usage(10, 5, cached=99), Usage(10, 5, cached=8, cache_write=8), Usage(10, 5, reasoning=99)]
)
def test_a_part_is_never_more_than_its_whole(odd: Usage) -> None:
    table = prices({"m": {"prompt": "1", "completion": "1"}})
    assert table.cost(odd, "m") == table.cost(Usage(10, 5), "m")


# --- properties ---

units = st.integers(0, 10**18 - 1)
rows = st.builds(Price, units, units, units, units, units, units)
number = st.integers(0, 10**9)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    prompt, completion = draw(number), draw(number)
    cached = draw(st.integers(0, prompt))
    return Usage(prompt, completion, cached, draw(st.integers(0, prompt - cached)), draw(st.integers(0, completion)))


def parts(usage: Usage) -> tuple[int, int, int, int, int]:
    prompt, completion, cached, written, reasoned = (each or 0 for each in usage)
    return prompt - cached - written, cached, written, completion - reasoned, reasoned


@given(rows, usages())
@examples(300)
def test_the_cost_is_the_rounded_sum_of_its_parts(row: Price, usage: Usage) -> None:
    each = (row.prompt, row.cached, row.cache_write, row.completion, row.reasoning)
    exact = sum(Fraction(n * price, PER) for n, price in zip(parts(usage), each, strict=True)) + row.request
    assert rounded(row.exact(usage)) == (exact + Fraction(1, 2)).__floor__()


@given(rows, usages(), number, number)
@examples(300)
def test_more_tokens_never_cost_less(row: Price, usage: Usage, prompt: int, completion: int) -> None:
    more = usage._replace(prompt=(usage.prompt or 0) + prompt, completion=(usage.completion or 0) + completion)
    assert row.exact(more) >= row.exact(usage)


@given(rows, usages(), usages())
@examples(300)
def test_two_calls_cost_what_each_does(row: Price, one: Usage, two: Usage) -> None:
    both = Usage(*((a or 0) + (b or 0) for a, b in zip(one, two, strict=True)))
    assert row.exact(both) + row.request * PER == row.exact(one) + row.exact(two)


@given(rows, usages())
@examples(300)
def test_what_is_reserved_covers_whatever_the_tokens_turn_out_to_be(row: Price, usage: Usage) -> None:
    assert row.most(usage.prompt or 0, usage.completion or 0) >= row.exact(usage)
