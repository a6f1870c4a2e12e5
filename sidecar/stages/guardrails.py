"""`guardrails`: looks for secrets, personal data and words in every text of a call, and acts on what it finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from time import thread_time
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ..config import Duration, Strict
from ..core.decision import Block, Decision, Finish, Pass, Replace
from ..core.events import End, Event, Found, Stopped, Text
from ..core.exchange import Exchange, Request
from ..core.stage import Visit
from ..core.surface import EVERYWHERE, SAID, Finding, Kind, Lane, Slot, Surface
from ..errors import PatternError
from ..text.detectors import resolve
from ..text.jsontext import JsonScrubber
from ..text.lookaround import TIMEOUT_BYTES, look_shape
from ..text.matcher import Shape
from ..text.memo import CLEAN, Memo, Outcome, Pages
from ..text.pattern import words
from ..text.pseudonyms import found_in, placeholders
from ..text.rules import DEFAULT_MAX_HOLD, Options, Ruleset
from ..text.scrubber import Hit, Op
from ..text.scrubber import Replace as ReplaceWith
from ..text.standins import hashed, masked
from ..text.views import Lens, Watcher

MAX_WORD = 256
DEFAULT_REPLACEMENT = "[REDACTED:{name}]"

Action = Literal["redact", "mask", "hash", "pseudonymize", "block", "finish", "flag"]
Strings = list[Annotated[str, Field(min_length=1, max_length=MAX_WORD)]]


class PatternConfig(Strict):
    """A pattern of the policy's own, in RE2 syntax."""

    name: str = Field(min_length=1, description="What findings and replacements are called.")
    # Before regex, which is read as they say.
    engine: Literal["re2", "regex"] = Field(
        default="re2",
        description="re2 takes linear time. regex also knows look-around, back-references, atomic groups and "
        "possessive repeats, and is bounded by timeout.",
    )
    timeout: Duration = Field(
        default=0.05,
        ge=0.001,
        le=1,
        description="With engine: regex, the processor time that matching may take in one text, and again for "
        f"every {TIMEOUT_BYTES >> 10} KiB of it; 1ms to 1s. When it is used up, on_error says what happens.",
    )
    regex: str = Field(
        min_length=1,
        description="RE2 syntax. A group named value marks the part to act on; the rest is its context.",
    )

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str, info: ValidationInfo) -> str:
        if "engine" not in info.data:
            return regex
        try:
            _shape("", regex, info.data["engine"], 1.0).matcher()
        except PatternError as exc:
            raise PydanticCustomError(
                "pattern", "{message}", {"message": exc.message, "offset": exc.offset, "hint": exc.hint}
            ) from None
        return regex

    @model_validator(mode="after")
    def _timeout_is_of_use(self) -> "PatternConfig":
        if self.engine == "re2" and "timeout" in self.model_fields_set:
            raise PydanticCustomError("pattern", "a timeout is of use with engine: regex only; RE2 takes linear time")
        return self

    def shapes(self) -> Iterable[Shape]:
        return (_shape(self.name, self.regex, self.engine, self.timeout),)


def _shape(name: str, regex: str, engine: str, timeout: float) -> Shape:
    return look_shape(name, regex, timeout, thread_time) if engine == "regex" else Shape.of(name, regex)


def pattern_bytes(regex: str, engine: str) -> int:
    """What a pattern compiles to, in bytes. Raises PatternError."""
    return _shape("", regex, engine, 1.0).matcher().size


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
    action: Action = Field(
        default="redact",
        description="redact replaces what is found; mask replaces all but its last four characters; hash replaces it "
        "by a keyed digest, the same for the same value and tenant; pseudonymize replaces it in requests by a "
        "placeholder and puts it back in replies; block ends the call with an error; finish answers with message in "
        "the model's place; flag only records.",
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
    normalize: list[Literal["nfkc", "invisible", "confusables"]] = Field(
        default=[],
        description="Look at text as a person reads it. nfkc: full-width letters, ligatures and the like in their "
        "plain form; invisible: without zero-width and control characters, soft hyphens, bidi controls, variation "
        "selectors and tags; confusables: characters that look like ASCII (Unicode UTS #39) as that. What is found "
        "is replaced in the text as it was written.",
    )
    decode: list[Literal["base64", "percent", "html", "json"]] = Field(
        default=[],
        description="Look also at what is encoded in the text, up to two encodings deep: base64 (runs of 16 to 65536 "
        "characters that spell text), percent-encoding, HTML entities, escapes of JSON strings. What is found is "
        "replaced where it is encoded.",
    )
    accept_blind: list[Literal["unknown", "websocket"]] = Field(
        default=[],
        description="Where this rule may stay blind although it is in enforce: what inspect lets pass unseen, by name. "
        "Without it such a policy is a fault.",
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
        found = [Shape.of(d.name, d.regex, d.check, is_ours=True) for d in resolve(self.detect)]
        found.extend(shape for own in self.patterns for shape in own.shapes())
        found.extend(shape for own in self.words for shape in own.shapes())
        lens = self.lens()
        return [lens.shape(shape) for shape in found]

    def kinds(self) -> frozenset[Kind]:
        """Where it looks in requests."""
        return EVERYWHERE if self.on is None else frozenset(map(Kind, self.on))

    def reply_kinds(self) -> frozenset[Kind]:
        """Where it looks in replies. What the model says there goes to the client: only requests are disguised."""
        return frozenset() if self.action == "pseudonymize" else self.kinds()

    def lens(self) -> Lens:
        return Lens(self.normalize, [kind for kind in self.decode if kind != "base64"], base64="base64" in self.decode)


class Places:
    """Whether a rule looks at a surface. A surface's hash costs nothing, a kind's is computed from its name."""

    __slots__ = ("_kinds", "_known", "_sees_unknown")

    def __init__(self, kinds: frozenset[Kind], *, sees_unknown: bool = True) -> None:
        self._kinds, self._sees_unknown = kinds, sees_unknown
        self._known: dict[Surface, bool] = {}

    def hold(self, kind: Kind) -> bool:
        return kind in self._kinds

    def __contains__(self, surface: Surface) -> bool:
        known = self._known.get(surface)
        if known is None:
            looks = surface.kind in self._kinds or (surface.closed and not self._kinds.isdisjoint(SAID))
            known = self._known[surface] = looks and (self._sees_unknown or not surface.unknown)
        return known


@dataclass(frozen=True, slots=True)
class Guardrail:
    """The stage: one compiled rule."""

    name: str
    rules: Ruleset
    lens: Lens
    places: Places
    reply_places: Places
    action: Action
    message: str
    blocks_on_overflow: bool
    ends_with_error: bool
    hash_key: bytes = field(default=b"", repr=False)
    literals: Ruleset | None = None
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        config: GuardrailConfig,
        replacement: str = DEFAULT_REPLACEMENT,
        hash_key: str | None = None,
        *,
        sees_unknown: bool = True,
    ) -> "Guardrail":
        """`sees_unknown`: the rule looks at undocumented places. Raises PatternError when the rule is too large."""
        options = Options(
            replacement=config.replacement if config.replacement is not None else replacement,
            max_hold=config.max_hold,
            skips_overflow=config.on_overflow == "pass",
            skips_failing=config.on_error == "pass",
        )
        rules = Ruleset(config.shapes(), options)
        rules.warm()
        lens = config.lens()
        lens.warm()
        return cls(
            name=config.name,
            rules=rules,
            lens=lens,
            places=Places(config.kinds(), sees_unknown=sees_unknown),
            reply_places=Places(config.reply_kinds(), sees_unknown=sees_unknown),
            action=config.action,
            message=config.message,
            blocks_on_overflow=config.on_overflow == "block",
            ends_with_error=config.on_block == "error",
            hash_key=(hash_key or "").encode(),
            literals=placeholders(m.name for m in rules.matchers) if config.action == "pseudonymize" else None,
        )

    def open(self, exchange: Exchange) -> Visit:
        return GuardrailVisit(self, exchange)

    @property
    def reads_tools(self) -> bool:
        """Also where a text that looks like a placeholder must not become one."""
        return self.places.hold(Kind.TOOLS) or self.literals is not None

    @property
    def edits(self) -> bool:
        return self.action in ("redact", "mask", "hash", "pseudonymize")

    def replace(self, exchange: Exchange) -> ReplaceWith | None:
        """What stands for a finding where that depends on the finding itself."""
        match self.action:
            case "mask":
                return lambda _, value: masked(value)
            case "hash":
                return lambda name, value: hashed(self.hash_key, exchange.tenant, name, value)
            case "pseudonymize":
                return lambda name, value: exchange.disguise.conceal(name, value) or self.rules.replacement(name)
            case _:
                return None

    def stop(self, surface: Surface, findings: tuple[Finding, ...] = ()) -> Block | Finish:
        if self.action == "finish":
            return Finish(self.name, surface, self.message, findings)
        return Block(self.name, surface, findings, as_error=self.ends_with_error)

    def failing(self, surface: Surface) -> Finding:
        """The rule could not do its work there."""
        return Finding(self.name, "failed", surface)

    def finding(self, surface: Surface, hit: Hit) -> Finding:
        return Finding(self.name, hit.name, surface, hit.start, hit.end)


class GuardrailVisit(Visit):
    """One call's lanes under one rule. A lane that the rule does not look at has no watcher."""

    def __init__(self, rail: Guardrail, exchange: Exchange) -> None:
        self._rail = rail
        self._exchange = exchange
        self._lanes: dict[Lane, Watcher | None] = {}
        self._timed: dict[Lane, Ruleset] = {}  # what may run out of time on a lane, and nobody has been told
        self._stops = rail.action in ("block", "finish")
        self._replace = rail.replace(exchange)
        # A call is stopped once. Where a stop is only noted, in shadow mode, the reply goes on.
        self._over = False

    async def request(self, request: Request) -> Decision:
        edits: list[tuple[Slot, str]] = []
        findings: list[Finding] = []
        rail, known = self._rail, self._rail.memo.of(self._exchange.tenant)
        if rail.literals is not None:
            self._avoid(rail.literals, request)
        for slot in request.slots:
            if slot.surface not in rail.places:
                continue
            rules = rail.rules.opened()
            try:
                outcome = self._outcome(rules, slot.surface, slot.text, known)
            except Exception:  # a rule that fails must not become a hole
                return self._failure(slot.surface)
            if rules.gave_up:
                findings.append(rail.failing(slot.surface))
            if not outcome.hits:
                continue
            findings.extend(rail.finding(slot.surface, hit) for hit in outcome.hits)
            if self._stops or (outcome.overflowed and rail.blocks_on_overflow):
                return rail.stop(slot.surface, tuple(findings))
            edits.append((slot, outcome.text or ""))
        if edits and rail.edits:
            return Replace(tuple(edits), tuple(findings), rail.action)
        return Pass(tuple(findings))

    def _outcome(self, rules: Ruleset, surface: Surface, text: str, known: Pages) -> Outcome:
        if surface.json:
            return self._look_into_json(rules, text)
        outcome = known.get(text)
        if outcome is None:
            outcome = self._look(rules, text)
            # What a disguise makes of a text is the session's, not the text's alone.
            if (self._rail.literals is None or not outcome.hits) and not rules.gave_up:
                known.put(text, outcome)
        return outcome

    def _avoid(self, literals: Ruleset, request: Request) -> None:
        """Text that looks like a placeholder and is the client's own."""
        for slot in request.slots:
            if literals.may_be_in(slot.text):
                self._exchange.disguise.avoid(found_in(literals, slot.text))

    def _look(self, rules: Ruleset, text: str) -> Outcome:
        """The whole text at once."""
        said, hits, overflowed = self._rail.lens.scrub(rules, text, self._replace)
        return Outcome(said, tuple(hits), overflowed) if hits else CLEAN

    def _look_into_json(self, rules: Ruleset, text: str) -> Outcome:
        scrubber = JsonScrubber(rules, self._replace, self._rail.lens)
        said = "".join(op.text for op in [*scrubber.feed(text), *scrubber.finish()])
        return Outcome(said, tuple(scrubber.hits), scrubber.overflowed is not None)

    def send(self, event: Event) -> Sequence[Event]:
        return self._passed(event, self._rail.places)

    def feed(self, event: Event) -> Sequence[Event]:
        return self._passed(event, self._rail.reply_places)

    def _passed(self, event: Event, places: Places) -> Sequence[Event]:
        if self._over:
            return (event,)
        if type(event) is Text:
            lane = event.lane
            watcher = self._lanes[lane] if lane in self._lanes else self._watch(event, places)
            return (event,) if watcher is None else self._guarded(lane, event, watcher)
        if type(event) is End and self._lanes.get(event.lane) is not None:
            return (*self._end(event.lane), event)
        return (event,)

    def _watch(self, event: Text, places: Places) -> Watcher | None:
        """The watcher of a new lane. A text that came whole and holds nothing like a match needs none."""
        lane, rail = event.lane, self._rail
        if lane.surface not in places:
            self._lanes[lane] = None
            return None
        if event.last and not lane.surface.json and not rail.lens.may_be_in(rail.rules, event.text):
            return None
        rules = rail.rules.opened()
        watcher = self._lanes[lane] = (
            JsonScrubber(rules, self._replace, rail.lens) if lane.surface.json else rail.lens.open(rules, self._replace)
        )
        if rules is not rail.rules:
            self._timed[lane] = rules
        return watcher

    def finish(self) -> Sequence[Event]:
        if self._over:
            return ()
        open_lanes = [lane for lane, watcher in self._lanes.items() if watcher is not None]
        return [event for lane in open_lanes for event in self._end(lane)]

    def _guarded(self, lane: Lane, event: Text, watcher: Watcher) -> Sequence[Event]:
        try:
            ops = watcher.feed(event.text)
            if event.last:
                del self._lanes[lane]
                ops += watcher.finish()
        except Exception:
            return self._failed(lane)
        if len(ops) == 1 and ops[0].text == event.text and not watcher.found and not self._ran_out(lane):
            return (event,)
        return self._events(lane, watcher, ops, event)

    def _end(self, lane: Lane) -> Sequence[Event]:
        watcher = self._lanes.pop(lane)
        assert watcher is not None  # noqa: S101 -- only lanes that are watched are ended
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
        if self._ran_out(lane):
            del self._timed[lane]
            found.append(Found(rail.failing(lane.surface), "flag"))
        if rail.action == "flag":
            return [*found, event] if event else found
        said = "".join([op.text for op in ops])
        return [*found, Text(lane, said, event is not None and event.last)] if said else found

    def _ran_out(self, lane: Lane) -> bool:
        """Something has found nothing more on this lane for want of time, and that is not told yet."""
        return bool(self._timed) and lane in self._timed and self._timed[lane].gave_up

    def _stopped(self, lane: Lane, name: str, ops: list[Op]) -> Sequence[Event]:
        """What stood before the finding is said, and nothing after. How far it would have gone is not waited for."""
        self._over = True
        before = "".join([op.text for op in takewhile(lambda op: op.kept, ops)])
        finding = Finding(self._rail.name, name, lane.surface)
        stopped = Stopped(self._rail.stop(lane.surface, (finding,)))
        return [Text(lane, before), stopped] if before else [stopped]

    def _failed(self, lane: Lane) -> Sequence[Event]:
        return (Stopped(self._failure(lane.surface)),)

    def _failure(self, surface: Surface) -> Block:
        return Block(self._rail.name, surface, (self._rail.failing(surface),), failed=True)
