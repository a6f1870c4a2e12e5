"""The benchmark's verdict is read right, and its part about requests is passed. `make leakbench` runs all of it."""

import copy
from typing import Any

import pytest

from .parts import Unavailable, gateway, install, requests
from .verdict import faults

CASE = {
    "entity": "EMAIL",
    "carrier": "sse-delta-content",
    "encoding": "plain",
    "fragmentation": "adversarial",
    "request_site": "chat-content",
}
PARTIAL: dict[str, Any] = {
    "cases": [
        {
            "case": CASE,
            "complete_leak_partitions": 0,
            "partitions_partial": 0,
            "partitions_tried": 17,
            "transport_error": None,
        }
    ]
}
REPORT: dict[str, Any] = {
    "metrics": {
        "cases_inconclusive": 0,
        "cases_applicable": 32,
        "fidelity_rate": 1.0,
        "by_axis": {"request_site": {"chat-content": {"fidelity_rate": 1.0}}},
    },
    "checks": {"configured_upstream_boundary": {"leaked_entity_types": []}, "sse_validity": {"passed": True}},
}


def test_a_clean_run_has_no_fault() -> None:
    assert faults(REPORT, PARTIAL, {}) == []


@pytest.mark.parametrize("field", ["complete_leak_partitions", "partitions_partial", "transport_error"])
def test_a_value_or_a_part_of_it_that_comes_through_is_a_fault(field: str) -> None:
    partial = copy.deepcopy(PARTIAL)
    partial["cases"][0][field] = 3
    (fault,) = faults(REPORT, partial, {})
    assert fault.startswith("EMAIL, sse-delta-content, plain, adversarial, chat-content: of 17 cuts")


def test_values_that_are_lost_or_reach_the_provider_are_faults() -> None:
    report = copy.deepcopy(REPORT)
    report["metrics"] |= {
        "fidelity_rate": 0.5,
        "by_axis": {"request_site": {"tool-description": {"fidelity_rate": 0.5}}},
    }
    report["checks"]["configured_upstream_boundary"]["leaked_entity_types"] = ["SSN"]
    assert faults(report, PARTIAL, {}) == [
        "values of the caller did not come back: tool-description",
        "values of the caller reached the provider: SSN",
    ]


def test_a_run_that_measured_nothing_is_a_fault() -> None:
    assert faults({}, {}) == ["the benchmark left no report"]
    assert faults(REPORT, {"cases": []}, {}) == ["no case was tried"]
    report = copy.deepcopy(REPORT)
    report["metrics"] |= {"cases_inconclusive": 2, "cases_applicable": 30}
    assert faults(report, PARTIAL, {}) == ["2 cases ended without a result, 30 with one"]


def test_what_is_explained_is_no_fault_and_an_explanation_of_nothing_is() -> None:
    partial = copy.deepcopy(PARTIAL)
    partial["cases"][0]["complete_leak_partitions"] = 1
    assert faults(REPORT, partial, {"plain, adversarial": "known"}) == []
    (stale,) = faults(REPORT, PARTIAL, {"plain, adversarial": "known"})
    assert stale == "explained, but it no longer happens: plain, adversarial"


@pytest.fixture(scope="module")
def benchmark() -> None:
    try:
        install()
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.usefixtures("benchmark")
def test_no_value_of_the_caller_reaches_the_provider_and_all_come_back() -> None:
    with gateway("test-requests") as (sidecar, port):
        done = requests(sidecar, port)
    assert done.code == 0, done.said
