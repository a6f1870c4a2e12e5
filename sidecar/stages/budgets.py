"""`budgets`: how much may be used, by whom and in which time. Reserved before each call, settled with what was used.

All budgets that apply to a call are reserved at once, all or none, with what the call may come to: its prompt as
estimated, and the completion that it may be answered with. What is left of a limit is enough to begin: a call is
refused when not even its prompt fits, and the reply that crosses a limit is kept whole. When the call is over the
reservation becomes what was really used: as the provider reports it, else as counted.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Final, Literal

import msgspec
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ..config import Duration, Strict
from ..core.decision import PASS, Decision, Finish, Pass, Refuse
from ..core.events import Began, Dropped, Event, Stopped, Text, Used
from ..core.exchange import Exchange, Request
from ..core.identity import Identity
from ..core.stage import UNREACHABLE, Visit
from ..core.surface import Finding, Kind, Lane, Surface
from ..core.usage import Usage, merged
from ..errors import BudgetExceeded, ModelUnpriced, StoreDown, StoreUnavailable
from ..stores.accounts import Accounts
from ..stores.ledger import MAX_AMOUNT, MAX_LIMIT, SLOT, Answer, Claim, Granted, Ledger, Notice, Refused
from ..stores.ledger import Line as Mark
from ..text.tokens import Calibration, estimate, tokens, weight
from ..wire.asking import asked
from ..wire.unseen import unseen
from .prices import NANO, Money, Prices

# Tool calls that one model call may propose without knowing how many are left: what it holds of the limit meanwhile.
HELD_TOOL_CALLS: Final = 16
MINUTE: Final = 60
# What a reservation that does not fit is lowered to before the call is refused, at most so often.
_TRIES: Final = 4

PLACE: Final = Surface("budget", Kind.USER)

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


# --- compiled -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spending:
    """What one call uses, or may."""

    calls: int
    usage: Usage
    tools: Mapping[str, int]
    cost: int = 0


NO_TOOLS: Final[Mapping[str, int]] = MappingProxyType({})
NOTHING: Final = Spending(0, Usage(0, 0), NO_TOOLS)


Measure = Callable[[Spending], int]

_STOP_REASONS: Final = {"calls": "call_limit", "requests": "call_limit", SLOT: "call_limit", "cost": "cost_limit"}


@dataclass(frozen=True, slots=True)
class Line:
    """One limit of one budget. `shrinks`: a call may begin with less of it than it might come to."""

    budget: BudgetConfig
    unit: str
    what: str
    limit: int
    window: int
    measure: Measure
    shrinks: bool = False
    tools: str | None = None

    def applies(self, tenant: str, model: str) -> bool:
        budget = self.budget
        if budget.tenants and tenant not in budget.tenants:
            return False
        # Whose model cannot be read, such as an upload's, counts everywhere: else leaving it out would be a way around.
        return not (budget.models and model) or any(fnmatchcase(model, glob) for glob in budget.models)

    def claim(self, account: str, amount: int, *, hard: bool = True, share: float = 1.0) -> Claim:
        limit = math.ceil(self.limit * share)
        soft = None if self.budget.warn_at is None else math.ceil(limit * self.budget.warn_at)
        keep = self.budget.scope in ("tenant", "all")
        return Claim(account, self.unit, min(amount, MAX_AMOUNT), limit, self.window, hard=hard, soft=soft, keep=keep)

    @property
    def stop_reason(self) -> str:
        return "tool_limit" if self.tools else _STOP_REASONS.get(self.unit, "token_budget")


def lines(budget: BudgetConfig) -> Iterator[Line]:
    """A budget's limits, in the order in which they are asked for and named."""
    window = math.ceil(budget.window or 0)
    if budget.concurrent is not None:
        yield Line(budget, SLOT, "exchanges at once", budget.concurrent, 0, lambda _: 1)
    if budget.requests_per_minute is not None:
        yield Line(budget, "requests", "calls a minute", budget.requests_per_minute, MINUTE, lambda s: s.calls)
    if budget.calls is not None:
        yield Line(budget, "calls", "calls", budget.calls, window, lambda s: s.calls)
    if budget.tokens_per_minute is not None:
        yield Line(budget, "tokens/min", "tokens a minute", budget.tokens_per_minute, MINUTE, _total, shrinks=True)
    yield from _token_lines(budget, window)
    if budget.cost is not None:
        yield Line(budget, "cost", "money", budget.cost, window, lambda s: s.cost, shrinks=True)
    yield from _tool_lines(budget, window)


def _total(spending: Spending) -> int:
    return spending.usage.total


_TOKENS: Final[Mapping[str, Measure]] = {
    "total": _total,
    "prompt": lambda s: s.usage.prompt or 0,
    "completion": lambda s: s.usage.completion or 0,
    "cached": lambda s: s.usage.cached or 0,
    "reasoning": lambda s: s.usage.reasoning or 0,
}


def _token_lines(budget: BudgetConfig, window: int) -> Iterator[Line]:
    tokens = TokensConfig(total=budget.tokens) if isinstance(budget.tokens, int) else budget.tokens
    for kind, measure in _TOKENS.items() if tokens is not None else ():
        limit = getattr(tokens, kind)
        if limit is not None:
            what = "tokens" if kind == "total" else f"{kind} tokens"
            yield Line(budget, what, what, limit, window, measure, shrinks=True)


def _tool_lines(budget: BudgetConfig, window: int) -> Iterator[Line]:
    limits = {"total": budget.tool_calls} if isinstance(budget.tool_calls, int) else budget.tool_calls or {}
    for name, limit in limits.items():
        glob = "*" if name == "total" else name
        unit = "tool calls" if name == "total" else f"tool calls:{name}"
        yield Line(
            budget, unit, f"calls of {glob}" if glob != "*" else unit, limit, window, _calls_of(glob), True, glob
        )


def _calls_of(glob: str) -> Measure:
    return lambda s: sum(count for name, count in s.tools.items() if fnmatchcase(name, glob))


@dataclass(frozen=True, slots=True)
class Budgets:
    """The stage: all budgets of one mode. What a shadow budget decides is only recorded."""

    lines: tuple[Line, ...]
    prices: Prices
    shadow: bool = False
    calibration: Calibration = field(default_factory=Calibration, repr=False, compare=False)
    name: str = "budgets"

    @classmethod
    def of(cls, budgets: Iterable[BudgetConfig], prices: Prices, *, shadow: bool = False) -> "Budgets":
        return cls(tuple(line for budget in budgets for line in lines(budget)), prices, shadow)

    def open(self, exchange: Exchange) -> Visit:
        return BudgetVisit(self, exchange)


# --- one call -----------------------------------------------------------------------------------------------------


def account(budget: BudgetConfig, identity: Identity) -> str:
    """Whose balance it is: `budget/all`, `budget/tenant` or `budget/tenant/scope/name`.

    A tenant's names are never another's; what is shared by all has no tenant.
    """
    match budget.scope:
        case "all":
            return f"{budget.name}/all"
        case "tenant":
            return f"{budget.name}/{segment(identity.tenant)}"
        case scope:
            name: str = getattr(identity, scope)
            kept = _kept(name) if scope in ("run", "session") else name
            return f"{budget.name}/{segment(identity.tenant)}/{scope}/{kept}"


def _kept(name: str) -> str:
    """A name as the store may keep it. What a body calls its run or user may be anything, an address or a key too."""
    kind, colon, said = name.partition(":")
    if not colon or kind in _OWN_NAMES:
        return name
    return f"{kind}:{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# Names that stand in a header for us alone, and digests of ours.
_OWN_NAMES: Final = frozenset(("header", "run", "beginning"))


def segment(tenant: str) -> str:
    """A tenant's name as a part of an account's: the slashes in it are written as in a URL."""
    return tenant.replace("%", "%25").replace("/", "%2F")


Reserve = Callable[[str, Sequence[Claim]], Awaitable[Answer]]
Share = Callable[[Line], float]


class BudgetVisit(Visit):
    """One call under all budgets of a mode."""

    def __init__(self, stage: Budgets, exchange: Exchange) -> None:
        self._stage, self._exchange = stage, exchange
        self._id = f"{exchange.id}{'/shadow' if stage.shadow else ''}"
        self._accounts = exchange.accounts if isinstance(exchange.accounts, Accounts) else None
        self._model = ""
        self._priced_as = ""
        self._lines: list[Line] = []
        self._claims: list[Claim] = []
        self._left: tuple[int | None, ...] = ()
        self._asked = NOTHING
        self._estimated_prompt = 0
        self._is_all_text = False
        self._local = False
        self._asking = False
        self._partial = False
        self._status: int | None = None
        self._reported = Usage()
        self._heard = 0
        self._names: dict[tuple[int, int | str], str] = {}
        self._dropped: set[tuple[int, int | str]] = set()
        self._said: list[str] = []
        self._cut_at: int | None = None
        self._over = False

    # --- down ---

    async def request(self, request: Request) -> Decision:
        self._model = request.model
        self._priced_as = self._price_name(request.target)
        self._lines = [line for line in self._stage.lines if line.applies(self._exchange.tenant, request.model)]
        if not self._lines or self._accounts is None or request.document is None:
            return PASS  # without a body no model is called
        if self._is_unpriced():
            unpriced = _UNPRICED.format(self._model[:100]) if self._model else _UNNAMED
            return Refuse("budgets", ModelUnpriced(unpriced, param="model"))
        self._asked = self._estimated(request)
        try:
            # A client that leaves meanwhile does not tell whether it was reserved.
            self._asking = True
            answer = await self._reserve(self._accounts.reserve)
            self._asking = False
        except StoreUnavailable:
            self._asking = False
            if any(line.budget.on_store_error == "deny" for line in self._lines):
                return Refuse("budgets", StoreDown(_DOWN, retry_after=1))
            answer = await self._reserve_locally(self._accounts.local)
        if isinstance(answer, Refused):
            self._tell(answer.notices)
            line = self._lines[answer.claim]
            in_use = line.shrinks and answer.reserved > 0 and answer.spent < answer.limit
            return self._exceeded(line, answer.limit, answer.resets_at, in_use=in_use)
        return self._begin(self._accounts, answer)

    def _price_name(self, target: str) -> str:
        """What a target's price goes under: `provider/model`, the model's own name, or the one that was asked for."""
        names = (target, target.partition("/")[2], self._model)
        prices = self._stage.prices
        return next((name for name in names if name and prices.price_of(name) is not None), self._model)

    def _is_unpriced(self) -> bool:
        counts_money = any(line.unit == "cost" for line in self._lines)
        return counts_money and self._stage.prices.price_of(self._priced_as) is None

    def _estimated(self, request: Request) -> Spending:
        """What the call may come to."""
        asks = asked(request.document, self._exchange.endpoint)
        texts = [slot.text for slot in request.slots if slot.surface.kind is not Kind.TOOLS]
        self._estimated_prompt = estimate([*texts, asks.definitions], asks.messages, asks.ids)
        self._is_all_text = not any(unseen(request.document if isinstance(request.document, dict) else {}))
        prompt = self._stage.calibration.corrected(self._model, self._estimated_prompt)
        bound = max(line.budget.completion for line in self._lines) if asks.max_tokens is None else asks.max_tokens
        usage = Usage(prompt, bound * asks.choices)
        return Spending(1, usage, NO_TOOLS, self._stage.prices.most(usage, self._priced_as))

    def _priced(self, usage: Usage, tools: Mapping[str, int] = MappingProxyType({})) -> Spending:
        return Spending(1, usage, tools, self._stage.prices.cost(usage, self._priced_as, tools))

    async def _reserve(self, reserve: Reserve, share: Share = lambda _: 1.0) -> Answer:
        """As much as the call may come to, or as much of that as there is left, if it is enough to begin."""
        amounts = [HELD_TOOL_CALLS if line.tools else line.measure(self._asked) for line in self._lines]
        least, identity = self._least(), self._exchange.identity
        empty: set[int] = set()
        for _ in range(_TRIES * len(self._lines)):
            self._claims = [
                line.claim(account(line.budget, identity), amount, hard=self._is_hard(at, empty), share=share(line))
                for at, (line, amount) in enumerate(zip(self._lines, amounts, strict=True))
            ]
            answer = await reserve(self._id, self._claims)
            if isinstance(answer, Granted):
                return answer
            at, room = answer.claim, max(0, answer.limit - answer.spent - answer.reserved)
            if not self._lines[at].shrinks or room >= amounts[at] or room < least[at]:
                return answer
            amounts[at] = room
            if not room:
                empty.add(at)
        return answer

    def _is_hard(self, at: int, empty: set[int]) -> bool:
        """What only records refuses nothing, and neither does a limit on tool calls that is used up."""
        return not self._stage.shadow and at not in empty

    def _least(self) -> list[int]:
        """What each limit must have left for the call to begin: its prompt, and something to answer with.

        A limit on tool calls refuses none: a model may answer without one.
        """
        begins = self._priced(Usage(self._asked.usage.prompt, 1))
        return [0 if line.tools else max(1, line.measure(begins)) for line in self._lines]

    async def _reserve_locally(self, ledger: Ledger) -> Answer:
        """While the store is out of reach, where every budget that applies lets it."""
        self._local = True
        return await self._reserve(
            lambda id, claims: ledger.reserve(id, claims, LOCAL_LEASE), lambda line: line.budget.local_share
        )

    def _begin(self, accounts: Accounts, granted: Granted) -> Decision:
        self._left = granted.remaining
        self._tell(granted.notices)
        if not self._local:
            accounts.hold(self._id)
        if self._stage.shadow:
            over = next((at for at in granted.over if self._lines[at].tools is None), None)
            if over is not None:
                return self._exceeded(self._lines[over], self._lines[over].limit, granted.resets_at[over])
            return Pass(tuple(self._warnings(granted)))
        self._cut_at = self._cutting_point()
        headers = tuple(_rate_headers(self._lines, granted, self._exchange.now()))
        return Pass(tuple(self._warnings(granted)), headers)

    def _warnings(self, granted: Granted) -> Iterator[Finding]:
        """Told once per window: a soft line that was crossed before this call."""
        crossed = {notice.claim for notice in granted.notices if notice.line is Mark.SOFT}
        for at, line in enumerate(self._lines):
            if at in crossed or (self._accounts and self._accounts.was_warned(self._claims[at])):
                yield Finding(line.budget.name, f"{line.what} warning", PLACE)

    def _tell(self, notices: Sequence[Notice]) -> None:
        """An event for each, which names nothing that a client has chosen; the exchange's own line has the rest."""
        for notice in notices if self._accounts else ():
            line = self._lines[notice.claim]
            event = _EVENTS[notice.line]
            self._accounts.notify(  # type: ignore[union-attr]
                {
                    **event,
                    "budget": line.budget.name,
                    "scope": line.budget.scope,
                    "tenant": self._exchange.tenant,
                    "unit": line.what,
                    "at": shown(line.unit, notice.at),
                    "mode": line.budget.mode,
                    "id": self._exchange.id,
                }
            )

    def _exceeded(self, line: Line, limit: int, resets_at: int | None, *, in_use: bool = False) -> Decision:
        """`in_use`: what is missing is held by calls that are running, and most of it will come back."""
        budget = line.budget
        found = (Finding(budget.name, line.what, PLACE),)
        wait = None if resets_at is None else max(1, math.ceil(resets_at - self._exchange.now()))
        why = "has no room beside the calls that are running" if in_use else "is used up"
        error = BudgetExceeded(
            f"The budget {budget.name!r} {why}: {_amount(line, limit)} {_PER[budget.scope]}.",
            param=budget.name,
            stop_reason=line.stop_reason,
            retry_after=1 if line.unit == SLOT or in_use else wait,
        )
        if (rate := _RATES.get(line.unit)) and wait is not None:
            error.headers = tuple(_rate(rate, line.limit, 0, wait))
        if budget.on_exceed != "reject":
            return Finish(budget.name, PLACE, budget.message, found, line.stop_reason, refusal=error)
        return Refuse(budget.name, error, found)

    # --- up ---

    def feed(self, event: Event) -> Sequence[Event]:
        if not self._claims:
            return (event,)
        match event:
            case Text(lane, text, last):
                return self._text(event, lane, text, last)
            case Used(usage):
                self._reported = merged(self._reported, usage)
            case Began(status, target):
                self._status = status
                self._priced_as = self._price_name(target)
        return (event,)

    def _text(self, event: Text, lane: Lane, text: str, last: bool) -> Sequence[Event]:
        self._heard += weight(text)
        self._partial = self._partial or not last
        if lane.surface.kind is Kind.TOOL_CALLS:
            return self._tool_call(event, lane, text)
        if last and lane.surface.kind is Kind.REPLY:
            self._said.append(text)
        if self._cut_at is not None and not self._over and tokens(self._heard) > self._cut_at:
            return self._cut(event)
        return (event,)

    def _tool_call(self, event: Text, lane: Lane, text: str) -> Sequence[Event]:
        call = (lane.choice, lane.part)
        if call in self._dropped:
            return ()
        if not lane.surface.calls:
            return (event,)
        begins = call not in self._names
        name = self._names[call] = self._names.get(call, "") + text
        line = self._tools_exceeded(name) if begins else None
        return (event,) if line is None else self._deny(event, line, name)

    def _tools_exceeded(self, name: str) -> Line | None:
        """The first limit that this call is one too many for. Denied calls count as well."""
        proposed = Counter(self._names.values())
        for line, claim, left in zip(self._lines, self._claims, self._left, strict=True):
            if line.tools and fnmatchcase(name, line.tools):
                allowed = claim.amount if not self._stage.shadow else claim.amount + (left or 0)
                if _calls_of(line.tools)(Spending(0, Usage(0, 0), proposed)) > allowed:
                    return line
        return None

    def _deny(self, event: Text, line: Line, name: str) -> Sequence[Event]:
        """The model is told in the tool's place, and the run goes on; where a call cannot be taken out, it ends."""
        notice = f"tool budget exhausted for {name}"
        if event.lane.surface.calls == "loose" and line.budget.on_exceed == "reject":
            self._dropped.add((event.lane.choice, event.lane.part))
            return (Dropped(event.lane, notice),)
        return self._stop(line, notice)

    def _stop(self, line: Line, message: str, *, cut: bool = False) -> Sequence[Event]:
        """What a whole reply has said stays, and the notice follows it."""
        self._over = True
        kept = "\n\n".join([*self._said, message]) if message else "\n\n".join(self._said)
        found = (Finding(line.budget.name, line.what, PLACE),)
        return (Stopped(Finish(line.budget.name, PLACE, kept, found, line.stop_reason, cut)),)

    def _cutting_point(self) -> int | None:
        """How many tokens a reply may have before it passes a limit whose budget cuts."""
        prompt = self._asked.usage.prompt or 0
        rooms = [
            claim.amount + (left or 0) - (prompt if line.measure(_PROMPT) else 0)
            for line, claim, left in zip(self._lines, self._claims, self._left, strict=True)
            if line.budget.on_exceed == "cut" and line.measure(_COMPLETION)
        ]
        return max(0, min(rooms)) if rooms else None

    def _cut(self, event: Text) -> Sequence[Event]:
        line = next(line for line in self._lines if line.budget.on_exceed == "cut" and line.measure(_COMPLETION))
        return self._stop(line, event.text if event.last else "", cut=True)

    # --- the end ---

    async def done(self, outcome: str) -> None:
        if self._asking and self._accounts is not None:
            await self._accounts.release(self._id)
        if not self._claims or self._accounts is None or not self._left:
            return
        if outcome == UNREACHABLE:
            await (self._accounts.local if self._local else self._accounts).release(self._id)
            return
        spent = self._spent(whole=outcome == "completed" or not self._partial)
        used = {at: min(line.measure(spent), MAX_AMOUNT) for at, line in enumerate(self._lines) if line.unit != SLOT}
        if self._local:
            await self._accounts.local.settle(self._id, used)
            claims = [msgspec.structs.replace(claim, amount=used.get(at, 0)) for at, claim in enumerate(self._claims)]
            # Under an id of its own: the store may have reserved before it could no longer be heard.
            self._accounts.charge_later(f"{self._id}/local", [claim for claim in claims if claim.unit != SLOT])
        else:
            notices = await self._accounts.settle(self._id, used)
            self._tell(notices)
            self._accounts.warn([self._claims[notice.claim] for notice in notices])

    def _spent(self, *, whole: bool) -> Spending:
        """What the call has used: reported, else counted; no tokens where the provider answered with an error.

        What a stream has reported before it broke off may be less than it has said.
        """
        tools = Counter(self._names.values())
        if self._status is not None and self._status >= 400:
            return self._priced(Usage(0, 0), tools=tools)
        prompt = self._asked.usage.prompt or 0
        if self._is_all_text:
            self._stage.calibration.learn(self._model, self._estimated_prompt, self._reported.prompt)
        counted = Usage(prompt, tokens(self._heard))
        used = merged(counted, self._reported)
        if not whole:
            used = used._replace(completion=max(used.completion or 0, counted.completion or 0))
        return self._priced(used, tools=tools)


# While the store is away a call is not renewed: it must end within this.
LOCAL_LEASE: Final = 3600.0
_PROMPT: Final = Spending(0, Usage(1, 0), NO_TOOLS)
_COMPLETION: Final = Spending(0, Usage(0, 1), NO_TOOLS)
_UNPRICED: Final = "A budget counts money, and the policy has no price for the model {!r}. Add it to prices."
_UNNAMED: Final = (
    "A budget counts money, and this request names no model that can be read. Add a price for '*' to prices."
)
_EVENTS: Final = {Mark.SOFT: {"event": "budget_warning"}, Mark.LIMIT: {"event": "budget_exhausted"}}
_DOWN: Final = "Budgets cannot be read: the store is out of reach."
_PER: Final = {
    "all": "for all",
    "tenant": "per tenant",
    "key": "per key",
    "agent": "per agent",
    "session": "per session",
    "run": "per run",
}


def _amount(line: Line, limit: int) -> str:
    return str(shown(line.unit, limit)) if line.unit == "cost" else f"{limit} {line.what}"


def shown(unit: str, amount: int) -> int | str:
    """An amount for people and JSON: money as a decimal, everything else as it is counted."""
    return f"{(Decimal(amount) / NANO).normalize():f}" if unit == "cost" else amount


# OpenAI's names; a line that counts in no window has nothing that resets.
_RATES: Final = {"requests": "requests", "calls": "requests", "tokens/min": "tokens", "tokens": "tokens"}


def _rate_headers(lines: Sequence[Line], granted: Granted, now: float) -> Iterator[tuple[bytes, bytes]]:
    """`x-ratelimit-*` of the limits with a window, of several the one with the least left."""
    tightest: dict[str, tuple[int, Line, int]] = {}
    for line, left, resets in zip(lines, granted.remaining, granted.resets_at, strict=True):
        rate = _RATES.get(line.unit)
        if rate and left is not None and resets is not None and (rate not in tightest or left < tightest[rate][0]):
            tightest[rate] = (left, line, resets)
    for rate, (left, line, resets) in tightest.items():
        yield from _rate(rate, line.limit, left, max(1, math.ceil(resets - now)))


def _rate(rate: str, limit: int, left: int, seconds: int) -> Iterator[tuple[bytes, bytes]]:
    values = {"limit": b"%d" % limit, "remaining": b"%d" % left, "reset": _duration(seconds)}
    return ((f"x-ratelimit-{name}-{rate}".encode(), value) for name, value in values.items())


def _duration(seconds: int) -> bytes:
    """As OpenAI writes it: 6m0s."""
    minutes, rest = divmod(seconds, 60)
    return b"%dm%ds" % (minutes, rest) if minutes else b"%ds" % rest
