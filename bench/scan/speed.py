"""What scanning costs: CPU time per byte and per delta, on fresh text each time."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.micro import held_lengths
from bench.scan import texts
from bench.scan.rules import generated
from bench.scan.subjects import ruleset
from bench.subjects import DEFAULT_POLICY
from bench.table import render
from sidecar.core.exchange import Exchange, Request
from sidecar.core.surface import Kind, Slot, Surface
from sidecar.policy.load import load
from sidecar.stages.guardrails import Guardrail
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import scrub

GENERATED = (10, 50, 200, 1000)
PACKS = ("secrets", "pii")
EVERYTHING = ("secrets", "pii", "injection", "urls", "code-exec")
# A cell is given up when one look costs more than this many seconds, and its larger sizes with it.
_TOO_LONG = 3.0
_NOWHERE = "http://127.0.0.1/v1"


@dataclass(frozen=True, slots=True)
class Subject:
    """Rule sets one behind the other, and what it took to make them, in seconds of CPU time."""

    name: str
    rules: Sequence[Ruleset]
    compiled: float
    warmed: float

    def look(self, text: str) -> None:
        for rules in self.rules:
            text = scrub(rules, text)[0]


def made(name: str, make: Callable[[], Sequence[Ruleset]]) -> Subject:
    began = time.process_time()
    rules = make()
    compiled = time.process_time()
    for each in rules:
        each.warm()
    return Subject(name, rules, compiled - began, time.process_time() - compiled)


def of_policy() -> list[Ruleset]:
    """The default policy's guardrails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SIDECAR_")}
    stages = (step.stage for step in load(DEFAULT_POLICY, environ, _NOWHERE).chain.down)
    return [stage.rules for stage in stages if isinstance(stage, Guardrail)]


MAKERS: dict[str, Callable[[], Sequence[Ruleset]]] = {
    **{f"{number} rules": lambda number=number: [generated(number)] for number in GENERATED},  # type: ignore[misc]
    "default policy": of_policy,
    "+".join(PACKS): lambda: [ruleset(PACKS)],
    "five packs": lambda: [ruleset(EVERYTHING)],
}


def nanoseconds(subject: Subject, make: Callable[[int, int], str], size: int, seconds: float) -> list[float]:
    """CPU nanoseconds per byte of one look after the other, each at a fresh text; the first one is the coldest."""
    costs: list[float] = []
    spent = 0.0
    while spent < seconds or len(costs) < 3:
        text = make(size, 1000 + len(costs))
        length = len(text.encode())
        began = time.process_time()
        subject.look(text)
        took = time.process_time() - began
        costs.append(took * 1e9 / length)
        spent += max(took, 1e-5)
        if took > _TOO_LONG:
            break
    return costs


def table_of_text(name: str, subjects: Sequence[Subject], sizes: Sequence[int], seconds: float) -> str:
    """One kind of text: the median of fresh texts, and in brackets the worst."""
    rows = []
    for subject in subjects:
        cells: list[str] = []
        for size in sizes:
            if cells and cells[-1].startswith(">"):
                cells.append("–")
                continue
            costs = nanoseconds(subject, texts.ALL[name], size, seconds)
            over = costs[-1] * size > _TOO_LONG * 1e9
            cells.append(f"{'>' * over}{median(costs):,.1f} ({max(costs):,.0f})")
        rows.append((subject.name, *cells))
    heads = ("median (worst)", *(f"{size // 1000:,} kB" for size in sizes))
    return render(f"ns per byte, {name}, fresh text each time", heads, rows)


def table_of_streams(subjects: Sequence[Subject], size: int) -> str:
    """Deltas of four characters through every rule set of a subject."""
    rows = []
    for subject in subjects:
        cells = []
        for name in ("prose", "code"):
            costs, held = _streamed(subject, texts.ALL[name](size, 5), 3)
            waits = sum(1 for length in held if length) / len(held)
            cells += [f"{costs[0]:.1f}", f"{min(costs[1:]):.1f}", f"{100 * waits:.0f}", f"{sum(held) / len(held):.1f}"]
        rows.append((subject.name, *cells))
    heads = ("", "prose: first", "µs per delta", "held, %", "mean", "code: first", "µs per delta", "held, %", "mean")
    title = "Streams in deltas of 4 characters: µs per delta at first and warm; deltas with text held back, its length"
    return render(title, heads, rows)


def _streamed(subject: Subject, text: str, times: int) -> tuple[list[float], list[int]]:
    costs, held = [], []
    for _ in range(times):
        began = time.process_time()
        held = list(held_lengths(subject.rules, text))
        costs.append((time.process_time() - began) * 1e6 / len(held))
    return costs, held


def table_of_starts(subjects: Sequence[Subject], footprints: dict[str, dict[str, float]]) -> str:
    """What it takes to be ready, and the memory of it, each in a process of its own."""
    rows = []
    for subject in subjects:
        print_ = footprints.get(subject.name, {})
        memory = [f"{print_[key]:.1f}" if key in print_ else "–" for key in ("ready", "clean", "random")]
        first = f"{print_['first_us']:.0f}" if print_ else "–"
        rows.append((subject.name, f"{subject.compiled:.2f}", f"{subject.warmed:.2f}", first, *memory))
    heads = ("", "compile, s", "warm, s", "first 10 kB, µs", "MiB ready", "after 1 MB clean", "after random")
    return render("Start: CPU time, the first look, and resident memory added", heads, rows)


def scaling_line(subjects: Sequence[Subject], seconds: float) -> str:
    """1,000 rules beside 10 on clean text of 10 kB."""
    by_name = {subject.name: subject for subject in subjects}
    few, many = by_name.get("10 rules"), by_name.get("1000 rules")
    if few is None or many is None:
        return ""
    said = []
    for name, make in texts.CLEAN.items():
        costs = [median(nanoseconds(subject, make, 10_000, seconds)) for subject in (few, many)]
        said.append(f"{name} {costs[1] / costs[0]:.1f}")
    return f"\n1,000 rules cost times as much as 10 on 10 kB: {', '.join(said)} (goal: at most 2)"


# --- a conversation that is sent again, whole, turn by turn ---

_SURFACES = {
    "user": Surface("bench.user", Kind.USER),
    "assistant": Surface("bench.assistant", Kind.ASSISTANT),
    "tool": Surface("bench.tool", Kind.TOOL_RESULTS),
}


def conversation(turns: int) -> list[dict[str, Any]]:
    """Per turn a question, the result of a tool and an answer."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": texts.prose(400, turn)})
        messages.append({"role": "tool", "content": texts.logs(2_000, turn)})
        messages.append({"role": "assistant", "content": texts.prose(800, 1_000 + turn)})
    return messages


async def _pass(chain: Any, messages: Sequence[dict[str, Any]]) -> None:
    document = {"messages": [dict(message) for message in messages]}
    slots = [Slot(_SURFACES[m["role"]], m, "content") for m in document["messages"]]
    await chain.open(Exchange("bench", "chat")).request(Request(document, slots))


def conversation_line(turns: int) -> str:
    """A conversation replayed turn by turn beside one pass over its last request, under the default policy."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SIDECAR_")}
    messages = conversation(turns)

    def cpu(requests: Sequence[Sequence[dict[str, Any]]]) -> float:
        chain = load(DEFAULT_POLICY, environ, _NOWHERE).chain
        asyncio.run(_pass(chain, conversation(3)))
        began = time.process_time()
        for request in requests:
            asyncio.run(_pass(chain, request))
        return time.process_time() - began

    once = cpu([messages])
    replayed = cpu([messages[: 3 * turn] for turn in range(1, turns + 1)])
    size = sum(len(message["content"]) for message in messages)
    return (
        f"\n{turns} turns, {size // 1000} kB at the end: replayed {replayed * 1e3:,.0f} ms, one pass over the last "
        f"request {once * 1e3:,.1f} ms: {replayed / once:.1f} times (goal: at most 3)"
    )
