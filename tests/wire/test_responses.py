"""`/v1/responses` under a policy: what the provider is asked, what the client reads, how streams end."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest

from sidecar.core.decision import Block, Finish
from sidecar.core.surface import Lane
from sidecar.core.usage import Usage
from sidecar.errors import GuardrailTripped, UpstreamTimeout
from sidecar.text.pseudonyms import Disguise as Placeholders
from sidecar.text.pseudonyms import Pseudonyms
from sidecar.wire import jsondoc, responses, sse
from sidecar.wire.errors import openai_shape
from sidecar.wire.responses import places, writing
from sidecar.wire.stream import ReplyStream, Wire
from tests.stages.talk import chain

from .responses_talk import (
    Document,
    asked,
    copies,
    documents,
    events,
    hear,
    heard,
    response,
    said,
    stream_bytes,
    through,
)

WIRE: Wire = responses
TICKET = {"name": "ticket", "regex": "ACME-[0-9]{3}"}
EMAIL = {"name": "email", "regex": r"[a-z.]{1,64}@[a-z.]{1,64}\.[a-z]{2,8}"}
REDACT = chain([{"name": "r", "patterns": [TICKET], "action": "redact", "replacement": "#"}])
BLOCK = chain([{"name": "b", "patterns": [TICKET], "action": "block"}])
FINISH = chain([{"name": "f", "patterns": [TICKET], "action": "finish", "message": "That is secret."}])
HIDE = chain([{"name": "hide", "patterns": [EMAIL], "action": "pseudonymize"}])
IDENTITY = {"id": "chatcmpl-77", "created": 5, "model": "m"}


def message(*texts: str, **more: Any) -> Document:
    parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts, **more}


def call(arguments: str) -> Document:
    return {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "c",
        "name": "mail",
        "arguments": arguments,
        "status": "x",
    }


def cut(size: int) -> Any:
    return lambda text: [text[place : place + size] for place in range(0, len(text), size)]


def told(policy: Any, items: Sequence[Document], size: int = 3, **more: Any) -> list[Document]:
    """A stream through a policy: the events that the client gets."""
    return documents(through(asked(policy)[0], stream_bytes(events(items, cut(size), **more)))[0])


@contextmanager
def client(body: bytes) -> Iterator[openai.OpenAI]:
    """The official client, which gets this stream whatever it asks."""
    reply = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    with httpx2.Client(transport=httpx2.MockTransport(lambda request: reply)) as http:
        yield openai.OpenAI(api_key="k", base_url="http://provider", http_client=http, max_retries=0)


def read_by_sdk(body: bytes) -> tuple[list[Any], Any]:
    """What the official client's accumulator makes of a stream: its events and the last response."""
    with client(body) as sdk, sdk.responses.stream(model="m", input="x") as stream:
        got: list[Any] = list(stream)
    return got, got[-1].response


# -- the request


def test_every_text_of_a_request_is_looked_at() -> None:
    address = {"name": "email", "regex": EMAIL["regex"]}
    rule = {"name": "mask", "patterns": [address], "replacement": "[MASK]", "action": "redact"}
    rule["on"] = ["system", "user", "tool_results", "tool_calls"]
    written = {
        "model": "m1",
        "instructions": "reply to ana.fict@example.com",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "I am ana.fict@example.com"}]},
            {"type": "function_call", "call_id": "f1", "name": "mail", "arguments": '{"to":"ana.fict@example.com"}'},
            {"type": "function_call_output", "call_id": "f1", "output": "ok ana.fict@example.com"},
        ],
    }
    _, sent = asked(chain([rule]), written)
    assert sent["instructions"] == "reply to [MASK]"
    assert sent["input"][0]["content"][0]["text"] == "I am [MASK]"
    assert json.loads(sent["input"][1]["arguments"]) == {"to": "[MASK]"}
    assert sent["input"][2]["output"] == "ok [MASK]"
    assert asked(chain([rule]), {"input": "I am ana.fict@example.com"})[1] == {"input": "I am [MASK]"}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("ACME-123", "user"),
        ({"role": "user", "content": "ACME-123"}, "user"),
        ({"role": "developer", "content": "ACME-123"}, "system"),
        ({"type": "message", "role": "system", "content": [{"type": "input_text", "text": "ACME-123"}]}, "system"),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "ACME-123"}]}, "assistant"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "ACME-123"}]}, "assistant"),
        ({"role": "critic", "content": "ACME-123"}, "user"),
        ({"role": ["user"], "content": "ACME-123"}, "user"),
        ({"role": "user", "content": {"type": "input_text", "text": "ACME-123"}}, "user"),
        ({"role": "user", "content": [{"type": "new_part", "body": {"deep": ["ACME-123"]}}]}, "user"),
        ({"type": "function_call_output", "output": [{"type": "input_text", "text": "ACME-123"}]}, "tool_results"),
        ({"type": "custom_tool_call", "name": "f", "input": "ACME-123"}, "tool_calls"),
        ({"type": "tool_search_call", "arguments": {"type": "ACME-123"}}, "tool_calls"),
        ({"type": "mcp_call", "name": "f", "arguments": {"q": "ACME-123"}}, "tool_calls"),
        ({"type": "mcp_call", "name": "f", "error": "ACME-123"}, "tool_results"),
        ({"type": "shell_call", "action": {"commands": ["echo", "ACME-123"]}}, "tool_calls"),
        ({"type": "shell_call", "action": "ACME-123"}, "tool_calls"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "ACME-123"}]}, "reasoning"),
        ({"type": "mcp_list_tools", "tools": [{"name": "f", "description": "ACME-123"}]}, "tools"),
    ],
)
def test_items_in_every_shape(item: Any, kind: str) -> None:
    slots = responses.request_slots({"input": [item]})
    assert [str(slot.surface.kind) for slot in slots if slot.text == "ACME-123"] == [kind]


@pytest.mark.parametrize(
    "document",
    [
        {"input": [{"type": "from_next_year", "code": "ACME-123"}]},
        {"input": [{"type": "function_call", "name": "f", "arguments": "{}", "thought": {"x": "ACME-123"}}]},
        {"input": [{"type": "function_call", "name": "f", "arguments": "{}", "id": {"x": "ACME-123"}}]},
        {"reasoning": {"effort": "low", "hint": "ACME-123"}},
        {"model": {"x": "ACME-123"}},
        {"something": "ACME-123"},
    ],
)
def test_undocumented_fields_are_said_to_be_so(document: Document) -> None:
    found = [slot.surface for slot in responses.request_slots(document) if slot.text == "ACME-123"]
    assert found == [responses.UNKNOWN]


def test_words_of_the_api_are_no_texts() -> None:
    document = {
        "model": "gpt-5",
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "tool_choice": "auto",
        "truncation": "auto",
        "previous_response_id": "resp_0",
        "conversation": {"id": "conv_1"},
        "text": {"verbosity": "low"},
        "input": [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2VhbGVk"}],
        "stream": True,
    }
    assert responses.request_slots(document) == []


def test_text_in_a_payload_is_found_and_an_image_is_not() -> None:
    written = base64.b64encode(b"the key is ACME-123").decode()
    image = base64.b64encode(bytes(range(256))).decode()
    parts = [
        {"type": "input_file", "file_data": f"data:text/plain;base64,{written}", "filename": "ACME-123.txt"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{image}", "detail": "auto"},
    ]
    _, sent = asked(REDACT, {"input": [{"role": "user", "content": parts}]})
    file, picture = sent["input"][0]["content"]
    assert base64.b64decode(file["file_data"].partition(",")[2]) == b"the key is #"
    assert file["filename"] == "#.txt"
    assert picture["image_url"].endswith(image)


def test_an_earlier_answer_loses_its_tokens_with_its_text() -> None:
    spoken = message("It is ACME-123.")
    spoken["content"][0] |= {"logprobs": [{"token": "ACME-123", "logprob": 0}], "annotations": [{"type": "file_path"}]}
    _, sent = asked(REDACT, {"input": [spoken]})
    part = sent["input"][0]["content"][0]
    assert (part["text"], part["logprobs"], part["annotations"]) == ("It is #.", [], [])


# -- the reply


def test_what_the_provider_says_again_of_the_request_is_of_the_request_s_kind() -> None:
    answer = chain([{"name": "r", "patterns": [TICKET], "on": ["reply"], "action": "block"}])
    echoed: Document = {"instructions": "never say ACME-123", "metadata": {"ticket": "ACME-123"}, "user": "ACME-123"}
    assert told(answer, [message("Fine.")], **echoed)[-1]["type"] == "response.completed"
    system = chain([{"name": "r", "patterns": [TICKET], "on": ["system"], "action": "redact", "replacement": "#"}])
    for event in told(system, [message("Fine.")], **echoed):
        if "response" in event:
            assert event["response"]["instructions"] == "never say #"
            assert event["response"]["metadata"] == {"ticket": "ACME-123"}


def test_a_list_of_items() -> None:
    items = [
        {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "ACME-123"}]},
        message("hi"),
    ]
    got = hear(asked(REDACT)[0], {"object": "list", "data": items, "first_id": "a", "last_id": "b", "has_more": False})
    assert got["data"][0]["content"][0]["text"] == "#"


def test_a_single_item_and_items_of_a_conversation() -> None:
    _, sent = asked(REDACT, {"items": [{"role": "user", "content": "ACME-123"}]})
    assert sent["items"][0]["content"] == "#"
    assert hear(asked(REDACT)[0], message("ACME-123"))["content"][0]["text"] == "#"


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_placeholders_come_back_in_arguments_and_in_every_copy(size: int) -> None:
    run, sent = asked(HIDE, {"input": "I am ana@x.org"}, Placeholders(Pseudonyms(), declared=False))
    assert sent["input"] == "I am <EMAIL_1>"
    items = [message("Hello <EMAIL_1>!"), call('{"to": "<EMAIL_1>", "cc": ["<EMAIL_2>"]}')]
    got = documents(through(run, stream_bytes(events(items, cut(size), instructions="for <EMAIL_1>")))[0])
    assert got[0]["response"]["instructions"] == "for ana@x.org"
    text = (0, ("content", 0, "text"))
    for copy in (heard(got), *copies(got)):
        assert copy[text] == "Hello ana@x.org!"
        assert json.loads(copy[1, ("arguments",)]) == {"to": "ana@x.org", "cc": ["<EMAIL_2>"]}


def test_an_item_that_is_announced_with_some_of_its_text() -> None:
    sent = events([call('{"to": "ACME-123"}')], cut(4))
    added = next(event for event in sent if event["type"] == "response.output_item.added")
    first = next(event for event in sent if event["type"].endswith("arguments.delta"))
    added["item"]["arguments"] = first["delta"]
    sent.remove(first)
    got = documents(through(asked(REDACT)[0], stream_bytes(sent))[0])
    begun = next(event for event in got if event["type"] == "response.output_item.added")["item"]["arguments"]
    assert json.loads(begun + heard(got)[0, ("arguments",)]) == {"to": "#"}
    assert json.loads(got[-1]["response"]["output"][0]["arguments"]) == {"to": "#"}


def test_shell_output_in_pieces() -> None:
    place = {"item_id": "so_1", "output_index": 0, "command_index": 0}
    kind = "response.shell_call_output_content"
    outputs = [{"stdout": "key ACME-123\n", "stderr": "no ACME-9", "outcome": {"type": "exit", "exit_code": 0}}]
    item = {"id": "so_1", "type": "shell_call_output", "call_id": "c", "output": outputs, "status": "completed"}
    sent: list[Document] = [
        {"type": "response.created", "response": response([], "in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"output": []}},
        {"type": f"{kind}.delta", **place, "delta": {"stdout": "key AC", "stderr": "no AC"}},
        {"type": f"{kind}.delta", **place, "delta": {"stdout": "ME-123\n", "stderr": "ME-9"}},
        {"type": f"{kind}.done", **place, "output": outputs},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response([item])},
    ]
    got = documents(through(asked(REDACT)[0], stream_bytes(sent))[0])
    deltas = [event["delta"] for event in got if event["type"] == f"{kind}.delta"]
    want = {"stdout": "key #\n", "stderr": "no ACME-9"}
    for name, text in want.items():
        assert "".join(delta.get(name, "") for delta in deltas) == text
        assert [holder[name] for holder in (got[-3]["output"][0], got[-2]["item"]["output"][0])] == [text, text]
        assert got[-1]["response"]["output"][0]["output"][0][name] == text


def test_text_in_pieces_of_an_event_that_nobody_documents() -> None:
    scan = {"type": "response.thought_stream.delta", "output_index": 0, "item_id": "t"}
    run = asked(REDACT)[0]
    sent = [scan | {"delta": piece} for piece in ("AC", "ME-1", "23 x")]
    sent.append({"type": "response.thought_stream.done", "output_index": 0, "item_id": "t"})
    got = documents(through(run, stream_bytes(sent))[0])
    assert "".join(event.get("delta", "") for event in got) == "# x"


def cited(text: str, at: int) -> list[Document]:
    """A stream with a citation after so many characters of its text."""
    url = {"type": "url_citation", "start_index": 0, "end_index": at, "url": "https://c", "title": "ACME-123"}
    answer = message(text)
    answer["content"][0]["annotations"] = [url]
    sent = events([answer], cut(1))
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "annotation_index": 0}
    event = {"type": "response.output_text.annotation.added", **place, "annotation": url, "sequence_number": 7}
    deltas = [index for index, each in enumerate(sent) if each["type"] == "response.output_text.delta"]
    sent.insert(deltas[at], event)
    return sent


@pytest.mark.parametrize(("at", "kept"), [(4, True), (10, True), (18, False)])
def test_a_citation_goes_once_the_text_before_it_has_changed(at: int, kept: bool) -> None:
    got = documents(through(asked(REDACT)[0], stream_bytes(cited("I know ACME-123 by heart.", at)))[0])
    titles = [event["annotation"]["title"] for event in got if "annotation" in event]
    assert titles == (["#"] if kept else [])
    assert got[-1]["response"]["output"][0]["content"][0] == {
        "type": "output_text",
        "text": "I know # by heart.",
        "annotations": [],
        "logprobs": [],
    }


def test_a_response_that_failed_is_a_reply_and_is_noted() -> None:
    failed = response([message("Half")], "failed", error={"code": "server_error", "message": "at ACME-123"})
    sent = [*events([message("Half")], cut(2))[:-2], {"type": "response.failed", "response": failed}]
    out, stream = through(asked(REDACT)[0], stream_bytes(sent))
    assert stream.failed
    assert stream.complete
    assert documents(out)[-1]["response"]["error"] == {"code": "server_error", "message": "at #"}


def test_usage() -> None:
    out, stream = through(asked(REDACT)[0], stream_bytes(events([message("Hi")], cut(1))))
    assert stream.tokens == Usage(3, 4)
    assert responses.usage(response([])) == Usage(3, 4)
    assert responses.usage({"usage": {"input_tokens": "x"}}) is None
    assert responses.usage({}) is None
    assert out


# -- endings, as the official client reads them


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("items", [[message("All fine. ACME-123 now")], [message("A"), call('{"a": "ACME-123"}')]])
def test_a_blocked_stream(items: list[Document], size: int) -> None:
    items = [item | {"id": f"item_{index}"} for index, item in enumerate(items)]
    out, stream = through(asked(BLOCK)[0], stream_bytes(events(items, cut(size))))
    assert isinstance(stream.stopped, Block)
    got, last = read_by_sdk(out)
    assert got[-1].type == "response.incomplete"
    assert (last.status, last.incomplete_details.reason) == ("incomplete", "content_filter")
    read = [event.delta for event in got if event.type == "response.output_text.delta"]
    assert last.output_text == "".join(read)
    assert "ACME" not in out.decode()
    assert last.output[-1].status == "incomplete"
    if len(items) > 1:
        assert last.output[0].status == "completed"
        assert last.output[1].arguments == '{"a": "'[: len(last.output[1].arguments)]


def test_a_block_in_an_item_that_comes_whole() -> None:
    """Its announcement never left, so nothing of it is closed."""
    search = {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["ACME-123"], "results": None}
    out, _ = through(asked(BLOCK)[0], stream_bytes(events([message("Looking."), search], cut(3))))
    got, last = read_by_sdk(out)
    assert [item.type for item in last.output] == ["message"]
    assert last.output_text == "Looking."
    assert got[-1].type == "response.incomplete"


def test_a_block_before_anything_has_left_begins_the_stream() -> None:
    run = asked(BLOCK)[0]
    out, _ = through(run, stream_bytes(events([message("x")], cut(1), metadata={"a": "ACME-123"})))
    got, last = read_by_sdk(out)
    assert [event.type for event in got] == ["response.created", "response.incomplete"]
    assert last.output == []


@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_finished_stream_goes_on_in_the_open_text(size: int) -> None:
    out, stream = through(asked(FINISH)[0], stream_bytes(events([message("It is ACME-123 now")], cut(size))))
    assert isinstance(stream.stopped, Finish)
    got, last = read_by_sdk(out)
    assert got[-1].type == "response.completed"
    assert last.output_text == "It is That is secret."
    assert last.status == last.output[0].status == "completed"


def test_a_finish_inside_a_call_adds_a_message() -> None:
    out, _ = through(asked(FINISH)[0], stream_bytes(events([call('{"a": "ACME-123"}')], cut(3))))
    _, last = read_by_sdk(out)
    assert [item.type for item in last.output] == ["function_call", "message"]
    assert last.output[0].status == "incomplete"
    assert last.output_text == "That is secret."


def test_an_error_is_raised_by_the_client() -> None:
    stream = ReplyStream(responses, asked(REDACT)[0])
    begun = stream_bytes(events([message("Half of")], cut(3))[:6])
    out = stream.feed(sse.Events().feed(begun)) + stream.finish()
    assert not stream.complete
    out += stream.failing(UpstreamTimeout("idle", 3))
    with client(out) as sdk, pytest.raises(openai.APIError, match="idle limit of 3 s") as caught:
        list(sdk.responses.create(model="m", input="x", stream=True))
    assert caught.value.code == "upstream_timeout"
    event = documents(out)[-1]
    assert sdk_type(event) == {"type": "error", "code": "upstream_timeout", "param": None}


def sdk_type(event: Document) -> Document:
    read = openai.types.responses.ResponseErrorEvent.model_validate(event)
    return {"type": read.type, "code": read.code, "param": read.param}


def test_an_error_of_the_provider_is_looked_at() -> None:
    event = {"type": "error", "code": "x", "message": "no ACME-123", "param": None, "sequence_number": 9}
    out, stream = through(asked(REDACT)[0], stream_bytes([event]))
    assert documents(out)[-1]["message"] == "no #"
    assert stream.failed
    assert hear(asked(REDACT)[0], {"error": {"message": "no ACME-123"}}) == {"error": {"message": "no #"}}
    assert responses.error_text({"error": {"message": "no"}}) == "no"
    assert responses.error_body(GuardrailTripped("no")) == openai_shape(GuardrailTripped("no"))


# -- answers of our own


def test_an_answer_whole_and_streamed() -> None:
    whole = responses.answer(IDENTITY, "Not today.")
    assert whole is not None
    parsed = openai.types.responses.Response.model_validate(whole)
    assert (parsed.output_text, parsed.status, parsed.model) == ("Not today.", "completed", "m")
    assert (parsed.id, parsed.created_at, parsed.incomplete_details) == ("resp_77", 5, None)
    streamed = responses.answer_frames(IDENTITY, "Not today.")
    assert documents(streamed)[-1]["response"] == jsondoc.decode(jsondoc.encode(whole))
    got, last = read_by_sdk(streamed)
    assert [event.type.removeprefix("response.") for event in got] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert last.output_text == "Not today."
    assert [event.sequence_number for event in got] == list(range(9))


def test_an_answer_takes_nothing_over_that_was_not_looked_at() -> None:
    answered = responses.answer(response([message("ACME-123")], metadata={"a": "ACME-123"}), "No.")
    assert answered is not None
    assert "ACME" not in json.dumps(answered)
    assert answered["id"] == "resp_1"
    assert responses.answer({"object": "list", "data": []}, "No.") is None


# -- writing


def begun(*items: Document) -> writing.Writer:
    writer = writing.Writer()
    for event in ({"type": "response.created", "response": response([], "in_progress"), "sequence_number": 0},):
        writer.begin(event)
        writer.end(event)
    for index, item in enumerate(items):
        event = {
            "type": "response.output_item.added",
            "output_index": index,
            "item": item,
            "sequence_number": index + 1,
        }
        writer.begin(event)
        writer.end(event)
    return writer


@pytest.mark.parametrize(
    ("item", "surface", "part", "field"),
    [
        ({"type": "mcp_call", "id": "i", "arguments": ""}, places.MCP_ARGUMENTS, 0, "arguments"),
        ({"type": "custom_tool_call", "id": "i", "input": ""}, places.INPUT, 0, "input"),
        ({"type": "code_interpreter_call", "id": "i", "code": ""}, places.CODE, 0, "code"),
        ({"type": "shell_call", "id": "i", "action": {"commands": ["ls", ""]}}, places.COMMAND, 1, "command"),
        ({"type": "shell_call", "id": "i", "action": None}, places.COMMAND, 0, "command"),
        ({"type": "reasoning", "id": "i", "summary": []}, places.SUMMARY, 0, "text"),
        ({"type": "reasoning", "id": "i", "summary": [], "content": None}, places.REASONING, 0, "text"),
        ({"type": "message", "id": "i", "content": []}, places.REFUSAL, 0, "refusal"),
    ],
)
def test_what_was_read_is_closed_in_its_own_events(item: Document, surface: Any, part: int, field: str) -> None:
    lane = Lane(surface, 0, part)
    writer = begun(item)
    carried = writer.carry(None, lane, "so far")
    assert carried["type"].endswith(".delta")
    assert carried["item_id"] == "i"
    ended = writer.blocked({lane: "so far"})
    done = next(event for event in ended if event["type"] == carried["type"].replace(".delta", ".done"))
    assert done[field] == "so far"
    lanes = {spoken.lane: spoken.slot.text for spoken in responses.reply_texts(ended[-1]) if spoken.slot.text}
    assert lanes[lane] == "so far"
    assert set(lanes.values()) <= {"so far", "ls"}


def test_a_number_that_is_out_of_all_bounds_makes_no_list_of_that_length() -> None:
    lane = Lane(places.TEXT, 0, 10**15)
    item = begun(message()).blocked({lane: "so far"})[-1]["response"]["output"][0]
    assert [part["text"] for part in item["content"]] == ["so far"]


def test_shell_output_that_broke_off() -> None:
    first = {"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    writer = begun({"type": "shell_call_output", "id": "i", "output": [first], "status": "in_progress"})
    lane = Lane(places.STDERR, 0, 1)
    assert writer.carry(None, lane, "x")["delta"] == {"stderr": "x"}
    item = writer.blocked({lane: "so far"})[-1]["response"]["output"][0]
    assert [output["stderr"] for output in item["output"]] == ["", "so far"]
    assert item["status"] == "incomplete"


def test_a_carried_delta_has_the_names_and_numbers_of_its_lane_s_last() -> None:
    template = {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 2,
        "content_index": 1,
        "delta": "x",
        "logprobs": [{"token": "x"}],
        "obfuscation": "abc",
        "sequence_number": 41,
        "own": True,
    }
    carried = begun().carry(template, Lane(places.TEXT, 2, 1), "held")
    expected = {key: value for key, value in template.items() if key != "obfuscation"}
    assert carried == expected | {"delta": "held", "logprobs": []}
    added = {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 2, "sequence_number": 3}
    assert begun().carry(added, Lane(places.TEXT, 2, 1), "held") == {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 2,
        "content_index": 1,
        "delta": "held",
        "logprobs": [],
        "sequence_number": 3,
    }


def test_a_stream_without_announcements_is_ended_all_the_same() -> None:
    sent = [event for event in events([message("ok ACME-123")], cut(2)) if not event["type"].endswith("added")]
    got = documents(through(asked(BLOCK)[0], stream_bytes(sent))[0])
    assert got[-1]["response"]["output"][0]["content"][0]["text"] == "ok "


@pytest.mark.parametrize(
    "odd",
    [
        {"delta": {"text": "ACME-123"}},
        {"delta": "x", "note": "ACME-123"},
        {"delta": "x", "item_id": {"x": "ACME-123"}},
        {"delta": "x", "obfuscation": ["ACME-123"]},
    ],
)
def test_a_delta_of_another_shape_hides_nothing(odd: Document) -> None:
    event = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, **odd}
    assert responses.plain(event) is None
    assert "ACME" not in through(asked(REDACT)[0], stream_bytes([event]))[0].decode()


@pytest.mark.parametrize("document", [{"x": "ACME-123"}, {"output": "ACME-123"}, {"type": "new", "y": ["ACME-123"]}])
def test_a_reply_of_another_shape_hides_nothing(document: Document) -> None:
    assert "ACME" not in json.dumps(hear(asked(REDACT)[0], document))


def test_said_again_is_said_the_same() -> None:
    got = told(REDACT, [message("one ACME-123", "two ACME-456 three")], 1)
    assert said(got[-1]["response"]["output"]) == heard(got)
