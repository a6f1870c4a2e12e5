"""Patterns for the other engine: what they find, and what happens when they take too long."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from sidecar.core.chain import Verdict
from sidecar.core.decision import Block
from sidecar.stages.guardrails import GuardrailConfig, PatternConfig

from .talk import Call, chain

# Every way of cutting the word in ones and twos is tried before it is clear that it ends in "!" in all of them.
ENDLESS = {"name": "slow", "regex": r"x(?:\w|\w\w)+(?![\w!])", "engine": "regex", "timeout": "20ms"}
TRAP = "x" + "a" * 40 + "!"


def rule(pattern: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "g", "patterns": [pattern], **more}


def pieces(text: str, size: int) -> Iterator[dict[str, str]]:
    return ({"content": text[at : at + size]} for at in range(0, len(text), size))


def content(deltas: list[dict[str, Any]]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas)


def told(verdicts: list[Verdict]) -> list[tuple[str, list[str]]]:
    return [(verdict.said, [finding.name for finding in verdict.findings]) for verdict in verdicts]


def test_what_re2_cannot_express() -> None:
    policy = chain([rule({"name": "id", "regex": r"(?<!order )\b(\d)\1{3}(?!\d)", "engine": "regex"})])
    text = "order 1111, number 2222, 33333 and 4444"
    expected = "order 1111, number [REDACTED:id], 33333 and [REDACTED:id]"
    assert Call(policy).ask(text)[0]["content"] == expected
    assert Call(policy).hear({"content": text})["content"] == expected
    for size in range(1, 9):
        assert content(Call(policy).hear_stream(list(pieces(text, size)))) == expected


def test_arguments_of_tool_calls() -> None:
    policy = chain([rule({"name": "pw", "regex": r"(?<=pass: )\S+(?!\S)", "engine": "regex"}, action="mask")])
    arguments = '{"note": "pass: \\u0061bcdefgh12345", "n": 1}'
    call = {"index": 0, "function": {"arguments": arguments}}
    got = Call(policy).hear({"content": None, "tool_calls": [call]})["tool_calls"][0]["function"]["arguments"]
    assert got == '{"note": "pass: *********2345", "n": 1}'


def test_out_of_time_a_request_is_blocked() -> None:
    call = Call(chain([rule(ENDLESS)]))
    call.ask("fine", TRAP)
    assert isinstance(call.run.stopped, Block)
    assert call.run.stopped.failed
    assert told(call.run.verdicts) == [("block", ["failed"])]


def test_out_of_time_a_request_may_pass() -> None:
    other = {"name": "word", "regex": "secret"}
    call = Call(chain([{"name": "g", "patterns": [ENDLESS, other], "on_error": "pass"}]))
    assert call.ask(f"{TRAP} secret")[0]["content"] == f"{TRAP} [REDACTED:word]"
    assert told(call.run.verdicts) == [("redact", ["failed", "word"])]


def test_what_passed_for_want_of_time_is_not_remembered() -> None:
    policy = chain([rule(ENDLESS, on_error="pass")])
    for _ in range(2):
        call = Call(policy)
        call.ask(TRAP + " " * 64)
        assert told(call.run.verdicts) == [("flag", ["failed"])]


@pytest.mark.parametrize(("size", "got"), [(3, "so: "), (1000, "")])
def test_out_of_time_a_stream_is_stopped(size: int, got: str) -> None:
    """What came with the piece that took too long is not said."""
    call = Call(chain([rule(ENDLESS)]))
    assert content(call.hear_stream(list(pieces(f"so: {TRAP} or not", size)))) == got
    assert isinstance(call.run.stopped, Block)
    assert call.run.stopped.failed
    assert told(call.run.verdicts) == [("block", ["failed"])]


@pytest.mark.parametrize("size", [3, 1000])
def test_out_of_time_a_stream_may_go_on(size: int) -> None:
    call = Call(chain([rule(ENDLESS, on_error="pass")]))
    text = f"so: {TRAP} or {TRAP} not"
    assert content(call.hear_stream(list(pieces(text, size)))) == text
    assert told(call.run.verdicts) == [("flag", ["failed"])]


def test_time_is_counted_for_a_text_and_not_for_a_match() -> None:
    """Slow matches that are each in time would add up."""
    call = Call(chain([rule(ENDLESS, on_error="pass")]))
    call.ask(f"x{'a' * 20}! " * 1000)
    assert told(call.run.verdicts) == [("flag", ["failed"])]


def test_other_texts_have_their_own_time() -> None:
    call = Call(chain([rule(ENDLESS, on_error="pass")]))
    sent = call.ask(f"{TRAP} xab", "xab")
    assert [message["content"] for message in sent] == [f"{TRAP} xab", "[REDACTED:slow]"]


@pytest.mark.parametrize(
    ("fields", "where", "said"),
    [
        ({"regex": "a(?<=b*)", "engine": "regex"}, "regex", "a look-behind of more than 256 bytes"),
        ({"regex": "a(?=b)"}, "regex", "look-ahead is not available"),
        ({"regex": "a", "timeout": "10ms"}, "", "a timeout is of use with engine: regex only"),
        ({"regex": "a", "engine": "regex", "timeout": "2s"}, "timeout", "less than or equal to 1"),
        ({"regex": "a(", "engine": "pcre"}, "engine", "'re2' or 'regex'"),
    ],
)
def test_faults(fields: dict[str, str], where: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PatternConfig.model_validate({"name": "x", **fields})
    (error,) = caught.value.errors()
    assert (error["loc"] or ("",))[0] == where
    assert said in error["msg"]


def test_hidden_text_is_seen() -> None:
    pattern = {"name": "key", "regex": r"(?<!no)(?<!nо)sk-(\w)\1(?=\W|$)", "engine": "regex"}
    policy = chain([rule(pattern, normalize=["nfkc", "invisible", "confusables"])])
    text = "s\u200bk-xx. ｓｋ-аa nosk-xx"
    expected = "[REDACTED:key]. [REDACTED:key] nosk-xx"
    assert Call(policy).ask(text)[0]["content"] == expected
    for size in (1, 2, 5):
        assert content(Call(policy).hear_stream(list(pieces(text, size)))) == expected


def test_a_look_for_what_normalize_hides_is_a_fault() -> None:
    pattern = {"name": "x", "regex": "a(?!\u200b)", "engine": "regex"}
    config = GuardrailConfig.model_validate(rule(pattern, normalize=["invisible"]))
    with pytest.raises(Exception, match="its look-around is for invisible characters"):
        config.shapes()
