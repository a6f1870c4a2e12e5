"""One call of a model under the rules about tools."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.decision import PASS, Answer, Block, Decision, Pass
from ...core.events import Event
from ...core.exchange import Exchange, Request
from ...core.identity import Identity
from ...core.stage import Visit
from ...core.surface import Finding
from ...stores.runs import Ran, Runs, Whose
from ...wire.conversation import Asked, Tool
from .asked import Offer, earlier, turn
from .held import Held
from .pins import changed
from .rules import Course
from .told import DEFINITIONS, PIN, finding
from .watching import Watching

if TYPE_CHECKING:
    from .stage import Tools

_DEFAULT_TENANT = "default"
# Of the tools that OpenAI has built into Responses (`shell`, `apply_patch`, `computer`), calls hold no name.
_NAMED = ("function", "custom")


class ToolsVisit(Visit):
    """Without `watching` the reply passes: it has been decided whole."""

    def __init__(self, stage: "Tools", exchange: Exchange) -> None:
        self._stage, self._exchange = stage, exchange
        self._rules = stage.rules_for(_with_tenant(exchange))
        self._watching: Watching | None = None

    async def request(self, request: Request) -> Decision:
        stage, document = self._stage, request.document
        view = stage.views.get(self._exchange.endpoint)
        if view is None or not isinstance(document, dict):
            # A reply that the provider has kept: what it calls has been counted when it was made.
            self._watch(Offer(), Course(Ran(), ()))
            return PASS
        asked = view.asked(document)
        found = self._changed_tools(asked)
        offer, course = Offer.of(asked, document), self._course(asked, document)
        if found and stage.config.pin == "block":
            # In shadow there is a reply all the same.
            self._watch(offer, course)
            return Block(PIN, DEFINITIONS, found)
        if request.port is None or not self._holds(offer, asked):
            self._watch(offer, course)
            return Pass(found) if found else PASS
        held = Held(stage, self._exchange, view, offer, self._rules, course, [*found])
        decision = await held.decide(request.port, document)
        if isinstance(decision, Answer) and decision.heard.document is None:
            # It broke off, or was ended further in: what it calls has not been decided.
            self._watch(offer, course)
        return decision

    def feed(self, event: Event) -> Sequence[Event]:
        return (event,) if self._watching is None else self._watching.feed(event)

    def _watch(self, offer: Offer, course: Course) -> None:
        self._watching = Watching(self._stage.config, self._rules, offer, course)

    # --- what is known before the model is asked ---

    def _holds(self, offer: Offer, asked: Asked) -> bool:
        """Whether a reply may have to be denied, or asked for again: all others go through as they come."""
        config = self._stage.config
        if offer.names_none:
            return False
        if config.stream == "pass" and asked.streams:
            if self._exchange.endpoint != "responses":
                return False
            return any(self._rules.may_deny(name) for name, tool in offer.tools.items() if _is_nameless(tool))
        if offer.tools and ("repair" in (config.on_unknown, config.on_invalid) or config.on_invalid == "deny"):
            return True
        return offer.choice.kind != "none" and self._may_deny(offer)

    def _may_deny(self, offer: Offer) -> bool:
        """The names of a server's tools are not known before they are called."""
        return (offer.approvals and self._rules.may_deny_any) or any(map(self._rules.may_deny, offer.tools))

    def _changed_tools(self, asked: Asked) -> tuple[Finding, ...]:
        pin = self._stage.config.pin
        if pin == "off" or not asked.tools:
            return ()
        pins = self._runs.pins(_whose(self._exchange, self._exchange.identity.session))
        names = changed(pins, asked.tools, follow=pin == "flag")
        return tuple(finding(PIN, "changed", DEFINITIONS) for _ in names)

    def _course(self, asked: Asked, document: dict[str, Any]) -> Course:
        """What the run has called, as the request says and as is remembered; nothing where no rule asks."""
        if not self._rules.remembers:
            return Course(Ran(), ())
        ran = self._runs.run(_whose(self._exchange, self._exchange.identity.run))
        ran.begin(turn(document))
        return Course(ran, earlier(asked))

    @property
    def _runs(self) -> Runs:
        kept = self._exchange.runs
        return kept if isinstance(kept, Runs) else self._stage.runs


def _is_nameless(tool: Tool) -> bool:
    """Whether a stream does not say by name that this tool is called."""
    kind = tool.definition.get("type") if isinstance(tool.definition, dict) else None
    return kind not in _NAMED


def _with_tenant(exchange: Exchange) -> Identity:
    """Where nobody asks whose an exchange is, its tenant is known all the same."""
    who = exchange.identity
    return who if who.tenant == exchange.tenant else Identity(exchange.tenant, agent=who.agent)


def _whose(exchange: Exchange, name: str) -> Whose:
    """Who has no tenant of their own are told apart by their keys: a name of a run is not a secret."""
    owner = exchange.tenant if exchange.tenant != _DEFAULT_TENANT else f"{exchange.tenant}/{exchange.identity.key}"
    return owner, name
