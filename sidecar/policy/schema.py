"""What a policy may say: the root model, and the sections that have no other home."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..config import Duration, Size, Strict
from ..stages.budgets import BudgetConfig
from ..stages.guardrails import GuardrailConfig
from ..stages.prices import PricesConfig
from ..stages.scrub import ScrubConfig
from ..stages.structured import StructuredConfig
from ..stages.tools import ToolsConfig
from ..text.engine import MAX_BUILT_IN_BYTES, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_BYTES
from ..upstream.resilience import ResilienceConfig, Targets
from ..upstream.targets import ProviderConfig

VERSION = 1


def _form(pattern: str, expected: str) -> tuple[AfterValidator, WithJsonSchema]:
    """A text of one form, refused in words instead of with the pattern."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(expected)
        return value

    return AfterValidator(check), WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


Name = Annotated[str, *_form(r"\S(.{0,198}\S)?", "expected a name of 1 to 200 characters on one line")]
ProviderName = Annotated[
    str,
    *_form(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "a provider's name is made of letters, digits, dots, dashes and underscores, the first no sign",
    ),
]


class AuthMode(StrEnum):
    """Whether a client must show a key of ours."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    OFF = "off"


_HASH = "sha256:"
_HEX = frozenset("0123456789abcdef")


def key_hash(value: str) -> str:
    """The hex digits of a tenant's key, lower case. Raises ValueError, which never echoes the value."""
    digits = value.removeprefix(_HASH).lower()
    if not value.startswith(_HASH) or len(digits) != 64 or not _HEX.issuperset(digits):
        raise ValueError("expected `sha256:` and the 64 hex digits of the key's hash")
    return digits


KeyHash = Annotated[
    str, AfterValidator(key_hash), WithJsonSchema({"type": "string", "pattern": "^sha256:[0-9A-Fa-f]{64}$"})
]


class ServerConfig(Strict):
    """Who may call the sidecar, and how much at once."""

    auth: AuthMode = Field(
        default=AuthMode.OPTIONAL,
        description="Whether a client must present a tenant's key. `required`: without one it gets 401. "
        "`optional`: without one it is the tenant `default`. `off`: tenants are not told apart.",
    )
    cors_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins whose pages may call the sidecar, such as https://app.example.com; `*` is any.",
    )
    max_header: Size = Field(
        default=65_536,
        description="The most that all header lines of a request may have together. Beyond it: 431.",
    )
    max_body: Size = Field(
        default=20_000_000,
        description="The largest request body that rules look at; it is held whole. Beyond it: 413.",
    )
    max_upload: Size = Field(
        default=512_000_000,
        description="The largest request body that passes through or is looked at piece by piece: forms and files. "
        "Beyond it: 413.",
    )
    max_concurrent: Annotated[int, Field(gt=0)] = Field(
        default=1000, description="Exchanges at once. Beyond it: 503 with `retry-after`."
    )
    keep_alive: Duration = Field(
        default=15.0,
        description="How often a client that waits for a stream gets a comment while its reply is held whole.",
    )
    drain: Duration = Field(default=30.0, description="How long running exchanges may go on after SIGTERM.")
    admin_keys: tuple[KeyHash, ...] = Field(
        default=(),
        description="The hashes of the keys that may read, reset and top up budgets, in the form of a tenant's keys. "
        "Absent: nobody may. Such a key never goes upstream.",
    )


class TenantConfig(Strict):
    """Who calls, known by a key of ours."""

    name: Name = Field(description="How log lines call the tenant.")
    keys: tuple[KeyHash, ...] = Field(
        min_length=1,
        description="The hashes of the keys that clients present: `sha256:` and the hex digits that "
        "`printf %s KEY | sha256sum` prints. A key that matched never goes upstream.",
    )


Verdict = Literal["pass", "deny"]


class InspectConfig(Strict):
    """What happens to what the guardrails cannot look into."""

    unknown: Literal["pass", "scan", "deny"] | None = Field(
        default=None,
        description="Endpoints and fields that no API documents. scan: every string of a JSON body, a form, a text "
        "file and a reply is looked at by the same rules; pass: none is; deny: the request is refused with 403. "
        "Absent: scan when a guardrail is in enforce, else pass.",
    )
    images: Verdict = Field(
        default="pass", description="Images in requests. deny: 403. Text inside an image is not read."
    )
    audio: Verdict = Field(default="pass", description="Sounds in requests. deny: 403.")
    files: Verdict = Field(
        default="pass",
        description="Files in requests that are not text, or that the provider already has. deny: 403. "
        "Text files are looked at, unless unknown is pass.",
    )
    provider_state: Verdict = Field(
        default="pass",
        description="Earlier turns that only the provider has: previous_response_id, conversations, stored prompts. "
        "They were looked at when they were sent through here, and only then. deny: 403.",
    )
    websocket: Verdict = Field(
        default="deny", description="WebSocket connections. deny: 400; pass: what they carry is not looked at."
    )


class LimitsConfig(Strict):
    """How large a policy's own patterns may be. Beyond a limit the policy does not load."""

    max_pattern_bytes: Annotated[Size, Field(le=MAX_BUILT_IN_BYTES)] = Field(
        default=MAX_PATTERN_BYTES,
        description="The most that one pattern of your own may compile to, 262144 at most.",
    )
    max_patterns_bytes: Size = Field(
        default=MAX_PATTERNS_BYTES, description="The most that all patterns of your own may compile to together."
    )
    max_patterns: Annotated[int, Field(gt=0)] = Field(
        default=MAX_PATTERNS, description="How many patterns and words of your own there may be in all guardrails."
    )


StoreUrl = Annotated[
    str,
    *_form(
        r"memory:|sqlite:///.+|(rediss?|unix)://.+",
        "expected memory:, sqlite:///FILE or redis://HOST:PORT/DB",
    ),
]


class TelemetryConfig(Strict):
    """What the sidecar tells of its work."""

    log: Annotated[str, Field(min_length=1)] = Field(
        default="off",
        description="Where one JSON line per exchange goes: `off`, `stdout`, `stderr` or the path of a file.",
    )


def _only(version: int) -> Callable[[Any], Any]:
    """JSON's true and 1.0 equal 1; a version that is meant is written 1."""

    def check(value: Any) -> Any:
        if type(value) is not int or value != version:
            raise ValueError(f"expected {version}, the version of the policy language")
        return value

    return check


class Policy(Strict):
    """A sidecar's policy. Every section is off when absent."""

    version: Annotated[Literal[1], BeforeValidator(_only(VERSION))] = Field(
        description="The version of the policy language, which is 1."
    )
    providers: Mapping[ProviderName, ProviderConfig] = Field(
        default={},
        description="Where requests can go, by name. The first one is the default.",
        examples=[
            {
                "openai": {"base_url": "${OPENAI_UPSTREAM:-https://api.openai.com/v1}"},
                "local": {
                    "base_url": "http://127.0.0.1:11434/v1",
                    "api_key": "${OLLAMA_KEY:-none}",
                    "timeouts": {"connect": "5s", "first_byte": "60s", "idle": "60s", "total": "10m"},
                },
            }
        ],
    )
    models: Mapping[Name, Targets] = Field(
        default={},
        description="The names that clients ask for, each with its targets in order, as `provider/model` or with what "
        "is particular to a target. A name that is written out comes first, then `provider/model` as it stands, then "
        "the first glob that fits. "
        "With this section any other name is answered 404 `model_not_found`. Without it every name goes through.",
        examples=[
            {
                "smart": ["openai/gpt-5", {"target": "local/qwen3", "context_window": 32768, "max_tokens": 4096}],
                "fast": "openai/gpt-5-mini",
                "gpt-*": "openai/*",
            }
        ],
    )
    resilience: ResilienceConfig = Field(
        default=ResilienceConfig(),
        description="What happens when a provider fails: the same target is asked again, then the next one. Absent: "
        "the reply is the client's, whatever it is.",
        examples=[
            {
                "retry": {"max_attempts": 3, "initial": "500ms", "factor": 2, "max": "60s", "retry_on": "transient"},
                "fallback": {"cooldown": "30s", "allowed_fails": 3},
            }
        ],
    )
    server: ServerConfig = Field(
        default=ServerConfig(),
        description="Who may call the sidecar, and how much at once.",
        examples=[{"auth": "optional", "max_body": "20MB", "max_concurrent": 1000}],
    )
    tenants: tuple[TenantConfig, ...] = Field(
        default=(),
        description="Who calls, each known by keys of ours.",
        examples=[
            [
                {
                    "name": "acme",
                    "keys": ["sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"],
                }
            ]
        ],
    )
    guardrails: tuple[GuardrailConfig, ...] = Field(
        default=(),
        description="Rules about text, obeyed in this order: a later rule sees what the earlier ones left.",
        examples=[
            [
                {"name": "no-secrets", "detect": ["secrets"]},
                {
                    "name": "tickets",
                    "patterns": [{"name": "ticket", "regex": r"ACME-\d{6}"}],
                    "words": [{"list": ["project-x"], "ignore_case": True}],
                    "on": ["user", "reply"],
                    "action": "block",
                    "mode": "shadow",
                },
            ]
        ],
    )
    prices: PricesConfig = Field(
        default=PricesConfig(),
        description="What models and tools cost, as decimals in one currency. Budgets with a `cost` go by it: under "
        "one, a model without a price is refused.",
        examples=[
            {
                "models": {
                    "gpt-5": {"prompt": "1.25", "cached": "0.125", "completion": "10"},
                    "claude-*": {"prompt": "3", "cached": "0.30", "cache_write": "3.75", "completion": "15"},
                    "local/*": {"prompt": "0", "completion": "0"},
                },
                "tools": {"web_search*": "0.01"},
            }
        ],
    )
    budgets: tuple[BudgetConfig, ...] = Field(
        default=(),
        description="How much may be used, by whom and in which time. Reserved before each call, settled after it.",
        examples=[
            [
                {"name": "one-run", "scope": "run", "calls": 50, "tokens": 200_000, "on_exceed": "finish"},
                {"name": "team", "scope": "tenant", "tokens": 5_000_000, "window": "1d", "warn_at": 0.8},
            ]
        ],
    )
    tools: ToolsConfig | None = Field(
        default=None,
        description="Which tool calls a model may make, by name, arguments and what the run has called before, and "
        "what becomes of tools' results. Absent: every call and every result goes through.",
        examples=[
            {
                "rules": [
                    {"tool": "shell*", "decision": "deny", "reason": "there is no shell here"},
                    {
                        "tool": "http_get",
                        "arguments": [{"path": "$.url", "pattern": "^http://"}],
                        "decision": "deny",
                        "reason": "use https",
                    },
                    {"tool": "send_*", "after": "vault_*", "decision": "deny"},
                    {"tool": "web_search", "more_than_in_a_row": 3, "decision": "deny"},
                ],
                "on_invalid": "repair",
                "pin": "flag",
                "results": {"frame": True, "max_chars": 20000},
            }
        ],
    )
    structured_output: StructuredConfig | None = Field(
        default=None,
        description="What happens to replies for which a form is asked: `response_format` and its like, or a schema "
        "of the policy. Absent: they go through as they are.",
        examples=[
            {
                "max_repair_attempts": 1,
                "schemas": [
                    {
                        "name": "ticket",
                        "agents": ["support-*"],
                        "schema": {
                            "type": "object",
                            "properties": {"title": {"type": "string"}, "urgent": {"type": "boolean"}},
                            "required": ["title", "urgent"],
                            "additionalProperties": False,
                        },
                    }
                ],
            }
        ],
    )
    store: StoreUrl = Field(
        default="memory:",
        repr=False,
        description="Where budgets are kept, and calls that wait for an admin: `memory:` of each worker alone, "
        "`sqlite:///FILE` for the workers of one machine, or `redis://HOST:PORT/DB` for several.",
        examples=["sqlite:///state.db"],
    )
    inspect: InspectConfig = Field(
        default=InspectConfig(),
        description="What happens to what the guardrails cannot look into.",
        examples=[{"unknown": "scan", "images": "pass", "provider_state": "deny"}],
    )
    scrub: ScrubConfig = Field(
        default=ScrubConfig(),
        description="What stands in the place of text that was taken out, and how long texts may be.",
        examples=[{"replacement": "[REDACTED:{name}]", "max_chars": {"tool_results": 20000, "errors": 512}}],
    )
    limits: LimitsConfig = Field(
        default=LimitsConfig(),
        description="How large a policy's own patterns may be.",
        examples=[{"max_pattern_bytes": 65536, "max_patterns_bytes": 4194304, "max_patterns": 10000}],
    )
    telemetry: TelemetryConfig = Field(
        default=TelemetryConfig(),
        description="What the sidecar tells of its work.",
        examples=[{"log": "stderr"}],
    )

    @property
    def unknown(self) -> Literal["pass", "scan", "deny"]:
        """What happens to endpoints and fields that nobody knows."""
        enforced = any(rule.mode == "enforce" for rule in self.guardrails)
        return self.inspect.unknown or ("scan" if enforced else "pass")
