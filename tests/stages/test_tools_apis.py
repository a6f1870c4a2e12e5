"""Rules about tool calls in APIs other than chat completions: held whole, and in streams that pass."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from sidecar.core.chain import Chain, Run
from sidecar.core.decision import Finish
from sidecar.core.exchange import Exchange, Request
from sidecar.stages import build
from sidecar.stages.scrub import ScrubConfig
from sidecar.stages.tools import ToolsConfig
from sidecar.wire import jsondoc, messages, ndjson, ollama, responses, sse
from sidecar.wire.stream import SSE, Framing, ReplyStream, edit_reply

from .tools_talk import Model

Document = dict[str, Any]
ARGUED = [{"path": "$.cmd", "pattern": "rm "}]
RULE = {"name": "no-shell", "tool": "shell", "arguments": ARGUED, "decision": "deny", "reason": "not that"}
DENIED = "The call of shell was denied: not that."
SCHEMA = {"type": "object"}


class Api:
    """How one API says it all. `stream` makes the frames of a whole reply."""

    def __init__(self, wire: Any, request: Document, framing: Framing = SSE) -> None:
        self.wire, self.request, self.framing = wire, request, framing

    def run(self, model: Model | None = None, **config: Any) -> tuple[Run, Document]:
        document = jsondoc.decode(jsondoc.encode(self.request))
        tools = ToolsConfig.model_validate_json(json.dumps({"rules": [RULE], **config}))
        policy = Chain.of(build([], ScrubConfig(), tools=tools))
        run = policy.open(Exchange("x", self.wire.NAME), None if model is None else lambda chain, exchange, run: model)
        asyncio.run(run.request(Request(document, self.wire.request_slots(document))))
        return run, document

    def held(self, *replies: Document, **config: Any) -> tuple[Document, Model]:
        model = Model(*replies)
        run, _ = self.run(model, **config)
        assert run.answered is not None
        return run.answered.document or run.answered.heard.document or {}, model

    def passed(self, frames: Iterable[Document]) -> tuple[bytes, Run]:
        run, _ = self.run(stream="pass")
        stream, out = ReplyStream(self.wire, run, self.framing), b""
        for frame in frames:
            data = self.framing.render(jsondoc.encode(frame), self.wire.event_of(frame))
            for cut in self.framing.cutter().feed(data):
                out += stream.feed([cut])
            if stream.stopped:
                break
        return out + stream.finish() + stream.ending(), run


MESSAGES = Api(
    messages,
    {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": "do it"}],
        "tools": [{"name": "shell", "input_schema": SCHEMA}, {"name": "read", "input_schema": SCHEMA}],
    },
)
RESPONSES = Api(
    responses,
    {
        "model": "m",
        "stream": True,
        "input": "do it",
        "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("shell", "read")],
    },
)
OLLAMA = Api(
    ollama.CHAT,
    {
        "model": "m",
        "messages": [{"role": "user", "content": "do it"}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("shell", "read")],
    },
    ndjson.NDJSON,
)


def messages_reply(*calls: tuple[str, Mapping[str, Any]], text: str = "Hm.") -> Document:
    used = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": dict(arguments)}
        for number, (name, arguments) in enumerate(calls)
    ]
    content = [{"type": "text", "text": text}, *used]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    ending = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return {**head, **ending, "usage": {"input_tokens": 1, "output_tokens": 1}}


def function_call(at: int, name: str, arguments: str, status: str = "completed") -> Document:
    """The provider writes a call's arguments before its name."""
    head = {"id": f"fc_{at}", "type": "function_call", "status": status}
    return {**head, "arguments": arguments, "call_id": f"call_{at}", "name": name}


def responses_reply(*calls: tuple[str, Mapping[str, Any]], text: str = "Hm.") -> Document:
    used = [function_call(at, name, json.dumps(arguments)) for at, (name, arguments) in enumerate(calls)]
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [message, *used]}


def ollama_reply(*calls: tuple[str, Mapping[str, Any]], text: str = "Hm.") -> Document:
    used = [{"function": {"name": name, "arguments": dict(arguments)}} for name, arguments in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": used} if used else {})}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True, "done_reason": "stop"}


EACH = pytest.mark.parametrize(
    ("api", "reply"),
    [(MESSAGES, messages_reply), (RESPONSES, responses_reply), (OLLAMA, ollama_reply)],
    ids=["messages", "responses", "ollama"],
)
BAD, FINE = ("shell", {"cmd": "rm -r"}), ("shell", {"cmd": "ls"})
READ: tuple[str, dict[str, Any]] = ("read", {})


def view(api: Api, reply: Document) -> tuple[str, list[str]]:
    from sidecar.wire.views import VIEWS

    replied = VIEWS[api.wire.NAME].replied(reply)
    return "".join(replied.texts.values()), [each.name for each in replied.calls]


@EACH
def test_held_and_let_go(api: Api, reply: Any) -> None:
    got, model = api.held(reply(FINE, READ))
    assert view(api, got) == ("Hm.", ["shell", "read"])
    assert len(model.asked) == 1


@EACH
def test_held_while_the_others_go_on(api: Api, reply: Any) -> None:
    got, _ = api.held(reply(BAD, READ))
    text, calls = view(api, got)
    assert calls == ["read"]
    assert text.startswith("Hm.")
    assert text.endswith(DENIED)


@EACH
def test_held_and_asked_on(api: Api, reply: Any) -> None:
    got, model = api.held(reply(BAD), reply(text="I cannot."))
    assert view(api, got) == ("I cannot.", [])
    assert "denied: not that" in json.dumps(model.asked[1])
    assert "rm -r" in json.dumps(model.asked[1])


@EACH
def test_a_whole_reply_that_nobody_holds(api: Api, reply: Any) -> None:
    run, _ = api.run(stream="pass")
    document = reply(FINE, READ)
    assert edit_reply(api.wire, run, document) == (False, None)
    run, _ = api.run(stream="pass")
    _, stop = edit_reply(api.wire, run, reply(READ, BAD))
    assert isinstance(stop, Finish)
    assert stop.message == f"Hm.\n\n{DENIED}"


def messages_events(*blocks: tuple[str, list[str]], text: str = "Hm.") -> list[Document]:
    head: Document = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    events: list[Document] = [
        {"type": "message_start", "message": {**head, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
    ]
    for at, (name, pieces) in enumerate(blocks, 1):
        block = {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        for piece in pieces:
            delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}})
    return [*events, {"type": "message_stop"}]


def test_messages_in_a_stream() -> None:
    fine = messages_events(("shell", ['{"cmd": ', '"ls"}']), ("read", []))
    out, _ = MESSAGES.passed(fine)
    assert out == b"".join(sse.render(jsondoc.encode(each), messages.event_of(each)) for each in fine)
    out, run = MESSAGES.passed(messages_events(("read", []), ("shell", ['{"cmd": "r', 'm -r"}']), ("read", [])))
    assert isinstance(run.stopped, Finish)
    said = [json.loads(frame.data) for frame in sse.Events().feed(out) if frame.data]
    blocks = [each["content_block"] for each in said if each["type"] == "content_block_start"]
    assert [block.get("name", block["type"]) for block in blocks] == ["text", "read", "text"]
    assert [each["type"] for each in said[-2:]] == ["message_delta", "message_stop"]
    assert said[-2]["delta"]["stop_reason"] == "end_turn"
    assert DENIED.encode() in out
    assert b"rm" not in out.replace(DENIED.encode(), b"")


def responses_events(*calls: tuple[str, list[str]]) -> list[Document]:
    head: Document = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    events: list[Document] = [{"type": "response.created", "response": head}]
    output = []
    for at, (name, pieces) in enumerate(calls):
        item = function_call(at, name, "", "in_progress")
        place = {"item_id": item["id"], "output_index": at}
        events.append({"type": "response.output_item.added", "output_index": at, "item": item})
        events += [{"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces]
        whole = "".join(pieces)
        events.append({"type": "response.function_call_arguments.done", **place, "arguments": whole})
        done = {**item, "arguments": whole, "status": "completed"}
        events.append({"type": "response.output_item.done", "output_index": at, "item": done})
        output.append(done)
    events.append({"type": "response.completed", "response": {**head, "status": "completed", "output": output}})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def test_responses_in_a_stream() -> None:
    fine = responses_events(("shell", ['{"cmd": ', '"ls"}']), ("read", ["{}"]), ("read", []))
    out, _ = RESPONSES.passed(fine)
    assert out == b"".join(sse.render(jsondoc.encode(each), responses.event_of(each)) for each in fine)
    out, run = RESPONSES.passed(responses_events(("read", ["{}"]), ("shell", ['{"cmd": "r', 'm -r"}'])))
    assert isinstance(run.stopped, Finish)
    said = [json.loads(frame.data) for frame in sse.Events().feed(out) if frame.data]
    assert said[-1]["type"] == "response.completed"
    assert [item.get("name", item["type"]) for item in said[-1]["response"]["output"]] == ["read", "message"]
    assert b"rm" not in out.replace(DENIED.encode(), b"")
    numbers = [each["sequence_number"] for each in said]
    assert numbers == sorted(set(numbers))


def test_ollama_in_a_stream() -> None:
    def lines(arguments: Mapping[str, Any]) -> list[Document]:
        return [{**ollama_reply(), "done": False}, ollama_reply(("shell", arguments), text="")]

    fine = lines({"cmd": "ls"})
    out, _ = OLLAMA.passed(fine)
    assert out == b"".join(ndjson.render(jsondoc.encode(each)) for each in fine)
    out, run = OLLAMA.passed(lines({"cmd": "rm -r"}))
    assert isinstance(run.stopped, Finish)
    last = json.loads(out.splitlines()[-1])
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert b"rm" not in out.replace(DENIED.encode(), b"")


def test_a_reply_that_the_provider_has_kept() -> None:
    tools = ToolsConfig.model_validate_json(json.dumps({"rules": [RULE]}))
    run = Chain.of(build([], ScrubConfig(), tools=tools)).open(Exchange("x", "responses"))
    asyncio.run(run.request(Request(None, [])))
    _, stop = edit_reply(responses, run, responses_reply(BAD))
    assert isinstance(stop, Finish)


def test_a_call_without_a_name_is_held_though_streams_pass() -> None:
    api = Api(responses, {**RESPONSES.request, "tools": [{"type": "shell"}]})
    item = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["rm -r"]},
    }
    reply = {**responses_reply(), "output": [item]}
    rule = {"tool": "shell", "arguments": [{"path": "$.commands[*]", "pattern": "rm "}], "decision": "deny"}
    got, _ = api.held(reply, rules=[rule], stream="pass", on_deny="drop")
    assert view(api, got)[1] == []
    run, _ = RESPONSES.run(Model(), stream="pass")
    assert run.answered is None
