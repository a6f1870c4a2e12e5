"""Numbers of Africa and Oceania."""

from sidecar.text.checks.dates import is_date, not_a_date_first
from sidecar.text.checks.numbers import (
    closing,
    compact,
    digits_of,
    exact,
    luhn,
    uneven,
    verhoeff_11,
    weighing,
    weighted,
)

_ABN_SUM = weighing((11,), (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89, 10)  # see au_abn
au_tfn = weighing((9,), (1, 4, 3, 7, 5, 8, 6, 9, 10), 11)  # Australian Taxation Office
au_acn = closing(9, (8, 7, 6, 5, 4, 3, 2, 1), 10)  # Australian Securities and Investments Commission


def au_abn(value: str) -> bool:
    """Australian Business Register: one taken from the first digit, weighted sum divisible by 89; uneven."""
    return _ABN_SUM(value) and compact(value)[0] != "0" and uneven(value)


def au_medicare(value: str) -> bool:
    """Services Australia: begins with 2 to 6; the ninth digit closes the eight before it."""
    digits = digits_of(value)
    return len(digits) in (10, 11) and 2 <= digits[0] <= 6 and weighted(digits, (1, 3, 7, 9) * 2) % 10 == digits[8]


def za_id(value: str) -> bool:
    """South African identity number: a date, a residence digit of 0 to 2 and Luhn."""
    text = compact(value)
    return bool(exact(value, 13)) and is_date(text[:6]) and text[10] in "012" and luhn(value)


def nz_ird(value: str) -> bool:
    """New Zealand IRD number: weights 3 2 7 6 5 4 3 2 mod 11, and 7 4 3 2 5 2 7 6 where that gives 10."""
    digits = digits_of(compact(value).rjust(9, "0"))
    if not 10_000_000 <= int(compact(value)) < 200_000_000:
        return False
    first = -weighted(digits, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (first if first < 10 else -weighted(digits, (7, 4, 3, 2, 5, 2, 7, 6)) % 11) == digits[8]


def ng_nin_bare(value: str) -> bool:
    """Nigerian NIN without its name: eleven digits under Verhoeff that do not begin with a date."""
    return verhoeff_11(value) and not_a_date_first(value)
