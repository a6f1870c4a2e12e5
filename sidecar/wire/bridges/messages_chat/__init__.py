"""An Anthropic Messages client at a provider that speaks chat completions.

Of the request, what is not named here is refused by name:

- `model`, `temperature`, `top_p` stay; `max_tokens` too, or goes where `limit` says; `stop_sequences` becomes `stop`.
- `top_k` stays: it is no field of OpenAI's own, but vLLM, llama.cpp, SGLang and OpenRouter take it, and a provider that
  does not says so itself.
- `stream` asks for the usage at the stream's end as well.
- `system` becomes one first message. Texts of the system, of a user's message or a tool's result are joined by an
  empty line: many servers refuse several system messages or lists of parts. Texts of the assistant are joined as
  they stand.
- Consecutive messages of one role are one turn, as Anthropic reads them.
- `image`: an `image_url` part, base64 as a data URL. `document`: a text as text and a PDF as a `file` part; its title
  and context before it, or the title as the file's name. `search_result`: title, source and content as text.
- `tool_use`: a tool call, its input as JSON in the order of its keys.
- `tool_result`: a `tool` message, before all else the user says in the turn. Its images and files follow in the
  user's message, for chat takes only text from tools. With `is_error` the text begins with "Error: ".
- `thinking` that this bridge made goes back under the name it came under (`reply.REASONING`). DeepSeek refuses a
  history of tool calls without it: api-docs.deepseek.com/guides/thinking_mode.
- `tools` of the client's own: functions. `tool_choice`: auto and none; any is `required`; or the one function.
  `disable_parallel_tool_use`: `parallel_tool_calls` is false.
- `output_config.effort`, else `thinking.budget_tokens` by `request.EFFORTS`: `reasoning_effort`. Adaptive and disabled
  thinking say nothing: chat has no word for either that all models take.
- `output_config.format` and the older `output_format`: a strict `response_format`.
- `metadata.user_id`: `user`. `service_tier` standard_only: `default`; auto is the default of both.

Left out, because it changes nothing of what a chat model does: `fields.HINTS`; thinking that another model sealed for
itself; the citations of earlier answers.

A last message of the assistant is refused: Claude would go on from it; of chat servers some do and some answer it.

Of the reply: reasoning, texts and refusals are blocks in the order in which they come, then come the tool calls, when
the provider's stream is over. Their pieces may alternate in chat, where Messages has one block open at a time; and
arguments that break off must not look like a call that can be made. Pings meanwhile say that the stream is alive.
Arguments that are no JSON object become `{"INVALID_JSON": "..."}`, as Anthropic's page on fine-grained tool streaming
wraps them. Dropped: log probabilities, annotations, sealed reasoning, choices but the first.
"""

from collections.abc import Sequence

from ....errors import InvalidRequest
from ...stream import Document
from .. import Limit
from . import errors
from .reply import Reply, whole
from .request import chat

__all__ = ["Bridge", "Limit", "counting"]


class Bridge:
    """One exchange. `limit` is the field in which the provider takes the most tokens of a reply: OpenAI's reasoning
    models know only `max_completion_tokens`, many other servers only `max_tokens`."""

    PATH = b"/v1/chat/completions"
    unknown: tuple[str, ...] = ()

    def __init__(self, document: Document, limit: Limit = "max_tokens") -> None:
        self._document, self._limit = document, limit
        self._stream = self._opened()

    def request(self) -> Document:
        return chat(self._document, self._limit)

    def reply(self, document: Document) -> Document:
        """An error that came as a reply is an error. Raises UpstreamBroken where it is no chat completion either."""
        if errors.is_error(document):
            return errors.message(document)
        return whole(self._opened(), document)

    def error(self, document: Document, status: int) -> Document:
        return errors.message(document, status)

    def feed(self, document: Document) -> Sequence[Document]:
        return self._stream.feed(document)

    def finish(self) -> Sequence[Document]:
        """The rest. Nothing where no frame said why the reply ends: to the client it must not look whole."""
        return self._stream.finish()

    def _opened(self) -> Reply:
        model, stops = self._document.get("model"), self._document.get("stop_sequences")
        return Reply(model if isinstance(model, str) else "", stops if isinstance(stops, list) else ())


def counting() -> InvalidRequest:
    """The answer to `/v1/messages/count_tokens` where the target is reached through this bridge."""
    return InvalidRequest(
        "Tokens cannot be counted: the provider of this model speaks chat completions, which has no such endpoint. "
        "Estimate them, or read `usage` of a reply."
    )
