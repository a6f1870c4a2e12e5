"""Marks that end a turn, a frame or a call for a model: a text that only quotes them must not be taken for them.

Chat templates and inference servers read their control tokens wherever they stand, also in the text of a message. A
tool's result that says `<|im_end|>` would end the user's turn and could go on as the system. In each such mark the
brackets become others that look alike: a person reads it as before, and no tokenizer knows it.
"""

import re
from typing import Any, Final

from .. import jsondoc

# Whose control tokens these are. Names of tokens as in the tokenizer configurations of the models.
_MARKS: Final = (
    # ChatML (Qwen, Hermes), Llama 3 and 4, Phi, GLM, Granite, Command R, gpt-oss, Kimi: <|im_end|>, <|eot_id|> …
    r"<\|[^|<>\[\]\s]{1,64}\|>",
    # DeepSeek, with full-width bars: <｜tool▁calls▁begin｜>
    r"<｜[^｜<>\[\]\s]{1,64}｜>",
    # Mistral: [INST], [TOOL_CALLS], [/TOOL_RESULTS] …; ChatGLM: [gMASK]
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|THINK|MODEL_SETTINGS"
    r"|PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|gMASK)\]",
    # Llama 2
    r"<</?SYS>>",
    # Llama 2, Mistral, Gemma and other SentencePiece vocabularies
    r"</?s>|<(?:bos|eos|pad|unk|sop|eop|mask)>|<(?:start|end)_of_[a-z]+>",
    # Llama 3.1 and Qwen3-Coder: <function=name>, <parameter=name>
    r"</?(?:function|parameter)(?==|\s{0,8}>)",
    # Calls, results and lists of tools: Hermes, Qwen, GLM, MiniMax; and our own frame. Models are lenient about case.
    r"(?i:<\s{0,8}/?\s{0,8}(?:tool_calls?|tool_code|tool_responses?|tool_results?|tool_outputs?|tools|function_calls?"
    r"|function_results?|arg_key|arg_value|think|thinking)\b)",
    # Our own call
    r"(?<!`)`{3,}+(?=\s{0,8}tool_call\b)",
)
_MARK: Final = re.compile("|".join(_MARKS))


# Look-alikes that no template knows, also not leniently: a space alone would leave `< /tool_result>`.
_ALIKE: Final = str.maketrans({"<": "‹", "[": "(", "`": "'"})


def neutral(text: str) -> str:
    """The text with other brackets or quotes in every mark: as long as before, and without marks."""
    return _MARK.sub(lambda match: match.group().translate(_ALIKE), text)


_ESCAPED: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<[`"})


def json_text(value: Any) -> str:
    """A value as compact JSON in its own order of keys, in which no mark stands: its brackets and quotes are escaped.

    JSON has such characters in strings alone, but for brackets, and those never around a bare word: what is escaped is
    always in a string and means the same.
    """
    return _MARK.sub(lambda match: match.group().translate(_ESCAPED), jsondoc.encode(value).decode("utf-8", "replace"))


def bounded(text: str, most: int) -> str:
    """The first `most` characters, with a note of how many there are."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: the first {most} of {len(text)} characters]"
