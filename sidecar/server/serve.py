"""`sidecar serve`: loads the policy, binds the address, runs one or several workers, drains on SIGTERM."""

import gc
import os
import signal
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import FrameType

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from ..errors import PolicyError
from ..policy.snapshot import Snapshot
from ..runtime import Runtime, load_policy
from .app import App

# Longer than clients keep a connection: who closes first loses no request to a race.
KEEP_ALIVE_SECONDS = 75
# Younger objects than this are not looked through for cycles; what an exchange makes holds none.
_GC_THRESHOLD = 20_000
_BACKLOG = 2048


def serve(
    policy: Path | None = None,
    upstream: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
) -> int:
    """Serves until told to stop; returns the process's exit code. `policy` is a file or a folder.

    `upstream` stands over the base URL of the policy's first provider. Port 0 is any free one; the line that is
    printed says which. Nothing is bound before the policy has been loaded.
    """
    try:
        require_fast_parts()
        snapshot = load_policy(policy, os.environ, upstream)
        listener = bind(host, port)
    except (PolicyError, OSError, ImportError) as error:
        print(error if isinstance(error, PolicyError) else f"sidecar: {error}", file=sys.stderr)
        return 1
    print(banner(listener, snapshot), file=sys.stderr, flush=True)
    if workers > 1:
        return _run_workers(listener, policy, upstream, workers, snapshot)
    return _run(listener, App(Runtime(policy, upstream), snapshot), snapshot)


def require_fast_parts() -> None:
    """Raises ImportError rather than falling back to what costs a multiple."""
    for name in ("uvloop", "httptools"):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(f"{name} is required and cannot be imported ({error}); pip install {name}") from None


def bind(host: str, port: int) -> socket.socket:
    """A listening socket for a host name or an address, IPv6 in brackets or without. Raises OSError that names it."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return _listening(bare, port)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot listen on {host} port {port}: {why}; choose another with --port or --host") from None


def _listening(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = found[0]
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def banner(listener: socket.socket, snapshot: Snapshot) -> str:
    host, port = listener.getsockname()[:2]
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    to = ", ".join(f"{name} ({provider.url})" for name, provider in snapshot.providers.items())
    what = "inert" if snapshot.inert else f"policy {snapshot.digest}"
    return f"sidecar: listening on http://{where}, forwarding to {to}, {what}"


def config(app: App | str, snapshot: Snapshot, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=workers,
        loop="uvloop",
        http="sidecar.server.protocol:Protocol",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(snapshot.server.drain)),
        backlog=_BACKLOG,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which tells the runtime when it begins to drain and takes SIGHUP as "load the policy again"."""

    @property
    def runtime(self) -> Runtime:
        app: App = self.config.loaded_app
        return app.runtime

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, self._reload)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        self.runtime.reload_soon()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """uvicorn would die by the signal in the end; a drained server has done what it was told, and exits with 0."""
        self.runtime.draining = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def _run(listener: socket.socket, app: App, snapshot: Snapshot) -> int:
    spare_the_collector()
    server = Server(config(app, snapshot))
    try:
        server.run([listener])
    except KeyboardInterrupt:
        pass
    except SystemExit as end:
        return int(end.code or 0)
    return 0 if server.started else 1


def _run_workers(
    listener: socket.socket, path: Path | None, upstream: str | None, workers: int, snapshot: Snapshot
) -> int:
    """Each worker is a process that loads the policy itself; the environment carries where it is."""
    os.environ |= {"SIDECAR_POLICY": str(path or ""), "SIDECAR_UPSTREAM": upstream or ""}
    supervisor = Multiprocess(config("sidecar.server.serve:worker_app", snapshot, workers), [listener])
    supervisor.run()
    return 1 if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes) else 0


def spare_the_collector() -> None:
    """What is loaded now stays: the cycle collector need not look at it, and seldom at what exchanges make."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 50, 100)


def worker_app() -> App:
    """What each worker runs."""
    spare_the_collector()
    policy = os.environ.get("SIDECAR_POLICY")
    return App(Runtime(Path(policy) if policy else None, os.environ.get("SIDECAR_UPSTREAM") or None))
