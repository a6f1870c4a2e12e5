"""A ledger of each kind, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.ledgers import KINDS, Bank, RedisServer, redis_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bank(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bank]:
    server = request.getfixturevalue("redis") if kind == "redis" else None
    with Bank(kind, tmp_path, server) as bank:
        yield bank
