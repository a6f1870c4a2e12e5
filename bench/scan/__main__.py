"""`python -m bench.scan`: how well and how fast the scanner finds, beside its peers, in one run."""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bench import facts
from bench.scan import detection, footprint, redos, speed, texts
from bench.scan.fixtures import FIXTURES, Case, attacks, cases
from bench.scan.subjects import PACKAGES, Column, add_peer, own_columns, running
from bench.subjects import WORK, Cores, Skipped, pin

PARTS = ("detection", "speed", "redos")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scan", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only some of: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="about a minute, without installing peers")
    parser.add_argument("--fixtures", type=Path, default=FIXTURES, help="default ../shared/detection")
    parser.add_argument("--no-peers", action="store_true", help="the sidecar alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scores of every family here")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    return options


def show(text: str) -> None:
    print(text, flush=True)


def with_peers(options: argparse.Namespace, stack: ExitStack) -> dict[str, list[Column]]:
    columns = own_columns()
    for package in () if options.no_peers else PACKAGES:
        try:
            peer = stack.enter_context(running(package, install=not options.quick))
        except Skipped as skipped:
            show(f"{package.name}: skipped: {skipped}")
            continue
        show(f"{package.name} {peer.version}")
        add_peer(columns, package.name, peer)
    return columns


def run_detection(options: argparse.Namespace) -> None:
    try:
        found: list[Case] = cases(options.fixtures)
    except OSError as error:
        show(f"detection: skipped: {error}; give the fixtures with --fixtures")
        return
    if options.quick:
        found = found[::4]
    with ExitStack() as stack:
        columns = with_peers(options, stack)
        results = detection.score(found, columns)
        show(detection.group_table(results))
        show(detection.family_table(results))
        show(detection.surroundings_table(found, columns, 1 if options.quick else 3))
        show(detection.alarms_table(columns, 20_000 if options.quick else 200_000))
        show(detection.speed_table(columns, 0.05 if options.quick else 0.3))
        if options.json:
            options.json.write_text(json.dumps(detection.as_json(results), indent=1) + "\n")


def run_speed(options: argparse.Namespace) -> None:
    seconds = 0.02 if options.quick else 0.2
    sizes = (1_000, 10_000, 100_000) if options.quick else (1_000, 10_000, 100_000, 1_000_000)
    footprints = {name: footprint.of(name) for name in speed.MAKERS}
    subjects = [speed.made(name, make) for name, make in speed.MAKERS.items()]
    show(speed.table_of_starts(subjects, footprints))
    show(speed.table_of_streams(subjects, 10_000))
    for name in texts.ALL:
        show(speed.table_of_text(name, subjects, sizes, seconds))
    show(speed.scaling_line(subjects, seconds))
    show(speed.conversation_line(20 if options.quick else 100))


def run_redos(options: argparse.Namespace) -> None:
    try:
        corpus = attacks(options.fixtures)
    except OSError as error:
        show(f"redos: skipped: {error}; give the fixtures with --fixtures")
        return
    within = 10.0 if options.quick else 60.0
    own = redos.against_own(corpus)
    packs = redos.against_packs(corpus, speed.PACKS)
    named = {
        "+".join(speed.PACKS): redos.costs(packs, 0.02, within),
        "the pattern attacked": redos.costs(own, 0.02, within),
    }
    show(redos.table(named, len(corpus) - len(own)))


RUN = {"detection": run_detection, "speed": run_speed, "redos": run_redos}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    cores, began = Cores.choose(), time.monotonic()
    pin(cores.subject)
    known = facts.gather(cores)
    show("\n".join(f"{name}: {known[name]}" for name in ("machine", "python", "packages", "load average")))
    if warning := facts.warning():
        show(warning)
    for part in options.parts or PARTS:
        RUN[part](options)
    show(f"\n{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
