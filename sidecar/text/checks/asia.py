"""Numbers of Asia."""

import re

from sidecar.text.checks.dates import is_date, is_day
from sidecar.text.checks.numbers import compact, exact, luhn, no_sequence, verhoeff, weighted

# Nobody with a number was born later; years of two digits cannot say more.
_LATEST = 2035
_BRN_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3)


def aadhaar(value: str) -> bool:
    """UIDAI, Aadhaar: twelve digits, the first 2 to 9, Verhoeff; not a palindrome."""
    text = compact(value.replace(":", ""))
    return bool(exact(text, 12)) and text[0] > "1" and text != text[::-1] and verhoeff(text)


def sg_nric(value: str) -> bool:
    """Singapore NRIC and FIN: weights 2765432 mod 11, an offset by series, a letter by table."""
    text = value.upper()
    if not text[1:8].isdigit():
        return False
    total = weighted([int(c) for c in text[1:8]], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    table = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(text[0], "XWUTRQPNMLK")
    place = 10 - total % 11 if text[0] == "M" else total % 11
    return table[place] == text[8]


def kr_rrn(value: str) -> bool:
    """Korean resident and foreigner numbers: a date and a sex digit of 1 to 8; no checksum since October 2020."""
    text = compact(value)
    return bool(exact(value, 13)) and is_date(text[:6]) and text[6] in "12345678"


def kr_rrn_bare(value: str) -> bool:
    """Thirteen digits: born in the century that the sex digit says, and not yet to come.

    A foreigner's does not have 0 or 1 in the place where South African numbers of the same length have it.
    """
    text = compact(value)
    if not kr_rrn(value):
        return False
    century = 1900 if text[6] in "1256" else 2000
    year = century + int(text[:2])
    lookalike = text[6] in "5678" and text[10] in "01"
    return is_day(year, int(text[2:4]), int(text[4:6])) and year <= _LATEST and not lookalike


def kr_rrn_sum(value: str) -> bool:
    """The same with the checksum of numbers given before October 2020."""
    digits = exact(value, 13)
    base = 13 if digits and digits[6] >= 5 else 11
    return kr_rrn(value) and (base - weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == digits[12]


def kr_brn(value: str) -> bool:
    """Korean business number: weights 1 3 7, and five times the ninth digit counts with its tens."""
    d = exact(value, 10)
    total = weighted(d, _BRN_WEIGHTS) + sum(divmod(d[8] * 5, 10)) if d else 0
    return bool(d) and -total % 10 == d[9]


def cn_id(value: str) -> bool:
    """Chinese resident number (GB 11643): a date and ISO/IEC 7064 MOD 11-2, X for 10."""
    text = compact(value)
    if (
        len(text) != 18
        or not text[:17].isdigit()
        or not is_day(*(int(text[i:j]) for i, j in ((6, 10), (10, 12), (12, 14))))
    ):
        return False
    total = sum(int(c) * (2 ** (17 - i) % 11) for i, c in enumerate(text[:17]))
    return "10X98765432"[total % 11] == text[17]


def hk_id(value: str) -> bool:
    """Hong Kong identity card: letters count from 10, a missing first letter 36, weights 9 to 1, mod 11."""
    text = re.sub(r"[^0-9A-Z]", "", value.upper()).rjust(9, " ")
    total = sum((36 if c == " " else int(c, 36)) * (9 - i) for i, c in enumerate(text))
    return len(text) == 9 and total % 11 == 0


_TW_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"


def tw_id(value: str) -> bool:
    """Taiwanese identity number: the letter as 10 to 35, weights 1 9 8 … 1 1, mod 10."""
    text = value.upper()
    letter = 10 + _TW_LETTERS.index(text[0])
    digits = [*divmod(letter, 10), *(int(c) for c in text[1:])]
    return weighted(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)) % 10 == 0


def tw_id_bare(value: str) -> bool:
    """The same without its name: not one that was typed to fill a form."""
    return tw_id(value) and no_sequence(value)


def jp_my_number(value: str) -> bool:
    """Japanese Individual Number: weights 6 5 4 3 2 7 6 5 4 3 2 mod 11."""
    digits = exact(value, 12)
    rest = weighted(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return bool(digits) and (0 if rest <= 1 else 11 - rest) == digits[11]


def th_id(value: str) -> bool:
    """Thai identity number: begins with 1 to 8 and a province of 10 to 96; weights 13 to 2, mod 11, mod 10."""
    digits = exact(value, 13)
    if not digits or digits[0] in (0, 9) or not 10 <= 10 * digits[1] + digits[2] <= 96:
        return False
    return (11 - weighted(digits, tuple(range(13, 1, -1))) % 11) % 10 == digits[12]


def il_id(value: str) -> bool:
    """Israeli identity number: Luhn over nine digits."""
    return bool(exact(value, 9)) and luhn(value)


def ph_tin(value: str) -> bool:
    """Philippine TIN: weights 9 to 2 mod 11 give the ninth digit; a branch code of three or more may follow."""
    digits = _tin_digits(value)
    return bool(digits) and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2)) % 11 == digits[8]


def _tin_digits(value: str) -> list[int]:
    return exact(value, 9, 12, 13, 14)


# Places of letters in the three series of Singaporean entity numbers.
_UEN_OTHER = "ABCDEFGHJKLMNPQRSTUVWX0123456789"


def sg_uen(value: str) -> bool:
    """Singaporean UEN (ACRA): businesses, companies by year, and others; weights mod 11, a letter by table."""
    text = value.upper()
    if len(text) == 9:
        return _lettered(text, (10, 4, 9, 3, 8, 2, 7, 1), "XMKECAWLJDB")
    if text[:9].isdigit():
        return _lettered(text, (10, 8, 6, 4, 9, 7, 5, 3, 1), "ZKCMDNERGWH")
    places = [_UEN_OTHER.find(char) for char in text]
    total = weighted(places[:9], (4, 3, 5, 3, 10, 2, 2, 5, 7)) - 5
    return min(places) >= 0 and places[9] == total % 11


def _lettered(text: str, weights: tuple[int, ...], letters: str) -> bool:
    """Digits, and a letter that their weighted sum mod 11 picks."""
    return text[:-1].isdigit() and letters[weighted([int(c) for c in text[:-1]], weights) % 11] == text[-1]
