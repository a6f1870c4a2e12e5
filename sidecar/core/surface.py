"""Where text lives: surfaces, slots on them, and the lanes a stream builds up."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple


class Kind(StrEnum):
    """What a guardrail's `on` can name."""

    SYSTEM = "system"
    USER = "user"
    TOOL_RESULTS = "tool_results"
    ASSISTANT = "assistant"
    TOOL_CALLS = "tool_calls"
    REPLY = "reply"
    REASONING = "reasoning"
    TOOLS = "tools"


# Tool definitions are the agent author's own text: a rule looks at them only when it says so.
OPT_IN = frozenset({Kind.TOOLS})
EVERYWHERE = frozenset(Kind) - OPT_IN
# What a reply holds beside what it says again of its request.
SAID = frozenset({Kind.REPLY, Kind.REASONING, Kind.TOOL_CALLS, Kind.TOOL_RESULTS})


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """A kind of place: endpoint, direction and field. `json` says that its text is itself a JSON document, `unknown`
    that no API documents the place: the policy's `inspect.unknown` says what happens to texts there. `calls` says that
    its text is the name of a tool call, and whether that call can be taken out of a reply that has begun. `closed`: a
    document that could not be read into its places, so that it may hold a text of any kind that a reply has.

    Each is made once, in the table of its wire module, and is itself and no other: lanes are looked up by it for
    every frame of a stream.
    """

    name: str
    kind: Kind
    json: bool = False
    unknown: bool = False
    calls: Literal["", "fixed", "loose"] = ""
    closed: bool = False

    def __str__(self) -> str:
        return self.name


class Slot:
    """One text on a surface, with a way to read and replace it in the parsed document."""

    __slots__ = ("_holder", "_key", "surface")

    def __init__(self, surface: Surface, holder: Any, key: str | int) -> None:
        self.surface, self._holder, self._key = surface, holder, key

    @property
    def key(self) -> str | int:
        """The name or index of the text in the object or list that holds it."""
        return self._key

    @property
    def text(self) -> str:
        text: str = self._holder[self._key]
        return text

    def replace(self, text: str) -> None:
        self._holder[self._key] = text


class Lane(NamedTuple):
    """The running text that a stream builds up: a surface, a choice, and which of its parts (a tool call's index)."""

    surface: Surface
    choice: int = 0
    part: int | str = 0

    @property
    def names_call(self) -> bool:
        """Whether its text is the name of a tool call. In some APIs the server or namespace of the tool has one too."""
        return bool(self.surface.calls) and (not isinstance(self.part, str) or self.part in _NAME_PARTS)


# Where an item's texts are told apart by their fields: which of them is the tool's own name.
_NAME_PARTS = ("name", "function_call")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule saw and where; never the text it matched.

    `start` and `end` count characters in the slot's or lane's text as the rule saw it; None where the call was
    stopped before that was known.
    """

    rule: str
    name: str
    surface: Surface
    start: int | None = None
    end: int | None = None


def watched(slots: Iterable[Slot], kinds: frozenset[Kind]) -> Iterable[Slot]:
    return (slot for slot in slots if slot.surface.kind in kinds)
