"""What stands above a table: what is shown, over which seeds, what its marks mean, and the table's own footnotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lookalike.tables.origin import DEPARTURES

CHECKPOINTS = {
    "best": "the epoch with the best R@1 on the test split, as the papers report it",
    "selected": "the epoch with the best R@1 on a fifth of the training classes, in a training without these",
    "last": "the last epoch",
}


def table_notes(table: Mapping[str, Any], cells: pd.DataFrame, scale: str) -> list[str]:
    """Notes on a whole table.

    Args:
        table: its entry of ``params/tables``.
        cells: as ``read_cells`` returns them.
        scale: what the scale calls itself.
    """
    measured = cells[cells["n"].notna()]
    seeds = sorted({int(seed) for text in measured["seeds"] for seed in text.split()})
    if seeds:
        numbers = sorted({int(n) for n in measured["n"]})
        over = f"n = {' to '.join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))} "
        over += f"(seed{'s' if len(seeds) > 1 else ''} {', '.join(str(seed) for seed in seeds)})"
        spread = ", mean ± standard deviation over seeds" if len(seeds) > 1 else ""
        shown = CHECKPOINTS[table.get("checkpoint", "best")]
        how = f"In percent, test classes never seen in training; {shown}; {over}{spread}.{_how_r_counts(measured)}"
    else:
        how = "In percent, printed numbers only: nothing of this table is run."
    marks = {mark: words for mark, words in DEPARTURES.items() if measured["departs"].str.contains(mark).any()}
    legend = "; ".join(f"{mark} {words}" for mark, words in marks.items())
    return [
        f"{how} Scale: {scale}.",
        *([f"Departs from the paper: {legend}."] if legend else []),
        *(table["notes"] if isinstance(table.get("notes"), list) else []),
    ]


def notes_of(table: Mapping[str, Any], dataset: str) -> list[str]:
    """The table's own notes on one data set."""
    notes = table.get("notes")
    return list(notes.get(dataset, [])) if isinstance(notes, Mapping) else []


def _how_r_counts(measured: pd.DataFrame) -> str:
    """Said where a metric depends on it."""
    counted = set(measured.loc[measured["metric"].str.contains("RP|MAP@R"), "query_in_r"])
    if not counted:
        return ""
    if len(counted) > 1:
        return " Whether R counts the query itself is said by each number."
    return " R counts the query itself, too." if counted == {"yes"} else " R does not count the query itself."
