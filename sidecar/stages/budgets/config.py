"""What a policy says of a budget."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ...config import Duration, Strict
from ...stores.ledger import MAX_LIMIT
from ..prices import Money

Scope = Literal["run", "session", "agent", "key", "tenant", "all"]
Count = Annotated[int, Field(ge=0, le=MAX_LIMIT)]


class TokensConfig(Strict):
    """Limits on tokens, apart and together."""

    total: Count | None = Field(default=None, description="Prompt and completion together.")
    prompt: Count | None = Field(default=None, description="Tokens of prompts, those read from a cache included.")
    completion: Count | None = Field(default=None, description="Tokens of completions, reasoning included.")
    cached: Count | None = Field(default=None, description="Tokens of prompts that were read from a cache.")
    reasoning: Count | None = Field(default=None, description="Tokens of completions that were reasoning.")


class BudgetConfig(Strict):
    """One budget: whose it is, what it limits, and what happens when it is used up."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="The budget's name, in errors and tables.")
    scope: Scope = Field(
        default="run",
        description="Who has it: each run, session, agent, key that a client shows, or tenant has one of its own; all "
        "share one.",
    )
    tenants: list[str] = Field(default=[], description="Only calls of these tenants count. Absent: of all.")
    models: list[str] = Field(default=[], description="Only calls of models of these names or globs count.")
    calls: Count | None = Field(default=None, description="Model calls.")
    tokens: Count | TokensConfig | None = Field(default=None, description="Tokens together, or each kind by its name.")
    tool_calls: Count | dict[str, Count] | None = Field(
        default=None,
        description="Tool calls that models propose: all together, or `total` and names or globs of tools.",
    )
    cost: Money | None = Field(
        default=None, description='Money, as a decimal in quotes such as "2.50", in the currency of prices.'
    )
    requests_per_minute: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Model calls a minute.")
    tokens_per_minute: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Tokens a minute.")
    concurrent: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Exchanges at once.")
    window: Duration | None = Field(
        default=None,
        description="The time after which calls, tokens, tool_calls and cost begin anew, aligned to midnight UTC of "
        "1970-01-01. Absent: they count for the scope's lifetime.",
    )
    warn_at: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="The part of a limit from which on it is warned once, such as 0.8."
    )
    completion: Annotated[int, Field(gt=0)] = Field(
        default=4096, description="The completion in tokens that is reserved for a call that does not bound its own."
    )
    on_exceed: Literal["reject", "finish", "cut"] = Field(
        default="reject",
        description="reject answers 429; finish answers with a normal reply that says message; cut also ends a stream "
        "that passes the limit half-way, as one that has reached its length.",
    )
    message: str = Field(
        default="This run has used up its budget and ends here.", description="What finish says in the model's place."
    )
    on_store_error: Literal["deny", "local"] = Field(
        default="deny",
        description="What happens while the store cannot be reached: deny answers 503; local counts in this process "
        "alone, against local_share of each limit, and charges the store when it is back.",
    )
    local_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.25, description="The part of each limit that one replica may use on its own while the store is away."
    )
    mode: Literal["off", "shadow", "enforce"] = Field(
        default="enforce", description="off; shadow counts and records but refuses nothing; enforce."
    )

    @model_validator(mode="after")
    def _limits_something(self) -> "BudgetConfig":
        if not any(getattr(self, name) is not None for name in LIMITS):
            raise PydanticCustomError("empty", "limits nothing: give it {names}", {"names": ", ".join(LIMITS)})
        return self


LIMITS: Final = ("calls", "tokens", "tool_calls", "cost", "requests_per_minute", "tokens_per_minute", "concurrent")
