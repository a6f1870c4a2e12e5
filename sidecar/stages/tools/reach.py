"""Rules that no call can come to, since one before them takes all of theirs."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from .config import RuleConfig, ToolsConfig, name_of

# A glob with one of these stands for fewer names than its text, looked at as a name, would say.
_NARROW: Final = "?["


def unreachable(config: ToolsConfig) -> Iterator[tuple[str, str]]:
    """The names of such a rule and of the first that takes its calls. Never one that a call could come to."""
    takers: list[tuple[str, RuleConfig]] = []
    for at, rule in enumerate(config.rules):
        name = name_of(rule, at)
        taker = next((taker for taker, earlier in takers if _takes_all(earlier, rule)), None)
        if taker is not None:
            yield name, taker
        elif not rule.arguments and rule.after is None and rule.more_than_in_a_row is None:
            takers.append((name, rule))


def _takes_all(earlier: RuleConfig, later: RuleConfig) -> bool:
    """`earlier` has no other conditions than whom and which tools it concerns."""
    pairs = ((earlier.tool, later.tool), (earlier.tenants, later.tenants), (earlier.agents, later.agents))
    return all(_covers(wide, narrow) for wide, narrow in pairs)


def _covers(wide: Sequence[str] | None, narrow: Sequence[str] | None) -> bool:
    if wide is None or "*" in wide:
        return True
    return narrow is not None and all(any(_covers_one(glob, each) for glob in wide) for each in narrow)


def _covers_one(wide: str, narrow: str) -> bool:
    """Whether one glob fits every name that another does. False where that is not plain to see.

    Where `*` is all there is in `wide`, only a `*` of it can fit the `*` and `?` of `narrow`, and then fits whatever
    they stand for.
    """
    if wide == narrow:
        return True
    return not any(char in wide for char in _NARROW) and "[" not in narrow and fnmatchcase(narrow, wide)
