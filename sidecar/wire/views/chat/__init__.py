"""The conversation in `/v1/chat/completions`: requests, replies, and streams of them.

Fields as in the OpenAI API reference, with `functions` and `function_call`, the older form of tools and calls, and with
what compatible servers do: `tool_choice: "any"` (Mistral), a schema beside `json_object` (llama.cpp), content in parts
(Mistral), `reasoning_content`, `reasoning` and `reasoning_details`, calls without an id or a type.

Edits are made where the texts stand: a request that is to stay as it is must be copied whole before.

A module in the shape of `wire.conversation.View`.
"""

from .asked import Asked as asked
from .replied import ENDINGS
from .replied import Replied as replied
from .told import Gather as gather
from .told import frames as frames

__all__ = ("ENDINGS", "asked", "frames", "gather", "replied")
