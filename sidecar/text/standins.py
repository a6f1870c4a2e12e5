"""What stands for a value and still says something of it."""

import hmac

# A shorter value keeps nothing: four of its characters would be half of it.
_SHORTEST_MASKED = 9
_KEPT = 4


def masked(value: str) -> str:
    """Asterisks for all but the last four characters."""
    kept = _KEPT if len(value) >= _SHORTEST_MASKED else 0
    return "*" * (len(value) - kept) + value[len(value) - kept :]


def hashed(key: bytes, tenant: str, name: str, value: str) -> str:
    """`[HASH:name:16 hex digits]`: HMAC-SHA256 under the policy's key, apart for each tenant (RFC 2104)."""
    message = "\0".join((tenant, name, value)).encode("utf-8", "surrogatepass")
    return f"[HASH:{name}:{hmac.digest(key, message, 'sha256').hex()[:16]}]"
