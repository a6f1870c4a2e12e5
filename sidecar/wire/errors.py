"""An error of ours in the shape of the API that was called."""

from typing import Any

from ..errors import AllTargetsFailed, ExchangeError, StructuredOutputInvalid
from . import jsondoc


def openai_error(error: ExchangeError, request_id: str | None = None) -> bytes:
    """The body of an error reply: `{"error": {"message", "type", "param", "code"}}` and the `request_id`."""
    body = openai_shape(error)
    if request_id is not None:
        body["request_id"] = request_id
    return jsondoc.encode(body)


def error_headers(error: ExchangeError, body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of an error reply with this body, names in lower case."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.final:
        headers.append((b"x-should-retry", b"false"))
    return [*headers, *error.headers]


def openai_shape(error: ExchangeError) -> dict[str, Any]:
    fields = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return {"error": {**fields, **_more(error)}}


def _more(error: ExchangeError) -> dict[str, Any]:
    """What an error says beside its message."""
    match error:
        case AllTargetsFailed():
            return {"attempts": list(error.attempts)}
        case StructuredOutputInvalid():
            return {"attempts": error.attempts, "last_error": dict(error.last_error), "output": error.output}
        case _:
            return {}


# By status, as Anthropic's API reference lists them.
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def anthropic_shape(error: ExchangeError) -> dict[str, Any]:
    """`{"type": "error", "error": {"type", "message"}}`, with our `code` and `param` beside them.

    The code stands in `details.error_code` too: there the official client looks for it.
    """
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {
        "type": "error",
        "error": {
            "type": kind,
            "message": error.message,
            "code": error.code,
            "param": error.param,
            "details": {"error_code": error.code},
            **_more(error),
        },
    }
