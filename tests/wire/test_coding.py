"""Content codings undone: whole or in pieces, alone or stacked, broken, and as bombs."""

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import InvalidRequest, PayloadTooLarge, UpstreamBroken
from sidecar.wire.coding import STEP, UnknownCoding, acceptable, decoder

from .fuzz import examples


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def bare_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


Encode = Callable[[bytes], bytes]
ENCODINGS: list[tuple[str, Encode]] = [
    ("gzip", gzipped),
    ("x-gzip", gzipped),
    ("GZip", gzipped),
    ("deflate", zlib.compress),
    ("deflate", bare_deflate),
    ("br", brotli.compress),
    ("zstd", zstd),
    ("gzip, br", lambda data: brotli.compress(gzipped(data))),
    ("zstd,identity , deflate", lambda data: zlib.compress(zstd(data))),
]
CODED = ENCODINGS[:1] + ENCODINGS[3:]
each = pytest.mark.parametrize(("coding", "encode"), ENCODINGS)
each_once = pytest.mark.parametrize(("coding", "encode"), CODED)

PROSE = b"The sidecar is never the reason an agent breaks. " * 4_000


def undone(coding: str, body: bytes, size: int = 1 << 30, limit: int | None = None) -> bytes:
    undo = decoder(coding, limit)
    parts = [undo.feed(body[at : at + size]) for at in range(0, len(body), size)]
    return b"".join(parts) + undo.finish()


@each
@pytest.mark.parametrize("size", [1, 3, 100, 1 << 30])
@pytest.mark.parametrize("data", [b"", b"a", PROSE])
def test_every_coding_is_undone_however_it_is_cut(coding: str, encode: Encode, size: int, data: bytes) -> None:
    assert undone(coding, encode(data), size) == data


@pytest.mark.parametrize("coding", ["", "identity", " , Identity"])
def test_no_coding_is_no_change_but_still_bounded(coding: str) -> None:
    assert undone(coding, PROSE, 1_000) == PROSE
    assert undone(coding, PROSE, 1_000, limit=len(PROSE)) == PROSE
    with pytest.raises(PayloadTooLarge):
        undone(coding, PROSE, 1_000, limit=len(PROSE) - 1)


@each
def test_a_body_of_no_bytes_is_whole(coding: str, encode: Encode) -> None:
    assert decoder(coding).finish() == b""


@examples(150)
@given(
    st.sampled_from(ENCODINGS),
    st.binary(max_size=2_000) | st.binary(max_size=20).map(lambda some: some * 5_000),
    st.lists(st.integers(1, 500), max_size=20),
)
def test_any_body_comes_back(encoding: tuple[str, Encode], data: bytes, cuts: list[int]) -> None:
    coding, encode = encoding
    body, undo, out = encode(data), decoder(coding, limit=len(data)), b""
    for size in [*cuts, len(body)]:
        out += undo.feed(body[:size])
        body = body[size:]
    assert out + undo.finish() == data


def gzip_flushes() -> tuple[Encode, Callable[[], bytes]]:
    engine = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return engine.compress, lambda: engine.flush(zlib.Z_SYNC_FLUSH)


def brotli_flushes() -> tuple[Encode, Callable[[], bytes]]:
    engine = brotli.Compressor()
    return engine.process, engine.flush


def zstd_flushes() -> tuple[Encode, Callable[[], bytes]]:
    engine = zstandard.ZstdCompressor().compressobj()
    return engine.compress, lambda: engine.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


@pytest.mark.parametrize(
    ("coding", "flushes"), [("gzip", gzip_flushes), ("br", brotli_flushes), ("zstd", zstd_flushes)]
)
def test_what_a_stream_has_flushed_comes_out_at_once(
    coding: str, flushes: Callable[[], tuple[Encode, Callable[[], bytes]]]
) -> None:
    write, flush = flushes()
    undo = decoder(coding)
    for frame in (b"data: one\n\n", b"data: two\n\n"):
        assert undo.feed(write(frame) + flush()) == frame


@each_once
@pytest.mark.parametrize("size", [1, 1 << 30])
def test_a_body_cut_short_is_reported(coding: str, encode: Encode, size: int) -> None:
    body = encode(PROSE)
    for kept in (1, len(body) // 2, len(body) - 1):
        undo = decoder(coding)
        out = b"".join(undo.feed(body[:kept][at : at + size]) for at in range(0, kept, size))
        assert PROSE.startswith(out)
        with pytest.raises(UpstreamBroken, match="ended in the middle of its"):
            undo.finish()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_corrupt_body_is_reported_as_the_caller_says(coding: str) -> None:
    undo = decoder(coding, broken=InvalidRequest)
    with pytest.raises(InvalidRequest, match=f"not valid {coding}") as caught:
        undo.feed(b"\xff\xfesesame" * 40)
    assert "sesame" not in caught.value.message


@examples(300)
@given(st.sampled_from(CODED), st.randoms(use_true_random=False))
def test_damage_ends_in_our_own_error_or_in_nothing(encoding: tuple[str, Encode], dice: random.Random) -> None:
    coding, encode = encoding
    body = bytearray(encode(b"The sidecar says so when it cannot. " * dice.choice([20, 2_500])))
    for _ in range(dice.randint(1, 4)):
        body[dice.randrange(len(body))] = dice.randrange(256)
    try:
        out = undone(coding, bytes(body), dice.randint(1, 400), limit=100_000)
    except (UpstreamBroken, PayloadTooLarge):
        return
    assert len(out) <= 100_000


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzipped), ("zstd", zstd)])
@pytest.mark.parametrize("size", [1, 9, 1 << 30])
def test_members_one_after_the_other_are_one_body(coding: str, encode: Encode, size: int) -> None:
    parts = [b"one ", b"", bytes(200_000), b"two"]
    assert undone(coding, b"".join(map(encode, parts)), size, limit=300_000) == b"".join(parts)


@each_once
@pytest.mark.parametrize("size", [1, 1 << 30])
@pytest.mark.parametrize("data", [b"one", bytes(1_000_000)])
def test_what_follows_the_end_is_not_overlooked(coding: str, encode: Encode, size: int, data: bytes) -> None:
    with pytest.raises(UpstreamBroken, match=r"not valid|in the middle"):
        undone(coding, encode(data) + b"trailing", size)


BOMB = 200_000_000


def test_a_bomb_never_goes_off() -> None:
    """Two hundred megabytes of nothing, refused with no more than a few of them made."""
    zeros = bytes(1_000_000)
    engine = zlib.compressobj(wbits=31)
    bombs = {
        "gzip": b"".join(engine.compress(zeros) for _ in range(200)) + engine.flush(),
        "br": brotli.compress(bytes(BOMB), quality=1),
        "zstd": zstd(bytes(BOMB)),
    }
    bombs["gzip, gzip"] = gzipped(bombs["gzip"])
    for coding, bomb in bombs.items():
        assert len(bomb) < BOMB // 500
        tracemalloc.start()
        with pytest.raises(PayloadTooLarge):
            decoder(coding, limit=1_000_000).feed(bomb)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12_000_000, coding


def test_pieces_are_made_as_they_are_asked_for() -> None:
    for coding, body in (("gzip", gzipped(bytes(5_000_000))), ("br", brotli.compress(bytes(5_000_000)))):
        total = 0
        for piece in decoder(coding).pieces(body):
            assert 0 < len(piece) <= 2 * STEP
            total += len(piece)
        assert total == 5_000_000


def test_a_bomb_between_two_codings_is_bounded_too() -> None:
    """Outside small, inside empty: nothing comes out, but a gigabyte would pass between the two."""
    nothing = gzipped(b"") * 1_000_000
    with pytest.raises(PayloadTooLarge):
        decoder("gzip, br", limit=1_000_000).feed(brotli.compress(nothing, quality=1))


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzipped), ("zstd", zstd)])
def test_empty_members_are_work_and_count_as_such(coding: str, encode: Encode) -> None:
    with pytest.raises(PayloadTooLarge):
        decoder(coding, limit=1_000_000).feed(encode(b"") * 200_000)


def test_a_window_larger_than_the_standard_allows_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    engine = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(UpstreamBroken, match="not valid zstd"):
        decoder("zstd").feed(engine.compress(b"x") + engine.flush())


@pytest.mark.parametrize(
    ("coding", "name"),
    [("compress", "compress"), ("gzip, dcb", "dcb"), ("sesame " * 20, "(unreadable)"), ("\x00", "(unreadable)")],
)
def test_an_unknown_coding_is_named(coding: str, name: str) -> None:
    with pytest.raises(UnknownCoding) as caught:
        decoder(coding)
    assert caught.value.name == name
    assert f"coding {name} is not one of gzip, x-gzip, deflate, br, zstd" in str(caught.value)


def test_layers_are_few() -> None:
    with pytest.raises(InvalidRequest, match="5 content codings; at most 4"):
        decoder("gzip, gzip, gzip, gzip, gzip", broken=InvalidRequest)


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        (None, b"identity"),
        (b"", b"identity"),
        (b"gzip, deflate, br, zstd", b"gzip, deflate, br, zstd"),
        (b"gzip,deflate", b"gzip, deflate"),
        (b"GZIP;q=0.8, compress, br ; q=1.0 , dcz", b"gzip;q=0.8, br; q=1.0"),
        (b"compress, dcb", b"identity"),
        (b"compress, identity;q=0.5", b"identity;q=0.5"),
        (b"*", b"gzip, br, zstd, deflate"),
        (b"br;q=1, *;q=0.5", b"br;q=1, gzip;q=0.5, zstd;q=0.5, deflate;q=0.5"),
        (b"gzip, *;q=0", b"gzip, *;q=0"),
        (b"gzip;q=0, br", b"gzip;q=0, br"),
        (b"gzip;q=0.000", b"identity"),
        (b"compress, *;q=0", b"identity"),
        (b"gzip;q=0.001", b"gzip;q=0.001"),
        (b"gzip;q=2, br;q=x, zstd;level=3", b"identity"),
        (b"x-gzip", b"x-gzip"),
        (b"gzip\x00, br", b"br"),
    ],
)
def test_only_what_can_be_undone_is_asked_for(offered: bytes | None, kept: bytes) -> None:
    assert acceptable(offered) == kept
