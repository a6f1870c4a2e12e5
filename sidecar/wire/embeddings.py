"""`/v1/embeddings`: texts in, numbers out.

Fields as in the OpenAI API reference. Input may be given in tokens: they cannot be read, and no rule sees what they
spell. An embedding is a list of numbers or their bytes in base64: a word of the API, never a text.
"""

from collections.abc import Iterator
from typing import Any

from ..core.surface import Kind, Slot, Surface
from . import small
from .stream import Spoken
from .walk import content, optional, others, walk

NAME = "embeddings"
DONE = b""
NAMES: frozenset[Surface] = frozenset()
COPIES = False

INPUT = Surface("embeddings.request.input", Kind.USER)
USER = Surface("embeddings.request.user", Kind.USER)
UNKNOWN = Surface("embeddings.request (undocumented fields)", Kind.USER, unknown=True)

ERROR = Surface("embeddings.reply.error.message", Kind.REPLY)
OPAQUE = Surface("embeddings.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("embeddings.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (INPUT, USER, UNKNOWN)
REPLY_SURFACES = (ERROR, OPAQUE, UNKNOWN_REPLY)

_SETTINGS = frozenset(("model", "encoding_format"))
_WORDS = frozenset(("id", "object", "model"))
_HEAD = frozenset(("data", "error", "usage"))


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


but_tools = request_slots


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    if not small.numbers(document.get("input")):
        yield from content(document, INPUT, "input")
    yield from optional(document, "user", USER)
    yield from others(document, {"input", "user"}, _SETTINGS, UNKNOWN)


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a reply, which should have none."""
    found, odd = small.entries(document, "data", OPAQUE)
    slots = [*odd, *(slot for _, entry in found for slot in _entry(entry))]
    slots.extend(others(document, _HEAD, _WORDS, UNKNOWN_REPLY if "data" in document else OPAQUE))
    for field, surface in (("error", ERROR), ("usage", OPAQUE)):
        slots.extend(optional(document, field, surface))
    return list(small.alone(slots))


def _entry(entry: dict[str, Any]) -> Iterator[Slot]:
    for field, value in entry.items():
        if field == "embedding" and not isinstance(value, str) and not small.numbers(value):
            yield from walk(entry, field, OPAQUE)
    yield from others(entry, {"embedding"}, _WORDS, UNKNOWN_REPLY)


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
