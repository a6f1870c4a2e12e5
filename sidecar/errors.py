"""The error family. Everything we raise on purpose is one of these.

    SidecarError
    ├── PolicyError             the policy file cannot be used; carries every fault at once
    ├── PatternError            a pattern cannot be compiled; knows the offset of the fault
    └── ExchangeError           becomes the client's answer: status, code, message, param
        ├── InvalidRequest      400 invalid_request, before anything is sent
        ├── Unauthorized        401 unauthorized
        ├── ModelNotFound       404 model_not_found
        ├── PayloadTooLarge     413 payload_too_large
        ├── GuardrailTripped    400 guardrail_tripped
        ├── Overloaded          503 overloaded, with retry-after
        ├── UpstreamUnreachable 502 upstream_unreachable
        ├── UpstreamBroken      502 upstream_broken: the reply ended early or cannot be read
        └── UpstreamTimeout     504 upstream_timeout; knows the phase

They are translated into the called API's own shape at one boundary, the server's. No message ever carries
matched text, a key, a URL with credentials or a traceback.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class SidecarError(Exception):
    """The root of the family."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a policy.

    `file` is a path as the user gave it (or an environment variable's name), `line` and `column` count from 1
    and are 0 where there is no position; `where` is the dotted path of the field; `hint` says what to do.
    """

    file: str
    line: int
    column: int
    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        said = f"{place}: {self.where}: {self.message}" if self.where else f"{place}: {self.message}"
        return f"{said}. {self.hint}" if self.hint else said


class PolicyError(SidecarError):
    """A policy that cannot be used, with all its faults in the order of their positions."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class PatternError(SidecarError):
    """A pattern that cannot be compiled. `offset` counts characters from the pattern's start."""

    def __init__(self, message: str, offset: int = 0, hint: str = "") -> None:
        self.message, self.offset, self.hint = message, offset, hint
        super().__init__(message)


class ExchangeError(SidecarError):
    """Ends an exchange with an answer to the client. Subclasses fix status, code and type."""

    status = 500
    code = "internal_error"
    type = "sidecar_error"

    def __init__(self, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        self.message, self.param, self.retry_after = message, param, retry_after
        super().__init__(message)


class InvalidRequest(ExchangeError):
    status, code, type = 400, "invalid_request", "invalid_request_error"


class Unauthorized(ExchangeError):
    status, code, type = 401, "unauthorized", "invalid_request_error"


class ModelNotFound(ExchangeError):
    status, code, type = 404, "model_not_found", "invalid_request_error"


class PayloadTooLarge(ExchangeError):
    status, code, type = 413, "payload_too_large", "invalid_request_error"


class GuardrailTripped(ExchangeError):
    """`param` is the surface; the message names the rule and never the match."""

    status, code, type = 400, "guardrail_tripped", "invalid_request_error"


class Overloaded(ExchangeError):
    status, code, type = 503, "overloaded", "server_error"


class UpstreamUnreachable(ExchangeError):
    status, code, type = 502, "upstream_unreachable", "server_error"


class UpstreamBroken(ExchangeError):
    status, code, type = 502, "upstream_broken", "server_error"


class UpstreamTimeout(ExchangeError):
    """`phase` is connect, first_byte, idle or total."""

    status, code, type = 504, "upstream_timeout", "server_error"

    def __init__(self, phase: str, seconds: float) -> None:
        self.phase = phase
        super().__init__(f"The provider did not answer in time ({phase} limit of {seconds:g} s).")
