"""Text in pieces comes out as the whole text would."""

import os
from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from sidecar.text import scrubber as module
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import Hit, Op, Scrubber, scrub

from .rulegen import cut_texts, rulesets

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
