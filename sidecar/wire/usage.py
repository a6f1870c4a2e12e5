"""Reads the numbers of tokens that providers report. Each API's shape is told in its own reference.

- OpenAI, chat/completions and embeddings: `prompt_tokens`, `completion_tokens`, and their `*_tokens_details` with
  `cached_tokens`, `cache_write_tokens` and `reasoning_tokens`. The prompt holds what was cached.
- OpenAI, Responses, images and audio: the same with `input_` and `output_` in the place of the first words.
- DeepSeek: `prompt_cache_hit_tokens` beside `prompt_tokens`; Moonshot: `cached_tokens` beside it.
- Anthropic: `input_tokens` holds neither what was read from the cache nor what was written to it; those stand apart.
"""

from collections.abc import Sequence
from typing import Any

from ..core.usage import Usage, count

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION_DETAILS = ("completion_tokens_details", "output_tokens_details")
# Beside the prompt's number, where the details do not tell.
_CACHED = ("prompt_cache_hit_tokens", "cached_tokens")
_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"
ANTHROPIC_ONLY = frozenset((_READ, _WRITTEN))
"""Names that tell Anthropic's reports from others with `input_tokens`."""


def openai(reported: Any) -> Usage | None:
    """Of an object as OpenAI and its kind report it; None where it tells nothing."""
    if not isinstance(reported, dict):
        return None
    asked, answered = _details(reported, _PROMPT_DETAILS), _details(reported, _COMPLETION_DETAILS)
    cached = count(asked.get("cached_tokens"))
    return known(
        Usage(
            _first(reported, _PROMPT),
            _first(reported, _COMPLETION),
            _first(reported, _CACHED) if cached is None else cached,
            count(asked.get("cache_write_tokens")),
            count(answered.get("reasoning_tokens")),
        )
    )


def anthropic(reported: Any) -> Usage | None:
    """Of an object as Anthropic reports it; None where it tells nothing."""
    if not isinstance(reported, dict):
        return None
    fresh = count(reported.get("input_tokens"))
    read, written = count(reported.get(_READ)), count(reported.get(_WRITTEN))
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    thought = count(_details(reported, _COMPLETION_DETAILS).get("thinking_tokens"))
    return known(Usage(prompt, count(reported.get("output_tokens")), read, written, thought))


def known(usage: Usage) -> Usage | None:
    """None for a report that tells nothing. No prompt comes to no tokens: 0 is what servers say that do not count."""
    if usage.prompt == 0:
        usage = usage._replace(prompt=None, completion=usage.completion or None)
    return None if usage.prompt is None and usage.completion is None else usage


def _first(holder: dict[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        number = count(holder.get(name))
        if number is not None:
            return number
    return None


def _details(holder: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return next((holder[name] for name in names if isinstance(holder.get(name), dict)), {})
