"""`decision: confirm`: a call that waits for an admin, as long as the policy says."""

import re
import secrets
from typing import Final

from ...core.exchange import Exchange
from ...stores.approvals import Decided, Desk, Pending
from ...wire import jsondoc
from ..scrub import error_excerpt
from .rules import Judged, Proposed, Unreadable
from .told import named

# How much of a call's arguments an admin is shown, after what looks like a secret was taken out.
SHOWN_ARGUMENTS: Final = 4_000
_MAX_NAME: Final = 200
# Printable ASCII, which is all that keys consist of.
_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_MAX_REASON: Final = 1_000
_NOBODY: Final = "nobody has approved it in time"
_REFUSED: Final = "it was not approved"


async def confirmed(exchange: Exchange, call: Proposed, judged: Judged, seconds: float) -> Judged:
    """What becomes of a call that a rule holds. Without a desk, and while the store is away, it is denied."""
    desk = exchange.approvals if isinstance(exchange.approvals, Desk) else None
    decided = None if desk is None else await desk.ask(_pending(exchange, call, judged, seconds), seconds)
    if decided is not None and decided.approved:
        return Judged("allow", judged.rule)
    return Judged("deny", judged.rule, _why(decided))


def unheld(judged: Judged) -> Judged:
    """The same where nothing can be waited for."""
    return Judged("deny", judged.rule, judged.reason)


def _why(decided: Decided | None) -> str:
    return _NOBODY if decided is None else decided.reason[:_MAX_REASON] or _REFUSED


def _pending(exchange: Exchange, call: Proposed, judged: Judged, seconds: float) -> Pending:
    who, now = exchange.identity, exchange.now()
    return Pending(
        id=f"apr_{secrets.token_hex(12)}",
        rule=judged.rule,
        tool=named(_shown(call.name, _MAX_NAME)),
        arguments=shown(call),
        tenant=exchange.tenant,
        agent=_shown(who.agent, _MAX_NAME),
        run=_shown(who.run, _MAX_NAME),
        asked_at=now,
        expires_at=now + seconds,
    )


def shown(call: Proposed) -> str:
    """A call's arguments for an admin: what escapes hide is read first, then it is redacted, then bounded."""
    try:
        text = call.arguments if call.free else jsondoc.encode(call.value()).decode()
    except Unreadable:
        text = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), call.arguments)
    return _shown(text, SHOWN_ARGUMENTS)


def _shown(text: str, limit: int) -> str:
    """Redacted, then bounded. Half of a surrogate pair, which no store takes, is written out."""
    return error_excerpt(text.encode("utf-8", "backslashreplace").decode(), limit)
