"""Random patterns, rule sets, texts and cuts for the property tests, over an alphabet in which matches are common."""

from hypothesis import reject
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text.matcher import Check, Shape
from sidecar.text.rules import Options, Ruleset

ALPHABET = "ab1- é@"
_ATOMS = ["a", "b", "1", "-", "é", "[ab]", "[a1]", r"\d", r"\w", "[^a]", "."]
_COUNTS = ["", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "{0,20}", "+?", "{1,2}?"]


def _with_count(node: str, count: str) -> str:
    return (f"(?:{node})" if count and len(node) > 1 and node[0] not in "[\\(" else node) + count


atoms = st.builds(_with_count, st.sampled_from(_ATOMS), st.sampled_from(_COUNTS))
sequences = st.lists(atoms, min_size=1, max_size=4).map("".join)
groups = st.builds(
    _with_count,
    st.lists(sequences, min_size=1, max_size=3).map(lambda branches: f"(?:{'|'.join(branches)})"),
    st.sampled_from(_COUNTS),
)
bodies = st.lists(st.one_of(sequences, groups), min_size=1, max_size=3).map("".join)
# A required literal keeps the pattern from matching the empty text.
patterns = st.builds(
    lambda before, body, literal, value, after: f"{before}{literal}{f'(?P<value>a{body})' if value else body}{after}",
    st.sampled_from(["", "", r"\b", "^", "(?i)"]),
    bodies,
    st.sampled_from(["a", "b", "1", "-", "ab"]),
    st.booleans(),
    st.sampled_from(["", "", "", r"\b", "$"]),
)


def an_even_number_of_a(text: str) -> bool:
    """A check with no structure that a pattern could know."""
    return text.count("a") % 2 == 0


shapes = st.builds(
    lambda regex, check: (regex, an_even_number_of_a if check else None),
    patterns,
    st.sampled_from([False, False, True]),
)


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    chosen = draw(st.lists(shapes, min_size=1, max_size=4))
    max_hold = draw(st.sampled_from([16, 24, 64]))
    skips_overflow = draw(st.sampled_from([False, False, True]))
    try:
        return ruleset(chosen, max_hold=max_hold, skips_overflow=skips_overflow)
    except PatternError:  # some of them are too large
        reject()


def ruleset(chosen: list[tuple[str, Check | None]], *, max_hold: int, skips_overflow: bool = False) -> Ruleset:
    return Ruleset(
        [Shape.of(f"r{n}", regex, check) for n, (regex, check) in enumerate(chosen)],
        Options(replacement="<{name}>", max_hold=max_hold, skips_overflow=skips_overflow),
    )


texts = st.text(alphabet=ALPHABET, max_size=120)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(texts)
    size = draw(st.integers(1, 9))
    if draw(st.booleans()):
        return text, [text[i : i + size] for i in range(0, len(text), size)]
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
