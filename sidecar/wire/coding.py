"""Content codings undone: gzip, deflate, br and zstd, one or several, piece by piece and within a bound."""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import ClassVar, Protocol

import brotli
import zstandard

from ..errors import ExchangeError, PayloadTooLarge, SidecarError, UpstreamBroken

# No piece of output is much larger, whatever the input; zstd's is 8 MiB, see below.
STEP = 64 * 1024
# Each layer multiplies what a bomb can do, and nobody sends more than two.
MAX_LAYERS = 4

# What follows a gzip member is copied when the member ends: small steps keep many small members linear.
_INPUT_STEP = 16 * 1024
# Four bytes of zstd can stand for 128 KiB and the library knows no output bound: 256 make 8 MiB at most.
_ZSTD_INPUT_STEP = 256
# RFC 9659: no content coding may ask for a larger window.
_ZSTD_WINDOW = 8 * 1024 * 1024
# Opening a member is work even when it is empty, so it counts as this many bytes of output.
_MEMBER_COST = 4096

_FAULTS = (zlib.error, brotli.error, zstandard.ZstdError)
_SAYABLE = re.compile(r"[a-z0-9._-]{1,40}")
_OFFER = re.compile(rb"\s*([-!#$%&'*+.^_`|~0-9A-Za-z]+)\s*(;\s*[qQ]=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?\s*")
_NEVER = re.compile(rb".*=0(?:\.0*)?")

Fail = Callable[[str], ExchangeError]


class UnknownCoding(SidecarError):
    """A content coding that we cannot undo. `name` is the coding, as far as it can be said."""

    def __init__(self, name: str) -> None:
        self.name = name if _SAYABLE.fullmatch(name) else "(unreadable)"
        super().__init__(f"The content coding {self.name} is not one of {', '.join(_MEMBERS)}.")


class Decoder:
    """A body on its way through its codings. What can be decoded comes out at once, however the input is cut.

    Raises what `broken` makes of a message when the body is corrupt or truncated, and what `too_large` makes
    of one when it is larger than its limit.
    """

    def __init__(self, layers: "Sequence[_Layer]", limit: int | None, too_large: Fail) -> None:
        self._layers = layers
        self._bound = _Bound(limit, too_large)

    def feed(self, data: bytes) -> bytes:
        return b"".join(self.pieces(data))

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """As `feed`, but decodes no further than it is asked for. Exhaust it before the next input."""
        for piece in _through(self._layers, data):
            self._bound.spend(len(piece))
            if piece:
                yield piece

    def finish(self) -> bytes:
        """The body is over. Nothing is left, but it may have ended too early. A body of no bytes is whole."""
        for layer in self._layers:
            layer.finish()
        return b""


def decoder(
    content_encoding: str,
    limit: int | None = None,
    *,
    broken: Fail = UpstreamBroken,
    too_large: Fail = PayloadTooLarge,
) -> Decoder:
    """A decoder for the value of a Content-Encoding header. `limit` counts decoded bytes; None is no limit.

    Raises UnknownCoding, and what `broken` makes when there are more codings than MAX_LAYERS.
    """
    names = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    names = [name for name in names if name != "identity"]
    if len(names) > MAX_LAYERS:
        raise broken(f"The body has {len(names)} content codings; at most {MAX_LAYERS} are undone.")
    # Between layers there is slack for codings that made the body larger, and for members.
    slack = None if limit is None else 2 * limit + STEP
    layers = [_Layer(name, _Bound(slack, too_large), broken) for name in reversed(names)]
    return Decoder(layers, limit, too_large)


@lru_cache(maxsize=256)
def acceptable(accept_encoding: bytes | None) -> bytes:
    """A client's Accept-Encoding without the codings that we cannot undo; `identity` when none is left.

    What is left keeps its order and q. `*` becomes the codings we know that are not offered by name.
    """
    found = map(_OFFER.fullmatch, (accept_encoding or b"").split(b","))
    offers = [(offer[1].lower(), (offer[2] or b"").rstrip()) for offer in found if offer]
    named = {name for name, _ in offers}
    kept = [(known, q) for name, q in offers for known in _known(name, q, named)]
    if all(_NEVER.fullmatch(q) for _, q in kept):
        return b"identity"
    return b", ".join(name + q for name, q in kept)


def _known(name: bytes, q: bytes, named: set[bytes]) -> Sequence[bytes]:
    if name == b"*" and not _NEVER.fullmatch(q):
        return [coding for coding in _PREFERRED if coding not in named]
    return (name,) if name in _ACCEPTED else ()


def _through(layers: "Sequence[_Layer]", data: bytes) -> Iterator[bytes]:
    """Depth first: a piece goes all the way before the next one is made."""
    if not layers:
        yield data
        return
    for piece in layers[0].pieces(data):
        yield from _through(layers[1:], piece)


class _Bound:
    """Counts output."""

    def __init__(self, limit: int | None, too_large: Fail) -> None:
        self._limit, self._too_large, self._spent = limit, too_large, 0

    def spend(self, amount: int) -> None:
        self._spent += amount
        if self._limit is not None and self._spent > self._limit:
            raise self._too_large("The body is larger than allowed when its content coding is undone.")


class _Layer:
    """One coding of a body: its members one after the other, bounded."""

    def __init__(self, name: str, bound: _Bound, broken: Fail) -> None:
        if name not in _MEMBERS:
            raise UnknownCoding(name)
        self._name, self._bound, self._broken = name, bound, broken
        self._member: _Member | None = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        step = _MEMBERS[self._name].step
        for at in range(0, len(data), step):
            yield from self._step(data[at : at + step])

    def finish(self) -> None:
        if self._member is not None and not self._member.ended:
            raise self._broken(f"The body ended in the middle of its {self._name} coding.")

    def _step(self, data: bytes) -> Iterator[bytes]:
        while data:
            member = self._open()
            try:
                for piece in member.run(data):
                    self._bound.spend(len(piece))
                    yield piece
            except _FAULTS:
                raise self._corrupt() from None
            data = member.rest

    def _open(self) -> "_Member":
        """The member that the next byte belongs to."""
        if self._member is None or self._member.ended:
            if self._member is not None and not self._member.many:
                raise self._corrupt()
            self._bound.spend(_MEMBER_COST)
            self._member = _MEMBERS[self._name]()
        return self._member

    def _corrupt(self) -> ExchangeError:
        return self._broken(f"The body is not valid {self._name}.")


class _Member(Protocol):
    """One stream of a coding. `many`: another may follow it. `step`: bytes of input it should get at once."""

    many: ClassVar[bool]
    step: ClassVar[int]

    @property
    def ended(self) -> bool: ...

    @property
    def rest(self) -> bytes:
        """The input beyond the member's end; empty while it has not ended."""

    def run(self, data: bytes) -> Iterator[bytes]: ...


class _Gzip:
    many: ClassVar[bool] = True
    step: ClassVar[int] = _INPUT_STEP

    def __init__(self, window_bits: int = 16 + zlib.MAX_WBITS) -> None:
        self._engine = zlib.decompressobj(window_bits)

    @property
    def ended(self) -> bool:
        return self._engine.eof

    @property
    def rest(self) -> bytes:
        return self._engine.unused_data

    def run(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more:
            piece = self._engine.decompress(data, STEP)
            data = self._engine.unconsumed_tail
            # Beyond the end, what is in `rest` may stand here too, and would for ever.
            more = not self._engine.eof and (bool(data) or len(piece) == STEP)
            yield piece


class _Deflate:
    """RFC 9110 means zlib by it, some servers send the bare stream: the first two bytes tell."""

    many: ClassVar[bool] = False
    step: ClassVar[int] = _INPUT_STEP

    def __init__(self) -> None:
        self._head = b""
        self._engine: _Gzip | None = None

    @property
    def ended(self) -> bool:
        return self._engine is not None and self._engine.ended

    @property
    def rest(self) -> bytes:
        return b"" if self._engine is None else self._engine.rest

    def run(self, data: bytes) -> Iterator[bytes]:
        if self._engine is None:
            self._head += data
            if len(self._head) < 2:
                return
            data, self._engine = self._head, _Gzip(_deflate_bits(self._head))
        yield from self._engine.run(data)


def _deflate_bits(head: bytes) -> int:
    zlib_header = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS


class _Brotli:
    many: ClassVar[bool] = False
    step: ClassVar[int] = _INPUT_STEP
    rest: ClassVar[bytes] = b""  # the library refuses input beyond the end

    def __init__(self) -> None:
        self._engine = brotli.Decompressor()

    @property
    def ended(self) -> bool:
        return bool(self._engine.is_finished())

    def run(self, data: bytes) -> Iterator[bytes]:
        # It says that it can accept more as soon as its input is used up, with output still inside.
        more = True
        while more:
            piece = self._engine.process(data, output_buffer_limit=STEP)
            data = b""
            more = not self.ended and (len(piece) >= STEP or not self._engine.can_accept_more_data())
            yield piece


class _Zstd:
    many: ClassVar[bool] = True
    step: ClassVar[int] = _ZSTD_INPUT_STEP

    def __init__(self) -> None:
        self._engine = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    @property
    def ended(self) -> bool:
        return self._engine.eof

    @property
    def rest(self) -> bytes:
        return self._engine.unused_data

    def run(self, data: bytes) -> Iterator[bytes]:
        yield self._engine.decompress(data)


_MEMBERS: dict[str, type[_Member]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
_PREFERRED = (b"gzip", b"br", b"zstd", b"deflate")
_ACCEPTED = frozenset({*_PREFERRED, b"x-gzip", b"identity", b"*"})
