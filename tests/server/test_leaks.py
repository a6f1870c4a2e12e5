"""Ways around a rule, tried from outside: odd shapes, content types that lie, texts in the places of other things."""

import base64
import gzip
import json
from typing import Any

import pytest

from .talk import Answer
from .under import JSON, Start, Talk
from .upstream import CHUNKED, END, Upstream, chunk, reply

RULE = "{name: no-otters, words: [{list: [otter, 'straße'], name: animal}]}"
OK = reply(b"{}", b"200 OK", JSON)
ESCAPED = b'{"a": "ott\\u0065r"}'
FORM = (b"content-type", b"multipart/form-data; boundary=cut")


def of_type(media: bytes) -> tuple[bytes, bytes]:
    return b"content-type", media


def sse(*texts: str) -> bytes:
    frames = [{"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in [*frames, last]) + b"data: [DONE]\n\n"


def lines(*texts: str) -> bytes:
    said = [{"model": "m", "message": {"role": "assistant", "content": text}, "done": False} for text in texts]
    last = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}
    return b"".join(b"%b\n" % json.dumps(line).encode() for line in [*said, last])


def texts_in(body: bytes, start: bytes) -> str:
    """All that a stream says, whatever its frames are."""
    documents = [json.loads(line.removeprefix(start)) for line in body.splitlines() if b"{" in line]
    holders = [each.get("message") or each["choices"][0]["delta"] for each in documents]
    return "".join(holder.get("content", "") for holder in holders)


# --- replies whose content type lies ---------------------------------------------------------------------------


@pytest.mark.parametrize("media", [b"application/x-ndjson", b"application/json", b"text/plain", b"text/event-stream"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_events_under_any_name_are_seen_as_running_texts(
    upstream: Upstream, under: Start, media: bytes, before: bytes
) -> None:
    with under(RULE) as talk:
        upstream.play(reply(before + sse("an ot", "ter", " swims"), b"200 OK", of_type(media)))
        answer = talk.ask("hi", stream=True)
        assert texts_in(answer.body.removeprefix(b"\xef\xbb\xbf"), b"data: ") == "an [REDACTED:animal] swims"
        assert answer.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("media", [b"application/x-ndjson", b"application/json", b"text/plain", b"text/event-stream"])
def test_lines_under_any_name_are_seen_as_running_texts(upstream: Upstream, under: Start, media: bytes) -> None:
    with under(RULE) as talk:
        upstream.play(reply(lines("an ot", "ter", " swims"), b"200 OK", of_type(media)))
        answer = talk.post(b"/api/chat", {"model": "m", "messages": []})
        assert texts_in(answer.body, b"") == "an [REDACTED:animal] swims"


def test_a_stream_of_another_kind_is_cut_from_its_first_sign_on(upstream: Upstream, under: Start) -> None:
    with under(RULE) as talk:
        upstream.play([CHUNKED, *[chunk(bytes([byte])) for byte in b"\r\n" + lines("an ot", "ter")], END])
        answer = talk.post(b"/api/chat", {"model": "m", "messages": []})
        assert texts_in(answer.body, b"") == "an [REDACTED:animal]"
        upstream.play([CHUNKED, chunk(b"\n"), END])
        assert talk.post(b"/api/chat", {"model": "m", "messages": []}).body.startswith(b"\n")


def test_escapes_hide_nothing_in_a_file_that_is_downloaded(upstream: Upstream, under: Start) -> None:
    with under(RULE) as talk:
        for media in (b"application/octet-stream", b"text/plain", b"application/x-thing"):
            upstream.play(reply(b"\n" + ESCAPED + b"\n" + ESCAPED, b"200 OK", of_type(media)))
            answer = talk.send(b"GET", b"/v1/files/f/content")
            assert answer.body == b'\n{"a": "[REDACTED:animal]"}\n{"a": "[REDACTED:animal]"}'


# --- what cannot be taken apart --------------------------------------------------------------------------------


def nested(levels: int) -> str:
    return '{"a":' * levels + '"otter"' + "}" * levels


@pytest.mark.parametrize("given", [nested(250), '{"n":' + "1" * 5000 + ',"c":"otter"}'])
def test_a_rule_about_tool_calls_sees_a_reply_that_is_too_deep_or_too_long_to_be_read(
    upstream: Upstream, under: Start, given: str
) -> None:
    call = f'{{"message":{{"tool_calls":[{{"function":{{"name":"n","arguments":{given}}}}}]}},"done":true}}\n'
    with under("{name: r, words: [{list: [otter]}], on: [tool_calls]}") as talk:
        for media in (b"application/json", b"application/x-ndjson"):
            upstream.play(reply(call.encode(), b"200 OK", of_type(media)))
            answer = talk.post(b"/api/chat", {"model": "m", "messages": []})
            assert b"otter" not in answer.body
            assert b"[REDACTED:word]" in answer.body


def test_a_rule_about_requests_does_not_see_it(upstream: Upstream, under: Start) -> None:
    with under("{name: r, words: [{list: [otter]}], on: [user]}") as talk:
        upstream.play(reply(nested(250).encode(), b"200 OK", JSON))
        assert talk.ask().body == nested(250).encode()


# --- requests --------------------------------------------------------------------------------------------------


def url_of(talk: Talk, url: str) -> Any:
    talk.upstream.play(OK)
    talk.ask([{"type": "image_url", "image_url": {"url": url}}])
    return talk.sent["messages"][0]["content"][0]["image_url"]["url"]


def test_what_only_begins_like_a_payload_is_a_text(upstream: Upstream, under: Start) -> None:
    with under(RULE) as talk:
        assert url_of(talk, "A" * 1100 + " an otter") == "A" * 1100 + " an [REDACTED:animal]"
        assert url_of(talk, "data:image/png;base64,an otter") == "data:image/png;base64,an [REDACTED:animal]"
        upstream.play(OK)
        talk.post(b"/v1/unknown", {"log": "0f" * 600 + " an otter"})
        assert talk.sent == {"log": "0f" * 600 + " an [REDACTED:animal]"}


@pytest.mark.parametrize("head", [" data:text/plain;base64,", "data:text/plain; base64,", "DATA:;Base64 ,"])
def test_a_data_url_is_read_as_leniently_as_by_a_browser(upstream: Upstream, under: Start, head: str) -> None:
    with under(RULE) as talk:
        said = url_of(talk, head + base64.b64encode(b"an otter").decode())
        assert base64.b64decode(said.removeprefix(head)) == b"an [REDACTED:animal]"


@pytest.mark.parametrize("payload", ["iVBORw0KGgo/otter+/A%3D%3d", "iVBORw0KGgo\r\n/otter+/A==", "iVBORw0KGgo-otter_A"])
def test_a_picture_passes_as_it_is(upstream: Upstream, under: Start, payload: str) -> None:
    with under(RULE) as talk:
        assert url_of(talk, f"data:image/png;base64,{payload}") == f"data:image/png;base64,{payload}"


@pytest.mark.parametrize(
    "message",
    [
        {"audio": {"id": "a", "transcript": "an otter"}},
        {"audio": {"id": {"x": "an otter"}}},
        {"tool_calls": [{"id": ["an otter"], "type": {"x": "an otter"}, "function": {"name": "n"}}]},
        {"reasoning_details": [{"data": {"x": "an otter"}}]},
    ],
)
def test_an_answer_that_is_sent_back_is_seen_in_all_its_parts(
    upstream: Upstream, under: Start, message: dict[str, Any]
) -> None:
    with under(RULE) as talk:
        upstream.play(OK)
        talk.post(b"/v1/chat/completions", {"model": "m", "messages": [{"role": "assistant", **message}]})
        assert b"otter" not in upstream.requests[-1].body


@pytest.mark.parametrize(
    "more",
    [
        {"stream_options": {"note": "an otter"}},
        {"audio": {"voice": "alloy", "note": "an otter"}},
        {"modalities": ["text", {"x": "an otter"}]},
        {"logit_bias": "an otter"},
        {"prompt_cache_options": ["an otter"]},
    ],
)
def test_settings_of_another_shape_are_texts(upstream: Upstream, under: Start, more: dict[str, Any]) -> None:
    with under(RULE) as talk:
        upstream.play(OK)
        talk.ask("hi", **more)
        assert b"otter" not in upstream.requests[-1].body


# --- uploads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("media", [b"text/plain", b"application/x-ndjson", b"application/octet-stream"])
def test_escapes_hide_nothing_in_a_body_that_is_a_text(upstream: Upstream, under: Start, media: bytes) -> None:
    with under(RULE) as talk:
        upstream.play(OK)
        talk.send(b"POST", b"/v1/unknown", ESCAPED + b"\n" + ESCAPED, of_type(media))
        assert upstream.requests[-1].body == b'{"a": "[REDACTED:animal]"}\n{"a": "[REDACTED:animal]"}'


def test_a_batch_of_requests_is_read_as_the_json_that_it_is(upstream: Upstream, under: Start) -> None:
    line = b'{"body": {"messages": [{"content": "Hauptstra\\u00dfe; Stra\\u00dfe"}], "n": 1.50}}\n'
    head = b'--cut\r\ncontent-disposition: form-data; name="file"; filename="b.jsonl"\r\n\r\n'
    with under(RULE) as talk:
        upstream.play(OK)
        talk.send(b"POST", b"/v1/files", head + line.replace(b"Stra", b"stra") + line + b"\r\n--cut--\r\n", FORM)
        body = upstream.requests[-1].body
        assert body.count(b"[REDACTED:animal]") == 1
        assert body.startswith(head + b'{"body": {"messages": [{"content": "Hauptstra\\u00dfe; [REDACTED')
        assert body.endswith(line + b"\r\n--cut--\r\n")


def test_what_only_begins_like_json_is_a_text(upstream: Upstream, under: Start) -> None:
    with under("{name: r, patterns: [{name: p, regex: 'password: \\w+'}]}") as talk:
        for body in (
            b"[login]\npassword: hunter2\n",
            b'{"a": 1}\npassword: hunter2\n',
            b"{{ x }}\npassword: hunter2\n",
        ):
            upstream.play(OK)
            talk.send(b"POST", b"/v1/unknown", body, of_type(b"text/plain"))
            assert upstream.requests[-1].body == body.replace(b"password: hunter2", b"[REDACTED:p]")


def test_a_form_as_urls_write_it_is_read_pair_by_pair(upstream: Upstream, under: Start) -> None:
    urls = of_type(b"application/x-www-form-urlencoded")
    with under(RULE) as talk:
        upstream.play(OK)
        talk.send(b"POST", b"/v1/unknown", b"a=an+ott%65r&b=x%20y&ott%65r&=&model=m&a%3d=%ff", urls)
        assert upstream.requests[-1].body == (
            b"a=an+%5BREDACTED%3Aanimal%5D&b=x%20y&%5BREDACTED%3Aanimal%5D&=&model=m&a%3d=%ff"
        )
        talk.send(b"POST", b"/v1/unknown", ESCAPED, urls)
        assert upstream.requests[-1].body == b'{"a": "[REDACTED:animal]"}'
        assert talk.send(b"POST", b"/v1/unknown", b"a=" + b"x" * (1 << 20), urls).status == 413


@pytest.mark.parametrize("method", [b"DELETE", b"GET", b"OPTIONS"])
def test_a_text_that_another_method_sends_is_looked_at(upstream: Upstream, under: Start, method: bytes) -> None:
    with under(RULE) as talk:
        upstream.play(OK)
        assert talk.send(method, b"/v1/unknown", b"an otter", of_type(b"text/plain")).status == 200
        assert upstream.requests[-1].body == b"an [REDACTED:animal]"
        assert talk.send(method, b"/v1/unknown", b"", FORM).status == 200


def test_a_coded_body_is_read(upstream: Upstream, under: Start) -> None:
    with under(RULE) as talk:
        upstream.play(OK)
        coded = gzip.compress(ESCAPED)
        talk.send(b"POST", b"/v1/unknown", coded, of_type(b"text/plain"), (b"content-encoding", b"gzip"))
        assert upstream.requests[-1].body == b'{"a": "[REDACTED:animal]"}'


# --- replies ---------------------------------------------------------------------------------------------------


def chat_reply(choice: dict[str, Any], **more: Any) -> bytes:
    message = {"role": "assistant", "content": "an otter"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop", **choice}]
    return reply(json.dumps({"id": "c", "choices": choices, **more}).encode(), b"200 OK", JSON)


def asked(talk: Talk, said: bytes) -> Answer:
    talk.upstream.play(said)
    return talk.ask()


def test_tokens_of_a_text_that_changed_go_with_it(under: Start) -> None:
    with under(RULE) as talk:
        choice = json.loads(asked(talk, chat_reply({"token_ids": [1, 2], "logprobs": {"content": []}})).body)[
            "choices"
        ][0]
        assert choice["token_ids"] is None
        assert choice["message"]["content"] == "an [REDACTED:animal]"


@pytest.mark.parametrize(
    ("choice", "more"),
    [
        ({"finish_reason": {"x": "an otter"}}, {}),
        ({"stop_reason": ["an otter"]}, {}),
        ({}, {"usage": {"note": "an otter"}}),
        ({}, {"usage": "an otter"}),
    ],
)
def test_words_of_another_shape_are_texts(under: Start, choice: dict[str, Any], more: dict[str, Any]) -> None:
    with under(RULE) as talk:
        assert b"otter" not in asked(talk, chat_reply(choice, **more)).body


# --- the log ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "{name: r, words: [{list: [otter], name: animal}], action: pseudonymize}",
        "{name: r, words: [{list: [otter]}], on: [user]}",
        "{name: r, words: [{list: [otter]}], mode: shadow}",
        "{name: r, words: [{list: [otter]}], action: flag}",
    ],
)
def test_what_a_provider_quotes_in_an_error_is_not_logged(upstream: Upstream, under: Start, rule: str) -> None:
    """Nor what was put back into it for the client."""
    with under(rule) as talk:
        for quoted in ("otter", "<ANIMAL_1>"):
            error = {"error": {"message": f"You said {quoted}."}}
            upstream.play(reply(json.dumps(error).encode(), b"400 Bad Request", JSON))
            talk.ask("an otter")
            line = talk.line()
            assert "You said" in line["detail"]
            assert "otter" not in json.dumps({**line, "decisions": None})
