"""What every small agent of these tests is told, does, and must say in the end, whatever library it is written with."""

import json
from typing import Any

from tests.cases.upstream import Seen

from .conftest import clean
from .model import CARD, EMAIL
from .provider import CLIENTS, PLACEHOLDER

SYSTEM = f"You write mails. The vault's word is {CLIENTS}."
ASK = f"Mail {EMAIL} that the key is {CLIENTS} and the card {CARD}."
MASKED = "*" * (len(CARD) - 4) + CARD[-4:]
# The tools: a mail is written, a note is taken.
TOOLS = ("send_mail", "take_note")
ARGUMENTS = {"to": EMAIL, "text": f'"{PLACEHOLDER}" \\ é', "copies": 2}


def result(name: str, to: str) -> str:
    """What a tool gives: it repeats whom it was called for, and has a secret of its own."""
    return f"{name} done for {to}, token {CLIENTS}"


# What the handoff of the Agents SDK gives.
HANDED = '{"assistant": "writer"}, '
_RESULTS = ", ".join(f"{name} done for {EMAIL}, token {PLACEHOLDER}" for name in TOOLS)
FINAL = f"You told me: {_RESULTS}. I mail {EMAIL} and say {PLACEHOLDER}, no more."
BLOCKED_AT = f"You told me: hi {EMAIL}. I mail {EMAIL} and say "
HI = f"hi {EMAIL}"


class Desk:
    """The tools, and the arguments that they were called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def use(self, name: str, arguments: dict[str, Any]) -> str:
        self.calls.append((name, arguments))
        return result(name, arguments["to"])

    def check(self) -> None:
        """Each tool was called once, with whole arguments: the person restored, the provider's secret redacted."""
        assert sorted(self.calls) == [(name, ARGUMENTS) for name in TOOLS]


def check_seen(requests: list[Seen], turns: int) -> None:
    """The provider saw so many turns, and in the last one placeholders where the secrets were."""
    assert len(requests) == turns
    assert all(json.loads(seen.body) for seen in requests)
    told = requests[-1].body.decode()
    assert told.count(PLACEHOLDER) >= 4
    assert "<EMAIL_1>" in told
    assert f"the card {MASKED}." in told


def check_final(text: str) -> None:
    """The answer that the client ends with, in which the people are back and no secret is."""
    assert clean(text).replace(HANDED, "") == FINAL
