"""multipart/form-data bodies as they pass (RFC 7578, RFC 2046): cut into parts, their texts given out, joined again.

`Parts` cuts a body that arrives in pieces of any size; `Form` tells the texts in it. Both give pieces whose `raw`
bytes, put together, are the body: what is not edited leaves as it came. That is why this is not python-multipart, which
keeps neither a part's header lines nor the bytes around them, and reads past what it does not like.

Two readers of one body must agree on its parts, or a text passes that we took for something else. So what the RFCs
leave to the reader is refused: text outside of parts, a boundary after a bare line feed or followed by more text,
header lines that go on in the next one, a name given twice, and a part in base64 or another charset than UTF-8.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ..errors import InvalidRequest, PayloadTooLarge

MAX_FIELD = 1024 * 1024
MAX_HEADER = 16 * 1024
MAX_PARTS = 1000
# How much of a file tells whether it is text.
PEEK = 8 * 1024

# RFC 2046 allows 70; some clients do not count.
_MAX_BOUNDARY = 200
_MAX_PADDING = 128
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rb";[ \t]*(" + _NAME + rb')[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|[^;"\s]*)[ \t]*')
_HEADER = re.compile(rb"(" + _NAME + rb"):[ \t]*([^\r\n\0]*)")
_DISPOSITION = re.compile(rb"\r\ncontent-disposition:[ \t]*", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[^\r\n]*", re.IGNORECASE)
_CHARSET = re.compile(rb"charset[ \t]*=[ \t]*\"?([^\";\s]*)", re.IGNORECASE)
_ESCAPED = re.compile(r'\\(["\\])')
_PADDED = re.compile(rb"[ \t]*\r\n")
_PLAIN_CODINGS = frozenset((b"", b"7bit", b"8bit", b"binary"))
_PLAIN_CHARSETS = frozenset((b"", b"utf-8", b"utf8", b"us-ascii", b"ascii"))
_ONCE = frozenset((b"content-disposition", b"content-type", b"content-transfer-encoding"))


def boundary_of(content_type: bytes) -> bytes:
    """The boundary that a request's content type names. Raises InvalidRequest."""
    kind, parameters = _parsed(content_type)
    if kind != b"multipart/form-data":
        raise InvalidRequest("The request's content type is not multipart/form-data.")
    boundary = _unquoted(parameters.get(b"boundary", b""))
    if not (0 < len(boundary) <= _MAX_BOUNDARY and boundary.isascii() and boundary.isprintable()):
        raise InvalidRequest("The request's content type names no boundary of 1 to 70 ASCII characters; name one.")
    return boundary.encode()


# --- parts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartBegins:
    """A part's boundary and header lines. `headers` has names in lower case; `filename` is None for a field."""

    raw: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    name: str
    filename: str | None

    def renamed(self, filename: str) -> bytes:
        """The same bytes with another file name."""
        found = _DISPOSITION.search(self.raw)
        start = found.end() if found else 0
        line, rest = self.raw[start:].split(b"\r\n", 1)
        return self.raw[:start] + _PARAMETER.sub(lambda parameter: _named(parameter, filename), line) + b"\r\n" + rest

    def unsized(self) -> bytes:
        """The same bytes without a header that counts the part's own: it would be wrong of a part that is edited."""
        return _LENGTH.sub(b"", self.raw)

    @property
    def charset(self) -> bytes:
        """What the content type says, in lower case; empty where it says nothing."""
        found = _CHARSET.search(dict(self.headers).get(b"content-type", b""))
        return found[1].lower() if found else b""


@dataclass(frozen=True, slots=True)
class PartData:
    raw: bytes


@dataclass(frozen=True, slots=True)
class PartEnds:
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Closing:
    """The last boundary, and line ends after it."""

    raw: bytes


Piece = PartBegins | PartData | PartEnds | Closing


class Parts:
    """Cuts a body into parts. What it holds back is at most a header or a boundary.

    Raises InvalidRequest for a body that is no multipart form or that readers may read in two ways.
    """

    def __init__(self, boundary: bytes, max_parts: int = MAX_PARTS) -> None:
        self._marker = b"--" + boundary
        self._left = max_parts
        self._held = bytearray()
        # The two bytes before those held.
        self._before = b""
        self._next = self._first

    def feed(self, chunk: bytes) -> list[Piece]:
        self._held += chunk
        found: list[Piece] = []
        while pieces := self._next():
            found.extend(pieces)
        return found

    def finish(self) -> None:
        """The body is over. Raises InvalidRequest where its last boundary is missing."""
        if self._next != self._after:
            raise _fault("ends before its closing boundary")

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _first(self) -> Sequence[Piece]:
        """Before the first boundary: nothing but a line end."""
        lead = 2 if self._held.startswith(b"\r\n") else 0
        start = self._held[lead : lead + len(self._marker)]
        if not self._marker.startswith(start) and self._held != b"\r":
            raise _fault("does not begin with its boundary")
        return self._boundary(lead) if start == self._marker else ()

    def _boundary(self, at: int) -> Sequence[Piece]:
        """A boundary whose marker begins `at`: a part's, or the last one."""
        end = at + len(self._marker)
        rest = bytes(self._held[end : end + _MAX_PADDING])
        if rest.startswith(b"--"):
            self._next = self._after
            return (Closing(self._take(end + 2)),)
        if (padded := _PADDED.match(rest)) is not None:
            return self._header(end + padded.end() - 2)
        if rest.strip(b" \t") not in (b"", b"-", b"\r") or len(rest) == _MAX_PADDING:
            raise _fault("has text after a boundary")
        return ()

    def _header(self, at: int) -> Sequence[Piece]:
        """A part's header, whose lines are between the line end `at` and an empty line."""
        end = self._held.find(b"\r\n\r\n", at)
        if (end if end >= 0 else len(self._held)) - at > MAX_HEADER:
            raise _fault(f"has a part with a header of more than {MAX_HEADER:,} bytes")
        if end < 0:
            return ()
        if not self._left:
            raise _fault("has too many parts")
        self._left -= 1
        lines = bytes(self._held[at:end]).split(b"\r\n")[1:]
        self._next, self._before = self._data, b"\r\n"
        return (_begins(self._take(end + 4), lines),)

    def _data(self) -> Sequence[Piece]:
        """A part's data, up to where a boundary may have begun."""
        at = self._marker_in_data()
        size = len(self._held) - len(self._marker) - 1 if at is None else at - 2
        if at is not None:
            self._next = self._delimiter
        elif size <= 0:
            return ()
        data = self._take(max(size, 0))
        self._before = (self._before + data)[-2:]
        ends = () if at is None else (PartEnds(),)
        return (PartData(data), *ends) if data else ends

    def _marker_in_data(self) -> int | None:
        """Where a boundary's marker begins after a line end; anywhere else it is data."""
        at = self._held.find(self._marker)
        while at >= 0:
            before = (self._before + self._held[max(at - 2, 0) : at])[-2:]
            if at >= 2 and before == b"\r\n":
                return at
            if before.endswith((b"\r", b"\n")):
                raise _fault("has a boundary without a line end of its own before it")
            at = self._held.find(self._marker, at + 1)
        return None

    def _delimiter(self) -> Sequence[Piece]:
        return self._boundary(2)

    def _after(self) -> Sequence[Piece]:
        """After the last boundary: nothing but line ends."""
        if self._held.strip(b" \t\r\n"):
            raise _fault("has text after its closing boundary")
        return (Closing(self._take(len(self._held))),) if self._held else ()


def _begins(raw: bytes, lines: Sequence[bytes]) -> PartBegins:
    headers = tuple(_header(line) for line in lines)
    names = [name for name, _ in headers if name in _ONCE]
    if len(names) > len(set(names)):
        raise _fault("has a part with the same header twice")
    known = dict(headers)
    if known.get(b"content-transfer-encoding", b"").strip().lower() not in _PLAIN_CODINGS:
        raise _fault("has a part in a content-transfer-encoding; send it as it is")
    kind, parameters = _parsed(known.get(b"content-disposition", b""))
    if kind != b"form-data" or b"name" not in parameters:
        raise _fault('has a part without a name; send content-disposition: form-data; name="…"')
    return PartBegins(raw, headers, _unquoted(parameters[b"name"]), _filename(parameters))


def _header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise _fault("has a part with a malformed header line")
    return found[1].lower(), found[2].rstrip(b" \t")


def _parsed(value: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """A header's value and its parameters, their names in lower case and their values as they are written."""
    kind = re.match(rb"[^;]*", value)
    at, parameters = kind.end() if kind else 0, dict[bytes, bytes]()
    while (found := _PARAMETER.match(value, at)) is not None:
        name = found[1].lower()
        if name in parameters or (b"*" in name and name != b"filename*"):
            raise InvalidRequest("A header of the multipart form gives a parameter that can be read in two ways.")
        parameters[name], at = found[2], found.end()
    if value[at:].strip(b"; \t"):
        raise InvalidRequest("A header of the multipart form has malformed parameters.")
    return value[: kind.end() if kind else 0].strip().lower(), parameters


def _filename(parameters: dict[bytes, bytes]) -> str | None:
    """Under either of its two spellings; `filename*` is RFC 5987's, which some older clients write."""
    names = [_unquoted(parameters[b"filename"])] if b"filename" in parameters else []
    if (extended := parameters.get(b"filename*")) is not None:
        charset, *_, text = extended.split(b"'")
        if charset.lower() != b"utf-8":
            raise _fault("has a file whose name is not in UTF-8")
        names.append(unquote(text.decode("ascii", "replace")))
    if len(set(names)) > 1:
        raise _fault("has a file with two names")
    return names[0] if names else None


def _unquoted(value: bytes) -> str:
    text = value.decode("utf-8", "surrogateescape")
    return _ESCAPED.sub(r"\1", text[1:-1]) if text.startswith('"') else text


def _named(parameter: re.Match[bytes], filename: str) -> bytes:
    """A parameter of the header, with this file name if it is one. Quotation marks are told as browsers do."""
    told, name = parameter[0], parameter[1].lower()
    if name == b"filename*":
        return told.replace(parameter[2], b"UTF-8''" + quote(filename, safe="").encode(), 1)
    if name != b"filename":
        return told
    safe = filename.replace("\\", "_").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = told[: parameter.start(2) - parameter.start()]
    return b'%b"%b"' % (head, safe.encode("utf-8", "surrogateescape"))


def _fault(what: str) -> InvalidRequest:
    return InvalidRequest(f"The multipart form {what}.")


# --- texts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A field, whole. `text` keeps bytes that are no UTF-8 as surrogates."""

    begins: PartBegins
    data: bytes

    @property
    def raw(self) -> bytes:
        return self.begins.raw + self.data

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    def with_text(self, text: str) -> bytes:
        return self.begins.unsized() + encoded(text)


@dataclass(frozen=True, slots=True)
class FileBegins:
    """A file's header, once it is known whether the file is text."""

    begins: PartBegins
    is_text: bool

    @property
    def raw(self) -> bytes:
        return self.begins.raw


@dataclass(frozen=True, slots=True)
class FileText:
    """A piece of a file that is text. It may stop anywhere, but not inside a character."""

    text: str

    @property
    def raw(self) -> bytes:
        return encoded(self.text)


@dataclass(frozen=True, slots=True)
class FileData:
    """A piece of a file that is not text."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class FileEnds:
    raw: bytes = b""


Told = Field | FileBegins | FileText | FileData | FileEnds | Closing


def encoded(text: str) -> bytes:
    """A text's bytes; those that were no UTF-8 come out as they were."""
    return text.encode("utf-8", "surrogateescape")


class Form:
    """A form's fields, each whole, and its files piece by piece: as text where they begin like text.

    Raises what Parts raises, and PayloadTooLarge for a field of more than `max_field` bytes.
    """

    def __init__(self, boundary: bytes, max_field: int = MAX_FIELD, max_parts: int = MAX_PARTS) -> None:
        self._parts = Parts(boundary, max_parts)
        self._max = max_field
        self._begins: PartBegins | None = None
        # A field's data, or a file's until it is known whether it is text.
        self._held = bytearray()
        self._peeking = False
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, chunk: bytes) -> list[Told]:
        return [told for piece in self._parts.feed(chunk) for told in self._told(piece)]

    def finish(self) -> None:
        """The body is over. Raises InvalidRequest where its last boundary is missing."""
        self._parts.finish()

    def _told(self, piece: Piece) -> Iterator[Told]:
        match piece:
            case PartBegins():
                self._begins, self._peeking, self._decoder = piece, piece.filename is not None, None
                if piece.filename is None and piece.charset not in _PLAIN_CHARSETS:
                    raise _fault("has a field in another charset than UTF-8")
            case PartData(data):
                yield from self._data(data)
            case PartEnds():
                yield from self._end()
            case Closing():
                yield piece

    def _data(self, data: bytes) -> Iterator[Told]:
        if self._is_field or self._peeking:
            self._held += data
            if self._peeking and len(self._held) >= PEEK:
                yield from self._decide()
            elif self._is_field and len(self._held) > self._max:
                raise PayloadTooLarge(f"A field of the form is larger than {self._max:,} bytes; send it as a file.")
        elif self._decoder is None:
            yield FileData(data)
        elif text := self._decoder.decode(data):
            yield FileText(text)

    @property
    def _is_field(self) -> bool:
        return self._begins is not None and self._begins.filename is None

    def _decide(self, whole: bool = False) -> Iterator[Told]:
        """Enough of a file has come to tell what it is."""
        held = self._let_go()
        is_text = looks_like_text(held[:PEEK], whole and len(held) <= PEEK)
        self._peeking = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape") if is_text else None
        if self._begins is not None:
            yield FileBegins(self._begins, is_text)
        if held:
            yield from self._data(held)

    def _end(self) -> Iterator[Told]:
        if self._begins is not None and self._is_field:
            yield Field(self._begins, self._let_go())
            return
        if self._peeking:
            yield from self._decide(whole=True)
        if self._decoder is not None and (rest := self._decoder.decode(b"", final=True)):
            yield FileText(rest)
        yield FileEnds()

    def _let_go(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held


def looks_like_text(head: bytes, whole: bool = False) -> bool:
    """Whether what a file begins with is UTF-8 without NUL; `whole`: nothing follows it."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        return False
    return 0 not in head
