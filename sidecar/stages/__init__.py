"""The built-in stages and their order. Higher is further out: it sees the request first and the reply last.

    450  restore      puts back what guardrails have disguised; outside them, or they would take it out again
    400  guardrails   closest to the model of all that change text, so that they see what others put in
    300  scrub        bounds what the guardrails have redacted; bounding first could cut a secret in two

Of equal order the one declared first goes first, on both ways.
"""

from collections.abc import Sequence

from ..core.chain import Step
from ..core.decision import Mode
from .guardrails import Guardrail, GuardrailConfig
from .restore import Restore
from .scrub import Bounds, ScrubConfig

RESTORE = 450
GUARDRAILS = 400
SCRUB = 300


def build(guardrails: Sequence[GuardrailConfig], scrub: ScrubConfig) -> tuple[Step, ...]:
    """The steps of a policy. Raises PatternError when a rule is too large."""
    rails = [(Guardrail.of(c, scrub.replacement, scrub.hash_key), Mode(c.mode)) for c in guardrails]
    steps = [Step(rail, mode, GUARDRAILS) for rail, mode in rails]
    disguised = [m.name for rail, mode in rails if rail.literals and mode is Mode.ENFORCE for m in rail.rules.matchers]
    if disguised:
        steps.append(Step(Restore.of(disguised), Mode.ENFORCE, RESTORE))
    if scrub.max_chars.tool_results is not None:
        steps.append(Step(Bounds(scrub.max_chars.tool_results), Mode.ENFORCE, SCRUB))
    return tuple(steps)
