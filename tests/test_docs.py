"""The documentation names all that there is, and nothing that there is not."""

import argparse
import re
import shlex
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli import _parser
from sidecar.errors import ExchangeError
from sidecar.policy.load import parse
from sidecar.policy.overrides import RESERVED
from sidecar.policy.schema import InspectConfig, Policy
from sidecar.policy.shape import leaves
from sidecar.runtime import Runtime
from sidecar.server import admin, endpoints, protocol, replies, tunnel
from sidecar.stages.budgets import HELD_TOOL_CALLS, MOST_HELD, BudgetConfig, TokensConfig, held, lines
from sidecar.stages.guardrails import GuardrailConfig
from sidecar.stages.tools import RuleConfig, ToolsConfig
from sidecar.stages.tools.confirm import SHOWN_ARGUMENTS
from sidecar.stages.tools.pins import MAX_TOOLS
from sidecar.stages.tools.rules import MAX_ARGUMENTS
from sidecar.stores import accounts, approvals, runs
from sidecar.stores.approvals import Pending
from sidecar.stores.ledger import RETENTION, Row
from sidecar.telemetry import logline
from sidecar.telemetry.record import Record
from sidecar.text.detectors import PACKS
from sidecar.text.rules import MAX_SWALLOW
from sidecar.upstream import connection
from sidecar.wire import jsondoc, multipart, ndjson, sse
from sidecar.wire.apis import APIS

REPO = Path(__file__).resolve().parents[1]
SOURCES = sorted((REPO / "sidecar").rglob("*.py"))
PAGES = sorted([REPO / "README.md", REPO / "CHANGELOG.md", *(REPO / "docs").rglob("*.md")])
README = (REPO / "README.md").read_text("utf-8")


def page(name: str) -> str:
    return (REPO / "docs" / name).read_text("utf-8")


HOW, OPERATING, GUARDRAILS, REFERENCE = map(page, ("how-it-works.md", "operating.md", "guardrails.md", "policy.md"))
ENDPOINTS, BUDGETS = page("endpoints.md"), page("budgets.md")
TOOLS, REST = page("tool-rules.md"), map(page, ("resilience.md", "tool-calls.md", "structured-output.md"))
BY_HAND = "\n".join((README, HOW, OPERATING, GUARDRAILS, ENDPOINTS, BUDGETS, TOOLS, *REST))


def cells(text: str) -> set[str]:
    """The code words in the first two columns of tables."""
    rows = (line.split("|")[1:3] for line in text.splitlines() if line.startswith("|"))
    return {word for row in rows for cell in row for word in re.findall(r"`([^`]+)`", cell)}


def in_sources(pattern: str) -> set[str]:
    return {found for file in SOURCES for found in re.findall(pattern, file.read_text("utf-8"))}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands() -> dict[str, argparse.ArgumentParser]:
    actions = _parser()._subparsers
    assert actions is not None
    choices: Any = actions._group_actions[0].choices
    return dict(choices)


def shell_lines(text: str) -> Iterator[list[str]]:
    for block in blocks(text, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


# --- what there is, is documented ---


def test_every_command() -> None:
    assert [name for name in commands() if f"sidecar {name}" not in OPERATING + README] == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option(name: str) -> None:
    options = [option for action in commands()[name]._actions for option in action.option_strings]
    assert [option for option in options if option.startswith("--") and option not in OPERATING] == []


def test_every_policy_field_in_the_reference() -> None:
    missing = [".".join(path) for path, _ in leaves(Policy) if f"{path[-1]}`" not in REFERENCE]
    assert [path for path in missing if f"## {path}" not in REFERENCE] == []


def test_every_policy_field_in_the_pages() -> None:
    assert [".".join(path) for path, _ in leaves(Policy) if path[-1] not in BY_HAND] == []


def test_every_field_of_a_guardrail() -> None:
    assert [name for name in GuardrailConfig.model_fields if f"`{name}`" not in GUARDRAILS] == []


@pytest.mark.parametrize("field", ["action", "mode", "on", "on_overflow", "on_error", "on_block"])
def test_every_word_that_a_guardrail_takes(field: str) -> None:
    info = GuardrailConfig.model_fields[field]
    assert [word for word in _words(info.annotation) if f"`{word}`" not in GUARDRAILS] == []


def _words(shape: Any) -> Iterator[str]:
    for inner in typing.get_args(shape):
        yield from (inner,) if isinstance(inner, str) else _words(inner)


def test_every_field_of_a_budget() -> None:
    assert {*BudgetConfig.model_fields, *TokensConfig.model_fields} <= cells(BUDGETS)


@pytest.mark.parametrize("field", ["scope", "on_exceed", "mode", "on_store_error"])
def test_every_word_that_a_budget_takes(field: str) -> None:
    info = BudgetConfig.model_fields[field]
    assert [word for word in _words(info.annotation) if f"`{word}`" not in BUDGETS] == []


def test_every_stop_reason_of_a_budget() -> None:
    everything = {"calls": 1, "tokens": 1, "cost": "1", "tool_calls": 1, "concurrent": 1, "tokens_per_minute": 1}
    budget = BudgetConfig.model_validate({"name": "b", **everything, "requests_per_minute": 1})
    assert {line.stop_reason for line in lines(budget)} <= cells(BUDGETS) & set(re.findall(r"`(\w+)`", HOW))


def test_every_path_of_the_admin() -> None:
    paths = {f"{method} {route.path}" for route in admin.routes(Runtime(None, None)) for method in route.methods or ()}
    assert {path for path in paths if not path.startswith("HEAD")} <= cells(BUDGETS + page("resilience.md") + TOOLS)
    assert in_sources(r'_record\("(\w+)"') <= cells(HOW)


def test_what_is_shown_of_a_balance() -> None:
    row = Row("b/t/run/r", "calls", 60, 0, 60, 1, 1, 0, 5)
    shown = admin.described(admin.named_of(row.account, Policy(version=1)), row)
    assert [name for name in shown if f"`{name}`" not in BUDGETS] == []


def test_every_field_of_tools() -> None:
    assert [
        ".".join(path) for path, _ in leaves(ToolsConfig) if f"{path[-1]}" not in TOOLS + page("tool-calls.md")
    ] == []
    assert RuleConfig.model_fields.keys() - {"name", "decision", "reason"} <= cells(TOOLS)


@pytest.mark.parametrize("field", ["on_deny", "on_invalid", "pin"])
def test_every_word_that_tools_take(field: str) -> None:
    info = ToolsConfig.model_fields[field]
    assert [word for word in _words(info.annotation) if word not in cells(TOOLS)] == []


def test_what_is_shown_of_a_call_that_waits() -> None:
    shown = admin.shown_pending(Pending("i", "r", "t", "{}", "acme", "", "", 0.0, 1.0))
    assert [name for name in shown if f"`{name}`" not in TOOLS] == []


def test_numbers_of_tools_are_those_of_the_code() -> None:
    assert f"at most {SHOWN_ARGUMENTS:,} characters" in TOOLS
    assert f"At most {approvals.MAX_PENDING:,} calls wait" in TOOLS
    assert f"{runs.MAX_RUNS:,} runs with their last {runs.MAX_RECENT} calls" in TOOLS
    assert f"{runs.MAX_SESSIONS:,} sessions, {MAX_TOOLS:,} tools in each" in TOOLS
    assert f"{runs.MAX_BYTES >> 20} MiB at most" in TOOLS
    assert f"more than {MAX_ARGUMENTS >> 20} million characters" in TOOLS


def test_numbers_of_budgets_are_those_of_the_code() -> None:
    assert f"up to {HELD_TOOL_CALLS} of what is left" in BUDGETS
    assert f"no more than {MOST_HELD}" in BUDGETS
    assert held(128) == HELD_TOOL_CALLS
    assert held(400) == 400 // 8
    assert f"{BudgetConfig.model_fields['completion'].default:,} tokens by default" in BUDGETS
    assert f"nobody uses for {RETENTION // 86_400} days" in BUDGETS
    assert f"{accounts.MAX_OWED:,} charges are owed" in BUDGETS
    assert f"at most {admin.MAX_ROWS:,} rows" in BUDGETS
    assert accounts.LEASE_SECONDS == 120


def test_every_pack_of_detectors() -> None:
    assert PACKS.keys() <= cells(GUARDRAILS)


def errors(kind: type[ExchangeError] = ExchangeError) -> Iterator[type[ExchangeError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from errors(inner)


@pytest.mark.parametrize("kind", sorted(set(errors()), key=lambda kind: (kind.code, kind.__name__)))
def test_every_error_with_its_status(kind: type[ExchangeError]) -> None:
    assert f"| {kind.status} | `{kind.code}` |" in HOW


def filled_record() -> Record:
    record, samples = Record(), {str: "x", int: 1, float: 1.0, bool: True, tuple: ({},), type(None): 1}
    for name in Record.__annotations__:
        setattr(record, name, samples[type(getattr(Record, name))])
    return record


def test_every_log_field() -> None:
    assert filled_record().line(2.0).keys() <= cells(HOW)


def test_every_name_of_an_endpoint_in_the_log() -> None:
    assert {api.NAME for api in APIS} | {"relay", tunnel.ENDPOINT} <= {
        word for line in HOW.splitlines() if line.startswith("| `endpoint` |") for word in re.findall(r"`(\w+)`", line)
    }


_GROUP = re.compile(r"\(\?:([^()]*)\)(\?)?")


def written_out(ending: str) -> Iterator[str]:
    """The paths that an entry of the table stands for, as a person writes them."""
    ending = ending.replace("^(?!.*/threads/).*", "").replace("[^/]+", "{id}")
    group = _GROUP.search(ending)
    if group is None:
        yield ending
        return
    for inner in (*group[1].split("|"), *([""] if group[2] else [])):
        yield from written_out(ending[: group.start()] + inner + ending[group.end() :])


TABLE = [
    (method, path)
    for method, table in (("POST", endpoints._POST), ("GET", endpoints._GET))
    for ending, _ in table
    for path in written_out(ending)
]
DOCUMENTED = re.findall(r"`(POST|GET) (/[^`]+)`", ENDPOINTS.partition("## What cannot be seen")[0])


@pytest.mark.parametrize(("method", "path"), TABLE, ids=" ".join)
def test_every_endpoint(method: str, path: str) -> None:
    assert endpoints.find(method, path).known
    assert {(method, path), (method, f"/v1{path}")} & set(DOCUMENTED)


@pytest.mark.parametrize(("method", "path"), DOCUMENTED, ids=" ".join)
def test_every_endpoint_that_is_documented_is_known(method: str, path: str) -> None:
    assert endpoints.find(method, path).known or endpoints.lists_models(method, path)


def test_every_field_of_inspect() -> None:
    rows = [line.split("|")[1].strip() for line in ENDPOINTS.splitlines() if line.startswith("| `")]
    assert [name for name in InspectConfig.model_fields if f"`{name}`" not in rows] == []


def test_every_decision_in_the_readme() -> None:
    decisions = sorted((REPO / "docs" / "decisions").glob("*.md"))
    assert [file.name for file in decisions if f"(docs/decisions/{file.name})" not in README] == []


def test_every_ready_policy_in_the_readme() -> None:
    assert [file.name for file in (REPO / "policies").glob("*.yaml") if f"(policies/{file.name})" not in README] == []


@pytest.mark.parametrize("file", sorted((REPO / "policies").glob("*.yaml")), ids=lambda file: file.name)
def test_every_ready_policy_loads(file: Path) -> None:
    parse([(file.name, file.read_bytes())], {}, None)


def test_every_outcome() -> None:
    assert in_sources(r'outcome(?:, [\w.]+)? = (?:[\w.]+ or )?"(\w+)"') >= {"blocked", "finished", "client_gone"}
    assert [
        word for word in in_sources(r'outcome(?:, [\w.]+)? = (?:[\w.]+ or )?"(\w+)"') if f"`{word}`" not in HOW
    ] == []


def test_every_log_event() -> None:
    assert in_sources(r'"event": "(\w+)"') <= cells(HOW)


def test_every_header() -> None:
    ours = in_sources(r'b"(x-(?:sidecar|api|request|should)-[a-z-]*[a-z]|retry-after)"')
    assert [name for name in ours if f"`{name}`" not in HOW] == []


def test_every_path_of_our_own() -> None:
    assert in_sources(r'Route\("(/\w+z)"') == {"/healthz", "/readyz"} <= cells(HOW)


def test_every_variable() -> None:
    ready = {name for file in (REPO / "policies").glob("*.yaml") for name in re.findall(r"\$\{(\w+)", file.read_text())}
    read = in_sources(r"\b([A-Z]+_PROXY)\b") | in_sources(r"\b(SSL_CERT_[A-Z]+)\b")
    assert [name for name in (*RESERVED, *ready, *read) if f"`{name}`" not in OPERATING] == []
    own = set(re.findall(r"\bSIDECAR_[A-Z]+\b", (REPO / "sidecar" / "cli.py").read_text()))
    assert own <= RESERVED


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("URL", f"{protocol.MAX_URL >> 10} KiB"),
        ("number of headers", str(protocol.MAX_FIELDS)),
        ("time for a request's head", f"{protocol.HEAD_SECONDS:g} s"),
        ("nesting of a JSON body", str(jsondoc.MAX_DEPTH)),
        ("headers of a reply", f"{connection.MAX_HEAD >> 10} KiB"),
        ("whole reply that is looked into", f"{replies.MAX_REPLY >> 20} MiB"),
        ("one event of a stream that is looked into", f"{sse.MAX_EVENT >> 20} MiB"),
        ("one line of a stream that is looked into", f"{ndjson.MAX_LINE >> 20} MiB"),
        ("field of a form", f"{multipart.MAX_FIELD >> 20} MiB"),
        ("parts of a form", f"{multipart.MAX_PARTS:,}"),
        ("headers of a form's part", f"{multipart.MAX_HEADER >> 10} KiB"),
        ("bytes of a reply that the client does not take", f"{connection.HIGH_WATER >> 10} KiB"),
    ],
)
def test_limits_are_those_of_the_code(what: str, limit: str) -> None:
    assert f"| {what} | {limit} |" in HOW


def test_limits_that_are_told_in_words() -> None:
    assert f"more than {logline.MAX_WAITING:,} lines waited" in HOW
    assert f"more than {MAX_SWALLOW >> 10} KiB" in HOW
    assert f"more than {MAX_SWALLOW >> 10} KiB" in GUARDRAILS


# --- what is documented, there is ---


def test_make_commands_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(file.read_text("utf-8") for file in PAGES)
    named = set(re.findall(r"(?:`|^)make ([\w-]+)", text, re.MULTILINE))
    assert {"run", "test", "check", "bench"} <= named <= targets


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_command_lines_are_understood(file: Path) -> None:
    for words in shell_lines(file.read_text("utf-8")):
        if words[0] == "sidecar":
            _parser().parse_args(words[1:])


def test_the_command_lines_in_tables_are_understood() -> None:
    lines = [words for words in map(str.split, re.findall(r"`sidecar ([a-z][^`]*)`", BY_HAND)) if words]
    assert {words[0] for words in lines} == commands().keys()
    for words in lines:
        if words != ["check"]:
            _parser().parse_args(words)


@pytest.mark.parametrize("file", [page for page in PAGES if page.name != "policy.md"], ids=lambda file: file.name)
def test_policies_load(file: Path) -> None:
    for block in blocks(file.read_text("utf-8"), "yaml"):
        text = block if block.startswith("version:") else f"version: 1\n{block}"
        parse([(file.name, text.encode())], {"AZURE_KEY": "k"}, "http://127.0.0.1")


def slugs(file: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_links_lead_somewhere(file: Path) -> None:
    text = re.sub(r"(`+).*?\1", "", re.sub(r"^```.*?^```", "", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in target:
            continue
        there = (file.parent / target).resolve() if target else file
        assert there.exists(), f"{file.name} links to {target}"
        assert not anchor or anchor in slugs(there), f"{file.name} links to {target}#{anchor}"


def test_every_page_is_linked_from_the_readme_or_a_page() -> None:
    linked = {
        (file.parent / target).resolve()
        for file in PAGES
        for target in re.findall(r"\]\(([^)#\s]+\.md)", file.read_text("utf-8"))
        if "://" not in target
    }
    assert [file.name for file in PAGES if file.name != "README.md" and file not in linked] == []
