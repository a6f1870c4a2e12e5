"""The tree of models, walked by the same paths as the tree of values."""

import json
import types
import typing
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as AbstractSequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from .nodes import Key, Path, Value
from .reader import resolve

Shape: TypeAlias = Any
"""A type annotation."""

_UNIONS: tuple[Any, ...] = (typing.Union, types.UnionType)
_LISTS = (AbstractSequence, AbstractSet)


def _origin(shape: Shape) -> Any:
    return typing.get_origin(shape)


def bare(shape: Shape) -> tuple[Shape, ...]:
    """The alternatives of an annotation, without their metadata and without None."""
    if _origin(shape) is Annotated:
        return bare(typing.get_args(shape)[0])
    if _origin(shape) in _UNIONS:
        return tuple(one for part in typing.get_args(shape) for one in bare(part))
    return () if shape in (None, type(None)) else (shape,)


def model_of(shape: Shape) -> type[BaseModel] | None:
    for one in bare(shape):
        if isinstance(one, type) and _origin(one) is None and issubclass(one, BaseModel):
            return one
    return None


def values_of(shape: Shape) -> Shape | None:
    """The shape of the values of a table with free keys, or None."""
    for one in bare(shape):
        origin = _origin(one)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return typing.get_args(one)[1]
    return None


def items_of(shape: Shape) -> Shape | None:
    """The shape of a list's items, or None."""
    for one in bare(shape):
        origin = _origin(one)
        if isinstance(origin, type) and issubclass(origin, _LISTS):
            return typing.get_args(one)[0]
    return None


def is_leaf(shape: Shape) -> bool:
    """Whether nothing with a name lies below."""
    return model_of(shape) is None and values_of(shape) is None


def takes_one(shape: Shape) -> bool:
    """Whether a single value can stand there. Some lists take one value for a list of one."""
    metadata = typing.get_args(shape)[1:] if _origin(shape) is Annotated else ()
    widened = any(isinstance(one, BeforeValidator) for one in metadata)
    return is_leaf(shape) and (widened or items_of(shape) is None)


def fields(model: type[BaseModel]) -> dict[str, Shape]:
    """A model's fields by the names that a policy uses."""
    return {info.alias or name: _shape(info) for name, info in model.model_fields.items()}


def _shape(info: FieldInfo) -> Shape:
    return Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation


def step(shape: Shape, key: Key) -> Shape | None:
    """The shape one key further in, or None where there is none."""
    if isinstance(key, int):
        return items_of(shape)
    model = model_of(shape)
    return fields(model).get(key) if model else values_of(shape)


def shape_at(shape: Shape, path: Path) -> Shape | None:
    for key in path:
        if shape is not None:
            shape = step(shape, key)
    return shape


def field_at(shape: Shape, path: Path) -> FieldInfo | None:
    """The field that a path ends at; a list's items belong to the field of the list."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    model = model_of(shape_at(shape, path[:-1])) if path else None
    infos = model.model_fields.items() if model else ()
    return next((info for name, info in infos if path[-1] in (name, info.alias)), None)


def choices(shape: Shape) -> tuple[str, ...]:
    """The words that a field takes, where it takes only certain words."""
    words: list[str] = []
    for one in bare(shape):
        if isinstance(one, type) and issubclass(one, Enum):
            words += [str(member.value) for member in one]
        elif _origin(one) is typing.Literal:
            words += [str(word) for word in typing.get_args(one)]
    return tuple(words)


def typed(shape: Shape, text: str) -> Value:
    """Text from the environment as a value of the field's type: the text itself where that fits, else what it
    means unquoted. Where neither fits, the models say what is wrong."""
    adapter: TypeAdapter[Any] = TypeAdapter(shape)
    meant = text if resolve(text) is None else resolve(text)
    for value in (text, meant):
        if _fits(adapter, value):
            return value
    return text if str in bare(shape) else meant


def _fits(adapter: TypeAdapter[Any], value: Value) -> bool:
    try:
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    return True


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every field of a model and of the models in it; `*` stands for a free key, `[]` for an item."""
    for name, info in model.model_fields.items():
        here = (*path, info.alias or name)
        yield here, info
        yield from _inner(info.annotation, here)


def _inner(shape: Shape, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    model = model_of(shape)
    if model:
        yield from leaves(model, path)
    elif values_of(shape) is not None:
        yield from _inner(values_of(shape), (*path, "*"))
    elif items_of(shape) is not None:
        yield from _inner(items_of(shape), (*path, "[]"))
