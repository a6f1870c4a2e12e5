"""Runs the official client's own tests direct and through sidecars: inert, with the default policy, with everything.

`everything` looks for all that there is to look for, everywhere, on every endpoint, holds every reply that could call a
tool, checks every form, and changes nothing.
Exit code 0: every test ends the same, or is explained in explained.py. 1: an unexplained difference.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

from sidecar.text.detectors import PACKS
from tests.running import REPO, Process, serve

from .compare import Results, differences, parse, table
from .parts import FOLDER, install_mock, install_tests, run_suite, start_mock

# What the sidecar must have forwarded for the comparison to mean anything.
FEWEST_EXCHANGES = 5_000
DEFAULT = REPO / "policies" / "default.yaml"
THROUGH = ("inert", "default", "everything")
KINDS = ("system", "user", "assistant", "tool_results", "tool_calls", "tools", "reply", "reasoning")


@contextmanager
def running(process: Process) -> Iterator[Process]:
    try:
        yield process
    finally:
        process.stop()


def through(name: str, mock: str) -> Process:
    """A sidecar before the mock; one with a policy writes a line for every exchange."""
    start = partial(serve, FOLDER / f"{name}.out")
    if name == "inert":
        return start(upstream=mock)
    log(name).unlink(missing_ok=True)
    env = {"SIDECAR_PROVIDERS_OPENAI_BASE_URL": mock, "SIDECAR_TELEMETRY_LOG": str(log(name))}
    return start(policy=DEFAULT if name == "default" else _everything(), env=env)


def log(name: str) -> Path:
    """Where the sidecar of a run writes its exchanges."""
    return FOLDER / f"{name}.log"


def _everything() -> Path:
    path = FOLDER / "everything.yaml"
    rules = [{"name": pack, "detect": [pack], "on": [*KINDS], "mode": "shadow"} for pack in PACKS]
    policy = {
        "version": 1,
        "providers": {"openai": {"base_url": "http://127.0.0.1:9"}},
        "guardrails": rules,
        "inspect": {"unknown": "scan"},
        "tools": {"rules": [{"tool": "*", "after": "never-called", "decision": "deny"}]},
        "structured_output": {"mode": "shadow"},
    }
    path.write_text(yaml.safe_dump(policy), "utf-8")
    return path


def runs() -> dict[str, Results]:
    """The results of the runs, one after the other."""
    source = install_tests()
    results: dict[str, Results] = {}
    with running(start_mock(install_mock())) as mock:
        results["direct"] = _suite("direct", source, mock.url)
        for name in THROUGH:
            with running(through(name, mock.url)) as sidecar:
                results[name] = _suite(name, source, sidecar.url)
    return results


def main() -> int:
    results = runs()
    print(f"\n{table(results)}\n")
    unexplained = 0
    for name in THROUGH:
        found = list(differences(results["direct"], results[name]))
        unexplained += sum(not difference.reason for difference in found)
        print(f"direct and {name}: {len(found)} differences")
        print("\n".join(map(str, found)))
    fewest = min(map(_exchanges, THROUGH[1:]))
    return int(unexplained > 0 or fewest < FEWEST_EXCHANGES)


def _exchanges(name: str) -> int:
    with log(name).open("rb") as lines:
        count = sum(1 for _ in lines)
    print(f"the sidecar with the policy {name!r} saw {count} exchanges")
    return count


def _suite(name: str, source: Path, url: str) -> Results:
    report = FOLDER / f"{name}.xml"
    print(f"{name}: the client's tests against {url}, output in {report.with_suffix('.out')}", flush=True)
    run_suite(source, url, report)
    return parse(report)


sys.exit(main())
