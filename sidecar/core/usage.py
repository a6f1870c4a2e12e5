"""How many tokens an exchange has used, as far as the provider has told."""

from typing import Any, NamedTuple

# No context window and no reply is near it: a larger number is a provider's mistake, not a count.
MOST_TOKENS = 1_000_000_000


class Usage(NamedTuple):
    """Tokens of one exchange; None where the provider has not reported them, which is not zero.

    `cached` (read from a cache) and `cache_write` are parts of `prompt`, `reasoning` is a part of `completion`.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int:
        """Prompt and completion together, as far as they are known."""
        return (self.prompt or 0) + (self.completion or 0)


NOT_REPORTED = Usage()


def count(value: Any) -> int | None:
    """A number of tokens as it stands in a document; None for whatever is none, a bool and a float included."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def added(one: Usage, other: Usage) -> Usage:
    """Of two attempts, together."""
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in zip(one, other, strict=True)))


def merged(old: Usage, new: Usage) -> Usage:
    """What is known after another report. Reports are running totals: the newer number stands, nothing is added.

    None never erases a number. A prompt that is told without its cached part may have left that part out, so it
    never lessens one that was told with it.
    """
    prompt = old.prompt if new.prompt is None else new.prompt
    if prompt is not None and old.prompt is not None and old.cached and new.cached is None:
        prompt = max(prompt, old.prompt)
    return Usage(
        prompt,
        old.completion if new.completion is None else new.completion,
        old.cached if new.cached is None else new.cached,
        old.cache_write if new.cache_write is None else new.cache_write,
        old.reasoning if new.reasoning is None else new.reasoning,
    )
