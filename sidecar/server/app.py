"""The ASGI application: which of its few rooms a request goes to."""

from importlib.metadata import version
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from ..errors import InvalidRequest, Uninspected
from ..policy.snapshot import Snapshot
from ..runtime import Runtime
from . import admin
from .door import Handler, Hop, conduct
from .endpoints import Endpoint, find, lists_models
from .guarded import Guarded
from .headers import Headers, value_of
from .models import models
from .relay import relay
from .tunnel import tunnel

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
        if scope["path"] in OWN_PATHS or scope["path"].startswith(admin.PREFIX):
            await self._own(scope, receive, send)
        else:
            endpoint = find(scope["method"], scope["path"])
            handler = self._handler(scope, endpoint)
            await conduct(self.runtime, scope, receive, send, handler, endpoint.wire.error_body)

    def _handler(self, scope: Any, endpoint: Endpoint) -> Handler:
        snapshot = self.runtime.now.snapshot
        if _asks_to_switch(scope["method"], scope["headers"]):
            passes = snapshot.policy.inspect.websocket == "pass" and scope["method"] != "CONNECT"
            return tunnel if passes else no_upgrade
        if endpoint.known:
            return Guarded(endpoint) if snapshot.looks else relay
        if lists_models(scope["method"], scope["path"]):
            return models
        if snapshot.unknown == "pass" and not snapshot.chain.counts:
            return relay  # budgets count what no rule looks at
        return not_inspected if snapshot.unknown == "deny" else Guarded(endpoint)

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
        "The sidecar speaks HTTP/1.1 with the provider: upgrades are not supported, and a WebSocket only where the "
        "policy lets it pass unseen (inspect.websocket). Use the API's HTTP endpoints."
    )


async def not_inspected(hop: Hop) -> None:
    raise Uninspected(
        f"{hop.method} {hop.scope['path'][:100]} is not an endpoint that this sidecar can look into, and its policy "
        "denies such (inspect.unknown)."
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

    own = [Route("/healthz", health), Route("/readyz", ready), *admin.routes(runtime)]
    return Router(own, redirect_slashes=False, default=admin.no_such)
