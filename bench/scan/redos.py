"""Texts made to stop a scanner: what a byte costs must not depend on how many there are."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.scan.peers.wire import nanoseconds
from bench.scan.subjects import ruleset
from bench.table import render
from sidecar.errors import PatternError
from sidecar.text.matcher import Shape
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import scrub

SIZES = (1_000, 10_000, 100_000, 1_000_000)
# Seconds of CPU time that a look at the next size may be expected to take.
TOO_LONG = 2.0
GOAL = 1.5
_PUMP = re.compile(r"(.{1,12}?)\1{2,}", re.DOTALL)


def pumped(text: str, size: int) -> str:
    """The attack at another size: its longest repetition goes on for longer, or all of it where nothing repeats."""
    runs = sorted(_PUMP.finditer(text), key=lambda match: len(match[0]))
    if not runs:
        return (text * (size // len(text) + 1))[:size]
    run = runs[-1]
    before, after, unit = text[: run.start()], text[run.end() :], run[1]
    room = max(len(unit), size - len(before) - len(after))
    return before + unit * (room // len(unit)) + after


@dataclass(frozen=True, slots=True)
class Cost:
    """ns per byte at the smallest size and at the largest that was tried."""

    id: str
    small: float
    large: float
    size: int

    @property
    def ratio(self) -> float:
        return self.large / self.small


def cost(id_: str, rules: Ruleset, attack: str, seconds: float) -> Cost:
    """Grows the attack until a look takes too long."""
    figures: list[float] = []
    for size in SIZES:
        if figures and figures[-1] * size > TOO_LONG * 1e9:
            break
        figures.append(_per_byte(rules, pumped(attack, size), seconds))
    return Cost(id_, figures[0], figures[-1], SIZES[len(figures) - 1])


def _per_byte(rules: Ruleset, text: str, seconds: float) -> float:
    scrub(rules, text)  # builds the automata
    return nanoseconds(lambda: scrub(rules, text)[1], seconds) / len(text.encode())


Aimed = tuple[str, Ruleset, str]


def against_packs(attacks: Sequence[tuple[str, str, str]], packs: Sequence[str]) -> Iterator[Aimed]:
    rules = ruleset(packs)
    return ((id_, rules, text) for id_, _, text in attacks)


def against_own(attacks: Sequence[tuple[str, str, str]]) -> list[Aimed]:
    """Each attack against the pattern it was made for, as a policy's own, where that is not refused."""
    found: list[Aimed] = []
    for id_, pattern, text in attacks:
        with suppress(PatternError):
            found.append((id_, Ruleset([Shape.of("attacked", pattern)]), text))
    return found


def costs(aimed: Iterable[Aimed], seconds: float, within: float) -> list[Cost]:
    """What each attack costs; as many of them as fit into `within` seconds of CPU time."""
    found: list[Cost] = []
    began = time.process_time()
    for id_, rules, text in aimed:
        if time.process_time() - began > within:
            break
        found.append(cost(id_, rules, text, seconds))
    return found


def table(named: dict[str, list[Cost]], refused: int) -> str:
    rows = []
    for name, costs in named.items():
        ratios = sorted(c.ratio for c in costs)
        worst = max(costs, key=lambda c: c.ratio)
        slowest = max(c.large for c in costs)
        over = sum(ratio > GOAL for ratio in ratios)
        given_up = sum(c.size < SIZES[-1] for c in costs)
        marks = (f"{ratios[len(ratios) // 2]:.2f}", f"{ratios[-1]:.2f}", f"{over} of {len(costs)}", f"{slowest:,.1f}")
        marks = (*marks, str(given_up))
        rows.append((name, *marks, worst.id))
    heads = ("", "median ratio", "worst", f"above {GOAL}", "slowest ns/byte", "given up", "worst is")
    title = f"ReDoS corpus: ns per byte at 1 MB ÷ at 1 kB; {refused} of its patterns are refused at load"
    return render(title, heads, rows)
