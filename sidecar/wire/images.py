"""`/v1/images/generations`, and the replies of `/v1/images/edits` and `/v1/images/variations`.

Fields and stream events as in the OpenAI API reference. Edits and variations are asked for in multipart forms, whose
fields are named by `form_field`. A picture is a payload: it is looked into only where it is text, as an SVG is.
"""

from collections.abc import Iterator
from typing import Any

from ..core.surface import Kind, Slot, Surface
from . import small
from .stream import Spoken
from .walk import optional, others, payload, walk

NAME = "images"
DONE = b""
NAMES: frozenset[Surface] = frozenset()
COPIES = False

PROMPT = Surface("images.request.prompt", Kind.USER)
REQUEST_FIELDS = {field: Surface(f"images.request.{field}", Kind.USER) for field in ("user", "safety_identifier")}
UNKNOWN = Surface("images.request (undocumented fields)", Kind.USER, unknown=True)

PICTURE = Surface("images.reply.b64_json", Kind.REPLY)
REPLY_FIELDS = {
    "revised_prompt": Surface("images.reply.data[].revised_prompt", Kind.REPLY),
    "url": Surface("images.reply.data[].url", Kind.REPLY),
}
# The request's own, said again.
IDENTIFIER = Surface("images.reply.safety_identifier", Kind.REPLY)
ERROR = Surface("images.reply.error.message", Kind.REPLY)
OPAQUE = Surface("images.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("images.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (PROMPT, *REQUEST_FIELDS.values(), UNKNOWN)
REPLY_SURFACES = (PICTURE, *REPLY_FIELDS.values(), IDENTIFIER, ERROR, OPAQUE, UNKNOWN_REPLY)

_FIELDS = {"prompt": PROMPT, **REQUEST_FIELDS}
# What tells how a picture is made, in requests and in replies. A string there is a word, anything else is walked.
_HOW = frozenset(("background", "output_format", "quality", "size"))
_SETTINGS = _HOW | {"model", "moderation", "response_format", "style", "complexity"}
# Of forms alone: a form has no numbers, booleans or objects.
_FORM_SETTINGS = _SETTINGS | {
    "n",
    "stream",
    "input_fidelity",
    "output_compression",
    "partial_images",
    "frame_count",
    "frame_duration_ms",
    "svg[model]",
    "svg[reasoning][effort]",
}
_WORDS = _HOW | {"type", "object"}
_SAID = frozenset(("b64_json", *REPLY_FIELDS))
_HEAD = frozenset(("data", "b64_json", "safety_identifier", "svg_usage", "usage", "error"))


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


but_tools = request_slots


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    for field, surface in _FIELDS.items():
        yield from optional(document, field, surface)
    yield from _svg(document)
    yield from others(document, {*_FIELDS, "svg"}, _SETTINGS, UNKNOWN)


def _svg(document: dict[str, Any]) -> Iterator[Slot]:
    svg = document.get("svg")
    if not isinstance(svg, dict):
        yield from optional(document, "svg", UNKNOWN)
        return
    yield from small.settings(svg, "reasoning", {"effort"}, UNKNOWN)
    yield from others(svg, {"reasoning"}, {"model"}, UNKNOWN)


def form_field(name: str) -> Surface | None:
    """Where the text of a form's field stands; None for words of the API."""
    return None if name in _FORM_SETTINGS else _FIELDS.get(name, UNKNOWN)


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one event: each is whole."""
    pictures, odd = small.entries(document, "data", OPAQUE)
    slots = [*odd, *_picture(document)]
    slots.extend(optional(document, "safety_identifier", IDENTIFIER))
    slots.extend(optional(document, "error", ERROR))
    slots.extend(optional(document, "usage", OPAQUE))
    slots.extend(small.settings(document, "svg_usage", {"model"}, OPAQUE))
    slots.extend(others(document, _HEAD, _WORDS, UNKNOWN_REPLY if document.keys() & _HEAD else OPAQUE))
    found = list(small.alone(slots))
    for position, picture in pictures:
        found.extend(small.alone(_entry(picture), position))
    return found


def _picture(holder: dict[str, Any]) -> Iterator[Slot]:
    if holder.get("b64_json") is not None:
        yield from payload(holder, "b64_json", PICTURE)


def _entry(entry: dict[str, Any]) -> Iterator[Slot]:
    yield from _picture(entry)
    for field, surface in REPLY_FIELDS.items():
        if entry.get(field) is not None:
            yield from payload(entry, field, surface) if field == "url" else walk(entry, field, surface)
    yield from others(entry, _SAID, _WORDS, UNKNOWN_REPLY)


class Writer(small.Writer):
    """The last event of a stream is the finished picture."""

    LAST = frozenset(("image_generation.completed", "image_edit.completed"))


plain = small.plain
choices_in = small.choices_in
ended = small.ended
is_error = small.is_error
error_text = small.error_text
spoil = small.spoil
usage = small.usage
ask_usage = small.ask_usage
hosted = small.hosted
event_of = small.event_of
writer = Writer
answer = small.answer
answer_frames = small.answer_frames
error_body = small.error_body
error_frames = small.error_frames
