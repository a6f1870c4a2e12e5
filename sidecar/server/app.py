"""The ASGI application: which of its few rooms a request goes to."""

from importlib.metadata import version
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from ..errors import InvalidRequest
from ..policy.snapshot import Snapshot
from ..runtime import Runtime
from .door import Handler, Hop, conduct
from .guarded import find
from .headers import Headers, value_of
from .relay import relay

OWN_PATHS = frozenset(("/healthz", "/readyz"))
# Before the policy is loaded no request is served; this only bounds what a connection may send by then.
_MAX_HEADER = 65_536
VERSION = version("guardrail-sidecar")


class App:
    """Serves one runtime. `snapshot` spares the runtime loading what has just been checked."""

    def __init__(self, runtime: Runtime, snapshot: Snapshot | None = None) -> None:
        self.runtime = runtime
        self._first = snapshot
        self._own = own_endpoints(runtime)
        self._edge: tuple[Snapshot, Any] | None = None

    @property
    def max_header(self) -> int:
        return self.runtime.now.snapshot.server.max_header if self.runtime.ready else _MAX_HEADER

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        snapshot = self.runtime.now.snapshot
        if snapshot.server.cors_origins:
            await self._with_cors(snapshot)(scope, receive, send)
        else:
            await self.dispatch(scope, receive, send)

    async def dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] in OWN_PATHS:
            await self._own(scope, receive, send)
        else:
            await conduct(self.runtime, scope, receive, send, self._handler(scope))

    def _handler(self, scope: Any) -> Handler:
        if _asks_to_switch(scope["method"], scope["headers"]):
            return no_upgrade
        guarded = self.runtime.now.snapshot.chain.down and find(scope["method"], scope["path"])
        return guarded or relay

    def _with_cors(self, snapshot: Snapshot) -> Any:
        if self._edge is None or self._edge[0] is not snapshot:
            self._edge = (snapshot, cors(self.dispatch, snapshot.server.cors_origins))
        return self._edge[1]

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            await self.runtime.open(self._first)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.runtime.close()
        await send({"type": "lifespan.shutdown.complete"})


async def no_upgrade(hop: Hop) -> None:
    """What cannot be carried on as HTTP/1.1 is refused with the reason, not left hanging."""
    raise InvalidRequest(
        "The sidecar speaks HTTP/1.1 with the provider: WebSocket and other upgrades are not supported. "
        "Use the API's HTTP endpoints."
    )


def _asks_to_switch(method: str, headers: Headers) -> bool:
    """What only makes sense in another protocol. Any other offer of one is declined by answering in this one."""
    return method == "CONNECT" or b"websocket" in (value_of(headers, b"upgrade") or b"").lower()


def cors(app: Any, origins: tuple[str, ...]) -> CORSMiddleware:
    return CORSMiddleware(app, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=["*"])


def own_endpoints(runtime: Runtime) -> Router:
    """What the sidecar says of itself. Nothing here names a key or a URL with credentials."""

    async def health(request: Request) -> Response:
        snapshot = runtime.now.snapshot
        fields = {"status": "ok", "version": VERSION, "policy": snapshot.digest, "inert": snapshot.inert}
        return JSONResponse(fields | ({"policy_fault": runtime.fault} if runtime.fault else {}))

    async def ready(request: Request) -> Response:
        serving = runtime.ready and not runtime.draining
        return JSONResponse({"ready": serving}, status_code=200 if serving else 503)

    return Router([Route("/healthz", health), Route("/readyz", ready)])
