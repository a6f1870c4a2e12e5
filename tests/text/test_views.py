"""What is found in a text as it is read, or decoded, is acted on in the text as it is spelt, however it is cut."""

import base64
import html
import json
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import PatternError
from sidecar.text import scrubber as module
from sidecar.text.matcher import Shape
from sidecar.text.rules import Options, Ruleset
from sidecar.text.scrubber import Hit, Op, Scrubber, scrub
from sidecar.text.views import Lens, Look, Views
from sidecar.text.views.base64run import LONGEST, SHORTEST, Base64Reader
from sidecar.text.views.confusables import LOOKS_LIKE
from sidecar.text.views.fold import RESIZED, Folder, folding
from sidecar.text.views.make_confusables import module as made_module
from sidecar.text.views.make_confusables import rows
from sidecar.text.views.view import View

from .rulegen import ruleset, rulesets, texts
from .test_scrubber import MANY, in_pieces, said

ALL = ("nfkc", "invisible", "confusables")
READ = Lens(ALL)
LENS = Lens(ALL, ("percent", "html", "json"), base64=True)
SECRET = "sk-abcdef0123456789"
RULES = Ruleset(
    [
        Shape.of("sk", r"\bsk-[a-z0-9]{16,}"),
        Shape.of("api_key", r'"api_key"\s*:\s*"(?P<value>[^"]+)"'),
        Shape.of("plan", r"(?i)confidential plan"),
        Shape.of("note", r"NOTE_\w{4}"),
    ],
    Options(replacement="[MASK]"),
)


def shouted(name: str, value: str) -> str:
    """Something that depends on the finding."""
    return f"<{name}:{value.upper()}>"


def through(look: Look, pieces: Iterable[str]) -> tuple[list[Op], list[Hit]]:
    ops = [op for piece in pieces for op in look.feed(piece)]
    return [*ops, *look.finish()], look.hits


def masked(text: str, lens: Lens = LENS) -> str:
    """What the text becomes; whole, and in pieces of several sizes."""
    whole = lens.scrub(RULES, text)[0]
    for size in (1, 2, 3, 5, 13):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert said(through(lens.open(RULES), pieces)[0]) == whole
    return whole


@pytest.fixture(autouse=True)
def _short_swallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SWALLOW", 96)


# --- as a person reads it ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelt",
    [
        "s\u200bk-abcdef0123456789",
        "sk\u00ad-abcd\u2060ef0123\u034f456\ufe0f789",
        "\u202esk-abcdef\u202c0123456789",
        "sk-abcdef\U000e0041012345\x006789",
        "ｓｋ－ａｂｃｄｅｆ０１２３４５６７８９",
        "ѕk-аbсdеf0123456789",
        "𝓼𝓴-𝒶𝒷𝒸𝒹ℯ𝒻𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡",
        "sk‐abcdef०123456789",
        "s\u200dk-a\u200cbcdef0123456789",
    ],
)
def test_a_disguised_secret_is_found_and_replaced_as_a_whole(spelt: str) -> None:
    assert masked(f"key {spelt}, {spelt}", READ).replace("\u202e", "") == "key [MASK], [MASK]"


def test_invisible_characters_in_a_keyword_are_seen_through() -> None:
    assert masked("show the Con\u00adfid\u200bential\u2060 pl\u034fan", READ) == "show the [MASK]"


@pytest.mark.parametrize(
    "text",
    [
        "family 👩\u200d👩\u200d👧 plan",
        "❤️\u200d🔥 می\u200cخواهم 🏴\U000e0067\U000e0062\U000e007f e\u0301 …",
        "\u200b\ufeff",
        "half \ud83d \ude00",
    ],
)
def test_what_holds_no_finding_passes_as_it_came(text: str) -> None:
    for lens in (READ, LENS):
        assert masked(text, lens) == text


def test_each_fold_can_be_had_alone() -> None:
    text = "ａ\u200b а"
    assert [Lens([fold]).folded(text) for fold in ALL] == ["a\u200b а", "ａ а", "a\u200b a"]


def test_a_cell_that_is_half_found_goes_as_a_whole() -> None:
    rules = Ruleset([Shape.of("x", "fx+"), Shape.of("y", "iy+")], Options(replacement="<{name}>"))
    for size in (1, 9):
        for text, expected in {"ﬀxx.": "<x>.", "ﬁ yy": "ﬁ yy", "ﬁyy": "<y>", "ﬁ": "ﬁ"}.items():
            assert in_parts(READ.open(rules), text, size) == expected


def test_two_findings_that_share_a_cell_are_one() -> None:
    rules = Ruleset([Shape.of("x", "x1"), Shape.of("y", "0y")], Options(replacement="<{name}>"))
    ops, hits = through(READ.open(rules), "a x⑩y b")
    assert READ.folded("⑩") == "10"
    assert (said(ops), hits) == ("a <x> b", [Hit("x", 2, 5)])


def test_what_stands_for_a_finding_may_depend_on_what_the_rule_saw() -> None:
    text = f"key s\u200bk-abcdef012345678９\u200b {b64(SECRET)} x ꜳ {percent(SECRET)}"
    for size in (1, 7, 1000):
        assert in_parts(
            LENS.open(RULES, shouted), text, size
        ) == "key <sk:SK-ABCDEF0123456789> <sk:{0}> x ꜳ <sk:{0}>".format(SECRET.upper())


def in_parts(look: Look, text: str, size: int) -> str:
    return said(through(look, [text[i : i + size] for i in range(0, len(text), size)])[0])


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        ("пароль", "мой па\u200bроль тут"),
        ("(?i)ВЕС", "вес"),
        ("(?i)вес", "ВЕС"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("ﬁ＊", "fi*"),
        ("за[а-я]+[^а]", "запах!"),
        ("(?P<value>№[０-９]{2})", "№42"),
        ("[\u200bх]", "x"),
    ],
)
def test_a_rule_in_any_script_finds_what_reads_as_it(regex: str, text: str) -> None:
    rules = Ruleset([READ.shape(Shape.of("x", regex))])
    assert READ.scrub(rules, text)[1] != []


def test_a_rule_for_invisible_characters_alone_is_a_fault() -> None:
    with pytest.raises(PatternError, match="invisible"):
        READ.shape(Shape.of("x", "\u200b+"))


# --- decoded -----------------------------------------------------------------------------------------------


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def entities(text: str) -> str:
    return "".join(f"&#{ord(char)};" if n % 2 else f"&#x{ord(char):x};" for n, char in enumerate(text))


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


ENCODINGS = {"base64": b64, "percent": percent, "html": entities, "json": escaped}


@pytest.mark.parametrize(("outer", "inner"), list(product(ENCODINGS, ["", *ENCODINGS])))
def test_a_secret_is_found_under_one_encoding_and_under_two(outer: str, inner: str) -> None:
    encoded = ENCODINGS[outer](ENCODINGS[inner](SECRET) if inner else SECRET)
    assert masked(f"see {encoded}.") == "see [MASK]."


def test_half_of_a_secret_may_be_encoded() -> None:
    assert masked("q=sk%2Dabcdef0123456&#x37;89&r") == "q=[MASK]&r"
    assert masked("sk&#45abcdef01234567&#56;9") == "[MASK]"
    assert masked("sk&hyphen;abcdef0123456789", Lens(["confusables"], ["html"])) == "[MASK]"


def test_a_key_in_json_in_a_json_string() -> None:
    text = '{"log":"{\\"api_key\\":\\"8f14e45fceea167a\\",\\"n\\":2}"}'
    assert json.loads(json.loads(masked(text))["log"]) == {"api_key": "[MASK]", "n": 2}
    deeper = json.dumps({"a": text})
    inner = json.loads(json.loads(masked(deeper))["a"])
    assert json.loads(inner["log"]) == {"api_key": "[MASK]", "n": 2}


def test_what_stands_for_a_finding_is_quoted_where_it_stands() -> None:
    rules = Ruleset([Shape.of("key", r'"k":"(?P<value>\w+)"')], Options(replacement='"'))
    nested = json.dumps({"a": json.dumps({"k": "v"}, separators=(",", ":"))})
    replaced = Lens(escapes=["json"]).scrub(rules, nested)[0]
    assert json.loads(json.loads(replaced)["a"]) == {"k": '"'}


def test_base64_is_replaced_by_whole_quanta_and_the_rest_stays() -> None:
    run = b64(f"user:{SECRET} x")
    assert masked(f"Basic {run} tail") == "Basic dXNl[MASK]IHg= tail"
    assert masked(f"Basic {b64(SECRET)}\n") == "Basic [MASK]\n"
    assert masked(base64.b64encode(f"é: {SECRET}: é?>".encode(), altchars=b"-_").decode()).count("[MASK]") == 1


def test_wrapped_base64_is_one_run() -> None:
    wrapped = base64.encodebytes(b"x" * 50 + b" " + SECRET.encode() + b" " + b"y" * 60).decode()
    assert wrapped.index("\n") == 76
    expected = masked(wrapped)
    assert "[MASK]" in expected
    assert b"56789" not in base64.b64decode(expected.replace("[MASK]", ""))


@pytest.mark.parametrize("letters", [17, 18, 19])
def test_padding_goes_with_what_it_pads(letters: int) -> None:
    run = b64("sk-" + "a" * letters)
    assert masked(run + ".") == masked(run.rstrip("=") + ".") == "[MASK]."
    assert masked(run + "==") == "[MASK]=="


def test_binary_and_words_are_not_read_as_base64() -> None:
    words = "antidisestablishmentarianism/incomprehensibilities"
    assert "".join(unit.text for unit in Base64Reader().feed(words + " ")) == words + " "


def test_no_more_than_a_bound_of_a_run_is_read() -> None:
    far = b64("x" * (LONGEST // 4 * 3) + SECRET)
    assert LENS.scrub(RULES, far + " ")[0] == far + " "
    near = b64("x" * (LONGEST // 4 * 3 - 30) + " " + SECRET + " ")
    assert LENS.scrub(RULES, near)[0].count("[MASK]") == 1


@pytest.mark.parametrize("text", ["100% & 5 \\ 3", "C:\\new\\u00", "%C0%80 &foo; &#0; &#xD800; &", "%e2%80", "AT&T \\"])
def test_what_only_looks_encoded_passes(text: str) -> None:
    assert masked(text) == text


def test_little_is_held() -> None:
    for text in ("%F0%9F%98%8", "&CounterClockwiseContourIntegra", "\\u00", "a" * (SHORTEST - 1), "&#x" + "0" * 16):
        look = LENS.open(RULES)
        look.feed(text)
        assert 0 < look.held <= 36


# --- the tables --------------------------------------------------------------------------------------------


def test_the_confusables_are_characters_that_look_like_ascii() -> None:
    assert all(not char.isascii() and len(char) == 1 and look.isascii() for char, look in LOOKS_LIKE.items())
    assert [LOOKS_LIKE[char] for char in "ІаΟ०١“’–Ⅶ∣"] == ["I", "a", "O", "0", "1", '"', "'", "-", "VII", "|"]


def test_the_table_is_made_from_unicodes() -> None:
    table = (
        "\ufeff# Version: 16.0.0\n"
        "0430 ;\t0061 ;\tMA\t# ( а → a ) CYRILLIC SMALL LETTER A → LATIN SMALL LETTER A\t# \n"
        "0031 ;\t006C ;\tMA\t# ( 1 → l ) DIGIT ONE → LATIN SMALL LETTER L\t# \n"
        "0661 ;\t006C ;\tMA\t# ( ‎١‎ → l ) ARABIC-INDIC DIGIT ONE → LATIN SMALL LETTER L\t# →1→\n"
        "0406 ;\t006C ;\tMA\t# ( І → l ) CYRILLIC CAPITAL LETTER BYELORUSSIAN-UKRAINIAN I → LATIN SMALL LETTER L\t# \n"
        "2013 ;\t002D ;\tMA\t#* ( – → - ) EN DASH → HYPHEN-MINUS\t# →‐→\n"
        "05AD ;\t0596 ;\tMA\t# ( ֭ → ֖ ) HEBREW ACCENT DEHI → HEBREW ACCENT TIPEHA\t# \n"
    )
    assert dict(rows(table)) == {"а": "a", "١": "1", "І": "I", "–": "-"}
    made: dict[str, Any] = {}
    exec(made_module(table), made)
    assert made["LOOKS_LIKE"] == dict(rows(table))
    with pytest.raises(SystemExit, match="Version"):
        made_module("nothing")


def test_every_character_reads_as_unicode_says() -> None:
    chars = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x110000)] if chr(code) != RESIZED]
    for fold, expected in (("nfkc", [unicodedata.normalize("NFKC", char) for char in chars]), ("confusables", chars)):
        looks = LOOKS_LIKE if fold == "confusables" else {}
        assert Lens([fold]).folded("".join(chars)) == "".join(looks.get(text, text) for text in expected)


def test_every_format_character_without_a_glyph_is_invisible() -> None:
    visible = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    hieroglyphs = range(0x13430, 0x13460)
    formats = [code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]
    hidden = [chr(code) for code in formats if code not in visible and code not in hieroglyphs]
    assert Lens(["invisible"]).folded("".join(hidden)) == ""
    assert len(hidden) > 100


# --- for every text, rule and cut --------------------------------------------------------------------------

_PLAIN = ["a", "b", "1", "-", " ", "é", "@", "a1", "aab"]
_DISGUISES = ["\u200b", "\u00ad", "\u200d", "👩", "ａ", "а", "١", "–", "ꜳ", "⑾", "Ы", "½", "\ufe0f", "\x00", "ﬁ"]
_ENCODED = [
    *("%61", "%C3%A9", "%", "%6", "%E2%80%8B", "%2561", "&#97;", "&#x62", "&amp;", "&", "#97;", "&commat;", ";"),
    *("\\u0061", "\\n", "\\", "\\\\u0031", "\\ud83d", "\\ude00", "\ud83d", "\ude00", "😀", "=", "\n"),
    *(b64("a1ab-b@aaab"), b64("b aé1éééé-aa")[:-1], b64(b64("aab1-a b@ab")), "YWFh", "aGFsbG8gd29ybGQh"),
]
disguised = st.lists(st.sampled_from(_PLAIN * 2 + _DISGUISES), max_size=40).map("".join)
encoded = st.lists(st.sampled_from(_PLAIN * 2 + _DISGUISES + _ENCODED), max_size=30).map("".join)
folds = st.sets(st.sampled_from(ALL), min_size=1)
lenses = st.builds(
    lambda fold, escapes, base64: Lens(fold, escapes, base64=base64),
    st.sets(st.sampled_from(ALL)),
    st.sets(st.sampled_from(["percent", "html", "json"])),
    st.booleans(),
)


@st.composite
def cut(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> tuple[str, list[str]]:
    text = draw(whole)
    size = draw(st.integers(1, 9))
    if draw(st.booleans()):
        return text, [text[i : i + size] for i in range(0, len(text), size)]
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@MANY
@given(rulesets(), lenses, cut(encoded))
def test_cutting_never_changes_the_result(rules: Ruleset, lens: Lens, parts: tuple[str, list[str]]) -> None:
    text, pieces = parts
    ops, hits = through(lens.open(rules), pieces)
    whole, whole_hits = through(lens.open(rules), [text])
    assert (said(ops), hits) == (said(whole), whole_hits)
    assert lens.scrub(rules, module.paired(text))[:2] == (said(whole), whole_hits)
    late, late_hits = through(lens.open(rules, shouted), pieces)
    assert (said(late), late_hits) == (said(through(lens.open(rules, shouted), [text])[0]), hits)
    assert said(through(lens.open(rules, lambda name, _: f"<{name}>"), pieces)[0]) == said(ops)


def test_an_overflow_before_a_value_is_one_finding() -> None:
    rules = ruleset([("a(?P<value>a[^a]*)", None)], max_hold=16)
    text = "YiBhw6kxw6nDqcOpw6ktYWE YTFhYi1iQGFhYWI="
    for replace in (None, lambda name, _: f"<{name}>"):
        ops, hits = through(Lens(base64=True).open(rules, replace), text)
        assert (said(ops), hits) == ("YiBhw6kxw6nDqcOpw6kt<r0>", [Hit("r0", 20, 40)])


@MANY
@given(rulesets(), lenses, cut(encoded))
def test_what_is_kept_is_the_original_and_what_is_not_is_a_hit(
    rules: Ruleset, lens: Lens, parts: tuple[str, list[str]]
) -> None:
    look = lens.open(rules)
    ops, hits = through(look, parts[1])
    text = module.paired(parts[0])
    swallowed = set()
    at = 0
    for op in ops:
        assert not op.kept or op.text == text[at : at + op.taken]
        swallowed |= set() if op.kept else set(range(at, at + op.taken))
        at += op.taken
    assert at == len(text) == look.length
    assert swallowed == {n for hit in hits for n in range(hit.start, hit.end)}
    assert (look.found is None) == (not hits)
    assert not hits or look.found == hits[0].name


def read_then_found(rules: Ruleset, text: str, fold: frozenset[Any]) -> tuple[str, list[Hit]]:
    """The definition: the whole text is folded, what is found in it is carried back to the characters it came from."""
    folder = Folder(folding(fold))
    owners = [n for n, char in enumerate(text) for unit in folder.feed(char) for _ in unit.text]
    hits: list[Hit] = []
    for name, start, end in in_pieces(rules, [folding(fold).folded(text)])[1]:
        after = owners[end] if end < len(owners) else len(text)
        first, last = owners[start], max(after, owners[end - 1] + 1)
        if hits and first < hits[-1].end:
            hits[-1] = hits[-1]._replace(end=max(last, hits[-1].end))
        else:
            hits.append(Hit(name, first, last))
    return replaced(text, hits), hits


def replaced(text: str, hits: Sequence[Hit]) -> str:
    said, at = "", 0
    for hit in hits:
        said += text[at : hit.start] + f"<{hit.name}>"
        at = hit.end
    return said + text[at:]


@MANY
@given(rulesets(), folds, cut(disguised))
def test_what_is_found_is_what_would_be_found_in_the_folded_text(
    rules: Ruleset, fold: set[Any], parts: tuple[str, list[str]]
) -> None:
    ops, hits = through(Lens(fold).open(rules), parts[1])
    assert (said(ops), hits) == read_then_found(rules, parts[0], frozenset(fold))


_LOOKALIKES = {
    char: [other for other, look in LOOKS_LIKE.items() if look == char and READ.folded(other) == char] or [char]
    for char in "sk-abcdefghijklmnopqrstuvwxyz0123456789"
}
_HIDDEN = [chr(code) for code in (0xAD, 0x34F, 0x200B, 0x200C, 0x200D, 0x2060, 0x202E, 0xFEFF, 0xFE0F, 0xE0061, 0x7F)]


@st.composite
def disguises(draw: st.DrawFn) -> str:
    hidden = st.lists(st.sampled_from(_HIDDEN), max_size=3).map("".join)
    return "".join(
        draw(st.sampled_from([char, char, *_LOOKALIKES[char]])) + draw(st.one_of(st.just(""), hidden))
        for char in SECRET
    )


@MANY
@given(st.text(alphabet=" .,é👩\u200b\n", max_size=20), disguises(), st.integers(1, 9))
def test_nothing_of_a_disguised_secret_leaks(around: str, secret: str, size: int) -> None:
    for lens in (READ, LENS):
        assert in_parts(lens.open(RULES), f"{around} {secret} {around}", size) == f"{around} [MASK] {around}"


@MANY
@given(
    st.text(alphabet='<>&é%\\" 0aé\u200b', max_size=12),
    st.lists(st.sampled_from([*ENCODINGS.values(), html.escape, json.dumps, str]), max_size=2),
    st.integers(1, 9),
)
def test_nothing_of_an_encoded_secret_leaks(around: str, encoders: list[Any], size: int) -> None:
    text = f"{around} {SECRET} and then NOTE_4321 {around}"
    for encode in encoders:
        text = encode(text)
    assert in_parts(LENS.open(RULES), f"x {text} y", size).count("[MASK]") == 2


@MANY
@given(rulesets(), rulesets(), cut(disguised))
def test_looks_at_one_text_agree_on_the_leftmost_findings(
    one: Ruleset, two: Ruleset, parts: tuple[str, list[str]]
) -> None:
    text, pieces = parts

    def looks() -> list[Look]:
        return [Scrubber(one), View(Folder(folding(frozenset(ALL))), Scrubber(two))]

    each = [through(look, [text])[1] for look in looks()]
    expected: list[Hit] = []
    for hit, _ in sorted(((hit, n) for n in (0, 1) for hit in each[n]), key=lambda pair: (pair[0].start, pair[1])):
        if expected and hit.start < expected[-1].end:
            expected[-1] = expected[-1]._replace(end=max(hit.end, expected[-1].end))
        else:
            expected.append(hit)
    ops, hits = through(Views(looks()), pieces)
    assert (said(ops), hits) == (replaced(text, expected), expected)


@MANY
@given(rulesets(), lenses, texts)
def test_a_text_that_reads_as_it_is_spelt_is_scrubbed_as_ever(rules: Ruleset, lens: Lens, text: str) -> None:
    assert lens.scrub(rules, text) == scrub(rules, text)
    assert through(lens.open(rules), text)[1] == in_pieces(rules, [text])[1]
