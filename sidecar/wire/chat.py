"""`/v1/chat/completions`: where its texts live, and how to write frames of its streams.

Fields as in the OpenAI API reference, with those that compatible servers add: `reasoning_content` (DeepSeek, vLLM,
llama.cpp), `reasoning` and `reasoning_details` (OpenRouter), content as a list of parts in replies (Mistral).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from ..core.surface import Kind, Lane, Slot, Surface
from ..core.usage import Usage
from ..errors import ExchangeError
from . import asking, jsondoc, several, small, sse
from . import usage as reported
from .errors import openai_shape
from .hosted import nowhere
from .several import index_of
from .stream import Spoken
from .walk import content, optional, others, walk

NAME = "chat"

DONE = sse.render(b"[DONE]")


def _by_kind(field: str) -> dict[Kind, Surface]:
    kinds = (Kind.SYSTEM, Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULTS)
    return {kind: Surface(f"chat.request.messages[].{field}", kind) for kind in kinds}


REQUEST_CONTENT = _by_kind("content")
REQUEST_NAME = _by_kind("name")
REQUEST_REFUSAL = Surface("chat.request.messages[].refusal", Kind.ASSISTANT)
REQUEST_REASONING = Surface("chat.request.messages[].reasoning", Kind.REASONING)
REQUEST_TOOL_NAME = Surface("chat.request.messages[].tool_calls[].function.name", Kind.TOOL_CALLS)
REQUEST_TOOL_ARGUMENTS = Surface("chat.request.messages[].tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True)
REQUEST_TOOL_INPUT = Surface("chat.request.messages[].tool_calls[].custom.input", Kind.TOOL_CALLS)
REQUEST_PREDICTION = Surface("chat.request.prediction.content", Kind.USER)
REQUEST_TOOLS = Surface("chat.request.tools[]", Kind.TOOLS)
REQUEST_FORMAT = Surface("chat.request.response_format", Kind.TOOLS)
REQUEST_FIELDS = {
    field: Surface(f"chat.request.{field}", Kind.USER)
    for field in ("metadata", "user", "safety_identifier", "prompt_cache_key", "stop", "web_search_options")
}
UNKNOWN = Surface("chat.request (undocumented fields)", Kind.USER, unknown=True)

CONTENT = Surface("chat.reply.content", Kind.REPLY)
REFUSAL = Surface("chat.reply.refusal", Kind.REPLY)
TRANSCRIPT = Surface("chat.reply.audio.transcript", Kind.REPLY)
REASONING = Surface("chat.reply.reasoning", Kind.REASONING)
TOOL_NAME = Surface("chat.reply.tool_calls[].function.name", Kind.TOOL_CALLS, calls="loose")
TOOL_ARGUMENTS = Surface("chat.reply.tool_calls[].function.arguments", Kind.TOOL_CALLS, json=True)
TOOL_INPUT = Surface("chat.reply.tool_calls[].custom.input", Kind.TOOL_CALLS)
ERROR = Surface("chat.reply.error.message", Kind.REPLY)
OPAQUE = Surface("chat.reply", Kind.REPLY, json=True)
UNKNOWN_REPLY = Surface("chat.reply (undocumented fields)", Kind.REPLY, unknown=True)

# Every place, in the order of the request and then the reply.
REQUEST_SURFACES = (
    *REQUEST_CONTENT.values(),
    *REQUEST_NAME.values(),
    *(REQUEST_REFUSAL, REQUEST_REASONING, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOL_INPUT),
    *(REQUEST_PREDICTION, REQUEST_TOOLS, REQUEST_FORMAT),
    *REQUEST_FIELDS.values(),
    UNKNOWN,
)
REPLY_SURFACES = (
    *(CONTENT, REFUSAL, TRANSCRIPT, REASONING, TOOL_NAME, TOOL_ARGUMENTS, TOOL_INPUT),
    *(ERROR, OPAQUE, UNKNOWN_REPLY),
)

# A name is one word to a client: it never leaves in halves.
NAMES = frozenset((TOOL_NAME,))
COPIES = False

_ROLES = {
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "tool": Kind.TOOL_RESULTS,
    "function": Kind.TOOL_RESULTS,
}
_PLAIN_MESSAGE = frozenset(("role", "content", "name", "tool_call_id"))
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_SAID = frozenset(("content", "refusal", "reasoning_details", "tool_calls", "function_call", *_REASONING_FIELDS))
# What an object of a message holds besides texts. A string there is a word of the API, anything else is walked.
_WORDS = frozenset(("role", "tool_call_id", "id", "index", "type", "object"))
_REQUEST_FIELDS = _SAID | {"name", "audio"}
_REPLY_FIELDS = _SAID | {"audio"}
_PLAIN_CHOICE = frozenset(("index", "delta", "finish_reason", "logprobs", "content_filter_results", "stop_reason"))
_CHOICE_FIELDS = frozenset(("delta", "message", "logprobs", "content_filter_results"))
_CHOICE_WORDS = _WORDS | {"finish_reason", "native_finish_reason", "stop_reason", "matched_stop"}
_CALL_FIELDS = frozenset(("function", "custom"))
_DETAIL_FIELDS = frozenset(("text", "summary"))
# The last three are sealed by the provider, who must get them back as they are.
_DETAIL_WORDS = _WORDS | {"format", "data", "signature", "encrypted_content"}
_AUDIO_FIELDS = frozenset(("transcript",))
_AUDIO_WORDS = _WORDS | {"data"}
_IDENTITY = frozenset(("id", "object", "created", "model", "system_fingerprint", "service_tier"))
_HEAD_WORDS = _IDENTITY | {"obfuscation"}
# What is read apart, or holds numbers.
_HEAD_APART = frozenset(("choices", "error", "usage"))
_HEAD = _HEAD_WORDS | _HEAD_APART
# Fields of a request that hold words and numbers of the API. A string there is one, anything else is walked.
_SETTINGS = frozenset(
    ("model", "reasoning_effort", "service_tier", "verbosity", "tool_choice", "function_call", "prompt_cache_retention")
)
# Objects of settings, and the words in them.
_SETTING_OBJECTS: dict[str, AbstractSet[str]] = {
    "audio": frozenset(("voice", "format", "id")),
    "stream_options": frozenset(),
    "logit_bias": frozenset(),
    "prompt_cache_options": frozenset(("mode", "ttl", "comparison_response_id")),
}
_USAGE_WORDS = frozenset(("service_tier",))


# --- the request -------------------------------------------------------------------------------------------


def request_slots(document: dict[str, Any]) -> list[Slot]:
    """Every text of a request. What has an unexpected shape is walked, so that no text hides in it."""
    return list(_request_slots(document))


def but_tools(document: dict[str, Any]) -> list[Slot]:
    """The same, without definitions of tools."""
    return list(_request_slots(document, without=_DEFINITIONS))


_DEFINITIONS = frozenset(("tools", "functions"))


def _request_slots(document: dict[str, Any], without: AbstractSet[str] = frozenset()) -> Iterator[Slot]:
    messages = document.get("messages")
    if isinstance(messages, list):
        for index, message in enumerate(messages):
            if isinstance(message, dict):
                yield from _message(message)
            else:
                yield from walk(messages, index, REQUEST_CONTENT[Kind.USER])
    elif messages is not None:
        yield from walk(document, "messages", REQUEST_CONTENT[Kind.USER])
    for field, value in document.items():
        if type(value) in (str, dict, list) and field != "messages" and field not in without:
            yield from _field(document, field, value)


_FIELDS = {
    "prediction": REQUEST_PREDICTION,
    "tools": REQUEST_TOOLS,
    "functions": REQUEST_TOOLS,
    "response_format": REQUEST_FORMAT,
    **REQUEST_FIELDS,
}


def _field(document: dict[str, Any], field: str, value: Any) -> Iterator[Slot]:
    """A field beside the messages."""
    if field in _SETTINGS and type(value) is str:
        return
    if field in _SETTING_OBJECTS and type(value) is dict:
        yield from others(value, frozenset(), _SETTING_OBJECTS[field], UNKNOWN)
    elif field == "modalities" and type(value) is list:
        yield from (slot for at, word in enumerate(value) if type(word) is not str for slot in walk(value, at, UNKNOWN))
    else:
        yield from walk(document, field, _FIELDS.get(field, UNKNOWN))


def _message(message: dict[str, Any]) -> Iterator[Slot]:
    role = message.get("role")
    kind = _ROLES.get(role, Kind.USER) if isinstance(role, str) else Kind.USER
    yield from content(message, REQUEST_CONTENT[kind])
    yield from optional(message, "name", REQUEST_NAME[kind])
    if message.keys() <= _PLAIN_MESSAGE and type(role) is str and type(message.get("tool_call_id", "")) is str:
        return
    yield from optional(message, "refusal", REQUEST_REFUSAL)
    for _, slot in _reasoning(message, REQUEST_REASONING, REQUEST_REASONING):
        yield slot
    calls = _tool_calls(message, REQUEST_TOOL_NAME, REQUEST_TOOL_ARGUMENTS, REQUEST_TOOL_INPUT, REQUEST_TOOL_ARGUMENTS)
    for _, slot in calls:
        yield slot
    yield from _others(message, _REQUEST_FIELDS, REQUEST_CONTENT[kind])
    audio = message.get("audio")
    if isinstance(audio, dict):
        # By its id alone, as the API documents it, or as the answer that it was, with what was said in it.
        yield from _others(audio, frozenset(), REQUEST_CONTENT[kind], _AUDIO_WORDS)
    elif audio is not None:
        yield from walk(message, "audio", REQUEST_CONTENT[kind])


def _others(
    holder: dict[str, Any], known: AbstractSet[str], surface: Surface, words: AbstractSet[str] = _WORDS
) -> Iterator[Slot]:
    """The texts of the fields that are not known here."""
    return others(holder, known, words, surface)


def _reasoning(holder: dict[str, Any], surface: Surface, odd: Surface) -> Iterator[tuple[str, Slot]]:
    """Each text with its field's name: servers that send the same reasoning under two names mean two texts.

    `odd` is the surface of texts that have no business where they stand.
    """
    for field in _REASONING_FIELDS:
        for slot in optional(holder, field, surface):
            yield field, slot
    for slot in _reasoning_details(holder, surface, odd):
        yield "reasoning_details", slot


def _reasoning_details(holder: dict[str, Any], surface: Surface, odd: Surface) -> Iterator[Slot]:
    details = holder.get("reasoning_details")
    if not isinstance(details, list):
        yield from optional(holder, "reasoning_details", odd)
        return
    for index, detail in enumerate(details):
        if isinstance(detail, dict):
            for field in ("text", "summary"):
                yield from optional(detail, field, surface)
            yield from _others(detail, _DETAIL_FIELDS, odd, _DETAIL_WORDS)
        else:
            yield from walk(details, index, odd)


def _tool_calls(
    holder: dict[str, Any], name: Surface, arguments: Surface, text: Surface, odd: Surface
) -> Iterator[tuple[int | str, Slot]]:
    """The texts of tool calls, each with the index of its call; `function_call` is the older, single form."""
    calls = holder.get("tool_calls")
    if isinstance(calls, list):
        for position, call in enumerate(calls):
            for slot in _tool_call(calls, position, name, arguments, text, odd):
                yield _call_index(call, position), slot
    elif calls is not None:
        for slot in walk(holder, "tool_calls", odd):
            yield 0, slot
    if holder.get("function_call") is not None:
        for slot in _function(holder, "function_call", name, arguments, odd):
            yield "function_call", slot


def _tool_call(
    calls: list[Any], at: int, name: Surface, arguments: Surface, text: Surface, odd: Surface
) -> Iterator[Slot]:
    call = calls[at]
    if not isinstance(call, dict):
        yield from walk(calls, at, odd)
        return
    if "function" in call:
        yield from _function(call, "function", name, arguments, odd)
    if "custom" in call:
        yield from _function(call, "custom", name, text, odd, "input")
    yield from _others(call, _CALL_FIELDS, odd)


def _function(
    holder: dict[str, Any], key: str, name: Surface, arguments: Surface, odd: Surface, given: str = "arguments"
) -> Iterator[Slot]:
    function = holder[key]
    if not isinstance(function, dict):
        yield from walk(holder, key, odd)
        return
    yield from optional(function, "name", name)
    yield from optional(function, given, arguments)
    if not function.keys() <= (known := {"name", given}):
        yield from _others(function, known, odd)


# --- the reply, buffered or one frame of a stream --------------------------------------------------------------


_ALONE = Lane(OPAQUE)


def reply_texts(document: dict[str, Any]) -> list[Spoken]:
    """The texts of a whole reply or of one frame. What is no chat completion is walked."""
    choices = document.get("choices")
    found: list[Spoken] = []
    if isinstance(choices, list):
        for position, choice in enumerate(choices):
            if isinstance(choice, dict):
                found.extend(_choice(choice, index_of(choice, position)))
            else:
                found.extend(_alone(walk(choices, position, OPAQUE)))
    elif choices is not None:
        found.extend(_alone(walk(document, "choices", OPAQUE)))
    if _is_odd(document):
        odd = UNKNOWN_REPLY if isinstance(choices, list) else OPAQUE
        found.extend(_alone(others(document, _HEAD_APART, _HEAD_WORDS, odd)))
    if "error" in document:
        found.extend(_alone(walk(document, "error", ERROR)))
    if document.get("usage"):
        found.extend(_alone(small.settings(document, "usage", _USAGE_WORDS, UNKNOWN_REPLY)))
    return found


def _is_odd(document: dict[str, Any]) -> bool:
    """Whether something stands beside the choices that is no word of the API."""
    if not document.keys() <= _HEAD:
        return True
    for key, value in document.items():
        if (type(value) is dict or type(value) is list) and key not in _HEAD_APART:
            return True
    return False


def _alone(slots: Iterable[Slot]) -> Iterator[Spoken]:
    """A text in a place where none is known is whole as it stands: nothing of it is held back for a next frame."""
    return (Spoken(_LANES[slot.surface], slot, whole=True) for slot in slots)


_LANES = {surface: Lane(surface) for surface in (OPAQUE, UNKNOWN_REPLY, ERROR)}


def plain(document: dict[str, Any]) -> tuple[Lane, Slot, str] | None:
    """The one text of a frame that holds nothing else: nearly every frame of a stream, told with few questions."""
    choices = document.get("choices")
    if type(choices) is not list or len(choices) != 1 or _is_odd(document):
        return None
    choice = choices[0]
    if type(choice) is not dict or choice.get("finish_reason") is not None or not choice.keys() <= _PLAIN_CHOICE:
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1 or document.get("usage") or "error" in document:
        return None
    if choice.get("stop_reason") is not None:
        return None
    text = delta.get("content")
    if type(text) is not str or not text:
        return None
    return _content_lane(index_of(choice, 0)), Slot(CONTENT, delta, "content"), text


@lru_cache(maxsize=128)
def _content_lane(choice: int) -> Lane:
    return Lane(CONTENT, choice)


def _choice(choice: dict[str, Any], index: int) -> Iterator[Spoken]:
    for field in ("delta", "message"):
        said = choice.get(field)
        if isinstance(said, dict):
            yield from _said(said, index)
        elif said is not None:
            yield from _alone(walk(choice, field, OPAQUE))
    yield from _alone(_others(choice, _CHOICE_FIELDS, UNKNOWN_REPLY, _CHOICE_WORDS))


def _said(said: dict[str, Any], index: int) -> Iterator[Spoken]:
    if type(said.get("content")) is str and len(said) == 1:
        yield Spoken(Lane(CONTENT, index), Slot(CONTENT, said, "content"))
        return
    # Reasoning comes before the answer, also where one frame holds both.
    for name, slot in _reasoning(said, REASONING, OPAQUE):
        yield _spoken(slot, index, name)
    for slot in content(said, CONTENT):
        yield _spoken(slot, index)
    for slot in optional(said, "refusal", REFUSAL):
        yield _spoken(slot, index)
    for part, slot in _tool_calls(said, TOOL_NAME, TOOL_ARGUMENTS, TOOL_INPUT, OPAQUE):
        yield _spoken(slot, index, part)
    audio = said.get("audio")
    if isinstance(audio, dict):
        for slot in optional(audio, "transcript", TRANSCRIPT):
            yield _spoken(slot, index)
        yield from _alone(_others(audio, _AUDIO_FIELDS, UNKNOWN_REPLY, _AUDIO_WORDS))
    elif audio is not None:
        yield from _alone(walk(said, "audio", OPAQUE))
    if not said.keys() <= _REPLY_FIELDS:
        yield from _undocumented(said, index)


def _undocumented(said: dict[str, Any], index: int) -> Iterator[Spoken]:
    """What no API documents may run over frames as well: a string of a field is more of that field's text."""
    for slot in _others(said, _REPLY_FIELDS, UNKNOWN_REPLY):
        field = slot.key
        if isinstance(field, str) and said.get(field) is slot.text:
            yield Spoken(Lane(UNKNOWN_REPLY, index, field), slot)
        else:
            yield from _alone((slot,))


def _spoken(slot: Slot, choice: int, part: int | str = 0) -> Spoken:
    if slot.surface in _LANES:
        return Spoken(_LANES[slot.surface], slot, whole=True)
    return Spoken(Lane(slot.surface, choice, part), slot)


ended = several.ended
choices_in = several.choices_in
is_error = several.is_error
error_text = small.error_text


def spoil(document: dict[str, Any], lane: Lane) -> None:
    """Drops what was computed over a text that has changed: logprobs, tokens, offsets of annotations, the sound."""
    for index, choice in several.numbered(document):
        if index != lane.choice:
            continue
        choice.update((field, None) for field in ("logprobs", "token_ids") if choice.get(field))
        for said in (choice.get("delta"), choice.get("message")):
            if isinstance(said, dict):
                _spoil(said, lane)


def _spoil(said: dict[str, Any], lane: Lane) -> None:
    if said.get("annotations"):
        said["annotations"] = []
    audio = said.get("audio")
    if lane.surface is TRANSCRIPT and isinstance(audio, dict) and audio.get("data"):
        audio["data"] = ""


def event_of(document: dict[str, Any]) -> bytes | None:
    return None


class Writer(several.Writer):
    """Tool calls can be taken out of it."""

    def __init__(self) -> None:
        super().__init__()
        # The choices that still propose a tool call where others were taken out.
        self._calling: set[int] = set()
        # Which number the client knows a call by: clients count calls, and would miss those that were taken out.
        self._numbers: dict[tuple[int, int], int] = {}
        self._last: dict[int, int] = {}
        self._dropping = False

    def carry(self, template: dict[str, Any] | None, lane: Lane, text: str) -> dict[str, Any]:
        return _frame(template or self._template, lane.choice, _delta(lane, text), None)

    def _frame(self, choice: int, text: str, reason: str | None = None) -> dict[str, Any]:
        return _frame(self._template, choice, {"content": text} if text else {}, reason)

    def end(self, document: dict[str, Any]) -> None:
        for index, choice in several.numbered(document):
            if choice.get("finish_reason"):
                self._open.discard(index)
            delta = choice.get("delta")
            if type(delta) is dict and (delta.get("tool_calls") or delta.get("function_call")):
                self._calling.add(index)
                if not self._dropping:
                    self._number(delta, index, anew=False)

    def drop(self, document: dict[str, Any], calls: Mapping[tuple[int, int | str], str]) -> bool:
        self._dropping = True
        found = several.numbered(document)
        dropped = [self._drop(choice, index, calls) for index, choice in found]
        if any(dropped) and not any(_says_something(choice) for _, choice in found):
            document.clear()
        return any(dropped)

    def _drop(self, choice: dict[str, Any], index: int, calls: Mapping[tuple[int, int | str], str]) -> bool:
        changed = False
        notices = [notice for (of, _), notice in calls.items() if of == index]
        for said in (choice.get("delta"), choice.get("message")):
            if isinstance(said, dict):
                changed = self._without(said, index, calls) or changed
                changed = self._number(said, index, anew=bool(notices)) or changed
        if notices and choice.get("finish_reason"):
            end_without(choice, filter(None, notices), calling=index in self._calling)
            changed = True
        return changed

    def _without(self, said: dict[str, Any], index: int, calls: Mapping[tuple[int, int | str], str]) -> bool:
        changed = take_out(
            said, lambda at, call: (index, _call_index(call, at)) in calls, older=(index, "function_call") in calls
        )
        if isinstance(said.get("tool_calls"), list) and said["tool_calls"]:
            self._calling.add(index)
        return changed

    def _number(self, said: dict[str, Any], index: int, *, anew: bool) -> bool:
        """Notes the numbers of calls; `anew` counts those that begin now without the ones that were taken out."""
        changed = False
        given = said.get("tool_calls")
        for call in given if isinstance(given, list) else ():
            at = call.get("index") if isinstance(call, dict) else None
            if type(at) is int:
                if (index, at) not in self._numbers:
                    last = self._last.get(index, -1)
                    self._numbers[index, at] = last + 1 if anew else at
                    self._last[index] = max(last, self._numbers[index, at])
                call["index"] = self._numbers[index, at]
                changed = changed or call["index"] != at
        return changed


def take_out(said: dict[str, Any], gone: Callable[[int, Any], bool], *, older: bool) -> bool:
    """Takes tool calls out of a message or delta: those that are `gone`, told by their place in the list and by what
    stands there, and with `older` the single, older form. True where there was one.
    """
    changed = older and said.pop("function_call", None) is not None
    given = said.get("tool_calls")
    if not isinstance(given, list):
        return changed
    kept = [call for at, call in enumerate(given) if not gone(at, call)]
    if len(kept) == len(given):
        return changed
    said["tool_calls"] = kept
    if not kept:
        del said["tool_calls"]
    return True


def end_without(choice: dict[str, Any], notices: Iterable[str], *, calling: bool) -> None:
    """The end of a choice that calls were taken out of: the notices, and without a call left that of a plain answer."""
    there = (choice.get("message"), choice.get("delta"))
    said = next((said for said in there if isinstance(said, dict)), None)
    if said is None:
        said = choice["delta"] = {}
    notice = "\n\n".join(notices)
    if notice or not calling:
        said["content"] = small.noted(said.get("content"), notice)
    if not calling and choice.get("finish_reason") in ("tool_calls", "function_call"):
        choice["finish_reason"] = "stop"


writer = Writer


def _says_something(choice: dict[str, Any]) -> bool:
    return any(choice.get(field) for field in ("delta", "message", "finish_reason"))


def _call_index(call: Any, position: int) -> int:
    index = call.get("index") if isinstance(call, dict) else None
    return index if isinstance(index, int) else position


def _frame(template: dict[str, Any], choice: int, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    head = _identity(template)
    head.setdefault("object", "chat.completion.chunk")
    head["choices"] = [{"index": choice, "delta": delta, "finish_reason": reason}]
    return head


def _identity(document: dict[str, Any]) -> dict[str, Any]:
    """What a frame of our own takes from another: nothing that was not looked at."""
    return {key: value for key, value in document.items() if key in _IDENTITY and not isinstance(value, dict | list)}


def _delta(lane: Lane, text: str) -> dict[str, Any]:
    match lane.surface:
        case _ if lane.surface is REFUSAL:
            return {"refusal": text}
        case _ if lane.surface is TRANSCRIPT:
            return {"audio": {"transcript": text}}
        case _ if lane.surface is REASONING and lane.part == "reasoning_details":
            return {"reasoning_details": [{"type": "reasoning.text", "text": text}]}
        case _ if lane.surface in (REASONING, UNKNOWN_REPLY):
            return {str(lane.part): text}
        case _ if lane.surface.kind is Kind.TOOL_CALLS:
            return _tool_delta(lane, text)
        case _:
            return {"content": text}


def _tool_delta(lane: Lane, text: str) -> dict[str, Any]:
    if lane.surface is TOOL_INPUT:
        return {"tool_calls": [{"index": lane.part, "custom": {"input": text}}]}
    function = {"name" if lane.surface is TOOL_NAME else "arguments": text}
    if lane.part == "function_call":
        return {"function_call": function}
    return {"tool_calls": [{"index": lane.part, "function": function}]}


def usage(document: dict[str, Any]) -> Usage | None:
    """What a reply or frame reports."""
    return reported.openai(document.get("usage"))


ask_usage = asking.include_usage
hosted = nowhere


# --- replies of our own --------------------------------------------------------------------------------------


def answer(identity: dict[str, Any], text: str) -> dict[str, Any]:
    """A whole, complete reply with this text. `identity` holds id, created and model, and may hold more."""
    message = {"role": "assistant", "content": text, "refusal": None}
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    head = {"object": "chat.completion", "usage": nothing} | _identity(identity)
    return head | {"choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]}


def answer_frames(identity: dict[str, Any], text: str) -> bytes:
    """The same as a complete stream."""
    head = {"object": "chat.completion.chunk"} | _identity(identity)
    frames = [
        _frame(head, 0, {"role": "assistant", "content": text}, None),
        _frame(head, 0, {}, "stop"),
    ]
    return b"".join(sse.render(jsondoc.encode(frame)) for frame in frames) + DONE


error_body = openai_shape


def error_frames(error: ExchangeError) -> Sequence[dict[str, Any]]:
    return [error_body(error)]
