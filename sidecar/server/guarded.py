"""The guarded exchange: the request's texts go down the chain, the reply's come up it."""

import asyncio
import time
from typing import Any, Final, NamedTuple

from ..core import exchange as core
from ..core.chain import Chain, Run
from ..core.decision import Block, Finish, Stop
from ..core.identity import Identity
from ..core.stage import UNREACHABLE
from ..core.surface import Slot
from ..errors import ExchangeError, InvalidRequest, Uninspected, UpstreamBroken, UpstreamTimeout
from ..policy.schema import Policy
from ..stages.restore import Restore
from ..text.pseudonyms import Disguise
from ..upstream.classify import Facts, Phase
from ..upstream.routing import Candidate, Route
from ..upstream.targets import Target
from ..wire import jsondoc
from ..wire.bridges.messages_chat.request import NO_THREADS
from ..wire.unseen import THREAD, Sort, unseen
from .admission import DEFAULT_TENANT
from .calling import Outgoing, ask
from .decided import decisions, tripped
from .door import Hop
from .endpoints import Endpoint
from .headers import joined
from .identity import identify
from .relay import decoded
from .replies import Down
from .uploads import is_upload, upload


class Guarded:
    """One endpoint's exchanges."""

    __slots__ = ("endpoint",)

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    async def __call__(self, hop: Hop) -> None:
        if is_upload(hop, self.endpoint):
            exchange = _Exchange(hop, self.endpoint, _NO_BODY)
            work = upload(hop, self.endpoint, exchange.chain)
        else:
            exchange = _Exchange(hop, self.endpoint, await _body(hop, self.endpoint))
            work = exchange.run()
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
            hop.record.decisions = tuple(decisions(exchange.chain.verdicts))
            if exchange.chain.owes:
                await _shielded(exchange.chain.done(_outcome(hop, ended)))


def _outcome(hop: Hop, ended: str) -> str:
    """How the call ended, for what has to be settled. Where no request went out, no provider has seen it."""
    return (hop.record.outcome or ended) if hop.record.sent else UNREACHABLE


async def _shielded(coroutine: Any) -> None:
    """Runs to its end even if we are being cancelled: what is settled here is settled once."""
    await asyncio.shield(asyncio.ensure_future(coroutine))


class _Body(NamedTuple):
    """A request's body, decoded, and the document in it: None where there is no body."""

    raw: bytes
    document: Any
    was_coded: bool


_NO_BODY = _Body(b"", None, was_coded=False)


async def _body(hop: Hop, endpoint: Endpoint) -> _Body:
    limit = hop.in_force.snapshot.server.max_body
    raw = await hop.body(limit)
    coding = joined(hop.headers, b"content-encoding")
    plain = raw if coding is None else decoded(raw, coding, limit)
    if not plain and (hop.method != "POST" or not endpoint.known):
        return _NO_BODY
    return _Body(plain, _parsed(plain, any_type=not endpoint.known), was_coded=coding is not None)


def _parsed(raw: bytes, *, any_type: bool) -> Any:
    """The request's document. What we cannot read the way the provider will, we do not send."""
    try:
        document = jsondoc.decode(raw)
    except jsondoc.JsonFault as fault:
        raise InvalidRequest(f"The request's body is not JSON that can be checked: {fault}.") from None
    if not isinstance(document, dict | list if any_type else dict):
        raise InvalidRequest("The request's body must be a JSON object.")
    if jsondoc.has_duplicate_keys(raw, document):
        raise InvalidRequest("The request's body has an object with the same key twice; send each key once.")
    return document


def _identity(hop: Hop, chain: Chain, document: Any) -> Identity:
    """Whose the exchange is; no more than the tenant where nothing asks for it."""
    asked_for = chain.counts or hop.in_force.plan.active or any(isinstance(step.stage, Restore) for step in chain.up)
    if not asked_for:
        return Identity(hop.tenant)
    fields = document if isinstance(document, dict) else {}
    return identify(hop.headers, fields, hop.tenant, hop.runtime.sessions.earlier(hop.tenant), hop.spent)


def _disguise(hop: Hop, chain: Chain, identity: Identity) -> core.Disguise:
    """The placeholders of the exchange's session, where a rule uses any.

    Who has no tenant of their own are told apart by their keys: a session's name is not a secret.
    """
    if not any(isinstance(step.stage, Restore) for step in chain.up):
        return core.NO_DISGUISE
    session = identity.session if hop.tenant != DEFAULT_TENANT else f"{identity.key}/{identity.session}"
    return Disguise(hop.runtime.sessions.pseudonyms(hop.tenant, session), declared=identity.declared)


class _Exchange:
    """One exchange on its way. `chain` is its run through the stages."""

    def __init__(self, hop: Hop, endpoint: Endpoint, body: _Body) -> None:
        self._hop, self._endpoint, self._wire, self._body = hop, endpoint, endpoint.wire, body
        chain = hop.in_force.snapshot.chain
        identity = _identity(hop, chain, body.document)
        exchange = hop.exchange(endpoint.wire.NAME, _disguise(hop, chain, identity), identity)
        self.chain: Run = chain.open(exchange)

    async def run(self) -> None:
        hop, document = self._hop, self._body.document
        fields = document if isinstance(document, dict) else {}
        hop.record.streamed = fields.get("stream", self._endpoint.streams_unasked) is True
        route = self._route(fields)
        slots = [] if document is None else self._wire.request_slots(document)
        refuse_uninspected(hop.in_force.snapshot.policy, fields, slots)
        request = core.Request(document, slots, hop.record.model, hop.record.target)
        asks = self.chain.chain.counts and hop.record.streamed and self._wire.ask_usage(fields)
        stop = await self.chain.request(request)
        if stop is not None:
            await self._stop_request(stop)
            return
        outgoing = Outgoing(document, self._body.raw, request.changed or asks, self._body.was_coded)
        answered = await ask(hop, self._endpoint, route, outgoing, self.chain)
        down = Down(hop, self._endpoint, self.chain, answered.bridge, hides_usage=asks)
        try:
            facts = await down.take(answered.reply, answered.provider)
        except (UpstreamBroken, UpstreamTimeout) as error:
            answered.broke(Facts(Phase.CONTENT, error=error))
            raise
        if facts is not None:
            answered.broke(facts)

    # --- the request ---

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
        hop, down = self._hop, Down(self._hop, self._endpoint, self.chain)
        identity = {"id": self._endpoint.id_prefix + hop.id, "created": int(time.time()), "model": hop.record.model}
        body = jsondoc.encode(down.finished(stop, identity))
        kind = b"application/json"
        if hop.record.streamed:
            kind, body = self._endpoint.stream_type, self._wire.answer_frames(identity, stop.message)
        hop.record.outcome, hop.record.stop_reason = "finished", stop.reason
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await hop.start(200, headers + hop.our_headers(headers) + down.decided())
        await hop.write(body, more=False)


def refuse_uninspected(policy: Policy, document: dict[str, Any], slots: list[Slot]) -> None:
    """Raises Uninspected for what the policy denies because no rule can look into it."""
    denied = {sort for sort in _SORTS if getattr(policy.inspect, sort) == "deny"}
    for sort, path in unseen(document) if denied else ():
        if sort in denied:
            raise _unseen(sort, path)
    if policy.unknown == "deny":
        for slot in slots:
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
