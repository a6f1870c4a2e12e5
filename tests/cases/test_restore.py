"""Cases in which a value is taken out of a request and put back into the reply."""

import json
import re
from typing import Any

from tests.running import Process, shared

from .catalogue import load
from .client import ask
from .conftest import Sidecars
from .policy import setup
from .upstream import Upstream
from .variants import frames

PLACEHOLDER = re.compile(r"<[A-Z_]+_[0-9]+>")


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = load().get(name) or shared("cases", "open.jsonl")
    return found


def started(one: dict[str, Any], sidecars: Sidecars, provider: Upstream) -> Process:
    return sidecars.get(setup(one["setup"]["policy"], f"{provider.origin}/v1").policy)


def answer(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {"status": 200, "headers": {"content-type": "application/json"}, "json": {"id": "c", "choices": [choice]}}


def hidden(provider: Upstream, at: int = -1) -> list[str]:
    """The placeholders that the provider was shown."""
    return PLACEHOLDER.findall(" ".join(m["content"] for m in provider.requests[at].json["messages"]))


def call(arguments: str) -> dict[str, Any]:
    return {"index": 0, "id": "c1", "type": "function", "function": {"name": "invoice", "arguments": arguments}}


def test_tool_arguments(sidecars: Sidecars, provider: Upstream) -> None:
    one = case("B21")
    sidecar = started(one, sidecars, provider)
    written = json.dumps({"customer": "<CUST_1>", "n": 1})
    provider.play([answer({"content": None, "tool_calls": [call(written)]})])
    got = ask(sidecar.url, one["input"])
    assert hidden(provider) == ["<CUST_1>"]
    secret = one["expect"]["upstream"]["decoded_body_must_not_contain"][0]
    assert secret not in json.dumps(provider.requests[-1].json, ensure_ascii=False)
    arguments = got.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == one["expect"]["client"]["tool_arguments_json"]["*"]


def test_tool_arguments_streamed(sidecars: Sidecars, provider: Upstream) -> None:
    """One character in a delta cuts the placeholder everywhere at once."""
    one = case("B21")
    sidecar = started(one, sidecars, provider)
    pieces = [call(""), *({"index": 0, "function": {"arguments": c}} for c in '{"customer": "<CUST_1>", "n": 1}')]
    steps = frames([{"tool_calls": [piece]} for piece in pieces], "tool_calls")
    provider.play([{"status": 200, "headers": {"content-type": "text/event-stream"}, "steps": steps}])
    got = ask(sidecar.url, {**one["input"], "json": {**one["input"]["json"], "stream": True}})
    (made,) = got.tool_calls()
    assert json.loads(made["arguments"]) == one["expect"]["client"]["tool_arguments_json"]["*"]


def turn(one: dict[str, Any], number: int, session: str) -> dict[str, Any]:
    return {**one["input"]["turns"][number], "headers": {"x-sidecar-session": session}}


def test_over_turns(sidecars: Sidecars, provider: Upstream) -> None:
    one = case("B23")
    sidecar = started(one, sidecars, provider)
    provider.play([answer({"content": "noted"}), answer({"content": "first was <EMAIL_1>"})])
    ask(sidecar.url, turn(one, 0, "s1"))
    got = ask(sidecar.url, turn(one, 1, "s1"))
    assert (hidden(provider, -2), hidden(provider)) == (["<EMAIL_1>"], ["<EMAIL_2>"])
    assert got.json["choices"][0]["message"]["content"] == one["expect"]["client"]["turn2_content"]


def test_another_session(sidecars: Sidecars, provider: Upstream) -> None:
    one = case("B23")
    sidecar = started(one, sidecars, provider)
    provider.play([answer({"content": "noted"}), answer({"content": "it says <EMAIL_1>"})])
    ask(sidecar.url, turn(one, 0, "s1"))
    text = {"model": "m1", "messages": [{"role": "user", "content": "what is <EMAIL_1>?"}]}
    got = ask(sidecar.url, {**turn(one, 0, "s2"), "json": text})
    assert got.json["choices"][0]["message"]["content"] == "it says <EMAIL_1>"
