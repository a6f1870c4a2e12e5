"""What the small model really said is judged right."""

import pytest

from .tasks import CALLS, FORMS
from .verdict import Got, is_right, is_right_alone

WEATHER, TIMER, *_ = CALLS
PERSON, *_ = FORMS


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ('```tool_call\n{"tool":"get_weather","arguments":{"city":"Paris"}}\n```', True),
        ('{"tool":"get_weather","arguments":{"city":"Paris"}}', True),
        ('{"tool":"weather","arguments":{"city":"Paris"}}', False),
        ('{"tool":"get_weather","arguments":{"location":"Paris"}}', False),
        ('The JSON is:\n{"tool":"get_weather","arguments":{"city":"Paris"}}', False),
        ("The weather in Paris is quite unique.", False),
    ],
)
def test_a_call_in_the_models_own_words(said: str, right: bool) -> None:
    assert is_right_alone(WEATHER, said) is right


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ('{"name":"Anna","age":31}', True),
        ('{"name":"Anna","age":"31"}', False),
        ('{"type":"object","properties":{"name":"Anna","age":31}}', False),
        ('```json\n{"name":"Anna","age":31}\n```', False),
        ("The name of Anna is Anna.", False),
    ],
)
def test_an_object_in_the_models_own_words_and_as_a_client_gets_it(said: str, right: bool) -> None:
    assert is_right_alone(PERSON, said) is right
    assert is_right(PERSON, Got(text=said)) is right


def test_calls_that_a_client_gets() -> None:
    assert is_right(TIMER, Got((("set_timer", '{"minutes":5}'),)))
    assert not is_right(TIMER, Got((("set_timer", '{"minutes":"5"}'),)))
    assert not is_right(TIMER, Got((("set_timer", '{"minutes":5}'), ("timer", "{}"))))
    assert not is_right(TIMER, Got(text="The timer is set."))
    assert not is_right(TIMER, Got((("set_timer", '{"minutes":5}'),), error="400"))
