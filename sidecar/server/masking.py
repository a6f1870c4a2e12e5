"""Keeps a provider's own key from coming down: it is replaced by asterisks of the same length in every reply.

The same length, because a reply's Content-Length has left before its body is read.
"""

# Shorter values, and values without a digit, are what people write where a server wants no key: `none`, `lm-studio`.
# Masking those would eat ordinary words.
_SHORTEST = 8


def is_secret(key: str | None) -> bool:
    return key is not None and len(key) >= _SHORTEST and any(c.isdigit() for c in key)


class KeyMask:
    """One reply body on its way down. Holds back only what may be the beginning of the key."""

    __slots__ = ("_held", "_key", "_stars")

    def __init__(self, key: str) -> None:
        self._key = key.encode("ascii")
        self._stars = b"*" * len(self._key)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        data = (self._held + data).replace(self._key, self._stars)
        cut = self._start_of_key(data)
        self._held = data[cut:]
        return data[:cut]

    def finish(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def _start_of_key(self, data: bytes) -> int:
        """Where at the end of `data` the key may have begun; its length if nowhere."""
        at = data.find(self._key[:1], max(0, len(data) - len(self._key) + 1))
        while at >= 0:
            if self._key.startswith(data[at:]):
                return at
            at = data.find(self._key[:1], at + 1)
        return len(data)

    def headers(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return [(name, value.replace(self._key, self._stars)) for name, value in headers]
