"""One call of an official client for each endpoint, with a secret in every text of it and of its reply."""

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cases.upstream import Script
from tests.wire import responses_talk

from .provider import CLIENTS, PROVIDERS

SENT = f"I say {CLIENTS}, no more"
SAID = f"they say {PROVIDERS}, no more"
NESTED = json.dumps({"to": SENT, f"of {CLIENTS}": [1, 2.50, None, SENT]})
CALLED = json.dumps({"to": SAID, "n": [1, 2.50, None]})
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(200, 256)) * 40
WAV = b"RIFF\xff\xff\0\0WAVEfmt " + bytes(range(256)) * 20
LINES = "".join(
    json.dumps({"custom_id": f"{i}", "url": "/v1/chat/completions", "body": {"model": "m", "input": SENT}}) + "\n"
    for i in range(200)
)
RESULTS = "".join(json.dumps({"custom_id": f"{i}", "response": {"body": SAID}}) + "\n" for i in range(200))


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked with a client, and what the provider answers. `ask` gives all that the client got, as JSON.

    `mute` says that nothing in it is a text."""

    name: str
    ask: Callable[[Any], Any]
    reply: Script
    mute: bool = False


def whole(document: Any, **more: Any) -> Script:
    return {"status": 200, "headers": {"content-type": "application/json"}, "json": document, **more}


def bare(body: str, kind: str) -> Script:
    return {"status": 200, "headers": {"content-type": kind}, "body": body}


def binary(data: bytes, kind: str) -> Script:
    pieces = [data[i : i + 1000] for i in range(0, len(data), 1000)]
    return {"status": 200, "headers": {"content-type": kind}, "steps": [{"send_bytes": piece} for piece in pieces]}


def stream(documents: Iterable[Mapping[str, Any]], named: str | None = None, end: str = "data: [DONE]\n\n") -> Script:
    """An event stream; with `named`, each event's name is that field of it."""
    lines = [(f"event: {d[named]}\n" if named else "") + f"data: {json.dumps(d)}\n\n" for d in documents]
    return {"status": 200, "steps": [{"send": line} for line in [*lines, end]]}


def dump(got: Any) -> Any:
    """What a client gives back: a model, a page, a list or a text. Text that runs over a stream is put together."""
    if isinstance(got, str | bytes | type(None)):
        return got.decode("latin-1") if isinstance(got, bytes) else got
    if hasattr(got, "model_dump"):
        return got.model_dump(mode="json")
    if hasattr(got, "data"):
        return [dump(each) for each in got.data]
    return [dump(each) for each in got]


# --- Responses

_MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
_OUTPUT = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": SAID}]},
    {**_MESSAGE, "content": [{"type": "output_text", "text": SAID, "annotations": []}]},
    {**_MESSAGE, "id": "msg_2", "content": [{"type": "refusal", "refusal": SAID}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": CALLED, "status": "completed"},
    {"type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "g", "input": SAID},
]
_RESPONSE = responses_talk.response(_OUTPUT, instructions=SAID, metadata={"about": SAID})
_ITEMS = {
    "object": "list",
    "first_id": "msg_0",
    "last_id": "msg_0",
    "has_more": False,
    "data": [{"type": "message", "id": "msg_0", "role": "user", "content": [{"type": "input_text", "text": SAID}]}],
}
_ASKED: dict[str, Any] = {
    "model": "m",
    "instructions": SENT,
    "metadata": {"about": SENT},
    "input": [
        {"role": "system", "content": SENT},
        {"role": "user", "content": [{"type": "input_text", "text": SENT}]},
        {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": SENT}]},
        {**_MESSAGE, "id": "msg_0", "content": [{"type": "output_text", "text": SENT, "annotations": []}]},
        {"type": "function_call", "call_id": "c0", "name": "f", "arguments": NESTED},
        {"type": "function_call_output", "call_id": "c0", "output": SENT},
        {"type": "custom_tool_call", "call_id": "c9", "name": "g", "input": SENT},
        {"type": "custom_tool_call_output", "call_id": "c9", "output": [{"type": "input_text", "text": SENT}]},
    ],
    "tools": [{"type": "function", "name": "f", "description": SENT, "parameters": {"title": SENT}, "strict": False}],
}
# An item that a stream ends with says all that its deltas said.
_EVENTS = {"status": 200, "steps": [{"send_bytes": responses_talk.stream_bytes(responses_talk.events(_OUTPUT, list))}]}


def _said(events: Iterable[Any]) -> Any:
    """The running texts of a stream, and its last response."""
    told = [event.model_dump(mode="json") for event in events]
    texts = ["/".join(text for text in [f"{key}", value]) for key, value in responses_talk.heard(told).items()]
    return [*texts, told[-1]["response"]]


# --- the others

_COMPLETION = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
_FILE = {
    "id": "file-1",
    "object": "file",
    "bytes": 9,
    "created_at": 1,
    "purpose": "batch",
    "status": "processed",
    "filename": f"{PROVIDERS}.jsonl",
}
_FLAGS = {"id": "modr-1", "model": "m", "results": [{"flagged": False, "categories": {}, "category_scores": {}}]}
_VERBOSE = {
    "task": "transcribe",
    "language": "en",
    "duration": 1.5,
    "text": f"{SAID}. {SAID}.",
    "segments": [
        {"id": i, "start": 0.0, "end": 1.0, "text": text, "tokens": [1], "seek": 0, "temperature": 0.0}
        for i, text in enumerate((f"{SAID}.", f" {SAID}."))
    ],
}
_THREAD_MESSAGE = {
    "id": "m1",
    "object": "thread.message",
    "created_at": 1,
    "thread_id": "t1",
    "role": "user",
    "metadata": {},
    "content": [{"type": "text", "text": {"value": SAID, "annotations": []}}],
}
_STORE = {"id": "vs_1", "object": "vector_store", "created_at": 1, "name": SAID, "metadata": {"about": SAID}}
_FOUND = {
    "object": "vector_store.search_results.page",
    "search_query": [SAID],
    "has_more": False,
    "data": [{"file_id": "f", "filename": SAID, "score": 0.5, "content": [{"type": "text", "text": SAID}]}],
}
_STORED = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "metadata": {"about": SAID},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}],
}
_JOB = {"id": "ftjob-1", "object": "fine_tuning.job", "created_at": 1, "model": "m", "metadata": {"about": SAID}}
_CONVERSATION = {"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": {"about": SAID}}


def _form(**names: Any) -> Any:
    return {
        name: (given[0], io.BytesIO(given[1])) if isinstance(given, tuple) else given for name, given in names.items()
    }


def _delta(text: str, *, over: str | None = None) -> dict[str, Any]:
    return {**_COMPLETION, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": over}]}


def _texts(chunks: Iterable[Any]) -> str:
    return "".join(chunk.choices[0].text for chunk in chunks)


def _heard(events: Iterable[Any]) -> list[str]:
    told = list(events)
    return ["".join(getattr(event, "delta", None) or "" for event in told), told[-1].text]


def _timed(transcription: Any) -> list[Any]:
    """What is left of a transcription whose text has changed: its text, and the times of its segments."""
    assert all(PROVIDERS in segment.text or not segment.text for segment in transcription.segments)
    return [transcription.text, [[segment.id, segment.start, segment.end] for segment in transcription.segments]]


def _run(client: Any) -> list[Any]:
    """The texts of a run's stream."""
    ran = client.beta.threads.runs.create("t1", assistant_id="a1", instructions=SENT, stream=True)
    deltas = [event.data.delta.content[0].text.value for event in ran if event.event == "thread.message.delta"]
    return ["".join(deltas)]


def _thread_delta(text: str) -> dict[str, Any]:
    part = {"index": 0, "type": "text", "text": {"value": text}}
    return {"id": "m1", "object": "thread.message.delta", "delta": {"content": [part]}}


def _thread_stream() -> Script:
    lines = [f"event: thread.message.delta\ndata: {json.dumps(_thread_delta(c))}\n\n" for c in SAID]
    return {"status": 200, "steps": [{"send": line} for line in [*lines, "event: done\ndata: [DONE]\n\n"]]}


_PICTURE = {"created": 1, "data": [{"url": f"https://x/{PROVIDERS}", "revised_prompt": SAID}]}

OPENAI = (
    Call("responses.create", lambda c: dump(c.responses.create(**_ASKED)), whole(_RESPONSE)),
    Call("responses.create, a text", lambda c: dump(c.responses.create(model="m", input=SENT)), whole(_RESPONSE)),
    Call("responses.create, streamed", lambda c: _said(c.responses.create(**_ASKED, stream=True)), _EVENTS),
    Call("responses.retrieve", lambda c: dump(c.responses.retrieve("resp_1")), whole(_RESPONSE)),
    Call("responses.retrieve, streamed", lambda c: _said(c.responses.retrieve("resp_1", stream=True)), _EVENTS),
    Call("responses.input_items", lambda c: dump(c.responses.input_items.list("resp_1")), whole(_ITEMS)),
    Call("responses.cancel", lambda c: dump(c.responses.cancel("resp_1")), whole(_RESPONSE)),
    Call("chat.retrieve", lambda c: dump(c.chat.completions.retrieve("chatcmpl-1")), whole(_STORED)),
    Call(
        "chat.update", lambda c: dump(c.chat.completions.update("chatcmpl-1", metadata={"about": SENT})), whole(_STORED)
    ),
    Call(
        "completions.create",
        lambda c: dump(c.completions.create(model="m", prompt=[SENT, SENT], suffix=SENT, stop=[SENT], user=SENT)),
        whole({**_delta(SAID, over="stop"), "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}),
    ),
    Call(
        "completions.create, streamed",
        lambda c: _texts(c.completions.create(model="m", prompt=SENT, stream=True)),
        stream([*map(_delta, SAID), _delta("", over="stop")]),
    ),
    Call(
        "embeddings.create",
        lambda c: dump(c.embeddings.create(model="m", input=[SENT, "plain"], user=SENT, encoding_format="float")),
        whole(
            {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.25, 1e-9]}]}
        ),
    ),
    Call(
        "moderations.create",
        lambda c: dump(c.moderations.create(model="m", input=[{"type": "text", "text": SENT}])),
        whole(_FLAGS),
    ),
    Call("moderations.create, a text", lambda c: dump(c.moderations.create(input=SENT)), whole(_FLAGS)),
    Call("images.generate", lambda c: dump(c.images.generate(model="m", prompt=SENT, user=SENT)), whole(_PICTURE)),
    Call(
        "images.edit",
        lambda c: dump(c.images.edit(**_form(image=(f"{CLIENTS}.png", PNG), mask=("m.png", PNG)), prompt=SENT, n=2)),
        whole(_PICTURE),
    ),
    Call(
        "images.create_variation",
        lambda c: dump(c.images.create_variation(**_form(image=("i.png", PNG)), user=SENT)),
        whole(_PICTURE),
    ),
    Call(
        "audio.speech",
        lambda c: dump(c.audio.speech.create(model="m", voice="v", input=SENT, instructions=SENT).content),
        binary(WAV, "audio/mpeg"),
    ),
    Call(
        "audio.transcriptions, json",
        lambda c: dump(c.audio.transcriptions.create(**_form(file=("a.wav", WAV)), model="m", prompt=SENT)),
        whole({"text": SAID}),
    ),
    Call(
        "audio.transcriptions, verbose_json",
        lambda c: _timed(
            c.audio.transcriptions.create(
                **_form(file=("a.wav", WAV)), model="m", prompt=SENT, response_format="verbose_json"
            )
        ),
        whole(_VERBOSE),
    ),
    Call(
        "audio.transcriptions, text",
        lambda c: c.audio.transcriptions.create(**_form(file=("a.wav", WAV)), model="m", response_format="text"),
        bare(f"{SAID}\n", "text/plain; charset=utf-8"),
    ),
    Call(
        "audio.transcriptions, srt",
        lambda c: c.audio.transcriptions.create(**_form(file=("a.wav", WAV)), model="m", response_format="srt"),
        bare(f"1\n00:00:00,000 --> 00:00:01,000\n{SAID}\n\n", "text/plain"),
    ),
    Call(
        "audio.transcriptions, streamed",
        lambda c: _heard(
            c.audio.transcriptions.create(**_form(file=("a.wav", WAV)), model="m", prompt=SENT, stream=True)
        ),
        stream(
            [
                *({"type": "transcript.text.delta", "delta": character} for character in SAID),
                {"type": "transcript.text.done", "text": SAID},
            ],
            end="",
        ),
    ),
    Call(
        "audio.translations",
        lambda c: dump(c.audio.translations.create(**_form(file=("a.wav", WAV)), model="m", prompt=SENT)),
        whole({"text": SAID}),
    ),
    Call(
        "files.create, lines",
        lambda c: dump(c.files.create(**_form(file=(f"{CLIENTS}.jsonl", LINES.encode())), purpose="batch")),
        whole(_FILE),
    ),
    Call(
        "files.create, no text",
        lambda c: dump(c.files.create(**_form(file=("a.bin", WAV)), purpose="user_data")),
        whole(_FILE),
    ),
    Call("files.list", lambda c: dump(c.files.list()), whole({"object": "list", "data": [_FILE], "has_more": False})),
    Call("files.content", lambda c: c.files.content("file-1").text, bare(RESULTS, "application/octet-stream")),
    Call(
        "files.content, in pieces",
        lambda c: c.files.content("file-1").text,
        binary(RESULTS.encode(), "application/octet-stream"),
    ),
    Call(
        "files.content, no text", lambda c: dump(c.files.content("file-1").content), binary(WAV, "audio/wav"), mute=True
    ),
    Call(
        "vector_stores.create",
        lambda c: dump(c.vector_stores.create(name=SENT, metadata={"about": SENT})),
        whole(_STORE),
    ),
    Call("vector_stores.search", lambda c: dump(c.vector_stores.search("vs_1", query=[SENT])), whole(_FOUND)),
    Call(
        "threads.messages.create",
        lambda c: dump(
            c.beta.threads.messages.create(
                "t1", role="user", content=[{"type": "text", "text": SENT}], metadata={"a": SENT}
            )
        ),
        whole(_THREAD_MESSAGE),
    ),
    Call("threads.runs, streamed", _run, _thread_stream()),
    Call(
        "conversations.create",
        lambda c: dump(c.conversations.create(items=[{"role": "user", "content": SENT}], metadata={"about": SENT})),
        whole(_CONVERSATION),
    ),
    Call(
        "fine_tuning.jobs.create",
        lambda c: dump(c.fine_tuning.jobs.create(model="m", training_file="file-1", metadata={"about": SENT})),
        whole(_JOB),
    ),
)

_TALK: list[Any] = [
    {"role": "user", "content": [{"type": "text", "text": SENT}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t0", "name": "f", "input": {"to": SENT, "n": 2}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t0", "content": [{"type": "text", "text": SENT}]}],
    },
]
_ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_sequence": None,
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
    "content": [
        {"type": "thinking", "thinking": SAID, "signature": "c2VhbGVk"},
        {"type": "text", "text": SAID},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"to": SAID, "n": [1, 2.5]}},
    ],
}
_BATCH = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "created_at": "2025-01-01T00:00:00Z",
    "expires_at": "2025-01-01T00:00:00Z",
    "results_url": "ORIGIN/v1/messages/batches/msgbatch_1/results",
    "request_counts": {"canceled": 0, "errored": 0, "expired": 0, "processing": 0, "succeeded": 1},
}

ANTHROPIC = (
    Call(
        "messages.create",
        lambda c: dump(c.messages.create(model="m", max_tokens=9, system=SENT, messages=_TALK, stop_sequences=[SENT])),
        whole(_ANSWER),
    ),
    Call(
        "messages.count_tokens",
        lambda c: dump(c.messages.count_tokens(model="m", system=[{"type": "text", "text": SENT}], messages=_TALK)),
        whole({"input_tokens": 7}),
    ),
    Call(
        "messages.batches.create",
        lambda c: dump(
            c.messages.batches.create(
                requests=[{"custom_id": "1", "params": {"model": "m", "max_tokens": 9, "messages": _TALK}}]
            )
        ),
        whole(_BATCH),
    ),
)

_DATED = {"model": "m", "created_at": "2025-01-01T00:00:00Z"}
_GENERATED = {**_DATED, "response": SAID, "thinking": SAID, "done": True, "done_reason": "stop"}

OLLAMA = (
    Call(
        "generate",
        lambda c: dump(c.generate("m", SENT, suffix=SENT, system=SENT, template=SENT)),
        whole(_GENERATED),
    ),
    Call(
        "generate, streamed",
        lambda c: "".join(line.response for line in c.generate("m", SENT, stream=True)),
        {
            "status": 200,
            "headers": {"content-type": "application/x-ndjson"},
            "steps": [
                {"send": json.dumps({**_DATED, "response": character, "done": False}) + "\n"} for character in SAID
            ]
            + [{"send": json.dumps({**_DATED, "response": "", "done": True, "done_reason": "stop"}) + "\n"}],
        },
    ),
    Call("embed", lambda c: dump(c.embed("m", [SENT, "plain"])), whole({"model": "m", "embeddings": [[0.25, 1e-9]]})),
    Call(
        "show",
        lambda c: dump(c.show(SENT)),
        whole({"template": SAID, "license": SAID, "details": {}, "model_info": {"about": SAID}}),
    ),
)
