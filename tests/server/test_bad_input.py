"""Bad input, both ways: no shape that JSON, HTTP or an event stream can take carries a secret past a rule.

Each is refused in the API's own shape or passes; the next exchange works.
"""

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from tests.running import Process
from tests.running import serve as started

from .talk import Answer, Sidecar, request, sidecar
from .upstream import CHUNKED, END, Step, Upstream, chunk, reply

SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ESCAPED = "".join(f"\\u{ord(c):04x}" for c in SECRET)
CHAT = b"/v1/chat/completions"
JSON = (b"content-type", b"application/json")
MEGABYTE = 1 << 20
POLICY = """
version: 1
providers:
  p: {{base_url: "{url}/v1"}}
guardrails:
  - {{name: secrets, detect: [secrets], action: redact}}
  - {{name: personal-data, detect: [credit_card, us_ssn, iban], action: redact}}
telemetry: {{log: "{log}"}}
"""
FINE: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad") / "log"


@pytest.fixture(scope="module")
def guarded(upstream: Upstream, log: Path) -> Iterator[Sidecar]:
    with sidecar(policy=POLICY.format(url=upstream.url, log=log), folder=log.parent) as running:
        yield running
    assert SECRET not in log.read_text()


def whole(document: Any) -> bytes:
    return json.dumps(document).encode()


def ask(running: Sidecar, body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
    return running.ask(request(b"POST", CHAT, body, *(headers or (JSON,))))


def error_of(answer: Answer) -> dict[str, Any]:
    assert answer.header(b"content-type") == b"application/json"
    error: dict[str, Any] = json.loads(answer.body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def works(running: Sidecar, upstream: Upstream) -> bool:
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    return ask(running, whole(ASK)).body == whole(FINE)


def shown(data: bytes) -> str:
    """What a lenient reader could make of these bytes: as they are, unescaped, and in wide characters."""
    texts = [data.decode(coding, "replace") for coding in ("utf-8", "utf-16", "utf-32")]
    return "\n".join([*texts, unescaped(texts[0])])


def unescaped(text: str) -> str:
    return text.encode("latin-1", "replace").decode("unicode_escape", "replace")


def reached(upstream: Upstream) -> str:
    return "".join(shown(seen.head + seen.body) for seen in upstream.requests)


# --- requests: every field in every shape ---

SHAPES: Sequence[Any] = (
    SECRET,
    7,
    None,
    True,
    1.5,
    {"key": SECRET},
    [SECRET],
    [[SECRET], [[SECRET]]],
    [None, 7, {"a": [{"b": SECRET}]}],
    {"type": "text", "text": SECRET, "content": SECRET, "name": SECRET, "function": {"arguments": SECRET}},
)
CALL = {"id": "t1", "type": "function", "function": {"name": "so.", "arguments": '{"a": 1}'}}
CUSTOM = {"id": "t2", "type": "custom", "custom": {"name": "so.", "input": "so."}}
FULL: dict[str, Any] = {
    "model": "m",
    "prediction": {"type": "content", "content": "x"},
    "messages": [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "https://x"}}],
            "name": "n",
            "refusal": "x",
            "reasoning": "x",
            "reasoning_content": "x",
            "reasoning_details": [{"type": "reasoning.text", "text": "x"}],
            "tool_calls": [CALL, CUSTOM],
            "function_call": {"name": "so.", "arguments": "{}"},
        }
    ],
}
Way = tuple[str | int, ...]
REQUEST_FIELDS: Sequence[Way] = (
    ("messages",),
    ("messages", 0),
    *(("messages", 0, field) for field in FULL["messages"][0] if field != "role"),
    ("messages", 0, "content", 0),
    ("messages", 0, "content", 0, "text"),
    ("messages", 0, "content", 1, "image_url"),
    ("messages", 0, "content", 1, "image_url", "url"),
    ("messages", 0, "reasoning_details", 0),
    ("messages", 0, "reasoning_details", 0, "text"),
    ("messages", 0, "tool_calls", 0),
    ("messages", 0, "tool_calls", 0, "function"),
    ("messages", 0, "tool_calls", 0, "function", "name"),
    ("messages", 0, "tool_calls", 0, "function", "arguments"),
    ("messages", 0, "tool_calls", 1, "custom"),
    ("messages", 0, "tool_calls", 1, "custom", "name"),
    ("messages", 0, "tool_calls", 1, "custom", "input"),
    ("messages", 0, "function_call", "name"),
    ("messages", 0, "function_call", "arguments"),
    ("prediction",),
    ("prediction", "content"),
)


def placed(document: Any, way: Way, value: Any) -> Any:
    """A copy of the document with this value at the end of the way."""
    copy = deepcopy(document)
    *path, last = way
    holder = copy
    for step in path:
        holder = holder[step]
    holder[last] = value
    return copy


def dotted(way: Way) -> str:
    return ".".join(map(str, way))


@pytest.mark.parametrize("way", REQUEST_FIELDS, ids=dotted)
def test_a_field_of_a_request_in_any_shape(guarded: Sidecar, upstream: Upstream, way: Way):
    for shape in SHAPES:
        upstream.play(reply(whole(FINE), b"200 OK", JSON))
        answer = ask(guarded, whole(placed(FULL, way, shape)))
        assert answer.status == 200
        assert SECRET not in reached(upstream), shape
        sent = json.loads(upstream.requests[0].body)
        if SECRET not in json.dumps(shape):
            assert sent == placed(FULL, way, shape)
        assert sent.keys() == FULL.keys()


@pytest.mark.parametrize("field", ["model", "stream", "n", "tools", "choices", "temperature", "stop", "user"])
@pytest.mark.parametrize("shape", [7, None, [1], {"a": 1}, "x", 1e400, True], ids=repr)
def test_other_fields_are_the_providers_to_judge(guarded: Sidecar, upstream: Upstream, field: str, shape: Any):
    body = whole({**ASK, field: shape})
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    answer = ask(guarded, body)
    if shape == 1e400:
        assert (answer.status, upstream.requests) == (400, [])
    else:
        assert (answer.status, upstream.requests[0].body) == (200, body)


# --- requests: bytes that are no good JSON ---


def message(content: str, more: str = "") -> bytes:
    """A request whose JSON is written by hand."""
    return f'{{"model": "m", {more}"messages": [{{"role": "user", "content": "{content}"}}]}}'.encode()


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "white space": b" \r\n\t ",
    "cut": message(SECRET)[:-2],
    "cut in a string": message(SECRET)[: message(SECRET).index(b"8")],
    "single quotes": message(SECRET).replace(b'"', b"'"),
    "trailing comma": message(SECRET).replace(b"]}", b"],}"),
    "comment": b"/* x */" + message(SECRET),
    "two documents": message(SECRET) * 2,
    "lines of documents": message(SECRET) + b"\n" + message(SECRET),
    "a bracket too many": message(SECRET) + b"}",
    "NaN": message(SECRET, '"temperature": NaN, '),
    "Infinity": message(SECRET, '"temperature": Infinity, '),
    "-Infinity": message(SECRET, '"top_p": -Infinity, '),
    "NaN beside a surrogate": message("\\ud83d" + SECRET, '"temperature": NaN, '),
    "the same key twice": message("so.", f'"messages": "{SECRET}", '),
    "the same key twice, escaped": message("so.", f'"\\u006dessages": "{SECRET}", '),
    "the same key twice, deep": message("so.", f'"metadata": [{{"a": "{SECRET}", "a": 1}}], '),
    "the same key twice, beside a surrogate": message("\\ud83d", f'"messages": "{SECRET}", '),
    "deep": message("so.", '"metadata": ' + "[" * 100_000 + "]" * 100_000 + ", "),
    "deep and never closed": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a little too deep": message(SECRET, '"metadata": ' + "[" * 201 + "]" * 201 + ", "),
    "invalid UTF-8": message(SECRET).replace(b"user", b"us\xffer"),
    "an overlong form": message(SECRET).replace(b"user", b"us\xc0\xafer"),
    "a surrogate in UTF-8": message(SECRET).replace(b"user", b"us\xed\xa0\x80er"),
    "a NUL": message(SECRET + "\0"),
    "only NULs": b"\0" * 1000,
    "UTF-16": message(SECRET).decode().encode("utf-16"),
    "UTF-32": message(SECRET).decode().encode("utf-32"),
    "an integer of 5,000 digits": message(SECRET, '"seed": ' + "9" * 5000 + ", "),
    "01": message(SECRET, '"seed": 01, '),
    "a raw line feed in a string": message(SECRET + "\n"),
    "a broken escape": message(SECRET + "\\x"),
    "a number": b"7",
    "a string": whole(SECRET),
    "a list": whole([SECRET, ASK]),
    "null": b"null",
    "a form": f"model=m&messages={SECRET}".encode(),
    "gzip without a word": gzip.compress(message(SECRET)),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_request_that_cannot_be_checked_is_refused_and_nothing_goes_up(
    guarded: Sidecar, upstream: Upstream, body: bytes
):
    upstream.play(reply(b"never"))
    answer = ask(guarded, body)
    assert (answer.status, error_of(answer)["code"]) == (400, "invalid_request")
    assert SECRET not in shown(answer.body)
    assert upstream.requests == []
    assert works(guarded, upstream)


ODD: dict[str, tuple[bytes, bytes]] = {
    "a BOM": (b"\xef\xbb\xbf" + message("so."), b"\xef\xbb\xbf" + message("so.")),
    "a lone surrogate": (message("\\ud83d x"), message("\\ud83d x")),
    "an escaped NUL": (message("a\\u0000b"), message("a\\u0000b")),
    "a huge integer": (message("so.", '"seed": ' + "9" * 400 + ", "),) * 2,
    "a huge float": (message("so.", '"seed": 1e400, '),) * 2,
    "odd spelling": (b' \n{ "messages" :[ ] , "n": 1.0e0 }\r\n',) * 2,
    "as deep as may be": (message("so.", '"metadata": ' + "[" * 190 + "]" * 190 + ", "),) * 2,
    "an empty key": (message("so.", '"": {"": 1}, '),) * 2,
}


@pytest.mark.parametrize(("body", "arrives"), ODD.values(), ids=ODD.keys())
def test_a_request_that_is_only_odd_passes_untouched(guarded: Sidecar, upstream: Upstream, body: bytes, arrives: bytes):
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    assert ask(guarded, body).status == 200
    assert upstream.requests[0].body == arrives


HIDDEN: dict[str, bytes] = {
    "a BOM": b"\xef\xbb\xbf" + message(SECRET),
    "after a lone surrogate": message("\\ud83d" + SECRET),
    "before a lone surrogate": message(SECRET + "\\udc00"),
    "between halves": message("\\ud83d" + SECRET + "\\ude00"),
    "after a NUL": message("\\u0000" + SECRET),
    "escaped": message(ESCAPED),
    "escaped beside a surrogate": message(ESCAPED + " \\ud83d"),
    "an escaped key": message("so.", '"x": 1, ').replace(b'"content": "so."', f'"c\\u006fntent": "{ESCAPED}"'.encode()),
    "a huge integer": message(SECRET, '"seed": ' + "9" * 400 + ", "),
    "any content-type": message(SECRET),
}


@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_secret_in_an_odd_request_is_found(guarded: Sidecar, upstream: Upstream, body: bytes):
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    assert ask(guarded, body, (b"content-type", b"text/plain; charset=latin-1")).status == 200
    assert SECRET not in reached(upstream)
    assert b"[REDACTED:github_token]" in upstream.requests[0].body


def test_ten_thousand_messages(guarded: Sidecar, upstream: Upstream):
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    messages = [{"role": "user", "content": f"message {n}"} for n in range(10_000)]
    messages[7777]["content"] += f" {SECRET}"
    assert ask(guarded, whole({"model": "m", "messages": messages})).status == 200
    messages[7777]["content"] = "message 7777 [REDACTED:github_token]"
    assert json.loads(upstream.requests[0].body)["messages"] == messages


@pytest.mark.parametrize("method", [b"GET", b"PUT", b"DELETE", b"PATCH"])
def test_other_methods_on_the_path_are_not_the_endpoint(guarded: Sidecar, upstream: Upstream, method: bytes):
    upstream.play(reply(b"no such thing", b"405 Method Not Allowed"))
    assert guarded.ask(request(method, CHAT)).status == 405


# --- requests: content codings and types ---


def packed(coding: str, data: bytes) -> bytes:
    return PACK[coding](data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", PACK)
def test_a_coded_request_is_read(guarded: Sidecar, upstream: Upstream, coding: str):
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    answer = ask(guarded, packed(coding, message(SECRET)), JSON, (b"content-encoding", coding.encode()))
    assert answer.status == 200
    assert upstream.requests[0].body.count(b"[REDACTED:github_token]") == 1
    assert upstream.requests[0].header(b"content-encoding") is None


@pytest.mark.parametrize("names", [[b"gzip, br"], [b"gzip", b"br"], [b"gzip", b"identity, br"], [b"GZIP ,, Br"]])
def test_a_request_coded_twice_is_read(guarded: Sidecar, upstream: Upstream, names: list[bytes]):
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    body = brotli.compress(gzip.compress(message(SECRET)))
    assert ask(guarded, body, *((b"content-encoding", name) for name in names)).status == 200
    assert SECRET not in reached(upstream)


BAD_CODED: dict[str, tuple[bytes, bytes, int]] = {
    "garbage": (b"gzip", b"garbage" * 100, 400),
    "not coded at all": (b"gzip", message(SECRET), 400),
    "cut": (b"gzip", gzip.compress(message(SECRET))[:-12], 400),
    "unknown": (b"compress", message(SECRET), 400),
    "unreadable": (b"g\xffzip", message(SECRET), 400),
    "too many": (b"gzip, gzip, gzip, gzip, gzip", message(SECRET), 400),
    "empty": (b"gzip", b"", 400),
    "a gzip bomb": (b"gzip", gzip.compress(bytes(100 * MEGABYTE)), 413),
    "a br bomb": (b"br", brotli.compress(bytes(100 * MEGABYTE), quality=5), 413),
    "a zstd bomb": (b"zstd", zstandard.compress(bytes(100 * MEGABYTE)), 413),
    "a bomb in a bomb": (b"gzip, gzip", gzip.compress(gzip.compress(bytes(100 * MEGABYTE))), 413),
    "br, with more behind": (b"br", brotli.compress(message("so.")) + message(SECRET), 400),
    "gzip, with more behind": (b"gzip", gzip.compress(message("so.")) + message(SECRET), 400),
}


@pytest.mark.parametrize(("coding", "body", "status"), BAD_CODED.values(), ids=BAD_CODED.keys())
def test_a_badly_coded_request_is_refused(
    guarded: Sidecar, upstream: Upstream, coding: bytes, body: bytes, status: int
):
    upstream.play(reply(b"never"))
    answer = ask(guarded, body, (b"content-encoding", coding))
    assert answer.status == status
    assert SECRET not in shown(answer.body)
    assert error_of(answer)["code"] == ("payload_too_large" if status == 413 else "invalid_request")
    assert upstream.requests == []
    assert works(guarded, upstream)


@pytest.mark.parametrize("body", [b"--x\r\n\r\n" + SECRET.encode(), b"", b"--x--", b"\r\n" * 1000])
def test_multipart_is_no_chat_request(guarded: Sidecar, upstream: Upstream, body: bytes):
    upstream.play(reply(b"never"))
    answer = ask(guarded, body, (b"content-type", b"multipart/form-data; boundary=x"))
    assert (answer.status, error_of(answer)["code"]) == (400, "invalid_request")
    assert upstream.requests == []


# --- replies: every field in every shape ---

REPLY: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "so.",
                "refusal": "so.",
                "reasoning": "so.",
                "reasoning_content": "so.",
                "reasoning_details": [{"type": "reasoning.text", "text": "so."}],
                "tool_calls": [{"index": 0, **CALL}, {"index": 1, **CUSTOM}],
                "function_call": {"name": "so.", "arguments": "{}"},
                "audio": {"id": "a", "transcript": "so."},
            },
            "finish_reason": None,
        }
    ],
}
REPLY_FIELDS: Sequence[Way] = (
    ("choices",),
    ("choices", 0),
    ("choices", 0, "message"),
    *(("choices", 0, "message", field) for field in REPLY["choices"][0]["message"] if field != "role"),
    ("choices", 0, "message", "reasoning_details", 0),
    ("choices", 0, "message", "tool_calls", 0),
    ("choices", 0, "message", "tool_calls", 0, "function"),
    ("choices", 0, "message", "tool_calls", 0, "function", "name"),
    ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
    ("choices", 0, "message", "tool_calls", 1, "custom"),
    ("choices", 0, "message", "tool_calls", 1, "custom", "input"),
    ("choices", 0, "message", "function_call", "arguments"),
    ("choices", 0, "message", "audio", "transcript"),
    ("error",),
    ("detail",),
)
ERROR: dict[str, Any] = {"error": {"message": "x", "type": "t", "param": None, "code": None, "metadata": {"raw": "x"}}}
ERROR_FIELDS: Sequence[Way] = (
    ("error",),
    ("error", "message"),
    ("error", "param"),
    ("error", "metadata"),
    ("error", "metadata", "raw"),
)


def replies(fields: Sequence[Way], document: Any) -> Iterator[tuple[Way, Any]]:
    for way in fields:
        for shape in SHAPES:
            yield way, placed(document, way, shape)


def as_frame(document: Any) -> Any:
    """The same as a frame of a stream."""
    match document:
        case {"choices": [{"message": said} as choice]}:
            rest = {key: value for key, value in choice.items() if key != "message"}
            return {**document, "choices": [{**rest, "delta": said}]}
    return document


def stream(*frames: bytes, done: bool = True) -> list[Step]:
    ending = [b"data: [DONE]\n\n"] if done else []
    return [CHUNKED, *(chunk(b"data: %b\n\n" % frame) for frame in frames), *map(chunk, ending), END]


@pytest.mark.parametrize("way", [*REPLY_FIELDS, *ERROR_FIELDS], ids=dotted)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "frame"])
def test_a_field_of_a_reply_in_any_shape(guarded: Sidecar, upstream: Upstream, way: Way, streamed: bool):
    bases = [REPLY if way in REPLY_FIELDS else ERROR]
    if way == ("error",):
        bases = [REPLY, ERROR, {}]
    elif way == ("detail",):
        bases = [ERROR, {}]
    for document in (placed(base, way, shape) for base in bases for shape in SHAPES):
        body = whole(as_frame(document) if streamed else document)
        upstream.play(stream(body) if streamed else reply(body, b"200 OK", JSON))
        answer = ask(guarded, whole({**ASK, "stream": streamed}))
        assert SECRET not in shown(answer.body), document
        assert answer.status == 200
        if SECRET not in json.dumps(document):
            assert body in answer.body


def test_texts_of_one_frame_are_looked_at_apart_and_together(guarded: Sidecar, upstream: Upstream):
    parts = [{"type": "text", "text": SECRET}, {"type": "text", "text": SECRET}, {"type": "text", "text": " so"}]
    halves = [{"type": "text", "text": SECRET[:17]}, {"type": "text", "text": SECRET[17:]}]
    for content in (parts, halves):
        upstream.play(stream(whole({"choices": [{"index": 0, "delta": {"content": content}}]})))
        answer = ask(guarded, whole({**ASK, "stream": True}))
        assert SECRET not in shown(answer.body)
        assert SECRET not in told(answer.body)


@pytest.mark.parametrize("status", [b"400 Bad Request", b"422 Unprocessable", b"500 Oops"])
def test_an_error_reply_in_any_shape(guarded: Sidecar, upstream: Upstream, status: bytes):
    documents = [placed(ERROR, way, shape) for way in ERROR_FIELDS for shape in SHAPES]
    documents += [{"detail": shape} for shape in SHAPES]
    documents += [{"object": "error", "message": shape, "code": 400} for shape in SHAPES]
    for document in documents:
        upstream.play(reply(whole(document), status, JSON))
        answer = ask(guarded, whole(ASK))
        assert answer.status == int(status[:3])
        assert SECRET not in shown(answer.body), document
        if SECRET not in json.dumps(document):
            assert answer.body == whole(document)


@pytest.mark.parametrize("index", ["0", "x", None, 1.5, -1, 10**30, True, [0], {"a": 0}, "ghp_"], ids=str)
def test_an_index_in_any_shape(guarded: Sidecar, upstream: Upstream, index: Any):
    """Of a choice and of a tool call, with a secret that is told in two frames."""
    halves = SECRET[:17], SECRET[17:]
    calls = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": half}}]}}]}
        for half in ('{"a": "' + halves[0], halves[1] + '"}')
    ]
    choices = [{"choices": [{"index": index, "delta": {"content": half}}]} for half in halves]
    for frames in (calls, choices):
        upstream.play(stream(*map(whole, frames)))
        answer = ask(guarded, whole({**ASK, "stream": True}))
        assert (answer.status, answer.whole) == (200, True)
        assert SECRET[17:] not in told(answer.body)
        assert answer.body.endswith(b"data: [DONE]\n\n")


def told(body: bytes) -> str:
    """All strings of all frames, one after the other."""
    frames = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
    return "".join(text for frame in frames for text in strings(json.loads(frame)))


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from strings(inner)
        case list():
            for inner in value:
                yield from strings(inner)


# --- replies: bytes that are no good JSON ---


def content(text: str, more: str = "") -> bytes:
    """A reply, or a frame, whose JSON is written by hand."""
    return f'{{"id": "c", {more}"choices": [{{"index": 0, "message": {{"content": "{text}"}}}}]}}'.encode()


HOSTILE: dict[str, bytes] = {
    "cut": content(SECRET)[:-3],
    "trailing comma": content(SECRET)[:-1] + b",}",
    "two documents": content("so.") + content(SECRET),
    "single quotes": content(SECRET).replace(b'"', b"'"),
    "NaN": content(SECRET, '"x": NaN, '),
    "NaN, escaped": content(ESCAPED, '"x": NaN, '),
    "Infinity, half escaped": content("ghp\\u005f" + SECRET[4:], '"x": -Infinity, '),
    "the same key twice": content("so.", f'"choices": [{{"message": {{"content": "{SECRET}"}}}}], '),
    "the same key twice, escaped": content("so.", f'"\\u0063hoices": "{ESCAPED}", '),
    "the same key twice, deep": content("so.", f'"usage": [{{"a": "{SECRET}", "a": 1}}], '),
    "the same key twice, beside a surrogate": content("\\ud83d", f'"x": "{SECRET}", "x": "y", '),
    "too deep": content(SECRET, '"x": ' + "[" * 300 + "]" * 300 + ", "),
    "too deep, escaped": content(ESCAPED, '"x": ' + "[" * 300 + "]" * 300 + ", "),
    "far too deep": b"[" * 100_000 + whole(SECRET) + b"]" * 100_000,
    "an integer of 5,000 digits": content(SECRET, '"x": ' + "9" * 5000 + ", "),
    "invalid UTF-8": content(SECRET).replace(b'"c"', b'"\xff\xfe"'),
    "invalid UTF-8 beside it": content("X" + SECRET).replace(b"X", b"\xff"),
    "invalid UTF-8, escaped": content(ESCAPED).replace(b'"c"', b'"\xff"'),
    "a surrogate in UTF-8": content("X" + SECRET + "X").replace(b"X", b"\xed\xa0\x80"),
    "a NUL": content("\0" + SECRET + "\0"),
    "NULs around": b"\0" + content(SECRET) + b"\0",
    "a BOM": b"\xef\xbb\xbf" + content(SECRET),
    "a BOM, escaped": b"\xef\xbb\xbf" + content(ESCAPED),
    "lone surrogates": content("\\ud83d" + SECRET + "\\udc00"),
    "lone surrogates, escaped": content("\\udc00" + ESCAPED + "\\ud83d"),
    "a string": whole(SECRET),
    "an escaped string": f'"{ESCAPED}"'.encode(),
    "a list": whole([SECRET]),
    "an escaped list": f'[1, ["{ESCAPED}"]]'.encode(),
    "a number": b"7",
    "text": b"my key is " + SECRET.encode(),
    "text that begins like JSON": b"[error] key is " + SECRET.encode(),
    "text that begins like a number": b"2024-01-01: key is " + SECRET.encode(),
    "HTML": b"<h1>" + SECRET.encode() + b"</h1>",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("status", [b"200 OK", b"500 Oops"])
def test_a_whole_reply_of_any_bytes(guarded: Sidecar, upstream: Upstream, body: bytes, status: bytes):
    upstream.play(reply(body, status, JSON))
    answer = ask(guarded, whole(ASK))
    assert answer.status in (int(status[:3]), 502)
    assert SECRET not in shown(answer.body)
    assert works(guarded, upstream)


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_frame_of_any_bytes(guarded: Sidecar, upstream: Upstream, body: bytes, streamed: bool):
    frame = body.replace(b'"message"', b'"delta"')
    for frames in ([frame], [whole({"choices": [{"index": 0, "delta": {"content": "a"}}]}), frame]):
        steps = stream(*frames)
        if not streamed:
            steps[0] = CHUNKED.replace(b"text/event-stream", b"text/plain")
        upstream.play(steps)
        answer = ask(guarded, whole({**ASK, "stream": True}))
        assert answer.status in (200, 502)
        assert SECRET not in shown(answer.body)
    assert works(guarded, upstream)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_a_reply_in_wide_characters(guarded: Sidecar, upstream: Upstream, coding: str):
    """Python's json reads them unasked."""
    upstream.play(reply(content(SECRET).decode().encode(coding), b"200 OK", JSON))
    answer = ask(guarded, whole(ASK))
    assert (answer.status, error_of(answer)["code"]) == (502, "upstream_broken")


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'""', b"null", b" ", b"\xff", b"\xef\xbb\xbf", b"<html>"])
def test_a_reply_without_anything_to_find_passes_untouched(guarded: Sidecar, upstream: Upstream, body: bytes):
    upstream.play(reply(body, b"200 OK", JSON))
    answer = ask(guarded, whole(ASK))
    assert (answer.status, answer.body) == (200, body)


# --- replies: streams that are no good streams ---


def framed(*pieces: bytes, kind: bytes = b"text/event-stream") -> list[Step]:
    return [CHUNKED.replace(b"text/event-stream", kind), *map(chunk, pieces), END]


SAID = whole({"choices": [{"index": 0, "delta": {"content": SECRET}}]})
BAD_STREAMS: dict[str, list[bytes]] = {
    "an event without its end": [b"data: " + SAID],
    "an event cut in the secret": [b"data: " + SAID[:-8]],
    "one line end": [b"data: " + SAID + b"\n"],
    "no space": [b"data:" + SAID + b"\n\n"],
    "many data lines": [b"data: " + SAID.replace(b", ", b",\ndata: ") + b"\n\n"],
    "a secret over two data lines": [b'data: "' + SECRET[:9].encode() + b'"\ndata: "' + SECRET.encode() + b'"\n\n'],
    "no data": [b"event: x\n\n", b"data\n\n", b"\n\n\n"],
    "CR": [b"data: " + SAID + b"\r\r"],
    "a BOM": [b"\xef\xbb\xbfdata: " + SAID + b"\n\n"],
    "a BOM in the middle": [b"data: 1\n\n\xef\xbb\xbfdata: " + SAID + b"\n\n"],
    "a byte at a time": [b"data: " + SAID[:1], *(SAID[i : i + 1] for i in range(1, len(SAID))), b"\n\n"],
    "data after the end": [b"data: [DONE]\n\ndata: " + SAID + b"\n\n"],
    "JSON": [SAID],
    "JSON lines": [SAID + b"\n" + SAID + b"\n"],
    "an error": [b"data: " + whole({"error": {"message": SECRET}}) + b"\n\n"],
    "an error, then more": [b'data: {"error": "x"}\n\ndata: ' + SAID + b"\n\n"],
    "an event's name": [b"event: error\ndata: " + whole({"message": SECRET}) + b"\n\n"],
    "nothing": [b""],
}


@pytest.mark.parametrize("pieces", BAD_STREAMS.values(), ids=BAD_STREAMS.keys())
@pytest.mark.parametrize("kind", [b"text/event-stream", b"Text/Event-Stream; charset=utf-8", b"text/plain", b""])
def test_a_stream_of_any_form(guarded: Sidecar, upstream: Upstream, pieces: list[bytes], kind: bytes):
    upstream.play(framed(*filter(None, pieces), kind=kind))
    answer = ask(guarded, whole({**ASK, "stream": True}))
    assert answer.status in (200, 502)
    assert SECRET not in shown(answer.body)
    assert SECRET not in told_in_any(answer.body)
    assert works(guarded, upstream)


def told_in_any(body: bytes) -> str:
    """The data of the stream's events, as a client joins it."""
    lines = body.replace(b"\r", b"\n").split(b"\n")
    return "".join(line.partition(b":")[2].strip().decode("utf-8", "replace") for line in lines)


@pytest.mark.parametrize("coding", PACK)
def test_a_coded_reply_is_read(guarded: Sidecar, upstream: Upstream, coding: str):
    for kind, plain in ((b"application/json", content(SECRET)), (b"text/event-stream", b"data: " + SAID + b"\n\n")):
        body = packed(coding, plain)
        upstream.play(reply(body, b"200 OK", (b"content-type", kind), (b"content-encoding", coding.encode())))
        answer = ask(guarded, whole(ASK), JSON, (b"accept-encoding", b"gzip, deflate, br, zstd"))
        assert b"[REDACTED:github_token]" in answer.body
        assert answer.header(b"content-encoding") is None


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
@pytest.mark.parametrize("names", [[b"gzip, br"], [b"gzip", b"br"]])
def test_a_reply_coded_twice_is_read(guarded: Sidecar, upstream: Upstream, names: list[bytes], kind: bytes):
    plain = content(SECRET) if kind == b"application/json" else b"data: " + SAID + b"\n\n"
    codings = [(b"content-encoding", name) for name in names]
    upstream.play(reply(brotli.compress(gzip.compress(plain)), b"200 OK", (b"content-type", kind), *codings))
    answer = ask(guarded, whole(ASK))
    assert b"[REDACTED:github_token]" in answer.body
    assert answer.header(b"content-encoding") is None


BAD_REPLIES: dict[str, tuple[bytes, bytes]] = {
    "garbage": (b"gzip", b"garbage" * 100),
    "not coded at all": (b"gzip", content(SECRET)),
    "cut": (b"gzip", gzip.compress(content(SECRET) * 50)[:-12]),
    "unknown": (b"compress", content(SECRET)),
    "br, with more behind": (b"br", brotli.compress(content("so.")) + content(SECRET)),
    "too many": (b"gzip, gzip, gzip, gzip, gzip", content(SECRET)),
}


@pytest.mark.parametrize(("coding", "body"), BAD_REPLIES.values(), ids=BAD_REPLIES.keys())
@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
def test_a_badly_coded_reply_is_not_passed(
    guarded: Sidecar, upstream: Upstream, coding: bytes, body: bytes, kind: bytes
):
    upstream.play(reply(body, b"200 OK", (b"content-type", kind), (b"content-encoding", coding)))
    answer = ask(guarded, whole(ASK))
    if answer.status == 200:  # it had begun when it broke
        assert answer.body.endswith(b"\n")
        assert b'"upstream_broken"' in answer.body
    else:
        assert (answer.status, error_of(answer)["code"]) == (502, "upstream_broken")
    assert SECRET not in shown(answer.body)
    assert works(guarded, upstream)


def test_a_stream_whose_coding_breaks_half_way_ends_with_an_error(guarded: Sidecar, upstream: Upstream):
    engine = zlib.compressobj(wbits=31)
    first = engine.compress(b'data: {"choices": [{"index": 0, "delta": {"content": "a "}}]}\n\n')
    first += engine.flush(zlib.Z_SYNC_FLUSH)
    head = CHUNKED[:-2] + b"content-encoding: gzip\r\n\r\n"
    upstream.play([head, chunk(first), 0.1, chunk(b"\xff" * 100), END])
    answer = ask(guarded, whole({**ASK, "stream": True}))
    assert (answer.status, answer.whole) == (200, True)
    assert answer.body.startswith(b"data: {")
    assert b'"upstream_broken"' in answer.body
    assert works(guarded, upstream)


# --- size: in a process whose memory is nobody else's ---

GROWTH_MB = 25.0


@pytest.fixture(scope="module")
def process(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("size")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(url=upstream.url, log=folder / "log"))
    running = started(folder / "out", policy=policy)
    yield running
    running.stop()


class Talk:
    """A raw conversation with the process that watches its memory."""

    def __init__(self, process: Process, upstream: Upstream) -> None:
        self.process, self.upstream = process, upstream
        self.most = 0.0

    def ask(self, *pieces: bytes) -> bytes:
        """The reply to a request in pieces, to the end of the connection."""
        address = "127.0.0.1", int(self.process.url.rpartition(":")[2])
        with socket.create_connection(address, timeout=60) as client:
            thread = threading.Thread(target=pour, args=(client, pieces), daemon=True)
            thread.start()
            data = b""
            while more := receive(client):
                data = (data + more)[-4 * MEGABYTE :]
                self.look()
            thread.join(10)
        return data

    def look(self) -> None:
        self.most = max(self.most, self.process.rss_mb)

    def works(self) -> bool:
        self.upstream.play(reply(whole(FINE), b"200 OK", JSON))
        return whole(FINE) in self.ask(closing(b"POST", whole(ASK)))


def pour(client: socket.socket, pieces: Sequence[bytes]) -> None:
    try:
        for piece in pieces:
            client.sendall(piece)
    except OSError:
        pass


def receive(client: socket.socket) -> bytes:
    try:
        return client.recv(65536)
    except ConnectionError:
        return b""


def closing(method: bytes, body: bytes, *headers: tuple[bytes, bytes]) -> bytes:
    return request(method, CHAT, body, JSON, (b"connection", b"close"), *headers)


@pytest.fixture
def talk(process: Process, upstream: Upstream) -> Talk:
    talk = Talk(process, upstream)
    assert talk.works()
    return talk


def bounded(talk: Talk, growth: float, ask: Callable[[], bytes]) -> bytes:
    """Asks, and looks at the memory meanwhile."""
    before, stop = talk.process.rss_mb, threading.Event()

    def look() -> None:
        while not stop.wait(0.01):
            talk.look()

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        return ask()
    finally:
        stop.set()
        watcher.join()
        assert talk.most - before < growth, f"grew by {talk.most - before:.0f} MB"


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_fifty_megabytes_are_refused_in_little_memory(talk: Talk, upstream: Upstream, framing: str):
    upstream.play(reply(b"never"))
    piece = b" " * MEGABYTE
    head = request(b"POST", CHAT, None, JSON, (b"connection", b"close"))[:-2]
    if framing == "length":
        pieces = [head + b"content-length: %d\r\n\r\n" % (50 * MEGABYTE), *[piece] * 50]
    else:
        pieces = [head + b"transfer-encoding: chunked\r\n\r\n", *[chunk(piece)] * 50, END]
    # What was read of a body before it was too large is held until then.
    answer = bounded(talk, GROWTH_MB if framing == "length" else 2 * GROWTH_MB, lambda: talk.ask(*pieces))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"payload_too_large"' in answer
    assert upstream.requests == []
    assert talk.works()


def test_just_under_the_limit(talk: Talk, upstream: Upstream):
    limit = 20_000_000
    body = message(SECRET + " " + "ordinary words of prose, " * (limit // 25 - 10))
    assert limit - 1000 < len(body) <= limit
    upstream.play(reply(whole(FINE), b"200 OK", JSON))
    assert b"fine" in talk.ask(closing(b"POST", body))
    said = json.loads(upstream.requests[0].body)["messages"][0]["content"]
    assert said == json.loads(body)["messages"][0]["content"].replace(SECRET, "[REDACTED:github_token]")
    assert SECRET.encode() not in upstream.requests[0].body
    assert talk.works()


LARGE: dict[str, tuple[bytes, Sequence[Step]]] = {
    "an event without a line end": (
        b"text/event-stream",
        [chunk(b"data: "), *[chunk(b"x" * MEGABYTE)] * 200],
    ),
    "a comment without a line end": (b"text/event-stream", [chunk(b": "), *[chunk(b"x" * MEGABYTE)] * 200]),
    "a whole reply": (b"application/json", [chunk(b'{"x": "'), *[chunk(b"x" * MEGABYTE)] * 200]),
}


@pytest.mark.parametrize(("kind", "steps"), LARGE.values(), ids=LARGE.keys())
def test_two_hundred_megabytes_without_an_end(talk: Talk, upstream: Upstream, kind: bytes, steps: Sequence[Step]):
    upstream.play([CHUNKED.replace(b"text/event-stream", kind), *steps, END])
    answer = bounded(talk, 4 * GROWTH_MB, lambda: talk.ask(closing(b"POST", whole(ASK))))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b'"upstream_broken"' in answer
    assert talk.works()


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
def test_a_bomb_is_not_set_off(talk: Talk, upstream: Upstream, coding: str, kind: bytes):
    begins = b'{"x": "' if kind == b"application/json" else b"data: "
    bomb = BOMBS[coding](begins + b"x" * (400 * MEGABYTE))
    assert len(bomb) < MEGABYTE
    codings = (b"content-type", kind), (b"content-encoding", coding.encode())
    upstream.play(reply(bomb, b"200 OK", *codings))
    answer = bounded(talk, 8 * GROWTH_MB, lambda: talk.ask(closing(b"POST", whole(ASK))))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b'"upstream_broken"' in answer
    assert talk.works()


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 9),
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": zstandard.compress,
}
