"""What clients and the operator are told: refusals, findings, events and `x-ratelimit-*`."""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from ...core.exchange import Exchange
from ...core.surface import Finding, Kind, Surface
from ...errors import BudgetExceeded, ModelUnpriced, StoreDown
from ...stores.ledger import SLOT, Granted, Notice, Refused
from ...stores.ledger import Line as Mark
from ..prices import NANO
from .lines import Line

PLACE: Final = Surface("budget", Kind.USER)

_DOWN: Final = "Budgets cannot be read: the store is out of reach."
_UNPRICED: Final = "A budget counts money, and the policy has no price for the model {!r}. Add it to prices."
_UNNAMED: Final = (
    "A budget counts money, and this request names no model that can be read. Add a price for '*' to prices."
)
_EVENTS: Final = {Mark.SOFT: "budget_warning", Mark.LIMIT: "budget_exhausted"}
_PER: Final = {
    "all": "for all",
    "tenant": "per tenant",
    "key": "per key",
    "agent": "per agent",
    "session": "per session",
    "run": "per run",
}


def shown(unit: str, amount: int) -> int | str:
    """An amount for people and JSON: money as a decimal, everything else as it is counted."""
    return f"{(Decimal(amount) / NANO).normalize():f}" if unit == "cost" else amount


def finding(line: Line, more: str = "") -> Finding:
    return Finding(line.budget.name, f"{line.what}{more}", PLACE)


def event(line: Line, notice: Notice, exchange: Exchange) -> dict[str, Any]:
    """Names nothing that a client has chosen; the exchange's own line has the rest."""
    return {
        "event": _EVENTS[notice.line],
        "budget": line.budget.name,
        "scope": line.budget.scope,
        "tenant": exchange.tenant,
        "unit": line.what,
        "at": shown(line.unit, notice.at),
        "mode": line.budget.mode,
        "id": exchange.id,
    }


# --- refusals ---


def store_down() -> StoreDown:
    return StoreDown(_DOWN, retry_after=1)


def unpriced(model: str) -> ModelUnpriced:
    return ModelUnpriced(_UNPRICED.format(model[:100]) if model else _UNNAMED, param="model")


def is_in_use(line: Line, refused: Refused) -> bool:
    """What is missing is held by calls that are running, and most of it will come back."""
    return line.shrinks and refused.reserved > 0 and refused.spent < refused.limit


def exceeded(line: Line, limit: int, resets_at: int | None, now: float, *, in_use: bool = False) -> BudgetExceeded:
    budget = line.budget
    wait = None if resets_at is None else _seconds(resets_at, now)
    why = "has no room beside the calls that are running" if in_use else "is used up"
    error = BudgetExceeded(
        f"The budget {budget.name!r} {why}: {_amount(line, limit)} {_PER[budget.scope]}.",
        param=budget.name,
        stop_reason=line.stop_reason,
        retry_after=1 if line.unit == SLOT or in_use else wait,
    )
    if wait is not None and line.unit in RATES:
        error.headers = _rate(RATES[line.unit], line.limit, 0, wait)
    return error


def _amount(line: Line, limit: int) -> str:
    return str(shown(line.unit, limit)) if line.unit == "cost" else f"{limit} {line.what}"


# --- rates ---

# OpenAI's names; a line that counts in no window has nothing that resets.
RATES: Final[Mapping[str, str]] = {
    "requests": "requests",
    "calls": "requests",
    "tokens/min": "tokens",
    "tokens": "tokens",
}
_NAMES: Final = {
    rate: tuple(f"x-ratelimit-{name}-{rate}".encode() for name in ("limit", "remaining", "reset"))
    for rate in dict.fromkeys(RATES.values())
}

Header = tuple[bytes, bytes]


def rate_headers(
    rated: Iterable[tuple[int, str]], lines: tuple[Line, ...], granted: Granted, now: float
) -> tuple[Header, ...]:
    """`x-ratelimit-*` of the limits with a window, of several the one with the least left."""
    tightest: dict[str, int] = {}
    headers: tuple[Header, ...] = ()
    left = granted.remaining
    for at, rate in rated:
        if rate not in tightest or (left[at] or 0) < (left[tightest[rate]] or 0):
            tightest[rate] = at
    for rate, at in tightest.items():
        headers += _rate(rate, lines[at].limit, left[at] or 0, _seconds(granted.resets_at[at] or 0, now))
    return headers


def _rate(rate: str, limit: int, left: int, seconds: int) -> tuple[Header, ...]:
    of_limit, remaining, reset = _NAMES[rate]
    return (of_limit, b"%d" % limit), (remaining, b"%d" % left), (reset, _duration(seconds))


def _seconds(until: int, now: float) -> int:
    return max(1, math.ceil(until - now))


def _duration(seconds: int) -> bytes:
    """As OpenAI writes it: 6m0s."""
    minutes, rest = divmod(seconds, 60)
    return b"%dm%ds" % (minutes, rest) if minutes else b"%ds" % rest
