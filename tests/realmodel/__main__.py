"""Asks a small model for tool calls and for objects through a sidecar, and says what it answered.

Exit code 0: at least one tool call and one object that fits its schema came through. 1: not, or it cannot run here.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import ways
from .parts import Model, Unavailable, install, start_sidecar
from .tasks import CALLS, FORMS, Task
from .verdict import Got, is_right, is_right_alone
from .ways import Clients, Sampling, Way, asking

# Nothing more is asked after as many seconds, whatever is left. It is said how much that is.
MOST_SECONDS = 300.0
SURE: Sampling = {"temperature": 0, "seed": 1}
# More than one sample of each: with a temperature the same question gets another answer for each seed.
SEEDS: tuple[Sampling, ...] = tuple({"temperature": 0.4, "seed": seed} for seed in (1, 2, 3))
WIDEST = 110


@dataclass(frozen=True, slots=True)
class Ask:
    task: Task
    way: Way
    sampling: Sampling

    def __str__(self) -> str:
        how = f"temperature {self.sampling['temperature']}, seed {self.sampling['seed']}"
        return f"{self.task.name}, {self.way.__name__}, {how}"


def asks() -> Iterator[Ask]:
    """First once in each way, then with more seeds."""
    for task in CALLS + FORMS:
        yield Ask(task, ways.chat, SURE)
    for task in CALLS[:4] + FORMS[:2]:
        yield Ask(task, ways.streamed, SURE)
    for task in FORMS:
        if task.model:
            yield Ask(task, ways.parsed, SURE)
    for task in (CALLS[0], FORMS[0]):
        yield Ask(task, ways.responses, SURE)
    yield Ask(CALLS[0], ways.messages, SURE)
    for sampling in SEEDS:
        for task in CALLS + FORMS:
            yield Ask(task, ways.chat, sampling)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`said` is what the model said, call by call."""

    ask: Ask
    got: Got
    said: tuple[str, ...]

    @property
    def right(self) -> bool:
        return is_right(self.ask.task, self.got)

    @property
    def right_alone(self) -> bool:
        return bool(self.said) and is_right_alone(self.ask.task, self.said[0])

    @property
    def miscounted(self) -> bool:
        return self.got.calls_told not in (None, str(len(self.said)))

    def __str__(self) -> str:
        verdicts = (f"{_word(self.right)} with, {_word(self.right_alone)} without", f"{len(self.said)} calls")
        lines = [f"{self.ask}: {', '.join(verdicts)}", f"    got   {short(str(self.got))}"]
        return "\n".join([*lines, *(f"    said  {short(said)}" for said in self.said)])


def _word(right: bool) -> str:
    return "valid" if right else "INVALID"


def short(text: str) -> str:
    """A text on one line, as much of it as a line takes."""
    line = repr(text)
    return line if len(line) <= WIDEST else f"{line[:WIDEST]}… ({len(text)} characters)"


def run(model: Model, clients: Clients) -> tuple[list[Outcome], int]:
    """What came of each, printed as it comes; and how many were not asked for want of time."""
    end = time.monotonic() + MOST_SECONDS
    todo, outcomes = list(asks()), list[Outcome]()
    for ask in todo:
        if time.monotonic() > end:
            break
        before = len(model.calls())
        got = asking(ask.way, clients, ask.task, ask.sampling)
        outcome = Outcome(ask, got, tuple(call["text"] for call in model.calls()[before:]))
        outcomes.append(outcome)
        print(outcome, flush=True)
    return outcomes, len(todo) - len(outcomes)


def table(outcomes: Sequence[Outcome]) -> str:
    """What was asked, how often, how much of it came out right with the sidecar and in the model's first words.

    And how often the model was called for it, repairs included.
    """
    head = f"{'asked for':<30}{'times':>5}{'valid with sidecar':>20}{'valid without':>15}{'calls':>7}"
    tasks = dict.fromkeys(outcome.ask.task for outcome in outcomes)
    rows = [_row(task.name, [o for o in outcomes if o.ask.task is task], _kind(task)) for task in tasks]
    sums = [_row("all", [o for o in outcomes if _kind(o.ask.task) == kind], kind) for kind in _KINDS]
    return "\n".join((head, *rows, *sums))


_KINDS = ("call", "object")


def _kind(task: Task) -> str:
    return "call" if task.tools else "object"


def _row(name: str, some: Sequence[Outcome], kind: str) -> str:
    right, alone = (sum(o.right for o in some), sum(o.right_alone for o in some))
    return f"{f'{kind}: {name}':<30}{len(some):>5}{right:>20}{alone:>15}{sum(len(o.said) for o in some):>7}"


def speed(calls: Sequence[dict[str, Any]]) -> str:
    written, read = (sum(call["usage"][f"{what}_tokens"] for call in calls) for what in ("completion", "prompt"))
    seconds = sum(call["seconds"] for call in calls) or 1.0
    each = f"{written / seconds:.0f} tokens a second"
    return f"{len(calls)} calls: {read} tokens told, {written} said, {seconds:.0f} s in the model, {each}"


def main() -> int:
    try:
        install()
        model = Model.start()
    except Unavailable as missing:
        print(f"cannot run here: {missing}")
        return 1
    try:
        sidecar = start_sidecar(model)
        try:
            outcomes, left = run(model, Clients.of(sidecar.url))
        finally:
            sidecar.stop()
        return judged(outcomes, left, model)
    finally:
        model.process.stop()


def judged(outcomes: Sequence[Outcome], left: int, model: Model) -> int:
    print(f"\n{table(outcomes)}\n{speed(model.calls())}")
    if left:
        print(f"{left} more were not asked: {MOST_SECONDS:.0f} s were over")
    faults = [*_missing(outcomes), *_miscounted(outcomes)]
    print("\n".join(faults or ("a tool call and an object that fits its schema came through",)))
    return int(bool(faults))


def _missing(outcomes: Sequence[Outcome]) -> Iterator[str]:
    through = {_kind(outcome.ask.task) for outcome in outcomes if outcome.right}
    for kind in _KINDS:
        if kind not in through:
            yield f"no valid {kind} came through"


def _miscounted(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.miscounted:
            told = outcome.got.calls_told
            yield f"{outcome.ask}: x-sidecar-calls is {told}, the model was called {len(outcome.said)} times"


if __name__ == "__main__":
    sys.exit(main())
