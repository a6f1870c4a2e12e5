"""`scrub`: what stands in for findings, and how long texts may be. Always redact first, then bound."""

from dataclasses import dataclass
from functools import cache

from pydantic import Field

from ..config import Strict
from ..core.decision import PASS, Decision, Replace
from ..core.exchange import Exchange, Request
from ..core.stage import Visit
from ..core.surface import Kind, watched
from ..text.detectors import resolve
from ..text.matcher import Shape
from ..text.rules import Ruleset
from ..text.scrubber import scrub
from .guardrails import DEFAULT_REPLACEMENT


class MaxCharsConfig(Strict):
    """Bounds in characters, applied after redaction."""

    tool_results: int | None = Field(default=None, ge=1, description="Longest tool result that goes to a model.")
    errors: int = Field(default=512, ge=16, description="Longest excerpt of a foreign error text in a log line.")


class ScrubConfig(Strict):
    """What all rules share."""

    replacement: str = Field(
        default=DEFAULT_REPLACEMENT,
        description="What stands in for a finding; {name} is the detector's name.",
    )
    hash_key: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="The secret under which action hash makes its digests, best as ${NAME}; at least 16 characters.",
    )
    max_chars: MaxCharsConfig = Field(default=MaxCharsConfig(), description="Bounds, applied after redaction.")


def excerpt(text: str, limit: int) -> str:
    """The text's first `limit` characters with a note of the total. Give it redacted text only."""
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text)} characters in all]"


# What is looked for in a foreign error text, whatever the policy's own rules are: it goes to the log.
_ERROR_DETECTORS = (
    *("assignments", "openai_key", "anthropic_key", "github_token", "aws_access_key", "google_api_key"),
    *("slack_token", "bearer_token", "jwt", "private_key", "url_password", "email", "credit_card"),
)


@cache
def _error_rules() -> Ruleset:
    return Ruleset([Shape.of(d.name, d.regex, d.check, is_ours=True) for d in resolve(_ERROR_DETECTORS)])


def error_excerpt(text: str, limit: int) -> str:
    """A foreign error text as it may be logged: redacted, then bounded."""
    return excerpt(scrub(_error_rules(), text)[0], limit)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The stage: cuts tool results that are too long. It stands inside the guardrails, so they see the whole."""

    tool_results: int
    name: str = "scrub"

    def open(self, exchange: Exchange) -> Visit:
        return BoundsVisit(self.tool_results)


class BoundsVisit(Visit):
    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def request(self, request: Request) -> Decision:
        slots = watched(request.slots, frozenset((Kind.TOOL_RESULTS,)))
        edits = tuple((slot, excerpt(slot.text, self._limit)) for slot in slots if len(slot.text) > self._limit)
        return Replace(edits) if edits else PASS
