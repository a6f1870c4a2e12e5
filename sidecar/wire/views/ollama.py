"""The conversation in Ollama's `/api/chat`: requests, replies, and streams of them.

Fields as in docs/api.md of ollama/ollama and in the types of its Python client 0.6.3. Arguments are objects: the view
shows the compact JSON text of them. Calls have an id in newer servers only: those without one have one by their place.
A request cannot choose a tool, ask for one call at a time or for several replies; a reply has no way to refuse.

Edits are made where the texts stand: a request that is to stay as it is must be copied whole before.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

from ...core.surface import Kind, Lane
from .. import chat, ollama, small
from ..conversation import Called, Choice, Ending, Format, Result, Tool
from .chat import ENDINGS
from .folding import WORDS, folded, overlay
from .shape import Object, json_text, mapping, objects, schema_of, text_of
from .turns import Turns, slots_in, texts_in

_RESULTS = ollama.REQUEST_CONTENT[Kind.TOOL_RESULTS]


# --- calls, in a message of a request or of a reply --------------------------------------------------------------


def _calls_in(message: Object) -> list[tuple[int, Object]]:
    """The calls that a client can carry out, those with a name, each with its place in the list."""
    given = message.get("tool_calls")
    entries = enumerate(given) if isinstance(given, list) else ()
    return [(place, call) for place, call in entries if isinstance(call, dict) and _name_of(call)]


def _name_of(call: Object) -> str:
    return text_of(mapping(call.get("function")).get("name"))


def _called(message: Object, before: int = 0) -> list[Called]:
    """`before` is how many calls came earlier."""
    return [
        Called(
            text_of(call.get("id")) or f"call_{before + position}",
            _name_of(call),
            json_text(mapping(call.get("function")).get("arguments"), "{}"),
            position=position,
        )
        for position, (_, call) in enumerate(_calls_in(message))
    ]


# --- the request -------------------------------------------------------------------------------------------------


class Asked(Turns):
    """See `conversation.Asked`."""

    __slots__ = ()

    SYSTEM = ("system",)

    @property
    def tools(self) -> list[Tool]:
        given = [(mapping(tool.get("function")), tool) for tool in objects(self._document.get("tools"))]
        return [
            Tool(name, text_of(told.get("description")), schema_of(told.get("parameters")), tool)
            for told, tool in given
            if (name := text_of(told.get("name")))
        ]

    @property
    def choice(self) -> Choice:
        return Choice()

    @property
    def streams(self) -> bool:
        return ollama.streamed(self._document)

    @property
    def parallel(self) -> bool:
        return True

    @property
    def format(self) -> Format | None:
        given = self._document.get("format")
        if given == "json":
            return Format("", None)
        return Format("", given) if isinstance(given, dict) else None

    @property
    def choices(self) -> int:
        return 1

    @property
    def history(self) -> list[Called | Result]:
        return list(_history(objects(self._document.get("messages"))))

    def set_format(self, form: Format | None) -> None:
        if form is None:
            self._document.pop("format", None)
        else:
            self._document["format"] = "json" if form.schema is None else form.schema

    def answer(self, reply: Object, results: Mapping[str, str]) -> None:
        message = reply.get("message")
        if isinstance(message, dict):
            pairs = zip(_calls_in(message), _called(message), strict=True)
            answered = [(call, called) for (_, call), called in pairs if called.id in results]
            turn = deepcopy(message) | {"role": "assistant"}
            self._add([turn, *(_result(call, called.name, results[called.id]) for call, called in answered)])


def _history(messages: Iterable[Object]) -> Iterator[Called | Result]:
    """A result answers the call whose id it has, else the first open one of its tool, else the first open one."""
    calls: dict[str, Called] = {}
    waiting: list[Called] = []
    before = 0
    for message in messages:
        match message.get("role"):
            case "assistant":
                found = _called(message, before)
                before += len(found)
                calls.update((call.id, call) for call in found)
                waiting = found
                yield from found
            case "tool":
                call = calls.get(text_of(message.get("tool_call_id"))) or _open(message, waiting)
                waiting = [other for other in waiting if other is not call]
                slots = slots_in(message, _RESULTS)
                yield Result(call.id, call.name, slots) if call else Result("", "", slots)


def _open(message: Object, waiting: list[Called]) -> Called | None:
    name = text_of(message.get("tool_name"))
    return next((call for call in waiting if not name or call.name == name), None)


def _result(call: Object, name: str, text: str) -> Object:
    ident = text_of(call.get("id"))
    known = {"tool_call_id": ident} if ident else {}
    return {"role": "tool", "tool_name": name, **known, "content": text}


# --- the reply ---------------------------------------------------------------------------------------------------


class Replied:
    """See `conversation.Replied`. The one choice has the number 0. A reply that calls ends with `stop`, like others."""

    __slots__ = ("_document", "_message")

    def __init__(self, document: Object) -> None:
        self._document = document
        self._message = mapping(document.get("message"))

    @property
    def texts(self) -> dict[int, str]:
        there = isinstance(self._document.get("message"), dict)
        return {0: "".join(texts_in(self._message.get("content")))} if there else {}

    @property
    def calls(self) -> list[Called]:
        return _called(self._message)

    @property
    def hosted(self) -> tuple[()]:
        """The API tells of none."""
        return ()

    def ending(self, choice: int) -> Ending:
        reason = self._document.get("done_reason")
        if reason is None and self._document.get("done") is True:  # as older servers end
            reason = "stop"
        ending = ENDINGS.get(text_of(reason), "other")
        return "calls" if ending == "stop" and _calls_in(self._message) else ending

    def refused(self, choice: int) -> bool:
        return False

    def say(self, choice: int, text: str) -> None:
        if choice in self.texts:
            self._message["content"] = text
            ollama.spoil(self._document, Lane(ollama.CONTENT))

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        positions = {call.position for call in calls if call.choice == 0}
        places = {place for at, (place, _) in enumerate(_calls_in(self._message)) if at in positions}
        if not chat.take_out(self._message, lambda at, _: at in places, older=False):
            return
        if notice:
            self.say(0, small.noted(self._message.get("content"), notice))
        if self.ending(0) == "calls" and not _calls_in(self._message):
            self._document["done_reason"] = "stop"


# --- a stream becomes a reply, and a reply a stream --------------------------------------------------------------

# Of a line: what is put together apart.
_GROWING = ("logprobs",)
# What every line says of its reply.
_IDENTITY = ("model", "remote_model", "remote_host", "created_at")
# What a client should read first and last; anything else is between.
_ORDER = ("thinking", "content")


class Gather:
    """See `conversation.Gather`. A reply is whole with the line that says `done`; its counters stand there."""

    def __init__(self) -> None:
        self._head: Object = {}
        self._messages: list[Object] = []
        self._growing: list[Object] = []
        self._failed = False

    def feed(self, document: Object) -> None:
        self._failed = self._failed or bool(document.get("error"))
        self._messages.append(mapping(document.get("message")))
        self._growing.append({name: document[name] for name in _GROWING if name in document})
        overlay(self._head, {name: value for name, value in document.items() if name not in ("message", *_GROWING)})

    @property
    def reply(self) -> Object | None:
        if self._failed or self._head.get("done") is not True:
            return None
        message = {"role": "assistant", "content": ""} | folded(self._messages, WORDS)
        return self._head | {"message": message} | folded(self._growing, {})


def frames(document: Object) -> list[Object]:
    """See `conversation.View`. Each field of the message is whole in a line of its own, the rest in the last line.

    What gathers again is the same reply, but for `role` and `content`, which are there even where the reply leaves
    them out.
    """
    message = mapping(document.get("message"))
    head = {name: document[name] for name in _IDENTITY if name in document}
    rest = {name: value for name, value in document.items() if name not in ("message", *head)}
    empty = {name: value for name, value in message.items() if not value}
    opening = {"role": text_of(message.get("role")) or "assistant", "content": ""}
    fields = sorted((name for name in message if message[name] and name != "role"), key=_place)
    told = [{**opening, name: message[name]} for name in fields]
    return [
        *(head | {"message": said, "done": False} for said in told),
        head | {"message": empty | opening} | rest,
    ]


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


# --- the view ----------------------------------------------------------------------------------------------------


asked, replied, gather = Asked, Replied, Gather
