"""Lines: whole, in order, never in the way."""

import json
import os
from pathlib import Path

import pytest

from sidecar.telemetry import logline
from sidecar.telemetry.logline import LogLine
from sidecar.telemetry.record import Record


def test_lines_are_whole_and_in_order(tmp_path: Path):
    log = LogLine(str(tmp_path / "log"))
    for number in range(1000):
        log.tell({"n": number})
    log.close()
    found = [json.loads(line)["n"] for line in (tmp_path / "log").read_text().splitlines()]
    assert found == list(range(1000))


def test_a_file_is_appended_to(tmp_path: Path):
    for number in range(2):
        log = LogLine(str(tmp_path / "log"))
        log.tell({"n": number})
        log.close()
    assert (tmp_path / "log").read_text() == '{"n":0}\n{"n":1}\n'


@pytest.mark.parametrize("destination", ["stdout", "stderr"])
def test_standard_streams(destination: str, capfd: pytest.CaptureFixture[str]):
    log = LogLine(destination)
    log.tell({"n": 1})
    log.close()
    captured = capfd.readouterr()
    assert (captured.out if destination == "stdout" else captured.err) == '{"n":1}\n'


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path):
    with pytest.raises(OSError, match="No such file"):
        LogLine(str(tmp_path / "missing" / "log"))


def test_more_than_can_wait_is_dropped_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A pipe that is full: the writer is stuck, the callers are not."""
    monkeypatch.setattr(logline, "MAX_WAITING", 50)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = LogLine(str(pipe))
    for number in range(20_000):
        log.tell({"n": number, "long": "x" * 200})
    data = b""
    os.set_blocking(reader, True)
    while b'"log_lines_dropped"' not in data:
        data += os.read(reader, 65536)
    os.close(reader)
    log.close()
    lines = [json.loads(line) for line in data.splitlines() if line.endswith(b"}")]
    told = [line for line in lines if "n" in line]
    assert [line["n"] for line in told] == sorted(line["n"] for line in told)
    assert next(line["count"] for line in lines if line.get("event") == "log_lines_dropped") > 1000


def test_a_reader_that_has_gone_costs_only_the_lines(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = LogLine(str(pipe))
    os.close(reader)
    for number in range(100):
        log.tell({"n": number})
    log.close()


def test_a_record_tells_what_is_known_and_nothing_else():
    record = Record()
    record.started, record.sent, record.first_byte, record.waited = 10.0, 10.001, 10.101, 0.1
    record.id, record.method, record.path, record.status, record.outcome = "req_1", "GET", "/v1", 200, "completed"
    line = record.line(now=10.103)
    assert (line["total_ms"], line["first_byte_ms"], line["overhead_ms"]) == (103.0, 100.0, 3.0)
    assert not {"model", "code", "phase", "decisions", "prompt_tokens"} & set(line)
    assert line["tenant"] == "default"
