"""The stages alone: how much of English prose the policy's rules hold back in a stream, what a delta costs, and what
budgets add to an exchange."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.prose import PROSE
from bench.table import render
from sidecar.core.chain import Chain
from sidecar.core.events import Began, Used
from sidecar.core.exchange import Exchange, Request
from sidecar.core.usage import Usage
from sidecar.errors import PolicyError
from sidecar.policy.load import load
from sidecar.stages import build
from sidecar.stages.budgets import BudgetConfig
from sidecar.stages.guardrails import Guardrail
from sidecar.stages.scrub import ScrubConfig
from sidecar.stores.accounts import Accounts
from sidecar.stores.ledger_memory import MemoryLedger
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import Scrubber, scrub
from sidecar.wire import chat
from sidecar.wire.stream import edit_reply

# Models send about four characters at a time.
_DELTA = 4
_REPEATS = 40
_WHOLE_REPEATS = 400
_EXCHANGES = 5_000
# What a team has: a run's calls and tokens, a tenant's tokens of a day, everybody's pace.
_BUDGETS = (
    {"name": "run", "scope": "run", "calls": 10**9, "tokens": 10**12},
    {"name": "day", "scope": "tenant", "tokens": 10**15, "window": "1d"},
    {"name": "pace", "scope": "all", "requests_per_minute": 10**9},
)
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


def _micros_per_exchange(chain: Chain) -> float:
    """CPU of one chat completion of a kilobyte through the stages, its wire and its network left out."""
    accounts = Accounts(MemoryLedger(time.time), time.time, print)
    texts = [PROSE[:1024]]

    async def run() -> float:
        began = time.process_time()
        for number in range(_EXCHANGES):
            document = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": texts[0]}]}
            call = chain.open(Exchange(f"req_{number}", "chat", accounts=accounts, now=time.time))
            await call.request(Request(document, chat.request_slots(document), "m"))
            for event in (Began(200), Used(Usage(260, 80))):
                call.feed(event)
            edit_reply(chat, call, {"choices": [{"index": 0, "message": {"content": texts[0]}}]})
            if call.owes:
                await call.done("completed")
        return (time.process_time() - began) * 1e6 / _EXCHANGES

    return asyncio.run(run())


def budgets() -> str:
    """A table: an exchange without budgets, and with them in memory. `python -m bench ledger` has the other stores."""
    configs = [BudgetConfig.model_validate(budget) for budget in _BUDGETS]
    chains = {"none": Chain.of(build([], ScrubConfig())), "three": Chain.of(build([], ScrubConfig(), configs))}
    rounds = {name: min(_micros_per_exchange(chain) for _ in range(_ROUNDS)) for name, chain in chains.items()}
    rows = [(name, f"{cost:.1f}", f"{cost - rounds['none']:.1f}") for name, cost in rounds.items()]
    return render("An exchange through the stages", ("budgets", "µs", "more than none"), rows)


_ROUNDS = 5


def report(policy: Path) -> str:
    """The tables: of the policy's rules, with a row for each and one for all together, and of budgets."""
    return f"{_rules(policy)}\n\n{budgets()}"


def _rules(policy: Path) -> str:
    try:
        found = rulesets(policy)
    except PolicyError as faults:
        return f"micro: skipped: {faults}"
    rows = [_row(name, [rules]) for name, rules in found.items()]
    rows.append(_row("all together", list(found.values())))
    heads = ("rule", "held: median", "p90", "p99", "max", "µs per delta", "µs per KiB at once")
    return render(f"Characters held on {len(PROSE)} characters of prose in deltas of {_DELTA}", heads, rows)
