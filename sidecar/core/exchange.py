"""One client request and the reply to it, as the stages see it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .identity import NOBODY, Identity
from .port import Port
from .surface import Slot


class Disguise(Protocol):
    """Placeholders for the values of one exchange; they are the same through its session."""

    def avoid(self, written: Iterable[str]) -> None:
        """These stand in the client's own text, and must not become anybody's placeholder."""

    def conceal(self, name: str, value: str) -> str | None:
        """The placeholder for a value, None when there is no room for more."""

    def reveal(self, written: str) -> str:
        """The value behind a placeholder; what is none of this exchange's stays as it is."""


class NoDisguise:
    """Where nothing is remembered, nothing can be put back: values are redacted for good."""

    def avoid(self, written: Iterable[str]) -> None:
        pass

    def conceal(self, name: str, value: str) -> str | None:
        return None

    def reveal(self, written: str) -> str:
        return written


NO_DISGUISE = NoDisguise()


@dataclass(frozen=True, slots=True)
class Exchange:
    """Who asks. Fixed from admission on."""

    id: str
    endpoint: str
    tenant: str = "default"
    disguise: Disguise = NO_DISGUISE
    identity: Identity = NOBODY
    accounts: object | None = None
    """What budgets are reserved from."""
    approvals: object | None = None
    """Where calls wait for an admin."""
    runs: object | None = None
    """What is remembered of runs and sessions for rules about tools."""
    now: Callable[[], float] = lambda: 0.0
    """Seconds since the epoch."""
    waited: Callable[[float], None] = lambda seconds: None
    """Told how long a stage has waited for a person: that is no work of ours."""


@dataclass(slots=True)
class Request:
    """A parsed request body and its texts. Edits go through the slots into the one document."""

    document: Any
    found: list[Slot] | None = None
    """Its texts, once somebody has asked for them: who thinks in messages does not."""
    model: str = ""
    """The name that the client asked for."""
    target: str = ""
    """The first target of that name, `provider/model`."""
    changed: bool = field(default=False)
    reread: Callable[[Any], list[Slot]] = lambda document: []
    """How the texts of such a document are found."""
    port: Port | None = None
    """For a stage that asks, in enforce: how it makes calls of its own. They stand in the place of the call."""

    @property
    def slots(self) -> list[Slot]:
        if self.found is None:
            self.found = self.reread(self.document)
        return self.found

    def rewritten(self) -> None:
        """The document has been changed as a whole: what stages further in look at is what stands in it now."""
        self.changed, self.found = True, None
