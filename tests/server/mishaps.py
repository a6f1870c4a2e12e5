"""What can go wrong at a provider, as scripts for both ways of asking, and what class of failure each is."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from time import time
from typing import Any, Literal

from .upstream import CHUNKED, END, FIN, RST, Step, chunk, reply

JSON = (b"content-type", b"application/json")
HTML = (b"content-type", b"text/html")
DONE = b"data: [DONE]\n\n"
TEXT = "hello"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}

Class = Literal["transient", "hop", "final", "kept"]
"""transient: asked again and elsewhere. hop: elsewhere only. final: the client gets the provider's error. kept: the
client gets the reply, whatever it is."""


@dataclass(frozen=True, slots=True)
class Mishap:
    """`status` is what the client sees where nothing else helps, `failure` what the trail calls it."""

    name: str
    whole: Sequence[Step]
    streamed: Sequence[Step]
    failure: str
    kind: Class = "transient"
    status: int = 502
    wasted: int = 0
    """Tokens that its whole reply reports although it says nothing."""

    def costs(self, streamed: bool) -> dict[str, int]:
        """What a call is charged that a good reply of 7 tokens follows."""
        return {"calls": 1, "tokens": 7 if streamed else 7 + self.wasted}

    def steps(self, streamed: bool) -> Sequence[Step]:
        return self.streamed if streamed else self.whole

    def __str__(self) -> str:
        return self.name


def event(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return b"data: %b\n\n" % json.dumps(document).encode()


def completion(content: str | None = TEXT, reason: str | None = "stop", usage: Any = USAGE, **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


START = event({"role": "assistant", "content": ""})
BEGUN = CHUNKED + chunk(START)
GOOD = reply(completion(), b"200 OK", JSON)
GOOD_STREAM = CHUNKED + b"".join(
    chunk(each) for each in (START, event({"content": "hel"}), event({"content": "lo"}), event({}, "stop"))
)
GOOD_STREAM += chunk(event(usage=USAGE)) + chunk(DONE) + END


def good(streamed: bool) -> bytes:
    return GOOD_STREAM if streamed else GOOD


def error(code: Any = None, kind: str = "server_error", message: str = "it went wrong", **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code, **more}}).encode()


def refusal(status: bytes, code: Any = None, kind: str = "server_error", *headers: tuple[bytes, bytes]) -> bytes:
    return reply(error(code, kind), status, JSON, *headers)


def both(name: str, answer: bytes, failure: str, kind: Class = "transient", status: int | None = None) -> Mishap:
    """An answer that is the same however it was asked for."""
    said = int(answer.split(b" ", 2)[1]) if status is None else status
    return Mishap(name, [answer], [answer], failure, kind, said)


_CUT = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_HALF = _CUT % (len(completion()), completion()[:40])
_GZIPPED = gzip.compress(completion(), mtime=0)[:-12]
_CODED = ((b"content-encoding", b"gzip"), JSON)
_GZIPPED_STREAM = gzip.compress(START + event({"content": "x" * 50}), mtime=0)[:20]
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
_ERROR_EVENT = b"data: " + error("overloaded") + b"\n\n"
_BLANK = completion("", "length")
_BLANK_STREAM = BEGUN + chunk(event({}, "length")) + chunk(event(usage=USAGE)) + chunk(DONE) + END


def _whole_only(name: str, steps: Sequence[Step], failure: str) -> Mishap:
    return Mishap(name, steps, steps, failure)


BROKEN = (
    _whole_only("reset before the headers", [RST], "network"),
    _whole_only("closed before the headers", [FIN], "network"),
    _whole_only("reset in the headers", [b"HTTP/1.1 200 OK\r\nx-half: ", RST], "network"),
    Mishap("reset in the body", [_HALF, 0.05, RST], [BEGUN, 0.05, RST], "network"),
    Mishap("closed in the body", [_HALF, 0.05, FIN], [BEGUN, 0.05, FIN], "network"),
    Mishap("bad chunks", [CHUNKED.replace(b"text/event-stream", JSON[1]) + b"zz\r\n"], [BEGUN + b"zz\r\n"], "network"),
    _whole_only("no HTTP", [b"SSH-2.0-OpenSSH_9.6\r\n"], "network"),
    Mishap(
        "truncated gzip",
        [reply(_GZIPPED, b"200 OK", *_CODED)],
        [_STREAM_HEAD + b"content-encoding: gzip\r\ncontent-length: 40\r\n\r\n" + _GZIPPED_STREAM, 0.05, FIN],
        "network",
    ),
    Mishap("stalls before the headers", [5.0], [5.0], "timeout", status=504),
    Mishap("stalls before the content", [_CUT % (99, b""), 5.0], [CHUNKED, 5.0], "timeout", status=504),
    Mishap("stalls in the middle", [_HALF, 5.0], [BEGUN, 5.0], "timeout", status=504),
)
NOTHING_SAID = (
    both(
        "a page of a proxy",
        reply(b"<html>sorry</html>", b"200 OK", (b"content-type", b"text/html")),
        "empty",
        status=502,
    ),
    both("no body", reply(b"", b"200 OK", JSON), "empty", status=502),
    both("half a document", reply(completion()[:40], b"200 OK", JSON), "empty", status=502),
    Mishap("empty", [reply(b"{}", b"200 OK", JSON)], [CHUNKED + END], "empty"),
    Mishap("only a start", [reply(completion("", None), b"200 OK", JSON)], [BEGUN + END], "empty", wasted=7),
    Mishap(
        "only a start and its end",
        [reply(completion("", ""), b"200 OK", JSON)],
        [BEGUN + chunk(DONE) + END],
        "empty",
        wasted=7,
    ),
)
REFUSED = (
    both("408", refusal(b"408 Request Timeout"), "request_timeout"),
    both("409", refusal(b"409 Conflict"), "locked"),
    both("429", refusal(b"429 Too Many Requests", "rate_limit_exceeded", "requests"), "rate_limited"),
    both("500", refusal(b"500 Internal Server Error"), "server_error"),
    both("500 as a page", reply(b"<html>", b"500 Oops", HTML), "server_error"),
    both("502", refusal(b"502 Bad Gateway"), "server_error"),
    both("503", refusal(b"503 Service Unavailable", None, "unavailable"), "overloaded"),
    both("504", refusal(b"504 Gateway Timeout"), "timeout"),
    both("529", refusal(b"529 Overloaded", None, "overloaded_error"), "overloaded"),
    both("500 with a compressed body", reply(gzip.compress(error()), b"500 Oops", *_CODED), "server_error"),
    both("400", refusal(b"400 Bad Request", "invalid_value", "invalid_request_error"), "bad_request", "final"),
    both("401", refusal(b"401 Unauthorized", "invalid_api_key"), "auth", "final"),
    both("403", refusal(b"403 Forbidden"), "auth", "final"),
    both("404", refusal(b"404 Not Found", "model_not_found"), "model_not_found", "final"),
    both("413", refusal(b"413 Too Large"), "bad_request", "final"),
    both("422", refusal(b"422 Unprocessable", None, "invalid_request_error"), "bad_request", "final"),
    both("content filter", refusal(b"400 Bad Request", "content_filter"), "content_filter", "final"),
    both("no quota", refusal(b"429 Too Many Requests", "insufficient_quota", "insufficient_quota"), "quota", "hop"),
    both("402", refusal(b"402 Payment Required"), "quota", "hop"),
    both("too long", refusal(b"400 Bad Request", "context_length_exceeded"), "context_window", "hop"),
)
ERROR_UNDER_200 = (
    Mishap(
        "an error under 200",
        [reply(error("overloaded"), b"200 OK", JSON)],
        [CHUNKED + chunk(_ERROR_EVENT) + END],
        "overloaded",
    ),
    Mishap(
        "an error after the start",
        [reply(error(), b"200 OK", JSON)],
        [BEGUN + chunk(b"data: " + error() + b"\n\n") + END],
        "server_error",
    ),
    Mishap(
        "an error and silence",
        [reply(error(503, "upstream"), b"200 OK", JSON)],
        [BEGUN + chunk(b"data: " + error(503, "upstream") + b"\n\n"), 5.0],
        "overloaded",
        status=503,
    ),
)
KEPT = (
    Mishap("cut before it said anything", [reply(_BLANK, b"200 OK", JSON)], [_BLANK_STREAM], "blank", "kept", 200),
    Mishap(
        "thought and cut",
        [reply(completion("", "length", reasoning_content="hm"), b"200 OK", JSON)],
        [_BLANK_STREAM],
        "blank",
        "kept",
        200,
    ),
)
MISHAPS = (*BROKEN, *NOTHING_SAID, *REFUSED, *ERROR_UNDER_200, *KEPT)


@dataclass(frozen=True, slots=True)
class Wait:
    """When a provider says that it wants to be asked again, and the seconds that come of it; None is the back-off."""

    name: str
    headers: tuple[tuple[bytes, bytes], ...]
    seconds: float | None

    def __str__(self) -> str:
        return self.name


def _date(seconds: float) -> bytes:
    return formatdate(time() + seconds, usegmt=True).encode()


_AFTER = b"retry-after"
_OF_TWO = (
    (b"x-ratelimit-reset-requests", b"6m0s"),
    (b"x-ratelimit-remaining-requests", b"10"),
    (b"x-ratelimit-reset-tokens", b"0.3s"),
    (b"x-ratelimit-remaining-tokens", b"0"),
)
WAITS = (
    Wait("nothing", (), None),
    Wait("seconds", ((_AFTER, b"1"),), 1.0),
    Wait("milliseconds", ((b"retry-after-ms", b"300"),), 0.3),
    Wait("milliseconds before seconds", ((_AFTER, b"1"), (b"retry-after-ms", b"300")), 0.3),
    Wait("zero", ((_AFTER, b"0"),), None),
    Wait("negative", ((_AFTER, b"-5"),), None),
    Wait("a past date", ((_AFTER, _date(-100)),), None),
    Wait("absurd", ((_AFTER, b"99999999999"),), None),
    Wait("a word", ((_AFTER, b"soon"),), None),
    Wait("a reset of requests", ((b"x-ratelimit-reset-requests", b"300ms"),), 0.3),
    Wait("the reset of what is used up", _OF_TWO, 0.3),
)


def dated() -> Wait:
    """Made when it is needed: the date is of now, to the second."""
    return Wait("a date", ((_AFTER, _date(1.5)),), 0.4)
