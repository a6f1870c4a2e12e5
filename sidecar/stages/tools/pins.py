"""Tool definitions that change within a session: a description instructs the model, and a changed one may attack it."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ...stores.runs import MAX_NAME, Pins
from ...wire import jsondoc
from ...wire.conversation import Tool

# Of one session: more are not pinned, and count as changed.
MAX_TOOLS: Final = 1_000


def digest(definitions: Iterable[Any]) -> bytes:
    """The SHA-256 of definitions as canonical JSON: compact, keys in order."""
    return hashlib.sha256(b"\n".join(map(_canonical, definitions))).digest()


def _canonical(definition: Any) -> bytes:
    try:
        return msgspec.json.encode(definition, order="sorted")
    except UnicodeEncodeError:  # half of a surrogate pair
        plain = json.loads(jsondoc.encode(definition))
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def _short(name: str) -> str:
    """What stands for a name: a request may hold names of any length, and what is kept is bounded."""
    return name if len(name) <= MAX_NAME else hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def changed(pins: Pins, tools: Iterable[Tool], *, follow: bool) -> list[str]:
    """The names of tools that are no more what they were. One that is new is pinned; with `follow`, changed ones are
    pinned anew, so that each change is told once."""
    by_name: dict[str, list[Any]] = {}
    for tool in tools:
        by_name.setdefault(tool.name, []).append(tool.definition)
    found = []
    for name, definitions in by_name.items():
        kept = _short(name)
        now, before = digest(definitions), pins.get(kept)
        if before is None and len(pins) < MAX_TOOLS:
            pins.pin(kept, now)
        elif before != now:
            found.append(name)
            if follow and before is not None:
                pins.pin(kept, now)
    return found
