"""Who an exchange belongs to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """Told once, at admission. Names of one tenant are never those of another: whoever keys by them adds the tenant.

    `key` is a short digest of the credential that the client showed, empty without one. `session` is one conversation
    that may hold many runs, `run` one agent task; `declared` says that the client named the session itself, so that its
    exchanges may share what is remembered of it.
    """

    tenant: str = "default"
    key: str = ""
    session: str = ""
    run: str = ""
    agent: str = ""
    declared: bool = False


NOBODY = Identity()
