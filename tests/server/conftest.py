"""One upstream and one inert sidecar for all tests of a file; each test plays its own scripts."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from . import pair as pairs
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


@pytest.fixture(scope="session")
def two_providers() -> Iterator[tuple[Upstream, Upstream]]:
    with Upstream() as a, Upstream() as b:
        yield a, b


@pytest.fixture
def pair(two_providers: tuple[Upstream, Upstream], tmp_path: Path) -> pairs.Start:
    """Starts a sidecar before two providers under a `resilience` section, as `before` says."""
    return partial(pairs.before, *two_providers, tmp_path)
