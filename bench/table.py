"""Results as text tables and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.rounds import Lot, Plan, Results, Sample

BASE, PEER = "nginx", "litellm"
GUARDED = "sidecar default"


def render(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its first column to the left and the others to the right."""
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join([f"\n{title}", *(_line(line, widths) for line in lines)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if not column else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  " + "   ".join([first, *others]).rstrip()


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Minimum, median and maximum; a dash for no values."""
    if not values:
        return "–"
    return " / ".join(format(value, form) for value in (min(values), median(values), max(values)))


def _of(results: Results, lot: str, subject: str) -> dict[int, Sample]:
    return {s.round: s for s in results.samples if s.subject == subject and s.lot.key == lot}


def ratios(results: Results, lot: str, above: str, below: str) -> list[float]:
    """CPU time of `above` divided by that of `below`, for each round that has both."""
    top, bottom = _of(results, lot, above), _of(results, lot, below)
    return [top[n].micros / bottom[n].micros for n in top if n in bottom and bottom[n].micros]


def added(results: Results, subject: str, quantile: float) -> list[float]:
    """For each round: this quantile of the time to first byte in µs, minus that of the direct way."""
    own, direct = _of(results, "first", subject), _of(results, "first", "direct")
    return [
        (_quantile(own[n].first_bytes, quantile) - _quantile(direct[n].first_bytes, quantile)) * 1e6
        for n in own
        if n in direct and own[n].first_bytes
    ]


def _quantile(ordered: Sequence[float], quantile: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] if ordered else 0.0


def _subjects(results: Results) -> list[str]:
    return list(dict.fromkeys(sample.subject for sample in results.samples))


def cpu_table(results: Results, lot: Lot) -> str:
    """CPU time per request or frame, and how it compares with both references."""
    rows = []
    for subject in _subjects(results):
        samples = list(_of(results, lot.key, subject).values())
        shown = [sample.micros for sample in samples if sample.cpu]
        rows.append(
            (
                subject,
                spread(shown),
                spread(ratios(results, lot.key, subject, BASE), ".2f") if shown else "–",
                spread(ratios(results, lot.key, PEER, subject)) if shown else "–",
                f"{median(sample.rate for sample in samples):,.0f}",
            )
        )
    heads = ("min / median / max", "µs", f"times {BASE}", f"{PEER} ÷ this", "requests/s")
    return render(f"CPU time per {lot.title}", heads, rows)


def first_byte_table(results: Results) -> str:
    """What each subject adds to the time to first byte."""
    rows = [
        (name, spread(added(results, name, 0.5), ".0f"), spread(added(results, name, 0.99), ".0f"))
        for name in _subjects(results)
        if name != "direct"
    ]
    heads = ("min / median / max", "median, µs", "99th percentile, µs")
    return render("Added time to first byte of a stream, one request at a time, against direct", heads, rows)


def memory_table(results: Results) -> str:
    """Memory and start-up."""
    rows = [
        (
            g.subject,
            f"{g.ready / 1024:.1f}",
            f"{g.before / 1024:.1f}",
            f"{g.after / 1024:.1f}",
            f"{(g.after - g.before) / 1024:+.2f}",
            f"{g.exchanges:,}",
            f"{g.peak / 1024:.1f}",
            spread(results.ready.get(g.subject, []), ".2f"),
        )
        for g in results.growth
    ]
    heads = ("MiB resident", "ready", "before", "after", "growth", "exchanges", "peak", "ready within, s")
    return render("Memory over many exchanges (half buffered, half streamed), and time to ready", heads, rows)


def errors_line(results: Results) -> str:
    """Failed requests by subject; every number here should be 0."""
    found = ", ".join(f"{name} {count}" for name, count in results.errors().items())
    return f"\nErrors (failed requests and missing frames): {found}"


def targets(results: Results) -> str:
    """The measured medians beside what the default policy is allowed to cost."""
    growth = [g.after - g.before for g in results.growth if g.subject == GUARDED]
    rows = [
        _target("buffered, times nginx", ratios(results, "buffered", GUARDED, BASE), "at most 20"),
        _target("buffered, LiteLLM ÷ sidecar", ratios(results, "buffered", PEER, GUARDED), "at least 40"),
        _target("slow streams per frame, times nginx", ratios(results, "paced", GUARDED, BASE), "at most 12"),
        _target("ready, s", results.ready.get(GUARDED, []), "at most 1"),
        _target("memory growth, MiB", [kib / 1024 for kib in growth], "flat"),
    ]
    title = f"Targets for {GUARDED}"
    if results.leaks:
        title += f" (IT LETS A KEY THROUGH IN {' AND '.join(results.leaks).upper()} REPLIES: figures do not count)"
    return render(title, ("", "measured median", "target"), rows)


def _target(name: str, values: Sequence[float], bound: str) -> tuple[str, str, str]:
    return name, f"{median(values):.2f}" if values else "–", bound


def report(results: Results, plan: Plan) -> str:
    """All tables of one run."""
    parts = [cpu_table(results, lot) for lot in plan.lots]
    parts += [first_byte_table(results), memory_table(results), targets(results), errors_line(results)]
    return "\n".join(parts)


def as_json(results: Results, facts: dict[str, str]) -> dict[str, Any]:
    """The same as plain data; times to first byte as quantiles in µs."""
    return {
        "facts": facts,
        "rounds": results.rounds,
        "skipped": results.skipped,
        "leaks": results.leaks,
        "ready_s": results.ready,
        "memory_kib": [asdict(growth) for growth in results.growth],
        "samples": [_plain(sample) for sample in results.samples],
    }


def _plain(sample: Sample) -> dict[str, Any]:
    return {
        "round": sample.round,
        "subject": sample.subject,
        "lot": sample.lot.key,
        "requests": sample.requests,
        "frames": sample.requests * sample.lot.frames,
        "errors": sample.errors,
        "missing_frames": sample.missing_frames,
        "cpu_us": sample.micros,
        "seconds": sample.seconds,
        "first_byte_us": {
            str(quantile): _quantile(sample.first_bytes, quantile) * 1e6 for quantile in (0.5, 0.9, 0.99)
        },
    }
