"""What the frames of a stream say of a field, put together.

Texts run on, lists grow, objects are put together field by field, of anything else the last value counts. What is null
in every frame is null. Nothing that was given is changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import stream
from .shape import Object

Way = Callable[[Sequence[Any]], Any]
"""Makes one value of the values that frames have of a field; there is at least one, and none is null."""

# Entries of a list that run on from frame to frame: parts of content, OpenRouter's `reasoning_details`.
_RUNNING = ("text", "thinking", "reasoning.text", "reasoning.summary")


def folded(pieces: Iterable[Object], ways: Mapping[str, Way]) -> Object:
    """One object of many. `ways` are for the fields that are not put together like others."""
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        for field, value in piece.items():
            values = found.setdefault(field, [])
            if value is not None:
                values.append(value)
    return {field: ways.get(field, joined)(values) if values else None for field, values in found.items()}


def joined(values: Sequence[Any]) -> Any:
    """The usual way."""
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, str) for value in values):
        return stream.joined(values)
    if all(isinstance(value, list) for value in values):
        return grown(values)
    return folded(values, WORDS) if all(isinstance(value, dict) for value in values) else values[-1]


def first(values: Sequence[Any]) -> Any:
    """A word, which frames only repeat: an empty one says nothing."""
    return next((value for value in values if value != ""), values[0])


WORDS: Mapping[str, Way] = dict.fromkeys(("role", "type", "id", "index", "object", "format"), first)


def grown(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """One list of many. Where the last entry of one and the first of the next are the same text, it runs on."""
    groups: list[list[Any]] = []
    for entries in lists:
        for at, entry in enumerate(entries):
            if at == 0 and groups and _goes_on(groups[-1][0], entry):
                groups[-1].append(entry)
            else:
                groups.append([entry])
    return [joined(group) for group in groups]


def _goes_on(entry: Any, other: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(other, dict):
        return False
    same = all(entry.get(field) == other.get(field) for field in ("type", "index"))
    return same and entry.get("type") in _RUNNING


def overlay(holder: Object, more: Object) -> None:
    """Fields that every frame says anew: the last that says something counts."""
    for field, value in more.items():
        if field not in holder or (value is not None and value != ""):
            holder[field] = value
