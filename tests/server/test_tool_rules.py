"""Rules about tools through the server: older forms of calls, odd replies, other stages and targets, real clients."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from sidecar.wire import jsondoc, responses
from sidecar.wire.sse import render
from sidecar.wire.views import VIEWS

from .mishaps import refusal
from .talk import Answer
from .test_guarded import FINISH, answers, stream, whole
from .under import CHAT, Start, Talk
from .upstream import FIN, Upstream, reply

MODES = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
NO_SHELL = '{name: no-shell, tool: "shell*", decision: deny, reason: "no shell here"}'
DENIED = "The call of shell was denied: no shell here."
OBJECT = {"type": "object", "properties": {"cmd": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": OBJECT}} for name in ("shell", "read")]


def rules(*listed: str, **config: str) -> str:
    more = "".join(f", {name}: {value}" for name, value in config.items())
    return f"tools: {{rules: [{', '.join(listed)}]{more}}}\n"


# --- chat completions ---


def call(name: str, arguments: str = "{}", id: str = "") -> dict[str, Any]:
    return {"id": id or f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def says(message: dict[str, Any], reason: str | None = "tool_calls", streamed: bool = False, **more: Any) -> Any:
    """A reply with this message, whole or as one delta and an end."""
    message = {"role": "assistant", "content": None, **message}
    if not streamed:
        body = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message}], **more}
        body["choices"][0]["finish_reason"] = reason
        return answers(json.dumps(body).encode())
    calls = [{"index": at, **each} for at, each in enumerate(message.get("tool_calls", ()))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    return stream(*(sse({"index": 0, "delta": d, "finish_reason": end}) for d, end in ((delta, None), ({}, reason))))


def sse(choice: dict[str, Any]) -> bytes:
    document = {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(document).encode()


def message_of(answer: Answer, streamed: bool) -> dict[str, Any]:
    """What an agent makes of a reply: its text and the names of its calls in any form."""
    if not streamed:
        found = json.loads(answer.body)["choices"][0]["message"]
        return {"content": found.get("content"), "calls": _names(found)}
    documents = [json.loads(line[6:]) for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    deltas = [choice["delta"] for document in documents for choice in document.get("choices", ())]
    content = "".join(delta.get("content") or "" for delta in deltas)
    return {"content": content or None, "calls": [name for delta in deltas for name in _names(delta)]}


def _names(message: dict[str, Any]) -> list[str]:
    entries = [each.get("function") or each.get("custom") for each in message.get("tool_calls") or ()]
    return [each["name"] for each in (*entries, message.get("function_call")) if each and each.get("name")]


@MODES
@pytest.mark.parametrize("held", [True, False], ids=["held", "watched"])
def test_functions_of_the_older_form(under: Start, upstream: Upstream, streamed: bool, held: bool) -> None:
    functions = [{"name": "shell", "parameters": OBJECT}, {"name": "read", "parameters": OBJECT}]
    said = says({"function_call": {"name": "shell", "arguments": '{"cmd": "ls"}'}}, "function_call", streamed)
    upstream.play(said, says({"content": "Then not."}, "stop", streamed))
    with under(more=rules(NO_SHELL, stream="buffer" if held else "pass")) as talk:
        answer = talk.ask(functions=functions, stream=streamed)
        asked_on = held or not streamed
        assert message_of(answer, streamed) == {"content": "Then not." if asked_on else DENIED, "calls": []}
        if asked_on:
            turn, result = talk.sent["messages"][-2:]
            assert turn["function_call"]["name"] == "shell"
            assert result == {"role": "function", "name": "shell", "content": "denied: no shell here"}


@MODES
def test_custom_tools_are_judged_by_their_text(under: Start, upstream: Upstream, streamed: bool) -> None:
    rule = '{tool: run, arguments: [{pattern: "rm "}], decision: deny, reason: "remove nothing"}'
    tools = [{"type": "custom", "custom": {"name": "run"}}]
    custom = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "rm -r /"}}
    upstream.play(says({"tool_calls": [custom]}, streamed=streamed), says({"content": "Sorry."}, "stop", streamed))
    with under(more=rules(rule)) as talk:
        answer = talk.ask(tools=tools, stream=streamed)
        assert message_of(answer, streamed) == {"content": "Sorry.", "calls": []}
        assert talk.sent["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "denied: remove nothing"}
        fine = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}}
        upstream.play(says({"tool_calls": [fine]}, streamed=streamed))
        assert message_of(talk.ask(tools=tools, stream=streamed), streamed)["calls"] == ["run"]


def test_a_condition_on_a_part_of_free_text_fails_closed(under: Start, upstream: Upstream) -> None:
    rule = '{tool: run, arguments: [{path: $.cmd, pattern: "rm "}], decision: deny}'
    custom = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": '{"cmd": "ls"}'}}
    upstream.play(says({"tool_calls": [custom]}))
    with under(more=rules(rule, on_deny="drop")) as talk:
        assert message_of(talk.ask(tools=[{"type": "custom", "custom": {"name": "run"}}]), False)["calls"] == []


# --- replies that cannot be held ---


@pytest.mark.parametrize("end", [None, "cut"], ids=["no reason", "closed"])
def test_a_stream_that_has_no_end_gives_no_denied_call(under: Start, upstream: Upstream, end: Any) -> None:
    """Some servers never say why a reply ended; some break off. Clients carry out what has come all the same."""
    delta = {"tool_calls": [{"index": 0, **call("shell")}, {"index": 1, **call("read")}]}
    frame = sse({"index": 0, "delta": delta, "finish_reason": None})
    upstream.play(stream(frame, end=(FIN,)) if end else stream(frame))
    with under(more=rules(NO_SHELL)) as talk:
        answer = talk.ask(tools=TOOLS, stream=True)
        assert "shell" not in message_of(answer, True)["calls"]
        assert b"call_shell" not in answer.body


def test_a_call_before_a_place_where_a_guardrail_ends_the_stream(under: Start, upstream: Upstream) -> None:
    delta = {"tool_calls": [{"index": 0, **call("shell")}]}
    frames = [
        sse({"index": 0, "delta": delta, "finish_reason": None}),
        sse({"index": 0, "delta": {"content": "an otter "}, "finish_reason": None}),
        sse({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
    ]
    upstream.play(stream(*frames))
    with under(FINISH % "", more=rules(NO_SHELL)) as talk:
        answer = talk.ask(tools=TOOLS, stream=True)
    assert message_of(answer, True)["calls"] == []
    assert b"call_shell" not in answer.body


@MODES
@pytest.mark.parametrize("offered", [True, False])
def test_a_reply_that_nobody_can_read_fails_closed(
    under: Start, upstream: Upstream, streamed: bool, offered: bool
) -> None:
    """NaN is no JSON, and some servers and clients know it all the same."""
    choice = {"index": 0, "message": {"tool_calls": [call("shell")]}, "delta": {"tool_calls": [call("shell")]}}
    odd = json.dumps({"id": "c", "choices": [{**choice, "finish_reason": "tool_calls"}], "odd": float("nan")}).encode()
    upstream.play(stream(b"data: %b\n\n" % odd) if streamed else answers(odd))
    with under(more=rules(NO_SHELL)) as talk:
        answer = talk.ask(stream=streamed, **({"tools": TOOLS} if offered else {}))
        decisions = talk.line().get("decisions")
    if offered:
        assert b"shell" not in answer.body
        assert json.loads(answer.body)["error"]["code"] == "guardrail_tripped"
        assert [each["rule"] for each in decisions] == ["tools"]
    else:
        assert odd in answer.body


def test_an_error_that_is_no_json_leaves_as_it_came(under: Start, upstream: Upstream) -> None:
    upstream.play(reply(b'{"error": oops', b"500 Oops", (b"content-type", b"application/json")))
    with under(more=rules(NO_SHELL)) as talk:
        answer = talk.ask(tools=TOOLS)
    assert (answer.status, answer.body) == (500, b'{"error": oops')


def test_a_stream_under_another_name_is_judged(under: Start, upstream: Upstream) -> None:
    delta = {"tool_calls": [{"index": 0, **call("shell")}]}
    body = sse({"index": 0, "delta": delta, "finish_reason": "tool_calls"}) + b"data: [DONE]\n\n"
    upstream.play(answers(body))
    with under(more=rules(NO_SHELL)) as talk:
        answer = talk.ask(tools=TOOLS, stream=True)
    assert b"call_shell" not in answer.body
    assert DENIED.encode() in answer.body


# --- through other stages and targets ---

FORM = {
    "type": "json_schema",
    "json_schema": {"name": "pet", "schema": {"type": "object", "required": ["pet"], "additionalProperties": True}},
}


@MODES
def test_what_is_asked_again_for_its_form_is_judged(under: Start, upstream: Upstream, streamed: bool) -> None:
    """Structured output stands outside: its repairs come through the rules like the first call."""
    upstream.play(
        says({"content": "no form"}, "stop", streamed),
        says({"tool_calls": [call("shell")]}, streamed=streamed),
        says({"content": '{"pet":"cat"}'}, "stop", streamed),
    )
    with under(more=rules(NO_SHELL) + "structured_output: {}\n") as talk:
        answer = talk.ask(tools=TOOLS, response_format=FORM, stream=streamed)
        assert message_of(answer, streamed) == {"content": '{"pet":"cat"}', "calls": []}
        assert talk.sent["messages"][-1]["content"] == "denied: no shell here"
        line = talk.line()
    assert {(each["rule"], each["action"]) for each in line["decisions"]} == {
        ("no-shell", "deny"),
        ("structured_output.repair", "repair"),
    }
    assert line["calls"] == 3


@MODES
def test_a_fallback_to_a_model_that_is_told_of_tools_as_text(
    upstream: Upstream, tmp_path: Path, pair: Callable[..., AbstractContextManager[Any]], streamed: bool
) -> None:
    text = '```tool_call\n{"tool": "shell", "arguments": {"cmd": "ls"}}\n```'
    with pair("{fallback: {cooldown: 1s}}", rules(NO_SHELL), about_b=", tools: prompt") as talk:
        talk.a.play(refusal(b"500 Oops"))
        talk.b.play(says({"content": text}, "stop", streamed), says({"content": "Then not."}, "stop", streamed))
        answer = talk.ask(streamed, tools=TOOLS)
        assert message_of(answer, streamed) == {"content": "Then not.", "calls": []}
        assert "denied: no shell here" in json.dumps(json.loads(talk.b.requests[-1].body)["messages"])


def test_the_rules_see_what_guardrails_leave_of_a_call(under: Start, upstream: Upstream) -> None:
    rule = '{tool: read, arguments: [{path: $.cmd, pattern: "REDACTED"}], decision: deny, reason: "a secret"}'
    rail = "{name: s, patterns: [{name: key, regex: 'K\\d{6}'}]}"
    upstream.play(says({"tool_calls": [call("read", '{"cmd": "K123456"}')]}))
    with under(rail, more=rules(rule, on_deny="drop")) as talk:
        answer = talk.ask(tools=TOOLS)
    assert message_of(answer, False)["calls"] == []
    assert b"K123456" not in answer.body


@MODES
def test_what_is_invalid_and_passes_is_recorded(under: Start, upstream: Upstream, streamed: bool) -> None:
    """Whether a reply is held for a rule or not."""
    upstream.play(says({"tool_calls": [call("read", '{"cmd": 5}'), call("unheard_of")]}, streamed=streamed))
    for more in (rules(), rules(NO_SHELL)):
        with under(more=more) as talk:
            answer = talk.ask(tools=TOOLS, stream=streamed)
            assert message_of(answer, streamed)["calls"] == ["read", "unheard_of"]
            (decision,) = talk.line()["decisions"]
        assert (decision["rule"], decision["action"], decision["count"]) == ("on_invalid", "flag", 2)


def test_a_section_without_rules_changes_no_byte(under: Start, upstream: Upstream) -> None:
    said = says({"tool_calls": [call("shell", '{ "cmd":"ls" }')]})
    upstream.play(said)
    with under(more="tools: {}\n") as talk:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS, "odd": 1.50}
        answer = talk.post(CHAT, body)
        assert upstream.requests[-1].body == json.dumps(body).encode()
    assert said.endswith(answer.body)


@MODES
def test_shadow_changes_no_byte_and_records_all(under: Start, upstream: Upstream, streamed: bool) -> None:
    ask = "{name: ask, tool: read, decision: confirm}"
    shadow = rules(
        NO_SHELL, ask, mode="shadow", pin="block", on_invalid="repair", results="{frame: true, max_chars: 16}"
    )
    admin = f'server: {{admin_keys: ["sha256:{"a" * 64}"]}}\n'
    upstream.play(says({"content": "Hm.", "tool_calls": [call("shell"), call("read")]}, streamed=streamed))
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call("read")]},
        {"role": "tool", "tool_call_id": "call_read", "content": "a result of more than 16 characters"},
    ]
    changed = [{**TOOLS[0], "function": {"name": "shell"}}, TOOLS[1]]
    bodies = [{"model": "m", "messages": turns, "tools": tools, "stream": streamed} for tools in (TOOLS, changed)]
    with under() as talk:
        plain = talk.post(CHAT, bodies[0]).body
    before = len(upstream.requests)
    with under(more=shadow + admin) as talk:
        for body in bodies:
            assert talk.post(CHAT, body).body == plain
            assert upstream.requests[-1].body == json.dumps(body).encode()
            line = talk.line()
    assert len(upstream.requests) == before + 2
    assert {each["mode"] for each in line["decisions"]} == {"shadow"}
    assert {each["rule"] for each in line["decisions"]} == {"no-shell", "ask", "pin", "tools"}


# --- runs ---


def test_the_history_that_the_provider_keeps(under: Start, upstream: Upstream) -> None:
    """A Responses agent shows the last result alone: what the run has called before is remembered."""
    tools = [{"type": "function", "name": name, "parameters": OBJECT} for name in ("vault_read", "send_mail")]
    rule = '{tool: "send_*", after: "vault_*", decision: deny, reason: "secrets were read"}'

    def calls(number: int, name: str) -> bytes:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        output = [{**item, "arguments": "{}", "status": "completed"}]
        body = {"id": f"resp_{number}", "object": "response", "status": "completed", "model": "m", "output": output}
        return answers(json.dumps(body).encode())

    upstream.play(calls(1, "vault_read"), calls(2, "send_mail"))
    with under(more=rules(rule, on_deny="drop")) as talk:
        talk.post(b"/v1/responses", {"model": "m", "input": "hi", "tools": tools})
        result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        asked = {"model": "m", "input": [result], "previous_response_id": "resp_1", "tools": tools}
        answer = talk.post(b"/v1/responses", asked)
    (item,) = json.loads(answer.body)["output"]
    assert item["type"] == "message"
    assert "secrets were read" in item["content"][0]["text"]


# --- what clients make of it ---


@contextmanager
def openai_client(talk: Talk) -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{talk.running.port}/v1"
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("stream_config", ["buffer", "pass"])
def test_the_openai_client_reads_what_is_left(under: Start, upstream: Upstream, stream_config: str) -> None:
    upstream.play(says({"content": "Hm.", "tool_calls": [call("shell"), call("read")]}, streamed=True))
    with under(more=rules(NO_SHELL, stream=stream_config)) as talk, openai_client(talk) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
        with client.chat.completions.stream(**asked) as events:
            events.until_done()
            choice: Any = events.get_final_completion().choices[0]
    assert [each.function.name for each in choice.message.tool_calls] == ["read"]
    assert choice.finish_reason == "tool_calls"
    assert DENIED in choice.message.content


def response(number: int, *items: dict[str, Any]) -> dict[str, Any]:
    head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**head, "output": [*items], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}


def replies(document: dict[str, Any], streamed: bool) -> Any:
    """A response, whole or as its events."""
    if not streamed:
        return answers(json.dumps(document).encode())
    frames = VIEWS["responses"].frames(document)
    return stream(*(render(jsondoc.encode(each), responses.event_of(each)) for each in frames))


def approving(client: openai.OpenAI, streamed: bool) -> list[str]:
    """An agent that approves whatever it is asked: the names of the calls, and the last text."""
    server: Any = {"type": "mcp", "server_label": "s", "server_url": "https://a/mcp", "require_approval": "always"}
    approved, given = [], [{"role": "user", "content": "do it"}]
    while True:
        asked: Any = {"model": "m", "input": given, "tools": [server]}
        if streamed:
            with client.responses.stream(**asked) as events:
                reply = events.get_final_response()
        else:
            reply = client.responses.create(**asked)
        requests = [item for item in reply.output if item.type == "mcp_approval_request"]
        if not requests:
            return [*approved, reply.output_text]
        for item in requests:
            approved.append(item.name)
            answer = {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": True}
            given += [item.to_dict(), answer]


@MODES
def test_an_agent_that_approves_all_is_not_asked_about_a_denied_call(
    under: Start, upstream: Upstream, streamed: bool
) -> None:
    asks = {"type": "mcp_approval_request", "server_label": "s", "arguments": '{"cmd": "x"}'}
    first = response(1, {**asks, "id": "mcpr_1", "name": "read"}, {**asks, "id": "mcpr_2", "name": "shell"})
    ran = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "read", "arguments": "{}", "output": "x"}
    second = response(2, ran, {**asks, "id": "mcpr_3", "name": "shell"})
    said = {"type": "output_text", "text": "Then not.", "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    upstream.play(*(replies(each, streamed) for each in (first, second, response(3, message))))
    with under(more=rules(NO_SHELL)) as talk, openai_client(talk) as client:
        assert approving(client, streamed) == ["read", "Then not."]
        *_, refused = talk.sent["input"]
        line = talk.line()
    told = {"type": "mcp_approval_response", "approval_request_id": "mcpr_3", "approve": False}
    assert refused == {**told, "reason": "denied: no shell here"}
    assert [each["rule"] for each in line["decisions"]] == ["no-shell"]


def test_a_stream_that_passes_ends_before_an_approval_that_is_denied(under: Start, upstream: Upstream) -> None:
    asks = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "shell", "arguments": "{}"}
    upstream.play(replies(response(1, asks), streamed=True))
    with under(more=rules(NO_SHELL, stream="pass")) as talk, openai_client(talk) as client:
        assert approving(client, streamed=True) == [DENIED]


def test_the_anthropic_client_reads_what_is_left(under: Start, upstream: Upstream) -> None:
    used = [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in ("shell", "read")]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": used}
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {**head, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    upstream.play(answers(json.dumps(body).encode()))
    tools: Sequence[Any] = [{"name": name, "input_schema": OBJECT} for name in ("shell", "read")]
    with under(more=rules(NO_SHELL)) as talk:
        url = f"http://127.0.0.1:{talk.running.port}"
        with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
            said = client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], tools=tools
            )
    assert [block.name for block in said.content if block.type == "tool_use"] == ["read"]
    assert "".join(block.text for block in said.content if block.type == "text") == DENIED
    assert said.stop_reason == "tool_use"


def test_usage_is_that_of_all_calls(under: Start, upstream: Upstream) -> None:
    def used(prompt: int) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}}

    upstream.play(says({"tool_calls": [call("shell")]}, **used(10)), answers(whole("Then not.", **used(20))))
    with under(more=rules(NO_SHELL)) as talk:
        answer = talk.ask(tools=TOOLS)
        line = talk.line()
    assert json.loads(answer.body)["usage"]["prompt_tokens"] == 20
    assert (line["prompt_tokens"], line["completion_tokens"], line["calls"]) == (30, 2, 2)
    assert answer.header(b"x-sidecar-calls") == b"2"
