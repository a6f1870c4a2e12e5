"""`/v1/audio/speech`, `/v1/audio/transcriptions` and `/v1/audio/translations`.

Fields and stream events as in the OpenAI API reference. Speech is asked for in JSON and comes as sound, which is not
looked into. Transcriptions are asked for in multipart forms, whose fields are named by `form_field`, and come as JSON,
as a stream, or as one plain text (text, srt, vtt), which is for the server to look at.

A transcription says its text twice: as a whole, and in the segments or words that it is made of. The whole text is
what is judged, for what is found may be cut over several of them; each segment and word is looked at alone as well.
Where the whole text has changed, the texts and tokens of all its segments and words are emptied, and their times stay.
In a stream the deltas are the running text, `transcript.text.done` is its copy, and a `transcript.text.segment` of a
diarized transcription is looked at alone: a match over two speakers' segments is taken out of the text, not out of
them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.surface import Kind, Lane, Slot, Surface
from . import small
from .stream import Spoken
from .walk import optional, others, payload, walk

NAME = "audio"
DONE = b""
NAMES: frozenset[Surface] = frozenset()
COPIES = True

INPUT = Surface("audio.request.input", Kind.USER)
INSTRUCTIONS = Surface("audio.request.instructions", Kind.SYSTEM)
PROMPT = Surface("audio.request.prompt", Kind.USER)
KEYWORDS = Surface("audio.request.keywords[]", Kind.USER)
SPEAKERS = Surface("audio.request.known_speaker_names[]", Kind.USER)
REFERENCES = Surface("audio.request.known_speaker_references[]", Kind.USER)
UNKNOWN = Surface("audio.request (undocumented fields)", Kind.USER, unknown=True)

TEXT = Surface("audio.reply.text", Kind.REPLY)
SEGMENT = Surface("audio.reply.segments[].text", Kind.REPLY)
SPEAKER = Surface("audio.reply.segments[].speaker", Kind.REPLY)
WORD = Surface("audio.reply.words[].word", Kind.REPLY)
ERROR = Surface("audio.reply.error.message", Kind.REPLY)
OPAQUE = Surface("audio.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("audio.reply (undocumented fields)", Kind.REPLY, unknown=True)

REQUEST_SURFACES = (INPUT, INSTRUCTIONS, PROMPT, KEYWORDS, SPEAKERS, REFERENCES, UNKNOWN)
REPLY_SURFACES = (TEXT, SEGMENT, SPEAKER, WORD, ERROR, OPAQUE, UNKNOWN_REPLY)

_FIELDS = {
    "input": INPUT,
    "instructions": INSTRUCTIONS,
    "prompt": PROMPT,
    "keywords": KEYWORDS,
    "known_speaker_names": SPEAKERS,
}
# Fields that hold a word of the API. A string there is one, anything else is walked.
_SETTINGS = frozenset(("model", "response_format", "stream_format", "language"))
# Of forms alone: a form has no numbers, booleans or objects.
_FORM_SETTINGS = _SETTINGS | {
    "languages",
    "include",
    "temperature",
    "stream",
    "timestamp_granularities",
    "chunking_strategy",
    "chunking_strategy[type]",
    "chunking_strategy[prefix_padding_ms]",
    "chunking_strategy[silence_duration_ms]",
    "chunking_strategy[threshold]",
}

DELTA, COPY, PART = "transcript.text.delta", "transcript.text.done", "transcript.text.segment"
_SOUND, _SOUND_DONE = "speech.audio.delta", "speech.audio.done"
_WORDS = frozenset(("type", "id", "language", "task", "segment_id"))
_TEXTS = frozenset(("text", "delta", "segments", "words", "error"))
_HEAD = _TEXTS | {"usage", "languages", "logprobs"}
_PLAIN = frozenset(("type", "delta", "logprobs", "segment_id"))
# What a reply of our own takes over from the provider's.
_IDENTITY = ("task", "language", "duration")


# --- the request -------------------------------------------------------------------------------------------


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


but_tools = request_slots


def _request_slots(document: dict[str, Any]) -> Iterator[Slot]:
    for field, surface in _FIELDS.items():
        yield from optional(document, field, surface)
    yield from () if isinstance(document.get("voice"), str) else small.settings(document, "voice", {"id"}, UNKNOWN)
    yield from others(document, {*_FIELDS, "voice"}, _SETTINGS, UNKNOWN)


def form_field(name: str) -> Surface | None:
    """Where the text of a form's field stands; None for words of the API. A list's name may end in `[]`."""
    name = name.removesuffix("[]")
    if name == "known_speaker_references":
        return REFERENCES
    return None if name in _FORM_SETTINGS else _FIELDS.get(name, UNKNOWN)


# --- the reply, buffered or one event of a stream --------------------------------------------------------------

_SAID = Lane(TEXT)


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one event. The whole text comes last: its change empties its parts."""
    if document.get("type") == PART:
        return list(_part(document, SEGMENT, "text", 0))
    found: list[Spoken] = []
    for field, surface, text in _PARTS:
        parts, odd = small.entries(document, field, OPAQUE)
        found.extend(small.alone(odd))
        found.extend(spoken for position, part in parts for spoken in _part(part, surface, text, position))
    found.extend(small.alone(_rest(document)))
    found.extend(_own(document, "delta", whole=document.get("type") != DELTA))
    found.extend(_own(document, "text", whole=True))
    return found


_PARTS = (("segments", SEGMENT, "text"), ("words", WORD, "word"))


def _own(document: dict[str, Any], field: str, whole: bool) -> Iterator[Spoken]:
    if isinstance(document.get(field), str):
        yield Spoken(_SAID, Slot(TEXT, document, field), whole)
    elif document.get(field) is not None:
        yield from small.alone(walk(document, field, OPAQUE))


def _part(part: dict[str, Any], surface: Surface, field: str, position: int) -> Iterator[Spoken]:
    """A segment, which is an event of its own in a stream, or a word."""
    unknown = others(part, {field, "speaker"}, _WORDS, UNKNOWN_REPLY)
    return small.alone((*optional(part, field, surface), *optional(part, "speaker", SPEAKER), *unknown), position)


def _rest(document: dict[str, Any]) -> Iterator[Slot]:
    yield from optional(document, "error", ERROR)
    yield from small.settings(document, "usage", {"type"}, OPAQUE)
    languages, odd = small.entries(document, "languages", OPAQUE)
    yield from odd
    for _, language in languages:
        yield from others(language, frozenset(), {"code"}, UNKNOWN_REPLY)
    is_sound = document.get("type") == _SOUND and "audio" in document
    if is_sound:
        yield from payload(document, "audio", OPAQUE)
    known = _HEAD | {"audio"} if is_sound else _HEAD
    yield from others(document, known, _WORDS, UNKNOWN_REPLY if is_sound or document.keys() & _TEXTS else OPAQUE)


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a delta that holds nothing else."""
    if document.get("type") != DELTA or not document.keys() <= _PLAIN:
        return None
    text = document.get("delta")
    if type(text) is not str or not text or type(document.get("segment_id", "")) is not str:
        return None
    return _SAID, Slot(TEXT, document, "delta"), text


choices_in = small.choices_in


def ended(document: dict[str, Any], lanes: Iterable[Lane]) -> list[Lane]:
    return [lane for lane in lanes if lane == _SAID] if document.get("type") == COPY else []


is_error = small.is_error
error_text = small.error_text


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Empties the segments and words of a text that has changed; drops log probabilities and tokens."""
    if lane.surface is TEXT:
        if document.get("logprobs"):
            document["logprobs"] = None
        for field, surface, text in _PARTS:
            for _, part in small.entries(document, field, surface)[0]:
                part.update((name, empty) for name, empty in ((text, ""), ("tokens", [])) if name in part)
    elif lane.surface is SEGMENT:
        for position, part in small.entries(document, "segments", SEGMENT)[0]:
            if position == lane.choice and "tokens" in part:
                part["tokens"] = []


usage = small.usage
ask_usage = small.ask_usage
hosted = small.hosted
event_of = small.event_of


class Writer(small.Writer):
    """A transcript's last event says all of it again; speech has an event that says that it is over."""

    LAST = frozenset((COPY, _SOUND_DONE))

    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        frame = {"type": DELTA, "delta": text}
        segment = (template or {}).get("segment_id")
        return frame if segment is None else frame | {"segment_id": segment}

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[dict[str, Any]]:
        return [{"type": DELTA, "delta": message}, {"type": COPY, "text": said.get(_SAID, "") + message}]


writer = Writer


# --- replies of our own --------------------------------------------------------------------------------------


def answer(identity: dict[str, Any], text: str) -> dict[str, Any] | None:
    """In the place of a transcription, which is then what `identity` holds; speech has no reply that is a text."""
    if "text" not in identity:
        return None
    return {key: identity[key] for key in _IDENTITY if key in identity} | {"text": text}


answer_frames = small.answer_frames
error_body = small.error_body
error_frames = small.error_frames
