"""Where in a short text something may begin, place by place.

A search builds an automaton for all places at once, which is quick where it has been before and slow where not. Most
pieces of a stream are a few bytes long. What two bytes say of the place where they stand is soon known for all texts,
and rules out nearly every place; an automaton for one place has few states.
"""

from collections.abc import Callable
from typing import Final

from .engine import Program

# Texts longer than this are searched.
SHORT_TEXT: Final = 32
# How many answers are remembered.
_MOST: Final = 1 << 14
# What may stand before a place and matters: nothing, a letter, none, the end of a line.
_BEFORE: Final = (b"", b"a", b" ", b"\n")


class Remembered(dict[bytes, int]):
    """Answers, forgotten all at once when there are too many."""

    def __init__(self, ask: Callable[[bytes], int]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, text: bytes) -> int:
        if len(self) >= _MOST:
            self.clear()
        answer = self[text] = self._ask(text)
        return answer


class Places:
    """The places where a program matches that matches up to a text's end."""

    __slots__ = ("_pairs", "_program")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._pairs = Remembered(self._pair)

    def first(self, text: bytes, start: int) -> int:
        """The first one from `start` on; the text's end if there is none. A byte at least stands before `start`."""
        pairs, begins = self._pairs, self._program.at
        for at in range(start, len(text)):
            if pairs[text[at : at + 2]] and begins(text, at) is not None:
                return at
        return len(text)

    def _pair(self, pair: bytes) -> int:
        if pair[0] & 0xC0 == 0x80:
            return 0
        pair = whole_characters(pair)
        return anywhere(pair, lambda text, at: self._program.at(text, at) is not None)


def anywhere(pair: bytes, ask: Callable[[bytes, int], int]) -> bool:
    """Whether `ask` says yes of these bytes, whatever stands before them."""
    return any(ask(before + pair, len(before)) for before in _BEFORE)


def whole_characters(text: bytes) -> bytes:
    """The text, which begins with a whole character, without its last one where that is cut off."""
    last = len(text) - 1
    while last > 0 and text[last] & 0xC0 == 0x80:
        last -= 1
    return text[:last] if len(text) - last < _size(text[last]) else text


def _size(lead: int) -> int:
    """How many bytes a character has that begins with this one."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
