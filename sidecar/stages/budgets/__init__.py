"""`budgets`: how much may be used, by whom and in which time. Reserved before each call, settled with what was used.

All budgets that apply to a call are reserved at once, all or none, with what the call may come to: its prompt as
estimated, and the completion that it may be answered with. What is left of a limit is enough to begin: a call is
refused when not even its prompt fits, and the reply that crosses a limit is kept whole. When the call is over the
reservation becomes what was really used: as the provider reports it, else as counted.

    config   what a policy says
    lines    its limits, one by one
    whose    the accounts that they are counted in
    plan     what of this concerns a call of one tenant and model
    stage    all budgets of one mode
    wish     what a call asks of each limit, lowered to what is left
    visit    one call, from its reservation to what it comes to
    heard    what its reply says
    told     what clients and the operator are told
"""

from .config import LIMITS, BudgetConfig, TokensConfig
from .lines import NO_TOOLS, Line, Spending, lines
from .stage import Budgets
from .told import shown
from .visit import BudgetVisit
from .whose import account, segment
from .wish import HELD_TOOL_CALLS, MOST_HELD, held

__all__ = [
    "HELD_TOOL_CALLS",
    "LIMITS",
    "MOST_HELD",
    "NO_TOOLS",
    "BudgetConfig",
    "BudgetVisit",
    "Budgets",
    "Line",
    "Spending",
    "TokensConfig",
    "account",
    "held",
    "lines",
    "segment",
    "shown",
]
