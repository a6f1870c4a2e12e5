"""Every place that the official SDK's types have for a text: the module reads it, or the table says that it is none.

A place is the type of the object that holds the text, else the field it stands in, and the name of the text's field.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from openai.types import responses as sdk
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from sidecar.core.surface import Kind, Slot
from sidecar.wire import responses
from tests.stages.talk import chain

from .responses_talk import Document, asked, documents, hear, stream_bytes, through
from .sdk_types import Samples, below

# By the kinds that a rule's `on` must name to see the place. "-" is what is no text, or sealed, or (tokens) the same
# text once more; identifiers are left out.

REQUEST = {
    "-": """
        .conversation .model acknowledged_safety_checks.code compaction.encrypted_content context_management.type
        error.code error.type image_generation_call.size logprobs.token moderation.model
        moderation_details.categories pending_safety_checks.code program.fingerprint prompt.version
        reasoning.encrypted_content reasoning.mode svg_usage.model top_logprobs.token
    """,
    "assistant": """
        container_file_citation.filename file_citation.filename output_text.text refusal.refusal url_citation.title
        url_citation.url
    """,
    "reasoning": """
        reasoning_text.text summary_text.text
    """,
    "system": """
        .instructions
    """,
    "tool_calls": """
        action.commands click.keys code_interpreter_call.code create_file.diff create_file.path
        custom_tool_call.input custom_tool_call.name custom_tool_call.namespace delete_file.path double_click.keys
        drag.keys exec.command exec.env exec.user exec.working_directory file_search_call.queries
        find_in_page.pattern find_in_page.url function_call.arguments function_call.name function_call.namespace
        function_call_output.name function_call_output.namespace image_generation_call.revised_prompt keypress.keys
        mcp_approval_request.arguments mcp_approval_request.name mcp_approval_request.server_label
        mcp_call.arguments mcp_call.name mcp_call.server_label mcp_list_tools.server_label move.keys open_page.url
        pending_safety_checks.message program.code scroll.keys search.queries search.query
        tool_search_call.arguments type.text update_file.diff update_file.path
    """,
    "tool_results": """
        acknowledged_safety_checks.message apply_patch_call_output.output computer_screenshot.image_url
        custom_tool_call_output.output error.message error.param function_call_output.output http_error.message
        image.url image_generation_call.result local_shell_call_output.output logs.logs mcp_call.output
        mcp_list_tools.error mcp_protocol_error.message mcp_tool_execution_error.content output.stderr output.stdout
        program_output.result results.attributes results.filename results.text url.url
    """,
    "tool_results user": """
        input_file.file_data input_file.file_url input_file.filename input_image.image_url input_text.text
    """,
    "tools": """
        allowed_tools.tool_names allowed_tools.tools allowlist.allowed_domains always.tool_names and.filters
        approximate.city approximate.country approximate.region approximate.timezone auto.file_ids base64.data
        code_interpreter.container container_auto.file_ids container_reference.container_id custom.description
        custom.name domain_secrets.domain domain_secrets.name domain_secrets.value eq.key eq.value
        file_search.vector_store_ids filters.allowed_domains function.description function.name
        function.output_schema function.parameters grammar.definition image_generation.model image_generation.size
        inline.description inline.name input_image_mask.file_id input_image_mask.image_url json_schema.description
        json_schema.name json_schema.schema mcp.allowed_tools mcp.authorization mcp.headers mcp.name
        mcp.server_description mcp.server_label mcp.server_url mcp.tunnel_id namespace.description namespace.name
        never.tool_names skill_reference.skill_id skill_reference.version skills.description skills.name skills.path
        svg.model tool_search.description tool_search.parameters tools.annotations tools.description
        tools.input_schema tools.name
    """,
    "user": """
        .input .metadata .prompt_cache_key .safety_identifier .user background_options.continuation_id
        mcp_approval_response.reason message.content prompt.variables
    """,
}
REPLY = {
    "-": """
        .model acknowledged_safety_checks.code compaction.encrypted_content error.code error.type
        image_generation_call.size logprobs.token moderation_details.categories moderation_result.model
        pending_safety_checks.code program.fingerprint prompt.version reasoning.encrypted_content reasoning.mode
        response.image_generation_call.partial_image.background
        response.image_generation_call.partial_image.output_format
        response.image_generation_call.partial_image.quality response.image_generation_call.partial_image.size
        response.model response.shell_call_command.delta.obfuscation svg_usage.model top_logprobs.token
    """,
    "reasoning": """
        reasoning_text.text response.reasoning_summary_text.delta.delta response.reasoning_summary_text.done.text
        response.reasoning_text.delta.delta response.reasoning_text.done.text summary_text.text
    """,
    "reply": """
        container_file_citation.filename file_citation.filename misalignment.detailed_explanation
        misalignment.error_type misalignment.review_target output_text.text refusal.refusal
        response.audio.delta.delta response.audio.transcript.delta.delta response.output_text.delta.delta
        response.output_text.done.text response.refusal.delta.delta response.refusal.done.refusal steer.message
        url_citation.title url_citation.url
    """,
    "reply tool_results": """
        error.message error.param
    """,
    "system": """
        .instructions response.instructions
    """,
    "tool_calls": """
        action.commands click.keys code_interpreter_call.code create_file.diff create_file.path
        custom_tool_call.input custom_tool_call.name custom_tool_call.namespace delete_file.path double_click.keys
        drag.keys exec.command exec.env exec.user exec.working_directory file_search_call.queries
        find_in_page.pattern find_in_page.url function_call.arguments function_call.name function_call.namespace
        function_call_output.name function_call_output.namespace image_generation_call.revised_prompt keypress.keys
        mcp_approval_request.arguments mcp_approval_request.name mcp_approval_request.server_label
        mcp_call.arguments mcp_call.name mcp_call.server_label mcp_list_tools.server_label move.keys open_page.url
        pending_safety_checks.message program.code response.code_interpreter_call_code.delta.delta
        response.code_interpreter_call_code.done.code response.custom_tool_call_input.delta.delta
        response.custom_tool_call_input.done.input response.function_call_arguments.delta.delta
        response.function_call_arguments.done.arguments response.mcp_call_arguments.delta.delta
        response.mcp_call_arguments.done.arguments response.shell_call_command.added.command
        response.shell_call_command.delta.delta response.shell_call_command.done.command scroll.keys search.queries
        search.query tool_search_call.arguments type.text update_file.diff update_file.path
    """,
    "tool_results": """
        acknowledged_safety_checks.message apply_patch_call_output.output computer_screenshot.image_url
        custom_tool_call_output.output delta.stderr delta.stdout function_call_output.output http_error.message
        image.url image_generation_call.result local_shell_call_output.output logs.logs mcp_call.output
        mcp_list_tools.error mcp_protocol_error.message mcp_tool_execution_error.content output.stderr output.stdout
        program_output.result response.image_generation_call.partial_image.partial_image_b64 results.attributes
        results.filename results.text url.url
    """,
    "tool_results user": """
        input_file.file_data input_file.file_url input_file.filename input_image.image_url input_text.text
    """,
    "tools": """
        allowed_tools.tool_names allowed_tools.tools allowlist.allowed_domains always.tool_names and.filters
        approximate.city approximate.country approximate.region approximate.timezone auto.file_ids base64.data
        code_interpreter.container container_auto.file_ids container_reference.container_id custom.description
        custom.name domain_secrets.domain domain_secrets.name domain_secrets.value eq.key eq.value
        file_search.vector_store_ids filters.allowed_domains function.description function.name
        function.output_schema function.parameters grammar.definition image_generation.model image_generation.size
        inline.description inline.name input_image_mask.file_id input_image_mask.image_url json_schema.description
        json_schema.name json_schema.schema mcp.allowed_tools mcp.authorization mcp.headers mcp.name
        mcp.server_description mcp.server_label mcp.server_url mcp.tunnel_id namespace.description namespace.name
        never.tool_names skill_reference.skill_id skill_reference.version skills.description skills.name skills.path
        svg.model tool_search.description tool_search.parameters tools.annotations tools.description
        tools.input_schema tools.name user_location.city user_location.country user_location.region
        user_location.timezone
    """,
    "user": """
        .metadata .prompt_cache_key .safety_identifier .user instructions.content mcp_approval_response.reason
        prompt.variables response.metadata response.prompt_cache_key response.safety_identifier response.user
    """,
}

IDENTIFIER = re.compile(r".*[._](?:id|created_by)")
REQUESTS = (ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming, ResponseCompactParams)
REPLIES: tuple[Any, ...] = (sdk.Response, sdk.ResponseItemList, sdk.CompactedResponse, sdk.ResponseStreamEvent)


def table(told: dict[str, str]) -> dict[str, str]:
    return {place: kinds for kinds, places in told.items() for place in places.split()}


def seen(samples: Samples, found: Iterable[Document], slots: Callable[[Any], list[Slot]]) -> dict[str, str]:
    """The kinds of each place; `unknown` where it is none that the module knows."""
    kinds: dict[str, set[str]] = {}
    for document in found:
        for text in below(document):
            if text in samples.places:
                kinds.setdefault(samples.places[text], set())
        for slot in slots(document):
            if slot.text in samples.places:
                unknown = slot.surface.unknown or slot.surface is responses.OPAQUE
                kinds[samples.places[slot.text]].add("unknown" if unknown else slot.surface.kind.value)
    places = {place: " ".join(sorted(names)) or "-" for place, names in kinds.items()}
    return {place: names for place, names in places.items() if names != "-" or not IDENTIFIER.fullmatch(place)}


def spoken(document: Document) -> list[Slot]:
    return [told.slot for told in responses.reply_texts(document)]


def test_places_of_a_request() -> None:
    samples = Samples()
    assert seen(samples, samples.of(REQUESTS[0]), responses.request_slots) == table(REQUEST)


def test_places_of_replies_of_lists_and_of_streams() -> None:
    samples = Samples()
    found = [document for kind in (*REPLIES[:2], REPLIES[3]) for document in samples.of(kind)]
    assert seen(samples, found, spoken) == table(REPLY)


# -- a secret in each of them, through a policy

RULE = {"name": "r", "patterns": [{"name": "mark", "regex": "text-[0-9]+[.]"}], "on": list(Kind), "action": "redact"}
POLICY = chain([RULE])
MARK = re.compile(r"text-[0-9]+[.]")


def left(samples: Samples, value: Any) -> set[str]:
    """Places whose text is still there."""
    places = {samples.places[mark] for text in below(value) for mark in MARK.findall(text)}
    return {place for place in places if not IDENTIFIER.fullmatch(place)}


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: str(kind.__name__))
def test_a_secret_anywhere_in_a_request(kind: Any) -> None:
    samples = Samples()
    for document in samples.of(kind):
        assert left(samples, asked(POLICY, document)[1]) <= set(REQUEST["-"].split())


@pytest.mark.parametrize("kind", REPLIES[:3], ids=lambda kind: str(kind.__name__))
def test_a_secret_anywhere_in_a_reply(kind: Any) -> None:
    samples = Samples()
    for document in samples.of(kind):
        assert left(samples, hear(asked(POLICY)[0], document)) <= set(REPLY["-"].split())


def test_a_secret_anywhere_in_a_stream() -> None:
    samples = Samples()
    for event in samples.of(REPLIES[3]):
        out, _ = through(asked(POLICY)[0], stream_bytes([event]))
        assert left(samples, documents(out)) <= set(REPLY["-"].split())
