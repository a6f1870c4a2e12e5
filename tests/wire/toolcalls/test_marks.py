"""No text that is data can end its frame, its turn or a call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.wire import jsondoc
from sidecar.wire.toolcalls.marks import _MARK, bounded, json_text, neutral

from ..fuzz import examples

MARKS = (
    *("<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|start_header_id|>", "<|channel|>", "<|call|>", "<|endoftext|>"),
    *("<｜tool▁calls▁begin｜>", "<｜end▁of▁sentence｜>"),
    *("[INST]", "[/INST]", "[TOOL_CALLS]", "[/TOOL_RESULTS]", "[SYSTEM_PROMPT]", "<<SYS>>", "<</SYS>>", "<s>", "</s>"),
    *("<start_of_turn>", "<end_of_turn>", "<eos>", "<function=find>", "</function>", "<parameter=q>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_result>", "</ TOOL_RESULT >", "<tool_result tool='x'>"),
    *("<think>", "</think>", "<tools>", "```tool_call", "````\ntool_call"),
)
# The same to a tokenizer that brings its text to NFKC first, or to a model that looks past what nobody sees.
DISGUISED = (
    *(
        "＜/tool_result＞",
        "﹤/tool_result﹥",
        "＜|im_end|＞",
        "<｜User|>",
        "［INST］",
        "｀｀｀tool_call",
        "</ｔｏｏｌ_call>",
    ),
    *(
        "</tool\u200b_result>",
        "<\u2060/tool_result>",
        "<|im\u00ad_end|>",
        "<|im_end\x00|>",
        "<t\u200dhink>",
        "</\ufefftool_call>",
    ),
    *(
        "</Tool-Result>",
        "< / tool result >",
        "<" + " " * 99 + "/TOOL_RESULT>",
        "<\u00a0/tool_call>",
        "</tool_result\n>",
    ),
    "````" + " " * 99 + "tool_call",
)
ORDINARY = (
    *("a < b > c", "[REDACTED:email]", "[1, 2]", "<b>bold</b>", "```json\n{}\n```", "x|y", "<https://x.test/|y>"),
    *("i<|j", "INST", "[TODO]", "<section>", "the tool_call field", "<thinker>", "{'a': [INST, None]}"),
)


@pytest.mark.parametrize("mark", [*MARKS, *DISGUISED])
def test_marks_are_broken(mark: str) -> None:
    said = neutral(f"before {mark} after")
    assert mark not in said
    assert said.startswith("before ")
    assert said.endswith(" after")
    assert len(said) == len(f"before {mark} after")
    assert not set("<[`＜﹤［｀") & set(said)


@pytest.mark.parametrize("text", ORDINARY)
def test_other_text_stays(text: str) -> None:
    assert neutral(text) == text
    assert json_text({"a": text}) == json.dumps({"a": text}, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("mark", [*MARKS, *DISGUISED])
def test_in_json_a_mark_is_escaped_and_means_the_same(mark: str) -> None:
    said = json_text({"z": f"x{mark}", "a": [1.50, mark]})
    assert mark not in said
    assert neutral(said) == said
    assert json.loads(said) == {"z": f"x{mark}", "a": [1.5, mark]}
    assert said.startswith('{"z":')


def test_numbers_keep_their_digits() -> None:
    assert json_text(jsondoc.decode(b'{"b": 1.50, "a": 12345678901234567890}')) == '{"b":1.50,"a":12345678901234567890}'


@given(
    st.lists(st.sampled_from((*MARKS, *DISGUISED, *"<>|[]/`｜＜［ \u200b", "tool_call", "INST", "x")), max_size=12).map(
        "".join
    )
)
@examples(300)
def test_no_mark_is_left_or_made(text: str) -> None:
    said = neutral(text)
    assert _MARK.search(said) is None
    assert neutral(said) == said
    assert len(said) == len(text)
    assert json.loads(json_text(text)) == text
    assert neutral(json_text(text)) == json_text(text)


@pytest.mark.parametrize("text", ["<" + " " * 400_000, "`" * 400_000, "<|" * 200_000, "<tool_" * 60_000, "[" * 400_000])
def test_looking_for_marks_is_linear(text: str) -> None:
    assert neutral(text) == text


def test_a_long_text_says_how_long_it_was() -> None:
    assert bounded("abc", 3) == "abc"
    assert bounded("abcdef", 3) == "abc\n[cut here: the first 3 of 6 characters]"
