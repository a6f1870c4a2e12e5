"""Arguments stay JSON, and what is not replaced keeps its spelling."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sidecar.text.jsontext import JsonScrubber
from sidecar.text.matcher import Shape
from sidecar.text.rules import Ruleset
from sidecar.text.views import Lens

from .rulegen import ALPHABET, rulesets
from .test_scrubber import MANY, said
from .test_views import encoded, lenses

RULES = Ruleset([Shape.of("pw", r"PASSWORD=\S+"), Shape.of("card", r"\d{16}"), Shape.of("cust", 'O"B \\\\ S')])


def scrubbed(text: str, size: int = 1000, rules: Ruleset = RULES) -> str:
    scrubber = JsonScrubber(rules)
    ops = [op for i in range(0, len(text), size) for op in scrubber.feed(text[i : i + size])]
    return said([*ops, *scrubber.finish()])


def test_a_greedy_rule_does_not_eat_the_syntax() -> None:
    text = '{"env":"DB_PASSWORD=hunter2zz","n":1}'
    for size in (1, 2, 5, 100):
        assert scrubbed(text, size) == '{"env":"DB_[REDACTED:pw]","n":1}'


def test_a_bare_number_is_replaced_by_a_string() -> None:
    assert json.loads(scrubbed('{"card": 4111111111111111, "n": -1.5e3}')) == {
        "card": "[REDACTED:card]",
        "n": -1500,
    }


def test_keys_are_looked_at_too() -> None:
    assert json.loads(scrubbed('{"PASSWORD=x": [true, null]}')) == {"[REDACTED:pw]": [True, None]}


def test_what_is_found_is_the_decoded_text() -> None:
    assert scrubbed(json.dumps({"c": 'O"B \\ S'}), 1) == '{"c": "[REDACTED:cust]"}'
    assert scrubbed('{"c":"PASSWORD\\u003dx"}', 1) == '{"c":"[REDACTED:pw]"}'


def test_other_spellings_are_kept() -> None:
    text = '{"a":"\\u00e9\\/\\ud83d\\ude00 \\n","b" : 1.50}'
    for size in (1, 3, 100):
        assert scrubbed(text, size) == text


def test_text_that_is_not_json_is_still_scrubbed() -> None:
    assert scrubbed("run PASSWORD=x now", 1) == "run [REDACTED:pw] now"
    assert scrubbed("{PASSWORD=x y}") == '{"[REDACTED:pw] y"}'
    assert scrubbed("[" + "x" * 300 + " PASSWORD=x y]", 7) == "[" + "x" * 300 + " [REDACTED:pw] y]"
    assert scrubbed('{"a": "PASSWORD=x\\') == '{"a": "[REDACTED:pw]'


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet=ALPHABET + '"\\\n😀', max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(alphabet=ALPHABET, max_size=5), inner, max_size=4),
    ),
    max_leaves=8,
)


@MANY
@given(rulesets(), values, st.booleans(), st.integers(1, 7))
def test_json_stays_json_for_every_cut(rules: Ruleset, value: object, ascii_only: bool, size: int) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only)
    whole = scrubbed(text, rules=rules)
    assert scrubbed(text, size, rules) == whole
    json.loads(whole)


folded = st.recursive(
    st.one_of(encoded, st.integers()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b1"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@MANY
@given(rulesets(), lenses, folded, st.booleans(), st.integers(1, 9))
def test_json_under_a_lens_stays_json_for_every_cut(
    rules: Ruleset, lens: Lens, value: object, ascii_only: bool, size: int
) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only)
    results = set()
    for step in (size, len(text)):
        scrubber = JsonScrubber(rules, lens=lens)
        ops = [op for at in range(0, len(text), step) for op in scrubber.feed(text[at : at + step])]
        results.add(said([*ops, *scrubber.finish()]))
    (result,) = results
    json.loads(result)
