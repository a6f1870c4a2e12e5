"""What a reply in text turns out to be made of."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple, TypeAlias


class Said(NamedTuple):
    """Text of the answer."""

    text: str


class Thought(NamedTuple):
    """Reasoning that the dialect marks as such."""

    text: str


class Begun(NamedTuple):
    """A call, for certain: its name is one of the tools. Calls are counted from 0."""

    index: int  # type: ignore[assignment]  # hides the tuple's own, which nobody needs
    name: str


class Argued(NamedTuple):
    """More of a call's arguments, as JSON text."""

    index: int  # type: ignore[assignment]  # hides the tuple's own, which nobody needs
    text: str


class Ended(NamedTuple):
    """All that was Argued is a JSON object. A call without an end was cut off or broken: it must not be made."""

    index: int  # type: ignore[assignment]  # hides the tuple's own, which nobody needs


class Misnamed(NamedTuple):
    """A whole envelope that names no tool. Its text is Said as well."""

    name: str


Piece: TypeAlias = Said | Thought | Begun | Argued | Ended | Misnamed


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece."""
    made: list[Piece] = []
    for kind, group in groupby(pieces, _kind):
        if kind is Said:
            made.append(Said("".join(piece.text for piece in group if isinstance(piece, Said))))
        elif kind is Thought:
            made.append(Thought("".join(piece.text for piece in group if isinstance(piece, Thought))))
        elif isinstance(kind, int):
            made.append(Argued(kind, "".join(piece.text for piece in group if isinstance(piece, Argued))))
        else:
            made.extend(group)
    return made


def _kind(piece: Piece) -> object:
    """Equal for what can be joined: arguments by their call."""
    return piece.index if isinstance(piece, Argued) else type(piece)
