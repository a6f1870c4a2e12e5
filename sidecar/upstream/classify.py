"""What kind of failure an attempt ended with, told from typed facts and never from an error's message.

An error's words for machines (code, type, status, reason) are looked up in the tables below, which hold what the
providers document:

- OpenAI: platform.openai.com/docs/guides/error-codes and the `ResponseErrorCode` of its OpenAPI description
- Azure: learn.microsoft.com/azure/ai-services/openai (content filter, quota and limits)
- Anthropic: docs.claude.com/en/api/errors, and `details.error_code` for spend limits
- Gemini: ai.google.dev/gemini-api/docs/troubleshooting, cloud.google.com/apis/design/errors (google.rpc.Code and
  ErrorInfo reasons)
- Groq (console.groq.com/docs/errors: 498), DeepSeek (api-docs.deepseek.com/quick_start/error_codes: 402, 503),
  OpenRouter (openrouter.ai/docs/api-reference/errors: numbers as codes, 402, 408, 502, 503), GitHub Copilot
- vLLM (`param: input_tokens`, vllm/exceptions.py), llama.cpp (tools/server: `exceed_context_size_error`,
  `unavailable_error`), Ollama (openai/openai.go: `not_found_error`; its own API has no codes)
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ..errors import ExchangeError, UpstreamBroken, UpstreamTimeout, UpstreamUnreachable


class Failure(StrEnum):
    """How an attempt ended."""

    NONE = "none"
    NETWORK = "network"
    TIMEOUT = "timeout"
    REQUEST_TIMEOUT = "request_timeout"
    LOCKED = "locked"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    OVERLOADED = "overloaded"
    EMPTY = "empty"
    QUOTA = "quota"
    CONTEXT_WINDOW = "context_window"
    CONTENT_FILTER = "content_filter"
    MODEL_NOT_FOUND = "model_not_found"
    AUTH = "auth"
    BAD_REQUEST = "bad_request"
    BLANK = "blank"


TRANSIENT: Final = frozenset(
    (
        Failure.NETWORK,
        Failure.TIMEOUT,
        Failure.REQUEST_TIMEOUT,
        Failure.LOCKED,
        Failure.RATE_LIMITED,
        Failure.SERVER_ERROR,
        Failure.OVERLOADED,
        Failure.EMPTY,
    )
)
"""What may go away by itself."""

ONCE: Final = frozenset((Failure.QUOTA, Failure.CONTEXT_WINDOW, Failure.BLANK))
"""What the same request gets at the same target for certain: never asked again there."""

GROUPS: Final[Mapping[str, frozenset[Failure]]] = {"transient": TRANSIENT}
"""Names for several classes, for policies."""


class Phase(StrEnum):
    """How far an attempt had come. After `CONTENT` nothing is asked again."""

    CONNECT = "connect"
    SENT = "sent"
    HEADERS = "headers"
    BODY = "body"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an attempt's end.

    `status` is 0 without a reply. `names` and `param` are an error's words, from `words_of`. `said_error`: the reply
    holds an error, as a body or as an event of a stream that began well. `error`: what the client of the provider
    raised. `finish` is the reply's own reason for its end in the provider's words; `spoke`: it held content, be it
    text, a refusal, a tool call or anything else but reasoning.
    """

    phase: Phase = Phase.BODY
    status: int = 0
    names: tuple[str, ...] = ()
    param: str = ""
    said_error: bool = False
    error: ExchangeError | None = None
    finish: str = ""
    spoke: bool = True


_SPECIFIC: Final[Mapping[Failure, Collection[str]]] = {
    Failure.QUOTA: (
        # OpenAI; the four limits share the type insufficient_quota.
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
        # Anthropic
        "billing_error",
        "enforced_spend_limit_reached",
        # Gemini, OpenRouter, Copilot
        "quota_exceeded",
        "payment_required",
        "billing_disabled",
    ),
    Failure.CONTEXT_WINDOW: (
        "context_length_exceeded",
        "context_window_exceeded",
        "max_prompt_tokens_exceeded",
        "model_max_prompt_tokens_exceeded",
        "exceed_context_size_error",
    ),
    Failure.CONTENT_FILTER: (
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "moderation_blocked",
        "invalid_prompt",
        "image_content_policy_violation",
    ),
    Failure.MODEL_NOT_FOUND: (
        "model_not_found",
        "deploymentnotfound",
        "not_found_error",
        "not_found",
        "notfounderror",
        "unsupported_model",
        "model_not_supported",
    ),
    Failure.AUTH: (
        "invalid_api_key",
        "account_deactivated",
        "authentication_error",
        "authenticationerror",
        "permission_error",
        "permission_denied",
        "unauthenticated",
        "api_key_invalid",
        "api_key_expired",
        "insufficient_permissions",
    ),
}
# These say what a status that may pass, or no status at all, means. They never make a 400 worth repeating.
_GENERAL: Final[Mapping[Failure, Collection[str]]] = {
    Failure.OVERLOADED: (
        "overloaded_error",
        "overloaded",
        "server_is_overloaded",
        "server_overloaded",
        "engine_overloaded",
        "slow_down",
        "service_unavailable",
        "service_unavailable_error",
        "unavailable",
        "unavailable_error",
        "capacity_exceeded",
        "service_tier_capacity_exceeded",
    ),
    Failure.RATE_LIMITED: (
        "rate_limit_exceeded",
        "rate_limit_error",
        "rate_limit_reached",
        "resource_exhausted",
        "too_many_requests",
        "toomanyrequests",
    ),
    Failure.TIMEOUT: ("timeout_error", "timeout", "deadline_exceeded", "vector_store_timeout"),
    Failure.SERVER_ERROR: ("server_error", "api_error", "internal", "internal_error", "internal_server_error"),
    Failure.BAD_REQUEST: (
        "invalid_request_error",
        "bad_request",
        "badrequesterror",
        "invalid_argument",
        "invalid_value",
        "request_too_large",
    ),
}
_BY_STATUS: Final[Mapping[int, Failure]] = {
    401: Failure.AUTH,
    402: Failure.QUOTA,
    403: Failure.AUTH,
    404: Failure.MODEL_NOT_FOUND,
    408: Failure.REQUEST_TIMEOUT,
    409: Failure.LOCKED,
    429: Failure.RATE_LIMITED,
    498: Failure.OVERLOADED,
    503: Failure.OVERLOADED,
    504: Failure.TIMEOUT,
    524: Failure.TIMEOUT,
    529: Failure.OVERLOADED,
}
# vLLM and Azure name the field whose length was wrong.
_CONTEXT_PARAMS: Final = frozenset(("input_tokens",))
# Ends by length: OpenAI's chat completions and Responses, Anthropic, Gemini.
_LENGTH: Final = frozenset(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"))

_FILTERED: Final = frozenset(("content_filter", "safety", "prohibited_content", "blocklist", "refusal"))


def _inverse(table: Mapping[Failure, Collection[str]]) -> Mapping[str, Failure]:
    return {word: failure for failure, words in table.items() for word in words}


_SPECIFIC_WORDS: Final = _inverse(_SPECIFIC)
_GENERAL_WORDS: Final = _inverse(_GENERAL)


def classify(facts: Facts, own: Mapping[str, Failure] | None = None) -> Failure:
    """The class of an attempt's end. `own` holds words of the policy's, lower case; they come before the tables."""
    if facts.error is not None:
        return _of_exception(facts.error)
    status = facts.status if facts.status >= 400 else status_in(facts)
    if status >= 400 or facts.said_error:
        return _named(facts, status, own or {}) or _of_status(status)
    return _of_content(facts)


def _of_exception(error: ExchangeError) -> Failure:
    match error:
        case UpstreamTimeout():
            return Failure.TIMEOUT
        case UpstreamUnreachable() | UpstreamBroken():
            return Failure.NETWORK
    return Failure.BAD_REQUEST  # one of ours: asking again would not mend it


def status_in(facts: Facts) -> int:
    """A status that an error event says: Gemini and OpenRouter give numbers as codes."""
    numbers = (int(name) for name in facts.names if name.isascii() and name.isdigit() and len(name) == 3)
    return next((number for number in numbers if 400 <= number < 600), 0) if facts.said_error else 0


def _named(facts: Facts, status: int, own: Mapping[str, Failure]) -> Failure | None:
    for table in (own, _SPECIFIC_WORDS):
        if (failure := _first(table, facts.names)) is not None:
            return failure
    if facts.param in _CONTEXT_PARAMS and status in (0, 400, 413, 422):
        return Failure.CONTEXT_WINDOW
    if status == 0 or _of_status(status) in _NAMEABLE:
        return _first(_GENERAL_WORDS, facts.names)
    return None


# A status that only says that something is wrong now.
_NAMEABLE: Final = frozenset((Failure.RATE_LIMITED, Failure.SERVER_ERROR, Failure.OVERLOADED))


def _first(table: Mapping[str, Failure], names: Iterable[str]) -> Failure | None:
    return next((table[name] for name in names if name in table), None)


def _of_status(status: int) -> Failure:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Failure.BAD_REQUEST if 400 <= status < 500 else Failure.SERVER_ERROR


def _of_content(facts: Facts) -> Failure:
    """A reply without an error: whether it said anything."""
    if facts.spoke:
        return Failure.NONE
    finish = facts.finish.lower()
    if finish in _LENGTH:
        return Failure.BLANK
    if finish in _FILTERED:
        return Failure.CONTENT_FILTER
    return Failure.NONE if finish else Failure.EMPTY


# --- an error's words ---

_FIELDS: Final = ("code", "type", "status", "reason")
_INSIDE: Final = ("innererror", "details", "error", "response", "metadata")
# The deepest of the documented shapes lies at 4; there are seldom more than two details.
_DEPTH: Final = 5
_MOST: Final = 16


def words_of(document: Any) -> tuple[tuple[str, ...], str]:
    """The words for machines in an error reply or an error event, lower case, and its `param`.

    Reads `{"error": {"code", "type", "param", "innererror": {"code"}}}` (OpenAI, Azure), the same in a list and with
    `status` and `details: [{"reason"}]` (Gemini), `{"type": "error", "error": {"type", "details": {"error_code"}}}`
    (Anthropic), the fields without `error` around them (vLLM, Responses' `error` event), and `response.error` of
    Responses' `response.failed`. Anything else gives no words.
    """
    found = list(_objects(document, _DEPTH))
    words: dict[str, None] = {}
    for one in found:
        for key in (*_FIELDS, "error_code"):
            if (word := _word(one.get(key))) and word != "error":
                words.setdefault(word)
    params = (one["param"] for one in found if isinstance(one.get("param"), str))
    return tuple(words)[:_MOST], next(params, "")


def _objects(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The objects in which an error tells of itself, the outer ones first."""
    match value:
        case dict() if depth:
            yield value
            for key in _INSIDE:
                yield from _objects(value.get(key), depth - 1)
        case list() if depth:
            for item in value[:4]:
                yield from _objects(item, depth - 1)


def _word(value: Any) -> str:
    match value:
        case bool():
            return ""
        case int():
            return str(value) if 0 <= value < 1000 else ""
        case str():
            return value.lower() if len(value) <= 100 else ""
    return ""


# --- what a policy chooses ---


@dataclass(frozen=True, slots=True)
class Choice:
    """Classes and statuses that a policy names."""

    classes: frozenset[Failure] = frozenset()
    statuses: frozenset[int] = frozenset()

    @classmethod
    def of(cls, named: Sequence[str | int]) -> "Choice":
        """From names of groups, of classes, and statuses. Raises ValueError for a name that is none."""
        classes: set[Failure] = set()
        for name in named:
            if isinstance(name, str):
                classes |= GROUPS.get(name) or {Failure(name)}
        return cls(frozenset(classes), frozenset(name for name in named if isinstance(name, int)))

    def covers(self, failure: Failure, status: int = 0) -> bool:
        return failure in self.classes or status in self.statuses
