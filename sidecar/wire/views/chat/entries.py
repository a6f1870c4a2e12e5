"""Calls and choices as they stand in documents of chat completions."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ... import several
from ...conversation import Called
from ..shape import Object, json_text, mapping, text_of

OLDER = "function_call"


class Entry(NamedTuple):
    """A call as it stands in a message. `place` is where: in the list, or the single, older form."""

    place: int | str
    id: str
    name: str
    arguments: str
    free: bool = False


def calls_in(message: Object) -> list[Entry]:
    """The calls that a client can carry out: those with a name."""
    given = message.get("tool_calls")
    entries = enumerate(given) if isinstance(given, list) else ()
    found = [_call(place, entry) for place, entry in entries if isinstance(entry, dict)]
    return [call for call in (*found, _function(OLDER, "", message.get(OLDER))) if call is not None]


def _call(place: int, entry: Object) -> Entry | None:
    function, custom = entry.get("function"), entry.get("custom")
    if isinstance(custom, dict) and (entry.get("type") == "custom" or not isinstance(function, dict)):
        return _function(place, text_of(entry.get("id")), custom, "input")
    return _function(place, text_of(entry.get("id")), function)


def _function(place: int | str, ident: str, function: Any, given: str = "arguments") -> Entry | None:
    function = mapping(function)
    name = text_of(function.get("name"))
    return Entry(place, ident, name, json_text(function.get(given)), given == "input") if name else None


def called_in(calls: Iterable[Entry], choice: int = 0, before: int = 0) -> list[Called]:
    """A call without an id has one by its place: `before` is how many calls came earlier."""
    stem = f"call_{choice}_" if choice else "call_"
    return [
        Called(call.id or f"{stem}{before + position}", call.name, call.arguments, call.free, position, choice)
        for position, call in enumerate(calls)
    ]


def name_in(given: Object) -> str:
    return text_of(mapping(given.get("function") or given.get("custom")).get("name"))


def numbered(document: Object) -> list[tuple[int, Object]]:
    """The choices with their numbers: their places, where a server gives several of them the same."""
    found = several.numbered(document)
    unique = len({index for index, _ in found}) == len(found)
    return found if unique else [(place, choice) for place, (_, choice) in enumerate(found)]


def choices_in(document: Object) -> list[tuple[int, Object]]:
    """The choices that say something, in the order of their numbers."""
    found = [(index, choice) for index, choice in numbered(document) if isinstance(choice.get("message"), dict)]
    return sorted(found, key=lambda each: each[0])
