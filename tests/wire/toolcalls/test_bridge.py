"""Replies whose calls are text become replies with calls, whole and frame by frame."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from sidecar.wire import jsondoc
from sidecar.wire.toolcalls.bridge import Bridge
from sidecar.wire.toolcalls.writing import WRITINGS, Call

from ..fuzz import examples
from .talk import ASKED, TOOLS, USAGE, Document, accumulated, completion, frame, gathered, read, stream, through

ONE = '<tool_call>{"name": "find", "arguments": {"q": "x"}}</tool_call>'
TWO = f'Let me look.{ONE}<tool_call>{{"name": "get", "arguments": {{"n": [1, {{"m": 2.50}}]}}}}</tool_call>'
FRAGMENTS = (
    *(writing.called([Call("find", {"q": "x"}), Call("get", {})]) for writing in WRITINGS.values()),
    *('{"name": "find", "arguments": {"q": "', '"}}', "{", "}", '"', "<tool_call>", "</tool_call>", "```", "```json\n"),
    *("<think>", "</think>", " so ", "\n", "<", "[TOOL_CALLS]", "<|channel|>analysis<|message|>", "<|end|>", "find"),
    *(
        "{'tool': 'find', 'arguments': {'b': True}}",
        '{"name": "rm", "arguments": {}}',
        "<function=find>",
        "[",
        "]",
        "; ",
    ),
)
UNKNOWN = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'


def bridge(dialect: str = "hermes", **fields: Any) -> Bridge:
    return Bridge({**ASKED, **fields}, dialect)


def told(document: Document, choice: int = 0) -> Document:
    """The parts of a choice that clients go by."""
    said = document["choices"][choice]
    calls = said["message"].get("tool_calls") or []
    return {
        "content": said["message"]["content"] or None,
        "calls": [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls],
        "end": said["finish_reason"],
    }


def whole(document: Document, **fields: Any) -> Document:
    out = bridge(**fields).reply(document)
    ChatCompletion.model_validate(json.loads(jsondoc.encode(out)))
    return out


class TestWhole:
    def test_calls(self) -> None:
        said = told(whole(completion(TWO)))
        assert (said["content"], said["end"]) == ("Let me look.", "tool_calls")
        assert [call[1:] for call in said["calls"]] == [("find", {"q": "x"}), ("get", {"n": [1, {"m": 2.5}]})]

    def test_their_form(self) -> None:
        message = whole(completion(ONE))["choices"][0]["message"]
        (call,) = message["tool_calls"]
        assert call.keys() == {"id", "type", "function"}
        assert call["function"].keys() == {"name", "arguments"}
        assert message["content"] is None

    def test_ids_are_made_from_the_reply(self) -> None:
        first, same = told(whole(completion(TWO))), told(whole(completion(TWO)))
        other = told(whole({**completion(TWO), "id": "chatcmpl-u"}))
        later = told(whole(completion(TWO), messages=[*ASKED["messages"]] * 3))
        assert first == same
        ids = [call[0] for said in (first, other, later) for call in said["calls"]]
        assert len(set(ids)) == 6

    @pytest.mark.parametrize("content", ["Four < five.", "", None, "```python\nprint(1)\n```", '{"a": 1}'])
    def test_a_plain_answer_is_the_same_document(self, content: Any) -> None:
        document = completion(content)
        assert whole(document) is document

    def test_what_names_no_tool_stays_text(self) -> None:
        between, document = bridge(), completion(f"I use {UNKNOWN}")
        assert between.reply(document) is document
        assert between.unknown == ("rm",)

    def test_the_first_few_of_them_are_told(self) -> None:
        between = bridge()
        names = [*map(str, range(100)), *map(str, range(100))]
        between.reply(completion("".join(f'{{"tool": "{name}", "arguments": {{}}}}' for name in names)))
        assert between.unknown == tuple(names[:8])

    def test_a_tool_that_may_not_be_called_now(self) -> None:
        between = bridge(tool_choice={"type": "function", "function": {"name": "get"}})
        assert told(between.reply(completion(ONE)))["end"] == "stop"
        assert between.unknown == ("find",)

    @pytest.mark.parametrize("reason", ["length", "content_filter"])
    def test_other_ends_stay(self, reason: str) -> None:
        assert told(whole(completion(TWO, reason=reason)))["end"] == reason

    def test_a_call_that_is_cut_off_is_none(self) -> None:
        said = told(whole(completion(TWO[:-30], reason="length")))
        assert [name for _, name, _ in said["calls"]] == ["find"]
        assert said["end"] == "length"

    @pytest.mark.parametrize("reason", ["length", "content_filter", "error"])
    @pytest.mark.parametrize("left", [1, 12, 13, 15])
    def test_nor_is_one_that_the_provider_stopped(self, reason: str, left: int) -> None:
        """What is missing at the end of such a text was not forgotten. It was never said."""
        said = read(bridge().reply(completion(ONE[:-left], reason=reason)))
        assert (len(said.calls), said.end) == (left <= len("</tool_call>"), reason)
        streamed = gathered(through(bridge(), stream(ONE[:-left], reason)))
        assert streamed.end == reason
        assert not said.calls or streamed == said

    def test_native_calls_stay(self) -> None:
        call = {"id": "own", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        document = completion(ONE, reason="tool_calls", tool_calls=[call])
        assert whole(document) is document

    def test_every_choice_is_read(self) -> None:
        document = whole(completion(ONE, "No.", TWO))
        assert [told(document, at)["end"] for at in range(3)] == ["tool_calls", "stop", "tool_calls"]
        ids = [call[0] for at in range(3) for call in told(document, at)["calls"]]
        assert len(set(ids)) == 3

    def test_one_call_where_one_is_allowed(self) -> None:
        assert len(told(whole(completion(TWO), parallel_tool_calls=False))["calls"]) == 1

    def test_without_tools_nothing_is_read(self) -> None:
        document = completion(ONE)
        assert bridge(tools=[]).reply(document) is document
        assert bridge(tool_choice="none").reply(document) is document

    def test_what_was_computed_over_the_text_goes(self) -> None:
        document = completion(ONE)
        document["choices"][0]["logprobs"] = {
            "content": [{"token": "<", "logprob": -1.0, "bytes": [60], "top_logprobs": []}]
        }
        assert whole(document)["choices"][0]["logprobs"] is None

    def test_other_fields_stay(self) -> None:
        document = {**completion(ONE, reasoning_content="hm", refusal=None), "x_provider": 1}
        out = whole(document)
        assert out["x_provider"] == 1
        assert out["usage"] == USAGE
        assert out["choices"][0]["message"]["reasoning_content"] == "hm"

    def test_content_in_parts(self) -> None:
        parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": f"So. {ONE}"}]
        message = bridge().reply(completion(parts))["choices"][0]["message"]
        assert message["content"][0] == parts[0]
        assert message["content"][1]["text"].strip() == "So."
        assert len(message["tool_calls"]) == 1

    def test_older_clients(self) -> None:
        old: Document = {"tools": None, "functions": [TOOLS[0]["function"], TOOLS[1]["function"]]}
        choice = bridge(**old).reply(completion(TWO))["choices"][0]
        assert choice["finish_reason"] == "function_call"
        assert choice["message"]["function_call"]["name"] == "find"
        assert json.loads(choice["message"]["function_call"]["arguments"]) == {"q": "x"}
        assert "tool_calls" not in choice["message"]

    def test_a_free_text(self) -> None:
        free = [{"type": "custom", "custom": {"name": "apply"}}]
        text = '<tool_call>{"name": "apply", "arguments": {"input": "a\\n\\"b\\""}}</tool_call>'
        (call,) = bridge(tools=free).reply(completion(text))["choices"][0]["message"]["tool_calls"]
        assert {**call, "id": ""} == {"id": "", "type": "custom", "custom": {"name": "apply", "input": 'a\n"b"'}}

    @pytest.mark.parametrize(
        "document", [{}, {"choices": None}, {"choices": [1]}, {"choices": [{"index": 0}]}, {"error": {"message": "x"}}]
    )
    def test_what_is_no_reply_passes(self, document: Document) -> None:
        assert bridge().reply(document) is document
        assert bridge().error(document, 500) is document


class TestStream:
    @pytest.mark.parametrize("size", [1, 2, 7, 500])
    @pytest.mark.parametrize("text", [ONE, TWO, f"{TWO} Done.", "No <b>.", f"x{UNKNOWN}y"])
    def test_it_is_what_the_whole_is(self, text: str, size: int) -> None:
        frames = through(bridge(), stream([text[at : at + size] for at in range(0, len(text), size)]))
        assert told(accumulated(frames)) == told(whole(completion(text)))

    @given(st.data(), st.sampled_from(sorted(WRITINGS)))
    @examples(150)
    def test_whatever_the_model_says(self, data: st.DataObject, dialect: str) -> None:
        """Also what is broken: such a call is in no whole reply, and a stream that has begun it is cut off."""
        text = "".join(data.draw(st.lists(st.sampled_from(FRAGMENTS), max_size=8)))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        frames = accumulated(through(bridge(dialect), stream(pieces)))["choices"][0]
        choice = bridge(dialect).reply(completion(text))["choices"][0]
        assert frames["finish_reason"] == choice["finish_reason"]
        for field in ("content", "reasoning_content"):
            assert (frames["message"].get(field) or "") == (choice["message"].get(field) or "")
        begun = {call["id"]: call["function"] for call in frames["message"].get("tool_calls") or []}
        made = {call["id"]: call["function"] for call in choice["message"].get("tool_calls") or []}
        assert made.items() <= {id_: {k: f[k] for k in ("name", "arguments")} for id_, f in begun.items()}.items()
        assert made.keys() == begun.keys() or frames["finish_reason"] == "length"
        assert all(isinstance(json.loads(function["arguments"]), dict) for function in made.values())

    @given(st.sampled_from([ONE, TWO, f"a < b {TWO} c", UNKNOWN]), st.lists(st.integers(1, 25), min_size=1, max_size=8))
    @examples(100)
    def test_however_it_is_cut(self, text: str, sizes: list[int]) -> None:
        pieces: list[str] = []
        at = 0
        while at < len(text):
            size = sizes[len(pieces) % len(sizes)]
            pieces.append(text[at : at + size])
            at += size
        assert told(accumulated(through(bridge(), stream(pieces)))) == told(whole(completion(text)))

    def test_each_frame_is_one_that_clients_know(self) -> None:
        frames = through(bridge(), stream(TWO))
        ends = [c["finish_reason"] for document in frames for c in document["choices"] if c["finish_reason"]]
        assert ends == ["tool_calls"]
        calls = [call for document in frames for c in document["choices"] for call in c["delta"].get("tool_calls", ())]
        assert [call["index"] for call in calls if "id" in call] == [0, 1]
        assert all(call["type"] == "function" for call in calls if "id" in call)
        assert all(call["function"].keys() == {"arguments"} for call in calls if "id" not in call)
        assert frames[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert frames[-1]["usage"] == USAGE

    def test_text_leaves_as_it_comes(self) -> None:
        """The same document where nothing changes: its bytes need not be written anew."""
        between = bridge()
        for document in stream(["Four", " is", " five."]):
            assert [one is document for one in between.feed(document)] == [True]
        assert between.finish() == []

    def test_arguments_leave_before_the_call_is_over(self) -> None:
        text = '<tool_call>{"name": "find", "arguments": {"q": "' + "x" * 300
        frames = through_without_end(bridge(), [frame({"content": character}) for character in text])
        calls = [call for document in frames for call in document["choices"][0]["delta"].get("tool_calls", ())]
        told = "".join(call["function"]["arguments"] for call in calls)
        assert len(told) > 250

    def test_the_role_is_said_once_more_only_with_text(self) -> None:
        """Ollama's frames all have it."""
        frames = [frame({"role": "assistant", "content": character}) for character in ONE]
        out = through(bridge(), [*frames, frame({"role": "assistant", "content": ""}, "stop")])
        assert told(accumulated(out))["end"] == "tool_calls"
        assert all(document["choices"][0]["delta"] or document["choices"][0]["finish_reason"] for document in out)
        assert len(out) < len(frames)

    def test_choices_take_turns(self) -> None:
        frames = [frame({"content": character}, index=at) for character in ONE for at in (0, 1)]
        ends = [frame({}, "stop", index=at) for at in (1, 0)]
        said = accumulated(through(bridge(), [*frames, *ends]))
        first, second = told(said), told(said, 1)
        assert (first["end"], second["end"]) == ("tool_calls", "tool_calls")
        assert first["calls"][0][0] != second["calls"][0][0]

    def test_several_choices_in_one_frame(self) -> None:
        both = [frame({"content": text}, index=at)["choices"][0] for at, text in enumerate((TWO, "No."))]
        document = {**frame({}), "choices": both, "usage": USAGE}
        out = through(bridge(), [document, frame({}, "stop"), frame({}, "stop", index=1)])
        assert [f["usage"] for f in out if f.get("usage")] == [USAGE]
        assert told(accumulated(out), 1)["content"] == "No."
        assert len(told(accumulated(out))["calls"]) == 2

    def test_all_in_the_last_frame(self) -> None:
        out = through(bridge(), [frame({"role": "assistant", "content": TWO}, "stop")])
        assert told(accumulated(out)) == told(whole(completion(TWO)))
        assert [document["choices"][0]["finish_reason"] for document in out][-1] == "tool_calls"
        assert out[0]["choices"][0]["delta"]["role"] == "assistant"

    @pytest.mark.parametrize("reason", ["length", "content_filter"])
    def test_other_ends_stay(self, reason: str) -> None:
        assert told(accumulated(through(bridge(), stream(ONE, reason))))["end"] == reason

    def test_native_calls_go_before(self) -> None:
        call = {"index": 0, "id": "own", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        frames = [
            frame({"content": "<tool_c"}),
            frame({"tool_calls": [call]}),
            frame({"content": ONE}),
            frame({}, "tool_calls"),
        ]
        said = told(accumulated(through(bridge(), frames)))
        assert [call[0] for call in said["calls"]] == ["own"]
        assert said["content"] == f"<tool_c{ONE}"

    def test_and_count_on_from_those_in_text(self) -> None:
        call = {"index": 0, "id": "own", "type": "function", "function": {"name": "get", "arguments": "{}"}}
        frames = [*(frame({"content": c}) for c in ONE), frame({"tool_calls": [call]}), frame({}, "tool_calls")]
        said = told(accumulated(through(bridge(), frames)))
        assert [call[1] for call in said["calls"]] == ["find", "get"]
        assert said["calls"][1][0] == "own"

    def test_behind_one_in_text_that_breaks_off_they_must_not_be_made(self) -> None:
        call = {"index": 0, "id": "own", "type": "function", "function": {"name": "get", "arguments": "{}"}}
        out = through(bridge(), [frame({"content": ONE[:-20]}), frame({"tool_calls": [call]}, "tool_calls")])
        assert [c["finish_reason"] for f in out for c in f["choices"] if c["finish_reason"]] == ["length"]

    def test_a_stream_without_an_end_gets_none(self) -> None:
        out = through(bridge(), [frame({"content": "so <tool_c"})])
        assert "".join(document["choices"][0]["delta"]["content"] for document in out) == "so <tool_c"
        assert all(document["choices"][0]["finish_reason"] is None for document in out)

    def test_an_error_comes_after_what_was_held(self) -> None:
        broken = {"error": {"message": "no"}}
        out = through(bridge(), [frame({"content": "so <tool_c"}), broken])
        assert out[-1] == broken
        assert "".join(document["choices"][0]["delta"]["content"] for document in out[:-1]) == "so <tool_c"

    def test_older_clients(self) -> None:
        old: Document = {"tools": None, "functions": [TOOLS[0]["function"]]}
        out = through(bridge(**old), stream(ONE))
        said = [c["delta"]["function_call"] for f in out for c in f["choices"] if "function_call" in c["delta"]]
        assert "".join(part.get("name", "") for part in said) == "find"
        assert json.loads("".join(part["arguments"] for part in said)) == {"q": "x"}
        assert [c["finish_reason"] for f in out for c in f["choices"]][-1] == "function_call"

    def test_a_free_text_comes_when_it_is_whole(self) -> None:
        free = [{"type": "custom", "custom": {"name": "apply"}}]
        text = '<tool_call>{"name": "apply", "arguments": {"input": "a\\nb"}}</tool_call>'
        out = through(bridge(tools=free), stream(text))
        (call,) = (call for f in out for c in f["choices"] for call in c["delta"].get("tool_calls", ()))
        assert (call["index"], call["type"], call["custom"]) == (0, "custom", {"name": "apply", "input": "a\nb"})

    def test_log_probabilities_stay_with_text_that_does(self) -> None:
        odds = {"content": [{"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}]}
        kept, held = frame({"content": "a"}, logprobs=odds), frame({"content": ONE}, logprobs=odds)
        out = through(bridge(), [kept, held, frame({}, "stop")])
        assert [document["choices"][0].get("logprobs") for document in out] == [odds, None, None]

    def test_what_names_no_tool_is_told(self) -> None:
        between = bridge()
        through(between, stream(UNKNOWN))
        assert between.unknown == ("rm",)


# What a broken provider may say in place of anything.
ODD = st.sampled_from([None, 0, 1.5, True, "", "x", [], {}, [1], [None], {"a": 1}, [{"type": "text", "text": None}]])
TEXT = st.lists(st.sampled_from(FRAGMENTS), max_size=4).map("".join)
OWN = {"index": 0, "id": "own", "type": "function", "function": {"name": "get", "arguments": "{}"}}
SAID = st.fixed_dictionaries(
    {"content": TEXT | ODD},
    optional={"tool_calls": st.just([OWN]) | ODD, "function_call": st.just(OWN["function"]) | ODD, "refusal": ODD},
)


def documents(field: str) -> st.SearchStrategy[Document]:
    choice = st.fixed_dictionaries(
        {"index": st.integers(0, 1) | ODD, field: SAID | ODD},
        optional={"finish_reason": st.sampled_from(["stop", "length"]) | ODD, "logprobs": ODD},
    )
    choices = st.lists(choice | ODD, max_size=3) | ODD
    return st.fixed_dictionaries({"choices": choices}, optional={"id": ODD, "usage": ODD, "error": ODD})


@given(st.lists(documents("delta"), max_size=5), documents("message"), st.sampled_from(sorted(WRITINGS)), st.booleans())
@example([frame({"content": "x"}, {"a": 1})], completion(ONE, reason=["stop"]), "hermes", False)
@examples(200)
def test_whatever_a_provider_sends_there_is_an_answer(
    frames: list[Document], whole: Document, dialect: str, old: bool
) -> None:
    """And what it sent is not changed."""
    fields: Document = {"tools": None, "functions": [each["function"] for each in TOOLS]} if old else {}
    through(bridge(dialect, **fields), frames)
    before = jsondoc.encode(whole)
    jsondoc.encode(bridge(dialect, **fields).reply(whole))
    assert jsondoc.encode(whole) == before


def through_without_end(between: Bridge, frames: Iterable[Document]) -> list[Document]:
    return [told for document in frames for told in between.feed(document)]


class TestDialects:
    """What a model is told to write is what is read."""

    @pytest.mark.parametrize("dialect", sorted(WRITINGS))
    @pytest.mark.parametrize("streamed", [False, True])
    def test_each_reads_what_it_writes(self, dialect: str, streamed: bool) -> None:
        calls = [Call("find", {"q": "a } b </tool_call>"}), Call("get", {"n": [1, {"m": None}]})]
        text = WRITINGS[dialect].called(calls)
        if streamed:
            said = told(accumulated(through(bridge(dialect), stream(text))))
        else:
            said = told(bridge(dialect).reply(completion(text)))
        assert [call[1:] for call in said["calls"]] == [tuple(call) for call in calls]
        assert said["end"] == "tool_calls"
        assert not (said["content"] or "").strip()

    def test_thoughts_of_harmony_are_reasoning(self) -> None:
        text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Four.<|return|>"
        message = bridge("harmony").reply(completion(text))["choices"][0]["message"]
        assert (message["reasoning_content"], message["content"]) == ("Hm.", "Four.")
        out = through(bridge("harmony"), stream(text))
        said = [c["delta"] for f in out for c in f["choices"]]
        assert "".join(delta.get("reasoning_content") or "" for delta in said) == "Hm."
        assert "".join(delta.get("content") or "" for delta in said) == "Four."
