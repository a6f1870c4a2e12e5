"""A request: its tools, its history, the form of its reply, and how it goes on."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from ....core.surface import Slot
from ...conversation import Called, Choice, Format, HostedCall, Part, Result, Tool
from ...messages import REQUEST_RESULT
from ...stream import Document
from ..shape import mapping, objects, paragraphs, sequence, text_of
from ..turns import texts_in
from . import tools
from .replied import Replied


class Asked:
    """See `conversation.Asked`. The form of a reply has no name here, and is always kept to."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    # --- tools ---

    @property
    def tools(self) -> Sequence[Tool]:
        return [tool for tool in map(tools.run_by_client, tools.definitions(self._document)) if tool is not None]

    @property
    def approvals(self) -> bool:
        """The provider never asks."""
        return False

    @property
    def choice(self) -> Choice:
        """A call that must come is one of the client's tools where the provider has none to call."""
        match self._document.get("tool_choice"):
            case {"type": "none"}:
                return Choice("none")
            case {"type": "any"} if not self._hosted() and self.tools:
                return Choice("required")
            case {"type": "tool", "name": str(name)} if name not in self._hosted():
                return Choice("required", name)
        return Choice()

    def _hosted(self) -> list[str]:
        hosted = (each for each in tools.definitions(self._document) if tools.run_by_client(each) is None)
        return [text_of(each.get("name")) for each in hosted]

    @property
    def streams(self) -> bool:
        return self._document.get("stream") is True

    @property
    def parallel(self) -> bool:
        return mapping(self._document.get("tool_choice")).get("disable_parallel_tool_use") is not True

    # --- the form of the reply ---

    @property
    def format(self) -> Format | None:
        for holder, field in self._form_places():
            match holder.get(field):
                case {"type": "json_schema", "schema": dict() | bool() as schema}:
                    return Format("", schema)
        return None

    @property
    def choices(self) -> int:
        return 1

    def set_format(self, form: Format | None) -> None:
        """A form without a schema cannot be said here, and leaves the request with none."""
        for holder, field in self._form_places():
            holder.pop(field, None)
        config = mapping(self._document.get("output_config"))
        if form is not None and form.schema is not None:
            told = {"type": "json_schema", "schema": form.schema}
            self._document["output_config"] = config | {"format": told}
        elif self._document.get("output_config") == {}:
            del self._document["output_config"]

    def _form_places(self) -> Iterator[tuple[Document, str]]:
        """Where the form is now, and where it was while it was in beta."""
        yield mapping(self._document.get("output_config")), "format"
        yield self._document, "output_format"

    # --- the conversation ---

    @property
    def history(self) -> Sequence[Called | HostedCall | Result]:
        return list(_history(objects(self._document.get("messages"))))

    @property
    def system(self) -> str:
        told = (message for message in objects(self._document.get("messages")) if message.get("role") == "system")
        return paragraphs(
            *texts_in(self._document.get("system")),
            *(text for message in told for text in texts_in(message.get("content"))),
        )

    def instruct(self, text: str) -> None:
        """After blocks another one follows: what is cached up to one of them stays so."""
        given = self._document.get("system")
        if isinstance(given, list):
            given.append(_text(text))
        elif given is None or isinstance(given, str):
            self._document["system"] = paragraphs(given or "", text)

    def say(self, text: str) -> None:
        self._add("user", [_text(text)])

    def answer(self, reply: Document, results: Mapping[str, str]) -> None:
        """The reply's blocks go back as they are, but for blank texts, which the API refuses in a request."""
        content = deepcopy(sequence(reply.get("content")))
        calls = list(Replied({"content": content}).blocks())
        for block, call in calls:
            block["id"] = call.id
        self._add("assistant", [block for block in content if not _is_blank(block)])
        self._add("user", [_result(block, results[call.id]) for block, call in calls if call.id in results])
        self._stay_in(text_of(mapping(reply.get("container")).get("id")))

    def _add(self, role: str, blocks: list[Any]) -> None:
        """Goes on with the last message if it is of that role. Anthropic would join two; others ask for turns."""
        messages = sequence(self._document.get("messages"))
        last = mapping(messages[-1]) if messages else {}
        if not blocks:
            return
        if last.get("role") == role and isinstance(last.get("content"), str | list):
            last["content"] = [*_blocks(last["content"]), *blocks]
        else:
            messages.append({"role": role, "content": blocks})

    def _stay_in(self, container: str) -> None:
        """Calls out of a program that runs at the provider are answered where it runs."""
        given = self._document.get("container")
        if container and isinstance(given, dict):
            given["id"] = container
        elif container and (given is None or isinstance(given, str)):
            self._document["container"] = container


def _text(text: str) -> Document:
    return {"type": "text", "text": text}


def _blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    return content


def _is_blank(block: Any) -> bool:
    return mapping(block).get("type") == "text" and not text_of(block.get("text")).strip()


def _result(block: Document, text: str) -> Document:
    family = {"toolset_name": block["toolset_name"]} if text_of(block.get("toolset_name")) else {}
    return {"type": "tool_result", "tool_use_id": block["id"], **family, "content": text}


def _history(messages: list[Document]) -> Iterator[Called | HostedCall | Result]:
    """What the provider runs in a turn has run before the client gets the turn's calls."""
    names: dict[str, str] = {}
    for message in messages:
        calls = [call for _, call in tools.calls_in(message.get("content"))]
        names.update((call.id, call.name) for call in calls)
        yield from tools.hosted_in(message.get("content"))
        yield from calls
        for block in objects(message.get("content")):
            if block.get("type") == "tool_result":
                call_id = text_of(block.get("tool_use_id"))
                yield Result(call_id, names.get(call_id, ""), list(_texts(block)))


def _texts(holder: Document) -> Iterator[Part]:
    """The texts of a result: of its text blocks, and of what it has found or read."""
    content = holder.get("content")
    if isinstance(content, str):
        yield Slot(REQUEST_RESULT, holder, "content")
    for block in objects(content):
        match block:
            case {"type": "text", "text": str()}:
                yield Slot(REQUEST_RESULT, block, "text")
            case {"type": "search_result"}:
                yield from _texts(block)
            case {"type": "document", "source": {"type": "text", "data": str()} as source}:
                yield Slot(REQUEST_RESULT, source, "data")
            case {"type": "document", "source": {"type": "content"} as source}:
                yield from _texts(source)
