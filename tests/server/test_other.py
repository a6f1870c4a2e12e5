"""Endpoints that no wire module knows: every string is looked at, or nothing passes."""

import json
from typing import Any

import pytest

from .talk import Answer
from .under import JSON, Start
from .upstream import CHUNKED, END, Upstream, chunk, reply

REDACT = "{name: no-otters, words: [{list: [otter], name: animal}]%s}"
BLOCK = "{name: no-otters, words: [{list: [otter]}], action: block}"
KEY = "{name: keys, patterns: [{name: key, regex: 'sk-[a-z]{6}'}]}"
ANIMAL = "[REDACTED:animal]"
PATH = b"/v1/vector_stores/v1/search"
LINES = (b"content-type", b"application/x-ndjson")
TEXT = (b"content-type", b"text/plain")


def answers(document: Any) -> bytes:
    return reply(json.dumps(document).encode(), b"200 OK", JSON)


def streams(*pieces: bytes, kind: bytes = b"text/event-stream") -> list[Any]:
    head = CHUNKED.replace(b"text/event-stream", kind)
    return [head, *map(chunk, pieces), END]


def events(*documents: Any) -> list[bytes]:
    return [b"data: %b\n\n" % json.dumps(document).encode() for document in documents]


def test_every_string_of_a_request_is_looked_at(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"ok": True})])
    with under(REDACT % "") as talk:
        answer = talk.post(PATH, {"query": "an otter", "filters": [{"deep": {"key": "otter"}}], "n": 1.50})
        assert answer.status == 200
        assert talk.sent == {"query": f"an {ANIMAL}", "filters": [{"deep": {"key": ANIMAL}}], "n": 1.5}
        assert b'"n":1.5' in upstream.requests[-1].body.replace(b" ", b"")
        line = talk.line()
    assert line["endpoint"] == "other"
    assert line["decisions"][0]["surface"] == "other.request"


@pytest.mark.parametrize("document", [["otter", {"a": "otter"}], {"a": ["otter"]}])
def test_a_list_is_looked_at_as_well(under: Start, upstream: Upstream, document: Any) -> None:
    upstream.play([answers(document)])
    with under(REDACT % "") as talk:
        answer = talk.post(PATH, document)
        assert "otter" not in json.dumps(talk.sent)
    assert b"otter" not in answer.body
    assert json.loads(answer.body) == json.loads(json.dumps(document).replace("otter", ANIMAL))


@pytest.mark.parametrize("method", [b"GET", b"DELETE"])
def test_every_string_of_a_reply_is_looked_at(under: Start, upstream: Upstream, method: bytes) -> None:
    upstream.play([answers({"data": [{"content": "an otter"}], "id": "f1"})])
    with under(REDACT % "") as talk:
        answer = talk.send(method, b"/v1/threads/t1/messages")
    assert json.loads(answer.body) == {"data": [{"content": f"an {ANIMAL}"}], "id": "f1"}


def test_what_nothing_is_found_in_leaves_as_it_came(under: Start, upstream: Upstream) -> None:
    body = b'{ "a" : [1.0, "x"],\r\n "b": 10000000000000000000001 }'
    upstream.play([reply(body, b"201 Made", JSON, (b"etag", b'"1"'))])
    with under(REDACT % "") as talk:
        answer = talk.send(b"PUT", b"/v1/things", body, JSON)
        assert upstream.requests[-1].body == body
    assert (answer.status, answer.reason, answer.body) == (201, b"Made", body)
    assert answer.header(b"etag") == b'"1"'


def test_a_request_that_is_blocked_never_goes_up(under: Start, upstream: Upstream) -> None:
    with under(BLOCK) as talk:
        before = len(upstream.requests)
        answer = talk.post(PATH, {"query": "otter"})
        assert len(upstream.requests) == before
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["code"] == "guardrail_tripped"


def test_json_that_cannot_be_read_is_not_sent(under: Start, upstream: Upstream) -> None:
    with under(REDACT % "") as talk:
        before = len(upstream.requests)
        assert talk.send(b"POST", PATH, b'{"a": "otter', JSON).status == 400
        assert talk.send(b"POST", PATH, b'{"a": 1, "a": "otter"}', JSON).status == 400
        assert len(upstream.requests) == before


# --- streams ---


def running(answer: Answer, *path: str | int) -> str:
    """The text that runs at one place of a stream's documents."""
    text = ""
    for line in answer.body.splitlines():
        line = line.removeprefix(b"data: ")
        if line.startswith(b"{"):
            value = json.loads(line)
            for step in path:
                value = value[step] if step in value or isinstance(step, int) else ""
            text += value
    return text


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_secret_cut_over_two_events_is_found(under: Start, upstream: Upstream, cut: int) -> None:
    secret = "sk-abcdef"
    pieces = [{"event": "x.delta", "delta": {"text": text}} for text in ("my ", secret[:cut], secret[cut:], " ok")]
    upstream.play(streams(*events(*pieces, {"event": "x.done"})))
    with under(KEY) as talk:
        answer = talk.post(b"/v1/runs", {"stream": True})
    assert answer.whole
    assert running(answer, "delta", "text") == "my [REDACTED:key] ok"


def test_a_secret_cut_over_two_lines_is_found(under: Start, upstream: Upstream) -> None:
    lines = [json.dumps({"token": {"text": text}}).encode() + b"\n" for text in ("a sk-", "abcdef", " b")]
    upstream.play(streams(*lines, b'{"done": true}\n', kind=b"application/x-ndjson"))
    with under(KEY) as talk:
        answer = talk.post(b"/generate_stream", {"inputs": "x"})
    assert answer.whole
    assert running(answer, "token", "text") == "a [REDACTED:key] b"


def test_strings_of_other_names_are_whole_as_they_stand(under: Start, upstream: Upstream) -> None:
    documents = [{"id": "sk-", "note": "an otter"}, {"id": "abcdef", "note": "sk-abcdef"}]
    upstream.play(streams(*events(*documents), b"data: [DONE]\n\n"))
    with under(KEY, REDACT % "") as talk:
        answer = talk.post(b"/v1/runs", {"stream": True})
    assert (
        answer.body
        == b"".join([*events({"id": "sk-", "note": f"an {ANIMAL}"}, {"id": "abcdef", "note": "[REDACTED:key]"})])
        .replace(b'": "', b'":"')
        .replace(b'", "', b'","')
        + b"data: [DONE]\n\n"
    )


def test_a_blocked_stream_ends_with_an_error(under: Start, upstream: Upstream) -> None:
    upstream.play(streams(*events({"delta": "hello "}, {"delta": "otter"}, {"delta": "!"})))
    with under(BLOCK) as talk:
        answer = talk.post(b"/v1/runs", {"stream": True})
        assert talk.line()["outcome"] == "blocked"
    assert b"otter" not in answer.body
    assert b"content_filter" in answer.body
    assert b"!" not in answer.body


# --- bodies that are no documents ---


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_text_body_is_looked_at(under: Start, upstream: Upstream, size: int) -> None:
    upstream.play([answers({})])
    body = b"x" * size + b" otter " + "é".encode() * size
    with under(REDACT % "") as talk:
        assert talk.send(b"POST", b"/v1/upload", body, TEXT).status == 200
    assert upstream.requests[-1].body == body.replace(b"otter", ANIMAL.encode())


def test_a_text_larger_than_max_body_goes_up_piece_by_piece(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({})])
    body = b"word " * 100_000 + b"otter" + b" word" * 100_000
    with under(REDACT % "", more="server: {max_body: 100kB}\n") as talk:
        assert talk.send(b"PUT", b"/v1/upload", body, TEXT).status == 200
    assert upstream.requests[-1].body == body.replace(b"otter", ANIMAL.encode())
    assert upstream.requests[-1].header(b"transfer-encoding") == b"chunked"


def test_a_text_body_that_is_blocked_never_goes_up(under: Start, upstream: Upstream) -> None:
    with under(BLOCK) as talk:
        before = len(upstream.requests)
        assert talk.send(b"POST", b"/v1/upload", b"x" * 9000 + b" otter", TEXT).status == 400
        assert len(upstream.requests) == before


@pytest.mark.parametrize("body", [b"\x00\x01otter", b"\x89PNG\r\n\xff\xfeotter", b"\xff" * 20_000 + b"otter"])
def test_what_is_no_text_passes_as_it_is(under: Start, upstream: Upstream, body: bytes) -> None:
    upstream.play([reply(body, b"200 OK", (b"content-type", b"application/octet-stream"))])
    with under(REDACT % "") as talk:
        answer = talk.send(b"POST", b"/v1/upload", body, (b"content-type", b"application/octet-stream"))
    assert upstream.requests[-1].body == body
    assert answer.body == body


def test_what_is_no_text_is_refused_where_files_are(under: Start, upstream: Upstream) -> None:
    with under(REDACT % "", more="inspect: {files: deny, audio: deny}\n") as talk:
        before = len(upstream.requests)
        answer = talk.send(b"POST", b"/v1/upload", b"\x00\x01", (b"content-type", b"application/pdf"))
        sound = talk.send(b"POST", b"/v1/upload", b"\x00\x01", (b"content-type", b"audio/mpeg"))
        assert len(upstream.requests) == before
    assert answer.status == sound.status == 403
    assert json.loads(answer.body)["error"]["code"] == "uninspected"
    assert "inspect.audio" in json.loads(sound.body)["error"]["message"]


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_text_reply_is_looked_at(under: Start, upstream: Upstream, size: int) -> None:
    body = b"line\n" * size + b"otter\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n" % len(body)
    upstream.play([head + body])
    with under(REDACT % "") as talk:
        answer = talk.send(b"GET", b"/v1/files/f/content")
    assert answer.whole
    assert answer.body == body.replace(b"otter", ANIMAL.encode())


def test_a_text_reply_that_is_blocked_half_way_is_left_incomplete(under: Start, upstream: Upstream) -> None:
    head, first, *rest = streams(b"word " * 1000, b"otter", b" and more", kind=b"text/plain")
    upstream.play([head, first, 0.3, *rest])
    with under(BLOCK) as talk:
        answer = talk.send(b"GET", b"/v1/files/f/content")
        assert talk.line()["outcome"] == "blocked"
    assert not answer.whole
    assert b"otter" not in answer.body


# --- what the policy says of them ---


def test_they_pass_where_the_policy_lets_them(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"a": "otter"})])
    accepts = ", accept_blind: [unknown]"
    with under(REDACT % accepts, more="inspect: {unknown: pass}\n") as talk:
        answer = talk.post(PATH, {"query": "otter"})
        assert talk.sent == {"query": "otter"}
        assert talk.line()["endpoint"] == "relay"
    assert json.loads(answer.body) == {"a": "otter"}


def test_they_are_denied_where_the_policy_says_so(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"data": []})])
    with under(more="inspect: {unknown: deny}\n") as talk:
        before = len(upstream.requests)
        answer = talk.post(PATH, {"query": "x"})
        assert len(upstream.requests) == before
        assert talk.send(b"GET", b"/v1/models").status == 200
        assert talk.ask("hi").status == 200
    assert answer.status == 403
    assert json.loads(answer.body)["error"]["code"] == "uninspected"


def test_rules_in_shadow_alone_look_no_further(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"a": "otter"})])
    with under(REDACT % ", mode: shadow") as talk:
        talk.post(PATH, {"query": "otter"})
        assert talk.line()["endpoint"] == "relay"


def test_undocumented_fields_of_a_known_endpoint(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"choices": [], "extra": "otter"})])
    with under(REDACT % "") as talk:
        answer = talk.ask("hi", extra={"note": "otter"})
        assert talk.sent["extra"] == {"note": ANIMAL}
    assert json.loads(answer.body)["extra"] == ANIMAL
    accepts = ", accept_blind: [unknown]"
    with under(REDACT % accepts, more="inspect: {unknown: pass}\n") as talk:
        answer = talk.ask("hi", extra={"note": "otter"})
        assert talk.sent["extra"] == {"note": "otter"}
    assert json.loads(answer.body)["extra"] == "otter"
    with under(REDACT % "", more="inspect: {unknown: deny}\n") as talk:
        answer = talk.ask("hi", extra={"note": "x"})
    assert answer.status == 403
    assert json.loads(answer.body)["error"]["param"] == "note"


IMAGE = {"type": "image_url", "image_url": {"url": "https://x.test/cat.png"}}
SOUND = {
    "type": "input_audio",
    "input_audio": {"data": "//uQx" + "A" * 60, "format": "mp3"},
}
FILE = {"type": "file", "file": {"file_id": "file-1"}}


@pytest.mark.parametrize(("sort", "part"), [("images", IMAGE), ("audio", SOUND), ("files", FILE)])
def test_parts_that_no_rule_can_read(under: Start, upstream: Upstream, sort: str, part: dict[str, Any]) -> None:
    upstream.play([answers({"choices": []})])
    content = [{"type": "text", "text": "look"}, part]
    with under(REDACT % "") as talk:
        assert talk.ask(content).status == 200
    with under(more=f"inspect: {{{sort}: deny}}\n") as talk:
        before = len(upstream.requests)
        answer = talk.ask(content)
        assert len(upstream.requests) == before
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (403, "uninspected", "messages[0].content[1]")


def test_a_text_file_inside_a_message_is_read(under: Start, upstream: Upstream) -> None:
    upstream.play([answers({"choices": []})])
    part = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,YW4gb3R0ZXIg4pyT"}}
    with under(REDACT % "", more="inspect: {files: deny}\n") as talk:
        assert talk.ask([part]).status == 200
        data = talk.sent["messages"][0]["content"][0]["file"]["file_data"]
    assert data == "data:text/plain;base64,YW4gW1JFREFDVEVEOmFuaW1hbF0g4pyT"
