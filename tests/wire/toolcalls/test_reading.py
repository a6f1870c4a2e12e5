import json
import time

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
    assert Misnamed("nope") not in read(PROMPT, TOOLS, '{"name": "nope", "arguments": [1]}')


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


def test_white_space_that_is_too_long_is_said() -> None:
    text = f'a{" " * 2500}{{"tool":"find","arguments":{{}}}}'
    pieces = read(PROMPT, TOOLS, text)
    assert said(pieces) == "a" + " " * 2000
    assert fed(list(text)) == pieces


FLOODS = {
    "braces": "{" * 32_000,
    "keys": '{"' * 12_000,
    "fences": "```" * 10_000,
    "fence lines": "```\n" * 8_000,
    "tags": "<tool_call>" * 3_000,
    "brackets": "[" * 32_000,
    "lists": "[{" * 12_000,
    "deep arguments": '{"tool":"find","arguments":{"a":' + "[" * 32_000,
    "deep arguments before the name": '{"arguments":{"a":' + "[" * 32_000,
    "envelopes": '{"tool":"find","a' * 2_000,
    "quotes": '{"tool":"find","arguments":{"a":"' + '" ' * 12_000,
    "space behind a quote": '{"tool":"find","arguments":{"a":"x"' + " " * 32_000,
    "a key": '{"tool":"find","arguments":{"' + "x" * 32_000,
    "line ends in a parameter": "<function=find><parameter=a>" + "\n<" * 12_000,
    "space": " " * 32_000,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
@pytest.mark.parametrize("size", [20, 10_000_000])
def test_floods_take_linear_time(flood: str, size: int) -> None:
    def cost(text: str) -> float:
        begun = time.process_time()
        fed([text[at : at + size] for at in range(0, len(text), size)], dialect="hermes")
        return time.process_time() - begun

    # Four times the text; what is quadratic takes sixteen times as long. The quickest of three, as machines are busy.
    short, long = flood[: len(flood) // 4], flood
    assert min(cost(long) for _ in range(3)) < 9 * min(cost(short) for _ in range(3)) + 0.02


def test_halves_of_surrogate_pairs() -> None:
    text = 'a \ud83d\ude00 {"tool":"find","arguments":{"q":"\ud83d\ude00 \ud83d"}}'
    pieces = read(PROMPT, TOOLS, text)
    assert pieces == fed(list(text))
    assert said(pieces) == "a 😀"
    assert calls(pieces) == [("find", {"q": "😀 \ufffd"})]
