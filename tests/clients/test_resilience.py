"""Official clients that ask only once, before providers that fail: good replies, or errors they know."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.server.mishaps import BEGUN, DONE, MISHAPS, TEXT, error, event, good
from tests.server.pair import PLANS, Pair, Start, before
from tests.server.upstream import CHUNKED, END, Upstream, chunk, reply

JSON = (b"content-type", b"application/json")
ASK: list[Any] = [{"role": "user", "content": "hi"}]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Start]:
    with Upstream() as a, Upstream() as b:
        yield partial(before, a, b, tmp_path)


def openai_at(talk: Pair) -> OpenAI:
    return OpenAI(base_url=f"http://127.0.0.1:{talk.running.port}/v1", api_key="k", max_retries=0, timeout=10)


def anthropic_at(talk: Pair) -> Anthropic:
    return Anthropic(base_url=f"http://127.0.0.1:{talk.running.port}", api_key="k", max_retries=0, timeout=10)


def said(client: OpenAI, streamed: bool) -> str:
    if not streamed:
        reply = client.chat.completions.create(model="m", messages=ASK)
        return reply.choices[0].message.content or ""
    with client.chat.completions.create(model="m", messages=ASK, stream=True) as stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


MODES = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@MODES
def test_openai_notices_nothing(pair: Start, streamed: bool) -> None:
    with pair("{fallback: {pace: off}, breaker: {failures: 1000}}") as talk, openai_at(talk) as client:
        talk.b.play([good(streamed)])
        for mishap in (one for one in MISHAPS if one.kind == "transient" and "stalls" not in one.name):
            talk.a.play(mishap.steps(streamed))
            assert said(client, streamed) == TEXT, mishap.name


@MODES
def test_openai_knows_every_error(pair: Start, streamed: bool) -> None:
    """Whatever both providers do: an error of the client's own family, never a reply that is none."""
    with pair("{fallback: {pace: off}, breaker: {failures: 1000}}") as talk, openai_at(talk) as client:
        for mishap in (one for one in MISHAPS if one.kind != "kept" and "stalls" not in one.name):
            talk.a.play(mishap.steps(streamed))
            talk.b.play(mishap.steps(streamed))
            with pytest.raises(openai.APIError) as raised:
                said(client, streamed)
            if isinstance(raised.value, openai.APIStatusError):
                assert raised.value.status_code == mishap.status, mishap.name


def test_openai_learns_of_a_stream_that_breaks_off(pair: Start) -> None:
    steps = BEGUN + chunk(event({"content": "hel"})) + chunk(b"data: " + error("overloaded") + b"\n\n") + END
    with pair(PLANS["both"]) as talk, openai_at(talk) as client:
        talk.a.play([steps])
        heard = []
        with (
            pytest.raises(openai.APIError, match="it went wrong"),
            client.chat.completions.create(model="m", messages=ASK, stream=True) as stream,
        ):
            heard.extend(chunk.choices[0].delta.content or "" for chunk in stream)
        assert talk.counts == (1, 0)


def test_openai_lists_models(pair: Start) -> None:
    listing = reply(json.dumps({"object": "list", "data": [{"id": "n", "object": "model"}]}).encode(), b"200 OK", JSON)
    with pair(PLANS["both"]) as talk, openai_at(talk) as client:
        talk.a.play(listing)
        talk.b.play(listing)
        assert [model.id for model in client.models.list()] == ["m", "a/n", "b/n"]
        assert client.models.retrieve("m").id == "m"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("x")


# --- Anthropic ---

_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_START = {"type": "message_start", "message": _MESSAGE}
_BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
_REST: list[dict[str, Any]] = [
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


def named(*documents: dict[str, Any]) -> bytes:
    frames = (b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in documents)
    return CHUNKED + b"".join(map(chunk, frames)) + END


def message(client: Anthropic, streamed: bool) -> str:
    if streamed:
        with client.messages.stream(model="m", max_tokens=9, messages=ASK) as stream:
            return stream.get_final_text()
    content = client.messages.create(model="m", max_tokens=9, messages=ASK).content[0]
    return content.text if content.type == "text" else ""


@pytest.mark.parametrize("bridged", [False, True], ids=["native", "bridged"])
@MODES
def test_anthropic_notices_nothing(pair: Start, streamed: bool, bridged: bool) -> None:
    whole = json.dumps({**_MESSAGE, "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"}).encode()
    native = named(_START, _BLOCK, *_REST) if streamed else reply(whole, b"200 OK", JSON)
    with (
        pair("{fallback: {}, breaker: {failures: 1000}}", about_b=", messages: chat" if bridged else "") as talk,
        anthropic_at(talk) as client,
    ):
        talk.b.play([good(streamed) if bridged else native])
        for failing in (
            reply(json.dumps(_OVERLOADED).encode(), b"529 Overloaded", JSON),
            named(_START, {"type": "ping"}, _OVERLOADED) if streamed else reply(b"{}", b"200 OK", JSON),
            named(_START, _BLOCK) if streamed else reply(b"", b"502 Bad", JSON),
        ):
            talk.a.play(failing)
            assert message(client, streamed) == TEXT


@MODES
def test_anthropic_knows_the_errors(pair: Start, streamed: bool) -> None:
    overloaded = reply(json.dumps(_OVERLOADED).encode(), b"529 Overloaded", JSON)
    with pair("{fallback: {}, breaker: {failures: 1000}}") as talk, anthropic_at(talk) as client:
        for failing, status in ((overloaded, 529), (CHUNKED + DONE[:4], 502), (reply(b"<html>"), 502)):
            talk.a.play(failing)
            talk.b.play(failing)
            with pytest.raises(anthropic.APIStatusError) as raised:
                message(client, streamed)
            assert raised.value.status_code == status
            assert raised.value.body["type"] == "error"  # type: ignore[index]


def test_anthropic_lists_models(pair: Start) -> None:
    listing = reply(b'{"data": [{"type": "model", "id": "n"}], "has_more": false}', b"200 OK", JSON)
    with pair(PLANS["both"]) as talk, anthropic_at(talk) as client:
        talk.a.play(listing)
        talk.b.play(listing)
        assert [model.id for model in client.models.list()] == ["m", "a/n", "b/n"]
