"""The client's request as a chat completion's. Tables say what is taken; all else is refused by its path."""

from collections.abc import Callable
from typing import Any

from ...stream import Document
from .. import Limit
from .conversation import messages
from .fields import ANY, Fields, below, copied, given, invalid, kind_of, need, objects, only, present, refuse

LOGPROBS = "message.output_text.logprobs"
_INCLUDED = (LOGPROBS, "reasoning.encrypted_content")


def chat_request(document: Document, limit: Limit) -> Document:
    """The provider's request, a document of its own. Raises InvalidRequest for what has no counterpart.

    `limit` is the field in which the provider takes the most tokens of a reply.
    """
    document = copied(document)
    asked = {"model": document.get("model"), "messages": messages(document)}
    for field, value in document.items():
        if value is not None and field not in _APART:
            asked |= {limit: value} if field == _LIMIT else _FIELDS.get(field, _refused)(value, below("", field))
    return asked | _tooling(document)


# --- fields beside the conversation and the tools -----------------------------------------------------------


def _refused(value: Any, path: str) -> Document:
    refuse(path)


def _same(value: Any, path: str) -> Document:
    return {path: value}


def _only(*values: Any) -> Callable[[Any, str], Document]:
    """A field that says nothing where it has one of these values."""
    return lambda value, path: {} if value in values else _refused(value, path)


def _nothing(value: Any, path: str) -> Document:
    return {}


def _include(value: Any, path: str) -> Document:
    for index, included in enumerate(given(value, path, list)):
        if included not in _INCLUDED:
            refuse(f"{path}[{index}]")
    return {"logprobs": True} if LOGPROBS in value else {}


def _top_logprobs(value: Any, path: str) -> Document:
    return {"logprobs": True, "top_logprobs": value} if value else {}


def _stream(value: Any, path: str) -> Document:
    return {"stream": True, "stream_options": {"include_usage": True}} if value else {}


def _fields_of(fields: Fields, said: Callable[[Document], Document]) -> Callable[[Any, str], Document]:
    """An object with these fields, and what it becomes."""

    def become(value: Any, path: str) -> Document:
        only(given(value, path, dict), path, fields)
        return said(value)

    return become


def _text(value: Any, path: str) -> Document:
    only(given(value, path, dict), path, {"format": ANY, "verbosity": ANY})
    form = value.get("format")
    said = present(verbosity=value.get("verbosity"))
    return said if form is None else said | _format(given(form, f"{path}.format", dict), f"{path}.format")


_FORMATS: dict[str, Fields] = {
    "text": {"type": ANY},
    "json_object": {"type": ANY},
    "json_schema": dict.fromkeys(("type", "name", "schema", "strict", "description"), ANY),
}


def _format(form: Document, path: str) -> Document:
    kind = kind_of(form, path, _FORMATS)
    only(form, path, _FORMATS[kind])
    match kind:
        case "text":
            return {}
        case "json_object":
            return {"response_format": {"type": kind}}
        case _:
            schema = present(**{key: value for key, value in form.items() if key != "type"})
            return {"response_format": {"type": kind, kind: schema}}


_REASONING: Fields = {
    "effort": ANY,
    "summary": ANY,
    "generate_summary": ANY,
    "context": ("auto",),
    "mode": ("standard",),
}
_CACHE_OPTIONS: Fields = {"mode": ANY, "ttl": ANY}

_LIMIT = "max_output_tokens"
_APART = frozenset(("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls"))
_FIELDS: dict[str, Callable[[Any, str], Document]] = {
    "temperature": _same,
    "top_p": _same,
    "user": _same,
    "metadata": _same,
    "service_tier": _same,
    "safety_identifier": _same,
    "prompt_cache_key": _same,
    "prompt_cache_retention": _same,
    "prompt_cache_options": _fields_of(_CACHE_OPTIONS, lambda value: {"prompt_cache_options": value}),
    "text": _text,
    "reasoning": _fields_of(_REASONING, lambda value: present(reasoning_effort=value.get("effort"))),
    "include": _include,
    "top_logprobs": _top_logprobs,
    "stream": _stream,
    "stream_options": _fields_of({"include_obfuscation": (False,)}, lambda value: {}),
    "store": _nothing,
    "max_tool_calls": _nothing,
    "background": _only(False),
    "truncation": _only("disabled"),
    "context_management": _only([]),
}

# --- tools ---------------------------------------------------------------------------------------------------

_TOOL: Fields = {
    **dict.fromkeys(("type", "name", "description"), ANY),
    "allowed_callers": (["direct"],),
    "defer_loading": (False,),
    "async": (False,),
}
_TOOLS: dict[str, Fields] = {
    "function": {**_TOOL, "parameters": ANY, "strict": ANY},
    "custom": {**_TOOL, "format": ANY},
}
_MODES = ("none", "auto", "required")
_Chosen = tuple[str, str]
"""A tool's type and name."""


def _tooling(document: Document) -> Document:
    """The tools, which of them to call, and whether several at once."""
    given_tools = document.get("tools")
    tools = [] if given_tools is None else [_tool(tool, path) for tool, path in objects(given_tools, "tools")]
    choice = document.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        tools, choice = _allowed(tools, choice)
    elif choice is not None:
        choice = _choice(choice, "tool_choice")
    if not tools:
        return present(tool_choice=choice) if choice not in (None, "none", "auto") else {}
    return present(tools=tools, tool_choice=choice, parallel_tool_calls=document.get("parallel_tool_calls"))


def _tool(tool: Document, path: str) -> Document:
    kind = kind_of(tool, path, _TOOLS)
    only(tool, path, _TOOLS[kind])
    said: Document = {"name": need(tool, path, "name")}
    said |= present(**{key: tool.get(key) for key in ("description", "parameters", "strict")})
    if tool.get("format") is not None:
        said["format"] = _grammar(given(tool["format"], f"{path}.format", dict), f"{path}.format")
    return {"type": kind, kind: said}


_GRAMMARS: dict[str, Fields] = {"text": {"type": ANY}, "grammar": dict.fromkeys(("type", "definition", "syntax"), ANY)}


def _grammar(form: Document, path: str) -> Document:
    """The format of a custom tool's input."""
    kind = kind_of(form, path, _GRAMMARS)
    only(form, path, _GRAMMARS[kind])
    if kind == "text":
        return form
    return {"type": kind, kind: present(definition=form.get("definition"), syntax=form.get("syntax"))}


def _choice(choice: Any, path: str) -> Any:
    """A word, or the one tool that has to be called."""
    if isinstance(choice, str):
        return choice if choice in _MODES else refuse(path)
    kind, name = _chosen(given(choice, path, dict), path)
    return {"type": kind, kind: {"name": name}}


def _chosen(tool: Document, path: str) -> _Chosen:
    kind = kind_of(tool, path, _TOOLS)
    only(tool, path, {"type": ANY, "name": ANY})
    return kind, need(tool, path, "name")


def _allowed(tools: list[Document], choice: Document) -> tuple[list[Document], Any]:
    """The tools that may be called, and the word that says how."""
    path = "tool_choice"
    only(choice, path, {"type": ANY, "mode": _MODES[1:], "tools": ANY})
    offered = {_name(tool): tool for tool in tools}
    allowed = [(_chosen(tool, at), at) for tool, at in objects(choice.get("tools"), f"{path}.tools")]
    for name, at in allowed:
        if name not in offered:
            invalid(at, "one of the tools in 'tools'")
    names = {name for name, _ in allowed}
    return [tool for tool in tools if _name(tool) in names], choice.get("mode")


def _name(tool: Document) -> _Chosen:
    kind = tool["type"]
    return kind, tool[kind]["name"]
