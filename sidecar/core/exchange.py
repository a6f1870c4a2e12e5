"""One client request and the reply to it, as the stages see it."""

from dataclasses import dataclass, field
from typing import Any

from .surface import Slot


@dataclass(frozen=True, slots=True)
class Exchange:
    """Who asks. Fixed from admission on."""

    id: str
    endpoint: str
    tenant: str = "default"


@dataclass(slots=True)
class Request:
    """A parsed request body and its texts. Edits go through the slots into the one document."""

    document: Any
    slots: list[Slot]
    model: str = ""
    changed: bool = field(default=False)
