"""A prefilter may name what is not there; it never leaves out what is."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text import keys as keys_module
from sidecar.text import places as places_module
from sidecar.text import rules as rules_module
from sidecar.text.ahead import Ahead
from sidecar.text.detectors import DETECTORS, Detector
from sidecar.text.engine import MAX_BUILT_IN_BYTES, Program
from sidecar.text.keys import Kind, keys
from sidecar.text.matcher import Shape, floor
from sidecar.text.pattern import parse, render
from sidecar.text.places import Remembered, whole_characters
from sidecar.text.prefilter import Prefilter
from sidecar.text.rules import Ruleset

from .rulegen import rulesets, texts

MANY = settings(max_examples=50_000 if os.environ.get("FUZZ") else 400, deadline=None)
ALL = (tuple(Kind),)


@pytest.fixture(params=["as shipped", "short keys"], autouse=True)
def _bits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up patterns are short: their keys are cut only where few bits are enough."""
    if request.param == "short keys":
        for name, bits in (("WORD_BITS", 4), ("SHORT_BITS", 6), ("SHAPE_BITS", 5)):
            monkeypatch.setattr(keys_module, name, bits)
        monkeypatch.setattr(rules_module, "SHORT_BITS", 6)
        monkeypatch.setattr(rules_module, "LONG_BITS", 11)


@MANY
@given(rulesets(), texts, st.integers(0, 120))
def test_what_matches_is_named(rules: Ruleset, text: str, start: int) -> None:
    data = text.encode()
    for index, matcher in enumerate(rules.matchers):
        if matcher.find(data, 0, len(data)) is not None:
            assert index in rules.suspects(data)
        if matcher.find(data, start, len(data)) is not None:
            assert index in rules.started(data, start)


@MANY
@given(rulesets(), texts)
def test_what_overflows_is_named(rules: Ruleset, text: str) -> None:
    data = text.encode()
    for index, matcher in enumerate(rules.matchers):
        reaches = (matcher.reach(data, at) - at for at in range(len(data)) if data[at] & 0xC0 != 0x80)
        if not rules.is_short(matcher) and max(reaches, default=0) >= rules.options.max_hold:
            assert index in rules.suspects(data)
            assert index in rules.started(data, 0)


@MANY
@given(rulesets(), texts, st.integers(0, 120))
def test_what_could_grow_is_held(rules: Ruleset, text: str, start: int) -> None:
    data = text.encode()
    starts = [at for at in range(start, len(data)) if data[at] & 0xC0 != 0x80]
    growing = [at for at in starts if any(matcher.could_grow(data, at) for matcher in rules.matchers)]
    held = rules.growing_from(data, min(start, len(data)), rules.started(data, start))
    assert held <= min(growing, default=len(data))


@MANY
@given(rulesets(), texts, st.integers(1, 120))
def test_nothing_is_found_or_grows_where_it_is_quiet(rules: Ruleset, text: str, start: int) -> None:
    data = text.encode()
    start = floor(data, min(start, len(data)))
    end = rules.quiet_until(data, start)
    if end is not None:
        for matcher in rules.matchers:
            assert matcher.find(data, start, len(data)) is None
            assert not any(matcher.could_grow(data, at) for at in range(start, end) if data[at] & 0xC0 != 0x80)


@MANY
@given(rulesets(), texts, st.integers(1, 120))
def test_a_short_text_is_looked_at_as_a_long_one_is(rules: Ruleset, text: str, start: int) -> None:
    data = text.encode()
    start = floor(data, min(start, len(data)))
    for matcher in rules.matchers:
        growing = (at for at in range(start, len(data)) if matcher.could_grow(data, at))
        assert matcher.growing_from(data, start) == next(growing, len(data))


@pytest.mark.parametrize("text", ["é", "日本", "a日", "😀"])
def test_a_character_that_is_cut_off_is_left_out(text: str) -> None:
    data = text.encode()
    assert whole_characters(data) == data
    for size in range(1, len(data)):
        assert whole_characters(data[:size]) == data[:size].decode(errors="ignore").encode()


def test_answers_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "_MOST", 2)
    asked: list[bytes] = []
    known = Remembered(lambda text: asked.append(text) or len(text))
    assert [known[text] for text in (b"a", b"bc", b"a", b"def", b"a")] == [1, 2, 1, 3, 1]
    assert asked == [b"a", b"bc", b"def", b"a"]


def test_a_text_is_searched_once() -> None:
    ahead = Ahead(b"--a--b--a", {0: Program("a"), 1: Program("c")})
    assert [ahead.next(0, at) for at in (0, 2, 3)] == [2, 2, 8]
    assert ahead.first(3, {}) == 8
    assert ahead.before(9, 3, {}) == [0]
    assert ahead.before(9, 3, {0: 9}) == []
    ahead._openings = {}  # what has found nothing is not asked again
    assert ahead.next(1, 5) > 9


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=list(DETECTORS))
def test_a_detector_is_small(detector: Detector) -> None:
    assert Shape.of(detector.name, detector.regex, is_ours=True).matcher().size <= MAX_BUILT_IN_BYTES


def test_what_is_not_ours_is_measured_at_once() -> None:
    with pytest.raises(PatternError, match="compiles to"):
        Shape.of("large", "[^a]{1000}").matcher(1000)
    assert Shape.of("large", "[^a]{1000}", is_ours=True).matcher(1000).size > 1000


def test_every_detector_is_asked_about_its_examples() -> None:
    detectors = list(DETECTORS.values())
    rules = Ruleset([Shape.of(detector.name, detector.regex) for detector in detectors])
    for index, detector in enumerate(detectors):
        for example in detector.examples:
            assert rules.matchers[index].find(example.encode(), 0, len(example.encode())) is not None, detector.name
            for text in (example, f"It is {example}, I think", f"\\n{example}"):
                data = text.encode()
                if rules.matchers[index].find(data, 0, len(data)) is not None:
                    assert index in rules.suspects(data), (detector.name, text)
                    assert index in rules.started(data, 0), (detector.name, text)


def test_a_set_without_memory_names_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    prefilter = Prefilter([keys(parse(pattern), 20) for pattern in ("abcd", "x+y", "efgh")], ALL)
    assert list(prefilter.names(b"-efgh-")) == [2]
    monkeypatch.setattr(prefilter._parts[0].keys, "_names", lambda text: [])
    assert list(prefilter.names(b"-efgh-")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"\bghp_[A-Za-z0-9]{36}", [("WORDS", r"ghp_")]),
        (r"(?:secret|key)[\w.-]*=\S+", [("WORDS", "secre"), ("GAPS", r"key[\w.-]*\=\S+")]),
        (r"\b\d{3}-\d\d-\d{4}\b", [("DIGITS", r"\b\d{3}\-\d\d\-\d{3}")]),
        (r"[a-z]{1,16}@example\.com", [("WORDS", r"\@exam")]),
        (r"\b[13][a-km-zA-Z1-9]{25,34}\b", [("LETTERS", r"\b[13][a-km-zA-Z1-9]{16}")]),
    ],
)
def test_keys(pattern: str, found: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [(key.kind.name, render(key.body)) for key in keys(parse(pattern), 25)] == found
