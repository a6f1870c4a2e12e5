"""One scripted provider and a few running sidecars for all cases of a test process."""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running import Process, serve

from .upstream import Upstream

# A sidecar holds tens of MB; of more policies than this the least recently used one is ended.
AT_ONCE = 4


class Sidecars:
    """Running sidecars, one for each policy and environment, started when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: OrderedDict[str, Process] = OrderedDict()

    def get(
        self,
        policy: Mapping[str, Any] | None = None,
        *,
        upstream: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        key = json.dumps([policy, upstream, env], sort_keys=True)
        if key not in self._running:
            self._make_room()
            self._running[key] = self._start(policy, upstream, env)
        self._running.move_to_end(key)
        return self._running[key]

    def _start(self, policy: Mapping[str, Any] | None, upstream: str | None, env: Any) -> Process:
        number = sum(1 for _ in self._folder.iterdir())
        path = self._folder / f"{number}.yaml" if policy else None
        if path:
            path.write_text(yaml.safe_dump(policy, sort_keys=False, allow_unicode=True), "utf-8")
        return serve(self._folder / f"{number}.out", policy=path, upstream=upstream, env=env)

    def _make_room(self) -> None:
        while len(self._running) >= AT_ONCE:
            self._running.popitem(last=False)[1].stop()

    def stop(self) -> None:
        for process in self._running.values():
            process.stop()


@pytest.fixture(scope="session")
def sidecars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecars]:
    running = Sidecars(tmp_path_factory.mktemp("sidecars"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def _provider() -> Iterator[Upstream]:
    provider = Upstream()
    yield provider
    provider.close()


@pytest.fixture
def provider(_provider: Upstream) -> Upstream:
    """The scripted provider, with nothing to say yet and nothing seen."""
    _provider.play(())
    return _provider
