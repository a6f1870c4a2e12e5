"""The places where a value meets this product: in sentences, Markdown, other scripts, JSON, and cut into deltas."""

import json
from collections.abc import Callable, Iterable, Iterator

from bench.scan.fixtures import Case

Wrap = Callable[[str], str]


def _between(before: str, after: str) -> Wrap:
    return lambda value: f"{before}{value}{after}"


def _json(value: str) -> str:
    return json.dumps({"role": "tool", "content": f"result: {value}"}, ensure_ascii=False)


SURROUNDINGS: dict[str, Wrap] = {
    "alone": _between("", ""),
    "in a sentence": _between("Please use ", " for this."),
    "before .": _between("It is ", ". Thanks"),
    "before ,": _between("It is ", ", I think"),
    "before )": _between("the new one (", ") works"),
    "before **": _between("It is **", "** now"),
    "before >": _between("see <", "> there"),
    "before ?": _between("Is it ", "? Or not"),
    "before &": _between("https://example.com/?q=", "&page=2"),
    "before : ; !": _between("first ", "; then!"),
    "code span": _between("run `", "` first"),
    "code block": _between("```\n", "\n```"),
    "list, table": _between("- a | ", " | b"),
    "quotation": _between("> said “", "” again"),
    "CJK": _between("密钥是", "，请保密"),
    "CJK, no mark": _between("请使用", "然后继续"),
    "JSON string": _json,
    "JSON in JSON": lambda value: json.dumps({"arguments": _json(value)}),
    "line break \\n": _between("a\\n", "\\nb"),
}

DELTAS = (1, 3, 7)


def values(cases: Iterable[Case], group: str, each: int) -> list[str]:
    """Up to `each` different values of every family of a group, one line each."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        if case.group == group and case.positive:
            known = found.setdefault(case.family, {})
            for value in case.values():
                if len(known) < each and "\n" not in value and value.strip() == value:
                    known[value] = None
    return [value for known in found.values() for value in known]


def deltas(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))
