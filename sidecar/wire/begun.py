"""Whether a reply has said anything yet, and why it ended: told alike for all APIs that hold conversations.

A stream begins with events that only announce it (`response.created`, `message_start`, a delta with a role). They are
no content: a client that has not seen them has missed nothing. What looks like neither counts as content.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

CONVERSATIONS: Final = frozenset(("chat", "responses", "messages", "completions", "ollama_chat", "ollama_generate"))
"""The names of the APIs whose replies must say something; that others hold no text means nothing."""

Document = Mapping[str, Any]

# Anthropic's and Responses' events that announce or end, whatever they repeat.
_BARE: Final = frozenset(
    (
        *("ping", "message_start", "message_delta", "message_stop", "content_block_stop"),
        *("response.created", "response.queued", "response.in_progress"),
    )
)
# Where a frame holds what is new in it.
_HOLDERS: Final = ("delta", "content_block", "item", "part", "message", "thinking")
_OF_CHOICE: Final = ("delta", "message", "text")
# What is no content in such a place. What is sealed is for the provider alone.
_LABELS: Final = frozenset(("id", "type", "role", "status", "index", "phase", "encrypted_content"))
# Parts of a whole reply that are thought and not said.
_THOUGHT: Final = frozenset(("thinking", "redacted_thinking", "reasoning"))
_THOUGHTS: Final = frozenset(("reasoning", "reasoning_content", "reasoning_details", "thinking", "annotations"))


def speaks(frame: Document) -> bool:
    """Whether a frame of a stream holds content, reasoning included: once it has left nothing is asked again."""
    kind = frame.get("type")
    if kind.__class__ is str and kind in _BARE:
        return False
    if kind.__class__ is str and kind.startswith("response.") and "_call" in kind:
        return True  # work that the provider does itself
    return any(map(_holds, _new_in(frame)))


def _new_in(frame: Document) -> Iterator[Any]:
    yield from (frame.get(name) for name in _HOLDERS)
    for choice in _list(frame.get("choices")):
        if isinstance(choice, dict):
            yield from (choice.get(name) for name in _OF_CHOICE)
    response = frame.get("response")
    yield response.get("output") if isinstance(response, dict) else response


def _holds(value: Any) -> bool:
    if isinstance(value, dict):
        return any(inner for name, inner in value.items() if name not in _LABELS)
    return bool(value)


def answers(reply: Document) -> bool:
    """Whether a whole reply says something, beyond blanks and what was only thought."""
    return any(map(_says, _said_in(reply)))


def _said_in(reply: Document) -> Iterator[Any]:
    for choice in _list(reply.get("choices")):
        if isinstance(choice, dict):
            yield from (choice.get("message"), choice.get("text"))
    yield from _list(reply.get("content"))
    yield from _list(reply.get("output"))
    yield from (reply.get("message"), reply.get("response"))


def _says(value: Any) -> bool:
    if value is None:
        return False
    match value:
        case str():
            return bool(value.strip())
        case list():
            return any(map(_says, value))
        case dict():
            return value.get("type") not in _THOUGHT and any(_says_in(value))
    return bool(value)


def _says_in(value: Document) -> Iterable[bool]:
    return (_says(inner) for name, inner in value.items() if name not in _LABELS and name not in _THOUGHTS)


def finish_of(document: Document) -> str:
    """A reply's or frame's own reason for its end, in the provider's words; empty where it says none."""
    return next((reason for reason in _reasons(document) if isinstance(reason, str) and reason), "")


def _reasons(document: Document) -> Iterator[Any]:
    for choice in _list(document.get("choices")):
        if isinstance(choice, dict):
            yield choice.get("finish_reason")
    yield document.get("stop_reason")
    yield document.get("done_reason")
    delta, response = document.get("delta"), document.get("response")
    if isinstance(delta, dict):
        yield delta.get("stop_reason")
    if isinstance(response, dict):
        yield from _ended(response)
    # A reply on its own may also be one that is still being made: that is asked for later.
    yield from _ended(document)
    yield document.get("status")


def _ended(response: Document) -> Iterator[Any]:
    details = response.get("incomplete_details")
    yield details.get("reason") if isinstance(details, dict) else None
    yield response["status"] if response.get("status") in ("completed", "incomplete", "cancelled") else None


def has_failed(reply: Document) -> bool:
    """Whether a whole response says of itself that it failed."""
    return reply.get("status") == "failed" and isinstance(reply.get("error"), dict)


def only_error(document: Document) -> bool:
    """Whether a document is an error and nothing of a reply beside it."""
    return "error" in document and not any(document.get(name) for name in _OF_REPLY)


_OF_REPLY: Final = ("object", "choices", "content", "output", "response")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
