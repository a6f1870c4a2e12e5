"""The door without a network: how an exchange ends, whatever ends it."""

import asyncio
from typing import Any

import pytest

from sidecar.errors import InvalidRequest
from sidecar.runtime import Runtime, load_policy
from sidecar.server.door import Hop, conduct
from sidecar.server.masking import KeyMask, is_secret

UPSTREAM = "http://127.0.0.1:9/v1"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Wire:
    """What the server would be: `sent` is what the exchange said; the client may be made to leave."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.leave: Any = None
        self.breaks_after = 1000
        self.takes = True
        self.hops: list[Hop] = []

    async def run(self, handle: Any) -> Hop:
        runtime = Runtime(None, UPSTREAM, {})
        await runtime.open(load_policy(None, {}, UPSTREAM))

        async def keep(hop: Hop) -> None:
            self.hops.append(hop)
            await handle(hop)

        try:
            await conduct(runtime, self.scope(), self.receive, self.send, keep)
        finally:
            await runtime.close()
        assert runtime.active == 0
        return self.hops[0]

    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "method": "POST",
            "path": "/v1/x",
            "raw_path": b"/v1/x",
            "headers": [],
            "sidecar.watch": lambda leave: setattr(self, "leave", leave),
        }

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"hello", "more_body": False}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if len(self.sent) > self.breaks_after:
            raise OSError("gone")
        if not self.takes:
            await asyncio.sleep(60)


async def endless(hop: Hop) -> None:
    await hop.start(200, [])
    while True:
        await hop.write(b"tick ", more=True)
        await asyncio.sleep(0.001)


def leaving(wire: Wire, after: float = 0.02) -> None:
    asyncio.get_running_loop().call_later(after, lambda: wire.leave())


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["idle", "back-pressure", "an error from send"])
async def test_a_client_that_leaves_a_stream(how: str):
    wire = Wire()
    wire.takes = how != "back-pressure"
    wire.breaks_after = 5 if how == "an error from send" else 1000
    if how != "an error from send":
        leaving(wire)
    hop = await wire.run(endless)
    assert hop.record.outcome == "client_gone"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.anyio
async def test_an_error_of_ours_is_answered_once():
    async def refuse(hop: Hop) -> None:
        raise InvalidRequest("no")

    wire = Wire()
    hop = await wire.run(refuse)
    assert [message["type"] for message in wire.sent] == ["http.response.start", "http.response.body"]
    assert (wire.sent[0]["status"], hop.record.outcome, hop.record.code) == (400, "rejected", "invalid_request")


@pytest.mark.anyio
async def test_an_error_after_the_beginning_is_not_appended_to_the_reply():
    async def break_off(hop: Hop) -> None:
        await hop.start(200, [])
        await hop.write(b"half", more=True)
        raise InvalidRequest("no")

    wire = Wire()
    await wire.run(break_off)
    assert [message.get("body") for message in wire.sent] == [None, b"half"]


@pytest.mark.anyio
async def test_a_cancellation_from_outside_goes_on():
    async def wait(hop: Hop) -> None:
        await asyncio.sleep(60)

    wire = Wire()
    task = asyncio.create_task(wire.run(wait))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (wire.hops[0].record.outcome, wire.hops[0].record.code) == ("error", "shutdown")


@pytest.mark.parametrize("key", ["none", "EMPTY", "ollama", "lm-studio", "not-needed", "sk-no-key-required", None])
def test_what_people_write_where_no_key_is_wanted_is_no_secret(key: str | None):
    assert not is_secret(key)


@pytest.mark.parametrize(
    "text", [b"a sk-aa1bb2 b", b"sk-sk-aa1bb2", b"sk-aa1bb", b"sk-aa1bb2sk-aa1bb2", b"", b"sk-aa1bsk-aa1bb2"]
)
def test_masking_does_not_depend_on_the_cuts(text: bytes):
    whole = text.replace(b"sk-aa1bb2", b"*********")
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            mask = KeyMask("sk-aa1bb2")
            pieces = [mask.feed(text[:first]), mask.feed(text[first:second]), mask.feed(text[second:]), mask.finish()]
            assert b"".join(pieces) == whole


def test_ordinary_text_is_not_held_back():
    assert KeyMask("sk-aa1bb2").feed(b"ordinary text") == b"ordinary text"
