"""`guardrails`: looks for secrets, personal data and words in every text of a call, and acts on what it finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Literal, Protocol

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ..config import Strict
from ..core.decision import Block, Decision, Finish, Pass, Replace
from ..core.events import End, Event, Found, Stopped, Text
from ..core.exchange import Exchange, Request
from ..core.stage import Visit
from ..core.surface import EVERYWHERE, Finding, Kind, Lane, Slot, Surface
from ..errors import PatternError
from ..text.detectors import resolve
from ..text.engine import MAX_PATTERN_BYTES
from ..text.jsontext import JsonScrubber
from ..text.matcher import Matcher, Shape
from ..text.pattern import words
from ..text.rules import DEFAULT_MAX_HOLD, Options, Ruleset
from ..text.scrubber import Hit, Op, Scrubber, scrub

MAX_WORD = 256
DEFAULT_REPLACEMENT = "[REDACTED:{name}]"

Strings = list[Annotated[str, Field(min_length=1, max_length=MAX_WORD)]]


class PatternConfig(Strict):
    """A pattern of the policy's own, in RE2 syntax."""

    name: str = Field(min_length=1, description="What findings and replacements are called.")
    regex: str = Field(
        min_length=1,
        description="RE2 syntax. A group named value marks the part to act on; the rest is its context.",
    )

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str) -> str:
        try:
            Matcher(Shape.of("", regex), MAX_PATTERN_BYTES)
        except PatternError as exc:
            raise PydanticCustomError(
                "pattern", "{message}", {"message": exc.message, "offset": exc.offset, "hint": exc.hint}
            ) from None
        return regex

    def shapes(self) -> Iterable[Shape]:
        return (Shape.of(self.name, self.regex),)


class WordsConfig(Strict):
    """A list of words or phrases, taken literally."""

    name: str = Field(default="word", min_length=1, description="What findings and replacements are called.")
    list: Strings = Field(min_length=1, description="The words or phrases.")
    ignore_case: bool = Field(default=False, description="Also match them in other case.")
    whole_word: bool = Field(default=True, description="Match them only where they are not part of a longer word.")

    def shapes(self) -> Iterable[Shape]:
        for word in self.list:
            yield Shape(self.name, words(word, ignore_case=self.ignore_case, whole=self.whole_word))


class GuardrailConfig(Strict):
    """One rule: what it looks for, where, and what it does about it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="The rule's name, in errors and records.")
    detect: list[str] = Field(default=[], description="Detectors and packs of detectors by name.")
    patterns: list[PatternConfig] = Field(default=[], description="Patterns of your own.")
    words: list[WordsConfig] = Field(default=[], description="Lists of words of your own.")
    on: (
        list[Literal["system", "user", "tool_results", "assistant", "tool_calls", "reply", "reasoning", "tools"]] | None
    ) = Field(
        default=None,
        min_length=1,
        description="Where it looks. Absent: everywhere but in tool definitions (tools), which must be named.",
    )
    action: Literal["redact", "block", "finish", "flag"] = Field(
        default="redact",
        description="redact replaces what is found; block ends the call with an error; finish answers with message "
        "in the model's place; flag only records.",
    )
    replacement: str | None = Field(
        default=None,
        description="What stands in for a finding; {name} is the detector's name. Absent: scrub's.",
    )
    message: str = Field(
        default="This reply was withheld by a policy.", description="The whole reply when action is finish."
    )
    on_error: Literal["block", "pass"] = Field(
        default="block",
        description="What happens when the rule itself fails: block the call, or let it pass.",
    )
    on_overflow: Literal["redact", "block", "pass"] = Field(
        default="redact",
        description="What a text means that could become a match but is still undecided after max_hold bytes.",
    )
    on_block: Literal["content_filter", "error"] = Field(
        default="content_filter",
        description="How a stream ends that is blocked half-way: a last frame with finish_reason content_filter, "
        "or an error event.",
    )
    max_hold: int = Field(
        default=DEFAULT_MAX_HOLD,
        ge=64,
        le=65536,
        description="How many bytes of a stream may wait for a decision.",
    )
    mode: Literal["off", "shadow", "enforce"] = Field(
        default="enforce", description="off; shadow decides and records but changes nothing; enforce."
    )

    @field_validator("detect")
    @classmethod
    def _known(cls, detect: list[str]) -> list[str]:
        for name in detect:
            try:
                resolve([name])
            except ValueError as exc:
                raise PydanticCustomError("detector", "{message}", {"message": str(exc)}) from None
        return detect

    @model_validator(mode="after")
    def _looks_for_something(self) -> "GuardrailConfig":
        if not (self.detect or self.patterns or self.words):
            raise PydanticCustomError("empty", "looks for nothing: give it detect, patterns or words")
        return self

    def shapes(self) -> list[Shape]:
        """Detectors first, then patterns, then words: the order of precedence at one position."""
        found = [Shape.of(d.name, d.regex, d.check) for d in resolve(self.detect)]
        found.extend(shape for own in self.patterns for shape in own.shapes())
        found.extend(shape for own in self.words for shape in own.shapes())
        return found


@dataclass(frozen=True, slots=True)
class Guardrail:
    """The stage: one compiled rule."""

    name: str
    rules: Ruleset
    kinds: frozenset[Kind]
    action: Literal["redact", "block", "finish", "flag"]
    message: str
    blocks_on_overflow: bool
    ends_with_error: bool

    @classmethod
    def of(cls, config: GuardrailConfig, replacement: str = DEFAULT_REPLACEMENT) -> "Guardrail":
        """Raises PatternError when the rule as a whole is too large."""
        options = Options(
            replacement=config.replacement if config.replacement is not None else replacement,
            max_hold=config.max_hold,
            skips_overflow=config.on_overflow == "pass",
            skips_failing=config.on_error == "pass",
        )
        rules = Ruleset(config.shapes(), options)
        rules.warm()
        return cls(
            name=config.name,
            rules=rules,
            kinds=EVERYWHERE if config.on is None else frozenset(map(Kind, config.on)),
            action=config.action,
            message=config.message,
            blocks_on_overflow=config.on_overflow == "block",
            ends_with_error=config.on_block == "error",
        )

    def open(self, exchange: Exchange) -> Visit:
        return GuardrailVisit(self)

    def stop(self, surface: Surface, findings: tuple[Finding, ...] = ()) -> Block | Finish:
        if self.action == "finish":
            return Finish(self.name, surface, self.message, findings)
        return Block(self.name, surface, findings, as_error=self.ends_with_error)

    def finding(self, surface: Surface, hit: Hit) -> Finding:
        return Finding(self.name, hit.name, surface, hit.start, hit.end)


class Watcher(Protocol):
    """What Scrubber and JsonScrubber have in common."""

    hits: list[Hit]
    found: str | None
    overflowed: str | None

    def feed(self, text: str) -> list[Op]: ...
    def finish(self) -> list[Op]: ...


class GuardrailVisit(Visit):
    """One call's lanes under one rule."""

    __slots__ = ("_lanes", "_rail", "_stops")

    def __init__(self, rail: Guardrail) -> None:
        self._rail = rail
        self._lanes: dict[Lane, Watcher] = {}
        self._stops = rail.action in ("block", "finish")

    async def request(self, request: Request) -> Decision:
        edits: list[tuple[Slot, str]] = []
        findings: list[Finding] = []
        rail = self._rail
        for slot in request.slots:
            if slot.surface.kind not in rail.kinds:
                continue
            try:
                text, hits, overflowed = _look(rail.rules, slot.surface, slot.text)
            except Exception:  # a rule that fails must not become a hole
                return Block(rail.name, slot.surface, failed=True)
            if not hits:
                continue
            findings.extend(rail.finding(slot.surface, hit) for hit in hits)
            if self._stops or (overflowed and rail.blocks_on_overflow):
                return rail.stop(slot.surface, tuple(findings))
            edits.append((slot, text))
        if edits and rail.action == "redact":
            return Replace(tuple(edits), tuple(findings))
        return Pass(tuple(findings))

    def feed(self, event: Event) -> Sequence[Event]:
        match event:
            case Text(lane, _, last) if lane.surface.kind in self._rail.kinds:
                return self._whole(lane, event) if last and lane not in self._lanes else self._guarded(lane, event)
            case End(lane) if lane in self._lanes:
                return (*self._end(lane), event)
            case _:
                return (event,)

    def finish(self) -> Sequence[Event]:
        return [event for lane in list(self._lanes) for event in self._end(lane)]

    def _whole(self, lane: Lane, event: Text) -> Sequence[Event]:
        """A text that came in one piece and holds nothing like a match needs no watcher."""
        if not lane.surface.json and not self._rail.rules.may_be_in(event.text):
            return (event,)
        return self._guarded(lane, event)

    def _guarded(self, lane: Lane, event: Text) -> Sequence[Event]:
        watcher = self._lanes.get(lane)
        if watcher is None:
            watcher = self._lanes[lane] = _watcher(self._rail.rules, lane.surface)
        try:
            ops = watcher.feed(event.text)
            if event.last:
                ops += self._lanes.pop(lane).finish()
        except Exception:
            return self._failed(lane)
        if len(ops) == 1 and ops[0].text == event.text and not watcher.found:
            return (event,)
        return self._events(lane, watcher, ops, event)

    def _end(self, lane: Lane) -> Sequence[Event]:
        watcher = self._lanes.pop(lane)
        try:
            ops = watcher.finish()
        except Exception:
            return self._failed(lane)
        return self._events(lane, watcher, ops, None)

    def _events(self, lane: Lane, watcher: Watcher, ops: list[Op], event: Text | None) -> Sequence[Event]:
        rail = self._rail
        if watcher.found and (self._stops or (watcher.overflowed and rail.blocks_on_overflow)):
            return self._stopped(lane, watcher.found, ops)
        found: list[Event] = [Found(rail.finding(lane.surface, hit), rail.action) for hit in watcher.hits]
        watcher.hits.clear()
        if rail.action == "flag":
            return [*found, event] if event else found
        said = "".join([op.text for op in ops])
        return [*found, Text(lane, said, event is not None and event.last)] if said else found

    def _stopped(self, lane: Lane, name: str, ops: list[Op]) -> Sequence[Event]:
        """What stood before the finding is said, and nothing after. How far it would have gone is not waited for."""
        before = "".join([op.text for op in takewhile(lambda op: op.kept, ops)])
        finding = Finding(self._rail.name, name, lane.surface)
        stopped = Stopped(self._rail.stop(lane.surface, (finding,)))
        return [Text(lane, before), stopped] if before else [stopped]

    def _failed(self, lane: Lane) -> Sequence[Event]:
        return (Stopped(Block(self._rail.name, lane.surface, failed=True)),)


def _watcher(rules: Ruleset, surface: Surface) -> Watcher:
    return JsonScrubber(rules) if surface.json else Scrubber(rules)


def _look(rules: Ruleset, surface: Surface, text: str) -> tuple[str, list[Hit], bool]:
    """The whole text at once: what it becomes, what was found, and whether something overflowed."""
    if not surface.json:
        return scrub(rules, text)
    scrubber = JsonScrubber(rules)
    said = "".join(op.text for op in [*scrubber.feed(text), *scrubber.finish()])
    return said, scrubber.hits, scrubber.overflowed is not None
