"""Which cases run, how, and which wait for what."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.running import SHARED

from .variants import NAMED, ByHand, siblings, varied

FILE = SHARED / "cases" / "open.jsonl"

NOT_YET: Mapping[str, str] = {}
# Single expectations that wait while the rest of their case runs.
LATER: Mapping[str, Mapping[str, str]] = {
    "I06": {"audit.must_not_contain": "no bodies are stored in this release"},
}
# Cases that are a conversation of their own.
BY_HAND: Mapping[str, str] = {
    "B21": "test_restore.py::test_tool_arguments",
    "B23": "test_restore.py::test_over_turns",
    "G04": "test_addresses.py::test_base_urls",
    "G09": "test_leaving.py::test_streamed",
    "G11": "test_addresses.py::test_odd_no_proxy",
    "H01": "test_config.py::test_misspelt_section",
    "H02": "test_config.py::test_duplicate_section",
    "H04": "test_config.py::test_control_character",
    "H05": "test_reload.py::test_a_bad_file_changes_nothing",
}


@dataclass(frozen=True, slots=True)
class Play:
    """One test: a case or a variant of it."""

    name: str
    case: dict[str, Any]


def load() -> dict[str, dict[str, Any]]:
    """Every case by id; empty where the folder beside the repository is missing."""
    if not FILE.exists():
        return {}
    return {case["id"]: case for case in map(json.loads, FILE.read_text("utf-8").splitlines())}


def plays() -> Iterator[Play]:
    for name, case in load().items():
        if name in NOT_YET or name in BY_HAND:
            continue
        yield Play(name, case)
        changes = {**NAMED.get(name, {}), **siblings(case)}
        for title, change in changes.items():
            if not isinstance(change, ByHand):
                yield Play(f"{name}: {title}", varied(case, change))
