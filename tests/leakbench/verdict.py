"""What the reports of the benchmark say about a gateway."""

from collections.abc import Iterator, Mapping
from typing import Any

from .explained import EXPLAINED

Report = Mapping[str, Any]
Case = Mapping[str, str]


def faults(report: Report, partial: Report, explained: Mapping[str, str] = EXPLAINED) -> list[str]:
    """What is wrong, in a line each; nothing when the gateway passes but for what is explained."""
    if not report or not partial:
        return ["the benchmark left no report"]
    found = [*_whole(report), *_leaks(partial)]
    stale = [f"explained, but it no longer happens: {key}" for key in explained if not any(key in it for it in found)]
    return [*(it for it in found if not any(key in it for key in explained)), *stale]


def _whole(report: Report) -> Iterator[str]:
    """Faults of the run as a whole: cases without a result, values that did not come back or reached the provider."""
    metrics, boundary = report["metrics"], report["checks"]["configured_upstream_boundary"]
    if metrics["cases_inconclusive"] or not metrics["cases_applicable"]:
        yield f"{metrics['cases_inconclusive']} cases ended without a result, {metrics['cases_applicable']} with one"
    if metrics["fidelity_rate"] < 1:
        lost = [site for site, row in metrics["by_axis"]["request_site"].items() if row["fidelity_rate"] < 1]
        yield f"values of the caller did not come back: {', '.join(lost)}"
    if reached := boundary["leaked_entity_types"]:
        yield f"values of the caller reached the provider: {', '.join(reached)}"
    if not report["checks"]["sse_validity"]["passed"]:
        yield "a stream was no valid stream of events"


def _leaks(partial: Report) -> Iterator[str]:
    """A line for each case in which a value of the provider's, or a part of one, came through."""
    if not partial["cases"]:
        yield "no case was tried"
    for row in partial["cases"]:
        whole, parts = row["complete_leak_partitions"], row["partitions_partial"]
        if whole or parts or row["transport_error"]:
            tried = row["partitions_tried"]
            yield f"{said(row['case'])}: of {tried} cuts {whole} leak the value, {parts} a part of it"


def said(case: Case) -> str:
    return ", ".join(case[axis] for axis in ("entity", "carrier", "encoding", "fragmentation", "request_site"))
