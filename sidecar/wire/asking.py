"""What a request asks for: how much it lets a reply hold, and that a stream ends with its usage.

Field names as in the APIs' references: OpenAI, Anthropic, and Ollama with `num_predict` in its `options`.
"""

from typing import Any, Final, NamedTuple

from ..core.usage import MOST_TOKENS
from . import jsondoc

# By a wire's name: the fields that bound its replies. An API that is not here is asked for all of them. Where a
# request has several, the largest counts: which of them the provider obeys is not known.
_LIMITS: Final = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "ollama_chat": ("num_predict",),
    "ollama_generate": ("num_predict",),
}
_ALL: Final = tuple(dict.fromkeys(name for names in _LIMITS.values() for name in names))
# Their replies are no tokens of a model's.
_SAYS_NOTHING: Final = frozenset(("embeddings", "moderations", "count_tokens", "ollama_embed"))
# Only these APIs have several answers to one request, and only in these fields.
_CHOICES: Final = {"chat": ("n",), "completions": ("n", "best_of"), "images": ("n",), "other": ("n", "best_of")}
_OPTIONS: Final = "options"
_PREDICT: Final = "num_predict"
_MESSAGES: Final = ("messages", "input")
# Definitions of tools and of a reply's form: their keys are part of the prompt, not only their texts.
_DEFINITIONS: Final = (
    *("tools", "functions", "response_format", "text"),
    *("output_config", "output_format", "format"),
)


class Asked(NamedTuple):
    """What a request asks for.

    `max_tokens` bounds each choice, None where the request names no bound that is one. `choices` are as many replies
    as are made and charged. `ids` is how many tokens of the prompt stand there as numbers: no text tells them.
    `messages` is how many messages or items there are, `definitions` the JSON of all tools and of the reply's form.
    """

    max_tokens: int | None = None
    choices: int = 1
    ids: int = 0
    messages: int = 0
    definitions: str = ""

    @property
    def most(self) -> int | None:
        """The most that all choices can hold together; None where the request does not bound it."""
        return None if self.max_tokens is None else self.max_tokens * self.choices


def asked(document: Any, api: str = "other") -> Asked:
    """What a request's document asks for; `api` is its wire's NAME. Fields of a wrong type count as absent."""
    if not isinstance(document, dict):
        return Asked()
    prompts, ids = _prompts(document)
    return Asked(
        0 if api in _SAYS_NOTHING else _limit(document, _LIMITS.get(api, _ALL)),
        _choices(document, _CHOICES.get(api, ())) * (prompts if api == "completions" else 1),
        ids,
        _messages(document),
        _definitions(document),
    )


def _limit(document: dict[str, Any], names: tuple[str, ...]) -> int | None:
    most: int | None = None
    for name in names:
        number = _number(_options(document).get(name) if name == _PREDICT else document.get(name))
        if number is not None and (most is None or number > most):
            most = number
    return most


def _options(document: dict[str, Any]) -> dict[str, Any]:
    options = document.get(_OPTIONS)
    return options if isinstance(options, dict) else {}


def _choices(document: dict[str, Any], names: tuple[str, ...]) -> int:
    most = 1
    for name in names:
        most = max(most, _number(document.get(name)) or 1)
    return most


def _number(value: Any) -> int | None:
    """A bound; Ollama's -1 and -2 are none. What no reply can hold is cut, not ignored."""
    return min(value, MOST_TOKENS) if type(value) is int and value > 0 else None


def _prompts(document: dict[str, Any]) -> tuple[int, int]:
    """How many prompts there are, each answered on its own, and the tokens that are given as numbers."""
    given = document.get("prompt", document.get("input"))
    if not isinstance(given, list) or not given:
        return 1, 0
    if type(given[0]) is int:
        return 1, len(given)
    return len(given), sum(len(one) for one in given if isinstance(one, list) and one and type(one[0]) is int)


def _messages(document: dict[str, Any]) -> int:
    for name in _MESSAGES:
        if isinstance(given := document.get(name), list):
            return len(given)
    return 0


def _definitions(document: dict[str, Any]) -> str:
    there = document.keys() & _DEFINITIONS
    found = [document[name] for name in _DEFINITIONS if name in there and isinstance(document[name], dict | list)]
    return jsondoc.encode(found).decode() if found else ""


def include_usage(document: dict[str, Any]) -> bool:
    """Makes a stream of chat completions report its usage in a frame of its own. True where the request changed.

    Other stream options are kept. A field of a type that the API does not have stays for the provider to refuse.
    """
    options = document.get("stream_options")
    if document.get("stream") is not True or not (options is None or isinstance(options, dict)):
        return False
    if options is not None and options.get("include_usage") is True:
        return False
    document["stream_options"] = {**(options or {}), "include_usage": True}
    return True


def nothing_to_ask(document: dict[str, Any]) -> bool:
    """The API reports usage unasked."""
    return False
