"""What went wrong at a provider, in the words of the Responses API."""

from typing import Any

from ... import jsondoc
from ...stream import Document

# What the client called the field that the provider complains about.
_FIELDS = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "include",
    "stream_options": "stream",
}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_SERVER_FAULTS = 500


def error_body(document: Document, status: int) -> Document:
    """An error reply of any server that calls itself compatible: `{"error": {"message", "type", "param", "code"}}`."""
    return {"error": error_of(document, status)}


def error_of(document: Document, status: int) -> Document:
    """The error in a reply or frame. Servers put it under `error`, as an object or a text, or at the top."""
    error = document.get("error") or document
    if not isinstance(error, dict):
        error = {"message": error}
    return {
        "message": _message(error, status),
        "type": _word(error.get("type")) or _type(status),
        "param": _param(error.get("param")),
        "code": _word(error.get("code")),
    }


def _message(error: Document, status: int) -> str:
    """FastAPI says `detail`, a text or a list of faults."""
    said = error.get("message") or error.get("detail")
    if isinstance(said, str):
        return said
    return jsondoc.encode(said).decode() if said else f"The provider answered with status {status} and no message."


def _type(status: int) -> str:
    return _TYPES.get(status, "server_error" if status >= _SERVER_FAULTS else "invalid_request_error")


def _word(value: Any) -> str | None:
    """Some servers say the status for a code."""
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) and value else None


def _param(value: Any) -> str | None:
    """A path that starts with the chat field's name. What follows counts messages, which the client has not."""
    if not isinstance(value, str) or not value:
        return None
    field = value.split(".", 1)[0].split("[", 1)[0]
    return _FIELDS.get(field, value)
