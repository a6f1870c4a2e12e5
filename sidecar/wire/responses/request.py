"""The texts of a request to `/v1/responses`, and of those that have the same fields.

They are `/v1/responses/compact`, `/v1/responses/input_tokens` and, for `items`, `/v1/conversations`.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from ...core.surface import Kind, Slot
from .items import REQUEST_FIELDS, fields, items
from .places import HERE, INSTRUCTIONS, REQUEST

_USER = REQUEST.contents[Kind.USER][HERE]
# Lists of items, and what a bare text in their place is.
_SAID = {"instructions": INSTRUCTIONS, "input": _USER, "items": _USER}


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_slots(document))


def but_tools(document: dict[str, Any]) -> list[Slot]:
    """The same, without definitions of tools."""
    return list(_slots(document, without=_DEFINITIONS))


_DEFINITIONS = frozenset(("tools",))


def _slots(document: dict[str, Any], without: AbstractSet[str] = frozenset()) -> Iterator[Slot]:
    for field, surface in _SAID.items():
        if document.get(field) is not None:
            yield from (found.slot for _, found in items(document, field, REQUEST, surface))
    yield from (found.slot for found in fields(document, REQUEST_FIELDS, REQUEST.fields, (), _SAID.keys() | without))
