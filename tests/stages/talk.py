"""A call through the chain without a server: policy, request, what the upstream says, what comes out."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.core.chain import Chain, Run
from sidecar.core.exchange import NO_DISGUISE, Disguise, Exchange, Request
from sidecar.stages import build
from sidecar.stages.guardrails import GuardrailConfig
from sidecar.stages.scrub import ScrubConfig
from sidecar.wire import chat, jsondoc, sse
from sidecar.wire.stream import ReplyStream, edit_reply


def chain(rules: Iterable[Mapping[str, Any]], **scrub: Any) -> Chain:
    configs = [GuardrailConfig.model_validate(rule) for rule in rules]
    return Chain.of(build(configs, ScrubConfig.model_validate(scrub)))


class Call:
    """One call under a policy."""

    def __init__(self, policy: Chain, *, tenant: str = "default", disguise: Disguise = NO_DISGUISE) -> None:
        self.run: Run = policy.open(Exchange("x", "chat", tenant, disguise))
        self._asked = False

    def _begin(self) -> None:
        """A reply comes up through the stages that its request has reached."""
        if not self._asked:
            self.ask()

    def ask(self, *messages: Mapping[str, Any] | str) -> list[Any]:
        """What the provider is asked."""
        self._asked = True
        said = [{"role": "user", "content": m} if isinstance(m, str) else dict(m) for m in messages]
        document: dict[str, Any] = {"model": "m", "messages": said}
        asyncio.run(self.run.request(Request(document, chat.request_slots(document))))
        messages_sent: list[Any] = document["messages"]
        return messages_sent

    def hear(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A buffered reply, as the client gets it."""
        self._begin()
        document = {"choices": [{"index": 0, "message": dict(message), "finish_reason": "stop"}]}
        edit_reply(chat, self.run, document)
        got: dict[str, Any] = document["choices"][0]["message"]  # type: ignore[assignment]
        return got

    def hear_stream(self, deltas: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A streamed reply: the deltas that the client gets."""
        self._begin()
        stream = ReplyStream(chat, self.run)
        out = b"".join(stream.feed([frame(delta)]) for delta in deltas)
        out += stream.feed([frame({}, "stop")]) + stream.feed(sse.Events().feed(chat.DONE)) + stream.finish()
        frames = [f.data for f in sse.Events().feed(out) if f.data and f.data != b"[DONE]"]
        return [json.loads(data)["choices"][0]["delta"] for data in frames]


def frame(delta: Mapping[str, Any], reason: str | None = None) -> sse.Frame:
    data = jsondoc.encode({"id": "c", "choices": [{"index": 0, "delta": dict(delta), "finish_reason": reason}]})
    return sse.Frame(sse.render(data), data)


def content(deltas: Iterable[Mapping[str, Any]]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas)


def arguments(deltas: Iterable[Mapping[str, Any]]) -> str:
    calls = (call for delta in deltas for call in delta.get("tool_calls", ()))
    return "".join(call.get("function", {}).get("arguments", "") for call in calls)
