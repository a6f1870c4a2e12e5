"""The texts of a request without definitions of tools: for chains in which nobody looks at these."""

from typing import Any

import pytest

from sidecar.core.surface import Kind
from sidecar.stages import build
from sidecar.stages.guardrails import GuardrailConfig
from sidecar.stages.scrub import ScrubConfig
from sidecar.wire import chat, messages, messages_count, responses
from sidecar.wire.apis import APIS

TOLD = {
    "name": "find",
    "description": "finds",
    "parameters": {"type": "object", "title": "t"},
    "odd": ["x", {"y": "z"}],
}
REQUESTS: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "m",
        "tools": [{"type": "function", "function": TOLD}, "odd"],
        "messages": [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c", "content": "found"}],
        "functions": [TOLD],
        "user": "ann",
        "unknown": {"tools": ["a text"]},
    },
    "responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "additional_tools", "tools": [TOLD]},
        ],
        "tools": [{"type": "function", **TOLD}, {"type": "mcp", "server_label": "s", "headers": {"a": "b"}}],
        "instructions": "be good",
        "unknown": "a text",
    },
    "messages": {
        "model": "m",
        "system": "be good",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [TOLD],
        "mcp_servers": [{"name": "s", "url": "u"}],
        "unknown": ["a text"],
    },
}
WIRES = {"chat": chat, "responses": responses, "messages": messages}


@pytest.mark.parametrize("name", WIRES)
def test_only_definitions_are_left_out(name: str) -> None:
    wire, request = WIRES[name], REQUESTS[name]
    every = [(slot.surface, slot.text) for slot in wire.request_slots(request)]
    some = [(slot.surface, slot.text) for slot in wire.but_tools(request)]
    without = {field: value for field, value in request.items() if field not in ("tools", "functions")}
    assert some == [(slot.surface, slot.text) for slot in wire.request_slots(without)]
    gone = list(every)
    for each in some:
        gone.remove(each)
    assert gone
    assert {surface.kind for surface, _ in gone} == {Kind.TOOLS}


def test_counting_tokens_is_as_messages() -> None:
    assert messages_count.but_tools is messages.but_tools


@pytest.mark.parametrize("wire", APIS, ids=lambda wire: wire.NAME)
def test_every_api_has_it(wire: Any) -> None:
    request = {"input": "a text", "prompt": "a text"}
    assert [s.text for s in wire.but_tools(request)] == [s.text for s in wire.request_slots(request)]


@pytest.mark.parametrize(
    ("rail", "reads"),
    [
        ({}, False),
        ({"on": ["user", "tools"]}, True),
        ({"on": ["user"]}, False),
        ({"on": ["tools"], "mode": "shadow"}, True),
        ({"action": "pseudonymize"}, True),
    ],
)
def test_who_looks_at_them(rail: dict[str, Any], reads: bool) -> None:
    config = GuardrailConfig.model_validate({"name": "r", "detect": ["email"], **rail})
    steps = build([config], ScrubConfig())
    assert any(step.reads_tools for step in steps) == reads
