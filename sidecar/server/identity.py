"""Which session an exchange belongs to, told from what agents already send.

In this order: the header `x-sidecar-session`, `metadata.session_id`, `prompt_cache_key`, `user`, and else how the
conversation begins. The first two name one conversation; the others may be shared by several, and a session found by
them shows an exchange nothing that it did not bring along itself.
"""

import hashlib
from typing import Any, Final

from ..wire import jsondoc
from .headers import Headers, value_of

SESSION_HEADER: Final = b"x-sidecar-session"


def session_of(headers: Headers, document: dict[str, Any]) -> tuple[str, bool]:
    """The session's key, and whether it was declared to be one conversation."""
    header = value_of(headers, SESSION_HEADER)
    if header:
        return f"header:{header.decode('latin-1')}", True
    metadata = document.get("metadata")
    declared = metadata.get("session_id") if isinstance(metadata, dict) else None
    if isinstance(declared, str) and declared:
        return f"metadata:{declared}", True
    for field in ("prompt_cache_key", "user"):
        value = document.get(field)
        if isinstance(value, str) and value:
            return f"{field}:{value}", False
    return f"beginning:{beginning(document)}", False


def beginning(document: dict[str, Any]) -> str:
    """A digest of the conversation up to its first user message, as the client sent it."""
    messages = document.get("messages")
    opening: list[Any] = []
    for message in messages if isinstance(messages, list) else ():
        opening.append(message)
        if isinstance(message, dict) and message.get("role") == "user":
            break
    return hashlib.sha256(jsondoc.encode(opening)).hexdigest()
