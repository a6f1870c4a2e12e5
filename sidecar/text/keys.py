"""What every match of a pattern holds that is cheap to look for and seldom there by chance: its key.

All keys of a rule set are looked for at once; an exact search is made only for patterns whose key is there. What
makes that cheap is an automaton with few states. So a key is short, says nothing about where words begin once it has
a word of its own, and is looked for together with keys of its own kind only: automata of different kinds would
multiply in one another.

Of each pattern: every match is something that `before` matches, then something that `body` matches, then the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import ceil, inf, log2

from .engine import Program, Span
from .pattern import Alt, Assertion, Atom, Cat, Node, Repeat, Value, widths

# How seldom a key shall be by chance, in bits: three letters are seldom in noise, nine in prose. Of a shape without
# a word, that many are enough.
WORD_BITS = 14
SHORT_BITS = 20
LONG_BITS = 45
SHAPE_BITS = 26
# A character of so few bits can stand anywhere in a word; many of them say little and cost a state each.
WEAK_BITS = 1.9
STRONG_BITS = 4.0
MANY = 3
# Counts are not followed further than this.
LONGEST_COUNT = 16
MOST_WAYS = 256

_PRINTABLE = bytes(range(32, 127))


class Kind(Enum):
    """Keys whose automata go together: of words alone, with gaps, of digits, of letters."""

    WORDS = "words"
    GAPS = "gaps"
    DIGITS = "digits"
    LETTERS = "letters"


@dataclass(frozen=True, slots=True)
class Key:
    kind: Kind
    before: Cat
    body: Cat


def keys(node: Node, bits: float) -> list[Key]:
    """One of these keys is in every match. A key that begins with a word has so many bits where it can."""
    return [_key(way, bits) for way in _ways(_flat(node))]


def shorter(key: Key, bits: float) -> Key:
    """What `keys` would have said for fewer bits."""
    items = key.body.items
    if _word(items) < WORD_BITS:
        return key
    body = Cat(tuple(_head(items, bits)))
    return Key(Kind.GAPS if _has_gap(body) else Kind.WORDS, key.before, body)


@lru_cache(maxsize=4096)
def _bits(source: str) -> float:
    """How much one character says: 5 bits at most, and 2 for a digit, as digits come in numbers."""
    if len(source) == 1 and source != ".":
        return 5.0
    count = sum(end - start for start, end in _runs(Program(f"{source}+")))
    return 5.0 if count < 3 else 2.0 if count == 10 else log2(len(_PRINTABLE) / count)


def _runs(program: Program) -> Iterator[Span]:
    """Where it matches in all the printable characters."""
    at = 0
    while (span := program.search(_PRINTABLE, at)) is not None:
        yield span
        at = span[1]


def _strength(node: Node) -> float:
    match node:
        case Atom(source):
            return _bits(source)
        case Assertion():
            return 0
        case Cat(items):
            return sum(map(_strength, items))
        case Alt(items):
            return min(map(_strength, items))
        case Repeat(inner, lo):
            return _strength(inner) * lo
        case Value(inner):
            return _strength(inner)


def _flat(node: Node) -> list[Node]:
    match node:
        case Cat(items):
            return [part for item in items for part in _flat(item)]
        case Value(inner) | Repeat(inner, 1, 1):
            return _flat(inner)
        case _:
            return [node]


def _ways(items: list[Node]) -> list[list[Node]]:
    """The alternatives of a pattern that begins with a choice, apart."""
    at = next((at for at, item in enumerate(items) if widths(item)[0]), len(items))
    first = items[at] if at < len(items) else None
    if not isinstance(first, Alt):
        return [items]
    ways = [way for branch in first.items for way in _ways([*items[:at], *_flat(branch), *items[at + 1 :]])]
    return ways if len(ways) <= MOST_WAYS else [items]


def _key(items: list[Node], bits: float) -> Key:
    for at in range(len(items)):
        if _word(items[at:]) >= WORD_BITS:
            body = Cat(tuple(_head(items[at:], bits)))
            return Key(Kind.GAPS if _has_gap(body) else Kind.WORDS, Cat(tuple(items[:at])), body)
    body = Cat(tuple(_head(items, SHAPE_BITS)))
    kind = Kind.GAPS if _has_gap(body) else Kind.DIGITS if _weakest(body) >= WEAK_BITS else Kind.LETTERS
    return Key(kind, Cat(()), body)


def _word(items: Iterable[Node]) -> float:
    """The bits of the characters that the items begin with and that say much."""
    bits = 0.0
    for item in items:
        match item:
            case Atom() if _strength(item) >= STRONG_BITS:
                bits += _strength(item)
            case Repeat(Atom() as atom, lo, hi) if lo and lo == hi and _strength(atom) >= STRONG_BITS:
                bits += _strength(item)
            case Assertion() if bits:
                pass
            case _:
                break
    return bits


def _head(items: Iterable[Node], need: float) -> Iterator[Node]:
    """The beginning of the items that has so many bits."""
    got = 0.0
    for item in items:
        if got >= need or (got >= SHORT_BITS and _says_little(item)):
            return
        part = _part(item, need - got)
        yield part
        if part is not item:
            return
        got += _strength(item)


def _says_little(item: Node) -> bool:
    return isinstance(item, Repeat) and item.lo >= MANY and _strength(item.node) < WEAK_BITS


def _part(item: Node, need: float) -> Node:
    """The item, or a beginning of it that has so many bits."""
    match item:
        case Alt(branches):
            flat = [_flat(branch) for branch in branches]
            heads = [list(_head(branch, need)) for branch in flat]
            return item if heads == flat else Alt(tuple(Cat(tuple(head)) for head in heads))
        case Repeat(inner, lo):
            each = _strength(inner)
            count = min(lo, LONGEST_COUNT, ceil(need / each) if each else LONGEST_COUNT)
            return Repeat(inner, count, count) if count < lo else item
        case _:
            return item


def _has_gap(node: Node) -> bool:
    match node:
        case Cat(items) | Alt(items):
            return any(map(_has_gap, items))
        case Repeat(inner, _, hi):
            return hi is None or hi > LONGEST_COUNT or _has_gap(inner)
        case _:
            return False


def _weakest(node: Node) -> float:
    """The fewest bits that a character of it has, leaving out what it can begin with and need not."""
    match node:
        case Atom(source):
            return _bits(source)
        case Cat(items):
            return min((_weakest(item) for item in items if widths(item)[0]), default=inf)
        case Alt(items):
            return min(map(_weakest, items))
        case Repeat(inner) | Value(inner):
            return _weakest(inner)
        case Assertion():
            return inf
