"""Faults that no single field has: names that must exist, names that must differ, characters not meant.

They are looked for in the tree, not in the models, so that a fault elsewhere does not hide them.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import get_args
from urllib.parse import urlsplit

from pydantic import ValidationError

from ..errors import Fault, PatternError
from ..stages.guardrails import pattern_bytes
from ..upstream.targets import Tools
from .faults import nearest, quoted
from .nodes import Items, Node, Path, Place, Scalar, Table, at, dotted, plain, scalars
from .reader import fault_at
from .references import is_verbatim
from .schema import LimitsConfig, key_hash
from .schemafiles import unusable_schemas

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


# As text, in a list or with more about it, and both.
_TARGETS: tuple[Path, ...] = (("models", ANY), ("models", ANY, ANY), ("models", ANY, ANY, "target"))


def unknown_providers(root: Node) -> Iterator[Fault]:
    providers = at(root, ("providers",))
    known = tuple(providers.entries) if isinstance(providers, Table) else ()
    for pattern in _TARGETS:
        for path, node in texts(root, pattern):
            name, slash, _ = node.text.partition("/")
            if slash and name not in known:
                shown = "of the name in the environment" if node.foreign else quoted(name)
                yield _fault(node, path, f"there is no provider {shown}", nearest(name, known))


def same_names(root: Node) -> Iterator[Fault]:
    for section in (("guardrails",), ("tenants",), ("budgets",), ("structured_output", "schemas")):
        first: dict[str, Scalar] = {}
        for path, node in texts(root, (*section, ANY, "name")):
            before = first.setdefault(node.text, node)
            if before is not node:
                yield _fault(node, path, f"{quoted(node.text)} is already the name at {before.place}", "Rename one.")


def same_rules(root: Node) -> Iterator[Fault]:
    """Rules about tools without a name are called by their place."""
    rules = at(root, ("tools", "rules"))
    first: dict[str, Place] = {}
    for index, rule in enumerate(rules.nodes if isinstance(rules, Items) else ()):
        path: Path = ("tools", "rules", index, "name")
        named = at(root, path)
        node = named if isinstance(named, Scalar) else Scalar(rule.place, None, f"rule-{index + 1}")
        before = first.setdefault(node.text, node.place)
        if before is not node.place:
            yield _fault(node, path, f"{quoted(node.text)} is already the name at {before}", "Rename one.")


def nobody_to_approve(root: Node) -> Iterator[Fault]:
    """A call that waits for an admin waits in vain."""
    keys = at(root, ("server", "admin_keys"))
    if isinstance(keys, Items) and keys.nodes:
        return
    for path, node in texts(root, ("tools", "rules", ANY, "decision")):
        if node.text == "confirm":
            message = "nobody could approve the call: server.admin_keys is absent"
            yield _fault(node, path, message, 'Add `server: {admin_keys: ["sha256:…"]}`, or write `decision: deny`.')


def shared_keys(root: Node) -> Iterator[Fault]:
    first: dict[str, tuple[Path, Scalar]] = {}
    admins = texts(root, ("server", "admin_keys", ANY))
    for path, node in chain(admins, texts(root, ("tenants", ANY, "keys", ANY))):
        try:
            digits = key_hash(node.text)
        except ValueError:
            continue
        before, owner = first.setdefault(digits, (path, node))
        if before != path:
            message = f"the same key is already given at {owner.place}"
            yield _fault(node, path, message, "A key belongs to one tenant or to an admin, and is listed once.")


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


def money_without_prices(root: Node) -> Iterator[Fault]:
    """Under a budget that counts money every model would be refused."""
    models = at(root, ("prices", "models"))
    if isinstance(models, Table) and models.entries:
        return
    for path, node in scalars(root):
        if len(path) == 3 and path[0] == "budgets" and path[2] == "cost" and node.value is not None:
            message = "money is counted, and prices.models is absent: every call would be answered 422"
            yield _fault(node, path, message, _PRICES)


_PRICES = 'Add `prices: {models: {gpt-5: {prompt: "1.25", completion: "10"}}}` with the models that are used.'


def tools_without_chat(root: Node) -> Iterator[Fault]:
    """Tools are told as text in chat completions alone: the provider's own Responses or Messages know nothing of it."""
    for path, node in texts(root, ("providers", ANY, "tools")):
        for api in _OWN_APIS if node.text in _AS_TEXT else ():
            served = at(root, (*path[:-1], api))
            if isinstance(served, Scalar) and served.value == "native":
                message = f"the provider's own endpoint is asked for, and `tools: {node.text}` is told in chat alone"
                hint = f"Leave out `{api}`, or write `tools: native`."
                yield _fault(served, (*path[:-1], api), message, hint)


_OWN_APIS = ("responses", "messages")
_AS_TEXT = frozenset(get_args(Tools)) - {"native"}


def unknown_tenants(root: Node) -> Iterator[Fault]:
    known = {node.text for _, node in texts(root, ("tenants", ANY, "name"))} | {"default"}
    ruled = (*_RULE, "tenants")
    named = chain(texts(root, ("budgets", ANY, "tenants", ANY)), texts(root, ruled), texts(root, (*ruled, ANY)))
    for path, node in named:
        if node.text not in known and not (path[0] == "tools" and _GLOB.search(node.text)):
            yield _fault(node, path, f"there is no tenant {quoted(node.text)}", nearest(node.text, sorted(known)))


_RULE: Path = ("tools", "rules", ANY)
_GLOB = re.compile(r"[*?\[]")


def blind_rules(root: Node) -> Iterator[Fault]:
    """A rule in enforce that cannot see a place, unless it says so itself."""
    for spot, message in _BLIND.items():
        setting = at(root, ("inspect", spot))
        if not (isinstance(setting, Scalar) and setting.value == "pass"):
            continue
        for path, name in texts(root, ("guardrails", ANY, "name")):
            rule = path[:-1]
            accepted = [node.text for _, node in texts(root, (*rule, "accept_blind", ANY))]
            mode = at(root, (*rule, "mode"))
            if spot not in accepted and (mode is None or (isinstance(mode, Scalar) and mode.value == "enforce")):
                instead = f"Write `inspect: {{{spot}: deny}}`{_OR_SCAN.get(spot, '')}"
                hint = f"{instead}, or `accept_blind: [{spot}]` in the rule."
                yield _fault(name, path, f"the rule is in enforce and cannot see {message}", hint)


_BLIND = {
    "unknown": "undocumented endpoints and fields: inspect.unknown is pass",
    "websocket": "what WebSocket connections carry: inspect.websocket is pass",
}
_OR_SCAN = {"unknown": " or `scan`"}


def large_patterns(root: Node) -> Iterator[Fault]:
    """Patterns of the policy's own that are too large, alone or together. What does not compile, the model says."""
    limits, together = _limits(root), 0
    for path, node in chain(texts(root, (*_OWN, "patterns", ANY, "regex")), texts(root, _OF_TOOLS)):
        engine = at(root, (*path[:-1], "engine"))
        try:
            size = pattern_bytes(node.text, engine.text if isinstance(engine, Scalar) else "re2")
        except PatternError:
            continue
        if size > limits.max_pattern_bytes:
            message = f"compiles to {size} bytes, more than the {limits.max_pattern_bytes} allowed"
            yield _fault(node, path, message, "Lower its counts, split it, or raise limits.max_pattern_bytes.")
        if together <= limits.max_patterns_bytes < together + size:
            message = f"with this one, patterns compile to more than the {limits.max_patterns_bytes} bytes for all"
            yield _fault(node, path, message, "Leave some out, or raise limits.max_patterns_bytes.")
        together += size


def many_patterns(root: Node) -> Iterator[Fault]:
    """The first pattern or word of the policy's own that is one too many."""
    most = _limits(root).max_patterns
    words = texts(root, (*_OWN, "words", ANY, "list", ANY))
    own = chain(texts(root, (*_OWN, "patterns", ANY, "regex")), words, texts(root, _OF_TOOLS))
    for path, node in islice(own, most, most + 1):
        message = f"one more than the {most} patterns and words of your own that there may be"
        yield _fault(node, path, message, "Leave some out, or raise limits.max_patterns.")


_OWN: Path = ("guardrails", ANY)
_OF_TOOLS: Path = ("tools", "rules", ANY, "arguments", ANY, "pattern")


def _limits(root: Node) -> LimitsConfig:
    """The policy's limits; the defaults where they are at fault themselves, which the model says."""
    said = at(root, ("limits",))
    try:
        return LimitsConfig() if said is None else LimitsConfig.model_validate_json(json.dumps(plain(said)))
    except ValidationError:
        return LimitsConfig()


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
    (money_without_prices, True),
    (tools_without_chat, True),
    (unknown_tenants, True),
    (blind_rules, True),
    (large_patterns, True),
    (many_patterns, True),
    (nobody_to_approve, True),
    (unusable_schemas, False),
    (same_names, False),
    (same_rules, False),
    (shared_keys, False),
    (open_urls, False),
    (control_characters, False),
)


def cross_faults(root: Node, complete: bool) -> Iterator[Fault]:
    for check, needs_all in CHECKS:
        if complete or not needs_all:
            yield from check(root)
