"""What an agent's request costs under policies that do more than look for secrets. All buffered, none is repaired.

Each case is a request and a policy; all run in turn, round by round, each before a sidecar of its own.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bench import procstat, table
from bench.load import Fields, closed_loop
from bench.subjects import WORK, Cores, Running, free_port, sidecar, started, upstream

COUNT, WARM, CONNECTIONS, TOOLS = 2_000, 300, 4, 30


def _tool(number: int) -> dict[str, Any]:
    what = {"type": "string", "description": "What is looked for, in a few words."}
    most = {"type": "integer", "description": "How many are wanted at most.", "minimum": 1}
    schema = {"type": "object", "properties": {"query": what, "most": most}, "required": ["query"]}
    told = f"Looks for things of kind {number}, and gives back what it has found, the best first."
    return {"type": "function", "function": {"name": f"tool_{number}", "description": told, "parameters": schema}}


_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string"}, "words": {"type": "integer"}},
    "required": ["colour", "words"],
    "additionalProperties": False,
}
_WITH_TOOLS: Fields = {"tools": [_tool(number) for number in range(TOOLS)]}
_WITH_FORM: Fields = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True}}
}
_BY_NAME = "rules: [{tool: shell, decision: deny}]"
_BY_ARGUMENT = "rules: [{tool: tool_3, arguments: [{path: $.query, pattern: secret}], decision: deny}]"


@dataclass(slots=True)
class Case:
    """`provider` and `sections` are what the policy has beside a guardrail that looks for secrets."""

    name: str
    model: str
    more: Fields = field(default_factory=dict)
    provider: str = ""
    sections: str = ""
    micros: list[float] = field(default_factory=list)
    errors: int = 0

    def policy(self, port: int) -> str:
        base = f"http://127.0.0.1:{port}/v1"
        return (
            f'version: 1\nproviders: {{p: {{base_url: "{base}"{self.provider}}}}}\n'
            f"guardrails: [{{name: secrets, detect: [secrets]}}]\ntelemetry: {{log: off}}\n{self.sections}"
        )


def cases() -> list[Case]:
    return [
        Case("a short request", "gpt-4o-mini"),
        Case(f"{TOOLS} tools, answered with a call", "calls", _WITH_TOOLS),
        Case(
            "the same, the tool is allowed by name",
            "calls",
            _WITH_TOOLS,
            sections=f"tools: {{{_BY_NAME}}}\n",
        ),
        Case("the same, held for its arguments", "calls", _WITH_TOOLS, sections=f"tools: {{{_BY_ARGUMENT}}}\n"),
        Case("the same, held for its schema", "calls", _WITH_TOOLS, sections="tools: {on_invalid: repair}\n"),
        Case("the same, told and called as text", "told", _WITH_TOOLS, provider=", tools: prompt"),
        Case("a form, answered with an object", "object", _WITH_FORM),
        Case("the same, held and checked", "object", _WITH_FORM, sections="structured_output: {}\n"),
    ]


def measured(cores: Cores, rounds: int) -> list[Case]:
    todo = cases()
    with ExitStack() as stack:
        port = free_port()
        stack.enter_context(started(upstream(port), cores.load))
        running = [stack.enter_context(_started(case, at, port, cores)) for at, case in enumerate(todo)]
        for case, subject in zip(todo, running, strict=True):
            _load(case, subject, WARM)
        for _ in range(rounds):
            for case, subject in zip(todo, running, strict=True):
                before = procstat.cpu_seconds(subject.pid)
                _load(case, subject, COUNT)
                case.micros.append((procstat.cpu_seconds(subject.pid) - before) / COUNT * 1e6)
    return todo


def _started(case: Case, at: int, port: int, cores: Cores) -> Any:
    path = WORK / f"agents-{at}.yaml"
    path.write_text(case.policy(port), "utf-8")
    return started(sidecar(f"agents {at}", port, path), cores.subject)


def _load(case: Case, subject: Running, count: int) -> None:
    load = closed_loop(subject.buffered, case.model, stream=False, count=count, connections=CONNECTIONS, more=case.more)
    case.errors += load.errors


def report(rows: Sequence[Case]) -> str:
    cells = [(row.name, table.spread(row.micros, ".0f"), str(row.errors)) for row in rows]
    return table.render("CPU time per request, µs: min / median / max", ("a request", "µs", "errors"), cells)
