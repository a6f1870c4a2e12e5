"""Where a rule looks is said place by place; a place that a wire module adds shows up by itself."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.core.surface import Kind, Surface
from sidecar.policy.coverage import rows, table
from sidecar.policy.schema import Policy
from sidecar.wire import chat
from sidecar.wire.apis import APIS
from sidecar.wire.stream import Wire


def policy(*rules: dict[str, Any], **sections: Any) -> Policy:
    named = [{"name": f"r{at}", "detect": ["email"], **fields} for at, fields in enumerate(rules)]
    return Policy.model_validate({"version": 1, "guardrails": tuple(named), **sections})


def test_a_rule_without_on_looks_everywhere_but_in_tool_definitions() -> None:
    for api in APIS:
        seen = {row.surface.kind for row in rows(policy({})) if row.modes == ("enforce",) and row.api == api.NAME}
        assert seen == {surface.kind for surface in (*api.REQUEST_SURFACES, *api.REPLY_SURFACES)} - {Kind.TOOLS}


def test_a_rule_looks_where_it_says_and_in_its_mode() -> None:
    found = list(rows(policy({"on": ["tools"], "mode": "shadow"}, {"on": ["reply"]})))
    assert {row.surface.kind for row in found if row.modes[0] == "shadow"} == {Kind.TOOLS}
    assert {row.surface.kind for row in found if row.modes[1] == "enforce"} == {Kind.REPLY}


def test_a_disguise_looks_at_requests_alone() -> None:
    seen = {row.surface for row in rows(policy({"action": "pseudonymize"})) if row.modes == ("enforce",)}
    assert seen
    assert seen.isdisjoint(surface for api in APIS for surface in api.REPLY_SURFACES)


def test_undocumented_places_are_seen_unless_they_pass() -> None:
    unknown = [row for row in rows(policy({})) if row.surface.unknown]
    assert {row.modes for row in unknown} == {("enforce",)}
    passed = [row for row in rows(policy({}, inspect={"unknown": "pass"})) if row.surface.unknown]
    assert {row.modes for row in passed} == {("off",)}


def surfaces(value: Any) -> Iterator[Surface]:
    if isinstance(value, Surface):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from surfaces(inner)
    elif isinstance(value, tuple | list | frozenset):
        for inner in value:
            yield from surfaces(inner)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.NAME)
def test_every_place_of_a_wire_module_is_in_the_table(api: Wire) -> None:
    module = sys.modules.get(getattr(api, "__name__", ""), None) or sys.modules[type(api).__module__]
    named = (value for name, value in vars(module).items() if not name.startswith("__"))
    known = {surface for value in named for surface in surfaces(value) if str(surface).startswith(family(api))}
    listed = {surface for each in APIS if family(each) == family(api) for surface in places(each)}
    assert known <= listed
    assert set(places(api)) <= {*known, *listed}


def family(api: Wire) -> str:
    return str(api.REQUEST_SURFACES[0]).partition(".")[0]


def places(api: Wire) -> Iterator[Surface]:
    yield from (*api.REQUEST_SURFACES, *api.REPLY_SURFACES)


def test_what_is_not_seen_is_said() -> None:
    shown = "\n".join(table(policy({})))
    assert "not seen   images in requests (inspect.images)" in shown
    assert "inspect.unknown" not in shown
    denied = "\n".join(table(policy({}, inspect={"unknown": "pass", "images": "deny"})))
    assert "inspect.images" not in denied
    assert "not seen   endpoints and fields that no API documents (inspect.unknown)" in denied
    assert list(table(policy({"mode": "off"}))) == []


def test_every_single_place_is_shown_where_asked() -> None:
    shown = "\n".join(table(policy({}), full=True))
    assert all(str(surface) in shown for surface in chat.REQUEST_SURFACES)
    assert len("\n".join(table(policy({}))).splitlines()) < len(shown.splitlines())
