"""The ways in which official clients ask, each as a function of (clients, task, sampling)."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai

from .tasks import Task
from .verdict import Got

Sampling = dict[str, Any]
MODEL = "small"
MOST_TOKENS = 96
ASK_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Clients:
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic

    @classmethod
    def of(cls, url: str) -> "Clients":
        """Clients of a sidecar. They do not ask twice by themselves."""
        common: dict[str, Any] = {"api_key": "any", "max_retries": 0, "timeout": ASK_SECONDS}
        return cls(openai.OpenAI(base_url=f"{url}/v1", **common), anthropic.Anthropic(base_url=url, **common))


Way = Callable[[Clients, Task, Sampling], Got]


def asking(way: Way, clients: Clients, task: Task, sampling: Sampling) -> Got:
    """What a client gets; an error is what it raised."""
    try:
        return way(clients, task, sampling)
    except (openai.OpenAIError, anthropic.AnthropicError, ValueError) as error:
        response = getattr(error, "response", None)
        told = response.headers.get("x-sidecar-calls") if response is not None else None
        return Got(error=f"{type(error).__name__}: {error}", calls_told=told)


def name_of(task: Task) -> str:
    """What the form of its answer is called."""
    return re.sub(r"\W+", "_", task.name)


# --- chat completions ---


def _chat(task: Task, sampling: Sampling) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": MODEL, "messages": [*task.messages], "max_tokens": MOST_TOKENS, **sampling}
    if task.tools:
        asked["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in task.tools
        ]
    if task.required:
        asked["tool_choice"] = "required"
    if task.form is not None:
        form = {"name": name_of(task), "schema": task.form, "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": form}
    return asked


def chat(clients: Clients, task: Task, sampling: Sampling) -> Got:
    raw = clients.openai.chat.completions.with_raw_response.create(**_chat(task, sampling))
    return _completion(raw.parse(), _told(raw))


def streamed(clients: Clients, task: Task, sampling: Sampling) -> Got:
    """The client's own helper puts the stream together."""
    with clients.openai.chat.completions.stream(**_chat(task, sampling)) as stream:
        stream.until_done()
        return _completion(stream.get_final_completion())


def parsed(clients: Clients, task: Task, sampling: Sampling) -> Got:
    """An object of a class; the client makes the schema."""
    asked = {**_chat(task, sampling), "response_format": task.model}
    raw = clients.openai.chat.completions.with_raw_response.parse(**asked)
    (choice,) = raw.parse().choices
    if choice.message.parsed is None:
        raise ValueError(f"nothing was parsed: {choice.message.content or choice.message.refusal}")
    return Got(text=choice.message.parsed.model_dump_json(), calls_told=_told(raw))


def _completion(completion: Any, told: str | None = None) -> Got:
    message = completion.choices[0].message
    calls = tuple((call.function.name, call.function.arguments) for call in message.tool_calls or ())
    return Got(calls, message.content or "", calls_told=told)


def _told(raw: Any) -> str | None:
    told: str | None = raw.headers.get("x-sidecar-calls")
    return told


# --- Responses ---


def responses(clients: Clients, task: Task, sampling: Sampling) -> Got:
    asked: dict[str, Any] = {"model": MODEL, "input": [*_items(task)], "max_output_tokens": MOST_TOKENS, "store": False}
    if task.tools:
        asked["tools"] = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters}
            for t in task.tools
        ]
    if task.form is not None:
        asked["text"] = {"format": {"type": "json_schema", "name": name_of(task), "schema": task.form, "strict": True}}
    raw = clients.openai.responses.with_raw_response.create(**asked, temperature=sampling["temperature"])
    response = raw.parse()
    calls = tuple((item.name, item.arguments) for item in response.output if item.type == "function_call")
    return Got(calls, response.output_text, calls_told=_told(raw))


def _items(task: Task) -> Iterable[dict[str, Any]]:
    for message in task.messages:
        match message:
            case {"tool_calls": calls}:
                for call in calls:
                    yield {"type": "function_call", "call_id": call["id"], **call["function"]}
            case {"role": "tool"}:
                output = message["content"]
                yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
            case _:
                yield message


# --- Anthropic Messages ---


def messages(clients: Clients, task: Task, sampling: Sampling) -> Got:
    """Only tools: see `_blocks` for the conversation."""
    tools: list[Any] = [
        {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in task.tools
    ]
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": MOST_TOKENS, "messages": [*map(_blocks, task.messages)]}
    # This client has no argument for it; the API has the field.
    more = {"temperature": sampling["temperature"]}
    raw = clients.anthropic.messages.with_raw_response.create(**asked, tools=tools, extra_body=more)
    content = raw.parse().content
    calls = tuple((block.name, json.dumps(block.input)) for block in content if block.type == "tool_use")
    return Got(calls, "".join(block.text for block in content if block.type == "text"), calls_told=_told(raw))


def _blocks(message: dict[str, Any]) -> dict[str, Any]:
    match message:
        case {"tool_calls": [call]}:
            function = call["function"]
            arguments = json.loads(function["arguments"])
            used = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}
            return {"role": "assistant", "content": [used]}
        case {"role": "tool"}:
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            return {"role": "user", "content": [result]}
    return message
