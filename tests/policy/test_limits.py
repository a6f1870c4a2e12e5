"""How large and how many a policy's own patterns may be."""

import pytest

from sidecar.text import rules as rules_module
from sidecar.text import scrubber
from sidecar.text.matcher import Shape
from sidecar.text.rules import Ruleset
from sidecar.text.scrubber import Scrubber, scrub

from .texts import HEAD, faults_in, load_text, only_fault

BEYOND_ALL = r"x\pL{900}"


def policy(*patterns: str, limits: str = "{}", words: str = "[]") -> str:
    rows = "".join(f"\n      - {{name: p{n}, regex: '{regex}'}}" for n, regex in enumerate(patterns))
    own = f"    patterns:{rows}\n" if patterns else ""
    return f"{HEAD}limits: {limits}\nguardrails:\n  - name: g\n    words: {words}\n{own}"


def test_a_pattern_has_64_kib_unless_the_policy_says_otherwise() -> None:
    medium = r"x\pL{12}"
    fault = only_fault(policy("abc", medium))
    assert (fault.where, fault.line, fault.column) == ("guardrails[0].patterns[1].regex", 9, 27)
    assert "more than the 65536 allowed" in fault.message
    assert "limits.max_pattern_bytes" in fault.hint
    load_text(policy("abc", medium, limits="{max_pattern_bytes: 262144}"))


def test_a_pattern_may_be_given_less_room() -> None:
    assert faults_in(policy("x[a-z]{200}", limits="{max_pattern_bytes: 65536}")) == ()
    assert "more than the 1000 allowed" in only_fault(policy("x[a-z]{200}", limits="{max_pattern_bytes: 1000}")).message


def test_nothing_may_be_larger_than_256_kib() -> None:
    assert "262144" in only_fault(policy(BEYOND_ALL)).message
    assert only_fault(policy(limits="{max_pattern_bytes: 262145}", words="[{list: [q]}]")).where == (
        "limits.max_pattern_bytes"
    )


def test_all_patterns_together_have_a_bound_and_the_first_beyond_it_is_named_once() -> None:
    four = ("x[a-z]{100}",) * 4
    fault = only_fault(policy(*four, limits="{max_patterns_bytes: 4000}"))
    assert fault.where == "guardrails[0].patterns[2].regex"
    assert "the 4000 bytes for all" in fault.message


def test_patterns_and_words_are_counted_together() -> None:
    fault = only_fault(policy("abc", limits="{max_patterns: 2}", words="[{list: [q, r, s]}]"))
    assert (fault.where, "limits.max_patterns" in fault.hint) == ("guardrails[0].words[0].list[1]", True)


def test_a_pattern_that_does_not_compile_is_told_once() -> None:
    assert only_fault(policy("(abc")).where == "guardrails[0].patterns[0].regex"


def test_findings_in_one_text_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubber, "MAX_FINDINGS", 3)
    rules = Ruleset([Shape.of("x", "abc")], rules_module.Options(replacement="-"))
    assert scrub(rules, "abc " * 3)[0] == "- - - "
    with pytest.raises(OverflowError):
        scrub(rules, "abc " * 4)
    running = Scrubber(rules)
    with pytest.raises(OverflowError):
        [*running.feed("abc " * 4), *running.finish()]
