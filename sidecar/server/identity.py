"""Whose an exchange is, told from what agents already send.

A session is known, in this order, by the header `x-sidecar-session`, `metadata.session_id`, `prompt_cache_key`,
`previous_response_id` (the session of the reply that it names), `user` (Anthropic's `metadata.user_id`), and else by
how the conversation begins. The first two name one conversation; the others may be shared by several, and a session
found by them shows an exchange nothing that it did not bring along itself. A run is what `x-sidecar-run` or
`metadata.run_id` says, and else the session.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from ..core.identity import Identity
from ..wire import jsondoc
from .headers import CREDENTIALS, OWN_KEY, Headers, value_of

SESSION_HEADER: Final = b"x-sidecar-session"
RUN_HEADER: Final = b"x-sidecar-run"
AGENT_HEADER: Final = b"x-sidecar-agent"
# A name of a client's own choosing is as long as it likes; what is kept of it is not.
MAX_NAME: Final = 200

Earlier = Callable[[str], str | None]
"""The session of an earlier reply, by the reply's id."""


def identify(
    headers: Headers, document: dict[str, Any], tenant: str, earlier: Earlier, spent: Collection[bytes] = ()
) -> Identity:
    """`spent` names the headers whose credential was ours."""
    session, declared = session_of(headers, document, earlier)
    named, given = value_of(headers, RUN_HEADER), _metadata(document, "run_id")
    run = f"run:{named.decode('latin-1')}" if named else f"metadata:{given}" if given else session
    agent = value_of(headers, AGENT_HEADER)
    return Identity(
        tenant=tenant,
        key=key_of(headers, spent),
        session=_short(session),
        run=_short(run),
        agent=_short(agent.decode("latin-1")) if agent else "",
        declared=declared,
    )


def session_of(headers: Headers, document: dict[str, Any], earlier: Earlier = lambda _: None) -> tuple[str, bool]:
    """The session's key, and whether it was declared to be one conversation."""
    header = value_of(headers, SESSION_HEADER)
    if header:
        return f"header:{header.decode('latin-1')}", True
    if declared := _metadata(document, "session_id"):
        return f"metadata:{declared}", True
    return next(_shared(document, earlier), None) or f"beginning:{beginning(document)}", False


def _shared(document: dict[str, Any], earlier: Earlier) -> Iterator[str]:
    """What several conversations may have in common."""
    if isinstance(key := document.get("prompt_cache_key"), str) and key:
        yield f"prompt_cache_key:{key}"
    before = document.get("previous_response_id")
    if isinstance(before, str) and before and (known := earlier(before)):
        yield known
    user = document.get("user") or _metadata(document, "user_id")
    if isinstance(user, str) and user:
        yield f"user:{user}"


def _metadata(document: dict[str, Any], name: str) -> str:
    metadata = document.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def key_of(headers: Headers, spent: Collection[bytes] = ()) -> str:
    """A digest of the credential that the client shows, 16 hex digits; it tells nothing of the credential.

    Ours where it shows one: what stands in other headers anybody may write. A key without its scheme is the same key.
    """
    names = [name for name in (OWN_KEY, *CREDENTIALS) if name in spent] or CREDENTIALS
    shown = next((value for name in names if (value := value_of(headers, name))), None)
    if shown is not None and shown[:7].lower() == b"bearer ":
        shown = shown[7:].strip()
    return hashlib.sha256(shown).hexdigest()[:16] if shown else ""


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


# Where APIs keep what the system says, and what has been said so far.
_SYSTEM = ("system", "instructions")
_SAID = ("messages", "input", "prompt", "contents")


def beginning(document: dict[str, Any]) -> str:
    """A digest of the conversation up to its first user message, as the client sent it."""
    opening = [document[field] for field in _SYSTEM if field in document]
    for field in _SAID:
        opening.extend(_opening(document.get(field)))
    return hashlib.sha256(jsondoc.encode(opening)).hexdigest()


def _opening(said: Any) -> Iterator[Any]:
    if not isinstance(said, list):
        if said is not None:
            yield said
        return
    for message in said:
        yield message
        if isinstance(message, dict) and message.get("role") == "user":
            return
