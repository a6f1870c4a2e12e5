"""The variants that the cases name in prose, written out as changes of their cases, and their siblings."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from .upstream import payload

Case = dict[str, Any]
Change = Callable[[Case], None]


@dataclass(frozen=True, slots=True)
class ByHand:
    """Played by this test, `file::name`."""

    test: str


_STREAM = {"content-type": "text/event-stream"}
_JSON = {"content-type": "application/json"}
_CHUNK = {"id": "chatcmpl-t", "object": "chat.completion.chunk", "created": 1700000000, "model": "m1"}


def varied(case: Case, change: Change) -> Case:
    """A copy of the case with the change made."""
    copy = deepcopy(case)
    change(copy)
    return copy


def _send(document: Any) -> dict[str, str]:
    return {"send": f"data: {json.dumps(document, ensure_ascii=False)}\n\n"}


def frames(deltas: Sequence[Mapping[str, Any]], reason: str) -> list[dict[str, str]]:
    """The steps of a chat stream of one choice: these deltas, a finish reason, and the end."""
    chunks = [{**_CHUNK, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    last = {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    return [*map(_send, [*chunks, last]), {"send": "data: [DONE]\n\n"}]


def _message_deltas(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A buffered message told one character at a time."""
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    deltas += [{"content": character} for character in message.get("content") or ""]
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        deltas.append(
            {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
        )
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": c}}]} for c in function["arguments"]]
    return deltas


def streamed(case: Case) -> None:
    """The same reply as a stream of one character an event."""
    (script,) = case["setup"]["upstream"]
    choice = script["json"]["choices"][0]
    steps = frames(_message_deltas(choice["message"]), choice["finish_reason"])
    case["setup"]["upstream"] = [{"status": 200, "headers": _STREAM, "steps": steps}]
    case["input"]["json"]["stream"] = True


def _call_delta(index: int, call: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{**call, "index": index}]}


def _interleaved(case: Case) -> None:
    """Parallel calls whose arguments come in turn."""
    calls = list(enumerate(case["setup"]["upstream"][0]["json"]["choices"][0]["message"]["tool_calls"]))
    streamed(case)
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    deltas += [_call_delta(at, {**call, "function": {**call["function"], "arguments": ""}}) for at, call in calls]
    longest = max(len(call["function"]["arguments"]) for _, call in calls)
    for start in range(0, longest, 2):
        pieces = [(at, call["function"]["arguments"][start : start + 2]) for at, call in calls]
        deltas += [_call_delta(at, {"function": {"arguments": piece}}) for at, piece in pieces if piece]
    case["setup"]["upstream"][0]["steps"] = frames(deltas, "tool_calls")


def _buffered(case: Case) -> None:
    case["setup"]["upstream"] = [_said("Contact ana.fict@example.com today.")]
    del case["input"]["json"]["stream"]
    for key in ("min_content_events", "sse_done"):
        del case["expect"]["client"][key]


def _said(content: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {
        "status": 200,
        "headers": _JSON,
        "json": {**_CHUNK, "object": "chat.completion", "choices": [choice]},
    }


def _first_turn(role: str, *more: Mapping[str, Any]) -> Change:
    def change(case: Case) -> None:
        case["input"]["json"]["messages"][0]["role"] = role
        case["input"]["json"]["messages"][1:] = more or case["input"]["json"]["messages"][1:]

    return change


def _other_order(case: Case) -> None:
    case["setup"]["policy"].reverse()


def _blocked_stream(case: Case) -> None:
    """Blocked half-way, a stream ends with the API's own last frame unless the policy asks for an error."""
    streamed(case)
    case["expect"]["client"].update(finish_reasons={"0": "content_filter"}, sse_done=True, status=200)
    case["expect"]["client"]["joined_content"] = {"0": "it is "}
    del case["expect"]["client"]["error_shape"]


def _failed_stream(case: Case) -> None:
    streamed(case)
    case["setup"]["policy"][0]["ends"] = "error"
    case["expect"]["client"].update(joined_content={"0": "it is "}, finish_reason_absent=True)


def _blocked_prompt(case: Case) -> None:
    case["setup"]["policy"][0]["on"] = ["prompt"]
    case["input"]["json"]["messages"][0]["content"] = "tell me about codename-otter"
    case["expect"]["client"]["status_class"] = 4
    case["expect"]["upstream"] = {"calls": 0}


def _family(case: Case) -> None:
    """Joiners that a person does not see as hiding anything."""
    case["input"]["json"]["messages"][0]["content"] = "family 👩‍👩‍👧 plan"
    case["expect"] = {"client": {"status": 200}, "upstream": {"calls": 1, "bytes_equal_input": True}}


def _coding(name: str) -> Change:
    def change(case: Case) -> None:
        case["setup"]["upstream"][0]["compress"] = name

    return change


def _chat(case: Case) -> None:
    case["input"]["path"] = "/v1/chat/completions"
    case["input"]["json"] = {"model": "m1", "messages": [{"role": "user", "content": "hi"}]}
    case["setup"]["upstream"] = [{**_said("mail ana.fict@example.com now"), "compress": "gzip"}]
    case["expect"]["client"]["joined_content"] = {"0": "mail [MASK] now"}


def _compressed_stream(case: Case) -> None:
    _chat(case)
    del case["setup"]["upstream"][0]["compress"]
    streamed(case)
    case["setup"]["upstream"][0]["compress"] = "gzip"
    case["expect"]["client"]["sse_done"] = True


def _identity(case: Case) -> None:
    case["input"]["headers"]["accept-encoding"] = "identity"


def _models(case: Case) -> None:
    case["input"] = {"method": "GET", "path": "/v1/models", "headers": {"accept-encoding": "gzip"}}
    case["setup"]["upstream"][0]["json"] = {"object": "list", "data": [{"id": "m1", "object": "model"}]}


def _chunked(case: Case) -> None:
    case["input"]["chunked"] = True


def _continue(case: Case) -> None:
    case["input"]["headers"]["expect"] = "100-continue"


def _hops(case: Case) -> None:
    hops = {
        "connection": "keep-alive, x-hop",
        "keep-alive": "timeout=5",
        "te": "trailers",
        "proxy-connection": "keep-alive",
    }
    case["input"]["headers"].update({**hops, "x-hop": "1"})
    case["expect"]["upstream"]["hop_by_hop_headers_absent"].append("x-hop")


def _answered(status: int, headers: Mapping[str, str], body: str) -> Change:
    def change(case: Case) -> None:
        case["setup"]["upstream"] = [{"status": status, "headers": headers, "body": body}]
        case["expect"]["client"] = {"status": status, "body_equals_upstream": True, "headers_equal": headers}

    return change


def _refused_stream(case: Case) -> None:
    case["input"]["json"]["stream"] = True
    script = case["setup"]["upstream"][0]
    script.update(status=401, headers=_JSON)
    case["expect"]["client"] = {"status": 401, "json_equals_upstream": True, "headers_equal": _JSON}


def _unknown_endpoint(case: Case) -> None:
    case["input"].update(method="GET", path="/v1/some/unknown/endpoint")
    del case["input"]["json"]


def _blocked_request(case: Case) -> None:
    rule = case["setup"]["policy"][0]
    rule.update(action="block", regex=rule.pop("rule")["regex"])
    case["expect"]["client"] = {"status": 400, "error_shape": "openai"}
    case["expect"]["upstream"] = {"calls": 0}


def _provider_fails(case: Case) -> None:
    error = {
        "message": "cannot mail ana.fict@example.com",
        "type": "server_error",
        "param": None,
        "code": "oops",
    }
    case["setup"]["upstream"] = [{"status": 500, "headers": _JSON, "json": {"error": error}}]
    case["expect"]["client"] = {"status": 500}


def _streamed_arguments(case: Case) -> None:
    streamed(case)
    case["expect"]["client"].update(must_not_contain_joined=["hunter2zz"], finish_reasons={"0": "tool_calls"})


def _one_string(case: Case) -> None:
    case["input"]["json"]["input"] = "I am ana.fict@example.com"
    case["expect"]["upstream"] = {
        "body_must_not_contain": ["ana.fict@example.com"],
        "json_path_equals": {"instructions": "reply to [MASK]", "input": "I am [MASK]"},
    }


def _in_another_api(path: str, asked: Mapping[str, Any], told: Mapping[str, str]) -> Change:
    """The same text on another endpoint: what a client asks there, and what the provider must see of it."""

    def change(case: Case) -> None:
        case["input"].update(path=path, json={"model": "m1", **asked})
        del case["expect"]["upstream"]["arguments_json_equals"]
        case["expect"]["upstream"]["json_path_equals"] = told

    return change


_AT_MESSAGES = {
    "max_tokens": 9,
    "system": [{"type": "text", "text": "reply to ana.fict@example.com"}],
    "messages": [
        {"role": "user", "content": "I am ana.fict@example.com"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "f1", "name": "mail", "input": {"to": "ana.fict@example.com"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "f1", "content": "ok ana.fict@example.com"}],
        },
    ],
}
_SEEN_AT_MESSAGES = {
    "system[0].text": "reply to [MASK]",
    "messages[0].content": "I am [MASK]",
    "messages[1].content[0].input.to": "[MASK]",
    "messages[2].content[0].content": "ok [MASK]",
}

TWO_HUNDRED = "200 aborted streams, then 1 normal request succeeds and open upstream sockets return to baseline"


def _asked_to_wait(value: str, gap: tuple[int, int] | None = None, **expected: Any) -> Change:
    """The provider says this as Retry-After. Without a gap it is not asked a second time."""

    def change(case: Case) -> None:
        case["setup"]["upstream"][0]["headers"]["retry-after"] = value
        upstream = case["expect"]["upstream"]
        if gap is None:
            upstream["calls"] = 1
            del upstream["gap_between_calls_ms"]
        else:
            upstream["gap_between_calls_ms"] = gap
        case["expect"]["client"].update(expected)

    return change


def _too_long(status: int, code: str) -> Change:
    def change(case: Case) -> None:
        reply = case["setup"]["upstream"][0]["reply"]
        reply["status"], reply["json"]["error"]["code"] = status, code

    return change


SAME_STREAMED = "same model text as a stream, one character per delta: same result"
_PYTHON = r"""<tool_call>{'name': 'find', 'arguments': {'q': 'it\'s', 'b': True, 'z': None}}</tool_call>"""


def _cut_before_the_end(case: Case) -> None:
    (script,) = case["setup"]["upstream"]
    text, end = script["json"]["choices"][0]["message"]["content"], "}}</tool_call>"
    assert text.endswith(end)
    steps = frames([{"role": "assistant", "content": text.removesuffix(end)}, {"content": end}], "stop")
    case["setup"]["upstream"] = [{"status": 200, "headers": _STREAM, "steps": steps}]
    case["input"]["json"]["stream"] = True


def _as_python(case: Case) -> None:
    case["setup"]["upstream"][0]["json"]["choices"][0]["message"]["content"] = _PYTHON
    case["expect"]["client"]["tool_calls"][0]["arguments"] = {"q": "it's", "b": True, "z": None}


def _says(form: str) -> Change:
    """The reply's text with something around it."""

    def change(case: Case) -> None:
        message = case["setup"]["upstream"][0]["json"]["choices"][0]["message"]
        message["content"] = form % message["content"]

    return change


def _wrapped_stream(case: Case) -> None:
    _says("Here:\n```json\n%s\n```")(case)
    streamed(case)
    case["expect"]["client"]["sse_done"] = True


def _cut_stream(case: Case) -> None:
    streamed(case)
    case["expect"]["client"].update(sse_done=True, joined_content={"0": '{"code":"abc'})


# Prose of the case -> the change, or the test that plays it by hand.
NAMED: Mapping[str, Mapping[str, Change | ByHand]] = {
    "D01": {"401, 403, 404, 413, 422": ByHand("test_retry.py::test_what_is_the_requests_fault")},
    "D02": {
        # Where nothing is said the back-off holds, half a second at most.
        "date in the past -> retry at once": _asked_to_wait("$HTTPDATE(now-100s)", (0, 900)),
        "'soon' -> default backoff, no crash": _asked_to_wait("soon", (0, 900)),
        "'7200' with max_wait 10 s -> no wait; 429 with Retry-After is returned": _asked_to_wait(
            "7200", status=429, headers_equal={"retry-after": "7200"}, error_code="rate_limit_exceeded"
        ),
    },
    "D06": {
        "code context_length_exceeded": _too_long(400, "context_length_exceeded"),
        "413 with code model_max_prompt_tokens_exceeded": _too_long(413, "model_max_prompt_tokens_exceeded"),
    },
    "B01": {"same text with stream:false gives the same content": _buffered},
    "B05": {
        "move the first text to role system": _first_turn("system"),
        "to role developer": _first_turn("developer"),
        "to an assistant turn followed by user 'continue'": _first_turn(
            "assistant", {"role": "user", "content": "continue"}
        ),
    },
    "B13": {"same as stream with one character per arguments delta": _streamed_arguments},
    "B16": {"rules in the other order: no spliced placeholder, ' now, thanks' intact, no digits left": (_other_order)},
    "B18": {
        "stream:true": _blocked_stream,
        "block on prompt: response body and headers do not contain the keyword": _blocked_prompt,
    },
    "B08": {"input given as one string": _one_string},
    "B11": {"control: 'family 👩‍👩‍👧 plan' passes and reaches upstream byte-identical": _family},
    "B21": {
        "stream, placeholder cut at every byte over argument deltas": ByHand(
            "test_restore.py::test_tool_arguments_streamed"
        ),
    },
    "B23": {
        "a client text that already contains the placeholder string of s1 sent in session s2 is not restored": ByHand(
            "test_restore.py::test_another_session"
        ),
    },
    **{name: {SAME_STREAMED: streamed} for name in ("E01", "E02", "E06", "E07", "E10")},
    "E04": {"stream cut so that the final delta is '}}</tool_call>'": _cut_before_the_end, SAME_STREAMED: streamed},
    "E05": {
        f'{_PYTHON} gives {{q:"it\'s",b:true,z:null}} or a clean parse failure, never eval': _as_python,
        SAME_STREAMED: streamed,
    },
    "F01": {
        "whole object wrapped in ```json ... ```: unwrapped, 1 call": _says("```json\n%s\n```"),
        "wrapped and followed by 'note: use } here': 1 call": _says("```json\n%s\n```\nnote: use } here"),
        "wrapped in ````json with inner ```": _says("````json\n%s\n````"),
    },
    "C07": {"same as a stream with interleaved deltas": _interleaved},
    "G01": {
        "br": _coding("br"),
        "deflate": _coding("deflate"),
        "gzip on a chat stream": _compressed_stream,
        "client sends Accept-Encoding: identity": _identity,
        "untouched endpoint (GET /v1/models) with gzip": _models,
    },
    "G03": {"client uses Transfer-Encoding: chunked": _chunked, "Expect: 100-continue": _continue},
    "G06": {
        "503 with an HTML body: status and body kept": _answered(
            503, {"content-type": "text/html"}, "<h1>503</h1>\n<p>back soon"
        ),
        "404 with empty body": _answered(404, {}, ""),
        "stream:true request answered with 401 JSON: status 401, not an SSE stream": _refused_stream,
    },
    "G09": {
        "stream:false, upstream silent 20 s, client closes after 300 ms": ByHand("test_leaving.py::test_buffered"),
        "client closes before upstream sends headers": ByHand("test_leaving.py::test_before_the_head"),
        TWO_HUNDRED: ByHand("test_leaving.py::test_two_hundred_times"),
    },
    "G11": {
        "upstream base http://[::1]:PORT/v1 works": ByHand("test_addresses.py::test_ipv6"),
        "HTTP_PROXY set to a dead port and upstream on 127.0.0.1 in NO_PROXY works": ByHand(
            "test_addresses.py::test_no_proxy_wins"
        ),
    },
    "H01": {
        "unknown key three levels down": ByHand("test_config.py::test_unknown_key_below"),
        "a rule with 'pattren:'": ByHand("test_config.py::test_misspelt_key"),
        "running process: reload refused": ByHand("test_reload.py::test_a_bad_file_changes_nothing"),
    },
    "H02": {
        "duplicate key inside one rule": ByHand("test_config.py::test_duplicate_below"),
        "merge key '<<' overriding an anchor value stays legal": ByHand("test_config.py::test_merge_key"),
    },
    "H04": {
        "single-quoted form masks 'k zk-A1b2C3d4E5f6G7h8 .'": ByHand("test_config.py::test_single_quoted"),
    },
    "H05": {
        "empty file": ByHand("test_reload.py::test_a_bad_file_changes_nothing"),
        "file removed for 1 s (atomic rename)": ByHand("test_reload.py::test_a_missing_file_changes_nothing"),
        "valid YAML, regex that does not compile": ByHand("test_reload.py::test_a_bad_file_changes_nothing"),
    },
    "I01": {"GET /v1/some/unknown/endpoint: same": _unknown_endpoint},
    "I02": {
        "upstream base URL with user:pass@ and ?key=...: neither printed": ByHand(
            "test_secrets.py::test_credentials_in_url"
        ),
        "config dump / health endpoint masks keys": ByHand("test_secrets.py::test_own_endpoints"),
    },
    "I06": {"streamed": streamed, "blocked request": _blocked_request, "upstream 500": _provider_fails},
}


def _resent(cut: Callable[[bytes], Sequence[bytes]]) -> Change:
    """The same bytes of every stream, cut into other packets; pauses and closes stay where they are."""

    def change(case: Case) -> None:
        for script in case["setup"]["upstream"]:
            steps: list[Any] = []
            for step in script["steps"]:
                quiet = "sleep_ms" in step or "close" in step
                steps += [step] if quiet else [{"send_bytes": piece} for piece in cut(payload(step))]
            script["steps"] = steps

    return change


in_single_bytes = _resent(lambda data: [data[i : i + 1] for i in range(len(data))])
in_odd_pieces = _resent(lambda data: [data[i : i + 7] for i in range(0, len(data), 7)])
with_crlf = _resent(lambda data: [data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")])


def in_one_packet(case: Case) -> None:
    """Everything at once."""
    for script in case["setup"]["upstream"]:
        whole = b"".join(payload(step) for step in script["steps"] if not {"sleep_ms", "close"} & set(step))
        script["steps"] = [{"send_bytes": whole}, *(step for step in script["steps"] if "close" in step)]


def _cut_short(case: Case) -> None:
    case["setup"]["upstream"][0]["framing"] = "chunked"


def _bare_call(case: Case) -> None:
    del case["input"]["json"]["messages"][1]["content"]


def _unknown_role(case: Case) -> None:
    case["input"]["json"]["messages"][1]["role"] = "planner"


def _as_bytes(case: Case) -> None:
    case["expect"]["upstream"]["bytes_equal_input"] = True
    case["expect"]["client"]["body_equals_upstream"] = True


# The same fault in other places.
SIBLINGS: Mapping[str, Mapping[str, Change]] = {
    "A09": {"the connection breaks inside the framing": _cut_short},
    "B03": {"streamed": streamed},
    "B04": {"streamed": streamed, "a call without content": _bare_call, "a role of its own": _unknown_role},
    "B07": {"streamed": streamed},
    "F01": {"streamed": streamed, "wrapped and streamed": _wrapped_stream},
    "F02": {"streamed": _cut_stream},
    "B08": {
        "messages": _in_another_api("/v1/messages", _AT_MESSAGES, _SEEN_AT_MESSAGES),
        "completions": _in_another_api(
            "/v1/completions",
            {"prompt": ["I am", "ana.fict@example.com"], "suffix": "of ana.fict@example.com"},
            {"prompt[1]": "[MASK]", "suffix": "of [MASK]"},
        ),
        "embeddings": _in_another_api(
            "/v1/embeddings", {"input": ["I am ana.fict@example.com"]}, {"input[0]": "I am [MASK]"}
        ),
        "generate": _in_another_api(
            "/api/generate",
            {"system": "reply to ana.fict@example.com", "prompt": "I am ana.fict@example.com", "stream": False},
            {"system": "reply to [MASK]", "prompt": "I am [MASK]"},
        ),
        "an endpoint that nobody knows": _in_another_api(
            "/v1/threads/t1/messages",
            {"role": "user", "content": "I am ana.fict@example.com"},
            {"content": "I am [MASK]"},
        ),
    },
    "B13": {"gzip": _coding("gzip")},
    "B18": {"streamed, to end with an error event": _failed_stream},
    "G01": {"gzip on a chat reply": _chat},
    "G03": {"every hop-by-hop header": _hops, "streamed": streamed},
    "G05": {"untouched documents keep their bytes": _as_bytes},
}
RECUT: Mapping[str, Change] = {
    "in single bytes": in_single_bytes,
    "in pieces of seven": in_odd_pieces,
    "in one packet": in_one_packet,
    "with CRLF": with_crlf,
}
# Cases whose point is how the bytes were cut, in time.
NOT_RECUT = frozenset({"A02", "C02", "J03"})


def siblings(case: Case) -> Mapping[str, Change]:
    scripts = case["setup"]["upstream"]
    recut = case["id"] not in NOT_RECUT and all("steps" in script for script in scripts)
    return {**SIBLINGS.get(case["id"], {}), **(RECUT if recut else {})}
