"""What a reply says, one piece at a time. Events are facts.

Named tuples, not dataclasses: a stream makes one or two of them for every frame.
"""

from typing import NamedTuple

from .decision import Stop
from .surface import Finding, Lane


class Text(NamedTuple):
    """More text on a lane. `last` says that this is its true end as well: all of a buffered reply's texts are."""

    lane: Lane
    text: str
    last: bool = False


class End(NamedTuple):
    """A lane's true end: nothing will follow on it."""

    lane: Lane


class Found(NamedTuple):
    """A rule found something in what has been said so far, and does this about it: redact or flag."""

    finding: Finding
    action: str


class Stopped(NamedTuple):
    """The last event of a reply that a stage ended."""

    decision: Stop


Event = Text | End | Found | Stopped
