"""Speech and transcriptions: every place of the official client's types, streams, endings."""

import base64
import json
from copy import deepcopy
from functools import partial
from typing import Any

import openai
import pytest
from hypothesis import given
from openai.types.audio import (
    SpeechCreateParams,
    TranscriptionCreateParams,
    TranscriptionCreateResponse,
    TranscriptionStreamEvent,
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionTextSegmentEvent,
    TranslationCreateParams,
    TranslationCreateResponse,
)

from sidecar.core.chain import Run
from sidecar.core.usage import Usage
from sidecar.errors import UpstreamTimeout
from sidecar.wire import audio, jsondoc, sse
from sidecar.wire.audio import (
    INPUT,
    INSTRUCTIONS,
    KEYWORDS,
    PROMPT,
    REFERENCES,
    SEGMENT,
    SPEAKER,
    SPEAKERS,
    TEXT,
    UNKNOWN,
    WORD,
)
from sidecar.wire.stream import Wire, edit_reply
from tests.wire import places
from tests.wire.cutting import cut, expected, rulesets, sizes, through
from tests.wire.fuzz import examples
from tests.wire.places import SAID, SECRET, asked, heard, streamed
from tests.wire.test_errors import Provider

WIRE: Wire = audio

TEXTS = {"input": INPUT, "instructions": INSTRUCTIONS}
WORDS = {"model", "response_format", "stream_format", "voice", "voice.id"}
FORM_TEXTS = {
    "prompt": PROMPT,
    "keywords[]": KEYWORDS,
    "known_speaker_names[]": SPEAKERS,
    "known_speaker_references[]": REFERENCES,
}
FORM_WORDS = {
    *("chunking_strategy", "chunking_strategy.type", "include[]", "language", "languages[]", "model"),
    *("response_format", "timestamp_granularities[]"),
}
REPLY_TEXTS = {"text": TEXT, "segments[].text": SEGMENT, "segments[].speaker": SPEAKER, "words[].word": WORD}
# The tokens are the text over again: dropped when it changes, see below.
REPLY_WORDS = {
    *("language", "languages[].code", "logprobs[].token", "segments[].id", "segments[].type", "task", "usage.type"),
}
EVENTS: tuple[tuple[Any, str, dict[str, Any], set[str]], ...] = (
    (TranscriptionTextDeltaEvent, audio.DELTA, {"delta": TEXT}, {"logprobs[].token", "segment_id"}),
    (TranscriptionTextDoneEvent, audio.COPY, {"text": TEXT}, {"languages[].code", "logprobs[].token", "usage.type"}),
    (TranscriptionTextSegmentEvent, audio.PART, {"text": SEGMENT, "speaker": SPEAKER}, {"id"}),
)


def slots(document: dict[str, Any]) -> list[Any]:
    return [said.slot for said in audio.reply_texts(document)]


def delta(text: str, **more: Any) -> dict[str, Any]:
    return {"type": audio.DELTA, "delta": text, **more}


def done(text: str, **more: Any) -> dict[str, Any]:
    return {"type": audio.COPY, "text": text, **more}


def events(got: str) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in sse.Events().feed(got.encode()) if frame.data]


def said(got: str) -> str:
    return "".join(event["delta"] for event in events(got) if event["type"] == audio.DELTA)


def client(body: bytes, kind: bytes = b"text/event-stream") -> openai.OpenAI:
    return Provider(200, [(b"content-type", kind)], body).client()


def test_every_place_of_the_sdk_is_read() -> None:
    places.check(SpeechCreateParams, TEXTS, WORDS, audio.request_slots)
    places.check(TranscriptionCreateResponse, REPLY_TEXTS, REPLY_WORDS, slots)
    assert set(places.strings(TranslationCreateResponse)) <= {*REPLY_TEXTS, *REPLY_WORDS}
    assert places.types(TranscriptionStreamEvent) == {kind for _, kind, _, _ in EVENTS}
    for event, kind, texts, words in EVENTS:
        places.check(event, texts, {*words, "type"}, partial(typed, kind))


def typed(kind: str, document: dict[str, Any]) -> list[Any]:
    return slots({**document, "type": kind})


@pytest.mark.parametrize("form", [TranscriptionCreateParams, TranslationCreateParams])
def test_every_field_of_a_form_has_its_place(form: Any) -> None:
    paths = {path for path in places.strings(form) if not path.startswith("file")}
    assert paths <= {*FORM_TEXTS, *FORM_WORDS}
    for path in paths:
        first, *rest = path.split(".")
        assert audio.form_field(first + "".join(f"[{name}]" for name in rest)) == FORM_TEXTS.get(path)
    assert audio.form_field("x") is UNKNOWN


def test_a_secret_is_found_everywhere() -> None:
    for path in (*TEXTS, "x", "voice.x", "model.x", "prompt"):
        assert SECRET not in asked(WIRE, places.at(path, SAID))
    odd = ("x", "segments", "segments[]", "segments[].x", "words[].x", "text.x", "language.x", "usage", "usage.x")
    places.found_everywhere(WIRE, (*REPLY_TEXTS, *odd, "languages[]", "languages[].x", "error.message"))
    for _, kind, texts, _ in EVENTS:
        places.found_everywhere(WIRE, (*texts, "x"), base={"type": kind})


def test_sound_is_no_text() -> None:
    sound = {"type": "speech.audio.delta", "audio": base64.b64encode(bytes(range(128, 256))).decode()}
    assert slots(sound) == []
    assert SECRET not in heard(WIRE, sound | {"audio": SAID})
    writer = audio.writer()
    over = {"type": "speech.audio.done", "usage": {"input_tokens": 1, "output_tokens": 2}}
    writer.end(over)
    assert writer.done
    assert audio.usage(over) == Usage(1, 2)


VERBOSE = {
    "task": "transcribe",
    "language": "english",
    "duration": 2.5,
    "text": "so sk-abcd 1234 it is",
    "segments": [
        {"id": 0, "seek": 0, "start": 0, "end": 1, "text": "so sk-abcd", "tokens": [1, 2], "temperature": 0},
        {"id": 1, "seek": 0, "start": 1, "end": 2, "text": " 1234 it is", "tokens": [3, 4], "temperature": 0},
    ],
    "words": [{"word": word, "start": 0, "end": 1} for word in ("so", "sk-abcd", "1234", "it", "is")],
    "logprobs": [{"token": "sk-abcd", "logprob": -1, "bytes": [115]}],
}


def test_what_is_cut_over_segments_leaks_from_none() -> None:
    spoken = places.RULE | {"patterns": [{"name": "key", "regex": "sk-[a-z]{4} [0-9]{4}"}]}
    whole = edited(places.opened(WIRE, rules=[spoken]))
    [frame] = events(streamed(WIRE, [VERBOSE], run=places.opened(WIRE, rules=[spoken])))
    for got in (whole, frame):
        assert got["text"] == "so # it is"
        assert [(part["text"], part["tokens"], part["end"]) for part in got["segments"]] == [("", [], 1), ("", [], 2)]
        assert [word["word"] for word in got["words"]] == [""] * 5
        assert got["logprobs"] is None


def edited(run: Run) -> dict[str, Any]:
    """What the client gets of the transcription above."""
    document: dict[str, Any] = deepcopy(VERBOSE)
    edit_reply(WIRE, run, document)
    return document


def test_a_segment_that_changes_alone_keeps_the_others() -> None:
    only = places.RULE | {"patterns": [{"name": "key", "regex": r"^ 1234"}]}
    got = edited(places.opened(WIRE, rules=[only]))
    assert [(part["text"], part["tokens"]) for part in got["segments"]] == [("so sk-abcd", [1, 2]), ("# it is", [])]
    assert got["text"] == VERBOSE["text"]


def test_what_no_rule_touches_stays() -> None:
    assert edited(places.opened(WIRE)) == VERBOSE


@examples(60)
@given(cut(), rulesets, sizes)
def test_however_it_is_cut(pieces: tuple[str, ...], patterns: tuple[str, ...], packets: list[int]) -> None:
    text = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    told = [*map(delta, pieces), done(text)]
    data = b"".join(sse.render(json.dumps(document).encode()) for document in told)
    got = through(WIRE, patterns, data, packets)
    assert said(got) == expected(patterns, text)
    assert events(got)[-1] == done(expected(patterns, text))


def test_the_copy_says_what_was_heard() -> None:
    logprobs = [{"token": SECRET, "logprob": -1}]
    told = [delta("my sk-ab", logprobs=logprobs), delta("cd1234 here"), done(SAID, logprobs=logprobs)]
    got = streamed(WIRE, told)
    assert said(got) == "my # here"
    assert events(got)[-1] == {"type": audio.COPY, "text": "my # here", "logprobs": None}
    assert SECRET not in got


def test_held_text_keeps_its_speaker() -> None:
    got = streamed(WIRE, [delta("it was sk-ab", segment_id="seg_1"), done("it was sk-ab")])
    assert [event.get("segment_id") for event in events(got)] == ["seg_1", "seg_1", None]
    assert said(got) == "it was sk-ab"


def test_a_segment_of_a_stream_is_looked_at_alone() -> None:
    part = {"type": audio.PART, "id": "seg_1", "start": 0, "end": 1, "speaker": "A", "text": SAID}
    got = events(streamed(WIRE, [delta(SAID, segment_id="seg_1"), part, done(SAID)]))
    assert [event.get("text", event.get("delta")) for event in got] == ["my # here"] * 3


def test_a_blocked_stream_is_raised() -> None:
    run = places.opened(WIRE, rules=[places.RULE | {"action": "block"}])
    got = streamed(WIRE, [delta("it is "), delta(SECRET), done(f"it is {SECRET}")], run=run)
    with client(got.encode()) as sdk:
        stream = iter(sdk.audio.transcriptions.create(file=b"x", model="m", stream=True))
        first = next(stream)
        assert isinstance(first, TranscriptionTextDeltaEvent)
        with pytest.raises(openai.APIError, match="withheld"):
            list(stream)


def test_a_finished_stream_is_complete() -> None:
    run = places.opened(WIRE, rules=[places.RULE | {"action": "finish", "message": "No."}])
    got = streamed(WIRE, [delta("it is "), delta(SECRET)], run=run)
    with client(got.encode()) as sdk:
        told = list(sdk.audio.transcriptions.create(file=b"x", model="m", stream=True))
    last = told.pop()
    assert isinstance(last, TranscriptionTextDoneEvent)
    assert last.text == "it is No."
    assert "".join(event.delta for event in told if isinstance(event, TranscriptionTextDeltaEvent)) == last.text


def test_a_stream_that_cannot_go_on_is_raised() -> None:
    frames = audio.error_frames(UpstreamTimeout("idle", 5))
    body = b"".join(sse.render(jsondoc.encode(frame), audio.event_of(frame)) for frame in frames)
    with client(body) as sdk, pytest.raises(openai.APIError, match="in time"):
        list(sdk.audio.transcriptions.create(file=b"x", model="m", stream=True))


def test_an_answer_takes_only_a_transcriptions_place() -> None:
    assert audio.answer({"id": "x", "model": "m"}, "No.") is None
    assert audio.answer_frames({"id": "x", "model": "m"}, "No.") == b""
    whole = jsondoc.encode(audio.answer(VERBOSE | {"x": SECRET}, "No."))
    with client(whole, b"application/json") as sdk:
        got = sdk.audio.transcriptions.create(file=b"x", model="m", response_format="verbose_json")
    assert (got.text, got.language, got.segments) == ("No.", "english", None)
    assert SECRET.encode() not in whole
