"""A chat provider that says back what it was told and adds a secret of its own to everything it says.

The model's name picks the answer: `status-429` an error of that status, `says-WORD` that word in the reply,
`dead` a connection that is reset, `slow` a reply after half a second; any other name an echo. With `tools` in
the request the first turn answers with two parallel calls, and the turn after their results with text; streamed by
`interleaved`, the arguments of the two take turns, which some servers do and the streaming helper cannot read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from typing import Any

from tests.cases.upstream import Script, Seen

# What a client may not send out, and what the provider may not bring in.
CLIENTS = "CANARY-AAAA1111BBBB"
PROVIDERS = "CANARY-ZZZZ9999YYYY"
PATTERN = "CANARY-[A-Z0-9]{12}"
PLACEHOLDER = "[SECRET]"
# The whole reply is blocked when it says this, and the whole request when it does.
FORBIDDEN = "forbidden-topic"
QUIET = "quiet-topic"

CLIENT_KEY = "pk-client-local"
PROVIDER_KEY = "uk-provider-remote"

_JSON = {"content-type": "application/json", "x-request-id": "req_provider"}
_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def answer(seen: Seen) -> Script:
    """The reply to one request."""
    if not seen.target.startswith("/v1/chat/completions"):
        return {
            "status": 200,
            "headers": _JSON,
            "json": {"object": "list", "data": [], "method": seen.method},
        }
    asked = seen.json
    if status := re.fullmatch(r"status-(\d+)", asked["model"]):
        return _error(int(status[1]))
    if asked["model"] == "dead":
        return {"close": "rst"}
    return chat([_message(asked) for _ in range(asked.get("n") or 1)], asked)


def chat(messages: list[dict[str, Any]], asked: Mapping[str, Any]) -> Script:
    """These choices as a chat completion, or as a stream of one."""
    delay = 500 if asked["model"] == "slow" else 0
    if asked.get("stream"):
        return {"status": 200, "delay_ms": delay, "steps": list(_stream(asked, messages))}
    choices = [{"index": i, "message": m, "finish_reason": _reason(m)} for i, m in enumerate(messages)]
    document = {**_envelope(asked, "chat.completion"), "choices": choices, "usage": _USAGE}
    return {"status": 200, "headers": _JSON, "delay_ms": delay, "json": document}


def _error(status: int) -> Script:
    error = {"message": "no", "type": "scripted", "param": "messages", "code": f"provider_{status}"}
    headers = {**_JSON, "retry-after": "0", "x-ratelimit-remaining-requests": "0"}
    return {"status": status, "headers": headers, "json": {"error": error}}


def _message(asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked.get("tools") and asked["messages"][-1]["role"] == "user":
        calls = [_call(i, {"query": f"{city} {PROVIDERS}", "n": i}) for i, city in enumerate(("Oslo", "Lima"))]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if asked.get("response_format"):
        return {"role": "assistant", "content": json.dumps({"name": PROVIDERS, "age": 7})}
    spoken = asked["model"].removeprefix("says-") if asked["model"].startswith("says-") else PROVIDERS
    told = " ".join(str(message.get("content")) for message in asked["messages"])
    return {"role": "assistant", "content": f"You said {told}. I say {spoken}, no more."}


def _call(index: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": "search", "arguments": json.dumps(arguments)}
    return {"id": f"call_{index}", "type": "function", "function": function}


def _reason(message: Mapping[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _envelope(asked: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": asked["model"]}


def _stream(asked: Mapping[str, Any], messages: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """One character a frame, the frames of the choices taking turns."""
    told = [list(_deltas(message, asked["model"] == "interleaved")) for message in messages]
    for turn in range(max(map(len, told))):
        for index, deltas in enumerate(told):
            if turn < len(deltas):
                yield _frame(asked, choices=[{"index": index, "delta": deltas[turn], "finish_reason": None}])
    for index, message in enumerate(messages):
        yield _frame(asked, choices=[{"index": index, "delta": {}, "finish_reason": _reason(message)}])
    if (asked.get("stream_options") or {}).get("include_usage"):
        yield _frame(asked, choices=[], usage=_USAGE)
    yield {"send": "data: [DONE]\n\n"}


def _frame(asked: Mapping[str, Any], **fields: Any) -> dict[str, str]:
    return {"send": f"data: {json.dumps({**_envelope(asked, 'chat.completion.chunk'), **fields})}\n\n"}


def _deltas(message: Mapping[str, Any], interleaved: bool) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"content": character} for character in message["content"] or "")
    told = [list(_call_deltas(index, call)) for index, call in enumerate(message.get("tool_calls") or ())]
    yield from filter(None, chain.from_iterable(zip_longest(*told) if interleaved else told))


def _call_deltas(index: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    function = {"name": call["function"]["name"], "arguments": ""}
    yield {"tool_calls": [{**call, "index": index, "function": function}]}
    for piece in call["function"]["arguments"]:
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
