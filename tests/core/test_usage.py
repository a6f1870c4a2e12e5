"""Reports of usage are running totals: the newer number stands, and what is not told stays known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.usage import MOST_TOKENS, NOT_REPORTED, Usage, count, merged

numbers = st.none() | st.integers(0, 1000)
usages = st.builds(Usage, numbers, numbers, numbers, numbers, numbers)


@pytest.mark.parametrize("value", [-1, 1.0, True, False, "7", None, [], {}, MOST_TOKENS + 1, 10**30])
def test_what_is_no_count_is_not_reported(value: Any) -> None:
    assert count(value) is None


@pytest.mark.parametrize("value", [0, 1, MOST_TOKENS])
def test_a_count(value: int) -> None:
    assert count(value) == value


def test_the_total_is_what_is_known() -> None:
    assert Usage(3, 4, cached=2, reasoning=4).total == 7
    assert Usage(prompt=3).total == 3
    assert NOT_REPORTED.total == 0


def test_running_totals_are_not_added() -> None:
    told = NOT_REPORTED
    for said in (1, 2, 3):
        told = merged(told, Usage(10, said))
    assert told == Usage(10, 3)


def test_two_frames_tell_one_number_each() -> None:
    assert merged(Usage(prompt=11, completion=1), Usage(completion=30)) == Usage(11, 30)


@pytest.mark.parametrize(
    ("then", "prompt"),
    [
        (Usage(prompt=10, completion=9), 510),  # the same prompt, told without what came from the cache
        (Usage(prompt=700), 700),
        (Usage(prompt=20, cached=5), 20),
        (Usage(prompt=9, cached=0), 9),
    ],
)
def test_a_prompt_that_leaves_its_cached_part_out_lessens_nothing(then: Usage, prompt: int) -> None:
    assert merged(Usage(510, 1, cached=500), then).prompt == prompt


@given(usages)
def test_nothing_told_changes_nothing(usage: Usage) -> None:
    assert merged(usage, NOT_REPORTED) == usage == merged(NOT_REPORTED, usage)


@given(usages, usages)
def test_none_never_erases(old: Usage, new: Usage) -> None:
    both = merged(old, new)
    assert merged(both, new) == both
    for was, is_, now in zip(old, both, new, strict=True):
        assert is_ in (was, now)
        assert (is_ is None) == (was is None and now is None)
