"""Estimates of tokens, against the counts of real tokenizers; and the factor that is learned for each model.

`tokens.json` holds texts with the numbers that OpenAI's cl100k_base and o200k_base make of them, as bpe-openai 0.1.4
counts.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.text.tokens import HIGHEST, LEAST, LOWEST, MAX_MODELS, SHORT_OF, Calibration, estimate, tokens, weight
from tests.wire.fuzz import examples

SAMPLES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("tokens.json").read_text("utf-8"))

# As the module's docstring says, as shares of o200k_base.
BANDS = {
    (0.95, 1.25): ("english prose", "markdown", "python", "shell"),
    (1.0, 1.5): ("json, minified", "json, indented", "log lines", "csv of numbers"),
    (0.85, 1.2): ("base64", "base64, in lines", "hex", "uuids"),
    (0.8, 1.25): ("german", "french", "polish", "turkish"),
    (1.2, 1.4): ("chinese", "japanese", "korean"),
    (1.4, 2.1): ("russian", "greek", "arabic", "hebrew"),
    (2.4, 3.2): ("hindi", "thai", "shouting", "digits"),
    (0.45, 0.5): ("letters, random",),
    (0.5, 1.0): ("emoji",),
}
BAND = {kind: band for band, kinds in BANDS.items() for kind in kinds}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_the_error_is_as_stated(sample: dict[str, Any]) -> None:
    low, high = BAND[sample["kind"]]
    assert low <= round(estimate([sample["text"]]) / sample["o200k_base"], 2) <= high


def test_an_older_tokenizer_is_missed_by_less_than_half_but_for_noise() -> None:
    shares = {each["kind"]: estimate([each["text"]]) / each["cl100k_base"] for each in SAMPLES}
    assert {kind for kind, share in shares.items() if share < 0.6} == {"emoji", "letters, random"}


def test_all_of_it_together_errs_high() -> None:
    assert 1.0 < estimate(each["text"] for each in SAMPLES) / sum(each["o200k_base"] for each in SAMPLES) < 1.3


def test_messages_and_numbers_count_too() -> None:
    assert estimate([]) == 0
    assert estimate([], messages=2) == 2 * 3 + 3
    assert estimate(["word"], ids=5) == 1 + 5


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), max_size=8))
@examples(100)
def test_pieces_weigh_what_the_whole_weighs(pieces: list[str]) -> None:
    assert sum(map(weight, pieces)) == weight("".join(pieces))


@given(st.text())
@examples(100)
def test_no_text_is_free(text: str) -> None:
    assert (tokens(weight(text)) > 0) == bool(text)


def test_half_a_surrogate_pair_is_a_text_too() -> None:
    assert tokens(weight("\ud83d")) > 0


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_a_long_text_is_estimated_from_a_sample(sample: dict[str, Any]) -> None:
    text = (sample["text"] + "\n") * (200_000 // len(sample["text"]))
    whole = sum(weight(text[at : at + 500]) for at in range(0, len(text), 500))
    assert weight(text) == pytest.approx(whole, rel=0.05)


# --- the factor ---


def test_a_model_that_was_never_seen_is_taken_at_its_estimate() -> None:
    assert Calibration().factor("m") == 1.0
    assert Calibration().corrected("m", 77) == 77


def test_it_learns_what_a_model_makes_of_its_prompts() -> None:
    known = Calibration()
    for _ in range(200):
        known.learn("m", 1000, 800)
    assert known.corrected("m", 1000) == pytest.approx(800, abs=2)
    assert known.corrected("other", 1000) == 1000


def test_it_rises_quickly_and_falls_slowly() -> None:
    known = Calibration()
    known.learn("m", 1000, 2000)
    assert known.factor("m") == SHORT_OF * 2
    known.learn("m", 1000, 1000)
    assert known.factor("m") > 1.7


@given(st.lists(st.tuples(st.integers(LEAST, 10_000), st.integers(1, 40_000)), min_size=1, max_size=40))
@examples(200)
def test_it_is_bounded_and_not_far_below_what_was_just_seen(seen: list[tuple[int, int]]) -> None:
    known = Calibration()
    for estimated, reported in seen:
        known.learn("m", estimated, reported)
        ratio = min(max(reported / estimated, LOWEST), HIGHEST)
        assert LOWEST <= known.factor("m") <= HIGHEST
        assert known.factor("m") >= SHORT_OF * ratio
        assert known.corrected("m", estimated) >= SHORT_OF * ratio * estimated - 1e-6


@pytest.mark.parametrize(("estimated", "reported"), [(LEAST - 1, 500), (100, None), (100, 0), (0, 9)])
def test_what_says_nothing_about_a_tokenizer_is_not_learned(estimated: int, reported: int | None) -> None:
    known = Calibration()
    known.learn("m", estimated, reported)
    assert known.factor("m") == 1.0


def test_names_that_clients_make_up_do_not_fill_the_memory() -> None:
    known = Calibration()
    known.learn("kept", 100, 200)
    for number in range(2 * MAX_MODELS):
        known.learn(f"m{number}", 100, 200)
        known.learn("kept", 100, 200)
    assert known.factor("kept") > 1.5
    assert sum(known.factor(f"m{number}") != 1.0 for number in range(2 * MAX_MODELS)) == MAX_MODELS - 1
