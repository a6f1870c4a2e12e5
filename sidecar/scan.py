"""`sidecar scan` and `sidecar detectors`: detectors at work on files, and what they are.

A file is read in pieces of bounded size and never kept. A finding says where and what, never the text itself.
"""

import codecs
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from .policy.load import load
from .stages.guardrails import Guardrail
from .text.detectors import DETECTORS, PACKS, Detector, resolve
from .text.matcher import Shape
from .text.rules import Ruleset
from .text.scrubber import Hit, Op, Scrubber

CLEAN, FOUND, UNREADABLE = 0, 1, 2
STDIN = "-"
# Bytes read at a time. More is not faster, and this much more than a file's longest match is held at once.
PIECE = 64 << 10
# A shown value keeps its last characters, where it is long enough that they do not give it away.
KEPT, LEAST_KEPT = 4, 12
# A policy needs a provider; nothing is sent to this one.
_NOWHERE = "http://127.0.0.1/v1"


@dataclass(frozen=True, slots=True)
class Finding:
    """Lines and columns count from 1, columns in characters; the end is the place just after the finding.

    `masked` is the text found with all but its last characters hidden; empty unless asked for.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: str
    detector: str
    masked: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}-{self.end_line}:{self.end_column}"
        return f"{place}  {self.rule}  {self.detector}" + f"  {self.masked}" * bool(self.masked)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for together. A finding's rule is `name`, or its detector's pack where that is empty."""

    name: str
    rules: Ruleset

    def of(self, detector: str) -> str:
        return self.name or DETECTORS[detector].pack


def rules_of_detectors(names: Iterable[str]) -> list[Rule]:
    """One rule of all detectors named. Raises UnknownDetectorError."""
    return [Rule("", Ruleset([Shape.of(d.name, d.regex, d.check, is_ours=True) for d in resolve(names)]))]


def rules_of_policy(path: Path, environ: Mapping[str, str]) -> list[Rule]:
    """A policy's guardrails that are not off, each of which looks at the whole text. Raises PolicyError."""
    stages = (step.stage for step in load(path, environ, _NOWHERE).chain.down)
    return [Rule(stage.name, stage.rules) for stage in stages if isinstance(stage, Guardrail)]


# --- reading ---

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def pieces(source: BinaryIO) -> Iterator[str]:
    """A file's text, some of it at a time: UTF-8, or what its byte order mark says.

    Bytes that are no text come as U+FFFD, so that what stands among them is still seen.
    """
    piece = source.read(PIECE)
    encoding = next((name for mark, name in _MARKS if piece.startswith(mark)), "utf-8-sig")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while piece:
        yield decoder.decode(piece)
        piece = source.read(PIECE)
    yield decoder.decode(b"", final=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Before a character: its line and column."""

    line: int = 1
    column: int = 1

    def after(self, text: str) -> "Place":
        newlines = text.count("\n")
        if not newlines:
            return replace(self, column=self.column + len(text))
        return Place(self.line + newlines, len(text) - text.rindex("\n"))


class _Reader:
    """Follows one scrubber through a text and turns its steps into places. Keeps only what is undecided."""

    def __init__(self, rule: Rule, file: str, *, show: bool) -> None:
        self._rule, self._file, self._show = rule, file, show
        self._scrubber = Scrubber(rule.rules)
        self._text = ""
        self._place = Place()
        self._starts: list[Place] = []
        self._ends: list[Place] = []
        self._tails: list[str] = []

    def feed(self, text: str) -> Iterator[Finding]:
        self._text += text
        return self._findings(self._scrubber.feed(text))

    def finish(self) -> Iterator[Finding]:
        return self._findings(self._scrubber.finish())

    def _findings(self, ops: Iterable[Op]) -> Iterator[Finding]:
        at = 0
        for op in ops:
            self._step(op, self._text[at : at + op.taken])
            at += op.taken
        self._text = self._text[at:]
        for hit in self._scrubber.hits:
            yield self._finding(hit)
        self._scrubber.hits.clear()

    def _step(self, op: Op, taken: str) -> None:
        """A finding begins where a text stands for it, and ends with the last piece swallowed."""
        begins = not op.kept and not op.taken
        self._place = self._place.after(taken)
        if begins:
            self._starts.append(self._place)
            self._ends.append(self._place)
            self._tails.append("")
        elif not op.kept:
            self._ends[-1] = self._place
            self._tails[-1] = (self._tails[-1] + taken)[-LEAST_KEPT:]

    def _finding(self, hit: Hit) -> Finding:
        start, end, tail = self._starts.pop(0), self._ends.pop(0), self._tails.pop(0)
        where = (self._file, start.line, start.column, end.line, end.column)
        return Finding(*where, self._rule.of(hit.name), hit.name, masked(tail) if self._show else "")


def masked(tail: str) -> str:
    """What may be shown of a text of which `tail` are the last characters: the last four of a long one."""
    kept = tail[-KEPT:] if len(tail) >= LEAST_KEPT else ""
    return "****" + "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in kept)


def scan(file: str, source: BinaryIO, rules: Sequence[Rule], *, show: bool = False) -> Iterator[Finding]:
    """What the rules find in one file, as it is read."""
    readers = [_Reader(rule, file, show=show) for rule in rules]
    for piece in pieces(source):
        for reader in readers:
            yield from reader.feed(piece)
    for reader in readers:
        yield from reader.finish()


def run(files: Sequence[str], rules: Sequence[Rule], *, form: str, show: bool) -> int:
    """Prints what is found in `files`. Returns 0 for nothing, 1 for something, 2 when a file cannot be read."""
    report = _Report(form)
    unreadable = False
    for file in files:
        try:
            with nullcontext(sys.stdin.buffer) if file == STDIN else open(file, "rb") as source:
                for finding in scan(file, source, rules, show=show):
                    report.add(finding)
        except OSError as error:
            print(f"{file}: cannot be read: {error.strerror or error}", file=sys.stderr)
            unreadable = True
    report.end()
    return UNREADABLE if unreadable else FOUND if report.count else CLEAN


class _Report:
    """Prints findings as they come: lines, or the elements of one JSON list."""

    def __init__(self, form: str) -> None:
        self.count = 0
        self._json = form == "json"

    def add(self, finding: Finding) -> None:
        line = str(finding)
        if self._json:
            line = ("," if self.count else "[") + "\n  " + json.dumps(_plain(finding), ensure_ascii=False)
        self.count += 1
        print(line, end="" if self._json else "\n")

    def end(self) -> None:
        if self._json:
            print("\n]" if self.count else "[]")


def _plain(finding: Finding) -> dict[str, object]:
    return {name: value for name, value in asdict(finding).items() if name != "masked" or value}


# --- the list of detectors ---

_MAX_EXAMPLE = 60
# The made-up part of an example key: its beginning shows the format, the rest would only set off other scanners.
_NOISE = re.compile(r"(?=[A-Za-z+/_-]*\d|[A-Za-z+/_-]{23})([A-Za-z0-9+/_-]{12})[A-Za-z0-9+/_-]+=*")
_REDACTED = frozenset(("secrets", "assignments"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One detector as it is listed."""

    name: str
    pack: str
    source: str
    example: str
    check: str

    @classmethod
    def of(cls, detector: Detector) -> "Entry":
        return cls(detector.name, detector.pack, detector.source, example(detector), checked(detector))


def example(detector: Detector) -> str:
    """A synthetic example on one line; of a key only the beginning."""
    text = detector.examples[0]
    if detector.pack in _REDACTED:
        text = _NOISE.sub(r"\1…", text)
    shown = "".join(_visible(char) for char in text)
    return shown if len(shown) <= _MAX_EXAMPLE else f"{shown[:_MAX_EXAMPLE]}…"


def _visible(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def checked(detector: Detector) -> str:
    """What is asked of a match beyond its form."""
    return "" if detector.check is None else detector.check.__name__.strip("_").replace("_", " ")


def entries(names: Sequence[str]) -> list[Entry]:
    """The detectors named, or all of them. Raises UnknownDetectorError."""
    return [Entry.of(detector) for detector in resolve(names or PACKS)]


def listed(names: Sequence[str], form: str) -> str:
    """The list as text. Raises UnknownDetectorError."""
    return _FORMS[form](entries(names))


_HEADS = ("name", "pack", "source", "example", "check")


def _table(found: Sequence[Entry]) -> str:
    lines = [_HEADS, *(_cells(entry) for entry in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    return "".join("  ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in lines)


def _cells(entry: Entry) -> tuple[str, ...]:
    return entry.name, entry.pack, entry.source, entry.example, entry.check


def _json(found: Sequence[Entry]) -> str:
    return json.dumps([asdict(entry) for entry in found], indent=2, ensure_ascii=False) + "\n"


_INTRODUCTION = """\
# Detectors

What `detect` in a guardrail can name, and `sidecar scan --detect`: a pack, or a single detector. Generated by
`sidecar detectors --format markdown`. Examples are made up, and those of keys are cut short. A check is asked
about every match of a detector's pattern: a checksum, or a look at the value that a pattern cannot take.
"""


def _markdown(found: Sequence[Entry]) -> str:
    packs: dict[str, list[Entry]] = {}
    for entry in found:
        packs.setdefault(entry.pack, []).append(entry)
    return _INTRODUCTION + "".join(_section(pack, inside) for pack, inside in packs.items())


def _section(pack: str, inside: Sequence[Entry]) -> str:
    rows = "".join(f"| `{e.name}` | {_escaped(e.source)} | {_code(e.example)} | {e.check} |\n" for e in inside)
    number = f"{len(inside)} detector{'s' * (len(inside) > 1)}"
    return f"\n## {pack}\n\n{number}.\n\n| name | what and whence | example | check |\n|---|---|---|---|\n{rows}"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{' ' * ('`' in text)}{_escaped(text)}{' ' * ('`' in text)}{fence}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


_FORMS = {"table": _table, "json": _json, "markdown": _markdown}
