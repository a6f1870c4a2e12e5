"""Policies from public reports of configuration that was silently ignored or half applied."""

from pathlib import Path

import pytest

from sidecar.core.exchange import Exchange, Request
from sidecar.core.surface import Kind, Slot, Surface
from sidecar.policy.load import load
from sidecar.policy.snapshot import Snapshot

from .texts import HEAD, LINES, faults_in, load_text, only_fault, places

REGEX = HEAD + "guardrails:\n  - name: zk\n    on: [user]\n    patterns:\n      - {name: zk, regex: %s}\n"


async def redacted(snapshot: Snapshot, text: str) -> str:
    document = {"content": text}
    slot = Slot(Surface("chat.request.messages[].content", Kind.USER), document, "content")
    run = snapshot.chain.open(Exchange("id", "chat"))
    await run.request(Request(document, [slot]))
    await run.done("completed")
    return document["content"]


def test_a_misspelt_section_is_not_ignored() -> None:
    """gethelio/helio#167, BerriAI/litellm#31287"""
    fault = only_fault(HEAD + "guardrail:\n  - redact: email\n")
    assert (fault.line, fault.column, fault.where) == (LINES + 1, 1, "guardrail")
    assert "Did you mean `guardrails`?" in fault.hint


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("rules: [{name: r}]\n", "rules"),
        ("guardrails: [{name: r, words: [{list: [x], ignorecase: true}]}]\n", "guardrails[0].words[0].ignorecase"),
        ("guardrails: [{name: r, pattren: 'x'}]\n", "guardrails[0].pattren"),
    ],
)  # fmt: skip
def test_a_misplaced_or_misspelt_key_is_named_at_any_depth(text: str, where: str) -> None:
    assert where in [fault.where for fault in faults_in(HEAD + text)]


def test_a_duplicate_section_does_not_lose_the_first() -> None:
    """yaml/pyyaml#165, rbgirshick/yacs#17"""
    rule = "guardrails:\n  - name: %s\n    words: [{list: [x]}]\n"
    fault = only_fault(HEAD + rule % "a" + rule % "b")
    assert (fault.line, fault.column, fault.where) == (LINES + 4, 1, "guardrails")
    assert f"line {LINES + 1}, column 1" in fault.message


def test_a_duplicate_key_inside_a_rule_is_a_fault() -> None:
    text = HEAD + "guardrails:\n  - name: a\n    mode: off\n    words: [{list: [x]}]\n    mode: enforce\n"
    assert places(text) == [(LINES + 5, 5, "guardrails[0].mode")]


def test_a_merge_key_over_an_anchor_stays_legal() -> None:
    text = HEAD + "guardrails:\n  - &base {name: a, words: [{list: [x]}], mode: shadow}\n  - {<<: *base, name: b}\n"
    rules = load_text(text).policy.guardrails
    assert [(rule.name, rule.mode) for rule in rules] == [("a", "shadow"), ("b", "shadow")]


def test_a_backspace_in_a_double_quoted_pattern_is_named() -> None:
    """grafana/loki#1601, ansible/ansible#29815"""
    fault = only_fault(REGEX % r'"\bzk-[A-Za-z0-9]{16}\b"')
    assert "U+0008" in fault.message
    assert "single quotes" in fault.hint


def test_an_unknown_escape_in_a_double_quoted_pattern_says_what_to_do() -> None:
    fault = only_fault(REGEX % r'"\d{6}"')
    assert fault.line == LINES + 5
    assert "single quotes" in fault.hint


@pytest.mark.anyio
async def test_the_single_quoted_pattern_matches() -> None:
    snapshot = load_text(REGEX % r"'\bzk-[A-Za-z0-9]{16}\b'")
    assert await redacted(snapshot, "k zk-A1b2C3d4E5f6G7h8 .") == "k [REDACTED:zk] ."


@pytest.mark.parametrize(
    "text",
    [
        "rules: [\n",
        "",
        "version: 1\nguardrails: [\n",
        REGEX % "'a('",
    ],
)
def test_a_file_that_cannot_be_taken_up_gives_faults_and_no_snapshot(text: str) -> None:
    """fabriziosalmi/caddy-waf#182, MervinPraison/PraisonAI#5144"""
    assert faults_in(text)


def test_a_file_that_is_gone_for_a_moment_can_be_loaded_after(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(REGEX % "'a'")
    before = load(file, {}).digest
    file.rename(tmp_path / "away")
    (tmp_path / "away").rename(file)
    assert load(file, {}).digest == before


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
