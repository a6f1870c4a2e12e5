"""Replies have the form that was asked for: a stage, a model that says what it is told to, and what the client gets."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest

from sidecar.core.chain import Chain, Run, Step, Verdict
from sidecar.core.decision import Mode
from sidecar.core.events import Began
from sidecar.core.exchange import Exchange, Request
from sidecar.core.identity import Identity
from sidecar.core.port import Heard
from sidecar.errors import ExchangeError, InvalidRequest, StructuredOutputInvalid
from sidecar.stages.repairing import quoted
from sidecar.stages.structured import Structured, StructuredConfig
from sidecar.wire import chat, jsondoc, ollama, sse
from sidecar.wire.errors import anthropic_shape, openai_shape
from sidecar.wire.stream import ReplyStream, edit_reply
from sidecar.wire.views import VIEWS

CODE = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
GOOD = '{"code":"x"}'
CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
Document = dict[str, Any]


def asks_for(schema: Any, **more: Any) -> Document:
    named = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": True}}
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], "response_format": named, **more}


PLAIN: Document = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def says(text: str | None, ending: str = "stop", **more: Any) -> Document:
    return {"choices": [{"index": 0, "message": {"content": text, **more}, "finish_reason": ending}]}


class Model:
    """Says its lines in turn, the last one again and again; remembers what it was asked."""

    def __init__(self, *lines: Document | None) -> None:
        self.lines, self.asked = list(lines), list[Document]()

    async def ask(self, document: Document) -> Heard:
        self.asked.append(deepcopy(document))
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        return Heard(deepcopy(line))


class Call:
    """One call under a policy's section."""

    def __init__(self, endpoint: str = "chat", agent: str = "", mode: str = "enforce", **config: Any) -> None:
        settings = StructuredConfig.model_validate_json(json.dumps({"mode": mode, **config}))
        self.stage = Structured.of(settings, VIEWS, 64)
        step = Step(self.stage, Mode(mode), 600, asks=True)
        self.exchange = Exchange("x", endpoint, identity=Identity(agent=agent))
        self.chain = Chain.of([step])
        self.model: Model | None = None
        self.run: Run = self.chain.open(self.exchange)

    def ask(self, document: Document, *lines: Document | None) -> Document | None:
        """The client's request and what the model says; what the client gets, None where it passes as it comes."""
        self.model = model = Model(*lines)
        self.run = self.chain.open(self.exchange, lambda chain, exchange, run: model)
        self.document = deepcopy(document)
        self.request = Request(self.document, [], str(document.get("model")))
        asyncio.run(self.run.request(self.request))
        if self.run.answered is None:
            return None
        return self.run.answered.document or self.run.answered.heard.document

    @property
    def calls(self) -> list[Document]:
        assert self.model is not None
        return self.model.asked

    @property
    def found(self) -> list[str]:
        return [finding.name for verdict in self.run.verdicts for finding in verdict.findings]

    @property
    def said(self) -> list[str]:
        return [verdict.said for verdict in self.run.verdicts]


def content(reply: Document | None, choice: int = 0) -> Any:
    assert reply is not None
    return reply["choices"][choice]["message"]["content"]


# --- replies that are right, or nearly ---


@pytest.mark.parametrize("said", [GOOD, f"\n {GOOD}\n", '{"code": "```python\\nx = 1\\n```"}'])
def test_a_reply_that_is_right_is_handed_down_as_it_is(said: str) -> None:
    call = Call()
    assert call.ask(asks_for(CODE), says(said)) == says(said)
    assert call.run.answered is not None
    assert call.run.answered.document is None
    assert len(call.calls) == 1
    assert call.calls[0] == asks_for(CODE)
    assert not call.found


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{GOOD}\n```",
        f"````json\n{GOOD}\n````\nnote: use }} here",
        f"Here you are: {GOOD} Anything else?",
        "{'code': 'x',}",
    ],
)
def test_a_reply_that_holds_the_json_becomes_the_json(said: str) -> None:
    call = Call()
    assert content(call.ask(asks_for(CODE), says(said))) == GOOD
    assert len(call.calls) == 1
    assert (call.found, call.said) == (["extracted"], ["replace"])


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2.0]"),
        ({"type": "number"}, "12345678901234567890.50"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"a"'),
        ({"type": "boolean"}, "true"),
    ],
)
def test_any_form_will_do(schema: Any, said: str) -> None:
    assert content(Call().ask(asks_for(schema), says(f"```\n{said}\n```"))) == said


def test_numbers_are_not_texts() -> None:
    with pytest.raises(StructuredOutputInvalid):
        Call(max_repair_attempts=0).ask(asks_for(CODE), says('{"code": 1}'))


def test_any_object_where_no_schema_is_named() -> None:
    wanted = {**PLAIN, "response_format": {"type": "json_object"}}
    assert content(Call().ask(wanted, says('{"a": 1}'))) == '{"a": 1}'
    call = Call()
    assert content(call.ask(wanted, says("[1]"), says("```\n{}\n```"))) == "{}"
    assert "it is not a JSON object" in call.calls[1]["messages"][-1]["content"]


def test_a_request_that_asks_for_no_form_passes() -> None:
    for document in (PLAIN, {**PLAIN, "response_format": {"type": "text"}}):
        call = Call()
        assert call.ask(document, says("hello")) is None
        assert not call.calls
        assert call.document == document
        assert not call.request.changed


def test_an_api_without_conversations_passes() -> None:
    assert Call("embeddings").ask(asks_for(CODE), says("x")) is None


# --- repair ---


def test_a_reply_that_is_wrong_is_asked_for_again() -> None:
    call = Call()
    assert content(call.ask(asks_for(CODE), says('{"cod":"x"}'), says(GOOD))) == GOOD
    (first,), (told,) = (asked["messages"] for asked in call.calls)
    assert told["role"] == "user"
    assert told["content"].startswith(f"{first['content']}\n\n")
    assert '"{\\"cod\\":\\"x\\"}"' in told["content"]
    assert 'the whole: "code" is a required property' in told["content"]
    assert call.calls[1]["response_format"] == asks_for(CODE)["response_format"]
    assert jsondoc.encode(call.calls[1]).count(b"additionalProperties") == 1
    assert (call.found, call.said) == (["repair"], ["repair"])


def test_where_the_fault_is_is_told_by_a_pointer() -> None:
    call = Call()
    call.ask(asks_for({"properties": {"a": {"items": CODE}}}), says('{"a":[{"code":"x"},{"code":1}]}'), says("{}"))
    assert '\n- /a/1/code: the value is not of type "string"\n' in call.calls[1]["messages"][-1]["content"]


def test_repairs_do_not_grow() -> None:
    call = Call(max_repair_attempts=3)
    with pytest.raises(StructuredOutputInvalid) as caught:
        call.ask(asks_for(CODE), says('{"cod":"' + "x" * 5000 + '"}'))
    sizes = [len(jsondoc.encode(asked)) for asked in call.calls]
    assert len(sizes) == 4
    assert sizes[1] == sizes[2] == sizes[3] < sizes[0] + 3000
    assert caught.value.attempts == 4


def test_the_same_reply_asks_again_in_the_same_words() -> None:
    first, second = Call(), Call()
    for call in (first, second):
        call.ask(asks_for(CODE), says("{}"), says(GOOD))
    assert first.calls == second.calls


def test_a_schema_said_again_is_no_reply() -> None:
    loose = {"type": "object", "properties": {"code": {"type": "string"}, "n": {"multipleOf": 0.5}}}
    for schema in (CODE, loose):
        call = Call()
        assert content(call.ask(asks_for(schema), says(json.dumps(schema)), says(GOOD))) == GOOD
    assert "the schema itself" in call.calls[1]["messages"][-1]["content"]


def test_when_all_is_in_vain_the_client_is_told() -> None:
    call = Call()
    with pytest.raises(StructuredOutputInvalid) as caught:
        call.ask(asks_for(CODE), says('{"code":1}'), says('{"code":[],"more":"' + "y" * 100 + '"}'))
    error = caught.value
    assert len(call.calls) == 2
    assert (error.status, error.code, error.param, error.attempts) == (502, "structured_output_invalid", "/code", 2)
    assert "after 2 calls. /code: " in error.message
    assert "yyy" not in error.message
    body = openai_shape(error)["error"]
    assert body["attempts"] == 2
    assert body["last_error"] == {"pointer": "/code", "message": 'the value is not of type "string"'}
    assert body["output"].startswith('{"code":[],')
    assert body["output"].endswith("… [121 characters in all]")
    assert anthropic_shape(error)["error"]["output"] == body["output"]
    assert (call.found, call.said) == (["repair", "invalid"], ["refuse"])


def test_without_repairs_one_call_is_made() -> None:
    call = Call(max_repair_attempts=0)
    with pytest.raises(StructuredOutputInvalid, match=r"after 1 call\."):
        call.ask(asks_for(CODE), says("no"))
    assert len(call.calls) == 1


@pytest.mark.parametrize("said", [None, "", "  "])
def test_a_reply_that_says_nothing_is_wrong(said: str | None) -> None:
    call = Call()
    assert content(call.ask(asks_for(CODE), says(said), says(GOOD))) == GOOD


def test_what_ends_the_call_goes_through() -> None:
    class Refusing:
        async def ask(self, document: Document) -> Heard:
            raise InvalidRequest("no")

    call = Call()
    run = call.chain.open(call.exchange, lambda *_: Refusing())
    with pytest.raises(InvalidRequest):
        asyncio.run(run.request(Request(asks_for(CODE), [], "m")))


def test_a_call_without_a_reply_is_handed_down_as_it_is() -> None:
    call = Call()
    assert call.ask(asks_for(CODE), says("{}"), None) is None
    assert call.run.answered is not None
    assert call.run.answered.heard == Heard(None)
    assert call.found == ["repair"]


# --- replies that are no answers ---


def test_a_reply_that_is_cut_is_not_asked_for_again() -> None:
    cut = says('{"code":"abc', "length")
    call = Call(max_repair_attempts=3)
    assert call.ask(asks_for(CODE), cut) == cut
    assert len(call.calls) == 1
    assert (call.found, call.said) == (["cut"], ["flag"])


@pytest.mark.parametrize("said", [GOOD, f"```json\n{GOOD}\n```"])
def test_of_a_reply_that_is_cut_nothing_is_changed(said: str) -> None:
    call = Call()
    assert content(call.ask(asks_for(CODE), says(said, "length"))) == said
    assert call.found == ([] if said == GOOD else ["cut"])


@pytest.mark.parametrize(
    "reply",
    [
        says(None, refusal="I would rather not."),
        says("I am not", "content_filter"),
        says(
            "", "tool_calls", tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]
        ),
        says("let me see", tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
    ],
)
def test_a_reply_that_is_no_answer_passes(reply: Document) -> None:
    call = Call()
    assert call.ask(asks_for(CODE), reply) == reply
    assert len(call.calls) == 1
    assert not call.found


# --- several choices ---


def two(first: str, second: str) -> Document:
    texts = enumerate((first, second))
    return {"choices": [{"index": n, "message": {"content": text}, "finish_reason": "stop"} for n, text in texts]}


def test_each_choice_is_judged() -> None:
    reply = Call().ask(asks_for(CODE, n=2), two(f"so: {GOOD}", GOOD))
    assert (content(reply), content(reply, 1)) == (GOOD, GOOD)


def test_several_choices_are_not_asked_for_again() -> None:
    call = Call(max_repair_attempts=3)
    with pytest.raises(StructuredOutputInvalid, match=r"\(choice 1\)"):
        call.ask(asks_for(CODE, n=2), two(GOOD, "{}"))
    assert len(call.calls) == 1


# --- what the request is told ---


def test_instructions_beside_the_form() -> None:
    call = Call(instructions="always")
    call.ask(asks_for(CODE), says("{}"), says(GOOD))
    for asked in call.calls:
        [system] = [message for message in asked["messages"] if message["role"] == "system"]
        assert system["content"].count('"additionalProperties":false') == 1
        assert asked["response_format"] == asks_for(CODE)["response_format"]


SCHEMAS = [
    {"name": "ticket", "agents": ["support-*"], "schema": CODE},
    {"name": "number", "models": ["mini", "small-*"], "schema": {"type": "number"}},
]


@pytest.mark.parametrize(
    ("agent", "model", "name"),
    [
        ("support-1", "mini", "ticket"),
        ("support-1", "large", "ticket"),
        ("sales", "small-2", "number"),
        ("", "mini", "number"),
        ("", "large", None),
        ("Support-1", "large", None),
    ],
)
def test_forms_of_the_policys_own(agent: str, model: str, name: str | None) -> None:
    call = Call(agent=agent, schemas=SCHEMAS)
    call.ask({**PLAIN, "model": model}, says(GOOD if name == "ticket" else "1"))
    told = [asked["response_format"]["json_schema"]["name"] for asked in call.calls]
    assert told == ([name] if name else [])


def test_what_the_request_names_counts() -> None:
    call = Call(agent="support-1", schemas=SCHEMAS)
    document = asks_for({"type": "number"})
    assert content(call.ask(document, says("1"))) == "1"
    assert call.calls == [document]


@pytest.mark.parametrize(
    "schema", [{"type": "strng"}, {"$ref": "http://127.0.0.1:9/x"}, {"pattern": "("}, {"$ref": "#/$defs/none"}]
)
def test_a_schema_of_no_use_is_refused(schema: Any) -> None:
    call = Call()
    with pytest.raises(InvalidRequest, match="cannot be used") as caught:
        call.ask(asks_for(schema), says(GOOD))
    assert caught.value.param == "response_format"
    assert not call.calls
    assert call.found == ["unusable"]


# --- streams that are not held, and replies that are only watched ---


def hear(run: Run, *deltas: Mapping[str, Any], ending: str = "stop") -> list[str]:
    stream = ReplyStream(chat, run)
    for delta in deltas:
        stream.feed([frame(delta)])
    stream.feed([frame({}, ending)])
    stream.feed(sse.Events().feed(chat.DONE))
    stream.finish()
    run.finish()
    return names(run.verdicts)


def frame(delta: Mapping[str, Any], reason: str | None = None) -> sse.Frame:
    data = jsondoc.encode({"id": "c", "choices": [{"index": 0, "delta": dict(delta), "finish_reason": reason}]})
    return sse.Frame(sse.render(data), data)


def names(verdicts: Sequence[Verdict]) -> list[str]:
    return [finding.name for verdict in verdicts for finding in verdict.findings]


def passes(call: Call, document: Document) -> Run:
    assert call.ask(document, says("never asked")) is None
    assert not call.calls
    return call.run


@pytest.mark.parametrize(
    ("said", "found"),
    [(GOOD, []), (f" {GOOD}\n", []), ('{"code":1}', ["invalid"]), ("no", ["invalid"]), (f"so: {GOOD}", ["not_alone"])],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_stream_that_passes_is_checked_at_its_end(said: str, found: list[str], size: int) -> None:
    run = passes(Call(stream="pass"), asks_for(CODE, stream=True))
    assert hear(run, *({"content": said[at : at + size]} for at in range(0, len(said), size))) == found


def test_a_reply_that_is_no_stream_is_held_all_the_same() -> None:
    call = Call(stream="pass")
    assert content(call.ask(asks_for(CODE), says("{}"), says(GOOD))) == GOOD
    assert len(call.calls) == 2


def test_no_stream_is_asked_for_by_null() -> None:
    call = Call(stream="pass")
    assert content(call.ask(asks_for(CODE, stream=None), says("{}"), says(GOOD))) == GOOD


def test_a_stream_is_held_where_the_policy_does_not_say_otherwise() -> None:
    call = Call()
    assert content(call.ask(asks_for(CODE, stream=True), says("{}"), says(GOOD))) == GOOD


def test_calls_and_refusals_on_a_stream_are_no_answers() -> None:
    called = {"tool_calls": [{"index": 0, **CALLED}]}
    document = asks_for(CODE, stream=True)
    assert hear(passes(Call(stream="pass"), document), {"content": "let me see"}, called) == []
    assert hear(passes(Call(stream="pass"), document), {"refusal": "no"}) == []


def test_a_stream_that_passes_is_told_the_policys_form() -> None:
    call = Call(stream="pass", agent="support-1", schemas=SCHEMAS)
    run = passes(call, {**PLAIN, "stream": True})
    assert call.document["response_format"]["json_schema"]["schema"] == CODE
    assert call.request.changed
    assert hear(run, {"content": "{}"}) == ["invalid"]


def test_ollama_streams_unless_it_is_told_not_to() -> None:
    document = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "format": CODE}
    passes(Call(ollama.CHAT.NAME, stream="pass"), document)
    call = Call(ollama.CHAT.NAME, stream="pass")
    reply = {"message": {"role": "assistant", "content": f"```\n{GOOD}\n```"}, "done": True, "done_reason": "stop"}
    got = call.ask({**document, "stream": False}, reply)
    assert got is not None
    assert got["message"]["content"] == GOOD


def test_shadow_records_and_asks_nothing() -> None:
    call = Call(mode="shadow", instructions="always", agent="support-1", schemas=SCHEMAS)
    run = passes(call, PLAIN)
    assert call.document == PLAIN
    document = says("{}")
    edit_reply(chat, run, document)
    run.finish()
    assert document == says("{}")
    assert names(run.verdicts) == ["invalid"]
    assert {verdict.mode for verdict in run.verdicts} == {Mode.SHADOW}


def test_shadow_refuses_nothing() -> None:
    call = Call(mode="shadow")
    passes(call, asks_for({"type": "strng"}))
    assert call.found == ["unusable"]


def test_of_an_error_no_form_is_asked() -> None:
    run = passes(Call(mode="shadow"), asks_for(CODE))
    run.feed(Began(429))
    edit_reply(chat, run, {"error": {"message": "slow down"}, **says("slow down")})
    run.finish()
    assert names(run.verdicts) == []


# --- other APIs ---


def messages_reply(text: str) -> Document:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
    }


def responses_reply(text: str) -> Document:
    item = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    return {"object": "response", "status": "completed", "output": [item]}


def ollama_reply(text: str) -> Document:
    return {"message": {"role": "assistant", "content": text}, "done": True, "done_reason": "stop"}


FORM = {"type": "json_schema", "schema": CODE}
TO_CLAUDE = {"messages": PLAIN["messages"], "output_config": {"format": FORM}}
APIS: list[tuple[str, Document, Callable[[str], Document], str]] = [
    (
        "messages",
        {"messages": PLAIN["messages"], "output_config": {"format": FORM}},
        messages_reply,
        "output_config.format",
    ),
    ("responses", {"input": "hi", "text": {"format": {**FORM, "name": "s"}}}, responses_reply, "text.format"),
    (ollama.CHAT.NAME, {"messages": PLAIN["messages"], "format": CODE, "stream": False}, ollama_reply, "format"),
]


@pytest.mark.parametrize(("endpoint", "document", "reply", "field"), APIS)
def test_every_api(endpoint: str, document: Document, reply: Callable[[str], Document], field: str) -> None:
    call = Call(endpoint)
    got = call.ask({"model": "m", **document}, reply("{}"), reply(f"```\n{GOOD}\n```"))
    assert len(call.calls) == 2
    assert b"not valid" in jsondoc.encode(call.calls[1])
    assert got is not None
    assert VIEWS[endpoint].replied(got).texts == {0: GOOD}
    broken = jsondoc.decode(jsondoc.encode(document).replace(b'"string"', b'"strng"'))
    with pytest.raises(ExchangeError) as caught:
        Call(endpoint).ask({"model": "m", **broken}, reply(GOOD))
    assert caught.value.param == field


# --- quoting ---


def test_a_reply_is_quoted_as_a_json_string() -> None:
    assert quoted('a "b"\n', 100) == '"a \\"b\\"\\n"'
    assert quoted("", 0) == '""'


def test_quotes_are_bounded_with_their_escapes() -> None:
    assert quoted("abcdef", 3) == '"abc" (the first 3 of 6 characters)'
    assert quoted("\n" * 10, 5) == '"\\n\\n" (the first 2 of 10 characters)'
    assert quoted("é" * 10, 3) == '"ééé" (the first 3 of 10 characters)'
