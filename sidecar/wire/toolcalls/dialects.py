"""How models write tool calls in text, as data. Marks are given to the reader by what they begin.

Where the forms come from: the chat templates that the models were published with, as llama.cpp keeps them under
models/templates (Hermes and Qwen, Llama 3, Mistral Nemo and Small, DeepSeek R1 and V3.1), Ollama's template of
deepseek-v3.1, Qwen's notes on qwen3-coder's tool parser, Meta's page on Llama 3.1's prompt format, and docs/format.md
of openai/harmony for GPT-OSS.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Begins(Enum):
    """What a mark begins."""

    WRAP = "something around calls"
    THOUGHT = "thoughts in which no call counts"
    FUNCTION = "NAME>, then an object or parameters in tags"
    CALLS = "a list of envelopes, or NAME, [ARGS] and an object"
    CALL = "NAME and an object, or a kind, NAME and a fenced object"
    MESSAGE = "a header that tells what its message is"
    NOTHING = "nothing: it stands between messages"


@dataclass(frozen=True, slots=True)
class Mark:
    """`close` ends it. A mark of the model's `own` is also one inside a block of code."""

    begins: Begins
    close: str = ""
    own: bool = True


@dataclass(frozen=True, slots=True)
class Dialect:
    """Every dialect also has JSON envelopes, bare, in fences and in lists. `between` may stand between two calls."""

    name: str
    marks: Mapping[str, Mark]
    between: str = ""


_PLAIN: Final = {
    **{f"<{tag}>": Mark(Begins.WRAP, f"</{tag}>", own=False) for tag in ("tool_call", "tool_calls", "function_call")},
    **{f"<{tag}>": Mark(Begins.THOUGHT, f"</{tag}>", own=False) for tag in ("think", "thinking")},
}
_FUNCTION: Final = {"<function=": Mark(Begins.FUNCTION, "</function>")}

_ALL: Final = (
    Dialect("prompt", _PLAIN),
    Dialect("hermes", {**_PLAIN, "<tool_call>": Mark(Begins.WRAP, "</tool_call>"), **_FUNCTION}),
    Dialect("llama3", {**_PLAIN, "<|python_tag|>": Mark(Begins.WRAP), **_FUNCTION}, between=";"),
    Dialect("mistral", {**_PLAIN, "[TOOL_CALLS]": Mark(Begins.CALLS), "[THINK]": Mark(Begins.THOUGHT, "[/THINK]")}),
    Dialect(
        "deepseek",
        {
            **_PLAIN,
            "<｜tool▁calls▁begin｜>": Mark(Begins.WRAP, "<｜tool▁calls▁end｜>"),
            "<｜tool▁call▁begin｜>": Mark(Begins.CALL, "<｜tool▁call▁end｜>"),
        },
    ),
    Dialect(
        "harmony",
        {
            **_PLAIN,
            "<|start|>": Mark(Begins.MESSAGE),
            "<|channel|>": Mark(Begins.MESSAGE),
            **{f"<|{token}|>": Mark(Begins.NOTHING) for token in ("end", "return", "call")},
        },
    ),
)

DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
"""By name, as the policy says it."""
