"""`/v1/completions`: every place of the official client's types, streams, endings."""

import json
from typing import Any

import openai
import pytest
from hypothesis import given
from openai.types import Completion
from openai.types.completion_create_params import CompletionCreateParams

from sidecar.core.usage import Usage
from sidecar.errors import UpstreamBroken
from sidecar.wire import completions, jsondoc, sse
from sidecar.wire.completions import PROMPT, REQUEST_FIELDS, TEXT
from sidecar.wire.stream import ReplyStream, Wire
from tests.wire import places
from tests.wire.cutting import cut, expected, rulesets, sizes, through
from tests.wire.fuzz import examples
from tests.wire.places import SAID, SECRET, asked, heard, streamed
from tests.wire.test_errors import Provider

WIRE: Wire = completions

TEXTS = {
    "prompt": PROMPT,
    "prompt[]": PROMPT,
    "stop": REQUEST_FIELDS["stop"],
    "stop[]": REQUEST_FIELDS["stop"],
    "suffix": REQUEST_FIELDS["suffix"],
    "user": REQUEST_FIELDS["user"],
}
WORDS = {"model"}
REPLY_TEXTS = {"choices[].text": TEXT}
# The tokens are the text over again: dropped when it changes, see below.
REPLY_WORDS = {
    *("id", "model", "object", "system_fingerprint", "choices[].finish_reason"),
    "choices[].logprobs.tokens[]",
}


def chunk(text: str, reason: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"text": text, "index": index, "logprobs": None, "finish_reason": reason, **more}
    return {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}


def frames(got: str) -> list[dict[str, Any]]:
    """The chunks of a stream that ends as it should."""
    told = [frame.data for frame in sse.Events().feed(got.encode()) if frame.data]
    assert told.pop() == b"[DONE]"
    return [json.loads(data) for data in told]


def said(got: str, index: int = 0) -> str:
    choices = [choice for frame in frames(got) for choice in frame["choices"]]
    return "".join(choice["text"] for choice in choices if choice["index"] == index)


def client(body: bytes, kind: bytes = b"text/event-stream") -> openai.OpenAI:
    return Provider(200, [(b"content-type", kind)], body).client()


def test_every_place_of_the_sdk_is_read() -> None:
    places.check(CompletionCreateParams, TEXTS, WORDS, completions.request_slots)
    places.check(Completion, REPLY_TEXTS, REPLY_WORDS, lambda d: [said.slot for said in completions.reply_texts(d)])


def test_a_secret_is_found_everywhere() -> None:
    for path in TEXTS:
        assert SECRET not in asked(WIRE, places.at(path, SAID))
    places.found_everywhere(WIRE, REPLY_TEXTS)
    for odd in (
        "x",
        "choices",
        "choices[]",
        "choices[].x",
        "choices[].text.x",
        "id.x",
        "choices[].index",
        "error.message",
    ):
        places.found_everywhere(WIRE, [odd])


def test_prompts_in_tokens_pass() -> None:
    for prompt in ([1, 2], [[1, 2], [3]]):
        assert completions.request_slots({"model": "m", "prompt": prompt}) == []


def test_a_frame_of_plain_text_is_told_at_once() -> None:
    assert completions.plain(chunk("hi", logprobs={"tokens": ["hi"]})) is not None
    said_elsewhere = [
        chunk("hi", x="y"),
        chunk("hi") | {"x": 1},
        chunk("hi") | {"id": [SAID]},
        chunk("hi", stop_reason={}),
    ]
    for other in (chunk("hi", "stop"), chunk(""), *said_elsewhere):
        assert completions.plain(other) is None


def test_a_secret_over_frames_is_found_in_each_choice() -> None:
    first = [chunk("a sk-ab"), chunk("b sk-a", index=1)]
    got = streamed(WIRE, [*first, chunk("cd1234 c"), chunk("bcd1234", "stop", 1), chunk("", "stop")])
    assert (said(got), said(got, 1)) == ("a # c", "b #")


@examples(60)
@given(cut(), rulesets, sizes)
def test_however_it_is_cut(pieces: tuple[str, ...], patterns: tuple[str, ...], packets: list[int]) -> None:
    told = [*map(chunk, pieces), chunk("", "stop")]
    data = b"".join(sse.render(json.dumps(document).encode()) for document in told) + completions.DONE
    assert said(through(WIRE, patterns, data, packets)) == expected(patterns, "".join(pieces))


def test_log_probabilities_of_a_changed_text_are_dropped() -> None:
    logprobs = {"tokens": [SECRET], "text_offset": [0], "token_logprobs": [-1], "top_logprobs": [{SECRET: -1}]}
    got = json.loads(heard(WIRE, chunk(SECRET, "stop", logprobs=logprobs, token_ids=[7])))["choices"][0]
    assert got == {"text": "#", "index": 0, "logprobs": None, "finish_reason": "stop", "token_ids": None}
    clean = chunk("fine", "stop", logprobs={"tokens": ["fine"], "text_offset": [0]})
    assert json.loads(heard(WIRE, clean)) == clean


def test_a_blocked_stream_ends_as_a_filtered_one() -> None:
    run = places.opened(WIRE, rules=[places.RULE | {"action": "block"}])
    unseen = chunk(f"well {SECRET}") | {"x": "not looked at"}
    got = streamed(WIRE, [chunk("So, "), unseen, chunk("more", "stop")], run=run)
    assert "not looked at" not in got
    with client(got.encode()) as sdk:
        chunks = list(sdk.completions.create(model="m", prompt="p", stream=True))
    assert "".join(c.choices[0].text for c in chunks) == "So, well "
    assert [c.choices[0].finish_reason for c in chunks][-1] == "content_filter"


def test_a_finished_stream_is_complete() -> None:
    run = places.opened(WIRE, rules=[places.RULE | {"action": "finish", "message": "No."}])
    got = streamed(WIRE, [chunk("So, "), chunk(SECRET)], run=run)
    with client(got.encode()) as sdk:
        chunks = list(sdk.completions.create(model="m", prompt="p", stream=True))
    assert "".join(c.choices[0].text for c in chunks) == "So, No."
    assert [c.choices[0].finish_reason for c in chunks][-1] == "stop"


def test_an_answer_in_the_models_place() -> None:
    identity = {"id": "c", "created": 1, "model": "m", "x": SECRET, "usage": {"prompt_tokens": 3, "note": SECRET}}
    whole = jsondoc.encode(completions.answer(identity, "No."))
    assert SECRET.encode() not in whole
    with client(whole, b"application/json") as sdk:
        reply = sdk.completions.create(model="m", prompt="p")
    assert (reply.id, reply.choices[0].text, reply.choices[0].finish_reason) == ("c", "No.", "stop")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (3, 3)
    with client(completions.answer_frames(identity, "No.")) as sdk:
        chunks = list(sdk.completions.create(model="m", prompt="p", stream=True))
    assert [(c.choices[0].text, c.choices[0].finish_reason) for c in chunks] == [("No.", None), ("", "stop")]


def test_a_stream_that_cannot_go_on_is_raised() -> None:
    stream = ReplyStream(WIRE, places.opened(WIRE))
    out = stream.feed(sse.Events().feed(sse.render(jsondoc.encode(chunk("So")))))
    assert not stream.complete
    out += stream.failing(UpstreamBroken("It broke."))
    with client(out) as sdk, pytest.raises(openai.APIError, match="It broke"):
        list(sdk.completions.create(model="m", prompt="p", stream=True))


def test_usage_is_read() -> None:
    last = chunk("", "stop") | {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    assert completions.usage(last) == Usage(3, 4)
    assert completions.usage(chunk("")) is None


def test_an_error_is_told_from_a_reply() -> None:
    error = {"error": {"message": f"no {SECRET}", "type": "t"}}
    assert completions.is_error(error)
    assert completions.error_text(error) == f"no {SECRET}"
    assert SECRET not in heard(WIRE, error)
