"""An event stream as it passes: frames that are the stream, read as a browser reads them, rewritten in place."""

import itertools
import re
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.errors import UpstreamBroken
from sidecar.wire.sse import Events, Frame, render

from .fuzz import examples

BOM = b"\xef\xbb\xbf"


def fed(*chunks: bytes) -> list[Frame]:
    events = Events()
    return [frame for chunk in chunks for frame in events.feed(chunk)]


def ended(*chunks: bytes) -> list[Frame]:
    events = Events()
    return [*(frame for chunk in chunks for frame in events.feed(chunk)), *events.finish()]


def raws(frames: Iterable[Frame]) -> list[bytes]:
    return [frame.raw for frame in frames]


def test_a_chat_stream() -> None:
    frames = fed(b'data: {"a":1}\n\ndata: {"a":2}\n\nda', b"ta: [DONE]\n\n")
    assert frames == [
        Frame(b'data: {"a":1}\n\n', b'{"a":1}'),
        Frame(b'data: {"a":2}\n\n', b'{"a":2}'),
        Frame(b"data: [DONE]\n\n", b"[DONE]"),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_with_everything(end: bytes) -> None:
    lines = [b"event: delta", b"id: 7", b": note", b"data: one", b"data:two", b"data", b"data:  x", b"", b""]
    (frame,) = fed(end.join(lines))
    assert frame.raw == end.join(lines)
    assert (frame.event, frame.data, frame.complete) == (b"delta", b"one\ntwo\n\n x", True)


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data:\n\n", b""),
        (b"data\n\n", b""),
        (b"data: \n\n", b""),
        (b"data:a: b\n\n", b"a: b"),
        (b"data: \xff\x00\n\n", b"\xff\x00"),
        ("data: a\u2028b\x85c\x0b\x0c\x1c\n\n".encode(), "a\u2028b\x85c\x0b\x0c\x1c".encode()),
        (b"data: a\x85b\n\n", b"a\x85b"),
        (b"Data: a\n\n", None),
        (b" data: a\n\n", None),
        (b"data : a\n\n", None),
        (b"id: 1\n\n", None),
        (b"event: ping\n\n", None),
        (b"retry: 10\n\n", None),
        (BOM + b"data: a\n\n", b"a"),
        (BOM + BOM + b"data: a\n\n", None),
    ],
)
def test_what_is_data(stream: bytes, data: bytes | None) -> None:
    (frame,) = fed(stream)
    assert (frame.raw, frame.data) == (stream, data)


def test_a_byte_order_mark_later_is_part_of_a_name() -> None:
    first, second = fed(b"data: a\n\n" + BOM + b"data: b\n\n")
    assert (first.data, second.data) == (b"a", None)


def test_comments_and_blank_lines_leave_at_once() -> None:
    events = Events()
    assert raws(events.feed(b": ping\n")) == [b": ping\n"]
    assert raws(events.feed(b"\n")) == [b"\n"]
    assert raws(events.feed(b": OPENROUTER PROCESSING\n\n")) == [b": OPENROUTER PROCESSING\n", b"\n"]
    assert raws(events.feed(b": a")) == []
    assert raws(events.feed(b"b\r\n: c\r\ndata: x\r\n")) == [b": ab\r\n", b": c\r\n"]
    assert raws(events.feed(b"\r\n")) == [b"data: x\r\n\r\n"]


def test_a_long_comment_leaves_with_its_line_end() -> None:
    events = Events()
    assert events.feed(b":" + b"-" * 10_000) == []
    assert raws(events.feed(b"\n")) == [b":" + b"-" * 10_000 + b"\n"]


def test_the_line_end_cut_in_two_leads_the_next_frame() -> None:
    first, second = fed(b"data: a\r\n\r", b"\ndata: b\r\n\r\n")
    assert (first.raw, first.data) == (b"data: a\r\n\r", b"a")
    assert (second.raw, second.data, second.lead) == (b"\ndata: b\r\n\r\n", b"b", 1)
    assert second.with_data(b"B") == b"\ndata: B\r\n\r\n"


def test_a_stream_that_stops() -> None:
    assert ended(b"data: a\n\n")[-1].complete
    assert ended(b"data: a\n\n", b"data: {") == [
        Frame(b"data: a\n\n", b"a"),
        Frame(b"data: {", b"{", complete=False),
    ]
    assert ended(b"data: [DONE]\n")[-1] == Frame(b"data: [DONE]\n", b"[DONE]", complete=False)
    assert ended(b": hal")[-1] == Frame(b": hal", complete=False)
    assert ended(b"data: a\r\r", b"\n")[-1] == Frame(b"\n", lead=1)
    assert ended(BOM)[-1] == Frame(BOM, lead=3)
    assert ended() == []


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: old\n\n", b"data: new\n\n"),
        (b"data:old\n\n", b"data: new\n\n"),
        (b"data: old\r\n\r\n", b"data: new\r\n\r\n"),
        (b"data\r\r", b"data: new\r\r"),
        (
            b"id: 1\ndata: old\nevent: e\ndata: old\n: note\nodd\n\n",
            b"id: 1\nevent: e\ndata: new\n: note\nodd\n\n",
        ),
        (b"data: old\rdata: old\n\n", b"data: new\n\n"),
        (b"id: 1\rdata: old\n\n", b"id: 1\rdata: new\n\n"),
        (b"x: data: old\ndata: old\n\n", b"x: data: old\ndata: new\n\n"),
        (b"data: old\ndata2: old\n\n", b"data: new\ndata2: old\n\n"),
        (b"data: a\nb\n\n", b"data: new\nb\n\n"),
        (BOM + b"data: old\n\n", BOM + b"data: new\n\n"),
        (b"event: e\r\ndata: old\r\n\r\n", b"event: e\r\ndata: new\r\n\r\n"),
    ],
)
def test_new_data_changes_no_other_line(raw: bytes, expected: bytes) -> None:
    (frame,) = fed(raw)
    assert frame.with_data(b"new") == expected


def test_new_data_in_an_event_that_was_cut_short() -> None:
    (frame,) = ended(b"id: 1\ndata: ol")
    assert frame.with_data(b"new") == b"id: 1\ndata: new"


def test_data_is_one_line_or_a_mistake() -> None:
    (frame,) = fed(b"data: a\n\n")
    for text in (b"a\nb", b"a\rb"):
        with pytest.raises(ValueError, match="one line"):
            frame.with_data(text)
        with pytest.raises(ValueError, match="one line"):
            render(text)
        with pytest.raises(ValueError, match="one line"):
            render(b"a", event=text)
    (comment,) = fed(b": ping\n")
    with pytest.raises(ValueError, match="without data"):
        comment.with_data(b"a")


def test_a_new_frame() -> None:
    assert fed(render(b"{}")) == [Frame(b"data: {}\n\n", b"{}")]
    assert fed(render(b"{}", b"error")) == [Frame(b"event: error\ndata: {}\n\n", b"{}", b"error")]


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("before", [b"", b"data: a\n\n"])
def test_an_event_has_a_largest_size(size: int, end: bytes, before: bytes) -> None:
    limit = 20_000
    event = b"data: " + b"x" * (limit - 7 - len(end)) + end

    def feed(stream: bytes) -> list[Frame]:
        events = Events(max_event=limit)
        parts = [stream[at : at + size] for at in range(0, len(stream), size)]
        return [frame for part in parts for frame in events.feed(part)]

    assert feed(before + event + event)[-1].data == event[6 : -len(end)]
    with pytest.raises(UpstreamBroken, match="larger than 20,000 bytes") as caught:
        feed(before + b"data: xxx" + event[6:])
    assert "xxx" not in caught.value.message


def test_a_packet_that_is_one_event_has_a_largest_size_too() -> None:
    events = Events(max_event=100)
    assert len(events.feed(b"data: " + b"x" * 92 + b"\n\n")) == 1
    with pytest.raises(UpstreamBroken):
        events.feed(b"data: " + b"x" * 93 + b"\n\n")


def test_a_stream_without_an_end_is_given_up() -> None:
    events = Events(max_event=10_000)
    lines = itertools.repeat(b"data: x\n", 2_000)
    with pytest.raises(UpstreamBroken):
        list(map(events.feed, lines))


def test_a_long_line_costs_its_length() -> None:
    """Quadratic, this would take minutes."""
    events = Events()
    assert len(events.feed(b"data: a\r\n\r\ndata: " + b"x" * 4_000_000)) == 1
    for _ in range(2_000):
        assert events.feed(b"\r" + b"x" * 1_000) == []
    assert len(events.feed(b"\r\r")) == 1


# Any stream, cut anywhere.

PIECES = [
    b"data: a",
    b"data:b",
    b"data",
    b"data: ",
    b": c",
    b":",
    b"event: e",
    b"event",
    b"id: 1",
    b"retry: 5",
]
ODD = [
    b"x",
    b" ",
    "\u2028".encode(),
    b"\x85",
    b"\x00",
    BOM,
]
ENDS = [b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r"]
LONG = [b"data: " + b"long" * 1100, b": " + b"long" * 1100]


def streams(*pieces: bytes) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(pieces), max_size=24).map(b"".join)


STREAMS = streams(*PIECES, *ODD, *LONG, *ENDS, *ENDS)
CUTS = st.lists(st.integers(min_value=0, max_value=200), max_size=12)


def cut(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    chunks, at = [], 0
    for step in cuts:
        chunks.append(stream[at : at + step])
        at += step
    return [*chunks, stream[at:]]


def events_of(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The standard's own algorithm, line by line: (event name, data) of all that a client would be told."""
    told: list[tuple[bytes, bytes]] = []
    name, buffer = b"", b""
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(BOM))[:-1]
    for line in lines:
        if line == b"":
            if buffer:
                told.append((name, buffer[:-1]))
            name, buffer = b"", b""
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                buffer += value + b"\n"
            elif field == b"event":
                name = value
    return told


def told_by(frames: Iterable[Frame]) -> list[tuple[bytes, bytes]]:
    return [(f.event or b"", f.data) for f in frames if f.complete and f.data is not None]


def joined(frames: Iterable[Frame]) -> list[tuple[bytes, bytes | None, bytes | None, bool]]:
    """The frames with each line end in one piece again."""
    whole: list[tuple[bytes, bytes | None, bytes | None, bool]] = []
    for frame in frames:
        raw = frame.raw
        if frame.lead == 1:
            whole[-1] = (whole[-1][0] + b"\n", *whole[-1][1:])
            raw = raw[1:]
        if raw:
            whole.append((raw, frame.data, frame.event, frame.complete))
    return whole


@examples(500)
@given(STREAMS, CUTS)
@example(b"data: a\r\r\n\r\r", [8, 1, 1])
@example(BOM + b": c\n", [1, 1, 1])
def test_frames_are_the_stream_however_it_was_cut(stream: bytes, cuts: list[int]) -> None:
    chunks = cut(stream, cuts)
    assert b"".join(raws(ended(*chunks))) == stream
    assert joined(ended(*chunks)) == joined(ended(stream))


# As servers write: an event, or nearly one, in each packet.
PACKETS = [b"data: a\n\n", b"data: a\r\n\r\n", b"data: a\r\r", b": c\n\n", b"data: a\n", b"data: a\rdata: b\n\n"]
PACKETS += [b"data: a\rid: 1\n\n", b"data: a\nid: 1\n\n", b"data: a\n\n\n", b"data: a\r\n\n", b"\n", b"\r", BOM]


@examples(500)
@given(st.lists(st.sampled_from(PACKETS), max_size=12))
def test_packets_that_are_events_are_no_special_case(packets: list[bytes]) -> None:
    stream = b"".join(packets)
    assert b"".join(raws(ended(*packets))) == stream
    assert joined(ended(*packets)) == joined(ended(stream))
    assert told_by(ended(*packets)) == events_of(stream)


@examples(500)
@given(STREAMS, CUTS)
def test_frames_say_what_a_client_would_be_told(stream: bytes, cuts: list[int]) -> None:
    assert told_by(ended(*cut(stream, cuts))) == events_of(stream)


@examples(300)
@given(streams(*PIECES, *ODD, *ENDS, *ENDS))
def test_a_frame_leaves_with_its_last_byte(stream: bytes) -> None:
    events, sent = Events(), 0
    for at in range(len(stream)):
        frames = events.feed(stream[at : at + 1])
        sent += sum(map(len, raws(frames)))
        assert not frames or sent == at + 1
    whole = fed(stream)
    waiting = sum(map(len, raws(whole))) - sent
    assert waiting == 0 or (waiting == 1 and whole[-1].raw.endswith(b"\r\n"))


@examples(300)
@given(STREAMS, CUTS)
def test_new_data_is_read_back_and_the_rest_stays(stream: bytes, cuts: list[int]) -> None:
    for frame in ended(*cut(stream, cuts)):
        if frame.data is None:
            continue
        new = frame.with_data(b"NEW")
        assert new[: frame.lead] == frame.raw[: frame.lead]
        # A comment that stood behind the first data line may come to stand before the event.
        (again,) = (frame for frame in ended(b"\n" + new[frame.lead :]) if frame.data is not None)
        assert (again.data, again.event, again.complete) == (b"NEW", frame.event, frame.complete)
        assert others(new[frame.lead :]) == others(frame.raw[frame.lead :])


def others(raw: bytes) -> list[bytes]:
    lines = re.findall(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", raw)
    return [line for line in lines if re.match(rb"data(?:[:\r\n]|\Z)", line) is None]
