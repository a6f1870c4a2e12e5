"""The ledger on Redis or Valkey, shared by all replicas: one Lua script per operation, in one round trip.

The server's clock counts. All keys carry one hash tag, `{NAME}:`, so that a ledger lies in one slot of a cluster. The
scripts also touch keys that they find themselves (the accounts of a reservation), which lie in the same slot. The
server must not evict keys (`maxmemory-policy noeviction`), and what it has promised is as safe as its own persistence.

What is asked at the same time goes out together: while one batch is on its way the next one gathers.

    {NAME}:a:KEY     hash: a balance, by the claim's key
    {NAME}:r:ID      hash: a reservation; `state` is live, late or ended
    {NAME}:leases    sorted set: ids of reservations by the end of their lease
    {NAME}:idle      sorted set: keys of balances by when they may be forgotten
"""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as TimedOut

from ..errors import StoreUnavailable
from .ledger import (
    ENDED_SECONDS,
    LATE_SECONDS,
    NEVER,
    RETENTION,
    SLOT,
    SWEEP,
    Answer,
    Balance,
    Claim,
    Ending,
    Granted,
    Line,
    Notice,
    Refused,
    Row,
    Settled,
    check_amount,
    check_used,
    keys_of,
    resets_at,
    row,
)

DEFAULT_NAME: Final = "sidecar"
# How many operations go out together, and how many keys one step of a listing looks at.
BATCH: Final = 128
_PAGE: Final = 1_000
# An account in use is not put off being forgotten more often than this.
_IDLE_GRAIN: Final = 3_600

# --- scripts: KEYS are leases, idle, reservation; ARGV begins with the prefix of all keys ---

CLOCK: Final = "local clock = redis.call('TIME')\nlocal seconds = clock[1] + clock[2] / 1000000\n"

_COMMON: Final = """
local P, LEASES, IDLE, R = ARGV[1], KEYS[1], KEYS[2], KEYS[3]
local now = math.floor(seconds)
local function int(number) return string.format('%.0f', number) end

-- Lua's numbers are exact up to 2^53 only: sums are compared in two halves, and added by the server.
local function split(digits)
  local n = #digits
  if n <= 9 then return 0, tonumber(digits) end
  return tonumber(string.sub(digits, 1, n - 9)), tonumber(string.sub(digits, n - 8))
end
local function compare(plus, minus)
  local high, low = 0, 0
  for _, digits in ipairs(plus) do local h, l = split(digits); high = high + h; low = low + l end
  for _, digits in ipairs(minus) do local h, l = split(digits); high = high - h; low = low - l end
  high = high + math.floor(low / 1e9)
  low = low % 1e9
  if high ~= 0 then return high end
  return low
end

local function account(key) return P .. 'a:' .. key end
local function roll(a, start)
  redis.call('HSET', a, 'start', start, 'spent', '0', 'reserved', '0', 'credit', '0', 'soft', '-1', 'told', '-1')
end
local function window_start(window) return int(window == 0 and 0 or now - now % window) end
local function forget_at(key, idle)
  redis.call('HSET', account(key), 'idle', int(idle))
  redis.call('ZADD', IDLE, int(idle), key)
end
local function add(holds, sign)
  for _, hold in ipairs(holds) do
    local a = account(hold[1])
    -- '-0' is no number to the server.
    if hold[3] ~= '0' and redis.call('HGET', a, 'start') == hold[2] then
      redis.call('HINCRBY', a, 'reserved', sign .. hold[3])
    end
  end
end
"""

_SWEEP: Final = f"""
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, {SWEEP})) do
  local holds = redis.call('HGET', P .. 'r:' .. id, 'holds')
  if holds then
    add(cjson.decode(holds), '-')
    redis.call('HSET', P .. 'r:' .. id, 'state', 'late')
    redis.call('EXPIRE', P .. 'r:' .. id, {LATE_SECONDS})
  end
  redis.call('ZREM', LEASES, id)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', IDLE, '-inf', now, 'LIMIT', 0, {SWEEP})) do
  if redis.call('HGET', account(key), 'reserved') == '0' then
    redis.call('DEL', account(key))
    redis.call('ZREM', IDLE, key)
  else
    forget_at(key, now + {_IDLE_GRAIN})
  end
end
"""

# A claim is a list of strings: key, window, amount, limit or '', hard, soft or '', spendable, seconds until forgotten.
_FIND: Final = f"""
local function find(claim)
  local c = {{key = claim[1], window = tonumber(claim[2]), amount = claim[3], limit = claim[4],
    hard = claim[5] == '1', soft = claim[6], spendable = claim[7] == '1', idle = tonumber(claim[8])}}
  local a, start = account(c.key), window_start(c.window)
  local v = redis.call('HMGET', a, 'start', 'spent', 'reserved', 'credit', 'soft', 'told', 'limit', 'idle')
  if not v[1] or tonumber(v[1]) < tonumber(start) then
    roll(a, start)
    v[1], v[2], v[3], v[4], v[5], v[6] = start, '0', '0', '0', '-1', '-1'
  end
  local idle = c.idle == {NEVER} and c.idle or now + c.idle
  if not v[8] or math.abs(idle - tonumber(v[8])) >= math.min({_IDLE_GRAIN}, c.idle / 10) then forget_at(c.key, idle) end
  c.a, c.start, c.spent, c.reserved, c.credit, c.soft_told, c.told, c.seen = a, v[1], v[2], v[3], v[4], v[5], v[6], v[7]
  return c
end
local function see(c)
  if c.seen ~= c.limit then redis.call('HSET', c.a, 'limit', c.limit) end
end
local function soft_notice(a, soft)
  if soft == '' then return false end
  local v = redis.call('HMGET', a, 'spent', 'soft')
  if compare({{v[1]}}, {{soft}}) < 0 or (v[2] ~= '-1' and compare({{v[2]}}, {{soft}}) >= 0) then return false end
  redis.call('HSET', a, 'soft', soft)
  return true
end
local function limit_notice(c)
  local v = redis.call('HMGET', c.a, 'told', 'credit')
  if v[1] ~= '-1' and compare({{v[1]}}, {{c.limit, v[2]}}) >= 0 then return false end
  redis.call('HSET', c.a, 'told', c.limit)
  redis.call('HINCRBY', c.a, 'told', v[2])
  return true
end
"""

# ARGV: prefix, lease, claims. Answers `granted` or `refused` and, for each claim or for the one that does not fit:
# spent, reserved without this claim, credit, start, and a word of o (over), s (soft line) and l (limit).
_RESERVE: Final = """
local known = redis.call('HGET', R, 'granted')
if known then return known end
local claims, holds, answer = {}, {}, {'granted'}
for _, claim in ipairs(cjson.decode(ARGV[3])) do
  local c = find(claim)
  if c.limit ~= '' then
    local more = compare({c.spent, c.reserved, c.amount}, {c.limit, c.credit})
    if more > 0 or (more == 0 and c.amount == '0') then
      if c.hard then
        add(holds, '-')
        see(c)
        local word = limit_notice(c) and 'l' or ''
        return cjson.encode({'refused', int(#claims), c.spent, c.reserved, c.credit, c.start, word})
      end
      c.over = true
    end
  end
  see(c)
  redis.call('HINCRBY', c.a, 'reserved', c.amount)
  claims[#claims + 1] = c
  holds[#holds + 1] = {c.key, c.start, c.amount, c.soft, c.spendable and '1' or '0'}
end
for _, c in ipairs(claims) do
  local word = (c.over and 'o' or '') .. (soft_notice(c.a, c.soft) and 's' or '')
  if c.over and limit_notice(c) then word = word .. 'l' end
  for _, value in ipairs({c.spent, c.reserved, c.credit, c.start, word}) do answer[#answer + 1] = value end
end
local till = int(math.ceil(seconds + ARGV[2]))
local granted = cjson.encode(answer)
redis.call('HSET', R, 'state', 'live', 'holds', cjson.encode(holds), 'granted', granted)
redis.call('ZADD', LEASES, till, string.sub(R, #P + 3))
return granted
"""

# ARGV: prefix, `settle` or `release`, retention, what was used by the claims' numbers.
_END: Final = f"""
local v = redis.call('HMGET', R, 'state', 'holds')
if not v[1] then return '["unknown"]' end
if v[1] == 'ended' then return '["again"]' end
local holds, used, answer = cjson.decode(v[2]), cjson.decode(ARGV[4]), {{'done'}}
if v[1] == 'live' then add(holds, '-') end
for i, hold in ipairs(holds) do
  local a = account(hold[1])
  if ARGV[2] == 'settle' and hold[5] == '1' then
    local start = redis.call('HGET', a, 'start')
    if not start then
      start = window_start(tonumber(string.match(hold[1], '%d+$')))
      roll(a, start)
      forget_at(hold[1], now + tonumber(ARGV[3]))
    end
    if start == hold[2] then
      redis.call('HINCRBY', a, 'spent', used[int(i - 1)] or hold[3])
      if soft_notice(a, hold[4]) then answer[#answer + 1] = int(i - 1); answer[#answer + 1] = hold[4] end
    end
  end
end
redis.call('ZREM', LEASES, string.sub(R, #P + 3))
redis.call('HDEL', R, 'holds')
redis.call('HSET', R, 'state', 'ended')
redis.call('EXPIRE', R, {ENDED_SECONDS})
return cjson.encode(answer)
"""

# ARGV: prefix, lease.
_EXTEND: Final = """
local v = redis.call('HMGET', R, 'state', 'holds')
if not v[1] or v[1] == 'ended' then return '["no"]' end
if v[1] == 'late' then add(cjson.decode(v[2]), '') end
redis.call('HSET', R, 'state', 'live')
redis.call('PERSIST', R)
redis.call('ZADD', LEASES, int(math.ceil(seconds + ARGV[2])), string.sub(R, #P + 3))
return '["yes"]'
"""

# ARGV: prefix, claims.
_SPEND: Final = f"""
if redis.call('EXISTS', R) == 1 then return '["again"]' end
local answer = {{'done'}}
for i, claim in ipairs(cjson.decode(ARGV[2])) do
  local c = find(claim)
  see(c)
  if c.spendable then redis.call('HINCRBY', c.a, 'spent', c.amount) end
  if soft_notice(c.a, c.soft) then answer[#answer + 1] = int(i - 1); answer[#answer + 1] = c.soft end
end
redis.call('HSET', R, 'state', 'ended', 'granted', cjson.encode({{'granted'}}))
redis.call('EXPIRE', R, {ENDED_SECONDS})
return cjson.encode(answer)
"""

# ARGV: prefix, `read`, `reset` or `credit`, amount, keys. Answers the time and each balance that there is: as it was
# for `reset`, as it is now otherwise.
_LIST: Final = """
local answer = {int(now)}
for _, key in ipairs(cjson.decode(ARGV[4])) do
  local a = account(key)
  local start = redis.call('HGET', a, 'start')
  if start then
    local begins = window_start(tonumber(string.match(key, '%d+$')))
    if ARGV[2] ~= 'read' and tonumber(start) < tonumber(begins) then roll(a, begins) end
    if ARGV[2] == 'credit' then redis.call('HINCRBY', a, 'credit', ARGV[3]) end
    answer[#answer + 1] = key
    for _, value in ipairs(redis.call('HMGET', a, 'start', 'spent', 'reserved', 'credit', 'limit')) do
      answer[#answer + 1] = value or ''
    end
    if ARGV[2] == 'reset' then redis.call('HSET', a, 'spent', '0', 'credit', '0', 'soft', '-1', 'told', '-1') end
  end
end
return cjson.encode(answer)
"""

_PARTS: Final = {
    "reserve": _SWEEP + _FIND + _RESERVE,
    "end": _FIND + _END,
    "extend": _EXTEND,
    "spend": _FIND + _SPEND,
    "list": _SWEEP + _LIST,
}

# Numbers go as strings, which Lua cannot round; a request and an answer are one JSON text each, which costs the client
# a third of what a list of arguments does.
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str]).decode

_Call = tuple[str, str, Sequence[str | bytes]]


class RedisLedger:
    """Connects when it is first asked something, and again after an outage."""

    def __init__(self, url: str, *, retention: int = RETENTION, timeout: float = 0.25) -> None:
        plain, name = database(url)
        self._prefix = f"{{{name}}}:"
        self._retention, self._timeout = retention, timeout
        self._scripts = {name: CLOCK + _COMMON + part for name, part in _PARTS.items()}
        self._digests = {name: _digest(text) for name, text in self._scripts.items()}
        never = Retry(NoBackoff(), 0)
        self._redis: Redis = Redis.from_url(
            plain, decode_responses=True, socket_timeout=timeout, socket_connect_timeout=timeout, retry=never
        )
        self._waiting: list[tuple[_Call, asyncio.Future[list[str]]]] = []
        self._sender: asyncio.Task[None] | None = None

    async def reserve(self, id: str, claims: Sequence[Claim], lease_seconds: float) -> Answer:
        said = await self._ask("reserve", id, str(lease_seconds), self._claims(claims))
        if said[0] == "granted":
            return _granted(claims, said[1:])
        return _refused(claims, said[1:])

    async def settle(self, id: str, used: Mapping[int, int]) -> Settled:
        check_used(used)
        named = _encode({str(number): str(amount) for number, amount in used.items()})
        return _settled(await self._ask("end", id, "settle", str(self._retention), named))

    async def release(self, id: str) -> Ending:
        return _settled(await self._ask("end", id, "release", str(self._retention), b"{}")).ending

    async def extend(self, id: str, lease_seconds: float) -> bool:
        return await self._ask("extend", id, str(lease_seconds)) == ["yes"]

    async def spend(self, id: str, claims: Sequence[Claim]) -> Settled:
        return _settled(await self._ask("spend", id, self._claims(claims)))

    async def read(self, prefix: str = "", limit: int = 1000) -> list[Row]:
        return await self._list(prefix, "read", limit=limit)

    async def reset(self, account: str) -> list[Row]:
        return await self._list(keys_of(account), "reset")

    async def top_up(self, account: str, unit: str, amount: int) -> list[Row]:
        check_amount(amount)
        return await self._list(keys_of(account, unit), "credit", amount)

    async def close(self) -> None:
        if self._sender is not None:
            await asyncio.wait([self._sender])
        await self._redis.aclose()

    # --- what is said ---

    def _claims(self, claims: Sequence[Claim]) -> bytes:
        return _encode([self._words(claim) for claim in claims])

    def _words(self, claim: Claim) -> tuple[str, ...]:
        limit = "" if claim.limit is None else str(claim.limit)
        soft = "" if claim.soft is None else str(claim.soft)
        idle = NEVER if claim.keep else max(self._retention, claim.window)
        flags = ("1" if claim.hard else "0", "0" if claim.unit == SLOT else "1")
        return (claim.key, str(claim.window), str(claim.amount), limit, flags[0], soft, flags[1], str(idle))

    async def _list(self, prefix: str, what: str, amount: int = 0, limit: int | None = None) -> list[Row]:
        keys = (await self._keys(prefix))[:limit]
        rows: list[Row] = []
        for first in range(0, len(keys), _PAGE):
            said = await self._ask("list", "", what, str(amount), _encode(keys[first : first + _PAGE]))
            rows += _rows(int(said[0]), said[1:])
        return rows

    async def _keys(self, prefix: str) -> list[str]:
        try:
            found = self._redis.zscan_iter(f"{self._prefix}idle", match=f"{_escaped(prefix)}*", count=_PAGE)
            return sorted({key async for key, _ in found})
        except (RedisError, OSError) as error:
            raise unavailable(error) from None

    # --- how it is sent ---

    async def _ask(self, script: str, id: str, *words: str | bytes) -> list[str]:
        future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.append(((script, id, words), future))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return await future

    async def _send(self) -> None:
        """Batch after batch until nobody waits. Never raises: what fails is told to those who asked."""
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            calls = [call for call, _ in batch]
            try:
                answers = await self._exchange(calls)
            except (RedisError, OSError, TimeoutError) as error:
                answers = [error] * len(batch)
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    _resolve(future, answer)

    async def _exchange(self, calls: Sequence[_Call]) -> list[Any]:
        """One answer or error for each call. A script that the server does not know was not run: it is sent whole."""
        async with asyncio.timeout(self._timeout):
            answers = await self._pipeline(calls)
            unknown = [index for index, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            if unknown:
                again = await self._pipeline([calls[index] for index in unknown], whole=True)
                for index, answer in zip(unknown, again, strict=True):
                    answers[index] = answer
            return answers

    async def _pipeline(self, calls: Sequence[_Call], *, whole: bool = False) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for script, id, words in calls:
                keys = (f"{self._prefix}leases", f"{self._prefix}idle", f"{self._prefix}r:{id}")
                name, text = ("EVAL", self._scripts[script]) if whole else ("EVALSHA", self._digests[script])
                pipe.execute_command(name, text, 3, *keys, self._prefix, *words)
            return await pipe.execute(raise_on_error=False)


def _digest(script: str) -> str:
    return sha1(script.encode(), usedforsecurity=False).hexdigest()


def database(url: str) -> tuple[str, str]:
    """The URL without our own option, and the ledger's name."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    name = options.pop("ledger", DEFAULT_NAME)
    if not name or set(name) & set("{}"):
        raise ValueError("the ledger's name in a store URL must not be empty and has no braces")
    return urlunsplit(parts._replace(query=urlencode(options))), name


def _resolve(future: asyncio.Future[list[str]], answer: Any) -> None:
    if isinstance(answer, BaseException):
        future.set_exception(unavailable(answer))
    else:
        future.set_result(_decode(answer))


def unavailable(error: BaseException) -> StoreUnavailable:
    """Names the kind only: what Redis or the system says may hold the address or a key's name."""
    if isinstance(error, TimeoutError | TimedOut):
        return StoreUnavailable("The store did not answer in time (Redis).")
    if isinstance(error, Disconnected | OSError):
        return StoreUnavailable("The store cannot be reached (Redis).")
    return StoreUnavailable(f"The store refused a command (Redis: {type(error).__name__}).")


def _granted(claims: Sequence[Claim], said: Sequence[str]) -> Granted:
    remaining, ends, over, soft, limits = [], [], [], [], []
    for index, (claim, first) in enumerate(zip(claims, range(0, len(said), 5), strict=False)):
        spent, reserved, credit, start = map(int, said[first : first + 4])
        word, limit = said[first + 4], None if claim.limit is None else claim.limit + credit
        remaining.append(None if limit is None else max(0, limit - spent - reserved - claim.amount))
        ends.append(resets_at(start, claim.window))
        over += [index] if "o" in word else []
        soft += [Notice(index, Line.SOFT, claim.soft or 0)] if "s" in word else []
        limits += [Notice(index, Line.LIMIT, limit or 0)] if "l" in word else []
    return Granted(tuple(remaining), tuple(ends), tuple(over), (*soft, *limits))


def _refused(claims: Sequence[Claim], said: Sequence[str]) -> Refused:
    index, spent, reserved, credit, start = map(int, said[:5])
    claim = claims[index]
    limit = (claim.limit or 0) + credit
    notices = (Notice(index, Line.LIMIT, limit),) if said[5] else ()
    return Refused(index, spent, reserved, limit, resets_at(start, claim.window), notices)


def _settled(said: Sequence[str]) -> Settled:
    lines = zip(said[1::2], said[2::2], strict=True)
    return Settled(Ending(said[0]), tuple(Notice(int(index), Line.SOFT, int(soft)) for index, soft in lines))


def _rows(now: int, said: Sequence[str]) -> list[Row]:
    rows = []
    for first in range(0, len(said), 6):
        key, start, spent, reserved, credit, limit = said[first : first + 6]
        balance = Balance(int(start), int(spent), int(reserved), int(credit), int(limit) if limit else None)
        rows.append(row(key, balance, now))
    return rows


def _escaped(prefix: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[]^-" else letter for letter in prefix)
