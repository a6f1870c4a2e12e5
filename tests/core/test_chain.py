"""The chain: every stage that has seen a call is told of its end."""

import pytest

from sidecar.core.chain import Chain, Run, Step
from sidecar.core.decision import Mode
from sidecar.core.exchange import Exchange, Request
from sidecar.core.stage import Visit


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Teller(Visit):
    """A stage and its one visit, which notes its end and may fail at it."""

    def __init__(self, name: str, told: list[str], *, fails: bool = False) -> None:
        self.name, self._told, self._fails = name, told, fails

    def open(self, exchange: Exchange) -> Visit:
        return self

    async def done(self, outcome: str) -> None:
        self._told.append(f"{self.name} {outcome}")
        if self._fails:
            raise ValueError(self.name)


async def asked(*stages: Teller) -> Run:
    steps = [Step(stage, Mode.ENFORCE, -at) for at, stage in enumerate(stages)]
    run = Chain.of(steps).open(Exchange("x", "chat"))
    await run.request(Request({}, []))
    return run


@pytest.mark.anyio
async def test_a_stage_that_fails_at_the_end_keeps_no_other_from_settling() -> None:
    told: list[str] = []
    run = await asked(Teller("a", told, fails=True), Teller("b", told, fails=True), Teller("c", told))
    with pytest.raises(ValueError, match=r"^a$"):
        await run.done("completed")
    assert told == ["a completed", "b completed", "c completed"]
