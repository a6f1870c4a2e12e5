"""Calls of tools that the provider runs itself, in `/v1/responses` and `/v1/messages`: how they are told.

Items, blocks and events as in the references of OpenAI and Anthropic. In Responses some calls hold no name: these have
that of their tool.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..core.events import Hosted

Document = dict[str, Any]

_NAMELESS: Final = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "program": "programmatic_tool_calling",
}
_CONTAINERS: Final = frozenset(("container_auto", "container_reference"))
_ITEM_EVENTS: Final = ("response.output_item.added", "response.output_item.done")
_ASKS: Final = "mcp_approval_request"
_BLOCKS: Final = frozenset(("server_tool_use", "mcp_tool_use"))


def in_container(holder: Document) -> bool:
    """Whether a shell, by its definition or its call, is one at the provider."""
    environment = holder.get("environment")
    kind = environment.get("type") if isinstance(environment, dict) else None
    return isinstance(kind, str) and kind in _CONTAINERS


def of_item(item: Document, choice: int = 0) -> Hosted | None:
    """What an item of Responses tells of such a call. One that was approved has the id that it was asked for with."""
    kind, name = item.get("type"), _text(item, "name")
    if kind == _ASKS:
        return Hosted(choice, _text(item, "id"), name, asks=True) if name else None
    if kind == "mcp_call":
        return Hosted(choice, _text(item, "approval_request_id") or _text(item, "id"), name) if name else None
    tool = _nameless(item, kind)
    return Hosted(choice, _text(item, "call_id") or _text(item, "id"), tool, named=False) if tool else None


def _nameless(item: Document, kind: Any) -> str:
    if kind == "shell_call":
        return "shell" if in_container(item) else ""
    if kind == "tool_search_call":
        return "" if item.get("execution") == "client" else "tool_search"
    return _NAMELESS.get(kind, "") if isinstance(kind, str) else ""


def of_block(block: Document, choice: int = 0) -> Hosted | None:
    """The same of a block of Messages."""
    kind, name = block.get("type"), _text(block, "name")
    if not name or not isinstance(kind, str) or kind not in _BLOCKS:
        return None
    return Hosted(choice, _text(block, "id"), name)


def _text(holder: Document, field: str) -> str:
    value = holder.get(field)
    return value if isinstance(value, str) else ""


# --- replies and frames ------------------------------------------------------------------------------------------


def in_responses(document: Document) -> list[Hosted]:
    """What a whole reply or a frame tells."""
    found = (of_item(item, choice) for choice, item in _items(document))
    return [each for each in found if each is not None]


def in_messages(document: Document) -> list[Hosted]:
    """The same in Messages."""
    found = (of_block(block, choice) for choice, block in _blocks(document))
    return [each for each in found if each is not None]


def nowhere(document: Document) -> list[Hosted]:
    """In an API whose replies tell of no such calls."""
    return []


def _items(document: Document) -> Iterator[tuple[int, Document]]:
    if document.get("type") in _ITEM_EVENTS:
        yield from _one(document, "output_index", "item")
    else:
        yield from _numbered(document.get("response", document), "output")


def _blocks(document: Document) -> Iterator[tuple[int, Document]]:
    kind = document.get("type")
    if kind == "content_block_start":
        yield from _one(document, "index", "content_block")
    else:
        yield from _numbered(document.get("message") if kind == "message_start" else document, "content")


def _one(document: Document, index: str, field: str) -> Iterator[tuple[int, Document]]:
    number, value = document.get(index), document.get(field)
    if isinstance(value, dict):
        yield number if isinstance(number, int) else 0, value


def _numbered(holder: Any, field: str) -> Iterator[tuple[int, Document]]:
    listed = holder.get(field) if isinstance(holder, Mapping) else None
    for number, value in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(value, dict):
            yield number, value
