"""A recommendation as one HTML page that needs no other file, as lines, and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from lookalike.data.embedded import embedded
from lookalike.data.pictures import read_picture
from lookalike.own.page import SIDE
from lookalike.own.recommend.confusion import Pair
from lookalike.own.recommend.rows import METRICS, Row, as_data, chance
from lookalike.own.recommend.verdict import Case, Compared, Recommendation
from lookalike.statistics.decisions import Decided
from lookalike.text import aligned, counted

TEMPLATE = Path(__file__).with_name("page.html")
HEADING = ("row", "network", "R@1", "difference", "MAP@R", "difference", "ms per query", "training, min")
DASH = "–"


@dataclass(frozen=True)
class Report:
    """A recommendation with what a reader wants to know beside it.

    Attributes:
        folder: of the pictures.
        recommendation: what to do.
        pairs: classes that the recommended row takes for each other.
        pictures: folder that the paths of pairs are below.
        not_tried: by row, why.
        terms: how it was done, a sentence each.
        lines: of a shell, what to do next.
    """

    folder: str
    recommendation: Recommendation
    pairs: Sequence[Pair]
    pictures: Path
    not_tried: Mapping[str, str]
    terms: Sequence[str]
    lines: Sequence[str]


def page(report: Report) -> str:
    """The page."""
    from jinja2 import Environment

    found = report.recommendation
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        folder=report.folder,
        sentence=found.sentence,
        notes=found.notes,
        decided=found.case in (Case.TRAINED, Case.NO_GAIN),
        measured=_measured(found.row),
        heading=HEADING,
        rows=[
            {"cells": cells(each), "chosen": each.row is found.row, "trained": each.row.trained}
            for each in found.compared
        ],
        beneath=_beneath(found),
        not_tried=_not_tried(report),
        recommended=found.row.name,
        pairs=[_pair(report, each) for each in report.pairs],
        lines=report.lines,
        terms=report.terms,
    )


def text(report: Report) -> str:
    """The same for a terminal, without pictures."""
    found = report.recommendation
    rows = [list(HEADING)]
    for each in found.compared:
        label, *others = cells(each)
        rows.append([f"* {label}" if each.row is found.row else label, *others])
    lines = [found.sentence, *found.notes, "", aligned(rows), *_beneath(found)]
    if report.not_tried:
        lines += ["", "not tried:", *(f"  {line}" for line in _not_tried(report))]
    if report.pairs:
        told = ", ".join(f"{' / '.join(pair.classes)} ({pair.wrong} of {pair.queries})" for pair in report.pairs[:3])
        lines += ["", f"taken for each other: {told}"]
    return "\n".join([*lines, "", "next:", *(f"  {line}" for line in report.lines)])


def data(report: Report) -> dict[str, Any]:
    """The same as JSON takes it."""
    found = report.recommendation
    return {
        "folder": report.folder,
        "case": found.case.value,
        "sentence": found.sentence,
        "notes": list(found.notes),
        "recommended": as_data(found.row),
        "reference": as_data(found.reference),
        "rows": [
            as_data(each.row) | {"against_reference": {metric: _decided(by) for metric, by in each.by.items()}}
            for each in found.compared
        ],
        "chance": chance(found.row),
        "confused": [
            {"classes": list(pair.classes), "wrong": pair.wrong, "of": pair.queries, "query": pair.query}
            | {"match": pair.match}
            for pair in report.pairs
        ],
        "not_tried": dict(report.not_tried),
        "terms": list(report.terms),
        "next": list(report.lines),
    }


def cells(compared: Compared) -> list[str]:
    """What a table says of a row."""
    row = compared.row
    numbers = [
        cell
        for metric in METRICS
        for cell in (f"{row.mean(metric):.1f}", _difference(compared.by[metric]) if compared.by else "reference")
    ]
    query = DASH if row.query_ms is None else f"{row.query_ms:.1f}"
    training = DASH if row.training_s is None else f"{row.training_s / 60:.1f}"
    return [row.label, row.start, *numbers, query, training]


def _difference(decided: Decided) -> str:
    mean, low, high = decided.estimate.mean, decided.decision.low, decided.decision.high
    if np.isnan(low):
        return f"{mean:+.1f}"
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f}), {decided.decision.verdict}"


def _measured(row: Row) -> str:
    where = "each other" if row.gallery is None else f"{row.searched:,} others, the gallery"
    return (
        f"{counted(int(row.queries.sum()), 'picture')} of {counted(len(row.queries), 'class')} that nothing has "
        f"learned from search {where}. R@1: how often the first match is of the same class, in percent; MAP@R: how "
        f"well all of the same class stand first. Chance finds {chance(row):.1f} %."
    )


def _beneath(found: Recommendation) -> list[str]:
    level = "" if found.level is None else f" (for R@1 of {found.level:.1f} %)"
    compared = [
        f"Differences in points against the best untrained row, {found.reference.name}, with intervals{level} that "
        "hold for other seeds and other classes of the kind; higher, lower, small (below 2 points of R@1, 1 of MAP@R) "
        "or undecided, with at most 5 % of the decided ones expected to be wrong."
    ]
    costs = (
        f"Milliseconds per query: a picture represented, and searched among {found.row.searched:,}, once all is "
        "loaded. For a row that an older version has measured it is what the jobs took, with their start."
    )
    return [*(compared if found.level is not None else []), costs]


def _not_tried(report: Report) -> list[str]:
    labels: dict[str, list[str]] = {}
    for label, why in report.not_tried.items():
        labels.setdefault(why, []).append(label)
    return [f"{', '.join(own)}: {why}" for why, own in labels.items()]


def _pair(report: Report, pair: Pair) -> dict[str, Any]:
    return {
        "query": embedded(read_picture(report.pictures / pair.query), SIDE),
        "match": embedded(read_picture(report.pictures / pair.match), SIDE),
        "query_class": PurePosixPath(pair.query).parent.name,
        "match_class": PurePosixPath(pair.match).parent.name,
        "wrong": pair.wrong,
        "queries": pair.queries,
    }


def _decided(decided: Decided) -> dict[str, Any]:
    def number(value: float) -> float | None:
        return None if np.isnan(value) else value

    return {
        "points": decided.estimate.mean,
        "low": number(decided.decision.low),
        "high": number(decided.decision.high),
        "level": decided.decision.level,
        "verdict": decided.decision.verdict.value,
    }
