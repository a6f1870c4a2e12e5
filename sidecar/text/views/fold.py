"""A text as a person reads it: compatibility forms in their plain form, invisible characters gone, and characters
that look like ASCII as the ASCII they look like.

Each code point is read on its own, so that a text reads the same however it is cut: a letter and the accent that
follows it are not composed.
"""

import unicodedata
from array import array
from functools import cache
from itertools import chain
from typing import Final, Literal

from .confusables import LOOKS_LIKE
from .spelling import Unit

Fold = Literal["nfkc", "invisible", "confusables"]

# What a compatibility form can be: not among Hangul syllables, surrogates and the planes above, which have none.
_CODE_POINTS: Final = tuple(
    chain(range(0x80, 0xAC00), range(0xD7A4, 0xD800), range(0xE000, 0x20000), range(0x2F800, 0x2FA20))
)
# Unicode's Default_Ignorable_Code_Point (joiners, soft hyphen, fillers, bidi controls, variation selectors, tags),
# interlinear annotation, and control characters that are not white space.
_CONTROLS: Final = (*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0))
_INVISIBLE: Final = (
    *_CONTROLS,
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
    *range(0x180B, 0x1810),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFFC),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
)
_ASCII_CONTROLS: Final = bytes(code for code in _CONTROLS if code < 0x80)
# Stands where a character becomes none or several. No text has it: it is not a character, and reads as U+FFFD.
RESIZED: Final = "\uffff"
_END: Final = 0xE1000


class Folding:
    """What one choice of folds makes of each character. Made once, shared by all texts."""

    def __init__(self, folds: frozenset[Fold]) -> None:
        self._hides = "invisible" in folds
        self.table = _table(folds)
        self._drawn = _drawn(self.table)

    def is_plain(self, text: str) -> bool:
        """ASCII that is read as it is."""
        if not text.isascii():
            return False
        return not self._hides or text.isprintable() or len(text.encode().translate(None, _ASCII_CONTROLS)) == len(text)

    def drawn(self, text: str) -> str:
        """The text with every character that becomes none or several as RESIZED; as long as the text."""
        return text.translate(self._drawn)

    def folded(self, text: str) -> str:
        """The text as it is read."""
        return text if self.is_plain(text) else "".join([unit.text for unit in Folder(self).feed(text)])


@cache
def folding(folds: frozenset[Fold]) -> Folding:
    return Folding(folds)


class Folder:
    """One running text under a folding."""

    __slots__ = ("_folding",)

    held = 0

    def __init__(self, folding: Folding) -> None:
        self._folding = folding

    def passes(self, text: str) -> bool:
        return self._folding.is_plain(text)

    def feed(self, text: str) -> list[Unit]:
        units: list[Unit] = []
        at = 0
        for piece in self._folding.drawn(text).split(RESIZED):
            end = at + len(piece)
            if piece:
                spelt = text[at:end]
                units.append(Unit(piece) if piece == spelt else Unit(piece, spelt))
            if end < len(text):
                read = self._folding.table[text[end]]
                units.append(Unit(read, text[end], len(read)))
            at = end + 1
        return units

    def finish(self) -> list[Unit]:
        return []

    def spell(self, text: str) -> str:
        return text


def _table(folds: frozenset[Fold]) -> dict[str, str]:
    """Every character that does not stay as it is."""
    table = {chr(code): "" for code in _INVISIBLE} if "invisible" in folds else {}
    looks = LOOKS_LIKE if "confusables" in folds else {}
    if "nfkc" in folds:
        for code in _CODE_POINTS:
            if unicodedata.decomposition(char := chr(code)) and char not in table:
                form = unicodedata.normalize("NFKC", char)
                table[char] = "".join(table.get(part, looks.get(part, part)) for part in form)
    for char, look in looks.items():
        table.setdefault(char, look)
    return {char: text for char, text in table.items() if char != text}


def _drawn(table: dict[str, str]) -> str:
    """At each code point what is drawn there: a table that a text's `translate` reads without a detour."""
    codes = array("I", range(_END))
    codes[ord(RESIZED)] = ord("\ufffd")
    for char, text in table.items():
        codes[ord(char)] = ord(text if len(text) == 1 else RESIZED)
    return codes.tobytes().decode("utf-32", "surrogatepass")
