"""Reads RE2 syntax into a tree, to know of a pattern what RE2 does not tell.

From the tree come: faults with their offset, the widths of a match in bytes, whether a match can only grow, and
three renderings: as written, relaxed (a superset that is cheap to search for) and the pattern of all prefixes of
its matches, which answers "could a match still be growing at the end of this text?".

Syntax: https://github.com/google/re2/wiki/Syntax. Look-around, back-references, possessive and atomic groups do
not exist there; each is a fault that says what to write instead.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import takewhile

from ..errors import PatternError

# RE2's own bound on a repeat count.
MAX_REPEAT = 1000


@dataclass(frozen=True, slots=True)
class Atom:
    """One character: a literal, a class or a dot. `lo` and `hi` are its widths in UTF-8 bytes."""

    source: str
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class Assertion:
    """Matches a place, not a character."""

    source: str


@dataclass(frozen=True, slots=True)
class Cat:
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alt:
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    node: "Node"
    lo: int
    hi: int | None
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """The group named `value`: the part of a match that is the finding, the rest being its context."""

    node: "Node"


Node = Atom | Assertion | Cat | Alt | Repeat | Value
EMPTY = Cat(())


def widths(node: Node) -> tuple[int, int | None]:
    """The shortest and longest match in bytes; None means without bound."""
    match node:
        case Atom(_, lo, hi):
            return lo, hi
        case Assertion():
            return 0, 0
        case Cat(items):
            each = [widths(item) for item in items]
            return sum(lo for lo, _ in each), _total([hi for _, hi in each])
        case Alt(items):
            each = [widths(item) for item in items]
            return min(lo for lo, _ in each), _most([hi for _, hi in each])
        case Repeat(inner, least, most):
            low, high = widths(inner)
            return low * least, None if most is None or high is None else high * most
        case Value(inner):
            return widths(inner)


def _total(each: list[int | None]) -> int | None:
    known = [hi for hi in each if hi is not None]
    return sum(known) if len(known) == len(each) else None


def _most(each: list[int | None]) -> int | None:
    known = [hi for hi in each if hi is not None]
    return max(known) if len(known) == len(each) else None


def only_grows(node: Node) -> bool:
    """True when no assertion can stand at a match's end: text that follows can lengthen a match, not undo it."""
    match node:
        case Atom():
            return True
        case Assertion():
            return False
        case Cat(items):
            tail = _tail(items)
            return all(map(only_grows, tail))
        case Alt(items):
            return all(map(only_grows, items))
        case Repeat(inner) | Value(inner):
            return only_grows(inner)


def _tail(items: tuple[Node, ...]) -> list[Node]:
    """The items that can stand last: from the end up to the first that is never empty."""
    skipped = list(takewhile(lambda item: widths(item)[0] == 0, reversed(items)))
    return [*skipped, *list(reversed(items))[len(skipped) : len(skipped) + 1]]


def has_value(node: Node) -> bool:
    match node:
        case Value():
            return True
        case Cat(items) | Alt(items):
            return any(map(has_value, items))
        case Repeat(inner):
            return has_value(inner)
        case _:
            return False


def render(node: Node, *, values: bool = False, wide: int | None = None) -> str:
    """RE2 source for the tree. `values` keeps the value group; `wide` widens counts beyond it (a superset)."""
    match node:
        case Atom(source) | Assertion(source):
            return source
        case Cat(items):
            return "".join(render(item, values=values, wide=wide) for item in items)
        case Alt(items):
            return f"(?:{'|'.join(render(item, values=values, wide=wide) for item in items)})"
        case Repeat(inner, lo, hi, lazy):
            lo, hi = _widened(lo, hi, wide)
            return _unit(render(inner, values=values, wide=wide), inner) + _count(lo, hi) + "?" * lazy
        case Value(inner):
            body = render(inner, values=values, wide=wide)
            return f"(?P<value>{body})" if values else f"(?:{body})"


def _widened(lo: int, hi: int | None, wide: int | None) -> tuple[int, int | None]:
    if wide is None or (lo <= wide and (hi is None or hi <= wide)):
        return lo, hi
    return min(lo, wide), None


def _unit(source: str, node: Node) -> str:
    return source if isinstance(node, Atom | Alt) else f"(?:{source})"


def _count(lo: int, hi: int | None) -> str:
    plain = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}
    return plain.get((lo, hi)) or (f"{{{lo}}}" if lo == hi else f"{{{lo},{'' if hi is None else hi}}}")


def prefixes(node: Node, *, loose: bool = False) -> str:
    """RE2 source that matches every beginning of every match, the empty one and the whole one included.

    `abc` becomes `(?:a(?:b(?:c)?)?)?`. A `loose` one forgets how often things repeat: it matches more, never less,
    and its automaton does not count.
    """
    match node:
        case Atom(source):
            return f"(?:{source})?"
        case Assertion():
            return ""
        case Cat(()):
            return ""
        case Cat(items):
            last = prefixes(items[-1], loose=loose)
            return reduce(lambda rest, item: _then(item, rest, loose), reversed(items[:-1]), last)
        case Alt(items):
            return f"(?:{'|'.join(prefixes(item, loose=loose) for item in items)})"
        case Repeat(inner, _, hi):
            before = None if hi is None or (loose and hi > 1) else hi - 1
            return _repeated(inner, before, loose) + prefixes(inner, loose=loose)
        case Value(inner):
            return prefixes(inner, loose=loose)


def _then(item: Node, rest: str, loose: bool) -> str:
    """All beginnings of `item` followed by what `rest` matches; `rest` matches the empty text too."""
    match item:
        case Atom(source) | Assertion(source):
            return f"(?:{source}{rest})?"
        case Repeat(Atom(source), lo, hi):
            if loose:
                lo, hi = _widened(lo, hi, 1)
            whole = source + _count(lo, hi) + rest
            return whole if lo == 0 else f"(?:{whole})?" if lo == 1 else f"(?:{whole}|{source}{_count(0, lo - 1)})"
        case _:
            return f"(?:{render(item, wide=1 if loose else None)}{rest}|{prefixes(item, loose=loose)})"


def _repeated(inner: Node, before: int | None, loose: bool) -> str:
    if before == 0:
        return ""
    return _unit(render(inner, wide=1 if loose else None), inner) + _count(0, before)


def opening(node: Node, room: int) -> Node:
    """The pattern's beginning, at most `room` bytes of it: whatever is at least that long and could become a match
    begins with a match of this."""
    match node:
        case Cat(items):
            return Cat(tuple(_opening_of_all(items, room)))
        case Alt(items):
            return Alt(tuple(opening(item, room) for item in items))
        case Repeat(Atom(_, _, width) as atom, lo, _):
            count = min(lo, room // width)
            return Repeat(atom, count, count) if count else EMPTY
        case Repeat(inner, lo, _):
            return opening(inner, room) if lo else EMPTY
        case Value(inner):
            return opening(inner, room)
        case Atom(_, _, width):
            return node if width <= room else EMPTY
        case Assertion():
            return node


def _opening_of_all(items: tuple[Node, ...], room: int) -> Iterator[Node]:
    for index, item in enumerate(items):
        most = widths(item)[1]
        if most is None or most > room:
            if isinstance(item, Repeat) and not item.lo:
                yield Alt((opening(item.node, room), Cat(tuple(_opening_of_all(items[index + 1 :], room)))))
            else:
                yield opening(item, room)
            return
        yield item
        room -= most


# --- reading -----------------------------------------------------------------------------------------------

_CLASS_ESCAPES = frozenset("dDsSwW")
_CONTROL_ESCAPES = frozenset("aftnrv")
_PLACES = frozenset("bBAz")
_BOUNDS: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
UNAVAILABLE = {
    "(?=": "look-ahead",
    "(?!": "negative look-ahead",
    "(?<=": "look-behind",
    "(?<!": "negative look-behind",
    "(?>": "an atomic group",
    "(?#": "a comment",
    "(?(": "a conditional",
    "(?P=": "a back-reference",
    "(?P>": "a recursion",
    "(?|": "a branch reset",
}
_NO_LOOKING = "Match the surroundings too and put the part to find in (?P<value>…), or say engine: regex"


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags in force; each atom carries the ones it needs, so that it can be moved about."""

    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False

    def wrap(self, source: str, needs: str) -> str:
        said = "".join(name for name in needs if getattr(self, name))
        return f"(?{said}:{source})" if said else source


@dataclass(slots=True)
class Reader:
    """A recursive-descent reader; `at` is the offset of the next character."""

    source: str
    at: int = 0
    values: int = field(default=0)

    def fault(self, message: str, at: int | None = None, hint: str = "") -> PatternError:
        return PatternError(message, self.at if at is None else at, hint)

    def peek(self, text: str) -> bool:
        return self.source.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.at += len(text)
            return True
        return False

    def whole(self) -> Node:
        node = self.alternatives(Flags())
        if self.at < len(self.source):
            raise self.fault("a ')' without its '('", hint=r"Write \) for the character itself")
        return node

    def alternatives(self, flags: Flags) -> Node:
        branches: list[Node] = []
        while True:
            node, flags = self.sequence(flags)
            branches.append(node)
            if not self.take("|"):
                return branches[0] if len(branches) == 1 else Alt(tuple(branches))

    def sequence(self, flags: Flags) -> tuple[Node, Flags]:
        items: list[Node] = []
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            start = self.at
            if (changed := self.flags_only(flags)) is not None:
                flags = changed
            elif self.take(r"\Q"):
                *before, last = self.quoted(flags) or [EMPTY]
                items += [*before, last if last is EMPTY else self.repeated(last, flags, start)]
            else:
                items.append(self.repeated(self.one(flags), flags, start))
        return (items[0] if len(items) == 1 else Cat(tuple(items))), flags

    def quoted(self, flags: Flags) -> list[Node]:
        end = self.source.find(r"\E", self.at)
        text = self.source[self.at : end if end >= 0 else None]
        self.at = len(self.source) if end < 0 else end + 2
        return [literal(char, flags) for char in text]

    def flags_only(self, flags: Flags) -> Flags | None:
        """`(?i)` holds to the end of the group it stands in."""
        if not self.peek("(?"):
            return None
        end = self.source.find(")", self.at)
        said = self.source[self.at + 2 : end]
        if end < 0 or not said or said.strip("imsU-"):
            return None
        self.at = end + 1
        return self.changed(flags, said)

    def changed(self, flags: Flags, said: str) -> Flags:
        on, _, off = said.partition("-")
        return replace(flags, **dict.fromkeys(on, True), **dict.fromkeys(off, False))

    def one(self, flags: Flags) -> Node:
        char = self.source[self.at]
        match char:
            case "(":
                return self.group(flags)
            case "[":
                return self.klass(flags)
            case "\\":
                return self.escape(flags)
            case ".":
                self.at += 1
                return Atom(flags.wrap(".", "s"), 1, 4)
            case "^" | "$":
                self.at += 1
                return Assertion(flags.wrap(char, "m"))
            case "*" | "+" | "?":
                raise self.fault(f"nothing before '{char}' to repeat", hint=f"Write \\{char} for the character")
            case _:
                self.at += 1
                return literal(char, flags)

    def group(self, flags: Flags) -> Node:
        start = self.at
        for opener, name in UNAVAILABLE.items():
            if self.peek(opener):
                raise self.fault(f"{name} is not available: matching has to stay linear", hint=_NO_LOOKING)
        self.at += 1
        named = self.opener(start)
        inner_flags = self.scoped(flags, start) if named is None else flags
        node = self.alternatives(inner_flags)
        if not self.take(")"):
            raise self.fault("this '(' is never closed", start)
        if named != "value":
            return Cat((node,)) if isinstance(node, Repeat | Assertion) else node
        self.values += 1
        if widths(node)[0] == 0:
            raise self.fault("the value can be empty", start, "Make at least one character of it required")
        if self.values > 1:
            raise self.fault("a second group named value", start, "One pattern has one value; write two patterns")
        return Value(node)

    def opener(self, start: int) -> str | None:
        """The name of a named group, "" for a plain one, None when flags follow."""
        if self.take("?P<") or self.take("?<"):
            end = self.source.find(">", self.at)
            name = self.source[self.at : end]
            if end < 0 or not name.isidentifier():
                raise self.fault("a group's name must be letters, digits and _", start)
            self.at = end + 1
            return name
        return None if self.take("?") else ""

    def scoped(self, flags: Flags, start: int) -> Flags:
        end = self.source.find(":", self.at)
        said = self.source[self.at : end]
        if end < 0 or said.strip("imsU-"):
            raise self.fault("an unknown kind of group", start, "Known: (?:…), (?P<value>…), (?i:…) with i, m, s, U")
        self.at = end + 1
        return self.changed(flags, said)

    def klass(self, flags: Flags) -> Node:
        start = self.at
        self.at += 1
        negated = self.take("^")
        first = True
        while first or not self.peek("]"):
            if self.at >= len(self.source):
                raise self.fault("this '[' is never closed", start)
            first = False
            if self.peek("[:"):
                self.posix()
            elif self.peek("\\"):
                self.escape(flags, inside=True)
            else:
                self.at += 1
        self.at += 1
        source = self.source[start : self.at]
        wide = (
            negated
            or flags.i
            or not source.isascii()
            or any(s in source for s in (r"\D", r"\S", r"\W", r"\p", r"\P", r"\x", "[:^"))
        )
        return Atom(flags.wrap(source, "i"), 1, 4 if wide else 1)

    def posix(self) -> None:
        end = self.source.find(":]", self.at)
        self.at = self.at + 1 if end < 0 else end + 2

    def escape(self, flags: Flags, *, inside: bool = False) -> Node:
        start = self.at
        if start + 1 >= len(self.source):
            raise self.fault("a '\\' at the very end", hint=r"Write \\ for the character itself")
        char = self.source[start + 1]
        self.at += 2
        if char in _PLACES and not inside:
            return Assertion("\\" + char)
        if char in _CLASS_ESCAPES:
            return Atom(flags.wrap("\\" + char, "i"), 1, 4 if char.isupper() or flags.i else 1)
        if char in _CONTROL_ESCAPES or not char.isalnum():
            return Atom("\\" + char, 1, len(char.encode()))
        return self.longer_escape(char, start, flags)

    def longer_escape(self, char: str, start: int, flags: Flags) -> Node:
        if char in "pP":
            self.braced_or_one(start, "a Unicode class", r"\pL or \p{Greek}")
        elif char == "x":
            self.hexadecimal(start)
        elif char == "0" or (char in "1234567" and self.source[self.at : self.at + 1].isdigit()):
            while self.at < start + 4 and self.source[self.at : self.at + 1] in tuple("01234567"):
                self.at += 1
        else:
            raise self.fault(*_unknown_escape(char, start))
        return Atom(flags.wrap(self.source[start : self.at], "i"), 1, 4)

    def braced_or_one(self, start: int, what: str, example: str) -> None:
        if self.take("{"):
            end = self.source.find("}", self.at)
            self.at = end + 1
        else:
            end = self.at = self.at + 1
        if end < 0 or self.at > len(self.source):
            raise self.fault(f"{what} without its name", start, f"Write {example}")

    def hexadecimal(self, start: int) -> None:
        end = self.source.find("}", self.at) if self.take("{") else self.at + 2
        digits = self.source[self.at : end]
        self.at = end + (self.source[start + 2 : start + 3] == "{")
        if not digits or end < 0 or set(digits) - set("0123456789abcdefABCDEF"):
            raise self.fault(r"\x without its hexadecimal digits", start, r"Write \x41 or \x{1F600}")

    def repeated(self, node: Node, flags: Flags, start: int) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return node
        lo, hi = bounds
        lazy = self.take("?") != flags.U
        if self.peek("+") or self.peek("*") or (self.bounds_at() is not None):
            raise self.fault("a repeat of a repeat", hint="Possessive repeats need engine: regex; else put it in (?:…)")
        if isinstance(node, Assertion):
            raise self.fault("a place cannot be repeated", start)
        return Repeat(node, lo, hi, lazy)

    def bounds_at(self) -> tuple[int, int | None] | None:
        at = self.at
        bounds = self.bounds()
        self.at = at
        return bounds

    def bounds(self) -> tuple[int, int | None] | None:
        sign = self.source[self.at : self.at + 1]
        if sign in _BOUNDS:
            self.at += 1
            return _BOUNDS[sign]
        return self.counted() if sign == "{" else None

    def counted(self) -> tuple[int, int | None] | None:
        """`{n}`, `{n,}`, `{n,m}`; anything else in braces stands for itself, as in RE2."""
        end = self.source.find("}", self.at)
        low, comma, high = self.source[self.at + 1 : max(end, 0)].partition(",")
        if end < 0 or not low.isdecimal() or not (high.isdecimal() or not high):
            return None
        lo = int(low)
        hi = (int(high) if high else None) if comma else lo
        if max(lo, hi or 0) > MAX_REPEAT:
            raise self.fault(f"a repeat count above {MAX_REPEAT}", hint="Leave the upper bound out: {n,}")
        if hi is not None and hi < lo:
            raise self.fault("a repeat whose upper bound is below its lower one")
        self.at = end + 1
        return lo, hi


def _unknown_escape(char: str, start: int) -> tuple[str, int, str]:
    hints = {
        "Z": r"Write \z for the end of the text",
        "C": "A pattern matches characters, not bytes",
        "K": _NO_LOOKING,
        "G": "Write the surroundings out",
    }
    if char.isdigit():
        return (
            "a back-reference is not available: matching has to stay linear",
            start,
            "Write the alternatives out, or say engine: regex",
        )
    return f"an unknown escape \\{char}", start, hints.get(char, f"Write {char} for the letter itself")


def literal(char: str, flags: Flags | None = None) -> Atom:
    """One character that stands for itself."""
    return _literal(char, flags is not None and flags.i and char.isalpha())


@lru_cache(maxsize=1024)
def _literal(char: str, ignore_case: bool) -> Atom:
    source = char if char.isalnum() or not char.isascii() else _escaped(char)
    width = len(char.encode("utf-8", "surrogatepass"))
    # Folding may change a letter's width: k is also the three bytes of the Kelvin sign.
    return Atom(f"(?i:{source})", 1, 4) if ignore_case else Atom(source, width, width)


def _escaped(char: str) -> str:
    return (
        f"\\x{{{ord(char):x}}}"
        if char.isspace() or ord(char) < 32 or ord(char) == 127
        else "\\" + char
        if char != "_"
        else char
    )


def words(text: str, *, ignore_case: bool, whole: bool) -> Node:
    """A literal text; `whole` asks for word boundaries where its edges are ASCII word characters."""
    chars: tuple[Node, ...] = tuple(literal(char, Flags(i=ignore_case)) for char in text)
    edge = Assertion(r"\b")
    before = (edge,) if whole and _is_word(text[0]) else ()
    after = (edge,) if whole and _is_word(text[-1]) else ()
    return Cat((*before, *chars, *after))


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


# A policy's own patterns are read to check them and to use them, the detectors' by each rule that names them.
@lru_cache(maxsize=2048)
def parse(source: str) -> Node:
    """The tree of a pattern. Raises PatternError with the offset of the fault."""
    node = Reader(source).whole()
    if widths(node)[0] == 0:
        raise PatternError("this pattern matches the empty text", 0, "Make at least one character of it required")
    return node
