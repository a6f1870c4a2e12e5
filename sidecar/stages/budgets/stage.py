"""The stage: all budgets of one mode."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ...core.exchange import Exchange
from ...core.stage import Visit
from ...text.tokens import Calibration
from ..prices import Prices
from .config import BudgetConfig
from .lines import Line, lines
from .plan import Plan
from .visit import BudgetVisit

# Names of models come from clients: so many are kept, none longer than a name is.
_MOST_PLANS: Final = 1000
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a shadow budget decides is only recorded."""

    lines: tuple[Line, ...]
    prices: Prices
    shadow: bool = False
    calibration: Calibration = field(default_factory=Calibration, repr=False, compare=False)
    name: str = "budgets"
    _plans: dict[tuple[str, str], Plan] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, budgets: Iterable[BudgetConfig], prices: Prices, *, shadow: bool = False) -> "Budgets":
        return cls(tuple(line for budget in budgets for line in lines(budget)), prices, shadow)

    def open(self, exchange: Exchange) -> Visit:
        return BudgetVisit(self, exchange)

    def plan(self, tenant: str, model: str) -> Plan:
        """What applies to a call. Made once for each tenant and model."""
        return self._plans.get((tenant, model)) or self._planned(tenant, model)

    def _planned(self, tenant: str, model: str) -> Plan:
        plan = Plan.of([line for line in self.lines if line.applies(tenant, model)])
        if len(model) <= _LONGEST_NAME:
            self._plans[tenant, model] = plan
            if len(self._plans) > _MOST_PLANS:
                del self._plans[next(iter(self._plans))]
        return plan
