"""Runs the official client's own tests direct, through an inert sidecar, and through the default policy.

Exit code 0: every test ends the same, or is explained in explained.py. 1: an unexplained difference.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.running import REPO, Process, serve

from .compare import Results, differences, parse, table
from .parts import FOLDER, install_mock, install_tests, run_suite, start_mock

# What the sidecar must have forwarded for the comparison to mean anything.
FEWEST_EXCHANGES = 5_000
POLICY = REPO / "policies" / "default.yaml"
LOG = FOLDER / "exchanges.log"


@contextmanager
def running(process: Process) -> Iterator[Process]:
    try:
        yield process
    finally:
        process.stop()


def through(name: str, mock: str) -> Process:
    """A sidecar before the mock: inert, or with the default policy and a line for every exchange."""
    start = partial(serve, FOLDER / f"{name}.out")
    if name == "inert":
        return start(upstream=mock)
    LOG.unlink(missing_ok=True)
    env = {"SIDECAR_PROVIDERS_OPENAI_BASE_URL": mock, "SIDECAR_TELEMETRY_LOG": str(LOG)}
    return start(policy=POLICY, env=env)


def runs() -> dict[str, Results]:
    """The results of the three runs, one after the other."""
    source = install_tests()
    results: dict[str, Results] = {}
    with running(start_mock(install_mock())) as mock:
        results["direct"] = _suite("direct", source, mock.url)
        for name in ("inert", "default"):
            with running(through(name, mock.url)) as sidecar:
                results[name] = _suite(name, source, sidecar.url)
    return results


def main() -> int:
    results = runs()
    print(f"\n{table(results)}\n")
    unexplained = 0
    for name in ("inert", "default"):
        found = list(differences(results["direct"], results[name]))
        unexplained += sum(not difference.reason for difference in found)
        print(f"direct and {name}: {len(found)} differences")
        print("\n".join(map(str, found)))
    exchanges = sum(1 for _ in LOG.open("rb"))
    print(f"the sidecar with the default policy saw {exchanges} exchanges")
    return int(unexplained > 0 or exchanges < FEWEST_EXCHANGES)


def _suite(name: str, source: Path, url: str) -> Results:
    report = FOLDER / f"{name}.xml"
    print(f"{name}: the client's tests against {url}, output in {report.with_suffix('.out')}", flush=True)
    run_suite(source, url, report)
    return parse(report)


sys.exit(main())
