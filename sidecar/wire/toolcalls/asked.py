"""What a chat request says of tools: which there are, and which of them the model may, must or must not call."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ...errors import InvalidRequest
from ..stream import Document

FIELDS: Final = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
"""The fields of a request that are told in words; they do not go to the provider."""
INPUT: Final = "input"
"""The one argument of a tool that takes a free text."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as a model is told of it. `parameters` is the JSON Schema of its arguments; `free`: it takes a text."""

    name: str
    description: str
    parameters: Any
    free: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """`tools` are sorted by name. `may` names those that may be called in this answer, `must`: one has to be.

    `alone`: at most one call. `legacy`: the client speaks the older `functions` and reads `function_call`.
    """

    tools: tuple[Offered, ...] = ()
    may: frozenset[str] = frozenset()
    must: bool = False
    alone: bool = False
    legacy: bool = False

    @property
    def schemas(self) -> dict[str, Any]:
        """The schemas of the tools that may be called."""
        return {tool.name: tool.parameters for tool in self.tools if tool.name in self.may}

    @property
    def free(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools if tool.free)


NOTHING: Final = Asked()


def asked(document: Document) -> Asked:
    """What a request asks for; NOTHING where there are no tools or none may be called.

    Raises InvalidRequest for tools that are no tools of the client's own, and for a choice that is none.
    """
    legacy = not document.get("tools") and bool(document.get("functions"))
    listed = _functions(document) if legacy else _tools(document)
    choice = document.get("function_call" if legacy else "tool_choice")
    if not listed or choice == "none":
        return NOTHING
    tools = tuple(sorted(listed, key=lambda tool: tool.name))
    must, may = _chosen(choice, frozenset(tool.name for tool in tools), "function_call" if legacy else "tool_choice")
    return Asked(tools, may, must, legacy or document.get("parallel_tool_calls") is False, legacy)


def _tools(document: Document) -> list[Offered]:
    return [_tool(tool, path) for tool, path in _objects(document, "tools")]


def _functions(document: Document) -> list[Offered]:
    return [_function(function, path) for function, path in _objects(document, "functions")]


def _objects(document: Document, field: str) -> Iterator[tuple[Document, str]]:
    given = document.get(field)
    if given is not None and not isinstance(given, list):
        raise _expected(field, "a list")
    for index, one in enumerate(given or ()):
        yield _object(one, f"{field}[{index}]"), f"{field}[{index}]"


def _object(value: Any, path: str) -> Document:
    if not isinstance(value, dict):
        raise _expected(path, "an object")
    return value


def _tool(tool: Document, path: str) -> Offered:
    match tool.get("type", "function"):
        case "function":
            return _function(_object(tool.get("function"), f"{path}.function"), f"{path}.function")
        case "custom":
            return _custom(_object(tool.get("custom"), f"{path}.custom"), f"{path}.custom")
    raise InvalidRequest(
        f"'{path}.type' asks for a tool that a provider runs itself, and the target of this model is told of tools in "
        "words: there is nobody to run it. Leave it out, or ask for a model whose provider has it.",
        param=f"{path}.type",
    )


def _function(function: Document, path: str) -> Offered:
    return Offered(_name(function, path), _text(function.get("description")), function.get("parameters"))


def _custom(custom: Document, path: str) -> Offered:
    """A tool that takes a text of any kind is told as one with a single argument."""
    text: Document = {"type": "string"}
    form = custom.get("format")
    grammar = form.get("grammar") if isinstance(form, dict) else None
    if isinstance(grammar, dict) and isinstance(grammar.get("definition"), str):
        text["description"] = f"In this grammar ({grammar.get('syntax', 'lark')}): {grammar['definition']}"
    schema = {"type": "object", "properties": {INPUT: text}, "required": [INPUT]}
    return Offered(_name(custom, path), _text(custom.get("description")), schema, free=True)


def _name(holder: Document, path: str) -> str:
    name = holder.get("name")
    if not isinstance(name, str) or not name:
        raise _expected(f"{path}.name", "a name")
    return name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _expected(path: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"'{path}' must be {what}.", param=path)


# --- the choice ----------------------------------------------------------------------------------------------


def _chosen(choice: Any, names: frozenset[str], path: str) -> tuple[bool, frozenset[str]]:
    """Whether a call must be made, and the tools that may be called."""
    match choice:
        case None | "auto":
            return False, names
        case "required" | "any":
            return True, names
        case {"type": "allowed_tools", "allowed_tools": {"tools": [*allowed], **more}}:
            picked = frozenset(_known(_picked(one), names, f"{path}.allowed_tools") for one in allowed)
            return more.get("mode") == "required", picked
        case dict():
            return True, frozenset((_known(_picked(choice), names, path),))
    raise _expected(path, "auto, none, required or one of the tools")


def _picked(choice: Any) -> Any:
    """The name in `{"type", "function": {"name"}}`, `{"type", "custom": {"name"}}`, or the older `{"name"}`."""
    match choice:
        case {"function": {"name": name}} | {"custom": {"name": name}} | {"name": name}:
            return name
    return None


def _known(name: Any, names: frozenset[str], path: str) -> str:
    if not isinstance(name, str) or name not in names:
        raise _expected(path, "the name of one of the request's tools")
    return name
