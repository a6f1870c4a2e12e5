"""Replaces what a rule set finds, in text that arrives in pieces, exactly as it would in the whole text.

What is found in a text is defined without any pieces. Each matcher finds its matches from left to right, one
after the other; a match that its check turns down does not count, and the search goes on one character later.
A text that stays the beginning of a match for `max_hold` bytes is taken for one (the overflow), as far as it
stays so. Of all these the leftmost comes first, then the one declared earlier, then the longer; those that
overlap are one span under the first one's name. No match is followed for more than MAX_SWALLOW bytes; where matches
have been followed for MAX_FOLLOWED bytes and FOLLOWED_PER_BYTE times the text before them, for no more than `max_hold`.

The scrubber holds text back only from the first position where a match could still be growing. A match that can
only grow is announced at once, and the rest of it swallowed as it arrives.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .ahead import Ahead
from .matcher import Found, Matcher, after, floor
from .rules import FOLLOWED_PER_BYTE, MAX_FINDINGS, MAX_FOLLOWED, MAX_SWALLOW, Ruleset

Replace = Callable[[str, str], str]
"""What stands for a finding: from the matcher's name and the text found."""


class Op(NamedTuple):
    """One step of the output.

    Either `kept` text, the next `taken` characters of the input as they came; or `text` that stands for a finding
    (`taken` is 0); or input that is swallowed (no text).
    """

    kept: bool
    text: str
    taken: int


class Hit(NamedTuple):
    """A finding: the matcher's name and its span in characters of the input."""

    name: str
    start: int
    end: int


class _Match(NamedTuple):
    start: int
    matcher: int
    end: int

    def precedence(self) -> tuple[int, int, int]:
        return self.start, self.matcher, -self.end


class Scrubber:
    """One rule set's look at one running text.

    `hits` grows as findings are complete. `found` is the first finding's name, known as early as it can be;
    `overflowed` the name of the first that was only taken for one. With `replace`, what stands for a finding is what
    it makes of the name and the text found, and leaves when that is complete.
    """

    __slots__ = (
        "_ahead",
        "_announced",
        "_at",
        "_base",
        "_buffer",
        "_chars",
        "_followed",
        "_half",
        "_look",
        "_pending",
        "_replace",
        "_rules",
        "_said",
        "_skip",
        "_span",
        "_swallowed",
        "found",
        "hits",
        "overflowed",
    )

    def __init__(self, rules: Ruleset, replace: Replace | None = None, ahead: Ahead | None = None) -> None:
        self._rules = rules
        self._replace = replace
        self._ahead = ahead
        self._buffer = b""  # undecided text, and a little before it
        self._base = 0  # where the buffer begins; offsets count bytes of the whole text
        self._at = 0  # what begins before this is decided
        self._said = 0  # what stands before this has been said or swallowed
        self._chars = 0  # the same in characters
        self._half = ""  # half of a surrogate pair, waiting for the other
        self._skip: dict[int, int] = {}  # matcher -> where its next match may begin at the earliest
        self._pending: list[_Match] = []  # decided, and beginning after `_at`
        self._announced: int | None = None  # the matcher whose match at `_at` is announced and still growing
        self._followed = 0  # bytes that announced matches were followed
        self._look = 0  # how far after `_at` its end is looked for
        self._span: Hit | None = None  # the last span, which overlapping findings may still lengthen
        self._swallowed: list[str] = []  # its text, where what stands for it depends on that
        self.found: str | None = None
        self.overflowed: str | None = None
        self.hits: list[Hit] = []

    @property
    def length(self) -> int:
        """How many characters have been said or swallowed."""
        return self._chars

    @property
    def held(self) -> int:
        """How many bytes have arrived and wait to be said."""
        waiting = 0 if self._announced is not None else self._end() - max(self._said, self._at)
        return waiting + len(self._half)

    def feed(self, text: str) -> list[Op]:
        """More of the text; returns what can be said by now."""
        self._buffer += self._encoded(text)
        if self._is_idle() and (end := self._quiet_until()) is not None:
            return self._feed_plain(end)
        ops: list[Op] = []
        while self._decide(ops, final=False):
            pass
        self._forget()
        return ops

    def finish(self) -> list[Op]:
        """The text is over; returns the rest."""
        self._buffer += self._half.encode("utf-8", "surrogatepass")
        self._half = ""
        ops: list[Op] = []
        while self._at < self._end():
            self._decide(ops, final=True)
        self._close_span(ops)
        return ops

    def _is_idle(self) -> bool:
        """Nothing is half said."""
        return not (self._skip or self._pending or self._span or self._said != self._at or self._announced is not None)

    def _quiet_until(self) -> int | None:
        """Up to where the text is no finding and cannot become one; None where that takes a closer look."""
        start = self._at - self._base
        room = len(self._buffer) - start < self._rules.options.max_hold
        return self._rules.quiet_until(self._buffer, start) if room else None

    def _feed_plain(self, end: int) -> list[Op]:
        """What `_decide` comes to for plain text, without its detours: this is nearly every piece of a stream."""
        buffer, start = self._buffer, self._at - self._base
        if end == start:
            return []
        said = buffer[start:end].decode("utf-8", "surrogatepass")
        self._at = self._said = self._base + end
        self._chars += len(said)
        self._forget()
        return [Op(True, said, len(said))]

    def _encoded(self, text: str) -> bytes:
        if not self._half:
            try:
                return text.encode()
            except UnicodeEncodeError:
                pass
        text = paired(self._half + text)
        self._half = text[-1] if text and is_high(text[-1]) else ""
        return text[: len(text) - len(self._half)].encode("utf-8", "surrogatepass")

    def _end(self) -> int:
        return self._base + len(self._buffer)

    def _forget(self) -> None:
        drop = self._at - self._rules.context - self._base
        if drop > 0:
            self._buffer = self._buffer[drop:]
            self._base += drop

    # Decisions are made on the text cut a bounded way after `_at`, or at its end, whichever comes first: never with
    # more than `max_hold` bytes after an undecided position, however the text arrived. So an overflow shows at the
    # same byte for every way of cutting the text into pieces.

    def _limit(self) -> int:
        follows = self._announced is not None and self._followed <= MAX_FOLLOWED + FOLLOWED_PER_BYTE * self._at
        room = MAX_SWALLOW if follows else self._rules.options.max_hold
        return self._base + floor(self._buffer, self._at + room - self._base)

    def _decide(self, ops: list[Op], *, final: bool) -> bool:
        """Decides what can be decided at the next cut. True when there is more to decide."""
        if self._ahead is not None and self._announced is None:
            self._leap(self._ahead, ops)
        end, limit = self._end(), self._limit()
        most = min(end, limit)
        cut = most if self._announced is None else min(most, self._base + floor(self._buffer, self._near()))
        low = max(self._base, self._at - self._rules.context)
        text = self._buffer[low - self._base : cut - self._base]
        if (cut < most or (cut < limit and not final)) and self._goes_on(text, self._at - low):
            return self._look_on(cut < most)
        window = _Window(text, low, self._started(text, low, cut))
        growing = cut if final and cut == end else self._growing_from(window)
        if self._announced is not None:
            if growing == self._at and cut < limit:
                return self._look_on(cut < most)
            return self._conclude(window, cut if growing == self._at else None, ops)
        self._collect(window, growing)
        self._say(growing, ops)
        stuck = growing == self._at
        self._move(growing)
        overflow = stuck and cut == limit
        if growing < cut and (window.started or overflow):
            self._announce(window, ops, overflow=overflow)
            if overflow and self._announced is None:
                self._pass(window, ops)
        return cut < end or end >= self._limit()

    def _leap(self, ahead: Ahead, ops: list[Op]) -> None:
        """To where something may begin: all before that is decided."""
        upto = min(ahead.first(self._at, self._skip), self._end())
        if upto > self._at:
            self._say(upto, ops)
            self._move(upto)

    def _started(self, text: bytes, low: int, cut: int) -> Sequence[int]:
        """The matchers of which a match may begin in the text, or that are to be asked."""
        if self._ahead is not None:
            return self._ahead.before(cut, self._at, self._skip)
        return self._rules.started(text, self._at - low)

    def _near(self) -> int:
        """Up to where in the buffer the end of what is announced is looked for: little at first."""
        return self._at - self._base + self._look

    def _look_on(self, there_is_more: bool) -> bool:
        if there_is_more:
            self._look *= 2
        return there_is_more

    def _goes_on(self, text: bytes, at: int) -> bool:
        """The announced match is still growing."""
        return self._announced is not None and self._rules.matchers[self._announced].could_grow(text, at)

    def _pass(self, window: "_Window", ops: list[Op]) -> None:
        """What is at `_at` only looked like the beginning of a match: not one is left that it could become."""
        upto = window.low + after(window.text, self._at - window.low)
        self._collect(window, upto)
        self._say(upto, ops)
        self._move(upto)

    def _growing_from(self, window: "_Window") -> int:
        """The first position from `_at` on where a match could still be growing."""
        text, start = window.text, self._at - window.low
        if self._ahead is not None:
            return min(
                (self._growing_ahead(self._ahead, index, window) for index in window.started),
                default=window.low + len(text),
            )
        if not self._skip:
            return window.low + self._rules.growing_from(text, start, window.started)
        begun = self._rules.growing_from(text, start, ())
        starts = ((index, max(start, self._skip.get(index, 0) - window.low)) for index in window.started)
        return window.low + min([begun, *(self._rules.matchers[i].growing_from(text, at) for i, at in starts)])

    def _growing_ahead(self, ahead: Ahead, index: int, window: "_Window") -> int:
        start = ahead.next(index, max(self._at, self._skip.get(index, 0))) - window.low
        return window.low + self._rules.matchers[index].growing_from(window.text, start)

    def _collect(self, window: "_Window", upto: int) -> None:
        """Puts the matches that begin before `upto` among the pending: they are decided."""
        for index in window.started:
            matcher = self._rules.matchers[index]
            start = max(self._at, self._skip.get(index, 0))
            while start < upto and (match := window.find(matcher, start, upto)) is not None:
                self._pending.append(_Match(match.value_start, index, match.value_end))
                start = self._skip[index] = match.end

    def _conclude(self, window: "_Window", capped: int | None, ops: list[Op]) -> bool:
        """The announced match is over, or has reached the cap; only what begins at `_at` is decided by that."""
        assert self._announced is not None  # noqa: S101
        if capped is None:
            start = self._at - window.low
            upto = window.low + after(window.text, start)
            self._followed += self._rules.matchers[self._announced].reach(window.text, start) - start
            self._collect_overflows(window)
            self._collect(window, upto)
        else:
            upto = capped
            self._followed += capped - self._at
            self._pending.append(_Match(self._at, self._announced, capped))
            self._skip = dict.fromkeys(range(len(self._rules.matchers)), capped)
        self._say(upto, ops)
        self._announced = None
        self._move(upto)
        return True

    def _collect_overflows(self, window: "_Window") -> None:
        if self._rules.options.skips_overflow:
            return
        start, text = self._at - window.low, window.text
        for index in window.started:
            matcher = self._rules.matchers[index]
            if self._skip.get(index, 0) > self._at or self._rules.is_short(matcher):
                continue
            reach = matcher.reach(text, start)
            if reach >= floor(text, start + self._rules.options.max_hold) and not matcher.has_value_at(text, start):
                self._pending.append(_Match(self._at, index, window.low + reach))
                self._skip[index] = window.low + reach

    def _announce(self, window: "_Window", ops: list[Op], *, overflow: bool) -> None:
        """Says at once what stands for a match at `_at` that is certain by now, or too long to wait for."""
        text, start = window.text, self._at - window.low
        for index in window.started:
            if self._skip.get(index, 0) > self._at:
                continue
            matcher = self._rules.matchers[index]
            grows = matcher.could_grow(text, start)
            match = matcher.match_at(text, start) if matcher.certain or not grows else None
            matches = match is not None and match.value_start == start
            if matches and not overflow and self._is_preceded(index, text, start):
                return
            if matches or (grows and overflow and not self._rules.options.skips_overflow):
                self._announced, self._look = index, 2 * self._rules.options.max_hold
                self.overflowed = self.overflowed or (None if matches else matcher.name)
                if self._said <= self._at:
                    self._put(min([index, *(match.matcher for match in self._pending if match.start == self._at)]), ops)
                return
            if grows and not overflow:
                return
            if grows:
                self._skip[index] = window.low + after(text, start)

    def _is_preceded(self, index: int, text: bytes, start: int) -> bool:
        """A matcher that takes precedence could still match at `start`."""
        earlier = (other for other in self._rules.beginning(text[start:]) if other < index)
        return any(
            self._skip.get(other, 0) <= self._at and self._rules.matchers[other].could_grow(text, start)
            for other in earlier
        )

    def _move(self, at: int) -> None:
        self._at = at
        if self._skip:
            self._skip = {index: skip for index, skip in self._skip.items() if skip > at}

    # What is said: pending findings in their order, kept text between them.

    def _say(self, upto: int, ops: list[Op]) -> None:
        """Says everything that begins before `upto`."""
        if self._pending:
            self._pending.sort(key=_Match.precedence)
            while self._pending and self._pending[0].start < upto:
                self._say_match(self._pending.pop(0), ops)
        self._keep(upto, ops)

    def _say_match(self, match: _Match, ops: list[Op]) -> None:
        announced = self._announced is not None and match.start == self._at
        if match.start >= self._said and not announced:
            self._keep(match.start, ops)
            self._put(match.matcher, ops)
        self._swallow(match.end, ops)

    def _keep(self, upto: int, ops: list[Op]) -> None:
        if upto > self._said:
            self._close_span(ops)
            text = self._take(upto)
            ops.append(Op(True, text, len(text)))

    def _put(self, index: int, ops: list[Op]) -> None:
        self._close_span(ops)
        name = self._rules.matchers[index].name
        self.found = self.found or name
        self._span = Hit(name, self._chars, self._chars)
        if self._replace is None:
            ops.append(Op(False, self._rules.replacements[index], 0))

    def _swallow(self, upto: int, ops: list[Op]) -> None:
        if upto > self._said:
            text = self._take(upto)
            ops.append(Op(False, "", len(text)))
            if self._replace is not None:
                self._swallowed.append(text)
            if self._span is not None:
                self._span = self._span._replace(end=self._chars)

    def _take(self, upto: int) -> str:
        text = self._buffer[self._said - self._base : upto - self._base].decode("utf-8", "surrogatepass")
        self._said = upto
        self._chars += len(text)
        return text

    def _close_span(self, ops: list[Op]) -> None:
        if self._span is None:
            return
        if self._replace is not None:
            ops.append(Op(False, self._replace(self._span.name, "".join(self._swallowed)), 0))
            self._swallowed.clear()
        _bounded(len(self.hits))
        self.hits.append(self._span)
        self._span = None


def _bounded(count: int) -> None:
    """Raises OverflowError where there are as many findings as there may be: more would take time without bound."""
    if count >= MAX_FINDINGS:
        raise OverflowError(f"more than {MAX_FINDINGS} findings in one text")


class _Window(NamedTuple):
    """A piece of the text that begins at offset `low`, and the matchers that may begin there or are asked."""

    text: bytes
    low: int
    started: Sequence[int]

    def find(self, matcher: Matcher, start: int, upto: int) -> Found | None:
        """The matcher's first match from `start` on and before `upto`, in offsets of the whole text."""
        found = matcher.find(self.text, start - self.low, upto - self.low)
        return None if found is None else found.moved(self.low)


def is_high(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def is_low(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


def paired(text: str) -> str:
    """Joins halves of surrogate pairs that have come together."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def scrub(rules: Ruleset, text: str, replace: Replace | None = None) -> tuple[str, list[Hit], bool]:
    """The whole text at once: what it becomes, what was found, and whether something overflowed."""
    data = text.encode("utf-8", "surrogatepass")
    suspects = rules.suspects(data)
    if not suspects:
        return text, [], False
    if not rules.could_overflow(data, suspects):
        return *_put_together(rules, data, _spans(rules, data, suspects), replace), False
    text = paired(text)
    scrubber = Scrubber(rules, replace, rules.ahead(text.encode("utf-8", "surrogatepass"), suspects))
    ops = [*scrubber.feed(text), *scrubber.finish()]
    return "".join(op.text for op in ops), scrubber.hits, scrubber.overflowed is not None


def _spans(rules: Ruleset, data: bytes, suspects: Sequence[int]) -> list[_Match]:
    """What is found in a text in which nothing overflows: there the definition needs no cuts to be followed."""
    found: list[_Match] = []
    for index in suspects:
        start = 0
        while (match := rules.matchers[index].find(data, start, len(data))) is not None:
            _bounded(len(found))
            found.append(_Match(match.value_start, index, match.value_end))
            start = match.end
    found.sort(key=_Match.precedence)
    spans: list[_Match] = []
    for match_ in found:
        if spans and match_.start < spans[-1].end:
            spans[-1] = spans[-1]._replace(end=max(spans[-1].end, match_.end))
        else:
            spans.append(match_)
    return spans


def _put_together(rules: Ruleset, data: bytes, spans: list[_Match], replace: Replace | None) -> tuple[str, list[Hit]]:
    said: list[str] = []
    hits: list[Hit] = []
    at, chars = 0, 0
    for span in spans:
        kept = data[at : span.start].decode("utf-8", "surrogatepass")
        value = data[span.start : span.end].decode("utf-8", "surrogatepass")
        name = rules.matchers[span.matcher].name
        start = chars + len(kept)
        at, chars = span.end, start + len(value)
        hits.append(Hit(name, start, chars))
        said += (kept, replace(name, value) if replace else rules.replacements[span.matcher])
    said.append(data[at:].decode("utf-8", "surrogatepass"))
    return "".join(said), hits
