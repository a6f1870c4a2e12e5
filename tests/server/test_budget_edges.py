"""Budgets where they are easily passed by: sibling endpoints, uploads, made-up headers, streams that break off."""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from .talk import request, sidecar, wait_for
from .test_budgets import PRICES, Ledgered, used, whole
from .under import JSON
from .upstream import CHUNKED, END, Upstream, chunk, reply

RESPONSES, EMBEDDINGS, MESSAGES = b"/v1/responses", b"/v1/embeddings", b"/v1/messages"
ONCE = "{name: once, scope: tenant, calls: 1}"
FINISH = "{name: once, scope: tenant, calls: 1, on_exceed: finish}"
NUMBERS = reply(b'{"data": [], "usage": {"prompt_tokens": 3, "total_tokens": 3}}', b"200 OK", JSON)

Start = Callable[..., AbstractContextManager[Ledgered]]


@pytest.fixture
def under_budgets(upstream: Upstream, tmp_path: Path) -> Start:
    @contextmanager
    def start(*budgets: str, more: str = "") -> Iterator[Ledgered]:
        policy = f'version: 1\nproviders: {{p: {{base_url: "{upstream.url}/v1"}}}}\n'
        policy += f'budgets: [{", ".join(budgets)}]\ntelemetry: {{log: "{tmp_path}/log"}}\n{more}'
        upstream.requests.clear()
        with sidecar(policy=policy, folder=tmp_path) as running:
            yield Ledgered(running, upstream)

    return start


def code(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


def events(log: Path, name: str) -> list[dict[str, Any]]:
    said = map(json.loads, log.read_text().splitlines())
    return [line for line in said if line.get("event") == name]


# --- nothing is passed by ---


def test_where_nothing_can_be_answered_finish_refuses(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([NUMBERS])
    with under_budgets(FINISH) as talk:
        assert talk.ask(path=EMBEDDINGS, input="x").status == 200
        answer = talk.ask(path=EMBEDDINGS, input="x")
        assert len(upstream.requests) == 1
    assert (answer.status, code(answer.body)) == (429, "budget_exceeded")
    assert answer.header(b"x-should-retry") == b"false"


@pytest.mark.parametrize("budget", [ONCE, FINISH])
def test_uploads_count(under_budgets: Start, upstream: Upstream, budget: str) -> None:
    form = (b"content-type", b"multipart/form-data; boundary=b")
    body = b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b--\r\n'
    upstream.play([reply(b'{"text": "hi"}', b"200 OK", JSON)])
    with under_budgets(budget.replace("}", ", models: [whisper*]}")) as talk:
        send = request(b"POST", b"/v1/audio/transcriptions", body, form)
        assert [talk.running.ask(send).status for _ in range(2)] == [200, 429]
        assert len(upstream.requests) == 1
        assert talk.reserved() == 0


def test_an_endpoint_that_nobody_knows_counts(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([reply(b'{"any": 1}', b"200 OK", JSON)])
    with under_budgets(ONCE) as talk:
        statuses = [talk.running.ask(request(b"POST", b"/v1/rerank", b'{"q": "x"}', JSON)).status for _ in range(2)]
        assert statuses == [200, 429]
        assert upstream.requests[0].body == b'{"q": "x"}'


def test_what_calls_no_model_is_free(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([reply(b'{"id": "resp_1"}', b"200 OK", JSON)])
    with under_budgets('{name: c, scope: tenant, calls: 0, cost: "0"}', more=PRICES) as talk:
        for path in (b"/v1/responses/resp_1", b"/v1/models", b"/v1/files"):
            assert talk.running.ask(request(b"GET", path)).status == 200
        assert talk.rows == []


def test_a_request_without_a_model_has_no_price(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([reply(b"{}", b"200 OK", JSON)])
    with under_budgets('{name: c, scope: tenant, cost: "1"}', more=PRICES) as talk:
        answer = talk.running.ask(request(b"POST", b"/v1/batches", b'{"input_file_id": "f"}', JSON))
        assert (answer.status, code(answer.body)) == (422, "model_unpriced")
        assert not upstream.requests


def test_absurd_wishes_are_cut(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with under_budgets('{name: t, scope: tenant, tokens: 100000, cost: "1"}', more=PRICES) as talk:
        assert talk.ask(max_tokens=10**12, n=10**12).status == 200
        assert talk.spent("tokens") == 10


def test_a_header_that_anybody_may_set_is_no_new_key(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    key = hashlib.sha256(b"pk").hexdigest()
    tenants = f'tenants: [{{name: a, keys: ["sha256:{key}"]}}]\n'
    with under_budgets("{name: k, scope: key, calls: 2}", more=tenants) as talk:
        ours = (b"authorization", b"Bearer pk")
        others = [(b"x-sidecar-key", b"made up"), (b"x-api-key", b"made up"), (b"api-key", b"made up")]
        assert [talk.ask(ours, other).status for other in others] == [200, 200, 429]
        assert talk.ask((b"x-sidecar-key", b"pk")).status == 429


# --- what the client is told ---


def test_the_providers_limits_do_not_stand_beside_ours(under_budgets: Start, upstream: Upstream) -> None:
    theirs = [(b"x-ratelimit-limit-requests", b"9999"), (b"x-ratelimit-limit-tokens", b"8888")]
    upstream.play([reply(b'{"choices": []}', b"200 OK", JSON, *theirs)])
    with under_budgets("{name: rate, scope: tenant, requests_per_minute: 5}") as talk:
        answer = talk.ask()
        shown = [header for header in answer.headers if header[0].startswith(b"x-ratelimit-limit")]
        assert sorted(shown) == [(b"x-ratelimit-limit-requests", b"5"), (b"x-ratelimit-limit-tokens", b"8888")]
        upstream.play([CHUNKED, chunk(b"data: [DONE]\n\n"), END])
        assert talk.ask(stream=True).header(b"x-ratelimit-remaining-requests") == b"3"


def test_a_refusal_says_how_much_is_left_and_when_it_opens(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([whole(usage=used(5, 5))])
    with under_budgets("{name: rate, scope: tenant, requests_per_minute: 1}") as talk:
        talk.ask()
        answer = talk.ask()
    assert answer.status == 429
    assert answer.header(b"x-ratelimit-limit-requests") == b"1"
    assert answer.header(b"x-ratelimit-remaining-requests") == b"0"
    reset = (answer.header(b"x-ratelimit-reset-requests") or b"").decode()
    assert reset in (f"{int(answer.header(b'retry-after') or 0)}s", "1m0s")


def test_what_running_calls_hold_may_come_back(under_budgets: Start, upstream: Upstream) -> None:
    upstream.play([0.4, whole(usage=used(5, 5))])
    with under_budgets("{name: t, scope: session, tokens: 1000}") as talk, ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(lambda _: talk.ask(), range(2)), key=lambda answer: answer.status)
        assert [answer.status for answer in answers] == [200, 429]
        assert answers[1].header(b"retry-after") == b"1"
        assert answers[1].header(b"x-should-retry") is None
        assert talk.ask().status == 200


def test_a_warning_is_told_once(under_budgets: Start, upstream: Upstream, tmp_path: Path) -> None:
    upstream.play([whole(usage=used(30, 30))])
    with under_budgets("{name: t, scope: session, tokens: 100, warn_at: 0.5}") as talk:
        answers = [talk.ask(max_tokens=5) for _ in range(4)]
        wait_for(lambda: (tmp_path / "log").read_text().count('"outcome"') == 4)
    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert [b"t=flag" in (answer.header(b"x-sidecar-decisions") or b"") for answer in answers[:2]] == [
        False,
        True,
    ]
    (warning,) = events(tmp_path / "log", "budget_warning")
    assert (warning["budget"], warning["unit"], warning["at"], warning["tenant"]) == ("t", "tokens", 50, "default")
    assert len(events(tmp_path / "log", "budget_exhausted")) == 1


# --- streams ---


def test_what_was_said_counts_when_a_report_came_too_early(under_budgets: Start, upstream: Upstream) -> None:
    begins = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}, "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word " * 400}}
    frames = [b"event: %b\ndata: %b\n\n" % (d["type"].encode(), json.dumps(d).encode()) for d in (begins, block, said)]  # type: ignore[attr-defined]
    upstream.play([CHUNKED, *map(chunk, frames), 5.0, END])
    with under_budgets("{name: t, scope: session, tokens: 10000}") as talk:
        body = json.dumps({"model": "m", "max_tokens": 900, "messages": [], "stream": True}).encode()
        with talk.running.connect() as client:
            client.send(request(b"POST", MESSAGES, body, JSON))
            client.until(b"word word")
            client.reset()
        wait_for(lambda: talk.reserved() == 0, 3)
        assert talk.spent("tokens") >= 400


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_that_goes_on_is_of_the_same_session(
    under_budgets: Start, upstream: Upstream, streamed: bool
) -> None:
    document = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
    if streamed:
        created, completed = (
            b"event: %b\ndata: %b\n\n"
            % (kind.encode(), json.dumps({"type": kind, "sequence_number": at, "response": document}).encode())
            for at, kind in enumerate(("response.created", "response.completed"))
        )
        upstream.play([CHUNKED, chunk(created), chunk(completed), END])
    else:
        upstream.play([reply(json.dumps(document).encode(), b"200 OK", JSON)])
    with under_budgets("{name: one, scope: session, calls: 1}") as talk:

        def ask(text: str, **more: Any) -> int:
            body = json.dumps({"model": "m", "input": text, "stream": streamed, **more}).encode()
            return talk.running.ask(request(b"POST", RESPONSES, body, JSON)).status

        assert ask("one") == 200
        assert ask("another, of a session of its own") == 200
        assert ask("and so on", previous_response_id="resp_1") == 429
