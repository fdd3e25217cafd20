"""Notes above a table: its cells, its seeds, the meaning of its marks, and the table's own footnotes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from lookalike.workflow.plan.origin import MIXED, OLDER, OUR_CHOICE, departure_words
from lookalike.workflow.report.tables.words import dataset_words, label_words, metric_words
from lookalike.workflow.settings.tables import PlannedTable

BESIDE = {
    "best": "Beside it, as the papers report it, the epoch with the best R@1 on the test classes: best on test.",
    "selected": "Beside it the epoch with the best R@1 on a fifth of the training classes, trained without these.",
}
OF_ALL = "The CSV has that of all metrics."
NOT_COMPARABLE = (
    "Pictures, network and budget are not the papers': numbers of ours do not compare with printed ones; gains of a "
    "row over another do."
)
NAMED = 6  # rows below a trivial one that a note names each


def table_notes(table: PlannedTable, cells: pd.DataFrame, scale: str) -> list[str]:
    """Notes on a whole table.

    Args:
        table: the table.
        cells: cells of the table, from ``read_cells``.
        scale: what the scale calls itself.
    """
    measured = cells[cells["n"].notna()]
    printed = bool((cells["printed"] != "").any())
    seeds = sorted({int(seed) for text in measured["seeds"] for seed in text.split()})
    if seeds:
        numbers = sorted({int(n) for n in measured["n"]})
        over = f"n = {' to '.join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))} "
        over += f"(seed{'s' if len(seeds) > 1 else ''} {', '.join(str(seed) for seed in seeds)})"
        spread = ", mean ± standard deviation over seeds" if len(seeds) > 1 else ""
        how = (
            f"In percent, test classes never seen in training; the last epoch; {over}{spread}.{_how_r_counts(measured)}"
        )
    else:
        how = "In percent, printed numbers only: nothing of this table is run."
    marks = "".join(measured["departs"])
    legend = departure_words(marks)
    trivial = [f"{row.label} ({row.says})" for row in table.rows if row.says]
    return [
        f"{how} Scale: {scale}.",
        *([f"{BESIDE[table.beside]} {OF_ALL}"] if table.beside in cells else []),
        *([NOT_COMPARABLE] if "D" in marks else []),
        *([f"{'Departs from the paper' if printed else 'Marked'}: {legend}."] if legend else []),
        *([f"{OUR_CHOICE}: {rests}."] if (rests := _rests_on(measured)) else []),
        *([f"In italics, for the others to be held against: {', '.join(trivial)}."] if trivial and seeds else []),
        *(table.notes if isinstance(table.notes, list) else []),
        *table.remarks,
        *below_trivial(table, cells),
    ]


def shown_departures(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells whose marks are those that readers need: without a printed number, those of older code and of a mixture."""
    if (cells["printed"] != "").any():
        return cells
    return cells.assign(departs=cells["departs"].str.replace(f"[^{OLDER}{MIXED}]", "", regex=True))


def nmi_note(cells: pd.DataFrame) -> list[str]:
    """Said where some rows of a data set have no NMI."""
    measured = cells[cells["mean"].notna()]
    having = set(measured.loc[measured["metric"] == "NMI", "row"])
    if not having or having == set(measured["row"]):
        return []
    return ["NMI is not defined where scoring compares no vectors: a dash."]


def notes_of(table: PlannedTable, dataset: str) -> list[str]:
    """The table's own notes on one data set."""
    return table.notes.get(dataset, []) if isinstance(table.notes, dict) else []


def _rests_on(measured: pd.DataFrame) -> str:
    """The listed points, each with the rows that rest on it where not all of them do."""
    labels = list(dict.fromkeys(measured["label"]))
    rows: dict[str, list[str]] = {}
    for label, text in measured[["label", "rests_on"]].drop_duplicates().itertuples(index=False):
        for point in filter(None, text.split("; ")):
            rows.setdefault(point, []).append(label)
    return "; ".join(
        point + ("" if set(resting) == set(labels) else f" ({', '.join(dict.fromkeys(resting))})")
        for point, resting in rows.items()
    )


def _how_r_counts(measured: pd.DataFrame) -> str:
    """Said where a metric depends on it."""
    counted = set(measured.loc[measured["metric"].str.contains("RP|MAP@R"), "query_in_r"])
    if not counted:
        return ""
    if len(counted) > 1:
        return " Whether R counts the query itself is said by each number."
    return " R counts the query itself, too." if counted == {"yes"} else " R does not count the query itself."


def below_trivial(table: PlannedTable, cells: pd.DataFrame) -> list[str]:
    """A note for each trivial row that rows above it do not reach.

    Args:
        table: rows marked ``trivial`` speak of those above them, up to the trivial rows before.
        cells: cells of the table, from ``read_cells``.

    Returns:
        Sentences with the numbers: of metrics that have a mean over folds that one, else the first metric of the table.
        More than `NAMED` are counted, and the lowest is named.
    """
    measured = cells[cells["n"].notna()]
    metrics = [name for name in table.metrics if name.endswith("_mean")] or table.metrics[:1]
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
    """Rows below a trivial row: each by its name or, of many, their number and the lowest."""
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
    """A data set, and its stand-in where it has several."""
    dataset, stand_in = place
    several = sum(other == dataset for other, _ in sets) > 1
    return f"{dataset_words(dataset)}, {dataset_words(stand_in)}" if several else dataset_words(dataset)


def _held_against(table: PlannedTable) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each row that is not trivial, with its data sets where it names some, and the trivial ones of its block."""
    block = []
    for trivial, rows in groupby(table.rows, key=lambda row: row.trivial):
        if not trivial:
            block = list(rows)
            continue
        answers = [row.label for row in rows]
        yield from ((row.label, row.datasets, answers) for row in block)
