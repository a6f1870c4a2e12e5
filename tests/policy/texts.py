"""What the tests of policies share: loading a text, and its faults as short lines."""

from collections.abc import Mapping

from sidecar.errors import Fault, PolicyError
from sidecar.policy.load import parse
from sidecar.policy.snapshot import Snapshot

PROVIDER = "providers: {p: {base_url: 'http://u/v1'}}\n"
HEAD = "version: 1\n" + PROVIDER
LINES = HEAD.count("\n")


def load_text(text: str, environ: Mapping[str, str] | None = None, upstream: str | None = None) -> Snapshot:
    return parse([("p.yaml", text.encode())], environ or {}, upstream)


def faults_in(text: str, environ: Mapping[str, str] | None = None) -> tuple[Fault, ...]:
    """The faults of a text; none if it loads."""
    try:
        load_text(text, environ)
    except PolicyError as error:
        return error.faults
    return ()


def places(text: str, environ: Mapping[str, str] | None = None) -> list[tuple[int, int, str]]:
    return [(fault.line, fault.column, fault.where) for fault in faults_in(text, environ)]


def only_fault(text: str, environ: Mapping[str, str] | None = None) -> Fault:
    (fault,) = faults_in(text, environ)
    return fault
