"""Which API a request speaks, told from its path: the visible table of what is looked into by a module of its own."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..core.surface import Surface
from ..upstream.targets import TokenLimit
from ..wire import (
    anything,
    audio,
    chat,
    completions,
    embeddings,
    images,
    messages,
    messages_count,
    moderations,
    ollama,
    responses,
)
from ..wire.bridges import Bridge, messages_chat, responses_chat
from ..wire.stream import Document, Wire

FieldOf = Callable[[str], Surface | None]


class Endpoint(NamedTuple):
    """An API, and whether it has a module of its own.

    `binary`: a reply may be anything, a sound or a file. `forms`: requests may be other than JSON; `field_of` says
    where a form's field stands, None for words of the API. `bridge` makes what stands between its clients and a
    provider of chat completions. `stream_type` and `id_prefix` are for our own replies.
    """

    wire: Wire
    known: bool = True
    binary: bool = False
    forms: bool = False
    field_of: FieldOf | None = None
    streams_unasked: bool = False
    stream_type: bytes = b"text/event-stream"
    id_prefix: str = ""
    bridge: Callable[[Document, TokenLimit], Bridge] | None = None


def _no_counting(document: Document, limit: TokenLimit) -> Bridge:
    raise messages_chat.counting()


NDJSON_TYPE: Final = b"application/x-ndjson"

# What a client may call, whatever stands before it: a base path, a deployment. The first that fits.
_POST: Final = (
    (r"/chat/completions", Endpoint(chat, id_prefix="chatcmpl-")),
    (r"/completions", Endpoint(completions, id_prefix="cmpl-")),
    (r"/responses", Endpoint(responses, id_prefix="resp_", bridge=responses_chat.Bridge)),
    (r"/messages/count_tokens", Endpoint(messages_count, bridge=_no_counting)),
    # Not OpenAI's `/threads/{id}/messages`.
    (r"^(?!.*/threads/).*/messages", Endpoint(messages, id_prefix="msg_", bridge=messages_chat.Bridge)),
    (r"/api/chat", Endpoint(ollama.CHAT, streams_unasked=True, stream_type=NDJSON_TYPE)),
    (r"/api/generate", Endpoint(ollama.GENERATE, streams_unasked=True, stream_type=NDJSON_TYPE)),
    (r"/api/embed(?:dings)?", Endpoint(ollama.EMBED)),
    (r"/embeddings", Endpoint(embeddings)),
    (r"/moderations", Endpoint(moderations)),
    (r"/images/generations", Endpoint(images)),
    (r"/images/(?:edits|variations)", Endpoint(images, forms=True, field_of=images.form_field)),
    (r"/audio/speech", Endpoint(audio, binary=True)),
    (r"/audio/(?:transcriptions|translations)", Endpoint(audio, forms=True, field_of=audio.form_field)),
)
# Objects that the provider keeps, asked for by their id.
_GET: Final = (
    (r"/chat/completions/[^/]+", Endpoint(chat)),
    (r"/responses/[^/]+(?:/input_items)?", Endpoint(responses)),
)
_TABLES: Final = {
    method: tuple((re.compile(f"{ending}$"), endpoint) for ending, endpoint in table)
    for method, table in (("POST", _POST), ("GET", _GET))
}
OTHER: Final = Endpoint(anything, known=False, binary=True, forms=True)
# Names and numbers alone, and what clients ask for before anything else.
_MODELS: Final = re.compile(r"(?:.*/v1)?/models(?:/.*)?|.*/api/(?:tags|version|ps)")


@lru_cache(maxsize=1024)
def find(method: str, path: str) -> Endpoint:
    """The endpoint of a request. Spellings of a path that a server may take for one of the table count as it."""
    normal = normalised(path)
    return next((endpoint for form, endpoint in _TABLES.get(method, ()) if form.search(normal)), OTHER)


@lru_cache(maxsize=1024)
def lists_models(method: str, path: str) -> bool:
    """Whether a request only asks which models there are: nothing in it or in the reply is a text."""
    return method in ("GET", "HEAD", "OPTIONS") and _MODELS.fullmatch(normalised(path)) is not None


def normalised(path: str) -> str:
    """A path as the most lenient server would read it: decoded, lower case, no parameters, no empty or dot segments."""
    kept: list[str] = []
    for segment in unquote(unquote(path)).replace("\\", "/").lower().split("/"):
        name = segment.partition(";")[0].strip()
        if name == "..":
            del kept[-1:]
        elif name not in ("", "."):
            kept.append(name)
    return "/" + "/".join(kept)
