"""The command `sidecar`: parse arguments, call, print.

    serve      run the proxy
    demo       run it with a built-in provider and show what it does
    check      say what is wrong with a policy, or what it does
    schema     print the policy's JSON Schema, or its reference
    scan       say where files hold secrets or personal data
    detectors  list what can be detected
    budgets    ask a running sidecar what is spent, reset it, top it up

Exit codes: 0 fine, 1 a policy has faults, a scan finds something or a sidecar refuses, 2 wrong usage, a file that
cannot be read or a sidecar that cannot be reached.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from .errors import PolicyError

HOST, PORT, WORKERS = "127.0.0.1", 8080, 1
FAULTY, MISUSED = 1, 2


def _serve(options: argparse.Namespace) -> int:
    from .server.serve import serve

    return serve(options.policy, options.upstream, options.host, options.port, options.workers)


def _demo(options: argparse.Namespace) -> int:
    from .demo import run

    return run(options.port)


def _check(options: argparse.Namespace) -> int:
    from .policy.check import as_json, check, human

    reports = [check(path, os.environ) for path in options.files]
    told = (human(report, coverage=options.coverage) for report in reports)
    print(as_json(reports) if options.format == "json" else "\n".join(told))
    return max(report.code for report in reports)


def _schema(options: argparse.Namespace) -> int:
    from .policy.manual import markdown, schema

    text = markdown() if options.format == "markdown" else json.dumps(schema(), indent=2) + "\n"
    sys.stdout.write(text)
    return 0


def _scan(options: argparse.Namespace) -> int:
    from .scan import UNREADABLE, rules_of_detectors, rules_of_policy, run
    from .text.detectors import UnknownDetectorError

    try:
        if options.policy is None:
            rules = rules_of_detectors(options.detect)
        else:
            rules = rules_of_policy(options.policy, os.environ)
    except (UnknownDetectorError, PolicyError) as error:
        # Not 1, which says that something was found.
        print(error, file=sys.stderr)
        return UNREADABLE
    return run(options.files or ["-"], rules, form=options.format, show=options.show)


def _detectors(options: argparse.Namespace) -> int:
    from .scan import listed
    from .text.detectors import UnknownDetectorError

    try:
        sys.stdout.write(listed(options.names, options.format))
    except UnknownDetectorError as error:
        print(error, file=sys.stderr)
        return MISUSED
    return 0


def _budgets(options: argparse.Namespace) -> int:
    from .budgets_cli import run

    return run(options)


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"expected a number from {low} to {high}")
        return int(text)

    return read


def _variable(name: str) -> str | None:
    """A variable's value. Kubernetes sets SIDECAR_PORT=tcp://… beside a service `sidecar`; it is not ours."""
    value = os.environ.get(name)
    return None if value is not None and value.startswith("tcp://") else value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sidecar", description="Guardrails between an agent and its LLM provider.")
    parser.add_argument("--version", action="version", version=f"sidecar {version('guardrail-sidecar')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_serve(commands.add_parser("serve", help="run the proxy"))
    _add_demo(commands.add_parser("demo", help="run it with a built-in provider and show what it does"))
    _add_check(commands.add_parser("check", help="say what is wrong with a policy, or what it does"))
    _add_schema(commands.add_parser("schema", help="print the policy's JSON Schema, or its reference"))
    _add_scan(commands.add_parser("scan", help="say where files hold secrets or personal data"))
    _add_detectors(commands.add_parser("detectors", help="list what can be detected"))
    _add_budgets(commands.add_parser("budgets", help="ask a running sidecar what is spent, reset it, top it up"))
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_serve)
    policy = _variable("SIDECAR_POLICY")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="PATH",
        default=Path(policy) if policy else None,
        help="a policy file, or a folder of them (SIDECAR_POLICY)",
    )
    parser.add_argument(
        "--upstream",
        metavar="URL",
        default=_variable("SIDECAR_UPSTREAM"),
        help="the provider's base URL, over that of the policy's first provider (SIDECAR_UPSTREAM)",
    )
    parser.add_argument("--host", default=_variable("SIDECAR_HOST") or HOST, help="default %(default)s (SIDECAR_HOST)")
    _add_number(parser, "port", PORT, 0, 65535)
    _add_number(parser, "workers", WORKERS, 1, 64)


def _add_number(parser: argparse.ArgumentParser, name: str, default: int, low: int, high: int) -> None:
    variable = f"SIDECAR_{name.upper()}"
    parser.add_argument(
        f"--{name}",
        type=_number(low, high),
        default=_variable(variable) or str(default),
        help=f"default {default} ({variable})",
    )


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_demo)
    _add_number(parser, "port", PORT, 0, 65535)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_check)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a policy file, or a folder of them")
    parser.add_argument("--format", choices=("human", "json"), default="human", help="default %(default)s")
    parser.add_argument("--coverage", action="store_true", help="show every single place that each rule sees")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_schema)
    parser.add_argument("--format", choices=("json", "markdown"), default="json", help="default %(default)s")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError("expected names with commas between them")
    return names


def _add_scan(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_scan)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a file, or - for standard input (default)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--detect",
        type=_names,
        metavar="NAME,…",
        default=["secrets", "pii"],
        help="detectors or packs of them (default secrets,pii); `sidecar detectors` lists them",
    )
    what.add_argument("--policy", type=Path, metavar="PATH", help="look for what a policy's guardrails look for")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default %(default)s")
    parser.add_argument("--show", action="store_true", help="also print what was found, all but its end masked")


def _add_detectors(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_detectors)
    parser.add_argument("names", nargs="*", metavar="NAME", help="packs or detectors (default: all)")
    parser.add_argument("--format", choices=("table", "json", "markdown"), default="table", help="default %(default)s")


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(handler=_budgets, work="show")
    _add_where(parser)
    parser.add_argument("--budget", metavar="NAME", help="only this budget")
    work = parser.add_subparsers(metavar="WORK")
    _add_whose(work.add_parser("reset", help="what is spent becomes nought"), "reset", "+")
    top_up = work.add_parser("top-up", help="lets more be spent in the window that is open")
    _add_whose(top_up, "top-up", 1)
    top_up.add_argument("--unit", required=True, help="as the table shows it, such as tokens or cost")
    top_up.add_argument("--amount", required=True, help="a whole number; for cost a decimal such as 2.50")


def _add_where(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """`again`: after a word of work, where what was said before it must not be forgotten."""

    def default(value: str | bool | None) -> str | bool | None:
        return argparse.SUPPRESS if again else value

    url = f"http://{HOST}:{PORT}"
    parser.add_argument("--url", default=default(url), help=f"the running sidecar (default {url})")
    parser.add_argument("--key", default=default(None), help="an admin's or a tenant's key (SIDECAR_ADMIN_KEY)")
    parser.add_argument("--json", action="store_true", default=default(False), help="print JSON")


def _add_whose(parser: argparse.ArgumentParser, work: str, count: str | int) -> None:
    parser.set_defaults(work=work)
    parser.add_argument("names", nargs=count, metavar="NAME", help="a budget, or an account as --json shows it")
    parser.add_argument("--who", help="whose, as the table's column WHO shows it")
    parser.add_argument("--tenant", help="the tenant of that run, session, agent or key (default: default)")
    _add_where(parser, again=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns its exit code; argparse exits with 2 on wrong usage."""
    options = _parser().parse_args(arguments)
    handler: Callable[[argparse.Namespace], int] = options.handler
    try:
        return handler(options)
    except PolicyError as error:
        print(error, file=sys.stderr)
        return FAULTY
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
