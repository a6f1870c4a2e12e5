"""`sidecar budgets`: asks a running sidecar what is spent, sets it back, tops it up."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

from .config import span

KEY_VARIABLE: Final = "SIDECAR_ADMIN_KEY"
TIMEOUT_SECONDS: Final = 10.0
PATH: Final = "/sidecar/v1/budgets"
REFUSED, UNREACHABLE = 1, 2

Row = dict[str, Any]


class Failed(Exception):
    """The sidecar gave no rows. `code` is the command's exit code."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


def run(options: argparse.Namespace) -> int:
    """Prints what the sidecar says. Exit codes: 0, 1 it refuses, 2 it cannot be reached."""
    try:
        answer = _WORK[options.work](options)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return failure.code
    print(json.dumps(answer, indent=2, ensure_ascii=False) if options.json else "\n".join(table(answer["budgets"])))
    if answer.get("truncated"):
        print("There are more: --budget NAME shows those of one budget.", file=sys.stderr)
    return 0


def _show(options: argparse.Namespace) -> Row:
    return _ask(options, "GET", f"?budget={quote(options.budget, safe='')}" if options.budget else "")


def _reset(options: argparse.Namespace) -> Row:
    answers = [_ask(options, "POST", "/reset", _whose(options, name)) for name in options.names]
    return {"budgets": [row for answer in answers for row in answer["budgets"]]}


def _top_up(options: argparse.Namespace) -> Row:
    amount = options.amount
    more = {"unit": options.unit, "amount": int(amount) if amount.isdecimal() and options.unit != "cost" else amount}
    return _ask(options, "POST", "/top-up", {**_whose(options, options.names[0]), **more})


_WORK: Final[Mapping[str, Callable[[argparse.Namespace], Row]]] = {"show": _show, "reset": _reset, "top-up": _top_up}


def _whose(options: argparse.Namespace, name: str) -> Row:
    if "/" in name:
        return {"account": name}
    given = {"budget": name, "who": options.who, "tenant": options.tenant}
    return {field: value for field, value in given.items() if value is not None}


# --- the running sidecar ---


def _ask(options: argparse.Namespace, method: str, path: str, fields: Row | None = None) -> Row:
    """The JSON object that the sidecar answers with. Raises Failed."""
    connection = _connection(options.url)
    key = options.key or os.environ.get(KEY_VARIABLE, "")
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    try:
        body = None if fields is None else json.dumps(fields).encode()
        connection.request(method, f"{PATH}{path}", body, headers)
        reply = connection.getresponse()
        status, said = reply.status, reply.read()
    except (OSError, HTTPException, ValueError) as error:
        kind = getattr(error, "strerror", None) or type(error).__name__
        raise Failed(f"No sidecar can be reached at {options.url}: {kind}.", UNREACHABLE) from None
    finally:
        connection.close()
    return _read(status, said)


def _connection(url: str) -> HTTPConnection:
    kinds: Mapping[str, type[HTTPConnection]] = {"http": HTTPConnection, "https": HTTPSConnection}
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in kinds or not host:
        raise Failed("--url: expected a URL such as http://127.0.0.1:8080.", UNREACHABLE)
    return kinds[scheme](host, port, timeout=TIMEOUT_SECONDS)


def _read(status: int, said: bytes) -> Row:
    try:
        document = json.loads(said)
    except ValueError:
        document = None
    if status == 200 and isinstance(document, dict) and isinstance(document.get("budgets"), list):
        return document
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else "That is no answer of a sidecar's."
    raise Failed(f"{status}: {message}", REFUSED)


# --- the table ---

_HEADS: Final = ("BUDGET", "SCOPE", "TENANT", "WHO", "UNIT", "WINDOW", "SPENT", "RESERVED", "LIMIT", "LEFT", "RESETS")
_NUMBERS: Final = frozenset(("SPENT", "RESERVED", "LIMIT", "LEFT"))


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows in lines, each column as wide as it needs."""
    if not rows:
        yield "Nothing has been counted yet."
        return
    lines = [_HEADS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(_padded(line, widths)).rstrip()


def _padded(line: Iterable[str], widths: Iterable[int]) -> Iterator[str]:
    for head, cell, width in zip(_HEADS, line, widths, strict=True):
        yield cell.rjust(width) if head in _NUMBERS else cell.ljust(width)


def _cells(row: Row) -> tuple[str, ...]:
    names = ("budget", "scope", "tenant", "who", "unit")
    more = f" + {row['topped_up']}" if row["topped_up"] not in (0, "0") else ""
    limit = "-" if row["limit"] is None else f"{row['limit']}{more}"
    words = (*(_printable(row[name]) for name in names), span(row["window"]) if row["window"] else "lifetime")
    return (*words, str(row["spent"]), str(row["reserved"]), limit, _or_dash(row["remaining"]), row["resets_at"] or "-")


def _printable(name: str | None) -> str:
    """A client's own name must not write to the terminal as it likes."""
    return "".join(char if char.isprintable() else "?" for char in name or "-")


def _or_dash(value: Any) -> str:
    return "-" if value is None else str(value)
