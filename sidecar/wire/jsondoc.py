"""JSON documents that come back out as they went in: float digits, big integers, key order, lone surrogates.

Floats are `msgspec.Raw` with their digits as they were written; everything else is the plain Python value.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Never

import msgspec

from ..errors import SidecarError

# A walk over a document, at two or three frames a level, stays well under the interpreter's 1,000.
MAX_DEPTH = 200

_BOM = b"\xef\xbb\xbf"
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a surrogate pair
# Its message, without the path it adds to some.
_MSGSPEC_SAYS = re.compile(r"(?:JSON is malformed: )?(?P<what>.*?)(?: - at .*| \(byte (?P<at>\d+)\))?", re.DOTALL)
_NO_OPENERS = bytes(set(range(256)) - set(b"[{"))
# What is left tells quotation marks from escaped ones: a backslash keeps the character that it escapes.
_NEITHER_QUOTES_NOR_ESCAPES = bytes(set(range(256)) - set(b'"\\/bfnrtu'))


class JsonFault(SidecarError):
    """Bytes that are no JSON document we can hold.

    `position` counts bytes from the start to the fault or just past it; None where the parser does not tell.
    The message quotes nothing of the document.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        self.message, self.position = message, position
        super().__init__(message if position is None else f"{message} (byte {position})")


def readable(raw: bytes) -> Any:
    """The document in `raw`, or None where `decode` would raise."""
    try:
        return decode(raw)
    except JsonFault:
        return None


def decode(raw: bytes) -> Any:
    """The document in `raw` (UTF-8, a BOM is skipped). Of a key that stands twice the last value counts.

    Raises JsonFault: malformed, NaN or Infinity, trailing data, invalid UTF-8, an integer of more than 4,300
    digits, nested deeper than MAX_DEPTH.
    """
    skipped = len(_BOM) if raw.startswith(_BOM) else 0
    try:
        doc = _parse(raw[skipped:] if skipped else raw, skipped)
    except RecursionError:
        raise _too_deep() from None
    if len(raw) > 2 * MAX_DEPTH and len(raw.translate(None, _NO_OPENERS)) > MAX_DEPTH:
        _refuse_deep(doc)
    return doc


def copied(raw: bytes) -> Any:
    """The document once more, of bytes that `decode` has read before or `encode` has written."""
    return _parse(raw.removeprefix(_BOM), 0)


def encode(doc: Any) -> bytes:
    """`doc` in compact UTF-8; a string with a lone surrogate is written in ASCII with `\\uXXXX` escapes.

    Raises JsonFault when it is nested too deep.
    """
    try:
        return _encode(doc)
    except RecursionError:
        raise _too_deep() from None


def has_duplicate_keys(raw: bytes, doc: Any) -> bool:
    """Whether some object in `raw` names a key twice; `doc` is what `decode(raw)` gave, not yet edited.

    Exact: decoding drops nothing but the earlier pairs of such keys, and each takes the string of its key
    along. So there is one if and only if `raw` holds more strings than `doc`. However a key is spelt in `raw`
    (`"\\u0061"` beside `"a"`), it is one string in each.
    """
    canonical = encode(doc)
    return canonical != raw and _quotes(raw) != _quotes(canonical)


def _quotes(text: bytes) -> int:
    """How many quotation marks open or close a string."""
    if b"\\" not in text:
        return text.count(b'"')
    text = text.translate(None, _NEITHER_QUOTES_NOR_ESCAPES).replace(b"\\\\", b"")
    return text.count(b'"') - text.count(b'\\"')


_pack = msgspec.json.Encoder().encode
_unpack: Callable[[bytes], Any] = msgspec.json.Decoder(float_hook=msgspec.Raw).decode


def _parse(text: bytes, skipped: int) -> Any:
    try:
        return _unpack(text)
    except msgspec.DecodeError as fault:
        if _HALF.search(text):  # msgspec refuses what most providers accept: half of a surrogate pair
            return _parse_halves(text, skipped)
        raise _translated(fault, skipped) from None


def _parse_halves(text: bytes, skipped: int) -> Any:
    """The slow way, which knows lone surrogates; otherwise as strict as the fast one."""
    try:
        return json.loads(text.decode(), parse_float=msgspec.Raw, parse_constant=_refuse_constant)
    except UnicodeDecodeError as fault:
        raise JsonFault("invalid UTF-8", fault.start + skipped) from None
    except json.JSONDecodeError as fault:
        before = len(fault.doc[: fault.pos].encode())
        raise JsonFault("malformed JSON", before + skipped) from None
    except ValueError:  # int() of more than 4,300 digits
        raise JsonFault("an integer has too many digits") from None


def _refuse_constant(name: str) -> Never:
    raise JsonFault(f"{name} is not JSON")


def _translated(fault: msgspec.DecodeError, skipped: int) -> JsonFault:
    said = _MSGSPEC_SAYS.fullmatch(str(fault))
    if said is None:
        return JsonFault("malformed JSON")
    at = said["at"]
    return JsonFault(said["what"], None if at is None else int(at) + skipped)


def _refuse_deep(doc: Any) -> None:
    """Level by level, so that looking does not recurse."""
    level: list[Any] = [[doc]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for holder in level
            for item in (holder.values() if type(holder) is dict else holder)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> JsonFault:
    return JsonFault(f"nested deeper than {MAX_DEPTH} levels")


def _encode(doc: Any) -> bytes:
    try:
        return _pack(doc)
    except UnicodeEncodeError:
        return _encode_halves(doc)


def _encode_halves(doc: Any) -> bytes:
    match doc:
        case dict():
            return b"{%b}" % b",".join(b"%b:%b" % (_string(k), _encode_halves(v)) for k, v in doc.items())
        case list():
            return b"[%b]" % b",".join(map(_encode_halves, doc))
        case str():
            return _string(doc)
        case _:
            return _pack(doc)


def _string(text: str) -> bytes:
    try:
        return _pack(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()
