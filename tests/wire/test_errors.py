"""Our errors, as the official client sees them."""

import json

import httpx2
import openai
import pytest

from sidecar.errors import ExchangeError, GuardrailTripped, Overloaded, PayloadTooLarge, UpstreamBroken
from sidecar.wire import chat, jsondoc, sse
from sidecar.wire.errors import anthropic_shape, error_headers, openai_error


def last_event(error: ExchangeError) -> bytes:
    """How a stream of chat completions ends that cannot go on."""
    (frame,) = chat.error_frames(error)
    return sse.render(jsondoc.encode(frame))


TRIPPED = GuardrailTripped("Blocked by the rule no-secrets.", param="chat.request.messages[].content")


class Provider:
    """Answers every request the same way and counts them."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.asked = 0
        self._reply = status, headers, body

    def client(self, max_retries: int = 2) -> openai.OpenAI:
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        return openai.OpenAI(api_key="k", base_url="http://provider/v1", http_client=http, max_retries=max_retries)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        status, headers, body = self._reply
        return httpx2.Response(status, headers=headers, content=body)


def failing(error: ExchangeError) -> Provider:
    body = openai_error(error)
    return Provider(error.status, error_headers(error, body), body)


def test_a_block_is_a_bad_request_and_not_asked_again() -> None:
    provider = failing(TRIPPED)
    with provider.client() as client, pytest.raises(openai.BadRequestError) as caught:
        client.models.list()
    assert caught.value.code == "guardrail_tripped"
    assert caught.value.param == "chat.request.messages[].content"
    assert caught.value.type == "invalid_request_error"
    assert "no-secrets" in caught.value.message
    assert provider.asked == 1


def test_an_overload_says_when_to_come_back_and_the_client_does() -> None:
    provider = failing(Overloaded("Too many exchanges at once.", retry_after=0))
    with provider.client(max_retries=1) as client, pytest.raises(openai.InternalServerError) as caught:
        client.models.list()
    assert caught.value.response.headers["retry-after"] == "0"
    assert provider.asked == 2


def test_an_error_in_a_stream_is_raised_and_ends_it() -> None:
    broken = UpstreamBroken("The reply ended early.")
    chunk = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\n'
    stream = [(b"content-type", b"text/event-stream")]
    provider = Provider(200, stream, chunk + last_event(broken) + chunk)
    seen: list[object] = []
    with provider.client() as client, pytest.raises(openai.APIError, match="The reply ended early") as caught:
        seen.extend(client.chat.completions.create(model="m", messages=[], stream=True))
    assert len(seen) == 1
    assert caught.value.code == "upstream_broken"
    assert provider.asked == 1


def test_the_shape_is_the_apis_own() -> None:
    assert json.loads(openai_error(PayloadTooLarge("The body is larger than 20 MB."))) == {
        "error": {
            "message": "The body is larger than 20 MB.",
            "type": "invalid_request_error",
            "param": None,
            "code": "payload_too_large",
        }
    }
    assert json.loads(openai_error(TRIPPED, "req-1"))["request_id"] == "req-1"
    assert last_event(TRIPPED) == b"data: " + openai_error(TRIPPED) + b"\n\n"


def test_headers() -> None:
    assert error_headers(UpstreamBroken("x"), b"{}") == [
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
    ]
    assert (b"retry-after", b"7") in error_headers(Overloaded("x", retry_after=7), b"{}")
    assert (b"x-should-retry", b"false") in error_headers(TRIPPED, b"{}")


def test_a_message_cannot_break_out_of_its_frame() -> None:
    event = last_event(UpstreamBroken("one\n\ndata: [DONE]\r\r\ud83d"))
    assert event.count(b"\n") == 2
    assert b"\r" not in event
    assert json.loads(event[6:])["error"]["message"].endswith("\ud83d")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_anthropics_shape_has_a_type_for_each_status(status: int, kind: str) -> None:
    error = GuardrailTripped("Blocked.", param="messages.request.system")
    error.status = status
    assert anthropic_shape(error) == {
        "type": "error",
        "error": {
            "type": kind,
            "message": "Blocked.",
            "code": "guardrail_tripped",
            "param": "messages.request.system",
            "details": {"error_code": "guardrail_tripped"},
        },
    }
