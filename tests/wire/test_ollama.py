"""Ollama's own API: every place of its Python client's types, streams, tool calls, endings."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.exchange import Disguise
from sidecar.core.usage import Usage
from sidecar.errors import UpstreamBroken
from sidecar.text.pseudonyms import Disguise as SessionDisguise
from sidecar.text.pseudonyms import Pseudonyms
from sidecar.wire import jsondoc, ollama
from sidecar.wire.ndjson import NDJSON
from sidecar.wire.ollama import CHAT, EMBED, GENERATE, REQUEST_CONTENT, REQUEST_FIELDS
from sidecar.wire.stream import ReplyStream, Wire, edit_reply
from tests.wire import places
from tests.wire.cutting import cut, expected, rulesets, sizes, through
from tests.wire.fuzz import examples
from tests.wire.places import SAID, SECRET, asked, at, heard

WIRES: tuple[Wire, ...] = (CHAT, GENERATE, EMBED)

# Written out from the types of the Python client 0.6.3: ChatRequest, GenerateRequest, EmbedRequest, EmbeddingsRequest.
USER = next(surface for kind, surface in REQUEST_CONTENT.items() if kind == "user")
TEXTS = {
    "messages[].content": USER,
    "messages[].thinking": ollama.REQUEST_THINKING,
    "messages[].tool_name": ollama.REQUEST_RESULT_NAME,
    "messages[].tool_calls[].function.name": ollama.REQUEST_TOOL_NAME,
    "messages[].tool_calls[].function.arguments.*": ollama.REQUEST_TOOL_ARGUMENTS,
    "messages[].images[]": ollama.REQUEST_IMAGES[USER.kind],
    "tools[].function.name": ollama.REQUEST_TOOLS,
    "tools[].function.description": ollama.REQUEST_TOOLS,
    "tools[].function.parameters.properties.*.description": ollama.REQUEST_TOOLS,
    "tools[].function.parameters.properties.*.enum[]": ollama.REQUEST_TOOLS,
    "format.description": ollama.REQUEST_FORMAT,
    "options.stop[]": ollama.REQUEST_STOP,
    "images[]": ollama.REQUEST_IMAGE,
    "input[]": REQUEST_FIELDS["input"],
    **REQUEST_FIELDS,
}
WORDS = {"model", "messages[].role", "format", "keep_alive", "think", "messages[].tool_calls[].type"}
# ChatResponse, GenerateResponse, EmbedResponse, EmbeddingsResponse.
REPLY_TEXTS = {
    "message.content": ollama.CONTENT,
    "message.thinking": ollama.THINKING,
    "message.tool_name": ollama.RESULT_NAME,
    "message.tool_calls[].function.name": ollama.TOOL_NAME,
    "message.tool_calls[].function.arguments.*": ollama.TOOL_ARGUMENTS,
    "message.images[]": ollama.IMAGE,
    "response": ollama.RESPONSE,
    "thinking": ollama.RESPONSE_THINKING,
    "image": ollama.IMAGE,
    "error": ollama.ERROR,
}
# The tokens are the text over again: dropped when it changes, see below.
REPLY_WORDS = {
    *("model", "created_at", "done_reason", "remote_model", "remote_host", "message.role"),
    *("logprobs[].token", "logprobs[].top_logprobs[].token"),
}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(200, 256)) * 4).decode()


def line(text: str, **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": text, **message}
    return {"model": "m", "created_at": "2026-01-02T03:04:05.678Z", "message": said, "done": False}


LAST = line("") | {"done": True, "done_reason": "stop", "total_duration": 9, "prompt_eval_count": 3, "eval_count": 4}


def generated(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "created_at": "2026-01-02T03:04:05Z", "response": text, "done": False, **more}


def lines(got: str) -> list[dict[str, Any]]:
    """As the Python client reads them: it knows more line ends than LF, and an error is raised."""
    return [json.loads(line) for line in got.splitlines()]


def said(got: str, field: str = "content") -> str:
    return "".join(one["message"].get(field) or "" for one in lines(got))


def streamed(documents: list[dict[str, Any]], wire: Wire = CHAT, **more: Any) -> str:
    return places.streamed(wire, documents, NDJSON, **more)


def test_every_place_is_read() -> None:
    for path, surface in TEXTS.items():
        assert [slot.surface for slot in CHAT.request_slots(at(path, "a text"))] == [surface], path
    for path, surface in REPLY_TEXTS.items():
        assert [spoken.slot.surface for spoken in CHAT.reply_texts(at(path, "a text"))] == [surface], path
    for path in WORDS:
        # A call has a function, so that there is no other field to walk.
        assert CHAT.request_slots(at(path, "word")) == [], path
    for path in REPLY_WORDS:
        assert CHAT.reply_texts(at(path, "word")) == [], path


def test_a_secret_is_found_everywhere() -> None:
    odd = ("x", "messages", "messages[]", "messages[].x", "messages[].role.x", "messages[].tool_calls", "options")
    more = ("options.x", "context[]", "messages[].tool_calls[]", "messages[].tool_calls[].x", "model.x", "images")
    for wire in WIRES:
        for path in (*TEXTS, *odd, *more, "messages[].tool_calls[].function", "messages[].content[].text"):
            assert SECRET not in asked(wire, at(path, SAID)), path
    reply = ("x", "message", "message.x", "message.role.x", "message.tool_calls[].x", "message.content.x", "model.x")
    numbers = ("embedding", "embedding[]", "embeddings[][]", "done", "eval_count", "response.x")
    places.found_everywhere(CHAT, (*REPLY_TEXTS, *reply, *numbers), NDJSON)
    # Dropped whole when a text has changed: even one that should not be there.
    for path in ("context", "context[]"):
        assert SECRET not in heard(GENERATE, at(path, SAID))


def test_numbers_and_pictures_are_no_texts() -> None:
    assert (
        CHAT.request_slots({"context": [1, 2], "images": [PNG], "messages": [{"role": "user", "images": [PNG]}]}) == []
    )
    for reply in ({"embeddings": [[0.5], [1]]}, {"embedding": [0.5]}, generated("", context=[1]), {"image": PNG}):
        assert [spoken for spoken in CHAT.reply_texts(reply) if spoken.slot.text] == []
    assert [slot.text for slot in CHAT.request_slots({"images": [base64.b64encode(SAID.encode()).decode()]})] == [SAID]


@pytest.mark.parametrize(("role", "kind"), [("system", "system"), ("tool", "tool_results"), ("x", "user")])
def test_a_roles_content_is_of_its_kind(role: str, kind: str) -> None:
    [slot] = CHAT.request_slots({"messages": [{"role": role, "content": "c"}]})
    assert slot.surface.kind == kind


def test_a_request_asks_for_a_stream_unless_it_says_no() -> None:
    assert ollama.streamed({})
    assert ollama.streamed({"stream": True})
    assert not ollama.streamed({"stream": False})


def test_a_line_of_plain_text_is_told_at_once() -> None:
    for plain in (line("hi"), generated("hi"), line("hi") | {"logprobs": [{"token": "hi"}]}):
        assert CHAT.plain(plain) is not None
    elsewhere = [line("hi") | more for more in ({"x": 1}, {"model": [SAID]}, {"response": "x"}, {"done": SAID})]
    for other in (line(""), line("hi", thinking="x"), line("hi") | {"done": True}, generated(""), *elsewhere):
        assert CHAT.plain(other) is None


def test_thinking_and_content_run_apart() -> None:
    told = [line("", thinking="well sk-ab"), line("so sk-a"), line("", thinking="cd1234"), line("bcd1234"), LAST]
    got = streamed(told)
    assert (said(got, "thinking"), said(got)) == ("well #", "so #")
    assert lines(got)[-1] == LAST


def test_what_is_held_leaves_before_the_last_line() -> None:
    assert [one["message"] for one in lines(streamed([line("it was sk-ab"), LAST]))] == [
        {"role": "assistant", "content": "it was "},
        {"role": "assistant", "content": "sk-ab"},
        {"role": "assistant", "content": ""},
    ]
    got = lines(streamed([generated("", thinking="sk-ab"), generated("", done=True)], GENERATE))
    assert [(one["thinking"], one["response"]) for one in got[:2]] == [("", ""), ("sk-ab", "")]
    got = lines(streamed([line("", thinking="sk-ab"), LAST]))
    assert [one["message"]["thinking"] for one in got[:2]] == ["", "sk-ab"]


@examples(60)
@given(cut(), rulesets, sizes, st.booleans())
def test_however_it_is_cut(pieces: tuple[str, ...], patterns: tuple[str, ...], packets: list[int], chat: bool) -> None:
    wire, frame = (CHAT, line) if chat else (GENERATE, generated)
    told = [*map(frame, pieces), frame("") | {"done": True}]
    data = b"".join(NDJSON.render(json.dumps(document).encode(), None) for document in told)
    got = through(wire, patterns, data, packets, NDJSON)
    text = said(got) if chat else "".join(one["response"] for one in lines(got))
    assert text == expected(patterns, "".join(pieces))
    assert [one["done"] for one in lines(got)].index(True) == len(lines(got)) - 1


def test_what_no_rule_touches_keeps_its_bytes() -> None:
    data = b'{"model":"m","message":{"role":"assistant","content":"\\u003chi\\u003e"},"done":false}\r\n\n{"done":true}'
    stream, cutter = ReplyStream(CHAT, places.opened(CHAT), NDJSON), NDJSON.cutter()
    assert stream.feed(cutter.feed(data)) + stream.feed(cutter.finish()) + stream.finish() == data
    assert stream.complete


# --- tool calls


def call(**arguments: Any) -> dict[str, Any]:
    return line("", tool_calls=[{"function": {"index": 0, "name": "pay", "arguments": arguments}}])


CARD = {"name": "cards", "patterns": [{"name": "card", "regex": "[0-9]{16}"}], "replacement": "#"}


def test_arguments_are_read_as_the_json_they_are() -> None:
    given = {"to": "card 4111111111111111", "card": 4111111111111111, "4111111111111111": [1.50, True, None]}
    clean = {"to": "card #", "card": "#", "#": [1.5, True, None]}
    for got in (lines(streamed([call(**given), LAST], run=places.opened(CHAT, rules=[CARD])))[0], whole(call(**given))):
        assert got["message"]["tool_calls"][0]["function"] == {"index": 0, "name": "pay", "arguments": clean}
    document = {"messages": [call(**given)["message"]]}
    places.opened(CHAT, document, rules=[CARD])
    assert as_sent(document)["messages"][0]["tool_calls"][0]["function"]["arguments"] == clean


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """What the client gets of a whole reply."""
    edit_reply(CHAT, places.opened(CHAT, rules=[CARD]), document)
    return as_sent(document)


def as_sent(document: dict[str, Any]) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(jsondoc.encode(document))
    return sent


def test_arguments_in_a_string_stay_one() -> None:
    document = line("", tool_calls=[{"function": {"name": "pay", "arguments": '{"card": 4111111111111111}'}}])
    got = whole(document)["message"]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(got) == {"card": "#"}


def test_what_is_no_json_any_more_stands_as_a_string() -> None:
    holder: dict[str, Any] = {"arguments": {"a": 1}}
    ollama.JsonSlot(ollama.TOOL_ARGUMENTS, holder, "arguments").replace("#")
    assert holder == {"arguments": "#"}


def test_placeholders_are_put_back_in_arguments() -> None:
    disguise: Disguise = SessionDisguise(Pseudonyms(), declared=True)
    rule = places.RULE | {"action": "pseudonymize", "replacement": None}
    document = {"messages": [{"role": "user", "content": SAID}]}
    run = places.opened(CHAT, document, [rule], disguise)
    placeholder = document["messages"][0]["content"].split()[1]
    assert placeholder != SECRET
    got = lines(streamed([call(key=placeholder, **{placeholder: 1}), line(placeholder), LAST], run=run))
    assert got[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"key": SECRET, SECRET: 1}
    assert "".join(one["message"]["content"] for one in got) == SECRET


# --- endings


def test_what_was_computed_over_a_changed_text_is_dropped() -> None:
    reply = generated(SAID, done=True, context=[1, 2], logprobs=[{"token": SECRET, "logprob": -1}])
    got = json.loads(heard(GENERATE, reply))
    assert (got["response"], got["context"], got["logprobs"]) == ("my # here", None, None)
    clean = generated("fine", done=True, context=[1, 2], logprobs=[{"token": "fine", "logprob": -1}])
    assert json.loads(heard(GENERATE, clean)) == clean


@pytest.mark.parametrize("wire", [CHAT, GENERATE])
def test_a_stopped_stream_ends_with_a_last_line(wire: Wire) -> None:
    frame = line if wire is CHAT else generated
    for action, rest, reason in (("block", "", "content_filter"), ("finish", "No.", "stop")):
        rule = places.RULE | {"action": action, "message": "No."}
        told = [frame("it is "), frame(SECRET) | {"x": "not looked at"}, frame("more")]
        got = streamed(told, wire, run=places.opened(wire, rules=[rule]))
        assert "not looked at" not in got
        texts = [one["message"]["content"] if wire is CHAT else one["response"] for one in lines(got)]
        assert "".join(texts) == "it is " + rest
        assert [one["done"] for one in lines(got)].index(True) == len(texts) - 1
        last = lines(got)[-1]
        assert (last["done_reason"], last["model"], last["created_at"]) == (reason, "m", frame("")["created_at"])


def test_embeddings_have_no_last_line() -> None:
    for action, message in (("block", "withheld"), ("finish", "No.")):
        rule = places.RULE | {"action": action, "message": "No."}
        [got] = lines(streamed([{"x": SAID}], EMBED, run=places.opened(EMBED, rules=[rule])))
        assert message in got["error"]
    assert EMBED.answer({"model": "m"}, "No.") is None
    assert EMBED.answer_frames({"model": "m"}, "No.") == b""


def test_a_stream_that_cannot_go_on_ends_with_an_error() -> None:
    stream = ReplyStream(CHAT, places.opened(CHAT), NDJSON)
    stream.feed(NDJSON.cutter().feed(json.dumps(line("So")).encode() + b"\n"))
    assert not stream.complete
    assert lines(stream.failing(UpstreamBroken("It broke.")).decode()) == [{"error": "It broke."}]
    assert CHAT.error_body(UpstreamBroken("It broke.")) == {"error": "It broke."}
    assert CHAT.error_text({"error": "no such model"}) == CHAT.error_text({"error": {"message": "no such model"}})


def test_an_answer_in_the_models_place() -> None:
    identity = {"id": "x", "created": 1_790_000_000, "model": "m", "x": SECRET}
    stamp = "2026-09-21T14:13:20Z"
    assert GENERATE.answer(identity, "No.") == {
        "model": "m",
        "created_at": stamp,
        "response": "No.",
        "done": True,
        "done_reason": "stop",
    }
    first, last = lines(CHAT.answer_frames(identity, "No.").decode())
    assert first["message"] == {"role": "assistant", "content": "No."}
    assert (first["done"], last["done"], last["done_reason"], last["created_at"]) == (False, True, "stop", stamp)


@examples(200)
@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1)))
def test_times_are_written_as_the_standard_library_does(when: datetime) -> None:
    when = when.replace(microsecond=0, tzinfo=UTC)
    stamp = (GENERATE.answer({"created": int(when.timestamp())}, "") or {})["created_at"]
    assert stamp == when.isoformat().replace("+00:00", "Z")


def test_usage_is_read_from_the_last_line() -> None:
    assert CHAT.usage(LAST) == Usage(3, 4)
    assert CHAT.usage(line("")) is None
    assert CHAT.usage({"eval_count": 4}) == Usage(completion=4)
