"""A process that uses a ledger as a worker does, until it is done or killed.

python -m tests.stores.worker burst URL NAME COUNT LIMIT    so many exchanges at once; prints how many passed
python -m tests.stores.worker work URL NAME                 one after the other; a line for each that was settled
"""

import asyncio
import sys
import time

from sidecar.stores import ledger_sqlite
from sidecar.stores.ledger import SLOT, Claim, Granted, Ledger, open_ledger

LEASE = 1.0
# A window that no test sees the end of.
LONG = 10**9
USED = 3
# Of every so many exchanges one only reserves and one is released.
KINDS = 8


def claims(limit: int | None = None) -> list[Claim]:
    return [
        Claim("run", "tokens", 5, limit and limit * 5),
        Claim("tenant", "tokens", 5, None, LONG),
        Claim("run", SLOT, 1, limit),
    ]


async def burst(ledger: Ledger, name: str, count: int, limit: int) -> None:
    answers = await asyncio.gather(*(ledger.reserve(f"{name}-{n}", claims(limit), 60) for n in range(count)))
    print(sum(isinstance(answer, Granted) for answer in answers), flush=True)


async def work(ledger: Ledger, name: str) -> None:
    """Says `+` before a settlement is asked for and `=` when it is done, as a kill may fall between the two."""
    for number in range(1_000_000):
        id = f"{name}-{number}"
        await ledger.reserve(id, claims(), LEASE)
        if number % KINDS == 1:
            await ledger.release(id)
        elif number % KINDS != 0:
            sys.stdout.write("+")
            sys.stdout.flush()
            await ledger.settle(id, {0: USED, 1: USED})
            sys.stdout.write("=")
            sys.stdout.flush()


async def main(what: str, url: str, name: str, *numbers: str) -> None:
    # Often, so that a kill may fall into it.
    ledger_sqlite.FOLD_EVERY = 100  # type: ignore[misc]
    ledger = open_ledger(url, time.time, timeout=10)
    await ledger.read()
    print("ready", flush=True)
    if what == "burst":
        await asyncio.to_thread(sys.stdin.readline)
        await burst(ledger, name, *map(int, numbers))
    else:
        await work(ledger, name)
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
