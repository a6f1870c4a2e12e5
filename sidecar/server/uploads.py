"""Request bodies that are no JSON document: forms, text files, and what is no text at all.

A body is looked at as it arrives. Up to the policy's `server.max_body` it is held, so that a rule that blocks leaves
nothing with the provider; what is larger goes up piece by piece, each after it was looked at.
"""

import codecs
from dataclasses import replace
from typing import Final, Protocol
from urllib.parse import quote_plus, unquote_to_bytes

from ..core.chain import Run
from ..core.decision import Block, Finish, Stop
from ..core.events import Event, Text
from ..core.exchange import Request
from ..core.surface import Lane, Surface
from ..errors import ExchangeError, InvalidRequest, PayloadTooLarge, Uninspected, UpstreamBroken
from ..upstream.connection import Call, Reply
from ..upstream.targets import Provider
from ..wire import anything
from ..wire.coding import Decoder, UnknownCoding, decoder
from ..wire.multipart import (
    MAX_FIELD,
    PEEK,
    Closing,
    Field,
    FileBegins,
    FileData,
    FileEnds,
    FileText,
    Form,
    PartBegins,
    Told,
    boundary_of,
    looks_like_text,
)
from ..wire.stream import said_on, stopped_by
from .decided import tripped
from .door import Hop, too_large
from .endpoints import Endpoint, FieldOf
from .headers import Headers, framing, joined, value_of
from .replies import Down, media_of

_FORM: Final = b"multipart/form-data"
_URL_FORM: Final = b"application/x-www-form-urlencoded"
_JSON: Final = frozenset((b"application/json", b"text/json"))
_METHODS: Final = frozenset(("POST", "PUT", "PATCH"))
# How much of a file tells whether it is text.


def is_upload(hop: Hop, endpoint: Endpoint) -> bool:
    """Whether the body is something else than a JSON document."""
    if not endpoint.forms or not (hop.method in _METHODS or _has_body(hop.headers)):
        return False
    media = media_of(hop.headers)
    return media == _FORM or (
        not endpoint.known and bool(media) and media not in _JSON and not media.endswith(b"+json")
    )


def _has_body(headers: Headers) -> bool:
    length = value_of(headers, b"content-length")
    return value_of(headers, b"transfer-encoding") is not None or (length is not None and int(length) > 0)


def _stopped(hop: Hop, endpoint: Endpoint, run: Run, stop: Stop) -> ExchangeError:
    """An upload is never answered in the model's place: clients of files expect none of its words."""
    if isinstance(stop, Finish):
        return Down(hop, endpoint, run).unanswered(stop)
    hop.record.outcome = "blocked"
    return tripped(stop, "request")


async def upload(hop: Hop, endpoint: Endpoint, run: Run) -> None:
    """The whole exchange: the body up, looked at piece by piece, and the reply down."""
    hop.bound(hop.in_force.snapshot.server.max_upload)
    stop = await run.request(Request({}, []))
    if stop is not None:
        raise _stopped(hop, endpoint, run, stop)
    up = _Up(hop)
    body = body_for(hop, endpoint, Sight(hop, run))
    undo = _undoing(hop)
    more, size = True, 0
    while more:
        data, more = await hop.message()
        size += len(data)
        if size > hop.in_force.snapshot.server.max_upload:
            raise too_large(hop.in_force.snapshot.server.max_upload)
        for piece in undo.pieces(data) if undo else (data,):
            await up.write(body.feed(piece))
    if undo is not None:
        undo.finish()
    await up.write(body.finish())
    reply = await up.finish()
    await Down(hop, endpoint, run).take(reply, up.provider)


def _undoing(hop: Hop) -> Decoder | None:
    coding = joined(hop.headers, b"content-encoding")
    if coding is None:
        return None
    try:
        return decoder(coding.decode("latin-1"), hop.in_force.snapshot.server.max_upload, broken=InvalidRequest)
    except UnknownCoding as error:
        raise InvalidRequest(str(error)) from None


class _Up:
    """The body on its way to the provider: held while it is small, streamed once it is not."""

    def __init__(self, hop: Hop) -> None:
        self._hop = hop
        self._held: list[bytes] = []
        self._size = 0
        self._call: Call | None = None
        self.provider: Provider = hop.in_force.routes.default

    async def write(self, data: bytes) -> None:
        if not data:
            return
        if self._call is not None:
            await self._pass(self._call, data)
            return
        self._held.append(data)
        self._size += len(data)
        if self._size > self._hop.in_force.snapshot.server.max_body:
            self._call = await self._hop.open(self._provider(), self._headers(None), None)
            held, self._held = b"".join(self._held), []
            await self._pass(self._call, held)

    async def _pass(self, call: Call, data: bytes) -> None:
        """A provider that has answered already may take no more of the body: its answer counts."""
        if call.reply is None:
            self._hop.uploading("idle")
            try:
                await call.write(data, chunked=True)
            except UpstreamBroken:
                if call.reply is None:
                    raise
            self._hop.uploading("")

    async def finish(self) -> Reply:
        if self._call is None:
            body = b"".join(self._held)
            return await self._hop.send(self._provider(), self._headers(len(body)), body)
        if self._call.reply is None:
            self._call.end(chunked=True)
        return await self._hop.answer(self._call)

    def _provider(self) -> Provider:
        target = self._hop.target
        self.provider = target.provider if target else self._hop.in_force.routes.default
        return self.provider

    def _headers(self, length: int | None) -> Headers:
        headers = self._hop.request_headers(self._provider())
        return [h for h in headers if h[0] != b"content-encoding"] + framing(length, declared=True)


class Sight:
    """What looks at the texts of one upload."""

    def __init__(self, hop: Hop, run: Run) -> None:
        self._hop, self._run = hop, run

    def said(self, lane: Lane, event: Event) -> str:
        """What becomes of more text on a lane, or of its end. Raises GuardrailTripped."""
        events = self._run.send(event)
        stop = stopped_by(events)
        if stop is not None:
            self._hop.record.outcome = "blocked"
            raise tripped(stop if isinstance(stop, Block) else Block(stop.rule, stop.surface), "request")
        return said_on(events, lane)

    def refuse_unknown(self, surface: Surface, field: str) -> None:
        """Raises Uninspected where the policy denies fields that no API documents."""
        if surface.unknown and self._hop.in_force.snapshot.unknown == "deny":
            raise Uninspected(
                f"The field {field[:100]!r} is not one that the API documents (inspect.unknown).", param=field
            )

    def refuse_unseen(self, media: bytes, field: str | None) -> None:
        """What is no text goes up unseen, if the policy lets it. Raises Uninspected."""
        sort = _SORTS.get(media.partition(b"/")[0], "files")
        if getattr(self._hop.in_force.snapshot.policy.inspect, sort) == "deny":
            raise Uninspected(
                f"This sidecar's policy lets no {sort} through that it cannot look into (inspect.{sort}).", param=field
            )

    def model(self, name: str) -> str:
        """The model's name at the target that serves it. Raises ModelNotFound."""
        return self._hop.place(name).model


_SORTS: Final = {b"image": "images", b"audio": "audio", b"video": "audio"}


class Body(Protocol):
    """A request's body that is edited as it passes."""

    def feed(self, data: bytes) -> bytes: ...
    def finish(self) -> bytes: ...


class TextFile:
    """A file: looked at if it begins as text does, else passed as it is. What is no UTF-8 in it stays as it is."""

    def __init__(self, sight: Sight, lane: Lane, media: bytes, field: str | None = None) -> None:
        self._sight, self._media, self._field = sight, media, field
        self._text = anything.RunningText(sight.said, lane)
        self._begins = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._binary = False

    def feed(self, data: bytes) -> bytes:
        if self._binary:
            return data
        if self._decoder is None:
            self._begins += data
            if len(self._begins) < PEEK:
                return b""
            data = self._begin()
        return data if self._decoder is None else _bytes(self._text.feed(self._decoder.decode(data)))

    def _begin(self) -> bytes:
        data, self._begins = self._begins, b""
        if looks_like_text(data[:PEEK]):
            self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        else:
            self._binary = True
            self._sight.refuse_unseen(self._media, self._field)
        return data

    def finish(self) -> bytes:
        data = self._begin() if self._decoder is None and not self._binary else b""
        if self._decoder is None:
            return data
        return _bytes(self._text.feed(self._decoder.decode(data, True)) + self._text.finish())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class FormBody:
    """A multipart form: its fields each as one text, its files as they are."""

    def __init__(self, sight: Sight, boundary: bytes, field_of: FieldOf) -> None:
        self._sight, self._field_of = sight, field_of
        self._form = Form(boundary)
        self._files = 0
        self._file = anything.RunningText(sight.said, Lane(anything.UPLOAD))

    def feed(self, data: bytes) -> bytes:
        return b"".join(map(self._passed, self._form.feed(data)))

    def finish(self) -> bytes:
        self._form.finish()
        return b""

    def _passed(self, told: Told) -> bytes:
        match told:
            case Field():
                return self._field(told)
            case FileBegins(begins, is_text):
                return self._begin(begins, is_text=is_text)
            case FileText(text):
                return _bytes(self._file.feed(text))
            case FileEnds(raw):
                return _bytes(self._file.finish()) + raw
            case FileData(raw) | Closing(raw):
                return raw

    def _field(self, field: Field) -> bytes:
        name, text = field.begins.name, field.text
        surface = self._field_of(name)
        if surface is not None:
            self._sight.refuse_unknown(surface, name)
        said = self._sight.model(text) if name == "model" else self._look(surface, text)
        return field.raw if said == text else field.with_text(said)

    def _look(self, surface: Surface | None, text: str) -> str:
        if surface is None or not text:
            return text
        lane = Lane(surface)
        return self._sight.said(lane, Text(lane, text, last=True))

    def _begin(self, begins: PartBegins, *, is_text: bool) -> bytes:
        """A file's header. Its name is a text as well."""
        self._files += 1
        self._file = anything.RunningText(self._sight.said, Lane(anything.UPLOAD, self._files))
        if not is_text:
            media = next((value for name, value in begins.headers if name == b"content-type"), b"")
            self._sight.refuse_unseen(media.lower(), begins.name)
        filename = begins.filename or ""
        said = self._look(anything.UPLOAD, filename)
        if said != filename:
            begins = replace(begins, raw=begins.renamed(said))
        return begins.unsized() if is_text else begins.raw


class UrlForm:
    """A form as URLs write it: each name and each value is a text. It is held whole, and bounded as one field is."""

    def __init__(self, sight: Sight, media: bytes) -> None:
        self._sight, self._media = sight, media
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        self._held += data
        if len(self._held) > MAX_FIELD:
            raise PayloadTooLarge(
                f"The form is larger than {MAX_FIELD:,} bytes; send its files as multipart/form-data."
            )
        return b""

    def finish(self) -> bytes:
        body = bytes(self._held)
        if body.lstrip()[:1] in (b"{", b"["):  # what curl calls a form unless it is told what it is
            text = TextFile(self._sight, Lane(anything.UPLOAD), self._media)
            return text.feed(body) + text.finish()
        return b"&".join(map(self._pair, body.split(b"&")))

    def _pair(self, pair: bytes) -> bytes:
        name, equals, value = pair.partition(b"=")
        return self._looked(name) + equals + (self._model(value) if name == b"model" else self._looked(value))

    def _looked(self, written: bytes) -> bytes:
        text = _unwritten(written)
        if not text:
            return written
        lane = Lane(anything.UPLOAD)
        said = self._sight.said(lane, Text(lane, text, last=True))
        return written if said == text else _written(said)

    def _model(self, written: bytes) -> bytes:
        name = _unwritten(written)
        said = self._sight.model(name)
        return written if said == name else _written(said)


def _unwritten(written: bytes) -> str:
    return unquote_to_bytes(written.replace(b"+", b" ")).decode("utf-8", "surrogateescape")


def _written(text: str) -> bytes:
    return quote_plus(_bytes(text)).encode("ascii")


def body_for(hop: Hop, endpoint: Endpoint, sight: Sight) -> Body:
    media = media_of(hop.headers)
    if media == _FORM:
        boundary = boundary_of(value_of(hop.headers, b"content-type") or b"")
        return FormBody(sight, boundary, endpoint.field_of or _undocumented)
    return UrlForm(sight, media) if media == _URL_FORM else TextFile(sight, Lane(anything.UPLOAD), media)


def _undocumented(name: str) -> Surface:
    return anything.UPLOAD
