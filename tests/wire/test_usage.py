"""What providers report of tokens, in each API's shape, and streams that are asked to report it."""

from collections.abc import Iterable
from typing import Any

import pytest

from sidecar.core.usage import Usage
from sidecar.wire import (
    anything,
    audio,
    chat,
    completions,
    embeddings,
    images,
    jsondoc,
    messages,
    moderations,
    ollama,
    responses,
    sse,
)
from sidecar.wire.apis import APIS
from sidecar.wire.ndjson import NDJSON
from sidecar.wire.stream import SSE, Framing, ReplyStream, Wire
from tests.stages.talk import Call, chain

Document = dict[str, Any]

CHAT_TOLD = {
    "prompt_tokens": 100,
    "completion_tokens": 40,
    "total_tokens": 140,
    "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 30, "accepted_prediction_tokens": 0},
}
RESPONSES_TOLD = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 140,
}
MESSAGES_TOLD = {
    "input_tokens": 28,
    "cache_read_input_tokens": 64,
    "cache_creation_input_tokens": 8,
    "output_tokens": 40,
    "output_tokens_details": {"thinking_tokens": 30},
}
ALL = Usage(100, 40, 64, 8, 30)
DEEPSEEK = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}
ENDED = {"model": "m", "done": True, "prompt_eval_count": 26, "eval_count": 259, "eval_duration": 4}


@pytest.mark.parametrize(
    ("wire", "document", "usage"),
    [
        (chat, {"usage": CHAT_TOLD}, ALL),
        (completions, {"usage": CHAT_TOLD}, ALL),
        (anything, {"usage": CHAT_TOLD}, ALL),
        (responses, {"usage": RESPONSES_TOLD}, ALL),
        (responses, {"type": "response.completed", "response": {"usage": RESPONSES_TOLD}}, ALL),
        (anything, {"usage": RESPONSES_TOLD}, ALL),
        (messages, {"usage": MESSAGES_TOLD}, ALL),
        (messages, {"type": "message_start", "message": {"usage": MESSAGES_TOLD}}, ALL),
        (anything, {"usage": MESSAGES_TOLD}, ALL),
        (messages, {"type": "message_delta", "usage": {"output_tokens": 9}}, Usage(completion=9)),
        (chat, {"usage": DEEPSEEK}, Usage(9, 1, 4)),
        (chat, {"usage": {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 3}}, Usage(9, 1, 3)),
        (ollama.CHAT, ENDED, Usage(26, 259)),
        (ollama.GENERATE, ENDED, Usage(26, 259)),
        (ollama.EMBED, {"embeddings": [[0.5]], "prompt_eval_count": 8}, Usage(8)),
        (embeddings, {"usage": {"prompt_tokens": 8, "total_tokens": 8}}, Usage(8)),
        (images, {"usage": {"input_tokens": 50, "output_tokens": 4160, "total_tokens": 4210}}, Usage(50, 4160)),
        (audio, {"usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 101}}, Usage(14, 101)),
        (audio, {"usage": {"type": "duration", "seconds": 27}}, None),
        (moderations, {"results": []}, None),
    ],
)
def test_what_is_reported(wire: Wire, document: Document, usage: Usage | None) -> None:
    assert wire.usage(document) == usage


NAMES = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "cache_read_input_tokens")


@pytest.mark.parametrize("wire", APIS, ids=lambda wire: wire.NAME)
@pytest.mark.parametrize("value", [-1, 1.5, "12", True, None, {}, 10**30])
def test_what_is_no_number_of_tokens_is_not_reported(wire: Wire, value: Any) -> None:
    details = {name: {"cached_tokens": value, "reasoning_tokens": value} for name in ("prompt_tokens_details",)}
    told = dict.fromkeys(NAMES, value) | details
    counts = {"prompt_eval_count": value, "eval_count": value}
    assert wire.usage({"usage": told} | counts) is None
    assert wire.usage({"usage": value}) is None
    assert wire.usage({"usage": [told], "message": [], "response": 1}) is None


@pytest.mark.parametrize("odd", [7, "x", [], None])
def test_details_of_another_type_tell_nothing(odd: Any) -> None:
    told = {"prompt_tokens": 3, "prompt_tokens_details": odd, "completion_tokens_details": odd}
    assert chat.usage({"usage": told}) == Usage(3)


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        (chat, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        (responses, {"input_tokens": 0, "output_tokens": 0}),
        (messages, {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}),
        (anything, {"prompt_tokens": 0}),
    ],
)
def test_a_server_that_does_not_count_has_not_reported_zero(wire: Wire, told: Document) -> None:
    assert wire.usage({"usage": told}) is None
    said = wire.usage({"usage": told | {"completion_tokens": 5, "output_tokens": 5}})
    assert said is not None
    assert said[:2] == (None, 5)


def test_a_reply_without_a_word_has_used_its_prompt() -> None:
    assert chat.usage({"usage": {"prompt_tokens": 7, "completion_tokens": 0}}) == Usage(7, 0)
    assert messages.usage({"usage": {"output_tokens": 0}}) == Usage(completion=0)


# --- asking for it ---


@pytest.mark.parametrize("wire", [chat, completions], ids=lambda wire: wire.NAME)
@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": None}, {"include_usage": True}),
        ({"stream_options": {}}, {"include_usage": True}),
        ({"stream_options": {"include_usage": False}}, {"include_usage": True}),
        ({"stream_options": {"include_obfuscation": False}}, {"include_obfuscation": False, "include_usage": True}),
    ],
)
def test_a_stream_is_asked_for_its_usage(wire: Wire, options: Document, asked: Document) -> None:
    document = {"model": "m", "stream": True, **options}
    assert wire.ask_usage(document)
    assert document == {"model": "m", "stream": True, "stream_options": asked}
    assert not wire.ask_usage(document)


@pytest.mark.parametrize(
    "document",
    [
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": "usage"},
        {"stream": True, "stream_options": [1]},
        {"stream": False},
        {"stream": None},
        {"stream": 1},
        {},
    ],
)
def test_a_request_that_need_not_be_asked_stays_as_it_is(document: Document) -> None:
    before = jsondoc.encode(document)
    assert not chat.ask_usage(document)
    assert jsondoc.encode(document) == before


@pytest.mark.parametrize("wire", [api for api in APIS if api not in (chat, completions)], ids=lambda wire: wire.NAME)
def test_other_apis_report_it_unasked(wire: Wire) -> None:
    document = {"stream": True}
    assert not wire.ask_usage(document)
    assert document == {"stream": True}


# --- the frame that brings it ---


def chunk(choices: list[Document], **fields: Any) -> bytes:
    return sse.render(jsondoc.encode({"id": "c", "object": "chat.completion.chunk", "choices": choices, **fields}))


def choice(delta: Document, reason: str | None = None) -> Document:
    return {"index": 0, "delta": delta, "finish_reason": reason}


TOLD = {"prompt_tokens": 60, "completion_tokens": 50, "total_tokens": 110}
USAGE = chunk([], usage=TOLD)


def through(
    frames: Iterable[bytes], wire: Wire = chat, framing: Framing = SSE, **how: Any
) -> tuple[bytes, ReplyStream]:
    rules = [{"name": "tickets", "patterns": [{"name": "ticket", "regex": r"ACME-\d+"}]}]
    call = Call(chain(rules))
    call.ask("hi")
    stream = ReplyStream(wire, call.run, framing, **how)
    cutter = framing.cutter()
    out = b"".join(stream.feed(cutter.feed(frame)) for frame in frames)
    return out + stream.feed(cutter.finish()) + stream.finish(), stream


SAID = [chunk([choice({"content": "hel"})], usage=None), chunk([choice({"content": "lo"}, "stop")], usage=None)]
FIRST = chunk([], prompt_filter_results=[{"prompt_index": 0}], usage=None)


@pytest.mark.parametrize("wire", [chat, completions], ids=lambda wire: wire.NAME)
def test_a_client_that_did_not_ask_sees_no_frame_of_usage(wire: Wire) -> None:
    out, stream = through([FIRST, *SAID, USAGE, chat.DONE], wire, hides_usage=True)
    assert out == b"".join([FIRST, *SAID, chat.DONE])
    assert stream.tokens == Usage(60, 50)
    assert stream.complete
    assert stream.done


def test_one_that_did_sees_it() -> None:
    out, stream = through([*SAID, USAGE, chat.DONE])
    assert out == b"".join([*SAID, USAGE, chat.DONE])
    assert stream.tokens == Usage(60, 50)


@pytest.mark.parametrize(
    "frame",
    [
        chunk([choice({}, "stop")], usage=TOLD),
        chunk([choice({"content": "a"})], usage=TOLD),
        chunk([]),
        sse.render(b'{"error": {"message": "no"}, "usage": {"prompt_tokens": 1}}'),
        b": keep-alive\n\n",
    ],
)
def test_every_other_frame_leaves_as_it_came(frame: bytes) -> None:
    assert through([frame], hides_usage=True)[0] == frame


def test_what_is_held_back_leaves_where_the_frame_of_usage_stood() -> None:
    frames = [chunk([choice({"content": "see ACME-"})]), chunk([choice({"content": "12"})]), USAGE, chat.DONE]
    out, _ = through(frames, hides_usage=True)
    said = [jsondoc.decode(frame.data) for frame in sse.Events().feed(out) if frame.data and frame.data != b"[DONE]"]
    assert "".join(frame["choices"][0]["delta"]["content"] for frame in said) == "see [REDACTED:ticket]"
    assert not any("usage" in frame for frame in said)


def test_running_totals_in_every_frame_are_not_added() -> None:
    told = [{"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n} for n in (1, 2, 3)]
    frames = [chunk([choice({"content": "abc"[n]})], usage=each) for n, each in enumerate(told)]
    out, stream = through([*frames, chunk([choice({}, "stop")]), chat.DONE], hides_usage=True)
    assert stream.tokens == Usage(10, 3)
    assert out.count(b"usage") == 3


def test_a_message_tells_its_prompt_first_and_its_completion_as_it_grows() -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": MESSAGES_TOLD | {"output_tokens": 1}}}
    deltas = [{"type": "message_delta", "delta": {}, "usage": {"output_tokens": n}} for n in (12, 40)]
    _, stream = through([sse.render(jsondoc.encode(each)) for each in (start, *deltas)], messages)
    assert stream.tokens == ALL


def test_the_last_line_of_ollama_tells_it() -> None:
    lines = [{"message": {"role": "assistant", "content": "hi"}, "done": False}, ENDED]
    _, stream = through([jsondoc.encode(line) + b"\n" for line in lines], ollama.CHAT, NDJSON, hides_usage=True)
    assert stream.tokens == Usage(26, 259)
