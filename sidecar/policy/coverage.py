"""What a policy's rules see, place by place, and what they do not.

A place is an endpoint, a direction and a field, as the wire modules name them. Every place is seen buffered and
streamed alike: there is one implementation of a rule, and a buffered reply is a stream of one frame.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.surface import Surface
from ..stages.guardrails import GuardrailConfig
from ..wire import chat

# What the endpoints that are looked into carry past every rule.
BLIND = (
    "every endpoint but /v1/chat/completions",
    "images, sounds and files inside messages",
    "the spoken form of a reply (its transcript is seen)",
    "fields of a message that no API documents",
)

_MARKS = {"off": " ", "shadow": "○", "enforce": "●"}


@dataclass(frozen=True, slots=True)
class Row:
    """One place and each rule's mode there; "off" where the rule does not look."""

    surface: Surface
    modes: tuple[str, ...]


def rows(rules: Sequence[GuardrailConfig]) -> Iterator[Row]:
    for surface in chat.REQUEST_SURFACES:
        yield Row(surface, tuple(rule.mode if surface.kind in rule.kinds() else "off" for rule in rules))
    for surface in chat.REPLY_SURFACES:
        yield Row(surface, tuple(rule.mode if surface.kind in rule.reply_kinds() else "off" for rule in rules))


def table(rules: Sequence[GuardrailConfig]) -> Iterator[str]:
    """The rows as text: places down, rules across by their number."""
    if not any(rule.mode != "off" for rule in rules):
        return
    width = max(len(_named(surface)) for surface in chat.SURFACES)
    heads = [str(number) for number in range(1, len(rules) + 1)]
    yield f"sees       {'':<{width}}  {'  '.join(heads)}   (● enforce, ○ shadow; buffered and streamed)"
    for row in rows(rules):
        marks = "  ".join(f"{_MARKS[mode]:<{len(head)}}" for mode, head in zip(row.modes, heads, strict=True))
        yield f"           {_named(row.surface):<{width}}  {marks}".rstrip()
    yield from (f"not seen   {what}" for what in BLIND)


def _named(surface: Surface) -> str:
    return f"{surface.kind:<13} {surface}"
