"""What one guardrail looks for, compiled so that a stream can obey it.

Clean text costs a look for the matchers' keys, however many there are, and a stream another one for what may have
begun at its end. Single matchers are asked only where their keys are.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from hashlib import shake_256
from importlib import resources

from .ahead import Ahead
from .engine import Program, ProgramSet
from .keys import LONG_BITS, SHORT_BITS, Kind, keys, shorter
from .matcher import Matcher, Shape, after, floor
from .pattern import Node, opening, prefixes, render
from .places import SHORT_TEXT
from .prefilter import Prefilter

# Bytes of a lane that may wait for a match to be decided, and bytes that a decided one may go on to swallow.
DEFAULT_MAX_HOLD = 1024
MAX_SWALLOW = 64 << 10
# Bytes that all of a text's may be followed together, and how many more for each byte of the text before them.
MAX_FOLLOWED = 256 << 10
FOLLOWED_PER_BYTE = 4
# Findings in one text, beyond which its rule fails.
MAX_FINDINGS = 100_000
# A character has so many bytes at most.
_WIDEST = 4
# An assertion looks at one byte to its left.
CONTEXT = 1
# Which kinds of keys share an automaton. Over a long text each by itself is quicker; a delta is so short that the
# number of calls counts.
_APART = tuple((kind,) for kind in Kind)
_IN_PAIRS = ((Kind.WORDS, Kind.GAPS), (Kind.DIGITS, Kind.LETTERS))
# What automata are warmed with: they are built as texts lead them, and the first exchange should not pay for it.
# Beside this: this package's own code, and noise in the alphabets of numbers and of base64.
_WARM_UP = """Dear team, the token of the API is in your account: see https://example.com/docs?key=value (step 2).
{"id": "call_1", "name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 3}"} password = none;
def main(argv): return os.environ["HOME"]  # 2024-05-01T12:30:45Z ERROR [worker-7] 10.0.0.1 - "GET /v1/x HTTP/1.1"
"""
_NUMBERS = b"00112233445566778899--::..  /T,abcdefkm="
_NOISE = 90_000
_OF_EACH_FILE = 3_000
_DELTA = 4


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
        self.matchers = tuple((shape.lenient() if options.skips_failing else shape).matcher() for shape in shapes)
        self.context = max((m.context for m in self.matchers), default=CONTEXT)
        self._is_timed = any(m.opened() is not m for m in self.matchers)
        self.replacements = tuple(self.replacement(m.name) for m in self.matchers)
        self._openings: dict[Node, Program] = {}
        found = [keys(self._decided(matcher), LONG_BITS) for matcher in self.matchers]
        self._whole = Prefilter(found, _APART)
        self._running = Prefilter([[shorter(key, SHORT_BITS) for key in each] for each in found], _IN_PAIRS)

    def replacement(self, name: str) -> str:
        return self.options.replacement.replace("{name}", name)

    def opened(self) -> "Ruleset":
        """For one text, whose matchers' time is counted together."""
        if not self._is_timed:
            return self
        mine = copy(self)
        mine.matchers = tuple(matcher.opened() for matcher in self.matchers)
        return mine

    @property
    def gave_up(self) -> bool:
        """A matcher has run out of time for this text, and failing is let pass."""
        return self._is_timed and any(matcher.gave_up for matcher in self.matchers)

    def is_short(self, matcher: Matcher) -> bool:
        """A short matcher is decided before it can overflow."""
        return matcher.width is not None and matcher.width < self.options.max_hold

    def _decided(self, matcher: Matcher) -> Node:
        """Matches wherever the matcher does, and wherever it could overflow."""
        return matcher.node if self.is_short(matcher) else opening(matcher.node, self.options.max_hold)

    def could_overflow(self, text: bytes, names: Sequence[int]) -> bool:
        """False when none of these matchers stays undecided for as long as `max_hold` bytes of the text."""
        if len(text) < self.options.max_hold:
            return False
        return any(
            self._overflows(self.matchers[name], text) for name in names if not self.is_short(self.matchers[name])
        )

    def ahead(self, text: bytes, names: Sequence[int]) -> Ahead:
        """Where these matchers may begin in a text that is whole."""
        return Ahead(text, {name: self._opening(self.matchers[name]) for name in names})

    def _opening(self, matcher: Matcher) -> Program:
        """What any text begins with in which the matcher overflows. Compiled when first asked for."""
        if matcher.node not in self._openings:
            self._openings[matcher.node] = Program(render(self._decided(matcher)))
        return self._openings[matcher.node]

    def _overflows(self, matcher: Matcher, text: bytes) -> bool:
        """Errs on one side. Every stretch of `max_hold` bytes has one of the cuts in its last quarter."""
        at, begins, quarter = 0, self._opening(matcher), (self.options.max_hold - _WIDEST) // 4
        while (span := begins.search(text, at)) is not None:
            if span[0] == span[1]:  # it begins with anything at all
                return True
            cut = (-(-span[0] // quarter) + 3) * quarter
            if cut > len(text):
                return False
            low = max(0, cut - self.options.max_hold)
            piece = text[max(0, low - CONTEXT) : floor(text, cut)]
            if len(piece) - matcher.growing_from(piece, min(low, CONTEXT)) >= 3 * quarter - _WIDEST:
                return True
            at = after(text, cut - 3 * quarter)
        return False

    def warm(self) -> None:
        """Builds what ordinary text needs of the automata."""
        for text, in_deltas in _warm_ups():
            self._whole.names(text)
            for at in range(0, min(len(text), in_deltas), _DELTA):
                piece = text[max(0, at - 24) : at + _DELTA]
                self.growing_from(piece, min(len(piece), 1), self.started(piece, max(0, len(piece) - 12)))
                self.quiet_until(piece, min(len(piece), 1))

    def suspects(self, text: bytes) -> Sequence[int]:
        """The matchers that may have a match in a whole text, or overflow there."""
        return self._whole.names(text)

    def may_be_in(self, text: str) -> bool:
        """False when nothing is found in the text."""
        return bool(self.suspects(text.encode("utf-8", "surrogatepass")))

    def started(self, text: bytes, start: int) -> Sequence[int]:
        """The matchers of which a match, or enough of one to ask them, may begin at `start` or later."""
        return self._running.names(text[start - CONTEXT :] if start > CONTEXT else text)

    def quiet_until(self, text: bytes, start: int) -> int | None:
        """The same where no match, or enough of one to ask a matcher, begins at `start` or later; None elsewhere."""
        if start and len(text) - start <= SHORT_TEXT:
            return self._running.beginnings.quiet_until(text, start)
        return None if self.started(text, start) else self._running.beginnings.begun_from(text, start)

    def growing_from(self, text: bytes, start: int, started: Sequence[int]) -> int:
        """The first position from `start` on where a match could still be growing; the text's end if none is.

        `started` is what is said of the text.
        """
        begun = self._running.beginnings.begun_from(text, start)
        return min([begun, *(self.matchers[index].growing_from(text, start) for index in started)])

    def beginning(self, text: bytes) -> Sequence[int]:
        """The matchers of which the text may be a beginning, whole matches included."""
        return self._beginning.names(text)

    @cached_property
    def _beginning(self) -> ProgramSet:
        return ProgramSet([prefixes(m.node, loose=True) for m in self.matchers], whole=True)


def _warm_ups() -> Iterator[tuple[bytes, int]]:
    """Texts, and how many bytes of each to look at in deltas."""
    noise = shake_256(b"noise").digest(_NOISE)
    code = (path.read_bytes()[:_OF_EACH_FILE] for path in resources.files(__package__).iterdir() if path.is_file())
    yield _WARM_UP.encode(), len(_WARM_UP)
    yield b"".join(sorted(code)), 1_500
    yield noise[: _NOISE // 2].translate(bytes(_NUMBERS[code % len(_NUMBERS)] for code in range(256))), 200
    yield b64encode(noise), 200
