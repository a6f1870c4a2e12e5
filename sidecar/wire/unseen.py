"""What a request carries that no rule about text can look into: images, sounds, files, and what the provider keeps."""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from .walk import encodes_text

Sort = Literal["images", "audio", "files", "provider_state"]


class Unseen(NamedTuple):
    """Something of a request that is not looked into, and the path of its field."""

    sort: Sort
    path: str


# Parts by their type, with the fields that may hold the payload. OpenAI chat and Responses, Anthropic Messages.
_PARTS: dict[str, tuple[Sort, tuple[str, ...]]] = {
    "image_url": ("images", ("image_url",)),
    "input_image": ("images", ("image_url", "file_id")),
    "computer_screenshot": ("images", ("image_url", "file_id")),
    "image": ("images", ("source",)),
    "input_audio": ("audio", ("input_audio",)),
    "file": ("files", ("file",)),
    "input_file": ("files", ("file_data", "file_id", "file_url")),
    "document": ("files", ("source",)),
    "container_upload": ("files", ("file_id",)),
    "item_reference": ("provider_state", ("id",)),
}
# Anthropic's conversations at the provider.
THREAD: Final = "thread"
# Fields of a request that name what the provider keeps.
_STATE = ("previous_response_id", "conversation", "prompt", THREAD, "container")
# Ollama's own way to send images.
_IMAGES = "images"


def unseen(document: dict[str, Any]) -> Iterator[Unseen]:
    """Everything of a request that stays unseen, in the order of its fields."""
    for field in _STATE:
        if field in document and _is_kept(field, document[field]):
            yield Unseen("provider_state", field)
    yield from _below(document, "")


def _is_kept(field: str, value: Any) -> bool:
    """A prompt is a text and a container a new one, unless they name what there is already.

    A thread of Anthropic's is kept from its first message on, and the next ones lean on it. One of OpenAI's holds its
    texts.
    """
    match field, value:
        case "prompt", dict():
            return bool(value)
        case "thread", dict():
            return bool(value.get("previous_message_id") or value.get("type") == "create" or value.get("id"))
        case "container", dict():
            return bool(value.get("id"))
        case "prompt" | "thread", _:
            return False
    return bool(value)


def _below(value: Any, path: str) -> Iterator[Unseen]:
    if isinstance(value, dict):
        yield from _part(value, path)
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                yield from _below(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if isinstance(inner, dict | list):
                yield from _below(inner, f"{path}[{index}]")


def _part(part: dict[str, Any], path: str) -> Iterator[Unseen]:
    if part.get(_IMAGES) and isinstance(part[_IMAGES], list):
        yield Unseen("images", f"{path}.{_IMAGES}" if path else _IMAGES)
    kind = part.get("type")
    sort, fields = _PARTS.get(kind, (None, ())) if isinstance(kind, str) else (None, ())
    if sort is not None and any(part.get(field) and not _is_text(part[field]) for field in fields):
        yield Unseen(sort, path)


# Where a payload lies in the object that a part's field holds.
_PAYLOADS = ("url", "data", "file_data")
_TEXT_SOURCES = ("text", "content")


def _is_text(value: Any) -> bool:
    """Whether what a part holds is text after all: a text file, a data URL of one, a text source."""
    if isinstance(value, dict):
        if value.get("type") in _TEXT_SOURCES:
            return True
        return any(_is_text(value[name]) for name in _PAYLOADS if isinstance(value.get(name), str))
    return isinstance(value, str) and encodes_text(value, value.find(",") + 1 if value.startswith("data:") else 0)
