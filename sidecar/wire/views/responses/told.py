"""From a stream to the whole reply, and back."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from ...responses import places
from ...responses.events import ANNOTATED, BY_SURFACE, ITEM_ADDED, ITEM_DONE, LAST, Running
from ...stream import Document
from ..shape import mapping, sequence, text_of

_WHOLE: Final = frozenset(("response.completed", "response.incomplete"))


class Gather:
    """The reply is what the stream's last event holds.

    Some servers leave the output of that event empty; it is then put together from the items' own last events.
    """

    __slots__ = ("_failed", "_items", "_reply")

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._reply: Document | None = None
        self._failed = False

    def feed(self, document: Document) -> None:
        kind, response, index = document.get("type"), document.get("response"), document.get("output_index")
        if not isinstance(kind, str):
            return
        if kind in _WHOLE and isinstance(response, dict):
            self._reply = deepcopy(response)
        elif kind in LAST or kind == "error":
            self._failed = True
        elif kind == ITEM_DONE and isinstance(index, int) and isinstance(document.get("item"), dict):
            self._items[index] = deepcopy(document["item"])

    @property
    def reply(self) -> Document | None:
        if self._reply is None or self._failed:
            return None
        if not self._reply.get("output") and self._items:
            self._reply["output"] = [item for _, item in sorted(self._items.items())]
        return self._reply


# --- the stream that tells a whole reply -------------------------------------------------------------------------

# What is known only at the end.
_LATE: Final = ("usage", "error", "incomplete_details", "completed_at")


def frames(document: Document) -> Sequence[Document]:
    """The events of a stream, each a document of its own. Every text comes in one delta.

    Items of whose work the API has events, such as a search, are told without these: added, and done.
    """
    told = [event | {"sequence_number": number} for number, event in enumerate(_events(document))]
    return [deepcopy(event) for event in told]


def _events(response: Document) -> Iterator[Document]:
    begun = {field: value for field, value in response.items() if field != "output_text"}
    begun |= {field: None for field in _LATE if field in response}
    begun |= {"status": "in_progress", "output": []}
    for status in ("created", "in_progress"):
        yield {"type": f"response.{status}", "response": begun}
    for index, item in enumerate(sequence(response.get("output"))):
        yield from _item(index, item)
    last = f"response.{text_of(response.get('status'))}"
    yield {"type": last if last in LAST else "response.completed", "response": response}


def _item(index: int, item: Any) -> Iterator[Document]:
    fields = mapping(item)
    place = {"item_id": text_of(fields.get("id")), "output_index": index}
    yield {"type": ITEM_ADDED, "output_index": index, "item": _begun(item)}
    kind = text_of(fields.get("type"))
    for holder in _HOLDERS.get(kind, ()):
        for at, part in enumerate(sequence(fields.get(holder))):
            yield from _part(place | {f"{holder}_index": at}, holder, part)
    if kind in _FIELDS and isinstance(text := fields.get(_FIELDS[kind].field), str):
        name = {"name": fields["name"]} if kind == "function_call" and "name" in fields else {}
        yield from _text(place, _FIELDS[kind], text, last=name)
    if kind == "shell_call":
        yield from _commands(index, _commands_of(fields))
    yield {"type": ITEM_DONE, "output_index": index, "item": item}


def _begun(item: Any) -> Any:
    """An item as it is announced: its parts come later, its running text is empty."""
    if not isinstance(item, dict):
        return item
    kind = text_of(item.get("type"))
    begun = item | ({"status": "in_progress"} if "status" in item else {})
    begun |= {holder: [] for holder in _HOLDERS.get(kind, ()) if isinstance(item.get(holder), list)}
    if kind in _FIELDS and isinstance(item.get(_FIELDS[kind].field), str):
        begun[_FIELDS[kind].field] = ""
    if kind == "shell_call" and _commands_of(item):
        begun["action"] = item["action"] | {"commands": []}
    return begun


# The lists in which an item has its parts, in the order in which they are told.
_HOLDERS: Final = {"message": ("content",), "reasoning": ("summary", "content")}
# What events are called of the parts in such a list.
_PARTS: Final = {"content": "content_part", "summary": "reasoning_summary_part"}
_SPEECH: Final = {
    "output_text": BY_SURFACE[places.TEXT],
    "refusal": BY_SURFACE[places.REFUSAL],
    "reasoning_text": BY_SURFACE[places.REASONING],
    "summary_text": BY_SURFACE[places.SUMMARY],
}
# Items with one running text.
_FIELDS: Final = {
    "function_call": BY_SURFACE[places.ARGUMENTS],
    "custom_tool_call": BY_SURFACE[places.INPUT],
    "mcp_call": BY_SURFACE[places.MCP_ARGUMENTS],
    "code_interpreter_call": BY_SURFACE[places.CODE],
}
_COMMAND: Final = BY_SURFACE[places.COMMAND]


def _part(place: Document, holder: str, part: Any) -> Iterator[Document]:
    fields, events = mapping(part), f"response.{_PARTS[holder]}"
    running = _SPEECH.get(text_of(fields.get("type")))
    if running is None or running.part != _PARTS[holder] or not isinstance(fields.get(running.field), str):
        yield {"type": f"{events}.added", **place, "part": part}
    else:
        empty: Document = {field: [] for field in ("annotations", "logprobs") if field in fields}
        yield {"type": f"{events}.added", **place, "part": fields | empty | {running.field: ""}}
        computed = {"logprobs": sequence(fields.get("logprobs"))} if running is _SPEECH["output_text"] else {}
        annotations = _annotations(place, sequence(fields.get("annotations")))
        yield from _text(place, running, fields[running.field], both=computed, between=annotations)
    yield {"type": f"{events}.done", **place, "part": part}


def _annotations(place: Document, annotations: list[Any]) -> list[Document]:
    return [
        {"type": ANNOTATED, **place, "annotation_index": at, "annotation": annotation}
        for at, annotation in enumerate(annotations)
    ]


_NOTHING: Final[Document] = {}


def _text(
    place: Document,
    running: Running,
    text: str,
    *,
    both: Document = _NOTHING,
    last: Document = _NOTHING,
    between: Sequence[Document] = (),
) -> Iterator[Document]:
    """A running text. `both` of its events hold some fields, the last one others."""
    if text:
        yield {"type": f"{running.events}.delta", **place, "delta": text, **both}
    yield from between
    yield {"type": f"{running.events}.done", **place, **last, running.field: text, **both}


def _commands_of(item: Document) -> list[Any]:
    return sequence(mapping(item.get("action")).get("commands"))


def _commands(index: int, commands: list[Any]) -> Iterator[Document]:
    for at, command in enumerate(commands):
        place = {"output_index": index, _COMMAND.at: at}
        if isinstance(command, str):
            yield {"type": f"{_COMMAND.events}.added", **place, "command": ""}
            yield from _text(place, _COMMAND, command)
