"""What clients, models and the record are told."""

from typing import Final

from ...core.surface import Finding, Kind, Surface
from ..repairing import quoted

PLACE: Final = Surface("tools.calls", Kind.TOOL_CALLS)
DEFINITIONS: Final = Surface("tools.definitions", Kind.TOOLS)
# What findings are called that are no rule's. `TOOLS`: of a reply in which no rule can see calls.
TOOLS: Final = "tools"
INVALID: Final = "on_invalid"
UNKNOWN: Final = "on_unknown"
PIN: Final = "pin"
# What a tool is called in a text of ours: names may come from a model.
_MAX_NAME: Final = 64
# How much of a call's arguments the model is shown again.
_MAX_QUOTED: Final = 1_000


def finding(rule: str, what: str, place: Surface = PLACE) -> Finding:
    return Finding(rule, what, place)


def named(name: str) -> str:
    """A tool's name in a text of ours, on one line and not longer than names are."""
    plain = "".join(char if char.isprintable() else "?" for char in name)
    return plain if len(plain) <= _MAX_NAME else f"{plain[:_MAX_NAME]}…"


def notice(name: str, reason: str) -> str:
    """In a call's place, for whoever reads the reply."""
    return f"The call of {named(name)} was denied: {reason}."


def result(reason: str) -> str:
    """In the place of a tool's result, for the model."""
    return f"denied: {reason}"


def again_for_call(name: str, arguments: str, fault: str) -> str:
    shown = quoted(arguments, _MAX_QUOTED)
    return (
        f"The call of the tool {named(name)} with the arguments {shown} cannot be made: {fault}. Call a tool again "
        "with arguments that fit its schema, or answer without a call."
    )


def again_for_missing(fault: str, said: str) -> str:
    """The reply is quoted: a second repair that said the same as the first would get the same again."""
    shown = f" It was: {quoted(said, _MAX_QUOTED)}" if said else ""
    return f"The reply held no such call: {fault}. Reply with the call.{shown}"


def again_for_unknown(name: str) -> str:
    return (
        f"There is no tool {named(name)}. Call one of the tools that there are, by its exact name, or answer without "
        "a call."
    )
