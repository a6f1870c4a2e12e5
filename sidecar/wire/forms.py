"""The form of a reply said in words: for models whose servers do not take it as a field, and beside the field."""

from typing import Final

from .conversation import Asked, Format
from .toolcalls.marks import json_text

_OF_SCHEMA: Final = (
    "## Form of the answer\n\n"
    "Your final answer must be one JSON value that is valid against this JSON Schema, and nothing else: no words "
    "before or after it and no code fence. This concerns the final answer only, not calls of tools.\n\n"
)
_OF_ANY: Final = (
    "## Form of the answer\n\n"
    "Your final answer must be one JSON object and nothing else: no words before or after it and no code fence. This "
    "concerns the final answer only, not calls of tools."
)


def instruction(form: Format) -> str:
    """What a model is told of the form that its answer must have. The same form always gives the same text.

    The schema stands in it once, as compact JSON in the order of its own keys, in which nothing can end the turn.
    """
    if form.schema is None:
        return _OF_ANY
    return _OF_SCHEMA + json_text(form.schema)


def instruct(asked: Asked, form: Format) -> bool:
    """Puts the instruction at the end of a request's system text; False where it is there already."""
    said = instruction(form)
    if said in asked.system:
        return False
    asked.instruct(said)
    return True


def spoken(asked: Asked, takes: str, *, objects: bool = True) -> bool:
    """A request for a target that does not take every form: what it does not take is said in words.

    `takes` is json_object or none; `objects` is False where the API has no word for any JSON object. True where the
    request has changed.
    """
    form = asked.format
    if form is None or (takes == "json_object" and objects and form.schema is None):
        return False
    instruct(asked, form)
    asked.set_format(Format("", None) if takes == "json_object" and objects and _is_object(form) else None)
    return True


def _is_object(form: Format) -> bool:
    """Whether every value of the form is an object: a server held to objects could give no other."""
    return form.schema is None or (isinstance(form.schema, dict) and form.schema.get("type") == "object")
