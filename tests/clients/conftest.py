"""A sidecar that redacts and blocks, before a provider that echoes; both live for the session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.policy import digest
from tests.cases.upstream import Upstream
from tests.running import Process, serve

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
