"""Requests that hold their conversation as a list of messages with roles, the system's among them."""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, ClassVar

from ...core.surface import Slot, Surface
from .shape import Object, mapping, objects, sequence


class Turns:
    """What the views of such requests share."""

    __slots__ = ("_document",)

    SYSTEM: ClassVar[tuple[str, ...]]
    """The roles whose texts are the system's."""

    def __init__(self, document: Object) -> None:
        self._document = document

    @property
    def approvals(self) -> bool:
        """No provider of these APIs asks."""
        return False

    @property
    def system(self) -> str:
        return "\n\n".join(filter(None, self._system_texts()))

    def _system_texts(self) -> Iterator[str]:
        for message in objects(self._document.get("messages")):
            if self._is_system(message):
                yield from texts_in(message.get("content"))

    def _is_system(self, message: Any) -> bool:
        return mapping(message).get("role") in self.SYSTEM

    def instruct(self, text: str) -> None:
        messages = self._document.get("messages")
        if isinstance(messages, list):
            front = list(takewhile(self._is_system, messages))
            if not (front and _extended(front[-1], text)):
                messages.insert(0, {"role": "system", "content": text})

    def say(self, text: str) -> None:
        """Goes on with the last message if it is the user's: many chat templates take no two of a role in a row."""
        last = mapping(next(reversed(self._messages()), None))
        if last.get("role") != "user" or not _extended(last, text):
            self._add([{"role": "user", "content": text}])

    def _add(self, turns: Iterable[Object]) -> None:
        self._messages().extend(turns)

    def _messages(self) -> list[Any]:
        return sequence(self._document.get("messages"))


def _extended(message: Object, text: str) -> bool:
    """Adds a text to a message; False where what it holds has no shape to add to."""
    content = message.get("content")
    if isinstance(content, list):
        content.append({"type": "text", "text": text})
    elif isinstance(content, str) or content is None:
        message["content"] = f"{content}\n\n{text}" if content else text
    else:
        return False
    return True


def texts_in(content: Any) -> list[str]:
    """The texts of content, which is one or a list of parts."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in objects(content) if is_text(part)]


def slots_in(message: Object, surface: Surface) -> list[Slot]:
    """The same with a way to replace them."""
    content = message.get("content")
    if isinstance(content, str):
        return [Slot(surface, message, "content")]
    return [Slot(surface, part, "text") for part in objects(content) if is_text(part)]


def is_text(part: Any) -> bool:
    """Whether a part of content is text; some servers and clients leave its type out."""
    return isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str)
