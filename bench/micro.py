"""The policy's rules alone, on English prose: how much text a stream holds back, and what a delta costs."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.prose import PROSE
from bench.table import render
from sidecar.errors import PolicyError
from sidecar.policy.load import load
from sidecar.stages.guardrails import Guardrail
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import Scrubber, scrub

# Models send about four characters at a time.
_DELTA = 4
_REPEATS = 40
_WHOLE_REPEATS = 400
# A policy needs a provider; nothing is sent to this one.
_NOWHERE = "http://127.0.0.1/v1"


def rulesets(policy: Path) -> dict[str, Ruleset]:
    """The guardrails of a policy in the order in which a reply passes them."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SIDECAR_")}
    stages = (step.stage for step in load(policy, environ, _NOWHERE).chain.up)
    return {stage.name: stage.rules for stage in stages if isinstance(stage, Guardrail)}


def held_lengths(rules: Sequence[Ruleset], text: str) -> Iterator[int]:
    """Characters that have arrived and not left, after each delta, with the rules one behind the other."""
    scrubbers = [Scrubber(ruleset) for ruleset in rules]
    arrived = left = 0
    for start in range(0, len(text), _DELTA):
        delta = text[start : start + _DELTA]
        arrived += len(delta)
        for scrubber in scrubbers:
            delta = "".join(op.text for op in scrubber.feed(delta)) if delta else ""
        left += len(delta)
        yield arrived - left


def _micros_per_delta(rules: Sequence[Ruleset]) -> float:
    began, deltas = time.process_time(), 0
    for _ in range(_REPEATS):
        deltas += sum(1 for _ in held_lengths(rules, PROSE))
    return (time.process_time() - began) * 1e6 / deltas


def _micros_whole(rules: Sequence[Ruleset]) -> float:
    began = time.process_time()
    for _ in range(_WHOLE_REPEATS):
        for ruleset in rules:
            scrub(ruleset, PROSE)
    return (time.process_time() - began) * 1e6 / _WHOLE_REPEATS


def _row(name: str, rules: Sequence[Ruleset]) -> tuple[str, ...]:
    held = sorted(held_lengths(rules, PROSE))
    marks = (int(median(held)), held[len(held) * 9 // 10], held[len(held) * 99 // 100], held[-1])
    costs = (_micros_per_delta(rules), _micros_whole(rules) / len(PROSE) * 1024)
    return (name, *map(str, marks), *(f"{cost:.1f}" for cost in costs))


def report(policy: Path) -> str:
    """A table with a row for each rule and one for all together."""
    try:
        found = rulesets(policy)
    except PolicyError as faults:
        return f"micro: skipped: {faults}"
    rows = [_row(name, [rules]) for name, rules in found.items()]
    rows.append(_row("all together", list(found.values())))
    heads = ("rule", "held: median", "p90", "p99", "max", "µs per delta", "µs per KiB at once")
    return render(f"Characters held on {len(PROSE)} characters of prose in deltas of {_DELTA}", heads, rows)
