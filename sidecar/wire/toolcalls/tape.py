"""The reply as it is read, and what becomes of it: text that is read is said, held until that is known, or dropped.

White space is held, as a call may follow: next to a call it is dropped. Between two texts with a call in between, it
is said once, so that the texts do not run into each other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...text.cursor import Cursor, Steps
from ...text.literals import SPACE
from .pieces import Argued, Begun, Ended, Misnamed, Piece, Said, Thought

MAX_HELD: Final = 65_536
"""Characters that are held for what may be an envelope. A longer one is text, unless its name has come before."""
MAX_SPACE: Final = 1_000
"""White space of more characters is said: no call is so far from its brackets."""


class Fate(Enum):
    SAY = "say"
    HOLD = "hold"
    DROP = "drop"
    THINK = "think"


@dataclass(frozen=True, slots=True)
class Around:
    """Something open around calls: a tag, a fence of so many backticks, a list. `close` ends it where it is a word.

    `block`: a fence that stands on lines of its own. `marks`: it says that what is in it is a call.
    """

    close: str = ""
    ticks: int = 0
    block: bool = False
    marks: bool = False


class Tape:
    """`openers` are read and held, with `wraps` in the call that began in them; both by kind.

    `code` is how many backticks end the block of code that the text is in, 0 outside of one. `fresh`: no text was
    said since the last call or mark.
    """

    __slots__ = (
        "_calls",
        "_gap",
        "_held",
        "_held_size",
        "_lead",
        "_most",
        "_said",
        "code",
        "cursor",
        "fate",
        "fresh",
        "openers",
        "pieces",
        "tools",
        "wraps",
    )

    def __init__(self, tools: Collection[str], most: int | None) -> None:
        self.cursor = Cursor()
        self.pieces: list[Piece] = []
        self.tools = tools
        self.fate = Fate.HOLD
        self.openers: dict[str, Around] = {}
        self.wraps: dict[str, Around] = {}
        self.code = 0
        self.fresh = False
        self._most = most
        self._calls = 0
        self._held: list[str] = []
        self._held_size = 0
        self._said = False  # whether anything was
        self._gap = ""  # white space before the last calls and marks
        self._lead = ""  # white space behind them

    # --- reading ---

    def peek_past_space(self) -> Steps[str]:
        """The next character that is no white space; white space where there is too much of it, "" at the end."""
        room = MAX_SPACE
        while (char := (yield from self.cursor.peek())).isspace() and room > 0:
            room -= self.space(room)
        return char

    def space(self, most: int) -> int:
        """Reads the white space that is there, but not more."""
        cursor = self.cursor
        found = SPACE.match(cursor.text, cursor.at, cursor.at + most)
        if found is None:
            return 0
        cursor.at = found.end()
        return len(found[0])

    @property
    def marked(self) -> bool:
        """Whether what stands here is said to be a call by something other than JSON that is held."""
        return any(each.marks for each in self.openers.values())

    def stops(self) -> tuple[str, ...]:
        """What ends the call under way, if its own brackets do not."""
        closes = {each.close or "`" * each.ticks for each in self.wraps.values()}
        return tuple(close for close in closes if close)

    # --- what becomes of it ---

    @property
    def holding(self) -> bool:
        return self.fate is Fate.HOLD

    @property
    def too_long(self) -> bool:
        """Whether what is held is too long for an envelope. That must not depend on when text came."""
        return self._held_size + self.cursor.at - self.cursor.start > MAX_HELD

    def bound(self) -> None:
        """To be called before what depends on it: what is too long is let go of here, however the text was cut."""
        if self.holding and self.too_long:
            self.release()

    @property
    def line_begins(self) -> bool:
        """Whether what is held begins a line, when it is white space alone."""
        return not self._said or self.fresh or "\n" in "".join(self._held) + self._unaccounted()

    def account(self) -> None:
        """To be called before more text is fed."""
        text = self.cursor.passed()
        if not text:
            return
        match self.fate:
            case Fate.SAY:
                self.say(text)
            case Fate.THINK:
                self.pieces.append(Thought(text))
            case Fate.HOLD:
                self._held.append(text)
                self._held_size += len(text)
                if self._held_size > MAX_HELD:
                    self.release()
            case Fate.DROP:
                pass

    def turn(self, fate: Fate) -> None:
        """What becomes of text from here on. What is held before stays so."""
        self.account()
        self.fate = fate

    def say(self, text: str) -> None:
        """Text that is known to be text, but for the white space at its end: that may be before a call."""
        if self._held:
            text = self._take() + text
        body = text.rstrip()
        if len(body) == len(text):
            self._utter(text)
            return
        far = (len(text) - len(body)) // MAX_SPACE * MAX_SPACE
        self._utter(text[: len(body) + far])
        if len(body) + far < len(text):
            self._held.append(text[len(body) + far :])

    def says(self, text: str) -> bool:
        """Whether the text is said as it is, which is the common case and the caller's to do: nothing to hold."""
        if self._held or not text or text[-1].isspace():
            return False
        self._said = True
        return True

    def release(self) -> None:
        """What is held is text after all, and what follows as well."""
        self.turn(Fate.SAY)
        self.say("")
        for each in self.openers.values():
            if each.block:
                self.code = each.ticks
        self.openers.clear()

    def forget(self) -> None:
        """What is held is a mark that belongs to a call or says nothing."""
        self.turn(Fate.HOLD)
        self._drop_held()
        self.openers.clear()

    def _drop_held(self) -> None:
        before = self._lead + _space_before(self._take())
        self._gap = (self.fresh and self._gap) or before
        self._lead = ""
        self.fresh = True

    def finish(self) -> None:
        """There is no more text. White space at the end is said, but behind a call; so is what may be an envelope.

        Of a call that is cut, and of the word that closes one, nothing is said.
        """
        self.account()
        if self.fate is Fate.DROP:
            return
        left = self.cursor.text[self.cursor.at :]
        if self.fate is Fate.THINK:
            self.pieces += [Thought(left)] if left else []
            return
        text = self._take() + left
        if not self.is_end_of_call(text):
            self._utter(text)

    def is_end_of_call(self, text: str) -> bool:
        """Whether the last text is the first characters of a word that ends what the last call was in."""
        part = text.strip()
        return self.fresh and any(each.close.startswith(part) for each in self.wraps.values())

    def _utter(self, text: str) -> None:
        if self.fresh:
            body = text.lstrip()
            self._lead = (self._lead + _space_before(text))[:MAX_SPACE]
            if not body:
                return
            text = (self._lead or self._gap) + body if self._said else body
            self._lead = ""
            self.fresh = False
        if text:
            self._said = True
            self.pieces.append(Said(text))

    def _take(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        self._held_size = 0
        return text

    def _unaccounted(self) -> str:
        return self.cursor.text[self.cursor.start : self.cursor.at]

    # --- calls ---

    def knows(self, name: str) -> bool:
        return name in self.tools

    def begin(self, name: str) -> bool:
        """What is held is the beginning of a call, and what follows belongs to it; unless it is text by now."""
        if not self.holding or self.too_long:
            self.release()
            return False
        self.turn(Fate.DROP)
        self._drop_held()
        self.code = 0
        self.wraps.update(self.openers)
        self.openers.clear()
        self._emit(Begun(self._calls, name))
        return True

    def argue(self, text: str) -> None:
        self._emit(Argued(self._calls, text))

    def end(self) -> None:
        self._emit(Ended(self._calls))
        self.leave()

    def leave(self) -> None:
        """The call is over, whole or not."""
        self._calls += 1
        self.turn(Fate.HOLD)

    def misname(self, name: str) -> None:
        self.account()
        self.pieces.append(Misnamed(name))

    def _emit(self, piece: Piece) -> None:
        if self._most is None or self._calls < self._most:
            self.pieces.append(piece)


def _space_before(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]
