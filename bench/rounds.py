"""One run: every subject is up, and each is measured in turn round by round, so that ratios compare like."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench import procstat
from bench.load import Load, closed_loop, once
from bench.procstat import Memory
from bench.prose import CANARY
from bench.subjects import Running
from bench.upstream import FRAMES_AROUND

LEAK_MODEL = "leak"
_FIRST = "stream, one at a time"
_MEMORY = "stream of the memory measure"


@dataclass(frozen=True, slots=True)
class Lot:
    """One kind of load. `count` requests for a subject, `slow_count` for a slow one; `words` 0: no stream."""

    key: str
    title: str
    model: str
    words: int
    connections: int
    count: int
    slow_count: int

    @property
    def stream(self) -> bool:
        return self.words > 0

    @property
    def frames(self) -> int:
        """SSE frames of one reply."""
        return self.words + FRAMES_AROUND if self.stream else 0

    def requests(self, subject: Running) -> int:
        return self.slow_count if subject.slow else self.count


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: starts of each subject, rounds, lots of a round, and streams of the memory measure.

    `budget` bounds the seconds from the run's beginning to the end of its last round.
    """

    starts: int
    rounds: int
    lots: tuple[Lot, ...]
    first_byte: Lot
    memory: Lot
    budget: float

    @property
    def models(self) -> tuple[str, ...]:
        return (LEAK_MODEL, *(lot.model for lot in (*self.lots, self.first_byte, self.memory)))


FULL = Plan(
    starts=3,
    rounds=5,
    lots=(
        Lot("buffered", "buffered request", "gpt-4o-mini", 0, 16, count=6000, slow_count=250),
        Lot("paced", "frame of 50 slow streams (one word every 40 ms)", "stream-50-40ms", 50, 50, 100, 50),
        Lot("burst", "frame of streams sent back to back", "stream-200-0ms", 200, 8, 100, 12),
    ),
    first_byte=Lot("first", _FIRST, "stream-2-4ms", 2, 1, count=200, slow_count=50),
    memory=Lot("memory", _MEMORY, "stream-20-0ms", 20, 16, count=5000, slow_count=200),
    budget=500.0,
)
QUICK = Plan(
    starts=1,
    rounds=2,
    lots=(
        Lot("buffered", "buffered request", "gpt-4o-mini", 0, 16, count=2000, slow_count=60),
        Lot("paced", "frame of 50 slow streams (one word every 40 ms)", "stream-20-40ms", 20, 50, 50, 20),
        Lot("burst", "frame of streams sent back to back", "stream-200-0ms", 200, 8, 24, 4),
    ),
    first_byte=Lot("first", _FIRST, "stream-2-4ms", 2, 1, count=60, slow_count=20),
    memory=Lot("memory", _MEMORY, "stream-20-0ms", 20, 16, count=500, slow_count=20),
    budget=46.0,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One subject under one lot in one round. `cpu` is seconds of the subject's process tree."""

    round: int
    subject: str
    lot: Lot
    requests: int
    errors: int
    missing_frames: int
    cpu: float
    seconds: float
    first_bytes: tuple[float, ...]

    @property
    def micros(self) -> float:
        """CPU time in µs per request, or for a stream per frame that the upstream sent."""
        return self.cpu * 1e6 / max(1, self.requests * max(1, self.lot.frames))

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """A subject's memory in KiB: when ready, before and after a number of exchanges, and at its highest."""

    subject: str
    ready: int
    exchanges: int
    errors: int
    before: int
    after: int
    peak: int


@dataclass(slots=True)
class Results:
    """Everything one run found out."""

    samples: list[Sample] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    ready: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    rounds: int = 0

    def errors(self) -> dict[str, int]:
        """Failed requests and missing frames by subject."""
        found: dict[str, int] = {}
        for sample in self.samples:
            found[sample.subject] = found.get(sample.subject, 0) + sample.errors + sample.missing_frames
        for growth in self.growth:
            found[growth.subject] = found.get(growth.subject, 0) + growth.errors
        return found


# What a subject does after a reply has left (logging, mostly) belongs to the reply: wait for it.
_SETTLE = 0.05
_SETTLE_SLOW = 0.3


def _load(subject: Running, lot: Lot, count: int) -> Load:
    target = subject.streamed if lot.stream else subject.buffered
    return closed_loop(target, lot.model, stream=lot.stream, count=count, connections=lot.connections)


def measure(subject: Running, lot: Lot, number: int) -> Sample:
    """Put one lot on one subject and take its CPU time before and after."""
    count = lot.requests(subject)
    before = _cpu(subject)
    load = _load(subject, lot, count)
    time.sleep(_SETTLE_SLOW if subject.slow else _SETTLE)
    cpu = max(0.0, _cpu(subject) - before)  # a subject that died has used no time at all
    missing = abs(count * lot.frames - load.frames) if subject.exact else 0
    return Sample(
        number,
        subject.name,
        lot,
        load.requests,
        load.errors,
        missing,
        cpu,
        load.seconds,
        tuple(sorted(load.first_bytes)),
    )


def _cpu(subject: Running) -> float:
    return procstat.cpu_seconds(subject.pid) if subject.pid else 0.0


def leaks(subject: Running) -> list[str]:
    """Which kinds of reply bring the upstream's canary to the client: a subject with guardrails has none."""
    replies = {
        "buffered": once(subject.buffered, LEAK_MODEL, stream=False),
        "streamed": once(subject.streamed, LEAK_MODEL, stream=True),
    }
    return [kind for kind, reply in replies.items() if CANARY in _said(reply)]


def _said(reply: bytes) -> str:
    """The model's words in a reply, put together again."""
    return "".join(re.findall(r'"content":\s*"((?:[^"\\]|\\.)*)"', reply.decode()))


def warm(subject: Running, plan: Plan) -> None:
    """A little of every lot, not measured."""
    for lot in (*plan.lots, plan.first_byte):
        _load(subject, lot, max(lot.connections, lot.requests(subject) // 10))


def run_rounds(subjects: Sequence[Running], plan: Plan, results: Results, began: float) -> None:
    """All rounds, or as many as the plan's budget allows; the order of subjects turns each round."""
    first = time.monotonic()
    for number in range(plan.rounds):
        for lot in (*plan.lots, plan.first_byte):
            turn = number % len(subjects)
            for subject in (*subjects[turn:], *subjects[:turn]):
                results.samples.append(measure(subject, lot, number))
        results.rounds = number + 1
        now = time.monotonic()
        print(f"round {results.rounds} of {plan.rounds} done after {now - began:.0f} s", flush=True)
        if now - began + (now - first) / results.rounds > plan.budget and results.rounds < plan.rounds:
            print(f"stopping here: another round would pass the limit of {plan.budget:.0f} s")
            return


def grow(subject: Running, plan: Plan, ready: Memory) -> Growth:
    """Memory over many exchanges, half of them buffered and half of them streamed."""
    count = plan.memory.requests(subject)
    before = procstat.memory(subject.pid)
    loads = [_load(subject, lot, count) for lot in (plan.lots[0], plan.memory)]
    after = procstat.memory(subject.pid)
    errors = sum(load.errors for load in loads)
    return Growth(subject.name, ready.rss, 2 * count, errors, before.rss, after.rss, after.peak)
