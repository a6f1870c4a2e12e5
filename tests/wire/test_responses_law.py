"""Law 2 for `/v1/responses`: however a stream is cut, the client reads the same text, in deltas and in every copy."""

import json
import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire import jsondoc, responses
from sidecar.wire.stream import edit_reply
from tests.test_streams_property import (
    EXAMPLES,
    arguments,
    guardrail,
    in_values,
    opened,
    pieces,
    prose,
    rulesets,
    substituted,
)

from .responses_talk import Document, at, copies, documents, events, heard, response, running, said, stream_bytes
from .responses_talk import through as through_packets

MESSAGE = {"type": "message", "role": "assistant", "status": "completed"}


def text_part(text: str) -> Document:
    cited = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "https://c", "title": "t"}
    return {"type": "output_text", "text": text, "annotations": [cited], "logprobs": [{"token": text, "logprob": 0}]}


def refusal_part(text: str) -> Document:
    return {"type": "refusal", "refusal": text}


messages = st.lists(st.one_of(st.builds(text_part, prose), st.builds(refusal_part, prose)), min_size=1, max_size=2).map(
    lambda parts: MESSAGE | {"content": parts}
)
reasonings = st.builds(
    lambda summary, content: {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in content],
        "encrypted_content": "c2VhbGVk",
    },
    st.lists(prose, max_size=2),
    st.lists(prose, max_size=1),
)
function_calls = arguments.map(
    lambda text: {"type": "function_call", "call_id": "c", "name": "f", "arguments": text, "status": "completed"}
)
mcp_calls = st.builds(
    lambda text, output: {"type": "mcp_call", "server_label": "s", "name": "f", "arguments": text, "output": output},
    arguments,
    prose,
)
custom_calls = prose.map(lambda text: {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": text})
code_calls = st.builds(
    lambda code, logs: {
        "type": "code_interpreter_call",
        "code": code,
        "outputs": [{"type": "logs", "logs": logs}],
        "container_id": "k",
        "status": "completed",
    },
    prose,
    prose,
)
shell_calls = st.lists(prose, min_size=1, max_size=2).map(
    lambda commands: {"type": "shell_call", "call_id": "c", "action": {"commands": commands}, "status": "completed"}
)
kinds = st.one_of(messages, reasonings, function_calls, mcp_calls, custom_calls, code_calls, shell_calls)
outputs = st.lists(kinds, min_size=1, max_size=3).map(
    lambda items: [{"id": f"item_{index}", **item} for index, item in enumerate(items)]
)
orders = st.one_of(st.just((0,)), st.lists(st.integers(0, 9), min_size=2, max_size=6).map(tuple))
sizes = st.lists(st.integers(1, 400), min_size=1, max_size=5).map(tuple)


def cut(data: st.DataObject) -> Any:
    return lambda text: [piece for piece in data.draw(pieces(text)) if piece]


def through(rules: Sequence[Any], data: bytes, sizes: Sequence[int]) -> list[Document]:
    out, stream = through_packets(opened(rules), data, sizes)
    assert stream.stopped is None
    assert stream.complete
    return documents(out)


def expected(items: Sequence[Document], patterns: Sequence[str]) -> dict[Any, Any]:
    """What a client must read of the running texts, computed apart from the product."""
    read: dict[Any, Any] = {}
    for key, text in said(items).items():
        is_json = key[1] == ("arguments",)
        read[key] = in_values(patterns, json.loads(text)) if is_json else substituted(patterns, text)
    return read


def loaded(texts: dict[Any, str]) -> dict[Any, Any]:
    return {key: json.loads(text) if key[1] == ("arguments",) else text for key, text in texts.items()}


@EXAMPLES
@given(outputs, rulesets, orders, sizes, st.data())
def test_deltas_copies_and_the_whole_reply_say_the_same(
    items: list[Document],
    patterns: tuple[str, ...],
    order: tuple[int, ...],
    sizes: tuple[int, ...],
    data: st.DataObject,
) -> None:
    rules = [guardrail((pattern,), "redact") for pattern in patterns]
    told = through(rules, stream_bytes(events(items, cut(data), order)), sizes)
    want = expected(items, patterns)
    spoken = heard(told)
    assert loaded({key: text for key, text in spoken.items() if text}) == {k: t for k, t in want.items() if t}
    for copy in copies(told):
        assert loaded(copy) == want
        assert {key: text for key, text in copy.items() if text} == {k: t for k, t in spoken.items() if t}
    whole = jsondoc.decode(jsondoc.encode(response(deepcopy(items))))
    edit_reply(responses, opened(rules), whole)
    assert said(whole["output"]) == said(told[-1]["response"]["output"])
    assert whole == told[-1]["response"]


@EXAMPLES
@given(outputs, rulesets, orders, st.data())
def test_what_was_computed_over_a_text_goes_with_it(
    items: list[Document], patterns: tuple[str, ...], order: tuple[int, ...], data: st.DataObject
) -> None:
    rules = [guardrail(patterns, "redact")]
    told = through(rules, stream_bytes(events(items, cut(data), order)), (1 << 20,))
    for was, is_ in zip(items, told[-1]["response"]["output"], strict=True):
        for one in running(was):
            part = at(is_, one.way[:-1])
            if one.events == "response.output_text":
                same = at(was, one.way) == at(is_, one.way)
                assert bool(part["annotations"]) == same
                assert bool(part["logprobs"]) == same
    for event in told:
        tokens = "".join(entry["token"] for entry in event.get("logprobs") or ())
        assert not tokens or tokens == event["delta"]


@EXAMPLES
@given(outputs.filter(lambda items: not any("arguments" in item for item in items)), orders, sizes)
def test_what_no_rule_touches_keeps_its_bytes(
    items: list[Document], order: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    sent = stream_bytes(events(items, list, order))
    out, _ = through_packets(opened([guardrail(("ZZZ[0-9]",), "redact")]), sent, sizes)
    assert out == sent


@EXAMPLES
@given(outputs, rulesets, orders, sizes, st.data())
def test_a_block_ends_the_stream_and_says_what_was_read(
    items: list[Document],
    patterns: tuple[str, ...],
    order: tuple[int, ...],
    sizes: tuple[int, ...],
    data: st.DataObject,
) -> None:
    sent = stream_bytes(events(items, cut(data), order))
    out, stream = through_packets(opened([guardrail(patterns, "block")]), sent, sizes)
    told = documents(out)
    last = told[-1]
    if stream.stopped is None:
        assert last["type"] == "response.completed"
        return
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "content_filter"}
    spoken = {key: text for key, text in heard(told).items() if text}
    for copy in copies(told):
        assert {key: text for key, text in copy.items() if text} == spoken
    before = said(items)
    for key, text in spoken.items():
        assert before[key].startswith(text)
        for pattern in () if key[1] == ("arguments",) else patterns:
            found = re.search(pattern, before[key], re.ASCII)
            assert found is None or len(text) <= found.start()
    added = [event["output_index"] for event in told if event["type"] == "response.output_item.added"]
    done = [event["output_index"] for event in told if event["type"] == "response.output_item.done"]
    assert sorted(added) == sorted(done)
    numbers = [event["sequence_number"] for event in told]
    assert numbers[-1] == max(numbers)


@EXAMPLES
@given(outputs, rulesets, orders, sizes, st.data())
def test_a_finish_completes_the_reply(
    items: list[Document],
    patterns: tuple[str, ...],
    order: tuple[int, ...],
    sizes: tuple[int, ...],
    data: st.DataObject,
) -> None:
    sent = stream_bytes(events(items, cut(data), order))
    rule = guardrail(patterns, "finish")
    out, stream = through_packets(opened([rule]), sent, sizes)
    told = documents(out)
    assert told[-1]["type"] == "response.completed"
    if stream.stopped is None:
        return
    spoken = {key: text for key, text in heard(told).items() if text}
    for copy in copies(told):
        assert {key: text for key, text in copy.items() if text} == spoken
    assert any(text.endswith(stream.stopped.message) for text in spoken.values())  # type: ignore[union-attr]


WHOLE: list[Document] = [
    {"id": "m", **MESSAGE, "content": [text_part("some text"), refusal_part("no")]},
    {"id": "r", "type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": []},
    {"id": "f", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}', "status": "completed"},
    {"id": "s", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"},
]
odd = st.recursive(
    st.sampled_from(["abc", 7, True, None, 1.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "x"]), inner),
    max_leaves=3,
)


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as holder and key; those of tokens, which are not looked at, left out."""
    keys = (
        [key for key in value if key != "logprobs"]
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else ()
    )
    return [(value, key) for key in keys] + [place for key in keys for place in nodes(value[key])]


# What is not looked at where it is a string.
BLIND = {"id", "type", "status", "role", "call_id", "item_id", "object", "model"}
BLIND |= {"obfuscation", "tool_choice"}


@EXAMPLES
@given(st.data(), st.sampled_from(["redact", "block", "finish"]), odd)
def test_a_shape_that_nobody_expects_neither_breaks_a_stream_nor_hides_a_text(
    data: st.DataObject, action: str, value: Any
) -> None:
    told = events(WHOLE, lambda text: [text[:2], text[2:]])
    holder, key = data.draw(st.sampled_from([place for event in told for place in nodes(event)]))
    holder[key] = value
    sent = b"".join(b"data: " + jsondoc.encode(event) + b"\n\n" for event in told)
    out, _ = through_packets(opened([guardrail(("abc",), action)]), sent)
    if key not in BLIND and not (isinstance(value, dict) and "type" in value):
        assert b"abc" not in out
