"""Redis alone: round trips, outages, clusters, and the server's clock."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from sidecar.errors import StoreUnavailable
from sidecar.stores.ledger import Granted
from sidecar.stores.ledger_redis import RedisLedger
from tests.running import free_port
from tests.stores.ledgers import RedisServer, balance, claim, granted, redis_server, refused, reserve

pytestmark = pytest.mark.anyio
EXCHANGES = 20


def named(server: RedisServer, name: str, timeout: float = 10) -> RedisLedger:
    return RedisLedger(f"{server.url}?ledger={name}", timeout=timeout)


def reads(client: "Redis") -> int:
    """How often the server has read from a connection, this asking not counted."""
    return int(client.info("stats")["total_reads_processed"]) - 1


@contextmanager
def counting(server: RedisServer) -> Iterator[list[int]]:
    """The number of reads in the block, in a list that is filled at its end."""
    found: list[int] = []
    with server.client() as client:
        client.ping()
        before = reads(client) + 1
        yield found
        found.append(reads(client) - before)


async def test_an_exchange_is_two_round_trips(redis: RedisServer) -> None:
    ledger = named(redis, "trips")
    await granted(ledger, "warm", claim(1), claim(1, unit="calls"))
    await ledger.settle("warm", {})
    with counting(redis) as found:
        for number in range(EXCHANGES):
            await granted(ledger, f"a{number}", claim(1, 100), claim(1, 100, unit="calls"), claim(1, 100, window=60))
            await ledger.settle(f"a{number}", {0: 2})
    assert found[0] <= 2 * EXCHANGES
    await ledger.close()


async def test_what_is_asked_at_once_goes_out_together(redis: RedisServer) -> None:
    ledger = named(redis, "together")
    await granted(ledger, "warm", claim(1))
    with counting(redis) as found:
        answers = await asyncio.gather(*(reserve(ledger, f"a{n}", claim(1, 40)) for n in range(100)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 39
    assert found[0] <= 5
    await ledger.close()


async def test_scripts_that_the_server_forgot_are_sent_again(redis: RedisServer) -> None:
    ledger = named(redis, "forgot")
    await granted(ledger, "a", claim(5))
    with redis.client() as client:
        client.script_flush()
    await asyncio.gather(*(reserve(ledger, f"b{n}", claim(5)) for n in range(10)), ledger.settle("a", {0: 1}))
    assert await balance(ledger) == (1, 50)
    await ledger.close()


async def test_the_servers_clock_counts(redis: RedisServer) -> None:
    ledger = named(redis, "clock")
    now = int(time.time())
    (ends,) = (await granted(ledger, "a", claim(1, window=3600), lease=0.1)).resets_at
    assert ends in (now // 3600 * 3600 + 3600, (now + 10) // 3600 * 3600 + 3600)
    await asyncio.sleep(1.2)
    assert [row.reserved for row in await ledger.read("acme")] == [0]
    await ledger.close()


async def test_ledgers_with_other_names_are_apart(redis: RedisServer) -> None:
    one, two = named(redis, "one"), named(redis, "two")
    await granted(one, "a", claim(5))
    assert await two.read() == []
    assert (await two.settle("a", {})).ending == "unknown"
    await one.close()
    await two.close()


async def test_nothing_is_left_but_balances(redis: RedisServer) -> None:
    """Ids that have ended go by themselves."""
    ledger = named(redis, "left")
    await granted(ledger, "a", claim(5))
    await ledger.settle("a", {})
    await granted(ledger, "b", claim(5))
    await ledger.release("b")
    await ledger.spend("c", [claim(5)])
    with redis.client() as client:
        kept = {key for key in client.scan_iter("{left}:*") if client.ttl(key) == -1}
    assert kept == {"{left}:a:acme/run/1\x1ftokens\x1f0", "{left}:idle"}
    await ledger.close()


async def test_a_server_that_is_not_there() -> None:
    ledger = RedisLedger(f"redis://user:hunter2@127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreUnavailable, match=r"^The store cannot be reached \(Redis\)\.$"):
        await granted(ledger, "a", claim(5))
    with pytest.raises(StoreUnavailable, match=r"^The store cannot be reached \(Redis\)\.$"):
        await ledger.read()
    await ledger.close()


async def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ledger = RedisLedger(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await granted(ledger, "a", claim(5))
        assert 0.2 < time.monotonic() - began < 2
        await ledger.close()


async def test_after_a_late_answer_everybody_still_gets_their_own(redis: RedisServer) -> None:
    ledger = named(redis, "late", timeout=0.25)
    await granted(ledger, "a", claim(5, 100))
    with redis.client() as client:
        client.client_pause(600, all=True)
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await granted(ledger, "b", claim(7, 100))
        await asyncio.sleep(0.6)
    patient = named(redis, "late")
    assert (await granted(patient, "b", claim(7, 100))).remaining == (88,)
    assert await balance(patient) == (0, 12)
    assert (await ledger.settle("a", {0: 1})).ending == "done"
    assert await ledger.extend("b", 60) is True
    assert (await refused(ledger, "c", claim(93, 100))).reserved == 7
    await ledger.close()
    await patient.close()


async def test_it_goes_on_after_an_outage_without_being_opened_again() -> None:
    with redis_server() as server:
        ledger = named(server, "outage")
        await granted(ledger, "a", claim(5))
        server.process.kill()
        server.process.wait()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await granted(ledger, "b", claim(5))
        with redis_server(port=server.port):
            await granted(ledger, "b", claim(5))
        await ledger.close()


def _take_all_slots(server: RedisServer) -> None:
    with server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while "cluster_state:ok" not in str(client.execute_command("CLUSTER", "INFO")):
            time.sleep(0.02)


async def test_one_slot_of_a_cluster_holds_it_all() -> None:
    """A server in cluster mode refuses keys of several slots in one script."""
    with redis_server("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        _take_all_slots(server)
        ledger = named(server, "all")
        await granted(ledger, "a", claim(5, 100), claim(1, 9, account="{other}"), lease=0.1)
        await ledger.spend("b", [claim(5)])
        await asyncio.sleep(1.2)
        assert [(row.account, row.spent, row.reserved) for row in await ledger.read()] == [
            ("acme/run/1", 5, 0),
            ("{other}", 0, 0),
        ]
        assert await ledger.extend("a", 60)
        await ledger.settle("a", {0: 2, 1: 1})
        assert [row.spent for row in await ledger.reset("{other}")] == [1]
        assert [row.credit for row in await ledger.top_up("acme/run/1", "tokens", 3)] == [3]
        await ledger.close()
