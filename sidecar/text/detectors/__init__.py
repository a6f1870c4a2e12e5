"""Detectors as data, in packs. A policy names packs or single detectors."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from sidecar.text.detectors.code_exec import CODE_EXEC
from sidecar.text.detectors.injection import INJECTION
from sidecar.text.detectors.model import Detector
from sidecar.text.detectors.pii import PII
from sidecar.text.detectors.pii_bare import PII_BARE, PII_WEAK
from sidecar.text.detectors.pii_loose import PII_LOOSE
from sidecar.text.detectors.secrets import ASSIGNMENTS, SECRETS
from sidecar.text.detectors.urls import URLS

__all__ = ["DETECTORS", "PACKS", "Detector", "UnknownDetectorError", "resolve"]

PACKS: Mapping[str, tuple[Detector, ...]] = MappingProxyType(
    {
        "secrets": SECRETS,
        "pii": PII,
        "injection": INJECTION,
        "urls": URLS,
        "code-exec": CODE_EXEC,
        # Noisier by design, for who asks for them by name.
        "pii-bare": PII_BARE,
        "pii-loose": PII_LOOSE,
        "pii-weak": PII_WEAK,
        "assignments": ASSIGNMENTS,
    }
)
DETECTORS: Mapping[str, Detector] = MappingProxyType(
    {detector.name: detector for pack in PACKS.values() for detector in pack}
)


class UnknownDetectorError(ValueError):
    """`name` is neither a pack nor a detector; `near` are the names that look like it, best first."""

    def __init__(self, name: str, near: tuple[str, ...]) -> None:
        self.name, self.near = name, near
        hint = f"did you mean {' or '.join(near)}?" if near else f"the packs are {', '.join(PACKS)}"
        super().__init__(f"no pack or detector is named {name!r}; {hint}")


def resolve(names: Iterable[str]) -> tuple[Detector, ...]:
    """The detectors that packs and detectors named in `names` stand for, in that order, each once.

    Raises UnknownDetectorError at the first name that is neither.
    """
    found: dict[str, Detector] = {}
    for name in names:
        found.update((detector.name, detector) for detector in _named(name))
    return tuple(found.values())


def _named(name: str) -> tuple[Detector, ...]:
    if name in PACKS:
        return PACKS[name]
    if name in DETECTORS:
        return (DETECTORS[name],)
    raise UnknownDetectorError(name, tuple(get_close_matches(name, [*PACKS, *DETECTORS], n=3)))
