"""The comparison itself: it sees what changed, and nothing passes for want of tests."""

from pathlib import Path

import pytest

from .compare import Difference, differences, parse, table

REPORT = """<testsuites><testsuite>
<testcase classname="t.a" name="one"/>
<testcase classname="t.a" name="two"><failure message="no"/></testcase>
<testcase classname="t.a" name="three"><skipped/></testcase>
<testcase classname="t.a" name="four"><error/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


def test_every_outcome_is_read(report: Path) -> None:
    assert parse(report) == {
        "t.a::one": "passed",
        "t.a::two": "failed",
        "t.a::three": "skipped",
        "t.a::four": "error",
    }


def test_a_report_without_tests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.xml").write_text("<testsuites/>")
    with pytest.raises(ValueError, match="holds no test"):
        parse(tmp_path / "empty.xml")


def test_a_changed_and_a_lost_test_are_differences() -> None:
    direct = {"a": "passed", "b": "passed", "c": "failed"}
    found = list(differences(direct, {"a": "passed", "b": "failed", "d": "passed"}, {"c": "known"}))
    assert found == [
        Difference("b", "passed", "failed", ""),
        Difference("c", "failed", "missing", "known"),
        Difference("d", "missing", "passed", ""),
    ]
    assert str(found[0]).endswith("UNEXPLAINED")


def test_the_table_counts(report: Path) -> None:
    assert table({"direct": parse(report)}).splitlines()[1].split() == ["direct", "1", "1", "1", "1"]
