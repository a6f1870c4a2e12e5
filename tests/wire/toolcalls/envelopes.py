"""Replies of models with tool calls in their text, and what is in them."""

from typing import Any, NamedTuple

FIND_Q = ("find", {"q": "x"})


class Reply(NamedTuple):
    """`calls` are names with arguments; `said` is the text around them, joined."""

    dialect: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    said: str = ""


def prompt(text: str, *calls: tuple[str, dict[str, Any]], said: str = "") -> Reply:
    return Reply("prompt", text, calls, said)


TOOLS = ("find", "get", "list-all")

REPLIES = {
    "a fenced call, braces in the prose behind it": prompt(
        'I will look.\n```json\n{"name":"find","arguments":{"q":"a{b}"}}\n```\nThen I use {x}.',
        ("find", {"q": "a{b}"}),
        said="I will look.\nThen I use {x}.",
    ),
    "two calls": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"1"}}</tool_call>\n'
        '<tool_call>{"name":"get","arguments":{"q":"2"}}</tool_call>',
        ("find", {"q": "1"}),
        ("get", {"q": "2"}),
    ),
    "nested braces and a brace that is not closed in a string": prompt(
        '<tool_call>{"name":"find","arguments":{"f":{"ids":[1,{"n":42}]},"q":"mkdir {a,b"}}</tool_call>',
        ("find", {"f": {"ids": [1, {"n": 42}]}, "q": "mkdir {a,b"}),
    ),
    "apostrophes": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"what\'s the user\'s file"}}</tool_call>',
        ("find", {"q": "what's the user's file"}),
    ),
    "Python": prompt(
        "<tool_call>{'name': 'find', 'arguments': {'q': 'it\\'s', 'b': True, 'z': None}}</tool_call>",
        ("find", {"q": "it's", "b": True, "z": None}),
    ),
    "arguments that are JSON in a string": prompt(
        '<tool_call>{"name":"find","arguments":"{\\"q\\": \\"x\\"}"}</tool_call>', FIND_Q
    ),
    "a call that is thought of": prompt(
        '<think>I could emit <tool_call>{"name":"find","arguments":{"q":"no"}}</tool_call> but no.</think>'
        "The answer is 4.",
        said='<think>I could emit <tool_call>{"name":"find","arguments":{"q":"no"}}</tool_call> but no.</think>'
        "The answer is 4.",
    ),
    "text right before and behind": prompt(
        'Let me check in the right place.<tool_call>{"name":"find","arguments":{"q":"x"}}</tool_call>Done soon.',
        FIND_Q,
        said="Let me check in the right place.Done soon.",
    ),
    "bare": prompt('{"tool": "find", "arguments": {"q": "x"}}', FIND_Q),
    "bare, in a sentence": prompt('I call {"tool": "find", "arguments": {"q": "x"}} now.', FIND_Q, said="I call now."),
    "a fence without label": prompt('```\n{"tool":"find","arguments":{"q":"x"}}\n```\n', FIND_Q),
    "a fence of our own label": prompt(
        'Well.\n\n```tool_call\n{"tool":"find","args":{"q":"x"}}\n```', FIND_Q, said="Well."
    ),
    "a longer fence with a fence in the arguments": prompt(
        '````json\n{"tool":"find","arguments":{"q":"```\\nx\\n```"}}\n````\nok',
        ("find", {"q": "```\nx\n```"}),
        said="ok",
    ),
    "a fence on one line": prompt('```json {"tool":"find","arguments":{"q":"x"}}``` ok', FIND_Q, said="ok"),
    "a fence in a tag": prompt('<tool_call>\n```json\n{"name":"find","input":{"q":"x"}}\n```\n</tool_call>', FIND_Q),
    "a tag in a fence": prompt('```xml\n<tool_call>{"name":"find","input":{"q":"x"}}</tool_call>\n```', FIND_Q),
    "two calls in a fence": prompt(
        '```json\n{"tool":"find","arguments":{"q":"x"}}\n{"tool":"get","arguments":{}}\n```', FIND_Q, ("get", {})
    ),
    "a list": prompt(
        '```json\n[\n  {"tool":"find","arguments":{"q":"x"}},\n  {"tool":"get","arguments":{}}\n]\n```\nok',
        FIND_Q,
        ("get", {}),
        said="ok",
    ),
    "OpenAI's own form": prompt(
        '{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\\"q\\":\\"x\\"}"}}', FIND_Q
    ),
    "function as the key of the name": prompt('{"function": "list-all", "parameters": {}}', ("list-all", {})),
    "arguments first": prompt('{"arguments": {"q": "x"}, "tool": "find"}', FIND_Q),
    "end tags, fences and braces in a string": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"</tool_call> ``` {\\"tool\\": }]"}}</tool_call>',
        ("find", {"q": '</tool_call> ``` {"tool": }]'}),
    ),
    "a brace too few before the end tag": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"x"}</tool_call> ok', FIND_Q, said="ok"
    ),
    "two braces too few before the end tag": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"x"</tool_call>', FIND_Q
    ),
    "a brace too few at the end": prompt('{"name":"find","arguments":{"q":"x"}', FIND_Q),
    "a fence that is not closed": prompt('```json\n{"name":"find","arguments":{"q":"x"}}', FIND_Q),
    "a tag that is half closed": prompt('<tool_call>{"name":"find","arguments":{"q":"x"}}\n</tool', FIND_Q),
    "a tag without arguments": prompt('<tool_call>{"name":"find"}</tool_call>', ("find", {})),
    "two braces too few behind a bare word": prompt(
        '<tool_call>{"name":"find","arguments":{"q": 1, "b": yes <b> x</tool_call> ok',
        ("find", {"q": 1, "b": "yes <b> x"}),
        said="ok",
    ),
    "arguments that are empty": prompt('<tool_call>{"name":"find","arguments":""}</tool_call>', ("find", {})),
    "arguments that are null": prompt('<tool_call>{"name":"find","arguments":null}</tool_call>', ("find", {})),
    "a fence that says it is a call, without arguments": prompt('```tool_call\n{"tool":"find"}\n```', ("find", {})),
    "line ends of Windows": prompt(
        'Ok.\r\n```json\r\n{\r\n"tool":"find",\r\n"arguments":{"q":"x"}\r\n}\r\n```\r\nok',
        FIND_Q,
        said="Ok.\r\nok",
    ),
    "escapes and halves of pairs": prompt(
        '{"tool":"find","arguments":{"a":"\\u00e9\\ud83d\\ude00","b":"\\ud83d","\\ude00":"\\ud83dx"}}',
        ("find", {"a": "é😀", "b": "\ufffd", "\ufffd": "\ufffdx"}),
    ),
    "huge numbers": prompt(
        '{"tool":"find","arguments":{"a":1e999,"b":-123456789012345678901234567890}}',
        ("find", {"a": float("inf"), "b": -123456789012345678901234567890}),
    ),
    "encoded twice, with Python in it": prompt(
        "{\"tool\":\"find\",\"arguments\":\"{'q': 'a \\\\'b\\\\' {', 't': True}\"}",
        ("find", {"q": "a 'b' {", "t": True}),
    ),
    "a tool that there is not, between two that there are": prompt(
        '<tool_call>{"name":"find","arguments":{"q":"x"}}</tool_call><tool_call>{"name":"no","arguments":{}}</tool_call>'
        '<tool_call>{"name":"get","arguments":{}}</tool_call>',
        FIND_Q,
        ("get", {}),
        said='<tool_call>{"name":"no","arguments":{}}</tool_call>',
    ),
    "a path with backslashes": prompt(
        '{"tool":"find","arguments":{"q":"C:\\dir\\_x"}}', ("find", {"q": "C:\\dir\\_x"})
    ),
    "keys behind the arguments": prompt('{"tool":"find","arguments":{"q":"x"},"why":{"a":["b"]},"tool":"get"}', FIND_Q),
    "bare words, a trailing comma": prompt(
        '{"tool":"find","arguments":{"a": NaN, b: yes, "c": 0x1F, "d": [1, ], }}',
        ("find", {"a": "NaN", "b": "yes", "c": "0x1F", "d": [1]}),
    ),
    "quotes inside a string": prompt(
        '{"tool":"find","arguments":{"q":"say "hi" to <b>"}}', ("find", {"q": 'say "hi" to <b>'})
    ),
    "line ends inside a string": prompt('{"tool":"find","arguments":{"q":"a\nb\tc"}}', ("find", {"q": "a\nb\tc"})),
    "a key that comes twice": prompt('{"tool":"find","arguments":{"q":"x","\\u0071":["y"]}}', FIND_Q),
    "Hermes": Reply(
        "hermes", 'Ok.\n<tool_call>\n{"name": "find", "arguments": {"q": "x"}}\n</tool_call>', (FIND_Q,), "Ok."
    ),
    "Qwen3-Coder": Reply(
        "hermes",
        "On it.\n<tool_call>\n<function=find>\n<parameter=q>\nhello\n <b> world\n</parameter>\n<parameter=n>\n5\n"
        '</parameter>\n<parameter=o>\n{"a": [True]}\n</parameter>\n</function>\n</tool_call>\n'
        "<tool_call>\n<function=get>\n</function>\n</tool_call>",
        (("find", {"q": "hello\n <b> world", "n": 5, "o": {"a": [True]}}), ("get", {})),
        "On it.",
    ),
    "Qwen3-Coder, line ends of Windows": Reply(
        "hermes",
        "<tool_call>\r\n<function=find>\r\n<parameter=q>\r\na\r\n\rb\r\n</parameter>\r\n<parameter=n>\r\n5\r\n"
        "</parameter>\r\n</function>\r\n</tool_call>\r\nok",
        (("find", {"q": "a\r\n\rb", "n": 5}),),
        "ok",
    ),
    "Llama 3": Reply(
        "llama3",
        '<|python_tag|>{"name": "find", "parameters": {"q": "x"}}; {"name": "get", "parameters": {}}',
        (FIND_Q, ("get", {})),
    ),
    "Llama 3.1's tag": Reply("llama3", '<function=find>{"q": "x"}</function> ok', (FIND_Q,), "ok"),
    "Mistral": Reply(
        "mistral",
        '[TOOL_CALLS] [{"name": "find", "arguments": {"q": "x"}, "id": "abcdefghi"}, {"name":"get","arguments":{}}]',
        (FIND_Q, ("get", {})),
    ),
    "Mistral with names outside": Reply(
        "mistral",
        'Hm.[TOOL_CALLS]find[ARGS]{"q": "x"}[TOOL_CALLS]get{}[TOOL_CALLS]list-all[CALL_ID]abcdefghi[ARGS]{"a":1}',
        (FIND_Q, ("get", {}), ("list-all", {"a": 1})),
        "Hm.",
    ),
    "Mistral thinks": Reply(
        "mistral",
        "[THINK]find{}[TOOL_CALLS]find{}[/THINK]4",
        (),
        "[THINK]find{}[TOOL_CALLS]find{}[/THINK]4",
    ),
    "DeepSeek V3": Reply(
        "deepseek",
        "Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n"
        '{"q": "x"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{}\n```'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (FIND_Q, ("get", {})),
        "Look.",
    ),
    "DeepSeek V3.1": Reply(
        "deepseek",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{"q": "x"}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>get<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (FIND_Q, ("get", {})),
    ),
    "GPT-OSS": Reply(
        "harmony",
        "<|channel|>analysis<|message|>Need {x}.<|end|><|start|>assistant<|channel|>commentary to=functions.find "
        '<|constrain|>json<|message|>{"q":"x"}<|call|>',
        (FIND_Q,),
    ),
    "GPT-OSS, a brace too few": Reply(
        "harmony",
        '<|channel|>commentary to=functions.find<|message|>{"n":[1<|call|><|start|>assistant to=functions.find'
        '<|channel|>commentary<|message|>{"q":"<|call|>"<|call|>',
        (("find", {"n": [1]}), ("find", {"q": "<|call|>"})),
    ),
    "GPT-OSS, the recipient with the role": Reply(
        "harmony",
        "<|channel|>commentary<|message|>Plan: 1.<|end|>\n<|start|>assistant to=functions.find<|channel|>commentary"
        ' json<|message|>{"q":"x"}<|call|><|start|>assistant<|channel|>commentary to=functions.get<|message|><|call|>',
        (FIND_Q, ("get", {})),
        "Plan: 1.",
    ),
    "GPT-OSS answers": Reply(
        "harmony",
        "<|channel|>analysis<|message|>Simple.<|end|>\n<|start|>assistant"
        "<|channel|>final<|message|>2 + 2 = 4.<|return|>",
        (),
        "2 + 2 = 4.",
    ),
}

# Not calls, though they look like one: said as they are.
TEXTS = {
    "a tool that there is not": 'So: {"tool": "nope", "arguments": {"a": {"tool": "find", "arguments": {}}}} ok',
    "a tool that there is not, in a tag": '<tool_call>\n{"name": "nope", "arguments": {}}\n</tool_call>',
    "an answer in JSON": '{"name": "John", "age": 3, "tools": [{"tool": "find", "arguments": {}}]}',
    "no arguments": '{"tool": "find"}',
    "arguments that are a list": '{"tool": "find", "arguments": [1]}',
    "arguments that are a string": '{"tool": "find", "arguments": "x"}',
    "arguments that are null": '{"tool": "find", "arguments": null}',
    "arguments that are empty": '{"tool": "find", "arguments": ""}',
    "arguments that are encoded three times": '{"tool": "find", "arguments": "\\"{}\\""}',
    "a name that is no string": '{"tool": 1, "arguments": {}}',
    "two names": '{"tool": "find", "name": "get", "arguments": {}}',
    "arguments twice before the name": '{"arguments": {}, "args": {}, "tool": "find"}',
    "a definition of a tool": '{"name": "find", "description": "Finds.", "parameters": {"type": "object"}}',
    "broken arguments before the name": '{"arguments": {"a": x y}, "tool": "find"}',
    "infinite arguments before the name": '{"arguments": {"a": Infinity}, "tool": "find"}',
    "deep arguments before the name": '{"arguments": {"a": ' + "[" * 200 + "]" * 200 + '}, "tool": "find"}',
    "in backticks": 'Write `{"tool": "find", "arguments": {}}` or ``<tool_call>{"tool":"find","arguments":{}}``.',
    "in a block of code": '```python\nx = {"tool": "find", "arguments": {}}\n```\nThat is all.',
    "in an example of a call": '````md\nLike this:\n```json\n{"tool": "find", "arguments": {}}\n```\n````',
    "a block with words on its first line": '```python title="x y"\n\n{"tool": "find", "arguments": {}}\n```',
    "code": 'f(x) = {y}; a[0] < b; `c` {"k": [1, {"l": 2}]} {} [] <b>\n\n[link](url) ```x``` {{x}}',
    "not quite tags": "<tool_callx> <tool> </tool_call> <thin> [TOOL_CALLS] <function=find>{}",
    "thoughts without an end": '<thinking>so <tool_call>{"name":"find","arguments":{}}</tool_call>',
    "the beginning of a call": '<tool_call>\n{"name": "find", "argum',
    "white space": "  \n a \n\n b  \n ",
}
