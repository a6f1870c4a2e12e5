"""What `sidecar check` says."""

import json
from pathlib import Path

import pytest

from sidecar.policy.check import FAULTY, FINE, UNREADABLE, Report, as_json, check, human, notes

from .texts import HEAD, load_text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "p.yaml"


def checked(file: Path, text: str, **environ: str) -> Report:
    file.write_text(text)
    return check(file, environ)


def said(file: Path, text: str, **environ: str) -> str:
    return human(checked(file, text, **environ)).replace(f"{file}", "p.yaml")


def test_a_fault_is_shown_where_it_stands(file: Path) -> None:
    text = HEAD + "guardrails:\n  - name: r\n    detect: [email]\n    mode: shadwo\n"
    assert said(file, text) == (
        "p.yaml:6:11: guardrails[0].mode: expected one of off, shadow, enforce. Did you mean `shadow`?\n"
        "  6 |     mode: shadwo\n"
        "    |           ^"
    )


def test_the_caret_stands_under_the_character_of_a_pattern(file: Path) -> None:
    text = HEAD + "guardrails:\n  - name: r\n    patterns:\n      - {name: x, regex: 'it''s(a'}\n"
    line, caret = said(file, text).splitlines()[-2:]
    assert line[caret.index("^")] == "("


SECRET_LINES = [
    "    api_key: 'canary canary'\n",
    "    apikey: canary\n",
    "    api_key: canary\n    api_key: canary\n",
    "    api_key: [canary]\n",
    '    api_key: "canary\\q"\n',
    "    timeouts: {idle: 5, api_key: canary}\n",
    "    auth: {canary: x}\n    api_key: canary\n    x: {y: canary}\n",
    "    secret_thing: canary\n",
    "    api_key:\n      - canary\n",
    "    api_key: {value: canary}\n",
    "    base_url: https://me:canary@u/\n",
]


@pytest.mark.parametrize("lines", SECRET_LINES)
def test_a_secret_in_the_line_is_not_shown(file: Path, lines: str) -> None:
    text = "version: 1\nproviders:\n  p:\n    base_url: http://u\n" + lines
    if "base_url" in lines:
        text = text.replace("    base_url: http://u\n", "", 1)
    report = checked(file, text)
    assert report.code == FAULTY
    shown = human(report).replace("`canary`", "")
    assert "canary" not in shown.replace(".canary", "")


@pytest.mark.parametrize("lines", ["    keys: [canary]\n", "    keys:\n      - canary\n", "    keys: canary\n"])
def test_a_clients_key_is_not_shown(file: Path, lines: str) -> None:
    assert "canary" not in said(file, HEAD + "tenants:\n  - name: a\n" + lines)


def test_a_line_that_the_terminal_would_not_show_well_is_left_out(file: Path) -> None:
    text = HEAD + f"guardrails:\n  - name: r\n    detect: [email]\n    mode: {'x' * 300}\n"
    assert said(file, text).count("\n") == 0


def test_a_good_policy_is_summed_up(file: Path) -> None:
    text = """version: 1
providers: {p: {base_url: 'http://u/v1'}, q: {base_url: 'http://q', api_key: canary}}
models: {m: [p/a, q/b]}
tenants: [{name: acme, keys: ['sha256:%s']}]
guardrails:
  - name: r
    detect: [email]
    patterns: [{name: x, regex: 'ab'}]
    words: [{list: [c, d]}]
    on: [reply, user]
    action: block
    mode: shadow
""" % ("0" * 64)
    shown = said(file, text)
    digest = load_text(text).digest
    places = ("  sees ", "   request ", "   reply ", "  not seen ")
    assert [line for line in shown.splitlines() if not any(place in line for place in places)] == [
        "p.yaml: fine",
        f"  digest     {digest}",
        "  provider   p: http://u/v1, with the caller's key",
        "  provider   q: http://q, with its own key",
        "  model      m: p/a, q/b",
        "  rule       r: block, shadow; email, 1 pattern, 2 words; on user, reply",
        "  tenant     acme: 1 key",
        "  note       without resilience.fallback a call asks one target only: m",
        "  note       telemetry.log is off: no log line is written",
    ]
    assert "canary" not in shown


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (HEAD, "inert: nothing is looked at and nothing is changed"),
        (HEAD, "every model name goes through as it is"),
        ("version: 1\n", "no provider: give one with --upstream or SIDECAR_UPSTREAM"),
        (
            HEAD + f"server: {{auth: off}}\ntenants: [{{name: a, keys: ['sha256:{'0' * 64}']}}]\n",
            "server.auth is off: tenants are not told apart; their keys are still kept from the provider",
        ),
    ],
)
def test_notes_say_what_may_surprise(text: str, note: str) -> None:
    assert note in list(notes(load_text(text)))


def test_the_environment_counts(file: Path) -> None:
    text = "version: 1\nproviders: {p: {base_url: '${U}'}}\n"
    assert checked(file, text).code == FAULTY
    assert checked(file, text, U="http://u").code == FINE
    assert checked(file, text, U="http://u", SIDECAR_NOPE="1").code == FAULTY


def test_what_cannot_be_read_is_told_apart(tmp_path: Path) -> None:
    report = check(tmp_path / "nope.yaml", {})
    assert report.code == UNREADABLE
    assert "cannot be read" in human(report)


def test_a_folder_is_one_policy(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(HEAD)
    (tmp_path / "b.yaml").write_text("server:\n  drain: 5\n")
    report = check(tmp_path, {})
    assert report.code == FAULTY
    assert human(report).splitlines()[0].startswith(f"{tmp_path}/b.yaml:2:10: server.drain: expected a duration")
    assert human(report).splitlines()[1] == "  2 |   drain: 5"


def test_json_has_every_fault_of_every_policy(file: Path, tmp_path: Path) -> None:
    reports = [checked(file, "version: 2\nx: 1\n"), check(tmp_path / "nope.yaml", {}), checked(file, HEAD)]
    found = json.loads(as_json(reports))
    assert [(fault["line"], fault["column"], fault["where"]) for fault in found] == [
        (1, 10, "version"),
        (2, 1, "x"),
        (0, 0, ""),
    ]
    assert set(found[0]) == {"file", "line", "column", "where", "message", "hint"}
    assert json.loads(as_json([checked(file, HEAD)])) == []
