"""Approvals on Redis or Valkey, shared by all replicas. Entries go by themselves when their time is over.

All keys carry the hash tag of the ledger, `{NAME}:`.

    {NAME}:approval:ID   hash: `pending`, and `decided` once it is
    {NAME}:approvals     sorted set: ids by the millisecond in which they expire, on the server's clock
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from .approvals import MAX_PENDING, Clock, Decided, Pending
from .ledger_redis import database, unavailable

_NOW: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
"""
# KEYS: index, entry. ARGV: id, milliseconds, pending, most.
_PUT: Final = f"""
{_NOW}
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], 'pending', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""
_DECIDE: Final = """
if redis.call('EXISTS', KEYS[2]) == 0 or redis.call('HEXISTS', KEYS[2], 'decided') == 1 then return false end
redis.call('HSET', KEYS[2], 'decided', ARGV[2])
return redis.call('HGET', KEYS[2], 'pending')
"""
_END: Final = """
local decided = redis.call('HGET', KEYS[2], 'decided')
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[1], ARGV[1])
return decided
"""
_LIST: Final = f"{_NOW} return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)"

_encode = msgspec.json.encode
_pending = msgspec.json.Decoder(Pending).decode
_decided = msgspec.json.Decoder(Decided).decode


class RedisApprovals:
    """Connects when it is first asked something."""

    def __init__(self, url: str, clock: Clock, *, timeout: float = 0.25) -> None:
        plain, name = database(url)
        self._prefix, self._clock = f"{{{name}}}:", clock
        never = Retry(NoBackoff(), 0)
        self._redis: Redis = Redis.from_url(plain, socket_timeout=timeout, socket_connect_timeout=timeout, retry=never)

    async def put(self, pending: Pending) -> bool:
        left = max(1, int((pending.expires_at - self._clock()) * 1000))
        taken = await self._eval(_PUT, pending.id, pending.id, left, _encode(pending), MAX_PENDING)
        return bool(taken)

    async def look(self, id: str) -> Decided | None:
        try:
            found = await self._redis.hget(self._entry(id), "decided")
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable(error) from None
        return None if found is None else _decided(found)

    async def end(self, id: str) -> Decided | None:
        found = await self._eval(_END, id, id)
        return None if found is None else _decided(found)

    async def decide(self, id: str, decided: Decided) -> Pending | None:
        found = await self._eval(_DECIDE, id, id, _encode(decided))
        return None if found is None else _pending(found)

    async def listed(self, limit: int = MAX_PENDING) -> Sequence[Pending]:
        ids = await self._eval(_LIST, "", MAX_PENDING)
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for id in ids:
                    pipe.hmget(self._entry(id.decode()), "pending", "decided")
                found = await pipe.execute()
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable(error) from None
        waiting = [_pending(body) for body, decided in found if body is not None and decided is None]
        return sorted(waiting, key=lambda one: one.asked_at)[:limit]

    async def close(self) -> None:
        await self._redis.aclose()

    def _entry(self, id: str) -> str:
        return f"{self._prefix}approval:{id}"

    async def _eval(self, script: str, id: str, *words: Any) -> Any:
        try:
            return await self._redis.eval(script, 2, f"{self._prefix}approvals", self._entry(id), *words)
        except (RedisError, OSError, TimeoutError) as error:
            raise unavailable(error) from None
