"""Cells as readers see them: text in rows and columns, one section per data set, in no format yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lookalike.tables.cells import TERMS
from lookalike.tables.notes import notes_of, table_notes
from lookalike.text import human_seconds

DASH = "–"
# Metrics without a best value: of training pictures, and gains over another row.
NO_BEST = ("train_", "delta_")
PRINTED_PARTS = {"embedding_dim": "size", "backbone": "backbone", "setting": "set-up"}


@dataclass(frozen=True)
class Cell:
    """One cell of text.

    Attributes:
        text: what it says.
        best: whether it is the best of its column.
        origin: where a measured number comes from, by what it is called; empty for all other cells.
    """

    text: str
    best: bool = False
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """The part of a table that belongs to one data set.

    Attributes:
        dataset: published data set, or the user's own.
        heading: the data set and what stands in for it.
        remarks: what holds for the whole section.
        header: names of the columns.
        rows: cells in the order of the header.
        pairs_header: names of the columns of the paired differences, empty if there are none.
        pairs: rows of paired differences.
    """

    dataset: str
    heading: str
    remarks: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    pairs_header: tuple[str, ...] = ()
    pairs: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True)
class ReaderTable:
    """One table for readers.

    Attributes:
        name: by which Snakemake knows it.
        title: what it shows.
        notes: how it was measured, and what to know about it.
        sections: one per data set, or per stand-in where several stand for the same one.
    """

    name: str
    title: str
    notes: Sequence[str]
    sections: Sequence[Section]


def for_readers(name: str, table: Mapping[str, Any], cells: pd.DataFrame, scale: str) -> ReaderTable:
    """A table laid out for readers.

    Args:
        name: of the table.
        table: its entry of ``params/tables``.
        cells: as ``read_cells`` returns them.
        scale: what the scale calls itself.
    """
    found = []
    for dataset, part in cells.groupby("dataset", sort=False):
        stand_ins = [stand_in for stand_in in part["stand_in"].unique() if stand_in]
        for stand_in in stand_ins or [""]:
            own = part[part["stand_in"].isin([stand_in, ""])]
            found.append(_section(str(dataset), stand_in, own, notes_of(table, str(dataset))))
    return ReaderTable(name, table["title"], table_notes(table, cells, scale), found)


def _section(dataset: str, stand_in: str, cells: pd.DataFrame, notes: Sequence[str]) -> Section:
    heading = f"{dataset} ({stand_in} stands in)" if stand_in not in ("", dataset) else dataset
    remarks = [] if stand_in else ["Not run at this scale: printed numbers only."]
    first = cells.drop_duplicates("row").set_index("row")
    columns: dict[str, list[Cell]] = {"method": [Cell(label) for label in first["label"]]}
    # Printed parts of a row stand in each of its printed cells, but not in those of ours that are not printed.
    printed = cells[cells["printed"] != ""].drop_duplicates("row").set_index("row")
    constant = []
    for part, name in PRINTED_PARTS.items():
        values = printed[part].unique()
        if len(values) > 1:
            texts = printed[part].str.replace(";", ", ").reindex(first.index, fill_value="").replace("", DASH)
            columns[name] = [Cell(text) for text in texts]
        elif len(values) and values[0]:
            constant.append(f"{name} {values[0]}")
    if constant:
        remarks.append(f"Printed rows: {', '.join(constant)}.")
    departs = cells[cells["departs"] != ""].drop_duplicates("row").set_index("row")["departs"]
    if len(departs):
        columns["departs"] = [Cell(text) for text in departs.reindex(first.index, fill_value="").replace("", DASH)]
    for name in TERMS:
        if name in cells:
            columns[name] = [Cell(text or DASH) for text in first[name]]
    for metric, column in cells.groupby("metric", sort=False):
        columns |= _metric_columns(str(metric), column.set_index("row"), first.index)
    if "query_ms" in cells:
        columns["ms per query"] = [Cell(DASH if pd.isna(value) else f"{value:.3g}") for value in first["query_ms"]]
        columns["training"] = [Cell(DASH if pd.isna(value) else human_seconds(value)) for value in first["training_s"]]
    header, pairs = _pairs(cells)
    rows = tuple(zip(*columns.values(), strict=True))
    return Section(dataset, heading, (*remarks, *notes), tuple(columns), rows, header, pairs)


def _metric_columns(metric: str, column: pd.DataFrame, rows: pd.Index) -> dict[str, list[Cell]]:
    """Ours, the printed values and their difference, each left out where it holds nothing."""
    found = {}
    if column["mean"].notna().any():
        cells = {row: Cell(_ours(cell), origin=_origin(cell)) for row, cell in column.iterrows()}
        found[metric] = _emphasised(metric, cells, column["mean"].round(1), rows)
    if (column["printed"] != "").any():
        cells = {row: Cell(_printed(cell)) for row, cell in column.iterrows()}
        found[f"{metric} printed"] = _emphasised(metric, cells, column["published"], rows)
    if column["difference"].notna().any():
        differences = column["difference"].reindex(rows)
        found[f"{metric} difference"] = [Cell(_signed(value)) for value in differences]
    return found


def _emphasised(metric: str, cells: Mapping[object, Cell], values: pd.Series, rows: pd.Index) -> list[Cell]:
    """Cells of all rows of a column, the best of at least two marked, ties too."""
    competing = values.dropna()
    best = competing.max() if len(competing) > 1 and not metric.startswith(NO_BEST) else None
    return [
        Cell(cells[row].text, best is not None and values[row] == best, cells[row].origin)
        if row in cells
        else Cell(DASH)
        for row in rows
    ]


def _pairs(cells: pd.DataFrame) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Rows that are held against another one, with their difference and its interval per metric."""
    paired = cells[cells["against"] != ""]
    if paired.empty:
        return (), ()
    metrics = list(paired["metric"].unique())
    return ("method", "against", "n", *metrics), tuple(_paired_rows(paired, metrics))


def _paired_rows(paired: pd.DataFrame, metrics: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    for _, row in paired.groupby("row", sort=False):
        first = row.iloc[0]
        of_metric = {cell["metric"]: Cell(_interval(cell)) for _, cell in row.iterrows()}
        name = [Cell(first["label"]), Cell(first["against"]), Cell(f"{first['against_n']:.0f}")]
        yield (*name, *(of_metric.get(metric, Cell(DASH)) for metric in metrics))


def _interval(cell: pd.Series) -> str:
    ends = [_signed(cell[end]) for end in ("against_low", "against_high")]
    return _signed(cell["against_difference"]) + (f" [{', '.join(ends)}]" if DASH not in ends else "")


def _ours(cell: pd.Series) -> str:
    if pd.isna(cell["mean"]):
        return DASH
    deviation = "" if pd.isna(cell["std"]) else f" ± {cell['std']:.1f}"
    return f"{cell['mean']:.1f}{deviation}"


def _printed(cell: pd.Series) -> str:
    return (
        DASH if not cell["printed"] else cell["printed"] + (f" ± {cell['printed_std']}" if cell["printed_std"] else "")
    )


def _signed(value: float) -> str:
    return DASH if pd.isna(value) else f"{value:+.1f}"


def _origin(cell: pd.Series) -> dict[str, str]:
    """Where a measured cell comes from."""
    if pd.isna(cell["mean"]):
        return {}
    words = {name: str(cell[name]) for name in ("recipe", "seeds", "departs", "runs", "settings", "code")}
    return {**words, "R counts the query": cell["query_in_r"], "in MLflow": cell["mlflow"], "made by": cell["rebuild"]}
