"""Every endpoint of the official clients: what passes is what would pass without the sidecar, but for the secrets."""

import json
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import anthropic
import ollama
import openai
import pytest
from anthropic.types.beta import message_create_params
from openai.types import responses as sdk
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from tests.cases.expect import exactly
from tests.cases.upstream import Seen, Upstream
from tests.running import Process
from tests.wire import test_messages_types, test_responses_types
from tests.wire.sdk_types import Samples, below

from .calls import ANTHROPIC, OLLAMA, OPENAI, Call
from .conftest import clean
from .provider import CLIENT_KEY, CLIENTS, PLACEHOLDER, PROVIDERS

# A client, once before the provider itself and once before the sidecar.
CLIENTS_OF = {
    "openai": lambda url: openai.OpenAI(base_url=f"{url}/v1", api_key=CLIENT_KEY, timeout=20, max_retries=0),
    "anthropic": lambda url: anthropic.Anthropic(base_url=url, api_key=CLIENT_KEY, timeout=20, max_retries=0),
    "ollama": lambda url: ollama.Client(host=url, headers={"authorization": f"Bearer {CLIENT_KEY}"}, trust_env=False),
}
CALLS = [
    pytest.param(client, call, id=f"{client} {call.name}")
    for client, calls in (("openai", OPENAI), ("anthropic", ANTHROPIC), ("ollama", OLLAMA))
    for call in calls
]


@pytest.fixture
def provider(_upstream: Upstream) -> Upstream:
    return _upstream


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("client", "call"), CALLS)
def test_only_secrets_change(client: str, call: Call, everywhere: Process, provider: Upstream) -> None:
    provider.play([call.reply])
    got = {url: _asked(client, call, url) for url in (provider.origin, everywhere.url)}
    direct, through = provider.requests
    told = direct.body.decode("latin-1") + json.dumps(got[provider.origin])
    assert (CLIENTS in told or PROVIDERS in told) is not call.mute
    assert json.dumps(got[everywhere.url]) == _redacted(json.dumps(got[provider.origin]))
    assert through.fault == ""
    assert (through.method, through.target) == (direct.method, direct.target)
    assert body(through) == body(direct, redacted=True)
    assert CLIENTS.encode() not in through.body
    clean(json.dumps(got[everywhere.url]))


def _asked(client: str, call: Call, url: str) -> Any:
    with CLIENTS_OF[client](url) as sdk_client:
        return call.ask(sdk_client)


def _redacted(text: str) -> str:
    return text.replace(CLIENTS, PLACEHOLDER).replace(PROVIDERS, PLACEHOLDER)


def body(seen: Seen, *, redacted: bool = False) -> Any:
    """A request's body, whatever the boundary and the white space; with `redacted`, as it should be without secrets."""
    data = seen.body.replace(CLIENTS.encode(), PLACEHOLDER.encode()) if redacted else seen.body
    kind = seen.header("content-type") or ""
    if kind.startswith("multipart/form-data"):
        return parts(kind, data)
    return exactly(data) if data else data


def parts(kind: str, data: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The parts of a form: their headers and their bytes."""
    form: Message = BytesParser(policy=HTTP).parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + data)
    told = [(dict(part.items()), part.get_payload(decode=True)) for part in form.walk() if not part.is_multipart()]
    assert told
    return told  # type: ignore[return-value]


# --- every place that the official types have for a text, over a connection

IDS = test_responses_types.IDENTIFIER


def left(samples: Samples, value: Any) -> set[str]:
    """The places whose text is still there, identifiers aside."""
    marks = {mark for text in below(value) for mark in test_responses_types.MARK.findall(text)}
    return {place for mark in marks if not IDS.fullmatch(place := samples.places[mark])}


def test_every_place_of_responses(everywhere: Process, provider: Upstream) -> None:
    samples = Samples()
    provider.play([{"status": 200, "headers": {"content-type": "application/json"}, "json": {}}])
    with CLIENTS_OF["openai"](everywhere.url) as client:
        for document in samples.of(ResponseCreateParamsNonStreaming):
            client.post("/responses", body=document, cast_to=object)
    assert provider.requests
    told = [seen.json for seen in provider.requests]
    assert left(samples, told) <= set(test_responses_types.REQUEST["-"].split())


@pytest.mark.parametrize("path", ["/responses/resp_1", "/responses/resp_1/input_items"])
def test_every_place_of_a_kept_response(path: str, everywhere: Process, provider: Upstream) -> None:
    samples, kind = Samples(), sdk.Response if path.endswith("1") else sdk.ResponseItemList
    with CLIENTS_OF["openai"](everywhere.url) as client:
        got = [_answered(provider, document, lambda: client.get(path, cast_to=object)) for document in samples.of(kind)]
    assert got
    assert left(samples, got) <= set(test_responses_types.REPLY["-"].split())


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_every_place_of_messages(path: str, everywhere: Process, provider: Upstream) -> None:
    samples = Samples()
    provider.play([{"status": 200, "headers": {"content-type": "application/json"}, "json": {}}])
    with CLIENTS_OF["anthropic"](everywhere.url) as client:
        for document in samples.of(message_create_params.MessageCreateParamsNonStreaming):
            client.post(path, body=document, cast_to=object)
    assert provider.requests
    told = [seen.json for seen in provider.requests]
    assert left(samples, told) <= set(test_messages_types.REQUEST["-"].split())


def _answered(provider: Upstream, document: Any, ask: Any) -> Any:
    provider.play([{"status": 200, "headers": {"content-type": "application/json"}, "json": document}])
    return ask()
