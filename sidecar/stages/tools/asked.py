"""What a request says that calls are measured by: its tools, its earlier calls, and whether a call must come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...stores.runs import Call as Earlier
from ...text.schemas import Checker, SchemaError
from ...wire import jsondoc
from ...wire.conversation import Asked, Called, Choice, HostedCall, Replied, Tool
from .rules import Proposed, Unreadable

NO_CHOICE: Final = Choice()
_NO_SUCH_TOOL: Final = "the request offers no such tool"
# Nothing more can be told of a reply that ended so, and asking again would not be for a fault of the model's.
_CUT: Final = ("length", "filtered")


@dataclass(frozen=True, slots=True)
class Offer:
    """`complete`: the request names all tools there are; it does not where it goes on from a prompt that is stored.
    `approvals`: the client may be asked about calls of the provider's own tools, of which it names none."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    choice: Choice = NO_CHOICE
    complete: bool = False
    approvals: bool = False

    @classmethod
    def of(cls, asked: Asked, document: Mapping[str, Any]) -> "Offer":
        tools = {tool.name: tool for tool in asked.tools}
        return cls(tools, asked.choice, not isinstance(document.get("prompt"), dict), asked.approvals)

    @property
    def names_none(self) -> bool:
        """Whether no reply to this request can hold a call, as far as the request says."""
        return not self.tools and not self.approvals

    def fault(self, call: Proposed) -> str | None:
        """What is wrong with a call, in words for the model; none of its values."""
        if call.hosted:
            return None
        tool = self.tools.get(call.name)
        if tool is None:
            return _NO_SUCH_TOOL if self.complete else None
        if call.free:
            return None
        try:
            value = call.value()
        except Unreadable as error:
            return str(error)
        checker = _checker(tool)
        faults = checker.faults(value, 1) if checker is not None else ()
        return str(faults[0]) if faults else None

    def misses(self, reply: Replied, choice: int, calls: Sequence[Called]) -> str | None:
        """What a reply lacks that must hold a call. A refusal and a reply that was cut lack nothing."""
        if self.choice.kind != "required" or reply.refused(choice) or reply.ending(choice) in _CUT:
            return None
        name = self.choice.name
        if any(not name or call.name == name for call in calls):
            return None
        return f"the tool {name} must be called" if name else "one of the tools must be called"


def _checker(tool: Tool) -> Checker | None:
    """None for a tool without a schema, and for one whose schema cannot be used: the provider may know its meaning."""
    if tool.parameters is None:
        return None
    try:
        return Checker.of(tool.parameters)
    except SchemaError:
        return None


def is_cut(reply: Replied, choice: int) -> bool:
    return reply.ending(choice) in _CUT


def earlier(asked: Asked) -> list[Earlier]:
    """The calls in a request's history, in order. One that was approved and then run is one."""
    calls = [each for each in asked.history if isinstance(each, Called | HostedCall)]
    approved = {(call.id, call.name) for call in calls if isinstance(call, Called) and call.hosted}
    return [(call.id, call.name) for call in calls if isinstance(call, Called) or (call.id, call.name) not in approved]


def turn(document: Mapping[str, Any]) -> int:
    """Tells a request apart from those before and after it in its run.

    All of it counts: a history that is always cut to the same length, or that names calls by their place, is the same
    from one request to the next.
    """
    return hash(jsondoc.encode(document))
