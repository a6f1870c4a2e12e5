"""Documents of any kind, and all that can be asked of a view: it takes each of them, and its laws hold for all."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from sidecar.wire import jsondoc
from sidecar.wire.conversation import Called, Format, Result, View

Document = dict[str, Any]
Path = tuple[str | int, ...]

# Words that APIs know, so that random documents come near to real ones.
_KNOWN = """a type text role user system assistant tool function custom content name input arguments id tool_calls
messages choices message delta index error stop done tools format response_format tool_choice finish_reason"""
_WORDS = st.sampled_from(["", *_KNOWN.split()])
_LEAVES = st.none() | st.booleans() | st.integers(-2, 3) | _WORDS | st.text(max_size=3)
VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4), max_leaves=12
)
OBJECTS = st.dictionaries(_WORDS | st.text(max_size=3), VALUES, max_size=5)


@st.composite
def mutated(draw: st.DrawFn, samples: list[Document]) -> Document:
    """A real document with something else in some of its places, or without them."""
    document = deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(paths(document)) or [("x",)]))
        _put(document, path, draw(VALUES | st.just(_GONE)))
    return document


_GONE = object()


def paths(value: Any, before: Path = ()) -> Iterator[Path]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*before, key)
        yield from paths(each, (*before, key))


def _put(document: Any, path: Path, value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    if value is not _GONE:
        document[path[-1]] = value
    elif isinstance(document, dict):
        document.pop(path[-1], None)
    else:
        del document[path[-1]]


def over_the_wire(document: Document) -> Document:
    """With its numbers as the sidecar holds them."""
    read: Document = jsondoc.decode(jsondoc.encode(document))
    return read


def holds(document: Any) -> None:
    """What a view leaves behind can be sent."""
    json.loads(jsondoc.encode(document))


def ask_all(view: View, request: Document, reply: Document) -> None:
    """Every question and edit of a request, each on a copy."""
    asked = view.asked(request)
    before = deepcopy(request)
    seen = (asked.tools, asked.choice, asked.parallel, asked.format, asked.choices, asked.history, asked.system)
    assert asked.approvals in (True, False)
    assert request == before
    assert all(tool.name for tool in asked.tools)
    assert asked.choices > 0
    assert seen[1].kind in ("auto", "required", "none")
    _parts(view, deepcopy(request))
    for form in (None, Format("f", None), Format("f", {"type": "object"})):
        _edit(view, request).set_format(form)
    told = deepcopy(request)
    view.asked(told).set_format(None)
    assert view.asked(told).format is None
    _edit(view, request).instruct("Be kind.")
    _edit(view, request).say("Go on.")
    answered = deepcopy(request)
    view.asked(answered).answer(reply, {call.id: "a result" for call in view.replied(reply).calls})
    holds(answered)


def _edit(view: View, request: Document) -> Any:
    document = deepcopy(request)
    asked = view.asked(document)
    holds(document)
    return asked


def _parts(view: View, request: Document) -> None:
    for told in view.asked(request).history:
        if isinstance(told, Result):
            for part in told.texts:
                part.replace(part.text + "!")
    texts = [part.text for told in view.asked(request).history if isinstance(told, Result) for part in told.texts]
    assert all(text.endswith("!") for text in texts)


def hear_all(view: View, reply: Document) -> None:
    """Every question and edit of a reply, each on a copy."""
    replied = view.replied(reply)
    before = deepcopy(reply)
    for choice in (0, 1, 7):
        assert replied.ending(choice) in ("stop", "length", "calls", "filtered", "other")
        assert replied.refused(choice) in (True, False)
    calls = list(replied.calls)
    assert all(call.name for call in (*calls, *replied.hosted))
    assert len({(call.choice, call.position) for call in calls}) == len(calls)
    assert reply == before
    for choice in replied.texts:
        _said(view, deepcopy(reply), choice)
    _dropped(view, deepcopy(reply), calls)
    gather = view.gather()
    for frame in view.frames(deepcopy(reply)):
        holds(frame)
        gather.feed(frame)
    holds(gather.reply)


def _said(view: View, reply: Document, choice: int) -> None:
    view.replied(reply).say(choice, "Another text.")
    assert view.replied(reply).texts[choice] == "Another text."
    holds(reply)


def _dropped(view: View, reply: Document, calls: list[Called]) -> None:
    view.replied(reply).drop([Called("none", "none", "{}", position=99)], "Not this.")
    assert list(view.replied(reply).calls) == calls
    view.replied(reply).drop(calls, "Not now.")
    assert not view.replied(reply).calls
    texts = view.replied(reply).texts
    assert all("Not now." in texts[call.choice] for call in calls)
    holds(reply)
