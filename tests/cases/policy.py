"""From the case file's intents, in words of their own, to this product's policy; nothing else knows both."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Intent = Mapping[str, Any]
ADMIN = "pk-admin"
"""The key that shows what budgets have counted."""

# Where the case file says a rule looks, in our words.
ON: Mapping[str, tuple[str, ...]] = {
    "prompt": ("system", "user", "assistant"),
    "user": ("user",),
    "tool_result": ("tool_results",),
    "tool_args": ("tool_calls",),
    "reply": ("reply", "reasoning"),
}
# Intents that change nothing in what a case of this release expects.
WITHOUT_A_WORD: Mapping[str, str] = {
    "audit": "no bodies are stored in this release",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """What a sidecar is started with. An empty policy means inert."""

    policy: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


def setup(intents: Sequence[Intent], base_url: str) -> Setup:
    """The policy and environment that carry out these intents before the provider at `base_url`."""
    made = Setup()
    for position, intent in enumerate(intents):
        word = intent["action"]
        if word not in WITHOUT_A_WORD:
            INTENTS[word](made, intent, position)
    if "budgets" in made.policy:
        made.policy.setdefault("server", {})["admin_keys"] = [digest(ADMIN)]
    if made.policy:
        provider = made.policy.setdefault("providers", {}).setdefault("upstream", {})
        provider["base_url"] = base_url
        made.policy.setdefault("telemetry", {"log": "stdout"})
        made.policy["version"] = 1
    return made


def _guardrail(made: Setup, intent: Intent, rule: dict[str, Any]) -> dict[str, Any]:
    on = [kind for word in intent["on"] for kind in ON[word]]
    whole = {**rule, "on": on, "action": intent["action"]}
    made.policy.setdefault("guardrails", []).append(whole)
    return whole


def _redact(made: Setup, intent: Intent, position: int) -> None:
    """Rules that redact in the same places are one guardrail, whose findings do not cut into each other."""
    rule = intent["rule"]
    pattern = {"name": rule["replace"].strip("[]"), "regex": rule.get("regex") or _under_key(rule["json_key"])}
    looks = {"decode": ["json"]} if "json_key" in rule else {}
    wanted = {"name": rule["name"], "patterns": [pattern], "replacement": "[{name}]", **looks}
    whole = _guardrail(made, intent, wanted)
    match made.policy["guardrails"]:
        case [*_, {"action": "redact", "on": on, "patterns": patterns}, _] if on == whole["on"]:
            patterns.append(pattern)
            made.policy["guardrails"].pop()


def _block(made: Setup, intent: Intent, position: int) -> None:
    rule: dict[str, Any] = {"name": f"block-{position}"}
    if intent.get("keywords"):
        words = {"name": "keywords", "list": intent["keywords"]}
        rule["words"] = [{**words, "ignore_case": True} if intent.get("case_insensitive") else words]
    if regex := intent.get("regex"):
        rule["patterns"] = [{"name": "pattern", "regex": regex}]
    if "normalize" in intent:
        rule["normalize"] = [word for word in intent["normalize"].split("+") if word != "casefold"]
        rule["words"] = [{**words, "ignore_case": True} for words in rule["words"]]
    if "ends" in intent:
        rule["on_block"] = intent["ends"]
    _guardrail(made, intent, rule)


def _under_key(key: str) -> str:
    return rf'"{key}"\s*:\s*"(?P<value>[^"]+)"'


def _auth(made: Setup, intent: Intent, position: int) -> None:
    tenants = intent.get("keys", {intent["proxy_key"]: "local"} if "proxy_key" in intent else {})
    if tenants:
        made.policy.setdefault("server", {})["auth"] = "required"
        made.policy["tenants"] = [{"name": name, "keys": [digest(key)]} for key, name in tenants.items()]
    if "upstream_key_env" in intent:
        name, _, value = intent["upstream_key_env"].partition("=")
        made.env[name] = value
        made.policy.setdefault("providers", {}).setdefault("upstream", {})["api_key"] = f"${{{name}}}"


def _log(made: Setup, intent: Intent, position: int) -> None:
    made.policy["telemetry"] = {"log": "stdout"}


def _timeout(made: Setup, intent: Intent, position: int) -> None:
    provider = made.policy.setdefault("providers", {}).setdefault("upstream", {})
    provider["timeouts"] = {"idle": f"{intent['stream_idle_s']}s"}


def digest(key: str) -> str:
    """A client key as a policy holds it."""
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _vault(made: Setup, intent: Intent, position: int) -> None:
    """Whatever is taken out of a request is put back wherever the reply has it."""
    rule = intent["rule"]
    pattern = {"name": rule["name"], "regex": rule["regex"]}
    _guardrail(made, {**intent, "action": "pseudonymize"}, {"name": rule["name"], "patterns": [pattern]})


def _budget(made: Setup, intent: Intent, position: int) -> None:
    """Under a name of its own: a sidecar that has counted for another test is not asked again."""
    limits = {name: value for name, value in intent.items() if name != "action"}
    made.policy.setdefault("budgets", []).append({"name": f"budget-{next(_budgets)}", **limits})


_budgets = count()


def _resilience(made: Setup) -> dict[str, Any]:
    """With a deadline of its own: a sidecar remembers how a provider did in another test."""
    section: dict[str, Any] = made.policy.setdefault("resilience", {})
    section.setdefault("retry", {"max_attempts": 1, "deadline": f"{600 + next(_plans)}s"})
    return section


_plans = count()


def _retry(made: Setup, intent: Intent, position: int) -> None:
    retry = _resilience(made)["retry"]
    retry["max_attempts"] = intent["max"]
    if "max_wait_s" in intent:
        retry["max"] = f"{intent['max_wait_s']}s"
    if "base_ms" in intent:
        retry["initial"] = f"{intent['base_ms']}ms"


# What fits the targets of a case that falls back to a larger window, in tokens.
_WINDOWS: Mapping[str, int] = {"m1": 8192, "big": 100_000, "small": 4096}


def _fallback(made: Setup, intent: Intent, position: int) -> None:
    section = _resilience(made)
    fallback = section.setdefault("fallback", {"cooldown": "1s"})
    targets = made.policy.setdefault("models", {}).setdefault("m1", [_target("m1")])
    targets += map(_target, intent["to"])
    if "on" in intent:
        fallback["on"] = [*fallback.get("on", ()), intent["on"]]
    if intent.get("on") == "context_window":
        # The word of the server in question.
        section["errors"] = {"BadRequestError": "context_window"}


def _target(name: str) -> dict[str, Any]:
    window = {"context_window": _WINDOWS[name]} if name in _WINDOWS else {}
    return {"target": f"upstream/{name}", **window}


def _tools_as_text(made: Setup, intent: Intent, position: int) -> None:
    """The cases' models write calls in the tags of Hermes."""
    assert "<tool_call>" in intent["envelope"]
    made.policy.setdefault("providers", {}).setdefault("upstream", {})["tools"] = "hermes"


def _structured(made: Setup, intent: Intent, position: int) -> None:
    schemas = [{"name": "wanted", "schema": intent["schema"]}]
    made.policy["structured_output"] = {"max_repair_attempts": intent["repair_max"], "schemas": schemas}


INTENTS: Mapping[str, Callable[[Setup, Intent, int], None]] = {
    "redact": _redact,
    "block": _block,
    "budget": _budget,
    "auth": _auth,
    "log": _log,
    "timeout": _timeout,
    "vault": _vault,
    "retry": _retry,
    "fallback": _fallback,
    "tool_text_protocol": _tools_as_text,
    "structured": _structured,
}
