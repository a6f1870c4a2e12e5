"""The request, but for its messages."""

from collections.abc import Callable
from typing import Any

from ...stream import Document
from .. import Limit
from . import history
from .fields import Fields, expected, no_counterpart

# Up to this budget of thinking tokens. Google's OpenAI endpoint gives "medium" 8,192 tokens and "high" 24,576
# (ai.google.dev/gemini-api/docs/openai): each effort begins at the budget it would be given there.
EFFORTS = ((8_191, "low"), (24_575, "medium"))
_MOST = "high"

# platform.claude.com/docs/en/api/errors; a client looks for it in `error.details.error_code`.
NO_THREADS = "thread_unsupported_request"

_SAME = ("temperature", "top_p", "top_k")


def chat(document: Document, limit: Limit) -> Document:
    source = Fields(document, "")
    _refuse_threads(source)
    request: Document = {"model": source.take("model"), "messages": history.messages(source)}
    most = source.take("max_tokens")
    if most is not None:
        request[limit] = most
    for step in _STEPS:
        request |= step(source)
    source.done()
    return request


def _refuse_threads(source: Fields) -> None:
    """The official client's agent loop asks the server to hold the conversation. At an error of this code it sends the
    whole conversation with each request instead."""
    if source.take("thread") is not None:
        refusal = no_counterpart("thread")
        refusal.code = NO_THREADS
        raise refusal


def _sampling(source: Fields) -> Document:
    given = {field: source.take(field) for field in _SAME}
    given["stop"] = source.take("stop_sequences") or None
    return _present(given)


def _tools(source: Fields) -> Document:
    tools = [_tool(tool) for tool in source.items("tools")]
    return {"tools": tools} if tools else {}


def _tool(tool: Fields) -> Document:
    tool.only("type", "custom")
    tool.only("defer_loading", False)
    tool.only("allowed_callers", ["direct"])
    function = {
        "name": tool.needed("name"),
        "description": tool.text("description"),
        "parameters": tool.take("input_schema"),
        "strict": tool.take("strict"),
    }
    tool.done()
    return {"type": "function", "function": _present(function)}


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def _tool_choice(source: Fields) -> Document:
    choice = source.inner("tool_choice")
    if choice is None:
        return {}
    kind = choice.only("type", *_CHOICES, "tool")
    if kind is None:
        raise expected(choice.at("type"), "a string")
    chosen: Any = _CHOICES.get(kind) or {"type": "function", "function": {"name": choice.needed("name")}}
    alone = {"parallel_tool_calls": False} if choice.flag("disable_parallel_tool_use") else {}
    choice.done()
    return {"tool_choice": chosen} | alone


def _output(source: Fields) -> Document:
    """How hard the model thinks, and the form of its answer."""
    by_budget = _effort(source.inner("thinking"))
    config = source.inner("output_config") or Fields({}, "output_config")
    effort = config.text("effort") or by_budget
    format_ = _format(config.inner("format") or source.inner("output_format"))
    config.done()
    return _present({"reasoning_effort": effort, "response_format": format_})


def _effort(thinking: Fields | None) -> str | None:
    if thinking is None:
        return None
    kind = thinking.only("type", "enabled", "disabled", "adaptive")
    budget = thinking.take("budget_tokens") if kind == "enabled" else None
    if kind == "enabled" and not (isinstance(budget, int) and not isinstance(budget, bool)):
        raise expected(thinking.at("budget_tokens"), "an integer")
    # Thinking that is not shown cannot come back with the next request, where some providers ask for it.
    thinking.only("display", "summarized")
    thinking.done()
    return None if budget is None else next((effort for most, effort in EFFORTS if budget <= most), _MOST)


def _format(asked: Fields | None) -> Document | None:
    if asked is None:
        return None
    asked.only("type", "json_schema")
    schema = asked.take("schema")
    if not isinstance(schema, dict):
        raise expected(asked.at("schema"), "an object")
    asked.done()
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": schema, "strict": True}}


def _caller(source: Fields) -> Document:
    metadata = source.inner("metadata") or Fields({}, "metadata")
    user = metadata.text("user_id")
    metadata.done()
    return _present({"user": user})


def _service(source: Fields) -> Document:
    source.only("speed", "standard")
    tier = source.only("service_tier", "auto", "standard_only")
    return {"service_tier": "default"} if tier == "standard_only" else {}


def _context(source: Fields) -> Document:
    """Edits that change nothing: all thinking stays."""
    config = source.inner("context_management")
    if config is not None:
        for edit in config.items("edits"):
            edit.only("type", "clear_thinking_20251015")
            if edit.take("keep") not in _ALL:
                raise no_counterpart(edit.at("keep"))
            edit.done()
        config.done()
    return {}


_ALL: tuple[Any, ...] = ("all", {"type": "all"})


def _stream(source: Fields) -> Document:
    return {"stream": True, "stream_options": {"include_usage": True}} if source.flag("stream") else {}


_STEPS: tuple[Callable[[Fields], Document], ...] = (
    *(_sampling, _tools, _tool_choice, _output, _caller, _service, _context, _stream),
)


def _present(fields: Document) -> Document:
    return {field: value for field, value in fields.items() if value is not None}
