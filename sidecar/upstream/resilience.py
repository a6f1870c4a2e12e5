"""The sections `resilience` and `models` of a policy: how often a call is asked again, and where else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, WrapValidator, model_validator
from pydantic_core import PydanticKnownError

from ..config import Duration, Strict
from .breaker import Limits, RetryBudget
from .classify import GROUPS, ONCE, Choice, Failure
from .routing import ASKED, Candidate, Params
from .targets import Provider, ReplyForm, Target, Tools
from .waits import Backoff

_CLASSES: Final = tuple(failure.value for failure in Failure if failure is not Failure.NONE)
_STATUSES: Final = range(400, 600)


def _kind(value: str | int) -> str | int:
    if isinstance(value, int) and value in _STATUSES:
        return value
    if value in GROUPS or value in _CLASSES:
        return value
    raise ValueError(f"expected a status from 400 to 599 or one of: {', '.join((*GROUPS, *_CLASSES))}")


def _class(value: str) -> str:
    if value not in _CLASSES:
        raise ValueError(f"expected one of: {', '.join(_CLASSES)}")
    return value


Class = Annotated[str, AfterValidator(_class), WithJsonSchema({"type": "string", "enum": [*_CLASSES]})]


def _one_or_many(value: Any) -> Any:
    match value:
        case str() | int() if not isinstance(value, bool):
            return (value,)
        case list():
            return tuple(value)
    return value


_KIND_SCHEMAS: Final[list[dict[str, Any]]] = [
    {"type": "string", "enum": [*GROUPS, *_CLASSES]},
    {"type": "integer", "minimum": _STATUSES.start, "maximum": _STATUSES.stop - 1},
]
Kind = Annotated[str | int, AfterValidator(_kind)]
Kinds = Annotated[
    tuple[Kind, ...],
    BeforeValidator(_one_or_many),
    WithJsonSchema({"anyOf": [*_KIND_SCHEMAS, {"type": "array", "items": {"anyOf": _KIND_SCHEMAS}}]}),
]
"""Classes of failures, groups of them, and statuses; one or a list."""


def _or_off(value: Any, handler: Callable[[Any], float]) -> float:
    return 0.0 if value == "off" else handler(value)


Pause = Annotated[
    Duration,
    WrapValidator(_or_off),
    WithJsonSchema({"type": "string", "pattern": r"^(off|\d+(\.\d+)?\s*(ms|s|m|h|d))$"}),
]
"""Seconds; 0.0 where the policy says `off`."""

# What the same request cannot get by being sent to the same target again.
_HOPELESS: Final = sorted(ONCE)


class RetryConfig(Strict):
    """Asking the same target again."""

    max_attempts: Annotated[int, Field(ge=1, le=20)] = Field(
        default=3, description="How often one target is asked for one call, the first time included."
    )
    initial: Duration = Field(default=0.5, description="The longest wait before the first repetition.")
    factor: Annotated[float, Field(ge=1, le=10)] = Field(
        default=2.0, description="By how much the longest wait grows with each repetition."
    )
    max: Duration = Field(default=60.0, description="What the longest wait grows to.")
    jitter: bool = Field(
        default=True, description="Whether a wait is drawn evenly between nothing and the longest, or is the longest."
    )
    retry_on: Kinds = Field(
        default=("transient",),
        description="What is asked again: classes of failures, `transient` for those that may pass, or statuses such "
        "as [429, 500].",
    )
    deadline: Duration = Field(
        default=600.0,
        description="How long a call may take until its reply's content begins: all attempts and waits together.",
    )

    @model_validator(mode="after")
    def _hopeful(self) -> "RetryConfig":
        if found := [name for name in _HOPELESS if name in self.retry_on]:
            raise ValueError(f"expected retry_on without {', '.join(found)}: the same target would say the same again")
        return self


class FallbackConfig(Strict):
    """Asking the next target of the model's name."""

    on: Kinds = Field(
        default=("transient", "quota", "context_window"),
        description="What the next target is asked after, as in retry_on. After `context_window` only a target with a "
        "larger context_window is.",
    )
    cooldown: Duration = Field(
        default=30.0,
        description="How long a target is left out that failed more than allowed_fails times in a minute, and a key "
        "whose quota is used up.",
    )
    allowed_fails: Annotated[int, Field(ge=0)] = Field(
        default=3,
        description="How many failures in a minute, not in a row, a target may have. More leave it out where they are "
        "at least half of what it was asked.",
    )
    pace: Pause = Field(
        default=60.0,
        description="How long a call waits at one target that says when its rate limit reopens, before it goes to the "
        "next. off: it does not wait for that where there is a next one.",
    )
    sticky: bool = Field(
        default=False,
        description="Whether a session stays with one of several targets of the same priority, for the provider's "
        "prompt cache.",
    )


class BreakerConfig(Strict):
    """When a target is not asked at all. In force with retry or fallback."""

    failures: Annotated[int, Field(ge=1)] = Field(
        default=3, description="How many failures in a row leave a target out."
    )
    open_for: Duration = Field(default=30.0, description="For how long. Then one attempt at a time finds out.")
    successes: Annotated[int, Field(ge=1)] = Field(
        default=2, description="How many of those must succeed in a row until the target is asked as before."
    )


class RetryBudgetConfig(Strict):
    """How much of the traffic may be repetitions. In force with retry."""

    share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.2, description="Repetitions at a target, as a share of the other attempts there in the window."
    )
    minimum: Annotated[int, Field(ge=0)] = Field(
        default=10, description="How many repetitions a window has room for in any case."
    )
    window: Duration = Field(default=60.0, description="The time over which is counted.")


class ResilienceConfig(Strict):
    """What happens when a provider fails."""

    retry: RetryConfig | None = Field(default=None, description="Asking the same target again. Absent: never.")
    fallback: FallbackConfig | None = Field(
        default=None, description="Asking the next target of the model's name. Absent: never."
    )
    breaker: BreakerConfig = Field(default=BreakerConfig(), description="When a target is not asked at all.")
    budget: RetryBudgetConfig = Field(
        default=RetryBudgetConfig(), description="How much of the traffic may be repetitions."
    )
    errors: Mapping[str, Class] = Field(
        default={},
        description="Classes for words that a provider of yours has as `code` or `type` of an error, such as "
        "{ctx_overflow: context_window}.",
    )

    @property
    def on(self) -> bool:
        return self.retry is not None or self.fallback is not None

    @property
    def limits(self) -> Limits:
        breaker, fallback = self.breaker, self.fallback or FallbackConfig()
        return Limits(breaker.failures, breaker.open_for, breaker.successes, fallback.allowed_fails, fallback.cooldown)

    @property
    def retry_budget(self) -> RetryBudget:
        return RetryBudget(self.budget.share, self.budget.minimum, self.budget.window)

    @property
    def words(self) -> dict[str, Failure]:
        """The policy's own words, for `classify`."""
        return {word.lower(): Failure(failure) for word, failure in self.errors.items()}


class Plan:
    """What attempts go by: a compiled `resilience` section. Without one nothing is asked twice."""

    __slots__ = ("active", "backoff", "deadline", "fallback_on", "max_attempts", "pace", "retry_on", "sticky")

    def __init__(self, config: ResilienceConfig | None = None) -> None:
        config = config or ResilienceConfig()
        retry, fallback = config.retry or RetryConfig(max_attempts=1, retry_on=()), config.fallback
        self.active = config.on
        self.max_attempts = retry.max_attempts
        self.backoff = Backoff(retry.initial, retry.factor, retry.max, retry.jitter)
        self.retry_on = Choice.of(retry.retry_on)
        self.deadline: float | None = retry.deadline if config.on else None
        self.fallback_on = None if fallback is None else Choice.of(fallback.on)
        self.pace = fallback.pace if fallback else 0.0
        self.sticky = fallback is not None and fallback.sticky
        if config.retry is None and self.pace:
            # Pacing alone: the second time is after the provider's own delay.
            self.max_attempts = 2

    def bound(self, candidates: Sequence[Candidate]) -> int:
        """The most attempts that one call can take over these candidates."""
        each = [self.max_attempts + (len(one.targets) - 1 if self.active else 0) for one in candidates]
        return max(each) if self.fallback_on is None else sum(each)


# --- models ---


def _as_tuple(value: Any) -> Any:
    """What a validator has looked at before is Python's, where a strict tuple takes no list."""
    return tuple(value) if isinstance(value, list) else value


class ParamsConfig(Strict):
    """How a request changes for one target."""

    drop: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(
        default=(), description="Fields of the request that the target does not get."
    )
    rename: Mapping[str, str] = Field(
        default={}, description="Fields that have another name there: {max_tokens: max_completion_tokens}."
    )
    set: Mapping[str, Any] = Field(default={}, description="Fields that the target gets with these values.")


_TARGET: Final = r"^[^/\s]+/\S+$"


def _target(value: str) -> str:
    provider, slash, model = value.partition("/")
    if not (provider and slash and model) or any(character.isspace() for character in value):
        raise ValueError("expected `provider/model`")
    if ASKED in model and model != ASKED:
        raise ValueError("expected `provider/model`, or `provider/*` for the name that was asked for")
    return value


class TargetConfig(Strict):
    """One target of a name, as `provider/model` alone or with what is particular to it."""

    target: Annotated[str, AfterValidator(_target), WithJsonSchema({"type": "string", "pattern": _TARGET})] = Field(
        description="The target, as `provider/model`; `provider/*` stands for the name that was asked for."
    )
    weight: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="The target's part of the traffic beside others of its priority. With a weight in a list, targets "
        "without a priority share the traffic; without any they are asked in order.",
    )
    priority: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Lower ones are asked first. Absent: the place in the list."
    )
    context_window: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="The tokens that fit the model, for falling back when a request is too long."
    )
    max_tokens: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="The most tokens of a reply that the target can be asked for; more is lowered to it."
    )
    tools: Tools | None = Field(
        default=None, description="How this model is told of tools. Absent: as the provider's models are."
    )
    response_format: ReplyForm | None = Field(
        default=None, description="What it can be asked for as the form of a reply. Absent: as the provider's are."
    )
    params: ParamsConfig = Field(default=ParamsConfig(), description="How a request changes for the target.")

    def __str__(self) -> str:
        return self.target


def _written(value: Any) -> Any:
    match value:
        case str():
            return {"target": value}
        case dict() | TargetConfig():
            return value
    raise PydanticKnownError("string_type")


def _targets(value: Any) -> Any:
    match value:
        case str() | dict():
            return (value,)
        case list():
            return tuple(value)
    return value


class _OrText:
    """In the JSON Schema: what is written as one text may stand in place of the object, and one in place of a list."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        known: dict[str, Any] = handler(schema)
        text = {"type": "string", "pattern": _TARGET}
        if "items" in known:
            return {"anyOf": [*known["items"]["anyOf"], known]}
        return {"anyOf": [text, known]}


Targets = Annotated[
    tuple[Annotated[TargetConfig, BeforeValidator(_written), _OrText()], ...],
    BeforeValidator(_targets),
    Field(min_length=1),
    _OrText(),
]
"""The targets of a name: one or several, each as text or with more about it."""


def candidates(listed: Sequence[TargetConfig], providers: Mapping[str, Provider]) -> tuple[Candidate, ...]:
    """The compiled targets of a name, in the order of the list."""
    shared = any(one.weight is not None for one in listed)
    return tuple(_candidate(one, 1 if shared else at, providers) for at, one in enumerate(listed, 1))


def _candidate(config: TargetConfig, priority: int, providers: Mapping[str, Provider]) -> Candidate:
    name, _, model = config.target.partition("/")
    params = config.params
    own = {"tools": config.tools, "response_format": config.response_format}
    said: dict[str, Any] = {field: value for field, value in own.items() if value is not None}
    return Candidate.of(
        Target(replace(providers[name], **said) if said else providers[name], model),
        weight=1.0 if config.weight is None else config.weight,
        priority=priority if config.priority is None else config.priority,
        context_window=config.context_window,
        max_tokens=config.max_tokens,
        params=Params(params.drop, dict(params.rename), dict(params.set)),
    )
