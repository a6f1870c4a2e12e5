"""One upstream and one inert sidecar for all tests of a file; each test plays its own scripts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .talk import Sidecar, sidecar
from .under import Start
from .under import under as started_under
from .upstream import Upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider


@pytest.fixture(scope="module")
def inert(upstream: Upstream) -> Iterator[Sidecar]:
    with sidecar(upstream.url) as running:
        yield running


@pytest.fixture
def under(upstream: Upstream, tmp_path: Path) -> Start:
    """Starts a sidecar under guardrails."""
    return started_under(upstream, tmp_path)
