"""A request of chat completions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from ....core.surface import Kind
from ... import chat
from ...conversation import Called, Choice, Format, Result, Tool
from ..shape import Object, form_name, mapping, objects, schema_of, text_of
from ..turns import Turns, slots_in
from .entries import OLDER, Entry, called_in, calls_in, choices_in, name_in

_KINDS = {"auto": Choice("auto"), "none": Choice("none"), "required": Choice("required"), "any": Choice("required")}
_RESULTS = chat.REQUEST_CONTENT[Kind.TOOL_RESULTS]
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
            given = self._document.get(OLDER)
        if isinstance(given, str):
            return _KINDS.get(given, Choice())
        return _named(given) if isinstance(given, dict) else Choice()

    @property
    def streams(self) -> bool:
        return self._document.get("stream") is True

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
            told = {"name": form_name(form.name), "schema": form.schema, "strict": form.strict}
            self._document["response_format"] = {"type": "json_schema", "json_schema": told}

    def answer(self, reply: Object, results: Mapping[str, str]) -> None:
        messages = [choice["message"] for _, choice in choices_in(reply)]
        if messages:
            calls = calls_in(messages[0])
            called = called_in(calls)
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
    name = name_in(given) or text_of(given.get("name"))
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
    return list(dict.fromkeys(filter(None, map(name_in, objects(given.get("tools"))))))


def _form(form: Object) -> Format | None:
    schema = schema_of(form.get("schema"))
    if schema is None and form.get("schema") is not None:
        return None
    return Format(text_of(form.get("name")), schema, form.get("strict") is True)


def _history(messages: Iterable[Object]) -> Iterator[Called | Result]:
    """Results in the older form answer the last call of a function with their name."""
    names: dict[str, str] = {}
    older: dict[str, str] = {}
    before = 0
    for message in messages:
        match message.get("role"):
            case "assistant":
                calls = called_in(calls_in(message), before=before)
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


def _turn(message: Object, calls: Sequence[Entry], called: Sequence[Called]) -> Object:
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


def _result(call: Entry, called: Called, results: Mapping[str, str]) -> Object:
    text = results[called.id]
    if call.place == OLDER:
        return {"role": "function", "name": call.name, "content": text}
    return {"role": "tool", "tool_call_id": called.id, "content": text}
