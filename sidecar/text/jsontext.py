"""Scrubs text that is itself JSON, such as a tool call's arguments, and leaves it JSON.

What a rule sees are the decoded strings, each on its own, keys included, and what stands bare, such as a number.
What is not replaced keeps its spelling: `\\u00e9` stays `\\u00e9`. What stands for a finding is written as JSON asks;
a bare value with a finding in it becomes a string. JSON that is broken is read the same way as far as it goes, and
text that does not begin like JSON is scrubbed as plain text.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from .rules import Ruleset
from .scrubber import Hit, Op, Replace, is_high, paired
from .views import Lens, Look
from .views.spelling import Spelling, Unit

_BEGINS: Final = re.compile(r"\s*(.)?", re.DOTALL)
_JSON_BEGINS_WITH: Final = frozenset('{["-0123456789')
_STRUCTURE: Final = re.compile(r"[\s{}\[\]:,]+")
_BARE: Final = re.compile(r'[^{}\[\]:,"]+')
_PLAIN: Final = re.compile(r'[^"\\]+')
_UNICODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_SHORT: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LITERALS: Final = frozenset(("true", "false", "null"))
# A bare value is looked at when it is complete; a longer one is no value, and is read as it comes.
_MAX_BARE: Final = 256
AS_IT_IS: Final = Lens()
_NEAR_END: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


def quoted(text: str) -> str:
    """The text as the inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class JsonScrubber:
    """The same shape as Scrubber's, for JSON text: feed pieces, finish, read `hits`, `found`, `overflowed`."""

    __slots__ = (
        "_at",
        "_bare",
        "_in_string",
        "_inner",
        "_late",
        "_long",
        "_mode",
        "_open",
        "_rest",
        "_spelling",
        "found",
        "hits",
        "overflowed",
    )

    def __init__(self, rules: Ruleset, replace: Replace | None = None, lens: Lens = AS_IT_IS) -> None:
        self._open: Callable[[], Look] = partial(lens.open, rules, replace)
        self._late = replace is not None
        self._mode: str = "unknown"  # json, plain, or unknown until the first character that tells
        self._in_string = False
        self._rest = ""  # an escape that is not complete yet
        self._bare = ""  # a bare value that is not complete yet
        self._long = False  # the bare text under way is too long for a value
        self._inner: Look | None = None  # for the string or plain text under way
        self._spelling = Spelling()  # its own
        self._at = 0  # where that begins, or the next one will
        self.found: str | None = None
        self.overflowed: str | None = None
        self.hits: list[Hit] = []

    @property
    def held(self) -> int:
        return len(self._rest) + len(self._bare) + (self._inner.held if self._inner else 0)

    def feed(self, text: str) -> list[Op]:
        text = paired(self._rest + text)
        self._rest = text[-1] if text and is_high(text[-1]) else ""
        text = text[: len(text) - len(self._rest)]
        ops: list[Op] = []
        at = self._begin(text, ops) if self._mode == "unknown" else 0
        while at < len(text):
            if self._in_string:
                at = self._string(text, at, ops)
            elif self._mode == "plain":
                at = self._plain(text, at, ops)
            else:
                at = self._outside(text, at, ops)
        return ops

    def finish(self) -> list[Op]:
        ops: list[Op] = []
        if self._rest:
            self._value(self._rest, self._rest, ops)
            self._rest = ""
        self._end_bare(ops)
        self._close(ops)
        return ops

    def _begin(self, text: str, ops: list[Op]) -> int:
        """White space at the beginning tells nothing, and is kept."""
        first = _BEGINS.match(text)
        if first is None or first[1] is None:
            return self._keep(text, 0, len(text), ops)
        self._mode = "json" if first[1] in _JSON_BEGINS_WITH else "plain"
        return self._keep(text, 0, first.start(1), ops)

    def _plain(self, text: str, at: int, ops: list[Op]) -> int:
        rest = text[at:]
        self._value(rest, rest, ops)
        return len(text)

    def _outside(self, text: str, at: int, ops: list[Op]) -> int:
        if self._long or self._bare or not text[at].isspace():
            bare = _BARE.match(text, at)
            if bare is not None:
                return self._add_bare(text, at, bare.end(), ops)
        self._end_bare(ops)
        if text[at] == '"':
            self._in_string = True
            return self._keep(text, at, at + 1, ops)
        structure = _STRUCTURE.match(text, at)
        assert structure is not None  # noqa: S101 -- what is neither bare nor a quote is structure
        return self._keep(text, at, structure.end(), ops)

    def _add_bare(self, text: str, at: int, end: int, ops: list[Op]) -> int:
        if self._long:
            self._value(text[at:end], text[at:end], ops)
            return end
        room = _MAX_BARE - len(self._bare)
        self._bare += text[at : min(end, at + room)]
        if end - at < room:
            return end
        long, self._bare, self._long = self._bare, "", True
        self._value(long, long, ops)
        return at + room

    def _end_bare(self, ops: list[Op]) -> None:
        if self._long:
            self._long = False
            self._close(ops)
        bare, self._bare = self._bare, ""
        value = bare.rstrip()
        if not value:
            return
        inner = self._begun()
        said = [] if value in _LITERALS else [*inner.feed(value), *inner.finish()]
        if any(not op.kept for op in said):
            ops += (Op(False, f'"{quoted("".join(op.text for op in said))}"', 0), Op(False, "", len(value)))
            self.hits += (Hit(hit.name, self._at + hit.start, self._at + hit.end) for hit in inner.hits)
            self._at += len(value)
        else:
            self._keep(value, 0, len(value), ops)
        self._look(inner)
        self._inner = None
        self._keep(bare, len(value), len(bare), ops)

    def _string(self, text: str, at: int, ops: list[Op]) -> int:
        if text[at] == '"':
            self._close(ops)
            self._in_string = False
            return self._keep(text, at, at + 1, ops)
        if plain := _PLAIN.match(text, at):
            self._value(plain[0], plain[0], ops)
            return plain.end()
        if _NEAR_END.match(text, at):
            self._rest = text[at:] + self._rest
            return len(text)
        return self._escape(text, at, ops)

    def _escape(self, text: str, at: int, ops: list[Op]) -> int:
        if code := _UNICODE.match(text, at):
            self._value(chr(int(code[1], 16)), code[0], ops)
            return code.end()
        self._value(_SHORT.get(text[at + 1], text[at + 1]), text[at : at + 2], ops)
        return at + 2

    def _keep(self, text: str, start: int, end: int, ops: list[Op]) -> int:
        if end > start:
            ops.append(Op(True, text[start:end], end - start))
            self._at += end - start
        return end

    def _value(self, decoded: str, spelt: str, ops: list[Op]) -> None:
        inner = self._inner or self._begun()
        said = inner.feed(decoded)
        if decoded == spelt and not is_high(decoded[-1]):
            if self._spelling.passes(len(decoded), said):
                ops += said
                return
        else:
            self._spelling.add(Unit(decoded, None if decoded == spelt else spelt))
        self._say(inner, said, ops)

    def _begun(self) -> Look:
        self._inner = self._open()
        self._spelling = Spelling(self._at, late=self._late)
        return self._inner

    def _close(self, ops: list[Op]) -> None:
        """The string or plain text is over."""
        if self._inner is not None:
            self._say(self._inner, self._inner.finish(), ops, final=True)
            self._at = self._spelling.at
            self._inner = None

    def _say(self, inner: Look, said: list[Op], ops: list[Op], *, final: bool = False) -> None:
        for op in self._spelling.respell(said, final=final):
            ops.append(op if op.taken or not self._in_string else op._replace(text=quoted(op.text)))
        self._look(inner)
        if spans := self._spelling.spans:
            self.hits += (Hit(inner.hits[span.number].name, span.start, span.end) for span in spans)
            spans.clear()

    def _look(self, inner: Look) -> None:
        self.found = self.found or inner.found
        self.overflowed = self.overflowed or inner.overflowed
