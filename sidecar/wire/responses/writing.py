"""How a stream of `/v1/responses` goes on from where it has come to, and replies of our own."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ...core.surface import Lane, Surface
from ...errors import ExchangeError
from .. import sse
from ..errors import openai_shape
from ..jsondoc import encode
from . import places
from .events import (
    BY_SURFACE,
    ITEM_ADDED,
    ITEM_DONE,
    LAST,
    LIFECYCLE,
    OUTPUTS,
    RUNNING,
    SHELL_OUTPUT,
    TRANSCRIPT,
    event_of,
    index,
)

Document = dict[str, Any]
Said = Mapping[Lane, str]


@dataclass(slots=True)
class _Item:
    """An item of the output: how it began, the parts that began in it, what of it is over, and how it ended."""

    begun: Document
    parts: dict[tuple[str, int], Document] = field(default_factory=dict)
    over: set[tuple[str, int]] = field(default_factory=set)
    done: Document | None = None

    @property
    def id(self) -> str:
        return str(self.begun.get("id", ""))


_DELTAS = {f"{running.events}.delta": running for running in RUNNING}
_PARTS = {f"response.{running.part}.added": (running.part, running.at) for running in RUNNING if running.part}
_OVER = {f"{running.events}.done": (running.events, running.at) for running in RUNNING} | {
    f"response.{part}.done": (part, at) for part, at in _PARTS.values()
}


class Writer:
    """What the client has seen of a response. Documents are kept as they are: what is edited in them is seen, too."""

    def __init__(self) -> None:
        self._response: Document = {}
        self._items: dict[int, _Item] = {}
        self._sequence = -1
        self._over = False

    @property
    def complete(self) -> bool:
        return self._over

    @property
    def done(self) -> bool:
        return self._over

    def begin(self, document: Document) -> None:
        sequence, choice, kind = (document.get(field) for field in ("sequence_number", "output_index", "type"))
        if isinstance(sequence, int):
            self._sequence = sequence
        if isinstance(choice, int) and choice not in self._items and isinstance(kind, str) and kind in _DELTAS:
            self._items[choice] = _Item(_unannounced(document))

    def end(self, document: Document) -> None:
        kind, choice = document.get("type"), document.get("output_index")
        if not isinstance(kind, str):
            return
        self._over = self._over or kind in LAST or kind == "error"
        response = document.get("response")
        if kind in LIFECYCLE and isinstance(response, dict):
            self._response = response
        elif isinstance(choice, int):
            self._end_of_item(document, kind, choice)

    def _end_of_item(self, document: Document, kind: str, choice: int) -> None:
        item, part = document.get("item"), document.get("part")
        if kind == ITEM_ADDED and isinstance(item, dict):
            self._items[choice] = _Item(item)
        elif kind == ITEM_DONE and isinstance(item, dict):
            self._items.setdefault(choice, _Item(item)).done = item
        elif choice in self._items and kind in _PARTS and isinstance(part, dict):
            name, at = _PARTS[kind]
            self._items[choice].parts[name, index(document, at)] = part
        elif choice in self._items and kind in _OVER:
            events, at = _OVER[kind]
            self._items[choice].over.add((events, index(document, at)))

    def carry(self, template: Document | None, lane: Lane, text: str) -> Document:
        if lane.surface is places.UNKNOWN_REPLY:
            return _like(template or {}, text)
        document = self._delta(lane, text)
        if template is None:
            return document
        if template.get("type") == document["type"]:
            return _like(template, document["delta"])
        return document | {k: template[k] for k in ("item_id", "sequence_number") if k in template and k in document}

    def _delta(self, lane: Lane, text: str) -> Document:
        surface, choice = lane.surface, lane.choice
        if surface is places.TRANSCRIPT:
            return {"type": f"{TRANSCRIPT}.delta", "delta": text, "sequence_number": self._sequence}
        place: Document = {"item_id": self._id(choice), "output_index": choice}
        if surface in OUTPUTS:
            document: Document = {"type": f"{SHELL_OUTPUT}.delta", **place, "command_index": lane.part}
            return document | {"delta": {OUTPUTS[surface]: text}, "sequence_number": self._sequence}
        running = BY_SURFACE[surface]
        document = {"type": f"{running.events}.delta", **_place(place, lane), "delta": text}
        return document | _computed(surface) | {"sequence_number": self._sequence}

    def _id(self, choice: int) -> str:
        return self._items[choice].id if choice in self._items else ""

    # --- endings ---

    def blocked(self, said: Said) -> Sequence[Document]:
        return list(self._numbered([*self._opening(), *self._closing(said), self._last("incomplete")]))

    def finished(self, message: str, said: Said, *, cut: bool = False) -> Sequence[Document]:
        if cut and not message:
            ends = [*self._opening(), *self._closing(said), self._last("incomplete", "max_output_tokens")]
            return list(self._numbered(ends))
        frames = [*self._opening()]
        lane = self._open_text(said)
        if lane is None:
            frames += self._closing(said)
            lane = Lane(places.TEXT, max(self._items, default=-1) + 1, 0)
            frames += self._message(lane)
        frames.append(self._delta(lane, message))
        frames += self._closing({**said, lane: said.get(lane, "") + message}, complete=lane.choice)
        return list(self._numbered([*frames, self._last("completed")]))

    def _opening(self) -> Iterator[Document]:
        """A stream of which nothing has left has to begin first."""
        if not self._response and not self._items:
            self._response = response_with({}, "in_progress", [])
            yield {"type": "response.created", "response": self._response}

    def _open_text(self, said: Said) -> Lane | None:
        """The last text of the answer, if more of it may follow."""
        for choice, item in self._items.items():
            parts = [(part, at) for part, at in item.parts if part == "content_part"]
            if item.done is None and item.begun.get("type") == "message" and parts:
                lane = Lane(places.TEXT, choice, parts[-1][1])
                is_text = item.parts[parts[-1]].get("type") == "output_text"
                if is_text and ("response.output_text", lane.part) not in item.over:
                    return lane
        return None

    def _message(self, lane: Lane) -> Iterator[Document]:
        """A new item with an empty text, written and noted."""
        name = str(self._response.get("id")).removeprefix("resp_")
        item: Document = {"id": f"msg_{name}_{lane.choice}", "type": "message", "status": "in_progress"}
        item |= {"role": "assistant", "content": []}
        part = _part(places.TEXT, "")
        yield {"type": ITEM_ADDED, "output_index": lane.choice, "item": item}
        place: Document = {"item_id": item["id"], "output_index": lane.choice}
        yield {"type": "response.content_part.added", **_place(place, lane), "part": part}
        self._items[lane.choice] = _Item(item, {("content_part", 0): part})

    def _closing(self, said: Said, complete: int | None = None) -> Iterator[Document]:
        """The ends of all items that are open. The one at `complete` is whole, the others broke off."""
        for choice, item in sorted(self._items.items()):
            if item.done is None:
                yield from self._close(choice, item, said, "completed" if choice == complete else "incomplete")

    def _close(self, choice: int, item: _Item, said: Said, status: str) -> Iterator[Document]:
        whole = deepcopy(item.begun)
        for lane in _lanes(choice, item, said):
            text = said.get(lane, "")
            put(whole, lane, text)
            if lane.surface in BY_SURFACE:
                yield from _done(item, lane, text)
        if "status" in whole:
            whole["status"] = _BROKEN_OFF.get(str(whole.get("type")), status) if status == "incomplete" else status
        item.done = whole
        yield {"type": ITEM_DONE, "output_index": choice, "item": whole}

    def _last(self, status: str, reason: str = "content_filter") -> Document:
        output = [item.done or item.begun for _, item in sorted(self._items.items())]
        self._over = True
        return {"type": f"response.{status}", "response": response_with(self._response, status, output, reason)}

    def _numbered(self, frames: Sequence[Document]) -> Iterator[Document]:
        for frame in frames:
            self._sequence += 1
            yield {**frame, "sequence_number": self._sequence}


writer = Writer

# What the status of an item that broke off is called where it is not "incomplete".
_BROKEN_OFF = {
    "image_generation_call": "failed",
    "apply_patch_call": "in_progress",
    "apply_patch_call_output": "failed",
}


_TYPES = {
    places.TEXT: "message",
    places.REFUSAL: "message",
    places.REASONING: "reasoning",
    places.SUMMARY: "reasoning",
    places.ARGUMENTS: "function_call",
    places.MCP_ARGUMENTS: "mcp_call",
    places.INPUT: "custom_tool_call",
    places.CODE: "code_interpreter_call",
    places.COMMAND: "shell_call",
}


def _unannounced(document: Document) -> Document:
    """An item of which only deltas are known."""
    kind = _TYPES[_DELTAS[document["type"]].surface]
    item: Document = {"id": document.get("item_id", ""), "type": kind, "status": "in_progress"}
    return item | ({"role": "assistant", "content": []} if kind == "message" else {})


def _like(template: Document, delta: Any) -> Document:
    """The same event with other text, without what was computed over its own."""
    document = {key: value for key, value in template.items() if key != "obfuscation"}
    return document | {"delta": delta} | ({"logprobs": []} if "logprobs" in document else {})


def _place(place: Document, lane: Lane) -> Document:
    at = BY_SURFACE[lane.surface].at
    return {**place, at: lane.part} if at else place


def _computed(surface: Surface) -> Document:
    return {"logprobs": []} if surface is places.TEXT else {}


def _part(surface: Surface, text: str) -> Document:
    match surface:
        case _ if surface is places.TEXT:
            return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
        case _ if surface is places.REFUSAL:
            return {"type": "refusal", "refusal": text}
        case _ if surface is places.SUMMARY:
            return {"type": "summary_text", "text": text}
        case _:
            return {"type": "reasoning_text", "text": text}


def _lanes(choice: int, item: _Item, said: Said) -> list[Lane]:
    """The running texts of an item in order: those that were heard, and those that were only announced."""
    heard = {lane for lane in said if lane.choice == choice and (lane.surface in BY_SURFACE or lane.surface in OUTPUTS)}
    by_type = {_part(r.surface, "")["type"]: r.surface for r in RUNNING if r.part}
    for (_, at), part in item.parts.items():
        heard.add(Lane(by_type.get(str(part.get("type")), places.TEXT), choice, at))
    return sorted(heard, key=lambda lane: (_HOLDERS.get(lane.surface, ()), lane.part))


def _done(item: _Item, lane: Lane, text: str) -> Iterator[Document]:
    """The events that end a running text, and the part around it, if they have not come."""
    running = BY_SURFACE[lane.surface]
    place = _place({"item_id": item.id, "output_index": lane.choice}, lane)
    if (running.events, lane.part) not in item.over:
        yield {"type": f"{running.events}.done", **place, running.field: text, **_computed(lane.surface)}
    if running.part and (running.part, lane.part) not in item.over:
        yield {"type": f"response.{running.part}.done", **place, "part": _part(lane.surface, text)}


_HOLDERS: dict[Surface, tuple[str, ...]] = {
    places.TEXT: ("content",),
    places.REFUSAL: ("content",),
    places.REASONING: ("content",),
    places.SUMMARY: ("summary",),
    places.COMMAND: ("action", "commands"),
    places.STDOUT: ("output",),
    places.STDERR: ("output",),
}


def put(item: Document, lane: Lane, text: str) -> None:
    """Puts a running text where it stands in its item."""
    surface, way = lane.surface, _HOLDERS.get(lane.surface)
    if way is None:
        item[BY_SURFACE[surface].field] = text
        return
    for step in way[:-1]:
        inner = item[step] if isinstance(item.get(step), dict) else {}
        item[step] = inner
        item = inner
    held = item[way[-1]] if isinstance(item.get(way[-1]), list) else []
    item[way[-1]] = held
    # Texts come in their order; one that would leave a gap takes the next place.
    at = min(max(int(lane.part), 0), len(held))
    held[at:] = [_with(surface, text, held[at] if at < len(held) else None), *held[at + 1 :]]


def _with(surface: Surface, text: str, was: Any) -> Any:
    """What stands at the place of a running text in its item's list."""
    if surface in OUTPUTS:
        # Of the two outcomes that the API knows, the one without an exit code.
        nothing = {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}
        return {**nothing, **(was if isinstance(was, dict) else {}), OUTPUTS[surface]: text}
    return text if surface is places.COMMAND else _part(surface, text)


# --- replies of our own --------------------------------------------------------------------------------------

_NOTHING_USED = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}
# What the official client's type requires of a response.
_REQUIRED: Document = {
    "id": "resp_0",
    "object": "response",
    "created_at": 0,
    "status": "completed",
    "model": "",
    "instructions": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "metadata": {},
    "temperature": None,
    "top_p": None,
    "usage": None,
}
# What may be kept of a reply that has not been looked at to its end: it holds no text.
_KEPT = ("id", "created_at", "model", "previous_response_id", "service_tier", "usage")


def response_with(head: Document, status: str, output: Sequence[Document], reason: str = "content_filter") -> Document:
    """The response object with this output. `head` is an earlier one of the response, `reason` why it breaks off."""
    details = {"reason": reason} if status == "incomplete" else None
    kept = {key: value for key, value in head.items() if key != "output_text"}
    own = {"status": status, "error": None, "incomplete_details": details, "output": list(output)}
    return {**_REQUIRED, **kept, **own}


def _head(identity: Document) -> Document:
    """`created` and another API's id are accepted too."""
    head = {key: identity[key] for key in _KEPT if key in identity}
    name = str(head.get("id", ""))
    head["id"] = name if name.startswith("resp") else f"resp_{name.rpartition('-')[2] or 0}"
    return {"created_at": identity.get("created", 0), "usage": _NOTHING_USED} | head


def answer(identity: Document, text: str) -> Document | None:
    """A whole, complete reply with this text; None in place of a list of items.

    `identity` holds id, created (or created_at) and model, and may hold more.
    """
    if identity.get("object") == "list":
        return None
    frames = _answer(identity, text)
    response: Document = frames[-1]["response"]
    return response


def answer_frames(identity: Document, text: str) -> bytes:
    """The same as a complete stream."""
    return b"".join(sse.render(encode(frame), event_of(frame)) for frame in _answer(identity, text))


def _answer(identity: Document, text: str) -> list[Document]:
    whole, stream = _head(identity), Writer()
    begun = response_with(whole | {"usage": None}, "in_progress", [])
    frames: list[Document] = [
        {"type": f"response.{status}", "response": begun, "sequence_number": number}
        for number, status in enumerate(("created", "in_progress"))
    ]
    for frame in frames:
        stream.begin(frame)
        stream.end(frame)
    frames.extend(stream.finished(text, {}))
    frames[-1]["response"]["usage"] = whole["usage"]
    return frames


error_body = openai_shape


def error_frames(error: ExchangeError) -> Sequence[Document]:
    """An `error` event of the API, with the object beside it that makes the official client raise it."""
    body = openai_shape(error)
    said = {key: body["error"][key] for key in ("code", "message", "param")}
    return [{"type": "error", **said, "sequence_number": 0, **body}]
