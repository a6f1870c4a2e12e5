"""What one guardrail looks for, compiled so that a stream can obey it.

Clean text costs two searches, however many matchers there are: is there anything like a match (`maybe`), and could
one still be growing at the end (`growing_from`)? Only where the answer is yes are single matchers asked, and only
those that a set of all of them names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .engine import Program, ProgramSet
from .matcher import Matcher, Shape, after, floor
from .pattern import Node, opening, prefixes, render, widths

# Bytes of a lane that may wait for a match to be decided, and bytes that a decided one may go on to swallow.
DEFAULT_MAX_HOLD = 1024
MAX_SWALLOW = 64 << 10
# An assertion looks at one byte to its left.
CONTEXT = 1
# Counts beyond this are widened where a superset will do.
_LOOSE = 8
# What automata are warmed with: they are built as texts lead them, and the first exchange should not pay for it.
_WARM_UP = """Dear team, the token of the API is in your account: see https://example.com/docs?key=value (step 2).
{"id": "call_1", "name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 3}"} password = none;
def main(argv): return os.environ["HOME"]  # 2024-05-01T12:30:45Z ERROR [worker-7] 10.0.0.1 - "GET /v1/x HTTP/1.1"
"""


@dataclass(frozen=True, slots=True)
class Options:
    """`skips_overflow`: a text that stays undecided for `max_hold` bytes is let go instead of being taken for one.
    `skips_failing`: what a check fails on is let go; else the failure is raised.
    """

    replacement: str = "[REDACTED:{name}]"
    max_hold: int = DEFAULT_MAX_HOLD
    skips_overflow: bool = False
    skips_failing: bool = False


class Ruleset:
    """All of one guardrail's matchers, in their order of precedence. Raises PatternError as Matcher does."""

    def __init__(self, shapes: Sequence[Shape], options: Options = Options()) -> None:
        self.options = options
        self.matchers = tuple(Matcher(shape.lenient() if options.skips_failing else shape) for shape in shapes)
        self.replacements = tuple(self.replacement(m.name) for m in self.matchers)
        self._short_width = max((m.width or 0 for m in self.matchers if self.is_short(m)), default=0)
        self._narrowest = min(widths(m.node)[0] for m in self.matchers)
        self._maybe = Program(_any([self._suspect(m) for m in self.matchers]))
        self._growing = Program(_growing(m.node for m in self.matchers))

    def replacement(self, name: str) -> str:
        return self.options.replacement.replace("{name}", name)

    def is_short(self, matcher: Matcher) -> bool:
        """A short matcher is decided before it can overflow."""
        return matcher.width is not None and matcher.width < self.options.max_hold

    def _suspect(self, matcher: Matcher) -> str:
        """Matches wherever the matcher does, and wherever it could overflow."""
        node = matcher.node if self.is_short(matcher) else opening(matcher.node, self.options.max_hold)
        return render(node, wide=_LOOSE)

    def could_overflow(self, text: bytes) -> bool:
        """False when nothing in the text stays the beginning of a match for as long as `max_hold` bytes."""
        return any(self._overflows(matcher, begins, text) for matcher, begins in self._long_matchers)

    @cached_property
    def _long_matchers(self) -> list[tuple[Matcher, Program]]:
        """Those that can overflow, each with what any text begins with in which it does."""
        long = [matcher for matcher in self.matchers if not self.is_short(matcher)]
        return [(matcher, Program(render(opening(matcher.node, self.options.max_hold)))) for matcher in long]

    def _overflows(self, matcher: Matcher, begins: Program, text: bytes) -> bool:
        at = 0
        while (span := begins.search(text, at)) is not None:
            start = span[0]
            limit = floor(text, start + self.options.max_hold)
            low = max(0, start - CONTEXT)
            if span[0] == span[1]:  # it begins with anything at all
                return True
            if limit <= len(text) and matcher.reach(text[low:limit], start - low) + low >= limit:
                return True
            at = after(text, start)
        return False

    def warm(self) -> None:
        """Builds what ordinary text needs of the automata."""
        text = _WARM_UP.encode()
        for at in range(0, len(text), 4):
            self.maybe(text[max(0, at - 8) : at + 4], 0)
            self.growing_from(text[max(0, at - 24) : at + 4], 0)
        self.maybe(text, 0)
        self.matching(text)
        self.beginning(text)
        self.could_overflow(text)

    def maybe(self, text: bytes, start: int) -> bool:
        """False when no match begins at `start` or later, and nothing overflows."""
        return len(text) - start >= self._narrowest and self._maybe.search(text, start) is not None

    def may_be_in(self, text: str) -> bool:
        """False when nothing is found in the text."""
        return self.maybe(text.encode("utf-8", "surrogatepass"), 0)

    def growing_from(self, text: bytes, start: int) -> int:
        """The first position from `start` on where a match could still be growing; the text's end if none is."""
        end = len(text)
        span = self._growing.search(text, start)
        if span is None:
            return end
        if span[0] >= end - self._short_width or not self._short_width:
            return span[0]
        return self._growing_from_afar(text, start)

    def _growing_from_afar(self, text: bytes, start: int) -> int:
        """What looks as if it had been growing for longer than a short matcher can: only a long one may have."""
        end = len(text)
        spans = []
        if self._short is not None:
            spans.append(self._short.search(text, floor(text, max(start, end - self._short_width))))
        if self._long is not None:
            spans.append(self._long.search(text, start))
        return min((span[0] for span in spans if span is not None), default=end)

    @cached_property
    def _short(self) -> Program | None:
        nodes = [m.node for m in self.matchers if self.is_short(m)]
        return Program(_growing(nodes)) if nodes else None

    @cached_property
    def _long(self) -> Program | None:
        nodes = [m.node for m in self.matchers if not self.is_short(m)]
        return Program(_growing(nodes)) if nodes else None

    def matching(self, text: bytes) -> Sequence[int]:
        """The matchers that may have a match somewhere in the text."""
        return self._matching.names(text)

    def beginning(self, text: bytes) -> Sequence[int]:
        """The matchers of which the text may be a beginning, whole matches included."""
        return self._beginning.names(text)

    @cached_property
    def _matching(self) -> ProgramSet:
        return ProgramSet([render(m.node, wide=_LOOSE) for m in self.matchers])

    @cached_property
    def _beginning(self) -> ProgramSet:
        return ProgramSet([prefixes(m.node, loose=True) for m in self.matchers], whole=True)


def _any(sources: Sequence[str]) -> str:
    return f"(?:{'|'.join(sources)})"


def _growing(nodes: Iterable[Node]) -> str:
    return _any([prefixes(node, loose=True) for node in nodes]) + r"\z"
