"""A client of one API at a provider of another: documents of the one become documents of the other.

A bridge stands below the chain, next to the provider. The chain sees the client's API on both ways: it hands the
bridge a request that it has already edited, and gets replies and frames as the client's API would have sent them.

Each module here offers a class `Bridge(document)`, made for one exchange from the client's request document, in which
`model` is already the target's. A bridge has no clock and no randomness: ids and times come from the provider's
reply, so that the same request and reply always give the same documents.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from ..stream import Document

Limit = Literal["max_tokens", "max_completion_tokens"]
"""The field in which a provider of chat completions takes the most tokens of a reply."""


class Bridge(Protocol):
    """One exchange between a client of one API and a provider of another. Documents in, documents out."""

    PATH: bytes
    """Where the provider's endpoint is, after its base, such as `b"/v1/chat/completions"`."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Tools that the model called in its text and that the request does not have: the first few of them."""

    def request(self) -> Document:
        """The provider's request.

        Raises InvalidRequest for what has no counterpart; its `param` is the path of the field.
        """

    def reply(self, document: Document) -> Document:
        """A whole reply, in the client's API. Raises UpstreamBroken for what is none of the provider's API."""

    def error(self, document: Document, status: int) -> Document:
        """The provider's error reply in the client's shape; message, type and code are kept."""

    def feed(self, document: Document) -> Sequence[Document]:
        """One frame of the provider's stream: frames for the client."""

    def finish(self) -> Sequence[Document]:
        """The provider's stream is over, with its `[DONE]` or without: the rest."""
