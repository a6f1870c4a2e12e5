"""What of a reply is content, and why it ended, in each API's own words."""

from typing import Any

import pytest

from sidecar.wire.begun import answers, finish_of, has_failed, only_error, speaks

Document = dict[str, Any]


def delta(**fields: Any) -> Document:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


SILENT: dict[str, Document] = {
    "a role": delta(role="assistant"),
    "an empty text": delta(role="assistant", content="", refusal=None, tool_calls=None),
    "a finish": {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    "usage": {"choices": [], "usage": {"prompt_tokens": 1}},
    "an empty completion": {"choices": [{"text": ""}]},
    "message_start": {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}},
    "ping": {"type": "ping"},
    "a block of text": {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    "a block of thought": {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}},
    "message_delta": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    "response.created": {"type": "response.created", "response": {"id": "r", "output": [], "instructions": "be kind"}},
    "an item": {
        "type": "response.output_item.added",
        "item": {"type": "message", "id": "i", "status": "in_progress", "role": "assistant", "content": []},
    },
    "a sealed thought": {
        "type": "response.output_item.added",
        "item": {"type": "reasoning", "id": "i", "summary": [], "encrypted_content": "gAAA"},
    },
    "a part": {"type": "response.content_part.added", "part": {"type": "output_text", "text": "", "annotations": []}},
    "response.completed": {"type": "response.completed", "response": {"status": "completed", "output": []}},
    "a line": {"message": {"role": "assistant", "content": ""}, "done": False},
    "a generated line": {"response": "", "done": False},
}
SAYING: dict[str, Document] = {
    "a text": delta(content="hi"),
    "a blank": delta(content=" "),
    "reasoning": delta(reasoning_content="hm"),
    "a refusal": delta(refusal="no"),
    "a tool call": delta(tool_calls=[{"index": 0, "function": {"name": "f"}}]),
    "a sound": delta(audio={"data": "AAAA"}),
    "a whole message": {"choices": [{"message": {"role": "assistant", "content": "hi"}}]},
    "a completion": {"choices": [{"text": "hi"}]},
    "a text delta": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hi"}},
    "a tool": {
        "type": "content_block_start",
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    },
    "a redacted thought": {"type": "content_block_start", "content_block": {"type": "redacted_thinking", "data": "x"}},
    "response text": {"type": "response.output_text.delta", "delta": "hi"},
    "a call": {"type": "response.output_item.added", "item": {"type": "function_call", "id": "i", "name": "f"}},
    "a search": {"type": "response.web_search_call.in_progress", "item_id": "i"},
    "all at the end": {"type": "response.completed", "response": {"output": [{"type": "message"}]}},
    "a line": {"message": {"role": "assistant", "content": "hi"}, "done": False},
    "a thought line": {"message": {"role": "assistant", "content": "", "thinking": "hm"}},
    "a generated line": {"response": "hi", "done": False},
    "an own word": delta(something_new="x"),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_only_announces(name: str) -> None:
    assert not speaks(SILENT[name])


@pytest.mark.parametrize("name", SAYING)
def test_content(name: str) -> None:
    assert speaks(SAYING[name])


def whole(**message: Any) -> Document:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (whole(content="hi"), True),
        (whole(content=" \n"), False),
        (whole(content=None, reasoning_content="hm"), False),
        (whole(content=None, tool_calls=[{"function": {"name": "f"}}]), True),
        (whole(content=[{"type": "text", "text": "hi"}]), True),
        ({"choices": [{"text": "hi"}]}, True),
        ({"choices": []}, False),
        ({"choices": "odd"}, False),
        ({"content": [{"type": "text", "text": "hi"}]}, True),
        ({"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, False),
        ({"content": [{"type": "tool_use", "name": "f", "input": {}}]}, True),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}, True),
        ({"output": [{"type": "reasoning", "summary": [{"text": "hm"}]}]}, False),
        ({"output": [{"type": "message", "content": []}]}, False),
        ({"message": {"role": "assistant", "content": "hi"}}, True),
        ({"response": ""}, False),
        ({}, False),
    ],
)
def test_whether_a_whole_reply_says_something(reply: Document, says: bool) -> None:
    assert answers(reply) is says


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"choices": [{"finish_reason": None}, {"finish_reason": "length"}]}, "length"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, "end_turn"),
        ({"done": True, "done_reason": "stop"}, "stop"),
        ({"status": "completed", "incomplete_details": None}, "completed"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"type": "response.completed", "response": {"status": "completed"}}, "completed"),
        ({"type": "response.created", "response": {"status": "in_progress"}}, ""),
        ({"status": "queued"}, "queued"),
        ({}, ""),
    ],
)
def test_why_it_ended(document: Document, reason: str) -> None:
    assert finish_of(document) == reason


def test_errors_that_are_nothing_else() -> None:
    assert only_error({"error": {"code": "x"}})
    assert only_error({"type": "error", "error": {"type": "x"}})
    assert not only_error({"object": "response", "status": "failed", "error": {"code": "x"}})
    assert has_failed({"object": "response", "status": "failed", "error": {"code": "x"}})
    assert not has_failed({"status": "completed", "error": None})
