"""One call: its attempts, at one target after the other, until a reply is good enough to be handed down.

What comes next is decided in `upstream.attempts`; here it is carried out. A reply is held until it is known to be one:
an error's body, a whole document, a stream up to its first content. Once content may leave nothing is asked again.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ..core.chain import Run
from ..core.events import Wasted
from ..core.usage import NOT_REPORTED, Usage, merged
from ..errors import ExchangeError, InvalidRequest, UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from ..upstream.attempts import Attempt, Attempts, Outcome
from ..upstream.classify import Facts, Failure, Phase, classify, status_in, words_of
from ..upstream.connection import Reply
from ..upstream.routing import Candidate, Route
from ..upstream.targets import Provider, Target
from ..upstream.waits import stated
from ..wire import chat, jsondoc
from ..wire.begun import CONVERSATIONS, answers, finish_of, has_failed, only_error, speaks
from ..wire.bridges import Bridge
from ..wire.stream import Cutter, Document, Frame, Wire
from .bridging import bridge_for, crosses, headers_across, in_form
from .door import Hop
from .endpoints import Endpoint
from .headers import Headers, framing, readable, value_of
from .held import Held
from .relay import undoing
from .replies import EVENT_BEGINS, MAX_REPLY, STREAMS, media_of

# An error's body up to this size is read before it is decided what comes next.
MAX_ERROR: Final = 1 << 20
# A stream that has said so much without any content is handed down as it is.
MAX_HELD: Final = 1 << 20
# A few frames of a stream.
_SLICE: Final = 1024


class Outgoing(NamedTuple):
    """A request that has been through the stages. `document` is None where there is no body."""

    document: Any
    raw: bytes
    changed: bool
    was_coded: bool


class Answered(NamedTuple):
    """A reply that goes to the client, and what stands between it and its provider.

    `broke` is to be told how the reply failed on its way to the client, if it did.
    """

    reply: Reply
    provider: Provider
    bridge: Bridge | None
    broke: Callable[[Facts], None] = lambda facts: None


class _Tried(NamedTuple):
    """How an attempt went: a reply, be it an error, or what kept one from coming."""

    outcome: Outcome
    answered: Answered | None = None
    error: ExchangeError | None = None
    used: Usage = NOT_REPORTED


class _Last(NamedTuple):
    """What the client gets if nothing better comes, and whose it is."""

    answered: Answered
    target: str


async def ask(hop: Hop, endpoint: Endpoint, route: Route, outgoing: Outgoing, run: Run) -> Answered:
    """The reply to hand down: a good one, or of the errors the last that a provider gave. Raises ExchangeError."""
    if hop.in_force.plan.active:
        return await Calling(hop, endpoint, route, outgoing, run).ask()
    candidate = route.ordered(random.random)[0]
    target = candidate.targets[route.keys(candidate, random.random)[0]]
    return await prepared(hop, endpoint, outgoing, candidate, target).send(hop)


class Prepared(NamedTuple):
    """A request as one target gets it."""

    provider: Provider
    headers: Headers
    body: bytes
    bridge: Bridge | None

    async def send(self, hop: Hop) -> Answered:
        bridge, across = self.bridge, crosses(self.bridge)
        path = bridge.PATH if bridge is not None and across else None
        reply = await hop.send(self.provider, self.headers, self.body, path)
        # An error of the client's own API passes as it came.
        return Answered(reply, self.provider, bridge if across or reply.status < 400 else None)


def prepared(hop: Hop, endpoint: Endpoint, outgoing: Outgoing, candidate: Candidate, target: Target) -> Prepared:
    """Raises InvalidRequest for what the target's API has no counterpart of."""
    document, changed, provider = outgoing.document, outgoing.changed, target.provider
    bridge = None
    if isinstance(document, dict):
        adapted = candidate.adapt(document)
        # A stage may have changed the name itself, where no module knows that it is one.
        if target.model not in ("", hop.record.model):
            adapted = {**adapted, "model": target.model}
        bridge = bridge_for(endpoint, provider, adapted, hop.in_force.snapshot.policy)
        told = adapted if bridge is None else bridge.request()
        if provider.response_format != "json_schema":
            told = in_form(chat.NAME if bridge is not None else endpoint.wire.NAME, provider, told)
        changed = changed or told is not document
        document = told
    body = jsondoc.encode(document) if changed else outgoing.raw
    headers = hop.request_headers(provider)
    if changed or outgoing.was_coded:
        headers = [h for h in headers if h[0] != b"content-encoding"]
    if crosses(bridge):
        headers = headers_across(headers)
    if provider.api_key is None:
        headers = readable(headers)
    declared = value_of(hop.headers, b"content-length") is not None or hop.method == "POST"
    return Prepared(provider, headers + framing(len(body), declared=declared), body, bridge)


class Calling:
    """The attempts of one call."""

    def __init__(self, hop: Hop, endpoint: Endpoint, route: Route, outgoing: Outgoing, run: Run) -> None:
        self._hop, self._endpoint, self._outgoing, self._run = hop, endpoint, outgoing, run
        identity = run.exchange.identity
        force = hop.in_force
        self._words = force.words
        self._must_speak = endpoint.known and hop.method == "POST" and endpoint.wire.NAME in CONVERSATIONS
        self._last: _Last | None = None
        self._error: ExchangeError | None = None
        self._attempts = Attempts(
            route,
            force.health,
            force.plan,
            random.random,
            time.monotonic,
            session=f"{identity.tenant}/{identity.session}",
            caller=identity.key,
        )

    async def ask(self) -> Answered:
        """As the function does, over several attempts."""
        attempt: Attempt | None = self._attempts.first()
        try:
            while attempt is not None:
                attempt = await self._after(attempt)
        except BaseException:
            self._attempts.abandon()
            raise
        finally:
            self._hop.watch.rest()
            self._tell()
        return self._handed_down()

    async def _after(self, attempt: Attempt) -> Attempt | None:
        """Makes an attempt. The one that follows it, if any does."""
        try:
            request = prepared(self._hop, self._endpoint, self._outgoing, attempt.candidate, attempt.target)
        except InvalidRequest as error:
            self._error = self._error or error
            return self._attempts.unfit()
        tried = await self._try(attempt, request)
        failure, target = tried.outcome.failure, _named(attempt.target)
        self._error = tried.error or self._error
        if tried.answered is not None and failure is not Failure.EMPTY:
            self._last = _Last(tried.answered, target)
        if failure is Failure.NONE:
            self._attempts.content()
        following = self._attempts.after(tried.outcome)
        if following is not None and tried.used != NOT_REPORTED:
            self._run.feed(Wasted(tried.used, target))
        return following

    def _tell(self) -> None:
        """For the record and the client, where there was more than one good attempt."""
        trail = self._attempts.trail
        if len(trail.tried) > 1 or any(one.failure is not Failure.NONE for one in trail.tried):
            self._hop.record.trail, self._hop.trail = tuple(trail.told()), trail.header()

    def _handed_down(self) -> Answered:
        """A good reply; else the last error that a provider answered; else an error of ours is raised."""
        if self._last is not None:
            self._hop.record.target = self._last.target
            return self._last.answered._replace(broke=self._broke)
        trail = self._attempts.trail
        if self._error is not None and len(trail.tried) <= 1:
            raise self._error
        raise trail.error()

    def _broke(self, facts: Facts) -> None:
        """The reply failed on its way to the client, who cannot be given another one."""
        if self._attempts.trail.tried[-1].failure is Failure.NONE and not _is_over(facts.error):
            self._attempts.broke(classify(facts, self._words))
            self._tell()

    # --- one attempt ---

    async def _try(self, attempt: Attempt, request: Prepared) -> _Tried:
        hop = self._hop
        hop.watch.rest()
        if attempt.number > 1:
            self._let_go()
        if attempt.wait:
            await asyncio.sleep(attempt.wait)
        hop.record.target = _named(attempt.target)
        # Where the exchange ends sooner, that is enough.
        left = None if attempt.left is None or attempt.left > request.provider.timeouts.total else attempt.left
        try:
            if left is None:
                return await self._judged(await request.send(hop))
            async with asyncio.timeout(left):
                return await self._judged(await request.send(hop))
        except TimeoutError:
            return self._failed(UpstreamTimeout("deadline", hop.in_force.plan.deadline or 0.0))
        except (UpstreamUnreachable, UpstreamBroken, UpstreamTimeout) as error:
            if _is_over(error):
                raise
            return self._failed(error)

    def _let_go(self) -> None:
        """The attempt before has failed: nobody waits for the rest of its reply."""
        if self._hop.upstream is not None:
            self._hop.upstream.close()
        if self._last is not None and isinstance(self._last.answered.reply, Held):
            self._last.answered.reply.cut()

    def _failed(self, error: ExchangeError) -> _Tried:
        return _Tried(Outcome(classify(Facts(error=error), self._words)), error=error)

    # --- what a reply is ---

    async def _judged(self, answered: Answered) -> _Tried:
        reply = answered.reply
        media, document, used = media_of(reply.headers), None, NOT_REPORTED
        if reply.status >= 400:
            pieces, whole = await self._read(reply, MAX_ERROR)
            facts = _error_facts(reply, b"".join(pieces))
        elif self._hop.method == "HEAD" or (self._endpoint.binary and media not in STREAMS and b"json" not in media):
            return _Tried(Outcome(Failure.NONE, reply.status), answered)
        elif media in STREAMS:
            pieces, whole, facts, used = await self._begun(answered, STREAMS[media].cutter())
        else:
            pieces, whole = await self._read(reply, MAX_REPLY)
            pieces = [b"".join(pieces)]
            facts, document = self._whole_facts(answered, pieces[0])
            if document is not None:
                used = self._speaks(answered).usage(document) or used
        held = _held(reply, pieces, facts, whole=whole)
        held.parsed = None if document is None else (pieces[0], document)
        wait = stated(reply.headers, time.time()) if reply.status >= 400 else None
        outcome = Outcome(classify(facts, self._words), held.status, wait)
        return _Tried(outcome, answered._replace(reply=held), used=used)

    async def _read(self, reply: Reply, limit: int) -> tuple[list[bytes], bool]:
        """The reply's body, and whether that is all of it."""
        pieces: list[bytes] = []
        size = 0
        while not reply.complete and size <= limit:
            pieces.append(await self._hop.read(reply))
            size += len(pieces[-1])
        return pieces, reply.complete

    def _whole_facts(self, answered: Answered, body: bytes) -> tuple[Facts, Any]:
        """What a whole reply is, with its document where it has been read as it came."""
        reply, wire = answered.reply, self._speaks(answered)
        if not self._must_speak or not reply.complete:
            return Facts(Phase.BODY, reply.status), None
        plain = _plain(reply, body)
        document = jsondoc.readable(plain)
        if not isinstance(document, dict):
            return Facts(Phase.BODY, reply.status, spoke=plain.lstrip().startswith(EVENT_BEGINS)), None
        if wire.is_error(document) or has_failed(document):
            return _said_error(reply, document, alone=only_error(document)), None
        facts = Facts(Phase.BODY, reply.status, finish=finish_of(document), spoke=answers(document))
        return facts, document if plain is body else None

    def _speaks(self, answered: Answered) -> Wire:
        """The API that the provider speaks."""
        return self._endpoint.wire if answered.bridge is None else chat

    async def _begun(self, answered: Answered, cutter: Cutter) -> tuple[list[bytes], bool, Facts, Usage]:
        """A stream up to its first content: what came, whether that is all, what it is, and what it says was used."""
        reply, wire, undo = answered.reply, self._speaks(answered), undoing(answered.reply.headers)
        pieces: list[bytes] = []
        size, finish, used = 0, "", NOT_REPORTED
        while not reply.complete and size <= MAX_HELD:
            data = await self._hop.read(reply)
            pieces.append(data)
            size += len(data)
            plain = b"".join(undo.pieces(data)) if undo else data
            for document in _documents(_frames(cutter, plain, last=reply.complete)):
                if wire.is_error(document):
                    return pieces, reply.complete, _said_error(reply, document), used
                if not self._must_speak or speaks(document):
                    return pieces, reply.complete, Facts(Phase.CONTENT, reply.status), used
                used = merged(used, wire.usage(document) or used)
                finish = finish_of(document) or finish
        spoke = not reply.complete or not self._must_speak
        return pieces, reply.complete, Facts(Phase.BODY, reply.status, finish=finish, spoke=spoke), used


def _is_over(error: ExchangeError | None) -> bool:
    """Whether the exchange has taken as long as it may: nothing more is begun, and it is no target's fault."""
    return isinstance(error, UpstreamTimeout) and error.phase == "total"


def _named(target: Target) -> str:
    return str(target) if target.model else target.provider.name


def _error_facts(reply: Reply, body: bytes) -> Facts:
    names, param = words_of(jsondoc.readable(_plain(reply, body)) if reply.complete else None)
    return Facts(Phase.HEADERS, reply.status, names, param, said_error=True)


def _said_error(reply: Reply, document: Document, *, alone: bool = False) -> Facts:
    """An error in a reply that began well. `alone`: the reply is nothing else, and its status is not true."""
    names, param = words_of(document)
    return Facts(Phase.HEADERS if alone else Phase.BODY, reply.status, names, param, said_error=True)


def _held(reply: Reply, pieces: list[bytes], facts: Facts, *, whole: bool) -> Held:
    held = Held(reply, pieces, rest=not whole)
    if facts.phase is Phase.HEADERS and reply.status < 400:
        # An error under 200: with that status no client would take it for one.
        held.status, held.reason = status_in(facts) or 502, b""
    return held


def _frames(cutter: Cutter, data: bytes, *, last: bool) -> Iterator[Frame]:
    """Cut as they are asked for: behind the first content nothing is looked at here."""
    for at in range(0, len(data), _SLICE):
        yield from cutter.feed(data[at : at + _SLICE])
    if last:
        yield from cutter.finish()


def _documents(frames: Iterable[Frame]) -> Iterator[Document]:
    for frame in frames:
        document = None if frame.data is None else jsondoc.readable(frame.data)
        if isinstance(document, dict):
            yield document


def _plain(reply: Reply, body: bytes) -> bytes:
    """Raises UpstreamBroken where it cannot be decoded."""
    undo = undoing(reply.headers, MAX_REPLY)
    return body if undo is None else undo.feed(body) + undo.finish()
