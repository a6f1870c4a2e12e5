"""Models that know tools only as text, behind clients that know them only as fields: over real sockets."""

import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import anthropic
import openai
import pytest

from sidecar.wire.toolcalls.writing import WRITINGS, Call

from .mishaps import DONE, JSON, completion, error, event, refusal
from .pair import Start as StartPair
from .pair import documents
from .talk import Answer
from .under import CHAT, Start, Talk
from .upstream import CHUNKED, END, FIN, RST, Step, chunk, reply

MODES = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FIND: dict[str, Any] = {
    "type": "function",
    "function": {"name": "find", "description": "Looks for files.", "parameters": SCHEMA},
}
GET: dict[str, Any] = {"type": "function", "function": {"name": "get", "parameters": SCHEMA}}
TOOLS = [FIND, GET]
SAYS = (
    'Let me look.\n<tool_call>\n{"name": "find", "arguments": {"q": "a {b} </c>"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get", "arguments": {"q": "it\'s"}}\n</tool_call>'
)
CALLS = [("find", {"q": "a {b} </c>"}), ("get", {"q": "it's"})]
MODEL = ", tools: hermes, response_format: none"


def says(text: str, streamed: bool, reason: str = "stop") -> bytes:
    """A reply with this text, whole or in single characters."""
    if not streamed:
        return reply(completion(text, reason), b"200 OK", JSON)
    events = [event({"role": "assistant", "content": ""}), *(event({"content": character}) for character in text)]
    last = (event({}, reason), event(usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}), DONE)
    return CHUNKED + b"".join(map(chunk, (*events, *last))) + END


@pytest.fixture
def local(under: Start) -> Iterator[Talk]:
    """A sidecar before a model that is told of tools as Hermes is."""
    with under(provider=MODEL) as talk:
        yield talk


class TestChat:
    @MODES
    def test_calls_are_real_ones(self, local: Talk, streamed: bool) -> None:
        local.upstream.play(says(SAYS, streamed))
        with openai.OpenAI(base_url=f"http://127.0.0.1:{local.running.port}/v1", api_key="k", max_retries=0) as client:
            asked: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
            if streamed:
                with client.chat.completions.stream(**asked) as stream:
                    stream.until_done()
                    choice: Any = stream.get_final_completion().choices[0]
            else:
                choice = client.chat.completions.create(**asked).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content.strip() == "Let me look."
        assert [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls] == CALLS
        ids = [call.id for call in choice.message.tool_calls]
        assert len(set(ids)) == 2
        assert all(id_.startswith("call_") for id_ in ids)

    def test_what_the_model_was_told(self, local: Talk) -> None:
        local.upstream.play(says("no", False))
        local.ask(tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
        system, user = local.sent["messages"]
        assert local.sent.keys() == {"model", "messages"}
        assert system["content"].startswith("## Tools\n")
        assert "you must call a tool" in system["content"]
        assert user == {"role": "user", "content": "hi"}

    @MODES
    def test_the_same_calls_have_the_same_ids(self, local: Talk, streamed: bool) -> None:
        local.upstream.play(says(SAYS, streamed))
        first, second = (local.ask(tools=TOOLS, stream=streamed) for _ in range(2))
        assert first.body == second.body

    def test_whole_and_streamed_give_the_same(self, local: Talk) -> None:
        whole, stream = (answered(local, SAYS, streamed) for streamed in (False, True))
        assert whole == stream

    @MODES
    def test_a_plain_answer_leaves_as_it_came(self, local: Talk, streamed: bool) -> None:
        script = says("Four < five.", streamed)
        local.upstream.play(script)
        answer = local.ask(tools=TOOLS, stream=streamed)
        assert answer.whole
        if streamed:
            assert (
                "".join(d["choices"][0]["delta"].get("content") or "" for d in documents(answer) if d["choices"])
                == "Four < five."
            )
            assert answer.body.count(DONE) == 1
            assert answer.body.endswith(DONE)
        else:
            assert answer.body == completion("Four < five.")

    def test_without_tools_nothing_is_touched(self, local: Talk) -> None:
        local.upstream.play(says(SAYS, False))
        answer = local.ask()
        assert answer.body == completion(SAYS)
        assert (
            local.upstream.requests[-1].body
            == json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        )

    def test_an_error_of_the_provider_leaves_as_it_came(self, local: Talk) -> None:
        local.upstream.play(reply(b"<h1>busy</h1>", b"503 Busy", (b"content-type", b"text/html")))
        answer = local.ask(tools=TOOLS)
        assert (answer.status, answer.body) == (503, b"<h1>busy</h1>")

    def test_the_path_stays(self, local: Talk) -> None:
        local.upstream.play(says("no", False))
        local.ask(tools=TOOLS, path=b"/v1/deployments/d/chat/completions?api-version=1")
        assert local.upstream.requests[-1].target == b"/v1/deployments/d/chat/completions?api-version=1"

    @MODES
    def test_native_calls_are_not_overridden(self, local: Talk, streamed: bool) -> None:
        call = {"id": "call_own", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        text = '<tool_call>{"name": "get", "arguments": {"q": "no"}}</tool_call>'
        if streamed:
            calls = event({"tool_calls": [{"index": 0, **call}]})
            script = b"".join(map(chunk, (calls, event({"content": text}), event({}, "tool_calls"), DONE)))
            local.upstream.play(CHUNKED + script + END)
        else:
            local.upstream.play(reply(completion(text, "tool_calls", tool_calls=[call]), b"200 OK", JSON))
        answer = local.ask(tools=TOOLS, stream=streamed)
        said = gathered(answer, streamed)
        assert [one["id"] for one in said["tool_calls"]] == ["call_own"]
        assert said["content"] == text

    @MODES
    def test_a_tool_that_there_is_not_is_no_call(self, local: Talk, streamed: bool) -> None:
        text = '<tool_call>{"name": "rm", "arguments": {"q": "/"}}</tool_call>'
        assert answered(local, text, streamed) == {"content": text, "tool_calls": [], "finish_reason": "stop"}

    @MODES
    def test_rules_see_the_calls(self, under: Start, streamed: bool) -> None:
        rule = "{name: no, patterns: [{name: secret, regex: 'hunter\\d+'}], on: [tool_calls], action: redact}"
        with under(rule, provider=MODEL) as talk:
            text = '<tool_call>{"name": "find", "arguments": {"q": "hunter22"}}</tool_call>'
            said = answered(talk, text, streamed)
        assert json.loads(said["tool_calls"][0][1]) == {"q": "[REDACTED:secret]"}

    @MODES
    def test_results_are_redacted_before_they_are_told(self, under: Start, streamed: bool) -> None:
        rule = "{name: no, patterns: [{name: secret, regex: 'hunter\\d+'}], on: [tool_results], action: redact}"
        with under(rule, provider=MODEL) as talk:
            talk.upstream.play(says("ok", streamed))
            talk.post(CHAT, {"model": "m", "stream": streamed, "messages": HISTORY, "tools": TOOLS})
            assert (
                '<tool_response tool="find" call="c1">\n[REDACTED:secret]\n</tool_response>'
                in talk.sent["messages"][-1]["content"]
            )

    @pytest.mark.parametrize("end", [END, FIN, RST], ids=["in order", "closed", "reset"])
    def test_a_stream_that_breaks_off_does_not_look_whole(self, local: Talk, end: Step) -> None:
        begun = (event({"role": "assistant", "content": ""}), event({"content": "so <tool_c"}))
        local.upstream.play([CHUNKED + b"".join(map(chunk, begun)), 0.1, end])
        answer = local.ask(tools=TOOLS, stream=True)
        last = documents(answer)[-1]
        assert last["error"]["code"] == "upstream_broken"
        assert gathered(answer, True)["content"] == "so <tool_c"
        assert gathered(answer, True)["finish_reason"] is None

    def test_an_error_in_a_stream_comes_after_what_was_said(self, local: Talk) -> None:
        begun = (event({"content": "so <tool_c"}), b"data: %b\n\n" % error("oops"), DONE)
        local.upstream.play(CHUNKED + b"".join(map(chunk, begun)) + END)
        answer = local.ask(tools=TOOLS, stream=True)
        assert [d.get("error", {}).get("code") for d in documents(answer)] == [None, None, "oops"]
        assert gathered(answer, True)["content"] == "so <tool_c"

    def test_what_is_no_document_in_a_stream_passes(self, local: Talk) -> None:
        odd = (b": hi\n\n", b"data:\n\n", b"data: [1]\n\n")
        said = (event({"role": "assistant", "content": ""}), *odd, event({"content": "Four."}), event({}, "stop"), DONE)
        local.upstream.play(CHUNKED + b"".join(map(chunk, said)) + END)
        assert local.ask(tools=TOOLS, stream=True).body == b"".join(said)

    def test_tools_that_a_provider_runs_are_refused(self, local: Talk) -> None:
        local.upstream.play(says("no", False))
        answer = local.ask(tools=[{"type": "web_search"}])
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["param"] == "tools[0].type"
        assert local.upstream.requests == []

    @pytest.mark.parametrize("path", [b"/api/chat", b"/v1/completions"])
    def test_other_apis_have_no_tools_there(self, local: Talk, path: bytes) -> None:
        local.upstream.play(says("no", False))
        answer = local.ask(tools=TOOLS, path=path)
        assert answer.status == 400
        assert local.upstream.requests == []
        assert local.ask(path=path).status == 200


class TestLimits:
    def test_the_section_is_as_large_as_the_policy_says(self, under: Start) -> None:
        with under(provider=MODEL, more="tools: {max_section: 500}\n") as talk:
            talk.upstream.play(says("ok", False))
            answer = talk.ask(tools=TOOLS)
            assert answer.status == 400
            assert "500 allowed (tools.max_section)" in json.loads(answer.body)["error"]["message"]
            assert talk.upstream.requests == []

    @pytest.mark.parametrize("counts", [False, True])
    def test_calls_in_thoughts(self, under: Start, counts: bool) -> None:
        text = '<think>\n<tool_call>{"name": "find", "arguments": {"q": "x"}}</tool_call></think>'
        with under(provider=MODEL, more=f"tools: {{calls_in_thoughts: {str(counts).lower()}}}\n") as talk:
            assert len(answered(talk, text, streamed=False)["tool_calls"]) == counts

    def test_results_are_cut_and_framed_once(self, under: Start) -> None:
        """By the section's own stage; what it says of the cut is not cut again."""
        long = [*HISTORY[:2], {**HISTORY[2], "content": "x" * 500}]
        with under(provider=MODEL, more="tools: {results: {max_chars: 100}}\n") as talk:
            talk.upstream.play(says("ok", False))
            talk.post(CHAT, {"model": "m", "messages": long, "tools": TOOLS})
            said = talk.sent["messages"][-1]["content"]
        assert said.count("x" * 90) == 1
        assert said.count("500") == 1
        assert "[cut here" not in said


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "hunter22"},
]


def answered(talk: Talk, text: str, streamed: bool) -> dict[str, Any]:
    """What a client reads where the model says this."""
    talk.upstream.play(says(text, streamed))
    said = gathered(talk.ask(tools=TOOLS, stream=streamed), streamed)
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in said["tool_calls"]]
    return {**said, "tool_calls": calls}


def gathered(answer: Answer, streamed: bool) -> dict[str, Any]:
    """The message and its end, as a client puts them together."""
    if not streamed:
        choice = json.loads(answer.body)["choices"][0]
        said = choice["message"]
        return {
            "content": said["content"],
            "tool_calls": said.get("tool_calls", []),
            "finish_reason": choice["finish_reason"],
        }
    content, reasons = "", []
    calls: list[dict[str, Any]] = []
    for choice in (choice for document in documents(answer) for choice in document.get("choices", ())):
        content += choice["delta"].get("content") or ""
        reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
        for call in choice["delta"].get("tool_calls", ()):
            if call["index"] == len(calls):
                calls.append(call)
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    assert len(reasons) <= 1
    return {"content": content or None, "tool_calls": calls, "finish_reason": reasons[0] if reasons else None}


class TestOtherClients:
    @MODES
    def test_responses(self, local: Talk, streamed: bool) -> None:
        local.upstream.play(says(SAYS, streamed))
        tools: Any = [{"type": "function", "name": t["function"]["name"], "parameters": SCHEMA} for t in TOOLS]
        with openai.OpenAI(base_url=f"http://127.0.0.1:{local.running.port}/v1", api_key="k", max_retries=0) as client:
            if streamed:
                with client.responses.stream(model="m", input="hi", tools=tools) as stream:
                    response: Any = stream.get_final_response()
            else:
                response = client.responses.create(model="m", input="hi", tools=tools)
        assert response.status == "completed"
        assert response.output_text.strip() == "Let me look."
        calls = [item for item in response.output if item.type == "function_call"]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == CALLS
        assert "tools" not in local.sent
        assert local.sent["messages"][0]["content"].startswith("## Tools\n")

    @MODES
    def test_messages(self, local: Talk, streamed: bool) -> None:
        local.upstream.play(says(SAYS, streamed))
        asked: Any = {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": t["function"]["name"], "input_schema": SCHEMA} for t in TOOLS],
        }
        with anthropic.Anthropic(
            base_url=f"http://127.0.0.1:{local.running.port}", api_key="k", max_retries=0
        ) as client:
            if streamed:
                with client.messages.stream(**asked) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**asked)
        assert message.stop_reason == "tool_use"
        assert message.content[0].text.strip() == "Let me look."
        assert [(b.name, b.input) for b in message.content if b.type == "tool_use"] == CALLS
        assert local.sent["messages"][0]["content"].startswith("## Tools\n")

    def test_results_of_a_messages_client(self, local: Talk) -> None:
        use = {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": "x"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "found </tool_response> it"}
        asked = {
            "model": "m",
            "max_tokens": 9,
            "tools": [{"name": "find", "input_schema": SCHEMA}],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result, {"type": "text", "text": "So?"}]},
            ],
        }
        local.upstream.play(says("Yes.", False))
        answer = local.post(b"/v1/messages", asked)
        assert json.loads(answer.body)["content"][0]["text"] == "Yes."
        assistant, user = local.sent["messages"][-2:]
        assert assistant["content"] == '<tool_call>\n{"name":"find","arguments":{"q":"x"}}\n</tool_call>'
        assert '<tool_response tool="find" call="t1">\nfound ‹/tool_response> it\n</tool_response>' in user["content"]
        assert user["content"].endswith("\n\nSo?")

    @pytest.mark.parametrize(
        ("choice", "says_so"),
        [
            ({"type": "any", "disable_parallel_tool_use": True}, ["must call a tool", "at most one call"]),
            ({"type": "tool", "name": "get"}, ["must call the tool get, and no other"]),
            ({"type": "auto"}, []),
            ({"type": "none"}, None),
        ],
    )
    def test_a_choice_of_messages(self, local: Talk, choice: Any, says_so: list[str] | None) -> None:
        text = WRITINGS["hermes"].called([Call(name, arguments) for name, arguments in CALLS])
        local.upstream.play(says(text, False))
        with claude(local) as client:
            message = client.messages.create(**OF_MESSAGES, tool_choice=choice)
        self.check_told(local, says_so)
        called = [block.name for block in message.content if block.type == "tool_use"]
        may = {"any": ["find"], "tool": ["get"], "auto": ["find", "get"], "none": []}
        assert called == may[choice["type"]]

    @pytest.mark.parametrize(
        ("choice", "says_so", "may"),
        [
            ("required", ["must call a tool"], ["find", "get"]),
            ({"type": "function", "name": "get"}, ["must call the tool get, and no other"], ["get"]),
            ("auto", [], ["find", "get"]),
            ("none", None, []),
        ],
    )
    def test_a_choice_of_responses(self, local: Talk, choice: Any, says_so: list[str] | None, may: list[str]) -> None:
        text = WRITINGS["hermes"].called([Call(name, arguments) for name, arguments in CALLS])
        local.upstream.play(says(text, False))
        with official(local) as client:
            response = client.responses.create(**OF_RESPONSES, tool_choice=choice)
        self.check_told(local, says_so)
        assert [item.name for item in response.output if item.type == "function_call"] == may

    def check_told(self, talk: Talk, says_so: list[str] | None) -> None:
        """None: that there are tools is not said at all."""
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & talk.sent.keys()
        first = talk.sent["messages"][0]
        assert (first["role"] == "system") is (says_so is not None)
        for words in says_so or ():
            assert words in first["content"]
        assert ("In this answer" in first["content"]) is bool(says_so)

    @MODES
    def test_without_tools_they_are_bridged_as_ever(self, local: Talk, streamed: bool) -> None:
        local.upstream.play(says("Four.", streamed))
        answer = local.post(b"/v1/responses", {"model": "m", "input": "hi", "stream": streamed})
        assert b"Four." in answer.body
        assert local.sent["messages"] == [{"role": "user", "content": "hi"}]


@pytest.fixture(params=["prompt", "hermes"])
def spoken(request: pytest.FixtureRequest, under: Start) -> Iterator[tuple[Talk, str]]:
    """A sidecar before a model that is told of tools in a dialect, and what the model says in it."""
    dialect = request.param
    with under(provider=f", tools: {dialect}") as talk:
        yield talk, "Let me look.\n" + WRITINGS[dialect].called([Call(name, arguments) for name, arguments in CALLS])


def frames(*events: bytes, end: Step = END) -> list[Step]:
    """A stream of these events."""
    return [CHUNKED + b"".join(map(chunk, events)), 0.05, end]


def official(talk: Talk) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{talk.running.port}/v1", api_key="k", max_retries=0)


def claude(talk: Talk) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{talk.running.port}", api_key="k", max_retries=0)


ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
OF_MESSAGES: dict[str, Any] = {
    **ASKED,
    "max_tokens": 99,
    "tools": [{"name": t["function"]["name"], "input_schema": SCHEMA} for t in TOOLS],
}
OF_RESPONSES: dict[str, Any] = {
    "model": "m",
    "input": "hi",
    "tools": [{"type": "function", "name": t["function"]["name"], "parameters": SCHEMA} for t in TOOLS],
}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def of_chat(talk: Talk) -> Iterator[str]:
    """What a client hears: the kinds of events, and for chat the reasons for an end."""
    with official(talk) as client:
        for told in client.chat.completions.create(**ASKED, stream=True):
            yield told.choices[0].finish_reason or "chunk"


def of_chat_stream(talk: Talk) -> Iterator[str]:
    with official(talk) as client, client.chat.completions.stream(**ASKED) as stream:
        for told in stream:
            yield (told.chunk.choices[0].finish_reason or "chunk") if told.type == "chunk" else told.type


def of_responses(talk: Talk) -> Iterator[str]:
    with official(talk) as client, client.responses.stream(**OF_RESPONSES) as stream:
        yield from (told.type for told in stream)


def of_messages(talk: Talk) -> Iterator[str]:
    with claude(talk) as client, client.messages.stream(**OF_MESSAGES) as stream:
        yield from (told.type for told in stream)


class TestOfficialClients:
    """What else replies are made of, as the vendors' own clients see it."""

    def test_usage_comes_last_and_once(self, spoken: tuple[Talk, str]) -> None:
        talk, text = spoken
        talk.upstream.play(says(text, True))
        with official(talk) as client:
            asked = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
            chunks: list[Any] = list(client.chat.completions.create(**asked))
        assert talk.sent["stream_options"] == {"include_usage": True}
        assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [7]
        assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 7)
        assert [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason] == ["tool_calls"]

    def test_every_choice_has_calls_of_its_own(self, spoken: tuple[Talk, str]) -> None:
        talk, text = spoken
        each = [(at, text[i : i + 5]) for i in range(0, len(text), 5) for at in (0, 1)]
        said = [event(choices=[{"index": at, "delta": {"content": part}, "finish_reason": None}]) for at, part in each]
        ends = [event(choices=[{"index": at, "delta": {}, "finish_reason": "stop"}]) for at in (0, 1)]
        talk.upstream.play(frames(*said, *ends, event(usage=USAGE), DONE))
        with official(talk) as client, client.chat.completions.stream(**ASKED, n=2) as stream:
            stream.until_done()
            choices: Any = stream.get_final_completion().choices
        for choice in choices:
            assert choice.finish_reason == "tool_calls"
            calls = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls]
            assert calls == CALLS
        assert len({call.id for choice in choices for call in choice.message.tool_calls}) == 4

    @MODES
    def test_a_refusal_stays(self, local: Talk, streamed: bool) -> None:
        events = (event({"role": "assistant", "content": None, "refusal": ""}), event({"refusal": "I will not."}))
        body = completion(None, refusal="I will not.")
        script = frames(*events, event({}, "stop"), DONE) if streamed else reply(body, b"200 OK", JSON)
        local.upstream.play(script)
        answer = local.ask(tools=TOOLS, stream=streamed)
        assert answer.body == (b"".join((*events, event({}, "stop"), DONE)) if streamed else body)

    @MODES
    @pytest.mark.parametrize("content", ["", None])
    def test_an_empty_reply_stays(self, local: Talk, streamed: bool, content: str | None) -> None:
        events = (event({"role": "assistant", "content": content}), event({}, "stop"), event(usage=USAGE), DONE)
        body = completion(content)
        local.upstream.play(frames(*events) if streamed else reply(body, b"200 OK", JSON))
        answer = local.ask(tools=TOOLS, stream=streamed)
        assert answer.body == (b"".join(events) if streamed else body)

    def test_log_probabilities_leave_with_the_text_that_they_are_of(self, local: Talk) -> None:
        odds = {"content": [{"token": "x", "logprob": -0.1, "bytes": [120], "top_logprobs": []}]}
        texts = ("So.", *SAYS.removeprefix("Let me look."))
        choices = ({"index": 0, "delta": {"content": t}, "logprobs": odds, "finish_reason": None} for t in texts)
        local.upstream.play(frames(*(event(choices=[choice]) for choice in choices), event({}, "stop"), DONE))
        with official(local) as client:
            chunks: list[Any] = list(client.chat.completions.create(**ASKED, stream=True, logprobs=True))
        said = [(c.delta.content, bool(c.logprobs)) for chunk in chunks for c in chunk.choices]
        assert [content for content, computed in said if computed] == ["So."]
        assert any(c.delta.tool_calls for chunk in chunks for c in chunk.choices)

    @pytest.mark.parametrize("end", [END, FIN, RST], ids=["in order", "closed", "reset"])
    @pytest.mark.parametrize("left", [12, 60])
    @pytest.mark.parametrize("events_of", [of_chat, of_chat_stream, of_messages, of_responses])
    def test_a_stream_that_breaks_off_in_a_call(
        self, spoken: tuple[Talk, str], events_of: Callable[[Talk], Iterator[str]], end: Step, left: int
    ) -> None:
        """Whoever listens is told, and nothing says that the call is whole."""
        talk, text = spoken
        begun = [event({"role": "assistant", "content": ""}), *(event({"content": c}) for c in text[:-left])]
        talk.upstream.play(frames(*begun, end=end))
        seen: list[str] = []
        with pytest.raises((openai.APIError, anthropic.APIError)):
            seen.extend(events_of(talk))
        assert seen
        assert not {"tool_calls", "stop", "message_stop", "response.completed"} & set(seen)

    def test_a_call_that_cannot_be_mended_is_none_for_any_of_them(self, local: Talk) -> None:
        text = '<tool_call>{"name": "find", "arguments": {"q": ?, "r"}}</tool_call>'
        for streamed in (False, True):
            local.upstream.play(says(text, streamed))
            assert gathered(local.ask(tools=TOOLS, stream=streamed), streamed)["finish_reason"] == "length"
        with claude(local) as client:
            local.upstream.play(says(text, True))
            with client.messages.stream(**OF_MESSAGES) as messages:
                assert messages.get_final_message().stop_reason == "max_tokens"
        with official(local) as other:
            local.upstream.play(says(text, False))
            response = other.responses.create(**OF_RESPONSES)
            assert response.status == "incomplete"
            assert all(item.type != "function_call" for item in response.output)

    @pytest.mark.parametrize("status", [b"429 Too Many", b"400 Bad", b"500 No"])
    def test_an_error_of_the_provider_is_one_of_the_clients_api(self, spoken: tuple[Talk, str], status: bytes) -> None:
        talk, _ = spoken
        talk.upstream.play(reply(error("oops"), status, JSON))
        code = int(status.split()[0])
        with official(talk) as client, claude(talk) as other:
            for streamed in (False, True):
                with pytest.raises(openai.APIStatusError) as chat:
                    client.chat.completions.create(**ASKED, stream=streamed)
                with pytest.raises(openai.APIStatusError) as responses:
                    client.responses.create(**OF_RESPONSES, stream=streamed)
                with pytest.raises(anthropic.APIStatusError) as messages:
                    other.messages.create(**OF_MESSAGES, stream=streamed)
                said: Any = (chat.value, responses.value, messages.value)
                assert [each.status_code for each in said] == [code] * 3
                assert messages.value.body["type"] == "error"  # type: ignore[call-overload,index]


class TestFallback:
    @MODES
    def test_from_a_model_with_tools_to_one_without(self, pair: StartPair, streamed: bool) -> None:
        with pair("{fallback: {}}", about_b=", tools: hermes") as talk:
            talk.a.play(refusal(b"500 No"))
            talk.b.play(says(SAYS, streamed))
            answer = talk.ask(streamed, tools=TOOLS)
            assert json.loads(talk.a.requests[0].body)["tools"] == TOOLS
            assert "tools" not in json.loads(talk.b.requests[0].body)
        said = gathered(answer, streamed)
        assert [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in said["tool_calls"]] == CALLS
        assert answer.header(b"x-sidecar-target") == b"b/n"

    @MODES
    def test_and_back(self, pair: StartPair, streamed: bool) -> None:
        call = {"id": "call_own", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        events = (event({"tool_calls": [{"index": 0, **call}]}), event({}, "tool_calls"), DONE)
        own = CHUNKED + b"".join(map(chunk, events)) + END
        with pair("{fallback: {}}", about_a=", tools: hermes") as talk:
            talk.a.play(refusal(b"500 No"))
            talk.b.play(own if streamed else reply(completion(None, "tool_calls", tool_calls=[call]), b"200 OK", JSON))
            answer = talk.ask(streamed, tools=TOOLS)
            assert json.loads(talk.b.requests[0].body)["tools"] == TOOLS
        assert [one["id"] for one in gathered(answer, streamed)["tool_calls"]] == ["call_own"]

    def test_a_tool_that_only_the_first_can_run(self, pair: StartPair) -> None:
        """Who cannot be told of it is not asked; what the first said is the answer."""
        with pair("{fallback: {}}", about_b=", tools: hermes") as talk:
            talk.a.play(refusal(b"500 No"))
            answer = talk.ask(tools=[*TOOLS, {"type": "web_search"}])
            assert answer.status == 500
            assert talk.counts == (1, 0)

    def test_a_tool_that_only_the_next_can_run(self, pair: StartPair) -> None:
        with pair("{fallback: {}}", about_a=", tools: hermes") as talk:
            answer = talk.ask(tools=[*TOOLS, {"type": "web_search"}])
            assert answer.status == 200
            assert talk.counts == (0, 1)

    def test_a_target_of_its_own_kind(self, pair: StartPair) -> None:
        """Two models of one provider may differ."""
        models = "m: [{target: a/m, tools: hermes, response_format: none}], plain: [a/p]"
        with pair("{retry: {max_attempts: 1}}", models=models) as talk:
            talk.a.play(says(SAYS, False))
            assert gathered(talk.ask(tools=TOOLS), False)["finish_reason"] == "tool_calls"
            assert "tools" not in json.loads(talk.a.requests[-1].body)
            talk.ask(tools=TOOLS, model="plain")
            assert json.loads(talk.a.requests[-1].body)["tools"] == TOOLS


class TestOllama:
    """The shape of Ollama's `/v1/chat/completions`: the role in every frame, ids from a handful, times that move on.

    As openai/openai.go of ollama/ollama writes it (`ToChunks`, `ToChatCompletion`), with the `reasoning` of a model
    that thinks and, where they were asked for, a frame of `usage`.
    """

    HEAD: ClassVar = {"id": "chatcmpl-414", "model": "qwen3", "system_fingerprint": "fp_ollama"}
    PIECES = (
        "Let",
        " me",
        " look",
        ".\n",
        "```",
        "tool_call",
        "\n",
        '{"',
        "tool",
        '":"',
        "find",
        '","arguments":{"q":"',
        "x",
        '"}}',
        "\n```",
    )

    THOUGHTS = ("The user", " asks for x.")

    def chunk(self, at: int, reason: str | None = None, **said: str) -> bytes:
        delta = {"role": "assistant", "content": "", **said}
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return self.frame(at, choices=[choice])

    def frame(self, at: int, **more: Any) -> bytes:
        frame = {**self.HEAD, "object": "chat.completion.chunk", "created": 1700000000 + at, **more}
        return chunk(b"data: %b\n\n" % json.dumps(frame).encode())

    def script(self, streamed: bool) -> bytes:
        usage = {"prompt_tokens": 26, "completion_tokens": 30, "total_tokens": 56}
        if streamed:
            thoughts = [self.chunk(at, reasoning=piece) for at, piece in enumerate(self.THOUGHTS)]
            frames = [self.chunk(at, content=piece) for at, piece in enumerate(self.PIECES, len(thoughts))]
            last = (self.chunk(99, "stop"), self.frame(99, choices=[], usage=usage), chunk(DONE), END)
            return CHUNKED + b"".join((*thoughts, *frames, *last))
        message = {"role": "assistant", "content": "".join(self.PIECES), "reasoning": "".join(self.THOUGHTS)}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        body = {**self.HEAD, "object": "chat.completion", "created": 1700000000, "choices": choices, "usage": usage}
        return reply(json.dumps(body).encode() + b"\n", b"200 OK", JSON)

    @MODES
    def test_it_gets_and_gives_plain_text(self, under: Start, streamed: bool) -> None:
        with under(provider=", tools: prompt, response_format: none") as talk:
            talk.upstream.play(self.script(streamed))
            with official(talk) as client:
                if streamed:
                    with client.chat.completions.stream(**ASKED, stream_options={"include_usage": True}) as stream:
                        stream.until_done()
                        made: Any = stream.get_final_completion()
                else:
                    made = client.chat.completions.create(**ASKED)
            assert "tools" not in talk.sent
            assert talk.sent["messages"][0]["content"].startswith("## Tools\n")
        choice = made.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content.strip() == "Let me look."
        assert choice.message.reasoning == "The user asks for x."
        assert [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls] == [
            ("find", {"q": "x"})
        ]
        assert (made.usage.total_tokens, made.system_fingerprint) == (56, "fp_ollama")

    @pytest.mark.parametrize("kind", ["api_error", "invalid_request_error"])
    def test_a_model_that_was_left_native_says_so_itself(self, under: Start, kind: str) -> None:
        """As it came; older versions name another type."""
        body = {"error": {"message": "gemma3:1b does not support tools", "type": kind, "param": None, "code": None}}
        with under() as talk:
            talk.upstream.play(reply(json.dumps(body).encode(), b"400 Bad Request", JSON))
            with (
                official(talk) as client,
                pytest.raises(openai.BadRequestError, match="does not support tools") as said,
            ):
                client.chat.completions.create(**ASKED)
        assert said.value.body == body["error"]

    def test_a_later_turn_has_other_ids(self, under: Start) -> None:
        """Its ids come from a thousand: in a long conversation two replies may have the same."""
        with under(provider=", tools: prompt") as talk:
            talk.upstream.play(self.script(False))
            first = gathered(talk.ask(tools=TOOLS), False)["tool_calls"][0]["id"]
            answer = talk.post(CHAT, {"model": "m", "messages": HISTORY, "tools": TOOLS})
            assert gathered(answer, False)["tool_calls"][0]["id"] != first


FORM = {"type": "json_schema", "json_schema": {"name": "out", "schema": SCHEMA, "strict": True}}


class TestForms:
    def sent(self, under: Start, takes: str, form: Any = FORM, path: bytes = CHAT, **more: Any) -> Any:
        with under(provider=f", response_format: {takes}, responses: chat, messages: chat") as talk:
            talk.upstream.play(says("{}", False))
            answer = talk.ask(path=path, **({"response_format": form} if form else {}), **more)
            assert answer.status == 200
            return talk.sent

    def test_a_schema_where_it_is_taken(self, under: Start) -> None:
        sent = self.sent(under, "json_schema")
        assert sent["response_format"] == FORM
        assert len(sent["messages"]) == 1

    def test_any_object_where_only_that_is_taken(self, under: Start) -> None:
        sent = self.sent(under, "json_object")
        assert sent["response_format"] == {"type": "json_object"}
        self.check_told(sent["messages"][0])

    def test_words_alone_where_nothing_is_taken(self, under: Start) -> None:
        sent = self.sent(under, "none")
        assert "response_format" not in sent
        self.check_told(sent["messages"][0])

    def check_told(self, system: Any) -> None:
        assert system["role"] == "system"
        assert system["content"].count(json.dumps(SCHEMA, separators=(",", ":"))) == 1

    def test_a_list_is_not_held_to_be_an_object(self, under: Start) -> None:
        form = {"type": "json_schema", "json_schema": {"name": "out", "schema": {"type": "array"}}}
        sent = self.sent(under, "json_object", form)
        assert "response_format" not in sent
        assert '{"type":"array"}' in sent["messages"][0]["content"]

    @pytest.mark.parametrize(("takes", "form"), [("json_object", {"type": "json_object"}), ("none", None)])
    def test_any_object(self, under: Start, takes: str, form: Any) -> None:
        sent = self.sent(under, takes, {"type": "json_object"})
        assert sent.get("response_format") == form
        assert len(sent["messages"]) == (1 if form else 2)

    def test_no_form_asked_for(self, under: Start) -> None:
        sent = self.sent(under, "none", None)
        assert sent == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    def test_responses(self, under: Start) -> None:
        form = {"format": {"type": "json_schema", "name": "out", "schema": SCHEMA}}
        sent = self.sent(under, "none", None, b"/v1/responses", input="hi", text=form, messages=None)
        assert "response_format" not in sent
        self.check_told(sent["messages"][0])

    def test_messages(self, under: Start) -> None:
        form = {"format": {"type": "json_schema", "schema": SCHEMA}}
        sent = self.sent(under, "none", None, b"/v1/messages", max_tokens=9, output_config=form)
        self.check_told(sent["messages"][0])

    @pytest.mark.parametrize("takes", ["none", "json_object"])
    def test_messages_at_home(self, under: Start, takes: str) -> None:
        """Messages has no word for any JSON object."""
        with under(provider=f", response_format: {takes}") as talk:
            talk.upstream.play(reply(b'{"type":"message","content":[{"type":"text","text":"{}"}]}', b"200 OK", JSON))
            talk.ask(
                path=b"/v1/messages", max_tokens=9, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
            )
            assert "format" not in (talk.sent.get("output_config") or {})
            assert json.dumps(SCHEMA, separators=(",", ":")) in json.dumps(talk.sent["system"]).replace('\\"', '"')

    def test_with_tools_it_concerns_the_answer_alone(self, under: Start) -> None:
        with under(provider=MODEL) as talk:
            talk.upstream.play(says("{}", False))
            talk.ask(tools=TOOLS, response_format=FORM)
            system = talk.sent["messages"][0]["content"]
        assert system.index("## Tools") < system.index("## Form of the answer")
        assert "not calls of tools" in system
