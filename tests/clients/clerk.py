"""A clumsy model for agents that use tools and want an object in the end, and the policy that keeps it in line.

It says what it is told to say, one thing a request: calls that a rule denies, calls that fit no schema, answers in the
wrong form. It is asked in any API; as a model without tools it says its calls as text.
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.cases.upstream import Answer, Seen

from .conftest import policy
from .model import APIS, Said

ASK = "What colour is Ann's cat?"
COLOUR = "black"
TOOLS = ("look_up", "run_shell")
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["black", "white"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
REASON = "there is no shell here"
RESULT = "Ann's cat is black"

# What it says to the first request of the agent: the sidecar asks on twice, and hands down the last.
CALLING = (
    Said(calls=(("call_1", "run_shell", {"name": "cat"}),)),
    Said(calls=(("call_2", "look_up", {"nom": "Ann"}),)),
    Said(calls=(("call_3", "look_up", {"name": "Ann"}),)),
)
# And to the second one, which has the tool's result: a wrong form, and then the right one among prose.
ANSWERING = (Said('{"colour": "dark"}'), Said("Of course!\n```json\n{'colour': 'black'}\n```"))
SAYS = CALLING + ANSWERING
CALLS_TOLD = (len(CALLING), len(ANSWERING))


def rules(origin: str, **provider: Any) -> dict[str, Any]:
    """The policy before it."""
    document = policy(origin)
    document["providers"]["main"].update(provider)
    document["tools"] = {
        "rules": [{"tool": "*shell*", "decision": "deny", "reason": REASON}],
        "on_invalid": "repair",
        "results": {"frame": True, "max_chars": 1000},
    }
    document["structured_output"] = {"max_repair_attempts": 1}
    return document


def clerk(*said: Said) -> Answer:
    """Says these in turn, one for each request."""
    left = list(said)

    def answer(seen: Seen) -> Any:
        asked = seen.json
        spoken = left.pop(0)
        if seen.target == "/v1/chat/completions" and "tools" not in asked:
            spoken = Said(written(spoken))
        return APIS[seen.target.partition("?")[0]].say(spoken, asked)

    return answer


def written(said: Said) -> str:
    """As a model that has been told of tools in words says it."""
    blocks = [json.dumps({"tool": name, "arguments": arguments}, indent=1) for _, name, arguments in said.calls]
    return "\n".join([said.text, *(f"```tool_call\n{block}\n```" for block in blocks)])


def told(requests: Sequence[Seen]) -> list[str]:
    """The last thing that each request says to the model, as text."""
    return [json.dumps(_last(seen.json), ensure_ascii=False) for seen in requests]


def _last(asked: dict[str, Any]) -> Any:
    turns = asked.get("messages") or asked["input"]
    return turns[-1] if isinstance(turns, list) else turns
