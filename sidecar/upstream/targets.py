"""Providers, the models at them, and where a request for them goes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes, urlsplit

from pydantic import AfterValidator, Field, model_validator

from ..config import Duration, Strict

Auth = Literal["bearer", "x-api-key", "api-key"]
Dialect = Literal["native", "chat"]
TokenLimit = Literal["max_tokens", "max_completion_tokens"]
Tools = Literal["native", "prompt", "hermes", "llama3", "mistral", "deepseek", "harmony"]
"""How tools are told to a model: by the API's own fields, or as text in one of these dialects."""
ReplyForm = Literal["json_schema", "json_object", "none"]
"""What a model's server can be asked for as the form of a reply."""

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
    api_keys: tuple[Annotated[str, Field(min_length=1, pattern=r"^[\x21-\x7e]+$")], ...] = Field(
        (),
        repr=False,
        description="Several keys in place of api_key, used in turn. One whose limits are used up is left out until "
        "they reopen, under `resilience`.",
    )
    auth: Auth = Field("bearer", description="The header that carries api_key.")
    responses: Dialect = Field(
        "native",
        description="How Responses requests are served there: by its own endpoint, or as chat completions.",
    )
    messages: Dialect = Field(
        "native",
        description="How Anthropic Messages requests are served there: by its own endpoint, or as chat completions.",
    )
    token_limit: TokenLimit = Field(
        "max_tokens",
        description="The field of a chat completion in which the provider takes the most tokens of a reply, for "
        "requests of other APIs. OpenAI's reasoning models want max_completion_tokens, most other servers max_tokens.",
    )
    tools: Tools = Field(
        "native",
        description="How models there are told of tools: by the API's own fields, or as text and read back from it, "
        "for models and servers that know no tools. `prompt` fits any model; the others are what models of that "
        "family were trained on. Other than native, Responses and Messages requests are served as chat completions.",
    )
    response_format: ReplyForm = Field(
        "json_schema",
        description="What the server takes as the form of a reply: a JSON Schema, any JSON object, or nothing. What "
        "it does not take is said to the model in words.",
    )
    timeouts: TimeoutsConfig = Field(TimeoutsConfig(), description="Limits on time.")

    @model_validator(mode="after")
    def _one_or_several(self) -> "ProviderConfig":
        if self.api_key is not None and self.api_keys:
            raise ValueError("expected `api_key` or `api_keys`, not both")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The provider's own keys."""
        return self.api_keys if self.api_key is None else (self.api_key,)

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
    responses: Dialect = "native"
    messages: Dialect = "native"
    token_limit: TokenLimit = "max_tokens"  # noqa: S105 -- no password
    more_keys: tuple[str, ...] = field(default=(), repr=False)
    # How a model is spoken to changes nothing about the connection.
    tools: Tools = field(default="native", compare=False)
    response_format: ReplyForm = field(default="json_schema", compare=False)
    url: BaseUrl = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", split_base_url(self.base_url))

    @classmethod
    def of(cls, name: str, config: ProviderConfig) -> "Provider":
        times: dict[str, Any] = config.timeouts.model_dump()
        return cls(
            name,
            config.base_url,
            next(iter(config.keys), None),
            config.auth,
            Timeouts(**times),
            config.responses,
            config.messages,
            config.token_limit,
            config.keys[1:],
            config.tools,
            config.response_format,
        )

    def keyed(self) -> "tuple[Provider, ...]":
        """The provider with each of its keys alone, or as it is where it has none. All have its name."""
        keys = (self.api_key, *self.more_keys)
        return tuple(replace(self, api_key=key, more_keys=()) for key in keys) if self.more_keys else (self,)

    def served_as(self, api: str) -> Dialect:
        """How requests of an API are served here."""
        match api:
            case "responses":
                return self.responses if self.tools == "native" else "chat"
            case "messages" | "count_tokens":
                return self.messages if self.tools == "native" else "chat"
            case _:
                return "native"


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
