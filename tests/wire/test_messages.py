"""Anthropic's Messages API, as its official client reads it through a policy."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import pytest

from sidecar.core.chain import Chain, Run
from sidecar.core.decision import Block, Finish
from sidecar.core.exchange import NO_DISGUISE, Disguise
from sidecar.core.usage import Usage
from sidecar.errors import ExchangeError, GuardrailTripped, Overloaded, UpstreamTimeout
from sidecar.text.pseudonyms import Disguise as Placeholders
from sidecar.text.pseudonyms import Pseudonyms
from sidecar.wire import jsondoc, messages, messages_count, sse
from sidecar.wire.errors import anthropic_shape, error_headers
from sidecar.wire.stream import ReplyStream, Wire
from tests.stages.talk import chain

from .messages_talk import (
    ASK,
    asked,
    block,
    call,
    client,
    end,
    events_of,
    frame,
    heard,
    opened,
    read,
    start,
    text,
    thinking,
    told,
    whole,
)

COUNT: Wire = messages_count
TICKET = {"name": "ticket", "regex": "ACME-[0-9]{3}"}
EMAIL = {"name": "email", "regex": r"[a-z.]{1,64}@[a-z.]{1,64}\.[a-z]{2,8}"}
REDACT = chain([{"name": "r", "patterns": [TICKET], "action": "redact", "replacement": "#"}])
BLOCK = chain([{"name": "b", "patterns": [TICKET], "action": "block"}])
FINISH = chain([{"name": "f", "patterns": [TICKET], "action": "finish", "message": "That is secret."}])
HIDE = chain([{"name": "hide", "patterns": [EMAIL], "action": "pseudonymize"}])


def reached(policy: Chain, disguise: Disguise = NO_DISGUISE, **document: Any) -> Run:
    """A call whose request has gone through."""
    run = opened(policy, disguise)
    asked(run, document)
    return run


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*content]}]}


def pieces(said: str, size: int) -> list[str]:
    return [said[at : at + size] for at in range(0, len(said), size)]


def kinds(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(str(slot.surface.kind), slot.text) for slot in messages.request_slots(document)]


# -- requests


def test_who_says_what() -> None:
    document = {
        "model": "m",
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "hello"},
                    {"type": "tool_use", "id": "t", "name": "find", "input": {"q": "x", "n": [1.50]}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]},
        ],
        "metadata": {"user_id": "u"},
    }
    assert kinds(document) == [
        ("system", "be brief"),
        ("user", "hi"),
        ("reasoning", "hm"),
        ("assistant", "hello"),
        ("tool_calls", "find"),
        ("tool_calls", '{"q":"x","n":[1.5]}'),
        ("tool_results", "found"),
        ("user", "u"),
    ]


def test_arguments_are_json_with_their_keys_and_numbers() -> None:
    given = {"ACME-123": ["ACME-124"], "deep": {"at": 'say "ACME-125"\n\ud83d'}, "n": 7}
    document = user({"type": "tool_use", "id": "t", "name": "n", "input": given})
    sent = asked(opened(REDACT), jsondoc.decode(jsondoc.encode(document)))
    assert sent["messages"][0]["content"][0]["input"] == {"#": ["#"], "deep": {"at": 'say "#"\n\ud83d'}, "n": 7}


def test_text_in_a_document_is_read_and_a_picture_is_not() -> None:
    coded = base64.b64encode(b"the plan of ACME-123").decode()
    picture = base64.b64encode(bytes(range(256))).decode()
    document = user(
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ACME-123"}},
        {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": coded}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "ACME-123"}]}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}},
        {"type": "image", "source": {"type": "url", "url": "http://x/ACME-123.png"}},
    )
    sources = [part["source"] for part in asked(opened(REDACT), document)["messages"][0]["content"]]
    assert sources[0]["data"] == "#"
    assert base64.b64decode(sources[1]["data"]) == b"the plan of #"
    assert sources[2]["content"][0]["text"] == "#"
    assert sources[3]["data"] == picture
    assert sources[4]["url"] == "http://x/#.png"


def test_what_is_sealed_goes_as_it_came() -> None:
    document = user(
        {"type": "thinking", "thinking": "x", "signature": "ACME-123"},
        {"type": "redacted_thinking", "data": "ACME-123"},
        {"type": "compaction", "content": "x", "encrypted_content": "ACME-123", "signature": "ACME-123"},
    ) | {"mcp_servers": [{"type": "url", "url": "http://x", "name": "n", "authorization_token": "ACME-123"}]}
    before = jsondoc.encode(document)
    assert jsondoc.encode(asked(opened(REDACT), document)) == before


@pytest.mark.parametrize(
    "document",
    [
        {"messages": "ACME-123"},
        {"messages": ["ACME-123"]},
        {"messages": [{"role": ["ACME-123"], "content": "x"}]},
        {"messages": [{"role": "user", "content": {"text": "ACME-123"}}]},
        {"messages": [{"role": "user", "content": ["ACME-123"]}]},
        {"messages": [{"role": "user", "content": [{"text": "ACME-123"}]}]},
        {"messages": [{"role": "user", "content": [{"type": ["ACME-123"]}]}]},
        {"messages": [{"role": "user", "content": [{"type": "new", "inner": {"type": "ACME-123"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ["ACME-123"]}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "extra": "ACME-123"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_use", "input": "ACME-123"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": ["ACME-123"]}]}]},
        {"system": {"text": "ACME-123"}},
        {"model": ["ACME-123"]},
        {"thinking": {"note": "ACME-123"}},
        {"container": {"id": "c", "note": "ACME-123"}},
        {"something": "ACME-123"},
    ],
    ids=json.dumps,
)
def test_no_text_hides_in_an_unexpected_shape(document: dict[str, Any]) -> None:
    assert "ACME" not in json.dumps(asked(opened(REDACT), document))


# -- replies

QUOTE = {"type": "char_location", "document_index": 0, "document_title": "t", "start_char_index": 0}
SAID = {"type": "web_search_result_location", "url": "u", "title": "t", "encrypted_index": "ACME-123"}


def quotes(*quoted: str) -> list[dict[str, Any]]:
    counted = [QUOTE | {"end_char_index": len(each), "cited_text": each} for each in quoted]
    return [*counted, SAID | {"cited_text": "of ACME-123"}]


def test_a_quotation_that_changes_takes_the_places_it_counts_along() -> None:
    cited = {"type": "text", "text": "see ACME-123", "citations": quotes("one", "ACME-123", "two")}
    got, _ = heard(reached(REDACT), whole(cited))
    assert got["content"][0]["text"] == "see #"
    assert [each["cited_text"] for each in got["content"][0]["citations"]] == ["one", "two", "of #"]
    deltas = [{"type": "citations_delta", "citation": each} for each in quotes("one", "ACME-123", "two")]
    said = [{"type": "text_delta", "text": each} for each in ("see AC", "ME-123")]
    stream = [start(), *block(0, {"type": "text", "text": "", "citations": []}, *deltas, *said), *end()]
    assert read(told(reached(REDACT), stream))["content"] == got["content"]


def test_a_signature_stays() -> None:
    got, _ = heard(reached(REDACT), whole({"type": "thinking", "thinking": "on ACME-123", "signature": "c2VhbGVk"}))
    assert got["content"] == [{"type": "thinking", "thinking": "on #", "signature": "c2VhbGVk"}]
    stream = [start(), *thinking(0, ["on ACME", "-123"]), *end()]
    assert read(told(reached(REDACT), stream))["content"] == got["content"]


RESULT: dict[str, Any] = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "s",
    "content": {"type": "bash_code_execution_result", "stdout": "ACME-123", "stderr": "", "return_code": 0},
}


def test_results_of_the_providers_own_tools_come_whole() -> None:
    begun = block(0, RESULT | {"content": dict(RESULT["content"])})
    events = events_of(told(reached(REDACT), [start(), *begun, *end()]))
    assert events[1]["content_block"]["content"]["stdout"] == "#"


def test_a_call_that_comes_whole_in_its_first_event() -> None:
    whole_call = {"type": "tool_use", "id": "t", "name": "ACME-123", "input": {"to": "ACME-123"}}
    events = events_of(told(reached(REDACT), [start(), *block(0, whole_call), *end()]))
    assert events[1]["content_block"] | {"id": ""} == {"type": "tool_use", "id": "", "name": "#", "input": {"to": "#"}}


def test_a_summary_is_looked_at_as_one() -> None:
    delta = {"type": "compaction_delta", "content": "about ACME-123", "encrypted_content": "ACME-123"}
    events = events_of(
        told(reached(REDACT), [start(), *block(0, {"type": "compaction", "content": None}, delta), *end()])
    )
    assert events[2]["delta"] == delta | {"content": "about #"}


def test_the_end_names_the_callers_own_text() -> None:
    last = {"stop_reason": "stop_sequence", "stop_sequence": "ACME-123"}
    refused = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "as ACME-123"}}
    for delta in (last, refused):
        event = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}
        assert "ACME" not in json.dumps(events_of(told(reached(REDACT), [start(), event])))


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": "ACME-123"},
        {"type": "message_start", "message": {"content": "ACME-123"}},
        {"type": "message_start", "message": {"content": [], "note": "ACME-123"}},
        {"type": "content_block_start", "index": 0, "content_block": ["ACME-123"]},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "new", "of": "ACME-123"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ACME-123"}},
        {"type": "content_block_delta", "index": 0, "delta": "ACME-123"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "of": "ACME-123"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ["ACME-123"]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}, "of": "ACME-123"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x", "of": "ACME-123"}},
        {"type": "content_block_delta", "index": {"of": "ACME-123"}, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 0, "of": "ACME-123"},
        {"type": "message_delta", "delta": {"of": "ACME-123"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop", "of": ["ACME-123"]},
        {"type": "ping", "of": "ACME-123"},
        {"type": "new_event", "of": "ACME-123"},
        {"type": "error", "error": {"type": "api_error", "message": "no ACME-123"}},
        {"type": "error", "error": "no ACME-123"},
    ],
    ids=json.dumps,
)
def test_no_text_hides_in_an_unexpected_event(event: dict[str, Any]) -> None:
    assert "ACME" not in json.dumps(events_of(told(reached(REDACT), [event])))


# -- however it is cut

GOLDEN: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "text": lambda size: text(0, pieces("On ACME-123, ACME-12 and ACME-124", size)),
    "thinking first": lambda size: [
        *thinking(0, pieces("they ask for ACME-123", size)),
        *text(1, pieces("ACME-123? No. ACME-", size)),
    ],
    "a call": lambda size: [
        *text(0, pieces("I write to ACME-123", size)),
        *call(1, pieces('{"to": "ACME-\\u0031\\u0032\\u0033", "ACME-124": [true, 1.50], "é😀": "ACME-12"}', size)),
        *call(2, pieces('{"to": ["x", "ACME-125"]}', size)),
    ],
    "text that begins in the block": lambda size: block(
        0,
        {"type": "text", "text": "AC"},
        *({"type": "text_delta", "text": each} for each in pieces("ME-123 it is", size)),
    ),
}
READ = {
    "text": ["On #, ACME-12 and #"],
    "thinking first": ["they ask for #", "#? No. ACME-"],
    "a call": ["I write to #", {"to": "#", "#": [True, 1.5], "é😀": "ACME-12"}, {"to": ["x", "#"]}],
    "text that begins in the block": ["# it is"],
}


def said(message: dict[str, Any]) -> list[Any]:
    return [each.get("text", each.get("thinking", each.get("input"))) for each in message["content"]]


@pytest.mark.parametrize("together", [1, 3, 100])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("name", GOLDEN)
def test_every_cut_reads_the_same(name: str, size: int, together: int) -> None:
    stream = [start(), *GOLDEN[name](size), *end()]
    got = told(reached(REDACT), stream, together)
    assert said(read(got)) == READ[name]
    unchanged, _ = heard(reached(REDACT), read(b"".join(frame(event).raw for event in stream)))
    assert said(unchanged) == READ[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_what_no_rule_touches_keeps_its_bytes(name: str) -> None:
    # An escape that is cut in two is put together again.
    stream = [start(), {"type": "ping"}, *GOLDEN[name](100 if name == "a call" else 4), *end()]
    other = chain([{"name": "r", "patterns": [{"name": "x", "regex": "XYZ[0-9]"}], "action": "redact"}])
    assert told(reached(other), stream) == b"".join(frame(event).raw for event in stream)


def test_what_was_held_leaves_before_its_block_stops() -> None:
    events = events_of(told(reached(REDACT), [start(), *text(0, ["is it ACME-1"]), *text(1, ["2"]), *end()]))
    assert [event["type"] for event in events[1:4]] == [
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
    ]
    assert events[3] == {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ACME-1"}}
    assert events[4]["type"] == "content_block_stop"


# -- endings


def stopped(policy: Chain, events: Sequence[dict[str, Any]]) -> tuple[bytes, dict[str, Any]]:
    got = told(reached(policy), events)
    return got, read(got)


def ends_well(stream: bytes) -> None:
    """Blocks are opened, written and closed one by one, and the message is over once."""
    open_blocks: list[int] = []
    begun = 0
    told = events_of(stream)
    assert [event["type"] for event in told if event["type"].startswith("message_")] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    assert told[0]["type"] == "message_start"
    assert told[-1]["type"] == "message_stop"
    for event in told:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == begun
                assert not open_blocks
                begun += 1
                open_blocks.append(event["index"])
            case "content_block_delta":
                assert event["index"] in open_blocks
            case "content_block_stop":
                open_blocks.remove(event["index"])
    assert not open_blocks


STOPS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "in a text": ([start(), *text(0, ["well, AC", "ME-123 is"]), *end()], ["well, "]),
    "in a text's first event": ([start(), *block(0, {"type": "text", "text": "so ACME-123"}), *end()], ["so "]),
    "in a thought": ([start(), *thinking(0, ["it is ", "ACME-123"]), *text(1, ["hi"]), *end()], ["it is "]),
    "in a thought's first event": (
        [start(), *block(0, {"type": "thinking", "thinking": "so ACME-123", "signature": ""})],
        ["so "],
    ),
    "in a call": ([start(), *text(0, ["hi"]), *call(1, ['{"to": "x", "of": "AC', 'ME-123"}']), *end()], ["hi", None]),
    "in a call's name": ([start(), *text(0, ["hi"]), *call(1, ["{}"], name="ACME-123"), *end()], ["hi"]),
    "in the first event": ([start() | {"note": "ACME-123"}, *text(0, ["hi"]), *end()], []),
    "in the last event": (
        [
            start(),
            *text(0, ["hi"]),
            {
                "type": "message_delta",
                "delta": {"stop_reason": "stop_sequence", "stop_sequence": "ACME-123"},
                "usage": {"output_tokens": 20},
            },
            {"type": "message_stop"},
        ],
        ["hi"],
    ),
}


@pytest.mark.parametrize("place", STOPS)
def test_a_block_ends_the_message_as_a_refusal(place: str) -> None:
    events, before = STOPS[place]
    got, message = stopped(BLOCK, events)
    ends_well(got)
    assert b"ACME" not in got
    assert message["stop_reason"] == "refusal"
    assert [now for now, then in zip(said(message), before, strict=True) if then is not None] == [
        then for then in before if then is not None
    ]


@pytest.mark.parametrize("place", STOPS)
def test_a_finish_says_its_message_in_a_text(place: str) -> None:
    events, before = STOPS[place]
    got, message = stopped(FINISH, events)
    ends_well(got)
    assert b"ACME" not in got
    assert message["stop_reason"] == "end_turn"
    continued = place in ("in a text", "in a text's first event")
    assert message["content"][-1]["text"] == f"{before[-1] if continued else ''}That is secret."
    assert len(message["content"]) == len(before) + (0 if continued else 1)


def test_the_tokens_known_when_it_was_stopped_are_told() -> None:
    used = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 17}}
    _, message = stopped(BLOCK, [start(), used, *text(0, ["ACME-123"])])
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (5, 17)


def test_a_whole_reply_is_stopped() -> None:
    assert isinstance(heard(reached(BLOCK), whole({"type": "text", "text": "ACME-123"}))[1], Block)
    assert isinstance(heard(reached(FINISH), whole({"type": "text", "text": "ACME-123"}))[1], Finish)


def test_an_answer_of_ours() -> None:
    identity = {"id": "chatcmpl-7", "created": 1, "model": "m"}
    answer = messages.answer(identity, "Not today.")
    streamed = read(messages.answer_frames(identity, "Not today."))
    with client(jsondoc.encode(answer), "application/json") as sdk:
        got = sdk.messages.create(**ASK)
    assert (got.id, got.role, got.model, got.stop_reason) == ("msg_7", "assistant", "m", "end_turn")
    assert said(streamed) == [each.text for each in got.content if each.type == "text"] == ["Not today."]
    assert streamed["stop_reason"] == "end_turn"
    ends_well(messages.answer_frames(identity, "Not today."))


def test_an_answer_in_the_place_of_a_reply_keeps_what_it_cost() -> None:
    reply = whole({"type": "text", "text": "ACME-123"}, stop_reason="max_tokens", stop_details={"explanation": "x"})
    answer = messages.answer(reply, "Not today.")
    assert answer == whole({"type": "text", "text": "Not today."})


# -- errors


def test_an_error_in_a_stream_is_raised() -> None:
    stream = ReplyStream(messages, reached(REDACT))
    body = stream.feed([frame(event) for event in [start(), *text(0, ["hello"])[:2]]])
    body += stream.failing(UpstreamTimeout("idle", 3))
    with client(body) as sdk, pytest.raises(anthropic.APIStatusError, match="idle limit of 3 s") as caught:
        list(sdk.messages.create(stream=True, **ASK))
    assert caught.value.body == {
        "type": "error",
        "error": {
            "type": "timeout_error",
            "message": "The provider did not answer in time (idle limit of 3 s).",
            "code": "upstream_timeout",
            "param": None,
            "details": {"error_code": "upstream_timeout"},
        },
    }


def test_an_error_of_the_provider_lets_go_what_was_held() -> None:
    stream = ReplyStream(messages, reached(REDACT))
    broken = {"type": "error", "error": {"type": "overloaded_error", "message": "ACME-123 is down"}}
    events = events_of(stream.feed([frame(event) for event in [start(), *text(0, ["on AC"])[:2], broken]]))
    assert [event["delta"]["text"] for event in events if "delta" in event] == ["on ", "AC"]
    assert events[-1]["error"]["message"] == "# is down"
    assert stream.failed
    assert messages.error_text(broken) == "ACME-123 is down"


@pytest.mark.parametrize(
    ("error", "kind", "raised"),
    [
        (GuardrailTripped("The rule r blocks."), "invalid_request_error", anthropic.BadRequestError),
        (Overloaded("Too many exchanges."), "overloaded_error", anthropic.InternalServerError),
        (UpstreamTimeout("total", 9), "timeout_error", anthropic.InternalServerError),
    ],
)
def test_an_error_in_place_of_a_reply(error: ExchangeError, kind: str, raised: type[anthropic.APIStatusError]) -> None:
    body = jsondoc.encode(messages.error_body(error))
    with client(body, "application/json", error.status) as sdk, pytest.raises(raised, match=error.message[:12]) as got:
        sdk.messages.create(**ASK)
    assert got.value.type == kind
    assert got.value.body["error"]["code"] == error.code  # type: ignore[index]


# -- tokens


def test_what_is_cached_counts_as_prompt() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500, "output_tokens": 7}
    assert messages.usage(whole(usage=usage)) == Usage(543, 7, 500, 40)
    assert messages.usage({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}}) == Usage(completion=9)
    assert messages.usage({"type": "ping"}) is None


def test_a_stream_tells_both_numbers_in_two_events() -> None:
    stream = ReplyStream(messages, reached(REDACT))
    stream.feed([frame(event) for event in [start(tokens=11), *text(0, ["hello"]), *end(tokens=30)]])
    assert stream.tokens == Usage(11, 30)
    assert stream.done


@pytest.mark.parametrize(("ended", "complete", "done"), [(0, False, False), (1, True, False), (2, True, True)])
def test_a_stream_without_its_last_event_is_complete_but_not_done(ended: int, complete: bool, done: bool) -> None:
    stream = ReplyStream(messages, reached(REDACT))
    stream.feed([frame(event) for event in [start(), *text(0, ["hello"]), *end()[:ended]]])
    assert (stream.complete, stream.done) == (complete, done)


# -- placeholders


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_values_come_back_in_arguments_and_thoughts(size: int) -> None:
    run = opened(HIDE, Placeholders(Pseudonyms(), declared=False))
    sent = asked(run, {"messages": [{"role": "user", "content": "I am ana@x.org"}]})
    assert sent["messages"][0]["content"] == "I am <EMAIL_1>"
    written = json.dumps({"to": "<EMAIL_1>", "cc": ["<EMAIL_2>"]})
    stream = [
        start(),
        *thinking(0, pieces("that is <EMAIL_1>", size)),
        *call(1, pieces(written, size)),
        *end("tool_use"),
    ]
    got = read(told(run, stream))
    assert said(got) == ["that is ana@x.org", {"to": "ana@x.org", "cc": ["<EMAIL_2>"]}]
    again = asked(run, {"messages": [{"role": "assistant", "content": got["content"]}]})
    assert said(again["messages"][0]) == ["that is <EMAIL_1>", {"to": "<EMAIL_1>", "cc": ["<EMAIL_2>"]}]
    assert again["messages"][0]["content"][0]["signature"] == "c2VhbGVk"


# -- counting


def test_a_count_has_a_request_and_no_answer() -> None:
    document = {"model": "m", "messages": [{"role": "user", "content": "ACME-123"}], "tools": []}
    assert [slot.text for slot in COUNT.request_slots(document)] == ["ACME-123"]
    assert COUNT.reply_texts({"input_tokens": 12}) == []
    assert COUNT.usage({"input_tokens": 12}) is None
    assert COUNT.answer({"id": "x"}, "no") is None
    assert COUNT.answer_frames({"id": "x"}, "no") == b""


def test_headers_and_shape_of_a_block() -> None:
    error = GuardrailTripped("The rule r blocks.", param="messages.request.system")
    assert anthropic_shape(error)["error"]["param"] == "messages.request.system"
    assert (b"x-should-retry", b"false") in error_headers(error, b"{}")
    assert sse.render(b"{}", messages.event_of({"type": "error"})) == b"event: error\ndata: {}\n\n"
    assert messages.event_of({"type": "a\nb"}) is None
