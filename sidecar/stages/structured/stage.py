"""The stage: replies have the form that was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ...core.decision import PASS, Decision, Pass, Refuse
from ...core.events import Event
from ...core.exchange import Exchange, Request
from ...core.stage import Visit
from ...errors import InvalidRequest
from ...text.schemas import SchemaError
from ...wire.conversation import Asked, Format, View
from ...wire.forms import instruct
from .config import SchemaConfig, StructuredConfig
from .form import Form
from .held import ASKED, RULE, Held, finding
from .watching import Watching

# The field that names the form, as an error calls it.
_FIELDS: Final = {
    "chat": "response_format",
    "responses": "text.format",
    "messages": "output_config.format",
    "ollama_chat": "format",
}


@dataclass(frozen=True, slots=True)
class Own:
    """A form of the policy's own, and whom it concerns."""

    config: SchemaConfig
    form: Form

    @classmethod
    def of(cls, config: SchemaConfig) -> "Own":
        # Not strict: providers accept only some schemas so, and the reply is checked here in any case.
        return cls(config, Form.of(Format(config.name, config.form, strict=False)))

    def concerns(self, agent: str, model: str) -> bool:
        return _fits(self.config.agents, agent) and _fits(self.config.models, model)


def _fits(globs: Sequence[str] | None, name: str) -> bool:
    return globs is None or any(fnmatchcase(name, glob) for glob in globs)


@dataclass(frozen=True, slots=True)
class Structured:
    """`views` are those of the APIs that hold conversations, `max_output` bounds a reply in an error."""

    config: StructuredConfig
    own: tuple[Own, ...]
    views: Mapping[str, View]
    max_output: int
    name: str = RULE

    @classmethod
    def of(cls, config: StructuredConfig, views: Mapping[str, View], max_output: int) -> "Structured":
        """Raises SchemaError."""
        return cls(config, tuple(map(Own.of, config.schemas)), views, max_output)

    def open(self, exchange: Exchange) -> Visit:
        return StructuredVisit(self, exchange)

    @property
    def enforces(self) -> bool:
        return self.config.mode == "enforce"

    def own_form(self, agent: str, model: str) -> Form | None:
        return next((own.form for own in self.own if own.concerns(agent, model)), None)


class StructuredVisit(Visit):
    """One call. Without `watching` its reply passes: no form is asked for, or it has been held."""

    def __init__(self, stage: Structured, exchange: Exchange) -> None:
        self._stage, self._exchange = stage, exchange
        self._watching: Watching | None = None

    async def request(self, request: Request) -> Decision:
        stage, view = self._stage, self._stage.views.get(self._exchange.endpoint)
        if view is None or not isinstance(request.document, dict):
            return PASS
        asked = view.asked(request.document)
        try:
            form = self._form(asked, request)
        except SchemaError as error:
            return self._unusable(error)
        if form is None:
            return PASS
        if request.port is None or (stage.config.stream == "pass" and asked.streams):
            self._watching = Watching(form)
            return PASS
        held = Held(view, form, stage.config.max_repair_attempts, stage.config.max_quoted, stage.max_output)
        return await held.decide(request.port, request.document)

    def feed(self, event: Event) -> Sequence[Event]:
        return (event,) if self._watching is None else self._watching.feed(event)

    def finish(self) -> Sequence[Event]:
        return () if self._watching is None else self._watching.finish()

    def _form(self, asked: Asked, request: Request) -> Form | None:
        """What the request asks for, else what the policy does; then the request is told of it."""
        stage, named = self._stage, asked.format
        form = Form.of(named) if named else stage.own_form(self._exchange.identity.agent, request.model)
        if form is None or not stage.enforces:
            return form
        if named is None:
            asked.set_format(form.asked)
        told = stage.config.instructions == "always" and instruct(asked, form.asked)
        if told or named is None:
            request.rewritten()
        return form

    def _unusable(self, error: SchemaError) -> Decision:
        if not self._stage.enforces:
            return Pass((finding("unusable", ASKED),))
        message = f"The schema of the reply's form cannot be used: {error}."
        refused = InvalidRequest(message, param=_FIELDS.get(self._exchange.endpoint))
        return Refuse(RULE, refused, (finding("unusable", ASKED),))
