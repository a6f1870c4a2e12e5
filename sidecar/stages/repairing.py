"""Asking a model again because its reply was not right: one text of the user after the request as it was.

What it says depends on the last reply alone, so that a request does not grow from round to round.
"""

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from ..text.schemas import SchemaFault
from ..wire.conversation import View


def quoted(text: str, limit: int) -> str:
    """The text as a JSON string, so that nothing in it can pass for words of ours.

    At most `limit` characters of it stand there, escapes counted, with a note of the total. Give it what guardrails
    have seen.
    """
    whole = json.dumps(text, ensure_ascii=False)
    if len(whole) <= limit + 2:
        return whole
    size, kept = 0, 0
    for kept, char in enumerate(text):  # noqa: B007 -- where it stopped is what is wanted
        size += len(json.dumps(char, ensure_ascii=False)) - 2
        if size > limit:
            break
    return f"{json.dumps(text[:kept], ensure_ascii=False)} (the first {kept} of {len(text)} characters)"


def listed(faults: Iterable[SchemaFault]) -> str:
    """One line for each."""
    return "".join(f"\n- {fault}" for fault in faults)


def again(view: View, document: dict[str, Any], message: str) -> dict[str, Any]:
    """The request with one more text of the user, in a copy."""
    asked = deepcopy(document)
    view.asked(asked).say(message)
    return asked
