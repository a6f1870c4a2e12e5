"""The APIs that are looked into by a module of their own, and the one for all others: the visible list."""

from . import (
    anything,
    audio,
    chat,
    completions,
    embeddings,
    images,
    messages,
    messages_count,
    moderations,
    ollama,
    responses,
)
from .stream import Wire

APIS: tuple[Wire, ...] = (
    *(chat, responses, messages, messages_count, completions, embeddings, moderations, images, audio),
    *(ollama.CHAT, ollama.GENERATE, ollama.EMBED),
    anything,
)
