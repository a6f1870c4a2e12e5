"""Text that is still arriving, for readers that are written as if all of it were there.

A reader is a generator: it looks at what stands at the cursor, and yields where that does not tell yet. What it
finds never depends on how the text was cut, as long as it decides on the text alone and waits where text is missing.
"""

import re
from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""What a reader returns in the end; each yield asks for more text."""


class Cursor:
    """`at` is where the reader stands in `text`. `ended`: no more will come.

    Text before `start` has been accounted for by whoever owns the cursor; text from there to `at` is read.
    """

    __slots__ = ("at", "ended", "start", "text")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.ended = False

    def feed(self, more: str) -> None:
        """Call it when all that was read is accounted for: only text that is not yet read is kept."""
        self.text = self.text[self.at :] + more
        self.at = self.start = 0

    def passed(self) -> str:
        """What was read since it was asked last."""
        text = self.text[self.start : self.at]
        self.start = self.at
        return text

    def need(self, count: int) -> Steps[None]:
        """Waits until so many characters are there, or the end."""
        while len(self.text) - self.at < count and not self.ended:
            yield

    def peek(self) -> Steps[str]:
        """The character at the cursor; "" at the end."""
        while self.at == len(self.text):
            if self.ended:
                return ""
            yield
        return self.text[self.at]

    def run(self, pattern: re.Pattern[str]) -> str:
        """Reads what of the pattern's characters is there. The pattern is a class, repeated."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def runs(self, pattern: re.Pattern[str], most: int) -> Steps[str]:
        """Reads all of the pattern's characters; no more than `most` of them are kept, and one to tell of it."""
        parts: list[str] = []
        room = most + 1
        while (yield from self.peek()):
            part = self.run(pattern)
            if not part:
                break
            parts.append(part[:room])
            room -= len(parts[-1])
        return "".join(parts)

    def ahead(self, words: tuple[str, ...]) -> Steps[str]:
        """Which of the words stands at the cursor; "" for none. No word may begin with another one."""
        longest = max(map(len, words), default=0)
        while True:
            if self.text.startswith(words, self.at):
                return next(word for word in words if self.text.startswith(word, self.at))
            if self.ended or len(self.text) - self.at >= longest or not self._may_become(words):
                return ""
            yield

    def _may_become(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words begins with all the text that is there."""
        left = self.text[self.at :]
        return any(word.startswith(left) for word in words)

    def word(self, words: tuple[str, ...]) -> Steps[str]:
        """Reads one of the words."""
        found = yield from self.ahead(words)
        self.at += len(found)
        return found
