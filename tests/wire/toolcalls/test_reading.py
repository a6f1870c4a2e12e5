import json
import sys
from itertools import product

import pytest

from sidecar.wire.toolcalls.dialects import DIALECTS
from sidecar.wire.toolcalls.pieces import joined
from sidecar.wire.toolcalls.reading import Argued, Begun, Ended, Misnamed, Piece, Reader, Said, Thought, read

from .envelopes import REPLIES, TEXTS, TOOLS, Reply

PROMPT = DIALECTS["prompt"]


def said(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Said))


def calls(pieces: list[Piece]) -> list[tuple[str, object]]:
    """The calls that ended, with their arguments."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    made = []
    for piece in pieces:
        match piece:
            case Begun(index=index, name=name):
                assert index == len(names)
                names[index] = name
            case Argued(index=index, text=text):
                arguments[index] = arguments.get(index, "") + text
            case Ended(index=index):
                made.append((names[index], json.loads(arguments[index])))
            case _:
                pass
    return made


def fed(texts: list[str], *, dialect: str = "prompt", cut: bool = False) -> list[Piece]:
    reader = Reader(DIALECTS[dialect], TOOLS)
    pieces = [piece for text in texts for piece in reader.feed(text)]
    return joined([*pieces, *reader.finish(cut=cut)])


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_replies(reply: Reply) -> None:
    pieces = read(DIALECTS[reply.dialect], TOOLS, reply.text)
    assert calls(pieces) == list(reply.calls)
    assert said(pieces) == reply.said
    assert fed(list(reply.text), dialect=reply.dialect) == pieces


@pytest.mark.parametrize("reply", [reply for reply in REPLIES.values() if reply.dialect == "prompt"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reads_plain_envelopes(dialect: str, reply: Reply) -> None:
    pieces = read(DIALECTS[dialect], TOOLS, reply.text)
    assert (calls(pieces), said(pieces)) == (list(reply.calls), reply.said)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_what_is_no_call_is_said_as_it_is(text: str) -> None:
    for pieces in (read(PROMPT, TOOLS, text), fed(list(text)), fed(list(text), cut=True)):
        assert said(pieces) == text
        assert not calls(pieces)


def test_numbers_are_kept_to_the_digit() -> None:
    digits = "9" * 400
    (_, argued, _) = read(PROMPT, TOOLS, f'{{"tool":"find","arguments":{{"a": {digits}, "b": 1.10e5, "c": -0}}}}')
    assert argued == Argued(0, f'{{"a":{digits},"b":1.10e5,"c":-0}}')


def test_an_unknown_name_is_told() -> None:
    text = 'I call {"tool": "nope", "arguments": {}} now.'
    pieces = read(PROMPT, TOOLS, text)
    assert Misnamed("nope") in pieces
    assert said(pieces) == text
    assert Misnamed("nope") in read(DIALECTS["mistral"], TOOLS, "[TOOL_CALLS]nope{}")
    assert Misnamed("nope") in read(DIALECTS["hermes"], TOOLS, "<function=nope><parameter=a>{}</parameter></function>")
    assert Misnamed("nope") in read(PROMPT, TOOLS, '<tool_call>{"name": "nope"}</tool_call>')
    assert Misnamed("nope") not in read(PROMPT, TOOLS, '{"name": "nope", "arguments": [1]}')
    assert Misnamed("nope") not in read(PROMPT, TOOLS, '{"name": "nope"}')


def test_a_list_with_an_unknown_name_in_it() -> None:
    pieces = read(PROMPT, TOOLS, '[{"tool":"get","arguments":{}}, {"tool":"nope","arguments":{}}]')
    assert calls(pieces) == [("get", {})]
    assert said(pieces) == ', {"tool":"nope","arguments":{}}]'


def test_thoughts_count_where_they_shall() -> None:
    text = '<think>Now <tool_call>{"name":"find","arguments":{}}</tool_call></think>'
    assert calls(read(PROMPT, TOOLS, text, in_thoughts=True)) == [("find", {})]
    assert calls(read(PROMPT, TOOLS, text)) == []


def test_a_call_behind_thoughts() -> None:
    pieces = read(PROMPT, TOOLS, '<think>{"tool":"get","arguments":{}}</think>\n\n{"tool":"find","arguments":{}}')
    assert calls(pieces) == [("find", {})]
    assert said(pieces) == '<think>{"tool":"get","arguments":{}}</think>'


def test_harmony_thinks() -> None:
    reply = REPLIES["GPT-OSS"]
    assert read(DIALECTS["harmony"], TOOLS, reply.text)[0] == Thought("Need {x}.")


def test_marks_of_the_model_count_in_code_too() -> None:
    text = '```\nsome code\n<tool_call>{"name":"find","arguments":{}}</tool_call>'
    assert calls(read(DIALECTS["hermes"], TOOLS, text)) == [("find", {})]
    assert calls(read(PROMPT, TOOLS, text)) == []


def test_one_call_at_most() -> None:
    text = 'a {"tool":"find","arguments":{}} b {"tool":"get","arguments":{"q":1}} c'
    pieces = read(PROMPT, TOOLS, text, most=1)
    assert calls(pieces) == [("find", {})]
    assert said(pieces) == "a b c"


def test_types_of_parameters_come_from_the_schemas() -> None:
    schema = {"properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}}}
    text = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in (("s", 5), ("n", 6), ("o", "x"), ("t", 7))
    )
    pieces = read(DIALECTS["hermes"], {"find": schema}, f"<function=find>\n{text}</function>")
    assert calls(pieces) == [("find", {"s": "5", "n": 6, "o": "x", "t": 7})]


# --- streams ---


def test_arguments_come_out_while_they_arrive() -> None:
    reader = Reader(PROMPT, TOOLS)
    assert reader.feed('Hi. {"tool": "find", "argu') == [Said("Hi.")]
    assert reader.feed('ments": {') == [Begun(0, "find"), Argued(0, "{")]
    assert reader.feed('"q": "lorem ') == [Argued(0, '"q":"lorem ')]
    assert reader.feed("ipsum") == [Argued(0, "ipsum")]
    assert reader.feed('"') == []
    assert reader.feed("}}") == [Argued(0, '"}'), Ended(0)]


def test_a_parameter_that_is_text_comes_out_while_it_arrives() -> None:
    reader = Reader(DIALECTS["hermes"], TOOLS)
    reader.feed("<tool_call><function=find><parameter=q>\nlorem")
    assert reader.feed(" ipsum") == [Argued(0, " ipsum")]


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ('Ok. {"tool":"find","arguments":{"q":"x', False),
        ('Ok. {"tool":"find","arguments":{"q":"x"', False),
        ('Ok. {"tool":"find","arguments":{"q":"x"}', False),
        ('Ok. {"tool":"find","arguments":{"q":"x"}}', True),
        ('Ok. <tool_call>{"tool":"find","arguments":{"q":"x"}}</too', True),
    ],
)
def test_a_reply_that_is_cut(text: str, ended: bool) -> None:
    pieces = fed([text], cut=True)
    assert pieces == fed(list(text), cut=True)
    assert Begun(0, "find") in pieces
    assert (Ended(0) in pieces) is ended
    assert said(pieces) == "Ok."


def test_a_reply_that_is_cut_before_a_call_is_certain() -> None:
    text = 'Ok.\n<tool_call>\n{"name":"find","arguments":"{'
    assert fed([text], cut=True) == [Said(text)]


def test_broken_beyond_mending_has_no_end() -> None:
    pieces = read(PROMPT, TOOLS, '{"tool":"find","arguments":{"q":"x", ?}} ok')
    assert Begun(0, "find") in pieces
    assert Ended(0) not in pieces
    assert said(pieces).endswith("ok")


PROSE = (
    "We set f(x) = {y}, a[0] = {'b'}, and {\"k\": 1}; see [this](url), `code`, ``more``, <b>bold</b>, 1 < 2.\n"
    '"Quoted", {"name": "John Smith of Somewhere", "age": 3}, {"tool": "hammer"}, [1, {"x": 2}], <tools>, </think>.\n'
    "```python\nprint({'a': [1]})\n```\nEnd [TOOL_CALLS <|x|> <function f>."
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_prose_is_not_held_longer_than_a_word(dialect: str) -> None:
    reader = Reader(DIALECTS[dialect], TOOLS)
    out = 0
    for at, char in enumerate(PROSE, 1):
        out += sum(len(piece.text) for piece in reader.feed(char) if isinstance(piece, Said))
        # The longest here is what may still name a tool: {"name": "John …
        assert at - out <= 10 + 6 * (2 + len("list-all"))
        if PROSE[at - 30 : at].isalnum():
            assert at == out
    assert out + sum(len(piece.text) for piece in reader.finish() if isinstance(piece, Said)) == len(PROSE)


def test_letters_are_said_at_once() -> None:
    reader = Reader(PROMPT, TOOLS)
    assert reader.feed("Hello") == [Said("Hello")]
    assert reader.feed(" ") == []
    assert reader.feed("wor{ld") == [Said(" wor{ld")]
    assert reader.feed("<tool") == []
    assert reader.feed("s>") == [Said("<tools>")]


def test_an_envelope_that_is_too_long_is_text() -> None:
    for size in (65_000, 70_000):
        text = f'{{"arguments":{{"q":"{"x" * size}"}},"tool":"find"}}'
        pieces = read(PROMPT, TOOLS, text)
        assert bool(calls(pieces)) is (size < 65_536)
        assert fed([text[at : at + 1000] for at in range(0, len(text), 1000)]) == pieces
        assert len(said(pieces)) in (0, len(text))


def test_marks_that_are_too_long_are_text() -> None:
    """However they come: what is open in them is open for nobody."""
    envelope = '<tool_call>{"name":"find","arguments":{}}</tool_call>'
    for tags in range(4_679, 4_682):  # around 65,536 characters
        text = "<|python_tag|>" * tags + "<tool_call>" + envelope
        pieces = read(DIALECTS["llama3"], TOOLS, text)
        assert fed([text[at : at + 100] for at in range(0, len(text), 100)], dialect="llama3") == pieces
        assert fed(list(text), dialect="llama3") == pieces
        assert len(calls(pieces)) == 1
        assert said(pieces) == text.removesuffix(envelope)


def test_much_white_space_behind_a_call() -> None:
    text = f'a{{"tool":"find","arguments":{{}}}}{" " * 2500}b {{"tool":"get","arguments":{{}}}}{" " * 2500}'
    text += '{"tool":"get","arguments":{}}c'
    pieces = read(PROMPT, TOOLS, text)
    assert said(pieces) == f"a{' ' * 1000}b c"
    assert fed(list(text)) == pieces
    assert fed([text[at : at + 700] for at in range(0, len(text), 700)]) == pieces


def test_white_space_that_is_too_long_is_said() -> None:
    text = f'a{" " * 2500}{{"tool":"find","arguments":{{}}}}'
    pieces = read(PROMPT, TOOLS, text)
    assert said(pieces) == "a" + " " * 2000
    assert fed(list(text)) == pieces


# All that opens, closes or quotes something, again and again, and what may stand before it.
FLOODS = {
    "braces": "{",
    "keys": '{"',
    "spaced braces": "{ ",
    "quotes": '"',
    "apostrophes": "'",
    "backslashes": "\\",
    "fences": "```",
    "fence lines": "```\n",
    "calls' fences": "```tool_call\n",
    "ticks": "` ",
    "tags": "<tool_call>",
    "closing tags": "</tool_call>",
    "thoughts": "<think>",
    "functions": "<function=find><parameter=q>",
    "python": "<|python_tag|>",
    "mistral": "[TOOL_CALLS]",
    "mistral's names": "[TOOL_CALLS]find[CALL_ID]",
    "deepseek": "<｜tool▁call▁begin｜>find<｜tool▁sep｜>",
    "channels": "<|channel|>",
    "messages": "<|channel|>analysis<|message|>",
    "brackets": "[",
    "lists": "[{",
    "names": '{"tool":',
    "envelopes": '{"tool":"find","a',
    "calls": '{"tool":"find","arguments":{}}',
    "calls that are open": '{"tool":"find","arguments":{',
    "space": " ",
    "lines": "\r\n",
    "halves of pairs": "\ud83d",
}
BEFORE = {
    "nothing": "",
    "a string in arguments": '{"tool":"find","arguments":{"a":"',
    "a closed string in arguments": '<tool_call>{"tool":"find","arguments":{"a":"x"',
    "a key in arguments": '{"tool":"find","arguments":{"',
    "a list in arguments": '{"tool":"find","arguments":{"a":[',
    "a bare word": '<tool_call>{"tool":"find","arguments":{"a":x',
    "arguments before the name": '{"arguments":{"a":["',
    "arguments in a string": '{"name":"find","arguments":"{',
    "no envelope": '{"zzz":"',
    "a parameter": "<function=find><parameter=a>",
    "a call": '<tool_call>{"tool":"find","arguments":{}}',
    "a list of calls": '[TOOL_CALLS][{"tool":"find","arguments":{}}',
    "a block of code": "```python\n",
    "a header": "<|start|>assistant",
}


@pytest.mark.parametrize("size", [7, 10_000_000])
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_floods_come_to_an_end(flood: str, size: int) -> None:
    """None makes a loop that does not, and nothing is lost of what is no call."""
    for at, (before, dialect) in enumerate(product(BEFORE.values(), DIALECTS)):
        # All of them would take minutes: each flood has every dialect and every beginning, but not all of both.
        if (at + len(flood)) % 5:
            continue
        text = before + flood * (2_000 // len(flood))
        pieces = fed([text[at : at + size] for at in range(0, len(text), size)], dialect=dialect)
        if dialect != "harmony" and not any(isinstance(piece, Begun) for piece in pieces):
            assert said(pieces) == text


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_floods_take_linear_time(flood: str) -> None:
    """In calls of functions, which no machine changes: three times the text takes three times of them, not nine."""

    def calls_made(times: int) -> int:
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            fed([before + flood * times for before in BEFORE.values()], dialect="hermes")
        finally:
            sys.setprofile(None)
        return made

    # How deep brackets go makes a difference at the beginning.
    assert calls_made(600) < 4.5 * calls_made(200)


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_long_floods(flood: str) -> None:
    """A look at all of the text for each part of it would be billions of characters."""
    text = '{"tool":"find","arguments":{"a":"x","b":"' + flood * (40_000 // len(flood))
    assert fed([text], dialect="hermes") == fed(
        [text[at : at + 20] for at in range(0, len(text), 20)], dialect="hermes"
    )


def test_halves_of_surrogate_pairs() -> None:
    text = 'a \ud83d\ude00 {"tool":"find","arguments":{"q":"\ud83d\ude00 \ud83d"}}'
    pieces = read(PROMPT, TOOLS, text)
    assert pieces == fed(list(text))
    assert said(pieces) == "a 😀"
    assert calls(pieces) == [("find", {"q": "😀 \ufffd"})]
