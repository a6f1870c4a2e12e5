"""The APIs that have conversations, by the name of their wire: the visible list."""

from collections.abc import Mapping

from .. import chat as chat_wire
from .. import messages as messages_wire
from .. import ollama as ollama_wire
from .. import responses as responses_wire
from ..conversation import View
from . import chat, messages, ollama, responses

VIEWS: Mapping[str, View] = {
    chat_wire.NAME: chat,
    responses_wire.NAME: responses,
    messages_wire.NAME: messages,
    ollama_wire.CHAT.NAME: ollama,
}


def view_of(name: str) -> View | None:
    """The view of the API whose wire has this name; None where it holds no conversations."""
    return VIEWS.get(name)
