"""Server-sent events as they pass: cut a stream into frames, look at their data, write new data into one.

Nothing is normalised: the frames' bytes, put together again, are the stream.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UpstreamBroken

MAX_EVENT = 8 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_LINE_OR_REST = re.compile(rb"([^\r\n]*)(\r\n?|\n|\Z)")
_LINE_END = re.compile(rb"\r\n?|\n")
_BLANK_LINE = re.compile(rb"\n[\r\n]|\r\r")
# A held event up to this long is cut anew with each packet; a longer one only when the packet may end it.
_SHORT = 4096


@dataclass(slots=True)
class Frame:
    """A piece of the stream that stands alone: an event and its blank line, or one comment or blank line.

    `raw` is its bytes, all of them. `data` is the payload, data lines joined by a line feed; None where there
    is no data line. `event` is its name, None where it has none. `complete` is False for an event that the
    stream's end cut short: no client acts on it, and its payload may stop anywhere. The first `lead` bytes of
    `raw` (a byte-order mark, or the late half of the line end before) are no part of the event.
    """

    raw: bytes
    data: bytes | None = None
    event: bytes | None = None
    complete: bool = True
    lead: int = 0

    def with_data(self, data: bytes) -> bytes:
        """The frame's bytes with `data` as its one data line, all other lines as they are.

        Raises ValueError when the frame has no data line or `data` is more than one line.
        """
        old = self.data
        if old is None:
            raise ValueError("a frame without data has no line to put data in")
        _refuse_lines(data)
        tail = self.raw.removeprefix(b"data: " + old)
        if not tail.strip(b"\r\n"):
            return b"data: %b%b" % (data, tail)
        lines = [found.groups() for found in _LINE_OR_REST.finditer(self.raw, self.lead)]
        # At the place of the last one: were that line taken out, the line end before might join the one after.
        *earlier, place = [at for at, (line, _) in enumerate(lines) if line.partition(b":")[0] == b"data"]
        lines[place] = (b"data: " + data, lines[place][1])
        return self.raw[: self.lead] + b"".join(line + end for at, (line, end) in enumerate(lines) if at not in earlier)


def render(data: bytes, event: bytes | None = None) -> bytes:
    """A new frame's bytes. Raises ValueError when either is more than one line."""
    _refuse_lines(data)
    if event is None:
        return b"data: %b\n\n" % data
    _refuse_lines(event)
    return b"event: %b\ndata: %b\n\n" % (event, data)


class Events:
    """Cuts a stream into frames, each as soon as its last byte is there.

    A line may end in LF, CRLF or CR. Where a packet ends in the CR that completes a frame, the frame leaves;
    an LF that then follows is the other half of that line end and leads the next frame. In nothing else do
    frames depend on where packets were cut.

    Raises UpstreamBroken for an event of more than `max_event` bytes.
    """

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._held = bytearray()
        self._lead = 0
        self._begun = False
        self._after_cr = False
        self._clean = False

    def feed(self, chunk: bytes) -> list[Frame]:
        if self._clean and chunk.startswith(b"data: ") and chunk.endswith(b"\n\n"):
            data = chunk[6:-2]
            if b"\n" not in data and b"\r" not in data and len(chunk) <= self._max:
                return [Frame(chunk, data)]
        frames = self._feed(chunk)
        self._clean = self._begun and not (self._held or self._after_cr)
        return frames

    def _feed(self, chunk: bytes) -> list[Frame]:
        text = self._joined(chunk)
        if not text:
            return []
        if self._lead or b"\r" in text:
            frames, rest = self._cut(text)
        else:
            frames, rest = self._cut_plain(text)
        self._held += rest
        self._check(frames, text)
        return frames

    def finish(self) -> list[Frame]:
        """What the stream's end left over: nothing, or one frame."""
        raw, self._held = bytes(self._held), bytearray()
        if not raw:
            return []
        lead = min(self._lead, len(raw))
        lines = [found[1] for found in _LINE_OR_REST.finditer(raw, lead)]
        return [_frame(raw, lines, lead, complete=lead == len(raw))]

    def _joined(self, chunk: bytes) -> bytes:
        """What is to be cut now: nothing while no frame can be complete."""
        held = self._held
        if self._after_cr and chunk:
            self._after_cr, self._lead = False, int(chunk.startswith(b"\n"))
        if held:
            looked_at = len(held) - 1
            held += chunk
            if looked_at > _SHORT and not self._end().search(held, looked_at):
                self._check((), held)
                return b""
            chunk = bytes(held)
            held.clear()
        return chunk if self._begun else self._begin(chunk)

    def _begin(self, text: bytes) -> bytes:
        if len(text) < len(_BOM) and _BOM.startswith(text):
            self._held += text
            return b""
        self._begun = True
        self._lead = len(_BOM) if text.startswith(_BOM) else 0
        return text

    def _end(self) -> re.Pattern[bytes]:
        """What ends the frame that is held."""
        return _LINE_END if self._held.startswith(b":", self._lead) else _BLANK_LINE

    def _cut_plain(self, text: bytes) -> tuple[list[Frame], bytes]:
        """The fast way: every line ends in LF, so every event ends in two."""
        frames: list[Frame] = []
        pieces = text.split(b"\n\n")
        rest = pieces.pop()
        for piece in pieces:
            if piece.startswith(b"data: ") and b"\n" not in piece:
                frames.append(Frame(piece + b"\n\n", piece[6:]))
            elif piece.startswith((b"\n", b":")) or not piece:
                frames += self._cut(piece + b"\n\n")[0]
            else:
                frames.append(_frame(piece + b"\n\n", piece.split(b"\n")))
        if rest.startswith((b"\n", b":")):
            more, rest = self._cut(rest)
            frames += more
        return frames, rest

    def _cut(self, text: bytes) -> tuple[list[Frame], bytes]:
        """Line by line."""
        frames: list[Frame] = []
        start, at, lines = 0, self._lead, list[bytes]()
        for found in _LINE_END.finditer(text, at):
            line, at = text[at : found.start()], found.end()
            if line and (lines or not line.startswith(b":")):
                lines.append(line)
                continue
            frames.append(_frame(text[start:at], lines, self._lead))
            start, lines, self._lead = at, [], 0
        self._after_cr = start == len(text) and text.endswith(b"\r")
        return frames, text[start:]

    def _check(self, frames: Sequence[Frame], text: bytes | bytearray) -> None:
        if len(text) <= self._max:
            return
        if len(self._held) > self._max or any(len(frame.raw) > self._max for frame in frames):
            raise UpstreamBroken(f"An event of the provider's stream is larger than {self._max:,} bytes.")


def _frame(raw: bytes, lines: Sequence[bytes], lead: int = 0, *, complete: bool = True) -> Frame:
    data: list[bytes] = []
    event = None
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
    return Frame(raw, b"\n".join(data) if data else None, event, complete, lead)


def _refuse_lines(text: bytes) -> None:
    if b"\n" in text or b"\r" in text:
        raise ValueError("more than one line cannot be written as one")
