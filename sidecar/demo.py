"""`sidecar demo`: the sidecar with a provider of its own, a few real requests, and then it keeps serving.

The provider is scripted and holds no model: it answers what the demonstration asks, and repeats to anybody else what
it was told, so that a person can see with curl what would have left the building.
"""

import json
import os
import shutil
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .server.serve import bind, serve

# Made up, and put together here so that nobody's scanner takes this file for a leak.
OPENAI_KEY: Final = "sk-proj-" + "Qm3Xw8Lr2Vt6Yb1N" * 3
GITHUB_TOKEN: Final = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
CARD: Final = "4111 1111 1111 1111"
SECRETS: Final = (OPENAI_KEY, GITHUB_TOKEN, CARD)

READY_SECONDS: Final = 20.0
DELTA: Final = 4
MAIL: Final = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": "Sends a mail",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}},
    },
}


# --- the provider ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Heard:
    """The provider's side of the last exchange."""

    asked: str = ""
    said: str = ""


class Provider:
    """Speaks chat completions, buffered and streamed."""

    def __init__(self) -> None:
        self.last = Heard()
        routes = [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/models", self.models, methods=["GET"]),
        ]
        self.app = Starlette(routes=routes)

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "demo"}]})

    async def chat(self, request: Request) -> Response:
        asked = await request.json()
        text = _last_text(asked)
        message = _message(text, asked.get("tools") or [])
        self.last = Heard(text, _shown(message))
        if asked.get("stream"):
            return StreamingResponse(_frames(message), media_type="text/event-stream")
        return JSONResponse(_whole(message))


def _last_text(asked: dict[str, Any]) -> str:
    content = asked["messages"][-1].get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _message(text: str, tools: list[Any]) -> dict[str, Any]:
    if tools:
        arguments = json.dumps({"to": "billing@shop.example", "body": f"Please charge {CARD}."})
        function = {"name": tools[0]["function"]["name"], "arguments": arguments}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    if "deploy token" in text:
        return {"role": "assistant", "content": f"The deploy token is {GITHUB_TOKEN}, keep it safe."}
    return {"role": "assistant", "content": f"You said: {text}"}


def _shown(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls")
    return f"{calls[0]['function']['name']}({calls[0]['function']['arguments']})" if calls else message["content"]


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-demo", "object": kind, "created": int(time.time()), "model": "scripted"}


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return _head("chat.completion") | {"choices": [choice], "usage": usage}


async def _frames(message: dict[str, Any]) -> AsyncIterator[str]:
    head = _head("chat.completion.chunk")
    text = message.get("content") or ""
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + DELTA]} for at in range(0, len(text), DELTA)]
    for delta in deltas:
        yield _frame(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _frame(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield "data: [DONE]\n\n"


def _frame(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


# --- the demonstration ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """What the agent says, and how it asks: returns what the client got."""

    title: str
    says: str
    ask: Callable[[Any, str], str]


def _ask(client: Any, text: str, **more: Any) -> Any:
    return client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": text}], **more)


def _buffered(client: Any, text: str) -> str:
    return str(_ask(client, text).choices[0].message.content)


def _streamed(client: Any, text: str) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in _ask(client, text, stream=True))


def _tool_call(client: Any, text: str) -> str:
    call = _ask(client, text, tools=[MAIL]).choices[0].message.tool_calls[0]
    json.loads(call.function.arguments)
    return f"{call.function.name}({call.function.arguments})"


SCENES: Final = (
    Scene("A prompt with a key in it", f"Why does {OPENAI_KEY} not work?", _buffered),
    Scene(f"A stream with a token in it, {DELTA} characters a chunk", "What was the deploy token?", _streamed),
    Scene("A tool call with a card number in it", f"Mail billing that they may charge {CARD}.", _tool_call),
)


def _scene(number: int, scene: Scene, client: Any, provider: Provider) -> Iterator[str]:
    got = scene.ask(client, scene.says)
    heard = provider.last
    yield ""
    yield f"{number}. {scene.title}"
    yield from beside(("The agent said", scene.says), ("left for the provider", heard.asked))
    yield from beside(("The client got", got), ("came back from the provider", heard.said))


def beside(left: tuple[str, str], right: tuple[str, str]) -> Iterator[str]:
    """Two titled texts in two columns, as wide as the terminal allows."""
    width = (min(shutil.get_terminal_size((110, 24)).columns, 150) - 7) // 2
    columns = [[title, *textwrap.wrap(text, width - 2)] for title, text in (left, right)]
    for at in range(max(map(len, columns))):
        cells = [column[at] if at < len(column) else "" for column in columns]
        mark = "  " if at else "─ "
        yield f"   {mark}{cells[0]:<{width - 2}} │ {mark}{cells[1]}".rstrip()


def _converse(port: int, provider: Provider) -> None:
    from openai import OpenAI

    base = f"http://127.0.0.1:{port}"
    if not _ready(f"{base}/readyz"):
        print("The sidecar did not become ready; see above.", file=sys.stderr)
        return
    client = OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0)
    for number, scene in enumerate(SCENES, 1):
        print("\n".join(_scene(number, scene, client, provider)))
    print(
        f"\nStill serving. Try:\n\n  curl {base}/v1/chat/completions -H 'content-type: application/json' -d "
        f"""'{{"model": "scripted", "messages": [{{"role": "user", "content": "my card is {CARD}"}}]}}'\n\n"""
        f"or point an agent at it:  OPENAI_BASE_URL={base}/v1\nCtrl-C ends it.",
        flush=True,
    )


def _ready(url: str) -> bool:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:  # noqa: S310 -- our own address
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.05)
    return False


def policy_path() -> Path:
    """The default policy: beside the package in a checkout, under the prefix where it is installed."""
    places: Sequence[Path] = (
        Path(__file__).parent.parent / "policies" / "default.yaml",
        Path(sys.prefix) / "share" / "guardrail-sidecar" / "policies" / "default.yaml",
    )
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"the default policy is in none of {', '.join(map(str, places))}")
    return found


def run(port: int) -> int:
    """Serves on 127.0.0.1 and shows what happens; returns the exit code."""
    try:
        import openai  # noqa: F401
    except ImportError:
        print("sidecar demo talks with the official client: pip install 'guardrail-sidecar[demo]'", file=sys.stderr)
        return 1
    # A line of JSON between the scenes would hide them.
    os.environ.setdefault("SIDECAR_TELEMETRY_LOG", "off")
    provider = Provider()
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(provider.app, log_level="warning", lifespan="off")
    threading.Thread(target=uvicorn.Server(config).run, args=([listener],), daemon=True).start()
    threading.Thread(target=_converse, args=(port, provider), daemon=True).start()
    return serve(policy_path(), f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "127.0.0.1", port, 1)
