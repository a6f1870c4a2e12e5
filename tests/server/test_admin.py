"""Budgets from outside: who may see and change them, and what is said of that."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli import main

from .talk import Answer, Sidecar, request, sidecar, wait_for
from .under import CHAT, JSON
from .upstream import Upstream, reply

ADMIN, ACME, BETA = b"admin-key", b"acme-key", b"beta-key"
ROWS, RESET, TOP_UP = b"/sidecar/v1/budgets", b"/sidecar/v1/budgets/reset", b"/sidecar/v1/budgets/top-up"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500}
OK = reply(json.dumps({"id": "c", "choices": [], "usage": USAGE}).encode(), b"200 OK", JSON)


def digest(key: bytes) -> str:
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def bearer(key: bytes) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + key


class Office:
    """A sidecar with budgets, and its log."""

    def __init__(self, running: Sidecar, log: Path) -> None:
        self.running, self.log = running, log

    def call(self, key: bytes = ACME, session: bytes = b"s", **more: Any) -> Answer:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}).encode()
        return self.running.ask(request(b"POST", CHAT, body, JSON, bearer(key), (b"x-sidecar-session", session)))

    def rows(self, key: bytes = ADMIN, query: bytes = b"") -> list[dict[str, Any]]:
        answer = self.running.ask(request(b"GET", ROWS + query, None, bearer(key)))
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = json.loads(answer.body)["budgets"]
        return found

    def post(self, path: bytes, key: bytes = ADMIN, **fields: Any) -> Answer:
        return self.running.ask(request(b"POST", path, json.dumps(fields).encode(), JSON, bearer(key)))

    def events(self, name: str) -> list[dict[str, Any]]:
        wait_for(lambda: f'"{name}"' in self.log.read_text())
        said = map(json.loads, self.log.read_text().splitlines())
        return [line for line in said if line.get("event") == name]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.running.port}"


@pytest.fixture
def office(upstream: Upstream, tmp_path: Path) -> Any:
    @contextmanager
    def start(*budgets: str, admins: str = f'["{digest(ADMIN)}"]', more: str = "") -> Iterator[Office]:
        upstream.requests.clear()
        upstream.play([OK])
        log = tmp_path / "log"
        policy = f"""
version: 1
providers: {{p: {{base_url: "{upstream.url}/v1"}}}}
server: {{admin_keys: {admins}}}
tenants:
  - {{name: acme, keys: ["{digest(ACME)}"]}}
  - {{name: beta/run/acme, keys: ["{digest(BETA)}"]}}
budgets: [{", ".join(budgets)}]
prices: {{models: {{m: {{prompt: "1", completion: "2"}}}}}}
telemetry: {{log: "{log}"}}
{more}"""
        with sidecar(policy=policy, folder=tmp_path) as running:
            yield Office(running, log)

    return start


TEAM = '{name: team, scope: tenant, calls: 2, cost: "1.50", window: 1d}'


def test_what_is_spent(office: Any) -> None:
    with office(TEAM, "{name: each, scope: session, tokens: 5000}") as talk:
        talk.call()
        rows = {(row["budget"], row["unit"]): row for row in talk.rows()}
    assert rows["each", "tokens"] == {
        "account": "each/acme/session/header:s",
        "budget": "each",
        "scope": "session",
        "tenant": "acme",
        "who": "header:s",
        "unit": "tokens",
        "window": None,
        "spent": 1500,
        "reserved": 0,
        "limit": 5000,
        "topped_up": 0,
        "remaining": 3500,
        "resets_at": None,
    }
    cost = rows["team", "cost"]
    assert (cost["spent"], cost["limit"], cost["remaining"], cost["who"]) == ("0.002", "1.5", "1.498", "acme")
    assert cost["window"] == 86_400
    assert cost["resets_at"].endswith("T00:00:00Z")


def test_a_filter_by_budget(office: Any) -> None:
    with office(TEAM, "{name: each, scope: session, tokens: 5000}") as talk:
        talk.call()
        assert {row["budget"] for row in talk.rows(query=b"?budget=each")} == {"each"}


def test_a_tenant_sees_its_own(office: Any) -> None:
    shared, runs = "{name: shared, scope: all, calls: 9}", "{name: runs, scope: run, calls: 9}"
    with office(TEAM, shared, runs) as talk:
        for key in (ACME, BETA):
            talk.call(key)
        assert {row["tenant"] for row in talk.rows(ACME)} == {"acme"}
        assert {row["budget"] for row in talk.rows(ACME)} == {"team", "runs"}
        assert {row["tenant"] for row in talk.rows(BETA)} == {"beta/run/acme"}
        assert talk.post(RESET, ACME, account="team/acme").status == 403


@pytest.mark.parametrize("key", [b"wrong-key", b""])
def test_a_wrong_key_sees_nothing_and_is_not_told(office: Any, upstream: Upstream, key: bytes) -> None:
    with office(TEAM) as talk:
        for method, path in ((b"GET", ROWS), (b"POST", RESET), (b"POST", TOP_UP)):
            answer = talk.running.ask(request(method, path, b"{}", JSON, bearer(key)))
            assert answer.status == 401
            assert json.loads(answer.body)["error"]["code"] == "unauthorized"
            assert key not in answer.body or not key
        assert talk.call().status == 200
        wait_for(lambda: '"outcome"' in talk.log.read_text())
        assert "wrong-key" not in talk.log.read_text()
        assert len(upstream.requests) == 1


def test_without_an_admins_key_there_is_nothing(office: Any, upstream: Upstream) -> None:
    with office(TEAM, admins="[]") as talk:
        for key in (ADMIN, ACME):
            answer = talk.running.ask(request(b"GET", ROWS, None, bearer(key)))
            assert answer.status == 404
        assert not upstream.requests


@pytest.mark.parametrize("path", [b"/sidecar/", b"/sidecar/v1", b"/sidecar/v1/other", b"/sidecar/v1/budgets/"])
def test_our_paths_are_never_forwarded(office: Any, upstream: Upstream, path: bytes) -> None:
    with office(TEAM) as talk:
        answer = talk.running.ask(request(b"GET", path, None, bearer(ADMIN)))
        assert answer.status == 404
        assert not upstream.requests


def test_an_admins_key_never_goes_up(office: Any, upstream: Upstream) -> None:
    with office(TEAM) as talk:
        assert talk.call(ADMIN).status == 200
        assert upstream.requests[0].header(b"authorization") is None


def test_a_reset(office: Any) -> None:
    with office(TEAM) as talk:
        assert [talk.call().status for _ in range(3)] == [200, 200, 429]
        answer = talk.post(RESET, budget="team", who="acme")
        assert answer.status == 200
        assert {row["unit"]: row["spent"] for row in json.loads(answer.body)["budgets"]} == {"calls": 0, "cost": "0"}
        assert talk.call().status == 200
        (event,) = talk.events("budget_reset")
    assert event["admin"] == hashlib.sha256(ADMIN).hexdigest()[:12]
    assert event["account"] == "team/acme"
    assert event["changes"] == [
        {"unit": "calls", "before": {"spent": 2, "topped_up": 0}, "after": {"spent": 0, "topped_up": 0}},
        {"unit": "cost", "before": {"spent": "0.004", "topped_up": "0"}, "after": {"spent": "0", "topped_up": "0"}},
    ]


def test_a_top_up(office: Any) -> None:
    with office("{name: each, scope: session, calls: 1}", TEAM) as talk:
        assert [talk.call().status for _ in range(2)] == [200, 429]
        answer = talk.post(TOP_UP, budget="each", tenant="acme", who="header:s", unit="calls", amount=1)
        (row,) = json.loads(answer.body)["budgets"]
        assert (row["limit"], row["topped_up"], row["remaining"]) == (1, 1, 1)
        assert [talk.call().status for _ in range(2)] == [200, 429]
        assert talk.post(TOP_UP, account="team/acme", unit="cost", amount="0.25").status == 200
        assert len(talk.events("budget_topped_up")) == 2
        assert {row["unit"]: row["remaining"] for row in talk.rows(query=b"?budget=team")}["cost"] == "1.746"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"budget": "none"}, 404),
        ({"budget": "each"}, 400),
        ({"account": "each/acme/session/nobody", "unit": "calls", "amount": 1}, 404),
        ({"account": "each/acme/session/header:s", "unit": "calls", "amount": 0}, 400),
        ({"account": "each/acme/session/header:s", "unit": "calls", "amount": True}, 400),
        ({"account": "each/acme/session/header:s", "unit": "calls", "amount": "1"}, 400),
        ({"account": "each/acme/session/header:s", "unit": "cost", "amount": 0.5}, 400),
        ({"account": "each/acme/session/header:s", "unit": "cost", "amount": "-1"}, 400),
        ({"account": "each/acme/session/header:s", "unit": "tokens", "amount": 1}, 404),
        ({"account": "each/acme/session/header:s", "unit": "concurrent", "amount": 1}, 400),
    ],
)
def test_what_cannot_be_topped_up(office: Any, fields: dict[str, Any], status: int) -> None:
    with office('{name: each, scope: session, calls: 1, cost: "1", concurrent: 3}') as talk:
        talk.call()
        before = talk.rows()
        assert talk.post(TOP_UP, **fields).status == status
        assert talk.rows() == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"account": "' + b"x" * 70_000])
def test_a_body_that_is_none(office: Any, body: bytes) -> None:
    with office(TEAM) as talk:
        assert talk.running.ask(request(b"POST", RESET, body, bearer(ADMIN))).status in (400, 413)


def test_a_person_in_the_user_field_is_not_kept(office: Any) -> None:
    with office("{name: each, scope: session, calls: 5}") as talk:
        talk.call(session=b"", user="ana@x.org", model="m")
        (row,) = talk.rows()
    assert row["who"].startswith("user:")
    assert "ana" not in row["who"]


# --- the command ---


def test_the_table(office: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with office(TEAM, "{name: each, scope: session, tokens: 5000}") as talk:
        monkeypatch.setenv("SIDECAR_ADMIN_KEY", ADMIN.decode())
        assert main(["budgets", "--url", talk.url]) == 0
        assert capsys.readouterr().out == "Nothing has been counted yet.\n"
        talk.call()
        assert main(["budgets", "--url", talk.url]) == 0
        head, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "BUDGET SCOPE TENANT WHO UNIT WINDOW SPENT RESERVED LIMIT LEFT RESETS"
    rows = [line.split() for line in lines]
    assert rows[0] == ["each", "session", "acme", "header:s", "tokens", "lifetime", "1500", "0", "5000", "3500", "-"]
    assert rows[2][:10] == ["team", "tenant", "acme", "acme", "cost", "1d", "0.002", "0", "1.5", "1.498"]


def test_json_reset_and_top_up(office: Any, capsys: Any) -> None:
    with office("{name: pot, scope: all, calls: 1}", TEAM) as talk:
        where = ["--url", talk.url, "--key", ADMIN.decode()]
        talk.call()
        assert main(["budgets", *where, "reset", "pot", "team/acme", "--json"]) == 0
        assert {row["spent"] for row in json.loads(capsys.readouterr().out)["budgets"]} == {0, "0"}
        assert main(["budgets", "top-up", "pot", "--unit", "calls", "--amount", "2", *where]) == 0
        assert "1 + 2" in capsys.readouterr().out
        more = ["team", "--who", "acme", "--unit", "cost", "--amount", "3"]
        assert main(["budgets", "top-up", *more, *where]) == 0
        assert "1.5 + 3" in capsys.readouterr().out
        assert main(["budgets", *where, "--budget", "pot", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["budgets"]
        assert row["remaining"] == 3


def test_what_the_command_says_when_it_fails(office: Any, capsys: Any) -> None:
    with office(TEAM) as talk:
        assert main(["budgets", "--url", talk.url, "--key", "wrong-key"]) == 1
        said = capsys.readouterr().err
        assert said.startswith("401: ")
        assert "wrong-key" not in said
        url = talk.url
    assert main(["budgets", "--url", url]) == 2
    assert "No sidecar can be reached" in capsys.readouterr().err
    for bad in ("ftp://x", "nonsense", "http://[", "http://h:x"):
        assert main(["budgets", "--url", bad]) == 2
        assert "--url: expected" in capsys.readouterr().err
