"""The conversation view of Anthropic's `/v1/messages`. A module in the shape of `wire.conversation.View`.

Shapes as in the types of the official Python SDK, 2.14.0, beta ones among them.
"""

from .asked import Asked as asked
from .replied import Replied as replied
from .told import Gather as gather
from .told import frames as frames

__all__ = ("asked", "frames", "gather", "replied")
