"""From the name a client asked for to the targets that can serve it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import translate
from hashlib import blake2b
from math import log
from typing import Any, Final

from ..errors import ModelNotFound
from .targets import Provider, Target
from .waits import Random

ASKED: Final = "*"
"""A target's model that means: the name the client asked for."""


@dataclass(frozen=True, slots=True)
class Params:
    """How a request changes on its way to one target: fields of its top level, dropped, renamed, then set."""

    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.drop or self.rename or self.set)

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """A copy of a request's document as this target gets it. Fields keep their order; a rename never overwrites."""
        taken = document.keys() - set(self.drop)
        names = {old: new for old, new in self.rename.items() if old in taken and new not in taken}
        kept = {names.get(name, name): value for name, value in document.items() if name not in self.drop}
        return {**kept, **self.set}


_UNCHANGED: Final = Params()
# The fields in which APIs take the most tokens of a reply: chat completions' two, Responses', and Anthropic's.
_TOKEN_FIELDS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target of a name. `targets` is the same target with each of its provider's keys.

    Lower `priority` comes first. `context_window` is in tokens, None where unknown; `max_tokens` is the most that a
    reply of the target may have.
    """

    targets: tuple[Target, ...]
    weight: float = 1.0
    priority: int = 1
    context_window: int | None = None
    max_tokens: int | None = None
    params: Params = _UNCHANGED

    @classmethod
    def of(cls, target: Target, **more: Any) -> "Candidate":
        return cls(tuple(Target(provider, target.model) for provider in target.provider.keyed()), **more)

    @property
    def target(self) -> Target:
        return self.targets[0]

    @property
    def name(self) -> str:
        return str(self.target)

    def asked(self, name: str) -> "Candidate":
        """The same for the name a client asked for, where the target says `*`."""
        if self.target.model != ASKED:
            return self
        model = name.removeprefix(f"{self.target.provider.name}/")
        return _replaced(self, tuple(Target(target.provider, model) for target in self.targets))

    def adapt(self, document: dict[str, Any]) -> dict[str, Any]:
        """A request's document as this target gets it, but for the model's name. The same object where it may stay."""
        changed = self.params.apply(document) if self.params else document
        if self.max_tokens is None:
            return changed
        over = {name: self.max_tokens for name in _TOKEN_FIELDS if _exceeds(changed.get(name), self.max_tokens)}
        return {**changed, **over} if over else changed


def _replaced(candidate: Candidate, targets: tuple[Target, ...]) -> Candidate:
    return Candidate(
        targets,
        candidate.weight,
        candidate.priority,
        candidate.context_window,
        candidate.max_tokens,
        candidate.params,
    )


def _exceeds(value: Any, limit: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > limit


# --- the order of one call ---


@dataclass(frozen=True, slots=True)
class Route:
    """What can serve a name: its candidates as the policy lists them, never none."""

    name: str
    candidates: tuple[Candidate, ...]

    def ordered(self, random: Random, session: str | None = None) -> tuple[Candidate, ...]:
        """The candidates in the order in which a call asks them.

        By priority; within one by chance in proportion to the weights, or with `session` always the same for that
        session, in the same proportion over all sessions. A target that goes away moves its own sessions only:
        weighted rendezvous hashing (Schindelhauer, Schomaker: Weighted Distributed Hash Tables, 2005).
        """
        if len(self.candidates) == 1:
            return self.candidates
        drawn = ((one, _drawn(session, one.name) if session is not None else random()) for one in self.candidates)
        scored = [(one.priority, -_score(one.weight, draw), at, one) for at, (one, draw) in enumerate(drawn)]
        return tuple(one for *_, one in sorted(scored, key=lambda entry: entry[:3]))

    def keys(self, candidate: Candidate, random: Random, session: str | None = None) -> tuple[int, ...]:
        """The indexes of a candidate's keys in the order in which a call uses them."""
        count = len(candidate.targets)
        if count == 1:
            return (0,)
        draw = random() if session is None else _drawn(session, candidate.target.provider.name)
        first = int(draw * count) % count
        return tuple((first + step) % count for step in range(count))


def _score(weight: float, draw: float) -> float:
    """Of independent draws in [0, 1) the highest score falls to each weight in proportion; weight 0 comes last."""
    return weight / -log(max(draw, _TINY)) if weight else 0.0


_TINY: Final = 2.0**-53


def _drawn(session: str, name: str) -> float:
    """A number in (0, 1) that belongs to a session and a name, the same in every process."""
    digest = blake2b(f"{session}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return ((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52


# --- names ---


@dataclass(frozen=True, slots=True)
class Routes:
    """The providers in the order of the policy (the first is the default) and the targets of each model name.

    A name may be a glob. `candidates` says more of the targets of a name; without it they stand in order.
    """

    providers: Mapping[str, Provider]
    models: Mapping[str, Sequence[Target]]
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    _globs: tuple[tuple[re.Pattern[str], str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        globs = tuple((re.compile(translate(name)), name) for name in self.models if is_glob(name))
        object.__setattr__(self, "_globs", globs)

    @property
    def default(self) -> Provider:
        return next(iter(self.providers.values()))

    @property
    def by_model(self) -> bool:
        """Whether the model decides where a request goes. If not, bodies need not be read for it."""
        return bool(self.models) or len(self.providers) > 1

    def resolve(self, name: str) -> Target:
        """The first target for a model's name. Raises ModelNotFound, with near names, if the policy lists models.

        A name that is written out comes first, then `provider/model`, then the first glob that fits.
        """
        return self.route(name).candidates[0].target

    def route(self, name: str) -> Route:
        """All that can serve a model's name, as `resolve` finds it. Raises ModelNotFound."""
        if not self.by_model:
            return self._direct(self.default, name, name)
        if name in self.models:
            return self._listed(name, name)
        prefix, slash, model = name.partition("/")
        if slash and model and prefix in self.providers:
            return self._direct(self.providers[prefix], model, name)
        if (entry := self._glob(name)) is not None:
            return self._listed(entry, name)
        if self.models:
            raise ModelNotFound(_unknown(name, self.models), param="model")
        return self._direct(self.default, name, name)

    def serves(self, name: str) -> bool:
        """Whether a name leads anywhere."""
        try:
            self.route(name)
        except ModelNotFound:
            return False
        return True

    def _direct(self, provider: Provider, model: str, name: str) -> Route:
        return Route(name, (Candidate.of(Target(provider, model)),))

    def _listed(self, entry: str, name: str) -> Route:
        listed = self.candidates.get(entry) or in_order(self.models[entry])
        return Route(name, tuple(candidate.asked(name) for candidate in listed))

    def _glob(self, name: str) -> str | None:
        return next((entry for pattern, entry in self._globs if pattern.match(name)), None)


def in_order(targets: Iterable[Target]) -> tuple[Candidate, ...]:
    """Targets that are asked one after the other."""
    return tuple(Candidate.of(target, priority=at) for at, target in enumerate(targets, 1))


def is_glob(name: str) -> bool:
    return not _SIGNS.isdisjoint(name)


_SIGNS: Final = frozenset("*?[")


def _unknown(name: str, models: Mapping[str, Sequence[Target]]) -> str:
    near = get_close_matches(name, models, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else f" Available: {', '.join(sorted(models)[:20])}."
    return f"The model {name[:100]!r} does not exist in this sidecar's policy.{hint}"


# --- GET /v1/models ---

Document = dict[str, Any]


def listed_models(
    routes: Routes, lists: Mapping[str, Any], may: Callable[[str], bool] = lambda name: True, created: int = 0
) -> Document:
    """The answer to `GET /v1/models`: `{"object": "list", "data": [{"id", "object", "created", "owned_by", …}]}`.

    `lists` holds what the providers answered to the same request, by provider; what is no such answer counts as
    empty. Every id can be asked for as it stands: the names of the policy first, then what its globs fit, then
    `provider/model`, or the plain name at the only provider. `may` says which names the caller may use. An entry of a
    policy's name has what its first target's provider says of it; `created` (Unix time) stands in where none does.
    """
    known = {name: dict(_entries(lists.get(name))) for name in routes.providers}
    data: dict[str, Document] = {}
    for name, about in _names(routes, known):
        if name not in data and may(name):
            basis = {"id": name, "object": "model", "created": created, "owned_by": "sidecar"}
            data[name] = {**basis, **about, "id": name}
    return {"object": "list", "data": list(data.values())}


def _entries(answer: Any) -> Iterator[tuple[str, Document]]:
    found = answer.get("data") if isinstance(answer, dict) else None
    for entry in found if isinstance(found, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]:
            yield entry["id"], entry


def _names(routes: Routes, known: Mapping[str, Mapping[str, Document]]) -> Iterator[tuple[str, Document]]:
    for name in routes.models:
        if not is_glob(name):
            target = routes.resolve(name)
            yield name, known[target.provider.name].get(target.model, {})
    for provider, entries in known.items():
        for model, about in entries.items():
            if _leads_to(routes, model, provider):
                yield model, about
    if routes.by_model:
        for provider, entries in known.items():
            yield from ((f"{provider}/{model}", about) for model, about in entries.items())


def _leads_to(routes: Routes, name: str, provider: str) -> bool:
    """Whether a plain name is served by the provider that lists it."""
    if not routes.serves(name):
        return False
    target = routes.resolve(name)
    return target.provider.name == provider and target.model == name
