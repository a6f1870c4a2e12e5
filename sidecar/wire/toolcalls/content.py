"""A message's content, which is a text or a list of parts."""

from typing import Any, Final

from ..stream import Document

_PARAGRAPH: Final = "\n\n"


def joined(content: Any, text: str) -> Any:
    """Content with a text after it."""
    match content:
        case [*parts]:
            return [*parts, {"type": "text", "text": text}]
        case str() if content:
            return f"{content}{_PARAGRAPH}{text}"
    return text


def texts_of(content: Any) -> tuple[list[str], list[Document]]:
    """The texts of a content, and its other parts, such as images."""
    texts: list[str] = []
    others: list[Document] = []
    for part in content if isinstance(content, list) else [content]:
        match part:
            case str():
                texts.append(part)
            case {"type": "text" | "output_text", "text": str(text)}:
                texts.append(text)
            case dict():
                others.append(part)
    return texts, others
