"""A chat request for a model that is told of tools in words: a section of the system text, and a history in text.

The same tools give the same section, whatever their order in the request, and it stands at the end of the system text
before anything that changes from turn to turn: a provider's prompt cache keeps hitting. Schemas keep the order of their
own keys, in which models read what matters first, and are otherwise as short as JSON can be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...errors import InvalidRequest
from ..stream import Document
from .asked import FIELDS, Asked
from .content import joined
from .history import Told
from .marks import neutral
from .writing import NEXT, WRITINGS, Writing


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_result`: characters of one tool's result. `max_section`: bytes of the section that lists the tools.

    `calls_in_thoughts`: whether calls that a model writes while it thinks are calls.
    """

    max_result: int = 20_000
    max_section: int = 64_000
    calls_in_thoughts: bool = False


DEFAULTS: Final = Limits()
_PARAGRAPH: Final = "\n\n"
_CALLS: Final = ("tool_calls", "function_call")
_RESULTS: Final = ("tool", "function")
_SYSTEM: Final = ("system", "developer")


def concerned(document: Document) -> bool:
    """Whether anything in a chat request has to be told in words."""
    if any(document.get(field) is not None for field in FIELDS):
        return True
    return any(_is_ours(message) for message in _messages(document))


def _is_ours(message: Any) -> bool:
    return isinstance(message, dict) and (
        message.get("role") in _RESULTS or any(message.get(field) for field in _CALLS)
    )


def _messages(document: Document) -> list[Any]:
    messages = document.get("messages")
    return messages if isinstance(messages, list) else []


def request(document: Document, asked: Asked, dialect: str, limits: Limits = DEFAULTS) -> Document:
    """The request as it goes to the model: a document of its own, of which unchanged messages are the client's.

    Raises InvalidRequest where the tools take more bytes than they may.
    """
    writing = WRITINGS[dialect]
    kept = {field: value for field, value in document.items() if field not in FIELDS}
    if not isinstance(document.get("messages"), list):
        return kept
    messages = Told(writing, limits.max_result).messages(_messages(document))
    if asked.tools:
        messages = with_system(messages, section(asked, writing, limits.max_section))
    return {**kept, "messages": messages}


def section(asked: Asked, writing: Writing, most: int) -> str:
    """What the model is told of its tools. Raises InvalidRequest where that takes more than `most` bytes."""
    how = (writing.how,) if asked.alone else (writing.how, writing.several)
    said = _PARAGRAPH.join(("## Tools", _INTRODUCTION, writing.listed(asked.tools), *how, NEXT, *_orders(asked)))
    size = len(said.encode("utf-8", "replace"))
    if size > most:
        raise InvalidRequest(
            f"The request's tools take {size} bytes as the text in which this model is told of them, more than the "
            f"{most} allowed (tools.max_section). Send fewer tools or shorter descriptions, or raise the limit.",
            param="functions" if asked.legacy else "tools",
        )
    return said


_INTRODUCTION: Final = "These tools are yours to call."


def _orders(asked: Asked) -> Iterator[str]:
    """What holds for this answer alone: it comes last, so that all before it stays the same."""
    names = neutral(", ".join(sorted(asked.may)))
    some = len(asked.may) < len(asked.tools)
    if asked.must and some and len(asked.may) == 1:
        yield f"In this answer you must call the tool {names}, and no other."
    elif asked.must:
        yield "In this answer you must call a tool: it cannot be given without."
    if some and not (asked.must and len(asked.may) == 1):
        yield f"In this answer only these tools may be called: {names or 'none'}."
    if asked.alone:
        yield "Make at most one call in an answer."


def with_system(messages: Sequence[Any], text: str) -> list[Any]:
    """The messages with a text at the end of the system's, which is the last of the messages that they begin with."""
    last = -1
    for at, message in enumerate(messages):
        if not (isinstance(message, dict) and message.get("role") in _SYSTEM):
            break
        last = at
    if last < 0:
        return [{"role": "system", "content": text}, *messages]
    system = {**messages[last], "content": joined(messages[last].get("content"), text)}
    return [*messages[:last], system, *messages[last + 1 :]]
