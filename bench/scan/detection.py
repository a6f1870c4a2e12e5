"""Recall, precision and F1 of every subject on the same texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.scan import texts
from bench.scan.fixtures import CHECKED, GROUPS, PREFIXED, Case
from bench.scan.subjects import Column, Found, Sidecar
from bench.scan.surroundings import DELTAS, SURROUNDINGS, Wrap, values
from bench.table import render


@dataclass(slots=True)
class Score:
    """Counted in cases. `whole` are the values, of those with a known place, that findings cover whole."""

    right: int = 0
    missed: int = 0
    wrong: int = 0
    whole: int = 0
    placed: int = 0

    @property
    def recall(self) -> float:
        return _share(self.right, self.right + self.missed)

    @property
    def precision(self) -> float:
        return _share(self.right, self.right + self.wrong)

    @property
    def f1(self) -> float:
        return _share(2 * self.right, 2 * self.right + self.wrong + self.missed)

    def count(self, case: Case, found: Found) -> None:
        """A positive case is right when a finding touches what is to be found; any finding in a negative is wrong."""
        if not case.positive:
            self.wrong += bool(found)
            return
        hit = any(touches(span, found) for span in case.spans) if case.spans else bool(found)
        self.right += hit
        self.missed += not hit
        self.placed += len(case.spans)
        self.whole += sum(covers(span, found) for span in case.spans)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def touches(span: tuple[int, int], found: Found) -> bool:
    return any(start < span[1] and end > span[0] for start, end in found)


def covers(span: tuple[int, int], found: Found) -> bool:
    """Findings together leave nothing of the span."""
    at = span[0]
    for start, end in sorted(found):
        if start <= at < end:
            at = end
    return at >= span[1]


@dataclass(slots=True)
class Scores:
    """Scores of one column, by group and by family."""

    label: str
    groups: dict[str, Score] = field(default_factory=dict)
    families: dict[tuple[str, str], Score] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        return self.label.startswith("sidecar")

    def count(self, case: Case, found: Found) -> None:
        for score in (
            self.groups.setdefault(case.group, Score()),
            self.families.setdefault((case.group, case.family), Score()),
        ):
            score.count(case, found)


def score(cases: Sequence[Case], columns: dict[str, list[Column]]) -> dict[str, list[Scores]]:
    """By kind, the scores of each of its columns."""
    results: dict[str, list[Scores]] = {}
    for kind, subjects in columns.items():
        own = [case for case in cases if case.kind == kind]
        for column in subjects:
            scores = Scores(column.label)
            for case, found in zip(own, column.finder.find([case.text for case in own]), strict=True):
                scores.count(case, found)
            results.setdefault(kind, []).append(scores)
    return results


def group_table(results: dict[str, list[Scores]]) -> str:
    rows = []
    for group, kind in GROUPS.items():
        for scores in results[kind]:
            s = scores.groups.get(group)
            if s is not None:
                marks = (s.recall, s.precision, s.f1, _share(s.whole, s.placed))
                counts = (s.right + s.missed, s.missed, s.wrong)
                rows.append((f"{group}: {scores.label}", *(f"{m:.3f}" for m in marks), *map(str, counts)))
    heads = ("group: subject", "recall", "precision", "F1", "whole value", "positives", "missed", "false alarms")
    return render("Detection on the fixtures (any finding in a negative text is a false alarm)", heads, rows)


def family_table(results: dict[str, list[Scores]]) -> str:
    """Families in which the F1 of some peer is better than that of every column of the sidecar's."""
    rows, total = [], 0
    for kind, scores in results.items():
        own = [s for s in scores if s.own]
        peers = [s for s in scores if not s.own]
        for key in own[0].families:
            total += 1
            best = max(own, key=lambda s: s.families[key].f1).families[key]
            if max((s.families[key].f1 for s in peers), default=0.0) > best.f1:
                said = ", ".join(f"{s.label} {s.families[key].f1:.2f}" for s in scores)
                rows.append(
                    (f"{key[1]} ({kind})", f"{best.missed} of {best.right + best.missed}", str(best.wrong), said)
                )
    heads = ("family", "missed", "false alarms", "F1")
    title = f"Families where a peer has a better F1 than the sidecar at its best: {len(rows)} of {total}"
    return render(f"{title}\n{_behind(results)}", heads, rows)


def _behind(results: dict[str, list[Scores]]) -> str:
    """Of each column of the sidecar's, in how many families a peer's F1 is better."""
    said = []
    for kind, scores in results.items():
        peers = [s for s in scores if not s.own]
        for own in (s for s in scores if s.own):
            count = sum(any(p.families[key].f1 > mine.f1 for p in peers) for key, mine in own.families.items())
            said.append(f"{own.label} ({kind}) {count} of {len(own.families)}")
    return f"Families where a peer's is better than one column's: {', '.join(said)}"


def surroundings_table(cases: Sequence[Case], columns: dict[str, list[Column]], each: int) -> str:
    """Recall of the same values in other surroundings, in per cent of the values."""
    parts = []
    for group in (PREFIXED, CHECKED):
        chosen, subjects = values(cases, group, each), columns[GROUPS[group]]
        rows = [(name, *(_recall(wrap, chosen, s) for s in subjects)) for name, wrap in SURROUNDINGS.items()]
        rows += [_streamed_row(chosen, size, subjects) for size in DELTAS]
        title = f"Recall of {len(chosen)} values, {group}, by surroundings, in % (touched / whole)"
        parts.append(render(title, ("", *(s.label for s in subjects)), rows))
    return "\n".join(parts)


def _recall(wrap: Wrap, chosen: Sequence[str], column: Column) -> str:
    texts_ = [wrap(value) for value in chosen]
    places = [_place(text, value) for text, value in zip(texts_, chosen, strict=True)]
    found = column.finder.find(texts_)
    touched = sum(touches(span, got) for span, got in zip(places, found, strict=True))
    whole = sum(covers(span, got) for span, got in zip(places, found, strict=True))
    return f"{_percent(touched, chosen)} / {_percent(whole, chosen)}"


def _place(text: str, value: str) -> tuple[int, int]:
    """Where a value stands; where JSON has escaped parts of it, from its first characters on."""
    at = text.find(value)
    start = at if at >= 0 else max(0, text.find(value[:4]))
    return start, start + len(value)


def _percent(part: int, chosen: Sequence[str]) -> str:
    return f"{100 * part / len(chosen):.0f}" if chosen else "–"


def _streamed_row(chosen: Sequence[str], size: int, subjects: Sequence[Column]) -> tuple[str, ...]:
    """How many values come out of a stream as they come out of the whole text, in a sentence."""
    cells = []
    for subject in subjects:
        if not isinstance(subject.finder, Sidecar):
            cells.append("–")
            continue
        wrapped = [SURROUNDINGS["in a sentence"](value) for value in chosen]
        places = [_place(text, value) for text, value in zip(wrapped, chosen, strict=True)]
        found = [subject.finder.find_streamed(text, size)[0] for text in wrapped]
        touched = sum(touches(span, got) for span, got in zip(places, found, strict=True))
        whole = sum(covers(span, got) for span, got in zip(places, found, strict=True))
        cells.append(f"{_percent(touched, chosen)} / {_percent(whole, chosen)}")
    return (f"in deltas of {size}", *cells)


def alarms_table(columns: dict[str, list[Column]], size: int) -> str:
    """Findings in texts that hold nothing to be found."""
    samples = {name: make(size, 7) for name, make in texts.CLEAN.items()}
    samples["base64"] = texts.base64_text(size, 7)
    rows = []
    for kind, subjects in columns.items():
        for column in subjects:
            counts = [len(found) for found in column.finder.find(list(samples.values()))]
            rows.append((f"{kind}: {column.label}", *map(str, counts)))
    return render(f"Findings in {size // 1000} kB of text that holds none", ("", *samples), rows)


def speed_table(columns: dict[str, list[Column]], seconds: float) -> str:
    """What one look costs each subject, for orientation."""
    samples = {name: make(10_000, 11) for name, make in texts.CLEAN.items()}
    rows = []
    for kind, subjects in columns.items():
        for column in subjects:
            cells = (column.finder.nanoseconds(text, seconds) / len(text.encode()) for text in samples.values())
            rows.append((f"{kind}: {column.label}", *(f"{cell:,.1f}" for cell in cells)))
    return render("CPU time for 10 kB, ns per byte, warm", ("", *samples), rows)


def as_json(results: dict[str, list[Scores]]) -> dict[str, object]:
    return {
        kind: {s.label: {family: _plain(score) for (_, family), score in s.families.items()} for s in scores}
        for kind, scores in results.items()
    }


def _plain(score: Score) -> dict[str, object]:
    counts = {"right": score.right, "missed": score.missed, "wrong": score.wrong}
    return {**counts, "recall": score.recall, "precision": score.precision, "f1": score.f1}


def misses(cases: Iterable[Case], column: Column, group: str) -> list[tuple[Case, Found]]:
    """The cases of a group that a column gets wrong, for whoever mends a detector."""
    own = [case for case in cases if case.group == group]
    wrong = []
    for case, found in zip(own, column.finder.find([case.text for case in own]), strict=True):
        one = Score()
        one.count(case, found)
        if one.missed or one.wrong:
            wrong.append((case, found))
    return wrong
