"""From files and the environment to a snapshot, or to every fault at once."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from ..errors import Fault, PatternError, PolicyError
from ..stages import build
from .crosscheck import cross_faults
from .faults import faults_of
from .merge import merged
from .nodes import Entry, Node, Place, Scalar, Table, at, dotted, plain, put, table
from .overrides import overridden
from .reader import Document, fault_at, read
from .references import expand
from .schema import VERSION, Policy
from .schemafiles import filled
from .snapshot import Snapshot, compiled

DEFAULT_PROVIDER = "default"
_SUFFIXES = (".yaml", ".yml")
_TESTS = (".test.yaml", ".test.yml")


def load(path: Path | None, environ: Mapping[str, str], upstream: str | None = None) -> Snapshot:
    """Loads the policy at `path`, a file or a folder; None is the empty policy.

    `upstream` stands over the first provider's base URL. A policy that names no provider is fine, but has no
    `default`. Raises PolicyError with all faults.
    """
    if path is None and upstream is None:
        hint = "Give --upstream URL, set SIDECAR_UPSTREAM, or name a provider in a policy."
        raise PolicyError([Fault("no policy", 0, 0, "", "nothing says where requests go", hint)])
    if path is None:
        return parse([], environ, upstream)
    try:
        files = sources(path)
    except OSError as error:
        raise PolicyError([Fault(str(path), 0, 0, "", f"cannot be read: {error.strerror or error}")]) from None
    return load_files(path, files, environ, upstream)


def load_files(
    path: Path, files: list[tuple[str, bytes]], environ: Mapping[str, str], upstream: str | None = None
) -> Snapshot:
    """Like `load`, with the files of `path` already read."""
    if not files:
        raise PolicyError([Fault(str(path), 0, 0, "", "the folder has no *.yaml file")])
    return parse(files, environ, upstream)


def sources(path: Path) -> list[tuple[str, bytes]]:
    """A policy's files with their contents, in the order of their names. Raises OSError."""
    if not path.is_dir():
        return [(str(path), path.read_bytes())]
    return [(str(file), file.read_bytes()) for file in sorted(path.iterdir()) if _is_policy(file)]


def _is_policy(file: Path) -> bool:
    name = file.name
    return name.endswith(_SUFFIXES) and not name.endswith(_TESTS) and name[0] != "." and file.is_file()


def parse(files: list[tuple[str, bytes]], environ: Mapping[str, str], upstream: str | None = None) -> Snapshot:
    """Like `load`, from contents. No files are the empty policy."""
    faults: list[Fault] = []
    documents = [read(file, content) for file, content in files] or [_empty()]
    for document in documents:
        faults += document.faults
    read_root = merged(documents, faults)
    if read_root is None:
        raise PolicyError(sorted(faults, key=_position))
    complete = all(document.complete for document in documents)
    root = overridden(_sent_to(read_root, upstream), Policy, environ, faults)
    root = filled(expand(root, Policy, environ, faults), faults)
    policy = _validated(root, complete, faults)
    faults += cross_faults(root, complete)
    if policy is None or faults:
        raise PolicyError(sorted(faults, key=_position))
    return _compiled(policy, root)


def _empty() -> Document:
    place = Place("no policy")
    return Document("", table(place, {"version": Entry(place, Scalar(place, VERSION))}))


def _position(fault: Fault) -> tuple[bool, str, int, int]:
    return (fault.line == 0, fault.file, fault.line, fault.column)


def _sent_to(root: Node, upstream: str | None) -> Node:
    if upstream is None:
        return root
    providers = at(root, ("providers",))
    names = list(providers.entries) if isinstance(providers, Table) else []
    new = Scalar(Place("--upstream"), upstream, upstream, foreign=True)
    return put(root, ("providers", (names or [DEFAULT_PROVIDER])[0], "base_url"), new)


def _validated(root: Node, complete: bool, faults: list[Fault]) -> Policy | None:
    try:
        return Policy.model_validate_json(json.dumps(plain(root)))
    except ValidationError as error:
        found = faults_of(error, root, Policy)
        # What stands after the point where reading stopped may well be what seems to be missing.
        faults += [fault for fault in found if complete or not _may_follow(fault)]
    return None


def _may_follow(fault: Fault) -> bool:
    return fault.where in Policy.model_fields and fault.message.endswith("is missing")


def _compiled(policy: Policy, root: Node) -> Snapshot:
    try:
        return compiled(policy)
    except PatternError as error:
        whole = fault_at(root.place, error.message, error.hint, "guardrails")
        raise PolicyError(list(_oversized(policy, root)) or [whole]) from None


def _oversized(policy: Policy, root: Node) -> Iterator[Fault]:
    """A fault for each rule that is valid in its parts and too large as a whole."""
    for index, config in enumerate(policy.guardrails):
        path = ("guardrails", index)
        try:
            build((config,), policy.scrub)
        except PatternError as error:
            yield fault_at((at(root, path) or root).place, error.message, error.hint, dotted(path))
