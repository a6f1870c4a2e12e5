"""Any JSON document: every string in it is a text. For endpoints and fields that no wire module knows.

In a stream of an API that we do not know, a string at one place of frame after frame is taken for a running text where
its name says so (`delta`, `token`, `text` …): what is cut over two frames is found as well. All other strings are
whole as they stand.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..core.events import End, Event, Text
from ..core.surface import Kind, Lane, Slot, Surface
from ..core.usage import Usage
from . import small
from . import usage as reported
from .stream import Spoken
from .walk import payload, walk

NAME = "other"
DONE = b""
COPIES = False
NAMES: frozenset[Surface] = frozenset()

UNKNOWN = Surface("other.request", Kind.USER, unknown=True)
UPLOAD = Surface("other.request.upload", Kind.USER, unknown=True)
RUNNING = Surface("other.reply (running texts)", Kind.REPLY, unknown=True)
OPAQUE = Surface("other.reply", Kind.REPLY, unknown=True)
BODY = Surface("other.reply.body", Kind.REPLY, unknown=True)
REQUEST_SURFACES = (UNKNOWN, UPLOAD)
REPLY_SURFACES = (RUNNING, OPAQUE, BODY)

Place = tuple[str | int, ...]

# Names under which APIs stream their texts.
_RUNNING = frozenset(
    ("delta", "token", "chunk", "text", "content", "completion", "response", "generated_text", "output", "thinking")
)
# Words of an API beside a text.
_WORDS = frozenset(("id", "object", "type", "model", "role", "finish_reason", "status", "index"))
# What a frame's type ends with that says a text again, or that nothing follows.
_OVER = ("done", "completed", "stop", "end", "finished", "failed")
_ENDS = ("done", "stop", "finish_reason", "finishReason", "is_finished")
# From this length on a string may be a payload in base64; shorter ones are always texts.
_LONG = 1024


def request_slots(document: Any) -> list[Slot]:
    """Every string of a document, which may be of any type."""
    return [slot for _, slot in _texts([document], 0, UNKNOWN, ())]


but_tools = request_slots


def _texts(holder: Any, key: str | int, surface: Surface, place: Place) -> Iterator[tuple[Place, Slot]]:
    """Every string at and below a place, but for payloads in base64 that are no text."""
    value = holder[key]
    if isinstance(value, str):
        for slot in payload(holder, key, surface) if len(value) >= _LONG else walk(holder, key, surface):
            yield place, slot
    elif isinstance(value, dict):
        for inner in value:
            yield from _texts(value, inner, surface, (*place, inner))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from _texts(value, index, surface, (*place, index))


def reply_texts(document: Any) -> list[Spoken]:
    repeats = _is_over(document)
    return [_spoken(place, slot, repeats) for place, slot in _texts([document], 0, OPAQUE, ())]


def _spoken(place: Place, slot: Slot, repeats: bool) -> Spoken:
    if repeats or _RUNNING.isdisjoint(place) or (place and place[-1] in _WORDS):
        return Spoken(_ALONE, slot, whole=True)
    return Spoken(Lane(RUNNING, 0, ".".join(map(str, place))), slot)


_ALONE = Lane(OPAQUE)


def _is_over(document: Any) -> bool:
    kind = document.get("type") or document.get("event") or "" if isinstance(document, dict) else ""
    return isinstance(kind, str) and kind.endswith(_OVER)


def ended(document: Any, lanes: Iterable[Lane]) -> list[Lane]:
    over = isinstance(document, dict) and (_is_over(document) or any(document.get(name) for name in _ENDS))
    return list(lanes) if over else []


def is_error(document: Any) -> bool:
    return isinstance(document, dict) and small.is_error(document)


def error_text(document: Any) -> str:
    """What an error reply says went wrong."""
    return small.error_text(document) if isinstance(document, dict) else ""


def usage(document: Any) -> Usage | None:
    """As OpenAI or Anthropic report it, wherever an API does as they do."""
    told = document.get("usage") if isinstance(document, dict) else None
    apart = isinstance(told, dict) and "input_tokens" in told and not reported.ANTHROPIC_ONLY.isdisjoint(told)
    return reported.anthropic(told) if apart else reported.openai(told)


class RunningText:
    """One text of any length, such as a file. What begins like JSON is looked at as it stands and then as JSON.

    As it stands because a file may hold anything; as JSON because escapes would hide what they spell. `said` puts an
    event of a lane through the chain and returns what is said on it.
    """

    __slots__ = ("_as_json", "_begun", "_lane", "_said")

    def __init__(self, said: Callable[[Lane, Event], str], lane: Lane) -> None:
        self._said, self._lane = said, lane
        self._begun = False
        self._as_json: Lane | None = None

    def feed(self, text: str) -> str:
        if text and not self._begun:
            self._begun = True
            self._as_json = self._lane._replace(surface=_as_json(self._lane.surface)) if _JSON.match(text) else None
        return self._again(self._said(self._lane, Text(self._lane, text))) if text else ""

    def finish(self) -> str:
        rest = self._again(self._said(self._lane, End(self._lane)))
        return rest if self._as_json is None else rest + self._said(self._as_json, End(self._as_json))

    def _again(self, text: str) -> str:
        lane = self._as_json
        return text if lane is None or not text else self._said(lane, Text(lane, text))


_JSON = re.compile(r"[\s\ufeff]*(?:[\[{]\s*)+(?:[\"\]}]|\Z)")


@lru_cache(maxsize=8)
def _as_json(surface: Surface) -> Surface:
    """The same place, read in another way."""
    return replace(surface, json=True)


class Writer:
    """Knows no more of the API than the frames that came."""

    complete = True
    done = True

    def begin(self, document: Any) -> None:
        pass

    def end(self, document: Any) -> None:
        pass

    def carry(self, template: Any, lane: Lane, text: str) -> Any:
        """A copy of the lane's last frame in which no other text runs on."""
        frame = deepcopy(template)
        for spoken in reply_texts(frame):
            if not spoken.whole:
                spoken.slot.replace(text if spoken.lane == lane else "")
        return frame

    def blocked(self, said: Mapping[Lane, str]) -> Sequence[Any]:
        return [small.withheld()]

    def finished(self, message: str, said: Mapping[Lane, str], *, cut: bool = False) -> Sequence[Any]:
        return [small.withheld(message)]


writer = Writer
plain = small.plain
choices_in = small.choices_in
spoil = small.spoil
ask_usage = small.ask_usage
hosted = small.hosted
answer = small.answer
answer_frames = small.answer_frames
error_body = small.error_body
error_frames = small.error_frames


def event_of(document: Any) -> bytes | None:
    """A frame's own name is kept where it is carried; what documents of an unknown API call it is not known."""
    return None
