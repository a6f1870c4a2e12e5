"""Puts back in replies what `action: pseudonymize` has taken out of requests.

It stands outside the guardrails: what it puts back is the client's own, and goes to the client alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.events import End, Event, Text
from ..core.exchange import Exchange
from ..core.stage import Visit
from ..core.surface import Lane
from ..text.jsontext import JsonScrubber
from ..text.pseudonyms import placeholders
from ..text.rules import Ruleset
from ..text.scrubber import Scrubber


@dataclass(frozen=True, slots=True)
class Restore:
    """The stage. `rules` finds what may be a placeholder."""

    rules: Ruleset
    name: str = "restore"

    @classmethod
    def of(cls, names: Iterable[str]) -> "Restore":
        return cls(placeholders(names))

    def open(self, exchange: Exchange) -> Visit:
        return RestoreVisit(self.rules, exchange)


class RestoreVisit(Visit):
    """One call's lanes."""

    __slots__ = ("_exchange", "_lanes", "_rules")

    def __init__(self, rules: Ruleset, exchange: Exchange) -> None:
        self._rules, self._exchange = rules, exchange
        self._lanes: dict[Lane, Scrubber | JsonScrubber] = {}

    def feed(self, event: Event) -> Sequence[Event]:
        match event:
            case Text(lane, text, last):
                said = self._said(lane, text, last)
                return (event,) if said == text else (Text(lane, said, last),) if said or last else ()
            case End(lane) if lane in self._lanes:
                said = "".join(op.text for op in self._lanes.pop(lane).finish())
                return (Text(lane, said), event) if said else (event,)
            case _:
                return (event,)

    def _said(self, lane: Lane, text: str, last: bool) -> str:
        watcher = self._lanes.get(lane) or self._watch(lane)
        ops = watcher.feed(text)
        if last:
            ops += self._lanes.pop(lane).finish()
        return "".join(op.text for op in ops)

    def _watch(self, lane: Lane) -> Scrubber | JsonScrubber:
        kind = JsonScrubber if lane.surface.json else Scrubber
        watcher = self._lanes[lane] = kind(self._rules, lambda _, written: self._exchange.disguise.reveal(written))
        return watcher

    def finish(self) -> Sequence[Event]:
        rest = [(lane, "".join(op.text for op in self._lanes.pop(lane).finish())) for lane in list(self._lanes)]
        return [Text(lane, said) for lane, said in rest if said]
