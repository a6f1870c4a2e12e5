"""What every policy model is made of: the strict base, durations and sizes."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema


class Strict(BaseModel):
    """A policy model: unknown keys are faults, values are never coerced across types, and it cannot change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}


def _measure(what: str, units: dict[str, float] | dict[str, int], example: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        if isinstance(value, bool) or (match is None and not isinstance(value, int)):
            raise ValueError(f"expected {what} such as {example}")
        number, unit = match.groups() if match else (str(value), "")
        if unit.lower() not in units:
            raise ValueError(f"expected {what} such as {example}; units: {', '.join(filter(None, units))}")
        return float(number) * units[unit.lower()]

    return read


Duration = Annotated[
    float,
    BeforeValidator(_measure("a duration with its unit", _SECONDS, "500ms, 5s or 10m")),
    Field(gt=0),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d)$"}),
]
"""Seconds; written with a unit: 500ms, 5s, 10m, 1h."""

Size = Annotated[
    int,
    BeforeValidator(lambda value: int(_measure("a size", _BYTES, "20MB or 64KiB")(value))),
    Field(gt=0),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer", "exclusiveMinimum": 0}]}),
]
"""Bytes; written as a number or with a unit: 20MB, 64KiB."""


_SPANS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def span(seconds: int) -> str:
    """Whole seconds as a policy writes them: 1d."""
    return next(f"{seconds // size}{name}" for size, name in _SPANS if seconds % size == 0)
