"""Asking again: how a stage makes calls of its own through all that stands inside it."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one call: a whole reply, held until a stage has decided about it.

    `document` is the reply in the client's API as a buffered one would be, after the stages inside; None where there
    is none: an error, a reply that broke off, one that a stage answered or ended. Such a call is to be handed down as
    it is. `unknown` names the tools that the model called in its text and that the request does not have. `reply` is
    the reply itself, for whoever hands it down.
    """

    document: dict[str, Any] | None
    unknown: tuple[str, ...] = ()
    reply: Any = None


class Port(Protocol):
    """Given to a stage with its request. Every call is guarded, charged and recorded like the first."""

    async def ask(self, document: dict[str, Any]) -> Heard:
        """Sends a request of the client's API through the stages inside, attempts included, and waits for all of it.

        The document is read, not kept and not changed. Where it is that of the request itself, and nobody has said
        that it is `changed`, what is sent are the bytes that came. Raises ExchangeError for what ends the exchange,
        such as a block or a budget that is used up.
        """
