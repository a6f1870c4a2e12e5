"""Keys and credentials stay where they belong, also when everything goes wrong."""

import subprocess
from pathlib import Path

import pytest

from tests.running import Process, clean_env, free_port, sidecar, wait_for

from .client import ask
from .conftest import Sidecars
from .policy import setup
from .test_cases import lines
from .upstream import Upstream

CHAT = {
    "method": "POST",
    "path": "/v1/chat/completions",
    "headers": {"authorization": "Bearer ck-client-3"},
    "json": {"model": "m1", "messages": [{"role": "user", "content": "hi"}]},
}
AUTH = [{"action": "auth", "proxy_key": "pk-local-1", "upstream_key_env": "UP_KEY=uk-remote-2"}]


def test_credentials_in_url(provider: Upstream, tmp_path: Path) -> None:
    """Such a URL is refused when it is read, from the file or the command line, and not quoted."""
    base = provider.origin.replace("//", "//user-7:pass-8@") + "/v1?key=qk-9"
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nproviders: {{main: {{base_url: '{base}'}}}}\n")
    for options in (("--policy", str(policy)), ("--upstream", base)):
        command = sidecar("serve", *options, "--port", str(free_port()))
        done = subprocess.run(command, capture_output=True, timeout=15, env=clean_env(), check=False)
        said = (done.stdout + done.stderr).decode()
        assert done.returncode != 0
        assert "base URL" in said
        assert [secret for secret in ("pass-8", "qk-9") if secret in said] == []


def test_a_dead_provider_is_told_without_keys(guarded: Process, provider: Upstream) -> None:
    provider.play([{"close": "rst"}])
    before = len(guarded.said())
    reply = ask(guarded.url, {**CHAT, "headers": {"authorization": "Bearer pk-local-1", "api-key": "ak-4"}})
    assert reply.status == 502
    assert wait_for(lambda: bool(lines(guarded.said()[before:])), 2)
    for text in (reply.everything, guarded.said()):
        assert [key for key in ("uk-remote-2", "pk-local-1", "ak-4") if key in text] == []


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_own_endpoints(path: str, sidecars: Sidecars, provider: Upstream) -> None:
    wanted = setup(AUTH, f"{provider.origin}/v1")
    reply = ask(sidecars.get(wanted.policy, env=wanted.env).url, {"method": "GET", "path": path})
    assert "uk-remote-2" not in reply.everything
    assert "pk-local-1" not in reply.everything


@pytest.fixture
def guarded(sidecars: Sidecars, provider: Upstream) -> Process:
    wanted = setup(AUTH, f"{provider.origin}/v1")
    return sidecars.get(wanted.policy, env=wanted.env)


def test_without_a_key_nothing_is_sent(guarded: Process, provider: Upstream) -> None:
    reply = ask(guarded.url, CHAT)
    assert reply.status == 401
    assert reply.json["error"]["code"] == "unauthorized"
    assert provider.requests == []


@pytest.mark.parametrize("header", ["x-api-key", "api-key", "x-sidecar-key"])
def test_the_key_is_taken_from_any_header_and_never_forwarded(
    header: str, guarded: Process, provider: Upstream
) -> None:
    provider.play([{"status": 200, "json": {"choices": []}}])
    reply = ask(guarded.url, {**CHAT, "headers": {header: "pk-local-1"}})
    assert reply.status == 200
    assert "pk-local-1" not in provider.requests[0].everything
    assert provider.requests[0].header("authorization") == "Bearer uk-remote-2"


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_the_providers_key_never_comes_down(stream: bool, guarded: Process, provider: Upstream) -> None:
    echo = "Incorrect API key provided: uk-remote-2."
    steps = [{"send": f'data: {{"error": {{"message": "{echo}"}}}}\n\n'}, {"send": "data: [DONE]\n\n"}]
    whole = {"status": 401, "headers": {"x-echo": echo}, "json": {"error": {"message": echo}}}
    provider.play([{"status": 200, "steps": steps} if stream else whole])
    document = {**CHAT["json"], "stream": stream}  # type: ignore[dict-item]
    reply = ask(guarded.url, {**CHAT, "headers": {"api-key": "pk-local-1"}, "json": document})
    assert "Incorrect API key" in reply.text
    assert "uk-remote-2" not in reply.everything
