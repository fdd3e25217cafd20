"""Which rows of a table reach less than an answer that is given without looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd


def below_trivial(table: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    """A note for each row that lies below one of the trivial rows that follow it.

    Args:
        table: its entry of ``params/tables``; rows marked ``trivial`` speak of those above them, up to the trivial rows
            before.
        cells: as ``read_cells`` returns them.

    Returns:
        Sentences with the numbers; of metrics that have a mean over folds only that one is named.
    """
    measured = cells[cells["n"].notna()]
    metrics = [name for name in table["metrics"] if name.endswith("_mean")] or table["metrics"]
    reached = {(cell["label"], cell["metric"]): cell["mean"] for cell in measured.to_dict("records")}
    notes = []
    for label, trivial in _held_against(table):
        for answer in trivial:
            lower = [
                f"{reached[label, metric]:.1f} against {reached[answer, metric]:.1f} ({metric})"
                for metric in metrics
                if (label, metric) in reached and reached[label, metric] < reached.get((answer, metric), 0)
            ]
            if lower:
                notes.append(f"{label} lies below {answer!r}: {', '.join(lower)}.")
    return notes


def _held_against(table: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each row that is not trivial, with the trivial ones of its block."""
    block: list[str] = []
    trivial: list[str] = []
    for row in [*table["rows"], {"label": ""}]:
        if trivial and not row.get("trivial"):
            yield from ((label, trivial) for label in block)
            block, trivial = [], []
        (trivial if row.get("trivial") else block).append(row["label"])
