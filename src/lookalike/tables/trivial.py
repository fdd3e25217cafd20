"""Which rows of a table reach less than an answer that is given without looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from lookalike.tables.words import dataset_words, label_words, metric_words

NAMED = 6  # rows below a trivial one that a note names each


def below_trivial(table: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    """A note for each trivial row that rows above it do not reach.

    Args:
        table: its entry of ``params/tables``; rows marked ``trivial`` speak of those above them, up to the trivial rows
            before.
        cells: cells of the table, from ``read_cells``.

    Returns:
        Sentences with the numbers: of metrics that have a mean over folds that one, else the first metric of the table.
        More than `NAMED` are counted, and the lowest is named.
    """
    measured = cells[cells["n"].notna()]
    metrics = [name for name in table["metrics"] if name.endswith("_mean")] or table["metrics"][:1]
    sets = list(measured[["dataset", "stand_in"]].drop_duplicates().itertuples(index=False, name=None))
    # As the table shows them: what reads equal is not below.
    reached = {
        (cell["label"], cell["dataset"], cell["stand_in"], cell["metric"]): round(cell["mean"], 1)
        for cell in measured.to_dict("records")
    }
    held: dict[str, list[tuple[str, str, str, float, float]]] = {}
    for label, named, trivial in _held_against(table):
        for answer in trivial:
            for place in (each for each in sets if each[0] in named or not named):
                where = f"{_words(place, sets)}: " if len(sets) > 1 else ""
                held.setdefault(answer, []).extend(
                    (label_words(label, "", ""), where, metric_words(metric), value, floor)
                    for metric in metrics
                    if (floor := reached.get((answer, *place, metric))) is not None
                    and (value := reached.get((label, *place, metric))) is not None
                )
    frames = {
        answer: pd.DataFrame(rows, columns=["label", "where", "metric", "value", "floor"])
        for answer, rows in held.items()
    }
    return [f"Below {answer!r}: {'; '.join(said)}." for answer, rows in frames.items() if (said := _said(rows))]


def _said(rows: pd.DataFrame) -> list[str]:
    """What is below a trivial row: each row by its name or, of many, their number and the lowest."""
    below = rows[rows["value"] < rows["floor"]]
    each = [
        f"{label} ({where}{', '.join(map(_numbers, part.itertuples()))})"
        for (label, where), part in below.groupby(["label", "where"], sort=False)
    ]
    if len(each) <= NAMED:
        return each
    return [
        f"{'all' if len(part) == len(of) else f'{len(part)} of'} {len(of)} rows "
        f"({where}{_numbers(lowest)} in {lowest.label!r}, the lowest)"
        for (where, _), of in rows.groupby(["where", "metric"], sort=False)
        for part in [of[of["value"] < of["floor"]]]
        for lowest in part.nsmallest(1, "value").itertuples()
    ]


def _numbers(row: Any) -> str:
    return f"{row.metric} {row.value:.1f} against {row.floor:.1f}"


def _words(place: tuple[str, str], sets: Sequence[tuple[str, str]]) -> str:
    """A data set, and what stands in for it where several do."""
    dataset, stand_in = place
    several = sum(other == dataset for other, _ in sets) > 1
    return f"{dataset_words(dataset)}, {dataset_words(stand_in)}" if several else dataset_words(dataset)


def _held_against(table: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each row that is not trivial, with its data sets where it names some, and the trivial ones of its block."""
    block: list[tuple[str, list[str]]] = []
    trivial: list[str] = []
    for row in [*table["rows"], {"label": ""}]:
        if trivial and not row.get("trivial"):
            yield from ((label, named, trivial) for label, named in block)
            block, trivial = [], []
        if row.get("trivial"):
            trivial.append(row["label"])
        else:
            block.append((row["label"], row.get("datasets", [])))
