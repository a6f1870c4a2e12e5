"""A whole reply of chat completions."""

from collections.abc import Iterable

from ....core.surface import Lane
from ... import chat, several
from ...conversation import Called, Ending
from ..shape import Object, mapping, text_of
from ..turns import is_text, texts_in
from .entries import OLDER, called_in, calls_in, choices_in

ENDINGS: dict[str, Ending] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "filtered",
}


class Replied:
    """See `conversation.Replied`. Some servers end a reply that calls with `stop`: it ends with calls all the same."""

    __slots__ = ("_document",)

    def __init__(self, document: Object) -> None:
        self._document = document

    @property
    def texts(self) -> dict[int, str]:
        return {
            index: "".join(texts_in(choice["message"].get("content"))) for index, choice in choices_in(self._document)
        }

    @property
    def calls(self) -> list[Called]:
        found = ((index, calls_in(choice["message"])) for index, choice in choices_in(self._document))
        return [call for index, calls in found for call in called_in(calls, index)]

    @property
    def hosted(self) -> tuple[()]:
        """The API tells of none."""
        return ()

    def ending(self, choice: int) -> Ending:
        found = self._choice(choice)
        ending = ENDINGS.get(text_of(found.get("finish_reason")), "other")
        return "calls" if ending == "stop" and calls_in(mapping(found.get("message"))) else ending

    def refused(self, choice: int) -> bool:
        return bool(text_of(mapping(self._choice(choice).get("message")).get("refusal")))

    def say(self, choice: int, text: str) -> None:
        found = self._choice(choice)
        message = found.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            thoughts = [part for part in content if not is_text(part)] if isinstance(content, list) else []
            message["content"] = [*thoughts, {"type": "text", "text": text}] if thoughts else text
            _spoil(found)

    def drop(self, calls: Iterable[Called], notice: str) -> None:
        gone: dict[int, set[int]] = {}
        for call in calls:
            gone.setdefault(call.choice, set()).add(call.position)
        for choice, positions in gone.items():
            self._drop(choice, positions, notice)

    def _drop(self, choice: int, positions: set[int], notice: str) -> None:
        found = self._choice(choice)
        message = mapping(found.get("message"))
        places = {call.place for position, call in enumerate(calls_in(message)) if position in positions}
        if places and chat.take_out(message, lambda at, _: at in places, older=OLDER in places):
            chat.end_without(found, filter(None, (notice,)), calling=bool(calls_in(message)))
            if notice:
                _spoil(found)

    def _choice(self, number: int) -> Object:
        return next((choice for index, choice in choices_in(self._document) if index == number), {})


def _spoil(choice: Object) -> None:
    chat.spoil({"choices": [choice]}, Lane(chat.CONTENT, several.index_of(choice, 0)))
