"""An error of ours in the shape of the API that was called."""

from typing import Any

from ..errors import ExchangeError, GuardrailTripped
from . import jsondoc, sse

# Asking again would get the same answer.
_FINAL = (GuardrailTripped,)


def openai_error(error: ExchangeError, request_id: str | None = None) -> bytes:
    """The body of an error reply: `{"error": {"message", "type", "param", "code"}}` and the `request_id`."""
    body = _openai_shape(error)
    if request_id is not None:
        body["request_id"] = request_id
    return jsondoc.encode(body)


def openai_error_event(error: ExchangeError) -> bytes:
    """The last frame of a stream that cannot go on. The official client raises it as APIError."""
    return sse.render(jsondoc.encode(_openai_shape(error)))


def error_headers(error: ExchangeError, body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of an error reply with this body, names in lower case."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    if isinstance(error, _FINAL):
        headers.append((b"x-should-retry", b"false"))
    return headers


def _openai_shape(error: ExchangeError) -> dict[str, Any]:
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
