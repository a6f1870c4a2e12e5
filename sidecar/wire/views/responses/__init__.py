"""The conversation view of `/v1/responses`. A module in the shape of `wire.conversation.View`.

Shapes as in the OpenAI API reference and the official client's types (openai 3.57).
"""

from .asked import Asked as asked
from .replied import Replied as replied
from .told import Gather as gather
from .told import frames as frames

__all__ = ("asked", "frames", "gather", "replied")
