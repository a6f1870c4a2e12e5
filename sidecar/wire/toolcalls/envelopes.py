"""Reads a JSON envelope: `{"tool": NAME, "arguments": {…}}`, with the names of keys that models make of it.

It is a call as soon as its name is known, is one of the tools, and its arguments have begun; from there on they go out
as they come. Arguments that are JSON in a string, or stand before the name, are held until they are whole.

Strict is what decides whether it is one. A key that no envelope has, a second name, arguments that are no object, or
broken syntax make it text, and what is an object in it is no call of its own. Once the call has begun, its arguments
are mended where they can be (text/literals); keys behind them are left out, and a second name changes nothing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...text.cursor import Steps
from ...text.literals import Broken, Values, whole
from .tape import Tape


class _Key(Enum):
    NAME = "name"
    ARGUMENTS = "arguments"
    BESIDE = "beside"


_KEYS: Final[Mapping[str, _Key]] = {
    f"{quote}{key}{quote}": role
    for role, keys in {
        _Key.NAME: ("tool", "name", "function"),
        _Key.ARGUMENTS: ("arguments", "parameters", "args", "input"),
        _Key.BESIDE: ("type", "id"),
    }.items()
    for key in keys
    for quote in "\"'"
}
_SPELLINGS: Final = tuple(_KEYS)
# A string, null or None.
_MAY_BE_SPELT: Final = ('"', "'", "n", "N")
# A character is spelt with six at most.
_LONGEST_SPELLING: Final = 6


@dataclass(slots=True)
class _Envelope:
    """What is known of it so far.

    `marked`: something other than JSON says that it is a call. `shaped`: it has arguments that are an object. `wrong`:
    it is text, whatever else is in it. `begun`: it is a call. `whole`: a call with all of its arguments.
    """

    marked: bool
    name: str | None = None
    arguments: str | None = None  # that were held, whole
    shaped: bool = False
    wrong: bool = False
    begun: bool = False
    whole: bool = False


def read_envelope(tape: Tape, *, marked: bool) -> Steps[None]:
    """From an opening brace that is not read yet."""
    envelope = _Envelope(marked)
    try:
        yield from _members(tape, envelope, inner=False)
        closed = True
    except Broken:
        closed = False
    if closed and marked and envelope.name and not envelope.shaped and not envelope.wrong:
        envelope.arguments, envelope.shaped = "{}", True
        _settle(tape, envelope)
    if envelope.whole:
        tape.end()
    elif envelope.begun:
        tape.leave()
    else:
        _pass_on(tape, envelope)


def _pass_on(tape: Tape, envelope: _Envelope) -> None:
    if tape.holding:
        tape.release()
    if envelope.name and envelope.shaped and not envelope.wrong and not tape.knows(envelope.name):
        tape.misname(envelope.name)


def _members(tape: Tape, envelope: _Envelope, *, inner: bool) -> Steps[None]:
    cursor = tape.cursor
    cursor.at += 1
    while True:
        char = yield from tape.peek_past_space()
        if char == "}":
            cursor.at += 1
            return
        role = _KEYS.get((yield from cursor.ahead(_SPELLINGS)))
        if not envelope.begun and role in (None, _Key.NAME if envelope.name else None):
            _is_none(tape, envelope)
        yield from Values(cursor, _nowhere, strict=True).key()
        yield from _member(tape, envelope, role, inner=inner)
        char = yield from tape.peek_past_space()
        if char == ",":
            cursor.at += 1
        elif char != "}":
            raise Broken


def _member(tape: Tape, envelope: _Envelope, role: _Key | None, *, inner: bool) -> Steps[None]:
    char = yield from tape.peek_past_space()
    if envelope.begun or envelope.wrong or role in (None, _Key.BESIDE):
        yield from _skip(tape)
    elif role is _Key.NAME and char == "{" and not inner:
        yield from _members(tape, envelope, inner=True)
    elif role is _Key.NAME:
        yield from _name(tape, envelope, char)
    else:
        yield from _arguments(tape, envelope, char)


def _name(tape: Tape, envelope: _Envelope, char: str) -> Steps[None]:
    if char not in ("'", '"'):
        _is_none(tape, envelope)
        yield from _skip(tape)
        return
    parts: list[str] = []
    most = _LONGEST_SPELLING * (2 + max(map(len, tape.tools), default=0))
    yield from Values(tape.cursor, _at_most(tape, parts, most), strict=True).value()
    envelope.name = str(json.loads("".join(parts)))
    if not tape.knows(envelope.name):
        tape.release()
    elif envelope.arguments is not None:
        _settle(tape, envelope)


def _at_most(tape: Tape, parts: list[str], most: int) -> Callable[[str], object]:
    """Lets go of a name that is longer than all there are."""
    size = 0

    def put(text: str) -> None:
        nonlocal size
        parts.append(text)
        size += len(text)
        if size > most and tape.holding:
            tape.release()

    return put


def _arguments(tape: Tape, envelope: _Envelope, char: str) -> Steps[None]:
    if envelope.shaped:
        _is_none(tape, envelope)
        yield from _skip(tape)
    elif char != "{":
        if char not in _MAY_BE_SPELT:
            _is_none(tape, envelope)
        yield from _spelt_arguments(tape, envelope)
    elif envelope.name is None or not tape.begin(envelope.name):
        parts: list[str] = []
        keep = parts.append if tape.holding else _nowhere
        yield from Values(tape.cursor, keep, strict=True).value()
        envelope.arguments, envelope.shaped = "".join(parts), True
        _settle(tape, envelope)
    else:
        envelope.begun = envelope.shaped = True
        yield from Values(tape.cursor, tape.argue, stops=tape.stops()).value()
        envelope.whole = True


def _spelt_arguments(tape: Tape, envelope: _Envelope) -> Steps[None]:
    """Arguments that are a string with an object in it. Where it is marked as a call, they may be empty or null."""
    parts: list[str] = []
    yield from Values(tape.cursor, parts.append, strict=True).value()
    if envelope.wrong:
        return
    value = json.loads("".join(parts))
    empty = value is None or (isinstance(value, str) and not value.strip())
    made = "{}" if empty and envelope.marked else whole(value) if isinstance(value, str) else None
    if made is None or made[0] != "{":
        _is_none(tape, envelope)
        return
    envelope.arguments, envelope.shaped = made, True
    _settle(tape, envelope)


def _settle(tape: Tape, envelope: _Envelope) -> None:
    """The arguments are whole. With the name it is a call."""
    if envelope.name is None or envelope.arguments is None or not tape.holding or not tape.begin(envelope.name):
        return
    tape.argue(envelope.arguments)
    envelope.begun = envelope.whole = True


def _is_none(tape: Tape, envelope: _Envelope) -> None:
    """It is no envelope, whatever else is in it."""
    envelope.wrong = True
    if tape.holding:
        tape.release()


def _skip(tape: Tape) -> Steps[None]:
    yield from Values(tape.cursor, _nowhere, strict=True).value()


def _nowhere(text: str) -> None:
    """What is not wanted."""
