"""A call whose reply is held whole until all in it is decided: denied, asked on, repaired, approved."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.decision import Answer, Block, Decision, Finish
from ...core.exchange import Exchange
from ...core.port import Heard, Port
from ...core.surface import Finding
from ...wire.conversation import Called, Replied, View
from ..repairing import again
from .asked import Offer, is_cut
from .confirm import confirmed
from .rules import Course, Judged, Proposed, Rules
from .told import (
    INVALID,
    PLACE,
    UNKNOWN,
    again_for_call,
    again_for_missing,
    again_for_unknown,
    finding,
    notice,
    result,
)

if TYPE_CHECKING:
    from .stage import Tools

Document = dict[str, Any]


class Weighed(NamedTuple):
    """A call of a reply with what is to become of it. `fault`: what is wrong with it, in words for the model."""

    called: Called
    proposed: Proposed
    judged: Judged
    fault: str | None


@dataclass(slots=True)
class Held:
    """One exchange's calls under the rules. `found` gathers what is told of them."""

    stage: "Tools"
    exchange: Exchange
    view: View
    offer: Offer
    rules: Rules
    course: Course
    found: list[Finding]
    repairs: int = 0
    denials: int = 0

    async def decide(self, port: Port, asked: Document) -> Decision:
        """Asks until a reply can be handed down, as often as the policy says."""
        document = asked
        while True:
            heard = await port.ask(document)
            if heard.document is None:
                return self._answer(heard)
            reply = self.view.replied(heard.document)
            for call in reply.hosted:
                self.course.has_run(call.id, call.name)
            weighed = self._weigh(reply)
            message = self._repair(heard, reply, weighed)
            if message is not None:
                document = again(self.view, asked, message)
                continue
            denied = self._denied(weighed)
            if not (denied and self._stops):
                weighed = await self._confirmed(weighed)
                denied = self._denied(weighed)
            self._tell(weighed)
            if denied and self._stops:
                return self._stop(reply, denied[0])
            if self._asks_on(reply, weighed, denied):
                asked = document = self._answered(asked, heard.document, denied)
                continue
            return self._handed(heard, reply, weighed, denied)

    # --- what the calls are ---

    def _weigh(self, reply: Replied) -> list[Weighed]:
        """Every call of the reply, judged in order; each choice is a way of its own on from what the run has called."""
        courses: dict[int, Course] = {}
        return [self._weighed(called, reply, courses) for called in reply.calls]

    def _weighed(self, called: Called, reply: Replied, courses: dict[int, Course]) -> Weighed:
        course = courses.setdefault(called.choice, self.course.branch())
        proposed = Proposed(called.name, called.arguments, free=called.free, id=called.id, hosted=called.hosted)
        fault = None if is_cut(reply, called.choice) else self.offer.fault(proposed)
        weighed = Weighed(called, proposed, self.rules.judge(proposed, course), fault)
        if self._final(weighed).word != "deny":
            course.add(proposed)
        return weighed

    def _denied(self, weighed: Sequence[Weighed]) -> list[Weighed]:
        return [one for one in weighed if self._final(one).word == "deny"]

    def _final(self, one: Weighed) -> Judged:
        if one.judged.word != "deny" and one.fault is not None and self.stage.config.on_invalid != "pass":
            return Judged("deny", INVALID, one.fault)
        return one.judged

    async def _confirmed(self, weighed: Sequence[Weighed]) -> list[Weighed]:
        """All that wait, wait at once."""
        weighed = [one._replace(judged=self._final(one)) for one in weighed]
        if all(one.judged.word != "confirm" for one in weighed):
            return weighed
        began = self.exchange.now()
        confirmed = list(await asyncio.gather(*map(self._confirm, weighed)))
        self.exchange.waited(max(0.0, self.exchange.now() - began))
        return confirmed

    async def _confirm(self, one: Weighed) -> Weighed:
        if one.judged.word != "confirm":
            return one
        seconds = self.stage.config.confirm.timeout
        return one._replace(judged=await confirmed(self.exchange, one.proposed, one.judged, seconds))

    # --- asking again ---

    def _repair(self, heard: Heard, reply: Replied, weighed: Sequence[Weighed]) -> str | None:
        """What the model is told when it is asked once more, in the place of this reply."""
        config = self.stage.config
        if self.repairs >= config.max_repair_attempts or len(reply.texts) > 1:
            return None
        message = next(self._faults(heard, reply, weighed), None)
        if message is not None:
            self.repairs += 1
        return message

    def _faults(self, heard: Heard, reply: Replied, weighed: Sequence[Weighed]) -> Iterator[str]:
        if self.stage.config.on_invalid == "repair":
            for one in weighed:
                # What a rule denies in any case is not worth another call.
                if one.fault is not None and (one.judged.word != "deny" or one.judged.unsure):
                    self.found.append(finding(INVALID, "repair"))
                    yield again_for_call(one.called.name, one.called.arguments, one.fault)
            if missing := self._missing(reply):
                self.found.append(finding(INVALID, "repair"))
                yield again_for_missing(missing, "\n".join(reply.texts.values()))
        if self.stage.config.on_unknown == "repair" and heard.unknown and not weighed:
            self.found.append(finding(UNKNOWN, "repair"))
            yield again_for_unknown(heard.unknown[0])

    def _missing(self, reply: Replied) -> str | None:
        """What one of the choices lacks."""
        for choice in reply.texts:
            calls = [call for call in reply.calls if call.choice == choice]
            if missing := self.offer.misses(reply, choice, calls):
                return missing
        return None

    def _asks_on(self, reply: Replied, weighed: Sequence[Weighed], denied: Sequence[Weighed]) -> bool:
        config = self.stage.config
        if config.on_deny != "answer" or not denied or len(denied) < len(weighed) or len(reply.texts) > 1:
            return False
        return self.denials < config.max_denied

    def _answered(self, asked: Document, reply: Document, denied: Sequence[Weighed]) -> Document:
        """The conversation with the model's own turn, and a reason in the place of each result."""
        self.denials += 1
        document = deepcopy(asked)
        results: Mapping[str, str] = {one.called.id: result(self._final(one).reason) for one in denied}
        self.view.asked(document).answer(reply, results)
        return document

    # --- what comes of it ---

    @property
    def _stops(self) -> bool:
        return self.stage.config.on_deny in ("block", "finish")

    def _tell(self, weighed: Sequence[Weighed]) -> None:
        for one in weighed:
            judged = self._final(one)
            if judged.word == "deny":
                self.found.append(finding(judged.rule, "deny"))
            elif one.fault is not None:
                self.found.append(finding(INVALID, "pass"))

    def _stop(self, reply: Replied, one: Weighed) -> Block | Finish:
        judged, findings = self._final(one), tuple(self.found)
        if self.stage.config.on_deny == "block":
            return Block(judged.rule, PLACE, findings)
        said = reply.texts.get(one.called.choice, "")
        text = notice(one.called.name, judged.reason)
        return Finish(judged.rule, PLACE, f"{said}\n\n{text}" if said else text, findings)

    def _handed(self, heard: Heard, reply: Replied, weighed: Sequence[Weighed], denied: Sequence[Weighed]) -> Answer:
        for choice in dict.fromkeys(one.called.choice for one in denied):
            gone = [one for one in denied if one.called.choice == choice]
            notices = (notice(one.called.name, self._final(one).reason) for one in gone)
            reply.drop([one.called for one in gone], "\n\n".join(notices))
        if self._missing(reply):
            self.found.append(finding(INVALID, "pass"))
        taken = {(one.called.choice, one.called.position) for one in denied}
        for one in weighed:
            if (one.called.choice, one.called.position) not in taken:
                self.course.remember(one.proposed)
        return self._answer(heard, heard.document if denied else None)

    def _answer(self, heard: Heard, document: Document | None = None) -> Answer:
        """What is told of it is the most that was done."""
        words = {each.name for each in self.found}
        action = next((word for word in ("deny", "repair") if word in words), "flag")
        return Answer(heard, document, tuple(self.found), action=action)
