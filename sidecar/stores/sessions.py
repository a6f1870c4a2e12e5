"""What is remembered of sessions between their exchanges, in this process's memory.

Kept by tenant and session, bounded in number, forgotten when unused for a while. With several workers a session's
exchanges may meet different memories; see docs/guardrails.md on what that means for placeholders.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ..text.pseudonyms import Pseudonyms

MAX_SESSIONS: Final = 10_000
IDLE_SECONDS: Final = 24 * 3600.0


class Sessions:
    """`now` is a clock in seconds."""

    def __init__(
        self, now: Callable[[], float], *, limit: int = MAX_SESSIONS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._now, self._limit, self._idle = now, limit, idle_seconds
        self._known: OrderedDict[tuple[str, str], tuple[Pseudonyms, float]] = OrderedDict()
        self._replies: OrderedDict[tuple[str, str], str] = OrderedDict()

    def pseudonyms(self, tenant: str, session: str) -> Pseudonyms:
        """The session's placeholders; new ones where it is new or forgotten."""
        now = self._now()
        kept, used = self._known.pop((tenant, session), (None, 0.0))
        if kept is None or now - used > self._idle:
            kept = Pseudonyms()
        self._known[tenant, session] = (kept, now)
        self._forget(now)
        return kept

    def earlier(self, tenant: str) -> Callable[[str], str | None]:
        """The session of an earlier reply to this tenant, by the reply's id."""
        return lambda reply: self._replies.get((tenant, reply))

    def remember(self, tenant: str, reply: str, session: str) -> None:
        """A reply that a later request may name as the one before it."""
        self._replies[tenant, reply] = session
        self._replies.move_to_end((tenant, reply))
        while len(self._replies) > self._limit:
            self._replies.popitem(last=False)

    def _forget(self, now: float) -> None:
        """The first is the one unused for the longest."""
        while self._known:
            key, (_, used) = next(iter(self._known.items()))
            if now - used <= self._idle and len(self._known) <= self._limit:
                return
            del self._known[key]

    def __len__(self) -> int:
        return len(self._known)
