"""One call: the request's texts go down a chain, the reply's come up it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple

from ..core import exchange as core
from ..core.chain import Run
from ..core.decision import Answer, Block, Finish, Stop
from ..core.stage import UNREACHABLE
from ..core.surface import Slot
from ..errors import ExchangeError, ProviderRefused, Uninspected, UpstreamBroken, UpstreamTimeout
from ..policy.schema import Policy
from ..upstream.classify import Facts, Phase
from ..upstream.routing import Candidate, Route
from ..upstream.targets import Provider, Target
from ..wire import jsondoc
from ..wire.bridges.messages_chat.request import NO_THREADS
from ..wire.stream import Document
from ..wire.unseen import THREAD, Sort, unseen
from ..wire.views import VIEWS
from .calling import Outgoing, ask
from .decided import tripped
from .door import Hop
from .endpoints import Endpoint
from .held import Kept
from .replies import STREAMS, Down, media_of


class Body(NamedTuple):
    """A request's body, decoded, and the document in it: None where there is no body."""

    raw: bytes
    document: Any
    was_coded: bool


NO_BODY: Final = Body(b"", None, was_coded=False)


Waiting = AbstractAsyncContextManager[Any]


class Call:
    """One way down and up the chain that `run` is on.

    `waiting` is around the request's way down where a stage may take long over it and the client waits for a stream.
    `attempted`: a provider was to be asked by this very call. `provider` is the one whose reply was handed down.
    `unknown` names the tools that the model called in its text and that there are not.
    """

    def __init__(self, hop: Hop, endpoint: Endpoint, body: Body, run: Run, waiting: Waiting | None = None) -> None:
        self._hop, self._endpoint, self._wire, self._body, self.run = hop, endpoint, endpoint.wire, body, run
        self._waiting = waiting
        self.attempted = False
        self.provider: Provider = hop.in_force.routes.default
        self.unknown: tuple[str, ...] = ()

    async def make(self) -> None:
        """Answers through the hop, or raises ExchangeError."""
        hop, document = self._hop, self._body.document
        fields = document if isinstance(document, dict) else {}
        hop.record.streamed = fields.get("stream", self._endpoint.streams_unasked) is True
        route = self._route(fields)
        request = core.Request(document, None, hop.record.model, hop.record.target, reread=self._reads())
        refuse_uninspected(hop.in_force.snapshot.policy, fields, request)
        asks = self.run.chain.counts and hop.record.streamed and self._wire.ask_usage(fields)
        if self._waiting is None or not hop.record.streamed:
            stop = await self.run.request(request)
        else:
            async with self._waiting:
                stop = await self.run.request(request)
        if stop is not None:
            await self._stop_request(stop)
        elif self.run.answered is not None:
            await self._hand_down(self.run.answered, hides_usage=asks)
        else:
            outgoing = Outgoing(document, self._body.raw, request.changed or asks, self._body.was_coded)
            await self._attempt(route, outgoing, hides_usage=asks)
        if self.run.stopped is None:
            # Every lane has ended, so that nothing more is said; but what was found of the whole reply is noted.
            self.run.finish()

    async def _attempt(self, route: Route, outgoing: Outgoing, *, hides_usage: bool) -> None:
        self.attempted = True
        answered = await ask(self._hop, self._endpoint, route, outgoing, self.run)
        down = Down(self._hop, self._endpoint, self.run, answered.bridge, hides_usage=hides_usage)
        try:
            facts = await down.take(answered.reply, answered.provider)
        except (UpstreamBroken, UpstreamTimeout) as error:
            answered.broke(Facts(Phase.CONTENT, error=error))
            raise
        if facts is not None:
            answered.broke(facts)
        self.provider = answered.provider
        if answered.bridge is not None:
            self.unknown = answered.bridge.unknown

    # --- the request ---

    def _reads(self) -> Callable[[Any], list[Slot]]:
        """How the texts that somebody looks at are found."""
        if self._body.document is None:
            return _no_slots
        refuses_unknown = self._hop.in_force.snapshot.policy.unknown == "deny"
        everything = refuses_unknown or self.run.chain.reads_tools
        return self._wire.request_slots if everything else self._wire.but_tools

    def _route(self, document: dict[str, Any]) -> Route:
        """What can serve the request: for one without a model the default provider. Raises ModelNotFound."""
        routes, name = self._hop.in_force.routes, document.get("model")
        if not isinstance(name, str):
            return Route("", (Candidate.of(Target(routes.default, "")),))
        route = routes.route(name)
        self._hop.placed(name, route.candidates[0].target)
        return route

    async def _stop_request(self, stop: Stop) -> None:
        match stop:
            case Block():
                self._hop.record.outcome = "blocked"
                raise tripped(stop, "request")
            case Finish():
                await self._finish(stop)

    async def _finish(self, stop: Finish) -> None:
        """Answers in the model's place."""
        hop, down = self._hop, Down(self._hop, self._endpoint, self.run)
        identity = {"id": self._endpoint.id_prefix + hop.id, "created": int(time.time()), "model": hop.record.model}
        body = jsondoc.encode(down.finished(stop, identity))
        kind = b"application/json"
        if hop.record.streamed:
            kind, body = self._endpoint.stream_type, self._wire.answer_frames(identity, stop.message)
        hop.record.outcome, hop.record.stop_reason = "finished", stop.reason
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if not hop.started:
            await hop.start(200, headers + hop.our_headers(headers) + down.decided())
        await hop.write(body, more=False)

    # --- a reply that a stage has asked for ---

    async def _hand_down(self, answer: Answer, *, hides_usage: bool) -> None:
        reply = answer.heard.reply
        assert isinstance(reply, Kept)  # noqa: S101
        self.unknown, self.provider = answer.heard.unknown, reply.provider
        if answer.document is not None:
            reply = reply.with_body(self._told(reply, answer.document))
        if self._hop.started and media_of(reply.headers) not in STREAMS:
            raise self._refused(reply)
        await Down(self._hop, self._endpoint, self.run, hides_usage=hides_usage).take(reply, reply.provider)

    def _told(self, reply: Kept, document: Document) -> bytes:
        """Another reply in the place of one, told as that one was."""
        if (framing := STREAMS.get(media_of(reply.headers))) is None:
            return jsondoc.encode(document)
        frames = VIEWS[self._wire.NAME].frames(document)
        told = (framing.render(jsondoc.encode(frame), self._wire.event_of(frame)) for frame in frames)
        return b"".join(told) + self._wire.DONE

    def _refused(self, reply: Kept) -> ProviderRefused:
        """A provider's error where a stream has begun already."""
        document = jsondoc.readable(reply.body)
        said = self._wire.error_text(document) if isinstance(document, dict) else ""
        return ProviderRefused(said or f"The provider answered with the status {reply.status}.", reply.status)


def outcome(hop: Hop, ended: str) -> str:
    """How a call ended, for what has to be settled. Where no request went out, no provider has seen it."""
    return (hop.record.outcome or ended) if hop.record.sent else UNREACHABLE


async def settled(hop: Hop, run: Run, work: Awaitable[None]) -> None:
    """Does the work of a call, then tells its stages how it ended: exactly once, and whatever happens."""
    ended = "completed"
    try:
        await work
    except ExchangeError:
        ended = "failed"
        raise
    except BaseException:
        ended = "left"
        raise
    finally:
        if run.owes:
            # Runs to its end even if we are being cancelled: what is settled here is settled once.
            await asyncio.shield(asyncio.ensure_future(run.done(outcome(hop, ended))))


def _no_slots(document: None) -> list[Slot]:
    return []


def refuse_uninspected(policy: Policy, document: dict[str, Any], request: core.Request) -> None:
    """Raises Uninspected for what the policy denies because no rule can look into it."""
    denied = {sort for sort in _SORTS if getattr(policy.inspect, sort) == "deny"}
    for sort, path in unseen(document) if denied else ():
        if sort in denied:
            raise _unseen(sort, path)
    if policy.unknown == "deny":
        for slot in request.slots:
            if slot.surface.unknown:
                raise Uninspected(
                    f"The field {str(slot.key)[:100]!r} is not one that the API documents (inspect.unknown).",
                    param=str(slot.key)[:100],
                )


def _unseen(sort: Sort, path: str) -> Uninspected:
    refusal = Uninspected(f"This sidecar's policy lets no {_SORTS[sort]} through (inspect.{sort}).", param=path)
    if path == THREAD:
        refusal.code = NO_THREADS
    return refusal


_SORTS: Final[dict[Sort, str]] = {
    "images": "images",
    "audio": "sounds",
    "files": "files that are not text",
    "provider_state": "references to what only the provider has",
}
