"""Calls of tools under a policy without a server: a model that plays its replies, and what the client gets."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.core.chain import Chain, Run
from sidecar.core.decision import Stop
from sidecar.core.exchange import Exchange, Request
from sidecar.core.identity import NOBODY, Identity
from sidecar.core.port import Heard
from sidecar.stages import build
from sidecar.stages.scrub import ScrubConfig
from sidecar.stages.tools import ToolsConfig
from sidecar.stores.approvals import Desk
from sidecar.stores.runs import Runs
from sidecar.wire import chat, jsondoc, sse
from sidecar.wire.stream import Frame, ReplyStream, edit_reply

Document = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"url": {"type": "string"}, "n": {"type": "integer"}}, "required": ["url"]}


def tool(name: str, schema: Any = None, description: str = "") -> Document:
    function = {"name": name, "description": description, **({} if schema is None else {"parameters": schema})}
    return {"type": "function", "function": function}


TOOLS = [tool(name) for name in ("read", "shell", "vault_read", "send_mail")] + [tool("get", SCHEMA)]


def call(name: str, arguments: Any = None, id: str = "") -> Document:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": id or f"call_{name}", "type": "function", "function": {"name": name, "arguments": written}}


def says(*calls: Document, content: str | None = None, reason: str = "") -> Document:
    """A reply with one choice."""
    return choices((content, calls, reason))


def choices(*said: tuple[str | None, Sequence[Document], str]) -> Document:
    found = [
        {
            "index": index,
            "message": {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})},
            "finish_reason": reason or ("tool_calls" if calls else "stop"),
        }
        for index, (content, calls, reason) in enumerate(said)
    ]
    return {"id": "c", "object": "chat.completion", "choices": found}


class Model:
    """Answers with one reply after the other, and knows what it was asked."""

    def __init__(self, *replies: Document | Heard) -> None:
        self._replies = list(replies)
        self.asked: list[Document] = []

    async def ask(self, document: Document) -> Heard:
        self.asked.append(jsondoc.decode(jsondoc.encode(document)))
        reply = self._replies.pop(0)
        return reply if isinstance(reply, Heard) else Heard(jsondoc.decode(jsondoc.encode(reply)), reply=reply)

    @property
    def messages(self) -> list[Document]:
        """The messages of the last request."""
        found: list[Document] = self.asked[-1]["messages"]
        return found


class Outcome:
    """What came of one exchange."""

    def __init__(self, run: Run, model: Model, reply: Document | None, sent: Document) -> None:
        self.run, self.model, self.reply, self.sent = run, model, reply, sent

    @property
    def stop(self) -> Stop | None:
        return self.run.stopped

    @property
    def held(self) -> bool:
        return self.run.answered is not None or bool(self.model.asked)

    @property
    def message(self) -> Document:
        assert self.reply is not None
        found: Document = self.reply["choices"][0]["message"]
        return found

    @property
    def content(self) -> str | None:
        found: str | None = self.message.get("content")
        return found

    @property
    def calls(self) -> list[str]:
        return names(self.message)

    @property
    def reason(self) -> str:
        assert self.reply is not None
        return str(self.reply["choices"][0]["finish_reason"])

    @property
    def told(self) -> list[tuple[str, str]]:
        """The rule and the word of each finding."""
        return [(found.rule, found.name) for verdict in self.run.verdicts for found in verdict.findings]


def names(message: Mapping[str, Any]) -> list[str]:
    return [each["function"]["name"] for each in message.get("tool_calls") or ()]


class Talk:
    """Exchanges of one run under a policy."""

    def __init__(
        self,
        *rules: Mapping[str, Any],
        who: Identity = NOBODY,
        desk: Desk | None = None,
        rails: Sequence[Any] = (),
        scrub: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        tools = ToolsConfig.model_validate_json(json.dumps({"rules": rules, **config}))
        self.chain = Chain.of(build(rails, ScrubConfig.model_validate(scrub or {}), tools=tools))
        self.runs, self.who, self.desk = Runs(), who, desk

    def open(self, model: Model | None = None) -> Run:
        exchange = Exchange("x", "chat", self.who.tenant, identity=self.who, approvals=self.desk, runs=self.runs)
        return self.chain.open(exchange, None if model is None else lambda chain, exchange, run: model)

    def hold(self, *replies: Document | Heard, history: Iterable[Document] = (), **fields: Any) -> Outcome:
        """An exchange with a port."""
        return asyncio.run(self.held(*replies, history=history, **fields))

    async def held(self, *replies: Document | Heard, history: Iterable[Document] = (), **fields: Any) -> Outcome:
        model = Model(*replies)
        run, document = self.open(model), request(history, **fields)
        await run.request(Request(document, chat.request_slots(document), reread=chat.request_slots))
        answered = run.answered
        if answered is not None:
            return Outcome(run, model, answered.document or answered.heard.document, document)
        reply = None if run.stopped else model._replies[0]
        assert not isinstance(reply, Heard)
        if reply is not None:
            edit_reply(chat, run, reply)
        return Outcome(run, model, reply, document)

    def hear(self, reply: Document, history: Iterable[Document] = (), **fields: Any) -> Outcome:
        """A buffered reply that nobody holds."""
        run, document = self._began(history, fields)
        reply = jsondoc.decode(jsondoc.encode(reply))
        edit_reply(chat, run, reply)
        return Outcome(run, Model(), reply, document)

    def stream(self, frames: Iterable[Frame], history: Iterable[Document] = (), **fields: Any) -> "Streamed":
        run, _ = self._began(history, {"stream": True, **fields})
        return Streamed(run, frames)

    def _began(self, history: Iterable[Document], fields: Mapping[str, Any]) -> tuple[Run, Document]:
        run, document = self.open(), request(history, **fields)
        asyncio.run(run.request(Request(document, chat.request_slots(document))))
        return run, document


class Streamed:
    """A stream as the client gets it, frame by frame."""

    def __init__(self, run: Run, frames: Iterable[Frame]) -> None:
        self.run, self.stream = run, ReplyStream(chat, run)
        self.pieces = [self.stream.feed([frame]) for frame in frames]
        self.pieces.append(self.stream.finish() + self.stream.ending())

    @property
    def raw(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def documents(self) -> list[Document]:
        found = [frame.data for frame in sse.Events().feed(self.raw) if frame.data and frame.data != b"[DONE]"]
        return [json.loads(data) for data in found]

    def message(self, choice: int = 0) -> tuple[str, list[tuple[str, str]], str]:
        """What it comes to: the text, each call's name and arguments, and the reason for the end."""
        text, reason = "", ""
        calls: dict[int, list[str]] = {}
        for each in (one for document in self.documents for one in document["choices"] if one["index"] == choice):
            delta = each.get("delta") or {}
            text += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                kept = calls.setdefault(part["index"], ["", ""])
                kept[0] += part["function"].get("name") or ""
                kept[1] += part["function"].get("arguments") or ""
            reason = each.get("finish_reason") or reason
        return text, [(name, arguments) for name, arguments in calls.values()], reason


def request(history: Iterable[Document] = (), **fields: Any) -> Document:
    messages = [{"role": "user", "content": "do it"}, *history]
    return {"model": "m", "messages": messages, "tools": TOOLS, **fields}


def ran(*named: str) -> list[Document]:
    """A history in which these tools were called one after the other."""
    turns = []
    for number, name in enumerate(named):
        id = f"h{number}"
        turns.append({"role": "assistant", "content": None, "tool_calls": [call(name, id=id)]})
        turns.append({"role": "tool", "tool_call_id": id, "content": "done"})
    return turns


# --- streams ---


def frame(delta: Mapping[str, Any], reason: str | None = None, choice: int = 0) -> Frame:
    document = {"id": "c", "choices": [{"index": choice, "delta": dict(delta), "finish_reason": reason}]}
    data = jsondoc.encode(document)
    return sse.Frame(sse.render(data), data)


DONE = sse.Frame(chat.DONE, b"[DONE]")


def begins(name: str, at: int = 0, arguments: str = "") -> Frame:
    function = {"name": name, "arguments": arguments}
    return frame({"tool_calls": [{"index": at, "id": f"call_{at}", "type": "function", "function": function}]})


def more(arguments: str, at: int = 0) -> Frame:
    return frame({"tool_calls": [{"index": at, "function": {"arguments": arguments}}]})


def text(content: str) -> Frame:
    return frame({"content": content})


def ends(reason: str = "tool_calls") -> list[Frame]:
    return [frame({}, reason), DONE]
