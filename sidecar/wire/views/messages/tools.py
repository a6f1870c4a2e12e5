"""Which tools of `/v1/messages` the client runs, and the blocks in which they are called.

Beside the client's own, Anthropic defines some that the client runs: the shell, the editor, the computer, the browser,
the memory. All others (web search and fetch, code execution, MCP, the search for tools) are the provider's.
"""

from collections.abc import Iterator
from typing import Final

from ...conversation import Called, HostedCall, Tool
from ...hosted import of_block
from ...stream import Document
from ..shape import json_text, mapping, objects, schema_of, text_of

# How the types of those begin; a version follows.
_BUILT_IN: Final = ("bash_", "text_editor_", "computer_", "browser_", "memory_")
# A family of tools that one entry defines, without a name.
_FAMILY: Final = "_toolset_"


def definitions(document: Document) -> Iterator[Document]:
    """Those of the request, and those that its messages have added since."""
    yield from objects(document.get("tools"))
    for message in objects(document.get("messages")):
        for block in objects(message.get("content")):
            if block.get("type") == "tool_addition":
                yield from objects([mapping(block.get("tool")).get("definition")])


def run_by_client(definition: Document) -> Tool | None:
    kind, name = definition.get("type"), text_of(definition.get("name"))
    if kind not in (None, "custom"):
        if not text_of(kind).startswith(_BUILT_IN):
            return None
        name = name or text_of(kind).partition(_FAMILY)[0]
    told, schema = text_of(definition.get("description")), schema_of(definition.get("input_schema"))
    return Tool(name, told, schema, definition) if name else None


def calls_in(content: object) -> Iterator[tuple[Document, Called]]:
    """The calls of a message or reply, each with its block."""
    position = 0
    for block in objects(content):
        if block.get("type") == "tool_use" and (name := _name(block)):
            yield block, Called(text_of(block.get("id")), name, _arguments(block), position=position)
            position += 1


def hosted_in(content: object) -> list[HostedCall]:
    """Those that the provider has run."""
    return [HostedCall(call.id, call.name) for call in map(of_block, objects(content)) if call is not None]


def _name(block: Document) -> str:
    """A call of one of a family is a call of the family: a rule about `computer` holds for each of its versions."""
    return text_of(block.get("toolset_name")) or text_of(block.get("name"))


def _arguments(block: Document) -> str:
    """As the single tool that was there before the family had it, which of the family is the `action`."""
    given = block.get("input")
    if text_of(block.get("toolset_name")):
        given = {"action": text_of(block.get("name"))} | mapping(given)
    return json_text(given, "{}")
