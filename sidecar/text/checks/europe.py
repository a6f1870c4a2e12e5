"""Numbers of Europe, Turkey and Russia included."""

from collections import Counter

from sidecar.text.checks.dates import is_date
from sidecar.text.checks.numbers import closing, compact, exact, luhn, mod11_10, weighing, weighted, words_of

nl_bsn = weighing((9,), (9, 8, 7, 6, 5, 4, 3, 2, -1), 11)  # "elfproef", Dutch tax administration
uk_nhs = closing(10, (10, 9, 8, 7, 6, 5, 4, 3, 2), 11)  # NHS data dictionary
_PESEL_SUM = closing(11, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10)  # see pl_pesel
pt_nif = weighing((9,), (9, 8, 7, 6, 5, 4, 3, 2, 1), 11)  # Portuguese tax authority, remainder 10 aside
ch_ahv = closing(13, (1, 3) * 6, 10)  # EAN-13, Swiss compensation office


def de_tax_id(value: str) -> bool:
    """German IdNr: MOD 11,10; among the first ten digits one stands twice or three times, and no other."""
    digits = exact(value, 11)
    repeats = [count for count in Counter(digits[:10]).values() if count > 1]
    return bool(digits) and digits[0] != 0 and len(repeats) == 1 and repeats[0] <= 3 and mod11_10(digits)


def de_tax_id_bare(value: str) -> bool:
    """IdNr without its name: no digit more than three times among the first ten, and one at most repeated."""
    digits = exact(value, 11)
    repeats = [count for count in Counter(digits[:10]).values() if count > 1]
    return bool(digits) and digits[0] != 0 and len(repeats) <= 1 and max(repeats, default=1) <= 3 and mod11_10(digits)


def de_lanr(value: str) -> bool:
    """German physician number (KBV): weights 4 and 9 over six digits, ten minus the sum closes; then two of a group."""
    digits = exact(value, 9)
    return bool(digits) and -weighted(digits, (4, 9, 4, 9, 4, 9)) % 10 == digits[6]


# Association codes of the first two digits (KBV, Arztnummern-Richtlinie).
_KV = words_of("01 02 03 17 20 35 38 46 51 52 71 72 73 78 83 88 93 98 99")


def de_bsnr(value: str) -> bool:
    """German practice number: nine digits that begin with the code of an association of physicians."""
    return bool(exact(value, 9)) and compact(value)[:2] in _KV


def de_postcode(value: str) -> bool:
    """German post codes go from 01001 to 99998."""
    return value.isdigit() and 1001 <= int(value) <= 99998


def de_vat_id(value: str) -> bool:
    """German VAT number: DE and nine digits under MOD 11,10."""
    return mod11_10(exact(compact(value)[2:], 9))


def de_social_security(value: str) -> bool:
    """German pension number: area, birth date, initial as two digits, serial; cross sums of a weighting mod 10."""
    text = compact(value)
    if len(text) != 12 or not (text[:8] + text[9:]).isdigit() or not text[8].isalpha():
        return False
    spelled = [int(c) for c in text[:8] + f"{ord(text[8]) - 64:02}" + text[9:11]]
    products = (digit * weight for digit, weight in zip(spelled, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    in_range = 1 <= int(text[4:6]) <= 12 and 1 <= int(text[2:4]) % 50 <= 31
    return in_range and sum(sum(divmod(product, 10)) for product in products) % 10 == int(text[11])


_NIF = "TRWAGMYFPDXBNJZSQVHLCKE"


def es_nif(value: str) -> bool:
    """Spanish DNI and NIE: the letter is the number mod 23; X, Y, Z stand for 0, 1, 2."""
    text = compact(value)
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and _NIF[int(number) % 23] == text[-1]


_CF_TEN = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (*_CF_TEN, *_CF_TEN, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def it_fiscal_code(value: str) -> bool:
    """Italian codice fiscale (decree of 23 December 1976): odd places by table, even by value, mod 26."""
    text = compact(value)
    if len(text) != 16 or not (text.isascii() and text.isalnum()):
        return False
    odd, even = sum(_CF_ODD[c] for c in text[0:15:2]), sum(int(c, 36) - 10 * c.isalpha() for c in text[1:15:2])
    return chr(65 + (odd + even) % 26) == text[15]


def fr_nir(value: str) -> bool:
    """French NIR (INSEE): 97 minus the number mod 97 is the key; Corsica's 2A and 2B count as 19 and 18."""
    text = compact(value).replace("2A", "19", 1).replace("2B", "18", 1)
    return len(text) == 15 and text.isdigit() and 97 - int(text[:13]) % 97 == int(text[13:])


def _be_date(text: str) -> bool:
    """Month and day may be 00 where they are not known; 20 or 40 more on the month where it is no citizen's."""
    month, day = int(text[2:4]), int(text[4:6])
    unknown = month % 20 == 0 or (day == 0 and month % 20 <= 12)
    return month < 53 and (unknown or is_date(text[:2] + f"{month % 20:02}" + text[4:]))


def be_nn(value: str) -> bool:
    """Belgian national number: 97 minus the rest of the first nine digits, with a 2 in front from 2000 on."""
    text = compact(value)
    if not exact(value, 11) or not _be_date(text[:6]):
        return False
    return int(text[9:]) in (97 - int(text[:9]) % 97, 97 - int("2" + text[:9]) % 97)


def pl_pesel(value: str) -> bool:
    """Polish PESEL: a date whose month carries the century, and the weights 1, 3, 7, 9."""
    text = compact(value)
    return _PESEL_SUM(value) and is_date(text[:2] + f"{int(text[2:4]) % 20:02}" + text[4:6])


def se_organisation(value: str) -> bool:
    """Swedish organisation number: the third digit is 2 or more, as no month's is; Luhn over ten digits."""
    digits = exact(value, 10)
    return bool(digits) and digits[2] >= 2 and luhn(value)


def se_personnummer(value: str) -> bool:
    """Swedish personal number: a date (day plus 60 for a coordination number) and Luhn over the last ten digits."""
    text = compact(value.replace("+", ""))[-10:]
    day = int(text[4:6]) if text[4:6].isdigit() else 0
    return bool(exact(text, 10)) and is_date(text[:4] + f"{day - 60 * (day > 60):02}") and luhn(text)


def no_fnr(value: str) -> bool:
    """Norwegian birth number: a date and two closing digits mod 11."""
    digits = exact(value, 11)
    if not digits or not is_date(compact(value)[:6], "dmy"):
        return False
    first = -weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11
    return first == digits[9] and -weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11 == digits[10]


_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"


def fi_hetu(value: str) -> bool:
    """Finnish personal code: a date, a century sign, an individual number; mod 31 picks the last sign."""
    text = value.upper()
    number = text[:6] + text[7:10]
    return len(text) == 11 and number.isdigit() and is_date(text[:6], "dmy") and _HETU[int(number) % 31] == text[10]


def dk_cpr(value: str) -> bool:
    """Danish CPR number: a date; its old checksum has been given up since 2007."""
    return len(exact(value, 10)) == 10 and is_date(compact(value)[:6], "dmy")


def cz_rodne_cislo(value: str) -> bool:
    """Czech and Slovak birth number: ten digits divisible by 11, the month raised for women."""
    text = compact(value)
    return (
        bool(exact(value, 10))
        and int(text) % 11 == 0
        and is_date(text[:2] + f"{int(text[2:4]) % 50 % 20:02}" + text[4:6])
    )


def ro_cnp(value: str) -> bool:
    """Romanian CNP: sex and century, a date, and weights 279146358279 mod 11, where 10 is written 1."""
    digits = exact(value, 13)
    rest = weighted(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return bool(digits) and digits[0] > 0 and is_date(compact(value)[1:7]) and (1 if rest == 10 else rest) == digits[12]


def bg_egn(value: str) -> bool:
    """Bulgarian EGN: a date whose month carries the century, weights mod 11 mod 10."""
    digits, text = exact(value, 10), compact(value)
    if not digits or not is_date(text[:2] + f"{int(text[2:4]) % 20:02}" + text[4:6]):
        return False
    return weighted(digits, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == digits[9]


def hr_oib(value: str) -> bool:
    """Croatian OIB: eleven digits under MOD 11,10."""
    return mod11_10(exact(value, 11))


def ie_pps(value: str) -> bool:
    """Irish PPS number: weights 8 to 2, a second letter counts nine times; mod 23 picks the first letter."""
    text = compact(value)
    if not (text[:7].isdigit() and text[7:].isalpha() and len(text) in (8, 9)):
        return False
    second = ord(text[8]) - 64 if len(text) == 9 and text[8] != "W" else 0
    total = weighted([int(c) for c in text[:7]], (8, 7, 6, 5, 4, 3, 2)) + 9 * second
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == text[7]


def tr_id(value: str) -> bool:
    """Turkish identity number: seven times the odd places less the even ones, then the sum of all ten."""
    d = exact(value, 11)
    return bool(d) and d[0] != 0 and (7 * sum(d[0:9:2]) - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10]


def ru_snils(value: str) -> bool:
    """Russian SNILS: weights 9 to 1 mod 101, where 100 is written 00."""
    digits = exact(value, 11)
    return bool(digits) and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, 1)) % 101 % 100 == digits[9] * 10 + digits[10]


def ru_inn(value: str) -> bool:
    """Russian INN of a person: two closing digits mod 11 mod 10."""
    d = exact(value, 12)
    eleventh = weighted(d, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    return bool(d) and eleventh == d[10] and weighted(d, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10 == d[11]


def uk_nhs_issued(value: str) -> bool:
    """NHS number of a range in use: none begins with 8, and those with 9 are for tests."""
    return uk_nhs(value) and compact(value)[0] < "8"


def uk_nino(value: str) -> bool:
    """HMRC, National Insurance number: prefixes that are never given."""
    return compact(value)[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def de_tax_check(value: str) -> bool:
    """German IdNr by its check digit alone, for numbers that are announced as one."""
    return mod11_10(exact(value, 11))


def de_health_insurance(value: str) -> bool:
    """German KVNR: the letter as two digits, weights 1 and 2 with cross sums, mod 10."""
    digits = [int(c) for c in f"{ord(value[0].upper()) - 64:02}{value[1:]}"]
    products = (digit * (1 + i % 2) for i, digit in enumerate(digits[:-1]))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == digits[-1]


def it_vat(value: str) -> bool:
    """Italian partita IVA: Luhn over eleven digits."""
    return bool(exact(value.upper().removeprefix("IT"), 11)) and luhn(value.upper().removeprefix("IT"))
