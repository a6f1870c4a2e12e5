"""Marks that end a turn, a frame or a call for a model: a text that only quotes them must not be taken for them.

Chat templates and inference servers read their control tokens wherever they stand, also in the text of a message. A
tool's result that says `<|im_end|>` would end the user's turn and could go on as the system. In each such mark the
brackets become others that look alike: a person reads it as before, and no tokenizer knows it.

A mark is looked for in the text as it stands and as it may be read: some tokenizers bring a text to NFKC first, which
makes `<` of a full-width `＜`, and models look past characters that nobody sees.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from ...text.views.fold import RESIZED, Folding, folding
from .. import jsondoc

# By the character that they begin with, which is not said again. Whose control tokens these are; names of tokens as in
# the tokenizer configurations of the models.
_MARKS: Final = {
    "<": (
        # ChatML (Qwen, Hermes), Llama 3 and 4, Phi, GLM, Granite, Command R, gpt-oss, Kimi: <|im_end|>, <|eot_id|> …;
        # and DeepSeek, whose bars are full-width: <｜tool▁calls▁begin｜>
        r"[|｜][^|｜<>\[\]\s]{1,64}[|｜]>",
        # Llama 2
        r"</?SYS>>",
        # Llama 2, Mistral, Gemma and other SentencePiece vocabularies
        r"/?s>|(?:bos|eos|pad|unk|sop|eop|mask)>|(?:start|end)_of_[a-z]+>",
        # Llama 3.1 and Qwen3-Coder: <function=name>, <parameter=name>
        r"/?(?:function|parameter)(?==|\s*+>)",
        # Calls, results and lists of tools: Hermes, Qwen, GLM, MiniMax; and our own frame. Models are lenient about
        # case, spaces and what joins the words.
        r"(?i:\s*+/?\s*+(?:tool[-_\s]?(?:calls?|code|responses?|results?|outputs?)|tools"
        r"|function[-_\s]?(?:calls?|results?)|arg_key|arg_value|think|thinking)\b)",
    ),
    "[": (
        # Mistral: [INST], [TOOL_CALLS], [/TOOL_RESULTS] …; ChatGLM: [gMASK]
        r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|THINK|MODEL_SETTINGS"
        r"|PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|gMASK)\]",
    ),
    # Our own call, at the first of its quotes
    "`": (r"(?<!``)`{2,}+(?=\s*+tool_call\b)",),
}
# It begins with a set of characters, so that text without them is passed over at one or two ns a character.
_MARK: Final = re.compile(
    f"[{re.escape(''.join(_MARKS))}](?:"
    + "|".join(f"(?<={re.escape(first)})(?:{'|'.join(marks)})" for first, marks in _MARKS.items())
    + ")"
)
# Of ASCII.
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

# Look-alikes that no template knows, also not leniently: a space alone would leave `< /tool_result>`. Not those that
# NFKC brings back.
_ALIKE: Final = {"<": "‹", "[": "(", "`": "'"}


def neutral(text: str) -> str:
    """The text with other brackets or quotes in every mark: as long as before, and without marks."""
    return _changed(text, lambda char, read: _ALIKE[read])


def json_text(value: Any) -> str:
    """A value as compact JSON in its own order of keys, in which no mark stands: its brackets and quotes are escaped.

    JSON has such characters in strings alone, but for brackets, and those never around a bare word: what is escaped is
    always in a string and means the same.
    """
    text = jsondoc.encode(value).decode("utf-8", "replace")
    return _changed(text, lambda char, read: f"\\u{ord(char):04x}")


def _changed(text: str, change: Callable[[str, str], str]) -> str:
    """The text with each bracket and quote of its marks changed: `change` gets the character, and how it is read."""
    parts: list[str] = []
    end = 0
    for at, read in sorted(set(_brackets(text))):
        parts += text[end:at], change(text[at], read)
        end = at + 1
    return "".join(parts) + text[end:] if parts else text


def _brackets(text: str) -> Iterator[tuple[int, str]]:
    """Where the brackets and quotes of marks stand, and how each is read."""
    yield from _in_marks(text, range(len(text)))
    if text.isascii() and not _INVISIBLE.search(text):
        return
    read = _as_read().drawn(text)
    seen = read.replace(RESIZED, "")
    if seen != text and _MARK.search(seen):
        yield from _in_marks(seen, [at for at, char in enumerate(read) if char != RESIZED])


def _in_marks(text: str, places: Sequence[int]) -> Iterator[tuple[int, str]]:
    for mark in _MARK.finditer(text):
        yield from ((places[at], text[at]) for at in range(*mark.span()) if text[at] in _ALIKE)


@cache
def _as_read() -> Folding:
    return folding(frozenset(("nfkc", "invisible")))


def bounded(text: str, most: int) -> str:
    """The first `most` characters, with a note of how many there are."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: the first {most} of {len(text)} characters]"
