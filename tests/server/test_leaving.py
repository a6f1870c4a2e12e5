"""Clients that leave, in every way and at every moment: the provider's connection is closed within a second."""

import time

import pytest

from .talk import Sidecar, request, wait_for
from .upstream import CHUNKED, END, Script, Upstream, chunk, reply

SOON = 1.0


def left(upstream: Upstream, since: float) -> None:
    """The provider saw its connection end, soon after `since`."""
    wait_for(lambda: bool(upstream.ended), 3)
    assert upstream.ended[0] - since < SOON


@pytest.mark.parametrize("how", ["close", "reset"])
def test_before_the_provider_has_said_anything(inert: Sidecar, upstream: Upstream, how: str):
    upstream.play([20.0])
    client = inert.connect()
    client.send(request(b"POST", b"/v1/chat/completions", b"{}"))
    wait_for(lambda: len(upstream.requests) == 1)
    leave(client, how)
    left(upstream, time.monotonic())
    assert inert.runtime.active == 0


def leave(client, how: str) -> None:
    if how == "reset":
        client.reset()
    else:
        client.sock.close()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_in_the_middle_of_a_stream_that_is_silent(inert: Sidecar, upstream: Upstream, how: str):
    upstream.play([CHUNKED + chunk(b"data: 1\n\n"), 20.0])
    client = inert.connect()
    client.send(request())
    client.until(b"data: 1\n\n")
    leave(client, how)
    left(upstream, time.monotonic())


def test_in_the_middle_of_a_stream_that_is_not_taken(inert: Sidecar, upstream: Upstream):
    """Under back-pressure: the sidecar waits for the client, not for the provider."""
    upstream.play([CHUNKED, *[chunk(b"x" * 65536)] * 1000, END])
    client = inert.connect()
    client.send(request())
    client.head()
    wait_for(lambda: paused(inert))
    client.reset()
    left(upstream, time.monotonic())


def paused(inert: Sidecar) -> bool:
    return any(connection.flow.write_paused for connection in list(inert.server.server_state.connections))


def test_while_uploading(inert: Sidecar, upstream: Upstream):
    upstream.play(reply())
    client = inert.connect()
    client.send(b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 1000)
    wait_for(lambda: len(upstream.requests) == 1)
    client.sock.close()
    left(upstream, time.monotonic())


def test_while_uploading_to_a_provider_that_does_not_take_it(inert: Sidecar, upstream: Upstream):
    """The client's socket is not read then, and only the kernel knows that its peer has left.

    By a reset: a FIN waits behind what the client's kernel could not send yet, so nobody can see it.
    """
    upstream.play(Script([20.0], early=True))
    client = inert.connect()
    head = b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 90000000\r\n\r\n"
    assert client.send_some(head + b"x" * 90_000_000) < 90_000_000
    client.reset()
    wait_for(lambda: inert.runtime.active == 0, SOON)


def test_with_a_second_request_in_the_pipeline(inert: Sidecar, upstream: Upstream):
    upstream.play([20.0])
    client = inert.connect()
    client.send(request(b"GET", b"/1") + request(b"GET", b"/2"))
    wait_for(lambda: len(upstream.requests) == 1)
    client.sock.close()
    left(upstream, time.monotonic())
    assert len(upstream.requests) == 1


def test_two_hundred_times_and_nothing_is_left_behind(inert: Sidecar, upstream: Upstream):
    upstream.play(reply(b"warm"))
    inert.ask(request())
    wait_for(lambda: upstream.open == 1)
    upstream.play([CHUNKED + chunk(b"data: 1\n\n"), 20.0])
    for _ in range(10):
        clients = [inert.connect() for _ in range(20)]
        for client in clients:
            client.send(request())
        for client in clients:
            client.until(b"data: 1\n\n")
            client.reset()
    wait_for(lambda: inert.runtime.active == 0 and upstream.open == 0)
    wait_for(lambda: not inert.server.server_state.connections)
    upstream.play(reply(b"normal"))
    assert inert.ask(request()).body == b"normal"
    assert upstream.open == 1


def test_a_client_that_leaves_at_the_end_costs_nothing(inert: Sidecar, upstream: Upstream):
    """The reply is complete: its connection is kept."""
    upstream.play(reply(b"all"))
    before = upstream.accepted
    for _ in range(5):
        with inert.connect() as client:
            client.send(request())
            client.until(b"all")
    assert upstream.accepted - before <= 1
