"""What a stage may answer, and how far we obey it. Stages return; the chain obeys."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import ExchangeError
from .port import Heard
from .surface import Finding, Slot, Surface


class Mode(StrEnum):
    OFF = "off"
    SHADOW = "shadow"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Pass:
    """Go on; what was found is only noted. `headers` are for the client, when the reply leaves."""

    findings: tuple[Finding, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Replace:
    """Put these texts into these slots, then go on. `action` is what the record calls it."""

    edits: tuple[tuple[Slot, str], ...]
    findings: tuple[Finding, ...] = ()
    action: str = "redact"


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
    """Answer in the model's place: a normal, complete reply with this text.

    `reason` is the stop reason that clients and the record are told. With `cut` the reply ends as one that has reached
    its length. `refusal` is the error in its place where the API has no such reply.
    """

    rule: str
    surface: Surface
    message: str
    findings: tuple[Finding, ...] = ()
    reason: str = "guardrail"
    cut: bool = False
    refusal: ExchangeError | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """End the exchange with this error before anything is sent. Only ever said of a request."""

    rule: str
    error: ExchangeError
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Hand this reply down: a stage has asked for it through its port. Stages inside have seen all of it already.

    `document` stands in its place where the stage has changed it. `headers` are for the client.
    """

    heard: Heard
    document: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    action: str = "flag"


Decision = Pass | Replace | Block | Finish | Refuse | Answer
Stop = Block | Finish
PASS = Pass()
