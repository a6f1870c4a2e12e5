"""Calls of tools that the provider runs itself, as replies and the frames of their streams tell them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.events import Hosted
from sidecar.wire.apis import APIS
from sidecar.wire.views import VIEWS

from .fuzz import examples
from .views.anything import OBJECTS, mutated

Document = dict[str, Any]

SEARCH: Document = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
REMOTE: Document = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "find", "arguments": "{}"}
ASKS: Document = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "s",
    "name": "send",
    "arguments": "{}",
}
RESPONSE: Document = {"id": "r", "object": "response", "status": "completed", "output": [7, SEARCH, REMOTE, ASKS]}
ITEMS = [
    Hosted(1, "ws_1", "web_search", named=False),
    Hosted(2, "mcp_1", "find"),
    Hosted(3, "mcpr_1", "send", asks=True),
]

SERVER: Document = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
CLIENT: Document = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
MESSAGE: Document = {"id": "m", "type": "message", "content": [CLIENT, SERVER], "stop_reason": "tool_use"}
BLOCKS = [Hosted(1, "srvtoolu_1", "web_search")]


WIRES = {wire.NAME: wire for wire in APIS}


def told(api: str, document: Document) -> list[Hosted]:
    return WIRES[api].hosted(document)


def test_a_whole_reply() -> None:
    assert told("responses", RESPONSE) == ITEMS
    assert told("messages", MESSAGE) == BLOCKS
    assert told("chat", RESPONSE) == told("messages", RESPONSE) == told("responses", MESSAGE) == []


def test_a_stream_tells_each_with_its_place() -> None:
    document = {**RESPONSE, "output": [SEARCH, REMOTE, ASKS]}
    found = [each for frame in VIEWS["responses"].frames(document) for each in told("responses", frame)]
    assert list(dict.fromkeys(found)) == [each._replace(choice=at) for at, each in enumerate(ITEMS)]
    found = [each for frame in VIEWS["messages"].frames(MESSAGE) for each in told("messages", frame)]
    assert found == BLOCKS


@examples(100)
@given(st.sampled_from(["responses", "messages"]), OBJECTS | mutated([RESPONSE, MESSAGE, {"response": RESPONSE}]))
def test_any_document(api: str, document: Document) -> None:
    assert all(call.name for call in told(api, document))
