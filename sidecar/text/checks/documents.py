"""Documents of several countries, and vehicles."""

from sidecar.text.checks.numbers import compact, weighted

_731 = (7, 3, 1)


def icao_check(value: str) -> bool:
    """ICAO 9303: weights 7, 3, 1 over digits and letters (A = 10), the last digit closes."""
    text = compact(value)
    if not (text.isascii() and text.isalnum() and text[-1:].isdigit()):
        return False
    return sum(int(c, 36) * _731[i % 3] for i, c in enumerate(text[:-1])) % 10 == int(text[-1])


def mrz_names(value: str) -> bool:
    """ICAO 9303: names in a machine-readable line are parted by two fillers."""
    return "<<" in value


def vin(value: str) -> bool:
    """ISO 3779 with the North American check digit (49 CFR 565): letters by table, weights, mod 11, X for 10."""
    text = value.upper()
    letters = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)), strict=True))
    numbers = [int(c) if c.isdigit() else letters.get(c, 0) for c in text]
    rest = weighted(numbers, (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return len(text) == 17 and "0123456789X"[rest] == text[8]


def with_digits(value: str) -> bool:
    """Three digits or more, as document numbers have and words have not."""
    return sum(char.isdigit() for char in value) >= 3


def with_digit(value: str) -> bool:
    """A digit, as number plates have and words have not."""
    return any(map(str.isdigit, value))
