"""`prices`: what tokens and calls cost. Exact: all sums are whole numbers of billionths of the currency.

A price stands per million tokens, so a cost is first summed in billionths of a millionth and then rounded once, half
up, for the whole exchange.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from ..config import Strict
from ..core.usage import Usage

NANO: Final = 10**9
"""Units of money in one of the currency."""
PER: Final = 10**6
"""A price is for so many tokens."""

_FORM = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_DECIMAL = re.compile(_FORM)


def money(value: Any) -> int:
    """A decimal as a policy writes it, in units of 1/NANO. Raises ValueError.

    A number without quotes must be whole: what YAML makes of others need not be what was written.
    """
    written = str(value) if type(value) is int else value
    if not isinstance(written, str) or not _DECIMAL.fullmatch(written):
        raise ValueError('expected a decimal in quotes such as "2.50", at most 9 digits on each side of the point')
    whole, _, part = written.partition(".")
    return int(whole) * NANO + int(part.ljust(9, "0"))


Money = Annotated[
    int,
    BeforeValidator(money),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": f"^{_FORM}$"}, {"type": "integer", "minimum": 0}]}),
]
"""Money in units of 1/NANO; written as a decimal in quotes: "2.50"."""


class PriceConfig(Strict):
    """What a model's tokens cost, each as a decimal for a million tokens."""

    prompt: Money = Field(description="A million tokens of prompts.")
    completion: Money = Field(description="A million tokens of completions.")
    cached: Money | None = Field(
        default=None, description="A million tokens of prompts that were read from a cache. Absent: as prompt."
    )
    cache_write: Money | None = Field(
        default=None, description="A million tokens of prompts that were written to a cache. Absent: as prompt."
    )
    reasoning: Money | None = Field(
        default=None, description="A million tokens of completions that were reasoning. Absent: as completion."
    )
    request: Money = Field(default=0, description="One call, whatever it uses.")


class PricesConfig(Strict):
    """What models and tools cost, in one currency."""

    models: Mapping[str, PriceConfig] = Field(
        default={},
        description="By the name of a model, of a target (`provider/model`), or a glob. A name that is written out "
        "comes before globs, and of those the first that fits counts. Any other model has no price.",
    )
    tools: Mapping[str, Money] = Field(
        default={},
        description="What one call of a tool costs, by its name or a glob, as a decimal. Any other tool costs nothing.",
    )


# --- compiled -------------------------------------------------------------------------------------------------

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """Things by name or glob: exact names first, then the globs in their order."""

    exact: Mapping[str, T]
    globs: tuple[tuple[re.Pattern[str], T], ...]

    @classmethod
    def of(cls, table: Mapping[str, T]) -> "Named[T]":
        globs = {name: thing for name, thing in table.items() if _is_glob(name)}
        return cls(
            {name: thing for name, thing in table.items() if name not in globs},
            tuple((re.compile(translate(glob)), thing) for glob, thing in globs.items()),
        )

    def find(self, *names: str) -> T | None:
        for name in names:
            if name in self.exact:
                return self.exact[name]
        return next((thing for glob, thing in self.globs if any(map(glob.match, names))), None)


def _is_glob(name: str) -> bool:
    return not _SIGNS.isdisjoint(name)


_SIGNS: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Price:
    """One model's prices in 1/NANO, per PER tokens; `request` for each call."""

    prompt: int
    completion: int
    cached: int
    cache_write: int
    reasoning: int
    request: int = 0

    @classmethod
    def of(cls, config: PriceConfig) -> "Price":
        prompt, completion = config.prompt, config.completion
        return cls(
            prompt,
            completion,
            prompt if config.cached is None else config.cached,
            prompt if config.cache_write is None else config.cache_write,
            completion if config.reasoning is None else config.reasoning,
            config.request,
        )

    def exact(self, usage: Usage) -> int:
        """What one call costs, in 1/NANO of a PER-th: not yet rounded.

        What is not reported costs nothing: estimate it first. A part is never more than its whole.
        """
        prompt, completion = usage.prompt or 0, usage.completion or 0
        cached = min(usage.cached or 0, prompt)
        written = min(usage.cache_write or 0, prompt - cached)
        reasoned = min(usage.reasoning or 0, completion)
        return (
            (prompt - cached - written) * self.prompt
            + cached * self.cached
            + written * self.cache_write
            + (completion - reasoned) * self.completion
            + reasoned * self.reasoning
            + self.request * PER
        )

    def most(self, prompt: int, completion: int) -> int:
        """The same for so many tokens, whichever of their parts are the dear ones."""
        dear, said = max(self.prompt, self.cached, self.cache_write), max(self.completion, self.reasoning)
        return prompt * dear + completion * said + self.request * PER


def rounded(exact: int) -> int:
    """An exact sum in 1/NANO, half up."""
    return (exact + PER // 2) // PER


@dataclass(frozen=True, slots=True)
class Prices:
    """All prices of a policy. Costs are in 1/NANO of the currency."""

    models: Named[Price]
    tools: Named[int]

    @classmethod
    def of(cls, config: PricesConfig) -> "Prices":
        return cls(
            Named.of({name: Price.of(price) for name, price in config.models.items()}),
            Named.of(config.tools),
        )

    def price_of(self, model: str, *also: str) -> Price | None:
        """The price of a model, which may go under several names; None where it has none."""
        return self.models.find(model, *also)

    def cost(self, usage: Usage, model: str, tool_calls: Mapping[str, int] | Iterable[str] = ()) -> int:
        """What a call of the model and these tool calls cost. A model without a price costs nothing: see `price_of`."""
        price = self.price_of(model)
        return self.cost_of_tools(tool_calls) + (0 if price is None else rounded(price.exact(usage)))

    def most(self, usage: Usage, model: str, tool_calls: Mapping[str, int] | Iterable[str] = ()) -> int:
        """The most that it can come to, whichever part of the tokens turns out as cached, written or reasoning."""
        price = self.price_of(model)
        most = 0 if price is None else rounded(price.most(usage.prompt or 0, usage.completion or 0))
        return self.cost_of_tools(tool_calls) + most

    def cost_of_tools(self, calls: Mapping[str, int] | Iterable[str]) -> int:
        """Of calls by name, each with how many there are, or one name for each call."""
        if isinstance(calls, Mapping):
            return sum(count * (self.tools.find(name) or 0) for name, count in calls.items())
        return sum(self.tools.find(name) or 0 for name in calls)
