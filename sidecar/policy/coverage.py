"""What a policy's rules see, place by place, and what they do not.

A place is an endpoint, a direction and a field, as the wire modules name them. Every place is seen buffered and
streamed alike: there is one implementation of a rule, and a buffered reply is a stream of one frame.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.surface import Kind, Surface
from ..stages.guardrails import GuardrailConfig
from ..wire.apis import APIS
from .schema import Policy

_MARKS = {"off": " ", "shadow": "○", "enforce": "●"}


@dataclass(frozen=True, slots=True)
class Row:
    """One place and each rule's mode there; "off" where the rule does not look."""

    api: str
    direction: str
    surface: Surface
    modes: tuple[str, ...]


def rows(policy: Policy) -> Iterator[Row]:
    """Every place of every API."""
    for api in APIS:
        for surface in api.REQUEST_SURFACES:
            yield _row(api.NAME, "request", surface, policy)
        for surface in api.REPLY_SURFACES:
            yield _row(api.NAME, "reply", surface, policy)


def _row(api: str, direction: str, surface: Surface, policy: Policy) -> Row:
    blind = surface.unknown and policy.unknown == "pass"
    modes = (
        rule.mode if not blind and surface.kind in _kinds(rule, direction) else "off" for rule in policy.guardrails
    )
    return Row(api, direction, surface, tuple(modes))


def _kinds(rule: GuardrailConfig, direction: str) -> frozenset[Kind]:
    return rule.kinds() if direction == "request" else rule.reply_kinds()


def blind(policy: Policy) -> Iterator[str]:
    """What the rules do not see, in words."""
    inspect = policy.inspect
    if policy.unknown == "pass":
        yield "endpoints and fields that no API documents (inspect.unknown)"
    for sort, what in _UNSEEN.items():
        if getattr(inspect, sort) == "pass":
            yield f"{what} (inspect.{sort})"
    if inspect.websocket == "pass":
        yield "what WebSocket connections carry (inspect.websocket)"
    yield from _NEVER


_UNSEEN = {
    "images": "images in requests",
    "audio": "sounds in requests",
    "files": "files in requests that are not text",
    "provider_state": "earlier turns that only the provider has: previous_response_id, conversations, stored prompts",
}
_NEVER = (
    "images and sounds in replies (the transcript of what is spoken is seen)",
    "prompts and contexts given as token numbers, and reasoning that the provider has sealed",
    "keys of JSON objects, but for those of tool arguments",
    "paths, query strings and headers",
    "replies of unknown endpoints that are no text, such as binary event streams",
)


def table(policy: Policy, *, full: bool = False) -> Iterator[str]:
    """The rows as text: places down, rules across by their number. Not `full`: one line for places of a kind."""
    rules = policy.guardrails
    if not any(rule.mode != "off" for rule in rules):
        return
    lines = list(_full(policy) if full else _short(policy))
    width = max(len(name) for name, _ in lines)
    heads = [str(number) for number in range(1, len(rules) + 1)]
    yield f"sees       {'':<{width}}  {'  '.join(heads)}   (● enforce, ○ shadow; buffered and streamed)"
    for name, modes in lines:
        marks = "  ".join(f"{_MARKS[mode]:<{len(head)}}" for mode, head in zip(modes, heads, strict=True))
        yield f"           {name:<{width}}  {marks}".rstrip()
    yield from (f"not seen   {what}" for what in blind(policy))


Line = tuple[str, Sequence[str]]


def _full(policy: Policy) -> Iterator[Line]:
    for row in rows(policy):
        yield f"{row.surface.kind:<13} {row.surface}", row.modes


def _short(policy: Policy) -> Iterator[Line]:
    """Places of one direction and kind that every rule treats alike, with the APIs that have them."""
    merged: dict[tuple[str, Kind, tuple[str, ...]], dict[str, None]] = {}
    having: dict[tuple[str, Kind], set[str]] = {}
    for row in rows(policy):
        merged.setdefault((row.direction, row.surface.kind, row.modes), {})[row.api] = None
        having.setdefault((row.direction, row.surface.kind), set()).add(row.api)
    for (direction, kind, modes), apis in merged.items():
        everywhere = len(apis) == len(having[direction, kind])
        yield f"{direction:<8} {kind:<13} {'every endpoint' if everywhere else ', '.join(apis)}", modes
