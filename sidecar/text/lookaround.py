r"""Patterns for what RE2 cannot express, matched by the `regex` library under a timeout.

The syntax is that of pattern.py, with the same meaning, and these: look-ahead `(?=…)` `(?!…)`, look-behind `(?<=…)`
`(?<!…)` of bounded width, atomic groups `(?>…)`, possessive repeats `a++`, back-references `\1` `(?P=name)`.

A pattern is read into a tree, and two things are made of that. One is source for `regex` in which each atom says
what RE2 means by it. The other is the pattern's *trail*: a plain RE2 pattern with these two properties.

1. Wherever a match begins, the trail matches.
2. What the engine may read to the right of a match's beginning, until it has decided, is a beginning of the trail.

So a rule set treats the trail as it treats every pattern: text that is no beginning of it is decided, whatever
follows, and `regex` is asked only where RE2 says that a match may be, about text that can no longer change its mind.
"""

import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import regex

from ..errors import PatternError
from .engine import MAX_BUILT_IN_BYTES, Program
from .matcher import Found, Matcher, Shape, floor
from .pattern import EMPTY, UNAVAILABLE, Alt, Assertion, Atom, Cat, Flags, Node, Reader, Repeat, Value, widths

# What a pattern may be long, in characters, and how many characters its back-references may stand for.
MAX_LENGTH: Final = 4096
MAX_COPIED: Final = 2048
# How far a look-behind may look, in bytes.
MAX_BEHIND: Final = 256
# A whole character beside what is looked at, and the rest of one that is cut off.
_BESIDE: Final = 8
# How much text is searched in one go, in bytes: little at first, as a match is likely where its trail is.
_STRETCH: Final = 256
_LONGEST_STRETCH: Final = 8 << 10
# A timeout is for this much text; longer text has as much more.
TIMEOUT_BYTES: Final = 64 << 10
# The pattern of all beginnings may be so many times as large as the pattern.
_AHEAD_TIMES: Final = 4
# What a search may take that counts for nothing, in seconds.
_FREE: Final = 5e-6

Clock = Callable[[], float]
"""Seconds of processor time; only differences count."""


@dataclass(frozen=True, slots=True)
class Look(Assertion):
    """Look-around. Its `source`, what RE2 would have in its place, is empty."""

    node: Node
    ahead: bool
    positive: bool


@dataclass(frozen=True, slots=True)
class Atomic(Cat):
    """What is matched in one way only. One item."""


@dataclass(frozen=True, slots=True)
class Group(Cat):
    """What a back-reference may name. One item."""

    name: str


@dataclass(frozen=True, slots=True)
class Again(Cat):
    """A back-reference. Its one item is whatever it could stand for."""

    name: str
    ignore_case: bool


# --- reading -----------------------------------------------------------------------------------------------

_VALUE: Final = "value"
_LOOKS: Final = {"(?=": (True, True), "(?!": (True, False), "(?<=": (False, True), "(?<!": (False, False)}
_DIGITS: Final = tuple("123456789")


class _LookReader(Reader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._groups: dict[str, Group] = {}
        self._count = 0  # groups that have begun
        self._copied = 0
        self._inside: list[bool] = []  # the look-arounds that are open; True for those behind

    def group(self, flags: Flags) -> Node:
        start = self.at
        for opener, (ahead, positive) in _LOOKS.items():
            if self.take(opener):
                return self._look(flags, start, ahead=ahead, positive=positive)
        if self.take("(?>"):
            return Atomic((self._body(flags, start),))
        if self.take("(?P="):
            end = self.source.find(")", self.at)
            name, self.at = self.source[self.at : end], end + 1
            return self._again(name, flags, start)
        for opener, kind in UNAVAILABLE.items():
            if self.peek(opener):
                raise self.fault(f"{kind} is not available", hint="Write it out, or write two patterns")
        self.at += 1
        named = self.opener(start)
        if named is not None:
            return self._captured(named, flags, start)
        node = self._body(self.scoped(flags, start), start)
        return Cat((node,)) if isinstance(node, Repeat | Assertion) else node

    def _body(self, flags: Flags, start: int) -> Node:
        node = self.alternatives(flags)
        if not self.take(")"):
            raise self.fault("this '(' is never closed", start)
        return node

    def _look(self, flags: Flags, start: int, *, ahead: bool, positive: bool) -> Node:
        if True in self._inside:
            raise self.fault("look-around inside a look-behind", start, "Write it beside the look-behind")
        self._inside.append(not ahead)
        node = self._body(flags, start)
        self._inside.pop()
        most = widths(node)[1]
        if not ahead and (most is None or most > MAX_BEHIND):
            raise self.fault(
                f"a look-behind of more than {MAX_BEHIND} bytes",
                start,
                "Bound its repeats, or match the surroundings too and put the part to find in (?P<value>…)",
            )
        return Look("", node, ahead, positive)

    def _captured(self, named: str, flags: Flags, start: int) -> Node:
        self._count += 1
        number = str(self._count)
        if named and named in self._groups:
            raise self.fault(f"a second group named {named}", start, "Give it another name")
        if named == _VALUE and self._inside:
            raise self.fault("the value inside a look-around", start, "Put it where the match itself is")
        node = self._body(flags, start)
        if named == _VALUE and widths(node)[0] == 0:
            raise self.fault("the value can be empty", start, "Make at least one character of it required")
        group = Group((node,), _VALUE if named == _VALUE else f"g{number}")
        self._groups[number] = group
        if named:
            self._groups[named] = group
        return group

    def _again(self, name: str, flags: Flags, start: int) -> Node:
        group = self._groups.get(name)
        if group is None:
            raise self.fault("a back-reference to a group that is not complete before it", start, "Move or name it")
        self._copied += sum(1 for _ in _atoms(group))
        if self._copied > MAX_COPIED:
            raise self.fault("back-references that stand for too much", start, f"{MAX_COPIED} characters is the limit")
        return Again((_loose(group, ignore_case=flags.i),), group.name, flags.i)

    def escape(self, flags: Flags, *, inside: bool = False) -> Node:
        start = self.at
        digit = self.source[start + 1 : start + 2]
        if inside or digit not in _DIGITS:
            node = super().escape(flags, inside=inside)
            return node if inside else self._atom(node, start)
        if self.source[start + 2 : start + 3].isdigit():
            raise self.fault("a number of more than one digit", start, "Name the group: (?P<n>…) and (?P=n)")
        self.at += 2
        return self._again(digit, flags, start)

    def klass(self, flags: Flags) -> Node:
        start = self.at
        return self._atom(super().klass(flags), start)

    def _atom(self, node: Node, start: int) -> Node:
        """Neither engine may find fault with it later, where its place is not known."""
        if isinstance(node, Atom):
            try:
                Program(node.source)
                _compiled(_atom_said(node.source))
            except (PatternError, regex.error) as exc:
                raise self.fault(str(exc), start) from None
        return node

    def repeated(self, node: Node, flags: Flags, start: int) -> Node:
        at = self.at
        bounds = self.bounds()
        if bounds is None or not self.take("+"):
            self.at = at
            return super().repeated(node, flags, start)
        if isinstance(node, Assertion):
            raise self.fault("a place cannot be repeated", start)
        return Atomic((Repeat(node, *bounds),))


def _atoms(node: Node) -> Iterator[Atom]:
    match node:
        case Atom():
            yield node
        case Look(_, inner) | Repeat(inner) | Value(inner):
            yield from _atoms(inner)
        case Cat(items) | Alt(items):
            for item in items:
                yield from _atoms(item)


def _loose(node: Node, *, ignore_case: bool) -> Node:
    """All that a group may have held, wherever that may stand."""
    match node:
        case Atom(source):
            return Atom(f"(?i:{source})", 1, 4) if ignore_case else node
        case Assertion():
            return EMPTY
        case Cat(items):
            return Cat(tuple(_loose(item, ignore_case=ignore_case) for item in items))
        case Alt(items):
            return Alt(tuple(_loose(item, ignore_case=ignore_case) for item in items))
        case Repeat(inner, lo, hi, lazy):
            return Repeat(_loose(inner, ignore_case=ignore_case), lo, hi, lazy)
        case Value(inner):
            return _loose(inner, ignore_case=ignore_case)


def parse(source: str) -> Node:
    """The tree of a pattern. Raises PatternError with the offset of the fault."""
    if len(source) > MAX_LENGTH:
        raise PatternError(f"longer than {MAX_LENGTH} characters", MAX_LENGTH, "Split it")
    node = _LookReader(source).whole()
    if widths(node)[0] == 0:
        raise PatternError("this pattern matches the empty text", 0, "Make at least one character of it required")
    return node


# --- the trail ---------------------------------------------------------------------------------------------

# A character that there is not: the trail has beginnings in which a look-ahead is read, and no match that ends in one.
_NEVER: Final = Atom(r"[^\x00-\x{10FFFF}]", 1, 1)
_BEYOND_ASCII: Final = r"[^\x00-\x7F]"


def trail(node: Node, *, last: bool = False) -> Node:
    """The trail of a tree. `last`: nothing of the pattern follows it."""
    match node:
        case Atom():
            return _wide(node)
        case Look():
            return _trail_of_all((node,), last=last)
        case Assertion():
            return node
        case Cat(items):
            return _trail_of_all(items, last=last)
        case Alt(items):
            return Alt(tuple(trail(item) for item in items))
        case Repeat(inner, lo, hi, lazy):
            return Repeat(trail(inner), lo, hi, lazy)
        case Value(inner):
            return trail(inner)


def _trail_of_all(items: tuple[Node, ...], *, last: bool) -> Node:
    """Where a look-ahead stands, the engine reads on in two ways: through it, and through the rest."""
    for index, item in enumerate(items):
        if isinstance(item, Look):
            before = tuple(map(trail, items[:index]))
            seen, rest = trail(item.node), items[index + 1 :]
            if last and not rest and item.ahead and item.positive:
                return Cat((*before, seen))
            after = _trail_of_all(rest, last=last)
            if not item.ahead or widths(seen)[1] == 0:
                return Cat((*before, after))
            return Cat((*before, Alt((Cat((seen, _NEVER)), after))))
    return Cat(tuple(map(trail, items)))


def _wide(atom: Atom) -> Atom:
    """The engines agree on ASCII. Beyond that their Unicode tables may not, so all of it is allowed for."""
    if atom.hi == 1 or (atom.lo == atom.hi):
        return atom
    return Atom(f"(?:{atom.source}|{_BEYOND_ASCII})", 1, 4)


# --- source for `regex` ------------------------------------------------------------------------------------

_PLACES: Final = {
    "^": r"\A",
    r"\A": r"\A",
    "$": r"\Z",
    r"\z": r"\Z",
    "(?m:^)": r"(?<![^\n])",
    "(?m:$)": r"(?![^\n])",
    r"\b": r"(?a:\b)",
    r"\B": r"(?a:\B)",
}
_ASCII: Final = range(0x80)
_BEYOND: Final = r"\x80-\U0010FFFF"
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_TOKEN: Final = re.compile(
    r"\[:\^?\w+:\]|\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\[pP](?:\{\^?\w+\}|.)|\\[0-7]{1,3}|\\.|.", re.DOTALL
)
_PROPERTY: Final = re.compile(r"\\([pP])\{?(\^?)(\w+)\}?")


def said(node: Node) -> str:
    """Source for `regex` that means what the tree does."""
    match node:
        case Look(_, inner, ahead, positive):
            return f"(?{'' if ahead else '<'}{'=' if positive else '!'}{said(inner)})"
        case Atomic((inner,)):
            return f"(?>{said(inner)})"
        case Group((inner,), name):
            return f"(?P<{name}>{said(inner)})"
        case Again(_, name, ignore_case):
            return f"(?{'i' * ignore_case}:(?P={name}))"
        case Atom(source):
            return _atom_said(source)
        case Assertion(source):
            return _PLACES[source]
        case Cat(items):
            return "".join(map(said, items))
        case Alt(items):
            return f"(?:{'|'.join(map(said, items))})"
        case Repeat(inner, lo, hi, lazy):
            return f"(?:{said(inner)}){{{lo},{'' if hi is None else hi}}}" + "?" * lazy
        case Value(inner):
            return said(inner)


@lru_cache(maxsize=4096)
def _atom_said(source: str) -> str:
    """The engines are made to agree on ASCII: to `regex` I is also ı, and to RE2 it is not."""
    told, program = _spelt(source), Program(source)
    theirs = {code for code in _ASCII if _compiled(told).match(chr(code))}
    ours = {code for code in _ASCII if program.at(bytes((code,)), 0)}
    if ours == theirs:
        return told
    allowed, missing = ("".join(map(_char, sorted(codes))) for codes in (ours, ours - theirs))
    return f"(?:(?=[{allowed}{_BEYOND}]){told}" + (f"|[{missing}])" if missing else ")")


def _spelt(source: str) -> str:
    if source.startswith("(?i:"):
        return f"(?i:{_spelt(source[4:-1])})"
    match source[0], source:
        case _, "." | "(?s:.)":
            return r"[^\n]" if source == "." else "(?s:.)"
        case "[", _:
            return _class_said(source)
        case _:
            code = _code(source)
            return f"[{_class_of(source)}]" if code is None else _char(code)


def _class_said(source: str) -> str:
    negated = source.startswith("[^")
    tokens: list[str] = _TOKEN.findall(source[1 + negated : -1])
    members = []
    while tokens:
        low, *rest = tokens
        if len(rest) > 1 and rest[0] == "-" and _code(low) is not None:
            members.append(f"{_member(low)}-{_member(rest[1])}")
            tokens = rest[2:]
        else:
            members.append(_member(low))
            tokens = rest
    return f"[{'^' * negated}{''.join(members)}]"


def _member(token: str) -> str:
    code = _code(token)
    return _class_of(token) if code is None else _char(code)


def _char(code: int) -> str:
    return f"\\U{code:08x}"


def _code(token: str) -> int | None:
    """The character that a token stands for; None where it stands for more than one."""
    if len(token) == 1:
        return ord(token)
    kind = token[1]
    if token[0] == "[" or kind in "dDsSwWpP":
        return None
    if kind == "x":
        return int(token[2:].strip("{}"), 16)
    if kind.isdigit():
        return int(token[1:], 8)
    return _CONTROLS.get(kind, ord(kind))


@lru_cache(maxsize=4096)
def _class_of(token: str) -> str:
    """The members of a named class. Those of all but Unicode's own are in ASCII, or all that is not."""
    if named := _PROPERTY.fullmatch(token):
        negated = (named[1] == "P") != bool(named[2])
        return f"\\{'P' if negated else 'p'}{{{named[3]}}}"
    program = Program(f"[{token}]")
    members = [_char(code) for code in _ASCII if program.at(bytes((code,)), 0)]
    beyond = program.at("\x80".encode(), 0) is not None
    return "".join(members) + _BEYOND * beyond


# --- matching ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LookShape(Shape):
    """A shape whose `node` is the trail of `tree`. `timeout` is in seconds of `clock`, for TIMEOUT_BYTES of text."""

    tree: Node
    timeout: float
    clock: Clock
    gives_up: bool = False

    def lenient(self) -> "LookShape":
        """The same, but out of time it finds nothing more in the text."""
        return replace(self, gives_up=True)

    def mapped(self, change: Callable[[Atom], Node]) -> "LookShape":
        """The same with other atoms. Raises PatternError when nothing is left of what is looked for or at."""
        tree = _mapped(self.tree, change)
        if widths(tree)[0] == 0:
            raise PatternError("consists of invisible characters, which normalize: [invisible] hides")
        return replace(self, node=trail(tree, last=True), tree=tree)

    def matcher(self, max_bytes: int = MAX_BUILT_IN_BYTES) -> "LookMatcher":
        return LookMatcher(self, max_bytes)


def look_shape(name: str, source: str, timeout: float, clock: Clock) -> LookShape:
    """Raises PatternError with the offset of the fault."""
    tree = parse(source)
    return LookShape(name, trail(tree, last=True), tree=tree, timeout=timeout, clock=clock)


def _mapped(node: Node, change: Callable[[Atom], Node]) -> Node:
    match node:
        case Atom():
            return change(node)
        case Look(_, inner):
            changed = _mapped(inner, change)
            if widths(inner)[0] and not widths(changed)[0]:
                raise PatternError("its look-around is for invisible characters, which normalize: [invisible] hides")
            return replace(node, node=changed)
        case Assertion():
            return node
        case Cat(items) | Alt(items):
            return replace(node, items=tuple(_mapped(item, change) for item in items))
        case Repeat(inner) | Value(inner):
            return replace(node, node=_mapped(inner, change))


@dataclass(slots=True)
class Purse:
    """The time left for one text."""

    full: float
    left: float
    empty: bool = False

    def pay(self, seconds: float) -> None:
        self.left -= max(0.0, seconds - _FREE)

    def earn(self, size: int) -> None:
        self.left = min(self.full, self.left + size * self.full / TIMEOUT_BYTES)


class _Stretch(NamedTuple):
    """Part of a text, and up to where what begins in it is decided in it."""

    low: int
    text: str
    sure: int


class LookMatcher(Matcher):
    """A Matcher whose answers `regex` gives. `opened` makes one for each text, whose time is counted together; one
    that is not opened has its timeout for each question.

    Out of time it raises TimeoutError, or finds nothing more in this text where the shape is lenient.
    """

    def __init__(self, shape: LookShape, max_bytes: int = MAX_BUILT_IN_BYTES) -> None:
        super().__init__(Shape(shape.name, shape.node), max_bytes)
        self.certain = False
        self.context = _behind(shape.tree) + _BESIDE
        self._shape = shape
        self._regex = _compiled(said(shape.tree))
        self._purse: Purse | None = None
        # Compiled here, so that those opened share them and one that is too large is a fault at load.
        ahead = max(self._unfinished.size, self._beginning.size)
        if ahead > _AHEAD_TIMES * max_bytes:
            raise PatternError(
                f"what it may read ahead compiles to {ahead} bytes, more than the {_AHEAD_TIMES * max_bytes} allowed",
                hint="Lower its counts, or split it",
            )

    def opened(self) -> "LookMatcher":
        mine = copy(self)
        mine._purse = self._full_purse()
        return mine

    @property
    def gave_up(self) -> bool:
        return self._purse is not None and self._purse.empty

    def _full_purse(self) -> Purse:
        return Purse(self._shape.timeout, self._shape.timeout)

    def find(self, text: bytes, start: int, upto: int) -> Found | None:
        """The first match that begins at `start` or later, but before `upto`."""
        purse, size = self._purse or self._full_purse(), _STRETCH
        while (span := self._exact.search(text, start)) is not None and span[0] < upto:
            stretch = self._stretch(text, span[0], size)
            found = self._asked(self._regex.search, stretch, span[0], text, purse)
            start = stretch.sure
            if found is not None and found.start < min(start, upto):
                purse.earn(found.end - span[0])
                return found
            purse.earn(start - span[0])
            size = min(2 * size, _LONGEST_STRETCH)
        return None

    def match_at(self, text: bytes, start: int) -> Found | None:
        """The match that begins at `start`."""
        low = self._low(text, start)
        stretch = _Stretch(low, _decoded(text[low:]), len(text))
        return self._asked(self._regex.match, stretch, start, text, self._purse or self._full_purse())

    def _low(self, text: bytes, at: int) -> int:
        low = max(0, at - self.context)
        while low < at and text[low] & 0xC0 == 0x80:
            low += 1
        return low

    def _stretch(self, text: bytes, at: int, size: int) -> _Stretch:
        """As much text from `at` on as decides what begins there, and at least `size` bytes of it."""
        low = self._low(text, at)
        while at + size < len(text):
            piece = text[low : floor(text, at + size)]
            sure = low + self.growing_from(piece, at - low)
            if sure > at:
                return _Stretch(low, _decoded(piece), sure)
            size *= 2
        return _Stretch(low, _decoded(text[low:]), len(text))

    def _asked(self, ask: "_Ask", stretch: _Stretch, start: int, text: bytes, purse: Purse) -> Found | None:
        """What `regex` says of a stretch, in offsets of the text."""
        low, read, _ = stretch
        at = len(_decoded(text[low:start]))
        match = self._in_time(ask, read, at, purse)
        if match is None:
            return None
        value = match.span(_VALUE) if _VALUE in self._regex.groupindex else (-1, -1)
        spans = (*match.span(), *(value if value != (-1, -1) else match.span()))
        if len(read) == len(text) - low or read.isascii():
            return Found(*spans).moved(low)
        return Found(*(len(read[:place].encode("utf-8", "surrogatepass")) for place in spans)).moved(low)

    def _in_time(self, ask: "_Ask", read: str, at: int, purse: Purse) -> "regex.Match[str] | None":
        if purse.empty:
            return None
        began = self._shape.clock()
        try:
            if purse.left <= 0:
                raise TimeoutError("a pattern has used up its time")
            return ask(read, at, timeout=purse.left)
        except TimeoutError:
            if not self._shape.gives_up:
                raise
            purse.empty = True
            return None
        finally:
            purse.pay(self._shape.clock() - began)


_Ask = Callable[..., "regex.Match[str] | None"]


def _compiled(source: str) -> "regex.Pattern[str]":
    """Kept by who asks for it; the library's own store of patterns is thinned out at random."""
    return regex.compile(source, cache_pattern=False)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def _behind(node: Node) -> int:
    """How far the widest look-behind looks, in bytes."""
    match node:
        case Look(_, inner, ahead):
            return _behind(inner) if ahead else widths(inner)[1] or 0
        case Cat(items) | Alt(items):
            return max(map(_behind, items), default=0)
        case Repeat(inner) | Value(inner):
            return _behind(inner)
        case _:
            return 0
