"""What the stages decided, in words for the record and for the client."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.chain import Verdict
from ..core.decision import Block
from ..errors import GuardrailTripped


def decisions(verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """What was decided, for the record: by rule, action, mode and surface, with how many findings."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for verdict in verdicts:
        for rule, surface in _places(verdict):
            counts[rule, verdict.said, verdict.mode.value, surface] += 1
    for (rule, action, mode, surface), count in counts.items():
        yield {"rule": rule, "action": action, "mode": mode, "surface": surface, "count": count}


def _places(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The rule and the surface of each finding. A stage may hold several rules, such as budgets."""
    for finding in verdict.findings:
        yield finding.rule, str(finding.surface)
    if not verdict.findings:
        yield verdict.stage, ""


def tripped(stop: Block, direction: str) -> GuardrailTripped:
    what = "could not be applied to" if stop.failed else "blocked"
    return GuardrailTripped(f"The guardrail {stop.rule!r} {what} this {direction}.", param=str(stop.surface))
