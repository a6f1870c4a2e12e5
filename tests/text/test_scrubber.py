"""Text in pieces comes out as the whole text would."""

import os
from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from sidecar.text import scrubber as module
from sidecar.text.matcher import Matcher, Shape
from sidecar.text.rules import FOLLOWED_PER_BYTE, MAX_FOLLOWED, Options, Ruleset
from sidecar.text.scrubber import Hit, Op, Scrubber, scrub

from .rulegen import cut_texts, ruleset, rulesets

MANY = settings(max_examples=50_000 if os.environ.get("FUZZ") else 400, deadline=None)


def said(ops: Iterable[Op]) -> str:
    return "".join(op.text for op in ops)


def in_pieces(rules: Ruleset, pieces: Iterable[str]) -> tuple[str, list[Hit]]:
    scrubber = Scrubber(rules)
    ops = [op for piece in pieces for op in scrubber.feed(piece)]
    return said([*ops, *scrubber.finish()]), scrubber.hits


@pytest.fixture(autouse=True)
def _short_swallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SWALLOW", 96)


@MANY
@given(rulesets(), cut_texts())
def test_cutting_never_changes_the_result(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    assert in_pieces(rules, pieces) == in_pieces(rules, [text])
    assert scrub(rules, text)[:2] == in_pieces(rules, [text])


@MANY
@given(rulesets(), cut_texts())
def test_every_character_is_said_or_swallowed_once(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    scrubber = Scrubber(rules)
    ops = [op for piece in pieces for op in scrubber.feed(piece)]
    at = 0
    for op in [*ops, *scrubber.finish()]:
        assert not op.kept or op.text == text[at : at + op.taken]
        at += op.taken
    assert at == len(text)


@MANY
@given(rulesets(), cut_texts())
def test_what_stands_for_a_finding_may_depend_on_it(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    """Put back what was found, and nothing has changed: every finding was handed over whole and once."""
    text, pieces = cut
    scrubber = Scrubber(rules, lambda name, found: found)
    ops = [op for piece in pieces for op in scrubber.feed(piece)]
    assert said([*ops, *scrubber.finish()]) == text


@MANY
@given(rulesets(), cut_texts())
def test_cutting_changes_nothing_where_matches_are_not_followed(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_FOLLOWED", 8)
        patch.setattr(module, "FOLLOWED_PER_BYTE", 0)
        assert in_pieces(rules, pieces) == in_pieces(rules, [text])
        assert scrub(rules, text)[:2] == in_pieces(rules, [text])


def test_an_overflow_is_a_finding_also_where_a_value_follows() -> None:
    rules = ruleset([("a(?P<value>a[^a]*)", None)], max_hold=16)
    text = "b aé1éééé-aa YTFhYi1iQGFhYWI="
    assert scrub(rules, text)[:2] == in_pieces(rules, text) == ("b aé1éééé-<r0>", [Hit("r0", 10, 29)])


@pytest.mark.parametrize("pattern", ["a.*b|a", "a.*?b|a", "a[^b]*b"])
def test_matches_are_not_followed_again_and_again(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SWALLOW", 64 << 10)
    followed = 0

    def counted(matcher: Matcher, text: bytes, start: int) -> bool:
        nonlocal followed
        followed += len(text) - start
        return could_grow(matcher, text, start)

    could_grow = Matcher.could_grow
    monkeypatch.setattr(Matcher, "could_grow", counted)
    text = "acab" * 100_000
    scrub(Ruleset([Shape.of("attacked", pattern)]), text)
    assert followed < 3 * MAX_FOLLOWED + 4 * FOLLOWED_PER_BYTE * len(text)


def test_a_value_that_is_decided_goes_before_a_match_that_still_grows() -> None:
    shapes = [Shape.of("first", "a(?P<value>aa)"), Shape.of("second", "a")]
    rules = Ruleset(shapes, Options(replacement="<{name}>"))
    assert in_pieces(rules, "aaaaaaaa") == in_pieces(rules, ["aaaaaaaa"])
    assert in_pieces(rules, ["aaa"])[0] == "<second><first>"
