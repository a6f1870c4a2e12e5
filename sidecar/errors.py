"""The error family. Everything we raise on purpose is one of these.

    SidecarError
    ├── PolicyError             the policy file cannot be used; carries every fault at once
    ├── PatternError            a pattern cannot be compiled; knows the offset of the fault
    ├── StoreUnavailable        a ledger or vault cannot be opened, reached, read or written in time
    └── ExchangeError           becomes the client's answer: status, code, message, param
        ├── InvalidRequest      400 invalid_request, before anything is sent
        ├── Unauthorized        401 unauthorized
        ├── ForeignOrigin       403 origin_not_allowed, in server.tunnel: a page of another origin opens a WebSocket
        ├── Forbidden           403 forbidden: a tenant's key asks for what needs an admin's
        ├── ModelNotFound       404 model_not_found
        ├── NoSuchBudget        404 not_found, under the sidecar's own paths
        ├── BudgetExceeded      429 budget_exceeded, with retry-after when a window will reopen
        ├── ModelUnpriced       422 model_unpriced: a budget counts money, and the model has no price
        ├── StoreDown           503 store_unavailable: budgets cannot be read, and the policy denies in that case
        ├── PayloadTooLarge     413 payload_too_large
        ├── GuardrailTripped    400 guardrail_tripped
        ├── Uninspected         403 uninspected: the policy denies what its rules cannot look into
        ├── Overloaded          503 overloaded, with retry-after
        ├── UpstreamUnreachable 502 upstream_unreachable
        ├── UpstreamBroken      502 upstream_broken: the reply ended early or cannot be read
        ├── ProviderRefused     the provider's status, upstream_error: its error, where our stream had begun before it
        ├── StructuredOutputInvalid 502 structured_output_invalid: no reply had the form that was asked for
        ├── UpstreamTimeout     504 upstream_timeout; knows the phase
        └── AllTargetsFailed    502 all_targets_failed, or the status of the last provider that answered

They are translated into the called API's own shape at one boundary, the server's. No message ever carries
matched text, a key, a URL with credentials or a traceback.
"""

from collections.abc import Mapping, Sequence
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


class StoreUnavailable(SidecarError):
    """What is kept between exchanges is out of reach. The message names the store's kind, never its credentials."""


class ExchangeError(SidecarError):
    """Ends an exchange with an answer to the client. Subclasses fix status, code and type."""

    status = 500
    code = "internal_error"
    type = "sidecar_error"

    # Whether asking again would get the same answer: clients are told not to.
    final = False
    # Why a run ends here, where it does: a limit's name.
    stop_reason = ""
    # More for the client's headers.
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        self.message, self.param, self.retry_after = message, param, retry_after
        super().__init__(message)


class InvalidRequest(ExchangeError):
    status, code, type = 400, "invalid_request", "invalid_request_error"


class Unauthorized(ExchangeError):
    status, code, type = 401, "unauthorized", "invalid_request_error"


class Forbidden(ExchangeError):
    status, code, type = 403, "forbidden", "invalid_request_error"


class NoSuchBudget(ExchangeError):
    status, code, type = 404, "not_found", "invalid_request_error"


class ModelNotFound(ExchangeError):
    status, code, type = 404, "model_not_found", "invalid_request_error"


class BudgetExceeded(ExchangeError):
    """`param` is the budget's name. Without `retry_after` waiting cannot help."""

    status, code, type = 429, "budget_exceeded", "insufficient_quota"

    def __init__(self, message: str, *, param: str, stop_reason: str, retry_after: int | None = None) -> None:
        super().__init__(message, param=param, retry_after=retry_after)
        self.stop_reason, self.final = stop_reason, retry_after is None


class ModelUnpriced(ExchangeError):
    status, code, type = 422, "model_unpriced", "invalid_request_error"
    final = True


class StoreDown(ExchangeError):
    status, code, type = 503, "store_unavailable", "server_error"


class PayloadTooLarge(ExchangeError):
    status, code, type = 413, "payload_too_large", "invalid_request_error"


class GuardrailTripped(ExchangeError):
    """`param` is the surface; the message names the rule and never the match."""

    status, code, type = 400, "guardrail_tripped", "invalid_request_error"
    final = True
    stop_reason = "guardrail"


class Uninspected(ExchangeError):
    """`param` is the field, or None for a whole endpoint."""

    status, code, type = 403, "uninspected", "invalid_request_error"


class Overloaded(ExchangeError):
    status, code, type = 503, "overloaded", "server_error"


class UpstreamUnreachable(ExchangeError):
    status, code, type = 502, "upstream_unreachable", "server_error"


class UpstreamBroken(ExchangeError):
    status, code, type = 502, "upstream_broken", "server_error"


class ProviderRefused(ExchangeError):
    """The message is the provider's own."""

    status, code, type = 502, "upstream_error", "server_error"

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


class StructuredOutputInvalid(ExchangeError):
    """`param` is a JSON pointer into the reply, `attempts` how often the model was asked.

    `last_error` is that pointer and what was wrong there; `output` is what the model said last, after guardrails and
    bounded.
    """

    status, code, type = 502, "structured_output_invalid", "server_error"
    final = True

    def __init__(
        self, message: str, *, param: str | None, attempts: int, last_error: Mapping[str, str], output: str
    ) -> None:
        super().__init__(message, param=param)
        self.attempts, self.last_error, self.output = attempts, last_error, output


class UpstreamTimeout(ExchangeError):
    """`phase` is connect, first_byte, idle, total or deadline."""

    status, code, type = 504, "upstream_timeout", "server_error"

    def __init__(self, phase: str, seconds: float) -> None:
        self.phase = phase
        super().__init__(f"The provider did not answer in time ({phase} limit of {seconds:g} s).")


class AllTargetsFailed(ExchangeError):
    """Several attempts were made and none succeeded.

    `attempts` says of each in turn its target, class, status (where there was a reply), ms and wait_ms: names and
    numbers only.
    """

    status, code, type = 502, "all_targets_failed", "server_error"

    def __init__(
        self,
        message: str,
        *,
        attempts: Sequence[Mapping[str, str | int]],
        status: int = 502,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.status, self.attempts = status, tuple(attempts)
