"""`GET /v1/models` where the policy names models or has several providers: one list of what can be asked for.

The caller's own key is shown to the first provider alone, as for any request without a model; another without a key in
the policy is asked without any. A provider that does not answer in time has nothing to list.
"""

import asyncio
import re
from typing import Any, Final

from ..errors import ExchangeError, ModelNotFound
from ..upstream.routing import listed_models
from ..upstream.targets import Provider
from ..wire import jsondoc
from .door import Hop
from .endpoints import normalised
from .headers import CREDENTIALS, Headers, readable, value_of
from .relay import relay, undoing

PATIENCE: Final = 10.0
MAX_LIST: Final = 8 << 20
_PATH: Final = re.compile(r"(?:.*/v1)?/models(?:/(.+))?")

Document = dict[str, Any]


async def models(hop: Hop) -> None:
    """The list, or with a name behind it the one entry. Without any list the first provider answers as it likes."""
    found = _PATH.fullmatch(normalised(hop.scope["path"]))
    routes = hop.in_force.routes
    if found is None or hop.method != "GET" or not routes.by_model:
        await relay(hop)
        return
    name = hop.scope["path"].partition("/models/")[2]
    answers = await asyncio.gather(*(_asked(hop, provider, name) for provider in routes.providers.values()))
    lists = dict(zip(routes.providers, answers, strict=True))
    if not routes.models and not any(lists.values()):
        await relay(hop)
        return
    listed = listed_models(routes, lists)
    await _answer(hop, _one(hop, listed, name) if name else _paged(hop, listed))


def _one(hop: Hop, listed: Document, name: str) -> Document:
    """Raises ModelNotFound."""
    entry: Document | None = next((entry for entry in listed["data"] if entry["id"] == name), None)
    if entry is None:
        hop.in_force.routes.route(name)  # says what there is instead, where the policy lists it
        raise ModelNotFound(f"No provider lists the model {name[:100]!r}.", param="model")
    return entry


def _paged(hop: Hop, listed: Document) -> Document:
    """Anthropic's clients read a list by pages: this is the only one."""
    if value_of(hop.headers, b"anthropic-version") is None:
        return listed
    ids = [entry["id"] for entry in listed["data"]]
    return {**listed, "has_more": False, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}


async def _answer(hop: Hop, document: Document) -> None:
    body = jsondoc.encode(document)
    headers: Headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    hop.record.endpoint, hop.record.target = "models", ""
    await hop.start(200, headers + hop.our_headers(headers))
    await hop.write(body, more=False)


async def _asked(hop: Hop, provider: Provider, name: str) -> Any:
    """What a provider answers to the same request; None where that is no list."""
    client = hop.client(provider)
    path = hop.scope["raw_path"].partition(b"/models/")[0] + b"/models" if name else hop.scope["raw_path"]
    try:
        async with asyncio.timeout(min(PATIENCE, provider.timeouts.first_byte)):
            reply = await client.send("GET", client.target(path, b""), _headers(hop, provider))
            try:
                return await _document(reply)
            finally:
                reply.close()
    except (ExchangeError, TimeoutError):
        return None


def _headers(hop: Hop, provider: Provider) -> Headers:
    headers = readable(hop.request_headers(provider))
    if provider.api_key is None and provider.name != hop.in_force.routes.default.name:
        headers = [h for h in headers if h[0] not in CREDENTIALS]
    return headers


async def _document(reply: Any) -> Any:
    pieces, size = [], 0
    while not reply.complete and size <= MAX_LIST:
        pieces.append(await reply.read())
        size += len(pieces[-1])
    if reply.status != 200 or size > MAX_LIST:
        return None
    undo, body = undoing(reply.headers, MAX_LIST), b"".join(pieces)
    return jsondoc.readable(body if undo is None else undo.feed(body) + undo.finish())
