"""`/v1/moderations`: texts and images in, categories out.

Fields as in the OpenAI API reference.
"""

from collections.abc import Iterator
from typing import Any

from ..core.surface import Kind, Slot, Surface
from . import small
from .stream import Spoken
from .walk import content, optional, others, walk

NAME = "moderations"
DONE = b""
NAMES: frozenset[Surface] = frozenset()
COPIES = False

INPUT = Surface("moderations.request.input", Kind.USER)
UNKNOWN = Surface("moderations.request (undocumented fields)", Kind.USER, unknown=True)

ERROR = Surface("moderations.reply.error.message", Kind.REPLY)
OPAQUE = Surface("moderations.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("moderations.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (INPUT, UNKNOWN)
REPLY_SURFACES = (ERROR, OPAQUE, UNKNOWN_REPLY)

_SETTINGS = frozenset(("model",))
_WORDS = frozenset(("id", "model"))
_HEAD = frozenset(("results", "error", "usage"))
_APPLIED = "category_applied_input_types"
_RESULT_FIELDS = frozenset((_APPLIED, "categories", "category_scores"))


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return [*content(document, INPUT, "input"), *others(document, {"input"}, _SETTINGS, UNKNOWN)]


but_tools = request_slots


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a reply, which should have none."""
    found, odd = small.entries(document, "results", OPAQUE)
    slots = [*odd, *(slot for _, result in found for slot in _result(result))]
    slots.extend(others(document, _HEAD, _WORDS, UNKNOWN_REPLY if "results" in document else OPAQUE))
    for field, surface in (("error", ERROR), ("usage", OPAQUE)):
        slots.extend(optional(document, field, surface))
    return list(small.alone(slots))


def _result(result: dict[str, Any]) -> Iterator[Slot]:
    yield from optional(result, "categories", OPAQUE)
    yield from optional(result, "category_scores", OPAQUE)
    applied = result.get(_APPLIED)
    if isinstance(applied, dict):
        for category, kinds in applied.items():
            if not (isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)):
                yield from walk(applied, category, OPAQUE)
    elif applied is not None:
        yield from walk(result, _APPLIED, OPAQUE)
    yield from others(result, _RESULT_FIELDS, frozenset(), UNKNOWN_REPLY)


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
writer = small.Writer
answer = small.answer
answer_frames = small.answer_frames
error_body = small.error_body
error_frames = small.error_frames
