"""Checks on a matched value that a regular expression cannot express: checksums, entropy, placeholders.

Every check is a pure `str -> bool`. Checksums ignore the separators people write (space, dash, dot, slash)
and say False, never raise, for text of the wrong shape.
"""

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import ip_address
from math import log2

Check = Callable[[str], bool]


def _words(text: str) -> frozenset[str]:
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


def _digits(value: str) -> list[int]:
    """The digits of a compacted value; empty when anything else is in it."""
    text = compact(value)
    return [int(char) for char in text] if text.isascii() and text.isdigit() else []


# --- check digits ------------------------------------------------------------------------------------------


def luhn(value: str) -> bool:
    """ISO/IEC 7812-1 annex B, "mod 10": catches every single wrong digit and most swaps of neighbours."""
    return luhn_sum(_digits(value)) % 10 == 0 if _digits(value) else False


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
    state, digits = 0, _digits(value)
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


# --- banking -----------------------------------------------------------------------------------------------

# ISO 13616 registry: the whole length of an IBAN by country.
IBAN_LENGTHS = {
    15: ("NO",),
    16: ("BE",),
    18: ("DK", "FI", "FK", "FO", "GL", "NL", "SD"),
    19: ("MK", "SI"),
    20: ("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"),
    21: ("CH", "HR", "LI", "LV"),
    22: ("BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"),
    23: ("AE", "GI", "IL", "IQ", "OM", "SO", "TL"),
    24: ("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"),
    25: ("LY", "PT", "ST"),
    26: ("IS", "TR"),
    27: ("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"),
    28: ("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"),
    29: ("BR", "EG", "PS", "QA", "UA"),
    30: ("JO", "KW", "MU", "YE"),
    31: ("MT", "SC"),
    32: ("LC",),
    33: ("RU",),
}
_IBAN_LENGTH = {country: length for length, countries in IBAN_LENGTHS.items() for country in countries}


def iban(value: str) -> bool:
    """ISO 13616: the country's own length, and MOD 97-10 with the first four characters moved last."""
    text = compact(value)
    return _IBAN_LENGTH.get(text[:2]) == len(text) and mod97(text[4:] + text[:4])


# ISO/IEC 7812 issuer ranges: first six digits from … to, and the lengths in use.
_LONG = frozenset(range(16, 20))
_CARDS: tuple[tuple[int, int, frozenset[int]], ...] = (
    (220000, 220499, _LONG),  # Mir
    (222100, 272099, frozenset({16})),  # Mastercard, second range
    (300000, 305999, frozenset(range(14, 20))),  # Diners Club
    (309500, 309599, frozenset(range(14, 20))),
    (340000, 349999, frozenset({15})),  # American Express
    (352800, 358999, _LONG),  # JCB
    (360000, 369999, frozenset(range(14, 20))),  # Diners Club International
    (370000, 379999, frozenset({15})),
    (380000, 399999, frozenset(range(14, 20))),
    (400000, 499999, frozenset({13, 16, 19})),  # Visa
    (500000, 509999, frozenset(range(13, 20))),  # Maestro, Elo, RuPay, Verve
    (510000, 559999, frozenset({16})),  # Mastercard
    (560000, 589999, frozenset(range(13, 20))),  # Maestro
    (600000, 601099, _LONG),  # RuPay, Hipercard
    (601100, 601199, _LONG),  # Discover
    (604000, 609999, _LONG),  # RuPay, Hipercard
    (620000, 629999, _LONG),  # UnionPay
    (630400, 630499, frozenset(range(13, 20))),  # Maestro
    (636000, 639999, frozenset(range(13, 20))),
    (644000, 659999, _LONG),  # Discover, RuPay
    (670000, 679999, frozenset(range(13, 20))),  # Maestro
)


def card(value: str) -> bool:
    """A payment card number: a known issuer range, a length that issuer uses, and Luhn."""
    digits = compact(value)
    if not (digits.isascii() and digits.isdigit() and 13 <= len(digits) <= 19):
        return False
    issuer = int(digits[:6])
    known = any(low <= issuer <= high and len(digits) in lengths for low, high, lengths in _CARDS)
    return known and luhn(digits)


# --- secrets -----------------------------------------------------------------------------------------------


def entropy(value: str) -> float:
    """Shannon's entropy of the characters of `value`, in bits a character; 0 for empty text."""
    total = len(value)
    return -sum(n / total * log2(n / total) for n in Counter(value).values())


def min_entropy(bits: float) -> Check:
    """The check that a value has at least `bits` bits a character."""

    def check(value: str) -> bool:
        return entropy(value) >= bits

    check.__name__ = f"entropy of {bits} bits"
    return check


def varied(value: str) -> bool:
    """More than filler (`xxxx…`, `****`): six different characters or more, and none of them most of it."""
    counts = Counter(value.lower())
    return len(counts) >= 6 and max(counts.values()) * 5 <= len(value) * 3


def random_looking(value: str) -> bool:
    """Not a word, a name or a slug: a digit, and either three more or both cases of letters."""
    digits = sum(char.isdigit() for char in value)
    mixed = value.lower() != value != value.upper()
    return varied(value) and (digits >= 4 or (digits >= 1 and mixed))


def has_both_cases(value: str) -> bool:
    """Lower and upper case, as random text has and a slug has not."""
    return varied(value) and value.lower() != value != value.upper()


def has_digit(value: str) -> bool:
    """A digit, as random text of some length has and a word has not."""
    return varied(value) and any(char.isdigit() for char in value)


def has_three_cases(value: str) -> bool:
    """Lower case, upper case and digits, as random base64 of some length has and a hash in hex has not."""
    return has_both_cases(value) and has_digit(value)


def openai_shape(value: str) -> bool:
    """Random, and not another provider's key that also starts with `sk-`."""
    return random_looking(value) and not value.startswith(("sk-ant-", "sk-or-"))


def bearer_value(value: str) -> bool:
    """A credential after `Bearer`, not the next word of a sentence and not a dotted name of some code."""
    if not real(value) or not varied(value) or ("." in value and _IDENTIFIER.fullmatch(value)):
        return False
    return len(value) >= 24 or has_digit(value)


_FILLER = re.compile(r"[xX*.•#?0_-]+|(.)\1+")
_REFERENCE = re.compile(
    r"""\$[A-Za-z_]\w*$ | \$[({]            # $NAME, ${NAME}, ${{ secrets.NAME }}, $(command)
      | %\(?\w+\)?[%sd]?$                   # %NAME%, %(name)s
      | \{+[^{}]*\}*$ | <[^<>]*>?$          # {{ name }}, <name>
      | \[REDACTED | <[A-Z_]+_\d+>          # what an earlier rule put there
      | [A-Za-z_][\w.]*[(\[]                # os.environ[…, getenv(…
      | (?:process|import\.meta)\.env\b | os\.environ | (?:self|this|config|settings|var|env)\.""",
    re.VERBOSE,
)
_STAND_IN = _words(
    """
    your my api example sample placeholder changeme change dummy fake redacted removed hidden masked none null nil
    undefined true false todo tbd insert here string str bytes int bool any optional required password passwd
    secret token key value env xxx xxxx abc foo bar
    """
)
_WORDS = re.compile(r"[A-Za-z]+")


def placeholder(value: str) -> bool:
    """Stands for a secret: `$VAR`, `<token>`, `{{x}}`, `xxxx`, `your-api-key`, `os.environ[…]`."""
    if _FILLER.fullmatch(value) or _REFERENCE.match(value):
        return True
    words = [word.lower() for word in _WORDS.findall(value)]
    digits = any(char.isdigit() for char in value)
    return bool(words) and not digits and all(word in _STAND_IN or len(word) < 3 for word in words)


def real(value: str) -> bool:
    """Not a placeholder."""
    return not placeholder(value)


_NAME_PART = r"(?:(?:[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*)\d{0,2}|\d{1,4})"
_IDENTIFIER = re.compile(rf"_*{_NAME_PART}(?:[_.:/-]+{_NAME_PART})*")
_LITERAL = r"\d+(?:\.\d+)*$|0[xX][0-9A-Fa-f]+$|https?://|[./~]+/|\d{4}-\d\d-\d\d"
_CODE = re.compile(rf"\(?[\w.]+[(\[{{]|\(['\"]|[\w.\[\]]+\.[A-Za-z_]\w*$|{_LITERAL}")
_PLAIN = re.compile(_LITERAL)


def secret_value(value: str) -> bool:
    """What an assignment to `token` or `key` must look like to be called a secret.

    At least six characters with letters and digits mixed, and no name, path, URL, number, date or piece of
    code.
    """
    if len(value) < 6 or not varied(value) or placeholder(value) or _CODE.match(value):
        return False
    has_digit, has_letter = any(c.isdigit() for c in value), any(c.isalpha() for c in value)
    return has_digit and (has_letter or len(value) >= 16) and not _IDENTIFIER.fullmatch(value)


_SLUG = re.compile(r"[A-Za-z_]+(?:[-_./:]+[A-Za-z_]+)*")
_TURN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")
# A name in camel case turns from small to large letters and back less often than random letters do.
_TURNS = 6


def _name(value: str) -> bool:
    return bool(_SLUG.fullmatch(value)) and (len(_TURN.findall(value)) < _TURNS or "_" in value)


def _secretive(value: str) -> bool:
    """Has letters or digits, is no placeholder and no bare name; digits alone count from six on."""
    if value.isascii() and value.isdigit():
        return len(value) >= 6 and varied(value)
    return len(value) >= 4 and any(map(str.isalnum, value)) and not placeholder(value) and not _name(value)


def password_value(value: str) -> bool:
    """What an assignment to `password` must look like: not a placeholder, not a bare name, not code."""
    return _secretive(value) and (value.isdigit() or not _CODE.match(value))


# What people write about a password rather than as one.
_PROSE = _words(
    """
    a an the your our this that is are must should can cannot may be not enter please type choose set new old current
    user users username password passwords passphrase secret token key required invalid incorrect wrong reset change
    forgot forgotten confirm field account login to for of at least characters name description
    """
)


def phrase_value(value: str) -> bool:
    """A password in quotes: what password_value takes, braces and all, or a pass-phrase that is no sentence."""
    words = value.lower().split()
    if value != value.strip():
        return False
    if len(words) > 1:
        return len(words) > 2 and value[0] != "/" and not _PROSE.intersection(words) and not placeholder(value)
    return (_secretive(value) and not _PLAIN.match(value)) or (value.isalpha() and len(value) >= 16 and real(value))


def url_value(value: str) -> bool:
    """A password in a URL: anything but a placeholder, and `password` itself is none."""
    return not _FILLER.fullmatch(value) and not _REFERENCE.match(value)


_HOST = re.compile(r"\.(?:com|net|org|io|dev|app|cloud|local|internal|[a-z]{2})(?:$|[/:])")


def provider_value(value: str) -> bool:
    """A key of a provider without a prefix: random letters and digits, no host name, path or identifier."""
    return secret_value(value) and entropy(value) >= 2.8 and "//" not in value and not _HOST.search(value)


def basic_credentials(value: str) -> bool:
    """RFC 7617: base64 of printable `user:password`, with something on either side of the colon."""
    try:
        text = b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except ValueError:
        return False
    user, colon, password = text.partition(":")
    return bool(colon and password) and text.isprintable() and real(password) and len(user) + len(password) > 3


# Names that only look like a domain: `icon@2x.png`, `checkout@v4.js`.
_FILES = _words("png jpg jpeg gif svg webp ico css scss js jsx mjs ts tsx json yaml yml md py rs go zip gz tgz jar")


def email(value: str) -> bool:
    """No file name, no `git@host` of a clone address, and no empty label in the domain."""
    local, _, domain = value.rpartition("@")
    return local not in ("git", "hg") and domain.rpartition(".")[2].lower() not in _FILES and ".." not in value


# --- keys with a checksum of their own ---------------------------------------------------------------------

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


# --- national numbers --------------------------------------------------------------------------------------


def _exact(value: str, *sizes: int) -> list[int]:
    """The digits of `value` when there are as many as one of `sizes` and they are not all the same; else none."""
    digits = _digits(value)
    return digits if len(digits) in sizes and len(set(digits)) > 1 else []


def _day(year: int, month: int, day: int) -> bool:
    """The date exists in the Gregorian calendar."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 29 if month == 2 and leap else 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    return 1 <= month <= 12 and 1 <= day <= longest


def _date(text: str, order: str = "ymd") -> bool:
    """Six digits of a date in that order; the century is not known, so that a leap day always passes."""
    if len(text) != 6 or not text.isdigit():
        return False
    part = dict(zip(order, (int(text[i : i + 2]) for i in (0, 2, 4)), strict=True))
    return _day(2000, part["m"], part["d"])


def _weighing(sizes: tuple[int, ...], weights: tuple[int, ...], modulus: int, remainder: int = 0) -> Check:
    """The check that the weighted sum of all digits leaves `remainder`."""

    def check(value: str) -> bool:
        digits = _exact(value, *sizes)
        return bool(digits) and weighted(digits, weights) % modulus == remainder

    return check


def _closing(size: int, weights: tuple[int, ...], modulus: int, minus: bool = True) -> Check:
    """The check that the digit after the weighted ones is their sum mod `modulus`, or that taken from it.

    A result of 10 is no digit, and a number that would need it is never issued.
    """

    def check(value: str) -> bool:
        digits = _exact(value, size)
        if not digits:
            return False
        rest = weighted(digits, weights) % modulus
        return (-rest % modulus if minus else rest) == digits[len(weights)]

    return check


def us_ssn(value: str) -> bool:
    """Social Security Administration: area not 000, 666 or 9xx, group not 00, serial not 0000."""
    digits = compact(value)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return len(set(digits)) > 1 and area not in ("000", "666") and area < "900" and group != "00" != serial != "0000"


us_aba = _weighing((9,), (3, 7, 1) * 3, 10)  # American Bankers Association, routing numbers
_ABN_SUM = _weighing((11,), (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89, 10)  # see au_abn
au_tfn = _weighing((9,), (1, 4, 3, 7, 5, 8, 6, 9, 10), 11)  # Australian Taxation Office
au_acn = _closing(9, (8, 7, 6, 5, 4, 3, 2, 1), 10)  # Australian Securities and Investments Commission
nl_bsn = _weighing((9,), (9, 8, 7, 6, 5, 4, 3, 2, -1), 11)  # "elfproef", Dutch tax administration
uk_nhs = _closing(10, (10, 9, 8, 7, 6, 5, 4, 3, 2), 11)  # NHS data dictionary
_PESEL_SUM = _closing(11, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10)  # see pl_pesel
pt_nif = _weighing((9,), (9, 8, 7, 6, 5, 4, 3, 2, 1), 11)  # Portuguese tax authority, remainder 10 aside
_BRN_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3)
ar_cuit = _closing(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11)  # Argentine tax administration
ch_ahv = _closing(13, (1, 3) * 6, 10)  # EAN-13, Swiss compensation office


def us_npi(value: str) -> bool:
    """CMS, National Provider Identifier: Luhn with 80840 in front; begins with 1 or 2."""
    digits = _exact(value, 10)
    return (
        bool(digits) and digits[0] in (1, 2) and len(set(digits)) > 2 and luhn_sum([8, 0, 8, 4, 0, *digits]) % 10 == 0
    )


def us_dea(value: str) -> bool:
    """DEA registration: odd places plus twice the even ones end in the last digit."""
    digits = _digits(compact(value)[2:])
    return len(digits) == 7 and (sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])) % 10 == digits[6]


def ca_sin(value: str) -> bool:
    """Service Canada, social insurance number: Luhn, and none begins with 0 or 8."""
    digits = _exact(value, 9)
    return bool(digits) and digits[0] not in (0, 8) and luhn_sum(digits) % 10 == 0


def au_abn(value: str) -> bool:
    """Australian Business Register: one taken from the first digit, weighted sum divisible by 89."""
    return _ABN_SUM(value) and compact(value)[0] != "0"


def au_medicare(value: str) -> bool:
    """Services Australia: begins with 2 to 6; the ninth digit closes the eight before it."""
    digits = _digits(value)
    return len(digits) in (10, 11) and 2 <= digits[0] <= 6 and weighted(digits, (1, 3, 7, 9) * 2) % 10 == digits[8]


def de_tax_id(value: str) -> bool:
    """German IdNr: MOD 11,10; among the first ten digits one stands twice or three times, and no other."""
    digits = _exact(value, 11)
    repeats = [count for count in Counter(digits[:10]).values() if count > 1]
    return bool(digits) and digits[0] != 0 and len(repeats) == 1 and repeats[0] <= 3 and mod11_10(digits)


def de_vat_id(value: str) -> bool:
    """German VAT number: DE and nine digits under MOD 11,10."""
    return mod11_10(_exact(compact(value)[2:], 9))


def de_social_security(value: str) -> bool:
    """German pension number: area, birth date, initial as two digits, serial; cross sums of a weighting mod 10."""
    text = compact(value)
    if len(text) != 12 or not (text[:8] + text[9:]).isdigit() or not text[8].isalpha():
        return False
    spelled = [int(c) for c in text[:8] + f"{ord(text[8]) - 64:02}" + text[9:11]]
    products = (digit * weight for digit, weight in zip(spelled, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    in_range = 1 <= int(text[4:6]) <= 12 and 1 <= int(text[2:4]) % 50 <= 31
    return in_range and sum(sum(divmod(product, 10)) for product in products) % 10 == int(text[11])


_731 = (7, 3, 1)


def icao_check(value: str) -> bool:
    """ICAO 9303: weights 7, 3, 1 over digits and letters (A = 10), the last digit closes."""
    text = compact(value)
    if not (text.isascii() and text.isalnum() and text[-1:].isdigit()):
        return False
    return sum(int(c, 36) * _731[i % 3] for i, c in enumerate(text[:-1])) % 10 == int(text[-1])


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


def be_nn(value: str) -> bool:
    """Belgian national number: 97 minus the rest of the first nine digits, with a 2 in front from 2000 on."""
    text = compact(value)
    if not _exact(value, 11):
        return False
    return int(text[9:]) in (97 - int(text[:9]) % 97, 97 - int("2" + text[:9]) % 97)


def pl_pesel(value: str) -> bool:
    """Polish PESEL: a date whose month carries the century, and the weights 1, 3, 7, 9."""
    text = compact(value)
    return _PESEL_SUM(value) and _date(text[:2] + f"{int(text[2:4]) % 20:02}" + text[4:6])


def se_personnummer(value: str) -> bool:
    """Swedish personal number: a date (day plus 60 for a coordination number) and Luhn over the last ten digits."""
    text = compact(value.replace("+", ""))[-10:]
    day = int(text[4:6]) if text[4:6].isdigit() else 0
    return bool(_exact(text, 10)) and _date(text[:4] + f"{day - 60 * (day > 60):02}") and luhn(text)


def no_fnr(value: str) -> bool:
    """Norwegian birth number: a date and two closing digits mod 11."""
    digits = _exact(value, 11)
    if not digits or not _date(compact(value)[:6], "dmy"):
        return False
    first = -weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11
    return first == digits[9] and -weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11 == digits[10]


_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"


def fi_hetu(value: str) -> bool:
    """Finnish personal code: a date, a century sign, an individual number; mod 31 picks the last sign."""
    text = value.upper()
    number = text[:6] + text[7:10]
    return len(text) == 11 and number.isdigit() and _date(text[:6], "dmy") and _HETU[int(number) % 31] == text[10]


def dk_cpr(value: str) -> bool:
    """Danish CPR number: a date; its old checksum has been given up since 2007."""
    return len(_exact(value, 10)) == 10 and _date(compact(value)[:6], "dmy")


def cz_rodne_cislo(value: str) -> bool:
    """Czech and Slovak birth number: ten digits divisible by 11, the month raised for women."""
    text = compact(value)
    return (
        bool(_exact(value, 10))
        and int(text) % 11 == 0
        and _date(text[:2] + f"{int(text[2:4]) % 50 % 20:02}" + text[4:6])
    )


def ro_cnp(value: str) -> bool:
    """Romanian CNP: sex and century, a date, and weights 279146358279 mod 11, where 10 is written 1."""
    digits = _exact(value, 13)
    rest = weighted(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return bool(digits) and digits[0] > 0 and _date(compact(value)[1:7]) and (1 if rest == 10 else rest) == digits[12]


def bg_egn(value: str) -> bool:
    """Bulgarian EGN: a date whose month carries the century, weights mod 11 mod 10."""
    digits, text = _exact(value, 10), compact(value)
    if not digits or not _date(text[:2] + f"{int(text[2:4]) % 20:02}" + text[4:6]):
        return False
    return weighted(digits, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == digits[9]


def hr_oib(value: str) -> bool:
    """Croatian OIB: eleven digits under MOD 11,10."""
    return mod11_10(_exact(value, 11))


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
    d = _exact(value, 11)
    return bool(d) and d[0] != 0 and (7 * sum(d[0:9:2]) - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10]


def za_id(value: str) -> bool:
    """South African identity number: a date, a residence digit of 0 to 2 and Luhn."""
    text = compact(value)
    return bool(_exact(value, 13)) and _date(text[:6]) and text[10] in "012" and luhn(value)


def aadhaar(value: str) -> bool:
    """UIDAI, Aadhaar: twelve digits, the first 2 to 9, Verhoeff; not a palindrome."""
    text = compact(value.replace(":", ""))
    return bool(_exact(text, 12)) and text[0] > "1" and text != text[::-1] and verhoeff(text)


def br_cpf(value: str) -> bool:
    """Brazilian CPF (Receita Federal): two closing digits mod 11."""
    d = _exact(value, 11)
    return bool(d) and _mod11(d[:9], range(10, 1, -1)) == d[9] and _mod11(d[:10], range(11, 1, -1)) == d[10]


def br_cnpj(value: str) -> bool:
    """Brazilian CNPJ (Receita Federal): two closing digits mod 11."""
    d = _exact(value, 14)
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
    return bool(_exact(value, 13)) and _date(text[:6]) and text[6] in "12345678"


def kr_rrn_sum(value: str) -> bool:
    """The same with the checksum of numbers given before October 2020."""
    digits = _exact(value, 13)
    base = 13 if digits and digits[6] >= 5 else 11
    return kr_rrn(value) and (base - weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == digits[12]


def kr_brn(value: str) -> bool:
    """Korean business number: weights 1 3 7, and five times the ninth digit counts with its tens."""
    d = _exact(value, 10)
    total = weighted(d, _BRN_WEIGHTS) + sum(divmod(d[8] * 5, 10)) if d else 0
    return bool(d) and -total % 10 == d[9]


def cn_id(value: str) -> bool:
    """Chinese resident number (GB 11643): a date and ISO/IEC 7064 MOD 11-2, X for 10."""
    text = compact(value)
    if (
        len(text) != 18
        or not text[:17].isdigit()
        or not _day(*(int(text[i:j]) for i, j in ((6, 10), (10, 12), (12, 14))))
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


def jp_my_number(value: str) -> bool:
    """Japanese Individual Number: weights 6 5 4 3 2 7 6 5 4 3 2 mod 11."""
    digits = _exact(value, 12)
    rest = weighted(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return bool(digits) and (0 if rest <= 1 else 11 - rest) == digits[11]


def th_id(value: str) -> bool:
    """Thai identity number: begins with 1 to 8 and a province of 10 to 96; weights 13 to 2, mod 11, mod 10."""
    digits = _exact(value, 13)
    if not digits or digits[0] in (0, 9) or not 10 <= 10 * digits[1] + digits[2] <= 96:
        return False
    return (11 - weighted(digits, tuple(range(13, 1, -1))) % 11) % 10 == digits[12]


def mx_curp(value: str) -> bool:
    """Mexican CURP (RENAPO): places of a 37-letter alphabet times 18 to 2, mod 10; the date inside it exists."""
    text = value.upper()
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(alphabet.index(c) * (18 - i) for i, c in enumerate(text[:17]))
    return _date(text[4:10]) and str(-total % 10) == text[17]


def il_id(value: str) -> bool:
    """Israeli identity number: Luhn over nine digits."""
    return bool(_exact(value, 9)) and luhn(value)


def ru_snils(value: str) -> bool:
    """Russian SNILS: weights 9 to 1 mod 101, where 100 is written 00."""
    digits = _exact(value, 11)
    return bool(digits) and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, 1)) % 101 % 100 == digits[9] * 10 + digits[10]


def ru_inn(value: str) -> bool:
    """Russian INN of a person: two closing digits mod 11 mod 10."""
    d = _exact(value, 12)
    eleventh = weighted(d, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    return bool(d) and eleventh == d[10] and weighted(d, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10 == d[11]


def uk_nino(value: str) -> bool:
    """HMRC, National Insurance number: prefixes that are never given."""
    return compact(value)[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def dashed_date_id(value: str) -> bool:
    """Malaysian MyKad and its like: the first six digits are a date."""
    return bool(_exact(value, 12)) and _date(compact(value)[:6])


def de_tax_check(value: str) -> bool:
    """German IdNr by its check digit alone, for numbers that are announced as one."""
    return mod11_10(_exact(value, 11))


def de_health_insurance(value: str) -> bool:
    """German KVNR: the letter as two digits, weights 1 and 2 with cross sums, mod 10."""
    digits = [int(c) for c in f"{ord(value[0]) - 64:02}{value[1:]}"]
    products = (digit * (1 + i % 2) for i, digit in enumerate(digits[:-1]))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == digits[-1]


def it_vat(value: str) -> bool:
    """Italian partita IVA: Luhn over eleven digits."""
    return bool(_exact(value.upper().removeprefix("IT"), 11)) and luhn(value.upper().removeprefix("IT"))


def ph_tin(value: str) -> bool:
    """Philippine TIN: nine digits, mostly with a branch code of three."""
    return len(_exact(value, 9, 12)) > 0


def nz_ird(value: str) -> bool:
    """New Zealand IRD number: weights 3 2 7 6 5 4 3 2 mod 11, and 7 4 3 2 5 2 7 6 where that gives 10."""
    digits = _digits(compact(value).rjust(9, "0"))
    if not 10_000_000 <= int(compact(value)) < 200_000_000:
        return False
    first = -weighted(digits, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (first if first < 10 else -weighted(digits, (7, 4, 3, 2, 5, 2, 7, 6)) % 11) == digits[8]


def bitcoin(value: str) -> bool:
    """An address of Bitcoin or its kin: Base58Check, or bech32 where it has a prefix of that form."""
    return bech32(value) if value.lower().startswith(("bc1", "ltc1", "addr1", "cosmos1")) else base58check(value)


def mrz_names(value: str) -> bool:
    """ICAO 9303: names in a machine-readable line are parted by two fillers."""
    return "<<" in value


def verhoeff_11(value: str) -> bool:
    """Nigerian NIN: eleven digits under Verhoeff."""
    return bool(_exact(value, 11)) and verhoeff(value)


def vin(value: str) -> bool:
    """ISO 3779 with the North American check digit (49 CFR 565): letters by table, weights, mod 11, X for 10."""
    text = value.upper()
    letters = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)), strict=True))
    numbers = [int(c) if c.isdigit() else letters.get(c, 0) for c in text]
    rest = weighted(numbers, (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return len(text) == 17 and "0123456789X"[rest] == text[8]


# --- networks and people -----------------------------------------------------------------------------------


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


def with_digits(value: str) -> bool:
    """Three digits or more, as document numbers have and words have not."""
    return sum(char.isdigit() for char in value) >= 3


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
