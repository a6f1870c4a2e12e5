"""The strings of a parsed document, as slots."""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from ..core.surface import Slot, Surface

# Parts whose payload may not be text, and the field that holds it. What else they hold is text.
BINARY = {"image_url": "url", "input_audio": "data", "file": "file_data"}

_DATA_URL = re.compile(r"\s*data:[^,;]*(?:;[^,;]*)*; *base64 *,", re.IGNORECASE)
# How many characters of a payload tell whether it is text.
_PEEK = 1024


def walk(holder: Any, key: str | int, surface: Surface) -> list[Slot]:
    """Every string at and below a place, in order."""
    value = holder[key]
    if isinstance(value, str):
        return [Slot(surface, holder, key)]
    found: list[Slot] = []
    if isinstance(value, dict | list):
        _gather(value, surface, found)
    return found


def _gather(value: Any, surface: Surface, found: list[Slot]) -> None:
    """A document is nested no deeper than jsondoc.MAX_DEPTH, and holds no types of its own."""
    for key, inner in value.items() if type(value) is dict else enumerate(value):
        kind = type(inner)
        if kind is str:
            found.append(Slot(surface, value, key))
        elif kind is dict or kind is list:
            _gather(inner, surface, found)


def optional(holder: dict[str, Any], field: str, surface: Surface) -> Iterator[Slot]:
    """Every string at and below a field that may be absent or null."""
    if holder.get(field) is not None:
        yield from walk(holder, field, surface)


def others(
    holder: dict[str, Any], known: AbstractSet[str], words: AbstractSet[str], surface: Surface
) -> Iterator[Slot]:
    """The texts of the fields that are not `known`. A string under one of `words` is a word of the API, not a text."""
    for key, value in holder.items():
        if key not in known and not (key in words and isinstance(value, str)):
            yield from walk(holder, key, surface)


def content(holder: dict[str, Any], surface: Surface, field: str = "content") -> Iterator[Slot]:
    """A text, or a list of parts."""
    value = holder.get(field)
    if isinstance(value, str):
        yield Slot(surface, holder, field)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from part_texts(part, surface) if isinstance(part, dict) else walk(value, index, surface)
    elif value is not None:
        yield from walk(holder, field, surface)


def part_texts(part: dict[str, Any], surface: Surface) -> Iterator[Slot]:
    """A content part: its texts, but not the payload of an image, a sound or a file that is not text."""
    kind = part.get("type")
    field = BINARY.get(kind) if isinstance(kind, str) else None
    for key, value in part.items():
        if value is None or (key == "type" and isinstance(value, str)):
            continue
        if isinstance(value, dict) and field in value:
            for inner in value:
                yield from payload(value, inner, surface) if inner == field else walk(value, inner, surface)
        else:
            yield from walk(part, key, surface)


def payload(holder: Any, key: str | int, surface: Surface) -> Iterator[Slot]:
    """A field that holds a URL, a data URL or bare base64: its text, where it is one or encodes one.

    Only what is base64 to its end is taken for the payload of something else than text.
    """
    value = holder[key]
    if not isinstance(value, str):
        yield from walk(holder, key, surface)
        return
    head = _DATA_URL.match(value)
    start = head.end() if head else 0
    if encodes_text(value, start):
        yield EncodedSlot(surface, holder, key, start)
    elif not _is_base64(value, start, bare=head is None):
        yield Slot(surface, holder, key)


class EncodedSlot(Slot):
    """A text in base64, after the first `start` characters of its field."""

    __slots__ = ("_start",)

    def __init__(self, surface: Surface, holder: Any, key: str | int, start: int) -> None:
        super().__init__(surface, holder, key)
        self._start = start

    @property
    def text(self) -> str:
        return _decoded(self._holder[self._key][self._start :]).decode()

    def replace(self, text: str) -> None:
        head = self._holder[self._key][: self._start]
        self._holder[self._key] = head + base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")


def encodes_text(value: str, start: int) -> bool:
    """Whether the rest of a string is base64 of UTF-8 without NUL. What an image or a sound begins with is not."""
    try:
        peek = value[start : start + _PEEK].translate(_URL_SAFE)
        begins = _decoded(peek[: len(peek) // 4 * 4])
        codecs.getincrementaldecoder("utf-8")().decode(begins)
        return bool(begins) and 0 not in begins and bool(_decoded(value[start:]).decode())
    except (binascii.Error, ValueError):
        return False


def _is_base64(value: str, start: int, *, bare: bool) -> bool:
    """Whether nothing but base64 follows. Without the head of a data URL a short one is rather a name."""
    if bare and (len(value) < _MIN_BASE64 or not _begins_base64(value[:_PEEK])):
        return False
    rest = value[start:].encode("utf-8", "surrogatepass")
    return not (rest.translate(None, _ALPHABET) and _IN_URLS.sub(b"", rest).translate(None, _ALPHABET))


def _begins_base64(value: str) -> bool:
    try:
        return bool(_decoded(value))
    except (binascii.Error, ValueError):
        return False


# A shorter word of letters and digits is rather a name than a payload.
_MIN_BASE64 = 64
# Of base64, also as URLs have it, and what may stand between its lines.
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\r\n"
_IN_URLS = re.compile(rb"%(?:3D|2B|2F|0A|0D)", re.IGNORECASE)


def _decoded(value: str) -> bytes:
    value = value.translate(_URL_SAFE)
    return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)


_URL_SAFE = str.maketrans({"-": "+", "_": "/", "\n": "", "\r": ""})
