"""Reads calls whose name stands outside of their arguments: behind a mark, in a tag, or in a message's header.

Each begins behind its mark, with the mark held, and returns when it is known what it is: a call, or text.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ...text.cursor import Steps
from ...text.literals import Broken, Values, quoted, spelt, whole
from .tape import MAX_HELD, Around, Fate, Tape

MAX_NAME: Final = 256
MAX_HEADER: Final = 512
TICKS: Final = re.compile("`+")
LABEL: Final = re.compile(r"[\w+.#-]+")

_NAME: Final = re.compile(r"[^\s<>{}\[\]｜]+")
_KEY: Final = re.compile(r"[^>\r\n]+")
_LINE: Final = re.compile(r"[^<\r\n]+")
_LINE_ENDS: Final = ("\r\n", "\n")
_UP_TO_TAG: Final = re.compile(r"[^<]+")
_DEEPSEEK_SEPARATOR: Final = ("<｜tool▁sep｜>",)
_PARAMETER: Final = "<parameter="
_PARAMETER_ENDS: Final = ("</parameter>", _PARAMETER, "</function>")
_MESSAGE: Final = ("<|message|>",)
_MESSAGE_ENDS: Final = ("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>")
_TO: Final = re.compile(r"\bto=([^\s<]+)")
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*(\w+)")
_MAY_BE_JSON: Final = frozenset('{[-0123456789tfnTFN"')


def read_arguments(tape: Tape, name: str, stops: tuple[str, ...] = ()) -> Steps[None]:
    """The object at the cursor is the arguments of a call by this name. `stops` end it beside those of the tape."""
    if tape.knows(name) and tape.begin(name):
        try:
            yield from Values(tape.cursor, tape.argue, stops=stops + tape.stops()).value()
        except Broken:
            tape.leave()
        else:
            tape.end()
        return
    tape.release()
    try:
        yield from Values(tape.cursor, _nowhere, strict=True).value()
    except Broken:
        return
    if not tape.knows(name):
        tape.misname(name)


def read_bracketed(tape: Tape) -> Steps[None]:
    """Mistral's `NAME{…}`, `NAME[ARGS]{…}` and `NAME[CALL_ID]ID[ARGS]{…}`."""
    name = yield from tape.cursor.runs(_NAME, MAX_NAME)
    if (yield from tape.cursor.word(("[CALL_ID]",))):
        yield from tape.cursor.runs(_NAME, MAX_NAME)
    yield from tape.cursor.word(("[ARGS]",))
    if name and (yield from tape.peek_past_space()) == "{":
        yield from read_arguments(tape, name)
    else:
        tape.release()


def read_separated(tape: Tape) -> Steps[None]:
    """DeepSeek's `NAME<sep>{…}` of V3.1, and `function<sep>NAME` with a fenced object below it of V3 and R1."""
    cursor = tape.cursor
    name = yield from cursor.runs(_NAME, MAX_NAME)
    separated = yield from cursor.word(_DEEPSEEK_SEPARATOR)
    if separated and (yield from tape.peek_past_space()) != "{":
        name = yield from cursor.runs(_NAME, MAX_NAME)
        yield from tape.peek_past_space()
        ticks = yield from cursor.runs(TICKS, MAX_NAME)
        yield from cursor.runs(LABEL, MAX_NAME)
        if ticks:
            tape.openers["fence"] = Around(ticks=len(ticks))
    if separated and name and (yield from tape.peek_past_space()) == "{":
        yield from read_arguments(tape, name)
    else:
        tape.release()


# --- a function in tags ---


def read_function(tape: Tape) -> Steps[None]:
    """`<function=NAME>` with an object (Llama 3.1) or with parameters in tags (Qwen3-Coder)."""
    cursor = tape.cursor
    name = (yield from cursor.runs(_NAME, MAX_NAME)).strip("\"'")
    if not name or (yield from tape.peek_past_space()) != ">":
        tape.release()
        return
    cursor.at += 1
    char = yield from tape.peek_past_space()
    if char == "{":
        yield from read_arguments(tape, name)
    elif (yield from cursor.ahead((_PARAMETER, "</function>"))):
        yield from _parameters(tape, name)
    else:
        tape.release()


def _parameters(tape: Tape, name: str) -> Steps[None]:
    if not tape.knows(name):
        yield from _to_the_end(tape)
        tape.misname(name)
    elif tape.begin(name):
        try:
            yield from _each_parameter(tape, name)
        except Broken:
            tape.leave()
        else:
            tape.argue("}")
            tape.end()


def _to_the_end(tape: Tape) -> Steps[None]:
    tape.release()
    while (yield from tape.cursor.peek()) and not (yield from tape.cursor.word(("</function>",))):
        if not tape.cursor.run(_UP_TO_TAG):
            tape.cursor.at += 1


def _each_parameter(tape: Tape, name: str) -> Steps[None]:
    cursor = tape.cursor
    tape.argue("{")
    keys: set[str] = set()
    while True:
        char = yield from tape.peek_past_space()
        word = yield from cursor.ahead((_PARAMETER, *tape.stops()))
        if word != _PARAMETER:
            if char and not word:
                raise Broken
            return
        cursor.at += len(word)
        key = (yield from cursor.runs(_KEY, MAX_NAME)).strip().strip("\"'")
        if not key or (yield from cursor.peek()) != ">":
            raise Broken
        cursor.at += 1
        value = _Parameter(tape, _declared(tape.tools, name, key))
        if key in keys:
            yield from _value_text(tape, _Unwanted())
            continue
        tape.argue(("," if keys else "") + quoted(key) + ":")
        keys.add(key)
        yield from _value_text(tape, value)


def _value_text(tape: Tape, value: "_Parameter | _Unwanted") -> Steps[None]:
    """All but a line end at its beginning and its end. Parameters that are not closed end where a tag begins a line."""
    cursor = tape.cursor
    line_end = ""
    first = True
    while char := (yield from cursor.peek()):
        if run := cursor.run(_LINE):
            value.put(line_end + run)
            line_end = ""
        elif ends := (yield from cursor.word(_LINE_ENDS)):
            value.put(line_end)
            line_end = "" if first else ends
        else:
            word = yield from cursor.ahead(_PARAMETER_ENDS)
            if word == _PARAMETER_ENDS[0]:
                cursor.at += len(word)
            if word == _PARAMETER_ENDS[0] or (word and line_end):
                value.close()
                return
            cursor.at += 1
            value.put(line_end + char)
            line_end = ""
        first = False
    raise Broken


def _declared(tools: Any, name: str, key: str) -> str | None:
    """The type that the tool's schema gives the parameter, where the tools are given with their schemas."""
    schema: Any = tools
    for step in (name, "properties", key, "type"):
        schema = schema.get(step) if isinstance(schema, Mapping) else None
    return schema if isinstance(schema, str) else None


class _Unwanted:
    """The value of a key that was there before."""

    def put(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class _Parameter:
    """A value that is written without quotes: a string, which goes out as it comes, or what else the text may be.

    Without a declared type, text that is JSON (or Python) of another kind than string is that.
    """

    __slots__ = ("_begins", "_declared", "_parts", "_size", "_streams", "_tape")

    def __init__(self, tape: Tape, declared: str | None) -> None:
        self._tape = tape
        self._declared = declared
        self._begins = ""
        self._parts: list[str] = []
        self._size = 0
        self._streams = False

    def put(self, text: str) -> None:
        if self._streams:
            self._tape.argue(spelt(text))
            return
        self._parts.append(text)
        self._size += len(text)
        self._begins = self._begins or text.lstrip()[:1]
        no_json = self._declared is None and self._begins and self._begins not in _MAY_BE_JSON
        if self._declared == "string" or self._size > MAX_HELD or no_json:
            self._tape.argue('"' + spelt("".join(self._parts)))
            self._streams = True

    def close(self) -> None:
        if self._streams:
            self._tape.argue('"')
            return
        text = "".join(self._parts)
        made = whole(text.strip(), strict=True)
        self._tape.argue(f'"{spelt(text)}"' if made is None or made[0] == '"' else made)


# --- messages with headers ---


def read_message(tape: Tape) -> Steps[None]:
    """GPT-OSS: a message to `functions.NAME` is a call, one of the analysis channel is thought, others are said."""
    header = yield from _header(tape)
    if header is None:
        tape.release()
        return
    to, channel = _TO.search(header), _CHANNEL.search(header)
    if to is not None:
        yield from _message_to(tape, to[1].removeprefix("functions."))
        return
    tape.forget()
    if channel is not None and channel[1] == "analysis":
        yield from _thought(tape)


def _header(tape: Tape) -> Steps[str | None]:
    """What stands before the message, with the mark it begins with; None if there is no message."""
    cursor = tape.cursor
    parts = ["<|channel|>"]
    room = MAX_HEADER
    while room > 0 and (yield from cursor.peek()):
        if (yield from cursor.word(_MESSAGE)):
            return "".join(parts)
        end = cursor.at + 1
        parts.append(cursor.text[cursor.at : end])
        cursor.at = end
        room -= 1
    return None


def _message_to(tape: Tape, name: str) -> Steps[None]:
    if (yield from tape.peek_past_space()) == "{":
        yield from read_arguments(tape, name, _MESSAGE_ENDS)
    elif tape.knows(name) and (yield from tape.cursor.ahead(("<|call|>",))) and tape.begin(name):
        tape.argue("{}")
        tape.end()
    else:
        tape.release()


def _thought(tape: Tape) -> Steps[None]:
    cursor = tape.cursor
    tape.turn(Fate.THINK)
    while (yield from cursor.peek()) and not (yield from cursor.ahead(_MESSAGE_ENDS)):
        if not cursor.run(_UP_TO_TAG):
            cursor.at += 1


def _nowhere(text: str) -> None:
    """What is not wanted."""
