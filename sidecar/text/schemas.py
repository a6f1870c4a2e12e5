"""JSON Schema: what a schema means, and what about a value does not fit it.

The whole of drafts 4 to 2020-12, formats included. A schema refers to nothing outside itself, and to check a value
takes time that grows with the value: schemas for which it could not are refused.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import jsonschema_rs as rs
import msgspec

from ..errors import SidecarError

MAX_SCHEMA_BYTES: Final = 262_144
MAX_LEVELS: Final = 200
"""How deep a schema may be nested, references followed. Deeper, and a walk over it would not fit the stack."""
MAX_PATHS: Final = 1_000_000
"""How many ways there may be through a schema, references followed. Definitions that each name the next one twice
double it, and each way takes some 6 ns."""

# Look-around and back-references are matched by backtracking. A step takes time that grows with the text, so that both
# have a bound: at these 0.3 s in all.
_MAX_BACKTRACKS: Final = 10_000
MAX_BACKTRACKED_BYTES: Final = 16_384
"""The largest value, as JSON, that is checked against a schema with such patterns."""
_PATTERN_BYTES: Final = 1 << 20

# All faults of a value are collected before the first is told, at some 8 µs each: beyond these only the first is.
_MANY_BYTES: Final = 65_536
_MANY_PATHS: Final = 4_096

_MAX_MESSAGE: Final = 300
_MAX_POINTER: Final = 200
_CACHE_BYTES: Final = 4_000_000

# Their values are no schemas, whatever they look like.
_DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_CHOICES: Final = ("anyOf", "oneOf")
_KNOWN_ELSEWHERE: Final = ("https://json-schema.org/draft/", "http://json-schema.org/draft-")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(float_hook=Decimal).decode


class SchemaError(SidecarError):
    """A schema that cannot be used. `where` is a JSON pointer into it; the message quotes none of its values."""

    def __init__(self, message: str, where: str = "") -> None:
        self.message, self.where = message, where
        super().__init__(f"{message} (at {where})" if where else message)


class SchemaFault(NamedTuple):
    """What about a value does not fit. `pointer` is a JSON pointer into it, empty for all of it; the message holds
    none of its values, but may name keys. Both are bounded in length.
    """

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or 'the whole'}: {self.message}"


def pointer(path: Iterable[str | int]) -> str:
    """RFC 6901."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


class Checker:
    """A compiled schema. Immutable; shared by all who bring the same schema."""

    def __init__(self, text: bytes) -> None:
        """`text` is the schema as JSON. Raises SchemaError."""
        try:
            self._paths = _Ways(_decode(text)).count()
        except RecursionError:
            raise SchemaError(_TOO_DEEP) from None
        self._text = text.decode()
        self._check, self._backtracks = _compiled(self._text)
        self._explainer: _Explainer | None = None

    @classmethod
    def of(cls, schema: Any) -> "Checker":
        """The checker of a parsed schema; its floats may be `msgspec.Raw`. Raises SchemaError."""
        if not isinstance(schema, dict | bool):
            raise SchemaError("a schema is an object, or true or false")
        return _cache.get(_written(schema))

    def fits(self, value: Any) -> bool:
        """Whether a value has no faults."""
        written = _json(value)
        return not self._is_too_long(written) and self._check.is_valid(_decode(written))

    def faults(self, value: Any, limit: int = 8) -> tuple[SchemaFault, ...]:
        """The first faults, always the same ones in the same order. Empty means that the value fits.

        A value is what JSON parses to; its floats may be `msgspec.Raw`. 1.0 is an integer.
        """
        written = _json(value)
        if self._is_too_long(written):
            return (SchemaFault("", f"it is longer than {MAX_BACKTRACKED_BYTES} bytes and the schema has look-around"),)
        plain = _decode(written)
        if self._check.is_valid(plain):
            return ()
        brief = limit == 1 or len(written) > _MANY_BYTES or self._paths > _MANY_PATHS
        return tuple(self._explained(plain, limit, brief=brief)) or (SchemaFault("", _UNFIT),)

    def _is_too_long(self, written: bytes) -> bool:
        return self._backtracks and len(written) > MAX_BACKTRACKED_BYTES

    def _explained(self, value: Any, limit: int, *, brief: bool) -> Iterable[SchemaFault]:
        if self._explainer is None:
            self._explainer = _Explainer(self._text)
        return self._explainer.faults(value, limit, brief=brief)


_TOO_DEEP: Final = f"the schema is nested deeper than {MAX_LEVELS} levels, references followed"
_UNFIT: Final = "the value does not fit the schema"


def _json(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_whole(value))


def _written(schema: Any) -> bytes:
    try:
        written = _encode(schema)
    except UnicodeEncodeError:
        raise SchemaError("the schema holds half of a surrogate pair") from None
    except (RecursionError, TypeError):
        raise SchemaError("the schema is no JSON") from None
    if len(written) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"the schema is larger than {MAX_SCHEMA_BYTES} bytes")
    return written


def _whole(value: Any) -> Any:
    """The value with U+FFFD in the place of halves of surrogate pairs: of the same length to a schema."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(inner) for key, inner in value.items()}
        case list():
            return [_whole(inner) for inner in value]
    return value


# --- compiling ---


def _compiled(text: str) -> tuple[rs.Validator, bool]:
    """The validator, and whether a pattern of it has to be matched by backtracking."""
    try:
        return _validator(text, rs.RegexOptions(_PATTERN_BYTES, _PATTERN_BYTES)), False
    except SchemaError:
        return _validator(text, _BACKTRACKING), True


_BACKTRACKING: Final = rs.FancyRegexOptions(_MAX_BACKTRACKS, _PATTERN_BYTES, _PATTERN_BYTES)
_OPTIONS: Final[Mapping[str, Any]] = {"validate_formats": True, "offline": True, "mask": "the value"}


def _validator(text: str, patterns: rs.RegexOptions | rs.FancyRegexOptions) -> rs.Validator:
    try:
        return rs.validator_for(text, pattern_options=patterns, **_OPTIONS)
    except rs.ValidationError as fault:
        raise SchemaError(_refusal(fault), _short(pointer(fault.instance_path), _MAX_POINTER)) from None
    except (rs.ReferencingError, ValueError):
        raise SchemaError("the schema cannot be compiled") from None


def _refusal(fault: rs.ValidationError) -> str:
    match fault.kind:
        case rs.ValidationErrorKind.Format(format="regex"):
            return "this is no pattern that can be used"
        case rs.ValidationErrorKind.Referencing():
            return "a reference or $schema of the schema is not known"
        case rs.ValidationErrorKind.AnyOf() if list(fault.instance_path)[-1:] == ["type"]:
            return _NO_TYPE
    return _short(fault.message.replace("the value", "what stands here"), _MAX_MESSAGE)


_NO_TYPE: Final = "there is no such type; write array, boolean, integer, null, number, object or string, or a list"


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


class _Cache:
    """Compiled schemas by their text, those used last. Bounded by the bytes of the texts."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Checker] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, text: bytes) -> Checker:
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        checker = Checker(text)
        with self._lock:
            self._keep(text, checker)
        return checker

    def _keep(self, text: bytes, checker: Checker) -> None:
        if text not in self._known:
            self._bytes += len(text)
        self._known[text] = checker
        while self._bytes > _CACHE_BYTES:
            self._bytes -= len(self._known.popitem(last=False)[0])


_cache = _Cache()


class _Ways:
    """The ways through a schema. To count them is to see that all references lead to something in it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._named = dict(_names(root))
        self._counts: dict[int, int] = {}

    def count(self) -> int:
        return self._of(self._root, self._root, "", 0)

    def _of(self, node: Any, base: Any, where: str, level: int) -> int:
        if not isinstance(node, dict | list):
            return 0
        if id(node) in self._counts:
            return self._counts[id(node)]
        if level > MAX_LEVELS:
            raise SchemaError(_TOO_DEEP, _short(where, _MAX_POINTER))
        self._counts[id(node)] = 0  # a way that comes back here is followed only while it goes on in the value
        if isinstance(node, dict) and isinstance(_id(node), str):
            base = node
        total = 1 + sum(self._of(inner, base, at, level + 1) for inner, at in self._steps(node, base, where, level))
        if total > MAX_PATHS:
            raise SchemaError("there are too many ways through the schema", _short(where, _MAX_POINTER))
        self._counts[id(node)] = total
        return total

    def _steps(self, node: Any, base: Any, where: str, level: int) -> Iterator[tuple[Any, str]]:
        if isinstance(node, list):
            yield from ((inner, f"{where}/{index}") for index, inner in enumerate(node))
            return
        for key, inner in node.items():
            here = where + pointer([key])
            if key in _REFERENCES and isinstance(inner, str):
                yield self._target(inner, base, here), here
            elif key in _DEFINITIONS:
                self._of(inner, base, here, level + 1)
            elif key not in _DATA:
                yield inner, here

    def _target(self, reference: str, base: Any, where: str) -> Any:
        name, _, fragment = reference.partition("#")
        if name.startswith(_KNOWN_ELSEWHERE):
            return None
        holder = self._named.get(_last(name), _NOWHERE) if name else base
        fragment = unquote(fragment)
        if holder is not _NOWHERE and fragment and not fragment.startswith("/"):
            holder = self._named.get(f"#{fragment}", _NOWHERE)
        elif fragment:
            holder = _pointed(holder, fragment)
        if holder is _NOWHERE:
            raise SchemaError(
                "this refers to nothing in the schema, and nothing is fetched", _short(where, _MAX_POINTER)
            )
        return holder


_NOWHERE: Final = object()


def _id(node: Mapping[str, Any]) -> Any:
    return node.get("$id", node.get("id"))


def _last(uri: str) -> str:
    return unquote(uri.rstrip("/").rpartition("/")[2])


def _names(node: Any) -> Iterator[tuple[str, Any]]:
    """What in a schema can be referred to by a name."""
    if isinstance(node, dict):
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                yield f"#{node[key]}", node
        if isinstance(named := _id(node), str):
            yield (named if named.startswith("#") else _last(named.partition("#")[0])), node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _names(inner)


def _pointed(node: Any, fragment: str) -> Any:
    for token in fragment.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return _NOWHERE
    return node


# --- explaining ---


class _Explainer:
    """Tells why a value does not fit.

    What a library says of `anyOf` and `oneOf` holds the faults of all branches, and of all branches in those: in a
    recursive schema that doubles with each level of the value. So here they stand behind two `not`, which say only
    that it is so; and the branch that was meant is looked into alone.
    """

    def __init__(self, text: str) -> None:
        schema = _decode(text.encode())
        self._veiled = _veiled(schema) if not _mentions_unevaluated(text) else None
        self._map = None if self._veiled is None else _map_of(_encode(_floats(self._veiled)).decode())

    def faults(self, value: Any, limit: int, *, brief: bool) -> Iterator[SchemaFault]:
        if self._map is None:
            return
        steps = _Steps()
        for count, fault in enumerate(self._below("#", value, (), steps, brief=brief)):
            if count == limit:
                return
            yield fault

    def _below(
        self, at: str, value: Any, path: tuple[str | int, ...], steps: "_Steps", *, brief: bool
    ) -> Iterator[SchemaFault]:
        assert self._map is not None  # noqa: S101 -- faults has looked
        for error in _errors(self._map[at], value, brief=brief):
            here = (*path, *error.instance_path)
            branches = [branch for branch in self._branches(at, error) if branch in self._map]
            if not branches:
                yield _fault(error, here)
                continue
            inner = _at(value, error.instance_path)
            found = {branch: list(_errors(self._map[branch], inner, brief=brief)) for branch in branches}
            meant = _meant(found) if steps.left() else None
            if meant is None:
                fits = sum(not errors for errors in found.values())
                yield SchemaFault(_short(pointer(here), _MAX_POINTER), _FITS_MANY if fits > 1 else _FITS_NONE)
            else:
                yield from self._below(meant, inner, here, steps, brief=brief)

    def _branches(self, at: str, error: rs.ValidationError) -> list[str]:
        """Where the branches stand of a choice that was not fitting. Empty for any other error.

        A path begins at the part of the schema that was asked, or at its root where a reference was followed.
        """
        if not isinstance(error.kind, rs.ValidationErrorKind.Not):
            return []
        for base in (at, "#"):
            where = f"{base}{pointer(error.schema_path)}"
            node = _pointed(self._veiled, where[1:])
            if _is_veil(node):
                word, branches = next(iter(node["not"].items()))
                return [f"{where}/not/{word}/{index}" for index in range(len(branches))]
        return []


def _meant(found: Mapping[str, Sequence[rs.ValidationError]]) -> str | None:
    """The only branch that a value can have been meant for: of its type, and with its constants."""
    for is_other in (_is_other_type, _is_other_constant):
        left = {at: errors for at, errors in found.items() if errors and not any(map(is_other, errors))}
        if len(left) == 1:
            return next(iter(left))
        found = left or found
    return None


_FITS_NONE: Final = "the value fits none of the forms that the schema allows there"
_FITS_MANY: Final = "the value fits more than one of the forms, of which the schema allows one"


class _Steps:
    """How many choices are looked into for one value."""

    def __init__(self, most: int = 50) -> None:
        self._most = most

    def left(self) -> bool:
        self._most -= 1
        return self._most >= 0


def _errors(validator: rs.Validator, value: Any, *, brief: bool) -> Iterable[rs.ValidationError]:
    if not brief:
        yield from validator.iter_errors(value)
        return
    try:
        validator.validate(value)
    except rs.ValidationError as error:
        yield error


def _is_other_type(error: rs.ValidationError) -> bool:
    return not error.instance_path and isinstance(error.kind, rs.ValidationErrorKind.Type)


def _is_other_constant(error: rs.ValidationError) -> bool:
    kinds = (rs.ValidationErrorKind.Constant, rs.ValidationErrorKind.Enum)
    return len(error.instance_path) <= 1 and isinstance(error.kind, kinds)


def _fault(error: rs.ValidationError, path: Iterable[str | int]) -> SchemaFault:
    kinds = (rs.ValidationErrorKind.BacktrackLimitExceeded, rs.ValidationErrorKind.RegexEngineFailure)
    said = "its pattern takes too long to match" if isinstance(error.kind, kinds) else error.message
    return SchemaFault(_short(pointer(path), _MAX_POINTER), _short(said, _MAX_MESSAGE))


def _at(node: Any, path: Iterable[str | int]) -> Any:
    for key in path:
        node = node[key]
    return node


def _mentions_unevaluated(text: str) -> bool:
    """Behind a `not` nothing counts as evaluated."""
    return '"unevaluated' in text


def _map_of(text: str) -> rs.ValidatorMap | None:
    """None where a reference led into what is veiled."""
    try:
        found = rs.validator_map_for(text, pattern_options=_BACKTRACKING, **_OPTIONS)
    except (rs.ValidationError, rs.ReferencingError, ValueError):
        return None
    return found if "#" in found else None


def _veiled(node: Any) -> Any:
    if isinstance(node, list):
        return [_veiled(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    kept = {key: inner if key in _DATA else _veiled(inner) for key, inner in node.items()}
    veils = [{"not": {"not": {word: kept.pop(word)}}} for word in _CHOICES if _is_choice(kept.get(word))]
    return {**kept, "allOf": [*kept.get("allOf", ()), *veils]} if veils else kept


def _is_choice(branches: Any) -> bool:
    return isinstance(branches, list) and all(isinstance(branch, dict | bool) for branch in branches)


def _is_veil(node: Any) -> bool:
    inner = node.get("not") if isinstance(node, dict) and len(node) == 1 else None
    return isinstance(inner, dict) and len(inner) == 1 and _is_choice(inner.get("anyOf", inner.get("oneOf")))


def _floats(node: Any) -> Any:
    """With decimals as JSON writes them."""
    match node:
        case Decimal():
            return msgspec.Raw(str(node).encode())
        case dict():
            return {key: _floats(inner) for key, inner in node.items()}
        case list():
            return [_floats(inner) for inner in node]
    return node
