"""A WebSocket: its handshake goes through as a request does, and then bytes go both ways, not looked at.

Nothing here knows frames. Each side's end is passed on, and what the other still says is carried for as long as it
keeps talking; a side that breaks off breaks the other. One task carries what the client says, the exchange's own
what the provider says, and both wait while the other side does not take it.
"""

import asyncio
import time
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, quote_plus

from ..errors import ExchangeError, InvalidRequest, UpstreamBroken, UpstreamTimeout
from ..upstream.connection import SWITCHED, Call, Reply
from ..upstream.targets import Provider
from .door import Hop
from .headers import SUBPROTOCOLS, Headers, entries, joined, shows_key, value_of
from .relay import pass_down
from .watch import ClientLeft

ENDPOINT: Final = "websocket"
# When one side has ended, silence of the other for so long is its end too.
LAST_SECONDS: Final = 10.0
# The provider cannot be told that the client has ended where there is TLS in between: a client that left must not
# cost more than this.
_UNTOLD_SECONDS: Final = 1.0
_OFFER: Final = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]


class ForeignOrigin(ExchangeError):
    status, code, type = 403, "origin_not_allowed", "invalid_request_error"


async def tunnel(hop: Hop) -> None:
    hop.record.endpoint = ENDPOINT
    _check(hop)
    provider, query = _place(hop)
    call = await _ask(hop, provider, query)
    reply = await hop.answer(call)
    if reply.status != SWITCHED:
        await pass_down(hop, provider, reply)
        return
    if not call.switched or (value_of(reply.headers, b"upgrade") or b"").lower() != b"websocket":
        raise UpstreamBroken(f"The provider {provider.name!r} switched to a protocol that was not asked for.")
    await hop.start(SWITCHED, _accepted(hop, provider, reply), reply.reason)
    await _carry(hop, call, provider)


def _check(hop: Hop) -> None:
    if not hop.scope.get("sidecar.switches"):
        raise InvalidRequest(
            "A WebSocket begins with a GET by HTTP/1.1, with `Connection: Upgrade`, `Upgrade: websocket` and no body."
        )
    # A browser asks nobody before it opens a WebSocket: without this any page could use a sidecar that it can reach.
    origin = value_of(hop.headers, b"origin")
    allowed = hop.in_force.snapshot.server.cors_origins
    if origin is not None and "*" not in allowed and origin.decode("latin-1") not in allowed:
        raise ForeignOrigin("Pages of this origin may open no WebSocket here: server.cors_origins does not list it.")


# --- the handshake ---


def _place(hop: Hop) -> tuple[Provider, bytes]:
    """Where it goes, by the model in its query if a model decides that, and its query there."""
    routes, query = hop.in_force.routes, hop.scope["sidecar.query"]
    names = _models(query) if routes.by_model else []
    if len(names) > 1:
        raise InvalidRequest("The query names more than one model.", param="model")
    if not names:
        return routes.default, query
    target = hop.place(names[0])
    return target.provider, query if target.model == names[0] else _renamed(query, target.model)


def _models(query: bytes) -> list[str]:
    fields = parse_qsl(query[1:].decode("latin-1"), keep_blank_values=True)
    return [value for name, value in fields if name == "model"]


def _renamed(query: bytes, model: str) -> bytes:
    """The query with another model in the place of its only one; everything else stays as it is."""
    fields = query[1:].split(b"&")
    said = b"model=" + quote_plus(model).encode("ascii")
    return b"?" + b"&".join([said if _models(b"?" + field) else field for field in fields])


async def _ask(hop: Hop, provider: Provider, query: bytes) -> Call:
    client, record = hop.client(provider), hop.record
    record.attempts += 1
    record.target = record.target or provider.name
    hop.watch.limit(provider.timeouts)
    began = time.perf_counter()
    target = client.target(hop.scope["raw_path"], query)
    call = hop.upstream = await client.switch(hop.method, target, _asking(hop, provider))
    record.sent = time.perf_counter()
    record.waited += record.sent - began
    return call


def _asking(hop: Hop, provider: Provider) -> Headers:
    """The client's headers with the offer. Of its subprotocols an entry with a key goes no further than other keys do.

    That is: not if one is a tenant's, and not to a provider for which we have a key.
    """
    headers = hop.request_headers(provider)
    offered = joined(hop.headers, SUBPROTOCOLS)
    if offered is not None and (SUBPROTOCOLS in hop.spent or provider.api_key is not None):
        headers = [header for header in headers if header[0] != SUBPROTOCOLS]
        if kept := b", ".join([entry for entry in entries(offered) if entry and not shows_key(entry)]):
            headers.append((SUBPROTOCOLS, kept))
    return headers + _OFFER


def _accepted(hop: Hop, provider: Provider, reply: Reply) -> Headers:
    headers = [header for header in hop.reply_headers(reply) if header[0] != b"content-length"]
    mask = hop.mask(provider)
    return _OFFER + (mask.headers(headers) if mask else headers)


# --- what it carries ---


async def _carry(hop: Hop, call: Call, provider: Provider) -> None:
    """Until both sides have ended, or one breaks off. All of it is waiting, none of it our own doing."""
    began, waited = time.perf_counter(), hop.record.waited
    up = hop.upload = asyncio.create_task(_up(hop, call, provider))
    try:
        await _down(hop, call)
        await _last_words(hop, up)
    except asyncio.CancelledError as cancelled:
        meaning = hop.watch.meaning(cancelled)
        if up.done() and isinstance(meaning, UpstreamTimeout) and meaning.phase == "idle":
            meaning = ClientLeft()
        raise meaning from None
    finally:
        hop.record.waited = waited + time.perf_counter() - began


async def _up(hop: Hop, call: Call, provider: Provider) -> None:
    more = True
    try:
        while more:
            piece, more = await hop.message()
            hop.watch.wait("idle")
            if piece:
                await call.write(piece, chunked=False)
        last = LAST_SECONDS if call.half_close() else _UNTOLD_SECONDS
    except ClientLeft:
        return  # the watch has told the exchange
    except ExchangeError as error:
        call.fail(error)
        return
    hop.watch.limit(replace(provider.timeouts, idle=min(last, provider.timeouts.idle)))
    hop.watch.wait("idle")


async def _down(hop: Hop, call: Call) -> None:
    hop.watch.wait("idle")
    while data := await call.read():
        hop.watch.wait("idle")
        await hop.write(data, more=True)
    await hop.write(b"", more=False)


async def _last_words(hop: Hop, up: asyncio.Task[None]) -> None:
    """The provider has ended. So does the client: by saying so, by leaving, or by silence."""
    said = -1
    try:
        while not up.done() and said != hop.record.bytes_in:
            said = hop.record.bytes_in
            hop.watch.rest()
            await asyncio.wait([up], timeout=LAST_SECONDS)
    except asyncio.CancelledError as cancelled:
        meaning = hop.watch.meaning(cancelled)
        if isinstance(meaning, asyncio.CancelledError):
            raise meaning from None
