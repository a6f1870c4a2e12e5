"""The proxy variables, in the forms that people write."""

import pytest

from sidecar.upstream.proxies import proxy_for
from sidecar.upstream.targets import split_base_url


def proxied(base: str, **environ: str) -> tuple[str, list[str]]:
    warnings: list[str] = []
    proxy = proxy_for(split_base_url(base), environ, warnings.append)
    return (str(proxy) if proxy else "direct"), warnings


@pytest.mark.parametrize(
    ("base", "environ", "proxy"),
    [
        ("http://u", {}, "direct"),
        ("http://u", {"HTTP_PROXY": "http://p:3128"}, "p:3128"),
        ("http://u", {"http_proxy": "p:3128"}, "p:3128"),
        ("http://u", {"HTTPS_PROXY": "http://p:3128"}, "direct"),
        ("https://u", {"HTTPS_PROXY": "http://p"}, "p:80"),
        ("https://u", {"ALL_PROXY": "https://p"}, "p:443"),
        ("https://u", {"ALL_PROXY": "http://a:1", "https_proxy": "http://b:2", "HTTPS_PROXY": "http://c:3"}, "b:2"),
        ("https://u", {"HTTPS_PROXY": ""}, "direct"),
    ],
)
def test_which_proxy(base: str, environ: dict[str, str], proxy: str):
    assert proxied(base, **environ) == (proxy, [])


@pytest.mark.parametrize(
    ("base", "no_proxy", "direct"),
    [
        ("http://api.corp.test", "*", True),
        ("http://api.corp.test", "corp.test", True),
        ("http://api.corp.test", ".corp.test", True),
        ("http://api.corp.test", "*.corp.test", True),
        ("http://api.corp.test", "API.Corp.TEST", True),
        ("http://mycorp.test", "corp.test", False),
        ("http://api.corp.test", "other.test, corp.test", True),
        ("http://api.corp.test", "other.test corp.test", True),
        ("http://api.corp.test:8080", "corp.test:8080", True),
        ("http://api.corp.test:8080", "corp.test:80", False),
        ("http://api.corp.test", "corp.test:80", True),
        ("http://127.0.0.1:99", "127.0.0.1", True),
        ("http://127.0.0.1:99", "127.0.0.0/8", True),
        ("http://10.1.2.3", "10.0.0.0/16", False),
        ("http://[::1]:99", "::1", True),
        ("http://[::1]:99", "[::1]", True),
        ("http://[::1]:99", "[::1]:99", True),
        ("http://[::1]:99", "[::1]:98", False),
        ("http://[::1]:99", "::1/128", True),
        ("http://[::1]:99", "0:0:0:0:0:0:0:1", True),
        ("http://[fd00::5]", "fd00::/8", True),
        ("http://[fd00::5]", "[fd00::]/8", True),
        ("http://[fe80::5]", "fd00::/8", False),
        ("http://10.1.2.3", "fd00::/8", False),
        ("http://u", "", False),
        ("http://u", " , ,", False),
    ],
)
def test_exceptions(base: str, no_proxy: str, direct: bool):
    assert proxied(base, HTTP_PROXY="http://p:1", NO_PROXY=no_proxy) == ("direct" if direct else "p:1", [])


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "a:b:c]", "user@host"])
def test_an_exception_that_cannot_be_read_is_warned_of_and_skipped(entry: str):
    found, warnings = proxied("http://u", HTTP_PROXY="http://p:1", NO_PROXY=f"{entry},u")
    assert found == "direct"
    assert len(warnings) == 1
    assert "is ignored" in warnings[0]


@pytest.mark.parametrize("value", ["socks5://user:pw-1@p:1", "http://p:port", "http://user:pw-1@:1"])
def test_a_proxy_that_cannot_be_used_is_warned_of_without_its_credentials(value: str):
    found, warnings = proxied("http://u", HTTP_PROXY=value)
    assert found == "direct"
    assert len(warnings) == 1
    assert "pw-1" not in warnings[0]


def test_credentials_of_a_proxy_are_used_and_never_shown():
    proxy = proxy_for(split_base_url("http://u"), {"HTTP_PROXY": "http://me:p%40ss@p:1"}, print)
    assert proxy is not None
    assert proxy.authorization == b"Basic bWU6cEBzcw=="
    assert "bWU6" not in repr(proxy)
    assert "ss@" not in f"{proxy!r} {proxy}"
