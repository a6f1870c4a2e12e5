"""Numbers of the Americas."""

from collections.abc import Iterable

from sidecar.text.checks.dates import is_date
from sidecar.text.checks.numbers import closing, compact, digits_of, exact, luhn_sum, no_sequence, uneven


def us_ssn(value: str) -> bool:
    """Social Security Administration: area not 000, 666 or 9xx, group not 00, serial not 0000."""
    digits = compact(value)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return len(set(digits)) > 1 and area not in ("000", "666") and area < "900" and group != "00" != serial != "0000"


ar_cuit = closing(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11)  # Argentine tax administration


def us_npi(value: str) -> bool:
    """CMS, National Provider Identifier: Luhn with 80840 in front; begins with 1 or 2."""
    digits = exact(value, 10)
    return (
        bool(digits) and digits[0] in (1, 2) and len(set(digits)) > 2 and luhn_sum([8, 0, 8, 4, 0, *digits]) % 10 == 0
    )


def us_dea(value: str) -> bool:
    """DEA registration: odd places plus twice the even ones end in the last digit."""
    digits = digits_of(compact(value)[2:])
    return len(digits) == 7 and (sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])) % 10 == digits[6]


def ca_sin(value: str) -> bool:
    """Service Canada, social insurance number: Luhn, and none begins with 0 or 8."""
    digits = exact(value, 9)
    return bool(digits) and digits[0] not in (0, 8) and luhn_sum(digits) % 10 == 0


def br_cpf(value: str) -> bool:
    """Brazilian CPF (Receita Federal): two closing digits mod 11."""
    d = exact(value, 11)
    return bool(d) and _mod11(d[:9], range(10, 1, -1)) == d[9] and _mod11(d[:10], range(11, 1, -1)) == d[10]


def br_cpf_bare(value: str) -> bool:
    """The same without its punctuation: not one that was typed to fill a form."""
    return br_cpf(value) and no_sequence(value) and uneven(value)


def br_cnpj(value: str) -> bool:
    """Brazilian CNPJ (Receita Federal): two closing digits mod 11."""
    d = exact(value, 14)
    tail = (9, 8, 7, 6, 5, 4, 3, 2)
    return bool(d) and _mod11(d[:12], (5, 4, 3, 2, *tail)) == d[12] and _mod11(d[:13], (6, 5, 4, 3, 2, *tail)) == d[13]


def _mod11(digits: list[int], weights: Iterable[int]) -> int:
    rest = sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return 0 if rest < 2 else 11 - rest


def cl_rut(value: str) -> bool:
    """Chilean RUT: weights 2 to 7 from the right, mod 11, K for 10."""
    text = compact(value)
    if not text[:-1].isdigit():
        return False
    total = sum(int(c) * (2 + i % 6) for i, c in enumerate(reversed(text[:-1])))
    return "0K987654321"[total % 11] == text[-1] if total % 11 else text[-1] == "0"


def mx_curp(value: str) -> bool:
    """Mexican CURP (RENAPO): places of a 37-letter alphabet times 18 to 2, mod 10; the date inside it exists."""
    text = value.upper()
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(alphabet.index(c) * (18 - i) for i, c in enumerate(text[:17]))
    return is_date(text[4:10]) and str(-total % 10) == text[17]
