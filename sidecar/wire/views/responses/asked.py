"""A request: its tools, its history, the form of its reply, and how it goes on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from ... import hosted
from ...conversation import Called, Choice, Format, HostedCall, Part, Result, Tool
from ...responses.items import item as texts_of_item
from ...responses.places import REQUEST
from ...stream import Document
from ..shape import form_name, mapping, objects, paragraphs, sequence, text_of
from . import tools
from .replied import Replied

_SYSTEM: Final = frozenset(("system", "developer"))
# Fields of an output item that no input item has.
_NOT_BACK: Final = frozenset(("created_by",))


class Asked:
    """See `conversation.Asked`. Of tools that are defined but not allowed (`allowed_tools`) the view knows nothing.

    A function in a namespace has the name that its author knows, without the namespace's.
    """

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    # --- tools ---

    @property
    def tools(self) -> Sequence[Tool]:
        defined = (tool for each in tools.definitions(self._document) for tool in tools.run_by_client(each))
        allowed = _allowed(self._document.get("tool_choice"))
        return [tool for tool in defined if allowed is None or tool.name in allowed]

    @property
    def approvals(self) -> bool:
        return any(map(tools.asks_approval, tools.definitions(self._document)))

    @property
    def choice(self) -> Choice:
        match self._document.get("tool_choice"):
            case "none":
                return Choice("none")
            case "required":
                return _required(tools.definitions(self._document))
            case {"type": "allowed_tools", "mode": "required", "tools": list(allowed)}:
                return _required(objects(allowed), only=True)
            case {"type": "function" | "custom", "name": str(name)}:
                return Choice("required", name)
            case {"type": str(kind)} if kind in tools.BUILT_IN:
                return Choice("required", tools.BUILT_IN[kind])
        return Choice()

    @property
    def streams(self) -> bool:
        return self._document.get("stream") is True

    @property
    def parallel(self) -> bool:
        return self._document.get("parallel_tool_calls") is not False

    # --- the form of the reply ---

    @property
    def format(self) -> Format | None:
        match mapping(self._document.get("text")).get("format"):
            case {"type": "json_schema", "schema": dict() | bool() as schema, **more}:
                return Format(text_of(more.get("name")), schema, more.get("strict") is True)
            case {"type": "json_object"}:
                return Format("", None)
        return None

    @property
    def choices(self) -> int:
        return 1

    def set_format(self, form: Format | None) -> None:
        text = mapping(self._document.get("text"))
        if form is not None:
            self._document["text"] = {**text, "format": _written(form, mapping(text.get("format")))}
        elif text.pop("format", None) is not None and not text:
            del self._document["text"]

    # --- the conversation ---

    @property
    def history(self) -> Sequence[Called | HostedCall | Result]:
        return list(_history(sequence(self._document.get("input"))))

    @property
    def system(self) -> str:
        texts = (text for item in objects(self._document.get("input")) if _is_system(item) for text in _texts(item))
        return paragraphs(text_of(self._document.get("instructions")), *texts)

    def instruct(self, text: str) -> None:
        """In the last of the messages that the input begins with, if these are the system's, else in `instructions`."""
        last = _last_leading(sequence(self._document.get("input")))
        given = self._document.get("instructions")
        if last is not None:
            _add_text(last, text)
        elif given is None or isinstance(given, str):
            self._document["instructions"] = paragraphs(given or "", text)
        else:
            self._input().insert(0, _message("developer", text))

    def say(self, text: str) -> None:
        """Goes on with the last item if it is a message of the user, as chat does, to which this may be translated."""
        items = self._input()
        last = mapping(next(reversed(items), None))
        if last.get("role") == "user" and isinstance(last.get("content"), str | list):
            _add_text(last, text)
        else:
            items.append(_message("user", text))

    def answer(self, reply: Document, results: Mapping[str, str]) -> None:
        """All items of the output follow as items of the input, then the results.

        That is right beside `previous_response_id`, which stands for what was before this input and stays. A
        `conversation` is another matter: the provider has added this input and this output to it by itself, so only
        the results are left to say.
        """
        reply, turns = _named(reply), self._input()
        if self._document.get("conversation") is not None:
            turns.clear()
        else:
            turns.extend(_kept(reply.get("output"), stored=_stored(self._document, reply)))
        turns.extend(_told(reply, results))

    def _input(self) -> list[Any]:
        """The list of input items, made out of a text or of nothing; what is neither counts as absent and stays."""
        given = self._document.get("input")
        if isinstance(given, str):
            self._document["input"] = [_message("user", given)]
        elif given is None:
            self._document["input"] = []
        return sequence(self._document["input"])


# --- tools -----------------------------------------------------------------------------------------------------


def _allowed(choice: Any) -> frozenset[str] | None:
    """The names of the tools that may be called; None where all of them may."""
    match choice:
        case {"type": "allowed_tools", "tools": [*allowed]}:
            return frozenset(tool.name for mention in objects(allowed) for tool in tools.run_by_client(mention))
    return None


def _required(definitions: Iterable[Document], *, only: bool = False) -> Choice:
    """A call that must come, where only the client's tools can be called: a search of the provider's is one as well.

    With `only` a single tool is named.
    """
    meant = [[tool.name for tool in tools.run_by_client(definition)] for definition in definitions]
    if not meant or not all(meant):
        return Choice()
    names = {name for group in meant for name in group}
    return Choice("required", names.pop() if only and len(names) == 1 else "")


def _written(form: Format, was: Document) -> Document:
    """What the request says of the same form beside what a view shows, such as its description, stays."""
    if form.schema is None:
        return {"type": "json_object"}
    name = form_name(form.name)
    kept = was if was.get("type") == "json_schema" and was.get("name") == name else {}
    return {**kept, "type": "json_schema", "name": name, "schema": form.schema, "strict": form.strict}


# --- what was said ---------------------------------------------------------------------------------------------


def _history(items: list[Any]) -> Iterator[Called | HostedCall | Result]:
    """Calls are counted within a turn of the model, which ends with a result or with what somebody else says."""
    names: dict[str, str] = {}
    theirs: set[str] = set()
    position = 0
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        call = tools.called(item, position)
        if call is not None:
            names[call.id] = call.name
            position += 1
            yield call
        elif (ran := hosted.of_item(item)) is not None:
            theirs.add(ran.id)
            yield HostedCall(ran.id, ran.name)
        elif tools.is_result(item) or _of_another(item):
            position = 0
        if tools.is_result(item) and (call_id := tools.id_of(item)) not in theirs:
            yield Result(call_id, names.get(call_id, ""), _result_texts(items, at))


def _of_another(item: Document) -> bool:
    return "role" in item and item["role"] != "assistant"


def _result_texts(items: list[Any], at: int) -> list[Part]:
    return [slot for path, slot in texts_of_item(items, at, REQUEST) if path[0] == "output" and path[-1] in _TEXTS]


# The string that is all of an output, and the fields of its parts.
_TEXTS: Final = frozenset(("output", "text", "stdout", "stderr"))


def _is_system(item: Document) -> bool:
    role = item.get("role")
    return item.get("type", "message") == "message" and isinstance(role, str) and role in _SYSTEM


def _texts(message: Document) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in objects(content):
        yield text_of(part.get("text"))


def _last_leading(items: list[Any]) -> Document | None:
    last = None
    for item in items:
        if not (isinstance(item, dict) and _is_system(item) and isinstance(item.get("content"), str | list)):
            break
        last = item
    return last


def _add_text(message: Document, text: str) -> None:
    content = message["content"]
    if isinstance(content, str):
        message["content"] = paragraphs(content, text)
    else:
        content.append({"type": "input_text", "text": text})


def _message(role: str, text: str) -> Document:
    return {"type": "message", "role": role, "content": text}


# --- a reply that becomes history --------------------------------------------------------------------------------


def _stored(request: Document, reply: Document) -> bool:
    """Whether the provider has kept the reply, which it does if nobody says otherwise."""
    return request.get("store") is not False and reply.get("store") is not False


def _named(reply: Document) -> Document:
    """A copy in which every call has an id to answer to."""
    reply = deepcopy(reply)
    for item, call in Replied(reply).items():
        kind = tools.call_kind(item)
        if kind is not None and not text_of(item.get(kind.id)):
            item[kind.id] = call.id
    return reply


def _kept(output: Any, *, stored: bool) -> Iterator[Document]:
    """The items of an output as those of an input, without fields that are null: the API takes some only with a value.

    A provider that has not stored its reasoning knows it only by its sealed content, and refuses it without. Servers
    of open models send the reasoning itself and seal nothing; these read it.
    """
    for item in objects(output):
        if item.get("type") == "reasoning" and not (stored or item.get("encrypted_content") or item.get("content")):
            continue
        yield {field: value for field, value in item.items() if value is not None and field not in _NOT_BACK}


def _told(reply: Document, results: Mapping[str, str]) -> Iterator[Document]:
    """The results in the order of their calls, then what has no place in one."""
    apart = []
    for item, call in Replied(reply).items():
        kind = tools.call_kind(item)
        if kind is None or call.id not in results:
            continue
        yield kind.told(item, results[call.id])
        if kind.apart:
            apart.append(_message("developer", f"Result of {call.name} ({call.id}): {results[call.id]}"))
    yield from apart
