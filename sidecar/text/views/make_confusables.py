"""Writes confusables.py from Unicode's table: `python -m sidecar.text.views.make_confusables confusables.txt`.

The table is https://www.unicode.org/Public/security/latest/confusables.txt; Debian's source package icu has it too
(icu/source/data/unidata). Taken are the characters that look like ASCII. UTS #39 compares two texts by bringing
both to one form, in which 0 is O, and 1 and I are l. Here only one side is brought to the form of the other: a rule
is written in ASCII, so ASCII stays what it is, and of the ASCII characters that look alike a character becomes the
one that is nearest in kind: an Arabic digit one becomes 1, a Cyrillic capital I becomes I.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import Final

_ROW: Final = re.compile(r"([0-9A-F]+) ;\t([0-9A-F ]+) ;\tMA\t#\*? \(.*?\) (.*?) → ")
_VERSION: Final = re.compile(r"# Version: (\S+)")
# What UTS #39's form of a character stands for, by a word in that character's name. The first that fits counts.
_KINDS: Final = (
    ("l", "DIGIT ONE", "1"),
    ("l", "SMALL", "l"),
    ("l", "CAPITAL", "I"),
    ("l", "ROMAN NUMERAL", "I"),
    ("l", "VERTICAL", "|"),
    ("l", "DIVIDES", "|"),
    ("O", "DIGIT ZERO", "0"),
    ("o", "DIGIT ZERO", "0"),
    ("rn", "", "m"),
    ("''", "", '"'),
)
_WIDTH: Final = 110
_HEAD: Final = '''\
"""Characters that look like ASCII, from Unicode's confusables.txt {version}. Made by make_confusables.py.

Changed by us: only the part of the table that folds to ASCII, in another form. The table is under the
UNICODE LICENSE V3 (SPDX: Unicode-3.0), COPYRIGHT AND PERMISSION NOTICE:

Copyright © 1991-2024 Unicode, Inc.

NOTICE TO USER: Carefully read the following legal agreement. BY DOWNLOADING, INSTALLING, COPYING OR OTHERWISE USING
DATA FILES, AND/OR SOFTWARE, YOU UNEQUIVOCALLY ACCEPT, AND AGREE TO BE BOUND BY, ALL OF THE TERMS AND CONDITIONS OF
THIS AGREEMENT. IF YOU DO NOT AGREE, DO NOT DOWNLOAD, INSTALL, COPY, DISTRIBUTE OR USE THE DATA FILES OR SOFTWARE.

Permission is hereby granted, free of charge, to any person obtaining a copy of data files and any associated
documentation (the "Data Files") or software and any associated documentation (the "Software") to deal in the Data
Files or Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, and/or sell copies of the Data Files or Software, and to permit persons to whom the Data Files or Software
are furnished to do so, provided that either (a) this copyright and permission notice appear with all copies of the
Data Files or Software, or (b) this copyright and permission notice appear in associated Documentation.

THE DATA FILES AND SOFTWARE ARE PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT OF THIRD PARTY
RIGHTS.

IN NO EVENT SHALL THE COPYRIGHT HOLDER OR HOLDERS INCLUDED IN THIS NOTICE BE LIABLE FOR ANY CLAIM, OR ANY SPECIAL
INDIRECT OR CONSEQUENTIAL DAMAGES, OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN
AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THE DATA FILES OR SOFTWARE.

Except as contained in this notice, the name of a copyright holder shall not be used in advertising or otherwise to
promote the sale, use or other dealings in these Data Files or Software without prior written authorization of the
copyright holder.
"""

from typing import Final

# What it looks like (its code points joined by +), then the code points that do.
_TABLE: Final = """\\
'''
_TAIL: Final = '''"""


def _read() -> dict[str, str]:
    rows = (line.split() for line in _TABLE.splitlines())
    return {_text(char): _text(target) for target, *chars in rows for char in chars}


def _text(code_points: str) -> str:
    return "".join(chr(int(point, 16)) for point in code_points.split("+"))


LOOKS_LIKE: Final = _read()
'''


def rows(table: str) -> Iterator[tuple[str, str]]:
    """Each character that looks like ASCII, and the ASCII it looks like."""
    for code, form, name in _ROW.findall(table):
        char = chr(int(code, 16))
        ascii_form = _form(char, "".join(chr(int(point, 16)) for point in form.split()), name)
        if not char.isascii() and ascii_form.isascii():
            yield char, ascii_form


def _form(char: str, form: str, name: str) -> str:
    compatible = unicodedata.normalize("NFKC", char)
    if compatible.isascii():
        return compatible
    return next((kind for of, word, kind in _KINDS if of == form and word in name), form)


def module(table: str) -> str:
    """The source of confusables.py."""
    version = _VERSION.search(table)
    if version is None:
        raise SystemExit("make_confusables: no line '# Version: …': expected Unicode's confusables.txt")
    by_target: dict[str, list[str]] = {}
    for char, target in rows(table):
        by_target.setdefault(target, []).append(char)
    return _HEAD.format(version=version[1]) + "".join(_lines(sorted(by_target.items()))) + _TAIL


def _lines(targets: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for target, chars in targets:
        shown = "+".join(map(_hex, target))
        for line in wrap(" ".join(map(_hex, sorted(chars))), _WIDTH - len(shown)):
            yield f"{shown} {line}\n"


def _hex(char: str) -> str:
    return f"{ord(char):X}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("make_confusables: expected one argument, the path of Unicode's confusables.txt")
    source = Path(sys.argv[1]).read_text(encoding="utf-8-sig")
    Path(__file__).with_name("confusables.py").write_text(module(source), encoding="utf-8")
