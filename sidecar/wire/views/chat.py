"""The conversation in `/v1/chat/completions`: requests, replies, and streams of them.

Fields as in the OpenAI API reference, with `functions` and `function_call`, the older form of tools and calls, and with
what compatible servers do: `tool_choice: "any"` (Mistral), a schema beside `json_object` (llama.cpp), content in parts
(Mistral), `reasoning_content`, `reasoning` and `reasoning_details`, calls without an id or a type.

Edits are made where the texts stand: a request that is to stay as it is must be copied whole before.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from ...core.surface import Kind, Lane
from .. import chat, several
from ..conversation import Called, Choice, Ending, Format, Result, Tool
from .folding import WORDS, Way, first, folded, grown, joined, overlay
from .shape import Object, json_text, mapping, objects, schema_of, text_of
from .turns import Turns, is_text, slots_in, texts_in

# --- calls, in a message of a request or of a reply --------------------------------------------------------------

_OLDER = "function_call"


class _Call(NamedTuple):
    """A call as it stands in a message. `place` is where: in the list, or the single, older form."""

    place: int | str
    id: str
    name: str
    arguments: str
    free: bool = False


def _calls_in(message: Object) -> list[_Call]:
    """The calls that a client can carry out: those with a name."""
    given = message.get("tool_calls")
    entries = enumerate(given) if isinstance(given, list) else ()
    found = [_call(place, entry) for place, entry in entries if isinstance(entry, dict)]
    return [call for call in (*found, _function(_OLDER, "", message.get(_OLDER))) if call is not None]


def _call(place: int, entry: Object) -> _Call | None:
    function, custom = entry.get("function"), entry.get("custom")
    if isinstance(custom, dict) and (entry.get("type") == "custom" or not isinstance(function, dict)):
        return _function(place, text_of(entry.get("id")), custom, "input")
    return _function(place, text_of(entry.get("id")), function)


def _function(place: int | str, ident: str, function: Any, given: str = "arguments") -> _Call | None:
    function = mapping(function)
    name = text_of(function.get("name"))
    return _Call(place, ident, name, json_text(function.get(given)), given == "input") if name else None


def _called(calls: Iterable[_Call], choice: int = 0, before: int = 0) -> list[Called]:
    """A call without an id has one by its place: `before` is how many calls came earlier."""
    stem = f"call_{choice}_" if choice else "call_"
    return [
        Called(call.id or f"{stem}{before + position}", call.name, call.arguments, call.free, position, choice)
        for position, call in enumerate(calls)
    ]


# --- the request -------------------------------------------------------------------------------------------------

_KINDS = {"auto": Choice("auto"), "none": Choice("none"), "required": Choice("required"), "any": Choice("required")}
_RESULTS = chat.REQUEST_CONTENT[Kind.TOOL_RESULTS]
# What a name of a form may hold, and how much.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
# Of a reply's message, what no request takes: offsets into what was said, and the sound, which it takes by its id.
_NOT_TAKEN = frozenset(("annotations", "audio"))


class Asked(Turns):
    """See `conversation.Asked`. Of tools that are defined but not allowed (`allowed_tools`) the view knows nothing."""

    __slots__ = ()

    SYSTEM = ("system", "developer")

    @property
    def tools(self) -> list[Tool]:
        allowed = _allowed(self._document)
        return [tool for tool in _defined(self._document) if not allowed or tool.name in allowed]

    @property
    def choice(self) -> Choice:
        given = self._document.get("tool_choice")
        if given is None:
            given = self._document.get(_OLDER)
        if isinstance(given, str):
            return _KINDS.get(given, Choice())
        return _named(given) if isinstance(given, dict) else Choice()

    @property
    def parallel(self) -> bool:
        older = bool(objects(self._document.get("functions"))) and not objects(self._document.get("tools"))
        return self._document.get("parallel_tool_calls") is not False and not older

    @property
    def format(self) -> Format | None:
        given = mapping(self._document.get("response_format"))
        match given.get("type"):
            case "json_object":
                return Format("", schema_of(given.get("schema")))
            case "json_schema" if isinstance(form := given.get("json_schema"), dict):
                return _form(form)
            case _:
                return None

    @property
    def choices(self) -> int:
        asked = self._document.get("n")
        return asked if type(asked) is int and asked > 0 else 1

    @property
    def history(self) -> list[Called | Result]:
        return list(_history(objects(self._document.get("messages"))))

    def set_format(self, form: Format | None) -> None:
        if form is None:
            self._document.pop("response_format", None)
        elif form.schema is None:
            self._document["response_format"] = {"type": "json_object"}
        else:
            told = {"name": _name_of(form), "schema": form.schema, "strict": form.strict}
            self._document["response_format"] = {"type": "json_schema", "json_schema": told}

    def answer(self, reply: Object, results: Mapping[str, str]) -> None:
        messages = [choice["message"] for _, choice in _choices(reply)]
        if messages:
            calls = _calls_in(messages[0])
            called = _called(calls)
            answered = [each for each in zip(calls, called, strict=True) if each[1].id in results]
            self._add([_turn(messages[0], calls, called), *(_result(*each, results) for each in answered)])


def _defined(document: Object) -> Iterator[Tool]:
    for tool in objects(document.get("tools")):
        function, custom = tool.get("function"), tool.get("custom")
        kind = custom if tool.get("type") == "custom" else function
        yield from _tool(kind, tool)
    for function in objects(document.get("functions")):
        yield from _tool(function, function)


def _tool(told: Any, definition: Object) -> Iterator[Tool]:
    told = mapping(told)
    if name := text_of(told.get("name")):
        yield Tool(name, text_of(told.get("description")), schema_of(told.get("parameters")), definition)


def _named(given: Object) -> Choice:
    if given.get("type") == "allowed_tools":
        return _narrowed(mapping(given.get("allowed_tools")))
    name = _name_in(given) or text_of(given.get("name"))
    return Choice("required", name) if name else Choice()


def _narrowed(given: Object) -> Choice:
    """A call that is required of one tool is required by its name."""
    kind = "required" if given.get("mode") == "required" else "auto"
    names = _names_in(given)
    return Choice("required", *names) if kind == "required" and len(names) == 1 else _KINDS[kind]


def _allowed(document: Object) -> frozenset[str]:
    """The names of the tools that may be called; empty where all of them may."""
    given = mapping(document.get("tool_choice"))
    return frozenset(_names_in(mapping(given.get("allowed_tools")))) if given.get("type") == "allowed_tools" else _ALL


_ALL = frozenset[str]()


def _names_in(given: Object) -> list[str]:
    return list(dict.fromkeys(filter(None, map(_name_in, objects(given.get("tools"))))))


def _name_in(given: Object) -> str:
    return text_of(mapping(given.get("function") or given.get("custom")).get("name"))


def _form(form: Object) -> Format | None:
    schema = schema_of(form.get("schema"))
    if schema is None and form.get("schema") is not None:
        return None
    return Format(text_of(form.get("name")), schema, form.get("strict") is True)


def _name_of(form: Format) -> str:
    return _NOT_IN_NAMES.sub("_", form.name)[:_LONGEST_NAME] or "reply"


def _history(messages: Iterable[Object]) -> Iterator[Called | Result]:
    """Results in the older form answer the last call of a function with their name."""
    names: dict[str, str] = {}
    older: dict[str, str] = {}
    before = 0
    for message in messages:
        match message.get("role"):
            case "assistant":
                calls = _called(_calls_in(message), before=before)
                before += len(calls)
                names.update((call.id, call.name) for call in calls)
                older.update((call.name, call.id) for call in calls)
                yield from calls
            case "tool":
                ident = text_of(message.get("tool_call_id"))
                yield Result(ident, names.get(ident, ""), slots_in(message, _RESULTS))
            case "function":
                ident = older.get(text_of(message.get("name")), "")
                yield Result(ident, names.get(ident, ""), slots_in(message, _RESULTS))


def _turn(message: Object, calls: Sequence[_Call], called: Sequence[Called]) -> Object:
    """A reply's message as a request takes it back."""
    turn = {name: deepcopy(value) for name, value in message.items() if value is not None and name not in _NOT_TAKEN}
    turn["role"] = "assistant"
    if ident := text_of(mapping(message.get("audio")).get("id")):
        turn["audio"] = {"id": ident}
    given = turn.pop("tool_calls", None)
    entries = zip(calls, called, strict=True)
    returned = [_returned(given[call.place], each) for call, each in entries if isinstance(call.place, int)]
    if returned:
        turn["tool_calls"] = returned
    turn.setdefault("content", None if calls or ident else "")
    return turn


def _returned(entry: Object, called: Called) -> Object:
    told = {"id": called.id, "type": "custom" if called.free else "function"}
    return told | {name: value for name, value in entry.items() if name not in ("index", *told)}


def _result(call: _Call, called: Called, results: Mapping[str, str]) -> Object:
    text = results[called.id]
    if call.place == _OLDER:
        return {"role": "function", "name": call.name, "content": text}
    return {"role": "tool", "tool_call_id": called.id, "content": text}


# --- the reply ---------------------------------------------------------------------------------------------------

ENDINGS: dict[str, Ending] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "filtered",
}


def _numbered(document: Object) -> list[tuple[int, Object]]:
    """The choices with their numbers: their places, where a server gives several of them the same."""
    found = several.numbered(document)
    unique = len({index for index, _ in found}) == len(found)
    return found if unique else [(place, choice) for place, (_, choice) in enumerate(found)]


def _choices(document: Object) -> list[tuple[int, Object]]:
    """The choices that say something, in the order of their numbers."""
    found = [(index, choice) for index, choice in _numbered(document) if isinstance(choice.get("message"), dict)]
    return sorted(found, key=lambda each: each[0])


class Replied:
    """See `conversation.Replied`. Some servers end a reply that calls with `stop`: it ends with calls all the same."""

    __slots__ = ("_document",)

    def __init__(self, document: Object) -> None:
        self._document = document

    @property
    def texts(self) -> dict[int, str]:
        return {
            index: "".join(texts_in(choice["message"].get("content"))) for index, choice in _choices(self._document)
        }

    @property
    def calls(self) -> list[Called]:
        found = ((index, _calls_in(choice["message"])) for index, choice in _choices(self._document))
        return [call for index, calls in found for call in _called(calls, index)]

    def ending(self, choice: int) -> Ending:
        found = self._choice(choice)
        ending = ENDINGS.get(text_of(found.get("finish_reason")), "other")
        return "calls" if ending == "stop" and _calls_in(mapping(found.get("message"))) else ending

    def refused(self, choice: int) -> bool:
        return bool(text_of(mapping(self._choice(choice).get("message")).get("refusal")))

    def say(self, choice: int, text: str) -> None:
        found = self._choice(choice)
        message = found.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            thoughts = [part for part in content if not is_text(part)] if isinstance(content, list) else []
            message["content"] = [*thoughts, {"type": "text", "text": text}] if thoughts else text
            _spoil(found)

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        gone: dict[int, set[int]] = {}
        for call in calls:
            gone.setdefault(call.choice, set()).add(call.position)
        for choice, positions in gone.items():
            self._drop(choice, positions, notice)

    def _drop(self, choice: int, positions: set[int], notice: str) -> None:
        found = self._choice(choice)
        message = mapping(found.get("message"))
        places = {call.place for position, call in enumerate(_calls_in(message)) if position in positions}
        if places and chat.take_out(message, lambda at, _: at in places, older=_OLDER in places):
            chat.end_without(found, filter(None, (notice,)), calling=bool(_calls_in(message)))
            if notice:
                _spoil(found)

    def _choice(self, number: int) -> Object:
        return next((choice for index, choice in _choices(self._document) if index == number), {})


def _spoil(choice: Object) -> None:
    chat.spoil({"choices": [choice]}, Lane(chat.CONTENT, several.index_of(choice, 0)))


# --- a stream becomes a reply ------------------------------------------------------------------------------------


def _content(values: Sequence[Any]) -> Any:
    """Texts, or parts; what runs as texts beside parts is one of them."""
    if not any(isinstance(value, list) for value in values):
        return joined(values)
    texts = ([{"type": "text", "text": value}] if isinstance(value, str) and value else value for value in values)
    return grown(value for value in texts if isinstance(value, list))


def _name(values: Sequence[Any]) -> Any:
    """Names come in pieces, and some servers repeat them in every frame."""
    name = ""
    for value in values:
        if isinstance(value, str) and value != name:
            name += value
    return name


def _named_object(values: Sequence[Any]) -> Any:
    return folded((value for value in values if isinstance(value, dict)), {"name": _name})


@dataclass(slots=True)
class _Told:
    """What frames have said of a call."""

    index: int
    id: str = ""
    pieces: list[Object] = field(default_factory=list)


class _Calls:
    """Tells which call a piece belongs to: by its index, else by its id, else by its name, which begins a new one.

    A server that gives every call the index 0 tells them apart by id and name; one that gives every piece an id of its
    own names the call in the first alone.
    """

    def __init__(self) -> None:
        self._at: dict[int, _Told] = {}
        self._known: dict[str, _Told] = {}
        self._all: list[_Told] = []

    def add(self, piece: Object) -> None:
        ident = text_of(piece.get("id"))
        call = self._find(piece.get("index"), ident, named=bool(_name_in(piece)))
        call.pieces.append(piece)
        if ident:
            call.id = call.id or ident
            self._known.setdefault(ident, call)

    def _find(self, index: Any, ident: str, *, named: bool) -> _Told:
        if not isinstance(index, int):
            call = self._known.get(ident) or (None if named or not self._all else self._all[-1])
            return call or self._new(max(self._at, default=-1) + 1)
        call = self._at.get(index)
        if call is None or (named and ident and call.id and ident != call.id):
            return self._new(index)
        return call

    def _new(self, index: int) -> _Told:
        call = self._at[index] = _Told(index)
        self._all.append(call)
        return call

    def whole(self) -> list[Object]:
        calls = sorted(self._all, key=lambda call: call.index)
        found = [folded(call.pieces, _CALL_WAYS) for call in calls]
        return [{name: value for name, value in call.items() if name != "index"} for call in found]


def _tool_calls(values: Sequence[Any]) -> list[Object]:
    calls = _Calls()
    for piece in chain.from_iterable(map(objects, values)):
        calls.add(piece)
    return calls.whole()


_CALL_WAYS: Mapping[str, Way] = {**WORDS, "function": _named_object, "custom": _named_object}
_MESSAGE_WAYS: Mapping[str, Way] = {
    **WORDS,
    "role": first,
    "content": _content,
    "tool_calls": _tool_calls,
    "function_call": _named_object,
}
# Of a frame: what is put together apart, and what only pads it. Of a choice as well; clients of a stream read no
# `message` in it.
_APART = frozenset(("choices", "obfuscation"))
_GROWING = ("logprobs", "token_ids")
_CHOICE_APART = frozenset(("index", "delta", "message", *_GROWING))


@dataclass(slots=True)
class _Choice:
    """What frames have said of a choice."""

    deltas: list[Object] = field(default_factory=list)
    growing: list[Object] = field(default_factory=list)
    rest: Object = field(default_factory=dict)

    def feed(self, choice: Object) -> None:
        self.deltas.append(mapping(choice.get("delta")))
        self.growing.append({name: choice[name] for name in _GROWING if name in choice})
        overlay(self.rest, {name: value for name, value in choice.items() if name not in _CHOICE_APART})

    def whole(self, index: int) -> Object:
        message = {"role": "assistant", "content": None} | folded(self.deltas, _MESSAGE_WAYS)
        return {"index": index, "message": message} | folded(self.growing, {}) | self.rest


class Gather:
    """See `conversation.Gather`. A reply is whole when every choice that has begun has told why it ended."""

    def __init__(self) -> None:
        self._head: Object = {}
        self._choices: dict[int, _Choice] = {}
        self._failed = False

    def feed(self, document: Object) -> None:
        self._failed = self._failed or bool(document.get("error"))
        if not isinstance(document.get("choices"), list):
            return
        overlay(self._head, {name: value for name, value in document.items() if name not in _APART})
        for index, choice in several.numbered(document):
            self._choices.setdefault(index, _Choice()).feed(choice)

    @property
    def reply(self) -> Object | None:
        ended = all(choice.rest.get("finish_reason") for choice in self._choices.values())
        if self._failed or not self._choices or not ended:
            return None
        choices = [choice.whole(index) for index, choice in sorted(self._choices.items())]
        return self._head | {"object": "chat.completion", "choices": choices}


# --- a reply becomes a stream ------------------------------------------------------------------------------------

# What every frame says of its reply.
_IDENTITY = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
# What a client should read first and last; anything else is between.
_BEFORE = ("reasoning_content", "reasoning", "reasoning_details")
_AFTER = ("tool_calls", "function_call")


def frames(document: Object) -> list[Object]:
    """See `conversation.View`. What stands beside the choices is told by the first frame, usage by the last.

    What gathers again is the same reply, but for an `index` in its calls, for choices and calls that are no objects,
    and for a choice's `index` and a message's `role` and `content`, which are there even where the reply has none.
    """
    head = {name: document[name] for name in _IDENTITY if name in document} | {"object": "chat.completion.chunk"}
    choices = [frame for index, choice in _numbered(document) for frame in _told(index, choice)]
    found = [head | {"choices": [choice]} for choice in choices] or [head | {"choices": []}]
    usage = document.get("usage") or None
    apart = {"choices", *(("usage",) if usage else ())}
    found[0] |= {name: value for name, value in document.items() if name not in head and name not in apart}
    return [*found, *([head | {"choices": [], "usage": usage}] if usage else ())]


def _told(index: int, choice: Object) -> list[Object]:
    """The choices of the frames that tell one: logprobs beside the text, the rest at its end."""
    deltas = list(_deltas(mapping(choice.get("message"))))
    found: list[Object] = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    rest = {name: value for name, value in choice.items() if name not in _CHOICE_APART}
    last = {"index": index, "delta": {}, "finish_reason": None} | rest
    spoken = next((frame for frame in found if frame["delta"].get("content")), last)
    spoken.update((name, choice[name]) for name in _GROWING if name in choice)
    return [*found, last]


def _deltas(message: Object) -> Iterator[Object]:
    """What holds nothing begins the message, then each field is whole in a frame of its own."""
    text = "" if isinstance(message.get("content"), str) else None
    role = text_of(message.get("role")) or "assistant"
    yield {name: value for name, value in message.items() if not value} | {"role": role, "content": text}
    for name in sorted(message, key=lambda name: (name in _AFTER) - (name in _BEFORE)):
        value = message[name]
        if value and name != "role":
            yield {name: _indexed(value) if name == "tool_calls" else value}


def _indexed(calls: Any) -> list[Object]:
    return [{"index": at} | call | {"index": at} for at, call in enumerate(objects(calls))]


# --- the view ----------------------------------------------------------------------------------------------------


def asked(document: Object) -> Asked:
    return Asked(document)


def replied(document: Object) -> Replied:
    return Replied(document)


def gather() -> Gather:
    return Gather()
