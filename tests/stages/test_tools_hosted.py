"""Rules about calls of tools that the provider runs: those it asks to be approved, and those that it has run."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sidecar.core.chain import Chain, Run
from sidecar.core.decision import Finish
from sidecar.core.exchange import Exchange, Request
from sidecar.stages import build
from sidecar.stages.scrub import ScrubConfig
from sidecar.stages.structured import StructuredConfig
from sidecar.stages.tools import ToolsConfig
from sidecar.stores.runs import Runs
from sidecar.wire import jsondoc, messages, responses
from sidecar.wire.stream import SSE, ReplyStream, edit_reply
from sidecar.wire.views import VIEWS

from .tools_talk import Model

Document = dict[str, Any]

SCHEMA: Document = {"type": "object"}
MCP_SERVER: Document = {"type": "mcp", "server_label": "s", "server_url": "https://a/mcp"}
NO_SEND = {"name": "no-send", "tool": "send", "decision": "deny", "reason": "not that"}
DENIED = "The call of send was denied: not that."
AFTER = {"name": "no-mail", "tool": "mail", "after": "vault_*", "decision": "deny", "reason": "secrets were read"}
ROW = {"name": "row", "tool": "*", "more_than_in_a_row": 2, "decision": "deny", "reason": "enough"}


class Told:
    """How an API says what the tests are about."""

    def __init__(self, wire: Any) -> None:
        self.wire, self.name = wire, wire.NAME

    def request(self, *history: Document, **fields: Any) -> Document:
        if self.name == "responses":
            tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("mail", "read")]
            return {"model": "m", "input": [{"role": "user", "content": "do it"}, *history], "tools": tools, **fields}
        tools = [{"name": name, "input_schema": SCHEMA} for name in ("mail", "read")]
        turns = [{"role": "user", "content": "do it"}, *({"role": "assistant", "content": [each]} for each in history)]
        return {"model": "m", "max_tokens": 9, "messages": turns, "tools": tools, **fields}

    def reply(self, *items: Document) -> Document:
        if self.name == "responses":
            return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [*items]}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [*items]}
        return {**head, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}

    def call(self, name: str, id: str = "") -> Document:
        id = id or f"c_{name}"
        if self.name == "responses":
            return {"type": "function_call", "id": f"f{id}", "call_id": id, "name": name, "arguments": "{}"}
        return {"type": "tool_use", "id": id, "name": name, "input": {}}

    def ran(self, name: str, id: str = "h_1") -> Document:
        if self.name == "responses":
            return {"type": "mcp_call", "id": id, "server_label": "s", "name": name, "arguments": "{}", "output": "x"}
        return {"type": "mcp_tool_use", "id": id, "server_name": "s", "name": name, "input": {}}


RESPONSES, MESSAGES = Told(responses), Told(messages)
EACH = pytest.mark.parametrize("told", [RESPONSES, MESSAGES], ids=["responses", "messages"])


def approval(name: str = "send", arguments: str = "{}", id: str = "mcpr_1") -> Document:
    head = {"type": "mcp_approval_request", "id": id, "server_label": "s"}
    return {**head, "name": name, "arguments": arguments}


class Talk:
    """Exchanges of one run."""

    def __init__(self, told: Told, *rules: Mapping[str, Any], structured: bool = False, **config: Any) -> None:
        self.told, self.runs = told, Runs()
        tools = ToolsConfig.model_validate_json(json.dumps({"rules": rules, **config}))
        form = StructuredConfig() if structured else None
        self.chain = Chain.of(build([], ScrubConfig(), tools=tools, structured=form))

    def open(self, document: Document, model: Model | None = None) -> Run:
        exchange = Exchange("x", self.told.name, runs=self.runs)
        run = self.chain.open(exchange, None if model is None else lambda chain, exchange, run: model)
        document = jsondoc.decode(jsondoc.encode(document))
        asyncio.run(run.request(Request(document, self.told.wire.request_slots(document))))
        return run

    def hold(self, request: Document, *replies: Document) -> tuple[list[str], Model]:
        """The calls that the client gets."""
        model = Model(*replies)
        run = self.open(request, model)
        assert run.answered is not None
        reply = run.answered.document or run.answered.heard.document or {}
        return names(self.told, reply), model

    def hear(self, request: Document, reply: Document) -> Run:
        """A whole reply that is not held."""
        run = self.open(request)
        edit_reply(self.told.wire, run, jsondoc.decode(jsondoc.encode(reply)))
        return run

    def stream(self, request: Document, reply: Document) -> Run:
        run = self.open({**request, "stream": True})
        stream = ReplyStream(self.told.wire, run, SSE)
        for each in VIEWS[self.told.name].frames(reply):
            data = SSE.render(jsondoc.encode(each), self.told.wire.event_of(each))
            stream.feed(SSE.cutter().feed(data))
        return run


def names(told: Told, reply: Document) -> list[str]:
    return [call.name for call in VIEWS[told.name].replied(reply).calls]


def findings(run: Run) -> list[tuple[str, str]]:
    return [(found.rule, found.name) for verdict in run.verdicts for found in verdict.findings]


# --- a call that waits for an approval ---


def asks(*tools: Document, **fields: Any) -> Document:
    return {"model": "m", "input": "do it", "tools": [*tools], **fields}


def test_an_approval_that_is_denied_is_refused_in_the_clients_place() -> None:
    reply = RESPONSES.reply(approval(arguments='{"to": "x"}'))
    calls, model = Talk(RESPONSES, NO_SEND).hold(asks(MCP_SERVER), reply, RESPONSES.reply())
    assert calls == []
    *_, request, answer = model.asked[1]["input"]
    assert request == approval(arguments='{"to": "x"}')
    refused = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False}
    assert answer == {**refused, "reason": "denied: not that"}


def test_other_calls_go_on() -> None:
    reply = RESPONSES.reply(approval(), RESPONSES.call("read"), approval("find", id="mcpr_2"))
    assert Talk(RESPONSES, NO_SEND).hold(asks(MCP_SERVER), reply)[0] == ["read", "find"]


def test_arguments_of_an_approval_decide() -> None:
    rule = {**NO_SEND, "arguments": [{"path": "$.to", "pattern": "^evil"}]}
    talk = Talk(RESPONSES, rule, on_deny="drop")
    for arguments, calls in (('{"to": "evil"}', []), ('{"to": "good"}', ["send"]), ("{", [])):
        assert talk.hold(asks(MCP_SERVER), RESPONSES.reply(approval(arguments=arguments)))[0] == calls


@pytest.mark.parametrize(
    ("tool", "fields", "rule", "held"),
    [
        (MCP_SERVER, {}, NO_SEND, True),
        ({**MCP_SERVER, "require_approval": {"always": {"tool_names": ["send"]}}}, {}, NO_SEND, True),
        ({**MCP_SERVER, "require_approval": "never"}, {}, NO_SEND, False),
        (MCP_SERVER, {"tool_choice": "none"}, NO_SEND, False),
        (MCP_SERVER, {}, {**NO_SEND, "decision": "allow"}, False),
        ({"type": "web_search"}, {}, NO_SEND, False),
    ],
)
def test_which_replies_are_held_for_an_approval(tool: Document, fields: Document, rule: Document, held: bool) -> None:
    run = Talk(RESPONSES, rule).open(asks(tool, **fields), Model(RESPONSES.reply()))
    assert (run.answered is not None) is held


@pytest.mark.parametrize("on_invalid", ["deny", "repair", "pass"])
def test_a_tool_of_a_server_is_none_that_the_request_lacks(on_invalid: str) -> None:
    talk = Talk(RESPONSES, NO_SEND, on_invalid=on_invalid)
    calls, model = talk.hold(asks(MCP_SERVER), RESPONSES.reply(approval("find")))
    assert (calls, len(model.asked)) == (["find"], 1)
    for say in (talk.hear, talk.stream):
        run = say(asks(MCP_SERVER), RESPONSES.reply(approval("find"), RESPONSES.ran("look", "h_2")))
        assert (run.stopped, findings(run)) == (None, [])
        run = say(RESPONSES.request(), RESPONSES.reply(RESPONSES.call("gone")))
        assert findings(run) == [("on_invalid", "pass" if on_invalid == "pass" else "deny")]


def test_an_approval_in_a_reply_that_is_not_held_ends_it() -> None:
    talk = Talk(RESPONSES, NO_SEND, stream="pass")
    for say in (talk.hear, talk.stream):
        run = say(asks(MCP_SERVER), RESPONSES.reply(approval()))
        assert isinstance(run.stopped, Finish)
        assert run.stopped.message == DENIED


@pytest.mark.parametrize("way", ["hold", "hear", "stream"])
def test_an_approved_call_counts_once(way: str) -> None:
    """When it is asked for, and not once more when the provider has run it."""
    talk = Talk(RESPONSES, ROW, on_deny="drop")
    assert getattr(talk, way)(asks(MCP_SERVER), RESPONSES.reply(approval()))
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    went_on = asks(MCP_SERVER, input=[answer], previous_response_id="r")
    ran = RESPONSES.ran("send") | {"approval_request_id": "mcpr_1"}
    assert talk.hold(went_on, RESPONSES.reply(ran, approval(id="mcpr_2"), approval(id="mcpr_3")))[0] == ["send"]


@pytest.mark.parametrize("way", ["hear", "stream"])
def test_an_approved_call_is_not_judged_once_more(way: str) -> None:
    talk = Talk(RESPONSES, {"tool": "send", "after": "send", "decision": "deny"}, stream="pass")
    say = getattr(talk, way)
    assert say(asks(MCP_SERVER), RESPONSES.reply(approval())).stopped is None
    ran = RESPONSES.ran("send") | {"approval_request_id": "mcpr_1"}
    assert say(asks(MCP_SERVER, input="more"), RESPONSES.reply(ran)).stopped is None
    assert isinstance(say(asks(MCP_SERVER, input="more!"), RESPONSES.reply(RESPONSES.ran("send"))).stopped, Finish)


def test_a_history_with_an_approved_call_counts_it_once() -> None:
    ran = RESPONSES.ran("send") | {"approval_request_id": "mcpr_1"}
    document = RESPONSES.request(approval(), ran)
    reply = RESPONSES.reply(RESPONSES.call("read"), RESPONSES.call("mail"))
    assert Talk(RESPONSES, ROW, on_deny="drop").hold(document, reply)[0] == ["read"]


def test_a_reply_that_waits_for_an_approval_is_not_asked_again_for_its_form() -> None:
    form = {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA}}
    talk = Talk(RESPONSES, structured=True)
    calls, model = talk.hold(asks(MCP_SERVER, text=form), RESPONSES.reply(approval()))
    assert (calls, len(model.asked)) == (["send"], 1)


# --- calls that the provider has run ---


@EACH
def test_after_a_call_that_the_provider_ran_in_the_history(told: Told) -> None:
    talk = Talk(told, AFTER, on_deny="drop")
    assert talk.hold(told.request(told.ran("look")), told.reply(told.call("mail")))[0] == ["mail"]
    assert talk.hold(told.request(told.ran("vault_get", "h_2")), told.reply(told.call("mail")))[0] == []


@EACH
@pytest.mark.parametrize("first", [True, False])
def test_after_a_call_that_the_provider_ran_in_the_same_reply(told: Told, first: bool) -> None:
    """It has run when the client gets the reply, wherever it stands there."""
    items = [told.ran("vault_get"), told.call("mail"), told.call("read")]
    reply = told.reply(*(items if first else reversed(items)))
    assert Talk(told, AFTER, on_deny="drop").hold(told.request(), reply)[0] == ["read"]


@EACH
@pytest.mark.parametrize("way", ["hold", "hear", "stream"])
def test_what_the_provider_ran_is_remembered(told: Told, way: str) -> None:
    talk = Talk(told, AFTER, on_deny="drop")
    getattr(talk, way)(told.request(), told.reply(told.ran("vault_get"), told.call("read")))
    assert talk.hold(told.request(n=1), told.reply(told.call("mail"), told.call("read", "c2")))[0] == ["read"]


@EACH
@pytest.mark.parametrize("way", ["hold", "hear", "stream"])
def test_what_is_remembered_is_the_same_however_the_reply_came(told: Told, way: str) -> None:
    talk = Talk(told, ROW, on_deny="drop")
    getattr(talk, way)(told.request(), told.reply(told.ran("look"), told.ran("look", "h_2")))
    remembered = talk.runs.run(("default/", ""))
    assert list(remembered.recent) == [("h_1", "look"), ("h_2", "look")]


def test_what_the_provider_ran_before_a_reply_that_was_asked_on_counts() -> None:
    told = RESPONSES
    talk = Talk(told, NO_SEND, AFTER)
    first = told.reply(told.ran("vault_get"), approval())
    second = told.reply(told.call("mail"))
    calls, model = talk.hold(told.request(tools=[MCP_SERVER]), first, second, told.reply())
    assert calls == []
    assert model.asked[2]["input"][-1]["output"] == "denied: secrets were read"


def test_a_call_that_has_run_is_remembered_though_the_reply_was_ended() -> None:
    rule = {"tool": "vault_*", "decision": "deny"}
    for told in (RESPONSES, MESSAGES):
        talk = Talk(told, rule, AFTER, on_deny="drop")
        run = talk.stream(told.request(), told.reply(told.ran("vault_get")))
        assert isinstance(run.stopped, Finish)
        assert talk.hold(told.request(n=1), told.reply(told.call("mail")))[0] == []


def test_a_call_that_has_run_does_not_come_before_itself() -> None:
    rule = {"tool": "vault_*", "after": "vault_*", "decision": "deny"}
    for told in (RESPONSES, MESSAGES):
        for way in ("hear", "stream"):
            talk = Talk(told, rule)
            assert getattr(talk, way)(told.request(), told.reply(told.ran("vault_get"))).stopped is None
            found = getattr(talk, way)(told.request(n=1), told.reply(told.ran("vault_get", "h_2")))
            assert isinstance(found.stopped, Finish)


@EACH
@pytest.mark.parametrize("way", ["hear", "stream"])
def test_a_server_is_no_tool(told: Told, way: str) -> None:
    talk = Talk(told, {"tool": "look", "decision": "allow"}, default="deny")
    assert getattr(talk, way)(told.request(), told.reply(told.ran("look"))).stopped is None
    assert isinstance(getattr(talk, way)(told.request(), told.reply(told.ran("gone"))).stopped, Finish)


NAMELESS: Sequence[tuple[Document, str]] = [
    ({"type": "web_search_call", "id": "x", "status": "completed", "action": {"type": "search"}}, "web_search"),
    ({"type": "file_search_call", "id": "x", "queries": ["q"], "results": None}, "file_search"),
    ({"type": "code_interpreter_call", "id": "x", "code": "1", "outputs": []}, "code_interpreter"),
    ({"type": "image_generation_call", "id": "x", "result": None}, "image_generation"),
    (
        {
            "type": "shell_call",
            "id": "x",
            "call_id": "x",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "c"},
        },
        "shell",
    ),
]


@pytest.mark.parametrize(("item", "name"), NAMELESS, ids=[name for _, name in NAMELESS])
@pytest.mark.parametrize("way", ["hold", "hear", "stream"])
def test_calls_without_a_name_count_under_that_of_their_tool(item: Document, name: str, way: str) -> None:
    told = RESPONSES
    talk = Talk(told, {**AFTER, "after": name}, on_deny="drop")
    getattr(talk, way)(told.request(), told.reply(item))
    assert list(talk.runs.run(("default/", "")).recent) == [("x", name)]
    assert talk.hold(told.request(n=1), told.reply(told.call("mail")))[0] == []


def test_a_call_without_a_name_comes_before_those_that_follow_in_a_stream() -> None:
    told = RESPONSES
    item, name = NAMELESS[0]
    talk = Talk(told, {**AFTER, "after": name}, stream="pass")
    run = talk.stream(told.request(), told.reply(item, told.call("mail")))
    assert isinstance(run.stopped, Finish)
    row = Talk(told, ROW, stream="pass")
    run = row.stream(told.request(), told.reply(item, item | {"id": "y"}, told.call("read")))
    assert isinstance(run.stopped, Finish)


def test_an_object_that_nobody_can_read_may_ask_for_an_approval() -> None:
    run = Talk(RESPONSES, NO_SEND).open(asks(MCP_SERVER))
    stream = ReplyStream(responses, run, SSE)
    stream.feed(SSE.cutter().feed(b'data: {"type": "response.completed", "n": NaN}\n\n'))
    assert stream.stopped is not None
