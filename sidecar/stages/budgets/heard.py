"""What a reply has said so far, as far as budgets count it."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ...core.surface import Lane
from ...core.usage import NOT_REPORTED, Usage, merged
from ...text.tokens import tokens, weight
from .lines import NO_TOOLS

# Deltas are weighed so many at once.
_PIECES: Final = 64

Call = tuple[int, int | str]
"""A tool call of a reply: its choice and its index."""


class Heard:
    """`partial`: some of it came in pieces, and may not have come to its end. `said`: the texts of a whole reply."""

    __slots__ = ("_pieces", "_weight", "dropped", "names", "partial", "reported", "said", "status", "wasted")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._weight = 0
        self.partial = False
        self.status: int | None = None
        self.reported = NOT_REPORTED
        self.names: dict[Call, str] = {}
        self.dropped: set[Call] = set()
        self.said: list[str] = []
        # What attempts have used whose replies nobody gets, with their targets.
        self.wasted: list[tuple[Usage, str]] = []

    def report(self, usage: Usage) -> None:
        self.reported = usage if self.reported is NOT_REPORTED else merged(self.reported, usage)

    def text(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) >= _PIECES:
            self._weigh()

    def _weigh(self) -> None:
        self._weight += weight("".join(self._pieces))
        self._pieces.clear()

    @property
    def tokens(self) -> int:
        """All texts, estimated. What nobody asks for is not weighed."""
        if self._pieces:
            self._weigh()
        return tokens(self._weight)

    def named(self, lane: Lane, text: str) -> bool:
        """A part of a tool call's name. True where the call begins with it."""
        call = (lane.choice, lane.part)
        begins = call not in self.names
        self.names[call] = self.names.get(call, "") + text
        return begins

    @property
    def tools(self) -> Mapping[str, int]:
        """The calls that were proposed, denied ones too, by name."""
        return Counter(self.names.values()) if self.names else NO_TOOLS
