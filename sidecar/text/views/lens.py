"""How a rule asks to see text: read as a person reads it, and with what is encoded decoded."""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from ..matcher import Shape
from ..rules import Ruleset
from ..scrubber import Hit, Replace, Scrubber, scrub
from .base64run import Base64Reader, has_runs
from .escapes import Escape, Escaping, Unescaper, escaping
from .fold import Fold, Folder, Folding, folding
from .shapes import folded_shape
from .view import Look, Transform, View
from .views import Views

# How often what is decoded is decoded again: twice, so that an encoding may stand in another.
DEPTH: Final = 2


class Lens:
    """One choice of views. Made once per rule, shared by all texts.

    The text is folded; a rule looks at that, and, where something is to be decoded, at what becomes of it when it is
    decoded DEPTH times with every decoder that was asked for. What comes out of a decoder is folded too.
    """

    def __init__(self, folds: Iterable[Fold] = (), escapes: Iterable[Escape] = (), *, base64: bool = False) -> None:
        self._folds, self._escapes, self._base64 = frozenset(folds), frozenset(escapes), base64
        self.decodes = base64 or bool(self._escapes)

    @cached_property
    def _folding(self) -> Folding | None:
        return folding(self._folds) if self._folds else None

    @cached_property
    def _escaping(self) -> Escaping | None:
        return escaping(self._escapes) if self._escapes else None

    def open(self, rules: Ruleset, replace: Replace | None = None) -> Look:
        """What to feed one running text to. `replace` is given what a rule found as the rule saw it."""
        late = replace is not None
        look: Look = Scrubber(rules, replace)
        if self.decodes:
            look = Views([look, _view(self._decoders(), Scrubber(rules, replace), late=late)], late=late)
        return _view(self._folders(), look, late=late)

    def scrub(self, rules: Ruleset, text: str, replace: Replace | None = None) -> tuple[str, list[Hit], bool]:
        """The whole text at once: what it becomes, what was found, and whether something overflowed."""
        if self._is_plain(text):
            return scrub(rules, text, replace)
        if not self.may_be_in(rules, text):
            return text, [], False
        look = self.open(rules, replace)
        ops = [*look.feed(text), *look.finish()]
        return "".join(op.text for op in ops), look.hits, look.overflowed is not None

    def may_be_in(self, rules: Ruleset, text: str) -> bool:
        """False when no look finds anything in the text."""
        return any(map(rules.may_be_in, [text] if self._is_plain(text) else self._seen(text)))

    def shape(self, shape: Shape) -> Shape:
        """What to look for where `shape` is meant."""
        return folded_shape(shape, self._folding) if self._folding else shape

    def folded(self, text: str) -> str:
        """The text as it is read."""
        return self._folding.folded(text) if self._folding else text

    def warm(self) -> None:
        """Builds the tables that the first text would otherwise wait for."""
        self.folded("")
        self._decoders()

    def _is_plain(self, text: str) -> bool:
        return (
            (self._folding is None or self._folding.is_plain(text))
            and (self._escaping is None or not self._escaping.marked(text))
            and not (self._base64 and has_runs(text))
        )

    def _seen(self, text: str) -> Iterable[str]:
        """What the looks see."""
        read = _through(self._folders(), text)
        yield read
        if self.decodes:
            yield _through(self._decoders(), read)

    def _folders(self) -> list[Transform]:
        return [Folder(self._folding)] if self._folding else []

    def _decoders(self) -> list[Transform]:
        once: list[Transform] = []
        for _ in range(DEPTH):
            once += [Unescaper(self._escaping, self.folded)] if self._escaping else []
            once += [Base64Reader(self.folded)] if self._base64 else []
        return once


def _view(transforms: list[Transform], look: Look, *, late: bool) -> Look:
    for transform in reversed(transforms):
        look = View(transform, look, late=late)
    return look


def _through(transforms: Iterable[Transform], text: str) -> str:
    for transform in transforms:
        text = "".join(unit.text for unit in [*transform.feed(text), *transform.finish()])
    return text
