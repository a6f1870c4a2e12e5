"""`/v1/moderations`: every place of the official client's types."""

import base64
import json

from openai.types import ModerationCreateParams, ModerationCreateResponse

from sidecar.wire import moderations
from sidecar.wire.moderations import INPUT
from sidecar.wire.stream import Wire
from tests.wire import places
from tests.wire.places import SAID, SECRET, asked, heard

WIRE: Wire = moderations

TEXTS = {"input": INPUT, "input[]": INPUT, "input[].text": INPUT, "input[].image_url.url": INPUT}
WORDS = {"model", "input[].type"}
CATEGORIES = (
    *("harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm"),
    *("self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"),
)
APPLIED = {f"results[].category_applied_input_types.{category}[]" for category in CATEGORIES}
REPLY = {
    "id": "modr-1",
    "model": "m",
    "results": [
        {
            "flagged": False,
            "categories": dict.fromkeys(CATEGORIES, False),
            "category_scores": dict.fromkeys(CATEGORIES, 0),
            "category_applied_input_types": {category: ["text", "image"] for category in CATEGORIES},
        }
    ],
}


def test_every_place_of_the_sdk_is_read() -> None:
    places.check(ModerationCreateParams, TEXTS, WORDS, moderations.request_slots)
    words = {"id", "model", *APPLIED}
    places.check(ModerationCreateResponse, {}, words, lambda d: [said.slot for said in moderations.reply_texts(d)])


def test_a_secret_is_found_everywhere() -> None:
    for path in (*TEXTS, "x", "input.x", "input[].x", "model[]"):
        assert SECRET not in asked(WIRE, places.at(path, SAID))
    result = ("x", "categories.hate", "category_scores.hate", "flagged", "category_applied_input_types.hate")
    places.found_everywhere(WIRE, ("error.message", "x", "results", "results[]", "usage.x"))
    places.found_everywhere(WIRE, [f"results[].{path}" for path in result])


def test_a_reply_as_it_should_be_has_no_text() -> None:
    assert moderations.reply_texts(REPLY) == []
    assert json.loads(heard(WIRE, REPLY)) == REPLY


def test_an_image_is_no_text_but_a_text_in_its_place_is() -> None:
    def part(data: bytes) -> dict[str, object]:
        url = "data:image/png;base64," + base64.b64encode(data).decode()
        return {"input": [{"type": "image_url", "image_url": {"url": url}}]}

    assert moderations.request_slots(part(b"\x89PNG\r\n\x1a\n\0\0")) == []
    assert [slot.text for slot in moderations.request_slots(part(SAID.encode()))] == [SAID]


def test_there_is_no_answer_in_the_models_place() -> None:
    assert moderations.answer({"model": "m"}, "No.") is None
    assert moderations.answer_frames({"model": "m"}, "No.") == b""
