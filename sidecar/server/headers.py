"""Which headers go through, both ways: RFC 9110 hop-by-hop fields stay here, ours stay here, the rest is kept.

Names are lower-case bytes, as the server and the client give them. Order and repetition are kept.
"""

from collections.abc import Collection, Iterator
from typing import Final

from ..upstream.targets import Provider
from ..wire.coding import acceptable
from .masking import is_secret

Headers = list[tuple[bytes, bytes]]

_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# The client's own connection and framing: the upstream connection says its own.
_NOT_UP: Final = _HOP | {b"host", b"expect", b"content-length"}
CREDENTIALS: Final = (b"authorization", b"x-api-key", b"api-key")
OURS: Final = b"x-sidecar-"
OWN_KEY: Final = b"x-sidecar-key"
# Headers that describe the bytes of a body: wrong once it has changed.
OF_BODY: Final = frozenset(
    (
        b"content-length",
        b"content-encoding",
        b"content-md5",
        b"content-digest",
        b"digest",
        b"repr-digest",
        b"etag",
    )
)
# A page's script can set no header of a WebSocket but this list; OpenAI's take a key as one of its entries.
SUBPROTOCOLS: Final = b"sec-websocket-protocol"
KEY_ENTRY: Final = b"openai-insecure-api-key."


def value_of(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a header."""
    for key, value in headers:
        if key == name:
            return value
    return None


def joined(headers: Headers, name: bytes) -> bytes | None:
    """All values of a header that is a list, as one; None where it is absent."""
    values = [value for key, value in headers if key == name]
    return b", ".join(values) if values else None


def request_headers(headers: Headers, spent: Collection[bytes], provider: Provider) -> Headers:
    """A client's headers for a provider, without framing: add what `framing` says for the body that is sent.

    `spent` names the headers whose credential was ours. A provider for which we have a key gets that one alone.
    """
    drop, ours = _nominated(headers, _NOT_UP), presented(provider)
    if ours:
        drop = drop.union(CREDENTIALS, (name for name, _ in ours))
    if spent:
        drop = drop.union(spent)
    kept = [h for h in headers if h[0] not in drop and h[0][:10] != OURS]
    return kept + ours if ours else kept


def presented(provider: Provider) -> Headers:
    """What we say to a provider for which we have a key. A real key is looked for in what comes back, in plain."""
    if provider.api_key is None:
        return []
    plain = [(b"accept-encoding", b"identity")] if is_secret(provider.api_key) else []
    return [credential(provider), *plain]


def credential(provider: Provider) -> tuple[bytes, bytes]:
    """The header that presents us to a provider."""
    key = (provider.api_key or "").encode("ascii")
    if provider.auth == "bearer":
        return b"authorization", b"Bearer " + key
    return provider.auth.encode("ascii"), key


def entries(value: bytes) -> Iterator[bytes]:
    """The entries of a header that is a list."""
    return (entry.strip() for entry in value.split(b","))


def shows_key(subprotocol: bytes) -> bool:
    return subprotocol[: len(KEY_ENTRY)].lower() == KEY_ENTRY


def framing(length: int | None, declared: bool) -> Headers:
    """The framing of a request body of `length` bytes (None: unknown); nothing where none was and none is."""
    if length is None:
        return [(b"transfer-encoding", b"chunked")]
    return [(b"content-length", b"%d" % length)] if length or declared else []


def reply_headers(headers: Headers) -> Headers:
    """A provider's headers for the client, Content-Length among them."""
    drop = _nominated(headers, _HOP)
    return [h for h in headers if h[0] not in drop]


def readable(headers: Headers) -> Headers:
    """Asks only for content codings that we can undo."""
    asked = value_of(headers, b"accept-encoding")
    kept = [h for h in headers if h[0] != b"accept-encoding"]
    return [*kept, (b"accept-encoding", acceptable(asked))]


def _nominated(headers: Headers, drop: frozenset[bytes]) -> frozenset[bytes]:
    """What is dropped, with what Connection names. It cannot name away the length: that frames the message."""
    for name, value in headers:
        if name == b"connection":
            drop |= {token.strip().lower() for token in value.split(b",")} - {b"content-length"}
    return drop
