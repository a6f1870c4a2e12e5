"""`/v1/embeddings`: every place of the official client's types."""

import base64
import json

import openai
import pytest
from openai.types import CreateEmbeddingResponse, EmbeddingCreateParams

from sidecar.core.surface import Lane
from sidecar.core.usage import Usage
from sidecar.errors import GuardrailTripped
from sidecar.wire import embeddings, jsondoc
from sidecar.wire.embeddings import INPUT, USER
from sidecar.wire.stream import Wire
from tests.wire import places
from tests.wire.places import SAID, SECRET, asked, heard
from tests.wire.test_errors import Provider

WIRE: Wire = embeddings

TEXTS = {"input": INPUT, "input[]": INPUT, "user": USER}
WORDS = {"model", "encoding_format"}
REPLY_WORDS = {"model", "object", "data[].object"}
REPLY = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -1]}],
    "model": "m",
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


def test_every_place_of_the_sdk_is_read() -> None:
    places.check(EmbeddingCreateParams, TEXTS, WORDS, embeddings.request_slots)
    places.check(CreateEmbeddingResponse, {}, REPLY_WORDS, lambda d: [said.slot for said in embeddings.reply_texts(d)])


def test_a_secret_is_found_everywhere() -> None:
    for path in (*TEXTS, "x", "input[].x", "input.x", "model.x"):
        assert SECRET not in asked(WIRE, places.at(path, SAID))
    odd = ("x", "data", "data[]", "data[].x", "data[].embedding[]", "data[].embedding.x", "usage.x", "model.x")
    places.found_everywhere(WIRE, ("error.message", *odd))


def test_input_in_tokens_passes() -> None:
    for given in ([1, 2], [[1, 2], [3]]):
        assert embeddings.request_slots({"model": "m", "input": given}) == []


def test_an_embedding_is_never_a_text() -> None:
    coded = base64.b64encode(b"my sk-abcd1234 here").decode()
    for embedding in ([0.25, -1], [[0.25], [1]], coded):
        reply = REPLY | {"data": [{"object": "embedding", "index": 0, "embedding": embedding}]}
        assert json.loads(heard(WIRE, reply)) == reply


def test_usage_is_read() -> None:
    assert embeddings.usage(REPLY) == Usage(2)


def test_an_error_of_ours_is_raised() -> None:
    body = jsondoc.encode(embeddings.error_body(GuardrailTripped("Blocked.", param="embeddings.request.input")))
    provider = Provider(400, [(b"content-type", b"application/json")], body)
    with provider.client() as sdk, pytest.raises(openai.BadRequestError, match="Blocked") as caught:
        sdk.embeddings.create(model="m", input="x")
    assert caught.value.code == "guardrail_tripped"


def test_there_is_no_answer_in_the_models_place() -> None:
    assert embeddings.answer({"model": "m"}, "No.") is None
    assert embeddings.answer_frames({"model": "m"}, "No.") == b""


def test_a_reply_that_comes_as_a_stream_is_looked_into_and_ends() -> None:
    run = places.opened(WIRE, rules=[places.RULE | {"action": "block"}])
    got = places.streamed(WIRE, [REPLY, REPLY | {"x": SAID}], run=run)
    assert SECRET not in got
    assert '"code":"content_filter"' in got


def test_a_stream_of_whole_frames_holds_nothing_back() -> None:
    writer = embeddings.writer()
    assert not writer.complete
    writer.begin(REPLY)
    writer.end(REPLY)
    assert (writer.complete, writer.done) == (True, False)
    with pytest.raises(ValueError, match="runs over frames"):
        writer.carry(REPLY, Lane(embeddings.OPAQUE), "x")
