"""One step of the chain, and one exchange's visit to it."""

from collections.abc import Sequence
from typing import Protocol

from .decision import PASS, Decision
from .events import Event
from .exchange import Exchange, Request

UNREACHABLE = "unreachable"
"""The outcome of a call of which no provider has seen anything."""


class Visit:
    """A stage's hold on one call. Override what you need."""

    async def request(self, request: Request) -> Decision:
        """The request on its way to the model."""
        return PASS

    def send(self, event: Event) -> Sequence[Event]:
        """One event of a request that arrives in pieces: an upload. Never awaited."""
        return (event,)

    def feed(self, event: Event) -> Sequence[Event]:
        """One event of the reply. Never awaited: a stream is fed, not waited for."""
        return (event,)

    def finish(self) -> Sequence[Event]:
        """The reply is over; say what was still held back."""
        return ()

    async def done(self, outcome: str) -> None:
        """Called exactly once, however the exchange ended; `outcome` is as the record says it, or UNREACHABLE."""


class Stage(Protocol):
    """Built once per policy, immutable, shared by all exchanges."""

    @property
    def name(self) -> str: ...

    def open(self, exchange: Exchange) -> Visit: ...
