"""LiteLLM's built-in content filter: all its patterns for credentials and personal data, and for injection the
categories that it has for it, at its default severity."""

import logging
from importlib.metadata import version

import wire
from litellm.proxy.guardrails.guardrail_hooks.litellm_content_filter.content_filter import ContentFilterGuardrail
from litellm.proxy.guardrails.guardrail_hooks.litellm_content_filter.patterns import PATTERN_CATEGORIES

logging.disable(logging.CRITICAL)

_NOT_PII = ("Credential", "Protected Class", "Dangerous")
_INJECTION = ("jailbreak", "system_prompt", "data_exfiltration", "malicious_code", "sql")


def _filter(names):
    patterns = [{"pattern_type": "prebuilt", "pattern_name": name, "action": "MASK"} for name in names]
    return ContentFilterGuardrail(guardrail_name="bench", patterns=patterns)


def _patterns(wanted):
    return [name for category, names in PATTERN_CATEGORIES.items() if wanted(category) for name in names]


_FILTERS = {
    "secrets": _filter(_patterns(lambda category: category.startswith("Credential"))),
    "pii": _filter([n for n in _patterns(lambda category: not category.startswith(_NOT_PII)) if n != "url"]),
}
_CATEGORIES = [{"category": f"prompt_injection_{name}", "enabled": True, "action": "BLOCK"} for name in _INJECTION]
_INJECTIONS = ContentFilterGuardrail(guardrail_name="bench", categories=_CATEGORIES)


def find(kind, text):
    if kind == "injection":
        yield from _refused(text)
    elif kind in _FILTERS:
        guard = _FILTERS[kind]
        for entry in guard.compiled_patterns:
            yield from guard._find_pattern_spans(text, entry)


def _refused(text):
    try:
        _INJECTIONS._filter_single_text(text, [])
    except Exception:  # how it says so
        yield 0, len(text)


if __name__ == "__main__":
    wire.serve(version("litellm"), find)
