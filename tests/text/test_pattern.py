"""What is read out of a pattern, held against RE2 itself and against a backtracking engine's partial matches."""

import os
from functools import lru_cache

import pytest
import regex as reference
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text.engine import Program, ProgramSet
from sidecar.text.matcher import Matcher, Shape
from sidecar.text.pattern import Node, only_grows, opening, parse, prefixes, render, widths, words

from .rulegen import ALPHABET, bodies, texts

MANY = settings(max_examples=50_000 if os.environ.get("FUZZ") else 300, deadline=None)
# Without assertions at the end, on which a partial match has no say.
plain = st.builds(
    lambda before, body, last: before + body + last, st.sampled_from(["", r"\b"]), bodies, st.sampled_from("ab1")
)


@lru_cache(maxsize=2_000)
def program(source: str) -> Program | None:
    try:
        return Program(source)
    except PatternError:  # too large
        return None


def compiled(source: str) -> Program:
    found = program(source)
    assume(found is not None)
    assert found is not None
    return found


@MANY
@given(plain, texts)
def test_what_is_rendered_matches_the_same(source: str, text: str) -> None:
    data = text.encode()
    assert compiled(source).search(data, 0) == compiled(render(parse(source))).search(data, 0)


@MANY
@given(plain, st.text(alphabet=ALPHABET, min_size=1, max_size=12))
@example("a{0,20}b", "aaaa")
def test_the_beginnings_are_those_of_a_partial_match(source: str, text: str) -> None:
    grows = compiled(rf"(?:{prefixes(parse(source))})\z").at(text.encode(), 0) is not None
    # Laziness changes no beginning, but the other engine takes `a111` for one of `a1{1,2}?a`.
    greedy = source.replace("+?", "+").replace("}?", "}")
    partial = reference.fullmatch(greedy, text, partial=True, flags=reference.VERSION0 | reference.ASCII)
    assert grows == (partial is not None)


@MANY
@given(plain, st.text(alphabet=ALPHABET, max_size=12))
def test_loose_beginnings_are_at_least_those(source: str, text: str) -> None:
    data = text.encode()
    if compiled(rf"(?:{prefixes(parse(source))})\z").at(data, 0):
        assert compiled(rf"(?:{prefixes(parse(source), loose=True)})\z").at(data, 0)


@MANY
@given(plain, texts, st.integers(0, 40))
def test_a_match_begins_with_its_opening(source: str, text: str, room: int) -> None:
    data = text.encode()
    if (span := compiled(source).search(data, 0)) is not None:
        assert compiled(render(opening(parse(source), room))).at(data, span[0]) is not None


@MANY
@given(plain, texts)
def test_a_match_is_as_wide_as_said(source: str, text: str) -> None:
    lo, hi = widths(parse(source))
    span = compiled(source).search(text.encode(), 0)
    assert span is None or lo <= span[1] - span[0] <= (len(text.encode()) if hi is None else hi)


@MANY
@given(plain, st.text(alphabet=ALPHABET, max_size=12), st.text(alphabet=ALPHABET, max_size=6))
def test_what_only_grows_is_not_undone(source: str, text: str, more: str) -> None:
    node = parse(source)
    matcher = compiled(source)
    if only_grows(node) and (span := matcher.at(text.encode(), 0)):
        longer = matcher.at((text + more).encode(), 0)
        assert longer is not None
        assert longer[1] >= span[1] or span[1] < len(text.encode())


@pytest.mark.parametrize(
    ("source", "offset", "says"),
    [
        ("ab(cd", 2, "never closed"),
        ("ab)cd", 2, "without its '('"),
        ("ab[cd", 2, "never closed"),
        ("ab(?=c)", 2, "look-ahead"),
        ("(?<!x)ab", 0, "negative look-behind"),
        ("a(b)\\1", 4, "back-reference"),
        ("(?P<q>a)(?P=q)", 8, "back-reference"),
        ("ab**", 3, "a repeat of a repeat"),
        ("ab++", 3, "a repeat of a repeat"),
        ("*ab", 0, "nothing before"),
        ("a|+b", 2, "nothing before"),
        ("a{5,2}b", 1, "upper bound"),
        ("a{1001}", 1, "above 1000"),
        ("ab\\", 2, "at the very end"),
        ("ab\\Z", 2, "unknown escape"),
        ("a\\x{zz}", 1, "hexadecimal"),
        ("(?P<1>a)", 0, "group's name"),
        ("(?q:a)", 0, "unknown kind of group"),
        ("a*", 0, "matches the empty text"),
        ("(?P<value>a*)b", 0, "value can be empty"),
        ("(?P<value>a)(?P<value>b)", 12, "second group named value"),
        ("\\ba|b?", 0, "matches the empty text"),
    ],
)
def test_faults_say_where_and_what(source: str, offset: int, says: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(source)
    assert says in caught.value.message
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "source",
    [
        r"[]a]", r"[^]a]+b", r"[[:alpha:]-]x", r"\Qa.b\E+", r"a{,3}b", r"x{2,}?y", r"(?i)straße", r"(?i:k)\d",
        r"\p{Greek}+x", r"\pL\x41\x{1F600}\101\n", r"(?s).a", r"(?m)^a$", r"(?U)a+?b", r"a(?P<name>b)c", r"[\]\\-]z",
    ],
)  # fmt: skip
def test_re2_agrees_that_this_is_a_pattern(source: str) -> None:
    node: Node = parse(source)
    text = "a.b]-x aab xyy STRASSE straße K1 αβx LA😀A\na aab abc \\z ]z {,3}b a{,3}b".encode()
    assert Program(render(node)).search(text, 0) == Program(source).search(text, 0)


def test_words_are_taken_literally() -> None:
    rule = Matcher(Shape("w", words("a.b (c)", ignore_case=True, whole=True)))
    assert rule.find(b"xa.b (c) A.B (C)", 0, 99) == (9, 16, 9, 16)
    assert rule.find(b"aXb (c)", 0, 99) is None


def test_a_pattern_may_be_too_large() -> None:
    with pytest.raises(PatternError, match="compiles to"):
        Matcher(Shape.of("big", "[a-zé]{200}"), max_bytes=1024)


def test_a_set_names_what_matches() -> None:
    some = ProgramSet(["ab", "b+c", "z"])
    assert list(some.names(b"xabbc")) == [0, 1]
    assert list(some.names(b"")) == []


def test_a_set_without_memory_names_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 reports "no match" when its automaton is full."""
    some = ProgramSet(["ab", "b+c", "z"])
    monkeypatch.setattr(some, "_names", lambda text: None)
    assert list(some.names(b"xabbc")) == [0, 1, 2]
