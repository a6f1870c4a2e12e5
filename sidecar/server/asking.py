"""Asking again: the port through which a stage makes calls of its own, and what is sent while it is waited for.

Each call goes through the stages inside the one that asks, attempts included, like any other; only its reply is kept
instead of sent. What the client gets in the end is one of these replies, whole.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, Self

from ..core.chain import Asking, Chain, Run
from ..core.decision import Block
from ..core.exchange import Request
from ..core.port import Heard
from ..core.usage import NOT_REPORTED, Usage, added
from ..errors import ExchangeError, UpstreamBroken
from ..telemetry.record import Record
from ..upstream.targets import Provider
from ..wire import jsondoc
from ..wire.conversation import View, gathered
from ..wire.stream import SSE
from ..wire.views import view_of
from .call import Body, Call, settled
from .decided import tripped
from .door import Hop
from .endpoints import Endpoint
from .headers import OURS, Headers
from .held import Kept
from .relay import undoing
from .replies import MAX_REPLY, STREAMS, media_of
from .watch import ClientLeft

_COMMENT: Final = b": keep-alive\n\n"


class Aside(Hop):
    """The way through the server of a call inside an exchange: what would be sent to the client is kept."""

    __slots__ = ("body_kept", "headers_kept", "outer", "reason_kept", "size_kept")

    def __init__(self, outer: Hop) -> None:
        for name in Hop.__slots__:
            setattr(self, name, getattr(outer, name))
        self.outer, self.started, self.upstream = outer, False, None
        self.headers_kept: Headers = []
        self.reason_kept = b""
        self.body_kept: list[bytes] = []
        self.size_kept = 0

    async def start(self, status: int, headers: Headers, reason: bytes = b"") -> None:
        # Nothing has left: what is decided from here on can still become an error.
        self.record.status, self.headers_kept, self.reason_kept = status, headers, reason

    async def write(self, data: bytes, more: bool) -> None:
        """Raises UpstreamBroken: a stream that does not end would be held without one."""
        self.size_kept += len(data)
        if self.size_kept > MAX_REPLY:
            raise UpstreamBroken(f"The provider's reply is larger than {MAX_REPLY} bytes, the most that is held.")
        self.body_kept.append(data)

    def kept(self, provider: Provider) -> Kept:
        """The reply. What we say in its headers of the exchange is said when the exchange is answered."""
        headers = [h for h in self.headers_kept if h[0][: len(OURS)] != OURS]
        return Kept(self.record.status, headers, b"".join(self.body_kept), provider, self.reason_kept)

    def close(self) -> None:
        """The call is over; the exchange goes on."""
        self.outer.trail = self.trail
        if self.upstream is not None:
            self.upstream.close()


class Calls:
    """All calls that the stages of one exchange ask for, and what they have used together."""

    def __init__(self, hop: Hop, endpoint: Endpoint, body: Body) -> None:
        self._hop, self._endpoint, self._body = hop, endpoint, body
        self._view = view_of(endpoint.wire.NAME)
        self._numbers = count(1)
        self._made = 0
        self._used = NOT_REPORTED

    @property
    def asking(self) -> Asking | None:
        """For the exchange's own call. None where no stage can think in messages: the API has none."""
        view, body = self._view, self._body
        return None if view is None or not isinstance(body.document, dict) else self._asking(view, body)

    def _asking(self, view: View, body: Body) -> Asking:
        """For stages that a call with this body passes."""
        return lambda chain, run, request: _Port(self, view, body, chain, run, request)

    def tell(self) -> None:
        """For the record: what was used is what all calls have used."""
        record = self._hop.record
        if self._made > 1:
            record.prompt_tokens, record.completion_tokens = self._used.prompt, self._used.completion
            record.cached_tokens, record.reasoning_tokens = self._used.cached, self._used.reasoning

    async def make(self, view: View, chain: Chain, outer: Run, body: Body) -> tuple[Call, Aside]:
        """One call through a part of the chain. However it ends, it is settled then."""
        number, hop = next(self._numbers), self._hop
        exchange = outer.exchange if number == 1 else replace(outer.exchange, id=f"{hop.id}.{number}")
        run, side = chain.open(exchange, self._asking(view, body)), Aside(hop)
        call = Call(side, self._endpoint, body, run)
        _forget(hop.record)
        try:
            await settled(hop, run, call.make())
        finally:
            if call.attempted:
                self._count()
            outer.verdicts.extend(run.verdicts)
            side.close()
        outer.headers = run.headers
        return call, side

    def _count(self) -> None:
        self._made += 1
        self._hop.record.calls = self._made
        self._used = added(self._used, _used(self._hop.record))


def _used(record: Record) -> Usage:
    return Usage(
        prompt=record.prompt_tokens,
        completion=record.completion_tokens,
        cached=record.cached_tokens,
        reasoning=record.reasoning_tokens,
    )


def _forget(record: Record) -> None:
    """What the record says of the call before."""
    record.sent, record.outcome, record.stop_reason = 0.0, "", ""
    record.prompt_tokens = record.completion_tokens = record.cached_tokens = record.reasoning_tokens = None


class _Port:
    """The port of one stage, for one request that passes it. `body` is what the request came as."""

    def __init__(self, calls: Calls, view: View, body: Body, chain: Chain, run: Run, request: Request) -> None:
        self._calls, self._view, self._body, self._chain, self._run = calls, view, body, chain, run
        self._request = request

    async def ask(self, document: dict[str, Any]) -> Heard:
        call, side = await self._calls.make(self._view, self._chain, self._run, self._sent(document))
        if isinstance(call.run.stopped, Block):
            raise tripped(call.run.stopped, "reply")
        kept = side.kept(call.provider)
        return Heard(None if call.run.stopped else _document(kept, self._view), call.unknown, kept)

    def _sent(self, document: dict[str, Any]) -> Body:
        """A copy of its own for each call: stages inside edit it. What nobody has changed goes up as it came."""
        as_it_came = document is self._request.document and not self._request.changed
        raw = self._body.raw if as_it_came else jsondoc.encode(document)
        return Body(raw, jsondoc.copied(raw), self._body.was_coded)


def _document(kept: Kept, view: View) -> dict[str, Any] | None:
    """The reply as a buffered one would be; None where it is an error or has not come to its end."""
    if kept.status >= 400:
        return None
    undo = undoing(kept.headers, MAX_REPLY)
    plain = undo.feed(kept.body) + undo.finish() if undo else kept.body
    if (framing := STREAMS.get(media_of(kept.headers))) is None:
        document = jsondoc.readable(plain)
        if not isinstance(document, dict):
            return None
        kept.parsed = (plain, document)
        return document
    cutter = framing.cutter()
    return gathered(view.gather(), [*cutter.feed(plain), *cutter.finish()], jsondoc.readable)


class KeepAlive:
    """Lets a client that waits for a stream know that it is not forgotten: comments, which no client reads as events.

    Only from the first comment on the reply has begun. What goes wrong after it is told in the stream. Ollama's own
    streams are lines of JSON, which know no comments: there the client waits for the first line.
    """

    def __init__(self, hop: Hop, endpoint: Endpoint) -> None:
        self._hop, self._endpoint = hop, endpoint
        self._every = hop.in_force.snapshot.server.keep_alive
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if STREAMS[self._endpoint.stream_type] is SSE:
            self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, ClientLeft):
                await self._task

    async def _beat(self) -> None:
        hop = self._hop
        while True:
            await asyncio.sleep(self._every)
            if not hop.started:
                hop.failing = self._failing
                headers = [(b"content-type", self._endpoint.stream_type), (b"cache-control", b"no-cache")]
                await hop.start(200, headers + hop.our_headers(headers))
            await hop.write(_COMMENT, more=True)

    def _failing(self, error: ExchangeError) -> bytes:
        wire = self._endpoint.wire
        frames = (SSE.render(jsondoc.encode(each), wire.event_of(each)) for each in wire.error_frames(error))
        return b"".join(frames) + wire.DONE
