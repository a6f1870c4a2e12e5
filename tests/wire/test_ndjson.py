"""Newline-delimited JSON, cut into lines and put together again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import UpstreamBroken
from sidecar.wire.ndjson import NDJSON, Line, Lines, render
from sidecar.wire.stream import Frame
from tests.wire.fuzz import examples

STREAM = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b"{}", b'{"a":1}', b"x", "é\u2028".encode(), b""]))


def cut(data: bytes, sizes: list[int]) -> list[Line]:
    lines, found, at, turn = Lines(), list[Line](), 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        found += lines.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    return found + lines.finish()


@examples(200)
@given(STREAM, st.lists(st.integers(1, 9), min_size=1))
def test_however_it_is_cut_the_lines_are_the_stream(pieces: list[bytes], sizes: list[int]) -> None:
    data = b"".join(pieces)
    found = cut(data, sizes)
    assert b"".join(line.raw for line in found) == data
    assert found == cut(data, [max(1, len(data))])
    assert all(line.raw.count(b"\n") == line.raw.endswith(b"\n") for line in found)


def test_a_line_leaves_when_its_end_is_there() -> None:
    lines = Lines()
    assert lines.feed(b'{"a"') == []
    assert lines.feed(b":1}\r") == []
    assert lines.feed(b'\n\n{"b":2}') == [Line(b'{"a":1}\r\n', b'{"a":1}'), Line(b"\n", None)]
    assert lines.finish() == [Line(b'{"b":2}', b'{"b":2}')]
    assert lines.finish() == []


def test_a_line_keeps_what_stands_around_its_data() -> None:
    line: Frame = Line(b' {"a":1} \r\n', b'{"a":1}')
    assert line.with_data(b'{"b":2}') == b' {"b":2} \r\n'


def test_no_line_is_written_as_two() -> None:
    for write in (render, Line(b"{}\n", b"{}").with_data):
        with pytest.raises(ValueError, match="one line"):
            write(b"{\n}")
    with pytest.raises(ValueError, match="blank"):
        Line(b"\n", None).with_data(b"{}")


def test_what_some_clients_take_for_a_line_end_is_escaped() -> None:
    told = json.dumps({"a": "x\u2028\u2029\u0085 é"}, ensure_ascii=False).encode()
    for written in (render(told), Line(b"{}\n", b"{}").with_data(told)):
        [line] = written.decode().splitlines()
        assert json.loads(line) == json.loads(told)
        assert "é" in line


def test_a_line_without_end_is_not_waited_for_for_ever() -> None:
    lines = NDJSON.cutter()
    assert isinstance(lines, Lines)
    small = Lines(max_line=10)
    assert len(small.feed(b"123456789\n1234567890")) == 1
    with pytest.raises(UpstreamBroken, match="larger than 10 bytes"):
        small.feed(b"1")
    with pytest.raises(UpstreamBroken):
        Lines(max_line=3).feed(b"1234\n")
