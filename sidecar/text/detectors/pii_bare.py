"""Numbers of pack `pii` whose check digits, or rare shape, say something also where no word announces them.

A text of random digits passes each check one time in ten or in eleven, so this pack is for texts that are known to
hold such numbers, as records, forms and tables; together with `pii` it is what finds most. Pack `pii-weak` has those
that too many other numbers of their length pass.
"""

# ruff: noqa: E501 -- a table reads better in long lines

from sidecar.text import checks
from sidecar.text.checks import Check, all_of
from sidecar.text.detectors.model import LEFT, Detector

_ITALIAN = r"[A-Z]{6}\d\d[A-EHLMPRST](?:0[1-9]|[1256]\d|[37][01]|4[1-9])[A-Z]\d{3}[A-Z]"

# fmt: off
# Name, expression, examples and counter-examples parted by `;`, check.
_ROWS: tuple[tuple[str, str, str, str, Check | None], ...] = (
    ("us_itin_bare", r"9\d\d-?(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])\d{4}", "911701234;911-701234", "911891234;91170-1234", None),
    ("us_ssn_groups", r"[0-8]\d\d-\d{6}", "219-099998;536-221234", "000-123456;02110-1301", checks.us_ssn),
    ("us_routing_bare", r"[0-3]\d{8}|[0-3]\d{3}-\d{4}-\d", "121000358;3222-7162-7", "121000359;123400000", all_of(checks.us_aba, checks.aba_district)),
    ("us_npi_bare", r"[12]\d{9}|[12]\d{3}[- ]\d{3}[- ]\d{3}", "1234567893;1245319599", "1234567894", checks.us_npi),
    ("us_dea_bare", r"[ABCDEFGHJKLMPRSTUX][A-Z9]\d{7}", "BB1388568;GL0285191", "BG8207031", checks.us_dea),
    ("ca_sin_bare", r"[1-79]\d{8}|[1-79]\d\d \d{3} \d{3}", "130692544;550 090 112", "130692545", checks.ca_sin),
    ("uk_nhs_bare", r"\d{10}", "0032698674;4010232137", "4010232138;1470021420", all_of(checks.uk_nhs, checks.no_timestamp)),
    ("ie_pps_bare", r"\d{7}[A-W]", "1234567T;1234577W", "1234567A", checks.ie_pps),
    ("de_tax_id_bare", r"[1-9]\d{10}", "12345678903;98765432106", "12345678901;11112345678", checks.de_tax_id_bare),
    ("de_document_bare", r"(?i:[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{7}\d)", "L01X00T44;CZ6311T03", "L01X00T47", checks.icao_check),
    ("de_health_insurance_bare", r"(?i:[A-Z])\d{9}", "A123456780;m123456785", "A123456787", checks.de_health_insurance),
    ("de_vat_id_bare", r"(?i:DE) ?\d{9}", "DE123456789;DE 987654321", "DE12345678;DE1234567890", None),
    ("de_lanr_bare", r"\d{9}", "123456601;987654401", "123456901", checks.de_lanr),
    ("it_vat_bare", r"\d{11}", "01333550323;00743110157", "01333550324", checks.it_vat),
    ("it_fiscal_code_bare", _ITALIAN, "RSSMRA85T10A562T;AAAAAA00B11C333N", "RSSMRA85T00A562T", None),
    ("in_aadhaar_bare", r"[2-9]\d{11}|[2-9]\d{3}:\d{4}:\d{4}", "312345678909;3998:7654:3211", "312345678900", checks.aadhaar),
    ("kr_brn_bare", r"\d{10}", "1048656659;1048213138", "1048656658;1465538520", all_of(checks.kr_brn, checks.no_timestamp)),
    ("kr_rrn_bare", r"\d{6}[1-8]\d{6}", "9601211234567;0005053637892", "0013321234567;8001015009086", checks.kr_rrn_bare),
    ("ph_tin_bare", r"\d{3}-\d{3}-\d{3}-\d{3,5}", "000-123-456-000;000-123-456-00001", "000-123-457-000;435-418-166", checks.ph_tin),
    ("se_organisation_bare", r"[235-9]\d[2-9]\d{3}-?\d{4}", "556703-7485;2120000142", "556703-7486;6123456789", all_of(checks.se_organisation, checks.no_sequence)),
    ("sg_uen_bare", r"\d{8}[A-Z]", "53125226D;00192200M", "53125226E", checks.sg_uen),
    ("th_id_bare", r"[1-8]\d{12}", "1234567890121;2345678901234", "1234567890122", checks.th_id),
    ("ng_nin_bare", r"\d{11}", "98765432102;12345678902", "12345678901;44051401459", checks.ng_nin_bare),
    ("tw_id_bare", r"[A-Z][1289]\d{8}", "F131104093;B120863158", "A123456788;M123456789", checks.tw_id_bare),
    ("au_tfn_bare", r"\d{3} ?\d{3} ?\d{3}", "876543210;123 456 782", "876543211", checks.au_tfn),
    ("au_acn_bare", r"[016]\d\d ?\d{3} ?\d{3}", "006249976;005 499 981", "824753557", checks.au_acn),
    ("au_medicare_bare", r"[2-6]\d{9}", "2123456701;2950156481", "2123258701", checks.au_medicare),
)

_WEAK: tuple[tuple[str, str, str, str, Check | None], ...] = (
    ("us_ssn_bare", r"[0-8]\d{8}", "219099998;536221234", "000123456;666123456", checks.us_ssn),
    ("nl_bsn_bare", r"\d{9}", "111222333;123456782", "111222334", checks.nl_bsn),
    ("pt_nif_bare", r"[1-9]\d{8}", "123456789;502011378", "123456788", checks.pt_nif),
    ("il_id_bare", r"\d{9}", "123456782;000000018", "123456783", checks.il_id),
    ("hr_oib_bare", r"\d{11}", "33392005961;69435151530", "33392005962", checks.hr_oib),
    ("be_national_number_bare", r"\d{11}", "85073003328;93051822361", "85073003329", checks.be_nn),
    ("jp_my_number_bare", r"\d{12}", "123456789018;987654321093", "123456789012", checks.jp_my_number),
    ("phone_of_ten_digits", r"[2-5]\d{9}", "5321234567;2125551234", "1234567890;6123456789", checks.uneven),
)

# fmt: on


def bare(pack: str, rows: tuple[tuple[str, str, str, str, Check | None], ...]) -> tuple[Detector, ...]:
    """Detectors of numbers that stand anywhere between word boundaries, from rows as above."""
    return tuple(
        Detector(
            name,
            pack,
            rf"{LEFT}(?P<value>{regex})\b",
            "as its namesake in `pii`",
            tuple(yes.split(";")),
            tuple(no.split(";")),
            check,
        )
        for name, regex, yes, no, check in rows
    )


PII_BARE: tuple[Detector, ...] = bare("pii-bare", _ROWS)
PII_WEAK: tuple[Detector, ...] = bare("pii-weak", _WEAK)
