"""`sidecar scan` and `sidecar detectors`: what they find, say and return."""

import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar import scan as scanning
from sidecar.cli import main
from sidecar.scan import Finding, Rule, rules_of_detectors, scan
from sidecar.text.detectors import DETECTORS, PACKS

REPO = Path(__file__).resolve().parent.parent
KEY = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
MAIL = "alice@example.com"
POLICY = "version: 1\nguardrails:\n- {name: mine, patterns: [{name: badge, regex: 'BADGE-[0-9]{4}'}], action: block}\n"

Captured = pytest.CaptureFixture[str]
File = Callable[[str | bytes], str]


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    return rules_of_detectors(["github_token", "email", "private_key"])


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(content: str | bytes) -> str:
        path = tmp_path / f"file{len(list(tmp_path.iterdir()))}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def found(content: bytes, rules: list[Rule], *, show: bool = False) -> list[Finding]:
    return list(scan("f", io.BytesIO(content), rules, show=show))


def places(content: bytes, rules: list[Rule]) -> list[tuple[str, int, int, int, int]]:
    return [(f.detector, f.line, f.column, f.end_line, f.end_column) for f in found(content, rules)]


# --- where things are ---


def test_lines_and_columns_count_characters_from_one(rules: list[Rule]) -> None:
    text = f"ab\n日本語 {MAIL}\r\n{KEY}"
    assert places(text.encode(), rules) == [("email", 2, 5, 2, 22), ("github_token", 3, 1, 3, 41)]


def test_a_finding_may_span_lines(rules: list[Rule]) -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB\n" * 3
    text = f"x\n -----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\nend {MAIL}"
    assert places(text.encode(), rules) == [("private_key", 2, 2, 6, 26), ("email", 7, 5, 7, 22)]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 40, 1000])
def test_the_size_of_the_pieces_changes_nothing(piece: int, rules: list[Rule], monkeypatch: pytest.MonkeyPatch) -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB\n" * 2
    text = f"é{MAIL}, {KEY}\n\n-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n😀 {MAIL}\n".encode()
    whole = found(text, rules, show=True)
    monkeypatch.setattr(scanning, "PIECE", piece)
    assert found(text, rules, show=True) == whole
    assert len(whole) == 4


def test_marks_of_other_encodings_are_understood(rules: list[Rule]) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert places(f"x\n{MAIL}".encode(encoding), rules) == [("email", 2, 1, 2, 18)]


def test_bytes_that_are_no_text_hide_nothing(rules: list[Rule]) -> None:
    content = b"\x00\xff\xfe\x80\n\xc3" + KEY.encode() + b"\x00\xf0\x9f" + MAIL.encode()
    assert [(f.detector, f.line) for f in found(content, rules)] == [("github_token", 2), ("email", 2)]


def test_nothing_is_found_in_nothing(rules: list[Rule]) -> None:
    assert found(b"", rules) == []


def test_memory_does_not_grow_with_the_file(rules: list[Rule]) -> None:
    line = f"nothing to see here, or perhaps {MAIL}\n".encode()

    def peak(lines: int) -> int:
        source = io.BytesIO(line * lines)
        tracemalloc.start()
        assert sum(1 for _ in scan("f", source, rules)) == lines
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1_000)
    assert peak(20_000) < peak(4_000) * 1.5


# --- the command ---


def test_scan_says_where_and_never_what(file: File, capsys: Captured) -> None:
    path = file(f"a\nkey {KEY} of {MAIL}")
    assert main(["scan", path]) == 1
    said = capsys.readouterr().out
    assert said == f"{path}:2:5-2:45  secrets  github_token\n{path}:2:49-2:66  pii  email\n"


def test_show_keeps_the_last_four_of_a_long_value(file: File, capsys: Captured) -> None:
    main(["scan", "--show", file(f"{KEY} a@b.com")])
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("  github_token  ****Q7r8")
    assert said[1].endswith("  email  ****")
    assert KEY[4:-4] not in "".join(said)


@pytest.mark.parametrize("show", [True, False])
def test_json_is_one_list(show: bool, file: File, capsys: Captured) -> None:
    path = file(f"{KEY}\n{MAIL}\n")
    assert main(["scan", "--format", "json", path, path, *["--show"] * show]) == 1
    rows = json.loads(capsys.readouterr().out)
    place = {"file": path, "line": 1, "column": 1, "end_line": 1, "end_column": 41}
    named = {"rule": "secrets", "detector": "github_token"}
    assert rows[0] == {**place, **named, **({"masked": "****Q7r8"} if show else {})}
    assert [row["detector"] for row in rows] == ["github_token", "email"] * 2


def test_a_clean_file_ends_with_0(file: File, capsys: Captured) -> None:
    path = file("nothing here")
    assert main(["scan", path]) == 0
    assert main(["scan", "--format", "json", path]) == 0
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_is_read(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"to {MAIL}".encode())))
    assert main(["scan", *arguments]) == 1
    assert capsys.readouterr().out == "-:1:4-1:21  pii  email\n"


def test_what_cannot_be_read_ends_with_2_and_stops_nothing(file: File, tmp_path: Path, capsys: Captured) -> None:
    good = file(MAIL)
    assert main(["scan", str(tmp_path / "missing"), str(tmp_path), good]) == 2
    said = capsys.readouterr()
    assert said.out == f"{good}:1:1-1:18  pii  email\n"
    assert f"{tmp_path / 'missing'}: cannot be read: No such file" in said.err
    assert f"{tmp_path}: cannot be read: Is a directory" in said.err


def test_detect_chooses_detectors_and_packs(file: File, capsys: Captured) -> None:
    path = file(f"{KEY} {MAIL} https://example.com/x")
    assert main(["scan", "--detect", "email,urls", path]) == 1
    assert [line.split("  ")[1:] for line in capsys.readouterr().out.splitlines()] == [
        ["pii", "email"],
        ["urls", "url"],
    ]


def test_a_policy_brings_its_rules_under_their_names(file: File, capsys: Captured) -> None:
    policy, path = file(POLICY), file(f"{KEY} BADGE-1234")
    assert main(["scan", "--policy", policy, path]) == 1
    assert capsys.readouterr().out == f"{path}:1:42-1:52  mine  badge\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--detect", "emial"], "no pack or detector is named 'emial'; did you mean email"),
        (["--policy", "/nowhere.yaml"], "/nowhere.yaml: cannot be read"),
    ],
)
def test_what_to_look_for_must_be_known(arguments: list[str], said: str, capsys: Captured) -> None:
    assert main(["scan", *arguments, "/dev/null"]) == 2
    assert said in capsys.readouterr().err


def test_faults_of_a_policy_are_no_findings(file: File, capsys: Captured) -> None:
    assert main(["scan", "--policy", file(f"{POLICY}x: 1\n"), "/dev/null"]) == 2
    assert "there is no section `x`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["scan", "--detect", "email", "--policy", "p", "f"],
        ["scan", "--detect", "email,", "f"],
        ["scan", "--format", "xml"],
        ["detectors", "--format", "yaml"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: sidecar" in capsys.readouterr().err


# --- the list ---


def test_detectors_lists_every_detector(capsys: Captured) -> None:
    assert main(["detectors", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["pack"]) for row in rows] == [(d.name, d.pack) for d in DETECTORS.values()]
    assert all(row["source"] and row["example"] for row in rows)


def test_detectors_lists_what_is_asked_for(capsys: Captured) -> None:
    assert main(["detectors", "iban", "urls"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "pack", "source", "example", "check"]
    assert [line.split()[0] for line in lines] == ["iban", *(d.name for d in PACKS["urls"])]
    assert main(["detectors", "ibna"]) == 2
    assert "did you mean iban" in capsys.readouterr().err


def test_no_list_prints_a_whole_example_of_a_token(capsys: Captured) -> None:
    main(["detectors", "--format", "json", "secrets"])
    tokens = {row["name"]: row["example"] for row in json.loads(capsys.readouterr().out)}
    assert tokens["github_token"].endswith("…")
    whole = [name for name, shown in tokens.items() if name.endswith(("_key", "_token")) and "…" not in shown]
    assert whole == []


def test_every_check_has_a_name_to_be_listed_under() -> None:
    assert [d.name for d in DETECTORS.values() if "lambda" in scanning.checked(d)] == []


def test_the_reference_is_current(capsys: Captured) -> None:
    main(["detectors", "--format", "markdown"])
    assert (REPO / "docs" / "detectors.md").read_text() == capsys.readouterr().out, (
        "run: sidecar detectors --format markdown > docs/detectors.md"
    )
