"""Where the provider speaks another API than the client: which bridge stands between them, and its frames."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from ..errors import InvalidRequest, UpstreamBroken
from ..policy.schema import Policy
from ..upstream.targets import Provider
from ..wire import chat, jsondoc, messages, sse
from ..wire.bridges import Bridge
from ..wire.forms import spoken
from ..wire.stream import Document
from ..wire.toolcalls import bridge as toolcalls
from ..wire.toolcalls.render import DEFAULTS, Limits, concerned
from ..wire.views import view_of
from .endpoints import Endpoint
from .headers import Headers

EventOf = Callable[[Document], bytes | None]


def bridge_for(endpoint: Endpoint, provider: Provider, document: Document, policy: Policy) -> Bridge | None:
    """What stands between a client of this API and the provider. Raises InvalidRequest where nothing can."""
    client = _across(endpoint, provider, document)
    return client if provider.tools == "native" else _told_of_tools(endpoint, provider, document, client, policy)


def _told_of_tools(
    endpoint: Endpoint, provider: Provider, document: Document, client: Bridge | None, policy: Policy
) -> Bridge | None:
    """The same at a target that is told of tools as text, where anything has to be told."""
    if client is None and endpoint.wire is not chat:
        if document.get("tools"):
            raise InvalidRequest(_NOT_HERE, param="tools")
        return None
    request = document if client is None else client.request()
    if not concerned(request):
        return client
    tools = toolcalls.Bridge(request, provider.tools, limits_of(policy))
    return tools if client is None else toolcalls.Across(client, tools)


_NOT_HERE: Final = (
    "The target of this model is told of tools as text, which works for chat completions, Responses and Messages. Send "
    "the request to one of their endpoints, leave out 'tools', or ask for a model whose provider takes them."
)


def limits_of(policy: Policy) -> Limits:
    """What the policy says of tools that are told as text."""
    tools = policy.tools
    if tools is None:
        return DEFAULTS
    return Limits(tools.results.max_chars + _ROOM, tools.max_section, tools.calls_in_thoughts)


# A result that the section's own stage has cut and framed already is not cut again.
_ROOM: Final = 1_000


def _across(endpoint: Endpoint, provider: Provider, document: Document) -> Bridge | None:
    if provider.served_as(endpoint.wire.NAME) != "chat":
        return None
    if endpoint.bridge is None:
        raise InvalidRequest(
            f"The provider {provider.name!r} speaks chat completions only, which have nothing like this endpoint."
        )
    return endpoint.bridge(document, provider.token_limit)


def crosses(bridge: Bridge | None) -> bool:
    """Whether the provider speaks another API than the client: its paths, headers and errors are others."""
    return bridge is not None and not isinstance(bridge, toolcalls.Bridge)


def in_form(name: str, provider: Provider, document: Document) -> Document:
    """The request with the form of its reply said in words, where the target does not take it as a field.

    `name` is that of the API that the provider speaks. The same document where nothing has to be said.
    """
    view = view_of(name)
    if view is None or view.asked(document).format is None:
        return document
    told = deepcopy(document)
    changed = spoken(view.asked(told), provider.response_format, objects=name != messages.NAME)
    return told if changed else document


def headers_across(headers: Headers) -> Headers:
    """A client's headers for a provider of OpenAI's kind: its key is presented as that API wants it."""
    kept = [h for h in headers if not h[0].startswith(_ANTHROPIC) and h[0] != _API_KEY]
    key = next((value for name, value in headers if name == _API_KEY), None)
    if key is not None and all(name != b"authorization" for name, _ in headers):
        kept.append((b"authorization", b"Bearer " + key))
    return kept


_ANTHROPIC = b"anthropic-"
_API_KEY = b"x-api-key"


class Frames:
    """The provider's events as frames of the client's API."""

    def __init__(self, bridge: Bridge, event_of: EventOf) -> None:
        self._bridge, self._event_of = bridge, event_of
        self._events = sse.Events()
        self._over = False

    def feed(self, chunk: bytes) -> Sequence[sse.Frame]:
        return list(self._across(self._events.feed(chunk)))

    def finish(self) -> Sequence[sse.Frame]:
        return [*self._across(self._events.finish()), *self._rest()]

    def _across(self, frames: Sequence[sse.Frame]) -> Iterator[sse.Frame]:
        for frame in frames:
            if frame.data is None:
                yield frame
            elif frame.data.strip() == b"[DONE]":
                yield from self._rest()
                if not crosses(self._bridge):
                    yield frame
            else:
                yield from self._told(frame, jsondoc.readable(frame.data))

    def _told(self, frame: sse.Frame, document: Any) -> Iterator[sse.Frame]:
        """What is no document of the API is none of the client's either, unless that is the same."""
        if isinstance(document, dict):
            told = self._bridge.feed(document)
            yield from (frame if one is document else self._frame(one) for one in told)
        elif crosses(self._bridge):
            raise UpstreamBroken("The provider's stream has a frame that is not a JSON object.")
        else:
            yield frame

    def _rest(self) -> Iterator[sse.Frame]:
        if not self._over:
            self._over = True
            yield from map(self._frame, self._bridge.finish())

    def _frame(self, document: Document) -> sse.Frame:
        data, event = jsondoc.encode(document), self._event_of(document)
        return sse.Frame(sse.render(data, event), data, event)
