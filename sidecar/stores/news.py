"""What processes tell each other over Redis as it happens. Nothing is kept: who is not listening has missed it."""

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError

CHANNEL: Final = "sidecar:news"
# How long a listener waits before it connects again, and a teller for its word to be taken.
RETRY_SECONDS: Final = 1.0
TELL_SECONDS: Final = 0.25

News = dict[str, Any]


def shares(url: str) -> bool:
    """Whether a store's URL names one over which processes can tell each other anything."""
    return urlsplit(url).scheme in ("redis", "rediss", "unix")


class Bulletin:
    """One process's ear and mouth. `hear` is called with what the others told, never with what this one did."""

    def __init__(self, url: str, hear: Callable[[News], None]) -> None:
        self._redis = Redis.from_url(url.partition("?")[0], socket_timeout=None, socket_connect_timeout=TELL_SECONDS)
        self._hear, self._me = hear, secrets.token_hex(8)
        self._telling: set[asyncio.Task[None]] = set()

    def tell(self, news: News) -> None:
        """Sends it on its way and does not wait. What cannot be told is not: everybody still knows for himself."""
        task = asyncio.ensure_future(self._publish(json.dumps({**news, "by": self._me})))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _publish(self, message: str) -> None:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self._redis.publish(CHANNEL, message)

    async def listen(self) -> None:
        """Until it is cancelled; a lost connection is made again."""
        while True:
            with suppress(RedisError, OSError):
                async with self._redis.pubsub(ignore_subscribe_messages=True) as heard:
                    await heard.subscribe(CHANNEL)
                    async for message in heard.listen():
                        self._take(message.get("data"))
            await asyncio.sleep(RETRY_SECONDS)

    def _take(self, data: Any) -> None:
        """What is none of ours is passed over: anybody may write into a channel."""
        try:
            news = json.loads(data)
        except (TypeError, ValueError):
            return
        if isinstance(news, dict) and news.pop("by", self._me) != self._me:
            self._hear(news)

    async def close(self) -> None:
        for task in list(self._telling):
            task.cancel()
        with suppress(RedisError, OSError):
            await self._redis.aclose()
