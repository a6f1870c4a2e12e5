"""What a detector is, and the small words its tables are written in."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import shake_256
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from sidecar.text.checks import Check


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of thing to find.

    `regex` is RE2 syntax over UTF-8 text. Where it has a group `value`, only that group's span is the finding
    and the rest is context. `check` gets the finding's text and decides what the expression cannot. Every one
    of `examples` is found, none of `counter` is. `source` says where the format is documented.
    """

    name: str
    pack: str
    regex: str
    source: str
    examples: tuple[str, ...]
    counter: tuple[str, ...]
    check: Check | None = None


# Before a token that starts with a word character: a word boundary, an underscore, or an escape (`\n`, `%3D`,
# `\u003d`): its last character is a word character too, so that `\b` alone would miss the token.
LEFT = r"(?:\b|_|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})"


# A quote, perhaps escaped once or more, as inside JSON that is a string in JSON.
QUOTE = r"""\\{0,8}["'`]"""
# White space, perhaps written as an escape.
SPACE = r"(?:\s|\\{1,8}[nrt])"


def words_begin(regex: str) -> str:
    r"""`regex` with every `\<`, which stands for the beginning of a word as in grep, written out for RE2."""
    return regex.replace(r"\<", LEFT)


# The last character before a number that follows its name.
_APART = r"(?:[^0-9A-Za-z]|\\[nt])"


def near(words: str, regex: str, far: int, between: str = r"[^0-9\n]") -> str:
    """What is found only after one of `words`, with at most `far` other characters between."""
    return rf"(?:{words_begin(words)}){between}{{0,{far}}}?{_APART}(?P<value>{regex})\b"


_ALPHABETS = {
    "a": ascii_letters + digits,
    "b": ascii_letters + digits + "+/",
    "d": digits,
    "h": digits + "abcdef",
    "H": digits + "ABCDEF",
    "l": ascii_lowercase + digits,
    "L": ascii_letters,
    "n": ascii_lowercase,
    "r": ascii_uppercase + "234567",
    "u": ascii_uppercase + digits,
    "w": ascii_letters + digits + "-_",
}
# Bytes to characters of each alphabet; of the longest ones the letters and digits only.
_TABLES = {
    key: bytes(ord(chars[byte % min(len(chars), 62)]) for byte in range(256)) for key, chars in _ALPHABETS.items()
}
_HOLE = re.compile(r"<([abdhHlLnruw])(\d+)>")


def sample(template: str, seed: int = 0) -> str:
    """`template` with every hole `<a36>` filled by so many made-up characters, always the same.

    Alphabets: a letters and digits, b base64, d digits, h and H hex, l lower case and digits, L letters, n
    lower case, r base32, u upper case and digits, w base64url. Only letters and digits are made up.
    """

    def fill(hole: re.Match[str]) -> str:
        noise = shake_256(f"{seed} {hole.start()} {template}".encode()).digest(int(hole[2]))
        return noise.translate(_TABLES[hole[1]]).decode()

    return _HOLE.sub(fill, template)


def samples(templates: Iterable[str]) -> tuple[str, ...]:
    """Each template filled twice, or taken once where it has no hole."""
    return tuple(dict.fromkeys(sample(template, seed) for template in templates for seed in (0, 1)))
