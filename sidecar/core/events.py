"""What a reply says, one piece at a time. Events are facts.

Named tuples, not dataclasses: a stream makes one or two of them for every frame.
"""

from typing import NamedTuple

from .decision import Stop
from .surface import Finding, Lane
from .usage import Usage


class Text(NamedTuple):
    """More text on a lane. `last` says that this is its true end as well: all of a buffered reply's texts are."""

    lane: Lane
    text: str
    last: bool = False


class End(NamedTuple):
    """A lane's true end: nothing will follow on it."""

    lane: Lane


class Began(NamedTuple):
    """The provider answers, with this status. Before everything else of a reply. `target` is who serves it."""

    status: int
    target: str = ""


class Used(NamedTuple):
    """What the provider says the call has used so far: running totals."""

    usage: Usage


class Wasted(NamedTuple):
    """An attempt whose reply nobody gets has used so much, at this target. Before the reply that is handed down."""

    usage: Usage
    target: str = ""


class Dropped(NamedTuple):
    """A tool call is taken out of the reply, all of it: `lane` is its name's. `notice` is said in its place."""

    lane: Lane
    notice: str


class Waits(NamedTuple):
    """A tool call is not decided yet: `lane` is its name's. Nothing of the reply leaves from here on until it is."""

    lane: Lane


class Made(NamedTuple):
    """A tool call is complete: nothing more of it will come. `lane` is its name's."""

    lane: Lane


class Goes(NamedTuple):
    """A tool call that waited goes on to the client. One that does not is dropped, or the reply is stopped."""

    lane: Lane


class Hosted(NamedTuple):
    """A call of a tool that the provider runs itself: it has, or `asks` the client whether it may.

    Said as often as frames tell of it, and before their texts. `choice` is that of its lanes, `named`: its name is on
    one of them.
    """

    choice: int
    id: str
    name: str
    named: bool = True
    asks: bool = False


class Found(NamedTuple):
    """A rule found something in what has been said so far, and does this about it: redact or flag."""

    finding: Finding
    action: str


class Stopped(NamedTuple):
    """The last event of a reply that a stage ended."""

    decision: Stop


Event = Text | End | Began | Used | Wasted | Dropped | Waits | Made | Goes | Hosted | Found | Stopped
