"""Sidecars that redact, restore and block, before providers that echo or act; all live for the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.policy import digest
from tests.cases.upstream import Upstream
from tests.running import Process, serve

from . import model
from .provider import (
    CLIENT_KEY,
    CLIENTS,
    FORBIDDEN,
    PATTERN,
    PLACEHOLDER,
    PROVIDER_KEY,
    PROVIDERS,
    QUIET,
    answer,
)

MAX_BODY = 100_000


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def policy(base_url: str, **server: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "providers": {"main": {"base_url": base_url, "api_key": PROVIDER_KEY}},
        "server": {"auth": "required", "max_body": MAX_BODY, **server},
        "tenants": [{"name": "acme", "keys": [digest(CLIENT_KEY)]}],
        "guardrails": [
            {
                "name": "secrets",
                "patterns": [{"name": "canary", "regex": PATTERN}],
                "action": "redact",
                "replacement": PLACEHOLDER,
            },
            {
                "name": "topics",
                "words": [{"name": "topic", "list": [FORBIDDEN]}],
                "action": "block",
                "on_block": "error",
            },
            {
                "name": "quiet",
                "words": [{"name": "topic", "list": [QUIET]}],
                "action": "block",
                "on_block": "content_filter",
            },
        ],
        "telemetry": {"log": "stdout"},
    }


# What an agent's provider must see of a mail's address, and of the digits of a card.
DETECTED = [
    {"name": "people", "detect": ["email"], "action": "pseudonymize"},
    {"name": "cards", "detect": ["credit_card"], "action": "mask"},
    {"name": "keys", "detect": ["secrets"], "action": "redact"},
]


def agents_policy(origin: str, **provider: Any) -> dict[str, Any]:
    """Several rules in enforce, one of which puts back what it took out. The provider is asked under its origin."""
    document = policy(origin)
    document["providers"]["main"].update(provider)
    document["guardrails"] += DETECTED
    document["inspect"] = {"unknown": "scan", "images": "deny"}
    return document


@pytest.fixture(scope="session")
def _upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.close()


@pytest.fixture(scope="session")
def sidecar(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    process = _serve(tmp_path_factory.mktemp("clients"), policy(f"{_upstream.origin}/v1"))
    yield process
    process.stop()


@pytest.fixture(scope="session")
def narrow(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A sidecar that takes one exchange at a time."""
    process = _serve(tmp_path_factory.mktemp("narrow"), policy(f"{_upstream.origin}/v1", max_concurrent=1))
    yield process
    process.stop()


@pytest.fixture(scope="session")
def native(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A sidecar for agents, before a provider that speaks every API."""
    process = _serve(tmp_path_factory.mktemp("native"), agents_policy(_upstream.origin))
    yield process
    process.stop()


@pytest.fixture(scope="session")
def bridged(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """The same before a provider that speaks chat completions only."""
    document = agents_policy(_upstream.origin, responses="chat", messages="chat")
    process = _serve(tmp_path_factory.mktemp("bridged"), document)
    yield process
    process.stop()


@pytest.fixture(scope="session")
def stateless(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A sidecar whose policy lets no client lean on what only the provider knows."""
    document = agents_policy(_upstream.origin)
    document["inspect"]["provider_state"] = "deny"
    process = _serve(tmp_path_factory.mktemp("stateless"), document)
    yield process
    process.stop()


@pytest.fixture(scope="session")
def everywhere(_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A sidecar that redacts wherever a text can stand, definitions of tools included. Keys go through."""
    kinds = ["system", "user", "assistant", "tool_results", "tool_calls", "tools", "reply", "reasoning"]
    patterns = [{"name": "canary", "regex": PATTERN}, {"name": "mark", "regex": "text-[0-9]+[.]"}]
    rule = {"name": "secrets", "patterns": patterns, "on": kinds, "replacement": PLACEHOLDER}
    providers = {"main": {"base_url": _upstream.origin}}
    document = {"version": 1, "providers": providers, "guardrails": [rule], "inspect": {"unknown": "scan"}}
    process = _serve(tmp_path_factory.mktemp("everywhere"), document)
    yield process
    process.stop()


@pytest.fixture(params=["native", "bridged"])
def sides(request: pytest.FixtureRequest) -> Process:
    """Either of both."""
    process: Process = request.getfixturevalue(request.param)
    return process


@pytest.fixture
def acting(_upstream: Upstream) -> Iterator[Upstream]:
    """The provider of agents, which must never see what a client has to hide."""
    _upstream.play([model.Threads().answer])
    yield _upstream
    assert all(not hidden_in(seen.everything) for seen in _upstream.requests)


def hidden_in(text: str) -> list[str]:
    """Which of a client's secrets are in what the provider saw."""
    return [secret for secret in (CLIENTS, CLIENT_KEY, model.EMAIL, model.CARD) if secret in text]


def _serve(folder: Path, document: dict[str, Any]) -> Process:
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return serve(folder / "output", policy=path)


@pytest.fixture
def provider(_upstream: Upstream) -> Iterator[Upstream]:
    """The provider, which must never see a client's secret or key, whatever a test does."""
    _upstream.play([answer])
    yield _upstream
    for seen in _upstream.requests:
        assert CLIENTS not in seen.everything
        assert CLIENT_KEY not in seen.everything


def clean(text: str) -> str:
    """The text, which must be free of every secret and of half of any."""
    for secret in (CLIENTS, PROVIDERS, PROVIDER_KEY):
        assert secret not in text
    assert CLIENTS[:15] not in text
    assert PROVIDERS[:15] not in text
    return text
