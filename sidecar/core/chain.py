"""Runs a call through its stages: down for the request, up for the reply. The one place that obeys decisions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .decision import Answer, Block, Decision, Finish, Mode, Pass, Refuse, Replace, Stop
from .events import Event, Found, Stopped, Text
from .exchange import Exchange, Request
from .port import Port
from .stage import Stage, Visit
from .surface import Finding


@dataclass(frozen=True, slots=True)
class Step:
    """A stage at its place. Higher order is further out: it sees the request first and the reply last."""

    stage: Stage
    mode: Mode
    order: int
    counts: bool = False
    asks: bool = False
    """Whether the stage may make calls of its own, through the port that it is given with a request."""
    reads_tools: bool = True
    """Whether the stage looks at the texts of tool definitions, which are many and the same in every request."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a stage decided, obeyed or not. For the record; holds no text."""

    stage: str
    mode: Mode
    said: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of a policy. Of two with equal order the one declared first goes first, on both ways."""

    down: tuple[Step, ...]
    up: tuple[Step, ...]
    counts: bool = False
    """Whether a stage wants to know what the provider says was used."""
    asks: bool = False
    """Whether a stage may make calls of its own."""
    reads_tools: bool = False
    """Whether a stage looks at the texts of tool definitions."""
    inside: Mapping[int, "Chain"] = field(default_factory=dict)
    """By its place in `down`, what stands inside a step that asks."""

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "Chain":
        live = [step for step in steps if step.mode is not Mode.OFF]
        down = tuple(sorted(live, key=lambda step: -step.order))
        return cls(
            down=down,
            up=tuple(sorted(live, key=lambda step: step.order)),
            counts=any(step.counts for step in live),
            asks=any(step.asks for step in live),
            reads_tools=any(step.reads_tools for step in live),
            inside={at: cls.of(down[at + 1 :]) for at, step in enumerate(down) if step.asks},
        )

    def open(self, exchange: Exchange, asking: "Asking | None" = None) -> "Run":
        """`asking` makes the port of a step that asks; without it none does."""
        return Run(self, exchange, asking)


Asking = Callable[[Chain, "Run", Request], Port]
"""Makes a port from the chain inside a step, the run that it is part of, and the request that is on its way down."""


def _said(decision: Decision) -> str:
    match decision:
        case Pass():
            return "flag"
        case Replace(action=action):
            return action
        case Block():
            return "block"
        case Finish():
            return "finish"
        case Refuse():
            return "refuse"
        case Answer(action=action):
            return action


@dataclass(slots=True)
class Run:
    """One call on its way through the chain."""

    chain: Chain
    exchange: Exchange
    asking: Asking | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    stopped: Stop | None = None
    answered: Answer | None = None
    """The reply that a stage has asked for; stages inside it are not reached."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """What stages have to tell the client with the reply."""
    _visits: dict[int, Visit] = field(default_factory=dict)
    _up: list[tuple[Step, Visit]] | None = None

    async def request(self, request: Request) -> Stop | None:
        """Sends the request down. A stop means that no stage further in, and no provider, sees it.

        The same holds where `answered` is set afterwards: then that reply is to be fed to the stages that were reached.

        Raises the error of a stage that refuses it.
        """
        for at, step in enumerate(self.chain.down):
            visit = self._visits[id(step)] = step.stage.open(self.exchange)
            if step.asks:
                request.port = self._port(at, step, request)
            decision = await visit.request(request)
            self._note(step, decision)
            if step.mode is not Mode.ENFORCE:
                continue
            match decision:
                case Pass(headers=headers):
                    self.headers += headers
                case Refuse(error=error):
                    raise error
                case Replace(edits):
                    for slot, text in edits:
                        slot.replace(text)
                    request.changed = True
                case Block() | Finish():
                    self.stopped = decision
                    return decision
                case Answer(headers=headers):
                    self.answered, self.headers = decision, self.headers + headers
                    return None
        return None

    def _port(self, at: int, step: Step, request: Request) -> Port | None:
        """Who only watches asks for nothing."""
        if self.asking is None or step.mode is not Mode.ENFORCE:
            return None
        return self.asking(self.chain.inside[at], self, request)

    def send(self, event: Event) -> Sequence[Event]:
        """One event of a request that arrives in pieces, after `request`: through every stage, outer to inner."""
        batch: Sequence[Event] = (event,)
        for step in self.chain.down:
            visit = self._visits[id(step)]
            batch = [out for each in batch for out in self._obey(step, (each,), visit.send(each))]
        return batch

    def feed(self, event: Event) -> Sequence[Event]:
        """One event of the reply through every stage that was reached, inner to outer."""
        batch: Sequence[Event] = (event,)
        for step, visit in self._up or self._reached():
            if len(batch) != 1:
                batch = self._through(step, visit, batch)
            elif (got := visit.feed(batch[0])) != batch:
                batch = self._obey(step, batch, got)
        return batch

    def finish(self) -> list[Event]:
        """The reply is over: what each stage still held goes through the stages outside it."""
        batch: list[Event] = []
        for step, visit in self._reached():
            batch = [*self._through(step, visit, batch), *self._obey(step, (), visit.finish())]
        return batch

    @property
    def owes(self) -> bool:
        """Whether a stage that was reached has something to settle when the exchange is over."""
        return any(type(visit).done is not Visit.done for visit in self._visits.values())

    async def done(self, outcome: str) -> None:
        """Tells every visit, also when one before it fails. The first failure is raised at the end."""
        failures: list[Exception] = []
        for visit in self._visits.values():
            try:
                await visit.done(outcome)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def _reached(self) -> list[tuple[Step, Visit]]:
        if self._up is None:
            self._up = [(s, self._visits[id(s)]) for s in self.chain.up if id(s) in self._visits]
        return self._up

    def _through(self, step: Step, visit: Visit, batch: Sequence[Event]) -> Sequence[Event]:
        if len(batch) == 1:
            return self._obey(step, batch, visit.feed(batch[0]))
        return [out for event in batch for out in self._obey(step, (event,), visit.feed(event))]

    def _obey(self, step: Step, given: Sequence[Event], got: Sequence[Event]) -> Sequence[Event]:
        if len(got) == 1 and type(got[0]) is Text:
            return got if step.mode is Mode.ENFORCE else given
        kept: list[Event] = []
        for event in got:
            match event:
                case Found(finding, action):
                    self.verdicts.append(Verdict(step.stage.name, step.mode, action, (finding,)))
                case Stopped(decision) if event not in given:
                    self._note(step, decision)
                    if step.mode is Mode.ENFORCE:
                        self.stopped = self.stopped or decision
                    kept.append(event)
                case _:
                    kept.append(event)
        return kept if step.mode is Mode.ENFORCE else given

    def _note(self, step: Step, decision: Decision) -> None:
        if decision.findings or not isinstance(decision, Pass | Answer):
            self.verdicts.append(Verdict(step.stage.name, step.mode, _said(decision), decision.findings))
