"""Addresses of hosts, devices and people, and addresses that carry data away."""

import re
from ipaddress import ip_address

from sidecar.text.checks.numbers import words_of

# Names that only look like a domain: `icon@2x.png`, `checkout@v4.js`.
_FILES = words_of("png jpg jpeg gif svg webp ico css scss js jsx mjs ts tsx json yaml yml md py rs go zip gz tgz jar")


def email(value: str) -> bool:
    """No file name, no `git@host` of a clone address, and no empty label in the domain."""
    local, _, domain = value.rpartition("@")
    return local not in ("git", "hg") and domain.rpartition(".")[2].lower() not in _FILES and ".." not in value


def ip(value: str) -> bool:
    """An address of some host: no loopback, multicast or netmask; an IPv6 one is no `a::b` of some code."""
    try:
        address = ip_address(value.partition("%")[0])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or value.startswith(("255.", "0.")):
        return False
    groups = [group for group in value.split(":") if group]
    return address.version == 4 or (any(c.isdigit() for c in groups[0]) and len(groups[0]) > 2)


def mac(value: str) -> bool:
    """IEEE 802: six octets, neither all zeros nor the broadcast address."""
    return len(set(re.sub("[^0-9a-f]", "", value.lower()))) > 1


# ITU-T E.164: country codes in use, by their first digits.
_CALLING = re.compile(
    r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]"
    r"|2(?:1[1-368]|[2-4]\d|5[0-8]|6[0-9]|9[01789])|3(?:5\d|7\d|8[0-9])|42[013]|5(?:0\d|9\d)|6(?:7\d|8\d|9[0-2])"
    r"|8(?:00|08|5[02356]|8[0-36-8])|9(?:6[0-8]|7[0-9]|9[2-68])"
)


def phone(value: str) -> bool:
    """ITU-T E.164: seven to fifteen digits; after a plus a country code in use; not all the same."""
    digits = re.sub(r"\D", "", value)
    known = not value.startswith("+") or bool(_CALLING.match(digits))
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2 and known


_TEMPLATE = re.compile(r"\{|%7[Bb]|\[|%5[Bb]|<|%3[Cc]|\$")
_CARRIER = re.compile(
    r"[?&](?:data|payload|secret|exfil|leak|history|context|prompt|conversation|stolen|key|info|q|d|c)=", re.I
)
# An ordinary parameter is a word or a number; what carries a conversation is longer.
_LONG_PARAMETER = 32


def exfiltrates(value: str) -> bool:
    """An address whose query carries more than settings: a template to be filled, or a long value."""
    query = value.partition("?")[2]
    longest = max((len(pair.partition("=")[2]) for pair in query.split("&")), default=0)
    return (
        bool(_TEMPLATE.search(query)) or longest >= _LONG_PARAMETER or (longest >= 12 and bool(_CARRIER.search(value)))
    )
