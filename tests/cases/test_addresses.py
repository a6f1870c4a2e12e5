"""Where requests go: base URLs, IPv6, and a machine's proxies."""

from collections.abc import Iterator

import pytest

from tests.running import free_port

from .catalogue import load
from .client import ask
from .conftest import Sidecars
from .policy import setup
from .upstream import Upstream

CHAT = {
    "method": "POST",
    "path": "/v1/chat/completions",
    "json": {"model": "m1", "messages": [{"role": "user", "content": "hi"}]},
}
OK = {"status": 200, "headers": {"content-type": "application/json"}, "json": {"ok": True}}
ROWS = load().get("G04", {"expect": {"upstream": {"table": []}}})["expect"]["upstream"]["table"]
NO_PATH = {"upstream_base": "http://u", "path": "/v1/files?purpose=batch&limit=2&after=a%2Fb"}


@pytest.mark.parametrize("row", [pytest.param(row, id=row["upstream_base"]) for row in [*ROWS, NO_PATH]])
@pytest.mark.parametrize("rules", ["inert", "guarded"])
def test_base_urls(row: dict[str, str], rules: str, sidecars: Sidecars, provider: Upstream) -> None:
    base = row["upstream_base"].replace("http://u", provider.origin)
    policy = setup(EMAIL if rules == "guarded" else [], base).policy
    sidecar = sidecars.get(policy, upstream=None if policy else base)
    provider.play([OK])
    reply = ask(sidecar.url, {"method": "GET", "path": "/v1/files?purpose=batch&limit=2&after=a%2Fb"})
    assert reply.status == 200
    assert [seen.target for seen in provider.requests] == [row["path"]]


EMAIL = [
    {
        "action": "redact",
        "rule": {"name": "email", "regex": r"\w+@\w+\.\w+", "replace": "[MASK]"},
        "on": ["prompt"],
    }
]
SPELLINGS = [
    "/v1/chat/completions",
    "/v1/chat/completions/",
    "/v1//chat/completions",
    "//v1/chat/completions",
    "/v1/chat/./completions",
    "/v1/x/../chat/completions",
    "/v1/chat%2Fcompletions",
    "/v1/%63hat/completions",
    "/v1/Chat/Completions",
    "/chat/completions",
    "/v1/chat/completions?api-version=1",
]


@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_the_path_slips_past_a_rule(path: str, sidecars: Sidecars, provider: Upstream) -> None:
    sidecar = sidecars.get(setup(EMAIL, f"{provider.origin}/v1").policy)
    provider.play([OK])
    message = {"role": "user", "content": "I am ana@example.com"}
    ask(sidecar.url, {**CHAT, "path": path, "json": {"model": "m1", "messages": [message]}})
    assert all(b"ana@example.com" not in seen.body for seen in provider.requests)


@pytest.fixture
def provider6() -> Iterator[Upstream]:
    try:
        provider = Upstream("::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    provider.play([OK])
    yield provider
    provider.close()


def test_ipv6(provider6: Upstream, sidecars: Sidecars) -> None:
    sidecar = sidecars.get(upstream=f"{provider6.origin}/v1")
    assert ask(sidecar.url, CHAT).json == {"ok": True}
    assert provider6.requests[0].header("host") == f"[::1]:{provider6.port}"


def test_odd_no_proxy(sidecars: Sidecars, provider: Upstream) -> None:
    env = {"NO_PROXY": "localhost,[::1],::1/128,fd00::/8", "HTTPS_PROXY": "http://127.0.0.1:9"}
    provider.play([OK])
    sidecar = sidecars.get(upstream=f"{provider.origin}/v1", env=env)
    assert ask(sidecar.url, CHAT).status == 200


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "127.0.0.0/8", "*"])
def test_no_proxy_wins(no_proxy: str, sidecars: Sidecars, provider: Upstream) -> None:
    env = {"HTTP_PROXY": f"http://127.0.0.1:{free_port()}", "NO_PROXY": no_proxy}
    provider.play([OK])
    sidecar = sidecars.get(upstream=f"{provider.origin}/v1", env=env)
    assert ask(sidecar.url, CHAT).status == 200


def test_the_proxy_of_the_environment_is_used(sidecars: Sidecars, provider: Upstream) -> None:
    provider.play([OK])
    sidecar = sidecars.get(upstream="http://provider.invalid/v1", env={"HTTP_PROXY": provider.origin})
    assert ask(sidecar.url, CHAT).status == 200
    assert provider.requests[0].target == "http://provider.invalid/v1/chat/completions"
    assert provider.requests[0].header("host") == "provider.invalid"
