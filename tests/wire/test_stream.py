"""What is no JSON object: where it stands."""

from sidecar.wire import anything, chat
from sidecar.wire.stream import opaque


def test_places_are_made_once_not_for_each_frame() -> None:
    """Rules remember each place that they have seen, for as long as the policy is in force."""
    for text in (": comment", "[1]", '"x"', r"a \u0041"):
        assert opaque(chat, "data", text).surface is opaque(chat, "data", text).surface


def test_what_looks_like_a_document_may_hold_any_text_of_a_reply() -> None:
    assert opaque(chat, "data", "\n[1, NaN]").surface.closed
    assert opaque(chat, "data", "{broken").surface.json
    assert not opaque(chat, "data", "plain").surface.closed
    assert not opaque(chat, "data", "plain").surface.json
    assert opaque(anything, "data", "{").surface is anything.OPAQUE
