"""Whether an exchange runs at all: who calls, and how many are running."""

import hashlib
from collections.abc import Collection, Iterator, Mapping

from ..errors import Overloaded, Unauthorized
from ..policy.schema import AuthMode
from ..runtime import Runtime
from .headers import CREDENTIALS, KEY_ENTRY, OWN_KEY, SUBPROTOCOLS, Headers, entries, shows_key

DEFAULT_TENANT = "default"
_BEARER = b"bearer "
_CARRIERS = frozenset((*CREDENTIALS, OWN_KEY))


def enter(runtime: Runtime) -> None:
    """Takes a place among the running exchanges; give it back with `leave`. Raises Overloaded."""
    limit = runtime.now.snapshot.server.max_concurrent
    if runtime.active >= limit:
        raise Overloaded(f"The sidecar already runs {limit} exchanges, the most it may.", retry_after=1)
    runtime.active += 1


def leave(runtime: Runtime) -> None:
    runtime.active -= 1


def identify(
    headers: Headers, tenants: Mapping[str, str], auth: AuthMode, admins: Collection[str] = ()
) -> tuple[str, frozenset[bytes]]:
    """The tenant, and the names of the headers whose credential was ours and must not go upstream.

    With `auth: off` nobody is told apart, and keys of ours still stay here.
    Keys are compared by their SHA-256: how long a look-up takes tells of the hash and nothing of the key.
    Raises Unauthorized.
    """
    shown = [
        (name, tenant)
        for name, value in _credentials(headers)
        if (tenant := tenants.get(_hash(name, value))) is not None
    ]
    found = dict(shown)
    ours = frozenset(found) | admin_headers(headers, admins).keys()
    if not found and auth is AuthMode.REQUIRED:
        raise Unauthorized(
            "A key of this sidecar is required, as Authorization: Bearer, x-api-key, api-key or x-sidecar-key."
        )
    if auth is AuthMode.OFF:
        return DEFAULT_TENANT, ours
    if len({tenant for _, tenant in shown}) > 1:
        raise Unauthorized("The request presents keys of more than one tenant.")
    return next(iter(found.values()), DEFAULT_TENANT), ours


def admin_headers(headers: Headers, admins: Collection[str]) -> dict[bytes, str]:
    """The headers that show an admin's key, each with the key's hash."""
    hashes = ((name, _hash(name, value)) for name, value in _credentials(headers)) if admins else ()
    return {name: digits for name, digits in hashes if digits in admins}


def _credentials(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers:
        if name == SUBPROTOCOLS:
            yield from ((name, entry[len(KEY_ENTRY) :]) for entry in entries(value) if shows_key(entry))
        elif name in _CARRIERS:
            yield name, value


def _hash(name: bytes, value: bytes) -> str:
    if name == b"authorization" and value[:7].lower() == _BEARER:
        value = value[7:]
    return hashlib.sha256(value.strip()).hexdigest()
