"""Whether what a client got, or what the model said, is what was asked for."""

import json
import re
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from .tasks import Schema, Task


@dataclass(frozen=True, slots=True)
class Got:
    """What a client got: calls as (name, JSON text of the arguments), and the text; `error` where it got neither.

    `calls_told`: what x-sidecar-calls said, where there was a reply that could say it.
    """

    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""
    error: str = ""
    calls_told: str | None = None

    def __str__(self) -> str:
        called = " ".join(f"{name}({arguments})" for name, arguments in self.calls)
        return self.error or called or self.text


def is_right(task: Task, got: Got) -> bool:
    if got.error:
        return False
    if task.form is not None:
        return fits(task.form, got.text)
    return bool(got.calls) and all(_is_call(task, name, arguments) for name, arguments in got.calls)


def fits(schema: Schema, text: str) -> bool:
    """Whether a text is JSON and nothing else, and fits."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(Draft202012Validator(schema).is_valid(value))


def _is_call(task: Task, name: str, arguments: str) -> bool:
    schema = next((tool.parameters for tool in task.tools if tool.name == name), None)
    return schema is not None and fits(schema, arguments)


def is_right_alone(task: Task, said: str) -> bool:
    """Whether the model's own words would have done: just the JSON, or just one call, in its fence or without."""
    if task.form is not None:
        return fits(task.form, said)
    match _loaded(_FENCED.sub(r"\1", said.strip())):
        case {"tool": str(name), "arguments": dict(arguments), **more} if not more:
            return _is_call(task, name, json.dumps(arguments))
    return False


_FENCED = re.compile(r"\A```(?:tool_call|json)?\n(.*)\n```\Z", re.DOTALL)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
