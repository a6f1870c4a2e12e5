"""Checks: known good numbers, and the errors that an algorithm promises to catch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.text import checks
from sidecar.text.checks import Check

# A valid number of each kind whose check digits catch every single wrong digit among the digits given as a slice.
GUARANTEED: list[tuple[Check, str, slice]] = [
    (checks.luhn, "79927398713", slice(None)),
    (checks.card, "4111111111111111", slice(6, None)),
    (checks.verhoeff, "312345678909", slice(None)),
    (checks.aadhaar, "312345678909", slice(1, None)),
    (checks.mod97, "3214282912345698765432161182", slice(None)),
    (checks.iban, "GB82WEST12345698765432", slice(8, None)),
    (checks.fr_nir, "255081416802538", slice(None)),
    (checks.be_nn, "85073003328", slice(None)),
    (checks.uk_nhs, "4010232137", slice(None)),
    (checks.nl_bsn, "111222333", slice(None)),
    (checks.au_abn, "51824753556", slice(None)),
    (checks.au_tfn, "876543210", slice(None)),
    (checks.us_aba, "121000358", slice(None)),
    (checks.br_cpf, "52998224725", slice(None)),
    (checks.br_cnpj, "11222333000181", slice(None)),
    (checks.hr_oib, "33392005961", slice(None)),
    (checks.de_tax_check, "86095742719", slice(None)),
    (checks.pl_pesel, "44051401458", slice(None)),
    (checks.se_personnummer, "8712202384", slice(None)),
    (checks.no_fnr, "01010750160", slice(None)),
    (checks.za_id, "8001015009087", slice(None)),
    (checks.tr_id, "10000000146", slice(None)),
    (checks.ca_sin, "130692544", slice(None)),
    (checks.us_npi, "1245319599", slice(None)),
    (checks.ch_ahv, "7569217076985", slice(None)),
    (checks.cn_id, "11010519491231002X", slice(0, 17)),
    (checks.es_nif, "12345678Z", slice(0, 8)),
    (checks.sg_nric, "S9108268C", slice(1, 8)),
    (checks.fi_hetu, "131052-308T", slice(7, 10)),
]

VALID: list[tuple[Check, str]] = [
    (checks.card, "5500 0000 0000 0004"),
    (checks.card, "3782 822463 10005"),
    (checks.us_ssn, "219-09-9998"),
    (checks.us_dea, "BB1388568"),
    (checks.au_acn, "005 499 981"),
    (checks.au_medicare, "2123 45670 1"),
    (checks.de_tax_id, "86095742719"),
    (checks.de_vat_id, "DE136695976"),
    (checks.de_social_security, "15070649C103"),
    (checks.de_health_insurance, "A123456780"),
    (checks.icao_check, "L01X00T44"),
    (checks.es_nif, "X9613851N"),
    (checks.it_fiscal_code, "RSSMRA85T10A562S"),
    (checks.it_vat, "IT01333550323"),
    (checks.fr_nir, "1 84 12 76 451 089 46"),
    (checks.ie_pps, "1234567FA"),
    (checks.pt_nif, "123456789"),
    (checks.cz_rodne_cislo, "736028/5163"),
    (checks.ro_cnp, "1800101221144"),
    (checks.bg_egn, "7523169263"),
    (checks.dk_cpr, "010190-1234"),
    (checks.se_personnummer, "19910924-2397"),
    (checks.ru_snils, "112-233-445 95"),
    (checks.ru_inn, "500100732259"),
    (checks.ar_cuit, "20-12345678-6"),
    (checks.cl_rut, "12.345.678-5"),
    (checks.mx_curp, "HEGG560427MVZRRL04"),
    (checks.kr_rrn, "960121-1234567"),
    (checks.kr_rrn_sum, "960121-1021413"),
    (checks.kr_brn, "104-86-56659"),
    (checks.hk_id, "C668668(9)"),
    (checks.tw_id, "A123456789"),
    (checks.jp_my_number, "123456789018"),
    (checks.th_id, "1234567890121"),
    (checks.il_id, "123456782"),
    (checks.nz_ird, "49-091-850"),
    (checks.dashed_date_id, "880101-14-5678"),
    (checks.verhoeff_11, "12345678902"),
    (checks.ph_tin, "000-123-456-000"),
    (checks.uk_nino, "AA 12 34 56 B"),
    (checks.vin, "1M8GDM9AXKP042788"),
    (checks.base58check, "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ"),
    (checks.bech32, "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
    (checks.bitcoin, "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"),
    (checks.ip, "2001:db8::1"),
    (checks.mac, "00:1A:2B:3C:4D:5E"),
    (checks.phone, "+49 30 1234567"),
    (checks.email, "alice@example.com"),
    (checks.basic_credentials, "YWxpY2U6aHVudGVyMnp6"),
    (checks.exfiltrates, "https://e.example/p?q={{secret}}"),
    (checks.card, "122000000000003"),
    (checks.br_cpf_bare, "52998224725"),
    (checks.be_nn, "85000003306"),
    (checks.de_tax_id_bare, "98765432106"),
    (checks.de_lanr, "123456601"),
    (checks.de_bsnr, "021234568"),
    (checks.de_postcode, "01001"),
    (checks.uk_nhs_issued, "401-023-2137"),
    (checks.se_organisation, "556703-7485"),
    (checks.sg_uen, "53125226D"),
    (checks.sg_uen, "201434292D"),
    (checks.sg_uen, "T16RF0037C"),
    (checks.kr_rrn_bare, "0005053637892"),
    (checks.tw_id_bare, "F131104093"),
    (checks.ng_nin_bare, "98765432102"),
    (checks.aba_district, "121000358"),
    (checks.no_timestamp, "4010232137"),
    (checks.no_sequence, "556703-7485"),
    (checks.uneven, "10000 12345"),
    (checks.with_digit, "AB51 ABC"),
    (checks.tangled, "a(b]c}d-1!"),
]

INVALID: list[tuple[Check, str]] = [
    (checks.luhn, ""),
    (checks.luhn, "12a4"),
    (checks.verhoeff, ""),
    (checks.mod97, "GB82 ü"),
    (checks.card, "0000000000000000"),
    (checks.card, "1234567890123"),
    (checks.iban, "ZZ82WEST12345698765432"),
    (checks.us_ssn, "666-12-3456"),
    (checks.us_ssn, "123-00-4567"),
    (checks.ca_sin, "046454286"),
    (checks.de_tax_id, "12345678903"),
    (checks.pl_pesel, "11111111111"),
    (checks.kr_rrn, "001332-1234567"),
    (checks.ro_cnp, "1700000000000"),
    (checks.base58check, "0OIl"),
    (checks.bech32, "bc1QAR0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
    (checks.ip, "127.0.0.1"),
    (checks.ip, "a::b"),
    (checks.ip, "not an address"),
    (checks.mac, "FF:FF:FF:FF:FF:FF"),
    (checks.phone, "+999 12345678"),
    (checks.email, "git@github.com"),
    (checks.email, "icon@2x.png"),
    (checks.basic_credentials, "QUJDREVGR0g="),
    (checks.exfiltrates, "https://example.com/logo.png?v=2&w=640"),
    (checks.br_cpf_bare, "98765432100"),
    (checks.be_nn, "85990003320"),
    (checks.de_tax_id_bare, "11112345678"),
    (checks.de_lanr, "123456901"),
    (checks.de_bsnr, "041234568"),
    (checks.de_postcode, "99999"),
    (checks.uk_nhs_issued, "824 753 5564"),
    (checks.se_organisation, "871220-2384"),
    (checks.sg_uen, "53125226E"),
    (checks.sg_uen, "201434292E"),
    (checks.sg_uen, "T16RF0037D"),
    (checks.sg_uen, "T16-F0037C"),
    (checks.kr_rrn_bare, "8001015009086"),
    (checks.kr_rrn_bare, "9902294321191"),
    (checks.tw_id_bare, "A123456789"),
    (checks.ng_nin_bare, "44051401459"),
    (checks.ph_tin, "000-123-457-000"),
    (checks.aba_district, "421042111"),
    (checks.no_timestamp, "1470021420"),
    (checks.no_sequence, "87654321"),
    (checks.uneven, "12222234567"),
    (checks.with_digit, "plate"),
    (checks.tangled, "get(users[0], {a: 1})"),
    (checks.tangled, "f(x)]"),
    (checks.placeholder, "A,.:-@*!?"),
]


def ids(cases: list[tuple[Check, str]]) -> list[str]:
    return [f"{check.__qualname__}-{value[:12]}" for check, value in cases]


@pytest.mark.parametrize(("check", "value"), VALID, ids=ids(VALID))
def test_a_valid_value_passes(check: Check, value: str) -> None:
    assert check(value)


@pytest.mark.parametrize(("check", "value"), INVALID, ids=ids(INVALID))
def test_an_invalid_value_fails(check: Check, value: str) -> None:
    assert not check(value)


@pytest.mark.parametrize(("check", "value", "places"), GUARANTEED, ids=[value for _, value, _ in GUARANTEED])
def test_any_single_wrong_digit_is_caught(check: Check, value: str, places: slice) -> None:
    assert check(value)
    for place in range(len(value))[places]:
        wrong = [value[:place] + digit + value[place + 1 :] for digit in "0123456789" if digit != value[place]]
        assert [other for other in wrong if check(other)] == []


@pytest.mark.parametrize("value", ["312345678909", "75872", "142857"])
def test_verhoeff_catches_every_swap_of_neighbours(value: str) -> None:
    body = value if checks.verhoeff(value) else next(value + d for d in "0123456789" if checks.verhoeff(value + d))
    for place in range(len(body) - 1):
        a, b = body[place : place + 2]
        assert a == b or not checks.verhoeff(body[:place] + b + a + body[place + 2 :])


@given(st.text(alphabet="0123456789", min_size=1, max_size=30))
def test_exactly_one_digit_completes_a_number(body: str) -> None:
    for check in (checks.luhn, checks.verhoeff):
        assert sum(check(body + digit) for digit in "0123456789") == 1


@given(st.integers(0, 41), st.sampled_from("qpzry9x8gf2tvdw0s3jn54khce6mua7l"))
def test_bech32_catches_a_wrong_character(place: int, char: str) -> None:
    good = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
    wrong = good[:place] + char + good[place + 1 :]
    assert checks.bech32(wrong) == (wrong == good)


@given(st.text(max_size=40))
def test_no_general_check_raises_on_any_text(text: str) -> None:
    general = (
        *(checks.luhn, checks.verhoeff, checks.mod97, checks.iban, checks.card, checks.base58check, checks.bech32),
        *(checks.secret_value, checks.password_value, checks.phrase_value, checks.url_value, checks.bearer_value),
        *(checks.placeholder, checks.basic_credentials, checks.ip, checks.email, checks.exfiltrates, checks.varied),
    )
    for check in general:
        assert check(text) in (True, False)


def test_entropy_is_in_bits_a_character() -> None:
    assert checks.entropy("") == 0
    assert checks.entropy("aaaa") == 0
    assert checks.entropy("abcd") == 2
    assert checks.min_entropy(2)("abcd")
    assert not checks.min_entropy(2.1)("abcd")


PLACEHOLDERS = [
    "$TOKEN",
    "${TOKEN}",
    "${{secrets.X}}",
    "$(pass)",
    "%TOKEN%",
    "<token>",
    "{{token}}",
    "{token}",
    "xxxxxxxx",
    "****",
    "...",
    "your-api-key",
    "changeme",
    "os.environ['X']",
    "getenv(",
    "process.env.KEY",
    "[REDACTED:openai_key",
    "<EMAIL_1>",
    "None",
    "null",
    "password",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_placeholder_is_no_secret(value: str) -> None:
    assert checks.placeholder(value)
    assert not checks.secret_value(value)
    assert not checks.password_value(value)


@pytest.mark.parametrize("value", ["hunter2zz", "P@ssw0rd!", "s3cr3t!pw", "Tr0ub4dor&3", "$ecret-5"])
def test_a_password_is_no_placeholder(value: str) -> None:
    assert checks.password_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "item.name",
        "get_token(x1)",
        "max_tokens",
        "4096",
        "2024-01-31",
        "https://a.b/c1",
        "./a/b1",
        "row-12",
        "0x1f2e3d4c",
    ],
)
def test_code_is_no_secret(value: str) -> None:
    assert not checks.secret_value(value)


@pytest.mark.parametrize("unit", ["ab.cd_", "a1.b2/", "aB-", "Ab_", "_"])
def test_a_long_value_is_told_in_linear_time(unit: str) -> None:
    """Some of these took `re` time that doubles with every part."""
    value = unit * 2_000 + "1!"
    for check in (checks.secret_value, checks.password_value, checks.phrase_value, checks.bearer_value):
        assert check(value) in (True, False)


def test_a_phrase_is_a_secret_and_a_sentence_is_not() -> None:
    assert checks.phrase_value("correct horse battery staple")
    assert not checks.phrase_value("Enter your password")
    assert not checks.phrase_value(" matches, ")


def test_all_of_needs_every_check() -> None:
    both = checks.all_of(checks.has_digit, checks.has_both_cases)
    assert both("abCD12")
    assert not both("abcd12")
