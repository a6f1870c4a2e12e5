"""Where an SDK's types have strings, and documents with a text in one of those places."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

from sidecar.core.chain import Run
from sidecar.core.exchange import NO_DISGUISE, Disguise, Exchange, Request
from sidecar.core.surface import Slot, Surface
from sidecar.wire import jsondoc
from sidecar.wire.stream import SSE, Framing, ReplyStream, Wire, edit_reply
from tests.stages.talk import chain

SECRET = "sk-abcd1234"
SAID = f"my {SECRET} here"
EVERYWHERE = ["system", "user", "tool_results", "assistant", "tool_calls", "reply", "reasoning", "tools"]
RULE = {"name": "keys", "patterns": [{"name": "key", "regex": "sk-[a-z0-9]{8}"}], "on": EVERYWHERE, "replacement": "#"}


def strings(kind: Any, path: str = "") -> Iterator[str]:
    """The path of every string that a type can hold: `a.b[].c`, with `*` for the keys of a mapping."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is str or (origin is Literal and any(isinstance(value, str) for value in inner)):
        yield path
    elif is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, BaseModel)):
        for name, field in _fields(kind):
            yield from strings(field, f"{path}.{name}" if path else name)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from strings(one, path)
    elif origin is Annotated:
        yield from strings(inner[0], path)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from strings(inner[1], f"{path}.*")
    elif origin is not None and hasattr(origin, "__iter__"):
        yield from strings(inner[0], f"{path}[]")


def types(events: Any) -> set[str]:
    """The types of the events of a stream: what `type` is in each model of a union."""
    models = get_args(get_args(events)[0]) if get_origin(events) is Annotated else get_args(events)
    return {get_args(model.model_fields["type"].annotation)[0] for model in models}


def _fields(kind: Any) -> Iterator[tuple[str, Any]]:
    if is_typeddict(kind):
        yield from get_type_hints(kind).items()
    else:
        yield from ((field.alias or name, field.annotation) for name, field in kind.model_fields.items())


def at(path: str, value: Any, base: Mapping[str, Any] = {}) -> dict[str, Any]:
    """A document that holds a value at a path, and `base` beside it."""
    for name in reversed(path.split(".")):
        *names, depth = name, name.count("[]")
        for _ in range(depth):
            value = [value]
        value = {names[0].replace("[]", ""): value}
    return {**base, **value}


def check(
    kinds: Any, texts: Mapping[str, Surface], words: Iterable[str], read: Callable[[dict[str, Any]], Iterable[Slot]]
) -> None:
    """Every string of the SDK's types is listed; the texts are read where they should be, the words are not."""
    known = {*texts, *words}
    assert sorted(set(strings(kinds))) == sorted(known)
    for path in known:
        expected = [texts[path]] if path in texts else []
        assert [slot.surface for slot in read(at(path, "a text"))] == expected, path


def opened(
    wire: Wire,
    document: dict[str, Any] | None = None,
    rules: Sequence[Mapping[str, Any]] = (RULE,),
    disguise: Disguise = NO_DISGUISE,
) -> Run:
    """A run that a request, edited in place, has gone down."""
    run = chain(rules).open(Exchange("x", wire.NAME, disguise=disguise))
    asked = {} if document is None else document
    slots = wire.request_slots(asked)
    assert {slot.surface for slot in slots} <= {*wire.REQUEST_SURFACES}
    asyncio.run(run.request(Request(asked, slots)))
    return run


def asked(wire: Wire, document: dict[str, Any]) -> str:
    """What the provider gets."""
    opened(wire, document)
    return jsondoc.encode(document).decode()


def heard(wire: Wire, document: dict[str, Any]) -> str:
    """What the client gets of a whole reply."""
    assert {spoken.slot.surface for spoken in wire.reply_texts(document)} <= {*wire.REPLY_SURFACES}
    edit_reply(wire, opened(wire), document)
    return jsondoc.encode(document).decode()


def streamed(
    wire: Wire, documents: Iterable[Any], framing: Framing = SSE, run: Run | None = None, size: int = 7
) -> str:
    """What the client gets of a stream that comes in small packets."""
    stream, cutter = ReplyStream(wire, run or opened(wire), framing), framing.cutter()
    data = b"".join(framing.render(json.dumps(document).encode(), None) for document in documents) + wire.DONE
    out = b"".join(stream.feed(cutter.feed(data[at : at + size])) for at in range(0, len(data), size))
    return (out + stream.feed(cutter.finish()) + stream.finish() + stream.ending()).decode()


def found_everywhere(wire: Wire, texts: Iterable[str], framing: Framing = SSE, base: Mapping[str, Any] = {}) -> None:
    """A secret in each place of a reply is found, whole and in a stream."""
    for path in texts:
        for got in (heard(wire, at(path, SAID, base)), streamed(wire, [at(path, SAID, base)], framing)):
            assert SECRET not in got, path
            assert "my # here" in got, path
