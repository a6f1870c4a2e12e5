"""A chat stream told in the events of a response."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.responses import ResponseFunctionCallArgumentsDeltaEvent, ResponseTextDeltaEvent
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.wire.fuzz import examples

from .responses_talk import (
    USED,
    Document,
    bridge,
    call_chunk,
    checked,
    chunk,
    completion,
    function,
    said,
    tail,
    told,
)

ANSWER = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo."}), *tail()]


def last(frames: Sequence[Document]) -> Document:
    response: Document = frames[-1]["response"]
    return response


def test_a_text() -> None:
    frames = told(ANSWER)
    assert checked(frames) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert frames[4] == {
        "type": "response.output_text.delta",
        "item_id": "msg_chatcmpl-9",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hel",
        "logprobs": [],
        "sequence_number": 4,
    }
    assert frames[6]["text"] == "Hello."
    assert (frames[0]["response"]["status"], frames[0]["response"]["output"]) == ("in_progress", [])
    assert last(frames) == bridge().reply(completion({"content": "Hello."}))


def test_a_delta_leaves_with_the_frame_that_brought_it() -> None:
    speaking = bridge()
    assert checked(speaking.feed(ANSWER[0])) == ["created", "in_progress"]
    assert [frame["type"] for frame in speaking.feed(ANSWER[1])][-1] == "response.output_text.delta"
    assert [frame["delta"] for frame in speaking.feed(ANSWER[2])] == ["lo."]


def test_reasoning_is_over_when_the_answer_begins() -> None:
    frames = told([chunk({"reasoning_content": "Hm."}), chunk({"content": "Hi."}), *tail()])
    assert checked(frames)[2:11] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
    ]


def test_reasoning_as_a_summary() -> None:
    frames = told([chunk({"reasoning": "Hm."}), chunk({"content": "Hi."}), *tail()], reasoning={"summary": "auto"})
    assert checked(frames)[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert frames[4]["summary_index"] == 0


def test_a_refusal_after_a_text_is_a_part_of_its_own() -> None:
    frames = told([chunk({"content": "Well"}), chunk({"refusal": "no"}), *tail()])
    assert checked(frames)[3:11] == [
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
    ]
    assert [frame["content_index"] for frame in frames[3:11]] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_text_is_over_when_a_call_begins() -> None:
    frames = told([chunk({"content": "I look."}), call_chunk(0, "call_1", "look", "{}"), *tail("tool_calls")])
    assert checked(frames)[5:10] == [
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta"),
    ]


def test_calls_that_take_turns() -> None:
    frames = told(
        [
            call_chunk(0, "call_1", "look"),
            call_chunk(1, "call_2", "find"),
            call_chunk(0, arguments='{"a":'),
            call_chunk(1, arguments="{"),
            call_chunk(0, arguments="1}"),
            call_chunk(1, arguments="}"),
            *tail("tool_calls"),
        ]
    )
    assert checked(frames)[2:] == [
        *("output_item.added", "function_call_arguments.delta") * 2,
        *("function_call_arguments.delta", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done"),
        *("function_call_arguments.done", "output_item.done"),
        "completed",
    ]
    assert frames[2]["item"] == {**last(frames)["output"][0], "arguments": "", "status": "in_progress"}
    assert said(last(frames)["output"]) == [("function_call", 'look({"a":1})'), ("function_call", "find({})")]


def test_a_custom_call() -> None:
    call = {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "run", "input": "l"}}
    more = {"index": 0, "custom": {"input": "s"}}
    frames = told([chunk({"tool_calls": [call]}), chunk({"tool_calls": [more]}), *tail("tool_calls")])
    assert checked(frames)[2:] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    assert said(last(frames)["output"]) == [("custom_tool_call", "run<ls>")]


def test_a_citation() -> None:
    cited = {"start_index": 0, "end_index": 3, "title": "A", "url": "https://host/a"}
    annotations = [{"type": "url_citation", "url_citation": cited}]
    frames = told([chunk({"content": "Hi."}), chunk({"annotations": annotations}), *tail()])
    assert checked(frames)[5] == "output_text.annotation.added"
    assert last(frames)["output"][0]["content"][0]["annotations"] == [{"type": "url_citation", **cited}]


def test_log_probabilities_go_with_their_delta() -> None:
    token = {"token": "Hi", "bytes": [72, 105], "logprob": -0.5, "top_logprobs": []}
    frames = told([chunk({"content": "Hi"}, logprobs={"content": [token]}), chunk({"content": "."}), *tail()])
    checked(frames)
    assert [frame["logprobs"] for frame in frames[4:7]] == [[token], [], [token]]
    assert last(frames)["output"][0]["content"][0]["logprobs"] == [token]


def test_nothing_said() -> None:
    assert said(last(told(tail()))["output"]) == [("message", "")]


@pytest.mark.parametrize(
    ("reason", "ending", "status"), [("length", "incomplete", "incomplete"), ("stop", "completed", "completed")]
)
def test_the_last_event_names_the_status(reason: str, ending: str, status: str) -> None:
    frames = told([chunk({"content": "Hi"}), *tail(reason)])
    assert checked(frames)[-1] == ending
    assert frames[-2]["item"]["status"] == last(frames)["status"] == status


def test_no_two_frames_share_a_part() -> None:
    """Who edits one of them in place edits no other."""
    token = {"token": "Hi", "bytes": [72, 105], "logprob": -0.5, "top_logprobs": []}
    cited = {"start_index": 0, "end_index": 2, "title": "A", "url": "https://host/a"}
    delta = {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": cited}]}
    chunks = [chunk(delta, logprobs={"content": [token]}), call_chunk(0, "call_1", "look", "{}"), *tail()]
    frames = told(chunks, metadata={"a": "b"}, tools=[{"type": "function", "name": "look"}])
    held = [id(part) for frame in frames for part in parts(frame)]
    assert len(held) == len(set(held))


def parts(document: Any) -> Iterator[Any]:
    if isinstance(document, dict | list):
        yield document
        for inner in document.values() if isinstance(document, dict) else document:
            yield from parts(inner)


# --- servers that do it their own way ------------------------------------------------------------------------


def output(*chunks: Document) -> list[tuple[str, str]]:
    frames = told([*chunks, *tail("tool_calls")])
    checked(frames)
    return said(last(frames)["output"])


def test_a_name_that_comes_in_pieces() -> None:
    pieces = [call_chunk(0, "call_1", "lo"), call_chunk(0, None, "ok"), call_chunk(0, arguments="{}")]
    assert output(*pieces) == [("function_call", "look({})")]


def test_a_name_and_id_that_come_with_every_piece() -> None:
    pieces = [call_chunk(0, "call_1", "look", text) for text in ("", '{"a":', "1}")]
    assert output(*pieces) == [("function_call", 'look({"a":1})')]


def test_a_new_id_with_every_piece() -> None:
    pieces = [call_chunk(0, "x1", "look"), call_chunk(0, "x2", None, "{"), call_chunk(0, "x3", None, "}")]
    assert output(*pieces) == [("function_call", "look({})")]


def test_every_call_counted_as_the_first() -> None:
    pieces = [call_chunk(0, "call_1", "look", "{}"), call_chunk(0, "call_2", "look", "{}")]
    assert output(*pieces) == [("function_call", "look({})"), ("function_call", "look({})")]


def test_calls_without_number_and_id() -> None:
    pieces = [chunk({"tool_calls": [{"function": {"name": name, "arguments": "{}"}}]}) for name in ("look", "find")]
    assert output(*pieces) == [("function_call", "look({})"), ("function_call", "find({})")]


def test_a_first_frame_that_says_nothing_of_the_reply() -> None:
    """Azure reports its filters before the reply begins, in a frame without an id."""
    filters = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    assert last(told([filters, *ANSWER]))["id"] == "resp_chatcmpl-9"


def test_usage_in_every_frame_and_with_the_last_choice() -> None:
    early = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    final = tail()[-1]["usage"]
    frames = told([{**chunk({"content": "Hi"}), "usage": early}, {**chunk({}, "stop"), "usage": final}, chunk({})])
    assert last(frames)["usage"] == USED


def test_other_choices_and_frames_without_any_are_passed_over() -> None:
    assert output(chunk({"content": "b"}, index=1), {"id": "x"}, chunk({"content": "a"})) == [("message", "a")]


def test_what_comes_after_the_end_is_not_told() -> None:
    speaking = bridge()
    for document in ANSWER:
        speaking.feed(document)
    assert speaking.finish()
    assert [*speaking.feed(ANSWER[1]), *speaking.finish()] == []


# --- streams that fail ---------------------------------------------------------------------------------------


def test_an_error_in_the_stream() -> None:
    error = {"message": "overheated", "type": "server_error", "param": "messages", "code": 503}
    frames = told([ANSWER[1], {"error": error}, *ANSWER[2:]])
    assert checked(frames)[-2:] == ["error", "failed"]
    kept = {"message": "overheated", "type": "server_error", "param": "input", "code": "503"}
    assert frames[-2]["error"] == kept
    assert {key: frames[-2][key] for key in ("message", "param", "code")} == {
        k: kept[k] for k in ("message", "param", "code")
    }
    assert last(frames)["error"] == {"code": "server_error", "message": "overheated"}
    assert said(last(frames)["output"]) == [("message", "Hel")]
    assert last(frames)["output"][0]["status"] == "incomplete"


def test_an_error_before_anything_else() -> None:
    frames = told([{"error": "no such model"}])
    assert checked(frames) == ["error"]
    assert frames[0]["message"] == "no such model"


def test_an_error_with_a_choice() -> None:
    frames = told([{**chunk({"content": ""}, "error"), "error": {"message": "gone", "code": 502}}])
    assert checked(frames) == ["created", "in_progress", "error", "failed"]


def test_a_stream_that_breaks_off() -> None:
    frames = told(ANSWER[:2])
    assert checked(frames)[-2:] == ["error", "failed"]
    assert frames[-2]["code"] == "upstream_broken"
    assert checked(told([])) == ["error"]


def test_a_provider_that_gives_up() -> None:
    frames = told([ANSWER[1], *tail("error")])
    assert checked(frames)[-2:] == ["error", "failed"]


ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["", "a", "call_1", "thinking", "text"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("index", "id", "type", "function", "custom", "name", "arguments", "input", "text", "thinking"),
                    *("content", "url_citation", "url", "message", "prompt_tokens", "prompt_tokens_details"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
DELTAS = st.dictionaries(
    st.sampled_from(
        [
            *("role", "content", "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls"),
            *("function_call", "annotations"),
        ]
    ),
    ODD,
    max_size=3,
)
FRAMES = st.one_of(
    st.builds(chunk, DELTAS, st.sampled_from([None, "stop"]), logprobs=ODD),
    st.builds(
        lambda odd, field: {**chunk({"content": "a"}), field: odd}, ODD, st.sampled_from(["id", "usage", "error"])
    ),
    st.builds(lambda odd: {"choices": odd}, ODD),
)


@examples(200)
@given(st.lists(FRAMES, max_size=5))
def test_whatever_a_server_sends_the_stream_has_one_proper_end(frames: list[Document]) -> None:
    events = [frame["type"] for frame in told(frames)]
    assert events[-1] in ("response.completed", "response.failed", "error")
    assert sum(event in ("response.completed", "error") for event in events) == 1


# --- law 2: however the stream is cut ------------------------------------------------------------------------

TEXTS = st.text('ab é😀\n"\\{}', min_size=1, max_size=12)
KINDS = ("reasoning_content", "content", "refusal")
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@st.composite
def messages(draw: st.DrawFn) -> Document:
    message: Document = {kind: draw(TEXTS) for kind in KINDS if draw(st.booleans())}
    count = draw(st.integers(0, 3))
    if count:
        names = [draw(st.sampled_from(["look", "find", "aa"])) for _ in range(count)]
        message["tool_calls"] = [function(name, draw(TEXTS), f"call_{at}") for at, name in enumerate(names)]
    return message


def cuts(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4))) if len(text) > 1 else []
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def call_deltas(draw: st.DrawFn, index: int, call: Document) -> list[Document]:
    """The first has the id, the name may come in pieces, then come the arguments."""
    deltas: list[Document] = [{"function": {"name": piece}} for piece in cuts(draw, call["function"]["name"])]
    deltas[0] |= {"id": call["id"], "type": "function"}
    deltas += [{"function": {"arguments": piece}} for piece in cuts(draw, call["function"]["arguments"])]
    return [{"index": index, **delta} for delta in deltas]


def interleaved(draw: st.DrawFn, lanes: list[list[Document]]) -> list[Document]:
    """Turn by turn, where a call begins after the one before it has its name."""
    begun, out = 0, []
    while any(lanes):
        ready = [at for at, lane in enumerate(lanes) if lane and at <= begun]
        if not ready:
            begun += 1
            continue
        at = draw(st.sampled_from(ready))
        out.append(lanes[at].pop(0))
        if at == begun and "arguments" in out[-1]["function"]:
            begun += 1
    return out


@st.composite
def cut(draw: st.DrawFn, message: Document) -> list[Document]:
    """The message in deltas, some of which share a frame."""
    deltas: list[Document] = [{kind: piece} for kind in KINDS if kind in message for piece in cuts(draw, message[kind])]
    lanes = [call_deltas(draw, at, call) for at, call in enumerate(message.get("tool_calls", ()))]
    deltas += [{"tool_calls": [call]} for call in interleaved(draw, lanes)]
    return list(merged(draw, deltas))


def merged(draw: st.DrawFn, deltas: list[Document]) -> Iterator[Document]:
    held: Document = {}
    for delta in deltas:
        (key,) = delta
        if held and ((key in held and key != "tool_calls") or not draw(st.booleans())):
            yield chunk(held)
            held = {}
        held = {**held, key: [*held.get(key, []), *delta[key]] if key == "tool_calls" else delta[key]}
    if held:
        yield chunk(held)


@examples(150)
@given(st.data())
def test_however_it_is_cut_the_response_is_that_of_the_whole_reply(data: st.DataObject) -> None:
    message = data.draw(messages())
    frames = told([*data.draw(cut(message)), *tail()])
    checked(frames)
    whole = bridge().reply(completion(message))
    assert last(frames) == whole
    assert said(whole["output"]) == (list(meant(message)) or [("message", "")])


def meant(message: Document) -> Iterator[tuple[str, str]]:
    """The items that a message comes to."""
    if "reasoning_content" in message:
        yield "reasoning", message["reasoning_content"]
    if message.keys() & {"content", "refusal"}:
        yield "message", message.get("content", "") + message.get("refusal", "")
    for call in message.get("tool_calls", ()):
        yield "function_call", f"{call['function']['name']}({call['function']['arguments']})"


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([*KINDS, "call"]), TEXTS), max_size=12))
def test_in_whatever_order_it_comes_deltas_items_and_response_say_the_same(pieces: list[tuple[str, str]]) -> None:
    chunks = [call_chunk(0, "call_1", "look", text) if kind == "call" else chunk({kind: text}) for kind, text in pieces]
    frames = told([*chunks, *tail()])
    checked(frames)
    final = last(frames)["output"]
    assert heard(frames) == final
    assert final == [frame["item"] for frame in sorted(done(frames), key=lambda frame: frame["output_index"])]
    for kind in {kind for kind, _ in pieces}:
        whole = "".join(text for other, text in pieces if other == kind)
        assert "".join(texts(final, kind)) == whole


def done(frames: list[Document]) -> list[Document]:
    return [frame for frame in frames if frame["type"] == "response.output_item.done"]


_PARTS = {"reasoning_content": "reasoning_text", "content": "output_text", "refusal": "refusal"}


def texts(items: list[Document], kind: str) -> Iterator[str]:
    for item in items:
        if kind == "call":
            yield item.get("arguments", "")
        for part in item.get("content", ()):
            if part["type"] == _PARTS.get(kind):
                yield part.get("text") or part.get("refusal", "")


def heard(frames: list[Document]) -> list[Document]:
    """The items as a client builds them from the deltas alone."""
    items: dict[int, Document] = {}
    for frame in frames:
        at = frame.get("output_index", -1)
        match frame["type"].removeprefix("response.").split("."):
            case ["output_item", "added"]:
                items[at] = {**frame["item"], "status": "completed"}
                if "content" in frame["item"]:
                    items[at]["content"] = []
            case ["content_part", "added"]:
                items[at]["content"].append(dict(frame["part"]))
            case ["function_call_arguments", "delta"]:
                items[at]["arguments"] += frame["delta"]
            case [kind, "delta"]:
                part = items[at]["content"][frame["content_index"]]
                part["refusal" if kind == "refusal" else "text"] += frame["delta"]
    return [items[at] for at in sorted(items)]


@examples(40)
@given(st.data())
def test_the_official_accumulator_reads_every_cut(data: st.DataObject) -> None:
    message = data.draw(messages())
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    heard: dict[tuple[int, str], str] = {}
    for frame in told([*data.draw(cut(message)), *tail()]):
        for event in state.handle_event(_EVENT.validate_python(frame)):
            if isinstance(event, ResponseTextDeltaEvent | ResponseFunctionCallArgumentsDeltaEvent):
                heard[event.output_index, event.type.split(".")[1]] = event.snapshot
    output = bridge().reply(completion(message))["output"]
    completed = state._completed_response
    assert completed is not None
    assert said(item.to_dict(mode="json") for item in completed.output) == said(output)
    assert heard == dict(running(output))


def running(output: list[Document]) -> Iterator[tuple[tuple[int, str], str]]:
    """The texts of which the accumulator keeps a snapshot."""
    for at, item in enumerate(output):
        if item["type"] == "function_call":
            yield (at, "function_call_arguments"), item["arguments"]
        for part in item.get("content", ()):
            if part["type"] == "output_text":
                yield (at, "output_text"), part["text"]
