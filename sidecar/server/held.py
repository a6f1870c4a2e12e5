"""A reply of which a part has been read to see what it is."""

from typing import Any

from ..upstream.connection import Headers, Reply
from ..upstream.targets import Provider
from .headers import OF_BODY


class Parsed(Reply):
    """A reply that somebody has looked into."""

    __slots__ = ("parsed",)

    parsed: tuple[bytes, Any] | None
    """The whole body as it came, and the document that it is: where both are known, it need not be read again."""

    def document_of(self, plain: bytes) -> Any:
        """The document that a body is, None where it is not known."""
        return self.parsed[1] if self.parsed is not None and self.parsed[0] is plain else None


class Held(Parsed):
    """A reply of which a part has been read. Without `rest` that part is all of it."""

    __slots__ = ("_pieces", "_rest")

    def __init__(self, reply: Reply, pieces: list[bytes], *, rest: bool) -> None:
        self.parsed = None
        self.status, self.reason, self.headers = reply.status, reply.reason, reply.headers
        self._pieces, self._rest = pieces, reply if rest else None

    @property
    def complete(self) -> bool:
        return not self._pieces and (self._rest is None or self._rest.complete)

    @property
    def ready(self) -> bool:
        return bool(self._pieces) or self._rest is None or self._rest.ready

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        return b"" if self._rest is None else await self._rest.read()

    def close(self) -> None:
        if self._rest is not None:
            self._rest.close()

    def cut(self) -> None:
        """Its connection goes: what has been read is all there will be."""
        if self._rest is not None:
            self._rest = None
            self.headers = [h for h in self.headers if h[0] != b"content-length"]


class Kept(Parsed):
    """A whole reply that has been through a part of the chain. `provider` gave it, or would have."""

    __slots__ = ("_left", "body", "provider")

    def __init__(self, status: int, headers: Headers, body: bytes, provider: Provider, reason: bytes = b"") -> None:
        self.status, self.reason, self.headers, self.body, self.provider = status, reason, headers, body, provider
        self.parsed = None
        self._left = True

    @property
    def complete(self) -> bool:
        return not self._left

    @property
    def ready(self) -> bool:
        return True

    async def read(self) -> bytes:
        self._left = False
        return self.body

    def close(self) -> None:
        pass

    def with_body(self, body: bytes) -> "Kept":
        """The same reply with another body, which stands plain."""
        headers = [h for h in self.headers if h[0] not in OF_BODY]
        return Kept(self.status, headers, body, self.provider, self.reason)
