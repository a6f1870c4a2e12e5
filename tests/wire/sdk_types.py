"""Documents made from the types of an official SDK: every text that a request or a reply can hold, each with its place.

Tests compare the places with a table of their own, so that a new release of an SDK shows what it has added.
"""

import collections.abc
import inspect
import types
import typing
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, Literal, NotRequired, Required, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

_WRAPPERS = (Required, NotRequired, typing.Annotated)
_UNIONS = (Union, types.UnionType)


class Samples:
    """Values of a type, so many that every alternative anywhere below it stands in one of them.

    `places` tells of each text where it is: the type of the object that holds it, else the field it stands in, and
    the name of its own field.
    """

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self._numbers = count()

    def of(self, kind: Any, place: str = "") -> list[Any]:
        origin = get_origin(kind)
        if origin in _WRAPPERS:
            return self.of(get_args(kind)[0], place)
        if origin is Literal:
            return [get_args(kind)[0]]
        if origin in _UNIONS:
            return [value for each in get_args(kind) for value in self.of(each, place)]
        if kind is str or kind is object or isinstance(kind, TypeVar):
            return [self._text(place)]
        if is_object(kind):
            return self._objects(kind, place)
        if inspect.isclass(origin) and issubclass(origin, collections.abc.Mapping):
            return [{"key": value} for value in self.of(get_args(kind)[1], place)]
        if inspect.isclass(origin) and issubclass(origin, collections.abc.Iterable):
            return [[value for each in get_args(kind) for value in self.of(each, place)]]
        return [7] if kind is int else []

    def _text(self, place: str) -> str:
        text = f"text-{next(self._numbers)}."
        self.places[text] = place
        return text

    def _objects(self, kind: Any, place: str) -> list[Any]:
        fields = fields_of(kind)
        owner = name_of(kind) or place.rpartition(".")[2]
        values = {field: self.of(each, f"{owner}.{field}") for field, each in fields.items()}
        values = {field: each for field, each in values.items() if each}
        rows = max(map(len, values.values()), default=1)
        return [{field: each[row % len(each)] for field, each in values.items()} for row in range(rows)]


def is_object(kind: Any) -> bool:
    return is_typeddict(kind) or (inspect.isclass(kind) and issubclass(kind, BaseModel))


def name_of(kind: Any) -> str:
    """What tells objects of this kind from others."""
    told = fields_of(kind).get("type")
    while get_origin(told) in _WRAPPERS:
        told = get_args(told)[0]
    return str(get_args(told)[0]) if get_origin(told) is Literal else ""


@cache
def fields_of(kind: Any) -> dict[str, Any]:
    """An object's fields by their names on the wire."""
    if is_typeddict(kind):
        return get_type_hints(kind)
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def below(value: Any) -> Iterator[str]:
    """Every string of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from below(inner)
