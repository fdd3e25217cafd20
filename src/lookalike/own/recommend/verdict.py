"""What the rows come to: a recommendation in a sentence, which says so where nothing is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lookalike.own.recommend.rows import METRICS, Row
from lookalike.statistics.crossed import crossed_estimate
from lookalike.statistics.decisions import RATES, Decided, decisions, margin_of
from lookalike.statistics.verdict import Verdict
from lookalike.text import counted

CHEAPER = 0.8  # of the milliseconds per query, from which on a row is called cheaper


class Case(StrEnum):
    """Which answer is the honest one."""

    TRAINED = "trained"
    NO_GAIN = "no gain by training"
    UNDECIDED = "undecided"
    NOT_TRAINED = "nothing trained"


@dataclass(frozen=True)
class Compared:
    """A row with what it differs by from the best untrained one, in percent points, by metric."""

    row: Row
    by: dict[str, Decided]

    @property
    def verdict(self) -> Verdict:
        """By the metric that decides."""
        return self.by[METRICS[0]].decision.verdict


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Attributes:
        case: which answer it is.
        row: that is recommended.
        reference: the best untrained row, which the others are held against.
        compared: all rows, the best first; the reference without differences.
        sentence: the recommendation.
        notes: what else follows, a sentence each.
    """

    case: Case
    row: Row
    reference: Row
    compared: tuple[Compared, ...]
    sentence: str
    notes: tuple[str, ...]

    @property
    def level(self) -> float | None:
        """Of the intervals, in percent; ``None`` where nothing was compared."""
        levels = [100 * each.by[METRICS[0]].decision.level for each in self.compared if each.by]
        return levels[0] if levels else None


def recommend(rows: Sequence[Row]) -> Recommendation:
    """The recommendation that rows allow.

    All rows are held against the best untrained one, with structural matching or without. A difference is decided as
    the project's claims are: by an interval over seeds and held-out classes, all together. A trained row is recommended
    only if it is decidedly better; structural matching of untrained features likewise.

    Args:
        rows: of the same held-out classes, at least one of them untrained.

    Raises:
        ValueError: without an untrained row.
    """
    untrained = [row for row in rows if not row.trained]
    if not untrained:
        raise ValueError("no row is untrained, so nothing says what training is worth")
    reference = max(untrained, key=Row.mean)
    others = [row for row in rows if row is not reference]
    by_metric = {metric: against(others, reference, metric, candidates=len(untrained)) for metric in METRICS}
    compared = [
        Compared(row, {metric: by_metric[metric][place] for metric in METRICS}) for place, row in enumerate(others)
    ]
    trained = [each for each in compared if each.row.trained]
    better = [each for each in trained if each.verdict == Verdict.HIGHER]
    free, notes = _untrained(reference, compared)
    ordered = tuple(sorted([*compared, Compared(reference, {})], key=lambda each: -each.row.mean()))
    if better:
        best = max(better, key=lambda each: each.row.mean())
        sentence = (
            f"Take {best.row.name}: R@1 {best.row.mean():.1f} % on {_classes(best.row)} held out, "
            f"{_points(best)} against the best untrained row, {reference.name}."
        )
        rest = [each.row for each in trained if each is not best]
        return Recommendation(
            Case.TRAINED, best.row, reference, ordered, sentence, (*_rivals(best.row, rest), *_cost(best.row, free))
        )
    take = f"Take {_features(free)}: R@1 {free.mean():.1f} % on {_classes(free)} held out"
    if not trained:
        sentence = f"{take}; nothing was trained, so nothing says whether training would gain."
        return Recommendation(Case.NOT_TRAINED, free, reference, ordered, sentence, notes)
    best = max(trained, key=lambda each: each.row.mean())
    if all(each.verdict != Verdict.UNDECIDED for each in trained):
        tried = counted(len(trained), "trained row")
        sentence = f"{take}; training gained nothing: the best of {tried}, {best.row.name}, {_points(best)}."
        return Recommendation(Case.NO_GAIN, free, reference, ordered, sentence, notes)
    decision = best.by[METRICS[0]].decision
    half, known = (decision.high - decision.low) / 2, ""
    if not np.isnan(half):
        basis = f"{_classes(best.row)} and {counted(best.row.seeds, 'seed')}"
        known = f": with {basis} a difference below about {half:.0f} points cannot be told"
    sentence = f"{take}. Whether training gains is not decided: {best.row.name}, {_points(best)}{known}."
    more = "More classes tell more than more seeds where classes differ; `--hours` adds batches and methods."
    return Recommendation(Case.UNDECIDED, free, reference, ordered, sentence, (*notes, more))


def against(rows: Sequence[Row], reference: Row, metric: str = METRICS[0], *, candidates: int) -> list[Decided]:
    """The differences of rows to one, rows minus it, decided together at a single look, which has the rate of all.

    Args:
        rows: of the same classes, each with seeds of its own number.
        reference: row with as many seeds, or a single one.
        metric: one of `METRICS`.
        candidates: rows of which the reference was taken by the same pictures. The differences to each of the others
            count as asked, too, as noise may have made it the best.
    """
    differences = [row.of_classes[metric] - reference.of_classes[metric] for row in rows]
    estimates = [crossed_estimate(each, reference.queries) for each in differences]
    others = (candidates - 1) * len(rows)
    decided = decisions(estimates, [margin_of(metric)] * len(rows), sum(RATES), others=others)
    return [Decided(*pair) for pair in zip(decided, estimates, strict=True)]


def _untrained(reference: Row, compared: Sequence[Compared]) -> tuple[Row, tuple[str, ...]]:
    """What to take without training: structural matching only where it is decidedly better."""
    others = [each for each in compared if each.row.start == reference.start and not each.row.trained]
    plain = [each for each in others if not each.row.structural]
    if not reference.structural or not plain:
        return reference, ()
    (sibling,) = plain
    if sibling.verdict == Verdict.LOWER:
        return reference, ()
    gain = -sibling.by[METRICS[0]].estimate.mean
    other = METRICS[1]
    beside = f"; of {other} it is" if sibling.by[other].decision.verdict == Verdict.LOWER else ""
    known = "not decided" if sibling.verdict == Verdict.UNDECIDED else f"decidedly {sibling.verdict.value}"
    note = f"Structural matching adds {gain:.1f} points of R@1 to {sibling.row.name}, which is {known}{beside}."
    return sibling.row, (note,)


def _rivals(best: Row, others: Sequence[Row]) -> tuple[str, ...]:
    """Trained rows that are cheaper and not decidedly worse."""
    alike = all(each.seeds == best.seeds for each in others)
    found = zip(others, against(others, best, candidates=len(others) + 1), strict=True) if alike else ()
    near = [row for row, decided in found if decided.decision.verdict not in (Verdict.LOWER,)]
    cheap = [row for row in near if row.query_ms and best.query_ms and row.query_ms < CHEAPER * best.query_ms]
    notes = []
    if near:
        notes.append(f"Not decidedly worse: {', '.join(row.label for row in near)}.")
    if cheap:
        listed = ", ".join(f"{row.label} ({row.query_ms:.1f} ms)" for row in cheap)
        notes.append(f"Of these cheaper at query time than its {best.query_ms:.1f} ms: {listed}.")
    return tuple(notes)


def _cost(best: Row, free: Row) -> tuple[str, ...]:
    if best.query_ms is None or free.query_ms is None or best.training_s is None:
        return ()
    return (
        f"It costs {best.query_ms:.1f} ms a query ({free.query_ms:.1f} untrained) and "
        f"{best.training_s / 60:.1f} minutes of training.",
    )


def _features(row: Row) -> str:
    how = " with structural matching" if row.structural else ""
    return f"the untrained features of {row.start}{how}"


def _points(compared: Compared) -> str:
    decided = compared.by[METRICS[0]]
    mean, low, high = decided.estimate.mean, decided.decision.low, decided.decision.high
    interval = "" if np.isnan(low) else f" ({low:+.1f} to {high:+.1f})"
    return f"{mean:+.1f} points{interval}"


def _classes(row: Row) -> str:
    return counted(len(row.queries), "class")
