"""Reads tool calls out of a reply that is text, while it arrives.

A call may stand anywhere in the text: bare, in a fence of any label, in a tag, in a list, behind the dialect's own
marks. What is around it and nothing else, brackets, fences and white space, goes with it; all other text is said. Not
calls, but text as it came, are

- envelopes that name no tool (Misnamed), have another shape or are longer than 64 KB before they are certain;
- what is in a `<think>` block, unless `in_thoughts`; in a block of code with something else before it, but for the
  model's own marks; in backticks within a line; in JSON that is itself no envelope;
- a call that the reply ends in before it was certain. One that ends later, or is broken beyond mending, has no Ended.

A block of thoughts whose first tag stands at the end of the prompt, as some templates have it, is not known as one.

Text is held only while a call may begin with it: white space, a mark's first characters, an envelope until its first
key that no envelope has or its name that no tool has.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from ...text.cursor import Steps
from ...text.scrubber import is_high, paired
from .dialects import Begins, Dialect, Mark
from .envelopes import read_envelope
from .named import LABEL, TICKS, read_bracketed, read_function, read_message, read_separated
from .pieces import Argued, Begun, Ended, Misnamed, Piece, Said, Thought, joined
from .tape import Around, Fate, Tape

__all__ = ["Argued", "Begun", "Ended", "Misnamed", "Piece", "Reader", "Said", "Thought", "read"]

MAX_TICKS: Final = 16
MAX_LABEL: Final = 32
_TRIGGER: Final = re.compile(r"[{\[`<]").search
_SPACES: Final = re.compile(r"[^\S\n]+")
_REST_OF_LINE: Final = re.compile(r"[^`\n<\[]+")
_UP_TO: Final = {"<": re.compile(r"[^<]+"), "[": re.compile(r"[^\[]+")}
_LABELS_OF_CALLS: Final = frozenset(("tool_call", "tool_calls", "function_call"))
_BEFORE_CALLS: Final = ("{", "[", "<")
_NAMED: Final = {
    Begins.FUNCTION: read_function,
    Begins.CALL: read_separated,
    Begins.MESSAGE: read_message,
}


def read(
    dialect: Dialect, tools: Collection[str], text: str, *, most: int | None = None, in_thoughts: bool = False
) -> list[Piece]:
    """A whole reply."""
    reader = Reader(dialect, tools, most=most, in_thoughts=in_thoughts)
    return joined([*reader.feed(text), *reader.finish()])


class Reader:
    """One reply. `tools` are the names that can be called; as a mapping to their schemas, also what types parameters
    have that are written without quotes. `most` calls count: further ones are neither calls nor said.
    """

    __slots__ = ("_dialect", "_half", "_in_thoughts", "_own", "_plain", "_rests", "_steps", "_tape", "_words")

    def __init__(
        self, dialect: Dialect, tools: Collection[str], *, most: int | None = None, in_thoughts: bool = False
    ) -> None:
        self._dialect = dialect
        self._in_thoughts = in_thoughts
        self._tape = Tape(tools, most)
        self._words = tuple(dialect.marks)
        self._own = tuple(word for word, mark in dialect.marks.items() if mark.own)
        self._plain = _plain(dialect)
        self._half = ""  # of a surrogate pair
        self._rests = False  # whether all text so far is read, and nothing has begun
        self._steps = self._text()
        next(self._steps)

    def feed(self, text: str) -> list[Piece]:
        if self._half or not text.isascii():
            text = paired(self._half + text)
            self._half = text[-1] if text and is_high(text[-1]) else ""
            text = text[: len(text) - len(self._half)]
        if self._rests and not self._tape.fresh and (not _TRIGGER(text) or self._plain.fullmatch(text)):
            if self._tape.says(text):
                return [Said(text)]
            self._tape.say(text)
        else:
            self._tape.cursor.feed(text)
            next(self._steps)
            self._tape.account()
        return self._pieces()

    def finish(self, *, cut: bool = False) -> list[Piece]:
        """The reply is over. `cut`: it ended at its length, and nothing in it is closed that was not."""
        cursor = self._tape.cursor
        cursor.feed(self._half)
        self._half = ""
        if not cut:
            cursor.ended = True
            with suppress(StopIteration):
                next(self._steps)
        self._tape.finish()
        return self._pieces()

    def _pieces(self) -> list[Piece]:
        pieces = self._tape.pieces
        if not pieces:
            return []
        self._tape.pieces = []
        return joined(pieces) if len(pieces) > 1 else pieces

    def _text(self) -> Steps[None]:
        tape, cursor = self._tape, self._tape.cursor
        while True:
            tape.turn(Fate.SAY)
            if tape.fresh and (self._dialect.between or "list" in tape.wraps) and (yield from self._joint()):
                continue
            cursor.run(self._plain)
            if cursor.at < len(cursor.text):
                tape.turn(Fate.HOLD)
                yield from self._candidate()
            elif cursor.ended:
                return
            else:
                self._rests = True
                yield
                self._rests = False

    def _joint(self) -> Steps[bool]:
        """Right behind a call: the comma or the end of a list, or what the dialect has between two calls."""
        tape, cursor = self._tape, self._tape.cursor
        char = yield from tape.peek_past_space()
        in_list = "list" in tape.wraps
        if char == "]" and in_list:
            tape.turn(Fate.HOLD)
            cursor.at += 1
            del tape.wraps["list"]
            tape.forget()
            return True
        if not char or char not in ("," if in_list else "", self._dialect.between):
            if char != "{":
                tape.wraps.pop("list", None)
            return False
        tape.turn(Fate.HOLD)
        cursor.at += 1
        if (yield from tape.peek_past_space()) == "{":
            yield from read_envelope(tape, marked=any(each.marks for each in tape.wraps.values()))
        else:
            tape.release()
        return True

    def _candidate(self) -> Steps[None]:
        """Something stands here that a call may begin with. It is held; in the end it is a call or is let go."""
        tape = self._tape
        while (yield from self._opened()):
            if not tape.holding or tape.too_long:
                tape.release()
                return

    def _opened(self) -> Steps[bool]:
        """Reads one thing that can be around calls, or the call. Whether a call may still follow."""
        tape, cursor = self._tape, self._tape.cursor
        char = yield from tape.peek_past_space()
        tape.bound()
        word = yield from cursor.ahead(self._words + self._closes())
        mark = self._dialect.marks.get(word)
        if word and mark is None:
            self._closed(word)
        elif char == "`" and "fence" not in tape.openers:
            return (yield from self._fence())
        elif mark is not None and (mark.own or not tape.code) and mark.close not in tape.openers:
            return (yield from self._mark(word, mark))
        elif char == "[" and not tape.code and "list" not in tape.openers:
            return (yield from self._list())
        elif char == "{" and (tape.marked or not tape.code):
            yield from read_envelope(tape, marked=tape.marked)
        elif cursor.ended and tape.is_end_of_call(cursor.text[cursor.at :]):
            cursor.at = len(cursor.text)
            tape.forget()
        else:
            # What follows the openers is looked at anew: it may begin something of its own.
            cursor.at += 0 if tape.openers else 1
            tape.release()
        return False

    def _closes(self) -> tuple[str, ...]:
        """Words that end what the last calls were in."""
        if self._tape.openers:
            return ()
        return tuple(each.close for each in self._tape.wraps.values() if each.close)

    def _closed(self, word: str) -> None:
        wraps = self._tape.wraps
        self._tape.cursor.at += len(word)
        for kind in [kind for kind, each in wraps.items() if each.close == word]:
            del wraps[kind]
        self._tape.forget()

    # --- what can be around calls. Each says whether a call may still follow. ---

    def _mark(self, word: str, mark: Mark) -> Steps[bool]:
        tape = self._tape
        tape.cursor.at += len(word)
        if mark.begins is Begins.NOTHING:
            tape.forget()
            return False
        if mark.begins is Begins.THOUGHT:
            yield from self._thoughts(mark.close)
            return False
        tape.openers[mark.close or word] = Around(mark.close, marks=True)
        if mark.begins in _NAMED:
            yield from _NAMED[mark.begins](tape)
            return False
        if mark.begins is Begins.CALLS and (yield from tape.peek_past_space()) not in _BEFORE_CALLS:
            yield from read_bracketed(tape)
            return False
        return True

    def _thoughts(self, close: str) -> Steps[None]:
        tape, cursor = self._tape, self._tape.cursor
        tape.release()
        while not self._in_thoughts and (yield from cursor.peek()) and not (yield from cursor.word((close,))):
            if not cursor.run(_UP_TO[close[0]]):
                cursor.at += 1

    def _list(self) -> Steps[bool]:
        tape = self._tape
        tape.cursor.at += 1
        tape.openers["list"] = Around()
        if (yield from tape.peek_past_space()) == "{":
            return True
        tape.release()
        return False

    def _fence(self) -> Steps[bool]:
        tape, cursor = self._tape, self._tape.cursor
        begins = tape.line_begins
        ticks = len((yield from cursor.runs(TICKS, MAX_TICKS)))
        char = yield from cursor.peek()
        if tape.code:
            if begins and ticks >= tape.code and (not char or char.isspace()):
                tape.code = 0
            tape.release()
            return False
        wrap = tape.wraps.get("fence")
        if wrap and ticks >= wrap.ticks and not LABEL.match(char):
            del tape.wraps["fence"]
            tape.forget()
            return False
        if not 3 <= ticks <= MAX_TICKS:
            yield from self._inline(char)
            return False
        return (yield from self._fence_opens(ticks, begins=begins))

    def _fence_opens(self, ticks: int, *, begins: bool) -> Steps[bool]:
        tape, cursor = self._tape, self._tape.cursor
        label = yield from cursor.runs(LABEL, MAX_LABEL)
        yield from cursor.runs(_SPACES, 0)
        char = yield from cursor.peek()
        marks = label in _LABELS_OF_CALLS
        tape.openers["fence"] = Around(ticks=ticks, block=begins and char == "\n", marks=marks)
        if len(label) <= MAX_LABEL and (char == "\n" or char in _BEFORE_CALLS):
            return True
        tape.release()
        if begins:
            yield from self._rest_of_line()
            if (yield from cursor.peek()) == "\n":
                tape.code = ticks
        return False

    def _inline(self, char: str) -> Steps[None]:
        """Backticks in a line. An envelope right behind them is quoted, not called."""
        tape, cursor = self._tape, self._tape.cursor
        tape.release()
        if char in _BEFORE_CALLS:
            yield from self._rest_of_line()
            yield from cursor.runs(TICKS, 0)

    def _rest_of_line(self) -> Steps[None]:
        """Up to its end, a backtick, or a mark of the model's own."""
        cursor = self._tape.cursor
        while (yield from cursor.peek()) not in ("", "`", "\n") and not (yield from cursor.ahead(self._own)):
            if not cursor.run(_REST_OF_LINE):
                cursor.at += 1


def _plain(dialect: Dialect) -> re.Pattern[str]:
    """Text that nothing begins in. What may begin something can be told by the character behind it, mostly."""
    words = [*dialect.marks, *(mark.close for mark in dialect.marks.values() if mark.close)]
    behind = {
        "{": r"\s\"'",
        "[": r"\s{" + "".join(re.escape(word[1]) for word in words if word[0] == "["),
        "<": "".join(sorted({re.escape(word[1]) for word in words if word[0] == "<"})),
        "`": r"`{\[<",
    }
    begins = (f"{re.escape(first)}(?=[^{seconds}])" for first, seconds in behind.items())
    return re.compile(f"(?:[^{{\\[`<]++|{'|'.join(begins)})++")
