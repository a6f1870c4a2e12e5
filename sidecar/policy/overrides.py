"""`SIDECAR_<SECTION>_<FIELD>`: environment variables that stand over a policy's values.

Field names hold underscores, so a name is resolved against the models and the policy's own keys, longest name
first. A list's items go by their `name`. A variable that names nothing is a fault: silence would look like
obedience.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from ..errors import Fault
from .nodes import Items, Key, Node, Path, Place, Scalar, Table, at, child, dotted, put
from .reader import fault_at
from .references import is_text
from .shape import Shape, fields, is_leaf, items_of, model_of, shape_at, takes_one, typed, values_of

PREFIX = "SIDECAR_"
# Read by the command line.
RESERVED = frozenset(PREFIX + name for name in ("UPSTREAM", "POLICY", "HOST", "PORT", "WORKERS", "ADMIN_KEY"))
# What Kubernetes puts into every pod beside a service that is called `sidecar`.
_SERVICE_LINK = re.compile(r"SIDECAR_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")


def overridden(root: Node, shape: Shape, environ: Mapping[str, str], faults: list[Fault]) -> Node:
    """The tree with the environment's values put over its own."""
    for name, text in sorted(environ.items()):
        if name.startswith(PREFIX) and name not in RESERVED and not _SERVICE_LINK.fullmatch(name):
            root = _override(root, shape, name, text, faults)
    return root


def _override(root: Node, shape: Shape, name: str, text: str, faults: list[Fault]) -> Node:
    found = list(dict.fromkeys(resolved(name.removeprefix(PREFIX), shape, root)))
    place = Place(name)
    if len(found) != 1:
        faults.append(_unknown(place, root, shape) if not found else _ambiguous(place, found))
        return root
    path = found[0]
    if not takes_one(shape_at(shape, path)):
        hint = "Write it in the policy file."
        faults.append(fault_at(place, "a variable cannot hold a list", hint, dotted(path)))
    elif not is_text(text):
        faults.append(fault_at(place, "this variable is not UTF-8 text", "", dotted(path)))
    else:
        return put(root, path, Scalar(place, typed(shape_at(shape, path), text), text, foreign=True))
    return root


def spelled(key: str) -> str:
    """A key as it stands in a variable's name."""
    return re.sub(r"[^A-Za-z0-9]", "_", key).upper()


def resolved(rest: str, shape: Shape, node: Node | None) -> Iterator[Path]:
    """The paths of the single values that a variable's name can mean."""
    for key, inner in _keys(shape, node):
        name = spelled(_label(node, key))
        if rest == name and is_leaf(inner):
            yield (key,)
        elif rest.startswith(name + "_"):
            below = resolved(rest[len(name) + 1 :], inner, child(node, key) if node else None)
            yield from ((key, *path) for path in below)


def names(shape: Shape, node: Node | None, prefix: str = PREFIX) -> Iterator[str]:
    """Every variable that would override something."""
    for key, inner in _keys(shape, node):
        name = prefix + spelled(_label(node, key))
        if takes_one(inner):
            yield name
        yield from names(inner, child(node, key) if node else None, name + "_")


def _keys(shape: Shape, node: Node | None) -> Iterator[tuple[Key, Shape]]:
    """Where one can go from here: a model's fields, a table's keys, the named items of a list."""
    model, values, item = model_of(shape), values_of(shape), items_of(shape)
    if model:
        yield from sorted(fields(model).items(), key=lambda pair: -len(pair[0]))
    elif values is not None and isinstance(node, Table):
        yield from ((key, values) for key in node.entries)
    elif item is not None and model_of(item) and isinstance(node, Items):
        yield from ((index, item) for index, one in enumerate(node.nodes) if _name(one))


def _name(node: Node | None) -> str:
    found = at(node, ("name",)) if node else None
    return found.value if isinstance(found, Scalar) and isinstance(found.value, str) else ""


def _label(node: Node | None, key: Key) -> str:
    return key if isinstance(key, str) else _name(child(node, key) if node else None)


def _unknown(place: Place, root: Node, shape: Shape) -> Fault:
    known = list(names(shape, root))
    near = get_close_matches(place.file.upper(), known, 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else f"Such variables are {', '.join(known[:3])} and so on."
    return fault_at(place, "this variable names nothing in the policy", hint)


def _ambiguous(place: Place, found: list[Path]) -> Fault:
    return fault_at(place, f"this variable can mean {' and '.join(map(dotted, found))}", "Rename one of the two.")
