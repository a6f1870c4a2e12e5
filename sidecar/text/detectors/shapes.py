"""Shapes without a check digit that several detectors of personal data are made of, in capitals."""

# ruff: noqa: E501 -- an alternation reads better in one line

# Royal Mail, Programmers' guide to the postcode address file: areas do not begin with Q, V, X nor have I, J, Z second,
# and the last two letters are never C, I, K, M, O or V.
_AREA = r"[A-PR-UWYZ][A-HK-Y]?"
_OUTWARD = rf"(?:{_AREA}\d\d?|[A-PR-UWYZ]\d[A-HJKPSTUW]|[A-PR-UWYZ][A-HK-Y]\d[ABEHMNPRVWXY]|GIR)"
_INWARD = r"\d[ABD-HJLNP-UW-Z]{2}"
UK_POSTCODE = rf"{_OUTWARD} ?{_INWARD}"
# In small letters only with its space: `ff00aa` is a colour.
UK_POSTCODE_BARE = rf"(?i:{_OUTWARD} {_INWARD})|{_OUTWARD}{_INWARD}"
# DVLA, INF104: two letters of a region, two digits of a half-year, three letters; before 2001 a letter for the year, in
# front from 1983 on and at the end before that. I and Q are not used, Z only among the last three.
_UK_LAST = r"[A-HJ-PR-Z]{3}"
UK_PLATE = (
    rf"[A-HJ-PR-Y]{{2}}(?:0[2-9]|[12]\d|5[1-9]|[67]\d)[ -]?{_UK_LAST}"
    rf"|[A-HJ-NPR-TV-Y]\d{{1,3}}[ -]?{_UK_LAST}|{_UK_LAST}[ -]?\d{{1,3}}[A-HJ-NPR-TV-Y]"
)
# Fahrzeug-Zulassungsverordnung, annex 2: a district of one to three letters, one or two letters, up to four digits; H
# for historic and E for electric cars.
DE_PLATE = r"[A-ZÄÖÜ]{1,3}[ -][A-Z]{1,2}[ -]\d{1,4}[HE]?"
# Turkish general directorate of security: a province of 01 to 81, one to three letters, two to four digits.
TR_PLATE = r"(?:0[1-9]|[1-7]\d|8[01])(?: [A-PR-VYZ]{1,3} \d{2,4}|[A-PR-VYZ]{2,3}\d{2,4})"
# Central Motor Vehicles Rules, rule 50: a state, a district, a series, a number.
IN_PLATE = r"(?:A[NPRS]|BR|C[GH]|D[DLN]|G[AJ]|H[PR]|J[HK]|K[AL]|L[AD]|M[HLNPZ]|NL|O[DR]|P[BY]|RJ|SK|T[GNRS]|U[APK]|WB)[ -]?\d{1,2}[ -]?[A-Z]{1,3}[ -]?\d{4}"
# Federal Road Safety Corps: a local government area, a serial number, a year and a batch.
NG_PLATE = r"[A-HJ-NP-Z]{3}[ -]?\d{3}[ -]?[A-HJ-NP-Z]{2}"

MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|januar|februar|märz|mai|juni|juli|okt|dez|enero|janvier)[a-zé]{0,7}\.?"
BIRTHDAY = rf"(?:\d{{1,4}}[-/. ]\d{{1,2}}[-/. ]\d{{2,4}}|\d{{1,2}}(?:st|nd|rd|th|\.)?[ -](?:of )?{MONTH},?[ -]\d{{2,4}}|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{4}}年\d{{1,2}}月\d{{1,2}})"
