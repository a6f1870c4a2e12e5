"""Made-up rules such as a policy of a large company has: tokens, numbers, phrases and addresses of its own."""

import random

from sidecar.text.matcher import Shape
from sidecar.text.rules import Ruleset

_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "lem", "mir", "nox", "pra", "qui", "ros", "sul", "tev", "vor", "wex")


def _word(chance: random.Random, syllables: int = 3) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(syllables))


def _token(chance: random.Random) -> str:
    return rf"\b{_word(chance)}_[A-Za-z0-9]{{{chance.randint(16, 40)}}}"


def _number(chance: random.Random) -> str:
    return rf"\b{_word(chance, 2).upper()}-\d{{{chance.randint(5, 7)},{chance.randint(8, 12)}}}\b"


def _phrase(chance: random.Random) -> str:
    return rf"(?i)\bproject {_word(chance)}\b"


def _address(chance: random.Random) -> str:
    return rf"\b[a-z0-9.]{{1,32}}@{_word(chance)}\.example\b"


def _near(chance: random.Random) -> str:
    return rf"(?i:{_word(chance)} (?:id|number|no))\W{{1,4}}(?P<value>[A-Z0-9]{{6,14}})\b"


_MAKERS = (_token, _token, _number, _phrase, _near, _near, _token, _number, _phrase, _address)


def generated(number: int) -> Ruleset:
    """`number` rules in one set, always the same; the first ones of a larger set are those of a smaller."""
    chance = random.Random(20260301)
    return Ruleset([Shape.of(f"rule_{n}", _MAKERS[n % len(_MAKERS)](chance)) for n in range(number)])
