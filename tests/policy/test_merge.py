"""A folder of files as one policy."""

from pathlib import Path

import pytest

from sidecar.errors import PolicyError
from sidecar.policy.load import load, sources
from sidecar.policy.snapshot import Snapshot

RULE = "guardrails: [{name: %s, words: [{list: [%s]}]}]\n"


def load_files(folder: Path, **files: str) -> Snapshot:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return load(folder, {})


def told(folder: Path, **files: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_files(folder, **files)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_tables_go_together_by_key_and_lists_one_after_the_other(tmp_path: Path) -> None:
    snapshot = load_files(
        tmp_path,
        b="version: 1\nproviders: {two: {base_url: 'http://u'}}\n" + RULE % ("second", "b"),
        a="version: 1\nproviders: {one: {base_url: 'http://u'}}\nmodels: {m: two/x}\n" + RULE % ("first", "a"),
    )
    assert list(snapshot.providers) == ["one", "two"]
    assert [rule.name for rule in snapshot.policy.guardrails] == ["first", "second"]
    assert [str(target) for target in snapshot.models["m"]] == ["two/x"]


def test_one_file_may_give_the_version_for_all(tmp_path: Path) -> None:
    assert load_files(tmp_path, a="version: 1\n", b="providers: {p: {base_url: 'http://u'}}\n").default is not None


def test_versions_must_agree(tmp_path: Path) -> None:
    assert told(tmp_path, a="version: 1\n", b="version: 2\n") == [
        f"b.yaml:1:10: version: `version` differs from the one at {tmp_path}/a.yaml:1:1. "
        "All files of a folder agree on it.".replace(f"{tmp_path}/", "")
    ]


def test_the_same_key_in_two_files_is_a_fault_with_both_places(tmp_path: Path) -> None:
    (said,) = told(
        tmp_path,
        a="version: 1\nproviders: {p: {base_url: 'http://u'}}\nserver: {drain: 1s}\n",
        b="providers:\n  p: {base_url: 'http://u'}\nserver: {max_concurrent: 5}\n",
    )
    assert said == "b.yaml:2:3: providers.p: `p` is already given at a.yaml:2:13. Keep one of the two."


def test_a_section_is_of_one_kind(tmp_path: Path) -> None:
    (said,) = told(tmp_path, a="version: 1\nguardrails: []\n", b="guardrails: {}\n")
    assert said == "b.yaml:1:1: guardrails: `guardrails` is of another kind than at a.yaml:2:1"


def test_a_fault_behind_a_joint_names_its_own_file(tmp_path: Path) -> None:
    (said,) = told(
        tmp_path, a="version: 1\n" + RULE % ("r", "a"), b="guardrails: [{name: s, detect: [email], on: [x]}]\n"
    )
    assert said.startswith("b.yaml:1:46: guardrails[1].on[0]: expected one of")


def test_names_are_compared_over_files(tmp_path: Path) -> None:
    (said,) = told(tmp_path, a="version: 1\n" + RULE % ("r", "a"), b=RULE % ("r", "b"))
    assert "`r` is already the name at" in said


def test_which_files_of_a_folder_are_policy(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "a.test.yaml", "c.test.yml", ".hidden.yaml", "notes.txt", "d.yaml~"):
        (tmp_path / name).write_text("version: 1\n")
    (tmp_path / "folder.yaml").mkdir()
    assert [Path(name).name for name, _ in sources(tmp_path)] == ["a.yaml", "b.yml"]


def test_a_folder_without_policy_is_a_fault(tmp_path: Path) -> None:
    assert told(tmp_path) == [f"{tmp_path}: the folder has no *.yaml file"]
