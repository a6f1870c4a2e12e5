"""JSON Schemas of a policy: those in files of their own, and what is wrong with any of them."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path as FilePath
from typing import Any, Final

from ..errors import Fault
from ..text.extract import NotJson, loads
from ..text.schemas import MAX_SCHEMA_BYTES, Checker, SchemaError
from .nodes import Broken, Entry, Items, Node, Path, Place, Scalar, at, dotted, items, plain, put, table
from .reader import fault_at

_SCHEMAS: Final[Path] = ("structured_output", "schemas")
_RULES: Final[Path] = ("tools", "rules")


def filled(root: Node, faults: list[Fault]) -> Node:
    """The tree with the schemas of files in the place of their names. What is wrong is added to `faults`."""
    for path in _in_list(root, _SCHEMAS):
        named = at(root, (*path, "schema_file"))
        if not isinstance(named, Scalar) or not isinstance(named.value, str):
            continue
        if at(root, (*path, "schema")) is not None:
            message = "there is a `schema` as well"
            faults.append(fault_at(named.place, message, "Leave out one of them.", dotted((*path, "schema_file"))))
            continue
        try:
            found = _node(named.place, loads(_read(named)))
        except (OSError, NotJson, ValueError) as error:
            faults.append(fault_at(named.place, *_why(error), dotted((*path, "schema_file"))))
            found = Broken(named.place)
        root = put(root, (*path, "schema"), found)
    return root


def _in_list(root: Node, path: Path) -> Iterator[Path]:
    found = at(root, path)
    for index in range(len(found.nodes) if isinstance(found, Items) else 0):
        yield (*path, index)


def _conditions(root: Node) -> Iterator[Path]:
    """On the arguments of tool calls."""
    for rule in _in_list(root, _RULES):
        yield from _in_list(root, (*rule, "arguments"))


def _read(named: Scalar) -> str:
    """The file stands beside the one that names it; for what the environment says, where we were started."""
    content = (FilePath(named.place.file).parent / named.text).read_bytes()
    if len(content) > MAX_SCHEMA_BYTES:
        raise NotJson(f"it is larger than {MAX_SCHEMA_BYTES} bytes")
    return content.decode("utf-8-sig")


def _why(error: Exception) -> tuple[str, str]:
    match error:
        case OSError():
            return f"the file cannot be read: {error.strerror or error}", "The path is relative to the policy's file."
        case UnicodeDecodeError():
            return "the file is not UTF-8 text", ""
        case _:
            return f"the file holds no JSON Schema: {error}", ""


def _node(place: Place, value: Any) -> Node:
    """JSON as a tree, all of it at one place."""
    match value:
        case dict():
            return table(place, {key: Entry(place, _node(place, inner)) for key, inner in value.items()})
        case list():
            return items(place, [_node(place, inner) for inner in value])
        case str() | bool() | int() | None:
            return Scalar(place, value, value if isinstance(value, str) else json.dumps(value))
    return Scalar(place, float(bytes(value)), bytes(value).decode())


def unusable_schemas(root: Node) -> Iterator[Fault]:
    """Each with the place of what cannot be used, as near as it can be told."""
    for path in chain(_in_list(root, _SCHEMAS), _conditions(root)):
        node = at(root, (*path, "schema"))
        if node is None or isinstance(node, Broken):
            continue
        try:
            Checker.of(plain(node))
        except SchemaError as error:
            where = _within(node, error.where)
            inside = "" if where is not node else f" (at {error.where})" if error.where else ""
            yield fault_at(where.place, f"{error.message}{inside}", "", dotted((*path, "schema")))


def _within(node: Node, pointer: str) -> Node:
    """The node at a JSON pointer, or the last one on its way."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        inner = at(node, (int(key) if isinstance(node, Items) and key.isdecimal() else key,))
        if inner is None:
            break
        node = inner
    return node
