"""The reply of a guarded exchange on its way down: whole, frame by frame, or as one running text."""

import codecs
from collections.abc import Collection, Sequence
from typing import Any, Final

from ..core.chain import Run
from ..core.decision import Block, Finish, Stop
from ..core.events import Began, Event, Used
from ..core.surface import Lane
from ..core.usage import Usage
from ..errors import ExchangeError, GuardrailTripped, UpstreamBroken, UpstreamTimeout
from ..stages.guardrails import Guardrail
from ..stages.scrub import error_excerpt
from ..upstream.classify import Facts, Phase
from ..upstream.connection import Reply
from ..upstream.targets import Provider
from ..wire import anything, jsondoc, responses
from ..wire.bridges import Bridge
from ..wire.coding import Decoder
from ..wire.multipart import PEEK, looks_like_text
from ..wire.ndjson import NDJSON
from ..wire.stream import SSE, Document, Frame, Framing, ReplyStream, edit_reply, opaque, said_on, stopped_by, through
from ..wire.telling import as_it_begins, told
from .bridging import Frames, crosses
from .decided import decisions, tripped
from .door import Hop
from .endpoints import Endpoint
from .headers import OF_BODY, Headers, value_of
from .held import Parsed
from .identity import MAX_NAME
from .masking import KeyMask
from .relay import pass_down, undoing

# A reply is read whole to be looked at; one larger than this is none that an API documents.
MAX_REPLY: Final = 64 << 20
# A text without frames up to this size is read whole too, and keeps its headers where nothing changes in it.
MAX_SHORT: Final = 1 << 20

_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
EVENT_BEGINS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
STREAMS: Final = {
    b"text/event-stream": SSE,
    b"application/x-ndjson": NDJSON,
    b"application/ndjson": NDJSON,
    b"application/jsonl": NDJSON,
    b"application/x-jsonlines": NDJSON,
}
_WITHOUT_BODY: Final = (204, 304)


def media_of(headers: Headers) -> bytes:
    """The media type of a body, lower case and without parameters."""
    return (value_of(headers, b"content-type") or b"").partition(b";")[0].strip().lower()


class Down:
    """One reply. `run` is the call's way through the stages, `bridge` stands where the provider speaks another API."""

    def __init__(
        self, hop: Hop, endpoint: Endpoint, run: Run, bridge: Bridge | None = None, *, hides_usage: bool = False
    ) -> None:
        self._hop, self._endpoint, self._wire = hop, endpoint, endpoint.wire
        self._run, self._bridge, self._hides_usage = run, bridge, hides_usage

    async def take(self, reply: Reply, provider: Provider) -> Facts | None:
        """Gives the client what it may see of the reply; how its stream failed, if it did.

        Raises GuardrailTripped while nothing has left.
        """
        self._run.feed(Began(reply.status, self._hop.record.target))
        if self._hop.method == "HEAD" or reply.status in _WITHOUT_BODY:
            await pass_down(self._hop, provider, reply)
            return None
        headers, mask = self._hop.reply_headers(reply), self._hop.mask(provider)
        if mask is not None:
            headers = mask.headers(headers)
        media = media_of(headers)
        if reply.status < 400 and media in STREAMS:
            return await self._stream(reply, headers, undoing(headers), mask, self._framing(STREAMS[media]))
        if self._is_whole(media, headers):
            await self._whole(reply, headers, undoing(headers, MAX_REPLY), mask)
        else:
            await self._running(reply, headers, provider)
        return None

    def _is_whole(self, media: bytes, headers: Headers) -> bool:
        """A document, or what an API that has no other replies calls something else."""
        if not self._endpoint.binary or b"json" in media:
            return True
        length = value_of(headers, b"content-length")
        return media.startswith(b"text/") and length is not None and int(length) <= MAX_SHORT

    def _framing(self, framing: Framing) -> Framing:
        bridge = self._bridge
        return (
            as_it_begins(framing)
            if bridge is None
            else Framing(lambda: Frames(bridge, self._wire.event_of), SSE.render)
        )

    def decided(self) -> Headers:
        """What was decided so far, and what stages tell the client, as headers."""
        self._hop.record.decisions = tuple(decisions(self._run.verdicts))
        return [*self._hop.decided(), *self._run.headers]

    def _headers(self, headers: Headers, without: Collection[bytes] = ()) -> Headers:
        """The provider's headers and ours. What both say, such as how much is left, is said by us."""
        ours = {name for name, _ in self._run.headers}
        return [h for h in headers if h[0] not in ours and h[0] not in without] + self.decided()

    def _remember(self, reply: Any) -> None:
        """A request that names this reply as the one before it is of the same session."""
        hop, identity = self._hop, self._run.exchange.identity
        if identity.session and isinstance(reply, dict) and isinstance(id := reply.get("id"), str) and id:
            hop.runtime.sessions.remember(hop.tenant, id[:MAX_NAME], identity.session)

    def _remember_stream(self, frames: Sequence[Frame]) -> bool:
        """Looks for the reply's id in the first events of a stream; True when they have been seen."""
        for frame in frames:
            document = _document(frame.data, lists=False) if frame.data else None
            if document is not None:
                self._remember(document.get("response"))
                return True
        return False

    # --- whole ---

    async def _whole(self, reply: Reply, headers: Headers, undo: Decoder | None, mask: KeyMask | None) -> None:
        sent = await self._read_whole(reply)
        plain = undo.feed(sent) + undo.finish() if undo else sent
        if is_wide(plain):
            raise UpstreamBroken("The provider's reply is not UTF-8, which is all that can be looked into.")
        parsed = reply.document_of(plain) if isinstance(reply, Parsed) and mask is None else None
        said = self._edited(mask.feed(plain) + mask.finish() if mask else plain, reply.status, parsed)
        if said == plain:
            said = sent
        else:
            headers = [h for h in headers if h[0] not in OF_BODY]
            headers.append((b"content-length", b"%d" % len(said)))
        await self._hop.start(reply.status, self._headers(headers), reply.reason)
        await self._hop.write(said, more=False)

    async def _read_whole(self, reply: Reply) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while not reply.complete:
            piece = await self._hop.read(reply)
            size += len(piece)
            if size > MAX_REPLY:
                raise UpstreamBroken(
                    f"The provider's reply is larger than {MAX_REPLY} bytes, the most that is looked into."
                )
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _edited(self, plain: bytes, status: int, parsed: Any = None) -> bytes:
        """A whole reply's body as the client may see it; `parsed` where it is known. Raises GuardrailTripped."""
        document = _document(plain, lists=not self._endpoint.known) if parsed is None else parsed
        if document is None and self._bridge is None:
            return self._edited_text(plain)
        twice = document is not None and jsondoc.has_duplicate_keys(plain, document)
        if self._bridge is not None:
            told_across = _across(self._bridge, document, plain, status)
            document, twice = told_across, twice or told_across is not document
        assert document is not None  # noqa: S101
        if (usage := self._wire.usage(document)) is not None:
            self._count(usage)
            self._run.feed(Used(usage))
        if self._wire is responses:
            self._remember(document)
        changed, stop = edit_reply(self._wire, self._run, document)
        self._note_stop(stop)
        if isinstance(stop, Finish):
            return jsondoc.encode(self.finished(stop, document))
        if said := self._wire.error_text(document):
            limit = self._hop.in_force.snapshot.policy.scrub.max_chars.errors
            self._hop.record.detail = error_excerpt(_loggable(self._run, said), limit)
        return jsondoc.encode(document) if changed or twice else plain

    def _edited_text(self, plain: bytes) -> bytes:
        """A body that is not a JSON object: a stream under another name, or one text."""
        if (framing := told(plain, lines=self._endpoint.known)) is not None:
            stream = ReplyStream(self._wire, self._run, framing, hides_usage=self._hides_usage)
            cutter = framing.cutter()
            out = stream.feed([*cutter.feed(plain), *cutter.finish()]) + stream.finish()
            self._count(stream.tokens)
            self._note_stop(stream.stopped)
            return out + stream.ending()
        said, stop = self._known_text(plain) if self._endpoint.known else _any_text(self._run, plain)
        self._note_stop(stop)
        return stop.message.encode() if isinstance(stop, Finish) else said

    def _known_text(self, plain: bytes) -> tuple[bytes, Stop | None]:
        text = plain.decode("utf-8", "surrogateescape")
        said, stop = through(self._run, opaque(self._wire, "body", text), text)
        return _bytes(said), stop

    def _note_stop(self, stop: Stop | None) -> None:
        """For a reply of which nothing has left. Raises GuardrailTripped."""
        match stop:
            case Block():
                self._hop.record.outcome = "blocked"
                raise tripped(stop, "reply")
            case Finish(reason=reason):
                self._hop.record.outcome, self._hop.record.stop_reason = "finished", reason

    def finished(self, stop: Finish, identity: Document) -> Document:
        """The reply in the model's place. Where the API has no such reply, the call is blocked."""
        reply = self._wire.answer(identity, stop.message)
        if reply is None:
            raise self.unanswered(stop)
        return reply

    def unanswered(self, stop: Finish) -> ExchangeError:
        """The error where nothing can be answered in the model's place."""
        if stop.refusal is not None:
            return stop.refusal
        self._hop.record.outcome = "blocked"
        return tripped(Block(stop.rule, stop.surface), "call")

    # --- frame by frame ---

    async def _stream(
        self, reply: Reply, headers: Headers, undo: Decoder | None, mask: KeyMask | None, framing: Framing
    ) -> Facts | None:
        hop, cutter = self._hop, framing.cutter()
        hop.record.streamed = True
        stream = ReplyStream(self._wire, self._run, framing, hides_usage=self._hides_usage)
        # What is decided later cannot be said here: how much of it there is depends on the network's timing.
        headers = self._headers(headers, without=OF_BODY)
        known = self._wire is not responses
        broken: ExchangeError | None = None
        try:
            while not (reply.complete or stream.stopped):
                data = await hop.read(reply)
                for piece in undo.pieces(data) if undo else (data,):
                    frames = cutter.feed(mask.feed(piece) if mask else piece)
                    known = known or self._remember_stream(frames)
                    await self._say(reply, headers, stream.feed(frames))
        except (UpstreamBroken, UpstreamTimeout) as error:
            if not hop.started:
                raise
            broken = error
        finally:
            self._count(stream.tokens)
        rest = stream.feed(cutter.feed(mask.finish())) if mask else b""
        if broken is None or not crosses(self._bridge):
            rest += stream.feed(cutter.finish())
        return await self._close(reply, headers, stream, rest + stream.finish(), broken)

    async def _say(self, reply: Reply, headers: Headers, out: bytes) -> None:
        if not out:
            return
        if not self._hop.started:
            await self._hop.start(reply.status, headers, reply.reason)
        await self._hop.write(out, more=True)

    async def _close(
        self, reply: Reply, headers: Headers, stream: ReplyStream, rest: bytes, broken: ExchangeError | None
    ) -> Facts | None:
        """The stream is over: it came to its end, failed (which is told), or was stopped."""
        hop, facts = self._hop, None
        self._count(stream.tokens)
        match stream.stopped:
            case Block() as stop:
                hop.record.outcome, hop.record.code = "blocked", GuardrailTripped.code
                error = tripped(stop, "reply")
                if not hop.started and not rest:
                    raise error
                rest += stream.failing(error) + self._wire.DONE if stop.as_error else stream.ending()
            case Finish(reason=reason):
                hop.record.outcome, hop.record.stop_reason = "finished", reason
                rest += stream.ending()
            case None if (broken or not stream.complete) and not stream.failed:
                broken = self._note_broken(broken)
                facts = Facts(Phase.CONTENT, reply.status, error=broken)
                rest += stream.failing(broken)
            case None if stream.failed or not stream.done:
                hop.record.outcome = "upstream_error"
                facts = Facts(Phase.CONTENT, reply.status, said_error=True) if stream.failed else None
        await self._say(reply, headers, rest)
        await hop.write(b"", more=False)
        return facts

    def _note_broken(self, broken: ExchangeError | None) -> ExchangeError:
        record = self._hop.record
        broken = broken or UpstreamBroken("The provider's stream ended before the reply was complete.")
        record.outcome = "timeout" if isinstance(broken, UpstreamTimeout) else "upstream_error"
        record.code = broken.code
        record.phase = broken.phase if isinstance(broken, UpstreamTimeout) else ""
        return broken

    # --- one running text, or no text at all ---

    async def _running(self, reply: Reply, headers: Headers, provider: Provider) -> None:
        """A body of any size without frames. What its beginning shows to be no text passes as it is."""
        first = b""
        undo, mask = undoing(headers), self._hop.mask(provider)
        while not (first or reply.complete):
            first = await self._hop.read(reply)
        begins = b"".join(undo.pieces(first)) if undo else first
        if not looks_like_text(begins[:PEEK]):
            await pass_down(self._hop, provider, reply, first)
            return
        text = _RunningText(self._run)
        headers = self._headers(headers, without=OF_BODY)
        out = text.feed(mask.feed(begins) if mask else begins)
        while not (reply.complete or text.stopped):
            await self._say(reply, headers, out)
            data = await self._hop.read(reply)
            pieces = b"".join(undo.pieces(data)) if undo else data
            out = text.feed(mask.feed(pieces) if mask else pieces)
        await self._close_running(reply, headers, text, out, mask.finish() if mask else b"")

    async def _close_running(
        self, reply: Reply, headers: Headers, text: "_RunningText", out: bytes, rest: bytes
    ) -> None:
        out += text.finish(rest)
        if text.stopped is not None:
            # Such a body has no ending of its own: what has begun is left incomplete, which every client notices.
            stop = text.stopped if isinstance(text.stopped, Block) else Block(text.stopped.rule, text.stopped.surface)
            self._hop.record.outcome = "blocked"
            raise tripped(stop, "reply")
        if not self._hop.started:
            await self._hop.start(reply.status, headers, reply.reason)
        await self._hop.write(out, more=False)

    def _count(self, tokens: Usage | None) -> None:
        if tokens is not None:
            record = self._hop.record
            record.prompt_tokens, record.completion_tokens = tokens.prompt, tokens.completion
            record.cached_tokens, record.reasoning_tokens = tokens.cached, tokens.reasoning


class _RunningText:
    """A body that is one text. What is no UTF-8 in it stays as it is."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = anything.RunningText(self._said, _BODY)
        self.stopped: Stop | None = None

    def feed(self, data: bytes) -> bytes:
        return _bytes(self._text.feed(self._decoder.decode(data)))

    def finish(self, data: bytes) -> bytes:
        if self.stopped is not None:
            return b""
        out = self._text.feed(self._decoder.decode(data, True))
        return _bytes(out if self.stopped else out + self._text.finish())

    def _said(self, lane: Lane, event: Event) -> str:
        if self.stopped is not None:
            return ""
        events = self._run.feed(event)
        self.stopped = stopped_by(events)
        return said_on(events, lane)


def _loggable(run: Run, said: str) -> str:
    """A text without what any rule looks for, wherever it looks and in whatever mode: the log is not the client."""
    for rail in (step.stage for step in run.chain.down):
        if isinstance(rail, Guardrail):
            said = rail.lens.scrub(rail.rules.opened(), said)[0]
    return said


def _any_text(run: Run, plain: bytes) -> tuple[bytes, Stop | None]:
    text = _RunningText(run)
    return text.feed(plain) + text.finish(b""), text.stopped


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_BODY = Lane(anything.BODY)


def _document(plain: bytes, *, lists: bool) -> Any:
    """The JSON object in a body, or with `lists` a list as well; None where there is none."""
    document = jsondoc.readable(plain)
    return document if isinstance(document, dict) or (lists and isinstance(document, list)) else None


def _across(bridge: Bridge, document: Document | None, plain: bytes, status: int) -> Document:
    """The provider's reply in the client's API."""
    if status >= 400:
        return bridge.error(document or {"error": {"message": plain.decode("utf-8", "replace")}}, status)
    if document is None:
        raise UpstreamBroken("The provider's reply is not a JSON object.")
    return bridge.reply(document)


def is_wide(text: bytes) -> bool:
    """UTF-16 or UTF-32, which JSON readers tell by the same signs. What is said in it, no rule would see."""
    return text.startswith(_WIDE_MARKS) or 0 in text[:4]
