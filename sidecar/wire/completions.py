"""`/v1/completions`: where its texts live, and how to write frames of its streams.

Fields as in the OpenAI API reference, with what Azure and vLLM add to a choice. A whole reply and a frame have the same
shape. A prompt may be given in tokens: they cannot be read, and no rule sees what they spell.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..core.surface import Kind, Lane, Slot, Surface
from ..core.usage import NOT_REPORTED
from . import asking, jsondoc, several, small, sse
from .errors import openai_shape
from .hosted import nowhere
from .several import index_of
from .stream import Spoken
from .walk import optional, others, walk

NAME = "completions"

DONE = sse.render(b"[DONE]")

PROMPT = Surface("completions.request.prompt", Kind.USER)
REQUEST_FIELDS = {field: Surface(f"completions.request.{field}", Kind.USER) for field in ("suffix", "stop", "user")}
UNKNOWN = Surface("completions.request (undocumented fields)", Kind.USER, unknown=True)

TEXT = Surface("completions.reply.choices[].text", Kind.REPLY)
ERROR = Surface("completions.reply.error.message", Kind.REPLY)
OPAQUE = Surface("completions.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("completions.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (PROMPT, *REQUEST_FIELDS.values(), UNKNOWN)
REPLY_SURFACES = (TEXT, ERROR, OPAQUE, UNKNOWN_REPLY)

NAMES: frozenset[Surface] = frozenset()
COPIES = False

_FIELDS = {"prompt": PROMPT, **REQUEST_FIELDS}
# Fields that hold a word of the API. A string there is one, anything else is walked.
_SETTINGS = frozenset(("model",))
_WORDS = frozenset(("id", "object", "model", "system_fingerprint", "service_tier"))
# `content_filter_results` is Azure's, `stop_reason` and `token_ids` are vLLM's.
_CHOICE_FIELDS = frozenset(("index", "text", "finish_reason", "logprobs", "content_filter_results", "stop_reason"))
_CHOICE_FIELDS |= {"token_ids"}
_CHOICE_KNOWN = frozenset(("text", "logprobs", "content_filter_results"))
_CHOICE_WORDS = frozenset(("finish_reason", "stop_reason"))
# What a frame of our own takes over from one of the provider's.
_IDENTITY = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_KNOWN = frozenset(("choices", "usage", "error"))
_HEAD = frozenset((*_IDENTITY, *_KNOWN))
_NESTED = frozenset(("choices", "logprobs", "content_filter_results", "token_ids"))


# --- the request -------------------------------------------------------------------------------------------


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


but_tools = request_slots


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    for field, surface in _FIELDS.items():
        # A prompt of numbers needs no walk, and may be long.
        if field in document and not small.numbers(document[field]):
            yield from walk(document, field, surface)
    yield from others(document, _FIELDS.keys(), _SETTINGS, UNKNOWN)


# --- the reply, buffered or one frame of a stream --------------------------------------------------------------


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one frame. What is no completion is walked."""
    choices, odd = small.entries(document, "choices", OPAQUE)
    found = [spoken for position, choice in choices for spoken in _choice(choice, index_of(choice, position))]
    found.extend(small.alone(odd))
    unknown = UNKNOWN_REPLY if isinstance(document.get("choices"), list) else OPAQUE
    found.extend(small.alone(others(document, _KNOWN, _WORDS, unknown)))
    for field, surface in (("error", ERROR), ("usage", OPAQUE)):
        found.extend(small.alone(optional(document, field, surface)))
    return found


def _choice(choice: dict[str, Any], index: int) -> Iterator[Spoken]:
    if isinstance(choice.get("text"), str):
        yield Spoken(_lane(index), Slot(TEXT, choice, "text"))
    elif choice.get("text") is not None:
        yield from small.alone(walk(choice, "text", OPAQUE))
    yield from small.alone(others(choice, _CHOICE_KNOWN, _CHOICE_WORDS, UNKNOWN_REPLY))


@lru_cache(maxsize=128)
def _lane(choice: int) -> Lane:
    return Lane(TEXT, choice)


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a frame that holds nothing else."""
    choices = document.get("choices")
    if type(choices) is not list or len(choices) != 1 or not document.keys() <= _HEAD:
        return None
    choice = choices[0]
    if type(choice) is not dict or choice.get("finish_reason") is not None or not choice.keys() <= _CHOICE_FIELDS:
        return None
    text = choice.get("text")
    if type(text) is not str or not text or type(choice.get("index", 0)) is not int:
        return None
    if "error" in document or not (small.flat(document, _NESTED) and small.flat(choice, _NESTED)):
        return None
    return _lane(index_of(choice, 0)), Slot(TEXT, choice, "text"), text


choices_in = several.choices_in
ended = several.ended
is_error = several.is_error


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Drops the log probabilities of a text that has changed, and with them its tokens and their offsets."""
    for index, choice in several.numbered(document):
        if index == lane.choice:
            choice.update((field, None) for field in ("logprobs", "token_ids") if choice.get(field))


error_text = small.error_text
usage = small.usage
ask_usage = asking.include_usage
hosted = nowhere


def event_of(document: dict[str, Any]) -> bytes | None:
    return None


class Writer(several.Writer):
    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        return _frame(template or self._template, lane.choice, text)

    def _frame(self, choice: int, text: str, reason: str | None = None) -> dict[str, Any]:
        return _frame(self._template, choice, text, reason)


writer = Writer


def _frame(template: dict[str, Any], choice: int, text: str, reason: str | None = None) -> dict[str, Any]:
    """Of the provider's frame only its identity: nothing else in it need have been looked at yet."""
    head = {key: template[key] for key in _IDENTITY if key in template} or {"object": "text_completion"}
    return head | {"choices": [{"text": text, "index": choice, "logprobs": None, "finish_reason": reason}]}


# --- replies of our own --------------------------------------------------------------------------------------


def answer(identity: dict[str, Any], text: str) -> dict[str, Any]:
    """A whole, complete reply with this text. `identity` holds id, created and model, and may hold more."""
    used = usage(identity) or NOT_REPORTED
    prompt, completion = used.prompt or 0, used.completion or 0
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return _frame({"object": "text_completion"} | identity, 0, text, "stop") | {"usage": told}


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    """The same as a complete stream."""
    head = {"object": "text_completion"} | identity
    frames = (_frame(head, 0, text), _frame(head, 0, "", "stop"))
    return b"".join(sse.render(jsondoc.encode(frame)) for frame in frames) + DONE


error_body = openai_shape
error_frames = small.error_frames
