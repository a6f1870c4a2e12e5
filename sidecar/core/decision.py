"""What a stage may answer, and how far we obey it. Stages return; the chain obeys."""

from dataclasses import dataclass
from enum import StrEnum

from .surface import Finding, Slot, Surface


class Mode(StrEnum):
    OFF = "off"
    SHADOW = "shadow"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Pass:
    """Go on; what was found is only noted."""

    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Replace:
    """Put these texts into these slots, then go on."""

    edits: tuple[tuple[Slot, str], ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """End the exchange with an error that names the rule and the surface.

    `as_error` asks for an error event where a stream has begun, instead of its own last frame; `failed` says that
    the rule could not do its work.
    """

    rule: str
    surface: Surface
    findings: tuple[Finding, ...] = ()
    as_error: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """Answer in the model's place: a normal, complete reply with this text."""

    rule: str
    surface: Surface
    message: str
    findings: tuple[Finding, ...] = ()


Decision = Pass | Replace | Block | Finish
Stop = Block | Finish
PASS = Pass()
