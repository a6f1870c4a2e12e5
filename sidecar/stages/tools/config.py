"""What a policy says of tools."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ...config import Duration, Size, Strict
from ...errors import PatternError
from ...stores.runs import MAX_RECENT
from ...text.engine import Program
from ...text.pattern import parse as parse_pattern
from ...text.pattern import render
from .path import parse as parse_path

MAX_RULES: Final = 1_000
# As many of a run's last calls are remembered, so that more in a row can be told.
MAX_IN_A_ROW: Final = MAX_RECENT - 1

_TEXTS: Final = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Globs = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    BeforeValidator(_as_list),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _TEXTS]}),
]
"""Names in which `*`, `?` and `[…]` stand for others; one or a list."""


def compiled(pattern: str) -> Program:
    """A pattern of a rule. Raises PatternError with the offset of the fault."""
    return Program(render(parse_pattern(pattern)))


_TWO_CONDITIONS: Final = "Write it as several conditions, all of which must fit, or as rules in order"


def _fault(error: PatternError) -> PydanticCustomError:
    hint = _TWO_CONDITIONS if "engine" in error.hint else error.hint
    context = {"message": error.message, "offset": error.offset, "hint": hint}
    return PydanticCustomError("pattern", "{message}", context)


class ArgumentConfig(Strict):
    """What must be so about a call's arguments."""

    path: str = Field(
        default="$",
        description="Which values: a JSON path such as $.url, $.files[0].name, $.to[*] or $..url. Absent: all of "
        "the arguments.",
    )
    pattern: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="RE2 syntax, found anywhere in a value that is a text; numbers, true, false and null are looked "
        "at as they are written.",
    )
    form: Any = Field(
        default=None,
        alias="schema",
        description="A JSON Schema that a value must fit.",
    )

    @field_validator("path")
    @classmethod
    def _is_path(cls, path: str) -> str:
        try:
            parse_path(path)
        except PatternError as error:
            raise _fault(error) from None
        return path

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            if pattern is not None:
                compiled(pattern)
        except PatternError as error:
            raise _fault(error) from None
        return pattern

    @model_validator(mode="after")
    def _says_one_thing(self) -> "ArgumentConfig":
        if len(self.model_fields_set & {"pattern", "form"}) != 1:
            raise PydanticCustomError("empty", "a condition has a `pattern` or a `schema`, one of them")
        return self


class RuleConfig(Strict):
    """Which calls a rule is about, and what happens to them. All that is given must fit."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | None = Field(
        default=None, description="The rule's name, in errors and records. Absent: rule-1, rule-2 … by its place."
    )
    tool: Globs | None = Field(
        default=None, description="The tools' names or globs, one or a list; case counts. Absent: every tool."
    )
    arguments: list[ArgumentConfig] = Field(
        default=[], description="Conditions on the arguments, all of which must fit."
    )
    after: Globs | None = Field(
        default=None, description="Only after this run has called one of these tools, names or globs."
    )
    more_than_in_a_row: Annotated[int, Field(ge=0, le=MAX_IN_A_ROW)] | None = Field(
        default=None, description="Only where the run has called such tools more often than this in a row."
    )
    tenants: Globs | None = Field(default=None, description="Only calls of these tenants, names or globs.")
    agents: Globs | None = Field(default=None, description="Only calls of these agents (x-sidecar-agent).")
    decision: Literal["allow", "deny", "confirm"] = Field(
        description="allow lets the call through; deny takes it out; confirm holds it until an admin has approved it."
    )
    reason: Annotated[str, Field(max_length=1000)] = Field(
        default="", description="Why a call is denied, in words for the model."
    )


class ConfirmConfig(Strict):
    """How long a call waits for an admin."""

    timeout: Duration = Field(
        default=300.0, le=86_400, description="How long a call waits to be approved. Then it is denied."
    )


class ResultsConfig(Strict):
    """What tools gave back, on its way to the model."""

    max_chars: Annotated[int, Field(ge=16)] = Field(
        default=20_000,
        description="The longest result that goes to a model, in characters. A longer one is cut after guardrails have "
        "seen all of it, and says how long it was.",
    )
    frame: bool = Field(
        default=False, description="Whether each result stands between lines that say it is data and no instruction."
    )


class ToolsConfig(Strict):
    """Which tool calls a model may make, and what becomes of their results."""

    mode: Literal["off", "shadow", "enforce"] = Field(
        default="enforce", description="off; shadow decides and records, and changes nothing; enforce."
    )
    default: Literal["allow", "deny"] = Field(default="allow", description="What happens to calls that no rule fits.")
    rules: list[RuleConfig] = Field(
        default=[], max_length=MAX_RULES, description="In order; the first that fits a call decides."
    )
    on_deny: Literal["answer", "drop", "block", "finish"] = Field(
        default="answer",
        description="answer takes denied calls out while others go on, and asks the model on with the reasons as the "
        "tools' results when none is left; drop takes them out and says so in the reply; block answers 400; finish "
        "answers with the reason in the model's place.",
    )
    max_denied: Annotated[int, Field(ge=0, le=20)] = Field(
        default=2, description="How often a model is asked on, in one exchange, after calls all of which were denied."
    )
    on_invalid: Literal["pass", "repair", "deny"] = Field(
        default="pass",
        description="Arguments that do not fit the tool's schema, calls of tools that the request does not offer, and "
        "a required call that is missing: pass records them; repair asks the model again; deny denies the call.",
    )
    on_unknown: Literal["text", "repair"] = Field(
        default="text",
        description="A call in the reply's text that names no tool: text lets it stand; repair asks the model again.",
    )
    max_repair_attempts: Annotated[int, Field(ge=0, le=10)] = Field(
        default=1, description="How often a model is asked again, in one exchange. Then calls are denied."
    )
    stream: Literal["buffer", "pass"] = Field(
        default="buffer",
        description="Replies in which a call may have to be denied: buffer holds a stream whole until all is decided; "
        "pass holds only calls, and can neither ask again nor wait for an admin.",
    )
    pin: Literal["off", "flag", "block"] = Field(
        default="off",
        description="A tool whose definition is no more what it was when the session first brought it: flag records "
        "it, block answers 400.",
    )
    confirm: ConfirmConfig = Field(default=ConfirmConfig(), description="How calls wait to be approved.")
    results: ResultsConfig = Field(default=ResultsConfig(), description="What tools gave back.")
    calls_in_thoughts: bool = Field(
        default=False,
        description="Whether calls inside a model's thoughts (<think>) count, where tools are told as text.",
    )
    max_section: Size = Field(
        default=64_000, description="The most that tools may take in a prompt, where they are told as text."
    )

    @property
    def asks_admins(self) -> bool:
        return self.mode == "enforce" and any(rule.decision == "confirm" for rule in self.rules)


def name_of(rule: RuleConfig, at: int) -> str:
    """What findings call the rule at this place, counted from 0."""
    return rule.name or f"rule-{at + 1}"
