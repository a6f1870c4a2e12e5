"""A budget's limits, one by one: what each measures, and the claim that a call makes on it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...core.usage import Usage, added
from ...stores.ledger import MAX_AMOUNT, SLOT, Claim
from .config import BudgetConfig, TokensConfig

MINUTE: Final = 60


class Spending(NamedTuple):
    """What one call uses, or may."""

    calls: int
    usage: Usage
    tools: Mapping[str, int]
    cost: int = 0

    def and_also(self, wasted: "Spending") -> "Spending":
        """With what another attempt of the same call has used: tokens and money, not a call more."""
        return self._replace(usage=added(self.usage, wasted.usage), cost=self.cost + wasted.cost)


NO_TOOLS: Final[Mapping[str, int]] = MappingProxyType({})
ONE_CALL: Final = Spending(1, Usage(0, 0), NO_TOOLS)
PROMPT: Final = Spending(0, Usage(1, 0), NO_TOOLS)
COMPLETION: Final = Spending(0, Usage(0, 1), NO_TOOLS)

Measure = Callable[[Spending], int]

_STOP_REASONS: Final = {"calls": "call_limit", "requests": "call_limit", SLOT: "call_limit", "cost": "cost_limit"}


@dataclass(frozen=True, slots=True)
class Line:
    """One limit of one budget. `shrinks`: a call may begin with less of it than it might come to."""

    budget: BudgetConfig
    unit: str
    what: str
    limit: int
    window: int
    measure: Measure
    shrinks: bool = False
    tools: str | None = None

    def applies(self, tenant: str, model: str) -> bool:
        budget = self.budget
        if budget.tenants and tenant not in budget.tenants:
            return False
        # Whose model cannot be read, such as an upload's, counts everywhere: else leaving it out would be a way around.
        return not (budget.models and model) or any(fnmatchcase(model, glob) for glob in budget.models)

    def claim(self, account: str) -> Claim:
        """Of nothing yet."""
        keep = self.budget.scope in ("tenant", "all")
        return Claim(account, self.unit, 0, self.limit, self.window, soft=self.soft(self.limit), keep=keep)

    def soft(self, limit: int) -> int | None:
        return None if self.budget.warn_at is None else math.ceil(limit * self.budget.warn_at)

    def local(self, claim: Claim) -> Claim:
        """What one replica may use of the limit while the store is away."""
        limit = math.ceil(self.limit * self.budget.local_share)
        return replace(claim, limit=limit, soft=self.soft(limit))

    def amount(self, spending: Spending) -> int:
        amount = self.measure(spending)
        return amount if amount < MAX_AMOUNT else MAX_AMOUNT

    @property
    def stop_reason(self) -> str:
        return "tool_limit" if self.tools else _STOP_REASONS.get(self.unit, "token_budget")


def lines(budget: BudgetConfig) -> Iterator[Line]:
    """A budget's limits, in the order in which they are asked for and named."""
    window = math.ceil(budget.window or 0)
    if budget.concurrent is not None:
        yield Line(budget, SLOT, "exchanges at once", budget.concurrent, 0, lambda _: 1)
    if budget.requests_per_minute is not None:
        yield Line(budget, "requests", "calls a minute", budget.requests_per_minute, MINUTE, lambda s: s.calls)
    if budget.calls is not None:
        yield Line(budget, "calls", "calls", budget.calls, window, lambda s: s.calls)
    if budget.tokens_per_minute is not None:
        yield Line(budget, "tokens/min", "tokens a minute", budget.tokens_per_minute, MINUTE, _total, shrinks=True)
    yield from _token_lines(budget, window)
    if budget.cost is not None:
        yield Line(budget, "cost", "money", budget.cost, window, lambda s: s.cost, shrinks=True)
    yield from _tool_lines(budget, window)


def _total(spending: Spending) -> int:
    return spending.usage.total


_TOKENS: Final[Mapping[str, Measure]] = {
    "total": _total,
    "prompt": lambda s: s.usage.prompt or 0,
    "completion": lambda s: s.usage.completion or 0,
    "cached": lambda s: s.usage.cached or 0,
    "reasoning": lambda s: s.usage.reasoning or 0,
}


def _token_lines(budget: BudgetConfig, window: int) -> Iterator[Line]:
    tokens = TokensConfig(total=budget.tokens) if isinstance(budget.tokens, int) else budget.tokens
    for kind, measure in _TOKENS.items() if tokens is not None else ():
        limit = getattr(tokens, kind)
        if limit is not None:
            what = "tokens" if kind == "total" else f"{kind} tokens"
            yield Line(budget, what, what, limit, window, measure, shrinks=True)


def _tool_lines(budget: BudgetConfig, window: int) -> Iterator[Line]:
    limits = {"total": budget.tool_calls} if isinstance(budget.tool_calls, int) else budget.tool_calls or {}
    for name, limit in limits.items():
        glob, unit, what = (
            ("*", "tool calls", "tool calls") if name == "total" else (name, f"tool calls:{name}", f"calls of {name}")
        )
        yield Line(budget, unit, what, limit, window, _calls_of(glob), shrinks=True, tools=glob)


def _calls_of(glob: str) -> Measure:
    return lambda s: sum(count for name, count in s.tools.items() if fnmatchcase(name, glob))
