"""Where the provider speaks another API than the client: which bridge stands between them, and its frames."""

from collections.abc import Callable, Iterator, Sequence

from ..errors import InvalidRequest, UpstreamBroken
from ..upstream.targets import Provider
from ..wire import jsondoc, sse
from ..wire.bridges import Bridge
from ..wire.stream import Document
from .endpoints import Endpoint
from .headers import Headers

EventOf = Callable[[Document], bytes | None]


def bridge_for(endpoint: Endpoint, provider: Provider, document: Document) -> Bridge | None:
    """What stands between a client of this API and the provider. Raises InvalidRequest where nothing can."""
    if provider.served_as(endpoint.wire.NAME) != "chat":
        return None
    if endpoint.bridge is None:
        raise InvalidRequest(
            f"The provider {provider.name!r} speaks chat completions only, which have nothing like this endpoint."
        )
    return endpoint.bridge(document, provider.token_limit)


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
            else:
                yield from map(self._frame, self._bridge.feed(_document(frame.data)))

    def _rest(self) -> Iterator[sse.Frame]:
        if not self._over:
            self._over = True
            yield from map(self._frame, self._bridge.finish())

    def _frame(self, document: Document) -> sse.Frame:
        data, event = jsondoc.encode(document), self._event_of(document)
        return sse.Frame(sse.render(data, event), data, event)


def _document(data: bytes) -> Document:
    document = jsondoc.readable(data)
    if not isinstance(document, dict):
        raise UpstreamBroken("The provider's stream has a frame that is not a JSON object.")
    return document
