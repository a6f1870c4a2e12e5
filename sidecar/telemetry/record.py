"""What is known of one exchange, filled along the way. Holds no content, no key and no query string."""

import time
from typing import Any

Outcome = str
"""completed | blocked | finished | client_gone | upstream_error | timeout | rejected | error"""


class Record:
    """One exchange. Times are `time.perf_counter()` seconds.

    A plain class whose defaults are the class's own: making one costs a fifth of a dataclass's time, and most
    fields of most exchanges keep their defaults.
    """

    id: str = ""
    tenant: str = "default"
    method: str = ""
    path: str = ""
    endpoint: str = "relay"
    model: str = ""
    target: str = ""
    streamed: bool = False
    status: int = 0
    outcome: Outcome = ""
    code: str = ""
    detail: str = ""
    """What the provider said went wrong: redacted, then bounded."""
    phase: str = ""
    stop_reason: str = ""
    attempts: int = 0
    calls: int = 0
    """Where stages asked for calls: how many were made."""
    trail: tuple[dict[str, Any], ...] = ()
    """Each attempt as {"target", "class", "status", "ms", "wait_ms"}, unless the first one was well."""
    bytes_in: int = 0
    bytes_out: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    decisions: tuple[dict[str, Any], ...] = ()
    """Each as {"rule", "action", "mode", "surface", "count"}; never a text."""
    policy: str = ""

    started: float = 0.0
    sent: float = 0.0
    """When the request had gone to the provider."""
    first_byte: float = 0.0
    """When the reply's headers were here."""
    waited: float = 0.0
    """Seconds spent waiting for the provider, the client or an admin; all the rest is our own doing."""

    def line(self, now: float) -> dict[str, Any]:
        """The log line's fields; times in milliseconds."""
        total = now - self.started
        first = self.first_byte - self.sent if self.first_byte else None
        fields = {
            "ts": time.time(),
            "id": self.id,
            "tenant": self.tenant,
            "method": self.method,
            "path": self.path,
            "endpoint": self.endpoint,
            "model": self.model or None,
            "target": self.target or None,
            "streamed": self.streamed,
            "status": self.status or None,
            "outcome": self.outcome,
            "code": self.code or None,
            "detail": self.detail or None,
            "phase": self.phase or None,
            "stop_reason": self.stop_reason or None,
            "attempts": self.attempts,
            "calls": self.calls or None,
            "trail": self.trail or None,
            "total_ms": _milliseconds(total),
            "first_byte_ms": None if first is None else _milliseconds(first),
            "overhead_ms": _milliseconds(max(0.0, total - self.waited)),
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "decisions": self.decisions or None,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "policy": self.policy or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
