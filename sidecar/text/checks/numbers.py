"""The arithmetic of check digits, and the small words that other checks are written in."""

import re
from collections.abc import Callable
from itertools import groupby

Check = Callable[[str], bool]


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SEPARATORS = re.compile(r"[\s\u00a0\u2010-\u2015./-]+")


def compact(value: str) -> str:
    """`value` without the separators people write inside numbers, letters in upper case."""
    return _SEPARATORS.sub("", value).upper()


def all_of(*checks: Check) -> Check:
    """The check that holds where every one of `checks` does."""

    def check(value: str) -> bool:
        return all(each(value) for each in checks)

    check.__name__ = " and ".join(each.__name__ for each in checks)
    return check


def digits_of(value: str) -> list[int]:
    """The digits of a compacted value; empty when anything else is in it."""
    text = compact(value)
    return [int(char) for char in text] if text.isascii() and text.isdigit() else []


def luhn(value: str) -> bool:
    """ISO/IEC 7812-1 annex B, "mod 10": catches every single wrong digit and most swaps of neighbours."""
    return luhn_sum(digits_of(value)) % 10 == 0 if digits_of(value) else False


def luhn_sum(digits: list[int]) -> int:
    """The Luhn sum with the last digit counted once, the one before it doubled, and so on."""
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[-2::-2])
    return sum(digits[-1::-2]) + sum(doubled)


def weighted(digits: list[int], weights: tuple[int, ...]) -> int:
    """The sum of the leading digits times their weights; digits beyond the weights are not counted."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


_DIHEDRAL = tuple(
    tuple((i + j) % 5 + 5 * (j >= 5) if i < 5 else ((i - j) % 5 + 5 if j < 5 else (i - j) % 5) for j in range(10))
    for i in range(10)
)
_PERMUTED = [tuple(range(10))]
for _ in range(7):
    _PERMUTED.append(tuple((1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[digit] for digit in _PERMUTED[-1]))


def verhoeff(value: str) -> bool:
    """J. Verhoeff, "Error detecting decimal codes" (1969), over the dihedral group of order 10.

    Catches every single wrong digit and every swap of neighbours.
    """
    state, digits = 0, digits_of(value)
    for place, digit in enumerate(reversed(digits)):
        state = _DIHEDRAL[state][_PERMUTED[place % 8][digit]]
    return bool(digits) and state == 0


def mod97(value: str) -> bool:
    """ISO/IEC 7064 MOD 97-10 over digits and letters (A = 10 … Z = 35): the number leaves 1."""
    text = compact(value)
    return text.isascii() and text.isalnum() and int("".join(str(int(c, 36)) for c in text)) % 97 == 1


def mod11_10(digits: list[int]) -> bool:
    """ISO/IEC 7064 MOD 11,10, a hybrid system: German tax id, Croatian OIB."""
    product = 10
    for digit in digits[:-1]:
        product = 2 * ((product + digit) % 10 or 10) % 11
    return bool(digits) and (product + digits[-1]) % 10 == 1


def exact(value: str, *sizes: int) -> list[int]:
    """The digits of `value` when there are as many as one of `sizes` and they are not all the same; else none."""
    digits = digits_of(value)
    return digits if len(digits) in sizes and len(set(digits)) > 1 else []


def weighing(sizes: tuple[int, ...], weights: tuple[int, ...], modulus: int, remainder: int = 0) -> Check:
    """The check that the weighted sum of all digits leaves `remainder`."""

    def check(value: str) -> bool:
        digits = exact(value, *sizes)
        return bool(digits) and weighted(digits, weights) % modulus == remainder

    return check


def closing(size: int, weights: tuple[int, ...], modulus: int, minus: bool = True) -> Check:
    """The check that the digit after the weighted ones is their sum mod `modulus`, or that taken from it.

    A result of 10 is no digit, and a number that would need it is never issued.
    """

    def check(value: str) -> bool:
        digits = exact(value, size)
        if not digits:
            return False
        rest = weighted(digits, weights) % modulus
        return (-rest % modulus if minus else rest) == digits[len(weights)]

    return check


def verhoeff_11(value: str) -> bool:
    """Nigerian NIN: eleven digits under Verhoeff."""
    return bool(exact(value, 11)) and verhoeff(value)


def even_run(value: str) -> int:
    """The longest run of one character in the compacted value."""
    return max((len(list(run)) for _, run in groupby(compact(value))), default=0)


def uneven(value: str) -> bool:
    """No five equal characters in a row, as made-up numbers have that pass a check by chance."""
    return even_run(value) < 5


_RISING = "1234567890123456789"


def no_sequence(value: str) -> bool:
    """Not eight digits one after the other, up or down, as numbers typed to fill a form have."""
    text = compact(value)
    runs = {text[at : at + 8] for at in range(len(text) - 7)}
    return not any(run in _RISING or run[::-1] in _RISING for run in runs)
