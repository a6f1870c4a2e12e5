"""What a call asks of each limit: as much as it may come to, or as much of that as there is left."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from ...core.identity import Identity
from ...stores.ledger import Claim, Refused
from .lines import Line, Spending
from .plan import Plan

# A model call proposes tool calls without knowing how many are left, so it holds some of the limit meanwhile: a part,
# so that others can run beside it, but at least so many and at most so many.
HELD_TOOL_CALLS: Final = 16
MOST_HELD: Final = 128
HELD_PART: Final = 8
# What a reservation that does not fit is lowered to before the call is refused, at most so often for each limit.
_TRIES: Final = 4


def held(limit: int) -> int:
    """How many tool calls one model call holds of a limit, if so many are left."""
    return min(max(limit // HELD_PART, HELD_TOOL_CALLS), MOST_HELD)


class Wish:
    """`asked` is what the call may come to, `least` what it must have to begin. `local`: of each limit only a share."""

    __slots__ = ("_amounts", "_claims", "_least", "_plan")

    def __init__(
        self, plan: Plan, identity: Identity, asked: Spending, least: Callable[[], Spending], *, hard: bool, local: bool
    ) -> None:
        self._plan, self._least = plan, least
        self._amounts = [held(line.limit) if line.tools else line.amount(asked) for line in plan.lines]
        claims: Iterable[Claim] = plan.claims(identity)
        if local:
            claims = [line.local(claim) for line, claim in zip(plan.lines, claims, strict=True)]
        self._claims = list(claims) if hard else [_informing(claim) for claim in claims]

    @property
    def tries(self) -> int:
        return _TRIES * len(self._amounts)

    def claims(self) -> list[Claim]:
        return [claim.of(amount) for claim, amount in zip(self._claims, self._amounts, strict=True)]

    def lower(self, refused: Refused) -> bool:
        """Asks for no more than there is left of what did not fit. False where that is not enough to begin."""
        at, room = refused.claim, max(0, refused.limit - refused.spent - refused.reserved)
        line = self._plan.lines[at]
        if not line.shrinks or room >= self._amounts[at] or room < self._least_of(line):
            return False
        self._amounts[at] = room
        if not room:
            # A limit on tool calls that is used up refuses nothing.
            self._claims[at] = _informing(self._claims[at])
        return True

    def _least_of(self, line: Line) -> int:
        """A limit on tool calls refuses no call: a model may answer without one."""
        return 0 if line.tools else max(1, line.measure(self._least()))


def _informing(claim: Claim) -> Claim:
    """One that refuses nothing."""
    return replace(claim, hard=False)
