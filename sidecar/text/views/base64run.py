"""A text with its base64 undone, where it spells text: standard or URL-safe, on one line or wrapped."""

import re
from binascii import a2b_base64
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import ClassVar, Final

from ..engine import Program
from .spelling import Unit

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
# A run shorter than this is a word. Its first characters must spell text, or none of it is read.
SHORTEST: Final = 16
# How much of one run is read.
LONGEST: Final = 64 << 10
_QUANTUM: Final = 4
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]*")
_LINE_ENDS: Final = re.compile(r"[\r\n]+")
_LONG_RUN: Final = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST}}}")
_ANY_RUN: Final = Program(_LONG_RUN.pattern)
_BINARY: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_STANDARD: Final = str.maketrans("-_", "+/")
_Utf8: Final = getincrementaldecoder("utf-8")


def has_runs(text: str) -> bool:
    """True where something may be read; for long texts."""
    return _ANY_RUN.search(text.encode("utf-8", "replace"), 0) is not None


class Base64Reader:
    """One running text with its base64 undone.

    A quantum of four characters spells those that end in its three bytes. A run is read up to the first quantum that
    does not spell text; what it spells is read as `fold` of it.
    """

    __slots__ = ("_fold", "_rest", "_room", "_state", "_utf8")

    def __init__(self, fold: Callable[[str], str] = str) -> None:
        self._fold = fold
        self._state = "outside"  # of a run; or reading one, at its padding, or skipping its rest
        self._rest = ""  # a run that may be a word, or a quantum that is not complete
        self._room = 0  # characters of the run that may still be read
        self._utf8 = _Utf8()

    @property
    def held(self) -> int:
        return len(self._rest)

    def passes(self, text: str) -> bool:
        if self._rest or self._state != "outside":
            return False
        return not text or (text[-1] not in _ALPHABET and _LONG_RUN.search(text) is None)

    def feed(self, text: str) -> list[Unit]:
        units: list[Unit] = []
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            at = self._steps[self._state](self, text, at, units)
        return units

    def finish(self) -> list[Unit]:
        units: list[Unit] = []
        rest, self._rest = self._rest, ""
        if self._state == "reading":
            self._last(rest, units)
        else:
            _keep(rest, units)
        return units

    def spell(self, text: str) -> str:
        return text

    def _outside(self, text: str, at: int, units: list[Unit]) -> int:
        run = _LONG_RUN.search(text, at)
        if run is None:
            end = max(at, len(text.rstrip(_ALPHABET)))
            _keep(text[at:end], units)
            self._rest = text[end:]
            return len(text)
        _keep(text[at : run.start()], units)
        self._room = LONGEST
        self._utf8.reset()
        self._state = "reading" if _spells_text(run[0]) else "skipping"
        return run.start()

    def _skipping(self, text: str, at: int, units: list[Unit]) -> int:
        end = _end(_RUN, text, at)
        _keep(text[at:end], units)
        if end < len(text):
            self._state = "outside"
        return end

    def _reading(self, text: str, at: int, units: list[Unit]) -> int:
        end = _end(_RUN, text, at)
        size = (end - at) // _QUANTUM * _QUANTUM
        read = self._quanta(text[at : at + min(size, self._room)], units)
        self._room -= read
        at += read
        if read < size:
            self._state = "skipping"
        elif end == len(text):
            self._rest = text[at:]
            return end
        elif at < end or text[at] not in "\r\n":
            self._last(text[at:end], units)
            return end
        else:
            end = _end(_LINE_ENDS, text, at)
            units.append(Unit("", text[at:end]))
            return end
        return at

    def _padding(self, text: str, at: int, units: list[Unit]) -> int:
        if text[at] != "=" or not self._room:
            self._state = "outside"
            return at
        self._room -= 1
        units.append(Unit("", "="))
        return at + 1

    def _quanta(self, run: str, units: list[Unit]) -> int:
        """Reads whole quanta as far as they spell text. Returns how much of the run that is."""
        data = _bytes(run)
        if data.isascii() and not self._utf8.getstate()[0] and not _BINARY.search(text := data.decode()):
            if run:
                units.append(Unit(text, run, 3))
            return len(run)
        for at in range(0, len(run), _QUANTUM):
            if not self._one(run[at : at + _QUANTUM], units):
                return at
        return len(run)

    def _one(self, quantum: str, units: list[Unit]) -> bool:
        try:
            text = self._utf8.decode(_bytes(quantum))
        except UnicodeDecodeError:
            return False
        if _BINARY.search(text):
            return False
        text = self._fold(text)
        units.append(Unit(text, quantum, len(text)))
        return True

    def _last(self, rest: str, units: list[Unit]) -> None:
        """The end of a run: perhaps a quantum without its padding."""
        reads = len(rest) > 1 and self._one(rest, units)
        self._state = "padding" if reads else "outside"
        self._room = _QUANTUM - len(rest)
        if not reads:
            _keep(rest, units)

    _steps: ClassVar[dict[str, Callable[["Base64Reader", str, int, list[Unit]], int]]] = {
        "outside": _outside,
        "skipping": _skipping,
        "reading": _reading,
        "padding": _padding,
    }


def _end(kind: re.Pattern[str], text: str, at: int) -> int:
    """Where the characters of a kind end that begin here."""
    found = kind.match(text, at)
    return at if found is None else found.end()


def _bytes(run: str) -> bytes:
    return a2b_base64(run.translate(_STANDARD) + "=" * (-len(run) % _QUANTUM))


def _spells_text(run: str) -> bool:
    try:
        return _BINARY.search(_Utf8().decode(_bytes(run))) is None
    except UnicodeDecodeError:
        return False


def _keep(text: str, units: list[Unit]) -> None:
    if text:
        units.append(Unit(text))
