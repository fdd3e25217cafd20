"""What stands above a table: what is shown, over which seeds, what its marks mean, and the table's own footnotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lookalike.plan.origin import DEPARTURES, MIXED, OLDER, OUR_CHOICE
from lookalike.tables.trivial import below_trivial

CHECKPOINTS = {
    "best": "the epoch with the best R@1 on the test split",
    "selected": "the epoch with the best R@1 on a fifth of the training classes, in a training without these",
    "last": "the last epoch",
}

NOT_COMPARABLE = (
    "Pictures, network and budget are not the papers': numbers of ours do not compare with printed ones; gains of a "
    "row over another do."
)


def table_notes(table: Mapping[str, Any], cells: pd.DataFrame, scale: str) -> list[str]:
    """Notes on a whole table.

    Args:
        table: the table's entry of ``params/tables``.
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
        checkpoint = table.get("checkpoint", "best")
        shown = CHECKPOINTS[checkpoint] + (", as the papers report it" if printed and checkpoint == "best" else "")
        how = f"In percent, test classes never seen in training; {shown}; {over}{spread}.{_how_r_counts(measured)}"
    else:
        how = "In percent, printed numbers only: nothing of this table is run."
    marks = {mark: words for mark, words in DEPARTURES.items() if measured["departs"].str.contains(mark).any()}
    legend = "; ".join(f"{mark} {words}" for mark, words in marks.items())
    trivial = [f"{row['label']} ({row['says']})" for row in table["rows"] if "says" in row]
    return [
        f"{how} Scale: {scale}.",
        *([NOT_COMPARABLE] if "D" in marks else []),
        *([f"{'Departs from the paper' if printed else 'Marked'}: {legend}."] if legend else []),
        *([f"{OUR_CHOICE}: {rests}."] if (rests := _rests_on(measured)) else []),
        *([f"In italics, for the others to be held against: {', '.join(trivial)}."] if trivial and seeds else []),
        *(table["notes"] if isinstance(table.get("notes"), list) else []),
        *table.get("remarks", []),
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


def notes_of(table: Mapping[str, Any], dataset: str) -> list[str]:
    """The table's own notes on one data set."""
    notes = table.get("notes")
    return list(notes.get(dataset, [])) if isinstance(notes, Mapping) else []


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
