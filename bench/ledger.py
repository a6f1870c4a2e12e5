"""The ledger alone: what an exchange pays for one reserve and one settle with three claims."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median

from bench.table import render
from sidecar.errors import StoreUnavailable
from sidecar.stores.ledger import Claim, Ledger, open_ledger

_EXCHANGES = 4_000
_ROUNDS = 5
_AT_ONCE = 50
# Between two exchanges of the paced run: the loop has other things to do, and checkpoints get their turn.
_PAUSE = 0.0002
# How often a second task wants its turn, to see how long it is kept waiting. Memory shows what the machine adds.
_TICK = 0.001
_HEADS = ("ledger", "alone", f"{_AT_ONCE} at once", "paced: median", "p99.9", "loop late: p99.9", "longest")
_READY_SECONDS = 5.0

_ids = count()

Exchange = tuple[str, Sequence[Claim]]


def exchanges(number: int) -> list[Exchange]:
    """New ones: three claims, of a run, of a tenant in this hour, and of all in money today; runs of twenty calls."""
    return [(f"req_{id:x}", _claims(id)) for id in islice(_ids, number)]


def _claims(id: int) -> Sequence[Claim]:
    return (
        Claim(f"acme/run/{id // 20}/one-run", "calls", 1, 50),
        Claim("acme/tenant//hourly", "tokens", 900, 10**15, 3_600, keep=True),
        Claim("all/all//money", "cost", 2_500_000, 10**17, 86_400, soft=8 * 10**16, keep=True),
    )


async def pay(ledger: Ledger, exchange: Exchange) -> None:
    """The call itself is a turn of the event loop."""
    id, claims = exchange
    await ledger.reserve(id, claims, 60)
    await asyncio.sleep(0)
    await ledger.settle(id, {1: 700, 2: 1_900_000})
    await asyncio.sleep(0)


async def _nothing(exchange: Exchange) -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def cost(ledger: Ledger, at_once: int) -> float:
    """Microseconds of CPU of this process, its threads included, for an exchange among so many; less what turns of the
    loop and tasks cost without a ledger."""
    costs = []
    for _ in range(_ROUNDS):
        waiting = exchanges(_EXCHANGES)
        costs.append(await _crowds(waiting, partial(pay, ledger), at_once) - await _crowds(waiting, _nothing, at_once))
    return median(costs)


async def _crowds(waiting: Sequence[Exchange], each: Callable[[Exchange], Awaitable[None]], at_once: int) -> float:
    began = time.process_time()
    for first in range(0, len(waiting), at_once):
        crowd = waiting[first : first + at_once]
        await (asyncio.gather(*map(each, crowd)) if at_once > 1 else each(crowd[0]))
    return (time.process_time() - began) * 1e6 / len(waiting)


async def paced(ledger: Ledger) -> tuple[float, ...]:
    """Milliseconds on the clock: an exchange's median and 99.9th percentile, and by how much the loop was late."""
    late: list[float] = []
    ticker, took = asyncio.create_task(_tick(late)), []
    for each in exchanges(_EXCHANGES):
        await asyncio.sleep(_PAUSE)
        began = time.perf_counter()
        await pay(ledger, each)
        took.append((time.perf_counter() - began) * 1e3)
    ticker.cancel()
    return median(took), _rare(took), _rare(late), max(late)


async def _tick(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(_TICK)
        late.append((time.perf_counter() - began - _TICK) * 1e3)


def _rare(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 999 // 1000]


async def measure(name: str, url: str) -> tuple[str, ...]:
    ledger = open_ledger(url, time.time, timeout=5)
    try:
        await cost(ledger, 1)
        costs = await cost(ledger, 1), await cost(ledger, _AT_ONCE)
        times = await paced(ledger)
    finally:
        await ledger.close()
    return (name, *(f"{cost:.1f} µs" for cost in costs), *(f"{took:.2f} ms" for took in times))


@contextmanager
def redis_server() -> Iterator[str | None]:
    """The address of a server that keeps nothing, or None when there is none to start."""
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _wait(port: int) -> None:
    patience = time.monotonic() + _READY_SECONDS
    while time.monotonic() < patience:
        try:
            with closing(socket.create_connection(("127.0.0.1", port), 0.2)):
                return
        except OSError:
            time.sleep(0.02)


def _without(name: str, why: str) -> tuple[str, ...]:
    return (name, why, *("" for _ in _HEADS[2:]))


def report() -> str:
    """A table with a row for each kind of ledger."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(redis_server())
        urls = {"memory": "memory:", "sqlite": f"sqlite:///{folder / 'ledger.db'}", "redis": redis}
        rows = []
        for name, url in urls.items():
            try:
                rows.append(asyncio.run(measure(name, url)) if url else _without(name, "no server in PATH"))
            except StoreUnavailable as error:
                rows.append(_without(name, str(error)))
    return render("CPU and time for one reserve and one settle with three claims", _HEADS, rows)
