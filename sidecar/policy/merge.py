"""Several files of one folder as one policy: tables go together key by key, lists one after the other."""

from collections.abc import Iterable

from ..errors import Fault
from .nodes import Broken, Entry, Items, Node, Scalar, Table, combine, dotted, table
from .reader import Document, fault_at


def merged(documents: Iterable[Document], faults: list[Fault]) -> Table | None:
    """One tree of all documents. What does not go together is added to `faults`."""
    whole: Table | None = None
    for document in documents:
        part = _sections(document, faults)
        if part is not None:
            whole = part if whole is None else _both(whole, part, faults)
    return whole


def _sections(document: Document, faults: list[Fault]) -> Table | None:
    match document.root:
        case Table() as found:
            return found
        case None | Broken():
            return None
        case Scalar(value=None, place=place):
            faults.append(fault_at(place, "the file is empty", "A policy begins with `version: 1`."))
        case other:
            faults.append(fault_at(other.place, "expected a table of sections", "A policy begins with `version: 1`."))
    return None


def _both(first: Table, second: Table, faults: list[Fault]) -> Table:
    entries = dict(first.entries)
    for name, entry in second.entries.items():
        old = entries.get(name)
        entries[name] = entry if old is None else Entry(old.key, _section(name, old, entry, faults))
    return table(first.place, entries)


def _section(name: str, old: Entry, new: Entry, faults: list[Fault]) -> Node:
    match old.node, new.node:
        case Table() as before, Table() as after:
            for key in before.entries.keys() & after.entries.keys():
                where, place = dotted((name, key)), after.entries[key].key
                message = f"`{key}` is already given at {before.entries[key].key}"
                faults.append(fault_at(place, message, "Keep one of the two.", where))
        case Scalar() as before, Scalar() as after:
            if before.value != after.value:
                message = f"`{name}` differs from the one at {old.key}"
                faults.append(fault_at(after.place, message, "All files of a folder agree on it.", name))
        case (Items(), Items()) | (Broken(), _) | (_, Broken()):
            pass
        case _:
            faults.append(fault_at(new.key, f"`{name}` is of another kind than at {old.key}", "", name))
    return combine(old.node, new.node)
