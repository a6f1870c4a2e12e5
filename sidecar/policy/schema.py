"""What a policy may say: the root model, and the sections that have no other home."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..config import Duration, Size, Strict
from ..stages.guardrails import GuardrailConfig
from ..stages.scrub import ScrubConfig
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


_TARGET = r"[^/\s]+/\S+"

Name = Annotated[str, *_form(r"\S(.{0,198}\S)?", "expected a name of 1 to 200 characters on one line")]
ProviderName = Annotated[
    str,
    *_form(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "a provider's name is made of letters, digits, dots, dashes and underscores, the first no sign",
    ),
]
TargetName = Annotated[str, *_form(_TARGET, "expected `provider/model`")]


class AuthMode(StrEnum):
    """Whether a client must show a key of ours."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    OFF = "off"


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
        description="The largest request body that only passes through. Beyond it: 413.",
    )
    max_concurrent: Annotated[int, Field(gt=0)] = Field(
        default=1000, description="Exchanges at once. Beyond it: 503 with `retry-after`."
    )
    drain: Duration = Field(default=30.0, description="How long running exchanges may go on after SIGTERM.")


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


class TenantConfig(Strict):
    """Who calls, known by a key of ours."""

    name: Name = Field(description="How log lines call the tenant.")
    keys: tuple[KeyHash, ...] = Field(
        min_length=1,
        description="The hashes of the keys that clients present: `sha256:` and the hex digits that "
        "`printf %s KEY | sha256sum` prints. A key that matched never goes upstream.",
    )


class TelemetryConfig(Strict):
    """What the sidecar tells of its work."""

    log: Annotated[str, Field(min_length=1)] = Field(
        default="off",
        description="Where one JSON line per exchange goes: `off`, `stdout`, `stderr` or the path of a file.",
    )


def _one_or_many(value: Any) -> Any:
    match value:
        case str():
            return (value,)
        case list():
            return tuple(value)
    return value


_TARGET_SCHEMA = {"type": "string", "pattern": f"^{_TARGET}$"}
Targets = Annotated[
    tuple[TargetName, ...],
    BeforeValidator(_one_or_many),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_TARGET_SCHEMA, {"type": "array", "minItems": 1, "items": _TARGET_SCHEMA}]}),
]


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
        description="The names that clients ask for, each with its targets in order, as `provider/model`. "
        "With this section any other name is answered 404 `model_not_found`, except a target's own name. "
        "Without it every name goes through.",
        examples=[{"smart": ["openai/gpt-5", "local/qwen3"], "fast": "openai/gpt-5-mini"}],
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
    scrub: ScrubConfig = Field(
        default=ScrubConfig(),
        description="What stands in the place of text that was taken out, and how long texts may be.",
        examples=[{"replacement": "[REDACTED:{name}]", "max_chars": {"tool_results": 20000, "errors": 512}}],
    )
    telemetry: TelemetryConfig = Field(
        default=TelemetryConfig(),
        description="What the sidecar tells of its work.",
        examples=[{"log": "stderr"}],
    )
