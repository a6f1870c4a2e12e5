"""A client of `/v1/responses` at a provider that speaks only `/v1/chat/completions`.

Refused with a 400 whose `param` is the field's path, since chat completions have no counterpart:

- what a provider would have to keep: `previous_response_id`, `conversation`, `prompt`, `background: true`,
  `context_management`, items of type `item_reference`, images by `file_id`;
- tools that a provider runs (web search, file search, computer, code interpreter, MCP, image generation, shell …), as a
  tool, a `tool_choice` or an item of the history; namespaces, deferred and asynchronous tools, `output_schema`;
- `truncation: "auto"`, `moderation`, `include` of anything but log probabilities and encrypted reasoning, files by URL,
  images and files in the output of a tool, pieces other than text in a system message;
- `stream_options.include_obfuscation: true`, `reasoning.mode` and `reasoning.context` other than their defaults;
- every field, item and part that is not in the tables of `request`.

Said in another way:

- `max_output_tokens` becomes `max_tokens` or what `limit` says: Ollama takes `max_completion_tokens` and does not keep
  to it (https://github.com/ollama/ollama/issues/7125), the others know both;
- a `developer` message becomes a `system` message, a role that every chat template knows;
- `tool_choice` of type `allowed_tools` becomes the list of just these tools, which every server keeps to;
- `parallel_tool_calls` and `tool_choice` of a request without tools stay here, since chat completions refuse them;
- reasoning that the provider sends is the content of a reasoning item, or its summary where `reasoning.summary` asks
  for one.

Left out on purpose:

- reasoning items of the history. Chat completions have no field for them, and many servers refuse one; encrypted
  reasoning can be read only by who made it. For the same reason `include: ["reasoning.encrypted_content"]` is taken and
  nothing comes of it;
- what an item says about itself and not to the model: `id`, `status`, `phase`, and annotations and log probabilities of
  an earlier answer;
- `store`: nothing can be kept, so the reply says `store: false` whatever was asked;
- `max_tool_calls`: it bounds calls of tools that a provider runs, of which there are none;
- of replies: all choices but the first, log probabilities of a refusal, citations without a position in the text.
"""

from collections.abc import Sequence

from ...stream import Document
from .. import Limit
from .failure import error_body
from .reply import Reply, whole_reply
from .request import chat_request


class Bridge:
    """One exchange between a client that speaks Responses and a provider that speaks chat completions."""

    PATH = b"/v1/chat/completions"
    unknown: tuple[str, ...] = ()

    def __init__(self, document: Document, limit: Limit = "max_tokens") -> None:
        self._document, self._limit = document, limit
        self._reply = Reply(document)

    def request(self) -> Document:
        return chat_request(self._document, self._limit)

    def reply(self, document: Document) -> Document:
        return whole_reply(self._document, document)

    def error(self, document: Document, status: int) -> Document:
        return error_body(document, status)

    def feed(self, document: Document) -> Sequence[Document]:
        return self._reply.feed(document)

    def finish(self) -> Sequence[Document]:
        return self._reply.finish()
