"""One upstream and one inert sidecar for all tests of a file; each test plays its own scripts."""

from collections.abc import Iterator

import pytest

from .talk import Sidecar, sidecar
from .upstream import Upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as provider:
        yield provider


@pytest.fixture(scope="module")
def inert(upstream: Upstream) -> Iterator[Sidecar]:
    with sidecar(upstream.url) as running:
        yield running
