"""The accounts that budgets are counted in."""

import hashlib
from collections.abc import Mapping
from typing import Final

from ...core.identity import Identity
from .config import BudgetConfig


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


NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "all": (),
    "tenant": (),
    **{scope: (scope,) for scope in ("key", "agent", "session", "run")},
}
"""What of an identity, beside its tenant, an account of each scope depends on."""


def segment(tenant: str) -> str:
    """A tenant's name as a part of an account's: the slashes in it are written as in a URL."""
    return tenant.replace("%", "%25").replace("/", "%2F")
