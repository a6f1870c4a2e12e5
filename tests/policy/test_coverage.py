"""Where a rule looks is said place by place; a place that a wire module adds shows up by itself."""

from sidecar.core.surface import Kind, Surface
from sidecar.policy.coverage import rows, table
from sidecar.stages.guardrails import GuardrailConfig
from sidecar.wire import chat


def rule(**fields: object) -> GuardrailConfig:
    return GuardrailConfig.model_validate({"name": "r", "detect": ["email"], **fields})


def test_a_rule_without_on_looks_everywhere_but_in_tool_definitions() -> None:
    seen = {row.surface.kind for row in rows([rule()]) if row.modes == ("enforce",)}
    assert seen == set(Kind) - {Kind.TOOLS}


def test_a_rule_looks_where_it_says_and_in_its_mode() -> None:
    found = list(rows([rule(on=["tools"], mode="shadow"), rule(on=["reply"])]))
    assert {row.surface.kind for row in found if row.modes[0] == "shadow"} == {Kind.TOOLS}
    assert {row.surface.kind for row in found if row.modes[1] == "enforce"} == {Kind.REPLY}


def test_a_disguise_looks_at_requests_alone() -> None:
    seen = {row.surface for row in rows([rule(action="pseudonymize")]) if row.modes == ("enforce",)}
    assert seen
    assert seen.isdisjoint(chat.REPLY_SURFACES)


def test_every_place_of_the_wire_module_is_in_the_table() -> None:
    known = {value for value in vars(chat).values() if isinstance(value, Surface)}
    known.update(*(value.values() for value in (chat.REQUEST_CONTENT, chat.REQUEST_NAME)))
    assert known == set(chat.SURFACES)


def test_what_is_not_seen_is_said() -> None:
    shown = list(table([rule()]))
    assert any("every endpoint but /v1/chat/completions" in line for line in shown)
    assert list(table([rule(mode="off")])) == []
