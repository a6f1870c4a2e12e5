"""Where a request goes: base URLs, path rule, model names."""

import pytest
from pydantic import ValidationError

from sidecar.errors import ModelNotFound
from sidecar.upstream.routing import Routes
from sidecar.upstream.targets import Provider, ProviderConfig, Target, join, split_base_url


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("http://u/v1", "/v1/files?purpose=batch&limit=2&after=a%2Fb", "/v1/files?purpose=batch&limit=2&after=a%2Fb"),
        ("http://u/v1/", "/v1/files?purpose=batch&limit=2&after=a%2Fb", "/v1/files?purpose=batch&limit=2&after=a%2Fb"),
        ("http://u/api/openai/v1", "/v1/files?after=a%2Fb", "/api/openai/v1/files?after=a%2Fb"),
        ("http://u/v1beta/openai/", "/v1/files?after=a%2Fb", "/v1beta/openai/files?after=a%2Fb"),
        ("http://u", "/v1/files", "/v1/files"),
        ("http://u/", "/v1/files", "/v1/files"),
        ("http://u/v1", "/files", "/v1/files"),
        ("http://u/v1", "/v1", "/v1"),
        ("http://u/v1", "/v1/", "/v1/"),
        ("http://u/v1", "/v1/v1/x", "/v1/v1/x"),
        ("http://u/v1", "/v1beta/x", "/v1/v1beta/x"),
        ("http://u/v1", "/v1//x/../y%2e", "/v1//x/../y%2e"),
        ("http://u/v1", "/v1/x?", "/v1/x?"),
        ("http://u/v1", "*", "*"),
        ("http://u/a%20b", "/v1/x", "/a%20b/x"),
    ],
)
def test_join(base: str, path: str, target: str):
    raw, mark, query = path.encode().partition(b"?")
    assert join(split_base_url(base), raw, mark + query) == target.encode()


@pytest.mark.parametrize(
    ("base", "authority"),
    [
        ("http://u", "u"),
        ("http://u:80/v1", "u"),
        ("https://u:443", "u"),
        ("https://u:80", "u:80"),
        ("http://[::1]:8000/v1", "[::1]:8000"),
        ("http://[fd00::1]", "[fd00::1]"),
        ("http://User:p%40ss@Host.Example/v1", "host.example"),
    ],
)
def test_authority(base: str, authority: str):
    assert split_base_url(base).authority == authority


@pytest.mark.parametrize(
    "base",
    [
        "",
        "u/v1",
        "ftp://u",
        "http://",
        "http:///v1",
        "http://u:port",
        "http://u/#x",
        "http://u/ x",
        "http://ü",
        "http://[::1",
    ],
)
def test_what_is_no_base_url_is_told_without_being_repeated(base: str):
    with pytest.raises(ValueError, match="expected"):
        split_base_url(base)


def test_nothing_secret_is_shown():
    config = ProviderConfig(base_url="https://user:pw-1@u/v1?key=qk-2", api_key="sk-3")
    provider = Provider.of("p", config)
    shown = f"{config!r} {provider!r} {provider.url} {Target(provider, 'm')!r}"
    assert not any(secret in shown for secret in ("pw-1", "qk-2", "sk-3"))
    with pytest.raises(ValidationError) as error:
        ProviderConfig(base_url="https://user:pw-1@u:port/v1", api_key="sk 3")
    assert not any(secret in str(error.value) for secret in ("pw-1", "sk 3"))


ONE, TWO = Provider("one", "http://one/v1"), Provider("two", "http://two/v1")


def test_a_single_provider_takes_every_name_as_it_is():
    routes = Routes({"one": ONE}, {})
    assert not routes.by_model
    assert routes.resolve("one/gpt") == Target(ONE, "one/gpt")


def test_several_providers_without_a_list():
    routes = Routes({"one": ONE, "two": TWO}, {})
    assert routes.resolve("gpt") == Target(ONE, "gpt")
    assert routes.resolve("two/gpt/5") == Target(TWO, "gpt/5")
    assert routes.resolve("three/gpt") == Target(ONE, "three/gpt")


def test_listed_models():
    routes = Routes(
        {"one": ONE, "two": TWO}, {"smart": (Target(TWO, "gpt-5"), Target(ONE, "old")), "two/gpt": (Target(ONE, "x"),)}
    )
    assert routes.resolve("smart") == Target(TWO, "gpt-5")
    assert routes.resolve("two/gpt") == Target(ONE, "x")
    assert routes.resolve("one/anything") == Target(ONE, "anything")
    with pytest.raises(ModelNotFound, match=r"Did you mean smart\?"):
        routes.resolve("smarr")
    with pytest.raises(ModelNotFound, match="Available: smart, two/gpt"):
        routes.resolve("zzz")
