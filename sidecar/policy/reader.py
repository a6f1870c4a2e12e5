"""YAML text to a tree, with every fault the text alone can have.

Scalars are read as YAML 1.2 reads them: only true and false are booleans, so that `no`, `on` and `off` stay
the words they are, and there are no dates and base-60 numbers. The tree is built from the parser's flat
events: no text can exhaust the stack, and one bound holds for what aliases and merge keys expand to.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..errors import Fault
from .nodes import Broken, Entry, Node, Path, Place, Scalar, Table, Value, combine, dotted, items, table

# A policy of 1,000 rules has some 20,000 values; a "billion laughs" text has 10^9.
MAX_VALUES = 200_000
# The deepest field of a policy lies at 6.
MAX_DEPTH = 64
MAX_BYTES = 16_000_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """What could be read of one file. `complete` is false when reading stopped at a fault."""

    file: str
    root: Node | None
    faults: tuple[Fault, ...] = ()
    complete: bool = True


class _Halt(Exception):
    """Reading cannot go on; carries the fault that says why."""

    def __init__(self, place: Place, message: str, hint: str = "") -> None:
        self.fault = fault_at(place, message, hint)


def fault_at(place: Place, message: str, hint: str = "", where: str = "") -> Fault:
    return Fault(place.file, place.line, place.column, where, message, hint)


def read(file: str, content: bytes) -> Document:
    """Reads one file's content. Never raises: what is wrong is in the document's faults."""
    try:
        text = _decode(file, content)
    except _Halt as halt:
        return Document(file, None, (halt.fault,), complete=False)
    builder = _Builder(file, text)
    complete = builder.run()
    if complete and builder.root is None and not builder.faults:
        builder.fault(Place(file, 1, 1), "the file is empty", "A policy begins with `version: 1`.")
    return Document(file, builder.root, tuple(builder.faults), complete)


def _decode(file: str, content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _Halt(Place(file), f"the file is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        raise _Halt(_place_of(file, before), "this is not UTF-8 text", "Save the file as UTF-8.") from None


def _place_of(file: str, before: str) -> Place:
    """The place right after the text `before`."""
    return Place(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


# --- scalars ---


def _integer(text: str) -> int:
    return int(text.replace("_", ""), {"0x": 16, "0o": 8}.get(text[:2], 10))


# Longer digits than these are no number that a policy means, and int() refuses some thousand digits.
_READERS: tuple[tuple[re.Pattern[str], Callable[[str], Value]], ...] = (
    (re.compile(r"|~|null|Null|NULL"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9](?:_?[0-9]){0,30}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}"), _integer),
    (re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,2})?"), float),
)


def resolve(text: str) -> Value:
    """What an unquoted scalar means."""
    for pattern, convert in _READERS:
        if pattern.fullmatch(text):
            return convert(text)
    return text


_TAG = "tag:yaml.org,2002:"
_PROPERTIES = re.compile(r"(?:[&!][^\s]*\s+)*")
_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.", re.DOTALL)
_QUOTED = {"'": re.compile(r"''|.", re.DOTALL), '"': _ESCAPE}


def _columns(raw: str, style: str | None, column: int, length: int) -> Sequence[int]:
    """The column of each character of a scalar that was written as `raw` on one line."""
    start = _PROPERTIES.match(raw)
    begin = start.end() if start else 0
    column += begin
    if style not in _QUOTED:
        return range(column, column + length)
    written = _QUOTED[style].finditer(raw, begin + 1, len(raw) - 1)
    found = [column - begin + match.start() for match in written]
    return found if len(found) == length else ()


# --- the tree ---


@dataclass(slots=True)
class _Frame:
    """A list or a table that is being read. A table waits for a key when `key` is None."""

    place: Place
    anchor: str | None
    is_table: bool
    nodes: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    inherited: list[Table] = field(default_factory=list)
    key: tuple[str | None, Place] | None = None
    merge: Place | None = None


_MERGE = "<<"


class _Builder:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.root: Node | None = None
        self.faults: list[Fault] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, Node] = {}
        self._values = 0
        self._documents = 0

    def fault(self, place: Place, message: str, hint: str = "", where: str = "") -> None:
        self.faults.append(fault_at(place, message, hint, where))

    def run(self) -> bool:
        """Reads the whole text, or as far as it can be read; says which."""
        try:
            for event in yaml.parse(self.text, Loader=_LOADER):
                self._take(event)
        except _Halt as halt:
            self.faults.append(halt.fault)
        except yaml.YAMLError as error:
            self.faults.append(_syntax_fault(self.file, self.text, error))
        else:
            return True
        self._close_all()
        return False

    def _take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _Halt(self._place(event), "a policy is one document", "Remove the line `---`.")
            case yaml.ScalarEvent():
                self._add(self._anchored(event.anchor, self._scalar(event)))
            case yaml.AliasEvent():
                self._add(self._alias(event))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()

    def _place(self, event: Any) -> Place:
        return Place(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _count(self, place: Place, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _Halt(place, f"the policy has more than {MAX_VALUES:,} values", "Do aliases multiply here?")

    def _anchored(self, anchor: str | None, node: Node) -> Node:
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _scalar(self, event: Any) -> Node:
        place = self._place(event)
        self._count(place, 1)
        text, tag = event.value, event.tag
        plain = event.implicit[0] and tag is None
        if tag not in (None, "!", _TAG + "str"):
            self._refuse_tag(place)
            return Broken(place)
        start, end = event.start_mark, event.end_mark
        on_line = start.line == end.line and event.style in (None, "", "'", '"')
        raw = self.text[start.index : end.index]
        columns = _columns(raw, event.style, place.column, len(text)) if on_line else ()
        return Scalar(place, resolve(text) if plain else text, text, plain, columns)

    def _refuse_tag(self, place: Place) -> None:
        self.fault(place, "tags such as `!name` are not part of the policy language", "Remove the tag.")

    def _alias(self, event: Any) -> Node:
        place = self._place(event)
        node = self._anchors.get(event.anchor)
        if node is None:
            self.fault(place, f"there is no anchor `&{event.anchor}` before this alias")
            return Broken(place)
        self._count(place, node.size)
        return node

    def _open(self, event: Any) -> None:
        place = self._place(event)
        self._count(place, 1)
        if len(self._frames) >= MAX_DEPTH:
            raise _Halt(place, f"values are nested more than {MAX_DEPTH} deep")
        if event.tag not in (None, "!", _TAG + "map", _TAG + "seq"):
            self._refuse_tag(place)
        self._frames.append(_Frame(place, event.anchor, isinstance(event, yaml.MappingStartEvent)))

    def _close(self) -> None:
        frame = self._frames.pop()
        node: Node = _finished(frame) if frame.is_table else items(frame.place, frame.nodes)
        self._add(self._anchored(frame.anchor, node))

    def _close_all(self) -> None:
        """What was being read when reading stopped is left out: nobody knows how it would have gone on."""
        for frame in reversed(self._frames):
            if len(self._frames) == 1 and frame.is_table:
                self.root = _finished(frame)
            self._frames.pop()

    def _add(self, node: Node) -> None:
        if not self._frames:
            self.root = node
        elif not self._frames[-1].is_table:
            self._frames[-1].nodes.append(node)
        elif self._frames[-1].key is None:
            self._add_key(self._frames[-1], node)
        else:
            self._add_value(self._frames[-1], node)

    def _add_key(self, frame: _Frame, node: Node) -> None:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            frame.key = (node.value, node.place)
            if node.value == _MERGE and node.plain:
                self._begin_merge(frame, node.place)
            return
        frame.key = (None, node.place)
        if not isinstance(node, Broken):
            self.fault(node.place, "expected a name as the key", "Put quotes around a key that is not a word.")

    def _begin_merge(self, frame: _Frame, place: Place) -> None:
        if frame.merge is not None:
            self.fault(place, f"`<<` is already given at {_short(frame.merge)}", "Give it a list of aliases.")
        frame.merge = place

    def _add_value(self, frame: _Frame, node: Node) -> None:
        assert frame.key is not None  # noqa: S101  (a table's events alternate)
        (name, place), frame.key = frame.key, None
        if name is None:
            return
        if name == _MERGE and place == frame.merge:
            self._merge(frame, node)
        elif name in frame.entries:
            first = frame.entries[name]
            where = dotted((*self._path(), name))
            self.fault(place, f"`{name}` is already given at {_short(first.key)}", "Keep one of the two.", where)
            frame.entries[name] = Entry(first.key, combine(first.node, node))
        else:
            frame.entries[name] = Entry(place, node)

    def _path(self) -> Path:
        """Where the innermost table stands."""
        return tuple((frame.key[0] or "") if frame.key else len(frame.nodes) for frame in self._frames[:-1])

    def _merge(self, frame: _Frame, node: Node) -> None:
        for source in getattr(node, "nodes", (node,)):
            if isinstance(source, Table):
                self._count(source.place, source.size)
                frame.inherited.append(source)
            elif not isinstance(source, Broken):
                self.fault(source.place, "`<<` takes a table, or a list of tables")


def _finished(frame: _Frame) -> Table:
    """A table's own keys stand before those it inherits; of tables to inherit from, the first one wins."""
    entries = dict(frame.entries)
    for source in frame.inherited:
        entries = {**entries, **{key: entry for key, entry in source.entries.items() if key not in entries}}
    return table(frame.place, entries)


def _short(place: Place) -> str:
    return f"line {place.line}, column {place.column}"


# --- syntax faults ---

_QUOTES = "Put quotes around the value."
# What the parser says -> what to do about it. The first that occurs in its words is given.
_HINTS = (
    ("unknown escape", "Write patterns in single quotes: in double quotes a backslash begins an escape."),
    ("escape character", "Write patterns in single quotes: in double quotes a backslash begins an escape."),
    ("escape sequence", "Write patterns in single quotes: in double quotes a backslash begins an escape."),
    ("hexdecimal number", "Write patterns in single quotes: in double quotes a backslash begins an escape."),
    (
        "mapping values are not allowed",
        "Put quotes around a value that has `: ` in it, or mend the indentation.",
    ),
    ("unexpected end of stream", "A quote is not closed."),
    ("node content", "A bracket is not closed, or a value is missing."),
    ("',' or", "A bracket is not closed, or a comma is missing."),
    ("expected <block end>", "Is the indentation the same as in the lines around?"),
    ("did not find expected", "Is the indentation the same as in the lines around?"),
    ("could not find expected ':'", "A key is followed by a colon and a space."),
    ("anchor", _QUOTES),
    ("alias", _QUOTES),
    ("tag", _QUOTES),
    ("directive", _QUOTES),
)
_TABS = "Indent with spaces, not with tabs."


def _syntax_fault(file: str, text: str, error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return _control_fault(file, text, error)
    said = str(getattr(error, "problem", None) or "this is not YAML")
    place = Place(file, mark.line + 1, mark.column + 1)
    opened = getattr(error, "context_mark", None)
    if opened is not None and opened.line != mark.line:
        said += f" (in what begins at line {opened.line + 1}, column {opened.column + 1})"
    return fault_at(place, said, _hint(said, text, mark))


def _hint(said: str, text: str, mark: Any) -> str:
    if text[mark.index - 1 : mark.index + 1] == "${":
        return "Put quotes around a `${NAME}` that stands inside braces or brackets."
    if "cannot start any token" in said:
        return _TABS if text[mark.index : mark.index + 1] == "\t" else _QUOTES
    return next((hint for words, hint in _HINTS if words in said), "")


def _control_fault(file: str, text: str, error: yaml.YAMLError) -> Fault:
    """The parser gives no line for a character that may not stand in YAML: its first occurrence is it."""
    code = getattr(error, "character", None)
    found = chr(code) if isinstance(code, int) else str(code or "")
    place = _place_of(file, text[: max(text.find(found), 0)]) if found else Place(file)
    name = f"U+{ord(found):04X}" if len(found) == 1 else "a control character"
    return fault_at(place, f"{name} may not stand in a YAML file", "Remove it, or write it as an escape.")
