"""Budgets, targets and calls that wait for an admin, from outside: who may see and change them, and what is said of it.

Paths of our own, never forwarded. Without `server.admin_keys` there is nothing here: 404.
"""

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..errors import (
    ExchangeError,
    Forbidden,
    InvalidRequest,
    NoSuchBudget,
    PayloadTooLarge,
    StoreDown,
    StoreUnavailable,
    Unauthorized,
)
from ..policy.schema import Policy
from ..runtime import Runtime
from ..stages.budgets import segment, shown
from ..stages.prices import money
from ..stores.accounts import Accounts
from ..stores.approvals import Decided, Pending
from ..stores.ledger import MAX_AMOUNT, SLOT, Row
from ..upstream.breaker import Shown, State
from ..wire.errors import error_headers, openai_error
from .admission import DEFAULT_TENANT, admin_headers, identify

PREFIX: Final = "/sidecar/"
# As many balances are read at once; a filter by budget shows the rest.
MAX_ROWS: Final = 1000
MAX_BODY: Final = 65_536
# The longest reason that an admin can give a model.
MAX_REASON: Final = 1_000
# How much of a key's hash the audit record tells.
HASH_DIGITS: Final = 12

Fields = dict[str, Any]
# The ledger's units in the policy's words.
_UNITS: Final = {SLOT: "concurrent", "requests": "requests_per_minute", "tokens/min": "tokens_per_minute"}


@dataclass(frozen=True, slots=True)
class Caller:
    """`admin` is what the audit record calls an admin's key; empty for a tenant, who sees what is its own."""

    admin: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """What an account's key says: whose balance it is. `tenant` is None where all share it."""

    budget: str
    scope: str
    tenant: str | None
    who: str


def routes(runtime: Runtime) -> list[Route]:
    rooms = Rooms(runtime)
    return [
        Route(f"{PREFIX}v1/targets", _answering(rooms.targets), methods=["GET"]),
        Route(f"{PREFIX}v1/approvals", _answering(rooms.approvals), methods=["GET"]),
        Route(f"{PREFIX}v1/approvals/{{id}}", _answering(rooms.approve), methods=["POST"]),
        Route(f"{PREFIX}v1/budgets", _answering(rooms.show), methods=["GET"]),
        Route(f"{PREFIX}v1/budgets/reset", _answering(rooms.reset), methods=["POST"]),
        Route(f"{PREFIX}v1/budgets/top-up", _answering(rooms.top_up), methods=["POST"]),
    ]


async def no_such(scope: Any, receive: Any, send: Any) -> None:
    await _refused(NoSuchBudget("There is nothing under this path of the sidecar's own."))(scope, receive, send)


def _answering(room: Callable[[Request], Awaitable[Fields]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await room(request))
        except ExchangeError as error:
            return _refused(error)
        except StoreUnavailable:
            return _refused(StoreDown("The store is out of reach: nothing can be read or changed.", retry_after=1))

    return answer


def _refused(error: ExchangeError) -> Response:
    body = openai_error(error)
    headers = {name.decode(): value.decode() for name, value in error_headers(error, body)}
    return Response(body, error.status, headers)


class Rooms:
    """What the sidecar's own paths do."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def _policy(self) -> Policy:
        return self._runtime.now.snapshot.policy

    @property
    def _accounts(self) -> Accounts:
        """Raises NoSuchBudget while no policy has had a budget."""
        if self._runtime.accounts is None:
            raise NoSuchBudget("The policy has no budgets.")
        return self._runtime.accounts

    async def show(self, request: Request) -> Fields:
        """`{"budgets": [row], "truncated": bool}`; `?budget=NAME` shows those of one budget."""
        caller = self._caller(request)
        if self._runtime.accounts is None:
            return {"budgets": [], "truncated": False}
        name = request.query_params.get("budget")
        rows, truncated = await self._read(self._prefixes(caller, name))
        known = [(named_of(row.account, self._policy), row) for row in rows]
        return {
            "budgets": [described(named, row) for named, row in known if caller.admin or named.tenant == caller.tenant],
            "truncated": truncated,
        }

    def _prefixes(self, caller: Caller, budget: str | None) -> list[str]:
        names = [one.name for one in self._policy.budgets] if budget is None else [budget]
        if caller.admin:
            return [""] if budget is None else [f"{budget}/"]
        return [f"{name}/{segment(caller.tenant)}" for name in names]

    async def _read(self, prefixes: Iterable[str]) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        truncated = False
        for prefix in prefixes:
            found = await self._accounts.ledger.read(prefix, MAX_ROWS + 1)
            truncated = truncated or len(found) > MAX_ROWS
            rows += found[:MAX_ROWS]
        return rows, truncated

    async def reset(self, request: Request) -> Fields:
        """Of `{"account"}`, or `{"budget", "who", "tenant"}`: what is spent and topped up becomes nought."""
        admin, fields = self._admin(request), await _fields(request)
        account = self._account(fields)
        before = await self._accounts.ledger.reset(account)
        if not before:
            raise _unknown(account)
        after = await self._of(account)
        self._record("budget_reset", admin, account, before, after)
        return {"budgets": after_rows(account, self._policy, after)}

    async def top_up(self, request: Request) -> Fields:
        """The same with `{"unit", "amount"}`: so much more may be spent in the window that is open."""
        admin, fields = self._admin(request), await _fields(request)
        account = self._account(fields)
        before = [row for row in await self._of(account) if unit_of(row) == fields.get("unit")]
        if not before:
            raise _unknown(account)
        unit = before[0].unit
        if unit == SLOT:
            raise InvalidRequest("Exchanges at once are given back by themselves: raise `concurrent`.", param="unit")
        after = await self._accounts.ledger.top_up(account, unit, amount_of(fields.get("amount"), unit))
        self._record("budget_topped_up", admin, account, before, after)
        return {"budgets": after_rows(account, self._policy, after)}

    async def _of(self, account: str) -> list[Row]:
        return [row for row in await self._accounts.ledger.read(account, MAX_ROWS) if row.account == account]

    def _account(self, fields: Fields) -> str:
        """The account that is meant. Raises InvalidRequest."""
        match fields:
            case {"account": str(account)} if account:
                return account
            case {"budget": str(budget)}:
                scope = next((one.scope for one in self._policy.budgets if one.name == budget), None)
                if scope is None:
                    raise NoSuchBudget(f"The policy has no budget {budget[:100]!r}.", param="budget")
                return account_of(budget, scope, fields)
        raise InvalidRequest("Expected `account`, or `budget` with `who`.", param="account")

    def _record(self, event: str, admin: str, account: str, before: list[Row], after: list[Row]) -> None:
        """Who has done what, for the log."""
        now = {(row.unit, row.window): row for row in after}
        changes = [
            {"unit": unit_of(row), "before": _sums(row), "after": _sums(now.get((row.unit, row.window), row))}
            for row in before
        ]
        self._runtime.tell({"event": event, "admin": admin, "account": account, "changes": changes})

    async def targets(self, request: Request) -> Fields:
        """`{"targets": [row]}`: every target that the policy names, and every other that has something to tell.

        A row is one target, or with a `key` one key there. `seconds`: until it is asked again.
        """
        if not self._caller(request).admin:
            raise Forbidden("Only an admin's key may see targets (server.admin_keys).")
        in_force = self._runtime.now
        told = {(one.target, one.key): one for one in in_force.health.snapshot(time.monotonic())}
        for listed in in_force.routes.candidates.values():
            for name in (one.name for one in listed):
                told.setdefault((name, ""), Shown(name, "", State.CLOSED, 0, 0.0, ""))
        return {"targets": [_target_row(told[at]) for at in sorted(told)]}

    # --- calls that wait for an admin ---

    async def approvals(self, request: Request) -> Fields:
        """`{"approvals": [row]}`, the oldest first. Arguments are scrubbed and bounded."""
        self._admin(request)
        desk = self._runtime.approvals
        waiting = [] if desk is None else await desk.store.listed()
        return {"approvals": [shown_pending(one) for one in waiting]}

    async def approve(self, request: Request) -> Fields:
        """Of `{"decision": "approve" | "deny", "reason"}`: decides about one call. The reason is for the model."""
        admin, fields = self._admin(request), await _fields(request)
        decided = decision_of(fields, admin)
        desk, id = self._runtime.approvals, request.path_params["id"]
        pending = None if desk is None else await desk.store.decide(id, decided)
        if pending is None:
            raise NoSuchBudget("No call waits under this id: it was decided, or waits no more.", param="id")
        word = "approve" if decided.approved else "deny"
        told = {"approval": pending.id, "rule": pending.rule, "tenant": pending.tenant, "decision": word}
        self._runtime.tell({"event": "approval_decided", "admin": admin, **told})
        return {"approval": {**shown_pending(pending), "decision": word}}

    # --- who asks ---

    def _caller(self, request: Request) -> Caller:
        """Raises NoSuchBudget where no admin's key is configured, and Unauthorized."""
        snapshot, headers = self._runtime.now.snapshot, request.scope["headers"]
        admins = snapshot.server.admin_keys
        if not admins:
            raise NoSuchBudget("The policy names no admin's key (server.admin_keys).")
        if shown_keys := admin_headers(headers, admins):
            return Caller(admin=next(iter(shown_keys.values()))[:HASH_DIGITS])
        tenant, ours = identify(headers, snapshot.tenants, snapshot.server.auth)
        if not ours:
            raise Unauthorized("An admin's key or a tenant's is needed, as Authorization: Bearer.")
        return Caller(tenant=tenant)

    def _admin(self, request: Request) -> str:
        caller = self._caller(request)
        if not caller.admin:
            raise Forbidden("Only an admin's key may do this (server.admin_keys).")
        return caller.admin


async def _fields(request: Request) -> Fields:
    """The JSON object in a request's body. Raises InvalidRequest and PayloadTooLarge."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            raise PayloadTooLarge(f"The request's body is larger than {MAX_BODY} bytes.")
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InvalidRequest("The request's body must be a JSON object.")
    return fields


def decision_of(fields: Fields, admin: str) -> Decided:
    """What an admin has said. Raises InvalidRequest."""
    reason = fields.get("reason", "")
    if not isinstance(reason, str) or len(reason) > MAX_REASON:
        raise InvalidRequest(f"The reason must be a text of at most {MAX_REASON} characters.", param="reason")
    match fields.get("decision"):
        case "approve":
            return Decided(True, reason, admin)
        case "deny":
            return Decided(False, reason, admin)
    raise InvalidRequest("Expected `decision` to be `approve` or `deny`.", param="decision")


def shown_pending(one: Pending) -> Fields:
    """One call that waits, as admins see it."""
    row: Fields = {name: getattr(one, name) for name in _TOLD}
    return {**row, "asked_at": _instant(int(one.asked_at)), "expires_at": _instant(math.ceil(one.expires_at))}


_TOLD: Final = ("id", "rule", "tool", "arguments", "tenant", "agent", "run")


def _unknown(account: str) -> NoSuchBudget:
    return NoSuchBudget(f"Nothing has been counted for {account[:200]!r} in this unit.", param="account")


def _target_row(shown_as: Shown) -> Fields:
    """A caller's own key is told by the beginning of its hash."""
    row = {"target": shown_as.target, "key": shown_as.key[:HASH_DIGITS] or None, "state": shown_as.state.value}
    return {**row, "failures": shown_as.failures, "seconds": shown_as.seconds, "reason": shown_as.reason or None}


# --- accounts and rows in words ---


def account_of(budget: str, scope: str, fields: Fields) -> str:
    """The key of whom a request names. Raises InvalidRequest."""
    who, tenant = fields.get("who"), fields.get("tenant", DEFAULT_TENANT)
    if scope == "all":
        return f"{budget}/all"
    if not isinstance(who, str) or not isinstance(tenant, str):
        raise InvalidRequest(f"The budget {budget!r} is for each {scope}: `who` says which one.", param="who")
    return f"{budget}/{segment(who)}" if scope == "tenant" else f"{budget}/{segment(tenant)}/{scope}/{who}"


def named_of(account: str, policy: Policy) -> Named:
    """Whose balance an account is."""
    budget, *rest = account.split("/", 3)
    parts = [part.replace("%2F", "/").replace("%25", "%") for part in rest[:1]] + rest[1:]
    match parts:
        case [tenant, scope, who]:
            return Named(budget, scope, tenant, who)
        case ["all"] if not any(one.name == budget and one.scope == "tenant" for one in policy.budgets):
            return Named(budget, "all", None, "all")
        case [tenant]:
            return Named(budget, "tenant", tenant, tenant)
    return Named(budget, "", None, "")


def unit_of(row: Row) -> str:
    """A row's unit in the policy's words: `calls`, `tokens`, `prompt tokens`, `tool_calls:NAME`, `cost` …"""
    name, colon, tool = row.unit.partition(":")
    return _UNITS.get(name, name).replace("tool calls", "tool_calls") + colon + tool


def described(named: Named, row: Row) -> Fields:
    """One balance. Money is a decimal in a string; `remaining` is null where nothing is limited."""
    limit, credit = row.limit, row.credit
    left = None if limit is None else max(0, limit + credit - row.spent - row.reserved)
    amounts = {
        "spent": row.spent,
        "reserved": row.reserved,
        "limit": limit,
        "topped_up": credit,
        "remaining": left,
    }
    return {
        "account": row.account,
        "budget": named.budget,
        "scope": named.scope,
        "tenant": named.tenant,
        "who": named.who,
        "unit": unit_of(row),
        "window": row.window or None,
        **{name: None if amount is None else shown(row.unit, amount) for name, amount in amounts.items()},
        "resets_at": None if row.resets_at is None else _instant(row.resets_at),
    }


def after_rows(account: str, policy: Policy, rows: Iterable[Row]) -> list[Fields]:
    named = named_of(account, policy)
    return [described(named, row) for row in rows]


def _sums(row: Row) -> Fields:
    return {"spent": shown(row.unit, row.spent), "topped_up": shown(row.unit, row.credit)}


def amount_of(value: Any, unit: str) -> int:
    """An amount as it is typed: a whole number, or a decimal in a string for money. Raises InvalidRequest."""
    try:
        amount = money(value) if unit == "cost" else value
    except ValueError as error:
        raise InvalidRequest(f"The amount is not money: {error}.", param="amount") from None
    if type(amount) is not int or not 0 < amount <= MAX_AMOUNT:
        raise InvalidRequest("The amount must be a whole number above nought.", param="amount")
    return amount


def _instant(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
