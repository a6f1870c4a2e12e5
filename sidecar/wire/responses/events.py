"""The texts of replies: of a response, buffered or one event of its stream, and of lists of items.

Events as in the OpenAI API reference and the official client's types (openai 3.57). Every text of an item has one lane
wherever it is said: in deltas, in the `done` events, in the item's last event and in the response object of the
stream's last. `choice` is the item's `output_index`, its place in `output`; `part` says where in the item.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple

from ...core.surface import Kind, Lane, Slot, Surface
from ...core.usage import Usage
from .. import asking
from .. import usage as reported
from ..hosted import in_responses
from ..stream import Spoken
from . import items, places
from .items import ANNOTATION, RESPONSE_FIELDS, Found, Path, Payload, Spec
from .places import HERE, REPLY, TextSlot

_HERE = REPLY.contents[Kind.ASSISTANT]


class Running(NamedTuple):
    """A text that comes in deltas: `{events}.delta`, then `{events}.done` with all of it in `field`.

    `at` counts such texts within an item; `part` is the event of the content part around it.
    """

    surface: Surface
    events: str
    field: str
    at: str = ""
    part: str = ""


RUNNING = (
    Running(places.SUMMARY, "response.reasoning_summary_text", "text", "summary_index", "reasoning_summary_part"),
    Running(places.REASONING, "response.reasoning_text", "text", "content_index", "content_part"),
    Running(places.TEXT, "response.output_text", "text", "content_index", "content_part"),
    Running(places.REFUSAL, "response.refusal", "refusal", "content_index", "content_part"),
    Running(places.ARGUMENTS, "response.function_call_arguments", "arguments"),
    Running(places.MCP_ARGUMENTS, "response.mcp_call_arguments", "arguments"),
    Running(places.INPUT, "response.custom_tool_call_input", "input"),
    Running(places.CODE, "response.code_interpreter_call_code", "code"),
    Running(places.COMMAND, "response.shell_call_command", "command", "command_index"),
)
BY_SURFACE = {running.surface: running for running in RUNNING}
# The two texts of one event.
OUTPUTS = {places.STDOUT: "stdout", places.STDERR: "stderr"}
SHELL_OUTPUT = "response.shell_call_output_content"
TRANSCRIPT = "response.audio.transcript"
_LANES = frozenset((*BY_SURFACE, *OUTPUTS, places.TRANSCRIPT))

LAST = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))
LIFECYCLE = LAST | {"response.created", "response.queued", "response.in_progress"}
ITEM_ADDED, ITEM_DONE = "response.output_item.added", "response.output_item.done"
ANNOTATED = "response.output_text.annotation.added"


class Event(NamedTuple):
    """The field of an event that holds texts. `at` counts them within the item; `more`: others follow on them."""

    field: str
    spec: Spec
    at: str = ""
    more: bool = False


def _running_events() -> Iterator[tuple[str, Event]]:
    named = {surface: field for field, surface in REPLY.fields.items()} | {places.TEXT: HERE}
    for surface, events, field, index, _ in RUNNING:
        yield f"{events}.added", Event(field, named[surface], index, more=True)
        yield f"{events}.delta", Event("delta", named[surface], index, more=True)
        yield f"{events}.done", Event(field, named[surface], index)


_PART: Spec = items.Parts(keyed=False)
_EVENTS: dict[str, Event] = {
    **dict(_running_events()),
    f"{SHELL_OUTPUT}.delta": Event("delta", {"stdout": "stdout", "stderr": "stderr"}, "command_index", more=True),
    f"{SHELL_OUTPUT}.done": Event("output", items.ITEMS["shell_call_output"]["output"], "command_index"),
    "response.content_part.added": Event("part", _PART, "content_index", more=True),
    "response.content_part.done": Event("part", _PART, "content_index"),
    "response.reasoning_summary_part.added": Event("part", _PART, "summary_index", more=True),
    "response.reasoning_summary_part.done": Event("part", _PART, "summary_index"),
    ANNOTATED: Event("annotation", ANNOTATION, "content_index"),
    "response.image_generation_call.partial_image": Event("partial_image_b64", Payload("output")),
    "response.audio.delta": Event("delta", Payload("audio")),
    f"{TRANSCRIPT}.delta": Event("delta", "transcript", more=True),
}
# What else events hold: words.
_HEAD: dict[str, Spec] = {
    **dict.fromkeys(("output_format", "quality", "size", "background", "code"), items.WORD),
    "message": "error",
    "param": "error",
    "error": "error",
}


_PLACES = {"content_index": "content", "summary_index": "summary", "command_index": "commands"}


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply, of an item or a list of them, or of one event. What is none of these is walked."""
    kind = document.get("type")
    if isinstance(kind, str) and kind in items.ITEMS:
        return list(_said(items.item({"item": document}, "item", REPLY)))
    if isinstance(kind, str):
        return list(_event(document, kind))
    if isinstance(document.get("output"), list) or str(document.get("object")).startswith("response"):
        return list(_response(document))
    if isinstance(document.get("data"), list):
        return [*_items(document, "data"), *_beside(document, _words_of_lists, {"data"})]
    if "error" in document:
        return list(_beside(document, {"error": "error"}))
    walked = (found for field in document for found in items.below(document, field, places.OPAQUE, (field,)))
    return list(_said(walked))


_words_of_lists: dict[str, Spec] = dict.fromkeys(("first_id", "last_id"), items.WORD)


def _event(document: dict[str, Any], kind: str) -> Iterator[Spoken]:
    choice = index(document, "output_index")
    apart = _apart(document, kind)
    if apart == "response":
        yield from _response(document[apart])
    elif apart == "item":
        yield from _said(items.item(document, apart, REPLY), choice, more=kind == ITEM_ADDED)
    elif apart == "delta" and kind not in _EVENTS:
        # An event that nobody documents, but a running text like others.
        yield Spoken(Lane(places.UNKNOWN_REPLY, choice, kind), Slot(places.UNKNOWN_REPLY, document, apart))
    elif apart:
        event = _EVENTS[kind]
        found = items.texts(document, apart, event.spec, _HERE, _way(document, kind, event))
        yield from _said(found, choice, more=event.more)
    yield from _beside(document, _HEAD, {apart})


def _apart(document: dict[str, Any], kind: str) -> str:
    """The field of an event that is read in a way of its own, if it has one."""
    if kind in LIFECYCLE:
        return "response" if isinstance(document.get("response"), dict) else ""
    if kind in (ITEM_ADDED, ITEM_DONE):
        return "item" if "item" in document else ""
    if kind in _EVENTS:
        return _EVENTS[kind].field if document.get(_EVENTS[kind].field) is not None else ""
    return "delta" if kind.endswith(".delta") and isinstance(document.get("delta"), str) else ""


def _way(document: dict[str, Any], kind: str, event: Event) -> Path:
    """The way to an event's text from its item: that of the same text in the whole item."""
    if not event.at:
        return ()
    way: Path = (_PLACES[event.at], index(document, event.at))
    return (*way, "annotations", index(document, "annotation_index")) if kind == ANNOTATED else way


def _response(response: dict[str, Any]) -> Iterator[Spoken]:
    """What the model said, and what the provider says again of the request."""
    if response.get("instructions") is not None:
        for number, found in items.items(response, "instructions", REPLY, places.ECHOED_INSTRUCTIONS):
            # Apart from the items of the output.
            yield _spoken(found, -1 - number)
    if response.get("output") is not None:
        yield from _items(response, "output")
    yield from _beside(response, RESPONSE_FIELDS, {"output", "instructions"})


def _items(holder: dict[str, Any], field: str) -> Iterator[Spoken]:
    return (_spoken(found, number) for number, found in items.items(holder, field, REPLY, places.TEXT))


def _beside(holder: dict[str, Any], spec: dict[str, Spec], apart: AbstractSet[str] = frozenset()) -> Iterator[Spoken]:
    return _said(items.fields(holder, spec, REPLY.fields, (), apart))


def _said(found: Iterable[Found], choice: int = 0, more: bool = False) -> Iterator[Spoken]:
    return (_spoken(each, choice, more) for each in found)


def _spoken(found: Found, choice: int, more: bool = False) -> Spoken:
    path, slot = found
    if slot.surface in _LANES:
        part = next((step for step in path if isinstance(step, int)), 0)
        return Spoken(_lane(slot.surface, choice, part), slot, whole=not more)
    return Spoken(Lane(slot.surface, choice, ".".join(map(str, path))), slot, whole=True)


@lru_cache(maxsize=256)
def _lane(surface: Surface, choice: int, part: int) -> Lane:
    return Lane(surface, choice, part)


def index(document: dict[str, Any], field: str) -> int:
    number = document.get(field)
    return number if isinstance(number, int) else 0


_PLAIN = {f"{running.events}.delta": (running.surface, running.at) for running in RUNNING}
_PLAIN_FIELDS = frozenset(
    ("type", "item_id", "output_index", "content_index", "summary_index", "command_index", "delta", "sequence_number")
) | {"logprobs", "obfuscation"}


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of an event that holds nothing else: nearly every event of a stream, told with few questions."""
    kind = document.get("type")
    known = _PLAIN.get(kind) if type(kind) is str else None
    if known is None or not document.keys() <= _PLAIN_FIELDS:
        return None
    surface, at = known
    choice, part, text = document.get("output_index"), document.get(at, 0), document.get("delta")
    if type(choice) is not int or type(part) is not int or type(text) is not str or not text:
        return None
    if type(document.get("item_id", "")) is not str or type(document.get("obfuscation", "")) is not str:
        return None
    if type(document.get("sequence_number", 0)) is not int or type(document.get("logprobs", [])) is not list:
        return None
    return _lane(surface, choice, part), TextSlot(surface, document, "delta"), text


_DONE = {f"{running.events}.done": (frozenset((running.surface,)), running.at) for running in RUNNING} | {
    "response.content_part.done": (frozenset((places.TEXT, places.REFUSAL, places.REASONING)), "content_index"),
    "response.reasoning_summary_part.done": (frozenset((places.SUMMARY,)), "summary_index"),
    f"{SHELL_OUTPUT}.done": (frozenset(OUTPUTS), "command_index"),
    f"{TRANSCRIPT}.done": (frozenset((places.TRANSCRIPT,)), ""),
}


def ended(document: dict[str, Any], lanes: Iterable[Lane]) -> list[Lane]:
    """The lanes that this event says are done, alone, with their item, or with the whole response."""
    kind = document.get("type")
    if not isinstance(kind, str):
        return []
    if kind in LAST:
        return list(lanes)
    choice = index(document, "output_index")
    if kind == ITEM_DONE:
        return [lane for lane in lanes if lane.choice == choice]
    if kind in _DONE:
        surfaces, at = _DONE[kind]
        part = index(document, at)
        return [lane for lane in lanes if lane.surface in surfaces and lane.choice == choice and lane.part == part]
    delta = f"{kind.removesuffix('.done')}.delta"
    return [lane for lane in lanes if lane.choice == choice and lane.part == delta]


def choices_in(document: dict[str, Any]) -> list[int]:
    """No name comes in pieces here."""
    return []


def is_error(document: dict[str, Any]) -> bool:
    """An event that a client raises. A response that failed is a reply: its object says all that was said."""
    return document.get("type") == "error" or (bool(document.get("error")) and "output" not in document)


def error_text(document: dict[str, Any]) -> str:
    """What an error reply, or a response that failed, says went wrong."""
    holder = document["response"] if isinstance(document.get("response"), dict) else document
    error = holder.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Empties an event that points into a text that has changed: it would point beside it.

    What stands beside a text in the same object goes with it, see TextSlot.
    """
    way = (document.get("output_index"), document.get("content_index"))
    if document.get("type") == ANNOTATED and lane.surface is places.TEXT and way == (lane.choice, lane.part):
        document.clear()


def usage(document: dict[str, Any]) -> Usage | None:
    """What a response reports, whole or in an event."""
    response = document.get("response")
    return reported.openai((response if isinstance(response, dict) else document).get("usage"))


ask_usage = asking.nothing_to_ask
hosted = in_responses


def event_of(document: dict[str, Any]) -> bytes | None:
    kind = document.get("type")
    return kind.encode("ascii", "ignore") if isinstance(kind, str) and kind.isprintable() else None
