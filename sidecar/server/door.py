"""The one door of every exchange: how it begins, reads, answers and ends, guarded or not."""

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ..core.exchange import NO_DISGUISE, Disguise, Exchange
from ..core.identity import NOBODY, Identity
from ..errors import (
    AllTargetsFailed,
    ExchangeError,
    PayloadTooLarge,
    UpstreamBroken,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from ..policy.schema import AuthMode
from ..runtime import InForce, Runtime
from ..stages.scrub import error_excerpt
from ..telemetry.record import Record
from ..upstream.client import Client
from ..upstream.connection import Call, Reply
from ..upstream.targets import Provider, Target
from ..wire import jsondoc
from ..wire.errors import error_headers, openai_shape
from . import admission
from .headers import Headers, reply_headers, request_headers, value_of
from .masking import KeyMask, is_secret
from .watch import ClientLeft, Watch

Handler = Callable[["Hop"], Awaitable[None]]
ErrorBody = Callable[[ExchangeError], dict[str, Any]]

_OUTCOMES: tuple[tuple[type[Exception], str], ...] = (
    (UpstreamTimeout, "timeout"),
    (UpstreamUnreachable, "upstream_error"),
    (UpstreamBroken, "upstream_error"),
    (AllTargetsFailed, "upstream_error"),
    (ExchangeError, "rejected"),
)


class Hop:
    """One exchange's way through the server: what came in, what is in force, and the two ends of it.

    `failing` says how a stream that has begun, and of which no event has left, ends with an error.

    A handler reads the request with `body` or `receive`, sends it with `call` or `open`, and answers with `start`
    and `write`. It raises ExchangeError for an answer of ours and may leave everything else to the door: a
    client that leaves, time that runs out, a reply that breaks off, clean-up and the record.
    """

    __slots__ = (
        "_send",
        "error_body",
        "failing",
        "headers",
        "in_force",
        "method",
        "receive",
        "record",
        "runtime",
        "scope",
        "spent",
        "started",
        "target",
        "tenant",
        "trail",
        "upload",
        "upstream",
        "watch",
    )

    def __init__(
        self, runtime: Runtime, scope: Any, receive: Any, send: Any, error_body: ErrorBody = openai_shape
    ) -> None:
        self.runtime, self.scope, self.receive, self._send = runtime, scope, receive, send
        self.error_body = error_body
        self.in_force: InForce = runtime.now
        self.method: str = scope["method"]
        self.headers: Headers = scope["headers"]
        self.tenant = admission.DEFAULT_TENANT
        self.spent: frozenset[bytes] = frozenset()
        self.started = False
        self.failing: Callable[[ExchangeError], bytes] | None = None
        self.target: Target | None = None
        self.trail = ""
        self.upstream: Call | None = None
        self.upload: asyncio.Task[None] | None = None
        self.record = Record()
        self.record.started = time.perf_counter()
        default = self.in_force.routes.default
        self.watch = Watch(default.timeouts, scope.get("sidecar.watch"))

    @property
    def inert(self) -> bool:
        return self.in_force.snapshot.inert

    def exchange(self, endpoint: str, disguise: Disguise = NO_DISGUISE, identity: Identity = NOBODY) -> Exchange:
        """Who asks, for the stages; `endpoint` is also what the record calls it."""
        self.record.endpoint = endpoint
        kept = self.runtime
        stores = (kept.accounts, kept.approvals, kept.runs)
        return Exchange(self.id, endpoint, self.tenant, disguise, identity, *stores, time.time, self._has_waited)

    def _has_waited(self, seconds: float) -> None:
        self.record.waited += seconds

    @property
    def id(self) -> str:
        if not self.record.id:
            self.record.id = self.runtime.exchange_id()
        return self.record.id

    # --- the request ---

    async def message(self) -> tuple[bytes, bool]:
        """The next piece of the request's body, and whether more follows. Raises ClientLeft."""
        began = time.perf_counter()
        message = await self.receive()
        self.record.waited += time.perf_counter() - began
        if message["type"] != "http.request":
            raise ClientLeft
        body: bytes = message["body"]
        self.record.bytes_in += len(body)
        return body, message["more_body"]

    async def body(self, limit: int) -> bytes:
        """The whole body as it was sent, still coded. Raises PayloadTooLarge beyond `limit` bytes."""
        self.bound(limit)
        piece, more = await self.message()
        if not more:
            return checked(piece, limit)
        self.watch.begin()
        pieces, size = [piece], len(piece)
        while more:
            piece, more = await self.message()
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
        return b"".join(pieces)

    def bound(self, limit: int) -> None:
        """Refuses by the declared length, before anything is read. Raises PayloadTooLarge."""
        declared = value_of(self.headers, b"content-length")
        if declared is not None and int(declared) > limit:
            raise too_large(limit)

    # --- the provider ---

    def place(self, model: str) -> Target:
        """The target that serves a model's name, also for the record. Raises ModelNotFound."""
        return self.placed(model, self.in_force.routes.resolve(model))

    def placed(self, model: str, target: Target) -> Target:
        """Notes the target that serves a model's name."""
        self.target = target
        self.record.model, self.record.target = model, str(target)
        return target

    def client(self, provider: Provider) -> Client:
        return self.in_force.clients[provider.name]

    def request_headers(self, provider: Provider) -> Headers:
        """The client's headers for this provider, without framing."""
        return request_headers(self.headers, self.spent, provider)

    async def open(self, provider: Provider, headers: Headers, body: bytes | None, path: bytes | None = None) -> Call:
        """Sends a request to a provider under the client's own method, path and query. None: the body follows.

        `path` stands in the place of the client's path and query, where the provider speaks another API.
        """
        if self.upstream is not None:
            self.upstream.close()
        client = self.client(provider)
        record = self.record
        record.attempts += 1
        record.target = record.target or provider.name
        self.watch.limit(provider.timeouts)
        query = self.scope.get("sidecar.query", b"") if path is None else b""
        target = client.target(path or self.scope["raw_path"], query)
        began = time.perf_counter()
        self.upstream = await client.open(self.method, target, headers, body)
        record.sent = time.perf_counter()
        record.waited += record.sent - began
        return self.upstream

    async def answer(self, call: Call) -> Reply:
        """The provider's reply at its headers. Raises UpstreamTimeout, UpstreamBroken and ClientLeft."""
        self.watch.wait("first_byte")
        record = self.record
        try:
            reply = await call.answer()
            record.first_byte = time.perf_counter()
        except asyncio.CancelledError as cancelled:
            raise self.watch.meaning(cancelled) from None
        finally:
            record.waited += time.perf_counter() - record.sent
        self.watch.rest()
        return reply

    async def send(self, provider: Provider, headers: Headers, body: bytes, path: bytes | None = None) -> Reply:
        """`open` and `answer` in one, for a body that is all here."""
        return await self.answer(await self.open(provider, headers, body, path))

    async def read(self, reply: Reply) -> bytes:
        """The reply's next bytes, b"" at its end. Raises UpstreamTimeout, UpstreamBroken and ClientLeft."""
        if reply.ready:
            return await reply.read()
        self.watch.wait("idle")
        began = time.perf_counter()
        try:
            data = await reply.read()
        except asyncio.CancelledError as cancelled:
            raise self.watch.meaning(cancelled) from None
        finally:
            self.record.waited += time.perf_counter() - began
        self.watch.rest()
        return data

    def uploading(self, phase: str) -> None:
        """What a streamed upload waits for: the provider, in this phase, or with "" the client."""
        if self.upstream is None or self.upstream.reply is not None:
            return  # the reply has begun, and the clock is its reader's
        if phase:
            self.watch.wait(phase)
        else:
            self.watch.rest()

    def mask(self, provider: Provider) -> KeyMask | None:
        """What keeps the provider's own key out of its reply, if it has one that can be told from a word."""
        key = provider.api_key
        return KeyMask(key) if key is not None and is_secret(key) else None

    # --- the answer ---

    def reply_headers(self, reply: Reply) -> Headers:
        """The provider's headers for the client and, unless the policy is inert, ours."""
        headers = reply_headers(reply.headers)
        if not self.inert:
            headers += self.our_headers(headers)
        return headers

    def our_headers(self, headers: Headers) -> Headers:
        """What we say of an exchange under an active policy."""
        record = self.record
        ours = [(b"x-sidecar-policy", self.in_force.snapshot.digest.encode("ascii"))]
        if record.attempts:
            ours.append((b"x-sidecar-target", record.target.encode("latin-1", "replace")))
            ours.append((b"x-sidecar-attempts", b"%d" % record.attempts))
        if record.calls > 1:
            ours.append((b"x-sidecar-calls", b"%d" % record.calls))
        if record.stop_reason:
            ours.append((b"x-sidecar-stop-reason", record.stop_reason.encode("ascii")))
        if self.trail:
            ours.append((b"x-sidecar-trail", self.trail.encode("ascii", "replace")))
        if value_of(headers, b"x-request-id") is None:
            ours.append((b"x-request-id", self.id.encode("ascii")))
        return ours

    def decided(self) -> Headers:
        """The decisions in the record by rule, action and mode, with how many findings: `secrets=redact;n=2`."""
        counts: Counter[str] = Counter()
        for one in self.record.decisions:
            counts[f"{one['rule']}={one['action']};mode={one['mode']}"] += one["count"]
        said = ", ".join(f"{what};n={count}" for what, count in counts.items())
        return [(b"x-sidecar-decisions", said.encode("latin-1", "replace"))] if said else []

    async def start(self, status: int, headers: Headers, reason: bytes = b"") -> None:
        """The status line and headers. Without Content-Length the body is framed for the client as it can take it."""
        self.started = True
        self.record.status = status
        await self._tell({"type": "http.response.start", "status": status, "headers": headers, "reason": reason})

    async def write(self, data: bytes, more: bool) -> None:
        """More of the body; waits while the client does not take it. With `more` False the reply is complete."""
        began = time.perf_counter()
        await self._tell({"type": "http.response.body", "body": data, "more_body": more})
        self.record.bytes_out += len(data)
        self.record.waited += time.perf_counter() - began

    async def _tell(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except OSError:
            raise ClientLeft from None

    async def refuse(self, error: ExchangeError) -> None:
        """Answers with an error of ours."""
        self.record.code, self.record.stop_reason = error.code, error.stop_reason
        body = jsondoc.encode(self.error_body(error))
        headers = error_headers(error, body)
        if not self.inert:
            headers += self.our_headers(headers) + self.decided()
        await self.start(error.status, headers)
        await self.write(body, more=False)

    def close(self) -> None:
        """The exchange is over, however it ended: the provider's connection is given back or dropped."""
        self.watch.close()
        if self.upload is not None:
            self.upload.cancel()
        if self.upstream is not None:
            self.upstream.close()
        if self.runtime.log is not None:
            self._log()

    def _log(self) -> None:
        record, log = self.record, self.runtime.log
        record.tenant, record.method = self.tenant, self.method
        # Both are the client's own texts: a key that stands in one must not get into the log.
        record.path = _loggable(self.scope["path"])
        record.model, record.target = _loggable(record.model), _loggable(record.target)
        record.policy = self.in_force.snapshot.digest
        record.id = self.id
        if log is not None:
            log.write(record)


# The longest path or model that a log line repeats.
MAX_NAMED = 512


@lru_cache(maxsize=1024)
def _loggable(name: str) -> str:
    return error_excerpt(name, MAX_NAMED)


def too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request's body is larger than {limit} bytes.")


def checked(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise too_large(limit)
    return body


async def conduct(
    runtime: Runtime, scope: Any, receive: Any, send: Any, handle: Handler, error_body: ErrorBody = openai_shape
) -> None:
    """Takes one exchange from admission to its one end. `error_body` is an error of ours in the API that was called.

    A reply that began and cannot go on is left incomplete, which the server turns into a broken connection.
    """
    hop = Hop(runtime, scope, receive, send, error_body)
    entered = False
    try:
        admission.enter(runtime)
        entered = True
        await _run(hop, handle)
    except ClientLeft:
        hop.record.outcome = "client_gone"
    except asyncio.CancelledError:  # the server ends before the exchange could
        hop.record.outcome, hop.record.code = "error", "shutdown"
        raise
    except ExchangeError as error:
        await _fail(hop, error)
    except Exception as error:
        runtime.tell(_described(error, hop.id))
        await _fail(hop, ExchangeError("The sidecar failed to handle this request."), "error")
    finally:
        if entered:
            admission.leave(runtime)
        hop.close()


async def _run(hop: Hop, handle: Handler) -> None:
    try:
        snapshot = hop.in_force.snapshot
        server = snapshot.server
        if snapshot.tenants or server.auth is AuthMode.REQUIRED or server.admin_keys:
            hop.tenant, hop.spent = admission.identify(hop.headers, snapshot.tenants, server.auth, server.admin_keys)
        await handle(hop)
        hop.record.outcome = hop.record.outcome or "completed"
    except asyncio.CancelledError as cancelled:
        raise hop.watch.meaning(cancelled) from None


async def _fail(hop: Hop, error: ExchangeError, outcome: str = "") -> None:
    hop.watch.close()
    hop.record.outcome = outcome or hop.record.outcome or _outcome(error)
    hop.record.code = error.code
    if isinstance(error, UpstreamTimeout):
        hop.record.phase = error.phase
    with suppress(ClientLeft):
        if not hop.started:
            await hop.refuse(error)
        elif hop.failing is not None:
            await hop.write(hop.failing(error), more=False)


def _outcome(error: ExchangeError) -> str:
    return next(word for kind, word in _OUTCOMES if isinstance(error, kind))


def _described(error: Exception, exchange: str) -> dict[str, Any]:
    """Where an unexpected exception arose. Its message is left out: it may quote what the exchange carried."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-6:]]
    return {"event": "internal_error", "id": exchange, "kind": type(error).__name__, "where": where}
