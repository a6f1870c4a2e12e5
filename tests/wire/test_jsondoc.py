"""JSON in and out: the untouched comes back as it was, what cannot be held is refused by position."""

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.errors import SidecarError
from sidecar.wire.jsondoc import MAX_DEPTH, JsonFault, decode, encode, has_duplicate_keys

from .fuzz import examples


@pytest.mark.parametrize(
    "text",
    [
        '{"z":1,"a":2,"m":{"y":1,"b":2}}',
        "[1.00,1E5,1e400,-0.0,0.1000000000000000055511151231257827]",
        "[12345678901234567890123,-9223372036854775809,18446744073709551616]",
        '["é😀\u2028\x7f","","\\u0000\\n\\"\\\\"]',
        r'{"half":"\ud83d","\ude00":[1.50,{"plain":"é"}]}',
        "null",
        '"text"',
    ],
)
def test_a_compact_document_comes_back_as_its_own_bytes(text: str) -> None:
    assert encode(decode(text.encode())) == text.encode()


def test_a_float_keeps_its_digits_after_the_body_is_gone() -> None:
    body = bytearray(b'{"temperature":0.70}')
    doc = decode(bytes(body))
    body[:] = b"x" * len(body)
    assert bytes(doc["temperature"]) == b"0.70"


def test_half_a_surrogate_pair_is_a_character_like_any_other() -> None:
    doc = decode(rb'{"text":"a\ud83d","other":"\u00e9"}')
    assert doc == {"text": "a\ud83d", "other": "é"}
    doc["text"] += "!"
    assert encode(doc) == r'{"text":"a\ud83d!","other":"é"}'.encode()


def test_only_the_string_with_the_half_is_written_in_escapes() -> None:
    assert encode(["é\ud83d", "é", {"é": "\udc00"}]) == r'["\u00e9\ud83d","é",{"é":"\udc00"}]'.encode()


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "position"),
    [
        (b'{"sesame" 1}', 10),
        (b'{"a":"sesame",}', 14),
        (b'{"a":NaN,"b":"sesame"}', 5),
        (b'["sesame",Infinity]', 10),
        (b'["sesame",-Infinity]', 11),
        (b'{"a":"sesame"} x', 16),
        (b'\xef\xbb\xbf{"a":"sesame"} x', 19),
        (b'"sesame\n"', 7),
        (b'"sesame\x00"', 7),
        (rb'"sesame\x41"', 9),
        (b"{sesame:1}", 1),
        (b"[01]", 2),
        (b"", None),
        (b'{"a":"sesame', None),
        (b'"sesame\xff"', None),
        (b'"sesame\xed\xa0\xbd"', None),
        (b'{"sesame":' + b"9" * 4301 + b"}", None),
        # the same on the slow way, which a lone surrogate opens
        (rb'["\ud83d","sesame" 1]', 19),
        ('["é","\\ud83d","sesame" 1]'.encode(), 24),
        (b'\xef\xbb\xbf["\\ud83d","sesame" 1]', 22),
        (b'["\\ud83d","sesame\xff"]', 17),
        (rb'["\ud83d",NaN,"sesame"]', None),
        (rb'["\ud83d","sesame\x41"]', 17),
        (b'["\\ud83d",' + b"9" * 4301 + b',"sesame"]', None),
    ],
)
def test_what_is_no_json_is_refused_where_it_goes_wrong(raw: bytes, position: int | None) -> None:
    with pytest.raises(JsonFault) as caught:
        decode(raw)
    assert caught.value.position == position
    assert "sesame" not in str(caught.value)
    assert "999" not in str(caught.value)
    assert isinstance(caught.value, SidecarError)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("seed", ["1", r'"\ud83d"'])
def test_depth_is_bounded(opening: str, closing: str, seed: str) -> None:
    def nested(depth: int) -> bytes:
        return (opening * depth + seed + closing * depth).encode()

    deep = decode(nested(MAX_DEPTH))
    assert encode(deep) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 5_000, 200_000):
        with pytest.raises(JsonFault, match=f"nested deeper than {MAX_DEPTH} levels"):
            decode(nested(depth))


def test_many_brackets_are_not_depth() -> None:
    flat = b"[" + b",".join([b'{"a":[]}'] * 5_000) + b"]"
    assert encode(decode(flat)) == flat
    brackets = b'"' + b"[{" * 5_000 + b'"'
    assert encode(decode(brackets)) == brackets


@pytest.mark.parametrize("leaf", [1, "\ud83d"])
def test_a_document_grown_too_deep_is_refused_on_the_way_out(leaf: Any) -> None:
    doc = leaf
    for _ in range(100_000):
        doc = [doc]
    with pytest.raises(JsonFault, match="nested deeper"):
        encode(doc)
    while type(doc) is list:  # unwound by hand, so that letting go of it does not recurse
        doc = doc[0]


@pytest.mark.parametrize(
    "raw",
    [
        rb'{"a":1,"a":1}',
        rb'{"content":"x","cont\u0065nt":"y"}',
        rb'[{"a":{"b":1,"b":[]}}]',
        rb'{"a":1,"a":1,"x":"\u0022\u003a"}',
        rb'{"a":1,"a":1,"x":"\u005c\u0022:"}',
        rb'{"a":1,"a":1,"x":"\u0020:"}',
        rb'{"a":1,"a" : "\\","x":"\\\""}',
        rb'{"\\\"":1,"\u005c\u0022":2}',
        rb'{"\ud83d":1,"\uD83D":2}',
        rb'{"":1,"":2}',
        b'\xef\xbb\xbf{"a":1,"a":1}',
    ],
)
def test_a_key_that_stands_twice_is_seen(raw: bytes) -> None:
    assert has_duplicate_keys(raw, decode(raw))


@pytest.mark.parametrize(
    "raw",
    [
        rb'{ "a" : 1, "b" : {"a": 1} }',
        rb'[{"a":1},{"a":1}]',
        rb'{"a":"\"a\":1,\"a\":1"}',
        rb'{"a":"\u0022a\u0022:1","A":1.50}',
        rb'["\\","\\\"","\/","\u005c","\u0022","\u005C\u0022",": ","\u003a"]',
        rb'{"a":"\n\"","b":"\\n\"","c":"\u005cn"}',
        b'\xef\xbb\xbf{"a":1}\n',
    ],
)
def test_what_only_looks_like_one_is_not(raw: bytes) -> None:
    assert not has_duplicate_keys(raw, decode(raw))


# Random documents in random spelling. An object is a list of pairs, so that a key can stand twice.

CHARACTERS = '":\\/{}[], \t\nabnu05cé\u2028😀\ud83d\ude00'
STRINGS = st.text(alphabet=CHARACTERS, max_size=6)
KEYS = st.sampled_from(["a", "b", "", '"', "\\", ":", "a\\", "é", "\ud83d", " :"])
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(min_value=10**30, max_value=10**40).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1.00", "1E5", "1e400", "-0.0", "0.10"]),
)
LEAVES = st.one_of(
    STRINGS.map(lambda text: ("string", text)),
    NUMBERS.map(lambda digits: ("bare", digits)),
    st.sampled_from([("bare", "true"), ("bare", "null")]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: ("array", items)),
        st.lists(st.tuples(KEYS, inner), max_size=4).map(lambda pairs: ("object", pairs)),
    ),
    max_leaves=12,
)

SHORT = {'"': r"\"", "\\": r"\\", "/": r"\/", "\n": r"\n", "\t": r"\t"}


def spelt(character: str, dice: random.Random) -> str:
    unit = character.encode("utf-16-be", "surrogatepass")
    halves = [int.from_bytes(unit[at : at + 2], "big") for at in range(0, len(unit), 2)]
    case = dice.choice(["{:04x}", "{:04X}"])
    ways = ["".join("\\u" + case.format(half) for half in halves)]
    if character in SHORT:
        ways.append(SHORT[character])
    if character not in '"\\' and not "\ud800" <= character <= "\udfff" and character >= " ":
        ways += [character] * 3
    return dice.choice(ways)


def written(tree: Any, dice: random.Random) -> str:
    def space() -> str:
        return dice.choice(["", "", "", " ", "\n", "\t \r\n"])

    def string(text: str) -> str:
        return '"' + "".join(spelt(character, dice) for character in text) + '"'

    match tree:
        case ("string", text):
            return string(text)
        case ("bare", text):
            return str(text)
        case ("array", items):
            inner = [space() + written(item, dice) + space() for item in items]
            return "[" + ",".join(inner) + "]"
        case ("object", pairs):
            inner = [f"{space()}{string(k)}{space()}:{space()}{written(v, dice)}{space()}" for k, v in pairs]
            return "{" + ",".join(inner) + "}"
    raise AssertionError(tree)


DOCUMENTS = st.builds(written, TREES, st.randoms(use_true_random=False)).map(str.encode)


class Twice(Exception):
    pass


def object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise Twice
    return dict(pairs)


def no_json(name: str) -> None:
    raise json.JSONDecodeError(name, "", 0)


def reference(raw: bytes) -> Any:
    """What the text says: floats as their digits, objects as their pairs in order, of equal keys the last."""
    return json.loads(
        raw.decode(),
        parse_float=lambda digits: ("float", digits),
        parse_constant=no_json,
        object_pairs_hook=lambda pairs: ("object", list(dict(pairs).items())),
    )


def really_twice(raw: bytes) -> bool:
    try:
        json.loads(raw, object_pairs_hook=object_once)
    except Twice:
        return True
    return False


@examples(500)
@given(DOCUMENTS)
def test_duplicates_are_counted_as_a_full_parse_finds_them(raw: bytes) -> None:
    assert has_duplicate_keys(raw, decode(raw)) == really_twice(raw)


@examples(500)
@given(DOCUMENTS)
def test_nothing_is_lost_between_decode_and_encode(raw: bytes) -> None:
    assert reference(encode(decode(raw))) == reference(raw)


@examples(300)
@given(DOCUMENTS, st.randoms(use_true_random=False))
@example(rb'"\ud83d', random.Random(0))
def test_a_damaged_document_is_taken_or_refused_as_a_strict_parser_would(raw: bytes, dice: random.Random) -> None:
    damaged = bytearray(raw)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(damaged) + 1)
        damaged[at : at + dice.randint(0, 2)] = dice.choice([b"", b'"', b"\\", b"u", b"]", b"\xff", b"N", b"1"])
    try:
        doc = decode(bytes(damaged))
    except JsonFault:
        with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
            reference(bytes(damaged))
    else:
        assert reference(encode(doc)) == reference(bytes(damaged))


def test_a_raw_float_is_what_the_slow_way_gives_too() -> None:
    assert isinstance(decode(rb'["\ud83d",1.50]')[1], msgspec.Raw)
