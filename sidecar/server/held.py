"""A reply of which a part has been read to see what it is."""

from typing import Any

from ..upstream.connection import Reply


class Held(Reply):
    """A reply of which a part has been read. Without `rest` that part is all of it."""

    __slots__ = ("_pieces", "_rest", "parsed")

    def __init__(self, reply: Reply, pieces: list[bytes], *, rest: bool) -> None:
        self.parsed: tuple[bytes, Any] | None = None
        """The whole body as it came, and the document that it is."""
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
