"""A text with its escapes undone: percent-encoding, HTML entities, and the escapes of JSON strings."""

import html
import json
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from html.entities import html5
from typing import Final, Literal, NamedTuple

from ..pattern import parse, prefixes
from .spelling import Unit

Escape = Literal["percent", "html", "json"]

_PERCENT: Final = (
    r"%[0-7][0-9A-Fa-f]"
    r"|%[C-Dc-d][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]"
    r"|%[Ee][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]"
    r"|%[Ff][0-7]%[89ABab][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]"
)
# Browsers read a number without its semicolon too. No name is longer than CounterClockwiseContourIntegral.
_HTML: Final = r"&#[0-9]{1,16};?|&#[Xx][0-9A-Fa-f]{1,16};?|&[A-Za-z][0-9A-Za-z]{1,30};"
_JSON: Final = r'\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4}'
_LONGEST: Final = 36


def _from_percent(spelt: str) -> str | None:
    try:
        return bytes.fromhex(spelt.replace("%", "")).decode()
    except UnicodeDecodeError:
        return None


def _from_html(spelt: str) -> str | None:
    if spelt[1] != "#":
        return html5.get(spelt[1:])
    text = html.unescape(spelt if spelt[-1] == ";" else spelt + ";")
    return text if text not in ("", "\ufffd") else None


def _from_json(spelt: str) -> str | None:
    text: str = json.loads(f'"{spelt}"')
    return text


class _Kind(NamedTuple):
    mark: str
    pattern: str
    read: Callable[[str], str | None]


_KINDS: Final[dict[Escape, _Kind]] = {
    "percent": _Kind("%", _PERCENT, _from_percent),
    "html": _Kind("&", _HTML, _from_html),
    "json": _Kind("\\", _JSON, _from_json),
}


_READERS: Final = {kind.mark: kind.read for kind in _KINDS.values()}


@lru_cache(maxsize=4096)
def _read(spelt: str) -> str | None:
    """What a whole escape stands for; None when it is none after all."""
    return _READERS[spelt[0]](spelt)


class Escaping:
    """The escapes of some kinds. Made once, shared by all texts."""

    def __init__(self, kinds: frozenset[Escape]) -> None:
        chosen = [_KINDS[kind] for kind in sorted(kinds)]
        self._mark = re.compile("|".join(re.escape(kind.mark) for kind in chosen))
        self.quotes = "json" in kinds
        source = "|".join(kind.pattern for kind in chosen)
        self.whole = re.compile(source)
        self._begun = re.compile(rf"(?:{prefixes(parse(source))})\Z")

    def marked(self, text: str) -> bool:
        return self._mark.search(text) is not None

    def begun(self, text: str, start: int) -> int:
        """Where, from `start` on, an escape begins that the text cuts off; the text's end if none does."""
        found = self._begun.search(text, max(start, len(text) - _LONGEST))
        return found.start() if found is not None else len(text)


@cache
def escaping(kinds: frozenset[Escape]) -> Escaping:
    return Escaping(kinds)


class Unescaper:
    """One running text with its escapes undone, and `fold` of what they stand for."""

    __slots__ = ("_escaping", "_fold", "_rest")

    def __init__(self, escaping: Escaping, fold: Callable[[str], str] = str) -> None:
        self._escaping = escaping
        self._fold = fold
        self._rest = ""  # an escape that is not complete yet

    @property
    def held(self) -> int:
        return len(self._rest)

    def passes(self, text: str) -> bool:
        return not self._rest and not self._escaping.marked(text)

    def feed(self, text: str) -> list[Unit]:
        return self._units(self._rest + text, final=False)

    def finish(self) -> list[Unit]:
        return self._units(self._rest, final=True)

    def spell(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1] if self._escaping.quotes else text

    def _units(self, text: str, *, final: bool) -> list[Unit]:
        units: list[Unit] = []
        at = kept = 0
        while (escape := self._escaping.whole.search(text, at)) is not None:
            spelt = escape[0]
            if not final and escape.end() == len(text) and _may_go_on(spelt):
                break
            read = _read(spelt)
            at = escape.start() + 1
            if read is not None:
                units += _as_it_is(text[kept : escape.start()])
                units.append(_cell(self._fold(read), spelt))
                at = kept = escape.end()
        end = len(text) if final else self._escaping.begun(text, at)
        units += _as_it_is(text[kept:end])
        self._rest = text[end:]
        return units


def _may_go_on(spelt: str) -> bool:
    return spelt[0] == "&" and spelt[-1] != ";"


def _cell(text: str, spelt: str) -> Unit:
    return Unit(text, spelt, len(text))


def _as_it_is(text: str) -> Iterable[Unit]:
    return (Unit(text),) if text else ()
