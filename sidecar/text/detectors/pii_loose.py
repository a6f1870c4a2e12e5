"""What has the shape of something personal and no check digit: plates, post codes, dates, documents, every address of
a host. For texts in which a miss is worse than a false alarm.
"""

# ruff: noqa: E501 -- a table reads better in long lines

from sidecar.text import checks
from sidecar.text.checks import Check
from sidecar.text.detectors.model import LEFT, Detector
from sidecar.text.detectors.shapes import DE_PLATE, IN_PLATE, MONTH, NG_PLATE, TR_PLATE, UK_PLATE, UK_POSTCODE_BARE

# A finding that is all of a text, as a field's value is, or an answer to a question.
_ALL = r"\A\s{0,4}(?P<value>VALUE)\s{0,4}\z"

_DAY, _MON, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:1[89]|20|21)\d\d"
_CLOCK = r"(?:[T ](?:[01]\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)"
_DATE = "|".join(
    (
        rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]){_CLOCK}?",
        rf"{_YEAR}[/.]{_MON}[/.]{_DAY}",
        rf"(?:{_DAY}[/.-]{_MON}|{_MON}[/-]{_DAY})[/.-](?:{_YEAR}|\d\d)",
        rf"{_DAY}(?:st|nd|rd|th|\.)?[ -](?:of )?{MONTH}(?:,?[ -](?:{_YEAR}|\d\d))?",
        rf"{MONTH}[ -]{_DAY}(?:st|nd|rd|th)?,? {_YEAR}",
        rf"{MONTH}[ -](?:{_YEAR}|\d\d)",
        rf"{_MON}/(?:{_YEAR}|{_DAY}|\d\d)",
        r"\d{4}年\d{1,2}月\d{1,2}日",
    )
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_BOUND = r"(?:\z|[^0-9A-Za-z_]|\\[nrt])"

# fmt: off
# In capitals: in small letters a plate is any two short words and a number.
_PLATES: tuple[tuple[str, str, str, str, str, Check | None], ...] = (
    ("uk_plate_bare", UK_PLATE, "DVLA, INF104", "AB51 ABC;A123 BCD;ABC 1D", "IB51 ABC;AB00 ABC;XXXAB51ABCYYY", None),
    ("de_plate_bare", DE_PLATE, "Fahrzeug-Zulassungsverordnung, annex 2", "B AB 1234;HH-AB-1234;KA EF 12H", "BAB1234;B 1234;BXYZ AB 1234", None),
    ("tr_plate_bare", TR_PLATE, "Turkish general directorate of security", "34 ABC 1234;06 A 123;34ABC1234", "82 ABC 123;00 ABC 123;05T09", None),
    ("in_plate_bare", IN_PLATE, "Central Motor Vehicles Rules, rule 50", "KA53ME3456;DL3CJI0001", "ABNE123456", None),
    ("ng_plate_bare", NG_PLATE, "Federal Road Safety Corps", "APP-456CV;ABJ 001AA", "AB-1234CD;ABCD-123EF", None),
)

_SHAPES: tuple[tuple[str, str, str, str, str, Check | None], ...] = (
    ("passport_bare", r"[A-Z]{2}\d{7}|[A-Z]{3}\d{6}|[ADEGHMORSTXYZ]\d{8}|[MSRODG]\d{3}[A-Z]\d{4}|[A-PR-WY][1-9]\d{5}[1-9]", "ICAO 9303 and the issuers: two letters and seven digits, three and six, some letters and eight, and older ones", "AB1234567;XYZ987654;M123A4567;A3456781", "A123B4567;AB12345678;ABCD12345", None),
    ("it_document_bare", r"[A-Z]{2} ?\d{7}|\d{7}[A-Z]{2}|[A-Z]{2}\d{5}[A-Z]{2}|[A-Z]{2}\d{7}[A-Z]|U1[B-DF-HJ-NPR-Z0-9]{7}[A-Z]", "Italian interior ministry, identity cards and licences", "AA12345AA;AA0123456B;U1K711J11M", "990123456B;U1H00A000B", None),
    ("driving_licence_bare", r"[A-Z]{2}\d{8}[0-9A-Z]", "Fahrerlaubnis-Verordnung, annex 8: an authority, a number, a check, a copy", "BO12345678A;GE123456780", "BO12345678;BO12345678AB", None),
    ("cn_mobile_bare", r"1[3-9]\d{9}", "Chinese numbering plan, mobile numbers", "13812345678;18900001111", "12345678901;1381234567", None),
    ("de_bsnr_bare", r"\d{9}", "KBV, practice numbers", "021234568;711234567", "000000000", checks.de_bsnr),
    ("kr_licence_bare", r"(?:1[1-9]|2[0-68])[ -]\d\d[ -]\d{6}[ -]\d\d", "Korean road traffic authority: a region, a year, a serial number", "11-22-123456-12;28 22 123456 12", "99-22-123456-12;11-22-12345-12", None),
    ("in_voter_bare", r"[A-Z]{3}\d{7}", "Election Commission of India, EPIC", "KSD1287349;UZB2345117", "ZXDF8923Q1", None),
    ("in_pan_bare", r"[A-Z]{5}\d{4}[A-Z]", "Indian income tax department, PAN, of any holder", "ABCND1234Z;PQRST6789K", "ABCDE12345F;ABCD1234F", None),
    ("sg_nric_bare", r"[STFGM]\d{7}[A-Z]", "Singaporean ICA, whatever the letter", "T1234567Z;G1122144L", "PA12348L", None),
    ("de_tax_number_bare", r"\d{2,3}/\d{3,4}/\d{4,5}", "German tax offices, KONSENS", "123/456/78901;12/345/6789", "1781508150001;12/3456", None),
)

PII_LOOSE: tuple[Detector, ...] = (
    *(
        Detector(name, "pii-loose", rf"{LEFT}(?P<value>{regex})\b", source, tuple(yes.split(";")), tuple(no.split(";")), check)
        for name, regex, source, yes, no, check in _PLATES
    ),
    *(
        Detector(name, "pii-loose", rf"{LEFT}(?P<value>(?i:{regex}))\b", source, tuple(yes.split(";")), tuple(no.split(";")), check)
        for name, regex, source, yes, no, check in _SHAPES
    ),
    Detector("uk_postcode_bare", "pii-loose", rf"{LEFT}(?P<value>{UK_POSTCODE_BARE})\b", "Royal Mail, Programmers' guide to the postcode address file", ("SW1A 1AA", "M11AA", "gir 0aa"), ("QA1 1AA", "M1 1CA", "ABCM11AADEF", "#ff00aa")),
    Detector("date", "pii-loose", rf"{LEFT}(?P<value>{_DATE})(?:\z|[^0-9A-Za-z_/-]|[/-](?:\z|[^0-9])|\\[nrt])", "ISO 8601 and RFC 3339, and how people write days and months", ("2024-03-15T14:30:00+02:00", "5/21", "21-May", "5-MAY-2021", "21.5.2021", "May 4th, 2021"), ("2024-13-45", "1234567", "99/99", "x5-5", "11-11-11-11114")),
    Detector("ip_any", "pii-loose", rf"{LEFT}(?P<value>(?:{_OCTET}\.){{3}}{_OCTET}(?:/\d{{1,2}})?){_BOUND}", "RFC 791: of whatever use", ("127.0.0.1", "0.0.0.0/0", "255.255.255.255"), ("1.2.3", "256.1.1.1")),
    Detector("ip_loopback", "pii-loose", rf"(?:\A|[^0-9A-Za-z:_]|\\[nrt])(?P<value>(?:::1|::|::(?:[Ff]{{4}}:)?(?:{_OCTET}\.){{3}}{_OCTET}|[Ff]{{2}}0[0-9A-Fa-f]::[0-9A-Fa-f]{{1,4}})(?:/\d{{1,3}})?)(?:\z|[^0-9A-Za-z_:.]|\.(?:\z|[^0-9])|\\[nrt])", "RFC 4291: loopback, unspecified, mapped and multicast addresses", ("::1", "::ffff:127.0.0.1", " ff02::1", " ::/0"), ("std::vector", "a::1")),
    Detector("plate_alone", "pii-loose", _ALL.replace("VALUE", f"(?i:{'|'.join(regex for _, regex, *_ in _PLATES)})"), "the issuers' formats: a plate and nothing else, in small letters too", ("aa02 aaa", "hh-ab-1234", "34 abc 1234"), ("it is 100%", "82 abc 123")),
    Detector("postcode_alone", "pii-loose", _ALL.replace("VALUE", r"\d{5}"), "UPU, postal addressing systems: five digits and nothing else", ("10115", "80331"), ("00000", "101150", "99999"), checks.de_postcode),
)
# fmt: on
