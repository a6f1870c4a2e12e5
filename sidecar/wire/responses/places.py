"""Where texts of `/v1/responses` live: a surface for each kind of field, in requests and in replies.

A reply says much of its request again (instructions, tools, metadata; items of the input where those are listed).
Such an echo is of the kind that it was of in the request, so that a rule about answers does not trip over it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.surface import Kind, Slot, Surface

# Fields of items: what they are called here, where they stand, what they are, and whether they are JSON.
_ITEM_FIELDS = (
    ("refusal", "content[].refusal", Kind.ASSISTANT, False),
    ("annotation", "content[].annotations[]", Kind.ASSISTANT, False),
    ("reasoning", "reasoning.content[].text", Kind.REASONING, False),
    ("summary", "reasoning.summary[].text", Kind.REASONING, False),
    ("name", "name", Kind.TOOL_CALLS, False),
    ("arguments", "function_call.arguments", Kind.TOOL_CALLS, True),
    ("mcp_arguments", "mcp_call.arguments", Kind.TOOL_CALLS, True),
    ("input", "custom_tool_call.input", Kind.TOOL_CALLS, False),
    ("code", "code_interpreter_call.code", Kind.TOOL_CALLS, False),
    ("command", "shell_call.action.commands[]", Kind.TOOL_CALLS, False),
    ("action", "action", Kind.TOOL_CALLS, False),
    ("stdout", "shell_call_output.output[].stdout", Kind.TOOL_RESULTS, False),
    ("stderr", "shell_call_output.output[].stderr", Kind.TOOL_RESULTS, False),
    ("output", "output", Kind.TOOL_RESULTS, False),
    ("reason", "mcp_approval_response.reason", Kind.USER, False),
    ("item_tools", "tools[]", Kind.TOOLS, False),
    ("item_format", "text.format", Kind.TOOLS, False),
)
# Fields beside the items.
_FIELDS = (
    ("variables", "prompt.variables", Kind.USER),
    ("metadata", "metadata", Kind.USER),
    ("user", "user", Kind.USER),
    ("safety_identifier", "safety_identifier", Kind.USER),
    ("prompt_cache_key", "prompt_cache_key", Kind.USER),
    ("continuation_id", "background_options.continuation_id", Kind.USER),
    ("tools", "tools[]", Kind.TOOLS),
    ("tool_choice", "tool_choice", Kind.TOOLS),
    ("format", "text.format", Kind.TOOLS),
)
_ROLES = {
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
}
HERE = "here"
"""The text of the message or output that a content part belongs to."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The surfaces of one direction: by field, and by what has a content of parts: the roles and tool outputs."""

    fields: Mapping[str, Surface]
    contents: Mapping[Kind, Mapping[str, Surface]]

    @classmethod
    def of(cls, fields: Mapping[str, Surface], contents: Mapping[Kind, Surface]) -> "Places":
        within = {kind: {**fields, HERE: surface} for kind, surface in contents.items()}
        return cls(fields, {**within, Kind.TOOL_RESULTS: {**fields, HERE: fields["output"]}})

    def of_role(self, role: Any) -> Mapping[str, Surface]:
        """Roles that no API documents count as the user's."""
        return self.contents[_ROLES.get(role, Kind.USER) if isinstance(role, str) else Kind.USER]


def _surfaces(direction: str, items: str, unknown: Surface) -> dict[str, Surface]:
    """A reply's own texts are of the kind `reply` where they would be an earlier answer's in a request."""
    said = {Kind.ASSISTANT: Kind.REPLY} if direction == "reply" else {}
    found = {
        field: Surface(
            f"responses.{direction}.{items}[].{where}",
            said.get(kind, kind),
            json=json,
            calls="fixed" if field == "name" and direction == "reply" else "",
        )
        for field, where, kind, json in _ITEM_FIELDS
    }
    found.update((field, Surface(f"responses.{direction}.{where}", kind)) for field, where, kind in _FIELDS)
    return {**found, "unknown": unknown}


UNKNOWN = Surface("responses.request (undocumented fields)", Kind.USER, unknown=True)
INSTRUCTIONS = Surface("responses.request.instructions", Kind.SYSTEM)
_CONTENTS = {
    kind: Surface("responses.request.input[].content", kind) for kind in (Kind.SYSTEM, Kind.USER, Kind.ASSISTANT)
}
REQUEST = Places.of(_surfaces("request", "input", UNKNOWN), _CONTENTS)

UNKNOWN_REPLY = Surface("responses.reply (undocumented fields)", Kind.REPLY, unknown=True)
OPAQUE = Surface("responses.reply", Kind.REPLY, json=True)
ERROR = Surface("responses.reply.error", Kind.REPLY)
TRANSCRIPT = Surface("responses.reply.audio.transcript", Kind.REPLY)
AUDIO = Surface("responses.reply.audio", Kind.REPLY)
ECHOED_INSTRUCTIONS = Surface("responses.reply.instructions", Kind.SYSTEM)
TEXT = Surface("responses.reply.output[].content[].text", Kind.REPLY)
_SAID = {
    Kind.SYSTEM: Surface("responses.reply.data[].content", Kind.SYSTEM),
    Kind.USER: Surface("responses.reply.data[].content", Kind.USER),
    Kind.ASSISTANT: TEXT,
}
_MORE = {"error": ERROR, "transcript": TRANSCRIPT, "audio": AUDIO}
REPLY = Places.of({**_surfaces("reply", "output", UNKNOWN_REPLY), **_MORE}, _SAID)

REFUSAL = REPLY.fields["refusal"]
REASONING = REPLY.fields["reasoning"]
SUMMARY = REPLY.fields["summary"]
ARGUMENTS = REPLY.fields["arguments"]
MCP_ARGUMENTS = REPLY.fields["mcp_arguments"]
INPUT = REPLY.fields["input"]
CODE = REPLY.fields["code"]
COMMAND = REPLY.fields["command"]
STDOUT = REPLY.fields["stdout"]
STDERR = REPLY.fields["stderr"]

# Every place, in the order of the request and then the reply.
REQUEST_SURFACES = (
    INSTRUCTIONS,
    *_CONTENTS.values(),
    *(surface for surface in REQUEST.fields.values() if surface is not UNKNOWN),
    UNKNOWN,
)
REPLY_SURFACES = (
    *_SAID.values(),
    *(surface for surface in REPLY.fields.values() if surface is not UNKNOWN_REPLY),
    ECHOED_INSTRUCTIONS,
    OPAQUE,
    UNKNOWN_REPLY,
)

# Of these parts; events have the same beside their text.
_PARTS = ("output_text", "refusal", "reasoning_text", "summary_text")


class TextSlot(Slot):
    """A text that takes along what was computed over it: a new text has no logprobs, annotations or padding."""

    __slots__ = ()

    def replace(self, text: str) -> None:
        super().replace(text)
        holder = self._holder
        kind = holder.get("type") if type(holder) is dict else None
        if type(kind) is str and (kind in _PARTS or kind.startswith("response.")):
            holder.pop("obfuscation", None)
            for field in ("logprobs", "annotations"):
                if holder.get(field):
                    holder[field] = []
