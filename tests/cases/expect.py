"""What a case expects, key by key. A key without a check here fails its case."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .client import Reply
from .upstream import Script, Seen, whole_body

Expect = Mapping[str, Any]
# Words for the reader; they ask for nothing that could be checked apart from the other keys.
PROSE = frozenset({"note", "variants"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a case left behind."""

    requests: Sequence[Mapping[str, Any]]
    replies: Sequence[Reply]
    scripts: Sequence[Script]
    seen: Sequence[Seen]
    output: str = ""
    peak_growth_mb: float = 0.0
    lines: Sequence[Mapping[str, Any]] = field(default=())
    rows: list[dict[str, Any]] = field(default_factory=list)
    """What budgets have counted."""
    left_at: list[float] = field(default_factory=list)
    """When the provider saw that a client had left."""

    @property
    def reply(self) -> Reply:
        return self.replies[0]

    @property
    def body(self) -> Any:
        """The document that the provider got first."""
        return self.seen[0].json


def check(expect: Expect, outcome: Outcome, later: Mapping[str, str]) -> None:
    """Checks every expectation but those in `later`, which say why they wait."""
    for name, want in flat(expect):
        if name in later:
            continue
        assert name in CHECKS, f"unknown expectation {name}"
        CHECKS[name](want, outcome)


def flat(expect: Expect) -> Iterator[tuple[str, Any]]:
    """(section.key, value) of everything that is not prose."""
    for section, keys in expect.items():
        if section not in PROSE:
            yield from ((f"{section}.{key}", want) for key, want in keys.items())


def at(document: Any, path: str) -> Any:
    """The node at a path such as `messages[1].content[2].text`."""
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        document = document[int(index)] if index else document[key]
    return document


def exactly(text: str | bytes) -> Any:
    """A JSON document in which key order, duplicate keys and the digits of numbers count."""
    return json.loads(
        text, object_pairs_hook=tuple, parse_float=lambda s: ("number", s), parse_int=lambda s: ("number", s)
    )


def _absent(needles: Sequence[str], hay: str) -> None:
    assert [needle for needle in needles if needle in hay] == []


# -- the client


def _joined(want: Mapping[str, str], got: Outcome) -> None:
    assert got.reply.joined() == want


def _joined_units(want: Mapping[str, str], got: Outcome) -> None:
    """As a client joins that counts in UTF-16 units: two halves of a pair in two deltas are one character."""
    joined = got.reply.joined()
    assert {i: t.encode("utf-16", "surrogatepass").decode("utf-16") for i, t in joined.items()} == want


def _no_text(want: Sequence[str], got: Outcome) -> None:
    for reply in got.replies:
        _absent(want, reply.everything)
        _absent(want, "".join(reply.joined().values()))


def _no_joined_text(want: Sequence[str], got: Outcome) -> None:
    for _, text in [*got.reply.joined().items(), *got.reply.joined("reasoning_content").items()]:
        _absent(want, text)


def _done(want: bool, got: Outcome) -> None:
    assert (got.reply.data[-1] == "[DONE]") is want
    assert got.reply.data.count("[DONE]") == want


def _first_delta(want: int, got: Outcome) -> None:
    first = next(at for at, piece in got.reply.pieces if b'"content"' in piece)
    assert (first - got.reply.started) * 1000 < want


def _blank_data(want: int, got: Outcome) -> None:
    assert sum(not data for data in got.reply.data) == want


def _all_json(want: bool, got: Outcome) -> None:
    assert all(data == "[DONE]" or isinstance(json.loads(data), dict) for data in got.reply.data) is want


def _empty_choices(want: int, got: Outcome) -> None:
    assert sum(document.get("choices") == [] for document in got.reply.documents) == want


def _usage_last(want: bool, got: Outcome) -> None:
    assert ("usage" in json.loads(got.reply.data[-2])) is want


def _finish_reasons(want: Mapping[str, str], got: Outcome) -> None:
    assert got.reply.finish_reasons() == want


def _tool_calls(want: Sequence[Mapping[str, Any]], got: Outcome) -> None:
    calls = [{**call, "arguments": json.loads(call["arguments"])} for call in got.reply.tool_calls()]
    assert calls == want


def _tool_arguments(want: Mapping[str, Any], got: Outcome) -> None:
    assert {call["id"]: json.loads(call["arguments"]) for call in got.reply.tool_calls()} == want


def _error_event(want: Mapping[str, str] | None, got: Outcome) -> None:
    if want is None:
        assert got.reply.errors() == []
        return
    (error,) = got.reply.errors()
    assert {key: error[key] for key in want} == want


def _error(want: Mapping[str, Any], got: Outcome) -> None:
    assert got.reply.json["error"] == want


def _error_code(want: str, got: Outcome) -> None:
    assert got.reply.json["error"]["code"] == want


def _roles(want: int, got: Outcome) -> None:
    assert sum("role" in delta for _, delta, _ in got.reply.deltas()) <= want


def _no_finish(want: bool, got: Outcome) -> None:
    assert (not got.reply.finish_reasons()) is want


def _ends_within(want: int, got: Outcome) -> None:
    assert got.reply.milliseconds < want


def _logprobs(got: Outcome) -> list[str]:
    return [
        token["token"]
        for _, _, choice in got.reply.deltas()
        for token in (choice.get("logprobs") or {}).get("content") or ()
    ]


def _logprobs_kept(want: Sequence[str], got: Outcome) -> None:
    assert [token for token in want if token not in _logprobs(got)] == []


def _logprobs_clean(want: Sequence[str], got: Outcome) -> None:
    _absent(want, "".join(_logprobs(got)))


def _keys(document: Any) -> set[str]:
    match document:
        case dict():
            return {*document, *(key for value in document.values() for key in _keys(value))}
        case list():
            return {key for value in document for key in _keys(value)}
    return set()


def _fields(want: Sequence[str], got: Outcome) -> None:
    assert set(want) - _keys(got.reply.documents) == set()


def _reasoning(want: Mapping[str, str], got: Outcome) -> None:
    assert got.reply.joined("reasoning_content") == want


def _many_events(want: int, got: Outcome) -> None:
    assert sum(bool(delta.get("content")) for _, delta, _ in got.reply.deltas()) >= want


def _status(want: int, got: Outcome) -> None:
    assert got.reply.status == want, got.reply.text


def _status_class(want: int, got: Outcome) -> None:
    assert got.reply.status // 100 == want, got.reply.text


def _shape(want: str, got: Outcome) -> None:
    assert want in ("openai", "openai or declared failure")
    (error,) = got.reply.errors()
    assert {"message", "type", "param", "code"} <= set(error)
    assert all(isinstance(error[key], str) and error[key] for key in ("message", "type", "code"))


def _decodable(want: bool, got: Outcome) -> None:
    assert bool(got.reply.body) is want
    assert got.reply.documents


def _length(want: bool, got: Outcome) -> None:
    _framed(want, got)
    declared = got.reply.header("content-length")
    assert (declared is None or int(declared) == len(got.reply.raw)) is want


def _framed(want: bool, got: Outcome) -> None:
    assert [reply.broken or reply.surplus for reply in got.replies] == [not want] * len(got.replies)


def _as_upstream(want: bool, got: Outcome) -> None:
    assert (exactly(got.reply.body) == exactly(whole_body(got.scripts[0]))) is want


def _text_as_upstream(want: bool, got: Outcome) -> None:
    assert (got.reply.body == whole_body(got.scripts[0])) is want


def _headers(want: Mapping[str, str], got: Outcome) -> None:
    assert {name: got.reply.header(name) for name in want} == want


def _second_within(want: int, got: Outcome) -> None:
    assert got.replies[1].milliseconds < want
    assert got.replies[1].status == 200


def _first_ends(want: str, got: Outcome) -> None:
    assert want == "error event or closed connection"
    first = got.replies[0]
    assert first.broken or first.status >= 500 or '"error"' in first.text[-2000:]


def _second(want: Mapping[str, Any], got: Outcome) -> None:
    if want == {"error_event": "present"}:
        assert len(got.replies[1].errors()) == 1
    else:
        _one(1)(want, got)


def _one(position: int) -> Callable[[Mapping[str, Any], Outcome], None]:
    """What one of several replies is expected to be, in the words for a client."""

    def look(want: Mapping[str, Any], got: Outcome) -> None:
        alone = replace(got, replies=got.replies[position:])
        for name, value in want.items():
            CHECKS[f"client.{name}"](value, alone)

    return look


def _no_usage(want: bool, got: Outcome) -> None:
    assert all("usage" not in document for document in got.reply.documents) is want


def _statuses(want: Mapping[str, int], got: Outcome) -> None:
    assert Counter(str(reply.status) for reply in got.replies) == want


def _in_order(want: Sequence[int | str], got: Outcome) -> None:
    assert ["aborted" if reply.aborted else reply.status for reply in got.replies] == want


def _at_most_calls(want: int, got: Outcome) -> None:
    assert 0 < len(got.reply.tool_calls()) <= want


def _consistent(want: bool, got: Outcome) -> None:
    """Calls that are whole, and a reason for the end that goes with them."""
    calls, reasons = got.reply.tool_calls(), got.reply.finish_reasons()
    assert want is True
    assert all(call["id"] and call["name"] and json.loads(call["arguments"]) for call in calls)
    assert set(reasons.values()) == ({"tool_calls"} if calls else {"stop"})
    assert calls or all(got.reply.joined().values())


def _left_within(want: int, got: Outcome) -> None:
    gone = next(reply.ended for reply in got.replies if reply.aborted)
    assert got.left_at
    assert (got.left_at[0] - gone) * 1000 < want


def _charged(unit: str, tenant: str | None = None) -> Callable[[Outcome], int]:
    def count(got: Outcome) -> int:
        rows = [row for row in got.rows if row["unit"] == unit and tenant in (None, row["tenant"])]
        return sum(row["spent"] for row in rows)

    return count


# -- the provider


def _calls(want: int, got: Outcome) -> None:
    assert len(got.seen) == want


def _calls_by_model(want: Mapping[str, int], got: Outcome) -> None:
    counted = Counter(seen.json["model"] for seen in got.seen)
    assert {model: counted[model] for model in want} == want
    assert counted.total() == sum(want.values())


def _gap(want: Sequence[int], got: Outcome) -> None:
    first, second = got.seen
    assert want[0] <= (second.at - first.at) * 1000 <= want[1]


def _body_clean(want: Sequence[str], got: Outcome) -> None:
    assert got.seen
    for seen in got.seen:
        _absent(want, seen.everything)


def _body_matches_nothing(want: Sequence[str], got: Outcome) -> None:
    text = json.dumps(got.body["messages"], ensure_ascii=False)
    assert [pattern for pattern in want if re.search(pattern, text)] == []


def _paths(want: Mapping[str, Any], got: Outcome) -> None:
    assert {path: at(got.body, path) for path in want} == want


def _path_matches(want: Mapping[str, str], got: Outcome) -> None:
    for path, pattern in want.items():
        assert re.search(pattern, at(got.body, path)), at(got.body, path)


def _arguments(want: Mapping[str, Any], got: Outcome) -> None:
    nodes = {path: at(got.body, path) for path in want}
    assert {path: json.loads(node.get("function", node)["arguments"]) for path, node in nodes.items()} == want


def _nested(want: Mapping[str, Any], got: Outcome) -> None:
    """JSON in a string, whose strings may hold JSON again."""
    assert {path: _unfolded(at(got.body, path)) for path in want} == want


def _unfolded(text: Any) -> Any:
    value = json.loads(text)
    return {key: json.loads(inner) if isinstance(inner, str) else inner for key, inner in value.items()}


def _tools(want: bool, got: Outcome) -> None:
    assert (got.body["tools"] == got.requests[0]["json"]["tools"]) is want


def _seen_framed(want: bool, got: Outcome) -> None:
    assert [seen.fault for seen in got.seen if (not seen.fault) is not want] == []


def _no_hops(want: Sequence[str], got: Outcome) -> None:
    assert [name for name, _ in got.seen[0].headers if name.lower() in want] == []


def _as_input(want: bool, got: Outcome) -> None:
    sent = json.dumps(got.requests[0]["json"], ensure_ascii=False)
    assert (exactly(got.seen[0].body) == exactly(sent)) is want


def _bytes_as_input(want: bool, got: Outcome) -> None:
    assert (got.seen[0].body == json.dumps(got.requests[0]["json"], ensure_ascii=False).encode()) is want


def _digits(want: str, got: Outcome) -> None:
    assert want.encode() in got.seen[0].body


def _seen_headers(want: Mapping[str, str], got: Outcome) -> None:
    assert {name: got.seen[0].header(name) for name in want} == want


def _seen_headers_clean(want: Sequence[str], got: Outcome) -> None:
    assert got.seen
    for seen in got.seen:
        _absent(want, str(seen.headers))


# -- tool calls in text


def _called(want: Sequence[Mapping[str, Any]], got: Outcome) -> None:
    calls = [{"name": call["name"], "arguments": json.loads(call["arguments"])} for call in got.reply.tool_calls()]
    assert calls == want


def _distinct_ids(want: bool, got: Outcome) -> None:
    ids = [call["id"] for call in got.reply.tool_calls()]
    assert (all(ids) and len(set(ids)) == len(ids)) is want


def _finish(want: str, got: Outcome) -> None:
    assert got.reply.finish_reasons() == {"0": want}


def _one_finish(want: bool, got: Outcome) -> None:
    reasons = [choice["finish_reason"] for _, _, choice in got.reply.deltas() if choice.get("finish_reason")]
    assert (len(reasons) == 1) is want


def _text(got: Outcome) -> str:
    return got.reply.joined()["0"]


def _contains(want: Sequence[str], got: Outcome) -> None:
    assert [piece for piece in want if piece not in _text(got)] == []


# -- structured output


def _content_json(want: Any, got: Outcome) -> None:
    assert json.loads(_text(got)) == want


def _schema_sent(want: Sequence[str], got: Outcome) -> None:
    """In every request, once."""
    for seen in got.seen:
        assert [key for key in want if key not in seen.json["response_format"]["json_schema"]["schema"]] == []
        assert seen.body.count(b'"$defs"') == 1


def _last_against_second(want: float, got: Outcome) -> None:
    assert len(got.seen[-1].body) <= want * len(got.seen[1].body)


# -- what is left behind


def _output_clean(want: Sequence[str], got: Outcome) -> None:
    assert got.lines, "the exchange left no line in the log"
    _absent(want, got.output)


def _memory(want: float, got: Outcome) -> None:
    assert got.peak_growth_mb <= want


def _tokens(want: int, got: Outcome) -> None:
    (line,) = got.lines
    assert not got.rows or _charged("tokens")(got) == want
    assert line["prompt_tokens"] + line["completion_tokens"] == want


def _failed(want: str, got: Outcome) -> None:
    assert want == "error"
    assert [line["outcome"] for line in got.lines] == ["upstream_error"]


CHECKS: Mapping[str, Callable[[Any, Outcome], None]] = {
    "client.joined_content": _joined,
    "client.joined_content_utf16": _joined_units,
    "client.joined_reasoning_content": _reasoning,
    "client.must_not_contain": _no_text,
    "client.must_not_contain_joined": _no_joined_text,
    "client.sse_done": _done,
    "client.first_delta_before_ms": _first_delta,
    "client.blank_data_events": _blank_data,
    "client.every_data_is_json_or_done": _all_json,
    "client.events_with_empty_choices": _empty_choices,
    "client.usage_event_before_done": _usage_last,
    "client.finish_reasons": _finish_reasons,
    "client.assembled_tool_calls": _tool_calls,
    "client.tool_arguments_json": _tool_arguments,
    "client.error_event": _error_event,
    "client.error_equals": _error,
    "client.error_code": _error_code,
    "client.role_chunks_max": _roles,
    "client.finish_reason_absent": _no_finish,
    "client.stream_terminates_within_ms": _ends_within,
    "client.logprobs_tokens_include": _logprobs_kept,
    "client.logprobs_tokens_joined_must_not_contain": _logprobs_clean,
    "client.fields_present": _fields,
    "client.min_content_events": _many_events,
    "client.status": _status,
    "client.status_class": _status_class,
    "client.error_shape": _shape,
    "client.decodable_by_declared_encoding": _decodable,
    "client.content_length_correct": _length,
    "client.framing_valid": _framed,
    "client.json_equals_upstream": _as_upstream,
    "client.body_equals_upstream": _text_as_upstream,
    "client.headers_equal": _headers,
    "client.second_within_ms": _second_within,
    "client.second_terminates_within_ms": lambda want, got: _within(want, got.replies[1]),
    "client.first_ends_with": _first_ends,
    "client.second": _second,
    "upstream.calls": _calls,
    "upstream.calls_by_model": _calls_by_model,
    "upstream.gap_between_calls_ms": _gap,
    "upstream.body_must_not_contain": _body_clean,
    "upstream.body_must_not_match": _body_matches_nothing,
    "upstream.json_path_equals": _paths,
    "upstream.content_match": _path_matches,
    "upstream.arguments_json_equals": _arguments,
    "upstream.nested_json_equals": _nested,
    "upstream.tools_unchanged": _tools,
    "upstream.framing_valid": _seen_framed,
    "upstream.hop_by_hop_headers_absent": _no_hops,
    "upstream.json_equals_input": _as_input,
    "upstream.bytes_equal_input": _bytes_as_input,
    "upstream.big_int_exact": _digits,
    "upstream.header_equals": _seen_headers,
    "upstream.headers_must_not_contain": _seen_headers_clean,
    "logs.must_not_contain": _output_clean,
    "perf.rss_growth_mb_max": _memory,
    "client.first": _one(0),
    "client.then": _one(1),
    "client.no_usage_event_when_not_asked": _no_usage,
    "client.statuses": _statuses,
    "client.statuses_in_order": _in_order,
    "client.tool_calls_delivered_max": _at_most_calls,
    "client.response_self_consistent": _consistent,
    "upstream.connection_closed_within_ms": _left_within,
    "state.tokens_charged": _tokens,
    "state.tokens_charged_min": lambda want, got: _at_least(want, _charged("tokens")(got)),
    "state.calls_charged": lambda want, got: _equal(want, _charged("calls")(got)),
    "state.tool_calls_charged": lambda want, got: _equal(want, _charged("tool_calls")(got)),
    "state.tenant-b_calls_charged": lambda want, got: _equal(want, _charged("calls", "tenant-b")(got)),
    "state.outcome": _failed,
    "client.tool_calls": _called,
    "client.distinct_ids": _distinct_ids,
    "client.finish_reason": _finish,
    "client.single_terminal_finish_reason": _one_finish,
    "client.content_contains": _contains,
    "client.content_json": _content_json,
    "upstream.schema_sent_has": _schema_sent,
    "upstream.request_bytes_growth_last_vs_second_max": _last_against_second,
    "client.content_startswith": lambda want, got: _equal(True, _text(got).startswith(want)),
    "client.content_endswith": lambda want, got: _equal(True, _text(got).endswith(want)),
}


def _equal(want: int, count: int) -> None:
    assert count == want


def _at_least(want: int, count: int) -> None:
    assert count >= want


def _within(want: int, reply: Reply) -> None:
    assert reply.milliseconds < want
