"""The form that a reply must have, and whether one has it."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from ...text.extract import Found, NotJson, extract, loads
from ...text.schemas import Checker, SchemaFault
from ...wire import jsondoc
from ...wire.conversation import Format, Replied

_NO_OBJECT: Final = SchemaFault("", "it is not a JSON object")
_ECHO: Final = SchemaFault("", "it is the schema itself, not a value that fits it")


@dataclass(frozen=True, slots=True)
class Form:
    """With a `checker` of None any JSON object will do."""

    asked: Format
    checker: Checker | None
    _echo: Any = field(repr=False)

    @classmethod
    def of(cls, asked: Format) -> "Form":
        """Raises SchemaError."""
        if asked.schema is None:
            return cls(asked, None, None)
        return cls(asked, Checker.of(asked.schema), _parsed(asked.schema))

    def faults(self, value: Any) -> tuple[SchemaFault, ...]:
        if self.checker is None:
            return () if isinstance(value, dict) else (_NO_OBJECT,)
        if value == self._echo:
            return (_ECHO,)
        return self.checker.faults(value)


def _parsed(schema: Any) -> Any:
    """As a reply would be that says the schema again. A boolean is no such reply."""
    try:
        return loads(jsondoc.encode(schema).decode()) if isinstance(schema, dict) else None
    except NotJson:
        return None


class Judged(NamedTuple):
    """One choice of a reply. `passes`: nothing of it is to be changed; `found`: its JSON is `text`, not all that it
    says; `cut`: it has ended too early to be right; `wrong`: `text` is what it says.
    """

    choice: int
    word: Literal["passes", "found", "cut", "wrong"]
    text: str = ""
    faults: tuple[SchemaFault, ...] = ()


def judged(form: Form, reply: Replied) -> list[Judged]:
    """Every choice of a reply, in order. One with calls is not the final answer yet."""
    calling = {call.choice for call in reply.calls}
    texts = reply.texts or {0: ""}
    return [
        Judged(choice, "passes") if choice in calling else _judged(form, reply, choice, texts[choice])
        for choice in sorted(texts)
    ]


def _judged(form: Form, reply: Replied, choice: int, said: str) -> Judged:
    ending = reply.ending(choice)
    if reply.refused(choice) or ending in ("filtered", "calls") or (ending == "other" and not said):
        return Judged(choice, "passes")
    if ending == "length":
        # What is cut is never completed: it is right only if it is right as it stands.
        return Judged(choice, "passes" if is_right(form, said) else "cut")
    outcome = extract(said, form.faults)
    if isinstance(outcome, Found):
        as_it_is = outcome.text == said.strip(_JSON_SPACE)
        return Judged(choice, "passes" if as_it_is else "found", outcome.text)
    return Judged(choice, "wrong", said, outcome.faults)


_JSON_SPACE: Final = " \t\r\n"


def is_right(form: Form, said: str) -> bool:
    """Whether a text is the JSON that was asked for, and nothing else."""
    try:
        return not form.faults(loads(said.strip(_JSON_SPACE)))
    except NotJson:
        return False
