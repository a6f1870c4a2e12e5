"""A shape as it looks in a folded text: a rule that names Cyrillic letters must find them where they read as Latin.

Characters that a pattern writes as escapes, such as \\x{43E}, are taken as they are.
"""

from functools import cache
from typing import Final

from ...errors import PatternError
from ..engine import Program
from ..lookaround import LookShape
from ..matcher import Shape
from ..pattern import EMPTY, Alt, Assertion, Atom, Cat, Node, Repeat, Value, literal, widths
from .fold import Folding

_IGNORING_CASE: Final = "(?i:"


def folded_shape(shape: Shape, folding: Folding) -> Shape:
    """Raises PatternError when nothing of the shape can be seen."""
    if isinstance(shape, LookShape):
        return shape.mapped(lambda atom: _folded(atom, folding))
    node = _folded(shape.node, folding)
    if widths(node)[0] == 0:
        raise PatternError("consists of invisible characters, which normalize: [invisible] hides", 0)
    return Shape(shape.name, node, shape.check)


def _folded(node: Node, folding: Folding) -> Node:
    match node:
        case Atom(source):
            return node if source.isascii() else _folded_atom(node, folding)
        case Assertion():
            return node
        case Cat(items):
            return Cat(tuple(_folded(item, folding) for item in items))
        case Alt(items):
            return Alt(tuple(_folded(item, folding) for item in items))
        case Repeat(inner, lo, hi, lazy):
            return Repeat(_folded(inner, folding), lo, hi, lazy)
        case Value(inner):
            return Value(_folded(inner, folding))


def _folded_atom(atom: Atom, folding: Folding) -> Node:
    ignores_case = atom.source.startswith(_IGNORING_CASE)
    bare = atom.source[len(_IGNORING_CASE) : -1] if ignores_case else atom.source
    if bare.startswith("["):
        return _folded_class(atom, bare, folding)
    return _folded_literal(bare.removeprefix("\\"), folding, ignores_case=ignores_case)


def _folded_literal(char: str, folding: Folding, *, ignores_case: bool) -> Node:
    """One of a character's cases may read as another script while the other does not: В is B, в is not b."""
    cases = dict.fromkeys((char, char.lower(), char.upper()) if ignores_case else (char,))
    texts = dict.fromkeys(map(folding.folded, cases))
    branches = [_literals(text, ignores_case=ignores_case) for text in texts]
    return branches[0] if len(branches) == 1 else Alt(tuple(branches))


def _literals(text: str, *, ignores_case: bool) -> Node:
    atoms = [_literal(char, ignores_case=ignores_case) for char in text]
    return atoms[0] if len(atoms) == 1 else Cat(tuple(atoms)) if atoms else EMPTY


def _literal(char: str, *, ignores_case: bool) -> Atom:
    atom = literal(char)
    return Atom(f"{_IGNORING_CASE}{atom.source})", 1, 4) if ignores_case and char.isalpha() else atom


def _folded_class(atom: Atom, bare: str, folding: Folding) -> Node:
    """The class, and what its members read as. One that names what it does not hold stays as it is."""
    if bare.startswith("[^"):
        return atom
    texts = dict.fromkeys(folding.table[char] for char in _members(atom.source, folding))
    branches = [_literals(text, ignores_case=False) for text in texts if text]
    return Alt((atom, *branches)) if branches else atom


@cache
def _members(source: str, folding: Folding) -> tuple[str, ...]:
    """The class's characters that read as something else."""
    program = Program(source)
    return tuple(char for char in folding.table if program.at(char.encode(), 0) is not None)
