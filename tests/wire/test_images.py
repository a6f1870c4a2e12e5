"""Images: every place of the official client's types, events, forms, endings."""

import base64
import json
from typing import Any

import openai
import pytest
from openai.types import (
    ImageCreateVariationParams,
    ImageEditStreamEvent,
    ImageGenerateParams,
    ImageGenStreamEvent,
    ImagesResponse,
)
from openai.types.image_edit_params import ImageEditParams

from sidecar.core.surface import Surface
from sidecar.core.usage import Usage
from sidecar.wire import images
from sidecar.wire.images import IDENTIFIER, PICTURE, PROMPT, REPLY_FIELDS, REQUEST_FIELDS, UNKNOWN
from sidecar.wire.stream import Wire
from tests.wire import places
from tests.wire.places import SAID, SECRET, asked, heard, streamed
from tests.wire.test_errors import Provider

WIRE: Wire = images

TEXTS = {"prompt": PROMPT, **REQUEST_FIELDS}
WORDS = {
    *(
        "background",
        "complexity",
        "model",
        "moderation",
        "output_format",
        "quality",
        "response_format",
        "size",
        "style",
    ),
    *("svg.model", "svg.reasoning.effort"),
}
# A short string is no payload: it is read as a text.
REPLY_TEXTS = {
    "data[].b64_json": PICTURE,
    "data[].revised_prompt": REPLY_FIELDS["revised_prompt"],
    "data[].url": REPLY_FIELDS["url"],
    "safety_identifier": IDENTIFIER,
}
REPLY_WORDS = {"background", "output_format", "quality", "size", "svg_usage.model"}
EVENT_TEXTS = {"b64_json": PICTURE, "safety_identifier": IDENTIFIER}
EVENT_WORDS = {"background", "output_format", "quality", "size", "type"}
# Fields of forms beside those of JSON requests; files are no fields.
FORM_WORDS = {*WORDS, "input_fidelity"}
FILES = ("image", "mask", "markup")

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(200, 256)) * 4


def slots(document: dict[str, Any]) -> list[Any]:
    return [said.slot for said in images.reply_texts(document)]


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def event(kind: str, data: bytes, **more: Any) -> dict[str, Any]:
    made = {"background": "auto", "created_at": 1, "output_format": "png", "quality": "low", "size": "auto"}
    return {"type": kind, "b64_json": coded(data), **made, **more}


def test_every_place_of_the_sdk_is_read() -> None:
    places.check(ImageGenerateParams, TEXTS, WORDS, images.request_slots)
    places.check(ImagesResponse, REPLY_TEXTS, REPLY_WORDS, slots)
    for events, name in ((ImageGenStreamEvent, "image_generation"), (ImageEditStreamEvent, "image_edit")):
        places.check(events, EVENT_TEXTS, EVENT_WORDS, slots)
        assert places.types(events) == {f"{name}.partial_image", f"{name}.completed"}


@pytest.mark.parametrize("form", [ImageEditParams, ImageCreateVariationParams])
def test_every_field_of_a_form_has_its_place(form: Any) -> None:
    paths = {path for path in places.strings(form) if not path.startswith(FILES)}
    assert paths <= {*TEXTS, *FORM_WORDS}
    for path in paths:
        first, *rest = path.split(".")
        assert images.form_field(first + "".join(f"[{name}]" for name in rest)) == TEXTS.get(path)


def test_a_field_that_nobody_documents_is_a_text() -> None:
    found: Surface | None = images.form_field("x")
    assert found is UNKNOWN


def test_a_secret_is_found_everywhere() -> None:
    for path in (*TEXTS, "x", "svg", "svg.x", "svg.reasoning", "svg.reasoning.x", "model.x", "size[]"):
        assert SECRET not in asked(WIRE, places.at(path, SAID))
    odd = ("x", "data", "data[]", "data[].x", "usage.x", "svg_usage", "svg_usage.x", "size.x", "error.message")
    places.found_everywhere(WIRE, (*REPLY_TEXTS, *odd))
    for kind in ("image_generation.completed", "image_edit.partial_image"):
        places.found_everywhere(WIRE, (*EVENT_TEXTS, "x"), base={"type": kind})


def test_a_picture_is_no_text_unless_it_is_one() -> None:
    picture = {"created": 1, "data": [{"b64_json": coded(PNG)}]}
    assert images.reply_texts(picture) == []
    drawing = {"created": 1, "data": [{"b64_json": coded(f"<svg><text>{SAID}</text></svg>".encode())}]}
    got = json.loads(heard(WIRE, drawing))["data"][0]["b64_json"]
    assert base64.b64decode(got) == b"<svg><text>my # here</text></svg>"


def test_a_stream_of_pictures_passes_and_is_over_when_the_last_is_there() -> None:
    told = [event("image_generation.partial_image", PNG, partial_image_index=0)]
    told.append(event("image_generation.completed", PNG, usage={"input_tokens": 3, "output_tokens": 4}))
    writer = images.writer()
    for document, complete in zip(told, (False, True), strict=True):
        writer.begin(document)
        writer.end(document)
        assert (writer.complete, writer.done) == (complete, complete)
    assert images.usage(told[1]) == Usage(3, 4)
    got = streamed(WIRE, told)
    assert [json.loads(line[6:]) for line in got.splitlines() if line] == told


@pytest.mark.parametrize("action", ["block", "finish"])
def test_a_stopped_stream_is_raised(action: str) -> None:
    rule = places.RULE | {"action": action, "message": "The rest of this reply was withheld by a policy."}
    told = [
        event("image_generation.partial_image", PNG),
        event("image_generation.completed", PNG, safety_identifier=SAID),
    ]
    got = streamed(WIRE, told, run=places.opened(WIRE, rules=[rule]))
    with Provider(200, [(b"content-type", b"text/event-stream")], got.encode()).client() as sdk:
        stream = iter(sdk.images.generate(prompt="p", stream=True))
        assert next(stream).type == "image_generation.partial_image"
        with pytest.raises(openai.APIError, match="withheld") as caught:
            next(stream)
    assert caught.value.code == "content_filter"


def test_there_is_no_answer_in_the_models_place() -> None:
    assert images.answer({"model": "m"}, "No.") is None
    assert images.answer_frames({"model": "m"}, "No.") == b""
