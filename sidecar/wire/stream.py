"""A reply on its way through the chain: frames are carried, texts are edited.

A frame in which nothing changed leaves as the bytes that came. Text that a stage held back leaves later in a copy of
its own lane's last frame, before that lane's last frame. A buffered reply takes the same way, as one frame.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..core.chain import Run
from ..core.decision import Block, Finish, Stop
from ..core.events import End, Event, Stopped, Text
from ..core.surface import Lane, Slot, Surface
from . import jsondoc, sse

Document = dict[str, Any]


class Wire(Protocol):
    """What each wire module offers, whatever its API."""

    NAME: str
    DONE: bytes
    NAMES: frozenset[Surface]
    ALONE: frozenset[Surface]
    OPAQUE: Surface

    def request_slots(self, document: Document) -> list[Slot]: ...
    def reply_texts(self, document: Document) -> list[tuple[Lane, Slot]]: ...
    def plain(self, document: Document) -> tuple[Lane, Slot, str] | None: ...
    def choices_in(self, document: Document) -> list[int]: ...
    def ended(self, document: Document) -> list[int]: ...
    def is_error(self, document: Document) -> bool: ...
    def error_text(self, document: Document) -> str: ...
    def spoil(self, document: Document, lane: Lane) -> None: ...
    def carry(self, template: Document, lane: Lane, text: str) -> Document: ...
    def closing(self, template: Document, choice: int, reason: str) -> Document: ...
    def usage(self, document: Document) -> tuple[int | None, int | None] | None: ...
    def answer(self, identity: Document, text: str) -> Document: ...
    def answer_frames(self, identity: Document, text: str) -> bytes: ...


def render(document: Document) -> bytes:
    return sse.render(jsondoc.encode(document))


def said_on(events: Sequence[Event], lane: Lane) -> str:
    return "".join(event.text for event in events if type(event) is Text and event.lane == lane)


def stopped_by(events: Sequence[Event]) -> Stop | None:
    return next((event.decision for event in events if type(event) is Stopped), None)


@dataclass(slots=True)
class _Edit:
    """What a slot's text becomes, and what it was."""

    lane: Lane
    slot: Slot
    said: str
    was: str


@dataclass(slots=True)
class _Parked:
    """Frames of a choice that wait until the names in the first of them are whole. `edited`: not only names."""

    names: list[_Edit]
    edited: bool
    frames: list[tuple[sse.Frame, Document]]


class _Plain(NamedTuple):
    """A frame that holds nothing but more text on one lane."""

    frame: sse.Frame
    document: Document
    lane: Lane
    slot: Slot
    text: str


class ReplyStream:
    """One streamed reply. Feed it frames, write what it returns; when `stopped` is set, write `ending()` and leave.

    `done` says that the terminator came, `failed` that the provider reported an error in the stream; `tokens` are
    the prompt and completion tokens it reported last.
    """

    def __init__(self, wire: Wire, run: Run) -> None:
        self._wire, self._run = wire, run
        self._last: dict[Lane, Document] = {}
        # What each lane holds back of its frames' texts; None where some of it has been replaced.
        self._held: dict[Lane, str | None] = {}
        self._parked: dict[int, _Parked] = {}
        self._template: Document = {}
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self.stopped: Stop | None = None
        self.done = False
        self.failed = False
        self.tokens: tuple[int | None, int | None] | None = None

    @property
    def complete(self) -> bool:
        """Whether the reply had an end of its own: its terminator, an error, or a last frame for every choice."""
        return self.done or self.failed or (bool(self._seen) and not self._open)

    def feed(self, frames: Iterable[sse.Frame]) -> bytes:
        """Frames that came together: what the client gets for them."""
        out: list[bytes] = []
        burst: list[_Plain] = []
        for frame in frames:
            document = _document(frame)
            found = self._wire.plain(document) if document is not None and not self._parked else None
            if document is not None and found is not None:
                if burst and burst[0].lane != found[0]:
                    self._burst(burst, out)
                    burst = []
                burst.append(_Plain(frame, document, *found))
                continue
            if burst:
                self._burst(burst, out)
                burst = []
            if self.stopped:
                return b"".join(out)
            out.append(self._frame(frame, document))
        if burst:
            self._burst(burst, out)
        return b"".join(out)

    def _frame(self, frame: sse.Frame, document: Document | None) -> bytes:
        if document is not None:
            return self._document(frame, document)
        if frame.data is None or frame.data.strip() != b"[DONE]":
            return self._opaque(frame) if frame.raw.strip() else frame.raw
        self.done = True
        return self._flush() + (b"" if self.stopped else frame.raw)

    def finish(self) -> bytes:
        """The provider's stream is over: what was held back, decided at its true end."""
        return b"" if self.stopped else self._flush()

    def ending(self) -> bytes:
        """How a stream that a stage stopped ends for the client."""
        match self.stopped:
            case Block():
                return self._closing("content_filter")
            case Finish(message=message):
                lane = Lane(self._wire.OPAQUE, min(self._seen, default=0))
                said = render(self._wire.carry(self._template, lane, message))
                return said + self._closing("stop")
            case None:
                return b""

    def _closing(self, reason: str) -> bytes:
        choices = sorted(self._open) or ([] if self._seen else [0])
        frames = (self._wire.closing(self._template, choice, reason) for choice in choices)
        return b"".join(map(render, frames)) + self._wire.DONE

    # --- frames of plain text ---

    def _burst(self, burst: list["_Plain"], out: list[bytes]) -> None:
        """Looks at the texts of the frames as one, which comes to the same as one after the other."""
        if self.stopped:
            return
        lane = burst[0].lane
        text = burst[0].text if len(burst) == 1 else "".join([plain.text for plain in burst])
        events = self._run.feed(Text(lane, text))
        if len(events) == 1 and type(events[0]) is Text and events[0].text == text:
            self._held.pop(lane, None)
            out.extend([plain.frame.raw for plain in burst])
        else:
            said = said_on(events, lane)
            self.stopped = stopped_by(events)
            if self.stopped:
                self._carry(lane, said, out)
            else:
                self._spread(lane, burst, said, out)
                self._held[lane] = _still_held(self._held.get(lane, ""), text, said)
        self._note(burst[-1].document, [lane.choice])
        self._last[lane] = burst[-1].document

    def _spread(self, lane: Lane, burst: list["_Plain"], said: str, out: list[bytes]) -> None:
        """Gives the frames what is said of their text: as many as can be leave as they came."""
        held = self._held.get(lane, "")
        first, last = 0, len(burst)
        if held is not None and said.startswith(held):
            self._carry(lane, held, out)
            said = said[len(held) :]
            while first < last and said.startswith(burst[first].text):
                said = said[len(burst[first].text) :]
                first += 1
        while last > first and said.endswith(burst[last - 1].text):
            last -= 1
            said = said[: len(said) - len(burst[last].text)]
        out.extend([plain.frame.raw for plain in burst[:first]])
        if first == last:
            self._carry(lane, said, out)
        for plain in burst[first:last]:
            plain.slot.replace(said)
            self._wire.spoil(plain.document, lane)
            out.append(plain.frame.with_data(jsondoc.encode(plain.document)))
            said = ""
        out.extend([plain.frame.raw for plain in burst[last:]])

    # --- one frame ---

    def _document(self, frame: sse.Frame, document: Document) -> bytes:
        wire = self._wire
        texts = wire.reply_texts(document)
        choices = wire.choices_in(document)
        out: list[bytes] = []
        if self._parked:
            if self._continues(frame, document, choices, texts):
                return b""
            self._release([choice for choice in choices if choice in self._parked], out)
        if wire.is_error(document):
            return b"".join(out) + self._error(frame, document)
        self._note(document, choices)
        edits = self._apart(texts) if len(texts) > 1 else []
        for lane, slot in texts:
            if not self.stopped:
                self._text(lane, slot, out, edits)
                if lane.surface not in wire.ALONE:
                    self._last[lane] = document
        for choice in wire.ended(document):
            if not self.stopped:
                self._end(choice, out, edits)
        if not self.stopped:
            self._put(frame, document, edits, out)
        return b"".join(out)

    def _error(self, frame: sse.Frame, document: Document) -> bytes:
        """The client will read no further than an error: what was held back goes first."""
        self.failed = True
        held = self._flush()
        changed, stop = edit_reply(self._wire, self._run, document)
        self.stopped = self.stopped or stop
        if self.stopped:
            return held
        return held + (frame.with_data(jsondoc.encode(document)) if changed else frame.raw)

    def _note(self, document: Document, choices: list[int]) -> None:
        self._template = document
        self._seen.update(choices)
        self._open.update(choices)
        if (tokens := self._wire.usage(document)) is not None:
            self.tokens = tokens

    def _text(self, lane: Lane, slot: Slot, out: list[bytes], edits: list[_Edit]) -> None:
        text = slot.text
        if not text:
            return
        if lane.surface in self._wire.ALONE:
            said, self.stopped = through(self._run, lane, text)
            if said != text:
                edits.append(_Edit(lane, slot, said, text))
            return
        events = self._run.feed(Text(lane, text))
        self._held[lane] = None
        if len(events) == 1 and type(events[0]) is Text and events[0].text == text:
            del self._held[lane]
            return
        said = said_on(events, lane)
        self.stopped = stopped_by(events)
        if self.stopped:
            self._carry(lane, said, out)
        elif lane.surface not in self._wire.NAMES and len(said) > len(text) and said.endswith(text):
            # Text held back before is released, and this frame's own is untouched.
            self._carry(lane, said[: len(said) - len(text)], out)
        else:
            edits.append(_Edit(lane, slot, said, text))

    def _apart(self, texts: list[tuple[Lane, Slot]]) -> list[_Edit]:
        """Several texts of one lane in a frame are looked at alone as well: joined they may look harmless."""
        edits: list[_Edit] = []
        counts = Counter(lane for lane, _ in texts)
        for lane, slot in texts if len(counts) < len(texts) else ():
            if counts[lane] > 1 and lane.surface not in self._wire.ALONE and slot.text and not self.stopped:
                alone = Lane(lane.surface, lane.choice, "alone")
                was = slot.text
                said, self.stopped = through(self._run, alone, was)
                if said != was:
                    slot.replace(said)
                    edits.append(_Edit(alone, slot, said, was))
        return edits

    def _carry(self, lane: Lane, text: str, out: list[bytes]) -> None:
        if text:
            template = self._last.get(lane, self._template)
            out.append(render(self._wire.carry(template, lane, text)))

    def _end(self, choice: int, out: list[bytes], edits: list[_Edit]) -> None:
        """The choice's last frame: its lanes are at their true end, and what they held leaves before it."""
        for lane in [lane for lane in self._last if lane.choice == choice]:
            said = self._end_lane(lane)
            edit = next((edit for edit in reversed(edits) if edit.lane == lane), None)
            if edit is not None:
                edit.said += said
            else:
                self._carry(lane, said, out)
            del self._last[lane]
            self._held.pop(lane, None)
        if not self.stopped:
            self._open.discard(choice)

    def _end_lane(self, lane: Lane) -> str:
        events = self._run.feed(End(lane))
        self.stopped = self.stopped or stopped_by(events)
        return said_on(events, lane)

    def _put(self, frame: sse.Frame, document: Document, edits: list[_Edit], out: list[bytes]) -> None:
        """The frame itself: as it came, edited, or parked until the names in it are whole."""
        if not edits:
            out.append(frame.raw)
            return
        for edit in edits:
            edit.slot.replace(edit.said)
            self._wire.spoil(document, edit.lane)
        names = [edit for edit in edits if edit.lane.surface in self._wire.NAMES and edit.lane in self._last]
        if names:
            self._parked[names[0].lane.choice] = _Parked(names, len(names) < len(edits), [(frame, document)])
        else:
            out.append(frame.with_data(jsondoc.encode(document)))

    # --- names that wait ---

    def _continues(
        self, frame: sse.Frame, document: Document, choices: list[int], texts: list[tuple[Lane, Slot]]
    ) -> bool:
        """Takes a piece of a waiting name, if the frame holds nothing else."""
        parked = self._parked.get(choices[0]) if len(choices) == 1 else None
        said = [(lane, slot) for lane, slot in texts if slot.text]
        if parked is None or len(said) != 1 or self._wire.ended(document):
            return False
        lane, slot = said[0]
        edit = next((edit for edit in parked.names if edit.lane == lane), None)
        if edit is None:
            return False
        events = self._run.feed(Text(lane, slot.text))
        self.stopped = stopped_by(events)
        edit.said += said_on(events, lane)
        slot.replace("")
        parked.frames.append((frame, document))
        return True

    def _release(self, choices: list[int], out: list[bytes]) -> None:
        """Anything else in their choice makes waiting names whole."""
        for choice in choices:
            parked = self._parked.pop(choice)
            for edit in parked.names:
                edit.said += self._end_lane(edit.lane)
                edit.slot.replace(edit.said)
            same = all(edit.said == edit.was for edit in parked.names)
            if self.stopped:
                return
            if same and not parked.edited and len(parked.frames) == 1:
                out.append(parked.frames[0][0].raw)
            else:
                out.extend(frame.with_data(jsondoc.encode(document)) for frame, document in parked.frames)

    # --- the rest ---

    def _flush(self) -> bytes:
        out: list[bytes] = []
        self._release(list(self._parked), out)
        for lane in list(self._last):
            if not self.stopped:
                self._carry(lane, self._end_lane(lane), out)
        self._last.clear()
        return b"".join(out)

    def _opaque(self, frame: sse.Frame) -> bytes:
        """A frame that is not a JSON object: its data is one text, or all of it where it has none."""
        text = (frame.raw if frame.data is None else frame.data).decode("utf-8", "surrogateescape")
        said, self.stopped = through(self._run, Lane(self._wire.OPAQUE, part="data"), text)
        if self.stopped:
            return b""
        if said == text:
            return frame.raw
        if frame.data is None:
            return said.encode("utf-8", "surrogateescape")
        return frame.with_data(said.translate(_ONE_LINE).encode("utf-8", "surrogateescape"))


_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}


def _document(frame: sse.Frame) -> Document | None:
    """The JSON object in a frame. A key that stands twice hides a text: the frame goes on without it."""
    if frame.data is None or frame.data[:1] == b"[":
        return None
    try:
        document = jsondoc.decode(frame.data)
    except jsondoc.JsonFault:
        return None
    if not isinstance(document, dict):
        return None
    if jsondoc.has_duplicate_keys(frame.data, document):
        once = jsondoc.encode(document)
        frame.raw, frame.data = frame.with_data(once), once
    return document


def _still_held(held: str | None, text: str, said: str) -> str | None:
    whole = None if held is None else held + text
    return whole[len(said) :] if whole is not None and whole.startswith(said) else None


def through(run: Run, lane: Lane, text: str) -> tuple[str, Stop | None]:
    """A whole text through the chain: what it becomes, and whether a stage stopped the reply."""
    events = run.feed(Text(lane, text, last=True))
    if len(events) == 1 and type(events[0]) is Text:
        return events[0].text, None
    return said_on(events, lane), stopped_by(events)


def edit_reply(wire: Wire, run: Run, document: Document) -> tuple[bool, Stop | None]:
    """A buffered reply, edited in place. Tells whether anything changed and whether a stage stopped it."""
    changed = False
    for lane, slot in wire.reply_texts(document):
        text = slot.text
        said, stop = through(run, lane, text) if text else (text, None)
        if stop is not None:
            return changed, stop
        if said != text:
            slot.replace(said)
            wire.spoil(document, lane)
            changed = True
    return changed, None
