"""What RE2 cannot express is found in pieces of a text as it is in the whole, and never for longer than it may take."""

import json
import re
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text import lookaround, scrubber
from sidecar.text.engine import Program
from sidecar.text.jsontext import JsonScrubber
from sidecar.text.lookaround import TIMEOUT_BYTES, LookMatcher, look_shape, parse, trail
from sidecar.text.matcher import Found, Shape
from sidecar.text.pattern import render
from sidecar.text.rules import Options, Ruleset
from sidecar.text.scrubber import scrub
from sidecar.text.views import Lens

from .lookgen import chosen_rules, cut_texts, no_time, plain_looking, ruleset, rulesets, texts
from .test_jsontext import values
from .test_scrubber import MANY, in_pieces, said
from .test_views import lenses, through


@pytest.fixture(autouse=True)
def _short_swallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubber, "MAX_SWALLOW", 96)


@MANY
@given(rulesets(), cut_texts())
def test_cutting_never_changes_the_result(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    assert in_pieces(rules, pieces) == in_pieces(rules, [text])
    assert scrub(rules, text)[:2] == in_pieces(rules, [text])


def with_the_standard_library(pattern: str, text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(pattern.replace(r"\z", r"\Z").replace("$", r"\Z"), re.ASCII)
    done, at = "", 0
    for found in compiled.finditer(text):
        start, end = found.span("value") if "value" in compiled.groupindex else found.span()
        done += text[at:start] + "<r0>"
        at = end
    return done + text[at:]


@MANY
@given(plain_looking, texts)
def test_it_finds_what_another_engine_finds(pattern: str, text: str) -> None:
    try:
        rules = ruleset([(pattern, True)], max_hold=100_000)
    except PatternError:
        reject()
    try:
        expected = with_the_standard_library(pattern, text)
    except re.error:
        reject()
    assert scrub(rules, text)[0] == expected


@MANY
@given(rulesets(), values, st.booleans(), st.integers(1, 7))
def test_in_json_too(rules: Ruleset, value: object, ascii_only: bool, size: int) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only)
    results = set()
    for step in (size, len(text)):
        json_scrubber = JsonScrubber(rules)
        ops = [op for at in range(0, len(text), step) for op in json_scrubber.feed(text[at : at + step])]
        results.add(said([*ops, *json_scrubber.finish()]))
    (result,) = results
    json.loads(result)


@MANY
@given(chosen_rules, lenses, cut_texts(disguised=True))
def test_as_a_person_reads_it_too(chosen: list[tuple[str, bool]], lens: Lens, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    try:
        rules = ruleset(chosen, max_hold=24, lens=lens)
    except PatternError:
        reject()
    ops, hits = through(lens.open(rules), pieces)
    whole, whole_hits = through(lens.open(rules), [text])
    assert (said(ops), hits) == (said(whole), whole_hits)
    assert lens.scrub(rules, text)[:2] == (said(whole), whole_hits)


@MANY
@given(rulesets(), cut_texts())
def test_every_finding_is_handed_over_whole_and_once(rules: Ruleset, cut: tuple[str, list[str]]) -> None:
    text, pieces = cut
    running = scrubber.Scrubber(rules, lambda name, found: found)
    ops = [op for piece in pieces for op in running.feed(piece)]
    assert said([*ops, *running.finish()]) == text


# --- the source for the other engine -----------------------------------------------------------------------

_MEMBERS = [
    "a",
    "k",
    "S",
    "0-9",
    "a-f",
    "é",
    "-",
    r"\d",
    r"\W",
    r"\s",
    r"\S",
    "[:alpha:]",
    "[:^digit:]",
    r"\x41",
    r"\x{e9}",
]
_MEMBERS += [r"\-", r"\]", r"\n", r"\pL", r"\p{Greek}", r"\P{Lu}", r"\p{^Nd}", "+--", r"!-\x2f", r"\101"]
_UNITS = [
    ".",
    "(?s:.)",
    r"\w",
    r"\D",
    "a",
    "é",
    r"\.",
    r"\t",
    r"\x{1F600}",
    r"\pN",
    r"\a",
    r"\0",
    "ß",
    "k",
    "(?i:é)",
    "]",
]
classes = st.builds(
    "{}[{}{}]{}".format,
    st.sampled_from(["", "(?i:"]),
    st.sampled_from(["", "^", "]", "^]", "-"]),
    st.lists(st.sampled_from(_MEMBERS), min_size=1, max_size=4).map("".join),
    st.just(""),
).map(lambda source: source + ")" * source.startswith("(?i"))


_CHARS = [*map(chr, range(128)), *"éÉßλΩ€😀٣ſ\u212a\u00a0"]
# To `regex` these are I in another case, and to RE2 they are not.
_TURKISH = ["ı", "İ"]


@settings(MANY, max_examples=MANY.max_examples // 3)
@given(st.one_of(st.sampled_from(_UNITS), classes), st.sampled_from(_CHARS + _TURKISH))
def test_an_atom_means_the_same_to_both_engines(source: str, char: str) -> None:
    try:
        node = parse(source)
    except PatternError:
        reject()
    found = LookMatcher(look_shape("x", source, 1.0, no_time)).match_at(char.encode(), 0)
    assert found is None or Program(render(trail(node))).at(char.encode(), 0) is not None
    if char not in _TURKISH:
        assert (found is not None) == (Program(source).at(char.encode(), 0) is not None)


@pytest.mark.parametrize("source", ["(?i:ı)", r"(?i:[\W])", "(?i:[^a-h])", "(?i:[ıx])"])
def test_a_letter_of_ascii_is_never_another_in_other_case(source: str) -> None:
    found = LookMatcher(look_shape("x", source, 1.0, no_time)).match_at(b"I", 0)
    assert (found is None) == (Program(source).at(b"I", 0) is None)


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        (r"\bab\b", "ab éabé abc", [(0, 2), (5, 7)]),
        (r"^a|b$", "ab b", [(0, 1), (3, 4)]),
        (r"(?m)^a$", "a\nba\na", [(0, 1), (5, 6)]),
        (r"a(?=\z)", "a\na", [(2, 3)]),
        (r"a\Bb", "ab", [(0, 2)]),
        (r"(?U)a+(?=b)", "aaab", [(0, 3)]),
        (r"(?i)(k)x\1", "Kxk", [(0, 3)]),
        (r"(?P<q>['\"]).(?P=q)", "'a' 'b\"", [(0, 3)]),
        (r"a++b", "aab", [(0, 3)]),
        (r"(?>a|ab)c", "abc ac", [(4, 6)]),
        (r"a{2}+a", "aaa", [(0, 3)]),
        (r"\Qa.b\E(?!c)", "a.bc a.bd", [(5, 8)]),
        (r"é(?<=[à-ü])x", "éx", [(0, 3)]),
        (r"(?i:a)(?-i:b)(?!c)", "Ab", [(0, 2)]),
    ],
)
def test_what_it_finds(source: str, text: str, spans: list[tuple[int, int]]) -> None:
    assert list(spans_in(source, text)) == spans


def spans_in(source: str, text: str) -> Iterator[tuple[int, int]]:
    """In bytes."""
    matcher, data, at = LookMatcher(look_shape("x", source, 1.0, no_time)), text.encode(), 0
    while (found := matcher.find(data, at, len(data))) is not None:
        yield found[:2]
        at = found.end


def test_the_value_alone_is_the_finding() -> None:
    matcher = LookMatcher(look_shape("x", r"(?<!no )é=(?P<value>(.)\2)(?!\w)", 1.0, no_time))
    assert matcher.find("é=xx".encode(), 0, 9) == Found(0, 5, 3, 5)
    assert matcher.find("no é=xx".encode(), 0, 9) is None


# --- faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "offset", "says"),
    [
        ("ab(?=c", 2, "never closed"),
        ("a(?<=b*)", 1, "more than 256 bytes"),
        ("a(?<!b{300})", 1, "more than 256 bytes"),
        ("a(?<=b(?=c))", 6, "inside a look-behind"),
        (r"a\1(b)", 1, "not complete before it"),
        (r"(a\1)", 2, "not complete before it"),
        (r"(a)b\12", 4, "more than one digit"),
        ("(?P<x>a)(?P<x>b)", 8, "a second group named x"),
        ("(?P<value>a)(?P<value>b)", 12, "a second group named value"),
        ("a(?=(?P<value>b))", 4, "inside a look-around"),
        ("b(?P<value>a*)", 1, "can be empty"),
        ("(?=abc)", 0, "matches the empty text"),
        ("ab(?(1)c|d)", 2, "a conditional"),
        ("ab(?R)", 2, "unknown kind of group"),
        ("(?=a)*b", 0, "cannot be repeated"),
        (r"\b++b", 0, "cannot be repeated"),
        (r"ab\p{Nope}", 2, "invalid"),
        (r"ab[\p{Nope}]", 2, "invalid"),
        ("ab[z-a]", 2, "invalid"),
        ("a" * 4097, 4096, "longer than 4096 characters"),
        ("(aa)" + r"(\1\1)(\2\2)(\3\3)(\4\4)(\5\5)(\6\6)(\7\7)(\8\8)" + r"\9" * 3, 56, "stand for too much"),
    ],
)
def test_faults_say_where_and_what(source: str, offset: int, says: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(source)
    assert says in caught.value.message
    assert caught.value.offset == offset


def test_a_trail_that_is_too_large_is_a_fault() -> None:
    with pytest.raises(PatternError, match="read ahead compiles to"):
        look_shape("x", r"a(?!\pL{900})(?!x\pL{900})", 1.0, no_time).matcher(64 << 10)


# --- many rules, long texts --------------------------------------------------------------------------------


def test_text_without_the_trail_never_meets_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LookMatcher, "_asked", refused)
    rules = ruleset([("key=(?!none)[a-z]+", True), ("secret", False)], max_hold=64)
    text = "clean text with a keyhole and a secret " * 50
    assert in_pieces(rules, text.split(" "))[0] == scrub(rules, "".join(text.split(" ")))[0]
    with pytest.raises(AssertionError):
        scrub(rules, "key=some")


@pytest.mark.parametrize("filler", ["x", "é", "😀 "])
def test_long_texts_are_searched_in_stretches(filler: str) -> None:
    """Matches across and at the seams, and beginnings of matches that come to nothing there."""
    rules = ruleset([(r"(?<=[-=])(a)b*\1(?!c)", True)], max_hold=20_000)
    text = "".join(f"-abba{filler * n}-abbac=aa{'b' * (n % 7)}" for n in range(0, 300, 7)) * 3
    expected = re.sub(r"(?<=[-=])(a)b*\1(?!c)", "<r0>", text)
    assert scrub(rules, text)[0] == expected
    assert in_pieces(rules, [text[at : at + 997] for at in range(0, len(text), 997)])[0] == expected


# --- time --------------------------------------------------------------------------------------------------

SLOW = r"x(?:\w|\w\w)+(?![\w!])"
TRAP = b"x" + b"a" * 60 + b"!"


def ticking(step: float) -> lookaround.Clock:
    """A clock that goes on by so much whenever it is read."""
    now = iter(range(10**9))
    return lambda: next(now) * step


def test_out_of_time_it_says_so() -> None:
    matcher = LookMatcher(look_shape("x", SLOW, 0.005, no_time))
    for one in (matcher, matcher.opened()):
        with pytest.raises(TimeoutError):
            one.find(TRAP, 0, 9)
        with pytest.raises(TimeoutError):
            one.match_at(TRAP, 0)
    assert not matcher.gave_up


def test_lenient_it_finds_nothing_more_in_this_text() -> None:
    matcher = LookMatcher(look_shape("x", SLOW, 0.005, no_time).lenient())
    opened, other = matcher.opened(), matcher.opened()
    assert opened.find(TRAP, 0, 9) is None
    assert opened.find(b"xaa", 0, 9) is None
    assert opened.gave_up
    assert other.find(b"xaa", 0, 9) is not None
    assert not other.gave_up
    assert not matcher.gave_up


def test_time_is_earned_by_the_length_of_the_text() -> None:
    """Each of these takes two thirds of the timeout."""
    matcher = LookMatcher(look_shape("x", "xa*(?!b)", 0.003, ticking(0.002))).opened()
    assert matcher.find(b"x", 0, 9) is not None
    long = b"x" + b"a" * TIMEOUT_BYTES
    assert matcher.find(long, 0, 9) is not None
    assert matcher.find(long, 0, 9) is not None
    assert matcher.find(b"x", 0, 9) is not None
    assert matcher.find(b"x", 0, 9) is not None
    with pytest.raises(TimeoutError):
        matcher.find(b"x", 0, 9)


def test_a_rule_set_is_opened_for_a_text_where_time_counts() -> None:
    plain = Ruleset([Shape.of("x", "ab")])
    assert plain.opened() is plain
    timed = Ruleset([Shape.of("x", "ab"), look_shape("y", SLOW, 0.005, no_time)], Options(skips_failing=True))
    opened = timed.opened()
    assert scrub(opened, f"ab {TRAP.decode()} ab")[0] == f"[REDACTED:x] {TRAP.decode()} [REDACTED:x]"
    assert opened.gave_up
    assert not timed.opened().gave_up
