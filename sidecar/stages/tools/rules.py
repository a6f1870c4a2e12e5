"""The rules, compiled: what each is about, and what the first that fits says of a call."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import chain, takewhile
from re import Pattern, compile
from typing import Any, Final, Literal

import msgspec

from ...core.identity import Identity
from ...errors import SidecarError
from ...stores.runs import Call as Earlier
from ...stores.runs import Ran
from ...text.engine import Program
from ...text.schemas import Checker
from ...wire import jsondoc
from .config import ArgumentConfig, RuleConfig, ToolsConfig, compiled, name_of
from .path import Path, parse

Word = Literal["allow", "deny", "confirm"]
DEFAULT: Final = "default"
"""What a denial by `default` is called in findings."""
MAX_ARGUMENTS: Final = 4 << 20
"""Arguments of more characters are not looked into: nothing can be told of them."""
_NO_RULE: Final = "this tool may not be called here"
_DENIED: Final = "this call is not allowed here"


class Globs:
    """Names that fit any of some patterns. Case counts: a tool is run by the very name that it is called by."""

    __slots__ = ("_pattern",)

    def __init__(self, globs: Iterable[str]) -> None:
        self._pattern: Pattern[str] = compile("|".join(f"(?:{translate(glob)})" for glob in globs))

    def fits(self, name: str) -> bool:
        return self._pattern.match(name) is not None


def _globs(globs: Iterable[str] | None) -> Globs | None:
    return None if globs is None else Globs(globs)


class Unreadable(SidecarError):
    """Arguments of which nothing can be told: no JSON, a key that stands twice, too long."""


class Proposed:
    """A call as a model proposes it. `arguments` is JSON text, or with `free` a text of any kind. `hosted`: its tool is
    the provider's."""

    __slots__ = ("_read", "arguments", "free", "hosted", "id", "name")

    def __init__(self, name: str, arguments: str, *, free: bool = False, id: str = "", hosted: bool = False) -> None:
        self.name, self.arguments, self.free, self.id, self.hosted = name, arguments, free, id, hosted
        self._read: list[Any] = []

    def value(self) -> Any:
        """What the arguments hold; none at all are an empty object. Raises Unreadable."""
        if self.free:
            return self.arguments
        if not self._read:
            self._read.append(_read(self.arguments))
        if isinstance(self._read[0], Unreadable):
            raise self._read[0]
        return self._read[0]


def _read(arguments: str) -> Any:
    if len(arguments) > MAX_ARGUMENTS:
        return Unreadable("the arguments are too long to be looked into")
    raw = arguments.encode("utf-8", "backslashreplace")
    if not raw.strip():
        return {}
    try:
        document = jsondoc.decode(raw)
    except jsondoc.JsonFault:
        return Unreadable("the arguments are no JSON")
    if jsondoc.has_duplicate_keys(raw, document):
        return Unreadable("the arguments name a key twice")
    return document


@dataclass(frozen=True, slots=True)
class Condition:
    """Fits where any value at the path does."""

    path: Path
    pattern: Program | None
    schema: Checker | None

    @classmethod
    def of(cls, config: ArgumentConfig) -> "Condition":
        pattern = None if config.pattern is None else compiled(config.pattern)
        return cls(parse(config.path), pattern, Checker.of(config.form) if pattern is None else None)

    def fits(self, call: Proposed) -> bool:
        """Raises Unreadable."""
        value = call.value()
        if isinstance(value, str) and self.path.steps:
            # Free text, or JSON written twice: a lenient agent reads it once more, and finds what is not seen here.
            raise Unreadable("a text has no parts")
        return any(map(self._fits, self.path.values(value)))

    def _fits(self, value: Any) -> bool:
        if self.schema is not None:
            return self.schema.fits(value)
        written = _written(value)
        return written is not None and self.pattern is not None and self.pattern.search(written, 0) is not None


def _written(value: Any) -> bytes | None:
    """A text as it is, another scalar as JSON writes it; an object or a list is none."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace")
        case dict() | list():
            return None
        case msgspec.Raw():
            return bytes(value)
    return jsondoc.encode(value)


class Course:
    """What a run has called so far. A reply's own calls are added as they are decided, each choice on a branch."""

    __slots__ = ("_added", "_history", "_known", "_names", "_ran")

    def __init__(self, ran: Ran, history: Sequence[Earlier]) -> None:
        self._ran, self._history = ran, [*ran.in_order(history)]
        self._names = {name for _, name in history}
        self._known = {*history, *ran.recent}
        self._added: list[str] = []

    def branch(self) -> "Course":
        """The same run, going on by itself; what the provider runs is told to all."""
        branch = copy(self)
        branch._added = []
        return branch

    def add(self, call: Proposed) -> None:
        """For what is decided after it in the same reply."""
        self._added.append(call.name)

    def remember(self, call: Proposed) -> None:
        """It has gone to the client: for the requests to come."""
        self._ran.add([(call.id, call.name)])

    def has_run(self, id: str, name: str) -> None:
        """The provider has run it, whatever becomes of the reply. One that was approved has been counted before."""
        if not self.knows(id, name):
            self._known.add((id, name))
            self._names.add(name)
            self._history.append((id, name))
            self._ran.add([(id, name)])

    def knows(self, id: str, name: str) -> bool:
        """Whether this very call has come before. One without an id is always another."""
        return bool(id) and (id, name) in self._known

    def has_called(self, tools: Globs) -> bool:
        return self._ran.overflowed or any(map(tools.fits, chain(self._added, self._names, self._ran.names)))

    def in_a_row(self, tools: Globs | None) -> int:
        """How many of the last calls are of these tools."""
        latest = chain(reversed(self._added), (name for _, name in reversed(self._history)))
        return sum(1 for _ in takewhile(lambda name: tools is None or tools.fits(name), latest))


@dataclass(frozen=True, slots=True)
class Judged:
    """What is to become of a call. `unsure`: the rule could not tell, and so is taken to fit."""

    word: Word
    rule: str
    reason: str = ""
    unsure: bool = False


ALLOWED: Final = Judged("allow", DEFAULT)


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    word: Word
    reason: str
    tools: Globs | None
    conditions: tuple[Condition, ...]
    after: Globs | None
    in_a_row: int | None
    tenants: Globs | None
    agents: Globs | None

    @classmethod
    def of(cls, config: RuleConfig, at: int) -> "Rule":
        return cls(
            name_of(config, at),
            config.decision,
            config.reason,
            _globs(config.tool),
            tuple(map(Condition.of, config.arguments)),
            _globs(config.after),
            config.more_than_in_a_row,
            _globs(config.tenants),
            _globs(config.agents),
        )

    @property
    def depends(self) -> bool:
        """Whether more than a call's name decides if it fits."""
        return bool(self.conditions) or self.after is not None or self.in_a_row is not None

    def concerns(self, who: Identity) -> bool:
        return (self.tenants is None or self.tenants.fits(who.tenant)) and (
            self.agents is None or self.agents.fits(who.agent)
        )

    def names(self, name: str) -> bool:
        return self.tools is None or self.tools.fits(name)

    def judge(self, call: Proposed, course: Course) -> Judged | None:
        """None where the rule does not fit."""
        if not self.names(call.name) or not self._comes_at(course):
            return None
        try:
            fits, unsure = all(condition.fits(call) for condition in self.conditions), False
        except Unreadable:
            fits, unsure = self.word != "allow", True
        return Judged(self.word, self.name, self.reason or _DENIED, unsure) if fits else None

    def _comes_at(self, course: Course) -> bool:
        if self.after is not None and not course.has_called(self.after):
            return False
        return self.in_a_row is None or course.in_a_row(self.tools) >= self.in_a_row


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules in order, and what happens to calls that none fits."""

    rules: tuple[Rule, ...]
    default: Literal["allow", "deny"]
    remembers: bool = field(default=False)
    """Whether a rule asks what the run has called before."""

    @classmethod
    def of(cls, config: ToolsConfig) -> "Rules":
        rules = tuple(Rule.of(rule, at) for at, rule in enumerate(config.rules))
        remembers = any(rule.after is not None or rule.in_a_row is not None for rule in rules)
        return cls(rules, config.default, remembers)

    def of_whom(self, who: Identity) -> "Rules":
        """Those that concern a caller."""
        return Rules(tuple(rule for rule in self.rules if rule.concerns(who)), self.default, self.remembers)

    def judge(self, call: Proposed, course: Course) -> Judged:
        found = (judged for rule in self.rules if (judged := rule.judge(call, course)) is not None)
        return next(found, self._otherwise)

    @property
    def _otherwise(self) -> Judged:
        return ALLOWED if self.default == "allow" else Judged("deny", DEFAULT, _NO_RULE)

    def may_deny(self, name: str) -> bool:
        """Whether a call of this tool may come to be denied or held."""
        for rule in self.rules:
            if rule.names(name):
                if rule.word != "allow":
                    return True
                if not rule.depends:
                    return False
        return self.default == "deny"

    @property
    def may_deny_any(self) -> bool:
        """Whether there is a call, of whatever tool, that may come to be denied or held."""
        return self.default == "deny" or any(rule.word != "allow" for rule in self.rules)

    def asks_arguments(self, name: str) -> bool:
        """Whether more than its name and what came before decides about a call of this tool."""
        for rule in self.rules:
            if rule.names(name):
                if rule.conditions:
                    return True
                if not rule.depends:
                    return False
        return False
