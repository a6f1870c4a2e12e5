"""Which framing a stream has, told from its first sign: its content type may say another one, or none.

Clients of both kinds of streams read what comes and not what it is called, so that is what is looked at.
"""

from collections.abc import Sequence
from typing import Final

from . import jsondoc
from .ndjson import NDJSON
from .stream import SSE, Cutter, Frame, Framing

_BOM: Final = b"\xef\xbb\xbf"
_WHITE: Final = b" \t\r\n"
# Field names of an event, and what begins a comment.
_EVENT_BEGINS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
# What their first character is, and a line of JSON's is not.
_EVENT_SIGNS: Final = frozenset(b"deir:")


def told(body: bytes, *, lines: bool) -> Framing | None:
    """The framing of a body that is not one JSON document; None where it has none. `lines`: it may be lines."""
    begins = body.removeprefix(_BOM).lstrip(_WHITE)
    if begins.startswith(_EVENT_BEGINS):
        return SSE
    first, _, rest = begins.partition(b"\n")
    return NDJSON if lines and rest and first[:1] == b"{" and _is_json(first) else None


def _is_json(line: bytes) -> bool:
    try:
        jsondoc.decode(line)
    except jsondoc.JsonFault:
        return False
    return True


def as_it_begins(framing: Framing) -> Framing:
    """The framing that a stream turns out to have where its content type says this one."""
    cutter = _Telling(framing)
    return Framing(lambda: cutter, cutter.render)


class _Telling:
    """Waits for the first sign, and cuts as it says."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._held = b""
        self._cutter: Cutter | None = None

    def feed(self, chunk: bytes) -> Sequence[Frame]:
        if self._cutter is not None:
            return self._cutter.feed(chunk)
        self._held += chunk
        begins = self._held.removeprefix(_BOM).lstrip(_WHITE)
        if not begins or _BOM.startswith(self._held):
            return ()
        if begins.startswith(b"{"):
            self._framing = NDJSON
        elif begins[0] in _EVENT_SIGNS:
            self._framing = SSE
        return self._begun()

    def finish(self) -> Sequence[Frame]:
        begun = self._begun() if self._cutter is None else ()
        return [*begun, *(self._cutter.finish() if self._cutter is not None else ())]

    def _begun(self) -> Sequence[Frame]:
        self._cutter = self._framing.cutter()
        held, self._held = self._held, b""
        return self._cutter.feed(held)

    def render(self, data: bytes, event: bytes | None) -> bytes:
        return self._framing.render(data, event)
