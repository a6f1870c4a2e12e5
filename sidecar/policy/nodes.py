"""A policy text as a tree of values that know where they stand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]
Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """A file as the user named it, or the name of an environment variable or an option.

    Lines and columns count from 1; 0 means that there is none.
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value.

    `text` is the value once quotes and escapes are undone. `columns` has the column of each of its characters
    where the scalar stands on one line, and is empty elsewhere. `foreign` text came from the environment: its
    type is that of the field, and it is never shown.
    """

    place: Place
    value: Value = field(repr=False)
    text: str = field(default="", repr=False)
    plain: bool = False
    columns: Sequence[int] = field(default=(), repr=False)
    foreign: bool = False

    @property
    def size(self) -> int:
        return 1

    def at(self, offset: int) -> Place:
        """Where the character at `offset` stands; the scalar's own place when that cannot be told."""
        if not 0 <= offset < len(self.columns):
            return self.place
        return Place(self.place.file, self.place.line, self.columns[offset])


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands where a value was whose fault is already reported, so that it is not reported twice."""

    place: Place

    @property
    def size(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place, and the value under it."""

    key: Place
    node: "Node"


@dataclass(frozen=True, slots=True)
class Table:
    place: Place
    entries: Mapping[str, Entry]
    size: int = 1


@dataclass(frozen=True, slots=True)
class Items:
    place: Place
    nodes: tuple["Node", ...]
    size: int = 1


Node: TypeAlias = Scalar | Broken | Table | Items


def table(place: Place, entries: Mapping[str, Entry]) -> Table:
    return Table(place, entries, 1 + sum(entry.node.size for entry in entries.values()))


def items(place: Place, nodes: Sequence[Node]) -> Items:
    return Items(place, tuple(nodes), 1 + sum(node.size for node in nodes))


def plain(node: Node) -> Any:
    """The tree as dicts, lists and scalars."""
    match node:
        case Scalar():
            return node.value
        case Table():
            return {key: plain(entry.node) for key, entry in node.entries.items()}
        case Items():
            return [plain(item) for item in node.nodes]
        case Broken():
            return None


def child(node: Node, key: Key) -> Node | None:
    match node, key:
        case Table(), str() if key in node.entries:
            return node.entries[key].node
        case Items(), int() if 0 <= key < len(node.nodes):
            return node.nodes[key]
    return None


def at(node: Node, path: Path) -> Node | None:
    """The node at a path, or None."""
    found: Node | None = node
    for key in path:
        if found is None:
            return None
        found = child(found, key)
    return found


def key_place(node: Node, path: Path) -> Place:
    """Where the last key of a path stands; a list item has no key, so its value's place."""
    parent = at(node, path[:-1])
    if isinstance(parent, Table) and path[-1] in parent.entries:
        return parent.entries[str(path[-1])].key
    found = at(node, path)
    return (found or parent or node).place


def scalars(node: Node, path: Path = ()) -> Iterator[tuple[Path, Scalar]]:
    """Every scalar with its path, in the order of the text."""
    match node:
        case Scalar():
            yield path, node
        case Table():
            for key, entry in node.entries.items():
                yield from scalars(entry.node, (*path, key))
        case Items():
            for index, item in enumerate(node.nodes):
                yield from scalars(item, (*path, index))
        case Broken():
            pass


def put(node: Node | None, path: Path, new: Node) -> Node:
    """A copy of the tree with `new` at `path`; tables that are missing on the way are made."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    match node:
        case Items() if isinstance(key, int):
            nodes = [put(item, rest, new) if index == key else item for index, item in enumerate(node.nodes)]
            return items(node.place, nodes)
        case Table():
            old = node.entries.get(str(key))
            entry = Entry(old.key if old else new.place, put(old.node if old else None, rest, new))
            return table(node.place, {**node.entries, str(key): entry})
        case None:
            return table(new.place, {str(key): Entry(new.place, put(None, rest, new))})
    return node


def combine(first: Node, second: Node) -> Node:
    """Both, as far as they go together: of equal keys and of scalars the first stays."""
    match first, second:
        case Table(), Table():
            entries = dict(first.entries)
            for key, entry in second.entries.items():
                old = entries.get(key)
                entries[key] = Entry(old.key, combine(old.node, entry.node)) if old else entry
            return table(first.place, entries)
        case Items(), Items():
            return items(first.place, (*first.nodes, *second.nodes))
    return first


def dotted(path: Path) -> str:
    """A path as people write it: `guardrails[0].patterns[1].regex`."""
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(steps).removeprefix(".")
