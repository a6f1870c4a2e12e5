"""What of a stage's limits concerns a call of one tenant and model, and what has to be known for them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Self

from ...core.identity import Identity
from ...stores.ledger import Claim
from .config import BudgetConfig
from .lines import COMPLETION, Line
from .told import RATES
from .whose import NAMED, account

# Runs, sessions and agents come from clients: the claims of so many callers are kept.
_MOST_CALLERS: Final = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """`lines` are the limits that apply, in the order in which they are claimed.

    `tokens`: something depends on how many there are, be it money; `tools`: on which tool calls are proposed.
    `rated`, `soft` and `cutting` are indices of lines: those that `x-ratelimit-*` tell of, those that warn, and those
    that end a stream. `completion` is how long a reply is reserved for that the request does not bound.
    """

    lines: tuple[Line, ...]
    budgets: tuple[BudgetConfig, ...]
    tokens: bool
    money: bool
    tools: bool
    rated: tuple[tuple[int, str], ...]
    soft: tuple[int, ...]
    cutting: tuple[int, ...]
    completion: int
    local: bool
    """Every budget may be counted without the store."""
    whose: Callable[[Identity], Hashable]
    """What of an identity the accounts depend on."""
    _claims: dict[Hashable, tuple[Claim, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Self:
        numbered = tuple(enumerate(lines))
        budgets = {line.budget.name: line.budget for line in lines}
        return cls(
            lines=tuple(lines),
            budgets=tuple(budgets.values()),
            tokens=any(line.shrinks and not line.tools for line in lines),
            money=any(line.unit == "cost" for line in lines),
            tools=any(line.tools or line.unit == "cost" for line in lines),
            rated=tuple((at, RATES[line.unit]) for at, line in numbered if line.window and line.unit in RATES),
            soft=tuple(at for at, line in numbered if line.budget.warn_at is not None),
            cutting=tuple(at for at, line in numbered if line.budget.on_exceed == "cut" and line.measure(COMPLETION)),
            completion=max((budget.completion for budget in budgets.values()), default=0),
            local=all(budget.on_store_error == "local" for budget in budgets.values()),
            whose=attrgetter("tenant", *sorted({name for budget in budgets.values() for name in NAMED[budget.scope]})),
        )

    def claims(self, identity: Identity) -> tuple[Claim, ...]:
        """Of nothing, on each line: give them their amounts. Made once for each caller."""
        caller = self.whose(identity)
        return self._claims.get(caller) or self._claimed(caller, identity)

    def _claimed(self, caller: Hashable, identity: Identity) -> tuple[Claim, ...]:
        named = {budget.name: account(budget, identity) for budget in self.budgets}
        claims = self._claims[caller] = tuple(line.claim(named[line.budget.name]) for line in self.lines)
        if len(self._claims) > _MOST_CALLERS:
            del self._claims[next(iter(self._claims))]
        return claims

    @property
    def stops(self) -> bool:
        """Whether it may have to end a reply, which then keeps what it has said."""
        return self.tools or bool(self.cutting)


NO_PLAN = Plan.of(())
