"""The process: start, health, reload, log, drain, workers."""

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from sidecar.server.serve import bind, serve
from tests.running import serve as started

from .talk import Sidecar, request, sidecar, wait_for
from .upstream import CHUNKED, END, Upstream, chunk, reply

POLICY = """
version: 1
providers: {{main: {{base_url: "{url}/v1"}}}}
server: {{max_upload: {upload}}}
telemetry: {{log: "{log}"}}
"""


def policy(upstream: Upstream, upload: str = "1MB", log: object = "off") -> str:
    return POLICY.format(url=upstream.url, upload=upload, log=log)


def health(running: Sidecar) -> dict[str, object]:
    fields: dict[str, object] = json.loads(running.ask(request(b"GET", b"/healthz")).body)
    return fields


def test_health_says_what_is_in_force_and_nothing_secret(tmp_path: Path):
    text = 'version: 1\nproviders: {p: {base_url: "https://127.0.0.1:9/v1", api_key: sk-3}}\n'
    with sidecar(policy=text, folder=tmp_path) as running:
        fields = health(running)
        assert fields["status"] == "ok"
        assert fields["policy"] == running.runtime.now.snapshot.digest
        assert running.ask(request(b"GET", b"/readyz")).status == 200
        running.runtime.draining = True
        assert running.ask(request(b"GET", b"/readyz")).status == 503
    assert "sk-3" not in json.dumps(fields)


def test_a_new_policy_is_taken_up_and_a_broken_one_is_not(
    upstream: Upstream, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    file = tmp_path / "policy.yaml"
    with sidecar(policy=policy(upstream), folder=tmp_path) as running:
        first = health(running)["policy"]
        file.write_text("version: 1\nprovidrs: {}\n")
        wait_for(lambda: "policy_fault" in health(running))
        assert "providrs" in str(health(running)["policy_fault"])
        assert health(running)["policy"] == first
        time.sleep(1.5)
        assert capfd.readouterr().err.count('"policy_refused"') == 1

        file.unlink()
        wait_for(lambda: "cannot be read" in str(health(running)["policy_fault"]))
        file.write_text("")
        wait_for(lambda: "empty" in str(health(running)["policy_fault"]))
        assert health(running)["policy"] == first

        new = tmp_path / "new"
        new.write_text(policy(upstream, upload="10kB"))
        new.replace(file)
        wait_for(lambda: health(running)["policy"] != first)
        assert "policy_fault" not in health(running)
        upstream.play(reply())
        assert running.ask(request(b"POST", b"/v1/x", b"x" * 20_000)).status == 413


def test_an_exchange_keeps_the_policy_it_began_with(upstream: Upstream, tmp_path: Path):
    """Also the connections of a provider that is there no more."""
    with Upstream() as other, sidecar(policy=policy(upstream), folder=tmp_path) as running, running.connect() as client:
        upstream.play([CHUNKED + chunk(b"old"), 2.0, chunk(b"end") + END])
        other.play(reply(b"new"))
        client.send(request())
        client.until(b"old")
        (tmp_path / "policy.yaml").write_text(policy(other))
        running.runtime.reload_soon()
        wait_for(lambda: running.ask(request()).body == b"new")
        client.until(b"end")
        client.until(END)
        wait_for(lambda: upstream.open == 0)


def test_a_provider_that_did_not_change_keeps_its_connections(upstream: Upstream, tmp_path: Path):
    upstream.play(reply())
    with sidecar(policy=policy(upstream), folder=tmp_path) as running:
        running.ask(request())
        digest = health(running)["policy"]
        (tmp_path / "policy.yaml").write_text(policy(upstream, upload="2MB"))
        wait_for(lambda: health(running)["policy"] != digest)
        running.ask(request())
    assert upstream.requests[0].connection == upstream.requests[1].connection


def lines(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_one_line_for_each_exchange_however_it_ends(upstream: Upstream, tmp_path: Path):
    log = tmp_path / "log.jsonl"
    headers = ((b"authorization", b"Bearer sk-secret-1"), (b"cookie", b"c=secret-2"))
    with sidecar(policy=policy(upstream, log=log), folder=tmp_path) as running:
        upstream.play(reply(b"secret-3"))
        running.ask(request(b"POST", b"/v1/files?key=secret-4", b"secret-5", *headers))
        upstream.play([CHUNKED + chunk(b"x"), 20.0])
        client = running.connect()
        client.send(request(b"GET", b"/v1/stream"))
        client.until(b"x\r\n")
        client.reset()
        wait_for(lambda: running.runtime.active == 0)
        upstream.play([CHUNKED + chunk(b"x"), 0.05, b"zz"])
        running.ask(request(b"GET", b"/v1/broken"))
        running.ask(request(b"POST", b"/v1/large", b"x" * 1_100_000))
    found = lines(log)
    assert [(line["path"], line["outcome"]) for line in found] == [
        ("/v1/files", "completed"),
        ("/v1/stream", "client_gone"),
        ("/v1/broken", "upstream_error"),
        ("/v1/large", "rejected"),
    ]
    assert "secret" not in log.read_text()
    first = found[0]
    assert first["status"] == 200
    assert first["method"] == "POST"
    assert first["tenant"] == "default"
    assert first["target"] == "main"
    assert first["attempts"] == 1
    assert (first["bytes_in"], first["bytes_out"]) == (8, 8)
    assert 0 < float(str(first["overhead_ms"])) <= float(str(first["total_ms"]))
    assert float(str(first["first_byte_ms"])) > 0
    assert found[3]["code"] == "payload_too_large"
    assert len({line["id"] for line in found}) == 4


def test_a_log_that_nobody_reads_holds_nothing_up(upstream: Upstream, tmp_path: Path):
    """A pipe that is full, and then one whose reader has gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    upstream.play(reply())
    with sidecar(policy=policy(upstream, log=pipe), folder=tmp_path) as running, running.connect() as client:
        for _ in range(400):
            client.send(request())
            assert client.answer().status == 200
        os.close(reader)
        time.sleep(0.1)
        client.send(request())
        assert client.answer().status == 200


def test_a_running_exchange_is_finished_before_the_process_ends(upstream: Upstream, tmp_path: Path):
    upstream.play([CHUNKED + chunk(b"first"), 1.0, chunk(b"last") + END])
    process = started(tmp_path / "out", upstream=upstream.url)
    port = int(process.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request())
        data = b""
        while b"first" not in data:
            data += client.recv(65536)
        process.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
        while more := client.recv(65536):
            data += more
    assert data.endswith(chunk(b"last") + END)
    assert process.process.wait(5) == 0


def test_what_does_not_finish_is_cut_off_after_the_drain_time(upstream: Upstream, tmp_path: Path):
    upstream.play([CHUNKED + chunk(b"first"), 60.0])
    file, log = tmp_path / "p.yaml", tmp_path / "log"
    file.write_text(policy(upstream, log=log).replace("max_upload: 1MB", "drain: 1s"))
    process = started(tmp_path / "out", policy=file)
    with socket.create_connection(("127.0.0.1", int(process.url.rpartition(":")[2]))) as client:
        client.sendall(request())
        data = b""
        while b"first" not in data:
            data += client.recv(65536)
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < 4
        assert client.recv(65536) == b""
    wait_for(lambda: bool(upstream.ended))
    assert [line["code"] for line in lines(log) if line.get("path") != "/readyz"] == ["shutdown"]
    assert "Traceback" not in process.said()


def test_workers_share_the_address_and_end_together(upstream: Upstream, tmp_path: Path):
    upstream.play(reply(b"hi"))
    process = started(tmp_path / "out", upstream=upstream.url, options=["--workers", "2"])
    port = int(process.url.rpartition(":")[2])
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(request())
            assert b"hi" in client.recv(65536)
    assert process.stop() == 0


def test_it_says_where_it_listens_and_where_to_and_nothing_secret(upstream: Upstream, tmp_path: Path):
    url = f"http://{upstream.authority}/v1"
    key = {"SIDECAR_PROVIDERS_DEFAULT_API_KEY": "sk-3"}
    process = started(tmp_path / "out", upstream=url, env=key)
    assert process.stop() == 0
    said = process.said()
    assert said.count("\n") == 1
    assert process.url in said
    assert url in said
    assert "sk-3" not in said


def test_sighup_loads_the_policy_again(upstream: Upstream, tmp_path: Path):
    file = tmp_path / "p.yaml"
    file.write_text(policy(upstream))
    process = started(tmp_path / "out", policy=file)
    process.process.send_signal(signal.SIGHUP)
    wait_for(lambda: '"policy_loaded"' in process.said())
    assert process.stop() == 0


def test_no_provider_and_a_bad_policy_are_told_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert serve() == 1
    assert "--upstream" in capsys.readouterr().err
    file = tmp_path / "p.yaml"
    file.write_text("version: 1\nprovidrs: {}\nguardrials: []\n")
    assert serve(file) == 1
    said = capsys.readouterr().err
    assert "providrs" in said
    assert "guardrials" in said


def test_an_address_in_use_is_told(capsys: pytest.CaptureFixture[str]):
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert serve(None, "http://127.0.0.1:9", "127.0.0.1", port) == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["::1", "[::1]", "localhost"])
def test_hosts_may_be_names_and_ipv6_addresses(host: str):
    with bind(host, 0) as listener:
        assert listener.getsockname()[0] in ("::1", "127.0.0.1")


def test_proxies_and_odd_exceptions_to_them_do_not_stop_the_start(upstream: Upstream, tmp_path: Path):
    environ = {"NO_PROXY": "localhost,[::1],::1/128,fd00::/8,127.0.0.1", "HTTP_PROXY": "http://127.0.0.1:9"}
    upstream.play(reply(b"direct"))
    with sidecar(upstream.url, **environ) as running:
        assert running.ask(request()).body == b"direct"


def test_a_proxy_is_used(upstream: Upstream):
    upstream.play(reply(b"by proxy"))
    with sidecar("http://provider.test/v1", HTTP_PROXY=f"http://me:pw@{upstream.authority}") as running:
        assert running.ask(request(b"GET", b"/v1/models?a=1")).body == b"by proxy"
    assert upstream.requests[0].target == b"http://provider.test/v1/models?a=1"
    assert upstream.requests[0].header(b"proxy-authorization") == b"Basic bWU6cHc="


def test_ten_connections_at_once(inert: Sidecar, upstream: Upstream):
    upstream.play([0.1, reply(b"x" * 1000)])
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda: answers.append(inert.ask(request()).body)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b"x" * 1000] * 10
