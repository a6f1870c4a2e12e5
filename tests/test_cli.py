"""The command line: what it calls, what it prints, how it ends."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from sidecar import cli
from sidecar.cli import main
from sidecar.errors import Fault, PolicyError
from sidecar.policy.manual import markdown, schema

GOOD = "version: 1\nproviders: {p: {base_url: 'http://u'}}\n"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UPSTREAM", "POLICY", "HOST", "PORT", "WORKERS"):
        monkeypatch.delenv(f"SIDECAR_{name}", raising=False)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    module = types.ModuleType("sidecar.server.serve")
    module.serve = lambda *given: calls.append(given) or 7  # type: ignore[attr-defined, func-returns-value]
    monkeypatch.setitem(sys.modules, "sidecar.server.serve", module)
    return calls


def test_serve_passes_its_options(served: list[tuple[Any, ...]]) -> None:
    options = ["--policy", "p.yaml", "--upstream", "http://u", "--host", "0.0.0.0", "--port", "99", "--workers", "2"]
    assert main(["serve", *options]) == 7
    assert served == [(Path("p.yaml"), "http://u", "0.0.0.0", 99, 2)]


def test_serve_has_defaults(served: list[tuple[Any, ...]]) -> None:
    main(["serve"])
    assert served == [(None, None, "127.0.0.1", 8080, 1)]


def test_the_environment_gives_defaults_that_options_stand_over(
    served: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"POLICY": "p", "UPSTREAM": "http://u", "HOST": "::1", "PORT": "5", "WORKERS": "3"}
    for name, value in values.items():
        monkeypatch.setenv(f"SIDECAR_{name}", value)
    main(["serve"])
    main(["serve", "--port", "6"])
    assert served == [(Path("p"), "http://u", "::1", 5, 3), (Path("p"), "http://u", "::1", 6, 3)]


def test_the_port_that_kubernetes_sets_is_not_ours(
    served: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDECAR_PORT", "tcp://10.0.0.1:8080")
    main(["serve"])
    assert served[0][3] == 8080


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["serve", "--port", "x"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "-1"],
        ["serve", "--workers", "0"],
        ["serve", "--workers", "²"],
        ["serve", "extra"],
        ["check"],
        ["check", "x", "--format", "xml"],
        ["schema", "--format", "xml"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: sidecar" in capsys.readouterr().err


def test_a_bad_port_in_the_environment_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("SIDECAR_PORT", "http")
    with pytest.raises(SystemExit):
        main(["serve"])
    assert "argument --port: expected a number from 0 to 65535" in capsys.readouterr().err


def test_demo_passes_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sidecar.demo")
    module.run = lambda port: port  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sidecar.demo", module)
    assert main(["demo", "--port", "42"]) == 42


def test_faults_of_a_policy_that_is_to_be_served_end_with_1(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def refuse(*given: Any) -> int:
        raise PolicyError([Fault("p.yaml", 2, 3, "x", "wrong"), Fault("p.yaml", 4, 1, "", "also wrong", "Mend it.")])

    module = types.ModuleType("sidecar.server.serve")
    module.serve = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sidecar.server.serve", module)
    assert main(["serve"]) == 1
    assert capsys.readouterr().err == "p.yaml:2:3: x: wrong\np.yaml:4:1: also wrong. Mend it.\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"good": GOOD, "bad": GOOD + "x: 1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return {name: str(tmp_path / f"{name}.yaml") for name in (*texts, "missing")}


@pytest.mark.parametrize(
    ("names", "code"), [("good", 0), ("bad", 1), ("missing", 2), ("good bad", 1), ("bad missing good", 2)]
)
@pytest.mark.parametrize("form", ["human", "json"])
def test_check_ends_with_the_worst(files: dict[str, str], names: str, code: int, form: str, capsys: Captured) -> None:
    chosen = [files[name] for name in names.split()]
    assert main(["check", *chosen, "--format", form]) == code
    assert capsys.readouterr().out


def test_check_speaks_to_people_and_machines(files: dict[str, str], capsys: Captured) -> None:
    main(["check", files["bad"], files["good"]])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{files['bad']}:3:1: x: there is no section `x`")
    assert f"{files['good']}: fine" in said
    main(["check", "--format", "json", files["bad"], files["good"]])
    (fault,) = json.loads(capsys.readouterr().out)
    assert (fault["file"], fault["line"], fault["where"]) == (files["bad"], 3, "x")


def test_schema_prints_json_or_the_reference(capsys: Captured) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    assert main(["schema", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == markdown()


def test_help_names_every_command_of_the_docstring(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    documented = [line.split()[0] for line in (cli.__doc__ or "").splitlines() if line.startswith("    ")]
    assert documented == ["serve", "demo", "check", "schema", "scan", "detectors", "budgets"]
    assert all(name in shown for name in documented)


def test_version_is_the_distributions(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("sidecar ")
