"""What is open while the sidecar runs: the policy in force, the clients it needs, the log. Swapped on reload."""

import asyncio
import os
import secrets
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from .errors import Fault, PolicyError, StoreUnavailable
from .policy.load import load
from .policy.snapshot import Snapshot
from .stores.accounts import Accounts
from .stores.approvals import Desk, open_approvals
from .stores.ledger import open_ledger
from .stores.news import Bulletin, News, shares
from .stores.runs import Runs
from .stores.sessions import Sessions
from .telemetry.logline import LogLine
from .upstream.breaker import Health, Place, Told
from .upstream.classify import Failure
from .upstream.client import Client
from .upstream.proxies import proxy_for
from .upstream.resilience import Plan, ResilienceConfig
from .upstream.routing import Routes

# How often the policy's files are looked at.
POLL_SECONDS = 1.0

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class InForce:
    """A policy with everything an exchange needs of it. An exchange keeps the one it began with."""

    snapshot: Snapshot
    routes: Routes
    clients: Mapping[str, Client]
    health: Health
    """Of each target, shared by all exchanges and kept over reloads."""
    words: Mapping[str, Failure]
    """The policy's own words for kinds of failures."""

    @property
    def plan(self) -> Plan:
        return self.snapshot.plan


@dataclass(slots=True)
class Runtime:
    """Opened by the server's lifespan, in the event loop that serves.

    `path` is the policy's file or folder, or None; `upstream` stands over the first provider's base URL.
    """

    path: Path | None
    upstream: str | None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    ready: bool = False
    draining: bool = False
    active: int = 0
    fault: str = ""
    """Why the last reload failed; empty when the newest policy is in force."""
    log: LogLine | None = None
    accounts: Accounts | None = None
    """What budgets are reserved from; None while no policy has any."""
    approvals: Desk | None = None
    """Where calls wait for an admin; None while no policy has any that do."""
    runs: Runs = field(default_factory=Runs)
    sessions: Sessions = field(default_factory=lambda: Sessions(time.monotonic))
    _now: InForce | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _wish: asyncio.Event = field(default_factory=asyncio.Event)
    _poller: asyncio.Task[None] | None = None
    _store: str = ""
    _desk_store: str = ""
    _keeper: asyncio.Task[None] | None = None
    _news_from: str = ""
    _bulletin: Bulletin | None = None
    _listener: asyncio.Task[None] | None = None
    _later: set[asyncio.Task[None]] = field(default_factory=set)
    _prefix: str = field(default_factory=lambda: secrets.token_hex(5))
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def now(self) -> InForce:
        if self._now is None:
            raise RuntimeError("the runtime is not open")
        return self._now

    def exchange_id(self) -> str:
        """Unique over processes and time."""
        return f"req_{self._prefix}{next(self._numbers):010x}"

    # --- open and close ---

    async def open(self, snapshot: Snapshot | None = None) -> None:
        """Takes up the policy and begins to look for a newer one. Raises PolicyError and OSError."""
        self._loop = asyncio.get_running_loop()
        self._take_up(snapshot or load_policy(self.path, self.environ, self.upstream))
        self._poller = asyncio.create_task(self._follow())
        self.ready = True

    async def close(self) -> None:
        self.ready = False
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])
        if self._now is not None:
            for client in self._now.clients.values():
                client.close()
        if self._bulletin is not None:
            await self._hush(self._bulletin, self._listener)
        if self.accounts is not None:
            await self._put_away(self.accounts, self._keeper)
        if self.approvals is not None:
            await self._clear(self.approvals)
        if self.log is not None:
            self.log.close()
        _stderr().flush()

    # --- reload ---

    def reload_soon(self) -> None:
        """For signal handlers: has the policy loaded again, from inside the event loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wish.set)

    async def reload(self) -> bool:
        """Loads the policy again. On a fault the one in force stays; the fault is told once and kept in `fault`."""
        try:
            self._take_up(await asyncio.to_thread(load_policy, self.path, self.environ, self.upstream))
        except (PolicyError, StoreUnavailable, OSError) as error:
            self._refuse(str(error))
            return False
        self.fault = ""
        self.tell({"event": "policy_loaded", "policy": self.now.snapshot.digest})
        return True

    def _refuse(self, fault: str) -> None:
        if fault != self.fault:
            self.fault = fault
            self.tell({"event": "policy_refused", "in_force": self.now.snapshot.digest, "fault": fault})

    def _take_up(self, snapshot: Snapshot) -> None:
        before = self._now
        self._open_accounts(snapshot)
        self._open_desk(snapshot)
        self._share_news(snapshot)
        log = self._log_for(snapshot)
        routes = Routes(snapshot.providers, snapshot.models, snapshot.candidates)
        resilience = snapshot.policy.resilience
        self._now = InForce(snapshot, routes, self._clients(snapshot), self._health(resilience), resilience.words)
        if log is not self.log:
            old, self.log = self.log, log
            if old is not None:
                old.close(patience=0.1)
        for client in before.clients.values() if before else ():
            if client not in self._now.clients.values():
                client.close()

    def _health(self, resilience: ResilienceConfig) -> Health:
        """Of all targets, for as long as the process runs."""
        if self._now is None:
            return Health(resilience.limits, resilience.retry_budget, self._tell_of)
        self._now.health.configure(resilience.limits, resilience.retry_budget)
        return self._now.health

    def _tell_of(self, told: Told) -> None:
        """A target, or one key there, is left out or asked again."""
        fields = {"target": told.place.target, "state": "open" if told.seconds else "closed", "reason": told.reason}
        if told.place.key:
            fields["key"] = told.place.key[:12]
        self.tell({"event": "target", **fields, "seconds": round(told.seconds, 3)})
        if self._bulletin is not None:
            self._bulletin.tell({"target": told.place, "seconds": told.seconds, "reason": told.reason})

    def _hear_of(self, news: News) -> None:
        """Another process has found a target ill, or well again."""
        match news:
            case {"target": [str(target), str(key)], "seconds": int() | float() as seconds, "reason": str(reason)}:
                self.now.health.learn(Told(Place(target, key), float(seconds), reason), time.monotonic())

    def _share_news(self, snapshot: Snapshot) -> None:
        """Where the store is Redis and targets are watched, what one process learns of them the others know."""
        url = snapshot.policy.store if snapshot.plan.active and shares(snapshot.policy.store) else ""
        if url == self._news_from:
            return
        if self._bulletin is not None:
            self._finish_later(self._hush(self._bulletin, self._listener))
        self._news_from, self._bulletin, self._listener = url, None, None
        if url:
            self._bulletin = Bulletin(url, self._hear_of)
            self._listener = asyncio.ensure_future(self._bulletin.listen())

    def _finish_later(self, work: Coroutine[Any, Any, None]) -> None:
        self._later.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self._later.discard)

    async def _hush(self, bulletin: Bulletin, listener: asyncio.Task[None] | None) -> None:
        if listener is not None:
            listener.cancel()
            await asyncio.wait([listener])
        await bulletin.close()

    def _open_accounts(self, snapshot: Snapshot) -> None:
        """The ledger that the policy names. What began with another settles in that. Raises StoreUnavailable."""
        url = snapshot.policy.store
        if not snapshot.policy.budgets or (self.accounts is not None and url == self._store):
            return
        accounts = Accounts(open_ledger(url, time.time), time.time, self._warn, self.tell)
        if self.accounts is not None:
            self._finish_later(self._put_away(self.accounts, self._keeper))
        self.accounts, self._store = accounts, url
        self._keeper = asyncio.ensure_future(accounts.keep())

    async def _put_away(self, accounts: Accounts, keeper: asyncio.Task[None] | None) -> None:
        """Closes a ledger when what is open in it has been settled, or after as long as exchanges may drain."""
        for _ in range(int(self.now.snapshot.server.drain * 10)):
            if accounts.idle:
                break
            await asyncio.sleep(0.1)
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])
        await accounts.close()

    def _open_desk(self, snapshot: Snapshot) -> None:
        """The store that the policy names. What waits in another is decided there. Raises StoreUnavailable."""
        url, tools = snapshot.policy.store, snapshot.policy.tools
        if tools is None or not tools.asks_admins or (self.approvals is not None and url == self._desk_store):
            return
        desk = Desk(open_approvals(url, time.time), self.tell)
        if self.approvals is not None:
            self._finish_later(self._clear(self.approvals))
        self.approvals, self._desk_store = desk, url

    async def _clear(self, desk: Desk) -> None:
        """Closes a desk when nobody waits at it any more, or after as long as exchanges may drain."""
        for _ in range(int(self.now.snapshot.server.drain * 10)):
            if not desk.waiting:
                break
            await asyncio.sleep(0.1)
        await desk.store.close()

    def _log_for(self, snapshot: Snapshot) -> LogLine | None:
        destination = snapshot.telemetry.log
        if destination == "off":
            return None
        if self.log is not None and self.log.destination == destination:
            return self.log
        return LogLine(destination)

    def _clients(self, snapshot: Snapshot) -> Mapping[str, Client]:
        """A provider that did not change keeps its connections."""
        old = self._now.clients if self._now is not None else {}
        clients = {}
        for name, provider in snapshot.providers.items():
            kept = old.get(name)
            if kept is not None and kept.provider == provider:
                clients[name] = kept
            else:
                clients[name] = Client(provider, proxy_for(provider.url, self.environ, self._warn))
        return clients

    async def _follow(self) -> None:
        """Reloads when the files have changed, and when asked to."""
        seen = await asyncio.to_thread(signature, self.path)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wish.wait(), POLL_SECONDS)
            found = await asyncio.to_thread(signature, self.path)
            if found != seen or self._wish.is_set():
                self._wish.clear()
                seen = found
                await self.reload()

    # --- what the process says of itself ---

    def tell(self, fields: dict[str, Any]) -> None:
        """An event of the process: to the log, or to stderr when there is none."""
        log = self.log or _stderr()
        log.tell({"ts": time.time(), **fields})

    def _warn(self, message: str) -> None:
        self.tell({"event": "warning", "message": message})


@cache
def _stderr() -> LogLine:
    return LogLine("stderr")


def load_policy(path: Path | None, environ: Mapping[str, str], upstream: str | None) -> Snapshot:
    """The policy, which must say where requests go. Raises PolicyError."""
    snapshot = load(path, environ, upstream)
    if snapshot.default is None:
        hint = "Give --upstream URL, set SIDECAR_UPSTREAM, or name a provider in the policy."
        raise PolicyError([Fault(str(path or "no policy"), 0, 0, "providers", "there is no provider", hint)])
    return snapshot


def signature(path: Path | None) -> Signature:
    """What changes when a policy does: name, inode, size and time of its files. Empty while there is none."""
    if path is None:
        return ()
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple(_mark(file) for file in files if file.suffix in (".yaml", ".yml") or file == path)
    except OSError:
        return ()


def _mark(file: Path) -> tuple[str, int, int, int]:
    stat = file.stat()
    return file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns
