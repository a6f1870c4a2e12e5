"""`tools`: which tool calls a model may make, and what becomes of their results.

Where a reply may hold a call that has to be denied it is asked for through the port and held whole until all in it is
decided. Every other reply passes as it comes, its calls watched on their lanes.

    config    what a policy says
    path      which values of a call's arguments a condition is about
    reach     rules that no call can come to
    rules     the rules, compiled, and what the first that fits says
    asked     what a request says that calls are measured by
    pins      definitions that change within a session
    stage     built once for a policy
    visit     one call, and which of the two ways it goes
    held      a reply that is held whole
    watching  a reply that is not
    confirm   a call that waits for an admin
    results   what tools gave back
    told      what clients, models and the record are told
"""

from .config import ArgumentConfig, ResultsConfig, RuleConfig, ToolsConfig, name_of
from .reach import unreachable
from .results import Results
from .stage import Tools

__all__ = ["ArgumentConfig", "Results", "ResultsConfig", "RuleConfig", "Tools", "ToolsConfig", "name_of", "unreachable"]
