"""Which tools of `/v1/responses` the client runs, the items in which they are called, and those that hold results.

Functions and custom tools have names of their own. The shell, patches, the computer and a search for tools are also
run by the client, under the name of their type, and the call's action is its arguments. Everything else (web and file
search, MCP, the code interpreter, images, a shell in a container of the provider's) is no tool here. A call of MCP that
the client is asked to approve is one of its calls all the same: what it answers decides whether the call is made.
"""

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ...conversation import Called, Tool
from ...hosted import in_container
from ...stream import Document
from ..shape import json_text, mapping, objects, schema_of, sequence, text_of

BUILT_IN: Final = {
    "local_shell": "local_shell",
    "shell": "shell",
    "apply_patch": "apply_patch",
    # Three names of one tool, whose calls do not tell them apart.
    "computer": "computer",
    "computer_use": "computer",
    "computer_use_preview": "computer",
}


# --- definitions ---------------------------------------------------------------------------------------------


def definitions(document: Document) -> Iterator[Document]:
    """Those of the request, and those that its items have added since."""
    yield from objects(document.get("tools"))
    for item in objects(document.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            yield from objects(item.get("tools"))


def run_by_client(definition: Document) -> Iterator[Tool]:
    """The tools that a definition, or a mention in `tool_choice`, stands for. A namespace holds several."""
    match definition:
        case {"type": "function" | "custom", "name": str(name)} if name:
            yield _tool(name, definition)
        case {"type": "namespace", "tools": list(tools)}:
            for inner in objects(tools):
                yield from run_by_client(inner)
        case {"type": "tool_search", "execution": "client"}:
            yield _tool("tool_search", definition)
        case {"type": str(kind)} if kind in BUILT_IN and not in_container(definition):
            yield Tool(BUILT_IN[kind], "", None, definition)


def _tool(name: str, definition: Document) -> Tool:
    return Tool(name, text_of(definition.get("description")), schema_of(definition.get("parameters")), definition)


def asks_approval(definition: Document) -> bool:
    """Whether a definition is of a server for whose calls the client may be asked. It is, unless it says never."""
    return definition.get("type") == "mcp" and definition.get("require_approval") != "never"


# --- calls ---------------------------------------------------------------------------------------------------


class CallKind(NamedTuple):
    """A type of item that is a call. `tool` is its tool's name, empty where the item says it.

    `told` is the item that gives it a text as its result. Where the API has no place for a text there, it is `apart`:
    a message has to say it. `id` is the field with the call's id. `hosted`: see `conversation.Called`.
    """

    arguments: Callable[[Document], str]
    told: Callable[[Document, str], Document]
    tool: str = ""
    free: bool = False
    apart: bool = False
    id: str = "call_id"
    hosted: bool = False


def call_kind(item: Document) -> CallKind | None:
    kind = item.get("type")
    return CALLS.get(kind) if isinstance(kind, str) else None


def id_of(item: Document) -> str:
    """The id of a call, also where the item is its result. The output of a local shell has it in `id`."""
    if item.get("type") == "mcp_approval_response":
        return text_of(item.get("approval_request_id"))
    return text_of(item.get("call_id")) or text_of(item.get("id"))


def called(item: Document, position: int) -> Called | None:
    """The call that an item is; None where it is none, or one that the provider runs itself."""
    kind = call_kind(item)
    if kind is None or in_container(item):
        return None
    if kind is CALLS["tool_search_call"] and item.get("execution") != "client":
        return None
    name = kind.tool or text_of(item.get("name"))
    if not name:
        return None
    return Called(id_of(item), name, kind.arguments(item), kind.free, position, hosted=kind.hosted)


def _at(field: str, absent: str = "") -> Callable[[Document], str]:
    return lambda item: json_text(item.get(field), absent)


def _actions(item: Document) -> str:
    """The preview of this tool has one `action`; now there is a list of them. Here it is always the list."""
    actions, action = sequence(item.get("actions")), item.get("action")
    return json_text({"actions": actions if action is None or action in actions else [*actions, action]})


# --- results -------------------------------------------------------------------------------------------------


def _output(kind: str, **fields: Any) -> Callable[[Document, str], Document]:
    """An item with a text for the result."""

    def told(call: Document, text: str) -> Document:
        return {"type": kind, "call_id": id_of(call), **_caller(call), **fields, "output": text}

    return told


def _caller(call: Document) -> Document:
    """A call out of a program goes back to it."""
    return {"caller": call["caller"]} if isinstance(call.get("caller"), dict) else {}


def _local_shell(call: Document, text: str) -> Document:
    return {"type": "local_shell_call_output", "id": id_of(call), "output": text}


def _shell(call: Document, text: str) -> Document:
    """The commands have not been run by whoever tells this, so they have not gone well either."""
    said = {"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}
    item = {"type": "shell_call_output", "call_id": id_of(call), **_caller(call), "output": [said]}
    most = mapping(call.get("action")).get("max_output_length")
    return item if most is None else item | {"max_output_length": most}


def _screen(call: Document, text: str) -> Document:
    """A picture has to come back, and every safety check has to be acknowledged: nothing was done in spite of it."""
    shot = {"type": "computer_screenshot", "image_url": _BLANK}
    item = {"type": "computer_call_output", "call_id": id_of(call), "output": shot}
    checks = objects(call.get("pending_safety_checks"))
    return item | {"acknowledged_safety_checks": checks} if checks else item


def _nothing_found(call: Document, text: str) -> Document:
    return {"type": "tool_search_output", "call_id": id_of(call), "execution": "client", "tools": []}


def _refused(call: Document, text: str) -> Document:
    request = {"type": "mcp_approval_response", "approval_request_id": id_of(call)}
    return {**request, "approve": False, "reason": text}


def _blank() -> str:
    """A PNG of one white point (https://www.w3.org/TR/png/): its head, its one line and its end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    grey = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    line = zlib.compress(b"\x00\xff")
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", grey) + chunk(b"IDAT", line) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(picture).decode()


_BLANK: Final = _blank()

CALLS: Final = {
    "function_call": CallKind(_at("arguments"), _output("function_call_output")),
    "custom_tool_call": CallKind(_at("input"), _output("custom_tool_call_output"), free=True),
    "local_shell_call": CallKind(_at("action", "{}"), _local_shell, "local_shell"),
    "shell_call": CallKind(_at("action", "{}"), _shell, "shell"),
    "apply_patch_call": CallKind(
        _at("operation", "{}"), _output("apply_patch_call_output", status="failed"), "apply_patch"
    ),
    "computer_call": CallKind(_actions, _screen, "computer", apart=True),
    "tool_search_call": CallKind(_at("arguments", "{}"), _nothing_found, "tool_search", apart=True),
    "mcp_approval_request": CallKind(_at("arguments", "{}"), _refused, id="id", hosted=True),
}
RESULTS: Final = frozenset(
    (
        *("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output"),
        *("apply_patch_call_output", "computer_call_output", "tool_search_output"),
        "mcp_approval_response",
    )
)


def is_result(item: Document) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in RESULTS
