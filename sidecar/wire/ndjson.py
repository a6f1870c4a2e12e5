"""Newline-delimited JSON as it passes: cut a stream into lines, look at their documents, write new ones.

Nothing is normalised: the lines' bytes, put together again, are the stream. A line ends in LF; a CR before it is white
space to JSON. What we write ourselves holds no character that some clients (httpx's `iter_lines`, which Ollama's Python
client uses) take for a line end beside LF: inside a JSON string each can be told as an escape.
"""

import re
from dataclasses import dataclass

from ..errors import UpstreamBroken
from .sse import MAX_EVENT
from .stream import Framing

MAX_LINE = MAX_EVENT

# U+0085, U+2028 and U+2029 in UTF-8. The other ones are control characters, which JSON has as escapes anyway.
_LINE_ENDS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
_ESCAPES = {b"\xc2\x85": rb"\u0085", b"\xe2\x80\xa8": rb"\u2028", b"\xe2\x80\xa9": rb"\u2029"}
_WHITE = b" \t\r\n"


@dataclass(slots=True)
class Line:
    """A line with its end. `raw` is its bytes, all of them; `data` is the payload, None where the line is blank."""

    raw: bytes
    data: bytes | None

    @property
    def event(self) -> None:
        """Lines have no names."""

    def with_data(self, data: bytes) -> bytes:
        """The line's bytes with `data` in the payload's place.

        Raises ValueError when the line is blank or `data` is more than one line.
        """
        if self.data is None:
            raise ValueError("a blank line has no payload to put data in")
        before, _, after = self.raw.partition(self.data)
        return before + _one_line(data) + after


def render(data: bytes, event: bytes | None = None) -> bytes:
    """A new line's bytes; lines have no event names. Raises ValueError when `data` is more than one line."""
    return _one_line(data) + b"\n"


class Lines:
    """Cuts a stream into lines, each as soon as its last byte is there.

    Raises UpstreamBroken for a line of more than `max_line` bytes.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[Line]:
        self._held += chunk
        if b"\n" not in chunk:
            self._check(self._held)
            return []
        *whole, self._held = self._held.split(b"\n")
        self._check(*whole, self._held)
        return [_line(bytes(line) + b"\n") for line in whole]

    def finish(self) -> list[Line]:
        """What the stream's end left over: nothing, or one line without an end."""
        raw, self._held = bytes(self._held), bytearray()
        return [_line(raw)] if raw else []

    def _check(self, *lines: bytearray) -> None:
        if any(len(line) > self._max for line in lines):
            raise UpstreamBroken(f"A line of the provider's stream is larger than {self._max:,} bytes.")


def _line(raw: bytes) -> Line:
    return Line(raw, raw.strip(_WHITE) or None)


def _one_line(data: bytes) -> bytes:
    if b"\n" in data or b"\r" in data:
        raise ValueError("more than one line cannot be written as one")
    return _LINE_ENDS.sub(lambda found: _ESCAPES[found[0]], data)


NDJSON = Framing(Lines, render)
