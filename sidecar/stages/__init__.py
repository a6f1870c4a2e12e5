"""The built-in stages and their order. Higher is further out: it sees the request first and the reply last.

    600  structured   the form of replies; outside the tools, whose calls are no answers yet
    500  tools        which calls a model may make; outside restore, so that it sees what the client would run
    450  restore      puts back what guardrails have disguised; outside them, or they would take it out again
    400  guardrails   closest to the model of all that change text, so that they see what others put in
    300  scrub        bounds what the guardrails have redacted; bounding first could cut a secret in two. So do the
                      results of `tools`, which are framed there
    100  budgets      counts what goes to the model and what comes from it, after everything else has been at it

Of equal order the one declared first goes first, on both ways.
"""

from collections.abc import Iterator, Sequence

from ..core.chain import Step
from ..core.decision import Mode
from ..wire.views import VIEWS
from .budgets import BudgetConfig, Budgets
from .guardrails import Guardrail, GuardrailConfig
from .prices import Prices, PricesConfig
from .restore import Restore
from .scrub import Bounds, ScrubConfig
from .structured import Structured, StructuredConfig
from .tools import Results, Tools, ToolsConfig

STRUCTURED = 600
TOOLS = 500
RESTORE = 450
GUARDRAILS = 400
SCRUB = 300
BUDGETS = 100
NO_PRICES = PricesConfig()


def build(
    guardrails: Sequence[GuardrailConfig],
    scrub: ScrubConfig,
    budgets: Sequence[BudgetConfig] = (),
    prices: PricesConfig = NO_PRICES,
    *,
    tools: ToolsConfig | None = None,
    structured: StructuredConfig | None = None,
    sees_unknown: bool = True,
) -> tuple[Step, ...]:
    """The steps of a policy. Raises PatternError when a rule is too large, SchemaError for a schema of no use."""
    rails = [
        (Guardrail.of(c, scrub.replacement, scrub.hash_key, sees_unknown=sees_unknown), Mode(c.mode))
        for c in guardrails
    ]
    steps = [Step(rail, mode, GUARDRAILS, reads_tools=rail.reads_tools) for rail, mode in rails]
    disguised = [m.name for rail, mode in rails if rail.literals and mode is Mode.ENFORCE for m in rail.rules.matchers]
    if disguised:
        steps.append(Step(Restore.of(disguised), Mode.ENFORCE, RESTORE, reads_tools=False))
    if scrub.max_chars.tool_results is not None:
        steps.append(Step(Bounds(scrub.max_chars.tool_results), Mode.ENFORCE, SCRUB, reads_tools=False))
    if structured is not None:
        stage = Structured.of(structured, VIEWS, scrub.max_chars.errors)
        steps.append(Step(stage, Mode(structured.mode), STRUCTURED, asks=True, reads_tools=False))
    return (*steps, *_tools(tools), *_budgets(budgets, Prices.of(prices)))


def _tools(config: ToolsConfig | None) -> Iterator[Step]:
    """The rules about calls, and what happens to their results."""
    if config is not None and config.mode != "off":
        mode, results = Mode(config.mode), config.results
        yield Step(Tools.of(config, VIEWS), mode, TOOLS, asks=True, reads_tools=False)
        yield Step(Results(results.max_chars, results.frame, VIEWS), mode, SCRUB, reads_tools=False)


def _budgets(budgets: Sequence[BudgetConfig], prices: Prices) -> Iterator[Step]:
    """All budgets of one mode are one step: they are reserved at once."""
    for mode in (Mode.ENFORCE, Mode.SHADOW):
        of_mode = [budget for budget in budgets if budget.mode == mode]
        if of_mode:
            yield Step(
                Budgets.of(of_mode, prices, shadow=mode is Mode.SHADOW), mode, BUDGETS, counts=True, reads_tools=False
            )
