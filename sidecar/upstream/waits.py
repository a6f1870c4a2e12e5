"""How long to wait: what a provider says, and otherwise exponential back-off. Clock and randomness are passed in.

Retry-After: RFC 9110, 10.2.3. `retry-after-ms`: learn.microsoft.com/azure/ai-services/openai/how-to/quota.
`x-ratelimit-reset-*`: platform.openai.com/docs/guides/rate-limits, durations such as 6m0s; other servers give seconds
or an epoch there. `anthropic-ratelimit-*-reset`: docs.claude.com/en/api/rate-limits, RFC 3339. `ratelimit-reset`:
draft-ietf-httpapi-ratelimit-headers up to -06, seconds.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from .connection import Headers

# A provider's daily limits reopen within a day; what says more is a mistake, such as milliseconds for seconds.
MAX_STATED: Final = 86_400.0
Random = Callable[[], float]
"""A number in [0, 1), each time another one."""


def stated(headers: Headers, now: float) -> float | None:
    """The seconds after which a provider wants to be asked again, at the Unix time `now`; None where it says nothing.

    Zero, negative, past, unreadable and absurd values say nothing. `Retry-After` in either form comes before the
    resets of rate limits; of those the longest counts whose limit is used up.
    """
    values = {name: value.decode("latin-1").strip() for name, value in reversed(headers)}
    for name, read in _DIRECT:
        if name in values and (seconds := _sane(read(values[name], now))) is not None:
            return seconds
    resets = (_sane(read_reset(values[name], now)) for name, rest in _resets(values) if _used_up(values.get(rest)))
    return max((seconds for seconds in resets if seconds is not None), default=None)


def _sane(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0.0 < seconds <= MAX_STATED else None


_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,9})?")


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _milliseconds(text: str, now: float) -> float | None:
    number = _number(text)
    return None if number is None else number / 1000.0


def _seconds_or_date(text: str, now: float) -> float | None:
    number = _number(text)
    return _until(_http_date(text), now) if number is None else number


_DIRECT: Final = ((b"retry-after-ms", _milliseconds), (b"retry-after", _seconds_or_date))


def _until(moment: datetime | None, now: float) -> float | None:
    if moment is None:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(now, UTC)).total_seconds()


def _http_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


# --- rate limits ---

_PREFIXES: Final = (b"x-ratelimit-reset", b"ratelimit-reset")
_ANTHROPIC: Final = b"anthropic-ratelimit-"
_RESET: Final = b"-reset"


def _resets(values: dict[bytes, str]) -> Iterator[tuple[bytes, bytes]]:
    """The headers that say when a limit reopens, each with the one that says how much is left of it."""
    for name in values:
        if name.startswith(_PREFIXES):
            yield name, name.replace(b"reset", b"remaining", 1)
        elif name.startswith(_ANTHROPIC) and name.endswith(_RESET):
            yield name, name[: -len(_RESET)] + b"-remaining"


def _used_up(left: str | None) -> bool:
    """Also where nothing is said. Every reply carries every reset: those of limits with something left mean nothing."""
    number = None if left is None else _number(left)
    return left is None or number == 0.0


_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|us|µs|ns|[smhd])")
_PARTS: Final = re.compile(rf"(?:{_PART.pattern})+")
_UNITS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# From here on a number is a time and no duration: a second's epoch of 2001, and the same in milliseconds.
_EPOCH: Final = 1e9
_EPOCH_MS: Final = 1e12


def read_reset(text: str, now: float) -> float | None:
    """Seconds until a moment given as a duration (6m0s, 120ms), seconds, an epoch, RFC 3339 or an HTTP date."""
    if _PARTS.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if (number := _number(text)) is not None:
        moment = number / 1000.0 if number >= _EPOCH_MS else number
        return moment - now if number >= _EPOCH else number
    try:
        return _until(datetime.fromisoformat(text), now)
    except (ValueError, OverflowError):
        return _until(_http_date(text), now)


# --- back-off ---


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off: seconds before the first repetition, growth, cap, and whether chance shortens it."""

    initial: float = 0.5
    factor: float = 2.0
    maximum: float = 60.0
    jitter: bool = True

    def delay(self, repetition: int, random: Random) -> float:
        """Seconds before a repetition, counted from 1. Full jitter: uniform in [0, delay].

        Source: Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015.
        """
        delay = self.initial
        for _ in range(repetition - 1):
            if delay >= self.maximum:
                break
            delay *= self.factor
        delay = min(delay, self.maximum)
        return delay * random() if self.jitter else delay

    def after(self, seconds: float, random: Random) -> float:
        """A provider's own delay, and up to a tenth more so that not all who were told come back at once."""
        return seconds + random() * min(seconds / 10.0, self.initial) if self.jitter else seconds
