"""Budgets in a store that goes away and comes back."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.ledger import Row
from tests.running import free_port
from tests.stores.ledgers import redis_program

from .talk import request, sidecar, wait_for
from .test_budgets import Ledgered, used, whole
from .under import CHAT, JSON
from .upstream import Upstream


class Store:
    """A Redis of our own that keeps what it was told through its end."""

    def __init__(self, folder: str) -> None:
        self.port = free_port()
        self._command = [redis_program(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", folder]
        self._command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        wait_for(self._answers, 10)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.start()
        yield store
        store.kill()


Start = Callable[[str], Any]


@pytest.fixture
def shared(upstream: Upstream, tmp_path: Path, store: Store) -> Start:
    @contextmanager
    def start(budget: str) -> Iterator[Ledgered]:
        policy = f"""
version: 1
providers: {{p: {{base_url: "{upstream.url}/v1"}}}}
budgets: [{budget}]
store: "redis://127.0.0.1:{store.port}/0"
telemetry: {{log: "{tmp_path}/log"}}
"""
        upstream.requests.clear()
        with sidecar(policy=policy, folder=tmp_path) as running:
            yield Ledgered(running, upstream)

    return start


def sums(rows: list[Row]) -> dict[str, tuple[int, int]]:
    return {row.unit: (row.spent, row.reserved) for row in rows}


def warnings(folder: Path) -> list[str]:
    said = map(json.loads, (folder / "log").read_text().splitlines())
    return [line["message"] for line in said if line.get("event") == "warning"]


def test_deny_refuses_until_the_store_is_back(shared: Start, upstream: Upstream, store: Store, tmp_path: Path) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with shared("{name: t, scope: tenant, calls: 3}") as talk:
        assert talk.ask().status == 200
        store.kill()
        refused = [talk.ask() for _ in range(3)]
        assert [answer.status for answer in refused] == [503] * 3
        assert json.loads(refused[0].body)["error"]["code"] == "store_unavailable"
        assert refused[0].header(b"retry-after") == b"1"
        assert len(upstream.requests) == 1
        store.start()
        wait_for(lambda: talk.ask().status == 200)
        wait_for(lambda: talk.spent("calls") == 2 and talk.reserved() == 0)
    down, back = warnings(tmp_path)
    assert down.startswith("the ledger is out of reach")
    assert str(store.port) not in down
    assert back == "the ledger is back"


def test_local_counts_alone_and_pays_later(shared: Start, upstream: Upstream, store: Store, tmp_path: Path) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with shared("{name: t, scope: tenant, calls: 8, tokens: 1000, on_store_error: local, local_share: 0.25}") as talk:
        assert talk.ask().status == 200
        store.kill()
        # A quarter of eight calls.
        assert [talk.ask().status for _ in range(3)] == [200, 200, 429]
        store.start()
        wait_for(lambda: len(warnings(tmp_path)) == 2, 10)
        wait_for(lambda: (talk.spent("calls"), talk.spent("tokens")) == (3, 30))
        assert talk.ask().status == 200
        wait_for(lambda: talk.spent("calls") == 4 and talk.reserved() == 0)
    assert warnings(tmp_path)[1:] == ["the ledger is back"]


def test_what_ends_while_the_store_is_away_is_charged_when_it_is_back(
    shared: Start, upstream: Upstream, store: Store, tmp_path: Path
) -> None:
    upstream.play([0.5, whole(usage=used(5, 5))])
    with shared("{name: t, scope: tenant, calls: 3, tokens: 1000}") as talk:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        with talk.running.connect() as client:
            client.send(request(b"POST", CHAT, body, JSON))
            wait_for(lambda: len(upstream.requests) == 1)
            store.kill()
            assert client.answer(b"POST").status == 200
        wait_for(lambda: len(warnings(tmp_path)) == 1)
        store.start()
        wait_for(lambda: len(warnings(tmp_path)) == 2, 10)
        wait_for(lambda: sums(talk.rows) == {"calls": (1, 0), "tokens": (10, 0)})
