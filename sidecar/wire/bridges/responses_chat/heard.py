"""What a chat reply or a frame of it says, whatever the server: read here, told elsewhere."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import jsondoc
from ...stream import Document
from .items import CALLS


class Piece(NamedTuple):
    """More of a text: `reasoning`, `content` or `refusal`."""

    kind: str
    text: str


class CallPiece(NamedTuple):
    """More of a call. `number` tells the calls of a reply apart, or `id` where a server counts none."""

    number: int
    id: str
    kind: str
    name: str
    text: str


def objects_in(value: Any) -> list[Document]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_choice(document: Document) -> Document | None:
    """The one choice that was asked for."""
    return next((choice for choice in objects_in(document.get("choices")) if choice.get("index") in (0, None)), None)


def pieces(said: Document) -> Iterator[Piece]:
    """The texts of a delta or message. Reasoning comes before the answer, also where one frame holds both."""
    if reasoning := _reasoning(said):
        yield Piece("reasoning", reasoning)
    content, refusal = said.get("content"), said.get("refusal")
    if isinstance(content, str):
        if content:
            yield Piece("content", content)
    else:
        yield from _parts(content)
    if isinstance(refusal, str) and refusal:
        yield Piece("refusal", refusal)


def _reasoning(said: Document) -> str:
    """`reasoning_content` (DeepSeek, llama.cpp, vLLM), `reasoning` (OpenRouter, Ollama, later vLLM): one text."""
    for field in ("reasoning_content", "reasoning"):
        text = said.get(field)
        if isinstance(text, str) and text:
            return text
    return "".join(
        _text(detail, "text") or _text(detail, "summary") for detail in objects_in(said.get("reasoning_details"))
    )


def _parts(content: Any) -> Iterator[Piece]:
    """Content as a list, as Mistral's reasoning models send it."""
    for part in objects_in(content):
        if part.get("type") == "thinking":
            yield from (
                Piece("reasoning", text) for inner in objects_in(part.get("thinking")) if (text := _text(inner, "text"))
            )
        elif text := _text(part, "text"):
            yield Piece("content", text)


def calls(said: Document) -> Iterator[CallPiece]:
    """The calls of a delta or message; `function_call` is the older, single form."""
    for position, call in enumerate(objects_in(said.get("tool_calls"))):
        index = call.get("index")
        yield _call(call, index if isinstance(index, int) else position)
    if isinstance(said.get("function_call"), dict):
        yield _call({"function": said["function_call"]}, 0)


def _call(call: Document, index: int) -> CallPiece:
    kind = "custom" if isinstance(call.get("custom"), dict) else "function"
    said = call.get(kind)
    if not isinstance(said, dict):
        said = {}
    return CallPiece(index, _text(call, "id"), kind, _text(said, "name"), _argument(said.get(CALLS[kind].field)))


def _argument(value: Any) -> str:
    """A text; some servers send the object that it should encode."""
    if isinstance(value, str):
        return value
    return "" if value is None else jsondoc.encode(value).decode("utf-8", "replace")


def logprobs(choice: Document) -> list[Document]:
    """The log probabilities of the content, in the client's form."""
    held = choice.get("logprobs")
    return [_logprob(token) for token in objects_in(held.get("content"))] if isinstance(held, dict) else []


def _logprob(token: Document) -> Document:
    return {**_probable(token), "top_logprobs": [_probable(top) for top in objects_in(token.get("top_logprobs"))]}


def _probable(token: Document) -> Document:
    return {"token": token.get("token"), "bytes": token.get("bytes") or [], "logprob": token.get("logprob")}


def citations(said: Document) -> Iterator[Document]:
    """Annotations that have a counterpart: a URL for a span of the text."""
    for annotation in objects_in(said.get("annotations")):
        cited = annotation.get("url_citation")
        if isinstance(cited, dict) and cited.keys() >= _CITED:
            yield {"type": "url_citation", **{field: cited[field] for field in sorted(_CITED)}}


_CITED = frozenset(("start_index", "end_index", "title", "url"))


def usage(document: Document) -> Document | None:
    """The tokens that a reply or frame reports, in the client's form."""
    said = document.get("usage")
    if not isinstance(said, dict):
        return None
    asked, answered = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    prompt, completion = said.get("prompt_tokens_details"), said.get("completion_tokens_details")
    return {
        "input_tokens": asked,
        "input_tokens_details": {
            "cached_tokens": _count(prompt, "cached_tokens"),
            "cache_write_tokens": _count(prompt, "cache_write_tokens"),
        },
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": _count(completion, "reasoning_tokens")},
        "total_tokens": _count(said, "total_tokens") or asked + answered,
    }


def _count(holder: Any, field: str) -> int:
    value = holder.get(field) if isinstance(holder, dict) else None
    return value if isinstance(value, int) else 0


def _text(holder: Document, field: str) -> str:
    value = holder.get(field)
    return value if isinstance(value, str) else ""
