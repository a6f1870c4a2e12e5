"""YAML to a tree: what scalars mean, where values stand, and what a text alone can have wrong."""

from typing import Any

import pytest
import yaml

from sidecar.errors import Fault
from sidecar.policy import reader
from sidecar.policy.nodes import Items, Node, Scalar, Table, at, key_place, plain, scalars
from sidecar.policy.reader import MAX_BYTES, MAX_VALUES, Document, read, resolve


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML comes with libyaml or without."""
    monkeypatch.setattr(reader, "_LOADER", getattr(yaml, request.param))


def root(text: str) -> Node:
    document = read("f", text.encode())
    assert not document.faults
    assert document.root is not None
    return document.root


def fault(text: str) -> Fault:
    (found,) = read("f", text.encode()).faults
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        *((word, word) for word in ("yes", "no", "on", "off", "y", "n", "Yes", "NO", "tRUE")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        ("1", 1),
        ("-7", -7),
        ("200_000", 200_000),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("1__0", "1__0"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1.2.3", "1.2.3"),
        ("9" * 5000, "9" * 5000),
        ("=", "="),
    ],
)
def test_unquoted_scalars_mean_what_yaml_1_2_says(text: str, value: Any) -> None:
    found = resolve(text)
    assert (found, type(found)) == (value, type(value))


def test_quoted_scalars_are_text() -> None:
    assert plain(root("a: ['1', \"true\", !!str 2, ! 3]")) == {"a": ["1", "true", "2", "3"]}


def test_every_key_and_value_knows_its_place() -> None:
    tree = root("a:\n  - b: 1\n    c: [x, 'y']\n")
    assert str(key_place(tree, ("a",))) == "f:1:1"
    assert str(key_place(tree, ("a", 0, "c"))) == "f:3:5"
    assert {path: (node.place.line, node.place.column) for path, node in scalars(tree)} == {
        ("a", 0, "b"): (2, 8),
        ("a", 0, "c", 0): (3, 9),
        ("a", 0, "c", 1): (3, 12),
    }


@pytest.mark.parametrize(
    ("text", "offset", "column"),
    [
        ("a: x(y", 1, 5),
        ("a: 'x(y'", 1, 6),
        ("a: 'it''s('", 4, 10),
        ('a: "x("', 1, 6),
        ('a: "\\u0041\\x42\\n("', 3, 17),
        ("a: &n 'x('", 1, 9),
        ("a: !!str x(", 1, 11),
        ("é: 'ü😀('", 2, 7),
        ("a: |-\n  x(\n", 1, 4),
        ("a: 'x\n  y('", 3, 4),
        ("a: x", 9, 4),
    ],
)
def test_an_offset_in_a_scalar_has_a_column(text: str, offset: int, column: int) -> None:
    (_, node), *_ = scalars(root(text))
    assert node.at(offset).column == column


def test_line_ends_and_byte_order_marks_do_not_move_places() -> None:
    tree = read("f", b"\xef\xbb\xbfa: 1\r\nb: 'x('\r\n").root
    assert tree is not None
    found = at(tree, ("b",))
    assert isinstance(found, Scalar)
    assert str(found.at(1)) == "f:2:6"


def test_every_duplicate_is_a_fault_with_both_places() -> None:
    document = read("f", b"a: {b: 1, b: 2, b: 3}\nc:\n  - d: 1\n    d: 2\na: {e: 1}\n")
    assert [(str(f).split(": ")[0], f.where, f.message) for f in document.faults] == [
        ("f:1:11", "a.b", "`b` is already given at line 1, column 5"),
        ("f:1:17", "a.b", "`b` is already given at line 1, column 5"),
        ("f:4:5", "c[0].d", "`d` is already given at line 3, column 5"),
        ("f:5:1", "a", "`a` is already given at line 1, column 1"),
    ]


def test_what_stands_twice_is_still_looked_into() -> None:
    tree = read("f", b"a: [1]\na: [2]\nb: {c: 1}\nb: {d: 2}\n").root
    assert tree is not None
    assert plain(tree) == {"a": [1, 2], "b": {"c": 1, "d": 2}}


def test_merge_keys_inherit_and_may_be_overridden() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\none: {x: 9, <<: *b}\ntwo: {<<: [*m, *b], z: 5}\n"
    tree = root(text)
    assert plain(tree)["one"] == {"x": 9, "y": 2}
    assert plain(tree)["two"] == {"x": 1, "y": 3, "z": 5}


def test_what_a_merge_key_brings_keeps_its_place() -> None:
    assert str(key_place(root("base: &b {x: 1}\none: {<<: *b}\n"), ("one", "x"))) == "f:1:11"


def test_a_quoted_merge_sign_is_a_key() -> None:
    assert plain(root("'<<': 1")) == {"<<": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {<<: 1}", "`<<` takes a table"),
        ("b: &b {}\na: {<<: *b, <<: *b}", "`<<` is already given"),
        ("1: a", "expected a name as the key"),
        ("true: a", "expected a name as the key"),
        ("? [a]\n: b", "expected a name as the key"),
        ("? {a: 1}\n: b", "expected a name as the key"),
        ("~: b", "expected a name as the key"),
        ("a: *nope", "there is no anchor `&nope`"),
        ("a: !thing b", "tags such as `!name`"),
        ("a: !!python/object:os.system {}", "tags such as `!name`"),
        ("a: !!timestamp 2024-01-01", "tags such as `!name`"),
        ("a: 1\n---\nb: 2", "a policy is one document"),
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
    ],
)
def test_texts_with_one_fault(text: str, message: str) -> None:
    found = fault(text)
    assert message in found.message
    assert found.line > 0


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n\t- b\n", (2, 1), "spaces, not with tabs"),
        ('a: "\\d"\n', (1, 5), "single quotes"),
        ('a: "\\xzz"\n', (1, 7), "single quotes"),
        ("a: b: c\n", (1, 5), "quotes around a value"),
        ("a: [b\n", (2, 1), "bracket"),
        ("a: {b: c\n", (2, 1), "bracket"),
        ("a: 'b\n", (2, 1), "quote is not closed"),
        ("a: @b\n", (1, 4), "Put quotes"),
        ("a: `b`\n", (1, 4), "Put quotes"),
        ("a: 1\n b: 2\n", (2, 3), "indentation"),
        ("a:\n  - b\n c: d\n", (3, 2), "indentation"),
    ],
)
def test_syntax_faults_have_a_place_and_advice(text: str, place: tuple[int, int], hint: str) -> None:
    found = fault(text)
    assert (found.line, abs(found.column - place[1]) <= 1) == (place[0], True)
    assert hint in found.hint


def test_a_syntax_fault_keeps_what_was_whole_before_it() -> None:
    document = read("f", b"a: {b: 1, b: 2}\nc:\n  d: [1\n")
    assert not document.complete
    assert document.root is not None
    assert plain(document.root) == {"a": {"b": 1}}
    assert len(document.faults) == 2


def test_a_character_yaml_forbids_is_named() -> None:
    found = fault("a: 1\nb: x\x01y\n")
    assert (found.line, found.column) == (2, 5)
    assert "U+0001" in found.message


def test_what_is_not_utf_8_has_a_place() -> None:
    (found,) = read("f", b"a: 1\nb: \xff\n").faults
    assert (found.line, found.column, found.message) == (2, 4, "this is not UTF-8 text")


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = [f"a0: &a0 {{{', '.join(f'k{n}: 1' for n in range(100))}}}"]
    lines += [f"a{n}: &a{n} {{<<: *a{n - 1}, x{n}: {{<<: *a{n - 1}}}}}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("text", [laughs(10), merges(30)])
def test_aliases_cannot_multiply_without_bound(text: str) -> None:
    document = read("f", text.encode())
    assert f"more than {MAX_VALUES:,} values" in document.faults[-1].message
    assert document.faults[-1].line > 1
    assert not document.complete


def test_a_few_aliases_of_aliases_are_fine() -> None:
    tree = root(laughs(3))
    assert isinstance(tree, Table)
    assert tree.size == len(list(walk(tree)))


def walk(node: Node) -> list[Node]:
    below = [entry.node for entry in node.entries.values()] if isinstance(node, Table) else []
    below = list(node.nodes) if isinstance(node, Items) else below
    return [node, *(deeper for inner in below for deeper in walk(inner))]


def test_an_alias_inside_its_own_anchor_is_a_fault() -> None:
    assert "there is no anchor" in fault("a: &a [*a]").message


@pytest.mark.parametrize("text", ["[" * 70, "{a: " * 70, "- " * 70])
def test_depth_is_bounded(text: str) -> None:
    assert "nested more than" in fault(text).message


@pytest.mark.parametrize("text", ["[" * 9000, "{" * 9000, "- " * 9000, "? " * 9000])
def test_no_depth_exhausts_the_stack(text: str) -> None:
    assert len(read("f", text.encode()).faults) == 1


def test_size_is_bounded() -> None:
    document: Document = read("f", b"#" * (MAX_BYTES + 1))
    assert "larger than 16 MB" in document.faults[0].message
