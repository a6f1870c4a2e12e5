"""How much a request lets a reply hold."""

from typing import Any

import pytest

from sidecar.core.usage import MOST_TOKENS
from sidecar.wire import chat, jsondoc
from sidecar.wire.apis import APIS
from sidecar.wire.asking import Asked, asked

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("api", "document", "most"),
    [
        ("chat", {"max_tokens": 10}, 10),
        ("chat", {"max_completion_tokens": 20}, 20),
        ("chat", {"max_completion_tokens": 20, "max_tokens": 30}, 30),
        ("chat", {"max_output_tokens": 5}, None),
        ("completions", {"max_tokens": 10}, 10),
        ("responses", {"max_output_tokens": 5}, 5),
        ("responses", {"max_tokens": 5}, None),
        ("messages", {"max_tokens": 10}, 10),
        ("ollama_chat", {"options": {"num_predict": 7}}, 7),
        ("ollama_generate", {"options": {"num_predict": 7}, "num_predict": 9}, 7),
        ("ollama_chat", {"options": {"num_predict": -1}}, None),
        ("ollama_chat", {"options": [7]}, None),
        ("embeddings", {"input": "a"}, 0),
        ("other", {"max_tokens": 3, "options": {"num_predict": 8}}, 8),
        ("other", {}, None),
    ],
)
def test_the_bound_that_an_api_obeys(api: str, document: Document, most: int | None) -> None:
    assert asked(document, api).max_tokens == most


@pytest.mark.parametrize("value", [0, -5, 1.5, "100", True, None, [], {}])
def test_a_bound_that_is_none_is_not_taken_for_one(value: Any) -> None:
    assert asked({"max_tokens": value, "n": value}, "chat") == Asked(None, 1)


def test_what_no_reply_can_hold_is_cut() -> None:
    assert asked({"max_tokens": 10**30, "n": 10**30}, "chat")[:2] == (MOST_TOKENS, MOST_TOKENS)


@pytest.mark.parametrize(
    ("api", "document", "choices"),
    [
        ("chat", {"n": 3}, 3),
        ("chat", {"n": 3, "best_of": 5}, 3),
        ("completions", {"n": 2, "best_of": 5}, 5),
        ("completions", {"n": 2, "prompt": ["a", "b", "c"]}, 6),
        ("completions", {"prompt": [1, 2, 3]}, 1),
        ("completions", {"prompt": [[1, 2], [3]]}, 2),
        ("completions", {"prompt": []}, 1),
        ("embeddings", {"input": ["a", "b"]}, 1),
        ("images", {"n": 4}, 4),
        ("messages", {"n": 4}, 1),
        ("responses", {"n": 4}, 1),
    ],
)
def test_as_many_replies_as_are_charged(api: str, document: Document, choices: int) -> None:
    assert asked(document, api).choices == choices


def test_all_choices_together() -> None:
    assert asked({"n": 3, "max_tokens": 100}, "chat").most == 300
    assert asked({"n": 3}, "chat").most is None


@pytest.mark.parametrize(("field", "given", "ids"), [("prompt", [1, 2, 3], 3), ("input", [[1, 2], [3]], 3)])
def test_tokens_that_are_given_as_numbers(field: str, given: Any, ids: int) -> None:
    assert asked({field: given}).ids == ids
    assert asked({field: "1 2 3"}).ids == 0
    assert asked({field: ["a", "b"]}).ids == 0


def test_messages_and_items_are_counted() -> None:
    said = {"role": "user", "content": "hi"}
    assert asked({"messages": [said, said]}, "chat").messages == 2
    assert asked({"input": [said]}, "responses").messages == 1
    assert asked({"input": "hi"}, "responses").messages == 0


def test_definitions_are_part_of_the_prompt_with_their_keys() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"city": {"type": "string"}}}}}
    document = {"tools": [tool], "response_format": {"type": "json_object"}, "text": "none"}
    definitions = asked(document, "chat").definitions
    assert jsondoc.decode(definitions.encode()) == [[tool], {"type": "json_object"}]
    assert asked({}, "chat").definitions == ""


@pytest.mark.parametrize("document", [[], "x", None, 7])
def test_a_body_that_is_no_object_asks_for_nothing(document: Any) -> None:
    assert asked(document) == Asked()


@pytest.mark.parametrize("wire", APIS, ids=lambda wire: wire.NAME)
def test_every_api_says_how_it_is_bounded(wire: Any) -> None:
    bounded = {"max_tokens": 9, "max_completion_tokens": 9, "max_output_tokens": 9, "options": {"num_predict": 9}}
    silent = ("embeddings", "moderations", "count_tokens", "ollama_embed")
    assert asked(bounded, wire.NAME).max_tokens == (0 if wire.NAME in silent else 9)


def test_reading_changes_nothing() -> None:
    document = {"messages": [], "max_tokens": 3, "tools": [{"a": 1}]}
    before = jsondoc.encode(document)
    asked(document, chat.NAME)
    assert jsondoc.encode(document) == before
