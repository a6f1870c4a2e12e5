"""Addresses and keys that carry a hash of themselves."""

from hashlib import sha256

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58check(value: str) -> bool:
    """Bitcoin's Base58Check: the last four of the decoded bytes are the double SHA-256 of the rest."""
    number = 0
    for char in value:
        place = _BASE58.find(char)
        if place < 0:
            return False
        number = number * 58 + place
    zeros = len(value) - len(value.lstrip("1"))
    data = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(data) > 4 and sha256(sha256(data[:-4]).digest()).digest()[:4] == data[-4:]


_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CONSTANTS = (1, 0x2BC830A3)  # bech32 (BIP 173), bech32m (BIP 350)


def _polymod(values: list[int]) -> int:
    checksum = 1
    for value in values:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum


def bech32(value: str) -> bool:
    """BIP 173 and BIP 350: a BCH code over prefix and data; catches any four wrong characters."""
    text = value.lower()
    human, _, data = text.rpartition("1")
    if value not in (text, value.upper()) or not human or len(data) < 6 or set(data) - set(_BECH32):
        return False
    spread = [ord(c) >> 5 for c in human] + [0] + [ord(c) & 31 for c in human]
    return _polymod(spread + [_BECH32.index(c) for c in data]) in _BECH32_CONSTANTS


def bitcoin(value: str) -> bool:
    """An address of Bitcoin or its kin: Base58Check, or bech32 where it has a prefix of that form."""
    return bech32(value) if value.lower().startswith(("bc1", "ltc1", "addr1", "cosmos1")) else base58check(value)
