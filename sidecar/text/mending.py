"""JSON out of what is nearly JSON. Nothing is made up and nothing lost: else it is left alone."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import json_repair

# What the library takes for some texts grows with their square: 0.15 s at this length.
MAX_GUESSED: Final = 4_096

_WORDS: Final = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}


def mended(text: str) -> str | None:
    """The JSON text that was meant, None where that is not certain.

    Read as what people write for JSON: comments, single quotes, words of Python, keys without quotes, commas before
    a closing bracket, line breaks in strings. Beyond that, up to MAX_GUESSED characters, a library guesses at
    quotation marks within strings and missing commas; its guess counts only when it has the keys, strings, numbers
    and brackets that were written, in their order, and no others. `text` begins and ends with brackets.
    """
    return _rewritten(text) or (_guessed(text) if len(text) <= MAX_GUESSED else None)


# --- what can be read ---

_TOKEN: Final = re.compile(
    r"""(?P<gap>(?:[ \t\r\n]|//[^\n]*|\#[^\n]*|/\*.*?\*/)+)
      | (?P<double>"(?:[^"\\]|\\.)*")
      | (?P<single>'(?:[^'\\]|\\.)*')
      | (?P<number>-?[0-9][0-9.eE+-]*)
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<mark>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
_IN_STRING: Final = re.compile(r"\\(.)|([\"\x00-\x1f])", re.DOTALL)


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token] | None:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            return None
        at = match.end()
        if match.lastgroup != "gap":
            found.append(_Token(match.lastgroup, match[0]))
    return iter([*found, _Token("end", "")])


def _rewritten(text: str) -> str | None:
    tokens = _tokens(text)
    if tokens is None:
        return None
    written = [_written(token, after) for token, after in pairwise(tokens)]
    said = " ".join(part for part in written if part is not None)
    return said if None not in written and _is_json(said) else None


def _written(token: _Token, after: _Token) -> str | None:
    match token.kind:
        case "double" | "single":
            return f'"{_IN_STRING.sub(_escaped, token.text[1:-1])}"'
        case "word":
            return f'"{token.text}"' if after.text == ":" else _WORDS.get(token.text)
        case "mark" if token.text == "," and after.text in ("}", "]"):
            return ""
    return token.text


def _escaped(match: re.Match[str]) -> str:
    escape, bare = match.groups()
    if bare:
        return json.dumps(bare)[1:-1]
    return "'" if escape == "'" else match[0]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# --- what can be guessed ---


def _guessed(text: str) -> str | None:
    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return _same(value, text)


_GAP: Final = re.compile(r"(?:[\s,:\"'“”]|//[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_QUOTES: Final = "\"'“”"


class _Differs(Exception):
    """The guess is not what was written."""


class _Reader:
    """Goes along a text with a guess at what it means."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def value(self, value: Any) -> str:
        """The value as JSON, numbers as they were written. Raises _Differs."""
        match value:
            case dict():
                pairs = [self._mark("{")] + [
                    f"{self._string(key, is_key=True)}:{self.value(value[key])}" for key in value
                ]
                return f"{{{','.join(pairs[1:])}{self._mark('}')}"
            case list():
                items = [self._mark("[")] + [self.value(item) for item in value]
                return f"[{','.join(items[1:])}{self._mark(']')}"
            case str():
                return self._string(value)
            case bool() | None:
                return self._word(json.dumps(value))
        return self._number(value)

    def over(self) -> bool:
        self._gap()
        return self._at == len(self._text)

    def _gap(self) -> None:
        gap = _GAP.match(self._text, self._at)
        self._at = gap.end() if gap else self._at

    def _mark(self, mark: str) -> str:
        self._gap()
        return self._take(mark)

    def _take(self, written: str) -> str:
        if not self._text.startswith(written, self._at):
            raise _Differs
        self._at += len(written)
        return written

    def _string(self, value: str, *, is_key: bool = False) -> str:
        """A string stands in quotation marks, a key may stand without; and each is written in one of three ways."""
        self._gap()
        said = json.dumps(value, ensure_ascii=False)
        plain = () if "\\" in value else (value,)
        opened = self._text[self._at - 1] in _QUOTES
        for written in (said[1:-1], *plain, said[1:-1].replace('\\"', '"')):
            end = self._at + len(written)
            closed = self._text[end : end + 1] in (*_QUOTES,)
            if self._text.startswith(written, self._at) and opened == closed and (opened or is_key):
                self._at = end
                return said
        raise _Differs

    def _word(self, word: str) -> str:
        self._gap()
        for written, meant in _WORDS.items():
            if meant == word and self._text.startswith(written, self._at):
                self._at += len(written)
                return word
        raise _Differs

    def _number(self, value: float) -> str:
        self._gap()
        number = _NUMBER.match(self._text, self._at)
        if number is None or json.loads(number[0]) != value:
            raise _Differs
        self._at = number.end()
        return number[0]


def _same(value: Any, text: str) -> str | None:
    reader = _Reader(text)
    try:
        written = reader.value(value)
    except (_Differs, RecursionError):
        return None
    return written if reader.over() else None
