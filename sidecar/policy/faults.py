"""What the models refuse, as faults in the words of the policy: where, what was expected, what to do.

A fault never repeats a value. Values may be secrets, or come from variables that are.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import Fault
from .nodes import Broken, Items, Node, Path, Place, Scalar, Table, child, dotted, key_place
from .reader import fault_at
from .shape import Shape, choices, field_at, fields, model_of, shape_at

_SHOWN = 60


def quoted(name: str) -> str:
    """A name in a message: short, and without characters that a terminal would obey."""
    short = name if len(name) <= _SHOWN else name[:_SHOWN] + "…"
    return f"`{''.join(char if char.isprintable() else repr(char)[1:-1] for char in short)}`"


def nearest(name: str, known: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    """A hint: the known name that was probably meant, else all of them."""
    names = list(known)
    near = get_close_matches(name.lower(), names, 1, 0.6)
    if near:
        return f"Did you mean {quoted(near[0])}?"
    return f"There are: {', '.join(names)}." if names else ""


def faults_of(error: ValidationError, root: Node, shape: Shape) -> Iterator[Fault]:
    """One fault for each thing the models refuse, but for what another fault already tells."""
    found = [
        (details, _Spot(root, shape, *_locate(root, details["loc"])))
        for details in error.errors(include_url=False, include_input=False)
    ]
    meant = {_meant(spot) for details, spot in found if details["type"] == "extra_forbidden"}
    for details, spot in found:
        misspelt = details["type"] == "missing" and (*spot.path, *spot.rest) in meant
        if not misspelt and not isinstance(spot.node, Broken) and not _is_echo(details, spot.node):
            yield _fault(details, spot)


def _is_echo(details: ErrorDetails, node: Node) -> bool:
    """A list is called too short when items of it were refused; those are reported themselves."""
    wanted = _context(details).get("min_length", 0)
    return details["type"] == "too_short" and isinstance(node, Items) and len(node.nodes) >= wanted


class _Spot:
    """A place that the models complain about. `rest` is what the tree does not have below `path`."""

    def __init__(self, root: Node, shape: Shape, path: Path, node: Node, rest: Path) -> None:
        self.root, self.path, self.node, self.rest = root, path, node, rest
        self.top = shape
        self.shape = shape_at(shape, path)
        self.parent = shape_at(shape, path[:-1])

    @property
    def key(self) -> str:
        return str(self.path[-1]) if self.path else ""

    @property
    def key_place(self) -> Place:
        return key_place(self.root, self.path) if self.path else self.node.place


def _locate(root: Node, loc: tuple[int | str, ...]) -> tuple[Path, Node, Path]:
    """Follows a location of pydantic's, which also names alternatives of unions: the tree has none."""
    path: Path = ()
    rest: Path = ()
    node = root
    for key in loc:
        inner = child(node, key)
        if inner is None:
            rest = (*rest, key)
        else:
            path, node, rest = (*path, key), inner, ()
    return path, node, rest


def _fault(details: ErrorDetails, spot: _Spot) -> Fault:
    kind = details["type"]
    if kind in _WANTED:
        return _wrong_kind(_WANTED[kind], spot)
    return _SPECIAL.get(kind, _generic)(details, spot)


# --- kinds of values ---

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_HINTS = {
    ("text", "a number"): "Put quotes around it.",
    ("text", "true or false"): "Put quotes around it.",
    ("text", "a list"): "Remove the brackets or the dash.",
    ("a list", "text"): "Put brackets around it, or begin its line with a dash.",
    ("a list", "a table"): "Begin each item with a dash.",
    ("a table", "a list"): "Remove the dashes.",
    ("true or false", "text"): "Write true or false, without quotes.",
    ("a whole number", "text"): "Write it without quotes and unit.",
}


def _kind(node: Node) -> str:
    match node:
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=bool()):
            return "true or false"
        case Scalar(value=int() | float()):
            return "a number"
        case Items():
            return "a list"
        case Table():
            return "a table"
    return "text"


def _wrong_kind(wanted: str, spot: _Spot) -> Fault:
    got = _kind(spot.node)
    message = f"expected {wanted}" if got == wanted else f"expected {wanted}, not {got}"
    return _at_value(spot, message, _HINTS.get((wanted, got), ""))


# --- everything else ---


def _at_value(spot: _Spot, message: str, hint: str = "", offset: int | None = None) -> Fault:
    place = spot.node.place
    if isinstance(spot.node, Scalar):
        place = place if offset is None else spot.node.at(offset)
        if spot.node.foreign and not place.file.startswith("-"):
            hint = f"{hint} The value comes from the environment.".strip()
    return fault_at(place, message, hint, dotted(spot.path))


def _purpose(spot: _Spot, path: Path) -> str:
    """What a field is for."""
    info = field_at(spot.top, path)
    return (info.description or "") if info else ""


def _meant(spot: _Spot) -> Path:
    """The path that an unknown key was probably meant to be."""
    model = model_of(spot.parent)
    near = get_close_matches(spot.key.lower(), tuple(fields(model)) if model else (), 1, 0.6)
    return (*spot.path[:-1], *near)


def _missing(details: ErrorDetails, spot: _Spot) -> Fault:
    name = str(spot.rest[-1])
    path = (*spot.path, name)
    return fault_at(spot.key_place, f"{quoted(name)} is missing", _purpose(spot, path), dotted(path))


def _unknown_key(details: ErrorDetails, spot: _Spot) -> Fault:
    model = model_of(spot.parent)
    known = tuple(fields(model)) if model else ()
    what = "key" if len(spot.path) > 1 else "section"
    message = f"there is no {what} {quoted(spot.key)}"
    return fault_at(spot.key_place, message, nearest(spot.key, known), dotted(spot.path))


def _no_choice(details: ErrorDetails, spot: _Spot) -> Fault:
    words = choices(spot.shape)
    given = spot.node.text if isinstance(spot.node, Scalar) else ""
    near = get_close_matches(given.lower(), words, 1, 0.6)
    hint = f"Did you mean {quoted(near[0])}?" if near else ""
    return _at_value(spot, f"expected one of {', '.join(words)}", hint)


def _context(details: ErrorDetails) -> Mapping[str, Any]:
    return details.get("ctx", {})


# What the parts of a URL are called in an error may be a password in the wrong place.
_FIXED = {"base_url": "expected an http or https URL such as https://api.openai.com/v1"}


def _said(details: ErrorDetails, spot: _Spot) -> Fault:
    """What a validator of ours said."""
    message = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = _FIXED.get(spot.key, message)
    context = _context(details)
    fault = _at_value(spot, message, str(context.get("hint", "")), context.get("offset"))
    if "[key]" not in spot.rest:
        return fault
    return fault_at(spot.key_place, message, fault.hint, fault.where)


_BOUNDS = {
    "string_too_short": ("expected text of at least {min_length} characters", "min_length"),
    "string_too_long": ("expected text of at most {max_length} characters", "max_length"),
    "too_short": ("expected a list of at least {min_length}", "min_length"),
    "too_long": ("expected a list of at most {max_length}", "max_length"),
    "greater_than": ("expected more than {gt}", "gt"),
    "greater_than_equal": ("expected at least {ge}", "ge"),
    "less_than": ("expected less than {lt}", "lt"),
    "less_than_equal": ("expected at most {le}", "le"),
    "string_pattern_mismatch": ("expected text of the form {pattern}", "pattern"),
}


def _out_of_bounds(details: ErrorDetails, spot: _Spot) -> Fault:
    form, name = _BOUNDS[details["type"]]
    message = form.replace(f"{{{name}}}", str(_context(details).get(name, "")))
    return _at_value(spot, message, _purpose(spot, spot.path))


def _generic(details: ErrorDetails, spot: _Spot) -> Fault:
    return _said({**details, "msg": details["msg"].replace("Input should be", "expected")}, spot)


_SPECIAL: Mapping[str, Callable[[ErrorDetails, _Spot], Fault]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "enum": _no_choice,
    "literal_error": _no_choice,
    **dict.fromkeys(_BOUNDS, _out_of_bounds),
}
