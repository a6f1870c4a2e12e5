"""A reply on its way through the chain: frames are carried, texts are edited.

A frame in which nothing changed leaves as the bytes that came. Text that a stage held back leaves later in a copy of
its own lane's last frame, before that lane's last frame. Where an API says a lane's text again when it is over, the
copy says what the client has read. A buffered reply takes the same way, as one frame. While a stage has not decided
about a tool call, nothing leaves: what follows its name may have to go without it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..core.chain import Run
from ..core.decision import Block, Finish, Stop
from ..core.events import Dropped, End, Event, Goes, Hosted, Made, Stopped, Text, Used, Waits
from ..core.surface import Lane, Slot, Surface
from ..core.usage import Usage, merged
from ..errors import ExchangeError
from . import jsondoc, sse

Document = dict[str, Any]


class Spoken(NamedTuple):
    """A text of a reply or frame. `whole`: all that its lane says, else only more of it."""

    lane: Lane
    slot: Slot
    whole: bool = False


class Writer(Protocol):
    """What one stream has come to, and how to write frames that go on from there."""

    @property
    def complete(self) -> bool:
        """Whether every part of the reply that began has come to its end."""

    @property
    def done(self) -> bool:
        """Whether the stream has said itself that it is over. A `[DONE]` says it for every API."""

    def begin(self, document: Document) -> None:
        """A frame arrives."""

    def end(self, document: Document) -> None:
        """The same frame goes on to the client: what it ends is over."""

    def carry(self, template: Document | None, lane: Lane, text: str) -> Document:
        """A frame that holds nothing but more text on a lane; `template` is the lane's last frame."""

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[Document]:
        """The rest of a stream that a stage ended, as the API ends one that was filtered.

        `said` is what the client has read on each lane, where the wire has `COPIES`.
        """

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[Document]:
        """The rest of a stream that a stage completes with this text.

        With `cut` it ends as one that has reached the length that was asked for.
        """


Call = tuple[int, int | str]
"""A tool call: its choice and its part."""


@runtime_checkable
class Drops(Protocol):
    """A writer of an API in which a tool call can be taken out of a stream that has begun."""

    def drop(self, document: Document, calls: Mapping[Call, str]) -> bool:
        """Takes all that a frame or whole reply says of these calls out of it; their notices stand in their place.

        True where something was taken out. A frame that says nothing any more is left empty.
        """


class Wire(Protocol):
    """What each wire module offers, whatever its API."""

    NAME: str
    DONE: bytes
    """What ends a stream after its last frame; may be empty."""
    NAMES: frozenset[Surface]
    """Surfaces whose texts are one word to a client: they never leave in halves."""
    COPIES: bool
    """Whether a stream says a lane's whole text again when it is over."""
    UNKNOWN: Surface
    """Texts of a request in places that no API documents."""
    OPAQUE: Surface
    """The same in replies."""

    @property
    def REQUEST_SURFACES(self) -> Sequence[Surface]: ...
    @property
    def REPLY_SURFACES(self) -> Sequence[Surface]: ...

    def request_slots(self, document: Document) -> list[Slot]:
        """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""

    def but_tools(self, document: Document) -> list[Slot]:
        """The same for whoever does not look at texts of the kind `tools`: definitions of tools may be left out."""

    def reply_texts(self, document: Document) -> list[Spoken]:
        """Every text of a whole reply or of one frame."""

    def plain(self, document: Document) -> tuple[Lane, Slot, str] | None:
        """The one text of a frame that holds nothing else: nearly every frame of a stream, told with few questions."""

    def choices_in(self, document: Document) -> list[int]:
        """The choices that a frame is about. Only asked where names wait to be whole."""

    def ended(self, document: Document, lanes: Iterable[Lane]) -> list[Lane]:
        """Which of these lanes are at their true end with this frame."""

    def is_error(self, document: Document) -> bool: ...

    def error_text(self, document: Document) -> str:
        """What an error reply says went wrong."""

    def spoil(self, document: Document, lane: Lane) -> None:
        """Drops what was computed over a text that has changed.

        Where the wire has `COPIES`, also from frames that say nothing more on the lane, such as one that points into
        the text; one that is emptied does not leave.
        """

    def usage(self, document: Document) -> Usage | None:
        """What a reply or frame reports; None where it tells nothing. A stream's reports are running totals."""

    def hosted(self, document: Document) -> list[Hosted]:
        """The calls of tools that the provider runs itself, as a whole reply or a frame tells of them."""

    def ask_usage(self, document: Document) -> bool:
        """Makes a request for a stream ask that its usage be reported too, where the API does so only when asked.

        True where the request has changed: the client then gets no frame that only reports usage.
        """

    def event_of(self, document: Document) -> bytes | None:
        """The name of the event that carries a document, None where the API has no names."""

    def writer(self) -> Writer: ...

    def answer(self, identity: Document, text: str) -> Document | None:
        """A whole, complete reply with this text; None where the API has no such reply.

        `identity` holds id, created and model, and may hold more.
        """

    def answer_frames(self, identity: Document, text: str) -> bytes:
        """The same as a complete stream."""

    def error_body(self, error: ExchangeError) -> Document:
        """An error of ours in the API's shape."""

    def error_frames(self, error: ExchangeError) -> Sequence[Document]:
        """What a stream that cannot go on ends with, in a way that clients raise."""


class Frame(Protocol):
    """A piece of a stream that stands alone, with its payload and its name, None where it has none."""

    raw: bytes
    data: bytes | None

    @property
    def event(self) -> bytes | None: ...

    def with_data(self, data: bytes) -> bytes: ...


class Cutter(Protocol):
    def feed(self, chunk: bytes) -> Sequence[Frame]: ...
    def finish(self) -> Sequence[Frame]: ...


class Framing(NamedTuple):
    """How documents stand in a stream: how to cut it into frames, and how to write a new one."""

    cutter: Callable[[], Cutter]
    render: Callable[[bytes, bytes | None], bytes]


SSE = Framing(sse.Events, sse.render)


def said_on(events: Sequence[Event], lane: Lane) -> str:
    return "".join(event.text for event in events if type(event) is Text and event.lane == lane)


def _note_calls(events: Sequence[Event], waiting: dict[Lane, None], dropped: dict[Call, str]) -> None:
    """Which tool calls wait now, and which are taken out."""
    for event in events:
        match event:
            case Waits(lane):
                waiting[lane] = None
            case Goes(lane):
                waiting.pop(lane, None)
            case Dropped(lane, notice):
                waiting.pop(lane, None)
                dropped[lane.choice, lane.part] = notice


def stopped_by(events: Sequence[Event]) -> Stop | None:
    return next((event.decision for event in events if type(event) is Stopped), None)


def joined(pieces: Sequence[str]) -> str:
    """The text that comes in these pieces, which may be cut between the halves of a surrogate pair."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


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
    frames: list[tuple[Frame, Document]]


class _Due(NamedTuple):
    """A document that leaves once no tool call waits. `raw`: the bytes where nothing is taken out of it, None where
    it was edited. `frame` is the one that carries it, None for one of ours, which `event` names. `begins`: the writer
    has not seen it arrive."""

    document: Document
    raw: bytes | None
    frame: Frame | None
    begins: bool = False
    event: bytes | None = None


Unit = list[bytes | _Due]
"""What comes of one frame, or of some that are looked at as one."""


class _Plain(NamedTuple):
    """A frame that holds nothing but more text on one lane."""

    frame: Frame
    document: Document
    lane: Lane
    slot: Slot
    text: str


@dataclass(slots=True)
class _Copy:
    """What a lane was heard to say, and what the client has read of it."""

    heard: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    # Whether the client has always read what was heard at the same time. If not, text was held back or changed.
    same: bool = True

    @property
    def changed(self) -> bool:
        return not self.same and not joined(self.heard).startswith(joined(self.said))


class ReplyStream:
    """One streamed reply. Feed it frames, write what it returns; when `stopped` is set, write `ending()` and leave.

    `failed` says that the provider reported an error in the stream; `tokens` are the numbers it reported last.
    With `hides_usage` a frame that only reports usage does not leave: the client has not asked for it.
    """

    def __init__(self, wire: Wire, run: Run, framing: Framing = SSE, *, hides_usage: bool = False) -> None:
        self._wire, self._run, self._framing, self._hides_usage = wire, run, framing, hides_usage
        self._writer = wire.writer()
        self._last: dict[Lane, Document] = {}
        # What the frames of a lane are called.
        self._events: dict[Lane, bytes] = {}
        # What each lane holds back of its frames' texts; None where some of it has been replaced.
        self._held: dict[Lane, str | None] = {}
        self._parked: dict[int, _Parked] = {}
        self._copies: dict[Lane, _Copy] = {}
        self._dropped: dict[Call, str] = {}
        # Names of tool calls that are not complete, of those that wait to be decided, and what may not leave till then.
        self._calls: dict[Lane, None] = {}
        self._waiting: dict[Lane, None] = {}
        self._due: Unit = []
        # How many pieces of each lane's copy had left when the first of those calls began to wait.
        self._left: dict[Lane, int] = {}
        self._terminated = False
        self.stopped: Stop | None = None
        self.failed = False
        self.tokens: Usage | None = None

    @property
    def done(self) -> bool:
        """Whether the terminator came."""
        return self._terminated or self._writer.done

    @property
    def complete(self) -> bool:
        """Whether the reply had an end of its own: its terminator, an error, or a last frame for all that began."""
        return self.done or self.failed or self._writer.complete

    def feed(self, frames: Iterable[Frame]) -> bytes:
        """Frames that came together: what the client gets for them."""
        out: list[bytes] = []
        burst: list[_Plain] = []
        for frame in frames:
            document = _document(frame)
            apart = self._parked or self._waiting
            found = self._wire.plain(document) if document is not None and not apart else None
            if document is not None and found is not None:
                if burst and burst[0].lane != found[0]:
                    self._leave(self._burst(burst), out)
                    burst = []
                burst.append(_Plain(frame, document, *found))
                continue
            if burst:
                self._leave(self._burst(burst), out)
                burst = []
            if self.stopped:
                return b"".join(out)
            self._leave(self._frame(frame, document), out)
        if burst:
            self._leave(self._burst(burst), out)
        return b"".join(out)

    def _frame(self, frame: Frame, document: Document | None) -> Unit:
        if document is not None:
            return self._document(frame, document)
        if frame.data is None or frame.data.strip() != b"[DONE]":
            return [self._opaque(frame) if frame.raw.strip() else frame.raw]
        self._terminated = True
        held = self._flush()
        return held if self.stopped else [*held, frame.raw]

    def finish(self) -> bytes:
        """The provider's stream is over: what was held back, decided at its true end."""
        out: list[bytes] = []
        if not self.stopped:
            self._leave(self._flush(), out)
        return b"".join(out)

    # --- what leaves, and what waits ---

    def _leave(self, unit: Unit, out: list[bytes]) -> None:
        """A stream that is stopped while a call waits ends before that call."""
        if self._due:
            unit, self._due = [*self._due, *unit], []
        if not self._waiting:
            for due in unit:
                out.append(due if isinstance(due, bytes) else self._written(due))
        elif not self.stopped:
            self._due = unit

    def _written(self, due: _Due) -> bytes:
        document = due.document
        if due.begins:
            self._writer.begin(document)
        changed = bool(self._dropped) and self._drop(document)
        if due.frame is not None:
            self._writer.end(document)
        if due.raw is not None and not changed:
            return due.raw
        if not document:
            return b""
        frame = due.frame
        return self.rendered(document, due.event) if frame is None else frame.with_data(jsondoc.encode(document))

    def _feed(self, event: Event) -> Sequence[Event]:
        """Through the chain. What it says of tool calls is noted."""
        events = self._run.feed(event)
        if len(events) != 1 or type(events[0]) is not Text:
            waits = bool(self._waiting)
            _note_calls(events, self._waiting, self._dropped)
            if self._waiting and not waits:
                self._left = {lane: len(copy.said) for lane, copy in self._copies.items()}
        return events

    def _through(self, lane: Lane, text: str) -> str:
        """A whole text through the chain: what it becomes."""
        events = self._feed(Text(lane, text, last=True))
        self.stopped = stopped_by(events)
        return said_on(events, lane)

    def ending(self) -> bytes:
        """How a stream that a stage stopped ends for the client."""
        left = self._left if self._waiting else dict.fromkeys(self._copies)
        said = {lane: joined(self._copies[lane].said[:count]) for lane, count in left.items()}
        match self.stopped:
            case Block():
                frames = self._writer.blocked(said)
            case Finish(message=message, cut=cut):
                frames = self._writer.finished(message, said, cut=cut)
            case None:
                return b""
        return b"".join(map(self.rendered, frames)) + self._wire.DONE

    def failing(self, error: ExchangeError) -> bytes:
        """How a stream that cannot go on ends for the client."""
        return b"".join(map(self.rendered, self._wire.error_frames(error)))

    def rendered(self, document: Document, event: bytes | None = None) -> bytes:
        """A frame of ours. `event` names it where the API's documents do not say how they are called."""
        return self._framing.render(jsondoc.encode(document), self._wire.event_of(document) or event)

    # --- frames of plain text ---

    def _burst(self, burst: list["_Plain"]) -> Unit:
        """Looks at the texts of the frames as one, which comes to the same as one after the other."""
        out: Unit = []
        if self.stopped:
            return out
        lane = burst[0].lane
        text = burst[0].text if len(burst) == 1 else "".join([plain.text for plain in burst])
        events = self._feed(Text(lane, text))
        if len(events) == 1 and type(events[0]) is Text and events[0].text == text:
            self._held.pop(lane, None)
            out.extend([plain.frame.raw for plain in burst])
            self._remember(lane, text, text)
        else:
            said = said_on(events, lane)
            self.stopped = stopped_by(events)
            self._remember(lane, text, said)
            if self.stopped:
                self._carry(lane, said, out)
            else:
                self._spread(lane, burst, said, out)
                self._held[lane] = _still_held(self._held.get(lane, ""), text, said)
        self._writer.begin(burst[-1].document)
        self._last[lane] = burst[-1].document
        return out

    def _remember(self, lane: Lane, heard: str, said: str) -> None:
        """For the copy that is still to come."""
        if self._wire.COPIES:
            copy = self._copies.setdefault(lane, _Copy())
            copy.heard.append(heard)
            copy.said.append(said)
            copy.same = copy.same and heard == said

    def _spread(self, lane: Lane, burst: list["_Plain"], said: str, out: Unit) -> None:
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

    def _document(self, frame: Frame, document: Document) -> Unit:
        wire = self._wire
        texts = wire.reply_texts(document)
        out: Unit = []
        if self._parked:
            choices = wire.choices_in(document)
            if self._continues(frame, document, choices, texts):
                return out
            self._release([choice for choice in choices if choice in self._parked], out)
        if wire.is_error(document):
            return [*out, *self._error(frame, document)]
        waits = bool(self._waiting)
        self._begin(document, waits=waits)
        if frame.event is not None:
            self._events.update((spoken.lane, frame.event) for spoken in texts)
        edits = self._texts(document, texts, out)
        if not self.stopped:
            stale = bool(self._copies) and self._stale(document, texts)
            if self._dropped:
                edits = [edit for edit in edits if (edit.lane.choice, edit.lane.part) not in self._dropped]
            if not (self._hides_usage and _only_usage(document)):
                self._put(_Due(document, None if stale else frame.raw, frame, waits), frame, edits, out)
        return out

    def _drop(self, document: Document) -> bool:
        return isinstance(self._writer, Drops) and self._writer.drop(document, self._dropped)

    def _stale(self, document: Document, texts: list[Spoken]) -> bool:
        """Whether the frame held what was computed over texts that it does not say and that have changed."""
        if any(not spoken.whole for spoken in texts):
            return False
        said = {spoken.lane for spoken in texts}
        lanes = [lane for lane, copy in self._copies.items() if lane not in said and copy.changed]
        before = jsondoc.encode(document) if lanes else b""
        for lane in lanes:
            self._wire.spoil(document, lane)
        return bool(lanes) and jsondoc.encode(document) != before

    def _begin(self, document: Document, *, waits: bool) -> None:
        if not waits:
            self._writer.begin(document)
        self.failed = self.failed or bool(self._wire.error_text(document))
        if (tokens := self._wire.usage(document)) is not None:
            self.tokens = merged(self.tokens or tokens, tokens)
            self._run.feed(Used(self.tokens))
        for call in self._wire.hosted(document):
            self._run.feed(call)

    def _texts(self, document: Document, texts: list[Spoken], out: Unit) -> list[_Edit]:
        """What is said in the frame: more on its lanes, then what ends with it, then what stands there as a whole."""
        edits = self._apart(texts) if len(texts) > 1 else []
        for lane, slot, whole in texts:
            if lane.surface.calls:
                self._calls[lane] = None
            if not whole and not self.stopped:
                self._text(lane, slot, out, edits)
                self._last[lane] = document
        for lane in self._wire.ended(document, self._last) if self._last else ():
            if not self.stopped:
                self._end(lane, out, edits)
        for lane, slot, whole in texts:
            if whole and not self.stopped:
                self._whole(lane, slot, out, edits)
        self._made(self._wire.ended(document, self._calls) if self._calls else ())
        return edits

    def _made(self, lanes: Iterable[Lane]) -> None:
        """These calls are complete: whoever lets them wait decides now."""
        for lane in lanes:
            del self._calls[lane]
            if not self.stopped:
                self.stopped = stopped_by(self._feed(Made(lane)))

    def _error(self, frame: Frame, document: Document) -> Unit:
        """The client will read no further than an error: what was held back goes first."""
        self.failed = True
        held = self._flush()
        changed, stop = edit_reply(self._wire, self._run, document)
        self.stopped = self.stopped or stop
        if self.stopped:
            return held
        return [*held, frame.with_data(jsondoc.encode(document)) if changed else frame.raw]

    def _text(self, lane: Lane, slot: Slot, out: Unit, edits: list[_Edit]) -> None:
        text = slot.text
        if not text:
            return
        events = self._feed(Text(lane, text))
        said = said_on(events, lane)
        self.stopped = stopped_by(events)
        self._remember(lane, text, said)
        if said == text and not self.stopped:
            self._held.pop(lane, None)
            return
        self._held[lane] = None
        if self.stopped:
            self._carry(lane, said, out)
        elif lane.surface not in self._wire.NAMES and len(said) > len(text) and said.endswith(text):
            # Text held back before is released, and this frame's own is untouched.
            self._carry(lane, said[: len(said) - len(text)], out)
        else:
            edits.append(_Edit(lane, slot, said, text))

    def _whole(self, lane: Lane, slot: Slot, out: Unit, edits: list[_Edit]) -> None:
        """A text that is whole as it stands: what its lane has said, or one of its own."""
        text = slot.text
        if not text:
            return
        if lane in self._last:
            self._end(lane, out, edits)
        copy = self._copies.get(lane)
        if copy is not None and joined(copy.heard) == text:
            said = joined(copy.said)
        elif not self.stopped:
            said = self._through(lane, text)
            if self._wire.COPIES:
                self._copies[lane] = _Copy([text], [said])
        if not self.stopped and said != text:
            edits.append(_Edit(lane, slot, said, text))

    def _apart(self, texts: list[Spoken]) -> list[_Edit]:
        """Several texts of one lane in a frame are looked at alone as well: joined they may look harmless."""
        edits: list[_Edit] = []
        counts = Counter(spoken.lane for spoken in texts)
        for lane, slot, whole in texts if len(counts) < len(texts) else ():
            if counts[lane] > 1 and not whole and slot.text and not self.stopped:
                alone = Lane(lane.surface, lane.choice, "alone")
                was = slot.text
                said = self._through(alone, was)
                if said != was:
                    slot.replace(said)
                    edits.append(_Edit(alone, slot, said, was))
        return edits

    def _carry(self, lane: Lane, text: str, out: Unit) -> None:
        if text:
            frame = self._writer.carry(self._last.get(lane), lane, text)
            out.append(_Due(frame, None, None, event=self._events.get(lane)))

    def _end(self, lane: Lane, out: Unit, edits: list[_Edit]) -> None:
        """The lane is at its true end: what it held leaves with this frame's own text, or before the frame."""
        said = self._end_lane(lane)
        edit = next((edit for edit in reversed(edits) if edit.lane == lane), None)
        if edit is not None:
            edit.said += said
        else:
            self._carry(lane, said, out)
        del self._last[lane]
        self._held.pop(lane, None)

    def _end_lane(self, lane: Lane) -> str:
        events = self._feed(End(lane))
        self.stopped = self.stopped or stopped_by(events)
        said = said_on(events, lane)
        self._remember(lane, "", said)
        return said

    def _put(self, due: _Due, frame: Frame, edits: list[_Edit], out: Unit) -> None:
        """The frame itself: as it came, edited, or parked until the names in it are whole."""
        if not edits:
            out.append(due)
            return
        for edit in edits:
            edit.slot.replace(edit.said)
            self._wire.spoil(due.document, edit.lane)
        names = [edit for edit in edits if edit.lane.surface in self._wire.NAMES and edit.lane in self._last]
        if names:
            self._parked[names[0].lane.choice] = _Parked(names, len(names) < len(edits), [(frame, due.document)])
        else:
            out.append(due._replace(raw=None))

    # --- names that wait ---

    def _continues(self, frame: Frame, document: Document, choices: list[int], texts: list[Spoken]) -> bool:
        """Takes a piece of a waiting name, if the frame holds nothing else."""
        parked = self._parked.get(choices[0]) if len(choices) == 1 else None
        said = [spoken for spoken in texts if spoken.slot.text]
        if parked is None or len(said) != 1 or self._wire.ended(document, [said[0].lane]):
            return False
        lane, slot, _ = said[0]
        edit = next((edit for edit in parked.names if edit.lane == lane), None)
        if edit is None:
            return False
        events = self._feed(Text(lane, slot.text))
        self.stopped = stopped_by(events)
        edit.said += said_on(events, lane)
        slot.replace("")
        parked.frames.append((frame, document))
        return True

    def _release(self, choices: list[int], out: Unit) -> None:
        """Anything else in their choice makes waiting names whole."""
        for choice in choices:
            parked = self._parked.pop(choice)
            for edit in parked.names:
                edit.said += self._end_lane(edit.lane)
                edit.slot.replace(edit.said)
            same = all(edit.said == edit.was for edit in parked.names)
            if self.stopped:
                return
            untouched = same and not parked.edited and len(parked.frames) == 1
            for frame, document in parked.frames:
                out.append(_Due(document, frame.raw if untouched else None, frame))

    # --- the rest ---

    def _flush(self) -> Unit:
        out: Unit = []
        self._release(list(self._parked), out)
        for lane in list(self._last):
            if not self.stopped:
                self._carry(lane, self._end_lane(lane), out)
        self._last.clear()
        self._made([*self._calls])
        return out

    def _opaque(self, frame: Frame) -> bytes:
        """A frame that is not a JSON object: its data is one text, or all of it where it has none."""
        text = (frame.raw if frame.data is None else frame.data).decode("utf-8", "surrogateescape")
        said, self.stopped = through(self._run, opaque(self._wire, "data", text), text)
        if self.stopped:
            return b""
        if said == text:
            return frame.raw
        if frame.data is None:
            return said.encode("utf-8", "surrogateescape")
        return frame.with_data(said.translate(_ONE_LINE).encode("utf-8", "surrogateescape"))


_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}


def _document(frame: Frame) -> Document | None:
    """The JSON object in a frame. A key that stands twice hides a text: the frame goes on without it."""
    if frame.data is None or frame.data[:1] == b"[":
        return None
    document = jsondoc.readable(frame.data)
    if not isinstance(document, dict):
        return None
    if jsondoc.has_duplicate_keys(frame.data, document):
        once = jsondoc.encode(document)
        frame.raw, frame.data = frame.with_data(once), once
    return document


def _only_usage(document: Document) -> bool:
    """The frame of chat completions that `include_usage` brings."""
    return not document.get("choices") and isinstance(document.get("usage"), dict)


def _still_held(held: str | None, text: str, said: str) -> str | None:
    whole = None if held is None else held + text
    return whole[len(said) :] if whole is not None and whole.startswith(said) else None


def opaque(wire: Wire, part: str, text: str) -> Lane:
    """Where a body or a frame that is no JSON object stands.

    It is read as JSON, in which escapes hide nothing, unless it is plainly none: such a text gets no quotes when it
    is edited. What looks like a document that we cannot take apart may hold anything that a reply can.
    """
    surface, begins = wire.OPAQUE, text.lstrip(_WHITE)[:1]
    if surface.json:
        surface = _closed(surface) if begins in ("{", "[") else surface
        surface = surface if begins in _JSON_BEGINS or "\\" in text else _plain(surface)
    return Lane(surface, part=part)


@lru_cache(maxsize=64)
def _closed(surface: Surface) -> Surface:
    return replace(surface, closed=True)


@lru_cache(maxsize=64)
def _plain(surface: Surface) -> Surface:
    return replace(surface, json=False)


_JSON_BEGINS = ("{", "[", '"')
_WHITE = " \t\r\n\ufeff"


def through(run: Run, lane: Lane, text: str) -> tuple[str, Stop | None]:
    """A whole text through the chain: what it becomes, and whether a stage stopped the reply."""
    events = run.feed(Text(lane, text, last=True))
    if len(events) == 1 and type(events[0]) is Text:
        return events[0].text, None
    return said_on(events, lane), stopped_by(events)


def edit_reply(wire: Wire, run: Run, document: Document) -> tuple[bool, Stop | None]:
    """A buffered reply, edited in place. Tells whether anything changed and whether a stage stopped it."""
    changed = False
    dropped: dict[Call, str] = {}
    waiting: dict[Lane, None] = {}
    calls: dict[Lane, None] = {}
    for call in wire.hosted(document):
        run.feed(call)
    for lane, slot, _ in wire.reply_texts(document):
        text = slot.text
        if lane.surface.calls:
            calls[lane] = None
        if not text or (lane.choice, lane.part) in dropped:
            continue
        events = run.feed(Text(lane, text, last=True))
        if (stop := stopped_by(events)) is not None:
            return changed, stop
        _note_calls(events, waiting, dropped)
        said = said_on(events, lane)
        if said != text:
            slot.replace(said)
            wire.spoil(document, lane)
            changed = True
    for lane in calls:
        events = run.feed(Made(lane))
        if (stop := stopped_by(events)) is not None:
            return changed, stop
        _note_calls(events, waiting, dropped)
    writer = wire.writer()
    if dropped and isinstance(writer, Drops):
        writer.drop(document, dropped)
    return changed, None
