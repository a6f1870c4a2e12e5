"""Every place that the official SDK's types have for a text: the module reads it, or the table says that it is none.

A place is the type of the object that holds the text, else the field it stands in, and the name of the text's field.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent, message_count_tokens_params, message_create_params
from anthropic.types import beta as beta_types
from anthropic.types.beta import message_count_tokens_params as beta_count_tokens_params
from anthropic.types.beta import message_create_params as beta_create_params

from sidecar.core.chain import Run
from sidecar.core.surface import Kind, Slot
from sidecar.wire import messages
from tests.stages.talk import chain

from .messages_talk import asked, events_of, heard, opened, told
from .sdk_types import Samples, below

# By the kinds that a rule's `on` must name to see the place. "-" is what is no text, or sealed; "unknown" what the SDK
# sends as a header, or has no type for.
REQUEST = {
    "-": """
        .container .fallback_credit_token .inference_geo .model advisor_redacted_result.encrypted_content
        advisor_redacted_result.stop_reason advisor_result.stop_reason advisor_tool_result.tool_use_id
        anthropic.skill_id anthropic.version bash_code_execution_output.file_id
        bash_code_execution_tool_result.tool_use_id char_location.file_id code_execution_20250825.tool_id
        code_execution_20260120.tool_id code_execution_output.file_id code_execution_tool_result.tool_use_id
        compaction.encrypted_content compaction.signature container.id container_upload.file_id
        content_block_location.file_id continue.previous_message_id diagnostics.previous_message_id
        download_completed.download_id download_failed.download_id download_started.download_id
        encrypted_code_execution_result.encrypted_stdout fallback_credit_token.token file.file_id from.model
        mcp_tool_result.tool_use_id mcp_tool_use.id page_location.file_id redacted_thinking.data
        server_tool_use.id tab_opened.tab_id tabs.tab_id text_editor_code_execution_tool_result.tool_use_id
        thinking.signature to.model tool_result.tool_use_id tool_search_tool_result.tool_use_id tool_use.id
        url.authorization_token web_fetch_result.retrieved_at web_fetch_tool_result.tool_use_id
        web_search_result.encrypted_content web_search_result.page_age
        web_search_result_location.encrypted_index web_search_tool_result.tool_use_id
    """,
    "assistant system tool_results user": """
        char_location.cited_text char_location.document_title content_block_location.cited_text
        content_block_location.document_title page_location.cited_text page_location.document_title
        search_result_location.cited_text search_result_location.source search_result_location.title text.text
        web_search_result_location.cited_text web_search_result_location.title web_search_result_location.url
    """,
    "assistant system user": """
        messages.content
    """,
    "assistant tool_results tools user": """
        url.url
    """,
    "assistant tool_results user": """
        base64.data content.content document.context document.title search_result.source search_result.title
        text.data
    """,
    "assistant user": """
        compaction.content
    """,
    "reasoning": """
        thinking.thinking
    """,
    "system": """
        .system clear_tool_uses_20250919.clear_tool_inputs clear_tool_uses_20250919.exclude_tools
        compact_20260112.instructions summarize.instructions
    """,
    "tool_calls": """
        mcp_tool_use.input mcp_tool_use.name mcp_tool_use.server_name server_tool_use.input
        tool_result.toolset_name tool_use.input tool_use.name tool_use.toolset_name
    """,
    "tool_results": """
        advisor_result.text bash_code_execution_result.stderr bash_code_execution_result.stdout
        code_execution_result.stderr code_execution_result.stdout download_completed.path
        download_completed.url download_failed.error download_failed.url download_started.url
        encrypted_code_execution_result.stderr mcp_tool_result.content tabs.title tabs.url
        text_editor_code_execution_str_replace_result.lines
        text_editor_code_execution_tool_result_error.error_message
        text_editor_code_execution_view_result.content tool_reference.tool_name tool_result.content
        tool_search_tool_result_error.error_message web_fetch_result.url web_search_result.title
        web_search_result.url
    """,
    "tools": """
        advisor_20260301.model approximate.city approximate.country approximate.region approximate.timezone
        bash_20241022.input_examples bash_20250124.input_examples computer_20241022.input_examples
        computer_20250124.input_examples computer_20251124.input_examples definition.description
        definition.input_examples definition.input_schema definition.name fallbacks.model json_schema.schema
        mcp_tool_listing.mcp_server_name mcp_tool_reference.name mcp_tool_reference.server_name
        mcp_toolset.mcp_server_name mcp_toolset_reference.server_name memory_20250818.input_examples
        object.properties object.required text_editor_20241022.input_examples
        text_editor_20250124.input_examples text_editor_20250429.input_examples
        text_editor_20250728.input_examples tool.name tool_configuration.allowed_tools tool_reference.name
        tools.description tools.input_examples tools.input_schema tools.name url.name
        web_fetch_20250910.allowed_domains web_fetch_20250910.blocked_domains
        web_fetch_20260209.allowed_domains web_fetch_20260209.blocked_domains
        web_fetch_20260309.allowed_domains web_fetch_20260309.blocked_domains
        web_fetch_20260318.allowed_domains web_fetch_20260318.blocked_domains
        web_search_20250305.allowed_domains web_search_20250305.blocked_domains
        web_search_20260209.allowed_domains web_search_20260209.blocked_domains
        web_search_20260318.allowed_domains web_search_20260318.blocked_domains
    """,
    "unknown": """
        .betas .user_profile_id .workspace_id fallback.trigger
    """,
    "user": """
        .stop_sequences metadata.user_id
    """,
}
REPLY = {
    "-": """
        advisor_message.model advisor_redacted_result.encrypted_content advisor_redacted_result.stop_reason
        advisor_result.stop_reason advisor_tool_result.tool_use_id anthropic.skill_id anthropic.version
        bash_code_execution_output.file_id bash_code_execution_tool_result.tool_use_id char_location.file_id
        code_execution_20250825.tool_id code_execution_20260120.tool_id code_execution_output.file_id
        code_execution_tool_result.tool_use_id compaction.encrypted_content compaction.signature
        compaction_delta.encrypted_content container.id container_upload.file_id
        content_block_location.file_id encrypted_code_execution_result.encrypted_stdout fallback_message.model
        from.model mcp_tool_result.tool_use_id mcp_tool_use.id message.id message.model
        page_location.file_id redacted_thinking.data
        refusal.fallback_credit_token refusal.recommended_model server_tool_use.id signature_delta.signature
        text_editor_code_execution_tool_result.tool_use_id thinking.signature thinking_dropped.path
        thinking_mismatch_allowed.path to.model tool_search_tool_result.tool_use_id tool_use.id
        usage.inference_geo web_fetch_result.retrieved_at web_fetch_tool_result.tool_use_id
        web_search_result.encrypted_content web_search_result.page_age
        web_search_result_location.encrypted_index web_search_tool_result.tool_use_id
    """,
    "reasoning": """
        thinking.thinking thinking_delta.thinking
    """,
    "reply": """
        compaction.content compaction_delta.content delta.stop_sequence message.stop_sequence
        refusal.explanation text_delta.text
    """,
    "reply tool_results": """
        char_location.cited_text char_location.document_title content_block_location.cited_text
        content_block_location.document_title page_location.cited_text page_location.document_title
        search_result_location.cited_text search_result_location.source search_result_location.title text.text
        web_search_result_location.cited_text web_search_result_location.title web_search_result_location.url
    """,
    "tool_calls": """
        input_json_delta.partial_json mcp_tool_use.input mcp_tool_use.name mcp_tool_use.server_name
        server_tool_use.input tool_use.input tool_use.name tool_use.toolset_name
    """,
    "tool_results": """
        advisor_result.text base64.data bash_code_execution_result.stderr bash_code_execution_result.stdout
        code_execution_result.stderr code_execution_result.stdout document.title
        encrypted_code_execution_result.stderr mcp_tool_result.content text.data
        text_editor_code_execution_str_replace_result.lines
        text_editor_code_execution_tool_result_error.error_message
        text_editor_code_execution_view_result.content tool_reference.tool_name
        tool_search_tool_result_error.error_message web_fetch_result.url web_search_result.title
        web_search_result.url
    """,
    "tools": """
        advisor_20260301.model approximate.city approximate.country approximate.region approximate.timezone
        bash_20241022.input_examples bash_20250124.input_examples computer_20241022.input_examples
        computer_20250124.input_examples computer_20251124.input_examples definition.description
        definition.input_examples definition.name mcp_tool_listing.mcp_server_name mcp_tool_reference.name
        mcp_tool_reference.server_name mcp_toolset.mcp_server_name mcp_toolset_reference.server_name
        memory_20250818.input_examples object.properties object.required text_editor_20241022.input_examples
        text_editor_20250124.input_examples text_editor_20250429.input_examples
        text_editor_20250728.input_examples tool_reference.name tools.description tools.input_schema
        tools.name web_fetch_20250910.allowed_domains web_fetch_20250910.blocked_domains
        web_fetch_20260209.allowed_domains web_fetch_20260209.blocked_domains
        web_fetch_20260309.allowed_domains web_fetch_20260309.blocked_domains
        web_fetch_20260318.allowed_domains web_fetch_20260318.blocked_domains
        web_search_20250305.allowed_domains web_search_20250305.blocked_domains
        web_search_20260209.allowed_domains web_search_20260209.blocked_domains
        web_search_20260318.allowed_domains web_search_20260318.blocked_domains
    """,
    "unknown": """
        not_applied.remove_to_redeem
    """,
}

REQUESTS = (
    beta_create_params.MessageCreateParamsNonStreaming,
    message_create_params.MessageCreateParamsNonStreaming,
    beta_count_tokens_params.MessageCountTokensParams,
    message_count_tokens_params.MessageCountTokensParams,
)
REPLIES = (beta_types.BetaMessage, Message, beta_types.BetaRawMessageStreamEvent, RawMessageStreamEvent)
MARK = re.compile(r"text-[0-9]+[.]")


def table(kinds: dict[str, str]) -> dict[str, str]:
    return {place: kind for kind, places in kinds.items() for place in places.split()}


def spoken(document: dict[str, Any]) -> list[Slot]:
    return [said.slot for said in messages.reply_texts(document)]


def seen(samples: Samples, documents: Iterable[Any], read: Callable[[Any], list[Slot]]) -> dict[str, str]:
    """Each place of these documents, and the kinds under which it is read."""
    found: dict[str, set[str]] = {place: set() for place in samples.places.values()}
    for slot in (slot for document in documents for slot in read(document)):
        for mark in MARK.findall(slot.text):
            found[samples.places[mark]].add("unknown" if slot.surface.unknown else slot.surface.kind)
    return {place: " ".join(sorted(kinds)) or "-" for place, kinds in found.items()}


def test_places_of_a_request() -> None:
    samples = Samples()
    assert seen(samples, samples.of(REQUESTS[0]), messages.request_slots) == table(REQUEST)


def test_places_of_a_reply_and_of_a_stream() -> None:
    samples = Samples()
    documents = [document for kind in (REPLIES[0], REPLIES[2]) for document in samples.of(kind)]
    assert seen(samples, documents, spoken) == table(REPLY)


@pytest.mark.parametrize("kind", REQUESTS[1:], ids=str)
def test_other_requests_have_no_places_of_their_own(kind: Any) -> None:
    samples = Samples()
    places = seen(samples, samples.of(kind), messages.request_slots)
    assert {place: kinds == "-" for place, kinds in places.items()} == {
        place: table(REQUEST)[place] == "-" for place in places
    }


@pytest.mark.parametrize("kind", [REPLIES[1], REPLIES[3]], ids=str)
def test_nor_have_replies_of_the_stable_api(kind: Any) -> None:
    samples = Samples()
    places = seen(samples, samples.of(kind), spoken)
    assert {place: kinds == "-" for place, kinds in places.items()} == {
        place: table(REPLY)[place] == "-" for place in places
    }


# -- a secret in each of them, through a policy

RULE = {"name": "r", "patterns": [{"name": "mark", "regex": "text-[0-9]+[.]"}], "on": list(Kind), "action": "redact"}
POLICY = chain([RULE])


def reached() -> Run:
    """A call whose request has gone through."""
    run = opened(POLICY)
    asked(run, {})
    return run


def left(samples: Samples, value: Any) -> set[str]:
    """Places whose text is still there."""
    return {samples.places[mark] for text in below(value) for mark in MARK.findall(text)}


def no_texts(kinds: dict[str, str]) -> set[str]:
    return set(kinds["-"].split())


@pytest.mark.parametrize("kind", REQUESTS, ids=str)
def test_a_secret_anywhere_in_a_request(kind: Any) -> None:
    samples = Samples()
    for document in samples.of(kind):
        assert left(samples, asked(opened(POLICY), document)) <= no_texts(REQUEST)


@pytest.mark.parametrize("kind", REPLIES[:2], ids=str)
def test_a_secret_anywhere_in_a_reply(kind: Any) -> None:
    samples = Samples()
    for document in samples.of(kind):
        assert left(samples, heard(reached(), document)[0]) <= no_texts(REPLY)


@pytest.mark.parametrize("kind", REPLIES[2:], ids=str)
def test_a_secret_anywhere_in_a_stream(kind: Any) -> None:
    samples = Samples()
    for event in samples.of(kind):
        got = events_of(told(reached(), [event]))
        assert left(samples, got) <= no_texts(REPLY)
