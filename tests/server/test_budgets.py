"""Budgets through the running sidecar: what goes through, what is refused, and what is charged."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.ledger import Row

from .pair import BUDGET, PLANS, Start
from .talk import Answer, Sidecar, request, sidecar, wait_for
from .under import CHAT, JSON
from .upstream import CHUNKED, END, FIN, Upstream, chunk, reply

DONE = b"data: [DONE]\n\n"
SESSION = (b"x-sidecar-session", b"s")


class Ledgered:
    """A sidecar under budgets, its provider, and what its ledger says."""

    def __init__(self, running: Sidecar, upstream: Upstream) -> None:
        self.running, self.upstream = running, upstream

    def ask(self, *headers: tuple[bytes, bytes], path: bytes = CHAT, **more: Any) -> Answer:
        document = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}
        body = json.dumps(document).encode()
        return self.running.ask(request(b"POST", path, body, JSON, *(headers or (SESSION,))))

    @property
    def rows(self) -> list[Row]:
        accounts = self.running.runtime.accounts
        assert accounts is not None
        found: list[Row] = []
        done = threading.Event()

        async def read() -> None:
            found.extend(await accounts.ledger.read())
            done.set()

        loop = self.running.runtime._loop
        assert loop is not None
        loop.call_soon_threadsafe(lambda: loop.create_task(read()))
        assert done.wait(5)
        return found

    def spent(self, unit: str) -> int:
        return sum(row.spent for row in self.rows if row.unit == unit)

    def reserved(self) -> int:
        return sum(row.reserved for row in self.rows)

    @property
    def sent(self) -> Any:
        return json.loads(self.upstream.requests[-1].body)


@pytest.fixture
def budgeted(upstream: Upstream, tmp_path: Path) -> Any:
    @contextmanager
    def start(*budgets: str, more: str = "") -> Iterator[Ledgered]:
        policy = f'version: 1\nproviders: {{p: {{base_url: "{upstream.url}/v1"}}}}\n'
        policy += f"budgets: [{', '.join(budgets)}]\n{more}"
        upstream.requests.clear()
        with sidecar(policy=policy, folder=tmp_path) as running:
            yield Ledgered(running, upstream)

    return start


def whole(text: str = "ok", usage: dict[str, Any] | None = None, **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    document: dict[str, Any] = {"id": "c", "object": "chat.completion", "choices": [choice]}
    if usage is not None:
        document["usage"] = usage
    return reply(json.dumps(document).encode(), b"200 OK", JSON)


def used(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def event(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    document = {"id": "c", "object": "chat.completion.chunk", "choices": choices, **more}
    return b"data: %b\n\n" % json.dumps(document).encode()


def error_of(answer: Answer) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(answer.body)["error"]
    return error


# --- calls ---


def test_as_many_calls_as_the_budget_has(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with budgeted("{name: two, scope: session, calls: 2}") as talk:
        assert [talk.ask().status for _ in range(3)] == [200, 200, 429]
        answer = talk.ask()
        assert talk.ask((b"x-sidecar-session", b"other")).status == 200
        assert len(upstream.requests) == 3
        assert talk.spent("calls") == 3
    error = error_of(answer)
    assert error["code"] == "budget_exceeded"
    assert error["param"] == "two"
    assert error["message"] == "The budget 'two' is used up: 2 calls per session."
    assert answer.header(b"x-should-retry") == b"false"
    assert answer.header(b"retry-after") is None
    assert answer.header(b"x-sidecar-stop-reason") == b"call_limit"


def test_a_burst_cannot_pass_a_limit(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([0.2, whole(usage=used(5, 5))])
    with budgeted("{name: one, scope: session, calls: 3}") as talk, ThreadPoolExecutor(10) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda _: talk.ask(), range(10)))
        assert statuses == [200] * 3 + [429] * 7
        assert len(upstream.requests) == 3


def test_a_window_says_when_it_opens_again(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with budgeted("{name: rate, scope: tenant, requests_per_minute: 1}") as talk:
        first, second = talk.ask(), talk.ask()
    assert first.header(b"x-ratelimit-limit-requests") == b"1"
    assert first.header(b"x-ratelimit-remaining-requests") == b"0"
    assert second.status == 429
    assert 1 <= int(second.header(b"retry-after") or 0) <= 60
    assert second.header(b"x-should-retry") is None


def test_exchanges_at_once(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([0.4, whole(usage=used(5, 5))])
    with budgeted("{name: slots, scope: all, concurrent: 2}") as talk, ThreadPoolExecutor(4) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda _: talk.ask(), range(4)))
        assert statuses == [200, 200, 429, 429]
        assert talk.ask().status == 200
        assert talk.reserved() == 0


# --- tokens ---


def test_reported_tokens_are_charged(budgeted: Any, upstream: Upstream) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 4}}
    upstream.play([whole(usage=used(11, 7, **details))])
    kinds = "{total: 1000, prompt: 1000, completion: 1000, cached: 1000, reasoning: 1000}"
    with budgeted(f"{{name: t, scope: session, tokens: {kinds}}}") as talk:
        talk.ask()
        assert {row.unit: row.spent for row in talk.rows} == {
            "tokens": 18,
            "prompt tokens": 11,
            "completion tokens": 7,
            "cached tokens": 3,
            "reasoning tokens": 4,
        }
        assert talk.reserved() == 0


def test_unreported_tokens_are_estimated_and_never_nothing(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole("word " * 100)])
    with budgeted("{name: t, scope: session, tokens: 10000}") as talk:
        talk.ask()
        assert 100 <= talk.spent("tokens") <= 300


def test_a_stream_is_charged_though_the_client_asked_for_no_usage(budgeted: Any, upstream: Upstream) -> None:
    frames = [event({"content": "hello"}), event({}, "stop"), event(usage=used(60, 60))]
    upstream.play([CHUNKED, *map(chunk, [*frames, DONE]), END])
    with budgeted("{name: t, scope: session, tokens: 100}") as talk:
        answer = talk.ask(stream=True)
        assert talk.sent["stream_options"] == {"include_usage": True}
        assert answer.body == frames[0] + frames[1] + DONE
        assert talk.spent("tokens") == 120
        assert talk.ask().status == 429


def test_the_usage_that_a_client_asks_for_is_its_own(budgeted: Any, upstream: Upstream) -> None:
    frames = [event({"content": "hello"}), event({}, "stop"), event(usage=used(60, 60))]
    upstream.play([CHUNKED, *map(chunk, [*frames, DONE]), END])
    with budgeted("{name: t, scope: session, tokens: 1000}") as talk:
        answer = talk.ask(stream=True, stream_options={"include_usage": True})
    assert answer.body == b"".join(frames) + DONE


def test_usage_that_is_repeated_runs_and_does_not_add_up(budgeted: Any, upstream: Upstream) -> None:
    frames = [event({"content": "a"}, usage=used(10, n)) for n in range(1, 20)]
    upstream.play([CHUNKED, *map(chunk, [*frames, event({}, "stop", usage=used(10, 20)), DONE]), END])
    with budgeted("{name: t, scope: session, tokens: 1000}") as talk:
        talk.ask(stream=True)
        assert talk.spent("tokens") == 30


def test_a_client_that_leaves_is_charged_once(budgeted: Any, upstream: Upstream) -> None:
    frames = [chunk(event({"content": "word "})) for _ in range(3)]
    upstream.play([CHUNKED, *frames, 5.0, END])
    with budgeted("{name: t, scope: session, calls: 1, tokens: 10000}") as talk:
        body = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
        with talk.running.connect() as client:
            client.send(request(b"POST", CHAT, body, JSON, SESSION))
            client.until(b"word ")
            client.reset()
        wait_for(lambda: talk.reserved() == 0, 3)
        assert talk.spent("calls") == 1
        assert talk.spent("tokens") >= 1
        assert talk.ask().status == 429


def test_what_never_reached_the_provider_costs_nothing(budgeted: Any, upstream: Upstream) -> None:
    with budgeted(
        "{name: t, scope: session, calls: 5, tokens: 1000}",
        more="guardrails: [{name: no, words: [{list: [otter]}], action: block}]\n",
    ) as talk:
        assert talk.ask(messages=[{"role": "user", "content": "otter"}]).status == 400
        assert talk.spent("calls") == talk.reserved() == 0


def test_an_error_of_the_provider_costs_a_call_and_no_tokens(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([reply(b'{"error": {"message": "no"}}', b"500 Oops", JSON)])
    with budgeted("{name: t, scope: session, calls: 5, tokens: 1000}") as talk:
        assert talk.ask().status == 500
        assert talk.spent("calls") == 1
        assert talk.spent("tokens") == talk.reserved() == 0


def test_a_slot_is_free_again_after_an_abort_and_an_error(budgeted: Any, upstream: Upstream) -> None:
    with budgeted("{name: t, scope: session, concurrent: 1, tokens: 1000}") as talk:
        upstream.play([CHUNKED, chunk(event({"content": "a"})), 5.0, FIN])
        body = json.dumps({"model": "m", "messages": [], "stream": True, "max_tokens": 900}).encode()
        with talk.running.connect() as client:
            client.send(request(b"POST", CHAT, body, JSON, SESSION))
            client.until(b'"a"')
            client.reset()
        wait_for(lambda: talk.reserved() == 0, 3)
        upstream.play([reply(b"{}", b"500 Oops", JSON)])
        assert talk.ask(max_tokens=900).status == 500
        upstream.play([whole(usage=used(5, 5))])
        assert talk.ask(max_tokens=900).status == 200


def test_a_large_wish_does_not_keep_a_call_from_what_is_left(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(10, 85))])
    with budgeted("{name: t, scope: session, tokens: 100}") as talk:
        assert [talk.ask(max_tokens=4000).status for _ in range(3)] == [200, 429, 429]
        assert talk.spent("tokens") == 95


# --- money ---

PRICES = (
    'prices: {models: {m: {prompt: "1", completion: "2", cached: "0.5"}, "gpt-*": {prompt: "1", completion: "1"}}}\n'
)


def test_money_is_exact(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(1000, 500, prompt_tokens_details={"cached_tokens": 400}))])
    with budgeted('{name: c, scope: session, cost: "0.0036"}', more=PRICES) as talk:
        assert [talk.ask(max_tokens=500).status for _ in range(3)] == [200, 200, 429]
        # 600 at 1, 400 at 0.5 and 500 at 2 for a million.
        assert talk.spent("cost") == 2 * 1_800_000


def test_a_model_without_a_price_is_refused(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole()])
    with budgeted('{name: c, scope: session, cost: "1"}', more=PRICES) as talk:
        answer = talk.ask(model="other")
        assert not upstream.requests
    assert answer.status == 422
    assert error_of(answer)["code"] == "model_unpriced"


# --- tool calls ---


def calls(*names: str) -> list[dict[str, Any]]:
    return [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": f'{{"q":"{at}"}}'}}
        for at, name in enumerate(names)
    ]


def test_tool_calls_beyond_the_limit_are_taken_out(budgeted: Any, upstream: Upstream) -> None:
    document = {"role": "assistant", "content": None, "tool_calls": calls("find", "find", "find")}
    choice = {"index": 0, "message": document, "finish_reason": "tool_calls"}
    upstream.play([reply(json.dumps({"id": "c", "choices": [choice]}).encode(), b"200 OK", JSON)])
    with budgeted("{name: tools, scope: session, tool_calls: 2}") as talk:
        got = json.loads(talk.ask().body)["choices"][0]
        assert [call["id"] for call in got["message"]["tool_calls"]] == ["c0", "c1"]
        assert got["finish_reason"] == "tool_calls"
        assert got["message"]["content"] == "tool budget exhausted for find"
        assert talk.spent("tool calls") == 3
        again = json.loads(talk.ask().body)["choices"][0]
    assert "tool_calls" not in again["message"]
    assert again["finish_reason"] == "stop"


def test_the_same_in_a_stream_with_interleaved_calls(budgeted: Any, upstream: Upstream) -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        first = {"id": f"c{index}", "type": "function"} if "name" in function else {}
        return {"tool_calls": [{"index": index, **first, "function": function}]}

    deltas = [
        *(call(index, name="find", arguments="") for index in range(3)),
        *(call(index, arguments='{"q":') for index in range(3)),
        *(call(index, arguments=f"{index}}}") for index in range(3)),
    ]
    frames = [event(delta) for delta in deltas]
    upstream.play([CHUNKED, *map(chunk, [*frames, event({}, "tool_calls"), DONE]), END])
    with budgeted("{name: tools, scope: session, tool_calls: 2}") as talk:
        answer = talk.ask(stream=True)
        assert talk.spent("tool calls") == 3
    documents = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith(b"data: {")]
    arguments: dict[int, str] = {}
    for document in documents:
        for piece in document["choices"][0]["delta"].get("tool_calls", ()):
            arguments[piece["index"]] = arguments.get(piece["index"], "") + piece["function"].get("arguments", "")
    assert arguments == {0: '{"q":0}', 1: '{"q":1}'}
    assert documents[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_limit_on_one_tool(budgeted: Any, upstream: Upstream) -> None:
    document = {"role": "assistant", "content": "look", "tool_calls": calls("web_search", "calc", "web_fetch")}
    choice = {"index": 0, "message": document, "finish_reason": "tool_calls"}
    upstream.play([reply(json.dumps({"id": "c", "choices": [choice]}).encode(), b"200 OK", JSON)])
    with budgeted('{name: tools, scope: session, tool_calls: {total: 10, "web_*": 1}}') as talk:
        got = json.loads(talk.ask().body)["choices"][0]["message"]
    assert [call["function"]["name"] for call in got["tool_calls"]] == ["web_search", "calc"]
    assert got["content"] == "look\n\ntool budget exhausted for web_fetch"


def remote(path: bytes, *names: str) -> dict[str, Any]:
    """A reply with calls of tools of an MCP server that the provider has run."""
    if path == b"/v1/responses":
        head = {"type": "mcp_call", "server_label": "s", "arguments": "{}", "output": "x"}
        items = [{**head, "id": f"mcp_{at}", "name": name} for at, name in enumerate(names)]
        return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": items}
    blocks = [{"type": "mcp_tool_use", "id": f"m_{at}", "server_name": "s", "name": n} for at, n in enumerate(names)]
    return {"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "pause_turn"}


@pytest.mark.parametrize("path", [b"/v1/responses", b"/v1/messages"], ids=["responses", "messages"])
def test_the_name_of_a_tools_server_is_not_counted_with_it(budgeted: Any, upstream: Upstream, path: bytes) -> None:
    two, one_more = remote(path, "find", "read"), remote(path, "read")
    upstream.play(*([reply(json.dumps(each).encode(), b"200 OK", JSON)] for each in (two, one_more)))
    with budgeted('{name: tools, scope: session, tool_calls: {total: 2, "read": 1, s: 0}}') as talk:
        asked: dict[str, Any] = {"input": "hi"} if path == b"/v1/responses" else {"max_tokens": 9}
        assert json.loads(talk.ask(path=path, **asked).body) == two
        again = talk.ask(path=path, **asked).body
    assert b"tool budget exhausted for read" in again


# --- what happens at the limit ---


def test_finish_is_a_normal_reply(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with budgeted("{name: one, scope: session, calls: 1, on_exceed: finish, message: That was it.}") as talk:
        talk.ask()
        answer, streamed = talk.ask(), talk.ask(stream=True)
        assert len(upstream.requests) == 1
    choice = json.loads(answer.body)["choices"][0]
    assert (answer.status, choice["message"]["content"], choice["finish_reason"]) == (200, "That was it.", "stop")
    assert answer.header(b"x-sidecar-stop-reason") == b"call_limit"
    assert b"That was it." in streamed.body
    assert streamed.body.endswith(DONE)


def test_a_stream_is_cut_where_it_passes_the_limit(budgeted: Any, upstream: Upstream) -> None:
    frames = [chunk(event({"content": "word word "})) for _ in range(200)]
    paced = [step for frame in frames for step in (frame, 0.002)]
    upstream.play([CHUNKED, *paced, chunk(event({}, "stop")), chunk(DONE), END])
    with budgeted("{name: t, scope: session, tokens: 100, on_exceed: cut}") as talk:
        answer = talk.ask(stream=True)
        assert 90 <= talk.spent("tokens") <= 150
    assert answer.body.endswith(DONE)
    documents = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith(b"data: {")]
    assert documents[-1]["choices"][0]["finish_reason"] == "length"
    assert len(documents) < 60


def test_a_shadow_budget_counts_and_refuses_nothing(budgeted: Any, upstream: Upstream, tmp_path: Path) -> None:
    upstream.play([whole(usage=used(5, 5))])
    log = tmp_path / "log"
    rule = "{name: one, scope: session, calls: 1, mode: shadow}"
    with budgeted(rule, more=f'telemetry: {{log: "{log}"}}\n') as talk:
        assert [talk.ask().status for _ in range(3)] == [200] * 3
        assert talk.spent("calls") == 3
        wait_for(lambda: log.exists() and log.read_text().count('"outcome"') == 3)
    said = [json.loads(line) for line in log.read_text().splitlines()]
    decisions = [line.get("decisions", []) for line in said if "outcome" in line]
    assert [line["mode"] for line in said if line.get("event") == "budget_exhausted"] == ["shadow"]
    assert [[one["mode"] for one in each] for each in decisions] == [[], ["shadow"], ["shadow"]]


# --- whose it is ---


def test_what_a_caller_may_freely_set_gives_no_new_budget(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    tenants = 'tenants: [{name: a, keys: ["sha256:%s"]}, {name: b, keys: ["sha256:%s"]}]\n'
    hashes = (
        "4c0e0b7f3d6b5d8f0e3a6d3f9b1f6e0a0d9d1b5f3e7c2a9b8c7d6e5f4a3b2c1d",
        "5c0e0b7f3d6b5d8f0e3a6d3f9b1f6e0a0d9d1b5f3e7c2a9b8c7d6e5f4a3b2c1d",
    )
    import hashlib

    hashes = tuple(hashlib.sha256(key).hexdigest() for key in (b"pk-a", b"pk-b"))  # type: ignore[assignment]
    with budgeted("{name: two, scope: tenant, calls: 2}", more=tenants % hashes) as talk:
        statuses = [
            talk.ask((b"authorization", b"Bearer pk-a"), (b"x-tenant-id", b"t%d" % at), user=f"u{at}").status
            for at in range(3)
        ]
        assert statuses == [200, 200, 429]
        assert talk.ask((b"authorization", b"Bearer pk-b")).status == 200
        assert {row.account: row.spent for row in talk.rows} == {"two/a": 2, "two/b": 1}


def test_a_run_is_told_from_how_it_begins(budgeted: Any, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    first = [{"role": "user", "content": "one"}]
    more = [*first, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "more"}]
    other = [{"role": "user", "content": "two"}]
    with budgeted("{name: two, scope: run, calls: 2}") as talk:
        none = (b"x-none", b"1")
        statuses = [talk.ask(none, messages=messages).status for messages in (first, more, other, more)]
    assert statuses == [200, 200, 200, 429]


def test_spending_survives_a_restart(budgeted: Any, upstream: Upstream, tmp_path: Path) -> None:
    upstream.play([whole(usage=used(5, 5))])
    store = f'store: "sqlite:///{tmp_path}/ledger.db"\n'
    rule = "{name: two, scope: tenant, calls: 2}"
    with budgeted(rule, more=store) as talk:
        assert talk.ask().status == 200
    with budgeted(rule, more=store) as talk:
        assert [talk.ask().status for _ in range(2)] == [200, 429]


def test_other_endpoints_count_as_well(budgeted: Any, upstream: Upstream) -> None:
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    upstream.play([reply(json.dumps({"data": [], "usage": usage}).encode(), b"200 OK", JSON)])
    with budgeted("{name: t, scope: tenant, calls: 2, tokens: 1000}") as talk:
        assert talk.ask(path=b"/v1/embeddings", input="x").status == 200
        assert talk.spent("tokens") == 7
        assert talk.spent("calls") == 1


# --- several attempts ---


@pytest.mark.parametrize(
    ("first", "spent"),
    [
        ([reply(b'{"error": {"message": "no"}}', b"500 Oops", JSON)], {"calls": 1, "tokens": 0}),
        # It may have been read and answered: its prompt counts.
        ([1.0, FIN], {"calls": 1, "tokens": 7}),
    ],
    ids=["answered", "silent"],
)
def test_a_call_that_one_attempt_has_sent_counts_though_the_next_reaches_nobody(
    pair: Start, first: list[Any], spent: dict[str, int]
) -> None:
    with Upstream() as gone:
        pass
    with pair(PLANS["both"], BUDGET, models="m: [b/n, a/m]", a_url=gone.url) as talk:
        talk.b.play(first)
        assert talk.ask().status in (500, 502, 504)
        assert talk.charged == spent
