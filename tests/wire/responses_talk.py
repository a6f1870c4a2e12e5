"""A provider that speaks `/v1/responses` and a client that listens: items to events and events to texts."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from sidecar.core.chain import Chain, Run
from sidecar.core.exchange import NO_DISGUISE, Disguise, Exchange, Request
from sidecar.wire import jsondoc, responses, sse
from sidecar.wire.stream import ReplyStream, edit_reply

Document = dict[str, Any]
Way = tuple[str | int, ...]
Cut = Callable[[str], Sequence[str]]


class Running(NamedTuple):
    """A text that comes in deltas: the events it comes in, its done event's field, and its way in the item."""

    events: str
    field: str
    way: Way
    place: Mapping[str, int]
    part: str = ""


def running(item: Document) -> Iterator[Running]:
    """The texts of an item that a stream says in pieces."""
    kind = item["type"]
    if kind in ("message", "reasoning"):
        for index, part in enumerate(item.get("summary", [])):
            yield _of_part("response.reasoning_summary_text", "summary", index, "text", part)
        for index, part in enumerate(item.get("content", [])):
            field = "refusal" if part["type"] == "refusal" else "text"
            yield _of_part(f"response.{part['type']}", "content", index, field, part)
    elif kind == "shell_call":
        for index in range(len(item["action"]["commands"])):
            way = ("action", "commands", index)
            yield Running("response.shell_call_command", "command", way, {"command_index": index})
    elif kind in _FIELDS:
        field = _FIELDS[kind][1]
        yield Running(_FIELDS[kind][0], field, (field,), {})


_FIELDS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
}
_BY_EVENTS = dict(_FIELDS.values())


def _of_part(events: str, holder: str, index: int, field: str, part: Document) -> Running:
    name = "reasoning_summary_part" if holder == "summary" else "content_part"
    return Running(events, field, (holder, index, field), {f"{holder}_index": index}, name)


def at(item: Any, way: Way) -> Any:
    for step in way:
        item = item[step]
    return item


def put(item: Any, way: Way, text: str) -> None:
    at(item, way[:-1])[way[-1]] = text


def response(items: Sequence[Document], status: str = "completed", **more: Any) -> Document:
    head = {"id": "resp_1", "object": "response", "created_at": 1741290958, "status": status, "model": "gpt-5"}
    head |= {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "tools": []}
    head |= {"tool_choice": "auto", "parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0, "x": 1.0}
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7} if status == "completed" else None
    return {**head, "usage": usage, "output": list(items), **more}


def events(items: Sequence[Document], cut: Cut, order: Sequence[int] = (0,), **more: Any) -> list[Document]:
    """The stream of a response. `order` says which text speaks next, over and over; (0,): one after the other."""
    told: list[Document] = []
    for status in ("created", "in_progress"):
        told.append({"type": f"response.{status}", "response": response([], "in_progress", **more)})
    groups = [list(enumerate(items))] if len(order) > 1 else [[pair] for pair in enumerate(items)]
    for group in groups:
        told.extend(_items(group, cut, order))
    told.append({"type": "response.completed", "response": response(items, **more)})
    return [deepcopy(event) | {"sequence_number": number} for number, event in enumerate(told)]


def _items(group: Sequence[tuple[int, Document]], cut: Cut, order: Sequence[int]) -> Iterator[Document]:
    for index, item in group:
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
    speaking = [
        (_place(index, item, one), one, item, list(cut(at(item, one.way))))
        for index, item in group
        for one in running(item)
    ]
    for place, one, item, _ in speaking:
        if one.part:
            yield {"type": f"response.{one.part}.added", **place, "part": _empty(at(item, one.way[:-1]))}
    turn = 0
    while any(left for *_, left in speaking):
        waiting = [entry for entry in speaking if entry[3]]
        place, one, _, left = waiting[order[turn % len(order)] % len(waiting)]
        logprobs = {"logprobs": [{"token": left[0], "logprob": -1}]} if one.field == "text" and one.part else {}
        yield {"type": f"{one.events}.delta", **place, "delta": left.pop(0), **logprobs, "obfuscation": "x1"}
        turn += 1
    for place, one, item, _ in speaking:
        yield {"type": f"{one.events}.done", **place, one.field: at(item, one.way)}
        if one.part:
            yield {"type": f"response.{one.part}.done", **place, "part": at(item, one.way[:-1])}
    for index, item in group:
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _place(index: int, item: Document, one: Running) -> Document:
    return {"item_id": item["id"], "output_index": index, **one.place}


def _begun(item: Document) -> Document:
    """An item as it is announced: parts come later, other texts are empty."""
    begun = deepcopy(item) | ({"status": "in_progress"} if "status" in item else {})
    if item["type"] in ("message", "reasoning"):
        return begun | {field: [] for field in ("content", "summary") if field in item}
    for one in running(item):
        put(begun, one.way, "")
    return begun


def _empty(part: Document) -> Document:
    return {field: "" if field in ("text", "refusal") else value for field, value in part.items()}


# -- through the sidecar


def stream_bytes(documents: Iterable[Document]) -> bytes:
    return b"".join(sse.render(_told(document), document["type"].encode()) for document in documents)


def _told(document: Document) -> bytes:
    text = json.dumps(document, ensure_ascii=False)
    halves = any("\ud800" <= character <= "\udfff" for character in text)
    return (json.dumps(document) if halves else text).encode()


def through(run: Run, data: bytes, sizes: Sequence[int] = (1 << 20,)) -> tuple[bytes, ReplyStream]:
    """What a client gets of a stream that comes in packets of these sizes."""
    stream, frames = ReplyStream(responses, run), sse.Events()
    out, place, turn = b"", 0, 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        out += stream.feed(frames.feed(data[place : place + size]))
        place, turn = place + size, turn + 1
    out += stream.feed(frames.finish()) + stream.finish()
    return out + stream.ending(), stream


def documents(data: bytes) -> list[Document]:
    """The events of a stream, each under its own name."""
    frames = [*(cutter := sse.Events()).feed(data), *cutter.finish()]
    told = [jsondoc.decode(frame.data) for frame in frames if frame.data]
    for frame, document in zip((f for f in frames if f.data), told, strict=True):
        assert f"event: {document['type']}\n".encode() in frame.raw
    return told


# -- the client


def heard(told: Sequence[Document]) -> dict[tuple[int, Way], str]:
    """The running texts as a client puts them together from deltas, by item and way."""
    read: dict[tuple[int, Way], str] = {}
    for event in told:
        name, _, last = event["type"].rpartition(".")
        if last == "delta":
            key = (event["output_index"], _way(name, event))
            read[key] = read.get(key, "") + event["delta"]
    return {key: whole(text) for key, text in read.items()}


def _way(name: str, event: Document) -> Way:
    if name in _BY_EVENTS:
        return (_BY_EVENTS[name],)
    if name == "response.shell_call_command":
        return ("action", "commands", event["command_index"])
    holder = "summary" if "summary_index" in event else "content"
    return (holder, event[f"{holder}_index"], "refusal" if name == "response.refusal" else "text")


def whole(text: str) -> str:
    """Halves of surrogate pairs joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def said(items: Sequence[Document]) -> dict[tuple[int, Way], str]:
    """The same texts as items have them."""
    return {(index, one.way): at(item, one.way) for index, item in enumerate(items) for one in running(item)}


def copies(told: Sequence[Document]) -> Iterator[dict[tuple[int, Way], str]]:
    """What a stream says again: each text when it is over, each part, each item, and the whole output."""
    texts: dict[tuple[int, Way], str] = {}
    parts: dict[tuple[int, Way], str] = {}
    done: dict[int, Document] = {}
    for event in told:
        name, _, last = event["type"].rpartition(".")
        if name == "response.output_item" and last == "done":
            done[event["output_index"]] = event["item"]
        elif last == "done" and "part" in event:
            part = event["part"]
            field = "refusal" if part["type"] == "refusal" else "text"
            holder = "summary" if "summary_index" in event else "content"
            parts[event["output_index"], (holder, event[f"{holder}_index"], field)] = part[field]
        elif last == "done":
            texts[event["output_index"], _way(name, event)] = next(
                event[field] for field in ("text", "refusal", "arguments", "input", "code", "command") if field in event
            )
    yield texts
    yield {key: text for key, text in texts.items() if key not in parts} | parts
    yield said([done[index] for index in sorted(done)])
    yield said(told[-1]["response"]["output"])


# -- a call under a policy


def asked(policy: Chain, document: Document | None = None, disguise: Disguise = NO_DISGUISE) -> tuple[Run, Document]:
    """A call whose request has gone through the stages, and what the provider is asked."""
    run, sent = policy.open(Exchange("x", "responses", "default", disguise)), document or {}
    asyncio.run(run.request(Request(sent, responses.request_slots(sent))))
    return run, sent


def hear(run: Run, document: Document) -> Document:
    """A buffered reply, as the client gets it."""
    edit_reply(responses, run, document)
    return document
