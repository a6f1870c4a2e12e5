"""`tools` and `response_format` of providers and targets."""

from pathlib import Path

import pytest

from sidecar.policy.check import check, human

from .texts import faults_in, load_text, only_fault

ONE = "version: 1\nproviders:\n  p:\n    base_url: http://u/v1\n"


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_an_own_endpoint_has_no_tools_as_text(api: str) -> None:
    fault = only_fault(f"{ONE}    tools: hermes\n    {api}: native\n")
    assert (fault.line, fault.where) == (6, f"providers.p.{api}")
    assert "`tools: hermes` is told in chat alone" in fault.message
    assert fault.hint == f"Leave out `{api}`, or write `tools: native`."


@pytest.mark.parametrize(
    "text", ["tools: native\n    responses: native\n", "tools: hermes\n    responses: chat\n", "tools: prompt\n"]
)
def test_what_goes_together(text: str) -> None:
    assert faults_in(f"{ONE}    {text}") == ()


@pytest.mark.parametrize("field", ["tools", "response_format"])
def test_an_unknown_word_is_a_fault_and_no_more(field: str) -> None:
    fault = only_fault(f"{ONE}    {field}: promt\n    responses: native\n")
    assert fault.where == f"providers.p.{field}"


def test_other_apis_go_through_chat() -> None:
    provider = load_text(f"{ONE}    tools: prompt\n").providers["p"]
    assert [provider.served_as(api) for api in ("responses", "messages", "count_tokens", "chat")] == ["chat"] * 3 + [
        "native"
    ]


def test_a_target_may_differ_and_shares_the_connections() -> None:
    snapshot = load_text(
        f"{ONE}    tools: prompt\nmodels: {{a: [p/x, {{target: p/y, tools: native, response_format: none}}]}}\n"
    )
    first, second = (one.target.provider for one in snapshot.candidates["a"])
    assert (first.tools, first.response_format) == ("prompt", "json_schema")
    assert (second.tools, second.response_format) == ("native", "none")
    assert first == second == snapshot.providers["p"]


@pytest.mark.parametrize(
    ("more", "looks"),
    [
        ("", False),
        ("    tools: native\n    response_format: json_schema\n", False),
        ("    tools: prompt\n", True),
        ("    response_format: json_object\n", True),
        ("models: {a: {target: p/x, tools: mistral}}\n", True),
        ("models: {a: {target: p/x, response_format: none}}\n", True),
    ],
)
def test_only_then_requests_are_looked_into(more: str, looks: bool) -> None:
    snapshot = load_text(ONE + more)
    assert snapshot.looks is looks
    assert snapshot.inert is not looks


def test_check_says_so(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        f"{ONE}    tools: hermes\n    response_format: none\n"
        "models: {a: {target: p/x, response_format: json_object}}\n"
    )
    said = human(check(path, {}))
    assert "p: http://u/v1, with the caller's key [tools as text (hermes); forms of replies as text]" in said
    assert "a: p/x [of forms of replies only JSON]" in said
