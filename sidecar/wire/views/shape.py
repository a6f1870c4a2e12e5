"""Values of a document by the shape that they should have: what has another one counts as absent."""

import re
from typing import Any

from .. import jsondoc

Object = dict[str, Any]


def mapping(value: Any) -> Object:
    """An object; an empty one of its own where there is none."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Object]:
    """The objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def schema_of(value: Any) -> Any:
    """A JSON Schema: an object, or one of the two that are a word. None where it is neither."""
    return value if isinstance(value, dict | bool) else None


def json_text(value: Any, absent: str = "") -> str:
    """Arguments as JSON text, whether they stand there as a text or as the value itself."""
    if value is None:
        return absent
    return value if isinstance(value, str) else jsondoc.encode(value).decode()


def sequence(value: Any) -> list[Any]:
    """A list itself, so that what is put into it is in the document; else one that belongs to nothing."""
    return value if isinstance(value, list) else []


def paragraphs(*texts: str) -> str:
    """Texts joined by blank lines; an empty one is none."""
    return "\n\n".join(filter(None, texts))


def form_name(name: str) -> str:
    """A name that an API takes for the form of a reply: 64 letters, digits, `_` and `-` at most."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "reply"


_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
