"""`${NAME}` and `${NAME:-default}`: values from the environment, and values that are missing.

`$${` stands for the two characters `${`; a dollar that no brace follows is a dollar. Patterns and words
are taken as they are written: there a reference could never match what its author meant, so it is a fault.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from ..errors import Fault
from .nodes import Broken, Entry, Items, Node, Path, Scalar, Table, dotted
from .reader import fault_at
from .shape import Shape, items_of, step, typed

_ITEM = 0
# Paths whose texts are taken as they are written; any number in a path is written as _ITEM.
VERBATIM: tuple[Path, ...] = (
    ("guardrails", _ITEM, "patterns", _ITEM, "regex"),
    ("guardrails", _ITEM, "words", _ITEM, "list", _ITEM),
    ("tools", "rules", _ITEM, "arguments", _ITEM, "pattern"),
    ("tools", "rules", _ITEM, "arguments", _ITEM, "path"),
)
# Paths below which everything is data, nulls included: schemas.
DATA: tuple[Path, ...] = (
    ("structured_output", "schemas", _ITEM, "schema"),
    ("tools", "rules", _ITEM, "arguments", _ITEM, "schema"),
)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DOLLAR = re.compile(rf"\$\$\{{|\$\{{({_NAME})(?::-([^}}]*))?\}}|\$\{{")
_WHOLE = re.compile(rf"\$\{{{_NAME}(?::-[^}}]*)?\}}")
_LITERAL = "$${"


def is_verbatim(path: Path) -> bool:
    return _numbered(path) in VERBATIM


def is_data(path: Path) -> bool:
    """Whether a path leads to a schema."""
    return _numbered(path) in DATA


def _numbered(path: Path) -> Path:
    return tuple(_ITEM if isinstance(key, int) else key for key in path)


def expand(node: Node, shape: Shape, environ: Mapping[str, str], faults: list[Fault], path: Path = ()) -> Node:
    """The tree with its references read and without nulls. What is wrong with them is added to `faults`.

    A reference takes the type of its field, which `shape` tells: a limit is a number, a key of digits is text.
    What the environment put over a value is not read again. Schemas are taken as they are written.
    """
    match node:
        case Table() | Items() if is_data(path):
            return node
        case Scalar():
            return _scalar(node, shape, environ, faults, path)
        case Table():
            entries = {
                key: Entry(entry.key, expand(entry.node, step(shape, key), environ, faults, (*path, key)))
                for key, entry in node.entries.items()
            }
            return replace(node, entries=entries)
        case Items():
            inner = items_of(shape)
            nodes = (expand(item, inner, environ, faults, (*path, index)) for index, item in enumerate(node.nodes))
            return replace(node, nodes=tuple(nodes))
        case Broken():
            return node


def _scalar(node: Scalar, shape: Shape, environ: Mapping[str, str], faults: list[Fault], path: Path) -> Node:
    if node.value is None:
        faults.append(fault_at(node.place, "a value is missing", "Give it one, or remove the key.", dotted(path)))
        return Broken(node.place)
    if node.foreign or not isinstance(node.value, str) or "${" not in node.value:
        return node
    if is_verbatim(path):
        return _taken_as_written(node, faults, path)
    pieces: list[str] = []
    end, foreign, broken = 0, False, False
    for match in _DOLLAR.finditer(node.value):
        pieces.append(node.value[end : match.start()])
        end = match.end()
        try:
            pieces.append(_read(match, environ))
        except ValueError as error:
            message, hint = error.args
            faults.append(fault_at(node.at(match.start()), message, hint, dotted(path)))
            broken = True
        foreign = foreign or match.group() != _LITERAL
    if broken:
        return Broken(node.place)
    text = "".join([*pieces, node.value[end:]])
    value = text if shape is None else typed(shape, text)
    return replace(node, value=value, text=text, columns=(), foreign=foreign)


def _taken_as_written(node: Scalar, faults: list[Fault], path: Path) -> Node:
    match = _WHOLE.search(node.text)
    if match is None:
        return node
    message = "patterns and words do not read the environment"
    hint = f"For the characters themselves write the pattern '{re.escape(match.group())}'."
    faults.append(fault_at(node.at(match.start()), message, hint, dotted(path)))
    return Broken(node.place)


def _read(match: re.Match[str], environ: Mapping[str, str]) -> str:
    """What a reference stands for. Raises ValueError(message, hint)."""
    name, default = match.groups()
    if match.group() == _LITERAL:
        return "${"
    if name is None:
        raise ValueError("expected ${NAME} or ${NAME:-default}", "For a literal `${` write `$${`.")
    value = environ.get(name)
    if default is not None:
        value = value or default
    if value is None:
        raise ValueError(f"the environment variable {name} is not set", f"Set it, or write ${{{name}:-default}}.")
    if not is_text(value):
        raise ValueError(f"the environment variable {name} is not UTF-8 text", "")
    return value


def is_text(value: str) -> bool:
    """Whether a variable's value could be decoded; Python marks bytes that could not be as surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in value)
