"""The guarded exchange: whose it is, what its body holds, and its call through the whole chain."""

from typing import Any

from ..core import exchange as core
from ..core.chain import Chain
from ..core.identity import Identity
from ..errors import InvalidRequest
from ..stages.restore import Restore
from ..text.pseudonyms import Disguise
from ..wire import jsondoc
from .admission import DEFAULT_TENANT
from .asking import Calls, KeepAlive
from .call import NO_BODY, Body, Call, settled
from .decided import decisions
from .door import Hop
from .endpoints import Endpoint
from .headers import joined
from .identity import identify
from .relay import decoded
from .uploads import is_upload, upload


class Guarded:
    """One endpoint's exchanges."""

    __slots__ = ("endpoint",)

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    async def __call__(self, hop: Hop) -> None:
        chain = hop.in_force.snapshot.chain
        if is_upload(hop, self.endpoint):
            run = chain.open(_exchange(hop, chain, self.endpoint, NO_BODY))
            work = upload(hop, self.endpoint, run)
        else:
            body = await _body(hop, self.endpoint)
            exchange = _exchange(hop, chain, self.endpoint, body)
            if chain.asks:
                await self._asking(hop, chain, exchange, body)
                return
            run = chain.open(exchange)
            work = Call(hop, self.endpoint, body, run).make()
        try:
            await settled(hop, run, work)
        finally:
            hop.record.decisions = tuple(decisions(run.verdicts))

    async def _asking(self, hop: Hop, chain: Chain, exchange: core.Exchange, body: Body) -> None:
        """The same where stages may make calls of their own."""
        calls = Calls(hop, self.endpoint, body)
        run = chain.open(exchange, calls.asking)
        call = Call(hop, self.endpoint, body, run, KeepAlive(hop, self.endpoint))
        try:
            await settled(hop, run, call.make())
        finally:
            hop.record.decisions = tuple(decisions(run.verdicts))
            calls.tell()


def _exchange(hop: Hop, chain: Chain, endpoint: Endpoint, body: Body) -> core.Exchange:
    identity = _identity(hop, chain, body.document)
    return hop.exchange(endpoint.wire.NAME, _disguise(hop, chain, identity), identity)


async def _body(hop: Hop, endpoint: Endpoint) -> Body:
    limit = hop.in_force.snapshot.server.max_body
    raw = await hop.body(limit)
    coding = joined(hop.headers, b"content-encoding")
    plain = raw if coding is None else decoded(raw, coding, limit)
    if not plain and (hop.method != "POST" or not endpoint.known):
        return NO_BODY
    return Body(plain, _parsed(plain, any_type=not endpoint.known), was_coded=coding is not None)


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
    asked_for = chain.counts or chain.asks or hop.in_force.plan.active
    if not asked_for and not any(isinstance(step.stage, Restore) for step in chain.up):
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
