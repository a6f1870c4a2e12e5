"""Between a client that uses tools and a model that knows them only as text.

It stands below the chain, next to the provider: the chain sees the client's tools and real tool calls on both ways.
`Bridge` is for clients of chat completions, `Across` for those of other APIs that are served as chat completions. Ids
of calls are made from the provider's reply, so that the same request and reply always give the same documents.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final

from .. import several
from ..bridges import Bridge as Across_
from ..stream import Document
from . import render
from .asked import NOTHING, asked
from .choice import Choice, message_of
from .dialects import DIALECTS
from .reading import Reader
from .render import DEFAULTS, Limits

_ID_BYTES: Final = 12


class Bridge:
    """One exchange with a model that is told of tools in a dialect.

    Raises InvalidRequest for tools of which it cannot be told. `document` is read and not changed.
    """

    PATH = b"/v1/chat/completions"

    def __init__(self, document: Document, dialect: str, limits: Limits = DEFAULTS) -> None:
        self._asked = asked(document)
        self._request = render.request(document, self._asked, dialect, limits)
        self._reader = partial(
            Reader,
            DIALECTS[dialect],
            self._asked.schemas,
            most=1 if self._asked.alone else None,
            in_thoughts=limits.calls_in_thoughts,
        )
        messages = document.get("messages")
        self._turn = len(messages) if isinstance(messages, list) else 0
        self._key = ""
        self._choices: dict[int, Choice] = {}
        self._last: Document = {}

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(name for choice in self._choices.values() for name in choice.unknown)

    def request(self) -> Document:
        return self._request

    def error(self, document: Document, status: int) -> Document:
        return document

    def reply(self, document: Document) -> Document:
        """A whole reply; the same document where its text holds no calls."""
        found = several.numbered(document)
        if self._asked is NOTHING or not found:
            return document
        told = [self._whole(document, index, choice) for index, choice in found]
        same = all(new is old for new, (_, old) in zip(told, found, strict=True))
        return document if same else {**document, "choices": told}

    def feed(self, document: Document) -> Sequence[Document]:
        if self._asked is NOTHING:
            return (document,)
        if several.is_error(document):
            return [*self.finish(), document]
        return self._frames(document)

    def finish(self) -> Sequence[Document]:
        """What was held of choices that have not come to their end. No reason for an end: they must not look whole."""
        held = [(index, delta) for index, choice in self._choices.items() for delta in choice.finish()]
        return [_frame(self._last, [{"index": at, "delta": delta, "finish_reason": None}]) for at, delta in held]

    # --- choices ---

    def _whole(self, document: Document, index: int, choice: Document) -> Document:
        message = choice.get("message")
        if not isinstance(message, dict):
            return choice
        end = choice.get("finish_reason")
        told_of = self._choice(document, index)
        steps = told_of.feed({**choice, "finish_reason": end or "stop"}, message)
        if steps is None:
            return choice
        told = message_of(message, [step["delta"] for step in steps], told_of.broken)
        last = {field: value for field, value in steps[-1].items() if field != "delta"}
        return {
            **last,
            "message": told,
            "finish_reason": last["finish_reason"] if end or last["finish_reason"] != "stop" else end,
        }

    def _choice(self, document: Document, index: int) -> Choice:
        if not self._key:
            self._key = f"{document.get('id')}/{document.get('created')}/{self._turn}"
        if index not in self._choices:
            self._choices[index] = Choice(self._reader(), self._asked, partial(self._id, index))
        return self._choices[index]

    def _id(self, choice: int, call: int) -> str:
        """Told apart from those of earlier turns also where a server counts its replies anew, or not at all."""
        told = f"{self._key}/{choice}/{call}".encode("utf-8", "surrogatepass")
        return f"call_{blake2b(told, digest_size=_ID_BYTES).hexdigest()}"

    # --- frames ---

    def _frames(self, document: Document) -> Sequence[Document]:
        found = several.numbered(document)
        told = [self._steps(document, index, choice) for index, choice in found]
        if found:
            self._last = document
        if all(steps is None for steps in told):
            return (document,)
        each = [[choice] if steps is None else steps for steps, (_, choice) in zip(told, found, strict=True)]
        if all(len(steps) <= 1 for steps in each):
            return list(_one([step for steps in each for step in steps], document))
        return list(_apart([step for steps in each for step in steps], document))

    def _steps(self, document: Document, index: int, choice: Document) -> list[Document] | None:
        delta = choice.get("delta")
        return self._choice(document, index).feed(choice, delta if isinstance(delta, dict) else {})


def _one(choices: list[Document], document: Document) -> Iterator[Document]:
    """One frame, unless nothing is said in it."""
    if choices or document.get("usage"):
        yield {**document, "choices": choices}


def _apart(choices: list[Document], document: Document) -> Iterator[Document]:
    """A frame for each, of which the last says what else the provider's own did."""
    yield from (_frame(document, [choice]) for choice in choices[:-1])
    yield {**document, "choices": choices[-1:]}


def _frame(template: Document, choices: list[Document]) -> Document:
    kept = {field: value for field, value in template.items() if field != "usage" or value is None}
    return {**kept, "choices": choices}


class Across:
    """A client of another API at a provider of chat completions whose model knows tools only as text."""

    PATH = b"/v1/chat/completions"

    def __init__(self, client: Across_, tools: Bridge) -> None:
        self._client, self._tools = client, tools

    @property
    def unknown(self) -> tuple[str, ...]:
        return self._tools.unknown

    def request(self) -> Document:
        return self._tools.request()

    def error(self, document: Document, status: int) -> Document:
        return self._client.error(document, status)

    def reply(self, document: Document) -> Document:
        return self._client.reply(self._tools.reply(document))

    def feed(self, document: Document) -> Sequence[Document]:
        return [told for frame in self._tools.feed(document) for told in self._client.feed(frame)]

    def finish(self) -> Sequence[Document]:
        rest = [told for frame in self._tools.finish() for told in self._client.feed(frame)]
        return [*rest, *self._client.finish()]
