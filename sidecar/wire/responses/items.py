"""The items of inputs and outputs as tables: which of their fields hold texts, and which hold words of the API.

Item types, parts and their fields as in the OpenAI API reference and the official client's types (openai 3.57).
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

from ...core.surface import Kind, Slot, Surface
from ..walk import payload
from .places import HERE, Places, TextSlot

Path: TypeAlias = tuple[str | int, ...]
Surfaces: TypeAlias = Mapping[str, Surface]


class Found(NamedTuple):
    """A text and the way to it."""

    path: Path
    slot: Slot


class Payload(NamedTuple):
    """A field with an image, a sound or a file: a text only where it is or encodes one."""

    field: str


class Parts(NamedTuple):
    """A text or a list of content parts; `keyed`: an object of them."""

    keyed: bool = False


class Word(NamedTuple):
    """A word of the API, an identifier, or what the provider has sealed; else an object. `many`: or a list of words."""

    otherwise: "Mapping[str, Spec]"
    many: bool = False


Spec: TypeAlias = "str | Payload | Parts | Word | Mapping[str, Spec]"
"""What a field holds: only texts, by the name of their surface; or an object (or a list of such) by its fields."""

WORD = Word({})
_WORDS = Word({}, many=True)


def _words(*names: str) -> dict[str, Spec]:
    return dict.fromkeys(names, WORD)


# In any object. What is encrypted, the provider needs back as it is.
_IDENTIFIERS = _words(
    *("id", "type", "object", "status", "role", "model", "item_id", "call_id", "file_id", "container_id", "created_by"),
    *("approval_request_id", "encrypted_content", "obfuscation"),
)
# A text once more, in tokens, which go when it changes; and lists of words by words.
_UNREAD = frozenset(("logprobs", "category_applied_input_types"))

_CACHE = {"prompt_cache_breakpoint": _words("mode", "ttl")}
_FILE = {**_CACHE, **_words("detail")}
ANNOTATION: Spec = {"title": "annotation", "url": "annotation", "filename": "annotation"}
_PARTS: dict[str, Mapping[str, Spec]] = {
    "input_text": {"text": HERE, **_CACHE},
    "input_image": {"image_url": Payload(HERE), **_FILE},
    "input_file": {"file_data": Payload(HERE), "file_url": Payload(HERE), "filename": HERE, **_FILE},
    "input_audio": {"input_audio": {"data": Payload(HERE), **_words("format")}},
    "output_text": {"text": HERE, "annotations": ANNOTATION},
    "refusal": {"refusal": "refusal"},
    "reasoning_text": {"text": "reasoning"},
    "summary_text": {"text": "summary"},
}
_CALLER: dict[str, Spec] = {"caller": _words("caller_id")}
_CALL: dict[str, Spec] = {"name": "name", "namespace": "name", **_CALLER}
_MCP: dict[str, Spec] = {"server_label": "name", "name": "name", "arguments": "mcp_arguments"}
_COMPUTER: Spec = {"text": "action", "keys": "action", **_words("button")}

MESSAGE: Mapping[str, Spec] = {"content": Parts(), "name": HERE, **_words("phase")}
ITEMS: dict[str, Mapping[str, Spec]] = {
    "message": MESSAGE,
    "reasoning": {"summary": {"text": "summary"}, "content": {"text": "reasoning"}},
    "function_call": {**_CALL, "arguments": "arguments"},
    "function_call_output": {**_CALL, "output": Parts()},
    "custom_tool_call": {**_CALL, "input": "input"},
    "custom_tool_call_output": {**_CALL, "output": Parts()},
    "tool_search_call": {"arguments": "action", **_words("execution")},
    "tool_search_output": {"tools": "item_tools", **_words("execution")},
    "additional_tools": {"tools": "item_tools"},
    "configuration_update": {"reasoning": _words("effort"), "text": {"format": "item_format"}},
    "compaction": {},
    "compaction_trigger": {},
    "item_reference": {},
    "program": {"code": "action", **_words("fingerprint")},
    "program_output": {"result": "output"},
    "mcp_list_tools": {"server_label": "name", "tools": "item_tools", "error": "output"},
    "mcp_approval_request": _MCP,
    "mcp_approval_response": {"reason": "reason"},
    "mcp_call": {**_MCP, "output": "output", "error": {"message": "output", "content": "output"}},
    "file_search_call": {
        "queries": "action",
        "results": {"text": "output", "filename": "output", "attributes": "output"},
    },
    "web_search_call": {
        "action": {
            "query": "action",
            "queries": "action",
            "pattern": "action",
            "url": "action",
            "sources": {"url": "output"},
        },
        "results": "output",
    },
    "computer_call": {
        "action": _COMPUTER,
        "actions": _COMPUTER,
        "pending_safety_checks": {"message": "action", **_words("code")},
    },
    "computer_call_output": {
        "output": {"image_url": Payload("output")},
        "acknowledged_safety_checks": {"message": "output", **_words("code")},
    },
    "code_interpreter_call": {"code": "code", "outputs": {"logs": "output", "url": Payload("output")}},
    "image_generation_call": {
        "prompt": "action",
        "revised_prompt": "action",
        "result": Payload("output"),
        "error": {
            "message": "output",
            "param": "output",
            "moderation_details": {"categories": _WORDS, **_words("moderation_stage")},
            **_words("code"),
        },
        "svg_usage": {},
        **_words("action", "background", "output_format", "quality", "size"),
    },
    "local_shell_call": {
        "action": {"command": "action", "env": "action", "user": "action", "working_directory": "action"}
    },
    "local_shell_call_output": {"output": "output"},
    "shell_call": {
        "action": {"commands": "command"},
        "environment": {"skills": {"name": "item_tools", "description": "item_tools", "path": "item_tools"}},
        **_CALLER,
    },
    "shell_call_output": {"output": {"stdout": "stdout", "stderr": "stderr", "outcome": {}}, **_CALLER},
    "apply_patch_call": {"operation": {"diff": "action", "path": "action"}, **_CALLER},
    "apply_patch_call_output": {"output": "output", **_CALLER},
}

# What a request and the response object have beside their items.
FIELDS: dict[str, Spec] = {
    **{name: name for name in ("metadata", "user", "safety_identifier", "prompt_cache_key", "tools")},
    "prompt": {"variables": Parts(keyed=True), **_words("version")},
    "text": {"format": "format", **_words("verbosity")},
    "tool_choice": Word({"name": "tool_choice", "server_label": "tool_choice", "tools": "tool_choice", "mode": WORD}),
    "reasoning": _words("effort", "summary", "generate_summary", "context", "mode"),
    "prompt_cache_options": _words("mode", "ttl", "comparison_response_id"),
    "access_programs": _words("cyber"),
    "image": _words("context_compression"),
    "background_options": {"continuation_id": "continuation_id", **_words("completion_window")},
    **_words("service_tier", "truncation", "previous_response_id", "prompt_cache_retention", "conversation"),
}
REQUEST_FIELDS: dict[str, Spec] = {
    **FIELDS,
    "moderation": {"policy": {"input": _words("mode"), "output": _words("mode")}},
    "include": _WORDS,
    **_words("context_management", "stream_options"),
}
_MODERATED: Spec = {"message": "error", **_words("code")}
RESPONSE_FIELDS: dict[str, Spec] = {
    **FIELDS,
    "error": {"message": "error", "param": "error", "misalignment": "error", **_words("code")},
    "moderation": {"input": _MODERATED, "output": _MODERATED},
    **_words("usage", "tool_usage"),
    "incomplete_details": _words("reason"),
    "prompt_cache_diagnostics": _words("reason"),
    "input_transformations": _words("action", "reason"),
}


def items(holder: dict[str, Any], field: str, places: Places, plain: Surface) -> Iterator[tuple[int, Found]]:
    """The texts of a list of items, each with its item's number; of a bare text, too."""
    value = holder[field]
    if isinstance(value, list):
        for index in range(len(value)):
            yield from ((index, found) for found in item(value, index, places))
    else:
        yield from ((0, found) for found in below(holder, field, plain, ()))


def item(holder: Any, key: str | int, places: Places) -> Iterator[Found]:
    """The texts of one item. What is no object is walked."""
    value = holder[key]
    if not isinstance(value, dict):
        return below(holder, key, places.contents[Kind.USER][HERE], ())
    kind = value.get("type")
    spec = ITEMS.get(kind) if isinstance(kind, str) else None
    if spec is MESSAGE or (spec is None and "role" in value):
        return fields(value, MESSAGE, places.of_role(value.get("role")), ())
    if spec is None:
        return fields(value, {}, places.fields, ())
    return fields(value, spec, places.contents[Kind.TOOL_RESULTS], ())


def fields(
    holder: dict[str, Any],
    spec: Mapping[str, Spec],
    surfaces: Surfaces,
    path: Path,
    apart: AbstractSet[str] = frozenset(),
) -> Iterator[Found]:
    """The texts of an object; what is not in its table is unknown. The fields in `apart` are left out."""
    for field, value in holder.items():
        if type(value) not in _MAY_HOLD_TEXT or (field in _UNREAD and type(value) is not str) or field in apart:
            continue
        known = spec.get(field)
        if known is None:
            known = _IDENTIFIERS.get(field, "unknown")
        yield from texts(holder, field, known, surfaces, (*path, field))


_MAY_HOLD_TEXT = (str, dict, list)


def texts(holder: Any, key: str | int, spec: Spec, surfaces: Surfaces, path: Path) -> Iterator[Found]:
    """The texts of a field."""
    value = holder[key]
    match spec:
        case str():
            yield from below(holder, key, _surface(spec, value, surfaces), path)
        case Payload(field):
            yield from (Found(path, slot) for slot in payload(holder, key, surfaces[field]))
        case Parts(keyed):
            yield from _contents(holder, key, surfaces, path, keyed)
        case Word():
            yield from _unless_word(holder, key, spec, surfaces, path)
        case _ if isinstance(value, dict):
            yield from fields(value, spec, surfaces, path)
        case _ if isinstance(value, list):
            for index in range(len(value)):
                yield from texts(value, index, spec, surfaces, (*path, index))
        case _:
            yield from below(holder, key, _first(spec, surfaces), path)


def _surface(field: str, value: Any, surfaces: Surfaces) -> Surface:
    """Arguments that are no JSON in a string but an object already are looked at text by text."""
    surface = surfaces[field]
    return surfaces["action"] if surface.json and not isinstance(value, str) else surface


def _first(spec: Mapping[str, Spec], surfaces: Surfaces) -> Surface:
    """Where a text stands in place of an object, it is what the object's first field would have said."""
    first = next(iter(spec.values()), None)
    return surfaces[first if isinstance(first, str) else "unknown"]


def below(holder: Any, key: str | int, surface: Surface, path: Path) -> Iterator[Found]:
    """Every string at and below a place."""
    value = holder[key]
    if isinstance(value, str):
        yield Found(path, TextSlot(surface, holder, key))
    elif isinstance(value, dict):
        for inner in value:
            yield from below(value, inner, surface, (*path, inner))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from below(value, index, surface, (*path, index))


def _unless_word(holder: Any, key: str | int, spec: Word, surfaces: Surfaces, path: Path) -> Iterator[Found]:
    value = holder[key]
    if isinstance(value, dict):
        yield from fields(value, spec.otherwise, surfaces, path)
    elif isinstance(value, list):
        inner: Spec = spec if spec.many else spec.otherwise
        for index in range(len(value)):
            yield from texts(value, index, inner, surfaces, (*path, index))


def _contents(holder: Any, key: str | int, surfaces: Surfaces, path: Path, keyed: bool) -> Iterator[Found]:
    value = holder[key]
    here = surfaces.get(HERE) or surfaces["variables"]
    if isinstance(value, list) or (keyed and isinstance(value, dict)):
        for place in value if isinstance(value, dict) else range(len(value)):
            yield from part(value, place, {**surfaces, HERE: here} if keyed else surfaces, (*path, place))
    elif isinstance(value, dict):
        yield from part(holder, key, surfaces, path)
    else:
        yield from below(holder, key, here, path)


def part(holder: Any, key: str | int, surfaces: Surfaces, path: Path) -> Iterator[Found]:
    """The texts of a content part; of one whose type nobody documents, every string."""
    value = holder[key]
    kind = value.get("type") if isinstance(value, dict) else None
    spec = _PARTS.get(kind) if isinstance(kind, str) else None
    if spec is not None:
        yield from fields(value, spec, surfaces, path)
    elif isinstance(value, dict):
        for field, inner in value.items():
            if field != "type" or not isinstance(inner, str):
                yield from below(value, field, surfaces[HERE], (*path, field))
    else:
        yield from below(holder, key, surfaces[HERE], path)
