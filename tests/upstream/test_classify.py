"""What kind of failure it is, from what providers answer."""

import re
from pathlib import Path
from typing import Any

import pytest

from sidecar.errors import InvalidRequest, UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from sidecar.upstream.classify import ONCE, TRANSIENT, Choice, Facts, Failure, Phase, classify, words_of


def answered(status: int, body: Any = None) -> Failure:
    names, param = words_of(body)
    return classify(Facts(Phase.BODY, status, names, param, said_error=status < 400))


def openai(code: Any, kind: Any = None, param: Any = None) -> dict[str, Any]:
    return {"error": {"message": "words for people", "type": kind, "param": param, "code": code}}


def anthropic(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "words for people", **more}, "request_id": "req_1"}


def gemini(code: int, status: str, *details: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"error": {"code": code, "message": "words for people", "status": status, "details": list(details)}}]


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, Failure.SERVER_ERROR),
        (400, Failure.BAD_REQUEST),
        (401, Failure.AUTH),
        (402, Failure.QUOTA),
        (403, Failure.AUTH),
        (404, Failure.MODEL_NOT_FOUND),
        (408, Failure.REQUEST_TIMEOUT),
        (409, Failure.LOCKED),
        (413, Failure.BAD_REQUEST),
        (418, Failure.BAD_REQUEST),
        (422, Failure.BAD_REQUEST),
        (429, Failure.RATE_LIMITED),
        (498, Failure.OVERLOADED),
        (500, Failure.SERVER_ERROR),
        (502, Failure.SERVER_ERROR),
        (503, Failure.OVERLOADED),
        (504, Failure.TIMEOUT),
        (520, Failure.SERVER_ERROR),
        (529, Failure.OVERLOADED),
        (599, Failure.SERVER_ERROR),
    ],
)
def test_a_status_alone(status: int, failure: Failure):
    assert answered(status) is failure


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        # OpenAI
        (429, openai("insufficient_quota", "insufficient_quota"), Failure.QUOTA),
        (429, openai("project_spend_limit_exceeded", "insufficient_quota"), Failure.QUOTA),
        (429, openai("rate_limit_exceeded", "tokens"), Failure.RATE_LIMITED),
        (429, openai("billing_hard_limit_reached", "invalid_request_error"), Failure.QUOTA),
        (400, openai("billing_hard_limit_reached", "invalid_request_error"), Failure.QUOTA),
        (400, openai("context_length_exceeded", "invalid_request_error", "messages"), Failure.CONTEXT_WINDOW),
        (404, openai("model_not_found", "invalid_request_error"), Failure.MODEL_NOT_FOUND),
        (400, openai("invalid_value", "invalid_request_error", "temperature"), Failure.BAD_REQUEST),
        (401, openai("invalid_api_key", "invalid_request_error"), Failure.AUTH),
        (503, openai("slow_down", "service_unavailable_error"), Failure.OVERLOADED),
        (500, openai("server_error", "server_error"), Failure.SERVER_ERROR),
        (429, openai(None, "requests"), Failure.RATE_LIMITED),
        # Azure
        (
            400,
            {
                "error": {
                    "code": "content_filter",
                    "param": "prompt",
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            },
            Failure.CONTENT_FILTER,
        ),
        (404, {"error": {"code": "DeploymentNotFound", "message": "…"}}, Failure.MODEL_NOT_FOUND),
        (429, {"error": {"code": "429", "message": "…"}}, Failure.RATE_LIMITED),
        # Anthropic
        (529, anthropic("overloaded_error"), Failure.OVERLOADED),
        (500, anthropic("overloaded_error"), Failure.OVERLOADED),
        (429, anthropic("rate_limit_error"), Failure.RATE_LIMITED),
        (429, anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}), Failure.QUOTA),
        (402, anthropic("billing_error"), Failure.QUOTA),
        (413, anthropic("request_too_large"), Failure.BAD_REQUEST),
        (404, anthropic("not_found_error"), Failure.MODEL_NOT_FOUND),
        (500, anthropic("api_error"), Failure.SERVER_ERROR),
        # Gemini
        (429, gemini(429, "RESOURCE_EXHAUSTED"), Failure.RATE_LIMITED),
        (400, gemini(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), Failure.AUTH),
        (400, gemini(400, "INVALID_ARGUMENT"), Failure.BAD_REQUEST),
        (503, gemini(503, "UNAVAILABLE"), Failure.OVERLOADED),
        # compatible servers
        (400, {"object": "error", "type": "BadRequestError", "param": None, "code": 400}, Failure.BAD_REQUEST),
        (400, openai(400, "BadRequestError", "input_tokens"), Failure.CONTEXT_WINDOW),
        (400, openai(400, "exceed_context_size_error"), Failure.CONTEXT_WINDOW),
        (413, openai("model_max_prompt_tokens_exceeded"), Failure.CONTEXT_WINDOW),
        (503, openai(503, "unavailable_error"), Failure.OVERLOADED),
        (404, {"error": "model not found"}, Failure.MODEL_NOT_FOUND),
        (404, openai(None, "not_found_error"), Failure.MODEL_NOT_FOUND),
        (498, openai("capacity_exceeded"), Failure.OVERLOADED),
        (422, {"detail": [{"loc": ["body"], "type": "missing"}]}, Failure.BAD_REQUEST),
    ],
)
def test_a_body_says_more(status: int, body: Any, failure: Failure):
    assert answered(status, body) is failure


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
@pytest.mark.parametrize("code", ["server_error", "overloaded_error", "rate_limit_exceeded", "timeout", "503"])
def test_no_word_makes_a_permanent_status_worth_repeating(status: int, code: str):
    assert answered(status, openai(code)) not in TRANSIENT


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        (openai("overloaded", "server_error"), Failure.OVERLOADED),
        (openai(None, None), Failure.SERVER_ERROR),
        (anthropic("overloaded_error"), Failure.OVERLOADED),
        (anthropic("invalid_request_error"), Failure.BAD_REQUEST),
        (openai(429), Failure.RATE_LIMITED),
        (openai("502"), Failure.SERVER_ERROR),
        (openai(404), Failure.MODEL_NOT_FOUND),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, Failure.RATE_LIMITED),
        ({"type": "response.failed", "response": {"error": {"code": "server_error"}}}, Failure.SERVER_ERROR),
        ({"type": "error", "code": "context_length_exceeded", "param": None}, Failure.CONTEXT_WINDOW),
        ({"error": "out of memory"}, Failure.SERVER_ERROR),
    ],
)
def test_an_error_event_in_a_stream_that_began_well(event: Any, failure: Failure):
    assert answered(200, event) is failure


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (UpstreamUnreachable("…"), Failure.NETWORK),
        (UpstreamBroken("…"), Failure.NETWORK),
        (UpstreamTimeout("connect", 5), Failure.TIMEOUT),
        (UpstreamTimeout("first_byte", 5), Failure.TIMEOUT),
        (UpstreamTimeout("idle", 5), Failure.TIMEOUT),
        (InvalidRequest("…"), Failure.BAD_REQUEST),
    ],
)
def test_what_the_client_of_the_provider_raises(error: Any, failure: Failure):
    assert classify(Facts(Phase.SENT, error=error)) is failure
    assert classify(Facts(Phase.BODY, 200, error=error)) is failure


@pytest.mark.parametrize(
    ("finish", "spoke", "failure"),
    [
        ("stop", True, Failure.NONE),
        ("stop", False, Failure.NONE),
        ("length", True, Failure.NONE),
        ("length", False, Failure.BLANK),
        ("max_tokens", False, Failure.BLANK),
        ("max_output_tokens", False, Failure.BLANK),
        ("MAX_TOKENS", False, Failure.BLANK),
        ("content_filter", True, Failure.NONE),
        ("content_filter", False, Failure.CONTENT_FILTER),
        ("", False, Failure.EMPTY),
        ("", True, Failure.NONE),
    ],
)
def test_a_reply_that_says_nothing(finish: str, spoke: bool, failure: Failure):
    assert classify(Facts(Phase.BODY, 200, finish=finish, spoke=spoke)) is failure


def test_messages_are_never_read():
    body = {"error": {"message": "context_length_exceeded insufficient_quota", "type": None, "code": None}}
    assert words_of(body) == ((), "")
    assert answered(400, body) is Failure.BAD_REQUEST


def test_the_policy_has_words_of_its_own():
    names, param = words_of(openai(None, "BadRequestError"))
    facts = Facts(Phase.BODY, 400, names, param)
    assert classify(facts) is Failure.BAD_REQUEST
    assert classify(facts, {"badrequesterror": Failure.CONTEXT_WINDOW}) is Failure.CONTEXT_WINDOW


@pytest.mark.parametrize("body", [None, 1, "text", [], [[]], {}, {"error": None}, {"error": {"code": {"a": [True]}}}])
def test_a_body_of_another_shape_has_no_words(body: Any):
    assert words_of(body) == ((), "")


def test_a_hostile_body_is_read_no_deeper_than_any_documented_one():
    deep: Any = {"code": "insufficient_quota"}
    for _ in range(100):
        deep = {"error": deep}
    assert words_of(deep) == ((), "")
    assert words_of({"error": {"code": "x" * 1000, "type": "y"}}) == (("y",), "")


def test_choices_are_groups_classes_and_statuses():
    chosen = Choice.of(["transient", "quota", 418])
    assert all(chosen.covers(failure, 0) for failure in (*TRANSIENT, Failure.QUOTA))
    assert chosen.covers(Failure.BAD_REQUEST, 418)
    assert not chosen.covers(Failure.BAD_REQUEST, 400)
    assert not Choice.of([429, 500]).covers(Failure.NETWORK, 0)
    with pytest.raises(ValueError, match="nonsense"):
        Choice.of(["nonsense"])


def test_nothing_hopeless_is_called_transient():
    assert not ONCE & TRANSIENT


def test_every_class_is_documented_with_its_group():
    text = (Path(__file__).parents[2] / "docs" / "resilience.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (yes)? ?\|$", text, re.MULTILINE))
    assert rows.keys() == set(Failure) - {Failure.NONE}
    assert {name for name, marked in rows.items() if marked} == TRANSIENT
