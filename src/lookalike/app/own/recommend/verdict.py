"""The recommendation that rows allow, in a sentence, which says so where nothing is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lookalike.base.text import counted
from lookalike.workflow.report.statistics.crossed import crossed_estimate
from lookalike.workflow.report.statistics.decisions import RATES, Decided, decisions, margin_of
from lookalike.workflow.report.statistics.verdict import Verdict

METRICS = ("R@1", "MAP@R")  # the first decides
MAPPED = {"rca": "relevant component analysis (RCA)", "whitening": "whitening"}
FURTHEST = 100.0  # points between two percentages
CHEAPER = 0.8  # of the milliseconds per query, from which on a row is called cheaper
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One way to search.

    Attributes:
        label: such as ``ProxyAnchor`` or ``untrained``.
        network: its name.
        trained: whether it has learned from the classes that train.
        structural: whether structural matching (DIML) orders the first by cosine anew.
        of_classes: by metric percent ``(S, C)``, per seed and held-out class.
        queries: ``(C,)``, of each class.
        query_ms: milliseconds per query, as measured; ``None`` where it was not.
        training_s: seconds of a training; ``None`` without one.
        map: linear map in closed form behind the network, empty for none.
        origin: of its numbers: the ``recipe``, and what a page of tables says of them.
    """

    label: str
    network: str
    trained: bool
    structural: bool
    of_classes: Mapping[str, Values]
    queries: Values
    query_ms: float | None = None
    training_s: float | None = None
    map: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Label and network, as text calls it."""
        return f"{self.label} ({self.network})"

    @property
    def seeds(self) -> int:
        """Number of trainings, 1 without one."""
        return len(self.of_classes[METRICS[0]])

    def mean(self, metric: str = METRICS[0]) -> float:
        """In percent, over all queries and seeds."""
        return float((self.of_classes[metric] @ self.queries).mean() / self.queries.sum())


class Case(StrEnum):
    """Honest answers: a trained row, no gain by training, undecided, or nothing trained."""

    TRAINED = "trained"
    NO_GAIN = "no gain by training"
    UNDECIDED = "undecided"
    NOT_TRAINED = "nothing trained"


@dataclass(frozen=True)
class Compared:
    """A row with its difference from the best untrained one, in percent points, by metric; none for that itself."""

    row: Row
    by: dict[str, Decided]

    @property
    def verdict(self) -> Verdict:
        """By the metric that decides."""
        return self.by[METRICS[0]].decision.verdict

    @property
    def points(self) -> str:
        """Its difference with the interval, in words."""
        decided = self.by[METRICS[0]]
        return f"{decided.estimate.mean:+.1f} points{interval(decided)}"


@dataclass(frozen=True)
class Recommendation:
    """The recommended row, with the differences, the sentence and the notes behind it.

    Attributes:
        case: which answer it is.
        row: that is recommended.
        reference: the best untrained row, which the others are held against.
        compared: all rows, the best first.
        sentence: the recommendation.
        notes: what else follows, a sentence each.
    """

    case: Case
    row: Row
    reference: Row
    compared: tuple[Compared, ...]
    sentence: str
    notes: tuple[str, ...]


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
    ordered = tuple(sorted([*compared, Compared(reference, {})], key=lambda each: -each.row.mean()))
    trained = [each for each in ordered if each.row.trained]
    free, notes = _untrained(reference, compared)
    held_out = f"on {counted(len(free.queries), 'class')} held out"
    if better := [each for each in trained if each.verdict == Verdict.HIGHER]:
        best = better[0]
        sentence = (
            f"Take {best.row.name}: R@1 {best.row.mean():.1f} % {held_out}, "
            f"{best.points} against the best untrained row, {reference.name}."
        )
        rest = [each.row for each in trained if each is not best]
        notes = (*_rivals(best.row, rest), *_cost(best.row, free))
        return Recommendation(Case.TRAINED, best.row, reference, ordered, sentence, notes)
    how = " with structural matching" if free.structural else f" after {MAPPED[free.map]}" if free.map else ""
    take = f"Take the untrained features of {free.network}{how}: R@1 {free.mean():.1f} % {held_out}"
    if not trained:
        sentence = f"{take}; nothing was trained, so nothing says whether training would gain."
        return Recommendation(Case.NOT_TRAINED, free, reference, ordered, sentence, notes)
    best = trained[0]
    if all(each.verdict != Verdict.UNDECIDED for each in trained):
        tried = counted(len(trained), "trained row")
        sentence = f"{take}; training gained nothing: the best of {tried}, {best.row.name}, {best.points}."
        return Recommendation(Case.NO_GAIN, free, reference, ordered, sentence, notes)
    decision = best.by[METRICS[0]].decision
    half, known = (decision.high - decision.low) / 2, ""
    if not np.isnan(half):
        basis = f"{counted(len(best.row.queries), 'class')} and {counted(best.row.seeds, 'seed')}"
        told = f"a difference below about {half:.0f} points cannot" if half < FURTHEST else "no difference can"
        known = f": with {basis} {told} be told"
    sentence = f"{take}. Whether training gains is not decided: {best.row.name}, {best.points}{known}."
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
    """The row to take without training, with notes: structural matching only where it is decidedly better.

    A linear map costs nothing at query time, so it need not be.
    """
    plain = [
        each
        for each in compared
        if each.row.network == reference.network and not each.row.trained and not each.row.structural
    ]
    if reference.map:
        start = next(each for each in plain if not each.row.map)
        known = "decidedly" if start.verdict == Verdict.LOWER else "not decidedly"
        gain = -start.by[METRICS[0]].estimate.mean
        return reference, (f"{reference.label} adds {gain:.1f} points of R@1 to {start.row.name}, {known} so.",)
    sibling = max(plain, key=lambda each: each.row.mean(), default=None)
    if not reference.structural or sibling is None or sibling.verdict == Verdict.LOWER:
        return reference, ()
    gain = -sibling.by[METRICS[0]].estimate.mean
    other = METRICS[1]
    beside = f"; of {other} it is" if sibling.by[other].decision.verdict == Verdict.LOWER else ""
    known = "not decided" if sibling.verdict == Verdict.UNDECIDED else f"decidedly {sibling.verdict.value}"
    note = f"Structural matching adds {gain:.1f} points of R@1 to {sibling.row.name}, which is {known}{beside}."
    return sibling.row, (note,)


def _rivals(best: Row, others: Sequence[Row]) -> tuple[str, ...]:
    """Trained rows that are not decidedly worse, and which of them are cheaper."""
    found = zip(others, against(others, best, candidates=len(others) + 1), strict=True)
    near = [row for row, decided in found if decided.decision.verdict != Verdict.LOWER]
    cheap = [row for row in near if row.query_ms and best.query_ms and row.query_ms < CHEAPER * best.query_ms]
    notes = [f"Not decidedly worse: {', '.join(row.label for row in near)}."] if near else []
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


def interval(decided: Decided) -> str:
    """Its ends in words, cut to what a difference of percentages can be; empty where there is none."""
    low, high = decided.decision.low, decided.decision.high
    return "" if np.isnan(low) else f" ({max(low, -FURTHEST):+.1f} to {min(high, FURTHEST):+.1f})"
