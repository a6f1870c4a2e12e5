"""Random patterns with look-around, back-references and atomic groups, and rule sets of them.

They are short, and texts long: of long ones, hardly any is ever found.
"""

from itertools import pairwise

from hypothesis import reject
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text.jsontext import AS_IT_IS
from sidecar.text.lookaround import look_shape
from sidecar.text.matcher import Shape
from sidecar.text.rules import Options, Ruleset
from sidecar.text.views import Lens

from .rulegen import patterns

_ATOMS = ["a", "b", "1", "-", "é", "[ab]", "[a1]", r"\d", r"\w", "[^a]", ".", "a", "[ab]", r"\w"]
_COUNTS = ["", "", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "{0,20}", "+?", "{1,2}?", "*+", "++", "?+"]
_BESIDE = ["a", "b", "1", "[ab]", r"\d", r"\w", "[^a]", ".", "[ab]a", "é", r"\b", "^", "[^é]b"]
_BEHIND = [*_BESIDE, "a?b", "(?:a|1b)", r"[ab]{0,3}-", r"\w{1,4} ", r"\ba"]
_AHEAD = [
    *_BESIDE,
    r"\z",
    r"\w+-",
    "a*b",
    "[^-]*-",
    ".*1",
    "(?:a|$)",
    "b(?=1)",
    "a(?!b)",
    "(?<=b)",
    "(?:a(?=b|1)[ab1])*-",
]

atoms = st.builds("{}{}".format, st.sampled_from(_ATOMS), st.sampled_from(_COUNTS))
ahead = st.builds("(?{}{})".format, st.sampled_from("=!"), st.sampled_from(_AHEAD))
behind = st.builds("(?<{}{})".format, st.sampled_from("=!"), st.sampled_from(_BEHIND))
fixed_behind = st.builds("(?<{}{})".format, st.sampled_from("=!"), st.sampled_from(_BESIDE))
nothing = st.just("")


def _looking(behind: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    look = st.one_of(nothing, nothing, ahead, behind)
    looped = st.builds("(?:{}{}{}){}".format, atoms, look, atoms, st.sampled_from(["+", "*", "{1,3}", "?", "++"]))
    either = st.builds("({}{}{}|{}{})".format, st.sampled_from(["?:", "?>", ""]), atoms, look, look, atoms)
    piece = st.one_of(atoms, atoms, looped, either)
    plain = st.builds("{}{}{}{}{}".format, look, piece, look, st.one_of(nothing, piece), look)
    edge = st.sampled_from(["", r"\b"])
    again = st.builds(r"{}({}{}{}){}{}\1{}".format, look, edge, atoms, look, look, st.one_of(nothing, piece), look)
    folded = st.builds("(?i){}(?P<x>[ab]{}){}(?P=x){}".format, look, atoms, look, look)
    value = st.builds("{}{}(?P<value>{}{}{}){}".format, piece, look, st.sampled_from("ab1"), look, atoms, look)
    return st.one_of(plain, plain, again, folded, value)


looking = _looking(behind)
# For the standard library, whose look-behind is of fixed width.
plain_looking = _looking(fixed_behind)
texts = st.lists(st.sampled_from("aaaabbb11-é \nA"), min_size=8, max_size=100).map("".join)


disguised_texts = st.lists(st.sampled_from("aaaabbb11-é ａｂа\u200b\u00ad①ÅA"), min_size=8, max_size=60).map("".join)


@st.composite
def cut_texts(draw: st.DrawFn, *, disguised: bool = False) -> tuple[str, list[str]]:
    text, size = draw(disguised_texts if disguised else texts), draw(st.integers(1, 12))
    cuts = draw(st.one_of(st.just(range(0, len(text), size)), st.lists(st.integers(0, len(text)), max_size=8)))
    places = sorted({0, len(text), *cuts})
    return text, [text[a:b] for a, b in pairwise(places)]


def no_time() -> float:
    return 0.0


def ruleset(
    chosen: list[tuple[str, bool]], *, max_hold: int, skips_overflow: bool = False, lens: Lens = AS_IT_IS
) -> Ruleset:
    """`chosen`: patterns, and whether `regex` is to match them."""
    shapes = [
        look_shape(f"r{n}", pattern, 1.0, no_time) if looks else Shape.of(f"r{n}", pattern)
        for n, (pattern, looks) in enumerate(chosen)
    ]
    options = Options(replacement="<{name}>", max_hold=max_hold, skips_overflow=skips_overflow)
    return Ruleset([lens.shape(shape) for shape in shapes], options)


_looks = looking.map(lambda pattern: (pattern, True))
_chosen = st.one_of(_looks, _looks, _looks, patterns.map(lambda pattern: (pattern, False)))
chosen_rules = st.lists(_chosen, min_size=1, max_size=2)


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    chosen = draw(chosen_rules)
    max_hold = draw(st.sampled_from([16, 24, 64]))
    skips_overflow = draw(st.sampled_from([False, False, True]))
    try:
        return ruleset(chosen, max_hold=max_hold, skips_overflow=skips_overflow)
    except PatternError:  # some of them match the empty text
        reject()
