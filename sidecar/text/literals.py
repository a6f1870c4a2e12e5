r"""JSON and Python literals to strict JSON text, while they arrive.

What comes out is JSON whatever came in, or it is not whole and says so. Space between tokens is left out; strings keep
their spelling as far as JSON has it, and numbers keep theirs to the digit, however long. Beyond JSON are read:

- single quotes, `True`, `False`, `None`, `\'` and `\xHH`; a comma too many;
- line ends and other control characters inside a string, and a backslash that escapes nothing;
- half a surrogate pair, which becomes U+FFFD;
- a key that the same object has already: it is left out with its value, as the first has gone out by then.

Unless `strict`, also what can be mended as it comes:

- a bare word, `NaN` and `Infinity` among them, as a string; a bare word as a key;
- a quote inside a string, seen by what follows it; a comma or a colon's space that is missing at a line's end;
- a closing bracket that is missing before an outer one, before one of the `stops`, or at the very end.

What cannot be mended is Broken: a string without an end, a key without a value, more than 128 brackets in one
another, keys or bare words of more than 1,000 characters, more than 10,000 keys. Strict, so is a line end in a string.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from .cursor import Cursor, Steps

MAX_DEPTH: Final = 128
"""Less than what any JSON reader takes."""
MAX_KEYS: Final = 10_000
MAX_WORD: Final = 1_000
"""Characters of a key or a bare word. Less than the digits that Python reads as an integer, 4,300."""

Put = Callable[[str], object]

SPACE: Final = re.compile(r"\s+")
_PLAIN: Final = {
    '"': re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+'),
    "'": re.compile(r"[^'\"\\\x00-\x1f\ud800-\udfff]+"),
}
_STRICTLY_BARE: Final = re.compile(r"[\w.+-]+")
_NAME: Final = re.compile(r"[\w$.-]+")
_COMMAS: Final = re.compile(r"[\s,]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_UNICODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_HEX: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CLOSERS: Final = {"{": "}", "[": "]"}
_WORDS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), "true"),
    **dict.fromkeys(("false", "False", "FALSE"), "false"),
    **dict.fromkeys(("null", "None", "NULL"), "null"),
}


@cache
def _bare(but: str) -> re.Pattern[str]:
    """What a bare word is made of, but for some characters."""
    return re.compile(rf"[^,}}\]\r\n{re.escape(but)}]+")


class Broken(Exception):
    """This is no literal. The cursor stands behind the last that could be one."""


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(slots=True)
class _Open:
    closer: str
    empty: bool = True
    keys: set[str] = field(default_factory=set)


class Values:
    """Reads values at a cursor, and puts out JSON. Raises Broken.

    `stops` are texts that no value goes beyond where it could be over: what is open there is closed.
    """

    __slots__ = ("_count", "_cursor", "_mute", "_open", "_out", "_stops", "_strict")

    def __init__(self, cursor: Cursor, out: Put, *, strict: bool = False, stops: tuple[str, ...] = ()) -> None:
        self._cursor = cursor
        self._out = out
        self._strict = strict
        self._stops = stops
        self._open: list[_Open] = []
        self._mute = 0  # how many brackets are open around a member that is left out; 0: nothing is left out
        self._count = 0  # keys

    def value(self) -> Steps[None]:
        """One value with all that is in it."""
        yield from self._value()
        while self._open:
            yield from self._next()

    def key(self) -> Steps[str]:
        """A key and its colon."""
        char = yield from self._cursor.peek()
        if char in _PLAIN:
            parts: list[str] = []
            yield from self._string(char, ":", _bounded(parts))
            spelt = "".join(parts)
            name: str = json.loads(spelt) if len(spelt) <= MAX_WORD else spelt
        elif self._strict:
            raise Broken
        else:
            name = yield from self._cursor.runs(_NAME, MAX_WORD)
        yield from self._cursor.runs(SPACE, 0)
        if (not name and char not in _PLAIN) or len(name) > MAX_WORD or (yield from self._cursor.peek()) != ":":
            raise Broken
        self._cursor.at += 1
        return name

    # --- lists and objects ---

    def _next(self) -> Steps[None]:
        top = self._open[-1]
        if self._mute == len(self._open):
            self._mute = 0
        commas = (yield from self._cursor.runs(_COMMAS, MAX_WORD)).count(",")
        char = yield from self._cursor.peek()
        if not char or (yield from self._cursor.ahead(self._stops)):
            self._close_all()
        elif char in "}]":
            self._close(char)
        elif self._strict and commas != (not top.empty):
            raise Broken
        elif top.closer == "}":
            yield from self._member(top)
        else:
            self._separate(top)
            yield from self._value()

    def _member(self, top: _Open) -> Steps[None]:
        key = yield from self.key()
        if key in top.keys:
            self._mute = self._mute or len(self._open)
        else:
            self._count += 1
            if self._count > MAX_KEYS:
                raise Broken
            top.keys.add(key)
            self._separate(top)
            self._put(quoted(key) + ":")
        yield from self._value()

    def _separate(self, top: _Open) -> None:
        if not top.empty:
            self._put(",")
        top.empty = False

    def _push(self, char: str) -> None:
        if len(self._open) == MAX_DEPTH:
            raise Broken
        self._cursor.at += 1
        self._open.append(_Open(_CLOSERS[char]))
        self._put(char)

    def _close(self, char: str) -> None:
        if char != self._open[-1].closer and (self._strict or all(char != each.closer for each in self._open)):
            raise Broken
        while (closer := self._pop()) != char:
            self._put(closer)
        self._put(closer)
        self._cursor.at += 1

    def _pop(self) -> str:
        if self._mute == len(self._open):
            self._mute = 0
        return self._open.pop().closer

    def _close_all(self) -> None:
        while self._open:
            closer = self._pop()
            self._put(closer)

    def _put(self, text: str) -> None:
        if not self._mute:
            self._out(text)

    # --- what stands in them ---

    def _value(self) -> Steps[None]:
        yield from self._cursor.runs(SPACE, 0)
        char = yield from self._cursor.peek()
        if char in _CLOSERS:
            self._push(char)
        elif char in _PLAIN:
            yield from self._string(char, ",}]", self._put)
        elif not char or char in ",}]:":
            raise Broken
        else:
            self._put((yield from self._word()))

    def _word(self) -> Steps[str]:
        text = yield from (self._cursor.runs(_STRICTLY_BARE, MAX_WORD) if self._strict else self._loose_word())
        word = text.rstrip()
        if len(text) > MAX_WORD:
            raise Broken
        if word in _WORDS:
            return _WORDS[word]
        if _NUMBER.fullmatch(word):
            return word
        if self._strict or not word:
            raise Broken
        return f'"{spelt(word)}"'

    def _loose_word(self) -> Steps[str]:
        """Up to a comma, a bracket or a line's end, or to one of the stops."""
        cursor = self._cursor
        pattern = _bare("".join(stop[0] for stop in self._stops))
        text = ""
        while len(text) <= MAX_WORD:
            text += yield from cursor.runs(pattern, MAX_WORD)
            char = yield from cursor.peek()
            if char in ",}]\r\n" or (yield from cursor.ahead(self._stops)):
                break
            cursor.at += 1
            text += char
        return text

    def _string(self, quote: str, followers: str, put: Put) -> Steps[None]:
        cursor = self._cursor
        cursor.at += 1
        put('"')
        while True:
            if run := cursor.run(_PLAIN[quote]):
                put(run)
            char = yield from cursor.peek()
            if char == quote:
                inside = yield from self._behind_quote(quote, followers)
                if inside is None:
                    break
                put(inside)
            elif char == "\\":
                put((yield from self._escape()))
            elif not char or (self._strict and char in "\r\n"):
                raise Broken
            elif not _PLAIN[quote].match(char):
                cursor.at += 1
                put(spelt(char))
        put('"')

    def _behind_quote(self, quote: str, followers: str) -> Steps[str | None]:
        """None where the string is over; else the quote and the space behind it as a part of the string."""
        cursor = self._cursor
        cursor.at += 1
        if self._strict:
            return None
        space = yield from cursor.runs(SPACE, MAX_WORD)
        char = yield from cursor.peek()
        mended = "\n" in space and char in _PLAIN and followers != ":"
        if not char or char in followers or mended or len(space) > MAX_WORD or (yield from cursor.ahead(self._stops)):
            return None
        return spelt(quote + space)

    def _escape(self) -> Steps[str]:
        cursor = self._cursor
        yield from cursor.need(2)
        code = cursor.text[cursor.at + 1 : cursor.at + 2]
        if code and code in '"\\/bfnrt':
            cursor.at += 2
            return "\\" + code
        if code == "'":
            cursor.at += 2
            return "'"
        if code == "u":
            return (yield from self._unicode())
        if code == "x":
            yield from cursor.need(4)
            if found := _HEX.match(cursor.text, cursor.at):
                cursor.at += 4
                return f"\\u00{found[1]}"
        cursor.at += 1
        return "\\\\"

    def _unicode(self) -> Steps[str]:
        cursor = self._cursor
        yield from cursor.need(6)
        first = _UNICODE.match(cursor.text, cursor.at)
        if first is None:
            cursor.at += 1
            return "\\\\"
        cursor.at += 6
        if not "d800" <= first[1].lower() <= "dfff":
            return first[0]
        if first[1].lower() < "dc00" and (yield from cursor.ahead(("\\u",))):
            yield from cursor.need(6)
            second = _UNICODE.match(cursor.text, cursor.at)
            if second and "dc00" <= second[1].lower() <= "dfff":
                cursor.at += 6
                return first[0] + second[0]
        return "\ufffd"


def spelt(text: str) -> str:
    """The text as the inside of a JSON string. What is left of surrogate pairs is replaced."""
    return quoted(_SURROGATE.sub("\ufffd", text))[1:-1]


def _bounded(parts: list[str]) -> Put:
    """Keeps what is put in a list, but little more than can be a key."""
    kept = 0

    def put(text: str) -> None:
        nonlocal kept
        if kept <= MAX_WORD:
            parts.append(text)
            kept += len(text)

    return put


class Literals:
    """One value that is fed in pieces: `feed` and `finish` return JSON text.

    `done`: the value is whole, and `rest` is the text behind it. `broken`: there is none; what came out is not JSON.
    """

    __slots__ = ("_cursor", "_parts", "_steps", "broken", "done")

    def __init__(self, *, strict: bool = False, stops: Iterable[str] = ()) -> None:
        self._cursor = Cursor()
        self._parts: list[str] = []
        self._steps = Values(self._cursor, self._parts.append, strict=strict, stops=tuple(stops)).value()
        self.done = False
        self.broken = False
        next(self._steps)

    @property
    def rest(self) -> str:
        return self._cursor.text[self._cursor.at :] if self.done else ""

    def feed(self, text: str) -> str:
        if self.done:
            self._cursor.text += text
        elif not self.broken:
            self._cursor.feed(text)
            self._go()
        return self._out()

    def finish(self) -> str:
        self._cursor.ended = True
        if not self.done and not self.broken:
            self._go()
        return self._out()

    def _go(self) -> None:
        try:
            next(self._steps)
        except StopIteration:
            self.done = True
        except Broken:
            self.broken = True

    def _out(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text


def whole(text: str, *, strict: bool = False) -> str | None:
    """A text that is one value and nothing else, as JSON; None for any other. What is not closed is no value."""
    reader = Literals(strict=strict)
    made = reader.feed(text)
    if not reader.done and text.lstrip()[:1] not in "{[":
        made += reader.finish()
    return made if reader.done and not reader.rest.strip() else None
