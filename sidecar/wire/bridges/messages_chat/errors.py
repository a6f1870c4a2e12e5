"""An error of a chat provider, as Messages says it."""

from typing import Any

from ... import jsondoc
from ...stream import Document

# platform.claude.com/docs/en/api/errors
_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# What providers say in an error that comes without a status, in the middle of a stream.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "overloaded_error": 529,
}
_KEPT = ("code", "param")


def is_error(document: Document) -> bool:
    return bool(document.get("error"))


def message(document: Document, status: int | None = None) -> Document:
    """The envelope. `code` and `param` go along where the provider gave them; a shape that is not known is quoted
    whole. Without a status the error's own words tell it."""
    error = document.get("error")
    said: Document = error if isinstance(error, dict) else document
    text = next((words for words in _words(error, said) if isinstance(words, str) and words), None)
    body = {"type": _type(said, status), "message": text or jsondoc.encode(document).decode()}
    kept = {field: said[field] for field in _KEPT if said.get(field) is not None}
    return {"type": "error", "error": body | kept}


def _words(error: Any, said: Document) -> tuple[Any, ...]:
    return error, said.get("message"), said.get("detail")


def _type(said: Document, status: int | None) -> str:
    known = status or _status(said.get("code")) or _status(said.get("type")) or 500
    return _TYPES.get(known) or ("invalid_request_error" if 400 <= known < 500 else "api_error")


def _status(said: Any) -> int | None:
    if isinstance(said, str):
        return _STATUSES.get(said) or (int(said) if said.isdecimal() and said.isascii() and len(said) == 3 else None)
    return said if type(said) is int and 400 <= said < 600 else None
