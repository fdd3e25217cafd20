"""Which rows of a table reach less than an answer that is given without looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from lookalike.tables.words import dataset_words, metric_words


def below_trivial(table: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    """A note for each trivial row that rows above it do not reach.

    Args:
        table: its entry of ``params/tables``; rows marked ``trivial`` speak of those above them, up to the trivial rows
            before.
        cells: cells of the table, from ``read_cells``.

    Returns:
        Sentences with the numbers: of metrics that have a mean over folds that one, else the first metric of the table.
    """
    measured = cells[cells["n"].notna()]
    metrics = [name for name in table["metrics"] if name.endswith("_mean")] or table["metrics"][:1]
    datasets = list(measured["dataset"].unique())
    reached = {(cell["label"], cell["dataset"], cell["metric"]): cell["mean"] for cell in measured.to_dict("records")}
    below: dict[str, list[str]] = {}
    for label, named, trivial in _held_against(table):
        for answer in trivial:
            for dataset in (name for name in datasets if name in named or not named):
                lower = [
                    f"{metric_words(metric)} {reached[label, dataset, metric]:.1f} against {floor:.1f}"
                    for metric in metrics
                    if (floor := reached.get((answer, dataset, metric))) is not None
                    and reached.get((label, dataset, metric), floor) < floor
                ]
                where = f"{dataset_words(dataset)}: " if len(datasets) > 1 else ""
                below.setdefault(answer, []).extend([f"{label} ({where}{', '.join(lower)})"] if lower else [])
    return [f"Below {answer!r}: {'; '.join(rows)}." for answer, rows in below.items() if rows]


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
