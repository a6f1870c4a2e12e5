"""Streams under a wrong name, or none: what they are is told from how they begin."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire.ndjson import NDJSON
from sidecar.wire.stream import SSE, Framing
from sidecar.wire.telling import as_it_begins, told

EVENTS = b'data: {"a": 1}\n\n: soon\n\nevent: x\ndata: {"a": 2}\n\n'
LINES = b'{"a": 1}\n\n{"a": 2}\n'
BEFORE = st.sampled_from([b"", b"\n", b"\r\n", b"\xef\xbb\xbf"])


def cut(framing: Framing, stream: bytes, at: list[int]) -> tuple[bytes, list[bytes | None]]:
    """What went through the cutter, and the payloads in it."""
    cutter, bounds = framing.cutter(), [0, *sorted(at), len(stream)]
    frames = [frame for a, b in pairwise(bounds) for frame in cutter.feed(stream[a:b])]
    frames += cutter.finish()
    return b"".join(frame.raw for frame in frames), [frame.data for frame in frames if frame.data is not None]


@given(st.sampled_from([EVENTS, LINES]), st.sampled_from([SSE, NDJSON]), BEFORE, st.lists(st.integers(0, 55)))
def test_a_stream_is_cut_as_what_it_is_whatever_it_is_called(
    stream: bytes, called: Framing, before: bytes, at: list[int]
) -> None:
    if stream is LINES:
        before = before.strip(b"\xef\xbb\xbf")  # no line of JSON begins with a mark
    raw, payloads = cut(as_it_begins(called), before + stream, [min(each, len(before + stream)) for each in at])
    assert raw == before + stream
    assert payloads == [b'{"a": 1}', b'{"a": 2}']


@pytest.mark.parametrize("called", [SSE, NDJSON])
@pytest.mark.parametrize("stream", [b"", b"\n", b" \r\n", b"\xef\xbb", b"\xef\xbb\xbf", b"what", b"[1]\n"])
def test_what_shows_no_sign_is_what_it_is_called(called: Framing, stream: bytes) -> None:
    assert cut(as_it_begins(called), stream, [1]) == cut(called, stream, [])


def test_frames_of_ours_are_written_as_the_stream_is() -> None:
    framing = as_it_begins(SSE)
    framing.cutter().feed(LINES)
    assert framing.render(b"{}", None) == b"{}\n"
    assert as_it_begins(SSE).render(b"{}", None) == b"data: {}\n\n"


@pytest.mark.parametrize(
    ("body", "lines", "found"),
    [
        (EVENTS, False, SSE),
        (b"\xef\xbb\xbf" + EVENTS, False, SSE),
        (b"\n\n" + EVENTS, True, SSE),
        (LINES, True, NDJSON),
        (LINES, False, None),
        (b"{not json}\n{}", True, None),
        (b'{"a": 1}', True, None),
        (b"Some text.\nMore.", True, None),
    ],
)
def test_a_body_that_is_no_document_may_be_a_stream(body: bytes, lines: bool, found: Framing | None) -> None:
    assert told(body, lines=lines) is found
