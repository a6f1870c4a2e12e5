"""Rules about tool calls where the reply is not held whole: a call waits until it is decided, and nothing else does."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.core.chain import Run
from sidecar.core.decision import Block, Finish
from sidecar.wire.stream import Frame

from .tools_talk import DONE, Talk, begins, call, ends, frame, more, ran, says, text

NO_SHELL = {"name": "no-shell", "tool": "shell*", "decision": "deny", "reason": "no shell here"}
NO_HTTP = {
    "name": "no-http",
    "tool": "get",
    "arguments": [{"path": "$.url", "pattern": "^http://"}],
    "decision": "deny",
    "reason": "use https",
}
DENIED = "The call of shell was denied: no shell here."
PLAIN = "The call of get was denied: use https."


def passing(*rules: dict[str, Any], **config: Any) -> Talk:
    return Talk(*rules, stream="pass", **config)


# --- chat: a call is taken out ---


def test_what_no_rule_denies_leaves_as_the_bytes_that_came() -> None:
    frames = [
        text("Hm."),
        begins("get"),
        more('{"url":'),
        more(' "https://x"}'),
        begins("read", 1),
        more("{}", 1),
        *ends(),
    ]
    streamed = passing(NO_SHELL, NO_HTTP).stream(frames)
    assert streamed.raw == b"".join(each.raw for each in frames)


def test_a_name_that_is_denied() -> None:
    streamed = passing(NO_SHELL).stream([text("Hm."), begins("shell"), more("{}"), *ends()])
    assert streamed.message() == (f"Hm.{DENIED}", [], "stop")
    assert b"shell" not in streamed.raw.replace(DENIED.encode(), b"")


def test_arguments_that_are_denied_never_leave() -> None:
    streamed = passing(NO_HTTP).stream([begins("get"), more('{"url": "ht'), more('tp://x"}'), *ends()])
    assert streamed.message() == (PLAIN, [], "stop")
    assert b"http" not in streamed.raw.replace(PLAIN.encode(), b"")


def test_prose_is_not_held() -> None:
    frames = [text("one "), text("two"), begins("get"), more('{"url": "https://x"}'), *ends()]
    streamed = passing(NO_HTTP).stream(frames)
    assert [bool(piece) for piece in streamed.pieces] == [True, True, False, False, True, True, False]


def test_the_others_go_on() -> None:
    frames = [begins("read"), more("{}"), begins("shell", 1), more("{}", 1), begins("get", 2), more('{"url": "u"}', 2)]
    streamed = passing(NO_SHELL, NO_HTTP).stream([*frames, *ends()])
    assert streamed.message() == (DENIED, [("read", "{}"), ("get", '{"url": "u"}')], "tool_calls")


def test_calls_are_counted_without_those_that_were_taken_out() -> None:
    """Clients keep calls in a list: one that begins at 1 without a 0 breaks them."""
    frames = [begins("read", 0), more("{}", 0), begins("shell", 1), more("{}", 1), begins("shell", 2), more("{}", 2)]
    frames += [begins("get", 3), more('{"url":', 3), more(' "u"}', 3), begins("read", 4), more("{}", 4), *ends()]
    streamed = passing(NO_SHELL, NO_HTTP).stream(frames)
    told = [part["index"] for each in streamed.documents for part in each["choices"][0]["delta"].get("tool_calls", ())]
    assert told == [0, 0, 1, 1, 1, 2, 2]
    assert streamed.message()[1] == [("read", "{}"), ("get", '{"url": "u"}'), ("read", "{}")]


def test_a_call_that_has_begun_keeps_its_number() -> None:
    frames = [begins("read", 1), more("{", 1), begins("shell", 0), more("{}", 0), more("}", 1), begins("get", 2)]
    streamed = passing(NO_SHELL).stream([*frames, *ends()])
    assert streamed.message()[1] == [("read", "{}"), ("get", "")]
    told = [part["index"] for each in streamed.documents for part in each["choices"][0]["delta"].get("tool_calls", ())]
    assert told == [1, 1, 1, 2]


def test_a_call_that_went_before_keeps_the_reason_for_the_end() -> None:
    streamed = passing(NO_SHELL).stream([begins("read"), more("{}"), begins("shell", 1), more("{}", 1), *ends()])
    assert streamed.message() == (DENIED, [("read", "{}")], "tool_calls")


def test_a_name_in_pieces() -> None:
    pieces = [begins("sh"), frame({"tool_calls": [{"index": 0, "function": {"name": "ell"}}]}), more("{}"), *ends()]
    assert passing(NO_SHELL).stream(pieces).message() == (DENIED, [], "stop")
    allowed = passing({**NO_SHELL, "tool": "sh"}).stream(pieces)
    assert allowed.raw == b"".join(each.raw for each in pieces)


def test_a_call_without_arguments() -> None:
    assert passing(NO_SHELL).stream([begins("shell"), *ends()]).message() == (DENIED, [], "stop")
    frames = [begins("get"), *ends()]
    assert passing(NO_HTTP).stream(frames).raw == b"".join(each.raw for each in frames)


def test_all_in_one_frame() -> None:
    function = {"name": "get", "arguments": '{"url": "http://x"}'}
    one = frame({"content": "Hm.", "tool_calls": [{"index": 0, "id": "c", "function": function}]}, "tool_calls")
    content, calls, reason = passing(NO_HTTP).stream([one, DONE]).message()
    assert (content, calls, reason) == (f"Hm.\n\n{PLAIN}", [], "stop")


def test_a_later_call_waits_for_an_earlier_one() -> None:
    rule = {"tool": "shell", "after": "get", "decision": "deny", "reason": "no shell here"}
    frames = [begins("get"), more('{"url": "https://x"}'), begins("shell", 1), more("{}", 1), *ends()]
    assert passing(NO_HTTP, rule).stream(frames).message()[1] == [("get", '{"url": "https://x"}')]
    frames[1] = more('{"url": "http://x"}')
    assert passing(NO_HTTP, rule).stream(frames).message()[1] == [("shell", "{}")]


def test_a_second_call_under_the_same_number_is_judged_by_itself() -> None:
    frames = [begins("read", 0, "{}"), begins("shell", 0, "{}"), *ends()]
    content, _, _ = passing(NO_SHELL).stream(frames).message()
    assert DENIED in content


def test_choices_are_judged_each() -> None:
    frames = [
        frame({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "shell", "arguments": "{}"}}]}, choice=0),
        frame({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "read", "arguments": "{}"}}]}, choice=1),
        frame({}, "tool_calls", choice=1),
        frame({}, "tool_calls", choice=0),
        DONE,
    ]
    streamed = passing(NO_SHELL).stream(frames)
    assert streamed.message(0) == (DENIED, [], "stop")
    assert streamed.message(1) == ("", [("read", "{}")], "tool_calls")


def test_a_stream_that_breaks_off_says_nothing_of_a_call_that_is_denied() -> None:
    streamed = passing(NO_HTTP).stream([begins("get"), more('{"url": "http://x')])
    assert b"http" not in streamed.raw.replace(PLAIN.encode(), b"")


def test_confirm_cannot_wait_in_a_stream_that_passes() -> None:
    rule = {"name": "ask", "tool": "shell", "decision": "confirm", "reason": "ask first"}
    streamed = passing(rule).stream([begins("shell"), more("{}"), *ends()])
    assert streamed.message() == ("The call of shell was denied: ask first.", [], "stop")


def test_block_and_finish_end_the_stream_before_the_call() -> None:
    frames = [text("Hm."), begins("get"), more('{"url": "http://x"}'), *ends()]
    blocked = passing(NO_HTTP, on_deny="block").stream(frames)
    assert isinstance(blocked.run.stopped, Block)
    assert blocked.message() == ("Hm.", [], "content_filter")
    finished = passing(NO_HTTP, on_deny="finish").stream(frames)
    assert isinstance(finished.run.stopped, Finish)
    assert finished.message() == (f"Hm.{PLAIN}", [], "stop")


def test_invalid_calls_are_denied_where_the_model_cannot_be_asked_again() -> None:
    frames = [begins("get"), more('{"n": "x"}'), *ends()]
    content, calls, reason = passing(on_invalid="repair").stream(frames).message()
    assert (calls, reason) == ([], "stop")
    assert "The call of get was denied: " in content
    assert passing(NO_SHELL).stream(frames).raw == b"".join(each.raw for each in frames)


def test_what_has_passed_is_remembered() -> None:
    rule = {"tool": "send_*", "after": "vault_*", "decision": "deny"}
    talk = passing(rule)
    talk.stream([begins("vault_read"), more("{}"), *ends()])
    assert talk.stream([begins("send_mail"), more("{}"), *ends()]).message()[1] == []
    assert passing(rule).stream([begins("send_mail"), *ends()], history=ran("vault_read")).message()[1] == []


def test_in_shadow_all_passes_and_is_recorded() -> None:
    frames = [begins("shell"), begins("get", 1), more('{"url": "http://x"}', 1), *ends()]
    streamed = Talk(NO_SHELL, NO_HTTP, mode="shadow").stream(frames)
    assert streamed.raw == b"".join(each.raw for each in frames)
    found = [finding.rule for verdict in streamed.run.verdicts for finding in verdict.findings]
    assert found == ["no-shell", "no-http"]


def test_arguments_too_long_to_be_looked_into_fail_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.stages.tools.rules.MAX_ARGUMENTS", 20)
    monkeypatch.setattr("sidecar.stages.tools.watching.MAX_ARGUMENTS", 20)
    frames = [begins("get"), *[more(" ") for _ in range(50)], more('{"url": "https://x"}'), *ends()]
    assert passing(NO_HTTP).stream(frames).message() == (PLAIN, [], "stop")


# --- whole, streamed and held: the same ---

NAMES = ("read", "shell", "get", "send_mail", "vault_read")
RULES = (
    NO_SHELL,
    NO_HTTP,
    {"tool": "send_*", "after": "vault_*", "decision": "deny", "reason": "secrets were read"},
    {"tool": "read", "more_than_in_a_row": 1, "decision": "deny", "reason": "enough"},
)
ARGUMENTS = (
    '{"url": "http://x"}',
    '{"url": "https://x"}',
    "{}",
    "",
    "{",
    '{"url": "\\u0068ttp://x"}',
    '{"a": {"url": 1}}',
)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS)), max_size=5)


def cut(written: str, at: Sequence[int]) -> list[str]:
    places = sorted({0, len(written), *(place % (len(written) + 1) for place in at)})
    return [written[a:b] for a, b in pairwise(places)]


def frames_of(content: str, calls: Sequence[tuple[str, str]], at: Sequence[int], *, joined: bool) -> list[Frame]:
    """A reply as a stream, its texts cut at these places; with `joined` arguments begin in the frame of the name."""
    frames = [text(piece) for piece in cut(content, at)]
    for number, (name, arguments) in enumerate(calls):
        pieces = cut(arguments, at)
        first = pieces[0] if joined and pieces else ""
        frames += [begins(name, number, first), *(more(piece, number) for piece in pieces[bool(first) :])]
    return [*frames, *ends("tool_calls" if calls else "stop")]


@settings(deadline=None)
@given(CALLS, st.lists(st.integers(0, 40), max_size=6), st.booleans(), st.sampled_from(("pass", "deny")))
def test_the_same_decisions_whatever_the_cut_of_the_stream(
    calls: list[tuple[str, str]], at: list[int], joined: bool, on_invalid: str
) -> None:
    whole = says(*[call(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(calls)], content="Hm.")
    held = Talk(*RULES, on_deny="drop", on_invalid=on_invalid).hold(whole)
    heard = Talk(*RULES, on_deny="drop", on_invalid=on_invalid).hear(whole)
    frames = frames_of("Hm.", calls, at, joined=joined)
    streamed = passing(*RULES, on_deny="drop", on_invalid=on_invalid).stream(frames)
    content, kept, reason = streamed.message()
    for outcome in (held, heard):
        said = [
            (each["function"]["name"], each["function"]["arguments"]) for each in outcome.message.get("tool_calls", ())
        ]
        assert (said, outcome.reason) == (kept, reason)
    assert held.content == heard.content
    # A stream's notices follow what has left.
    assert (held.content or "").replace("Hm.\n\n", "Hm.") == content


@settings(deadline=None)
@given(CALLS, st.lists(st.integers(0, 40), max_size=6), st.booleans())
def test_the_same_is_recorded_whatever_the_cut_of_the_stream(
    calls: list[tuple[str, str]], at: list[int], joined: bool
) -> None:
    def told(run: Run) -> list[str]:
        return sorted(found.rule for verdict in run.verdicts for found in verdict.findings)

    whole = says(*[call(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(calls)], content="Hm.")
    held = Talk(*RULES, on_deny="drop").hold(whole)
    heard = Talk(*RULES, on_deny="drop").hear(whole)
    streamed = passing(*RULES, on_deny="drop").stream(frames_of("Hm.", calls, at, joined=joined))
    assert told(held.run) == told(heard.run) == told(streamed.run)


def test_json_that_is_no_call_is_left_alone() -> None:
    assert (
        json.loads(passing(NO_SHELL).stream([text('{"tool": "shell"}'), *ends("stop")]).message()[0])["tool"] == "shell"
    )
