"""JSON out of what a model says: alone, in a fence, within prose, or nearly written right.

A candidate is judged by the caller. Of several that are right at one place exactly one must be; a text is never
completed, and nothing is taken out of a larger JSON text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, Never

import msgspec

from .mending import mended
from .schemas import SchemaFault

MAX_DEPTH: Final = 200
"""As deep as any other JSON that is held."""

How = Literal["whole", "fenced", "inside", "mended"]
Judge = Callable[[Any], Sequence[SchemaFault]]


class Found(NamedTuple):
    """`text` is the JSON as the model wrote it; with `mended` compact, and nearly so. The value's floats are
    `msgspec.Raw`.
    """

    value: Any
    text: str
    how: How


class Missed(NamedTuple):
    """There is none, or it is not right: why, about the best candidate."""

    faults: tuple[SchemaFault, ...]


class NotJson(ValueError):
    """Says what is wrong, and nothing of the text."""


def loads(text: str) -> Any:
    """One JSON text, strictly: no NaN, no key twice in an object, not too deep. Raises NotJson."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        raise NotJson(f"{fault.msg} (character {fault.pos})") from None
    except RecursionError:
        raise NotJson(_TOO_DEEP) from None
    return _shallow(value)


def extract(said: str, judge: Judge) -> Found | Missed:
    """The JSON in a whole reply. `judge` gives the faults of a value."""
    text = _answer(said).strip(_BLANK)
    try:
        return _whole(text, loads(text), judge)
    except NotJson as fault:
        first = SchemaFault("", f"it is not JSON: {fault}" if text[:1] in _CLOSERS else _why_not(text))
    missed: Missed | None = None
    for tier in (_fenced, _inside, _mended):
        outcome = _only(tier(text), judge)
        if isinstance(outcome, Found):
            return outcome
        if outcome is not None and outcome.faults == _SEVERAL:
            return outcome
        missed = missed or outcome
    return missed or Missed((first,))


_BLANK: Final = " \t\r\n\ufeff"
_CLOSERS: Final = {"{": "}", "[": "]"}
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
_SEVERAL: Final = (SchemaFault("", "it holds several JSON texts that fit, where one is expected"),)
_THOUGHT_ENDS: Final = "</think>"


def _answer(said: str) -> str:
    """Without what an open model has thought aloud first."""
    return said.rpartition(_THOUGHT_ENDS)[2] if said.lstrip().startswith("<think>") else said


def _whole(text: str, value: Any, judge: Judge) -> Found | Missed:
    faults = tuple(judge(value))
    if not faults:
        return Found(value, text, "whole")
    inner = _within_a_string(value)
    if inner is not None and not judge(inner.value):
        return inner
    return Missed(faults)


def _why_not(text: str) -> str:
    for block in _fences(text)[:1]:
        try:
            loads(block)
        except NotJson as fault:
            return f"what stands in its block is not JSON: {fault}"
    return "it holds no JSON"


def _within_a_string(value: Any) -> Found | None:
    """An object or list that was encoded twice."""
    if not isinstance(value, str) or value.strip(_BLANK)[:1] not in _CLOSERS:
        return None
    try:
        return Found(loads(value), value.strip(_BLANK), "inside")
    except NotJson:
        return None


def _only(candidates: Iterable[Found], judge: Judge) -> Found | Missed | None:
    """The one candidate that is right; the same value said again is the same one. None where there is none at all."""
    right: Found | None = None
    faults: tuple[SchemaFault, ...] = ()
    for candidate in candidates:
        found = tuple(judge(candidate.value))
        if found:
            faults = faults or found
        elif right is not None and right.value != candidate.value:
            return Missed(_SEVERAL)
        else:
            right = right or candidate
    return right or (Missed(faults) if faults else None)


# --- strict JSON ---


def _refuse(name: str) -> Never:
    raise NotJson(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("an object has the same key twice")
    return found


_DECODER: Final = json.JSONDecoder(
    parse_float=lambda digits: msgspec.Raw(digits.encode()), parse_constant=_refuse, object_pairs_hook=_object
)


def _shallow(value: Any) -> Any:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for holder in level for inner in _held(holder)]
        if not level:
            return value
    raise NotJson(_TOO_DEEP)


def _held(holder: Any) -> Iterable[Any]:
    if isinstance(holder, dict):
        return holder.values()
    return holder if isinstance(holder, list) else ()


# --- where candidates are ---

_FENCE: Final = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})(?P<label>[^`\n]*)$", re.MULTILINE)


def _fences(text: str) -> list[str]:
    """What stands in each fenced block (CommonMark 4.5); and at the end the first block as it would be if none but
    the last fence closed it: a string in it may hold fences.
    """
    marks = list(_FENCE.finditer(text))
    blocks, index = [], 0
    while index < len(marks):
        opener = marks[index]
        index = next((at for at in range(index + 1, len(marks)) if _closes(marks[at], opener)), len(marks))
        if index < len(marks):
            blocks.append(text[opener.end() : marks[index].start()])
        index += 1
    if blocks and _closes(marks[-1], marks[0]):
        blocks.append(text[marks[0].end() : marks[-1].start()])
    return list(dict.fromkeys(blocks))


def _closes(mark: re.Match[str], opener: re.Match[str]) -> bool:
    return not mark["label"].strip() and mark["marks"].startswith(opener["marks"])


def _fenced(text: str) -> Iterator[Found]:
    for inside in _fences(text):
        block = inside.strip(_BLANK)
        try:
            yield Found(loads(block), block, "fenced")
        except NotJson:
            continue


_BRACKET: Final = re.compile(r"[{\[]")
# A string that does not end takes all that follows.
_MARK: Final = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|(?P<open>[{\[])|(?P<close>[}\]])", re.DOTALL)


def _inside(text: str) -> Iterator[Found]:
    """Objects and lists that stand in a text, but not in one another. What is open to the end may have been cut."""
    at = 0
    while (begin := _BRACKET.search(text, at)) and (end := _balanced(text, begin.start())):
        part, at = text[begin.start() : end], end
        try:
            yield Found(loads(part), part, "inside")
        except NotJson:
            continue


def _balanced(text: str, begin: int) -> int | None:
    """Where the bracket closes that opens here."""
    depth = 0
    for mark in _MARK.finditer(text, begin):
        depth += (mark.lastgroup == "open") - (mark.lastgroup == "close")
        if depth == 0:
            return mark.end()
    return None


def _mended(text: str) -> Iterator[Found]:
    """What is nearly JSON: a block, or else all between the first bracket and the last of its kind."""
    for region in _regions(text):
        written = mended(region)
        if written is None:
            continue
        try:
            value = loads(written)
        except NotJson:
            continue
        yield Found(value, msgspec.json.encode(value).decode(), "mended")


def _regions(text: str) -> Iterator[str]:
    blocks = _fences(text) or [text]
    for block in map(_bracketed, blocks):
        if block:
            yield block


def _bracketed(text: str) -> str:
    begin = _BRACKET.search(text)
    return text[begin.start() : text.rfind(_CLOSERS[begin[0]]) + 1] if begin else ""
