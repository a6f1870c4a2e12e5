"""The unguarded exchange: the request goes up and the reply comes down as the bytes they are."""

import asyncio

from ..errors import ExchangeError, InvalidRequest, UpstreamBroken
from ..upstream.connection import Call, Headers, Reply
from ..upstream.targets import Provider, Target
from ..wire import jsondoc
from ..wire.coding import Decoder, UnknownCoding, decoder
from .door import Hop, checked, too_large
from .headers import framing, joined, value_of
from .masking import KeyMask
from .watch import ClientLeft

_MODEL_METHODS = frozenset(("POST", "PUT", "PATCH"))


async def relay(hop: Hop) -> None:
    """Any method, any path. A body is held whole only where the model in it decides where it goes."""
    if hop.in_force.routes.by_model and hop.method in _MODEL_METHODS and _is_json(hop):
        provider, reply = await _route_by_model(hop)
    else:
        provider = hop.in_force.routes.default
        reply = await _pass_up(hop, provider)
    await pass_down(hop, provider, reply)


def _is_json(hop: Hop) -> bool:
    return b"json" in (value_of(hop.headers, b"content-type") or b"").lower()


# --- up ---


async def _pass_up(hop: Hop, provider: Provider) -> Reply:
    limit = None if hop.inert else hop.in_force.snapshot.server.max_upload
    if limit is not None:
        hop.bound(limit)
    piece, more = await hop.message()
    headers = hop.request_headers(provider)
    declared = value_of(hop.headers, b"content-length")
    if not more:
        body = piece if limit is None else checked(piece, limit)
        return await hop.send(provider, headers + framing(len(body), declared is not None), body)
    headers += framing(None if declared is None else int(declared), declared=True)
    call = await hop.open(provider, headers, None)
    hop.upload = asyncio.create_task(_upload(hop, call, piece, limit, chunked=declared is None))
    return await hop.answer(call)


async def _upload(hop: Hop, call: Call, piece: bytes, limit: int | None, chunked: bool) -> None:
    """Sends the body as it arrives, while the exchange already waits for the reply: a refusal may come early."""
    try:
        await _pump(hop, call, piece, limit, chunked)
    except ClientLeft:
        pass  # the watch has told the exchange
    except ExchangeError as error:
        call.fail(error)


async def _pump(hop: Hop, call: Call, piece: bytes, limit: int | None, chunked: bool) -> None:
    more, size = True, 0
    while True:
        size += len(piece)
        if limit is not None and size > limit:
            raise too_large(limit)
        if piece:
            hop.uploading("idle")
            await call.write(piece, chunked)
            hop.uploading("")
        if not more:
            break
        piece, more = await hop.message()
    call.end(chunked)
    hop.uploading("first_byte")


async def _route_by_model(hop: Hop) -> tuple[Provider, Reply]:
    limit = hop.in_force.snapshot.server.max_body
    raw = await hop.body(limit)
    coding = joined(hop.headers, b"content-encoding")
    plain = decoded(raw, coding, limit) if coding else raw
    target, body = _placed(hop, plain)
    provider = target.provider if target else hop.in_force.routes.default
    headers = hop.request_headers(provider)
    if body is None:
        body = raw
    elif coding:
        headers = [h for h in headers if h[0] != b"content-encoding"]
    return provider, await hop.send(provider, headers + framing(len(body), declared=True), body)


def decoded(raw: bytes, coding: bytes, limit: int) -> bytes:
    """A request's body without its content coding. Raises InvalidRequest and PayloadTooLarge."""
    try:
        undo = decoder(coding.decode("latin-1"), limit, broken=InvalidRequest)
    except UnknownCoding as error:
        raise InvalidRequest(str(error)) from None
    return undo.feed(raw) + undo.finish()


def _placed(hop: Hop, plain: bytes) -> tuple[Target | None, bytes | None]:
    """Where a body's model lives, and the body under the model's name there if that is another one."""
    document = jsondoc.readable(plain)  # of what is none the provider says what is wrong with it
    name = document.get("model") if isinstance(document, dict) else None
    if not isinstance(name, str):
        return None, None
    target = hop.place(name)
    if target.model == name:
        return target, None
    document["model"] = target.model
    return target, jsondoc.encode(document)


# --- down ---


async def pass_down(hop: Hop, provider: Provider, reply: Reply, first: bytes = b"") -> None:
    """A reply as it came: status, headers and body, still coded. `first` is what has been read of the body."""
    headers = hop.reply_headers(reply)
    hop.record.streamed = (value_of(headers, b"content-type") or b"").startswith(b"text/event-stream")
    if (mask := hop.mask(provider)) is not None:
        await _pass_down_masked(hop, reply, headers, mask, first)
        return
    await hop.start(reply.status, headers, reply.reason)
    if first:
        await hop.write(first, more=True)
    while True:
        data = await hop.read(reply)
        complete = reply.complete
        await hop.write(data, more=not complete)
        if complete:
            return


async def _pass_down_masked(hop: Hop, reply: Reply, headers: Headers, mask: KeyMask, first: bytes) -> None:
    undo, headers = _uncoded(hop, mask.headers(headers))
    await hop.start(reply.status, headers, reply.reason)
    while first or not reply.complete:
        data, first = first or await hop.read(reply), b""
        for piece in undo.pieces(data) if undo else (data,):
            if shown := mask.feed(piece):
                await hop.write(shown, more=True)
    if undo:
        undo.finish()
    await hop.write(mask.finish(), more=False)


def _uncoded(hop: Hop, headers: Headers) -> tuple[Decoder | None, Headers]:
    """A provider that compresses unasked: what we must look into goes down plain."""
    undo = undoing(headers) if hop.method != "HEAD" else None
    if undo is None:
        return None, headers
    return undo, [h for h in headers if h[0] not in (b"content-encoding", b"content-length")]


def undoing(headers: Headers, limit: int | None = None) -> Decoder | None:
    """What undoes a reply's content coding, up to `limit` bytes."""
    coding = joined(headers, b"content-encoding")
    if coding is None:
        return None
    try:
        return decoder(coding.decode("latin-1"), limit, too_large=UpstreamBroken)
    except UnknownCoding:
        raise UpstreamBroken("The provider's reply has a content coding that was not asked for.") from None
