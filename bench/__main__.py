"""`python -m bench`: what the sidecar costs, beside nginx and LiteLLM, in one run."""

import argparse
import compileall
import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bench import facts, procstat, table
from bench.procstat import Memory
from bench.rounds import FULL, QUICK, Plan, Results, grow, leaks, run_rounds, warm
from bench.subjects import (
    DEFAULT_POLICY,
    ROOT,
    WORK,
    Cores,
    Running,
    Skipped,
    Spec,
    direct,
    free_port,
    litellm,
    nginx,
    pin,
    sidecar,
    started,
    upstream,
)

Maker = Callable[[], Spec]


def makers(port: int, plan: Plan, policy: Path, *, install: bool) -> dict[str, Maker]:
    """The subjects in the order of the tables; each may raise Skipped."""
    return {
        "nginx": lambda: nginx(port),
        "sidecar inert": lambda: sidecar("sidecar inert", port, None),
        "sidecar default": lambda: sidecar("sidecar default", port, policy),
        "litellm": lambda: litellm(port, plan.models, install=install),
    }


def start(make: Maker, plan: Plan, core: int | None, stack: ExitStack, results: Results) -> Running:
    """Start a subject (a quick one several times, for its start-up time); it ends with the stack."""
    spec = make()
    for _ in range(0 if spec.slow else plan.starts - 1):
        with started(spec, core) as running:
            results.ready.setdefault(spec.name, []).append(running.ready_after)
    running = stack.enter_context(started(spec, core))
    results.ready.setdefault(spec.name, []).append(running.ready_after)
    return running


def bench(plan: Plan, policy: Path, wanted: set[str] | None, cores: Cores, *, install: bool) -> Results:
    """Everything up, all rounds, the memory measure, everything down again."""
    results, began = Results(), time.monotonic()
    with ExitStack() as stack:
        port = free_port()
        stack.enter_context(started(upstream(port), cores.load))
        running = [direct(port)]
        idle: dict[str, Memory] = {}
        for name, make in makers(port, plan, policy, install=install).items():
            if wanted is None or name in wanted:
                try:
                    running.append(start(make, plan, cores.subject, stack, results))
                except Skipped as skipped:
                    results.skipped[name] = str(skipped)
                    print(f"{name}: skipped: {skipped}", flush=True)
                    continue
                idle[name] = procstat.memory(running[-1].pid)
        for subject in running:
            warm(subject, plan)
            if subject.name == table.GUARDED and (kinds := leaks(subject)):
                results.leaks = kinds
                print(f"WARNING: {table.GUARDED} lets a key through ({', '.join(kinds)}): it guards nothing here")
        run_rounds(running, plan, results, began)
        results.growth = [grow(subject, plan, idle[subject.name]) for subject in running if subject.pid]
    return results


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("all", "micro", "ledger", "agents"), default="all")
    parser.add_argument("--quick", action="store_true", help="under a minute, for development")
    parser.add_argument("--rounds", type=int, help="how many rounds (5; quick: 2)")
    parser.add_argument("--only", help="subjects to start beside direct, with commas: nginx,sidecar default")
    parser.add_argument("--policy", type=Path, default=DEFAULT_POLICY, help="instead of policies/default.yaml")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    return parser.parse_args(arguments)


def plan_of(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else FULL
    return replace(plan, rounds=options.rounds) if options.rounds else plan


def show_facts(cores: Cores) -> dict[str, str]:
    known = facts.gather(cores)
    print("\n".join(f"{name}: {value}" for name, value in known.items()))
    if warning := facts.warning():
        print(warning)
    return known


def run_all(options: argparse.Namespace) -> int:
    """The whole comparison; 1 when a request through anything but LiteLLM failed."""
    cores, plan = Cores.choose(), plan_of(options)
    compileall.compile_dir(ROOT / "sidecar", quiet=1)
    pin(cores.load)
    known = show_facts(cores)
    wanted = {name.strip() for name in options.only.split(",")} if options.only else None
    results = bench(plan, options.policy.resolve(), wanted, cores, install=not options.quick)
    print(table.report(results, plan))
    if options.json:
        options.json.write_text(json.dumps(table.as_json(results, known), indent=1) + "\n")
    return int(any(count for name, count in results.errors().items() if name != "litellm"))


def run_micro(options: argparse.Namespace) -> int:
    """The text algorithms alone, without a server."""
    from bench import micro  # the only part that imports the sidecar; the comparison must not need that

    cores = Cores.choose()
    pin(cores.subject)
    show_facts(cores)
    print(micro.report(options.policy))
    return 0


def run_ledger() -> int:
    """The ledger alone, on each kind of store."""
    from bench import ledger

    cores = Cores.choose()
    pin(cores.subject)
    show_facts(cores)
    print(ledger.report())
    return 0


def run_agents(options: argparse.Namespace) -> int:
    """Requests as agents send them, under policies that do more than look for secrets; 1 when one of them failed."""
    from bench import agents

    cores = Cores.choose()
    pin(cores.load)
    show_facts(cores)
    rows = agents.measured(cores, plan_of(options).rounds)
    print(agents.report(rows))
    return int(any(row.errors for row in rows))


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # As an exception, so that every started process is ended on the way out.
    sys.exit(128 + number)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _stop)
    options = parse(arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    match options.what:
        case "micro":
            return run_micro(options)
        case "ledger":
            return run_ledger()
        case "agents":
            return run_agents(options)
        case _:
            return run_all(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
