"""The stage: which tool calls a model may make."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...core.exchange import Exchange
from ...core.identity import Identity
from ...core.stage import Visit
from ...stores.runs import Runs
from ...wire.conversation import View
from .config import ToolsConfig
from .rules import Rules
from .visit import ToolsVisit

# Agents come from clients: the rules of so many callers are kept.
_MOST_CALLERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Tools:
    """`views` are those of the APIs that hold conversations. What is remembered of runs is the exchange's, or else kept
    here."""

    config: ToolsConfig
    rules: Rules
    views: Mapping[str, View]
    runs: Runs = field(default_factory=Runs, repr=False, compare=False)
    name: str = "tools"
    _rules: dict[tuple[str, str], Rules] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, config: ToolsConfig, views: Mapping[str, View]) -> "Tools":
        return cls(config, Rules.of(config), views)

    def open(self, exchange: Exchange) -> Visit:
        return ToolsVisit(self, exchange)

    def rules_for(self, who: Identity) -> Rules:
        """Those that concern a caller. Made once for each tenant and agent."""
        caller = (who.tenant, who.agent)
        known = self._rules.get(caller)
        if known is None:
            known = self._rules[caller] = self.rules.of_whom(who)
            if len(self._rules) > _MOST_CALLERS:
                del self._rules[next(iter(self._rules))]
        return known
