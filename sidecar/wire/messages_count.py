"""Anthropic's `/v1/messages/count_tokens`: the texts of a request to `/v1/messages`; the reply is a number.

No answer can stand in the model's place here: a rule that would finish a message blocks the count.
"""

from typing import Any

from ..core.usage import Usage
from . import messages

NAME = "count_tokens"
DONE = messages.DONE
NAMES = messages.NAMES
COPIES = messages.COPIES
UNKNOWN = messages.UNKNOWN
OPAQUE = messages.OPAQUE
REQUEST_SURFACES = messages.REQUEST_SURFACES
REPLY_SURFACES = (messages.ERROR, messages.OPAQUE, messages.UNKNOWN_REPLY)

request_slots = messages.request_slots
but_tools = messages.but_tools
reply_texts = messages.reply_texts
plain = messages.plain
choices_in = messages.choices_in
ended = messages.ended
is_error = messages.is_error
error_text = messages.error_text
spoil = messages.spoil
event_of = messages.event_of
writer = messages.writer
error_body = messages.error_body
error_frames = messages.error_frames


def usage(document: dict[str, Any]) -> Usage | None:
    """A count uses no tokens."""
    return None


ask_usage = messages.ask_usage
hosted = messages.hosted


def answer(identity: dict[str, Any], text: str) -> dict[str, Any] | None:
    return None


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    return b""
