"""Ends an exchange whose client has left or whose provider takes too long, and tells which it was.

One `Watch` for each exchange. It cancels the exchange's task; whoever catches the cancellation asks `meaning`.
A time limit counts only between `wait` and `rest`: a slow client costs the provider no patience. There is one
timer at most, and it is moved only when it would come too late: a stream re-arms nothing per piece.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ..errors import UpstreamTimeout
from ..upstream.targets import Timeouts

Register = Callable[[Callable[[], None]], None]
"""How a server lets us know when the client leaves: it is given what to call."""

_LEFT = "left"


class ClientLeft(Exception):
    """The client closed its connection. There is nobody to answer."""


class Watch:
    """Made by the exchange's own task. Call `close` on the way out, however that is."""

    __slots__ = (
        "_due",
        "_fires_at",
        "_handle",
        "_limit",
        "_limits",
        "_loop",
        "_phase",
        "_reason",
        "_started",
        "_task",
    )

    def __init__(self, limits: Timeouts, register: Register | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: Any = asyncio.current_task()
        self._limits = limits
        self._started = self._loop.time()
        self._due = 0.0
        self._limit = 0.0
        self._phase = ""
        self._reason = ""
        self._handle: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        if register is not None:
            register(self._leave)

    def limit(self, limits: Timeouts) -> None:
        """Takes these limits from now on: the target is known now."""
        self._limits = limits

    def begin(self) -> None:
        """From here on the exchange may take long: its total limit counts, whoever is waited for."""
        if self._handle is None:
            self._arm(self._started + self._limits.total)

    def wait(self, phase: str) -> None:
        """From here on we wait for the provider. `phase` is `first_byte` or `idle`."""
        self._phase = phase
        self._limit = self._limits.idle if phase == "idle" else self._limits.first_byte
        self._due = self._loop.time() + self._limit
        if self._handle is None or self._due < self._fires_at:
            self._arm(min(self._due, self._started + self._limits.total))

    def rest(self) -> None:
        """We no longer wait for the provider."""
        self._due = 0.0

    def close(self) -> None:
        """Nothing is watched any more."""
        self._task = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def meaning(self, cancelled: asyncio.CancelledError) -> BaseException:
        """ClientLeft or UpstreamTimeout if the cancellation was ours; otherwise `cancelled`, to be raised again."""
        reason, self._reason = self._reason, ""
        if not reason or self._task is None or self._task.uncancel() > 0:
            return cancelled
        return ClientLeft() if reason == _LEFT else UpstreamTimeout(reason, self._limit)

    def _arm(self, at: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._fires_at = at
        self._handle = self._loop.call_at(at, self._tick)

    def _tick(self) -> None:
        self._handle = None
        now = self._loop.time()
        end = self._started + self._limits.total
        if now >= end:
            self._phase, self._limit = "total", self._limits.total
            self._cancel("total")
        elif self._due and now >= self._due:
            self._cancel(self._phase)
        else:
            self._arm(min(self._due or end, end))

    def _leave(self) -> None:
        self._cancel(_LEFT)

    def _cancel(self, reason: str) -> None:
        if self._task is not None and not self._reason:
            self._reason = reason
            self._task.cancel()
