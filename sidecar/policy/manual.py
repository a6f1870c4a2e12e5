"""The JSON Schema that editors use and the reference people read, both made from the models that validate."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from ..config import Duration, Size
from ..stages.prices import Money
from ..text.detectors import PACKS
from ..upstream.resilience import Pause
from .overrides import RESERVED
from .schema import Policy
from .shape import bare, choices, items_of, leaves, model_of, values_of

Schema: TypeAlias = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"type": "string", "pattern": r"\$\{[A-Za-z_]"}


# --- JSON Schema ---


def schema() -> Schema:
    """The policy's JSON Schema, draft 2020-12. Where a value is of a certain form, `${NAME}` fits as well."""
    return {"$schema": _DIALECT, **_tidy(Policy.model_json_schema())}


def _tidy(node: Schema) -> Schema:
    """One schema without what only repeats its name, and without null, which no field takes."""
    node = {key: _inside(key, value) for key, value in node.items() if key not in ("title", "default")} | _default(node)
    branches = [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]
    if len(branches) == 1:
        node = {**node, **branches[0]}
        del node["anyOf"]
    return _or_reference(node)


_MAPS = frozenset(("properties", "$defs", "patternProperties"))
_LISTS = frozenset(("anyOf", "allOf", "prefixItems"))
_ONES = frozenset(("items", "additionalProperties"))


def _inside(key: str, value: Any) -> Any:
    if key in _MAPS:
        return {name: _tidy(inner) for name, inner in value.items()}
    if key in _LISTS:
        return [_tidy(inner) for inner in value]
    return _tidy(value) if key in _ONES and isinstance(value, dict) else value


def _default(node: Schema) -> Schema:
    value = node.get("default")
    return {} if value is None or isinstance(value, dict | list) else {"default": written(node, value)}


_FORMS = frozenset(("enum", "pattern", "minimum", "exclusiveMinimum", "maximum", "minLength"))
_KEPT = ("description", "default")


def _or_reference(node: Schema) -> Schema:
    """A field that takes only numbers or certain words takes `${NAME}` too."""
    scalar = node.get("type") in ("integer", "number", "boolean") or (
        node.get("type") == "string" and not _FORMS.isdisjoint(node)
    )
    if not scalar:
        return node
    kept = {key: node[key] for key in _KEPT if key in node}
    bare_node = {key: value for key, value in node.items() if key not in _KEPT}
    return {**kept, "anyOf": [bare_node, _REFERENCE]}


# --- values as a policy writes them ---

_OR_OFF = "duration or `off`"
_TIMES = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"), (0.001, "ms"))
_UNITS = {
    "duration": _TIMES,
    _OR_OFF: _TIMES,
    "size": ((10**9, "GB"), (10**6, "MB"), (2**20, "MiB"), (2**10, "KiB"), (1000, "KB"), (1, "")),
}


def _form(shape: Any) -> str:
    known = TypeAdapter(shape).json_schema()
    return json.dumps({key: value for key, value in known.items() if key not in (*_KEPT, "title")}, sort_keys=True)


_MEASURES = {
    _form(Duration): "duration",
    _form(Pause): _OR_OFF,
    _form(Size): "size",
    _form(Money): "decimal",
}


def measure(node: Schema) -> str:
    """`duration`, `size` or `decimal`, for the schema of such a field, which may be absent; else nothing."""
    plain = {key: value for key, value in node.items() if key not in (*_KEPT, "title")}
    branches = [branch for branch in plain.get("anyOf", ()) if branch.get("type") != "null"]
    if branches:
        plain = branches[0] if len(branches) == 1 else {"anyOf": branches}
    return _MEASURES.get(json.dumps(plain, sort_keys=True), "")


def written(node: Schema, value: Any) -> Any:
    """A default as a policy writes it: 5s, 20MB."""
    for unit, name in _UNITS.get(measure(node), ()):
        count = value / unit
        if value >= unit and abs(count - round(count)) < 1e-9:
            return f"{count:g}{name}"
    return value


# --- the reference ---


def markdown() -> str:
    """The reference of the policy language, docs/policy.md."""
    parts = [_INTRODUCTION, *map(_section, Policy.model_fields.items()), *_detectors(), _ENVIRONMENT]
    return "\n".join(part.strip() + "\n" for part in parts)


def _section(field: tuple[str, FieldInfo]) -> str:
    name, info = field
    lines = [f"## {name}", "", str(info.description), ""]
    rows = list(_rows(info))
    if rows:
        lines += [
            _shape_of(info),
            "",
            "| field | takes | default | what it is |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    example = {name: info.examples[0]} if info.examples else {"version": 1}
    return "\n".join([*lines, "```yaml", _yaml(example).rstrip(), "```"])


def _shape_of(info: FieldInfo) -> str:
    values = values_of(info.annotation)
    if values is not None and model_of(values):
        return "Each key is a name; under it stand these fields:"
    if values is not None:
        return "Each key is a name; under it stands one or a list, each as text or with these fields:"
    return "Each item has these fields:" if items_of(info.annotation) is not None else "The fields:"


def _rows(info: FieldInfo) -> Iterator[str]:
    inner = values_of(info.annotation) or items_of(info.annotation) or info.annotation
    model = model_of(inner) or model_of(items_of(inner))
    for path, field in leaves(model) if model else ():
        name = ".".join(path).replace(".[]", "[]")
        cells = (f"`{name}`", _takes(field), _default_of(field), str(field.description))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _takes(field: FieldInfo) -> str:
    shape = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return measure(_tidied(shape)) or words(shape)


def _tidied(shape: Any) -> Schema:
    known: Schema = TypeAdapter(shape).json_schema() if model_of(shape) is None else {}
    return known


_KINDS = {str: "text", int: "number", float: "number", bool: "true or false"}


def words(shape: Any) -> str:
    """A type in words."""
    if choices(shape):
        return ", ".join(f"`{word}`" for word in choices(shape))
    item = items_of(shape)
    if item is not None:
        return "list" if model_of(item) else f"list of {words(item)}"
    if model_of(shape) or values_of(shape) is not None:
        return "table"
    return " or ".join(_KINDS.get(one, "text") for one in bare(shape))


def _default_of(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True) if not field.is_required() else None
    if field.is_required():
        return "required"
    if value is None or value in ((), [], {}) or model_of(field.annotation):
        return ""
    shape = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    shown = written(_tidied(shape), getattr(value, "value", value))
    return f"`{str(shown).lower() if isinstance(shown, bool) else shown}`"


class _Indented(yaml.SafeDumper):
    """Lists stand further in than their key, as people write them."""

    # As this language reads them: `on` and `no` are words and need no quotes.
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, form) for tag, form in found if not tag.endswith(":bool") or first in "tTfF"]
        for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _yaml(value: Any) -> str:
    flow = None if isinstance(next(iter(value.values())), dict | list) else False
    text: str = yaml.dump(value, Dumper=_Indented, sort_keys=False, default_flow_style=flow, width=100)
    return text


def _detectors() -> Iterator[str]:
    rows = (f"| `{pack}` | {', '.join(f'`{detector.name}`' for detector in found)} |" for pack, found in PACKS.items())
    table = "\n".join(("| pack | its detectors |", "|---|---|", *rows))
    yield f"## Detectors\n\nWhat `detect` can name: a pack, or a single detector of one.\n\n{table}"


_INTRODUCTION = """
# The policy language, version 1

<!-- Generated: sidecar schema --format markdown > docs/policy.md -->

A policy is one YAML file, or a folder of `*.yaml` files. The files of a folder go together by section: tables
key by key, lists one after the other in the order of the file names. Files that end in `.test.yaml` are not
policy.

`sidecar check FILE` tells everything that is wrong with a policy at once, each fault with file, line and
column. A key that is not in this reference is a fault. So is a key that stands twice.

Booleans are `true` and `false`; `no`, `on` and `off` are words. Write patterns in single quotes: in double
quotes YAML reads a backslash as an escape. Anchors, aliases and the merge key `<<` work as in YAML.

Editors complete and check a policy that begins with this line:

```yaml
# yaml-language-server: $schema=./policy.schema.json
```

`sidecar schema > policy.schema.json` writes that file.
"""

_ENVIRONMENT = f"""
## The environment

`${{NAME}}` stands for the value of an environment variable, and `${{NAME:-default}}` for the default when the
variable is unset or empty. A variable that is unset and has no default is a fault. For the characters `${{`
themselves write `$${{`. In a pattern and in a list of words no variable is read: what looks like one there is
a fault.

Every single value can be given in a variable: `SIDECAR_`, then the keys that lead to it in upper case, joined
by `_`, with `_` for every other sign. The items of a list go by their `name`:

| variable | stands over |
|---|---|
| `SIDECAR_SERVER_MAX_BODY=1MB` | `server.max_body` |
| `SIDECAR_PROVIDERS_OPENAI_BASE_URL=…` | `providers.openai.base_url` |
| `SIDECAR_GUARDRAILS_NO_SECRETS_MODE=shadow` | `mode` of the guardrail `no-secrets` |

A variable that begins with `SIDECAR_` and names nothing is a fault. Not part of the policy are
{", ".join(f"`{name}`" for name in sorted(RESERVED))}, and what Kubernetes sets beside
a service called `sidecar`.
"""
