"""A compiled policy. An exchange keeps the one it began with."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from ..core.chain import Chain, Step
from ..stages import build
from ..upstream.resilience import Plan, candidates
from ..upstream.routing import Candidate
from ..upstream.targets import Provider, Target
from .schema import InspectConfig, Policy, ServerConfig, TelemetryConfig


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the runtime needs of a policy.

    `digest` is 16 hex digits, the same wherever and whenever the same policy is compiled. `inert` says that
    nothing in the policy looks at exchanges or changes them, `looks` that known endpoints are looked into, `unknown`
    what happens to the others. `tenants` goes from the hex SHA-256 of a key to
    a name.
    """

    digest: str
    inert: bool
    providers: Mapping[str, Provider]
    default: Provider | None
    models: Mapping[str, tuple[Target, ...]]
    candidates: Mapping[str, tuple[Candidate, ...]]
    plan: Plan
    chain: Chain
    server: ServerConfig
    tenants: Mapping[str, str]
    telemetry: TelemetryConfig
    policy: Policy
    looks: bool = False
    unknown: Literal["pass", "scan", "deny"] = "pass"


def compiled(policy: Policy) -> Snapshot:
    """Compiles a valid policy. Pure: opens nothing, and the same policy gives the same snapshot."""
    providers = {name: Provider.of(name, config) for name, config in policy.providers.items()}
    named = {name: candidates(targets, providers) for name, targets in policy.models.items()}
    chain = Chain.of(_steps(policy))
    return Snapshot(
        digest=digest(policy),
        inert=not chain.down and not _acts(policy),
        providers=MappingProxyType(providers),
        default=next(iter(providers.values()), None),
        models=MappingProxyType({name: tuple(one.target for one in listed) for name, listed in named.items()}),
        candidates=MappingProxyType(named),
        plan=Plan(policy.resilience),
        chain=chain,
        server=policy.server,
        tenants=MappingProxyType({key: tenant.name for tenant in policy.tenants for key in tenant.keys}),
        telemetry=policy.telemetry,
        policy=policy,
        looks=bool(chain.down) or "deny" in _denials(policy.inspect) or _bridges(policy) or policy.resilience.on,
        unknown=policy.unknown,
    )


# What the server does to exchanges only because the policy says so; the other limits hold in any case.
_ACTIVE = frozenset(("auth", "cors_origins", "max_body", "max_upload"))


def _acts(policy: Policy) -> bool:
    """Whether anything but the guardrails needs to look at exchanges, or changes them."""
    return bool(
        policy.models
        or policy.tenants
        or len(policy.providers) > 1
        or any(provider.keys for provider in policy.providers.values())
        or _bridges(policy)
        or policy.resilience.on
        or policy.server.model_fields_set & _ACTIVE
        or policy.inspect.model_fields_set
    )


def _steps(policy: Policy) -> tuple[Step, ...]:
    sees_unknown = policy.unknown != "pass"
    return build(
        policy.guardrails,
        policy.scrub,
        policy.budgets,
        policy.prices,
        tools=policy.tools,
        structured=policy.structured_output,
        sees_unknown=sees_unknown,
    )


def _denials(inspect: InspectConfig) -> tuple[str | None, ...]:
    return inspect.unknown, inspect.images, inspect.audio, inspect.files, inspect.provider_state


def _bridges(policy: Policy) -> bool:
    """Whether anything may be told to a provider in another way than the client said it."""
    providers = policy.providers.values()
    spoken: list[tuple[str | None, str | None]] = [(one.tools, one.response_format) for one in providers]
    spoken += [(one.tools, one.response_format) for listed in policy.models.values() for one in listed]
    words = any(tools not in (None, "native") or form not in (None, "json_schema") for tools, form in spoken)
    return words or any("chat" in (provider.responses, provider.messages) for provider in providers)


def digest(policy: Policy) -> str:
    """16 hex digits over what the policy means.

    Secret values do not go in; the order of keys goes in only where it means something: in lists, and for the
    first provider.
    """
    canonical = {"default": next(iter(policy.providers), None), "policy": _canonical(policy)}
    text = json.dumps(canonical, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    match value:
        case BaseModel():
            return {name: _field(value, name) for name in type(value).model_fields}
        case Enum():
            return value.value
        case Mapping():
            return {str(key): _canonical(item) for key, item in value.items()}
        case AbstractSet():
            return sorted(map(_canonical, value))
        case str() | int() | float() | None:
            return value
        case Sequence():
            return [_canonical(item) for item in value]
    raise TypeError(f"a policy has no values of the type {type(value).__name__}")


def _field(model: BaseModel, name: str) -> Any:
    value = getattr(model, name)
    if type(model).model_fields[name].repr:
        return _canonical(value)
    return value is not None
