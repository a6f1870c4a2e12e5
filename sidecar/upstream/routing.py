"""From the name a client asked for to the target that serves it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..errors import ModelNotFound
from .targets import Provider, Target


@dataclass(frozen=True, slots=True)
class Routes:
    """The providers in the order of the policy (the first is the default) and the targets of each model name."""

    providers: Mapping[str, Provider]
    models: Mapping[str, Sequence[Target]]

    @property
    def default(self) -> Provider:
        return next(iter(self.providers.values()))

    @property
    def by_model(self) -> bool:
        """Whether the model decides where a request goes. If not, bodies need not be read for it."""
        return bool(self.models) or len(self.providers) > 1

    def resolve(self, name: str) -> Target:
        """The first target for a model's name. Raises ModelNotFound, with near names, if the policy lists models.

        `provider/model` always works; a provider's name wins over a listed model only if the model is not listed.
        """
        if not self.by_model:
            return Target(self.default, name)
        if name in self.models:
            return self.models[name][0]
        prefix, slash, model = name.partition("/")
        if slash and model and prefix in self.providers:
            return Target(self.providers[prefix], model)
        if self.models:
            raise ModelNotFound(_unknown(name, self.models), param="model")
        return Target(self.default, name)


def _unknown(name: str, models: Mapping[str, Sequence[Target]]) -> str:
    near = get_close_matches(name, models, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else f" Available: {', '.join(sorted(models)[:20])}."
    return f"The model {name[:100]!r} does not exist in this sidecar's policy.{hint}"
