"""What the model is asked. It has 135 million parameters: it does what it has just seen done, and little else.

So most conversations have an earlier turn, as those of agents do; one has none, and shows what is then left.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

Message = dict[str, Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """`tools` that may be called, or the `form` that the answer shall have; `model`: the same as a class."""

    name: str
    messages: tuple[Message, ...]
    tools: tuple["Tool", ...] = ()
    form: Schema | None = None
    model: type[BaseModel] | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: Schema


def having(**properties: Schema) -> Schema:
    """The schema of an object with these, all of them."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def closed(**properties: Schema) -> Schema:
    """The same with no others."""
    return {**having(**properties), "additionalProperties": False}


WEATHER = Tool("get_weather", "Get the current weather in a city.", having(city={"type": "string"}))
TIMER = Tool("set_timer", "Set a timer.", having(minutes={"type": "integer"}))
SEARCH = Tool("search", "Search the web.", having(query={"type": "string"}))


class Person(BaseModel):
    name: str
    age: int


class Review(BaseModel):
    sentiment: Literal["positive", "negative"]


def says(content: str) -> Message:
    return {"role": "user", "content": content}


def answers(content: str) -> Message:
    return {"role": "assistant", "content": content}


def used(tool: Tool, question: str, arguments: Any, result: str, answer: str) -> tuple[Message, ...]:
    """An earlier turn with a call in it."""
    function = {"name": tool.name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{tool.name}", "type": "function", "function": function}
    return (
        says(question),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": result},
        answers(answer),
    )


LIMA = used(
    WEATHER,
    "What is the weather in Lima?",
    {"city": "Lima"},
    "18 degrees, cloudy",
    "It is 18 degrees and cloudy in Lima.",
)
TWENTY = used(TIMER, "Set a timer for 20 minutes.", {"minutes": 20}, "done", "The timer is set to 20 minutes.")
EVEREST = used(
    SEARCH,
    "Search for the highest mountain.",
    {"query": "highest mountain"},
    "Mount Everest",
    "The highest mountain is Mount Everest.",
)
PARIS = says("What is the weather in Paris?")

CALLS = (
    Task("weather", (*LIMA, PARIS), (WEATHER,)),
    Task("timer", (*TWENTY, says("Set a timer for 5 minutes.")), (TIMER,)),
    Task("search", (*EVEREST, says("Search for cheap flights to Rome.")), (SEARCH,)),
    Task("one of two", (*TWENTY, *LIMA, PARIS), (WEATHER, TIMER)),
    Task("first turn, required", (PARIS,), (WEATHER,), required=True),
)

PERSON = closed(name={"type": "string"}, age={"type": "integer", "minimum": 0})
REVIEW = closed(sentiment={"enum": ["positive", "negative"]})
COLOURS: Schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}

MARIA = says("Extract the name and the age: Maria is 54 years old.")
MARIA_IS = '{"name": "Maria", "age": 54}'
ANNA = says("Extract the name and the age: Anna is 31 years old.")
LOVED = says("Is this review positive or negative? I love this phone.")
BROKE = says("Is this review positive or negative? It broke.")
FLAG = says("Which colours are in this text? A white flag with a green tree.")
CAR = says("Which colours are in this text? A red car and a blue boat.")

FORMS = (
    Task("person", (MARIA, answers(MARIA_IS), ANNA), form=PERSON, model=Person),
    Task("review", (LOVED, answers('{"sentiment": "positive"}'), BROKE), form=REVIEW, model=Review),
    Task("colours", (FLAG, answers('["white", "green"]'), CAR), form=COLOURS),
    Task(
        "fenced before", (MARIA, answers(f"Here it is:\n\n```json\n{MARIA_IS}\n```"), ANNA), form=PERSON, model=Person
    ),
    Task("first turn", (ANNA,), form=PERSON, model=Person),
)
