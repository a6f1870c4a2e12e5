"""Law 2 for a wire: however a text is cut into frames and packets, the client reads it as if it had come whole."""

from collections.abc import Sequence

from hypothesis import strategies as st

from sidecar.wire.stream import SSE, Framing, ReplyStream, Wire
from tests.test_streams_property import guardrail, opened, packets, pieces, prose, rulesets, substituted, whole

__all__ = ["cut", "expected", "rulesets", "sizes", "through"]

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@st.composite
def cut(draw: st.DrawFn) -> tuple[str, ...]:
    return draw(pieces(draw(prose)))


def expected(patterns: Sequence[str], text: str) -> str:
    return substituted(patterns, whole(text))


def through(wire: Wire, patterns: Sequence[str], data: bytes, sizes: Sequence[int], framing: Framing = SSE) -> str:
    """What a client gets of a stream under one rule for each pattern."""
    run = opened([guardrail((pattern,), "redact") for pattern in patterns])
    stream, cutter = ReplyStream(wire, run, framing), framing.cutter()
    out = b"".join(stream.feed(cutter.feed(packet)) for packet in packets(data, sizes))
    return (out + stream.feed(cutter.finish()) + stream.finish() + stream.ending()).decode()
