"""A call whose reply is held until it has the form that was asked for."""

from dataclasses import dataclass, field
from typing import Any, Final

from ...core.decision import Answer, Decision, Refuse
from ...core.port import Heard, Port
from ...core.surface import Finding, Kind, Surface
from ...errors import StructuredOutputInvalid
from ...wire.conversation import Replied, View
from ..repairing import again, listed, quoted
from ..scrub import excerpt
from .form import Form, Judged, judged

RULE: Final = "structured_output"
PLACE: Final = Surface("structured_output.reply", Kind.REPLY)
ASKED: Final = Surface("structured_output.request", Kind.TOOLS)

Document = dict[str, Any]


def finding(what: str, place: Surface = PLACE) -> Finding:
    """The record tells findings by their rule: that is what is found."""
    return Finding(f"{RULE}.{what}", what, place)


@dataclass(slots=True)
class Held:
    """`repairs` is how often the model may be asked again, the `max_` are in characters. `found` gathers what is told
    of the exchange.
    """

    view: View
    form: Form
    repairs: int
    max_quoted: int
    max_output: int
    found: list[Finding] = field(default_factory=list)

    async def decide(self, port: Port, document: Document) -> Decision:
        """Asks until a reply can be handed down. Each time it is the request as it was, and what the last reply had
        wrong.
        """
        asked, calls = document, 0
        while True:
            heard, calls = await port.ask(asked), calls + 1
            if heard.document is None:
                return Answer(heard, None, tuple(self.found))
            reply = self.view.replied(heard.document)
            all_judged = judged(self.form, reply)
            wrong = next((one for one in all_judged if one.word == "wrong"), None)
            if wrong is None:
                return self._handed(heard, reply, all_judged)
            if len(all_judged) > 1 or self.view.asked(document).choices > 1 or calls > self.repairs:
                return self._given_up(wrong, calls, len(all_judged))
            self.found.append(finding("repair"))
            asked = again(self.view, document, self._complaint(wrong))

    def _handed(self, heard: Heard, reply: Replied, all_judged: list[Judged]) -> Answer:
        repaired = bool(self.found)
        for one in all_judged:
            if one.word == "cut":
                self.found.append(finding("cut"))
            if one.word == "found":
                self.found.append(finding("extracted"))
                reply.say(one.choice, one.text)
        changed = any(one.word == "found" for one in all_judged)
        action = "repair" if repaired else "replace" if changed else "flag"
        return Answer(heard, heard.document if changed else None, tuple(self.found), action=action)

    def _complaint(self, wrong: Judged) -> str:
        return (
            f"Your last answer was not valid. As a JSON string, it was: {quoted(wrong.text, self.max_quoted)}\n"
            f"What is wrong with it:{listed(wrong.faults)}\n"
            "Answer again with all of the JSON in the form that was asked for, and nothing else."
        )

    def _given_up(self, wrong: Judged, calls: int, choices: int) -> Refuse:
        first = wrong.faults[0]
        which = f" (choice {wrong.choice})" if choices > 1 else ""
        error = StructuredOutputInvalid(
            f"The model's answer{which} has not the form that was asked for, after {calls} "
            f"call{'' if calls == 1 else 's'}. {first}.",
            param=first.pointer or None,
            attempts=calls,
            last_error={"pointer": first.pointer, "message": first.message},
            output=excerpt(wrong.text, self.max_output),
        )
        return Refuse(RULE, error, (*self.found, finding("invalid")))
