"""The watch alone: what it cancels, what it calls the cause, and that it leaves the task as it found it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sidecar.errors import UpstreamTimeout
from sidecar.server.watch import ClientLeft, Watch
from sidecar.upstream.targets import Timeouts

SHORT = Timeouts(first_byte=0.05, idle=0.05, total=0.2)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def cause(watch: Watch, work: Callable[[], Awaitable[object]]) -> BaseException | None:
    """What ended the work, if anything did; afterwards the task is as if it had never been cancelled."""
    task = asyncio.current_task()
    assert task is not None
    try:
        await work()
    except asyncio.CancelledError as cancelled:
        meaning = watch.meaning(cancelled)
        assert task.cancelling() == 0
        return meaning
    finally:
        watch.close()
    return None


@pytest.mark.anyio
@pytest.mark.parametrize("phase", ["first_byte", "idle"])
async def test_a_phase_that_lasts_too_long(phase: str):
    watch = Watch(SHORT, None)
    watch.wait(phase)
    error = await cause(watch, lambda: asyncio.sleep(1))
    assert isinstance(error, UpstreamTimeout)
    assert error.phase == phase


@pytest.mark.anyio
async def test_resting_is_not_waiting_but_the_total_goes_on():
    watch = Watch(SHORT, None)
    watch.wait("idle")
    watch.rest()
    error = await cause(watch, lambda: asyncio.sleep(1))
    assert isinstance(error, UpstreamTimeout)
    assert error.phase == "total"


@pytest.mark.anyio
async def test_a_stream_that_keeps_coming_is_left_alone_and_arms_no_timer_for_each_piece():
    watch = Watch(Timeouts(idle=0.1, total=60), None)
    armed = []
    arm = watch._loop.call_at

    async def stream() -> None:
        for _ in range(20):
            watch.wait("idle")
            armed.append(watch._handle)
            await asyncio.sleep(0.01)

    assert await cause(watch, stream) is None
    assert len({id(handle) for handle in armed}) <= 4
    assert arm is not None


@pytest.mark.anyio
async def test_a_shorter_phase_after_a_longer_one_is_heeded():
    watch = Watch(Timeouts(first_byte=10, idle=0.05), None)
    watch.wait("first_byte")
    watch.rest()
    watch.wait("idle")
    error = await cause(watch, lambda: asyncio.sleep(1))
    assert isinstance(error, UpstreamTimeout)
    assert error.phase == "idle"


@pytest.mark.anyio
async def test_a_client_that_leaves():
    loop = asyncio.get_running_loop()
    watch = Watch(SHORT, lambda leave: loop.call_later(0.01, leave))
    assert isinstance(await cause(watch, lambda: asyncio.sleep(1)), ClientLeft)


@pytest.mark.anyio
async def test_a_client_that_leaves_when_time_has_run_out_already():
    """Two causes at once are one cancellation, and the first is the cause."""
    loop = asyncio.get_running_loop()
    leaves = []
    watch = Watch(SHORT, leaves.append)
    watch.wait("idle")
    loop.call_later(0.06, leaves[0])

    async def busy() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            loop.call_soon(leaves[0])

    assert isinstance(await cause(watch, busy), UpstreamTimeout)


@pytest.mark.anyio
async def test_a_cancellation_from_elsewhere_stays_one():
    async def exchange() -> None:
        watch = Watch(SHORT, None)
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError as cancelled:
            raise watch.meaning(cancelled) from None
        finally:
            watch.close()

    task = asyncio.create_task(exchange())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.anyio
async def test_after_close_nothing_is_cancelled():
    leaves = []
    watch = Watch(SHORT, leaves.append)
    watch.wait("idle")
    watch.close()
    leaves[0]()
    await asyncio.sleep(0.1)
