"""Cells as readers see them: text in rows and columns, one section per data set, in no format yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lookalike.base.text import human_seconds
from lookalike.metrics.names import ON_TRAINING
from lookalike.workflow.plan.origin import OUR_CHOICE, departure_words
from lookalike.workflow.plan.terms import rate_words
from lookalike.workflow.report.statistics.agreement import FEWEST, Agreement, WithPrint, with_print
from lookalike.workflow.report.tables.cells import APART, BESIDE, COLUMNS
from lookalike.workflow.report.tables.notes import nmi_note, notes_of, shown_departures, table_notes
from lookalike.workflow.report.tables.words import (
    BACKBONES,
    column_words,
    dataset_words,
    label_words,
    metric_words,
    setting_words,
)
from lookalike.workflow.settings.tables import PlannedTable

DASH = "–"
SIZES = re.compile(r"(\d+) x (\d+)")  # such as locations times numbers of each
AGREEMENT = ("table", "data set", "metric", "rows", "Spearman", "in order", "gains", "their Spearman", "in order")
EPOCHS = {"best": "best on test", "selected": "at the selected epoch"}  # beside the last one
# Metrics without a best value: of training pictures, and gains over another row.
NO_BEST = (ON_TRAINING, "delta_")


@dataclass(frozen=True)
class Cell:
    """One cell of text.

    Attributes:
        text: what it says.
        best: whether it is the best of its column.
        seeds: number of seeds behind a measured number, 0 for all other cells.
        order: what a page sorts it by, where the text does not begin with it.
    """

    text: str
    best: bool = False
    seeds: int = 0
    order: float | None = None


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        cells: cells in the order of the header.
        origin: where its measured numbers come from, by what it is called; empty without any.
        trivial: whether it is there for the others to be held against, and no paper's.
    """

    cells: tuple[Cell, ...]
    origin: Mapping[str, str] = field(default_factory=dict)
    trivial: bool = False


@dataclass(frozen=True)
class Grid:
    """Rows below a header; its first column names the row. Some columns are in percent."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    percent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PairedGain:
    """Gain of a row over the one that it is held against, in points.

    Attributes:
        words: both rows.
        metric: that leads the table.
        ours: the difference, seed by seed.
        low: lower end of its interval, ``None`` of one seed.
        high: upper end.
        printed: the same of the printed numbers, ``None`` without.
    """

    words: str
    metric: str
    ours: float
    low: float | None = None
    high: float | None = None
    printed: float | None = None


@dataclass(frozen=True)
class Section:
    """The part of a table that belongs to one data set.

    Attributes:
        dataset: published data set, or the user's own.
        heading: the data set and what stands in for it.
        best: a sentence on the best row, empty beside printed numbers.
        remarks: what holds for the whole section.
        measured: rows with a number of ours, ``None`` without any.
        quoted: printed rows without one, ``None`` without any.
        pairs: paired differences between rows, ``None`` without any.
        gains: those of the metric that leads.
        agreement: with print, ``None`` where nothing is printed or nothing run.
    """

    dataset: str
    heading: str
    best: str
    remarks: tuple[str, ...]
    measured: Grid | None = None
    quoted: Grid | None = None
    pairs: Grid | None = None
    gains: tuple[PairedGain, ...] = ()
    agreement: WithPrint | None = None


@dataclass(frozen=True)
class ReaderTable:
    """One table for readers.

    Attributes:
        name: name by which Snakemake knows it.
        title: what it shows.
        notes: how it was measured, and what to know about it.
        sections: one per data set, or per stand-in where several stand for the same one.
        printed: whether printed numbers stand in it.
        stands_in: whether other data than the papers' stand beside printed numbers.
    """

    name: str
    title: str
    notes: Sequence[str]
    sections: Sequence[Section]
    printed: bool = False
    stands_in: bool = False


def for_readers(name: str, table: PlannedTable, cells: pd.DataFrame, scale: str) -> ReaderTable:
    """A table laid out for readers.

    Args:
        name: name of the table.
        table: the table.
        cells: cells of the table, from ``read_cells``.
        scale: what the scale calls itself.
    """
    cells = shown_departures(cells)
    sections = []
    for dataset, part in cells.groupby("dataset", sort=False):
        stand_ins = [stand_in for stand_in in part["stand_in"].unique() if stand_in]
        for stand_in in stand_ins or [""]:
            rows = part[part["stand_in"].isin([stand_in, ""])]
            sections.append(_section(str(dataset), stand_in, rows, table))
    printed = bool((cells["printed"] != "").any())
    stands_in = bool(cells["departs"].str.contains("D").any())
    return ReaderTable(name, table.title, table_notes(table, cells, scale), sections, printed, stands_in)


def _section(dataset: str, stand_in: str, cells: pd.DataFrame, table: PlannedTable) -> Section:
    heading = dataset_words(dataset)
    if stand_in not in ("", dataset):
        heading += f" ({dataset_words(stand_in)} in its place)"
    remarks = [] if stand_in else ["Not run at this scale: printed numbers only."]
    measured = cells.groupby("row")["mean"].transform(lambda means: means.notna().any())
    parts, constant = _printed_parts(cells)
    remarks += [f"Printed rows: {', '.join(constant)}."] if constant else []
    beside, constant = _printed_parts(cells[measured], [*parts])
    remarks += [f"Printed rows beside ours: {', '.join(constant)}."] if constant else []
    departs = set(cells.loc[cells["mean"].notna() & (cells["trivial"] != "yes"), "departs"])
    if len(departs) == 1 and (marks := departs.pop()):
        remarks.append(f"Departs, all rows of ours: {marks}.")
    remarks += nmi_note(cells)
    judged = [name for name in table.metrics if not name.startswith(NO_BEST)]
    paired = _paired(cells)
    remarks += [f"{text}." for text in dict.fromkeys(cells.get(APART, pd.Series(dtype=str)).dropna()) if text]
    return Section(
        dataset,
        heading,
        "" if table.published else best_row(cells, table.metrics),
        (*remarks, *notes_of(table, dataset)),
        measured=_grid(cells, cells[measured], beside, departs, table),
        quoted=_grid(cells, cells[~measured], parts, departs, table),
        pairs=_pairs(paired),
        gains=_gains(paired),
        agreement=with_print(cells, judged) if stand_in and (cells["printed"] != "").any() else None,
    )


def _grid(
    cells: pd.DataFrame, selected: pd.DataFrame, parts: pd.DataFrame, departs: set[str], table: PlannedTable
) -> Grid | None:
    """Some rows of a section; the best of a column is that of the whole section."""
    if selected.empty:
        return None
    first = selected.drop_duplicates("row").set_index("row")
    ours = selected[selected["mean"].notna()].drop_duplicates("row").set_index("row")
    labels = map(label_words, first["label"], first["setting"], first["embedding_dim"])
    columns: dict[str, list[Cell]] = {"method": [Cell(label) for label in labels]}
    for place, (metric, column) in enumerate(cells.groupby("metric", sort=False)):
        columns |= _metric_columns(str(metric), column.set_index("row"), first.index, leads=place == 0)
    percent = frozenset(name for name in columns if name != "method" and not name.endswith("difference"))
    for name in map(str, first.columns.difference([*COLUMNS, *BESIDE, APART], sort=False)):
        columns[column_words(name)] = [_other(name, value) for value in ours.reindex(first.index)[name]]
    if departs and len(ours):
        marks = ours["departs"].where(ours["trivial"] != "yes").reindex(first.index).fillna("")
        columns["departs"] = [Cell(mark or DASH) for mark in marks]
    printed = first.index.intersection(parts.index)
    if len(printed):
        for part in parts:
            texts = parts[part].reindex(first.index, fill_value="").replace("", DASH)
            columns[f"printed: {part}"] = [Cell(text) for text in texts]
    told = {row: _seed_words(of_row) for row, of_row in selected.groupby("row")}
    origins = [_origin(ours.loc[row], table, told[row]) if row in ours.index else {} for row in first.index]
    trivial = first["trivial"] == "yes"
    lines = zip(zip(*columns.values(), strict=True), origins, trivial, strict=True)
    return Grid(tuple(columns), tuple(Row(*line) for line in lines), percent)


def _printed_parts(
    cells: pd.DataFrame, wanted: Sequence[str] = ("size", "backbone", "set-up")
) -> tuple[pd.DataFrame, list[str]]:
    """Size, backbone and set-up of printed rows, by row, where they differ; and in words where they do not."""
    # Printed parts of a row stand in each of its printed cells, but not in those of ours that are not printed.
    printed = cells[cells["printed"] != ""].drop_duplicates("row").set_index("row")
    words = {
        "size": printed["embedding_dim"],
        "backbone": printed["backbone"].replace(BACKBONES),
        "set-up": printed["setting"].map(setting_words),
    }
    values = {name: list(words[name].unique()) for name in wanted}
    differing = {name: words[name] for name in wanted if len(values[name]) > 1}
    constant = [f"{name} {distinct[0]}" for name, distinct in values.items() if len(distinct) == 1 and distinct[0]]
    return pd.DataFrame(differing), constant


def _metric_columns(metric: str, column: pd.DataFrame, rows: pd.Index, *, leads: bool) -> dict[str, list[Cell]]:
    """Ours, the printed values and their difference, each left out where it holds nothing.

    Ours of the other epoch stand beside the metric that leads, and where the difference is theirs.
    """
    columns, name, here = {}, metric_words(metric), column.loc[column.index.intersection(rows)]
    if here["mean"].notna().any():
        cells = {row: Cell(_ours(cell), seeds=_seeds(cell)) for row, cell in here.iterrows()}
        columns[name] = _emphasised(metric, cells, column["mean"].round(1), rows)
    for epoch in here.columns.intersection([*BESIDE]):
        if here[epoch].notna().any() and (leads or here["difference"].notna().any()):
            columns[f"{name} {EPOCHS[epoch]}"] = [Cell(_mean(here[epoch].get(row))) for row in rows]
    if (here["printed"] != "").any():
        cells = {row: Cell(_printed(cell)) for row, cell in here.iterrows()}
        columns[f"{name} printed"] = _emphasised(metric, cells, column["published"], rows)
    if here["difference"].notna().any():
        cells = {row: Cell(_difference(cell)) for row, cell in here.iterrows()}
        columns[f"{name} difference"] = [cells.get(row, Cell(DASH)) for row in rows]
    return columns


def _emphasised(metric: str, cells: Mapping[object, Cell], values: pd.Series, rows: pd.Index) -> list[Cell]:
    """Cells of some rows of a column, the best of at least two marked, ties too."""
    competing = values.dropna()
    best = competing.max() if len(competing) > 1 and not metric.startswith(NO_BEST) else None
    return [
        Cell(cells[row].text, best is not None and values[row] == best, cells[row].seeds)
        if row in cells
        else Cell(DASH)
        for row in rows
    ]


def agreement_words(found: WithPrint) -> str:
    """One line on a section's agreement with print."""
    if not found.rows.says:
        return f"Agreement with print: none, of fewer than {FEWEST} printed rows that differ."
    gains = f"; of {found.gains.rows} gains: {_agreement(found.gains)}" if found.gains.says else ""
    return (
        f"Agreement with print in {metric_words(found.metric)}, of {found.rows.rows} rows: "
        f"{_agreement(found.rows)}{gains}."
    )


def _agreement(found: Agreement) -> str:
    return f"Spearman {found.spearman:.2f}, {100 * found.concordant:.0f} % of pairs in the same order"


def agreement_grid(tables: Sequence[ReaderTable]) -> Grid | None:
    """Agreement with print of all sections of all tables, ``None`` where none says anything."""
    rows = [
        Row(tuple(map(Cell, (table.title, section.heading, metric_words(found.metric), *_columns_of(found)))))
        for table in tables
        for section in table.sections
        if (found := section.agreement) and found.rows.says
    ]
    return Grid(AGREEMENT, tuple(rows)) if rows else None


def _columns_of(found: WithPrint) -> list[str]:
    columns = []
    for each in (found.rows, found.gains):
        columns += [f"{each.rows}", f"{each.spearman:.2f}", f"{each.concordant:.2f}"] if each.says else [DASH] * 3
    return columns


def _paired(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of rows that are held against another one, with the printed ``gain``."""
    paired = cells[cells["against"] != ""]
    if paired.empty:
        return paired
    printed = cells[cells["mean"].notna()].set_index(["label", "metric"])["published"]
    baselines = printed.reindex(pd.MultiIndex.from_frame(paired[["against", "metric"]])).to_numpy()
    count = paired.groupby("row")["against_n"].transform("first")
    return paired.assign(gain=paired["published"] - baselines, count=count)


def _gains(paired: pd.DataFrame) -> tuple[PairedGain, ...]:
    """Gains by the metric that leads."""
    leading = paired[paired["metric"] == paired["metric"].iloc[0]] if len(paired) else paired
    return tuple(
        PairedGain(
            f"{cell['label']} against {cell['against']}",
            metric_words(cell["metric"]),
            cell["against_difference"],
            *(None if pd.isna(cell[name]) else cell[name] for name in ("against_low", "against_high", "gain")),
        )
        for _, cell in leading[leading["against_difference"].notna()].iterrows()
    )


def _pairs(paired: pd.DataFrame) -> Grid | None:
    """Rows that are held against another one, with their difference, its interval and the printed gain per metric."""
    if paired.empty:
        return None
    metrics = list(paired["metric"].unique())
    gaining = set(paired.loc[paired["gain"].notna(), "metric"])
    columns = [(metric, shown) for metric in metrics for shown in (_interval, _gain)[: 1 + (metric in gaining)]]
    header = (f"{metric_words(metric)}{' printed' if shown is _gain else ''}" for metric, shown in columns)
    return Grid(("method", "against", "n", *header), tuple(_paired_rows(paired, columns)))


def _paired_rows(paired: pd.DataFrame, columns: Sequence[tuple[str, Callable[[pd.Series], str]]]) -> Iterator[Row]:
    for _, row in paired.groupby("row", sort=False):
        first = row.iloc[0]
        of_metric = {cell["metric"]: cell for _, cell in row.iterrows()}
        name = [Cell(first["label"]), Cell(first["against"]), Cell(f"{first['count']:.0f}")]
        texts = [DASH if metric not in of_metric else shown(of_metric[metric]) for metric, shown in columns]
        yield Row((*name, *map(Cell, texts)))


def _interval(cell: pd.Series) -> str:
    """With the number of pairs where it is not that of the row's first metric."""
    ends = [_signed(cell[end]) for end in ("against_low", "against_high")]
    shown = _signed(cell["against_difference"]) + (f" [{', '.join(ends)}]" if DASH not in ends else "")
    return shown if cell["against_n"] == cell["count"] else f"{shown} (n = {cell['against_n']:.0f})"


def _gain(cell: pd.Series) -> str:
    """The printed one, and whether the interval of ours holds it."""
    if pd.isna(cell["gain"]) or pd.isna(cell["against_low"]):
        return _signed(cell["gain"])
    held = cell["against_low"] <= cell["gain"] <= cell["against_high"]
    return f"{_signed(cell['gain'])}, {'within' if held else 'outside'}"


def _ours(cell: pd.Series) -> str:
    deviation = "" if pd.isna(cell["std"]) else f" ± {cell['std']:.1f}"
    return f"{_mean(cell['mean'])}{deviation}"


def _mean(value: float | None) -> str:
    return DASH if value is None or pd.isna(value) else f"{value:.1f}"


def _seeds(cell: pd.Series) -> int:
    return 0 if pd.isna(cell["n"]) else int(cell["n"])


def _printed(cell: pd.Series) -> str:
    return (
        DASH if not cell["printed"] else cell["printed"] + (f" ± {cell['printed_std']}" if cell["printed_std"] else "")
    )


def _other(name: str, value: Any) -> Cell:
    """Cell of a column that only some tables have, text or a number; seconds where its name ends so."""
    if pd.isna(value) or value == "":
        return Cell(DASH)
    if isinstance(value, str):
        return Cell(value, order=float(numbers[1]) * float(numbers[2]) if (numbers := SIZES.fullmatch(value)) else None)
    return Cell(human_seconds(value), order=float(value)) if name.endswith("_s") else Cell(f"{value:.3g}")


def _difference(cell: pd.Series) -> str:
    """Difference with the mark of our choice, so that nobody reads the number without it."""
    marked = OUR_CHOICE in cell["departs"] and not pd.isna(cell["difference"])
    return _signed(cell["difference"]) + (f" {OUR_CHOICE}" if marked else "")


def _signed(value: float) -> str:
    return DASH if pd.isna(value) else f"{value:+.1f}"


def _seed_words(cells: pd.DataFrame) -> str:
    """Values of each of several seeds of a row, in the order of the seeds."""
    several = cells[cells["of_seeds"] != ""]
    return "; ".join(
        f"{metric_words(metric)} {', '.join(f'{float(value):.1f}' for value in values.split())}"
        for metric, values in zip(several["metric"], several["of_seeds"], strict=True)
    )


def _origin(cell: pd.Series, table: PlannedTable, of_seeds: str) -> dict[str, str]:
    """Origin of a row's measured numbers, and its differences from the row that it is held against."""
    told = {**cell, "each seed": of_seeds, "departs": departure_words(cell["departs"])}
    named = ("recipe", "seeds", "each seed", "departs", "runs", "settings", "code")
    words = {name: str(told[name]) for name in named if told[name]}
    words |= {"rates": rates} if (rates := rate_words(cell.get("rates") or "")) else {}
    words |= {"rests on": cell["rests_on"]} if cell["rests_on"] else {}
    if cell["against"]:
        here = (cell["dataset"], cell["label"])
        [row] = [each for each in table.rows for on in each.datasets or here[:1] if (on, each.label) == here]
        keys = {"under test": row.under_test or table.under_test, "as in the paper, too": row.as_in_paper}
        words |= {"held against": cell["against"]} | {name: ", ".join(own) for name, own in keys.items() if own}
    return {**words, "R counts the query": cell["query_in_r"], "in MLflow": cell["mlflow"], "made by": cell["rebuild"]}


def best_row(cells: pd.DataFrame, metrics: Sequence[str]) -> str:
    """Names the best row by the first metric: how far above the next and above the trivial rows, over which seeds.

    Args:
        cells: cells of one data set.
        metrics: metrics of the table.

    Returns:
        Two sentences; nothing without a metric that has a best value, or with fewer than two rows to choose from.
    """
    metric = next((name for name in metrics if not name.startswith(NO_BEST)), "")
    ranked = cells[(cells["metric"] == metric) & cells["mean"].notna()].sort_values(
        "mean", ascending=False, kind="stable"
    )
    methods, trivial = ranked[ranked["trivial"] != "yes"], ranked[ranked["trivial"] == "yes"]
    if len(methods) < 2:
        return ""
    best, second = methods.iloc[0], methods.iloc[1]
    above = [_above(best, second, "the next, "), *(_above(best, row, "") for _, row in trivial.iterrows())]
    said = f"Best by {metric_words(metric)}: {_name(best)} ({best['mean']:.1f}), {', '.join(above)}."
    return f"{said} {_caveat(best, second)}"


def _above(best: pd.Series, other: pd.Series, what: str) -> str:
    points = best["mean"] - other["mean"]
    side = f"{points:.1f} points above" if points >= 0 else f"{-points:.1f} points below"
    return f"{side} {what}{_name(other)} ({other['mean']:.1f})"


def _caveat(best: pd.Series, second: pd.Series) -> str:
    """Worth of the first place beside the deviation over seeds."""
    if best["n"] < 2 or second["n"] < 2:
        return "One seed: another may change the order; several (`seeds: [0, 1, 2]`) say how far they spread."
    spread = max(best["std"], second["std"])
    less = "less than" if best["mean"] - second["mean"] < spread else "against"
    apart = f"The first two are {best['mean'] - second['mean']:.1f} points apart"
    return f"{apart}, {less} a standard deviation of {spread:.1f} over seeds."


def _name(row: pd.Series) -> str:
    return label_words(row["label"], row["setting"], row["embedding_dim"])
