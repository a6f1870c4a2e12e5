"""The objects of a request, read field by field: what nobody reads is refused by name."""

from collections.abc import Iterator
from typing import Any

from ....errors import InvalidRequest

HINTS = ("cache_control", "eager_input_streaming")
"""Fields that only say how the work may be done, wherever they stand. They are left out."""


def no_counterpart(path: str) -> InvalidRequest:
    return InvalidRequest(
        f"`{path}` has no counterpart in chat completions, which the provider of this model speaks. "
        "Leave it out, or ask for a model whose provider speaks Messages.",
        param=path,
    )


def expected(path: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"`{path}` must be {what}.", param=path)


class Fields:
    """One object. Each field is read once; `done` refuses those that nobody read. Null is as good as absent."""

    __slots__ = ("_left", "path")

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise expected(path, "an object")
        self.path = path
        self._left = {key: inner for key, inner in value.items() if inner is not None}

    def at(self, field: str) -> str:
        return f"{self.path}.{field}" if self.path else field

    def take(self, field: str) -> Any:
        """Any value; None where it is absent."""
        return self._left.pop(field, None)

    def text(self, field: str) -> str | None:
        value = self.take(field)
        if value is not None and not isinstance(value, str):
            raise expected(self.at(field), "a string")
        return value

    def needed(self, field: str) -> str:
        value = self.text(field)
        if value is None:
            raise expected(self.at(field), "a string")
        return value

    def flag(self, field: str) -> bool:
        value = self.take(field)
        if value is not None and not isinstance(value, bool):
            raise expected(self.at(field), "true or false")
        return bool(value)

    def inner(self, field: str) -> "Fields | None":
        value = self.take(field)
        return None if value is None else Fields(value, self.at(field))

    def items(self, field: str) -> "Iterator[Fields]":
        """The objects of a list; none where it is absent."""
        value = self.take(field)
        if value is not None and not isinstance(value, list):
            raise expected(self.at(field), "a list")
        for index, item in enumerate(value or ()):
            yield Fields(item, f"{self.at(field)}[{index}]")

    def blocks(self, field: str) -> "Iterator[Fields]":
        """Content: a list of blocks, or a text in place of one text block."""
        if isinstance(self._left.get(field), str):
            yield Fields({"type": "text", "text": self.take(field)}, self.at(field))
        else:
            yield from self.items(field)

    def only(self, field: str, *allowed: Any) -> Any:
        """A field of which nothing but these values, or none, has a counterpart."""
        value = self.take(field)
        if value is not None and value not in allowed:
            raise no_counterpart(self.at(field))
        return value

    def skip(self, *fields: str) -> None:
        for field in fields:
            self._left.pop(field, None)

    def done(self) -> None:
        self.skip(*HINTS)
        for field in self._left:
            raise no_counterpart(self.at(field))
