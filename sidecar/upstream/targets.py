"""Providers, the models at them, and where a request for them goes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes, urlsplit

from pydantic import AfterValidator, Field

from ..config import Duration, Strict

Auth = Literal["bearer", "x-api-key", "api-key"]

DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}


def split_base_url(text: str) -> "BaseUrl":
    """Reads a provider's base URL. Raises ValueError that says what is wrong, without repeating credentials."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"expected a URL such as https://api.openai.com/v1: {error}") from None
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise ValueError("expected an http or https URL with a host, such as https://api.openai.com/v1")
    if parts.fragment or not text.isascii() or any(c <= " " or c == "\x7f" for c in text):
        raise ValueError("expected a URL without fragment, spaces and non-ASCII characters")
    user = parts.netloc.rpartition("@")[0]
    return BaseUrl(
        scheme=parts.scheme,
        host=host,
        port=port or DEFAULT_PORTS[parts.scheme],
        path=parts.path.rstrip("/"),
        userinfo=unquote_to_bytes(user) if user else b"",
    )


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL in its parts. `path` has no trailing slash; `userinfo` is a secret."""

    scheme: str
    host: str
    port: int
    path: str
    userinfo: bytes = field(default=b"", repr=False)

    @property
    def authority(self) -> str:
        """What `Host` says: the port only where it is not the scheme's own, IPv6 in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        """For people: without credentials and query."""
        return f"{self.origin}{self.path}"


def _checked_base_url(text: str) -> str:
    split_base_url(text)
    return text


class TimeoutsConfig(Strict):
    """How long each phase of an upstream request may take."""

    connect: Duration = Field(default=5.0, description="Until the connection stands, TLS included.")
    first_byte: Duration = Field(default=600.0, description="From the sent request to the first byte of the reply.")
    idle: Duration = Field(default=300.0, description="Between two pieces of a reply.")
    total: Duration = Field(default=3600.0, description="For the whole exchange.")


class ProviderConfig(Strict):
    """Where a provider is and how the sidecar presents itself there."""

    base_url: Annotated[str, AfterValidator(_checked_base_url)] = Field(
        description="The API's base, for example https://api.openai.com/v1."
    )
    api_key: str | None = Field(
        None,
        min_length=1,
        pattern=r"^[\x21-\x7e]+$",
        repr=False,
        description="The key sent to the provider in place of the client's. Absent: the client's own goes through.",
    )
    auth: Auth = Field("bearer", description="The header that carries api_key.")
    timeouts: TimeoutsConfig = Field(TimeoutsConfig(), description="Limits on time.")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The base URL is shown without its credentials and query."""
        for name, value in super().__repr_args__():
            yield name, str(split_base_url(value)) if name == "base_url" else value


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for each phase: to connect, to the reply's first byte, between two pieces, for everything."""

    connect: float = 5.0
    first_byte: float = 600.0
    idle: float = 300.0
    total: float = 3600.0


@dataclass(frozen=True, slots=True)
class Provider:
    """A place that serves models. Equal providers may share connections."""

    name: str
    base_url: str = field(repr=False)
    api_key: str | None = field(default=None, repr=False)
    auth: Auth = "bearer"
    timeouts: Timeouts = Timeouts()
    url: BaseUrl = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", split_base_url(self.base_url))

    @classmethod
    def of(cls, name: str, config: ProviderConfig) -> "Provider":
        times: dict[str, Any] = config.timeouts.model_dump()
        return cls(name, config.base_url, config.api_key, config.auth, Timeouts(**times))


@dataclass(frozen=True, slots=True)
class Target:
    """One model at one provider. An empty model means: the name the client asked for."""

    provider: Provider
    model: str

    def __str__(self) -> str:
        return f"{self.provider.name}/{self.model}"


def join(url: BaseUrl, raw_path: bytes, query: bytes = b"") -> bytes:
    """The request target at the provider for a client's path and query (with its `?`), both kept byte by byte.

    A base with a path stands for the client's `/v1`: one leading `/v1` gives way to it. A base without a path
    leaves the client's path as it is, and so does the `*` of OPTIONS.
    """
    if url.path and raw_path != b"*":
        rest = raw_path[3:] if raw_path.startswith(b"/v1/") or raw_path == b"/v1" else raw_path
        raw_path = url.path.encode("ascii") + rest
    return raw_path + query
