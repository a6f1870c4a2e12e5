"""`sidecar check`: what is wrong with a policy, line by line, or what it does."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..config import span
from ..core.surface import OPT_IN, Kind
from ..core.usage import Usage
from ..errors import Fault, PolicyError
from ..stages.budgets import NO_TOOLS, BudgetConfig, Line, Spending, lines, shown
from ..stages.guardrails import GuardrailConfig
from ..stages.structured import SchemaConfig, StructuredConfig
from ..stages.tools import RuleConfig, ToolsConfig, name_of, unreachable
from ..upstream.resilience import TargetConfig
from ..upstream.routing import Candidate
from ..upstream.targets import ProviderConfig, Target
from .coverage import table
from .load import load_files, sources
from .schema import Policy
from .shape import leaves
from .snapshot import Snapshot

FINE, FAULTY, UNREADABLE = 0, 1, 2
# Longer lines than these wrap, and a caret under a wrapped line points nowhere.
MAX_LINE = 160


@dataclass(frozen=True, slots=True)
class Report:
    """What one policy's check found: its snapshot or its faults. `lines` are the lines of its files."""

    path: str
    code: int
    snapshot: Snapshot | None
    faults: tuple[Fault, ...]
    lines: Mapping[str, Sequence[str]]


def check(path: Path, environ: Mapping[str, str]) -> Report:
    """Checks one policy, a file or a folder. Opens nothing but its files."""
    try:
        files = sources(path)
    except OSError as error:
        fault = Fault(str(path), 0, 0, "", f"cannot be read: {error.strerror or error}")
        return Report(str(path), UNREADABLE, None, (fault,), {})
    lines = {file: content.decode("utf-8-sig", "replace").splitlines() for file, content in files}
    try:
        return Report(str(path), FINE, load_files(path, files, environ), (), lines)
    except PolicyError as error:
        return Report(str(path), FAULTY, None, error.faults, lines)


# --- for people ---


def human(report: Report, *, coverage: bool = False) -> str:
    """What a person wants to know. `coverage`: with every single place that the rules see."""
    if report.snapshot is not None:
        told_of = summary(report.snapshot, coverage=coverage)
        return "\n".join((f"{report.path}: fine", *(f"  {line}" for line in told_of)))
    return "\n".join(line for fault in report.faults for line in told(fault, report.lines))


def told(fault: Fault, lines: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One fault: its line, and below it the place in the file where that can be shown."""
    yield str(fault)
    source = lines.get(fault.file, ())
    if 0 < fault.line <= len(source):
        yield from _excerpt(source[fault.line - 1], fault)


_ENTRY = re.compile(r"(?P<before>\s*(?:-\s+)*)(?:(?P<key>[\w-]+)\s*:\s*)?(?P<value>.*)")
_RISKY = re.compile(r"key|secret|token|passw|auth|sha256|://|sk-", re.IGNORECASE)


def _excerpt(line: str, fault: Fault) -> Iterator[str]:
    shown = _shown(line, fault.where)
    if len(shown) > MAX_LINE or not shown.replace("\t", " ").isprintable() or fault.column > len(shown) + 1:
        return
    number = str(fault.line)
    yield f"  {number} | {shown}"
    indent = "".join("\t" if char == "\t" else " " for char in shown[: fault.column - 1])
    yield f"  {' ' * len(number)} | {indent}^"


def _shown(line: str, where: str) -> str:
    """As much of a line as cannot be a secret.

    That is the whole line where it holds one field whose values are no secrets, or nothing that looks so.
    Of every other line only what stands before its first value is shown.
    """
    entry = _ENTRY.match(line)
    if entry is None:
        return line
    field = entry["key"] or re.sub(r"\[\d+\]", "", where).rpartition(".")[2]
    alone = not (entry["value"].startswith(("{", "[")) and "{" in entry["value"])
    if (field in _SAFE or where.startswith("models.")) and (alone or not _RISKY.search(line)):
        return line
    return f"{line[: entry.start('value')]}…" if entry["value"] else line


_SECRET = frozenset(("api_key", "api_keys", "keys", "admin_keys", "base_url", "store"))
_SAFE = frozenset(path[-1] for path, _ in leaves(Policy)) - _SECRET


# --- a summary ---


def summary(snapshot: Snapshot, *, coverage: bool = False) -> Iterator[str]:
    """What a policy does, in a few lines."""
    policy = snapshot.policy
    yield f"digest     {snapshot.digest}"
    for name, provider in policy.providers.items():
        key = _keys(len(provider.keys))
        yield f"provider   {name}: {provider.base_url}, with {key}{_in_words(provider)}"
    for name, targets in policy.models.items():
        yield f"model      {name}: {', '.join(f'{target}{_in_words(target)}' for target in targets)}"
    yield from _attempts(snapshot)
    for rule in policy.guardrails:
        yield f"rule       {rule.name}: {rule.action}, {rule.mode}; {_looks_for(rule)}; {_watches(rule)}"
    yield from table(policy, full=coverage)
    for tenant in policy.tenants:
        yield f"tenant     {tenant.name}: {_count(len(tenant.keys), 'key')}"
    for budget in policy.budgets:
        yield f"budget     {budget.name}: {_budgeted(budget)}"
    if policy.tools is not None:
        yield from (f"tools      {line}" for line in _tool_rules(policy.tools))
    if policy.structured_output is not None:
        yield f"form       {_formed(policy.structured_output)}"
    if policy.budgets:
        yield f"store      {store_kind(policy.store)}"
    yield from (f"note       {note}" for note in notes(snapshot))


def _keys(count: int) -> str:
    return ("the caller's key", "its own key")[count] if count < 2 else f"{count} keys of its own"


def _in_words(one: ProviderConfig | TargetConfig) -> str:
    """What a model is told as text, where its server does not take it as a field."""
    said = []
    if one.tools not in (None, "native"):
        said.append(f"tools as text ({one.tools})")
    if one.response_format not in (None, "json_schema"):
        said.append("forms of replies as text" if one.response_format == "none" else "of forms of replies only JSON")
    return f" [{'; '.join(said)}]" if said else ""


def _attempts(snapshot: Snapshot) -> Iterator[str]:
    """How often one call can be sent, where it can be more than once."""
    if not snapshot.plan.active:
        return
    bounds = {name: snapshot.plan.bound(listed) for name, listed in snapshot.candidates.items()}
    direct = max(snapshot.plan.bound((Candidate.of(Target(p, "*")),)) for p in snapshot.providers.values())
    most = max((direct, *bounds.values()))
    yield f"attempts   at most {most} for one call"
    yield from (f"attempts   at most {bound} for {name}" for name, bound in bounds.items() if bound < most)


def _tool_rules(config: ToolsConfig) -> Iterator[str]:
    """Each rule about calls, and what holds for all."""
    for at, rule in enumerate(config.rules):
        yield f"{name_of(rule, at)}: {_ruled(rule)}"
    invalid = f"invalid calls: {config.on_invalid}"
    yield "; ".join((f"others: {config.default}", f"denied calls: {config.on_deny}", invalid, config.mode))
    results = f"results: at most {config.results.max_chars} characters{', framed' if config.results.frame else ''}"
    waits = (f"approvals: within {_exact(config.confirm.timeout)}",) if config.asks_admins else ()
    yield "; ".join((results, f"changed definitions: {config.pin}", *waits))


def _ruled(rule: RuleConfig) -> str:
    row = rule.more_than_in_a_row
    parts = (
        f"{rule.decision} {', '.join(rule.tool or ['every tool'])}",
        f"with {_count(len(rule.arguments), 'condition')} on arguments" if rule.arguments else "",
        f"after {', '.join(rule.after)}" if rule.after else "",
        f"when called more than {row} times in a row" if row is not None else "",
        f"of {', '.join(rule.tenants)}" if rule.tenants else "",
        f"for agents {', '.join(rule.agents)}" if rule.agents else "",
    )
    return " ".join(filter(None, parts))


def _formed(config: StructuredConfig) -> str:
    """What becomes of replies with a form, and whose own forms there are."""
    calls = config.max_repair_attempts + 1
    own = [f"{own.name} for {_whose(own)}" for own in config.schemas]
    return "; ".join((f"at most {_count(calls, 'call')} for a reply", f"streams {config.stream}", *own, config.mode))


def _whose(own: SchemaConfig) -> str:
    kinds = (("agents", own.agents), ("models", own.models))
    return " and ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names) or "all"


def _budgeted(budget: BudgetConfig) -> str:
    """Whose it is, what it limits and in which time, and what happens at a limit."""
    whose = "for all" if budget.scope == "all" else f"per {budget.scope}"
    only = [f"{what} {', '.join(names)}" for what, names in (("of", budget.tenants), ("on", budget.models)) if names]
    limits = ", ".join(map(_limited, lines(budget)))
    window = f"begins anew every {span(math.ceil(budget.window))}" if budget.window else "for its lifetime"
    return "; ".join((" ".join((whose, *only)), limits, window, budget.on_exceed, budget.mode))


def _limited(line: Line) -> str:
    amount = shown(line.unit, line.limit)
    return f"cost {amount}" if line.unit == "cost" else f"{amount} {line.what}"


def store_kind(url: str) -> str:
    """A store without its address, which may hold a password."""
    return {"memory": "memory", "sqlite": "SQLite"}.get(url.partition(":")[0], "Redis")


def _looks_for(rule: GuardrailConfig) -> str:
    words = sum(len(one.list) for one in rule.words)
    kinds = (", ".join(rule.detect), _count(len(rule.patterns), "pattern"), _count(words, "word"))
    return ", ".join(filter(None, kinds))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""


def _watches(rule: GuardrailConfig) -> str:
    if rule.on is None:
        return f"everywhere but {', '.join(sorted(OPT_IN))}"
    return "on " + ", ".join(kind.value for kind in Kind if kind.value in rule.on)


def notes(snapshot: Snapshot) -> Iterator[str]:
    """What the author of a policy may not expect."""
    policy = snapshot.policy
    if snapshot.default is None:
        yield "no provider: give one with --upstream or SIDECAR_UPSTREAM"
    if snapshot.inert:
        yield "inert: nothing is looked at and nothing is changed"
    later = sorted(name for name, targets in policy.models.items() if len(targets) > 1)
    if later and policy.resilience.fallback is None:
        yield f"without resilience.fallback a call asks one target only: {', '.join(later)}"
    if not policy.models:
        yield "every model name goes through as it is"
    if policy.tenants and policy.server.auth == "off":
        yield "server.auth is off: tenants are not told apart; their keys are still kept from the provider"
    if policy.telemetry.log == "off":
        yield "telemetry.log is off: no log line is written"
    yield from _budget_notes(policy)
    if policy.tools is not None and policy.tools.mode != "off":
        yield from _tool_notes(policy, policy.tools)


def _budget_notes(policy: Policy) -> Iterator[str]:
    live = [budget for budget in policy.budgets if budget.mode != "off"]
    if live and store_kind(policy.store) == "memory":
        yield "store is memory: with several workers each counts on its own, and a restart forgets what was spent"
    cuts = [b.name for b in live if b.on_exceed == "cut" and all(not _is_cut(line) for line in lines(b))]
    if cuts:
        yield f"only tokens and cost cut a stream; at their other limits these finish: {', '.join(cuts)}"
    told = [budget.name for budget in live if budget.scope in ("run", "session", "agent")]
    if told:
        yield f"whom these count is told from what callers set, not from their keys: {', '.join(told)}"
    if any(budget.scope == "key" for budget in live) and policy.server.auth != "required":
        yield "server.auth is not required: callers without a tenant's key choose the key that is counted"
    if live and policy.inspect.websocket == "pass":
        yield "WebSocket connections pass and are counted by no budget"


def _tool_notes(policy: Policy, tools: ToolsConfig) -> Iterator[str]:
    if policy.unknown != "deny":
        yield "no tool rule sees what is called at endpoints that no API documents: inspect.unknown is not deny"
    if policy.inspect.websocket == "pass":
        yield "WebSocket connections pass, and no tool rule sees what is called there"
    for rule, taker in unreachable(tools):
        yield f"the tool rule {rule} never fits: {taker} before it takes all its calls"
    yield from _late_approvals(policy, tools)
    if tools.asks_admins and store_kind(policy.store) == "memory":
        yield "store is memory: a call that waits can be approved only at the worker that holds it"
    if tools.stream == "pass" and tools.mode == "enforce":
        yield "tools.stream is pass: in streams no model is asked again, and what has to be confirmed is denied"
    if any(rule.after or rule.more_than_in_a_row is not None for rule in tools.rules):
        yield "what a run has called is told from its requests, and from what this process remembers of it"
    if any(rule.agents for rule in tools.rules):
        yield "agents are told from what callers set (x-sidecar-agent), not from their keys"


def _late_approvals(policy: Policy, tools: ToolsConfig) -> Iterator[str]:
    """An exchange takes no longer than its provider's total, whoever is waited for."""
    wait = tools.confirm.timeout
    short = sorted(name for name, one in policy.providers.items() if one.timeouts.total <= wait)
    if tools.asks_admins and short:
        yield f"calls wait {_exact(wait)} for an admin, and exchanges end before: timeouts.total of {', '.join(short)}"


def _exact(seconds: float) -> str:
    return span(math.ceil(seconds)) if seconds >= 1 else f"{round(seconds * 1000)}ms"


def _is_cut(line: Line) -> bool:
    return line.measure(Spending(0, Usage(0, 1), NO_TOOLS, 1)) > 0


# --- for machines ---


def as_json(reports: Sequence[Report]) -> str:
    """A JSON list with every fault of every report."""
    found = [asdict(fault) for report in reports for fault in report.faults]
    return json.dumps(found, indent=2, ensure_ascii=False)
