"""Faults that no single field has: names that must exist, names that must differ, characters not meant.

They are looked for in the tree, not in the models, so that a fault elsewhere does not hide them.
"""

import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from ..errors import Fault
from .faults import nearest, quoted
from .nodes import Items, Node, Path, Scalar, Table, at, dotted, scalars
from .reader import fault_at
from .references import is_verbatim
from .schema import key_hash

ANY = "*"


def texts(root: Node, pattern: Path) -> Iterator[tuple[Path, Scalar]]:
    """The texts at the paths of a pattern, in which `*` is any key."""
    depth = len(pattern)
    for path, node in scalars(root):
        fits = len(path) == depth and all(want in (ANY, got) for want, got in zip(pattern, path, strict=True))
        if fits and isinstance(node.value, str):
            yield path, node


def _fault(node: Scalar, path: Path, message: str, hint: str = "", offset: int | None = None) -> Fault:
    return fault_at(node.place if offset is None else node.at(offset), message, hint, dotted(path))


def unknown_providers(root: Node) -> Iterator[Fault]:
    providers = at(root, ("providers",))
    known = tuple(providers.entries) if isinstance(providers, Table) else ()
    for pattern in (("models", ANY), ("models", ANY, ANY)):
        for path, node in texts(root, pattern):
            name, slash, _ = node.text.partition("/")
            if slash and name not in known:
                shown = "of the name in the environment" if node.foreign else quoted(name)
                yield _fault(node, path, f"there is no provider {shown}", nearest(name, known))


def same_names(root: Node) -> Iterator[Fault]:
    for section in ("guardrails", "tenants"):
        first: dict[str, Scalar] = {}
        for path, node in texts(root, (section, ANY, "name")):
            before = first.setdefault(node.text, node)
            if before is not node:
                yield _fault(node, path, f"{quoted(node.text)} is already the name at {before.place}", "Rename one.")


def shared_keys(root: Node) -> Iterator[Fault]:
    first: dict[str, tuple[Path, Scalar]] = {}
    for path, node in texts(root, ("tenants", ANY, "keys", ANY)):
        try:
            digits = key_hash(node.text)
        except ValueError:
            continue
        before, owner = first.setdefault(digits, (path, node))
        if before != path:
            message = f"the same key is already given at {owner.place}"
            yield _fault(node, path, message, "A key belongs to one tenant, and is listed once.")


def open_urls(root: Node) -> Iterator[Fault]:
    """Base URLs that carry what belongs elsewhere. What is no URL at all, the model says."""
    for path, node in texts(root, ("providers", ANY, "base_url")):
        try:
            parts = urlsplit(node.text)
        except ValueError:
            continue
        if "@" in parts.netloc:
            yield _fault(node, path, "the base URL carries a user name or a password", "Give the key as `api_key`.")
        if "?" in node.text:
            yield _fault(node, path, "the base URL carries a query", "Leave out the `?` and what follows it.")


def nobody_to_let_in(root: Node) -> Iterator[Fault]:
    auth, tenants = at(root, ("server", "auth")), at(root, ("tenants",))
    if (
        isinstance(auth, Scalar)
        and auth.value == "required"
        and (tenants is None or tenants == Items(tenants.place, ()))
    ):
        message = "a key is required, but no tenant has one: every request would be answered 401"
        yield _fault(auth, ("server", "auth"), message, "Add `tenants`, or write `auth: optional`.")


def hash_without_key(root: Node) -> Iterator[Fault]:
    """A digest without a secret can be looked up: there are few e-mail addresses and fewer phone numbers."""
    if at(root, ("scrub", "hash_key")) is not None:
        return
    for path, node in texts(root, ("guardrails", ANY, "action")):
        if node.text == "hash":
            yield _fault(node, path, "hash needs a secret, and scrub.hash_key is absent", _HASH_KEY)


_HASH_KEY = "Add `scrub: {hash_key: ${HASH_KEY}}` or another variable of your own."


# Line ends and tabs are meant where they stand; other control characters come from unmeant escapes.
_MEANT = frozenset("\t\n\r")
_UNMEANT = frozenset(("Cc", "Zl", "Zp", "Cs"))


def control_characters(root: Node) -> Iterator[Fault]:
    """In double quotes YAML reads `\\b` as a backspace: such a pattern loads and matches nothing."""
    for path, node in scalars(root):
        if not is_verbatim(path):
            continue
        for offset, char in enumerate(node.text):
            if char not in _MEANT and unicodedata.category(char) in _UNMEANT:
                message = f"here stands the control character U+{ord(char):04X}"
                yield _fault(node, path, message, _SINGLE_QUOTES, offset)
                break
        if node.text.endswith("\n"):
            yield _fault(node, path, "a line break stands at the end", "Begin the block with `|-` or `>-`.")


_SINGLE_QUOTES = "Write patterns and words in single quotes: in double quotes YAML reads a backslash as an escape."

Check = Callable[[Node], Iterator[Fault]]
# Each with whether it needs the whole policy, which a file that could not be read to its end does not show.
CHECKS: tuple[tuple[Check, bool], ...] = (
    (unknown_providers, True),
    (nobody_to_let_in, True),
    (hash_without_key, True),
    (same_names, False),
    (shared_keys, False),
    (open_urls, False),
    (control_characters, False),
)


def cross_faults(root: Node, complete: bool) -> Iterator[Fault]:
    for check, needs_all in CHECKS:
        if complete or not needs_all:
            yield from check(root)
