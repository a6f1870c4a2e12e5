"""A sidecar before two providers, and how its replies are read."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.wire.sse import Events

from .mishaps import DONE, GOOD, TEXT
from .talk import Answer, Sidecar, request, sidecar, wait_for
from .under import CHAT, JSON
from .upstream import Upstream

BUDGET = "budgets: [{name: all, scope: all, calls: 1000, tokens: 1000000}]"
MODES = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
RETRY = "{max_attempts: 2, initial: 10ms}"
PLANS = {
    "retry": f"{{retry: {RETRY}}}",
    "fallback": "{fallback: {pace: off}}",
    "both": f"{{retry: {RETRY}, fallback: {{}}}}",
}


class Pair:
    """A sidecar before two providers, `a` first, and its record."""

    def __init__(self, running: Sidecar, a: Upstream, b: Upstream, log: Path) -> None:
        self.running, self.a, self.b, self.log = running, a, b, log

    def ask(self, streamed: bool = False, path: bytes = CHAT, **more: Any) -> Answer:
        document = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": streamed, **more}
        return self.running.ask(request(b"POST", path, json.dumps(document).encode(), JSON))

    def line(self) -> dict[str, Any]:
        wait_for(lambda: self.log.exists() and '"outcome"' in self.log.read_text())
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.log.write_text("")
        return next(line for line in lines if "outcome" in line)

    def classes(self) -> list[str]:
        """Of the attempts, as the log tells them."""
        return [one["class"] for one in self.line().get("trail", ())]

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.a.requests), len(self.b.requests)

    @property
    def charged(self) -> dict[str, int]:
        """What the budget has counted: calls and tokens, and nothing held any more."""
        accounts = self.running.runtime.accounts
        assert accounts is not None
        ledger: Any = accounts.ledger
        rows: list[Any] = []

        def settled() -> bool:
            rows[:] = run(self.running, ledger.read())
            return bool(rows) and not any(row.reserved for row in rows)

        wait_for(settled)
        return {row.unit: row.spent for row in rows}


def run(running: Sidecar, coroutine: Any) -> Any:
    """What a coroutine gives in the sidecar's own event loop."""
    loop = running.runtime._loop
    assert loop is not None
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(5)


@contextmanager
def before(
    a: Upstream,
    b: Upstream,
    folder: Path,
    plan: str,
    more: str = "",
    about_a: str = "",
    about_b: str = "",
    a_url: str = "",
    models: str = "m: [a/m, b/n]",
    times: str = "first_byte: 300ms, idle: 300ms",
) -> Iterator[Pair]:
    """A sidecar under this `resilience` section; both answer well."""
    log = folder / "log"
    policy = f"""
version: 1
providers:
  a: {{base_url: "{a_url or a.url}/v1", timeouts: {{{times}}}{about_a}}}
  b: {{base_url: "{b.url}/v1", timeouts: {{{times}}}{about_b}}}
models: {{{models}}}
resilience: {plan}
telemetry: {{log: "{log}"}}
{more}
"""
    a.play([GOOD])
    b.play([GOOD])
    with sidecar(policy=policy, folder=folder) as running:
        yield Pair(running, a, b, log)


Start = Callable[..., AbstractContextManager[Pair]]


def documents(answer: Answer) -> list[Any]:
    """The events of a stream, which must be whole and well-formed to the last byte."""
    events = Events()
    frames = events.feed(answer.body)
    assert events.finish() == []
    return [json.loads(frame.data) for frame in frames if frame.data and frame.data != b"[DONE]"]


def text_of(answer: Answer, streamed: bool) -> str:
    if not streamed:
        text: str = json.loads(answer.body)["choices"][0]["message"]["content"]
        return text
    choices = [choice for document in documents(answer) for choice in document.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def check_served(answer: Answer, streamed: bool) -> None:
    """The text exactly once, with one beginning and one end."""
    assert (answer.status, answer.whole) == (200, True)
    assert text_of(answer, streamed) == TEXT
    if streamed:
        assert answer.body.count(b'"role"') == 1
        assert answer.body.count(DONE) == 1
        assert answer.body.endswith(DONE)
        assert b'"error"' not in answer.body


def trail_of(answer: Answer) -> list[str]:
    """The classes in `x-sidecar-trail`."""
    said = (answer.header(b"x-sidecar-trail") or b"").decode()
    return [part.split(";")[1].removeprefix("class=") for part in said.split(", ") if part]
