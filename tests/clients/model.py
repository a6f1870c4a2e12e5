"""A scripted model that is asked in four APIs and speaks all of them: chat, Responses, Messages and Ollama's own.

It calls the tools that it is offered, each once and all at the same time; a tool that hands the conversation over comes
first, alone. Then it tells what the tools gave. It writes mails to whom the conversation names, the way it sees the
name, and adds a secret of its own to everything. Asked as `says-WORD` it says that word, as `status-429` it fails.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cases.upstream import Script, Seen
from tests.wire import messages_talk, responses_talk

from .provider import PROVIDERS, chat

EMAIL = "ann.archer@example.com"
CARD = "4111 1111 1111 1111"
# What a person or a placeholder for one looks like.
_PERSON = re.compile(r"<[A-Z_]+_\d+>|[\w.]+@[\w.]+\w")
_JSON = {"content-type": "application/json", "x-request-id": "req_provider"}
_NDJSON = {"content-type": "application/x-ndjson"}
_DATE = "2025-01-01T00:00:00Z"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Heard:
    """A conversation, in whatever API it came: texts by who said them, the tools on offer and those already called."""

    model: str
    texts: tuple[tuple[str, str], ...]
    offered: tuple[str, ...]
    called: tuple[str, ...]

    def said_by(self, role: str) -> str:
        return ", ".join(text for who, text in self.texts if who == role)

    @property
    def person(self) -> str:
        return next(iter(_PERSON.findall(self.said_by("user"))), "nobody")


@dataclass(frozen=True, slots=True)
class Said:
    """A reply: a text, or calls as (id, name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()


def reply(heard: Heard) -> Said:
    waiting = [tool for tool in heard.offered if tool not in heard.called]
    over = [tool for tool in waiting if tool.startswith("transfer_to_")]
    if waiting:
        return Said(calls=tuple(_call(heard, name) for name in over or waiting))
    spoken = heard.model.removeprefix("says-") if heard.model.startswith("says-") else PROVIDERS
    told = heard.said_by("result") or heard.said_by("user")
    return Said(f"You told me: {told}. I mail {heard.person} and say {spoken}, no more.")


def _call(heard: Heard, name: str) -> tuple[str, str, dict[str, Any]]:
    wanted = {"to": heard.person, "text": f'"{PROVIDERS}" \\ é', "copies": 2}
    return f"call_{len(heard.called)}_{name}", name, {} if name.startswith("transfer_to_") else wanted


def answer(seen: Seen) -> Script:
    """The reply to one request, in its API."""
    path = seen.target.partition("?")[0]
    if path not in APIS:
        return {"status": 404, "headers": _JSON, "json": {"error": {"message": "no such path", "code": "not_found"}}}
    api, asked = APIS[path], seen.json
    if status := re.fullmatch(r"status-(\d+)", asked["model"]):
        return {"status": int(status[1]), "headers": _JSON, "json": api.error(int(status[1]))}
    return api.say(reply(api.hear(asked)), asked)


@dataclass(frozen=True, slots=True)
class Api:
    hear: Callable[[Document], Heard]
    say: Callable[[Said, Document], Script]
    error: Callable[[int], Document]


def _text(content: Any) -> str:
    """A text, or the texts of parts."""
    if isinstance(content, str):
        return content
    return " ".join(_text(part.get("text") or part.get("content") or "") for part in content or ())


def _heard(asked: Document, texts: Iterable[tuple[str, Any]], offered: Iterable[str], called: Iterable[str]) -> Heard:
    return Heard(asked["model"], tuple((who, _text(text)) for who, text in texts), tuple(offered), tuple(called))


# --- chat completions, and Ollama's messages, which are much alike


def _hear_chat(asked: Document) -> Heard:
    messages = asked["messages"]
    texts = [("result" if m["role"] == "tool" else m["role"], m.get("content")) for m in messages]
    called = [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]
    return _heard(asked, texts, (tool["function"]["name"] for tool in asked.get("tools") or ()), called)


def _say_chat(said: Said, asked: Document) -> Script:
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, name, arguments in said.calls
    ]
    message = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
    return chat([message], asked)


def _openai_error(status: int) -> Document:
    return {"error": {"message": "no", "type": "scripted", "param": "input", "code": f"provider_{status}"}}


# --- Responses


def _hear_responses(asked: Document) -> Heard:
    given = asked["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    texts = [("system", asked.get("instructions"))]
    texts += [("result", i["output"]) if "output" in i else (i.get("role", ""), i.get("content")) for i in items]
    called = [item["name"] for item in items if item.get("type") == "function_call"]
    return _heard(asked, texts, (tool["name"] for tool in asked.get("tools") or ()), called)


def _say_responses(said: Said, asked: Document) -> Script:
    items = list(_items(said, f"{len(asked['input'])}"))
    same = {"model": asked["model"], "tools": asked.get("tools") or []}
    same["usage"] = {
        "input_tokens": 7,
        "output_tokens": 5,
        "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    if not asked.get("stream"):
        return {"status": 200, "headers": _JSON, "json": responses_talk.response(items, **same)}
    told = responses_talk.events(items, list, **same)
    for event in told:
        for token in event.get("logprobs", ()):
            token["top_logprobs"] = []
    return {"status": 200, "steps": [{"send_bytes": responses_talk.stream_bytes([event])} for event in told]}


def _items(said: Said, turn: str) -> Iterator[dict[str, Any]]:
    summary = [{"type": "summary_text", "text": f"They told me {PROVIDERS}."}]
    yield {"type": "reasoning", "id": f"rs_{turn}", "summary": summary}
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        whole = {"type": "message", "role": "assistant", "status": "completed"}
        yield {**whole, "id": f"msg_{turn}", "content": [part]}
    for id_, name, arguments in said.calls:
        call = {"call_id": id_, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
        yield {"type": "function_call", "id": f"fc_{id_}", **call}


# --- Messages


def _hear_messages(asked: Document) -> Heard:
    texts: list[tuple[str, Any]] = [("system", asked.get("system"))]
    called = []
    for message in asked["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text":
                    texts.append((message["role"], block["text"]))
                case "tool_result":
                    texts.append(("result", block["content"]))
                case "tool_use":
                    called.append(block["name"])
    return _heard(asked, texts, (tool["name"] for tool in asked.get("tools") or ()), called)


class Threads:
    """Conversations that the provider keeps for clients of Messages, by the id of the last reply."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Any]] = {}

    def answer(self, seen: Seen) -> Script:
        """The reply to one request; it goes on from what is kept, where the request says so."""
        thread = seen.json.get("thread") if seen.target.startswith("/v1/messages") else None
        if thread is None:
            return answer(seen)
        asked = {**seen.json, "thread": None}
        if thread["type"] == "continue":
            before = self._kept[thread["previous_message_id"]]
            asked = {**before, **asked, "messages": [*before["messages"], *asked["messages"]]}
        said = reply(_hear_messages(asked))
        spoken = {"role": "assistant", "content": _said_blocks(said)}
        self._kept["msg_1"] = {**asked, "messages": [*asked["messages"], spoken]}
        return _say_messages(said, asked)


def _say_messages(said: Said, asked: Document) -> Script:
    reason, blocks = "tool_use" if said.calls else "end_turn", _said_blocks(said)
    if not asked.get("stream"):
        document = {**messages_talk.whole(*blocks), "model": asked["model"], "stop_reason": reason}
        return {"status": 200, "headers": _JSON, "json": document}
    told = [messages_talk.start(), *_blocks(blocks), *messages_talk.end(reason)]
    return {"status": 200, "steps": [{"send_bytes": messages_talk.frame(event).raw} for event in told]}


def _said_blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"They told me {PROVIDERS}.", "signature": "c2VhbGVk"}
    ]
    blocks += [{"type": "text", "text": said.text}] if said.text else []
    blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in said.calls]
    return blocks


def _blocks(blocks: Iterable[Document]) -> Iterator[Document]:
    for index, block in enumerate(blocks):
        match block:
            case {"thinking": thought}:
                yield from messages_talk.thinking(index, list(thought))
            case {"text": text}:
                yield from messages_talk.text(index, list(text))
            case {"input": arguments}:
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in json.dumps(arguments)]
                yield from messages_talk.block(index, {**block, "input": {}}, *deltas)


def _anthropic_error(status: int) -> Document:
    return {"type": "error", "error": {"type": f"provider_{status}", "message": "no"}, "request_id": "req_provider"}


# --- Ollama


def _say_ollama(said: Said, asked: Document) -> Script:
    head = {"model": asked["model"], "created_at": _DATE}
    calls = [{"function": {"name": name, "arguments": arguments}} for _, name, arguments in said.calls]
    last = {**head, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 5}
    extra = {"tool_calls": calls} if calls else {}
    if asked.get("stream") is False:
        document = {**last, "message": {"role": "assistant", "content": said.text, **extra}}
        return {"status": 200, "headers": _JSON, "json": document}
    messages = [{"role": "assistant", "content": character} for character in said.text]
    messages += [{"role": "assistant", "content": "", **extra}] if calls else []
    lines = [{**head, "message": message, "done": False} for message in messages]
    lines.append({**last, "message": {"role": "assistant", "content": ""}})
    return {"status": 200, "headers": _NDJSON, "steps": [{"send": json.dumps(line) + "\n"} for line in lines]}


def _ollama_error(status: int) -> Document:
    return {"error": f"no, provider_{status}"}


APIS: Mapping[str, Api] = {
    "/v1/chat/completions": Api(_hear_chat, _say_chat, _openai_error),
    "/v1/responses": Api(_hear_responses, _say_responses, _openai_error),
    "/v1/messages": Api(_hear_messages, _say_messages, _anthropic_error),
    "/api/chat": Api(_hear_chat, _say_ollama, _ollama_error),
}
