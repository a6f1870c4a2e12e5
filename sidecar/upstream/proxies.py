"""Which proxy, if any, stands between us and a provider: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

Resolved once for each provider when the policy is taken up. An entry that cannot be read is skipped with a
warning: the environment of a process is not ours to refuse.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from .targets import BaseUrl, split_base_url

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. `authorization` is the value of Proxy-Authorization, or empty."""

    scheme: str
    host: str
    port: int
    authorization: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def proxy_for(url: BaseUrl, environ: Mapping[str, str], warn: Warn) -> Proxy | None:
    """The proxy for one provider, or None for a direct connection."""
    name, value = _configured(url.scheme, environ)
    if not value or _exempt(url, _variable("no_proxy", environ), warn):
        return None
    return _parse(name, value, warn)


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _configured(scheme: str, environ: Mapping[str, str]) -> tuple[str, str]:
    for name in (f"{scheme}_proxy", "all_proxy"):
        if value := _variable(name, environ).strip():
            return name.upper(), value
    return "", ""


def _parse(name: str, value: str, warn: Warn) -> Proxy | None:
    try:
        url = split_base_url(value if "://" in value else f"http://{value}")
    except ValueError:
        warn(f"{name} is ignored: expected http://host:port or https://host:port")
        return None
    secret = b"Basic " + base64.b64encode(url.userinfo) if url.userinfo else b""
    return Proxy(url.scheme, url.host, url.port, secret)


def _exempt(url: BaseUrl, no_proxy: str, warn: Warn) -> bool:
    entries = [entry.strip().lower() for entry in no_proxy.replace(" ", ",").split(",")]
    return any(_covers(entry, url, warn) for entry in entries if entry)


def _covers(entry: str, url: BaseUrl, warn: Warn) -> bool:
    """Whether one entry names the host: `*`, a name, a suffix, an address, a network; each but `*` with a port."""
    if entry == "*":
        return True
    name, port = _split_port(entry)
    if port and port != str(url.port):
        return False
    address = _address(url.host)
    if "/" in name:
        return _in_network(name, address, warn)
    if (wanted := _address(name)) is not None:
        return wanted == address
    if not name or any(c in "[]:@ " for c in name):
        warn(f"the NO_PROXY entry {entry!r} is ignored: expected a host, a suffix, an address or a network")
        return False
    suffix = name.removeprefix("*").removeprefix(".")
    return bool(suffix) and (url.host == suffix or url.host.endswith(f".{suffix}"))


def _split_port(entry: str) -> tuple[str, str]:
    """`host:port`, `[v6]:port`, `[v6]` or a bare address in name and port."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name + rest if rest.startswith("/") else name, rest.removeprefix(":") if ":" in rest else ""
    if entry.count(":") == 1 and entry.rpartition(":")[2].isdigit():
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _in_network(text: str, address: IPv4Address | IPv6Address | None, warn: Warn) -> bool:
    try:
        network: IPv4Network | IPv6Network = ip_network(text, strict=False)
    except ValueError:
        warn(f"the NO_PROXY entry {text!r} is ignored: expected a network such as 10.0.0.0/8 or fd00::/8")
        return False
    return address is not None and address.version == network.version and address in network
