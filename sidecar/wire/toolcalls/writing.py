"""How tools and calls are written for a model: the dialects that `dialects` describes and `reading` reads.

The forms are those of the models' own chat templates, as far as a text can have them; words between them are ours.
Sources: the chat templates in the model repositories of Qwen/Qwen2.5-7B-Instruct and NousResearch/Hermes-3-Llama-3.1-8B
(`hermes`), meta-llama/Llama-3.1-8B-Instruct (`llama3`), mistralai/Mistral-7B-Instruct-v0.3 (`mistral`),
deepseek-ai/DeepSeek-V3.1 (`deepseek`), and openai/harmony, docs/format.md (`harmony`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..stream import Document
from .asked import Offered
from .marks import json_text, neutral


class Call(NamedTuple):
    """A call of the history. `arguments` is an object, or the text that should have been one."""

    name: str
    arguments: Any


class Writing(NamedTuple):
    """`listed` shows the tools, `called` writes calls, `frame` is the tag of a result.

    `how` says how to write one call, `several` how to write more of them.
    """

    listed: Callable[[Sequence[Offered]], str]
    how: str
    several: str
    called: Callable[[Sequence[Call]], str]
    frame: str = "tool_result"


# --- tools ---------------------------------------------------------------------------------------------------


def _definition(tool: Offered) -> Document:
    """A tool as chat completions define it. Without parameters it takes an empty object."""
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "parameters": tool.parameters or {"type": "object", "properties": {}}}


def _paragraphs(tools: Sequence[Offered]) -> str:
    return "\n\n".join(map(_paragraph, tools))


def _paragraph(tool: Offered) -> str:
    lines = (
        f"### {neutral(tool.name)}",
        neutral(tool.description.strip()),
        f"Arguments (JSON Schema): {json_text(_definition(tool)['parameters'])}",
    )
    return "\n".join(filter(None, lines))


def _in_tags(tools: Sequence[Offered]) -> str:
    lines = (json_text({"type": "function", "function": _definition(tool)}) for tool in tools)
    return "\n".join(("<tools>", *lines, "</tools>"))


def _lines(tools: Sequence[Offered]) -> str:
    return "\n".join(json_text({"type": "function", "function": _definition(tool)}) for tool in tools)


def _in_brackets(tools: Sequence[Offered]) -> str:
    listed = ",".join(json_text({"type": "function", "function": _definition(tool)}) for tool in tools)
    return f"[AVAILABLE_TOOLS][{listed}][/AVAILABLE_TOOLS]"


def _namespace(tools: Sequence[Offered]) -> str:
    lines = (json_text(_definition(tool)) for tool in tools)
    return "\n".join(("namespace functions", *lines))


# --- calls ---------------------------------------------------------------------------------------------------


def _named(call: Call, name: str = "name", arguments: str = "arguments") -> str:
    return json_text({name: call.name, arguments: call.arguments})


def _fences(calls: Sequence[Call]) -> str:
    return "\n".join(f"```tool_call\n{_named(call, 'tool')}\n```" for call in calls)


def _call_tags(calls: Sequence[Call]) -> str:
    return "\n".join(f"<tool_call>\n{_named(call)}\n</tool_call>" for call in calls)


def _objects(calls: Sequence[Call]) -> str:
    return "; ".join(_named(call, arguments="parameters") for call in calls)


def _one_list(calls: Sequence[Call]) -> str:
    return f"[TOOL_CALLS][{','.join(map(_named, calls))}]"


def _begins_and_ends(calls: Sequence[Call]) -> str:
    each = (
        f"<｜tool▁call▁begin｜>{neutral(call.name)}<｜tool▁sep｜>{json_text(call.arguments)}<｜tool▁call▁end｜>"
        for call in calls
    )
    return f"<｜tool▁calls▁begin｜>{''.join(each)}<｜tool▁calls▁end｜>"


def _channels(calls: Sequence[Call]) -> str:
    each = (
        f"<|channel|>commentary to=functions.{neutral(call.name)} <|constrain|>json<|message|>"
        f"{json_text(call.arguments)}<|call|>"
        for call in calls
    )
    return "<|start|>assistant".join(each)


_EXAMPLE: Final = (Call("NAME", {"ARGUMENT": "VALUE"}),)
_TWO: Final = (*_EXAMPLE, Call("OTHER", {"ARGUMENT": "VALUE"}))


def _how(each: str, written: Callable[[Sequence[Call]], str]) -> str:
    return f"To call a tool, write {each}:\n\n{written(_EXAMPLE)}"


NEXT: Final = (
    "Text before the calls is shown to the user. Write nothing after them and no results of your own: the results come "
    "in the next message. Call only tools of this list. Where no tool is needed, answer without a call."
)
"""What holds in every dialect."""

WRITINGS: Final[Mapping[str, Writing]] = {
    "prompt": Writing(
        _paragraphs,
        _how("a fenced block with its name and one JSON object of arguments, like this", _fences),
        "For several calls write several blocks, one after the other.",
        _fences,
    ),
    "hermes": Writing(
        _in_tags,
        _how("its name and one JSON object of arguments between tool_call tags, like this", _call_tags),
        "For several calls write several pairs of tags, one after the other.",
        _call_tags,
        "tool_response",
    ),
    "llama3": Writing(
        _lines,
        _how("a JSON object with its name and its parameters, and nothing else beside it, like this", _objects),
        "For several calls write several such objects with a semicolon between them.",
        _objects,
    ),
    "mistral": Writing(
        _in_brackets,
        _how("[TOOL_CALLS] and a JSON list with its name and one JSON object of arguments, like this", _one_list),
        f"Several calls stand in the same list: {_one_list(_TWO)}",
        _one_list,
    ),
    "deepseek": Writing(
        _paragraphs,
        _how("its name and one JSON object of arguments between these marks", _begins_and_ends),
        f"Several calls stand between the outer marks: {_begins_and_ends(_TWO)}",
        _begins_and_ends,
    ),
    "harmony": Writing(
        _namespace,
        _how(
            "a message on the commentary channel to the function, with one JSON object of arguments, like this",
            _channels,
        ),
        "For several calls write several such messages.",
        _channels,
    ),
}
"""By the name of the dialect."""
