"""Calls taken out of a chat completion on its way through: the shapes that servers give its last frame and its text."""

from typing import Any

import pytest

from sidecar.wire import chat


def ending(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", **choice}]}


@pytest.mark.parametrize("delta", [{}, {"delta": None}, {"delta": {}}])
def test_a_last_frame_without_a_delta_takes_the_notice(delta: dict[str, Any]) -> None:
    frame = ending(**delta)
    assert chat.Writer().drop(frame, {(0, 0): "Not allowed."})
    assert frame == {"choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": "Not allowed."}}]}


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (None, "No f.\n\nNo g."),
        ("Well.", "Well.\n\nNo f.\n\nNo g."),
        ([{"type": "text", "text": "Well."}], [{"type": "text", "text": t} for t in ("Well.", "No f.\n\nNo g.")]),
        (7, "No f.\n\nNo g."),
    ],
)
def test_notices_follow_what_is_said(content: Any, after: Any) -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "fg"]
    reply = ending(message={"role": "assistant", "content": content, "tool_calls": calls})
    assert chat.Writer().drop(reply, {(0, 0): "No f.", (0, 1): "No g."})
    assert reply == {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": after}}]
    }


def test_a_call_that_is_left_is_still_waited_for() -> None:
    calls = [{"function": {"name": name}} for name in "fg"]
    reply = ending(message={"content": "Well.", "tool_calls": calls})
    assert chat.Writer().drop(reply, {(0, 0): ""})
    assert reply == ending(message={"content": "Well.", "tool_calls": [calls[1]]})
