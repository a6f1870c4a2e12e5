"""One look at a text through a transform: what is found in what it makes of the text is acted on in the text."""

from typing import Protocol

from ..scrubber import Hit, Op, is_high, paired
from .spelling import Spelling, Unit


class Watcher(Protocol):
    """What watches a running text: Scrubber, JsonScrubber, View and Views."""

    @property
    def hits(self) -> list[Hit]: ...
    @property
    def found(self) -> str | None: ...
    @property
    def overflowed(self) -> str | None: ...
    @property
    def held(self) -> int: ...
    def feed(self, text: str) -> list[Op]: ...
    def finish(self) -> list[Op]: ...


class Look(Watcher, Protocol):
    """A watcher that can stand inside another: it tells how many characters it has decided."""

    @property
    def length(self) -> int: ...


class Transform(Protocol):
    """Reads one running text as another. Holds back what it cannot read yet, and never for long."""

    @property
    def held(self) -> int:
        """Characters that wait for what follows them."""
        ...

    def passes(self, text: str) -> bool:
        """True when this piece of the text is read as it is, and nothing waits."""
        ...

    def feed(self, text: str) -> list[Unit]: ...
    def finish(self) -> list[Unit]: ...

    def spell(self, text: str) -> str:
        """What stands for a finding, as the original would have it."""
        ...


class View:
    """The same shape as Scrubber's, around a transform. `hits` have their place in the original.

    `late`: the inner look says what stands for a finding behind it, as Scrubber does where that depends on the finding.
    """

    __slots__ = ("_half", "_inner", "_spelling", "_transform", "found", "hits", "overflowed")

    def __init__(self, transform: Transform, inner: Look, *, late: bool = False) -> None:
        self._transform = transform
        self._inner = inner
        self._spelling = Spelling(late=late)
        self._half = ""  # half of a surrogate pair, waiting for the other
        self.found: str | None = None
        self.overflowed: str | None = None
        self.hits: list[Hit] = []

    @property
    def held(self) -> int:
        return len(self._half) + self._transform.held + self._inner.held

    @property
    def length(self) -> int:
        return self._spelling.at

    def feed(self, text: str) -> list[Op]:
        if not text.isascii() or self._half:
            text = paired(self._half + text)
            self._half = text[-1] if text and is_high(text[-1]) else ""
            text = text[: len(text) - len(self._half)]
        if self._transform.passes(text):
            return self._feed_as_it_is(text)
        return self._feed_units(self._transform.feed(text))

    def finish(self) -> list[Op]:
        half, self._half = self._half, ""
        ops = self._feed_units([*(self._transform.feed(half) if half else ()), *self._transform.finish()])
        ops += self._spelt(self._spelling.respell(self._inner.finish(), final=True))
        self._look()
        return ops

    def _feed_as_it_is(self, text: str) -> list[Op]:
        ops = self._inner.feed(text)
        return ops if self._spelling.passes(len(text), ops) else self._told(ops)

    def _feed_units(self, units: list[Unit]) -> list[Op]:
        for unit in units:
            self._spelling.add(unit)
        return self._told(self._inner.feed("".join([unit.text for unit in units])))

    def _told(self, said: list[Op]) -> list[Op]:
        ops = self._spelt(self._spelling.respell(said))
        self._look()
        return ops

    def _spelt(self, ops: list[Op]) -> list[Op]:
        return [op if op.taken else op._replace(text=self._transform.spell(op.text)) for op in ops]

    def _look(self) -> None:
        inner = self._inner
        self.found, self.overflowed = inner.found, inner.overflowed
        spans = self._spelling.spans
        if spans:
            self.hits.extend(Hit(inner.hits[span.number].name, span.start, span.end) for span in spans)
            spans.clear()
