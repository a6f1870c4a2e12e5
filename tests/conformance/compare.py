"""Results of one suite run several times, compared test by test."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from .explained import EXPLAINED

# Test name -> passed, failed, error or skipped.
Results = Mapping[str, str]
OUTCOMES = ("passed", "failed", "error", "skipped")
MISSING = "missing"


def parse(report: Path) -> Results:
    """The results of a junit report. One without tests is a ValueError: it would equal any other."""
    results = {
        f"{case.get('classname')}::{case.get('name')}": _outcome(case)
        for case in ElementTree.parse(report).iter("testcase")
    }
    if not results:
        raise ValueError(f"{report} holds no test")
    return results


def _outcome(case: ElementTree.Element) -> str:
    found = {child.tag for child in case}
    return next((word for tag, word in _TAGS.items() if tag in found), "passed")


_TAGS = {"error": "error", "failure": "failed", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A test that ends otherwise through the sidecar. An empty reason means that nobody has explained it."""

    test: str
    direct: str
    through: str
    reason: str

    def __str__(self) -> str:
        return f"  {self.test}: {self.direct} -> {self.through}: {self.reason or 'UNEXPLAINED'}"


def differences(direct: Results, through: Results, explained: Mapping[str, str] = EXPLAINED) -> Iterator[Difference]:
    """Every test whose result is not the same, and every one that only one run has."""
    for test in sorted({*direct, *through}):
        before, after = direct.get(test, MISSING), through.get(test, MISSING)
        if before != after:
            reason = next((why for part, why in explained.items() if part in test), "")
            yield Difference(test, before, after, reason)


def table(runs: Mapping[str, Results]) -> str:
    """One row a run: its name and how many tests ended how."""
    rows: list[Sequence[str]] = [("", *OUTCOMES)]
    for name, results in runs.items():
        counts = Counter(results.values())
        rows.append((name, *(str(counts[outcome]) for outcome in OUTCOMES)))
    return "\n".join("".join(f"{cell:>12}" for cell in row) for row in rows)
