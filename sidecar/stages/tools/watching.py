"""A reply that is not held whole: its calls are decided as they come, and wait only until they are.

The same for a stream, a whole reply and a reply that the provider has kept: what is said on the lanes of a call is
gathered, and decided when the call is over, or as soon as its name is known where that is enough. A call that the
provider has run is judged as well where it has a name: it can still end the reply.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...core.decision import Block, Finish
from ...core.events import Began, Dropped, End, Event, Found, Goes, Hosted, Made, Stopped, Text, Waits
from ...core.surface import Kind, Lane
from .asked import Offer
from .config import ToolsConfig
from .confirm import unheld
from .rules import ALLOWED, MAX_ARGUMENTS, Course, Judged, Proposed, Rules
from .told import INVALID, TOOLS, finding, notice

Key = tuple[int, int | str]
# The one call of a message in the older form of chat completions. Other parts that are words are those of items.
_OLDER: Final = "function_call"
_WHITE: Final = " \t\r\n\ufeff"
_ERROR: Final = 400


@dataclass(slots=True, eq=False)
class Seen:
    """A call as far as it has come. `named`: its name is whole, `over`: so are its arguments, `waits`: the client gets
    nothing that follows until it is decided. `needs`: whether its arguments decide about it, once that is known."""

    key: Key
    lane: Lane | None = None
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    size: int = 0
    free: bool = False
    named: bool = False
    over: bool = False
    waits: bool = False
    needs: bool | None = None
    decided: bool = False
    dropped: bool = False

    @property
    def name(self) -> str:
        return "".join(self.names)

    def proposed(self, hosted: Hosted | None) -> Proposed:
        id = "" if hosted is None else hosted.id
        return Proposed(self.name, "".join(self.arguments), free=self.free, id=id, hosted=hosted is not None)


class Watching:
    """The calls of one reply. `offer` is what the request says of tools, nothing where there was none to read."""

    def __init__(self, config: ToolsConfig, rules: Rules, offer: Offer, course: Course) -> None:
        self._config, self._rules, self._offer, self._course = config, rules, offer, course
        self._branches: dict[int, Course] = {}
        self._last: dict[Key, Seen] = {}
        self._open: deque[Seen] = deque()
        self._hosted: dict[int, Hosted] = {}
        self._said: list[str] = []
        self._over = False

    def feed(self, event: Event) -> Sequence[Event]:
        if self._over:
            return (event,)
        match event:
            case Began(status):
                self._over = status >= _ERROR
            case Hosted():
                self._note_hosted(event)
            case Text(lane, text) if lane.surface.closed:
                return (event, *self._unread(lane, text))
            case Text(lane, text, last):
                if lane.surface.kind is Kind.TOOL_CALLS:
                    return self._call_text(event)
                if last and lane.surface.kind is Kind.REPLY:
                    self._said.append(text)
            case End(lane) if lane.surface.kind is Kind.TOOL_CALLS:
                return (event, *self._end(lane, over=not lane.surface.calls))
            case Made(lane):
                return (event, *self._end(lane, over=True))
        return (event,)

    def _unread(self, lane: Lane, text: str) -> Iterator[Event]:
        """An object that we cannot read may be a reply with calls for a client that can."""
        offers = not self._offer.names_none or not self._offer.complete
        if offers and self._denies and text.lstrip(_WHITE).startswith("{"):
            found = finding(TOOLS, "unreadable", lane.surface)
            yield from self._stopped(Block(TOOLS, lane.surface, (found,), as_error=True, failed=True))

    @property
    def _denies(self) -> bool:
        return self._rules.may_deny_any or self._config.on_invalid != "pass"

    def _note_hosted(self, call: Hosted) -> None:
        """One with a name counts when it is judged: it does not come before itself."""
        if self._hosted.setdefault(call.choice, call) is call and not call.named:
            self._course.has_run(call.id, call.name)

    # --- what a call says ---

    def _call_text(self, event: Text) -> Sequence[Event]:
        lane = event.lane
        if not lane.surface.calls:
            return self._arguments(event)
        if not lane.names_call:
            return (event,)
        seen = self._last.get(_key(lane))
        if seen is not None and seen.dropped:
            return ()
        decided: list[Event] = []
        if seen is None or (seen.named and seen.lane is not None):
            # Where it takes another's place, that one is over.
            decided += () if seen is None else self._ended(seen)
            seen = self._opened(_key(lane))
        seen.lane = lane
        seen.names.append(event.text)
        seen.named = seen.named or event.last or bool(seen.arguments)
        decided += self._settled()
        if not (seen.decided or seen.waits or self._over):
            seen.waits = True
            return (event, *decided, Waits(lane))
        return decided if seen.dropped else (event, *decided)

    def _opened(self, key: Key) -> Seen:
        seen = self._last[key] = Seen(key)
        self._open.append(seen)
        return seen

    def _arguments(self, event: Text) -> Sequence[Event]:
        """They begin when the name is over. Some APIs have them before the name, some things have no name at all."""
        if isinstance(event.lane.part, str) and event.lane.part != _OLDER:
            return (event,)
        key = _key(event.lane)
        hosted = self._hosted.get(event.lane.choice)
        if hosted is not None and not hosted.named:
            return (event,)
        seen = self._last.get(key) or self._opened(key)
        if seen.dropped:
            return ()
        seen.named = seen.named or bool(seen.names)
        seen.free = not event.lane.surface.json
        if seen.size <= MAX_ARGUMENTS:
            # What follows is not kept: they are already too long to be looked into.
            seen.arguments.append(event.text)
            seen.size += len(event.text)
        ended = self._ended(seen) if event.last else ()
        return (event, *ended, *self._settled())

    def _end(self, lane: Lane, *, over: bool) -> Iterator[Event]:
        seen = self._last.get(_key(lane))
        if seen is not None:
            seen.named = seen.named or bool(seen.names)
            if over:
                yield from self._ended(seen)
            yield from self._settled()

    def _ended(self, seen: Seen) -> Iterator[Event]:
        """All of a call is there. One that has gone already is looked at for the record."""
        if seen.decided and not (seen.over or seen.dropped) and seen.lane is not None:
            yield from self._noted(seen, seen.lane)
        seen.over = True

    # --- what becomes of it ---

    def _settled(self) -> Iterator[Event]:
        """Calls are decided in their order: what comes after one may depend on it."""
        at = 0
        while at < len(self._open) and not self._over:
            seen = self._open[at]
            if seen.lane is None:
                at += 1
                continue
            if not self._complete(seen):
                return
            del self._open[at]
            seen.decided = True
            yield from self._decided(seen, seen.lane)

    def _complete(self, seen: Seen) -> bool:
        if seen.named and seen.needs is None:
            seen.needs = self._needs_arguments(seen.name)
        return seen.named and (seen.over or not seen.needs)

    def _needs_arguments(self, name: str) -> bool:
        if self._rules.asks_arguments(name):
            return True
        return self._config.on_invalid != "pass" and name in self._offer.tools

    def _decided(self, seen: Seen, lane: Lane) -> Iterator[Event]:
        hosted = self._hosted.get(lane.choice)
        call, has_run = seen.proposed(hosted), hosted is not None and not hosted.asks
        # One that was approved was judged when it was asked for.
        approved = has_run and self._course.knows(call.id, call.name)
        judged = ALLOWED if approved else self._judged(call, lane)
        if has_run:
            self._course.has_run(call.id, call.name)
        elif judged.word == "allow":
            self._branch(lane).add(call)
            self._course.remember(call)
        if judged.word == "deny":
            yield from self._denied(seen, lane, judged)
            return
        if seen.waits:
            yield Goes(lane)
        if seen.over:
            yield from self._noted(seen, lane)

    def _noted(self, seen: Seen, lane: Lane) -> Iterator[Event]:
        """What is wrong with a call that goes all the same."""
        if self._config.on_invalid == "pass" and self._offer.fault(seen.proposed(self._hosted.get(lane.choice))):
            yield Found(finding(INVALID, "pass", lane.surface), "flag")

    def _judged(self, call: Proposed, lane: Lane) -> Judged:
        """Nothing can be asked or waited for here: what would be, is denied."""
        judged = self._rules.judge(call, self._branch(lane))
        if judged.word == "confirm":
            judged = unheld(judged)
        if judged.word == "allow" and self._config.on_invalid != "pass" and (fault := self._offer.fault(call)):
            judged = Judged("deny", INVALID, fault)
        return judged

    def _branch(self, lane: Lane) -> Course:
        """Of the choices of a reply each goes on by itself."""
        choice = lane.choice if lane.surface.calls == "loose" else 0
        return self._branches.setdefault(choice, self._course.branch())

    def _denied(self, seen: Seen, lane: Lane, judged: Judged) -> Iterator[Event]:
        found = finding(judged.rule, "deny", lane.surface)
        config, text = self._config, notice(seen.name, judged.reason)
        if config.on_deny == "block":
            yield from self._stopped(Block(judged.rule, lane.surface, (found,), as_error=True))
        elif config.on_deny == "finish" or lane.surface.calls == "fixed":
            kept = "\n\n".join([*self._said, text])
            yield from self._stopped(Finish(judged.rule, lane.surface, kept, (found,)))
        else:
            seen.dropped = True
            yield Found(found, "deny")
            yield Dropped(lane, text)

    def _stopped(self, stop: Block | Finish) -> Iterator[Event]:
        self._over = True
        yield Stopped(stop)


def _key(lane: Lane) -> Key:
    """What tells a call's lanes: its number, or the place of its item where that holds but one."""
    return lane.choice, lane.part if isinstance(lane.part, int) or lane.part == _OLDER else 0
