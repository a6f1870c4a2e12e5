"""Detectors are data: each finds its examples wherever chat may put them, and nothing in plain text."""

import argparse
import dataclasses
import inspect
import json
import re
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
import re2

from sidecar.text.detectors import DETECTORS, PACKS, Detector, UnknownDetectorError, resolve

# The compiled size a policy allows one pattern by default.
MAX_PATTERN_BYTES = 64 * 1024
INSTRUCTION_BYTES = 16

BEFORE = ("", '"', "(", "=", " ", "是", "\n", "**", "`", "<", "[", ": ", "\\n", "\\t")
AFTER = (
    "",
    ".",
    ",",
    ")",
    "**",
    ">",
    "?",
    "&",
    "。",
    "，然后",
    "\n",
    '"',
    "' ",
    "`",
    "]",
    "}",
    ";",
    " and so on",
    "\\n",
)

# Packs that must be silent on text without secrets, personal data or attacks.
# What is found only where it is all of a text.
ALONE = ("plate_alone", "postcode_alone")
QUIET = ("secrets", "pii", "injection", "urls", "code-exec")
TRICKY = Path(__file__).with_name("plain.txt").read_text()


def options() -> re2.Options:
    chosen = re2.Options()
    chosen.max_mem = MAX_PATTERN_BYTES
    chosen.log_errors = False
    return chosen


COMPILED = {name: re2.compile(detector.regex.encode(), options()) for name, detector in DETECTORS.items()}


def findings(detector: Detector, text: str) -> Iterator[str]:
    """The findings of a detector the plain way: every match of the expression that its check lets through."""
    pattern = COMPILED[detector.name]
    group = next(iter(pattern.groupindex.values()), 0)
    for match in pattern.finditer(text.encode()):
        value = (match.group(group) or b"").decode()
        if value and (detector.check is None or detector.check(value)):
            yield value


def by_name(pack: str | None = None, without: tuple[str, ...] = ()) -> list[object]:
    chosen = [d for d in (DETECTORS.values() if pack is None else PACKS[pack]) if d.name not in without]
    return [pytest.param(detector, id=detector.name) for detector in chosen]


@pytest.mark.parametrize("detector", by_name(without=ALONE))
def test_every_example_is_found_whole_in_any_surroundings(detector: Detector) -> None:
    around = [(before, "") for before in BEFORE] + [(before, after) for before in ("", "是") for after in AFTER]
    for example in detector.examples:
        alone = list(findings(detector, example))
        assert alone, example
        for before, after in around:
            text = before + example + after
            assert any(alone[0] in found for found in findings(detector, text)), text


@pytest.mark.parametrize("name", ALONE)
def test_what_is_found_alone_is_not_found_in_a_sentence(name: str) -> None:
    for example in DETECTORS[name].examples:
        assert list(findings(DETECTORS[name], example)) == [example]
        assert list(findings(DETECTORS[name], f" {example}\n")) == [example]
        assert list(findings(DETECTORS[name], f"see {example}")) == []


@pytest.mark.parametrize("detector", by_name(without=ALONE))
def test_every_example_is_found_inside_json(detector: Detector) -> None:
    for example in detector.examples:
        inner = json.dumps({"note": f"see {example}"}, ensure_ascii=False)
        for text in (inner, json.dumps({"arguments": inner}, ensure_ascii=False)):
            assert list(findings(detector, text)), text


@pytest.mark.parametrize("detector", by_name())
def test_no_counter_example_is_found(detector: Detector) -> None:
    for text in detector.counter:
        assert list(findings(detector, text)) == [], text


@pytest.mark.parametrize("detector", by_name())
def test_a_detector_is_complete(detector: Detector) -> None:
    assert len(detector.examples) >= 2
    assert len(detector.counter) >= 1
    assert detector.source
    assert re.fullmatch(r"[a-z][a-z0-9_]*", detector.name)
    assert detector in PACKS[detector.pack]
    assert COMPILED[detector.name].programsize * INSTRUCTION_BYTES <= MAX_PATTERN_BYTES
    assert len(COMPILED[detector.name].groupindex) == COMPILED[detector.name].groups


@pytest.mark.parametrize("detector", [param for pack in QUIET for param in by_name(pack)])
def test_nothing_is_found_in_plain_text(detector: Detector) -> None:
    assert list(findings(detector, TRICKY)) == []


@pytest.mark.parametrize("pack", ["secrets", "injection"])
def test_nothing_is_found_in_the_source_of_a_large_program(pack: str) -> None:
    sources = [Path(module.__file__).read_text() for module in (argparse, dataclasses, inspect, textwrap, typing)]
    assert sum(map(len, sources)) > 300_000
    assert [found for text in sources for detector in PACKS[pack] for found in findings(detector, text)] == []


def test_names_are_unique_and_no_detector_is_named_like_a_pack() -> None:
    assert len(DETECTORS) == sum(map(len, PACKS.values()))
    assert not DETECTORS.keys() & PACKS.keys()


def test_the_packs_are_as_large_as_promised() -> None:
    national = [d for d in PACKS["pii"] if d.name[2] == "_" and d.check is not None]
    assert len(PACKS["secrets"]) >= 120
    assert len({d.name[:5] for d in national}) >= 15


def test_packs_and_detectors_resolve_in_order_and_once() -> None:
    names = [detector.name for detector in resolve(["email", "secrets", "openai_key", "pii"])]
    secrets, pii = ([detector.name for detector in PACKS[pack]] for pack in ("secrets", "pii"))
    assert names == ["email", *secrets, *(name for name in pii if name != "email")]


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownDetectorError, match=r"openai_kye.*did you mean openai_key") as caught:
        resolve(["openai_kye"])
    assert caught.value.near[0] == "openai_key"
    with pytest.raises(ValueError, match="the packs are secrets, pii, injection"):
        resolve(["zzzzzzzz"])
