"""The guarded exchange: the request's texts go down the chain, the reply's come up it, frame by frame."""

import asyncio
import codecs
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from ..core import exchange as core
from ..core.chain import Chain, Run, Verdict
from ..core.decision import Block, Finish, Stop
from ..core.surface import Lane
from ..errors import ExchangeError, GuardrailTripped, InvalidRequest, UpstreamBroken, UpstreamTimeout
from ..stages.restore import Restore
from ..stages.scrub import error_excerpt
from ..text.pseudonyms import Disguise
from ..upstream.connection import Reply
from ..upstream.targets import Target
from ..wire import chat, jsondoc, sse
from ..wire.coding import Decoder, acceptable
from ..wire.errors import openai_error_event
from ..wire.stream import ReplyStream, Wire, edit_reply, through
from .door import Handler, Hop
from .headers import Headers, framing, joined, value_of
from .identity import session_of
from .masking import KeyMask
from .relay import decoded, undoing

# A reply is read whole to be looked at; one larger than this is not a chat completion.
MAX_REPLY = 64 << 20

# What a client may call, whatever stands before it: a base path, a deployment.
_ENDPOINTS: Final[Sequence[tuple[str, Wire]]] = (("/chat/completions", chat),)
# Headers that describe the bytes of a body: wrong once it has changed.
_OF_BODY: Final = frozenset(
    (
        b"content-length",
        b"content-encoding",
        b"content-md5",
        b"content-digest",
        b"digest",
        b"repr-digest",
        b"etag",
    )
)
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_EVENT_BEGINS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


def find(method: str, path: str) -> Handler | None:
    """The handler for a path that the chain looks into. Spellings that a server may take for it count as it."""
    return _at(path) if method == "POST" else None


@lru_cache(maxsize=1024)
def _at(path: str) -> "_Guarded | None":
    normal = normalised(path)
    return next((_Guarded(wire) for ending, wire in _ENDPOINTS if normal.endswith(ending)), None)


def normalised(path: str) -> str:
    """A path as the most lenient server would read it: decoded, lower case, no parameters, no empty or dot segments."""
    kept: list[str] = []
    for segment in unquote(unquote(path)).replace("\\", "/").lower().split("/"):
        name = segment.partition(";")[0].strip()
        if name == "..":
            del kept[-1:]
        elif name not in ("", "."):
            kept.append(name)
    return "/" + "/".join(kept)


class _Guarded:
    """One endpoint's exchanges."""

    __slots__ = ("_wire",)

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def __call__(self, hop: Hop) -> None:
        body = await _body(hop)
        exchange = _Exchange(hop, self._wire, body)
        try:
            await exchange.run()
        finally:
            hop.record.decisions = tuple(decisions(exchange.chain.verdicts))
            if exchange.chain.owes:
                await _shielded(exchange.chain.done(hop.record.outcome or "ended"))


async def _shielded(coroutine: Any) -> None:
    """Runs to its end even if we are being cancelled: what is settled here is settled once."""
    await asyncio.shield(asyncio.ensure_future(coroutine))


def decisions(verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """What was decided, for the record: by rule, action, mode and surface, with how many findings."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for verdict in verdicts:
        for finding in verdict.findings or (None,):
            surface = str(finding.surface) if finding else ""
            counts[verdict.stage, verdict.said, verdict.mode.value, surface] += 1
    for (rule, action, mode, surface), count in counts.items():
        yield {"rule": rule, "action": action, "mode": mode, "surface": surface, "count": count}


def tripped(stop: Block, direction: str) -> GuardrailTripped:
    what = "could not be applied to" if stop.failed else "blocked"
    return GuardrailTripped(f"The guardrail {stop.rule!r} {what} this {direction}.", param=str(stop.surface))


class _Body(NamedTuple):
    """A request's body, decoded, and the document in it."""

    raw: bytes
    document: dict[str, Any]
    was_coded: bool


async def _body(hop: Hop) -> _Body:
    limit = hop.in_force.snapshot.server.max_body
    raw = await hop.body(limit)
    coding = joined(hop.headers, b"content-encoding")
    plain = raw if coding is None else decoded(raw, coding, limit)
    return _Body(plain, _parsed(plain), was_coded=coding is not None)


def _disguise(hop: Hop, chain: Chain, document: dict[str, Any]) -> core.Disguise:
    """The placeholders of the exchange's session, where a rule uses any."""
    if not any(isinstance(step.stage, Restore) for step in chain.up):
        return core.NO_DISGUISE
    session, declared = session_of(hop.headers, document)
    return Disguise(hop.runtime.sessions.pseudonyms(hop.tenant, session), declared=declared)


class _Exchange:
    """One exchange on its way. `chain` is its run through the stages."""

    def __init__(self, hop: Hop, wire: Wire, body: "_Body") -> None:
        self._hop, self._wire, self._body = hop, wire, body
        chain = hop.in_force.snapshot.chain
        self.chain: Run = chain.open(hop.exchange(wire.NAME, _disguise(hop, chain, body.document)))

    async def run(self) -> None:
        hop, document = self._hop, self._body.document
        hop.record.streamed = document.get("stream") is True
        target = self._target(document)
        request = core.Request(document, self._wire.request_slots(document), hop.record.model)
        stop = await self.chain.request(request)
        if stop is not None:
            await self._stop_request(stop)
            return
        changed = request.changed or (target is not None and target.model != hop.record.model)
        sent = jsondoc.encode(document) if changed else self._body.raw
        await self._exchange(target, sent, changed or self._body.was_coded)

    # --- the request ---

    def _target(self, document: dict[str, Any]) -> Target | None:
        name = document.get("model")
        if not isinstance(name, str):
            return None
        target = self._hop.in_force.routes.resolve(name)
        self._hop.record.model, self._hop.record.target = name, str(target)
        if target.model != name:
            document["model"] = target.model
        return target

    async def _stop_request(self, stop: Stop) -> None:
        match stop:
            case Block():
                self._hop.record.outcome = "blocked"
                raise tripped(stop, "request")
            case Finish(message=message):
                await self._finish(message)

    async def _finish(self, message: str) -> None:
        """Answers in the model's place."""
        hop = self._hop
        hop.record.outcome = "finished"
        identity = {"id": f"chatcmpl-{hop.id}", "created": int(time.time()), "model": hop.record.model}
        if hop.record.streamed:
            kind, body = b"text/event-stream", self._wire.answer_frames(identity, message)
        else:
            kind, body = b"application/json", jsondoc.encode(self._wire.answer(identity, message))
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await hop.start(200, headers + hop.our_headers(headers) + self._decided())
        await hop.write(body, more=False)

    async def _exchange(self, target: Target | None, body: bytes, recoded: bool) -> None:
        hop = self._hop
        provider = target.provider if target else hop.in_force.routes.default
        headers = hop.request_headers(provider)
        if recoded:
            headers = [h for h in headers if h[0] != b"content-encoding"]
        if provider.api_key is None:
            headers = _readable(headers)
        reply = await hop.send(provider, headers + framing(len(body), declared=True), body)
        await self._answer(reply, hop.mask(provider))

    # --- the reply ---

    async def _answer(self, reply: Reply, mask: KeyMask | None) -> None:
        headers = self._hop.reply_headers(reply)
        if mask is not None:
            headers = mask.headers(headers)
        if (value_of(headers, b"content-type") or b"").lower().startswith(b"text/event-stream") and reply.status < 400:
            await self._stream(reply, headers, undoing(headers), mask)
        else:
            await self._whole(reply, headers, undoing(headers, MAX_REPLY), mask)

    def _decided(self) -> Headers:
        """What was decided so far, as a header."""
        self._hop.record.decisions = tuple(decisions(self.chain.verdicts))
        return self._hop.decided()

    async def _whole(self, reply: Reply, headers: Headers, undo: Decoder | None, mask: KeyMask | None) -> None:
        sent = await self._read_whole(reply)
        plain = undo.feed(sent) + undo.finish() if undo else sent
        if _is_wide(plain):
            raise UpstreamBroken("The provider's reply is not UTF-8, which is all that can be looked into.")
        said = self._edited(mask.feed(plain) + mask.finish() if mask else plain)
        if said == plain:
            said = sent
        else:
            headers = [h for h in headers if h[0] not in _OF_BODY]
            headers.append((b"content-length", b"%d" % len(said)))
        await self._hop.start(reply.status, headers + self._decided(), reply.reason)
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
        return b"".join(pieces)

    def _edited(self, plain: bytes) -> bytes:
        """A whole reply's body as the client may see it. Raises GuardrailTripped."""
        try:
            document = jsondoc.decode(plain)
        except jsondoc.JsonFault:
            return self._edited_text(plain)
        if not isinstance(document, dict):
            return self._edited_text(plain)
        twice = jsondoc.has_duplicate_keys(plain, document)
        self._count(self._wire.usage(document))
        changed, stop = edit_reply(self._wire, self.chain, document)
        self._note_stop(stop)
        if isinstance(stop, Finish):
            return jsondoc.encode(self._wire.answer(document, stop.message))
        if said := self._wire.error_text(document):
            self._hop.record.detail = error_excerpt(said, self._hop.in_force.snapshot.policy.scrub.max_chars.errors)
        return jsondoc.encode(document) if changed or twice else plain

    def _edited_text(self, plain: bytes) -> bytes:
        """A body that is not a JSON object: a stream under another name, or one text."""
        if plain.lstrip().startswith(_EVENT_BEGINS):
            stream, events = ReplyStream(self._wire, self.chain), sse.Events()
            out = stream.feed([*events.feed(plain), *events.finish()]) + stream.finish()
            self._note_stop(stream.stopped)
            return out + stream.ending()
        said, stop = through(self.chain, Lane(self._wire.OPAQUE, part="body"), plain.decode("utf-8", "surrogateescape"))
        self._note_stop(stop)
        return stop.message.encode() if isinstance(stop, Finish) else said.encode("utf-8", "surrogateescape")

    def _note_stop(self, stop: Stop | None) -> None:
        """For a reply of which nothing has left. Raises GuardrailTripped."""
        match stop:
            case Block():
                self._hop.record.outcome = "blocked"
                raise tripped(stop, "reply")
            case Finish():
                self._hop.record.outcome = "finished"

    async def _stream(self, reply: Reply, headers: Headers, undo: Decoder | None, mask: KeyMask | None) -> None:
        hop, events = self._hop, sse.Events()
        hop.record.streamed = True
        stream = ReplyStream(self._wire, self.chain)
        # What is decided later cannot be said here: how much of it there is depends on the network's timing.
        headers = [h for h in headers if h[0] not in _OF_BODY] + self._decided()
        broken: ExchangeError | None = None
        try:
            while not (reply.complete or stream.stopped):
                data = await hop.read(reply)
                for piece in undo.pieces(data) if undo else (data,):
                    shown = mask.feed(piece) if mask else piece
                    await self._say(reply, headers, stream.feed(events.feed(shown)))
        except (UpstreamBroken, UpstreamTimeout) as error:
            if not hop.started:
                raise
            broken = error
        rest = stream.feed([*events.feed(mask.finish() if mask else b""), *events.finish()])
        await self._close(reply, headers, stream, rest + stream.finish(), broken)

    async def _say(self, reply: Reply, headers: Headers, out: bytes) -> None:
        if not out:
            return
        if not self._hop.started:
            await self._hop.start(reply.status, headers, reply.reason)
        await self._hop.write(out, more=True)

    async def _close(
        self, reply: Reply, headers: Headers, stream: ReplyStream, rest: bytes, broken: ExchangeError | None
    ) -> None:
        """The stream is over: it came to its end, broke off, or was stopped."""
        hop = self._hop
        self._count(stream.tokens)
        match stream.stopped:
            case Block() as stop:
                hop.record.outcome, hop.record.code = "blocked", GuardrailTripped.code
                if not hop.started and not rest:
                    raise tripped(stop, "reply")
                rest += (
                    openai_error_event(tripped(stop, "reply")) + self._wire.DONE if stop.as_error else stream.ending()
                )
            case Finish():
                hop.record.outcome = "finished"
                rest += stream.ending()
            case None if (broken or not stream.complete) and not stream.failed:
                broken = broken or UpstreamBroken("The provider's stream ended before the reply was complete.")
                hop.record.outcome = "timeout" if isinstance(broken, UpstreamTimeout) else "upstream_error"
                hop.record.code = broken.code
                hop.record.phase = broken.phase if isinstance(broken, UpstreamTimeout) else ""
                rest += openai_error_event(broken)
            case None if stream.failed or not stream.done:
                hop.record.outcome = "upstream_error"
        await self._say(reply, headers, rest)
        await hop.write(b"", more=False)

    def _count(self, tokens: tuple[int | None, int | None] | None) -> None:
        if tokens is not None:
            self._hop.record.prompt_tokens, self._hop.record.completion_tokens = tokens


def _parsed(raw: bytes) -> dict[str, Any]:
    """The request's document. What we cannot read the way the provider will, we do not send."""
    try:
        document = jsondoc.decode(raw)
    except jsondoc.JsonFault as fault:
        raise InvalidRequest(f"The request's body is not JSON that can be checked: {fault}.") from None
    if not isinstance(document, dict):
        raise InvalidRequest("The request's body must be a JSON object.")
    if jsondoc.has_duplicate_keys(raw, document):
        raise InvalidRequest("The request's body has an object with the same key twice; send each key once.")
    return document


def _readable(headers: Headers) -> Headers:
    """Asks only for content codings that we can undo."""
    asked = value_of(headers, b"accept-encoding")
    kept = [h for h in headers if h[0] != b"accept-encoding"]
    return [*kept, (b"accept-encoding", acceptable(asked))]


def _is_wide(text: bytes) -> bool:
    """UTF-16 or UTF-32, which JSON readers tell by the same signs. What is said in it, no rule would see."""
    return text.startswith(_WIDE_MARKS) or 0 in text[:4]
