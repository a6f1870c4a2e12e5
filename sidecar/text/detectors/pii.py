"""Personal data: numbers with their checksums, and what has none only near the words that announce it.

Nine or ten digits under one check digit are right by chance one time in ten, so such numbers are found only near
their name, or grouped as their issuer prints them. Pack `pii-bare` finds them anywhere, and `pii-loose` what has
no check digit at all.
"""

# ruff: noqa: E501, S104 -- a table reads better in long lines; an address in it is an example

from sidecar.text import checks
from sidecar.text.checks import IBAN_LENGTHS, Check
from sidecar.text.detectors.model import LEFT, Detector, near, samples
from sidecar.text.detectors.shapes import BIRTHDAY, DE_PLATE, IN_PLATE, NG_PLATE, TR_PLATE, UK_PLATE, UK_POSTCODE


def _d(
    name: str, regex: str, source: str, yes: tuple[str, ...], no: tuple[str, ...], check: Check | None = None
) -> Detector:
    return Detector(name, "pii", regex, source, samples(yes), samples(no), check)


def _number(
    name: str, regex: str, source: str, yes: tuple[str, ...], no: tuple[str, ...], check: Check | None = None
) -> Detector:
    """A number that may stand anywhere between word boundaries."""
    return _d(name, rf"{LEFT}(?P<value>{regex})\b", source, yes, no, check)


def _near(
    name: str,
    words: str,
    regex: str,
    source: str,
    yes: tuple[str, ...],
    no: tuple[str, ...],
    check: Check | None = None,
) -> Detector:
    """A number that is found only after one of `words`, with a few others between."""
    return _d(name, near(words, regex, _FAR if check else _CLOSE), source, yes, no, check)


# How far from its name a number is looked for: further where a checksum has a say.
_FAR, _CLOSE = 40, 24
# What people write between the groups of a number: a space (also a no-break one), a dash, a dot.
_GAP = r"[ .\x{A0}\x{2011}\x{2013}-]"
# After groups of digits: no further group, which would make them a part of something longer.
_ENDS = r"(?:\z|[^0-9A-Za-z -]|[ -](?:\z|[^0-9]))"

_IBAN = "|".join(
    rf"(?:{'|'.join(countries)})\d\d(?:[ \x{{A0}}-]?[A-Z0-9]){{{length - 4}}}"
    for length, countries in IBAN_LENGTHS.items()
)
_NINO = r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"
_B58 = r"[1-9A-HJ-NP-Za-km-z]"
_MBI = r"[AC-HJKMNP-RT-Y]"
_HEX4 = r"[0-9A-Fa-f]{1,4}"
_GLOBAL = r"(?:[23][0-9A-Fa-f]{3}|[Ff][CcDdEe][0-9A-Fa-f]{2}|64:[Ff]{2}9[Bb])"
_V4 = r"(?:\d{1,3}\.){3}\d{1,3}"
_TEL = r"(?:[ .()/-]{0,3}\d)"

# fmt: off
_GENERAL = (
    _d("email", r"(?:\\[nrtbf])?(?P<value>[A-Za-z0-9_][A-Za-z0-9._%+'-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,190}\.(?:xn--[A-Za-z0-9-]{2,40}|[A-Za-z]{2,24}))",
       "RFC 5321 and RFC 5322, the forms in use",
       ("alice@example.com", "first.last+tag@mail.example.co.uk", "a@xn--d1acufc.xn--p1ai"),
       ("git@github.com:org/repo", "icon@2x.png", "package@1.2.3", "@decorator", "user@localhost"), checks.email),
    _d("credit_card", LEFT + r"(?P<value>[2-6]\d{12,18}|1\d{14}|[2-6]\d{3}(?:GAP{1,2}\d{4}){3}|3\d{3}GAP\d{6}GAP\d{4,5})(?:\z|[^0-9A-Za-z_ ]| (?:\z|[^0-9]|\d{1,2}[/-]|\d{3,4}(?:\z|[^0-9])))".replace("GAP", _GAP), "ISO/IEC 7812; the issuers' ranges",
       ("4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "3782 822463 10005", "6011000990139424", "4222222222222", "135410014004955", "4111 1111 1111 1111 12/29"),
       ("4111 1111 1111 1112", "1234567890123", "1700000000000", "20240131123045", "9999 9999 9999 9995", "2600 0560 1001 6113 70"), checks.card),
    _number("iban", _IBAN, "ISO 13616, IBAN registry",
       ("DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "FR14 2004 1010 0505 0001 3M02 606", "NO9386011117947"),
       ("DE89 3704 0044 0532 0130 01", "GB82WEST1234569876543", "DE12 is a street"), checks.iban),
    _d("phone", rf"(?:\B|\\[nrt])(?P<value>\+\d{_TEL}{{6,13}}|\(\d{{3}}\) ?\d{{3}}[ .-]\d{{4}})\b", "ITU-T E.164 and E.123: with a plus, or an area code in brackets",
       ("+1 415-555-0132", "+49 (0)30 1234567", "(415) 555-0132", "+905321234567", "+55 11 98456 5666"), ("+1", "1 + 2 = 3", "x+12345678", "+999 12345678", "(100) 200 300"), checks.phone),
    _number("phone_national", r"[2-9]\d\d[.-][2-9]\d\d[.-]\d{4}|0[ -]?\(?[579]\d\d\)?[ -]?\d{3}[ -]?\d\d[ -]?\d\d|0[5789]0-\d{4}-\d{4}|0?[2-5]\d\d[ .-]\d{3}[ .-]\d\d[ .-]\d\d|0\d{1,3}[-/]\d{6,8}", "the North American plan; mobile numbers with a trunk zero; Turkish groups; area codes with one",
       ("415-555-0132", "415.555.0132", "0917 123 4567", "05321234567", "0532 123 45 67", "09-7625400"), ("2024-01-31", "415-555-013", "000-000-0000", "123-456"), checks.phone),
    _near("phone_near", r"(?i:phone|mobile|telephone|\<tel\b|\<cell\b|\<fax\b|whatsapp|call me|handy|telefon|móvil|téléphone|teléfono|cellulare|celular|telemóvel|numer tel|gsm no)|电话|手机|電話|전화|โทร|тел\.", rf"0?\d{_TEL}{{6,13}}", "ITU-T E.123: a number after its name",
       ("Phone: 030 1234567", "电话号码13011112222", "tel. 020 7946 0018", "call me at 555 0132 99"), ("phone model 12", "my phone has 128 GB"), checks.phone),
    _number("ipv4", r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)", "RFC 791", ("8.8.8.8", "203.0.113.7", "192.168.1.100"), ("127.0.0.1", "0.0.0.0", "255.255.255.0", "1.2.3", "256.1.1.1", "v1.2.3.4"), checks.ip),
    _d("ipv6", LEFT + rf"(?P<value>(?:{_HEX4}:){{7}}{_HEX4}|(?:{_HEX4}:){{6}}{_V4}|{_GLOBAL}:(?:(?:{_HEX4}:){{0,6}}:(?:(?:{_HEX4}:){{0,5}}(?:{_V4}|{_HEX4}))?))(?:\z|[^0-9A-Za-z:_]|:(?:\z|[^0-9A-Fa-f:]))", "RFC 4291; compressed ones of the ranges that IANA has given out",
       ("2001:db8::ff00:42:8329", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "fe80::1ff:fe23:4567:890a", "684D:1111:222:3333:4444:5555:6:77", "2001:db8::192.0.2.33"), ("::1", "a::b", "12:30:45", "std::vector", "00:1A:2B:3C:4D:5E", "abc::def", "fe80::1text", "2001::db8::1"), checks.ip),
    _number("mac_address", r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}", "IEEE 802", ("00:1A:2B:3C:4D:5E", "01-23-45-67-89-ab", "001a.2b3c.4d5e"), ("FF:FF:FF:FF:FF:FF", "00:00:00:00:00:00", "00:1A:2B:3C:4D", "10:2F:33-AC-29-C3"), checks.mac),
    _number("bitcoin_address", rf"[13]{_B58}{{25,34}}|bc1[02-9ac-hj-np-z]{{11,87}}|BC1[02-9AC-HJ-NP-Z]{{11,87}}", "Bitcoin wiki; BIP 173 and BIP 350",
       ("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
       ("16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ2", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdz", "1234567890123456789012345678"), checks.bitcoin),
    _number("ethereum_address", r"0x[0-9a-fA-F]{40}", "Ethereum yellow paper: 20 bytes in hex", ("0x52908400098527886E0F7030069857D2E4169EE7", "0x<h40>"), ("0x<h64>", "0xdeadbeef", "0x" + "0" * 40), checks.varied),
    _number("altcoin_address", rf"[LMDT]{_B58}{{26,33}}|(?:ltc1|addr1|cosmos1)[02-9ac-hj-np-z]{{30,100}}", "Litecoin, Dogecoin, Tron and Cardano docs: Base58Check or bech32",
       ("LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1", "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"), ("LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc2", "ThisIsJustALongCamelCaseName"), checks.bitcoin),
    _near("date_of_birth", r"(?i:\<dob\b|date of birth|birth ?date|birthday|\<born\b|geburtsdatum|geboren|né le|née le|date de naissance|fecha de nacimiento|nato il|nascimento)|出生日期|生年月日|생년월일", BIRTHDAY, "a date after the words for birth",
       ("Date of birth: 1984-07-21", "DOB 07/21/1984", "born on 21 July 1984", "born July 4th, 1976", "出生日期：1990年1月2日"), ("released on 2024-01-31", "born in the city", "DOB: unknown")),
    _near("passport", r"(?i:passport|reisepass|passeport|pasaporte|passaporto|travel document|paspoort|paszport|pasaport)|护照|護照|パスポート|여권|паспорт|جواز", r"(?i:[A-Z]{0,3}) ?\d{6,9}[A-Z]?|[A-Z]\d{3}[A-Z]\d{4}|[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}", "ICAO 9303 and the issuers' formats, after its name",
       ("passport number: J6932157", "My passport is AB1234567", "Reisepass C01X00T47", "passport no. 912803456"), ("passport photo 35x45", "a passport is required"), checks.with_digits),
    _d("passport_mrz", LEFT + r"(?P<value>P[A-Z<][A-Z]{3}[A-Z<]{20,39})", "ICAO 9303, machine-readable zone", ("P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "PPDEUMUSTERMANN<<ERIKA<<<<<<<<<<<<<<<<<<<<<<"), ("P<UTO", "PDEUX"), checks.mrz_names),
    _near("driving_licence", r"(?i:driv(?:er|ing)'?s?[ -]?licen[cs]e|führerschein|permis de conduire|patente di guida|carnet de conducir|permiso de conducir|fahrerlaubnis|rijbewijs|prawo jazdy|körkort|ehliyet|\<DL\b ?(?:no|number|#)|\<my licen[cs]e is)|운전면허|驾驶证|運転免許|водительск", r"[A-Z]{0,2}\d{5,13}[A-Z]?\d?|[A-Z]\d[A-Z0-9]{7,8}[A-Z]|\d\d[- ]?\d\d[- ]?\d{6}[- ]?\d\d", "the issuers' formats, after its name",
       ("driver's license: H12234567", "driving licence number AA0123456B", "Führerschein BO12345678A"), ("driver license required", "driving licence since 1999"), checks.with_digits),
    _near("bank_account", r"(?i:account (?:number|no\.?)|acct\.? ?(?:no|number|#)?|kontonummer|kontonr|numéro de compte|número de cuenta|numero di conto|rekeningnummer|numer konta|bank a/c|sort code)|银行账号|银行卡号|口座番号|계좌번호", r"\d{8,17}|\d{2,6}(?:[ -]\d{2,6}){1,4}", "the banks' formats, after its name", ("account number: 945456787654", "acct no 12345678"), ("account number required", "account 12")),
    _near("imei", r"(?i:\<imei\b)", r"\d{15}|\d\d-\d{6}-\d{6}-\d", "3GPP TS 23.003: Luhn", ("IMEI: 490154203237518", "IMEI 35-209900-176148-1"), ("IMEI: 490154203237519",), checks.luhn),
    _near("vehicle_id", r"(?i:\<vin\b|vehicle identification|chassis (?:no|number)|fahrgestellnummer)", r"[A-HJ-NPR-Z0-9]{17}", "ISO 3779 and 49 CFR 565", ("VIN 1M8GDM9AXKP042788", "VIN: 11111111111111111"), ("VIN 1M8GDM9A1KP042788",), checks.vin),
    _near("postcode", r"(?i:post ?code|postal code|zip ?code|\<zip[:#]|\<plz\b|postleitzahl|code postal|código postal|codice postale|\<cap\b:|cep\b:|kod pocztowy|postnummer|posta kodu|pin ?code)|邮编|郵便番号|우편번호|индекс", r"\d{5}(?:-\d{4})?|\d{4} ?[A-Z]{2}|\d{3}[ -]?\d{3}|\d{2}-\d{3}|\d{5}-\d{3}|\d{3}-\d{4}|\d{4}", "UPU, postal addressing systems, after its name",
       ("PLZ: 10115", "ZIP code 94105-1234", "Postleitzahl 80331", "postcode 1012 AB", "郵便番号 100-0001"), ("zip file 12345 bytes", "PLZ 1011501")),
    _d("postcode_uk", near(r"(?i:post ?code|address|\<live[sd]? (?:at|in)|postal code|\<ship(?:ped)? to|deliver(?:ed)? to)", rf"(?i:{UK_POSTCODE})", 60, r"[^\n]"), "Royal Mail, Programmers' guide to the postcode address file",
       ("postcode EC2A 1NT", "My address is 10 Downing Street, London SW1A 2AA"), ("postcode QA1 1AA", "address M1 1CA")),
    _near("number_plate", r"(?i:licen[cs]e plate|number plate|plate (?:no|number)|\<plates?\b:|vehicle reg|registration (?:no|number|plate|mark)|\<car reg|reg(?:istration)? no\b|kennzeichen|plaka(?:sı| no| numarası)?\b|\<targa\b|matrícula|immatriculation|kenteken|rejestracyjny)|车牌|車牌|ナンバープレート|번호판|госномер", rf"(?i:{UK_PLATE}|{IN_PLATE}|{NG_PLATE}|{TR_PLATE}|{DE_PLATE}|[A-Z]{{2}}-?\d{{3}}-?[A-Z]{{2}}|[A-Z]{{1,3}}[ -]?\d{{2,4}}[ -]?[A-Z]{{0,3}}|\d{{1,4}}[ -]?[A-Z]{{2,3}}[ -]?\d{{0,4}})", "the issuers' formats, after its name",
       ("number plate AB51 ABC", "Kennzeichen: HH-AB-1234", "registration number is OD02BA2341", "Plaka 34 ABC 1234", "license plate 7ABC123"), ("license plate frame", "number plates are made of steel", "Kennzeichen fehlt"), checks.with_digit),
    _near("medical_record", r"(?i:\<MRN\b|medical record (?:no|number)|patient (?:id|no|number)|patientennummer|numéro de patient|health (?:card|plan) (?:no|number)|member id|policy (?:no|number)|versicherungsnummer)", r"[A-Z]{0,3}-?\d{5,12}[A-Z]?", "the issuers' formats, after its name",
       ("MRN: 00123456", "patient ID A1234567", "member id XYZ123456789"), ("medical record number required", "patient number 12"), checks.with_digits),
)

_AMERICAS = (
    _number("us_ssn", r"[0-8]\d\d(?:-\d\d-|[ .]\d\d[ .])\d{4}", "SSA, number randomisation", ("123-45-6789", "219-09-9998", "536 22 1234"),
            ("000-12-3456", "666-12-3456", "987-65-4321", "123-00-4567", "123-45-0000", "2024-01-31", "555-123-4567"), checks.us_ssn),
    _number("us_ssn_unissued", r"9\d\d-(?:0[1-9]|[1-4]\d)-\d{4}", "SSA, areas that are never given out: made-up numbers, and mistyped ones", ("914-27-6083", "900-12-3456"), ("911-89-1234", "987-65-4321", "900-00-1234")),
    _near("us_ssn_near", r"(?i:\<ssn\b|social sec(?:urity)?\b|\<ss ?#|\<soc\.? sec|seguro social)", r"[0-8]\d{8}|[0-8]\d{4}[ -]\d{4}|[0-8]\d\d[ -]\d{6}|[0-8]\d\d\.\d\d\.\d{4}", "SSA, number randomisation", ("SSN 219099998", "social security number is 536221234"), ("SSN 000123456", "social security 2024"), checks.us_ssn),
    _number("us_itin", r"9\d\d[- ](?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])[- ]\d{4}", "IRS, taxpayer identification numbers", ("911-70-1234", "911-53-1234", "900 94 0001"), ("911-89-1234", "911-93-1234", "811-70-1234")),
    _near("us_itin_near", r"(?i:\<itin\b|taxpayer id|\<tax id)", r"9\d\d-?(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-?\d{4}", "IRS, taxpayer identification numbers", ("ITIN 911701234", "taxpayer id: 91170-1234"), ("ITIN 911891234",)),
    _near("us_routing", r"(?i:routing|\<aba\b|\<rtn\b|\<ach\b|transit (?:no|number))", r"[0-3]\d{8}|[0-3]\d{3}-\d{4}-\d", "ABA routing numbers: 3-7-1", ("routing number 121000358", "ABA: 3222-7162-7"), ("routing 121000359", "routing table 12"), checks.us_aba),
    _near("us_npi", r"\<NPI\b|(?i:provider id|national provider)", r"[12]\d{9}|[12]\d{3}[- ]\d{3}[- ]\d{3}", "CMS, national provider identifier", ("NPI: 1234567893", "Provider identifier 1245319599"), ("NPI 1234567894",), checks.us_npi),
    _number("us_mbi", rf"(?i:[1-9]{_MBI}(?:{_MBI}|\d)\d-?{_MBI}(?:{_MBI}|\d)\d-?{_MBI}{{2}}\d\d)", "CMS, Medicare beneficiary identifier", ("1EG4-TE5-MK73", "1EG4TE5MK73", "4EF6GH8JK12"), ("1SG4-TE5-MK73", "1EG4-LE5-MK73")),
    _near("us_dea", r"\<DEA\b|(?i:certificate number)", r"[ABCDEFGHJKLMPRSTUX][A-Z9]\d{7}", "DEA registration numbers", ("DEA number BB1388568", "certificate number is: GL0285191"), ("DEA number BG8207031",), checks.us_dea),
    _number("ca_sin", r"[1-79]\d\d-\d{3}-\d{3}", "Service Canada, social insurance numbers", ("347-677-452", "130-692-544"), ("046-454-286", "130-692-545"), checks.ca_sin),
    _near("ca_sin_near", r"\<S\.?I\.?N\b|(?i:social insurance|assurance sociale)|\<NAS\b", r"[1-79]\d\d ?\d{3} ?\d{3}", "Service Canada, social insurance numbers", ("SIN 130692544", "social insurance number: 550 090 112"), ("SIN 130692545",), checks.ca_sin),
    _number("mx_curp", r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z0-9]\d", "RENAPO, CURP", ("HEGG560427MVZRRL04", "BOXW310820HNERXN09"), ("HEGG560427MVZRRL05", "HEGG561327MVZRRL04"), checks.mx_curp),
    _number("br_cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d", "Receita Federal, CPF", ("529.982.247-25", "111.444.777-35"), ("529.982.247-26", "111.111.111-11"), checks.br_cpf),
    _near("br_cpf_near", r"\<CPF\b", r"\d{9}-?\d\d", "Receita Federal, CPF", ("CPF 52998224725", "CPF: 111444777-35"), ("CPF 52998224726",), checks.br_cpf),
    _number("br_cpf_digits", r"\d{11}", "Receita Federal, CPF", ("52998224725", "11144477735"), ("52998224726", "11111111111", "98765432100"), checks.br_cpf_bare),
    _number("br_cnpj", r"\d\d\.?\d{3}\.?\d{3}/?\d{4}-?\d\d", "Receita Federal, CNPJ", ("11.222.333/0001-81", "11222333000181"), ("11.222.333/0001-82", "20240131123045"), checks.br_cnpj),
    _number("ar_cuit", r"(?:20|2[347]|30|3[34])-\d{8}-\d", "AFIP, CUIT and CUIL", ("20-12345678-6", "27-05954604-5"), ("20-12345678-7",), checks.ar_cuit),
    _number("cl_rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]|\d{7,8}-[\dkK]", "Registro Civil, RUT", ("12.345.678-5", "30686957-4"), ("12.345.678-6", "1234567-8x"), checks.cl_rut),
)

_EUROPE = (
    _number("uk_nhs", r"\d{3} \d{3} \d{4}|\d{3}-\d{3}-\d{4}", "NHS data dictionary; Wikipedia, the ranges given out", ("401-023-2137", "221 395 1837"), ("401-023-2138", "824 753 5564"), checks.uk_nhs_issued),
    _near("uk_nhs_near", r"\<NHS\b|(?i:\<CHI (?:no|number)|health service (?:no|number))", r"\d{3}[ -]?\d{3}[ -]?\d{4}", "NHS data dictionary", ("NHS number 0032698674", "NHS: 943 476 5919"), ("NHS 4010232138",), checks.uk_nhs),
    _number("uk_nino", rf"(?i:{_NINO})", "HMRC, national insurance numbers", ("AA 12 34 56 B", "PR123612C"), ("AA 12 34 56 H", "BG123612A", "FQ 00 00 00 C"), checks.uk_nino),
    _number("uk_driving_licence", r"(?i:(?:[A-Z]{5}|[A-Z]{4}9|[A-Z]{3}99|[A-Z]{2}999|[A-Z]9{4})\d(?:0[1-9]|1[0-2]|5[1-9]|6[0-2])(?:0[1-9]|[12]\d|3[01])\d[A-Z9]{2}[A-Z0-9][A-Z]{2})", "DVLA, driver numbers", ("MORGA607054SM9IJ", "MORGA657054SM9IJ"), ("MORGA600054SM9IJ", "MORGA613054SM9IJ"), checks.with_digits),
    _number("ie_pps", r"\d{7}[A-W][A-IW]", "Irish Revenue, PPS numbers of two letters", ("1234567FA", "1234567TW"), ("1234567GA",), checks.ie_pps),
    _near("ie_pps_near", r"\<PPSN?\b|(?i:personal public service)", r"\d{7}[A-W][A-IW]?", "Irish Revenue, PPS numbers", ("PPS number 1234567T", "PPSN: 1234567FA"), ("PPS 1234567A",), checks.ie_pps),
    _number("de_tax_id", r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", "BZSt, IdNr", ("86095742719", "86 095 742 719"), ("86095742718", "12345678901"), checks.de_tax_id),
    _near("de_tax_id_near", r"(?i:steuer-?id|idnr|id-nr|\<idno\b|steuerliche identifikation|steueridentifikation|\<tin\b)", r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", "BZSt, IdNr", ("Steuer-ID: 12345678903", "IdNr. 98765432106"), ("Steuer-ID: 12345678901",), checks.de_tax_check),
    _number("de_vat_id", r"(?i:DE)[ .-]?\d{3}[ .-]?\d{3}[ .-]?\d{3}", "BZSt, USt-IdNr", ("DE136695976", "DE129273398"), ("DE136695977", "DE12345678"), checks.de_vat_id),
    _number("de_social_security", r"\d\d ?[0-9]\d[01]\d\d\d ?[A-Z] ?\d{3}", "Deutsche Rentenversicherung, VKVV section 2", ("15070649C103", "65 070803 A 019"), ("15070649C100", "15071349C103"), checks.de_social_security),
    _near("de_id_card", r"(?i:personalausweis|ausweisnummer|id card|identity card|ausweis|carte d.identité|\<perso\b)", r"(?i:[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{7}\d)", "ICAO 9303; the alphabet of German documents", ("Personalausweis: L01X00T44", "Ausweisnummer CZ6311T03"), ("Personalausweis L01X00T47",), checks.icao_check),
    _near("de_health_insurance", r"(?i:kvnr|krankenversicher|versichertennummer|krankenkasse|health insurance|\<egk\b|gesundheitskarte)", r"[A-Z]\d{9}", "GKV, Krankenversichertennummer", ("KVNR A123456780", "eGK-Nummer M123456785", "Krankenversicherung: M123456785"), ("KVNR A123456787",), checks.de_health_insurance),
    _d("de_register", LEFT + r"(?P<value>(?i:HR[AB]) ?\d{1,6})(?:\z|[^0-9A-Za-z_]|\\[nrt])", "German commercial register, sections A and B", ("HRB 123456", "HRA12345", "Amtsgericht München HRB 12345"), ("HRC 12345", "HRB 1234567", "CHRB 12")),
    _near("de_tax_number", r"(?i:steuernummer|steuer-?nr|st\.?-?nr\.?|tax number)", r"\d{2,3}/\d{3,4}/\d{4,5}|\d{13}|\d{10,11}", "German tax offices, KONSENS: forms of the Länder and of ELSTER", ("Steuernummer: 0981508150999", "St.-Nr. 123/456/78901", "Steuernummer 93/815/08152"), ("Steuernummer 12", "Steuernummer fehlt")),
    _near("de_lanr", r"\<LANR\b|(?i:arztnummer)", r"\d{9}", "KBV, lifelong physician numbers", ("LANR: 123456601", "Arztnummer 987654401"), ("LANR 123456901",), checks.de_lanr),
    _near("de_bsnr", r"\<BSNR\b|(?i:betriebsstättennummer)", r"\d{9}", "KBV, practice numbers", ("BSNR 711234567", "Betriebsstättennummer: 021234568"), ("BSNR 000000000",), checks.de_bsnr),
    _near("eu_vat", r"(?i:\<vat\b|ust-?id|umsatzsteuer-id|\<tva\b|\<btw\b|\<moms\b|p\.? ?iva|partita iva|\<nif\b|\<nip\b|\<uid\b)", r"ATU\d{8}|BE[01]?\d{9}|BG\d{9,10}|CY\d{8}[A-Z]|CZ\d{8,10}|DE ?\d{9}|DK\d{8}|EE\d{9}|EL\d{9}|ES[A-Z0-9]\d{7}[A-Z0-9]|FI\d{8}|FR ?[A-HJ-NP-Z0-9]{2} ?\d{9}|GB ?\d{3} ?\d{4} ?\d\d|HR\d{11}|HU\d{8}|IE\d[A-Z0-9+*]\d{5}[A-Z]{1,2}|LT\d{9}|LU\d{8}|LV\d{11}|MT\d{8}|NL\d{9}B\d\d|PL\d{10}|PT\d{9}|RO\d{2,10}|SE\d{12}|SI\d{8}|SK\d{10}", "European Commission, VIES: structure of VAT numbers", ("VAT no. ATU12345678", "USt-IdNr. DE123456789", "TVA FR40303265045", "BTW NL123456789B01"), ("VAT AT12345678", "VAT 20 %")),
    _d("es_nif", LEFT + r"(?P<value>(?i:(?:\d{7,8}|[XYZ]\d{7})-?[A-Z]))(?:\z|[^0-9A-Za-z_-]|-(?:\z|[^0-9A-Fa-f]))", "Spanish interior ministry, DNI and NIE", ("55555555K", "12345678-Z", "X9613851N", "Y8063915-Z"), ("12345678A", "Y8063915Q", "W8063915Q", "8554905d-dba9"), checks.es_nif),
    _number("it_fiscal_code", r"(?i:[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z])", "Agenzia delle Entrate, codice fiscale", ("RSSMRA85T10A562S", "AAAAAA00B11C333Y"), ("RSSMRA85T10A562T",), checks.it_fiscal_code),
    _near("it_vat", r"(?i:partita iva|p\.? ?iva|vat)", r"(?:IT ?)?\d{11}", "Agenzia delle Entrate, partita IVA: Luhn", ("Partita IVA 01333550323", "P.IVA: IT01333550323"), ("Partita IVA 01333550324",), checks.it_vat),
    _near("it_document", r"(?i:carta d'identità|carta di identità|patente)", r"[A-Z]{2}\d{7}|\d{7}[A-Z]{2}|[A-Z]{2}\d{5}[A-Z]{2}|[A-Z]{2}\d{7}[A-Z]", "Italian interior ministry", ("carta d'identità AA12345AA", "patente AA0123456B"), ("patente A1",), checks.with_digits),
    _number("fr_nir", r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", "INSEE, NIR", ("255081416802538", "1 84 12 76 451 089 46"), ("255081416802539",), checks.fr_nir),
    _number("be_national_number", r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", "Belgian national register", ("85.07.30-033.28", "93.05.18-223.61"), ("85.07.30-033.29",), checks.be_nn),
    _near("be_national_number_near", r"(?i:rijksregister|numéro national|registre national|national register|\<niss\b|\<insz\b|\<nrn\b)", r"\d{6}[ -]?\d{3}[ -]?\d\d", "Belgian national register", ("rijksregisternummer 85073003328", "NISS 850730-033-28"), ("NISS 85073003329",), checks.be_nn),
    _near("nl_bsn", r"\<BSN\b|(?i:burgerservice|sofi-?n(?:umme)?r)", r"\d{9}|\d{4}\.\d\d\.\d{3}", "Dutch tax administration, elfproef", ("BSN 111222333", "Burgerservicenummer: 123456782"), ("BSN 111222334",), checks.nl_bsn),
    _number("pl_pesel", r"\d{11}", "Polish interior ministry, PESEL", ("44051401458", "02070803628"), ("44051401459", "12345678901"), checks.pl_pesel),
    _number("se_personnummer", r"(?:18|19|20)?\d{6}[-+]?\d{4}", "Skatteverket, personnummer", ("871220-2384", "199001011007", "19910924-2397"), ("871220-2385", "871320-2384"), checks.se_personnummer),
    _near("se_organisation", r"(?i:organisationsn|\<org\.? ?n(?:umme)?r\b|company (?:id|identity|reg))", r"[1-9]\d[2-9]\d{3}-?\d{4}", "Bolagsverket, organisation numbers", ("organisationsnummer 556703-7485", "Our company identity code is: 212000-0142"), ("organisationsnummer 556703-7486",), checks.se_organisation),
    _number("no_fnr", r"\d{6} ?\d{5}", "Skatteetaten, fødselsnummer", ("01010750160", "010107 50160"), ("01010750161",), checks.no_fnr),
    _number("fi_hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]", "Digital and Population Data Services Agency, HETU", ("010594Y9032", "131052-308T"), ("131052-308U", "311390-1111"), checks.fi_hetu),
    _number("dk_cpr", r"\d{6}-\d{4}", "CPR register", ("010190-1234", "311299-4321"), ("321299-4321", "991231-1234"), checks.dk_cpr),
    _number("ch_ahv", r"756\.?\d{4}\.?\d{4}\.?\d\d", "Swiss compensation office, AHV number", ("756.9217.0769.85", "7569217076985"), ("756.9217.0769.84",), checks.ch_ahv),
    _number("cz_birth_number", r"\d{6}/\d{4}", "Czech interior ministry, rodné číslo", ("736028/5163", "855222/0006"), ("736028/5164",), checks.cz_rodne_cislo),
    _number("ro_cnp", r"[1-9]\d{12}", "Romanian CNP", ("1800101221144", "2990101221146"), ("1800101221145", "1700000000000"), checks.ro_cnp),
    _number("bg_egn", r"\d{10}", "Bulgarian GRAO, EGN", ("7523169263", "8032056031"), ("7523169264", "1700000000"), checks.bg_egn),
    _near("hr_oib", r"\<OIB\b", r"\d{11}", "Croatian tax administration, OIB", ("OIB 33392005961", "OIB: 69435151530"), ("OIB 33392005962",), checks.hr_oib),
    _near("pt_nif", r"\<NIF\b|(?i:contribuinte)", r"[1-9]\d{8}|[1-9]\d\d \d{3} \d{3}", "Portuguese tax authority, NIF", ("NIF 123456789", "contribuinte: 502011378"), ("NIF 123456788",), checks.pt_nif),
    _number("ru_snils", r"\d{3}-\d{3}-\d{3}[ -]\d\d", "Russian pension fund, SNILS", ("112-233-445 95", "087-654-303 00"), ("112-233-445 96",), checks.ru_snils),
    _near("ru_inn", r"\<INN\b|ИНН", r"\d{12}", "Russian tax service, INN", ("INN 500100732259", "ИНН: 500100732259"), ("INN 500100732258",), checks.ru_inn),
    _number("tr_id", r"[1-9]\d{10}", "Turkish NVI, T.C. kimlik", ("10000000146", "36493665440"), ("10000000147", "12345678900"), checks.tr_id),
)

_ASIA_AFRICA_OCEANIA = (
    _d("in_aadhaar", LEFT + r"(?P<value>[2-9]\d{3} \d{4} \d{4}|[2-9]\d{3}-\d{4}-\d{4})" + _ENDS, "UIDAI, Aadhaar: Verhoeff", ("3123 4567 8909", "3998-7654-3211"), ("1234 5678 9012", "3123 4567 8900", "2121 1009 0000 0002 3569"), checks.aadhaar),
    _near("in_aadhaar_near", r"(?i:aadhaar|aadhar|\<adhar\b|uidai|\<uid no)|आधार", r"[2-9]\d{3}[ :-]?\d{4}[ :-]?\d{4}", "UIDAI, Aadhaar: Verhoeff", ("Aadhaar 312345678909", "aadhar no: 3998:7654:3211"), ("Aadhaar 312345678900",), checks.aadhaar),
    _number("in_pan", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", "Indian income tax department, PAN", ("ABCPD1234Z", "ABBPM4567S"), ("ABCD1234", "ABCXD1234Z")),
    _number("in_gstin", r"(?:0[1-9]|[12]\d|3[0-7])[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]", "Indian GST network, GSTIN", ("27ABCDE1234F1Z5", "07PQRST6789K1Z2"), ("00ABCDE1234F1Z5", "38ABCDE1234F1Z5", "27ABCDE1234F1Y5")),
    _near("in_voter_id", r"(?i:voter|epic (?:no|number)|\<vote\b)", r"(?i:[A-Z]{3}\d{7})", "Election Commission of India, EPIC", ("my voter: DBJ2289013", "voter id uzb2345117"), ("voter AB1234567",)),
    _number("cn_resident_id", r"[1-8]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[0-9Xx]", "GB 11643", ("11010519491231002X", "34052419800101001X"), ("110105194912310021",), checks.cn_id),
    _d("hk_id", LEFT + r"(?P<value>[A-Z]{1,2}\d{6}\([0-9A]\))", "Hong Kong immigration department", ("A123456(3)", "C668668(9)"), ("A123456(4)",), checks.hk_id),
    _near("tw_id", r"(?i:taiwan(?:ese)? (?:national )?id|national id)|身分證|身份證|統一編號", r"[A-Z][1289]\d{8}", "Taiwanese interior ministry", ("Taiwan ID A123456789", "身分證字號 F131104093"), ("Taiwan ID A123456788",), checks.tw_id),
    _near("jp_my_number", r"(?i:my number|individual number)|マイナンバー|個人番号", r"\d{12}|\d{4}[ -]\d{4}[ -]\d{4}", "Japanese individual number", ("My Number: 123456789018", "マイナンバー 1234 5678 9018"), ("My Number: 123456789012",), checks.jp_my_number),
    _number("kr_rrn", r"\d{6}-[1-8]\d{6}", "Korean interior ministry, resident and foreigner numbers", ("960121-1234567", "911124-5678901"), ("001332-1234567", "960303-0021413"), checks.kr_rrn),
    _number("kr_rrn_digits", r"\d{6}[1-8]\d{6}", "Korean interior ministry, with the old checksum", ("9601211021413", "8207121027891"), ("9601211021414", "1700000000000"), checks.kr_rrn_sum),
    _number("kr_brn", r"\d{3}-\d\d-\d{5}", "Korean tax service, business numbers", ("104-86-56659", "104-82-13138"), ("104-86-56658",), checks.kr_brn),
    _number("sg_nric", r"[STFGM]\d{7}[A-Z]", "Singaporean ICA, NRIC and FIN", ("S2740116C", "F2346401L", "S9108268C", "M4332674T"), ("S2740116D",), checks.sg_nric),
    _number("sg_uen", r"(?:19|20)\d{7}[A-Z]|[RST]\d\d[A-Z]{2}\d{4}[A-Z]", "ACRA, unique entity numbers", ("201434292D", "T16RF0037C"), ("201434292E", "T16RF0037D"), checks.sg_uen),
    _near("sg_uen_near", r"\<UEN\b|(?i:unique entity)", r"\d{8}[A-Z]", "ACRA, unique entity numbers", ("UEN 53125226D", "unique entity number: 53125226D"), ("UEN 53125226E",), checks.sg_uen),
    _number("my_nric", r"\d{6}-\d\d-\d{4}", "Malaysian JPN, MyKad", ("880101-14-5678", "991231-01-1234"), ("881301-14-5678",), checks.dashed_date_id),
    _near("th_id", r"(?i:thai|\<tnin\b|national id|citizen id)|ประชาชน", r"[1-8]\d{12}|[1-8]-\d{4}-\d{5}-\d\d-\d", "Thai interior ministry", ("Thai national ID 1234567890121", "citizen id 1-2345-67890-12-1"), ("Thai ID 1234567890122",), checks.th_id),
    _near("ph_tin", r"\<TIN\b|(?i:\<bir\b|tax id)", r"\d{3}-\d{3}-\d{3}(?:-\d{3,5})?|\d{9}(?:\d{3})?", "Philippine BIR: mod 11", ("TIN: 000-123-456-000", "BIR TIN: 000123456000"), ("TIN 12", "TIN 000-123-457-000"), checks.ph_tin),
    _near("il_id", r"(?i:israeli? id|teudat zehut)|תעודת זהות", r"\d{9}", "Israeli interior ministry: Luhn", ("Israeli ID 123456782", "Teudat Zehut: 000000018"), ("Israeli ID 123456783",), checks.il_id),
    _number("ae_emirates_id", r"784-\d{4}-\d{7}-\d", "UAE ICP, Emirates ID: Luhn", ("784-1984-1234567-4", "784-1990-7654321-6"), ("784-1984-1234567-0",), checks.luhn),
    _number("za_id", r"\d{10}[0-2]\d\d", "South African home affairs", ("8001015009087", "9202201234088"), ("8001015009086", "9913326789285", "1700000000000"), checks.za_id),
    _near("ng_nin", r"\<NIN\b|(?i:national identification number)", r"\d{11}", "Nigerian NIMC: Verhoeff", ("NIN: 98765432102", "My NIN is 12345678902"), ("NIN 12345678901",), checks.verhoeff_11),
    _number("au_abn", r"\d\d ?\d{3} ?\d{3} ?\d{3}", "Australian Business Register", ("51 824 753 556", "51824753556"), ("52 824 753 556", "12345678901", "12222234567"), checks.au_abn),
    _near("au_tfn_near", r"\<TFN\b|(?i:tax file)", r"\d{3} ?\d{3} ?\d{3}", "Australian Taxation Office", ("TFN 876543210", "tax file number: 123 456 782"), ("TFN 876543211",), checks.au_tfn),
    _near("au_acn_near", r"\<ACN\b|(?i:australian company n)", r"\d{3} ?\d{3} ?\d{3}", "ASIC, company numbers", ("ACN 005 499 981", "Australian Company Number 000000019"), ("ACN 824 753 557",), checks.au_acn),
    _number("au_medicare", r"[2-6]\d{3} \d{5} \d(?: ?\d)?", "Services Australia, Medicare", ("2123 45670 1", "2123 45670 1 1"), ("2123 25870 1",), checks.au_medicare),
    _near("au_medicare_near", r"(?i:medicare)", r"[2-6]\d{9,10}", "Services Australia, Medicare", ("Medicare 2123456701", "medicare card: 21234567011"), ("Medicare 2123258701",), checks.au_medicare),
    _near("nz_ird", r"\<IRD\b", r"\d{2,3}-?\d{3}-?\d{3}", "New Zealand Inland Revenue", ("IRD 49-091-850", "IRD number: 136410132"), ("IRD 49-091-851",), checks.nz_ird),
)

PII: tuple[Detector, ...] = (*_GENERAL, *_AMERICAS, *_EUROPE, *_ASIA_AFRICA_OCEANIA)
# fmt: on
