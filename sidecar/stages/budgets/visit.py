"""One call under all budgets of a mode: reserved, watched, settled."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from ...core.decision import PASS, Decision, Finish, Pass, Refuse
from ...core.events import Began, Dropped, Event, Stopped, Text, Used, Wasted
from ...core.exchange import Exchange, Request
from ...core.stage import UNREACHABLE, Visit
from ...core.surface import Finding, Kind
from ...core.usage import Usage, merged
from ...errors import StoreUnavailable
from ...stores.accounts import Accounts
from ...stores.ledger import SLOT, Answer, Claim, Granted, Notice, Refused
from ...stores.ledger import Line as Mark
from ...text.tokens import LEAST, estimate
from ...wire.asking import asked
from ...wire.unseen import unseen
from .heard import Heard
from .lines import NO_TOOLS, ONE_CALL, PROMPT, Line, Spending
from .plan import NO_PLAN, Plan
from .told import PLACE, event, exceeded, finding, is_in_use, rate_headers, store_down, unpriced
from .wish import Wish

if TYPE_CHECKING:
    from .stage import Budgets

# While the store is away a call is not renewed: it must end within this.
LOCAL_LEASE: Final = 3600.0

Reserve = Callable[[str, Sequence[Claim]], Awaitable[Answer]]


class BudgetVisit(Visit):
    """Without a grant everything passes: no budget applies, or the call was refused."""

    def __init__(self, stage: "Budgets", exchange: Exchange) -> None:
        self._stage, self._exchange = stage, exchange
        self._id = f"{exchange.id}/shadow" if stage.shadow else exchange.id
        self._accounts = exchange.accounts if isinstance(exchange.accounts, Accounts) else None
        self._plan: Plan = NO_PLAN
        self._document: Any = None
        self._model = self._target = ""
        self._asked = ONE_CALL
        self._estimated = 0
        self._asking = False
        self._local = False
        self._claims: list[Claim] = []
        self._granted: Granted | None = None
        self._heard = Heard()
        self._cut_at: int | None = None
        self._over = False

    # --- down ---

    async def request(self, request: Request) -> Decision:
        self._plan = self._stage.plan(self._exchange.tenant, request.model)
        if not self._plan.lines or self._accounts is None or request.document is None:
            return PASS  # without a body no model is called
        self._model, self._target, self._document = request.model, request.target, request.document
        if self._plan.money and self._stage.prices.price_of(self._priced_as()) is None:
            return Refuse(self._stage.name, unpriced(self._model))
        if self._plan.tokens:
            self._asked = self._estimate(request)
        answer = await self._ask(self._accounts)
        match answer:
            case None:
                return Refuse(self._stage.name, store_down())
            case Refused():
                return self._refused(answer)
            case Granted():
                return self._begin(self._accounts, answer)

    def _estimate(self, request: Request) -> Spending:
        """What the call may come to."""
        asks = asked(request.document, self._exchange.endpoint)
        texts = [slot.text for slot in request.slots if slot.surface.kind is not Kind.TOOLS]
        self._estimated = estimate([*texts, asks.definitions], asks.messages, asks.ids)
        prompt = self._stage.calibration.corrected(self._model, self._estimated)
        bound = self._plan.completion if asks.max_tokens is None else asks.max_tokens
        usage = Usage(prompt, bound * asks.choices)
        cost = self._stage.prices.most(usage, self._priced_as()) if self._plan.money else 0
        return Spending(1, usage, NO_TOOLS, cost)

    def _priced(self, usage: Usage, tools: Mapping[str, int] = NO_TOOLS) -> Spending:
        cost = self._stage.prices.cost(usage, self._priced_as(), tools) if self._plan.money else 0
        return Spending(1, usage, tools, cost)

    def _priced_as(self) -> str:
        """What a target's price goes under: `provider/model`, the model's own name, or the one that was asked for."""
        names = (self._target, self._target.partition("/")[2], self._model)
        prices = self._stage.prices
        return next((name for name in names if name and prices.price_of(name) is not None), self._model)

    def _begins(self) -> Spending:
        """What a limit must have left for the call to begin: its prompt, and something to answer with."""
        return self._priced(Usage(self._asked.usage.prompt, 1))

    async def _ask(self, accounts: Accounts) -> Answer | None:
        """None where the store is out of reach and a budget that applies cannot do without."""
        try:
            # A client that leaves meanwhile does not tell whether it was reserved.
            self._asking = True
            answer = await self._reserve(accounts.reserve)
        except StoreUnavailable:
            self._asking = False
            return await self._ask_locally(accounts) if self._plan.local else None
        self._asking = False
        return answer

    async def _ask_locally(self, accounts: Accounts) -> Answer:
        self._local = True
        return await self._reserve(lambda id, claims: accounts.local.reserve(id, claims, LOCAL_LEASE))

    async def _reserve(self, reserve: Reserve) -> Answer:
        who, hard = self._exchange.identity, not self._stage.shadow
        wish = Wish(self._plan, who, self._asked, self._begins, hard=hard, local=self._local)
        for _ in range(wish.tries):
            self._claims = wish.claims()
            answer = await reserve(self._id, self._claims)
            if isinstance(answer, Granted) or not wish.lower(answer):
                break
        return answer

    def _refused(self, refused: Refused) -> Decision:
        self._tell(refused.notices)
        line = self._plan.lines[refused.claim]
        return self._exceeded(line, refused.limit, refused.resets_at, in_use=is_in_use(line, refused))

    def _exceeded(self, line: Line, limit: int, resets_at: int | None, *, in_use: bool = False) -> Decision:
        budget, found = line.budget, (finding(line),)
        error = exceeded(line, limit, resets_at, self._exchange.now(), in_use=in_use)
        if budget.on_exceed == "reject":
            return Refuse(budget.name, error, found)
        return Finish(budget.name, PLACE, budget.message, found, line.stop_reason, refusal=error)

    def _begin(self, accounts: Accounts, granted: Granted) -> Decision:
        self._granted = granted
        if granted.notices:
            self._tell(granted.notices)
        if not self._local:
            accounts.hold(self._id)
        if self._stage.shadow:
            return self._recorded(granted)
        if self._plan.cutting:
            self._cut_at = self._cutting_point()
        plan = self._plan
        headers = rate_headers(plan.rated, plan.lines, granted, self._exchange.now()) if plan.rated else ()
        return Pass(self._warnings(granted), headers)

    def _recorded(self, granted: Granted) -> Decision:
        """What would have been refused, if anything."""
        lines = self._plan.lines
        over = next((at for at in granted.over if lines[at].tools is None), None)
        if over is None:
            return Pass(self._warnings(granted))
        return self._exceeded(lines[over], lines[over].limit, granted.resets_at[over])

    def _warnings(self, granted: Granted) -> tuple[Finding, ...]:
        """Told once per window: a soft line that was crossed before this call."""
        if not self._plan.soft or self._accounts is None:
            return ()
        crossed = {notice.claim for notice in granted.notices if notice.line is Mark.SOFT}
        told = [at for at in self._plan.soft if at in crossed or self._accounts.was_warned(self._claims[at])]
        return tuple(finding(self._plan.lines[at], " warning") for at in told)

    def _tell(self, notices: Sequence[Notice]) -> None:
        for notice in notices if self._accounts else ():
            self._accounts.notify(event(self._plan.lines[notice.claim], notice, self._exchange))  # type: ignore[union-attr]

    # --- up ---

    def feed(self, event: Event) -> Sequence[Event]:
        if self._granted is None:
            return (event,)
        match event:
            case Text():
                return self._text(event)
            case Used(usage):
                self._heard.report(usage)
            case Wasted(usage, target):
                self._heard.wasted.append((usage, target))
            case Began(status, target):
                self._heard.status, self._target = status, target
        return (event,)

    def _text(self, event: Text) -> Sequence[Event]:
        lane, text, last = event
        heard, kind = self._heard, lane.surface.kind
        heard.partial = heard.partial or not last
        if self._plan.tokens:
            heard.text(text)
        if kind is Kind.TOOL_CALLS:
            return self._tool_call(event) if self._plan.tools else (event,)
        if last and kind is Kind.REPLY and self._plan.stops:
            heard.said.append(text)
        if self._cut_at is not None and not self._over and heard.tokens > self._cut_at:
            return self._cut(event)
        return (event,)

    def _tool_call(self, event: Text) -> Sequence[Event]:
        lane, text, _ = event
        call = (lane.choice, lane.part)
        if call in self._heard.dropped:
            return ()
        if not lane.names_call:
            return (event,)
        begins = self._heard.named(lane, text)
        name = self._heard.names[call]
        line = self._tools_exceeded(name) if begins else None
        return (event,) if line is None else self._deny(event, line, name)

    def _tools_exceeded(self, name: str) -> Line | None:
        """The first limit that this call is one too many for. Denied calls count as well."""
        proposed = Spending(0, ONE_CALL.usage, self._heard.tools)
        for at, line in enumerate(self._plan.lines):
            if line.tools and fnmatchcase(name, line.tools) and line.measure(proposed) > self._allowed(at):
                return line
        return None

    def _allowed(self, at: int) -> int:
        """What a shadow budget is not held to is counted against all that is left."""
        return self._claims[at].amount + (self._room(at) if self._stage.shadow else 0)

    def _room(self, at: int) -> int:
        """What was left of a limit beside this call's own part, when it began."""
        return (self._granted.remaining[at] or 0) if self._granted else 0

    def _deny(self, event: Text, line: Line, name: str) -> Sequence[Event]:
        """The model is told in the tool's place, and the run goes on; where a call cannot be taken out, it ends."""
        notice = f"tool budget exhausted for {name}"
        if event.lane.surface.calls == "loose" and line.budget.on_exceed == "reject":
            self._heard.dropped.add((event.lane.choice, event.lane.part))
            return (Dropped(event.lane, notice),)
        return self._stop(line, notice)

    def _stop(self, line: Line, message: str, *, cut: bool = False) -> Sequence[Event]:
        """What a whole reply has said stays, and the notice follows it."""
        self._over = True
        kept = "\n\n".join([*self._heard.said, message] if message else self._heard.said)
        return (Stopped(Finish(line.budget.name, PLACE, kept, (finding(line),), line.stop_reason, cut)),)

    def _cutting_point(self) -> int:
        """How many tokens a reply may have before it passes a limit whose budget cuts."""
        prompt, lines = self._asked.usage.prompt or 0, self._plan.lines
        return max(
            0,
            min(
                self._claims[at].amount + self._room(at) - (prompt if lines[at].measure(PROMPT) else 0)
                for at in self._plan.cutting
            ),
        )

    def _cut(self, event: Text) -> Sequence[Event]:
        line = self._plan.lines[self._plan.cutting[0]]
        return self._stop(line, event.text if event.last else "", cut=True)

    # --- the end ---

    async def done(self, outcome: str) -> None:
        accounts = self._accounts
        if accounts is None:
            return
        if self._asking:
            await accounts.release(self._id)
        if self._granted is None:
            return
        if outcome == UNREACHABLE:
            await (accounts.local if self._local else accounts).release(self._id)
            return
        spent = self._with_wasted(self._spent(whole=outcome == "completed" or not self._heard.partial))
        used = {at: line.amount(spent) for at, line in enumerate(self._plan.lines) if line.unit != SLOT}
        await (self._settle_locally(accounts, used) if self._local else self._settle(accounts, used))

    async def _settle(self, accounts: Accounts, used: dict[int, int]) -> None:
        notices = await accounts.settle(self._id, used)
        if notices:
            self._tell(notices)
            accounts.warn([self._claims[notice.claim] for notice in notices])

    async def _settle_locally(self, accounts: Accounts, used: dict[int, int]) -> None:
        await accounts.local.settle(self._id, used)
        claims = [self._claims[at].of(amount) for at, amount in used.items()]
        # Under an id of its own: the store may have reserved before it could no longer be heard.
        accounts.charge_later(f"{self._id}/local", claims)

    def _spent(self, *, whole: bool) -> Spending:
        """What the call has used: reported, else counted; no tokens where the provider answered with an error."""
        heard = self._heard
        if not self._plan.tokens or (heard.status is not None and heard.status >= 400):
            return self._priced(ONE_CALL.usage, heard.tools)
        self._learn(heard.reported.prompt)
        return self._priced(self._used(heard, whole=whole), heard.tools)

    def _with_wasted(self, spent: Spending) -> Spending:
        """And what attempts have used before, each at the price of its own target."""
        for usage, target in self._heard.wasted:
            self._target = target
            spent = spent.and_also(self._priced(usage))
        return spent

    def _used(self, heard: Heard, *, whole: bool) -> Usage:
        """What a stream has reported before it broke off may be less than it has said."""
        reported = heard.reported
        if whole and reported.prompt is not None and reported.completion is not None:
            return reported
        counted = Usage(self._asked.usage.prompt, heard.tokens)
        used = merged(counted, reported)
        return used if whole else used._replace(completion=max(used.completion or 0, heard.tokens))

    def _learn(self, reported: int | None) -> None:
        """From prompts all of which was estimated."""
        if reported is None or self._estimated < LEAST:
            return
        if not any(unseen(self._document if isinstance(self._document, dict) else {})):
            self._stage.calibration.learn(self._model, self._estimated, reported)
