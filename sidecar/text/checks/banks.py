"""Accounts and payment cards."""

from sidecar.text.checks.numbers import compact, luhn, mod97, uneven, weighing

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
    (100000, 199999, frozenset({15})),  # UATP, airlines
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


us_aba = weighing((9,), (3, 7, 1) * 3, 10)  # American Bankers Association, routing numbers


# Federal Reserve districts, thrift institutions, electronic and government items, traveller's cheques.
_DISTRICTS = frozenset((*range(13), *range(21, 33), *range(61, 73), 80))


def aba_district(value: str) -> bool:
    """American Bankers Association: the first two digits say where the number was given; not mostly zeros."""
    return int(compact(value)[:2]) in _DISTRICTS and uneven(value)
