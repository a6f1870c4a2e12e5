"""Looking at fields of a request: what is not expected is refused by its path."""

import re
from collections.abc import Container, Mapping
from typing import Any, Final, Never, TypeVar

from ....errors import InvalidRequest
from ...stream import Document

Expected = TypeVar("Expected", str, list[Any], dict[str, Any])

# A field's name is the client's text too: only what looks like a name is said again.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class _Any:
    """Holds every value."""

    def __contains__(self, value: object) -> bool:
        return True


ANY: Final = _Any()
NOTHING: Final[tuple[Any, ...]] = ()
Fields = Mapping[str, Container[Any]]
"""The values that are taken of each field. A field that is not there, or null, is always fine."""

_NAMES_OF = {str: "a string", list: "a list", dict: "an object"}


def refuse(path: str) -> Never:
    raise InvalidRequest(
        f"'{path}' asks for something that chat completions cannot express, and the provider of this model speaks "
        "only those. Leave it out, or ask for a model whose provider speaks the Responses API.",
        param=path,
    )


def invalid(path: str, expected: str) -> Never:
    raise InvalidRequest(f"'{path}' must be {expected}.", param=path)


def below(path: str, key: str) -> str:
    """The path of a field in the object at `path`; the object's own where the key does not look like a name."""
    if not _NAME.fullmatch(key):
        return path or "body"
    return f"{path}.{key}" if path else key


def only(holder: Document, path: str, fields: Fields) -> None:
    """Refuses a field that is not among these, or has another value."""
    for key, value in holder.items():
        if value is not None and value not in fields.get(key, NOTHING):
            refuse(below(path, key))


def given(value: Any, path: str, kind: type[Expected]) -> Expected:
    """The value, which has to be of this kind."""
    if not isinstance(value, kind):
        invalid(path, _NAMES_OF[kind])
    return value


def need(holder: Document, path: str, key: str) -> str:
    """The string in a field that has to be there."""
    return given(holder.get(key), below(path, key), str)


def objects(value: Any, path: str) -> list[tuple[Document, str]]:
    """The objects of a list, each with its path."""
    numbered = [(item, f"{path}[{index}]") for index, item in enumerate(given(value, path, list))]
    return [(given(item, at, dict), at) for item, at in numbered]


def kind_of(holder: Document, path: str, known: Container[str], default: str | None = None) -> str:
    """The `type` of an object, which has to be a known one."""
    kind = holder.get("type", default)
    if not isinstance(kind, str):
        invalid(below(path, "type"), "a string")
    if kind not in known:
        refuse(below(path, "type"))
    return kind


def present(**fields: Any) -> Document:
    """The fields that are not null."""
    return {key: value for key, value in fields.items() if value is not None}


def copied(value: Any) -> Any:
    """A document of its own: editing it in place changes no other."""
    match value:
        case dict():
            return {key: copied(inner) for key, inner in value.items()}
        case list():
            return [copied(inner) for inner in value]
        case _:
            return value
