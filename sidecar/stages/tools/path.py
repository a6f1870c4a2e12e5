"""A small JSON path: which values of a document a condition is about.

    $              the document itself
    .name  ['name']  ["name"]      a field of an object; in quotes any name, \\\\ before a quote or a backslash
    [0]  [-1]      an item of a list, also counted from its end
    .*  [*]        every field of an object or item of a list
    ..             before one of these: at this place or anywhere below it, `$..url`, `$..*`, `$..[0]`

As in RFC 9535, without filters, slices and several names at once.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ...errors import PatternError


@dataclass(frozen=True, slots=True)
class Step:
    """One step down. `key` is a field's name, an item's number, or None for all. `deep`: from any depth."""

    key: str | int | None
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """Parsed with `parse`. `source` is the text it came from."""

    source: str
    steps: tuple[Step, ...]

    def values(self, document: Any) -> list[Any]:
        """The values there, each place once, so that looking stays linear in the document's size."""
        found = [document]
        for step in self.steps:
            holders = _below(found) if step.deep else found
            found = [value for holder in _each_once(holders) for value in _inside(holder, step.key)]
        return found


_NAME: Final = re.compile(r"[^\s.\[\]'\"*]+")
_NUMBER: Final = re.compile(r"\[\s*(-?[0-9]{1,9})\s*\]")
_ALL: Final = re.compile(r"\[\s*\*\s*\]")
_QUOTED: Final = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_EXAMPLES: Final = "Write paths such as $.url, $.files[0].name, $.to[*], $..url or $['a key']"
# Each step is a walk over what the one before has found.
MAX_STEPS: Final = 20


def parse(source: str) -> Path:
    """Raises PatternError with the offset of the fault."""
    if not source.startswith("$"):
        raise PatternError("a path begins with $", 0, _EXAMPLES)
    steps: list[Step] = []
    at = 1
    while at < len(source):
        if len(steps) == MAX_STEPS:
            raise PatternError(f"a path has at most {MAX_STEPS} steps", at, _EXAMPLES)
        step, at = _step(source, at)
        steps.append(step)
    return Path(source, tuple(steps))


def _step(source: str, at: int) -> tuple[Step, int]:
    begins = at
    deep = source.startswith("..", at)
    dotted = source.startswith(".", at)
    at += 2 if deep else 1 if dotted else 0
    if source.startswith("[", at) and (deep or not dotted):
        key, at = _bracket(source, at)
    elif not dotted:
        raise PatternError("expected . or [ here", begins, _EXAMPLES)
    elif source.startswith("*", at):
        key, at = None, at + 1
    else:
        key, at = _name(source, at)
    return Step(key, deep), at


def _bracket(source: str, at: int) -> tuple[str | int | None, int]:
    if match := _ALL.match(source, at):
        return None, match.end()
    if match := _NUMBER.match(source, at):
        return int(match[1]), match.end()
    if match := _QUOTED.match(source, at):
        return _ESCAPED.sub(r"\1", match[1] if match[1] is not None else match[2]), match.end()
    raise PatternError("expected [0], [*] or a name in quotes and brackets here", min(at, len(source) - 1), _EXAMPLES)


def _name(source: str, at: int) -> tuple[str, int]:
    match = _NAME.match(source, at)
    if match is None:
        # Behind the last character there is no place to point at.
        raise PatternError("expected the name of a field here", min(at, len(source) - 1), _EXAMPLES)
    return match[0], match.end()


def _inside(holder: Any, key: str | int | None) -> Iterable[Any]:
    if isinstance(holder, dict):
        if key is None:
            return holder.values()
        return (holder[key],) if key in holder else ()
    if isinstance(holder, list):
        if key is None:
            return holder
        if isinstance(key, int) and -len(holder) <= key < len(holder):
            return (holder[key],)
    return ()


def _each_once(holders: Iterable[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    for holder in holders:
        if isinstance(holder, dict | list) and id(holder) not in seen:
            seen.add(id(holder))
            yield holder


def _below(found: Iterable[Any]) -> Iterator[Any]:
    """These objects and lists and all in them, each once."""
    seen: set[int] = set()
    waiting = list(found)
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict | list) and id(holder) not in seen:
            seen.add(id(holder))
            yield holder
            waiting.extend(holder.values() if isinstance(holder, dict) else holder)
