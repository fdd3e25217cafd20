"""Compare finished tables with the numbers that this project has committed, and with the printed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lookalike.reports.tolerance import KEY, QUERIES, measured_cells
from lookalike.statistics.verdict import Verdict

DEVIATIONS = 3.0  # of the larger deviation over seeds, ours or the printed one, for printed numbers
# Better by so many tolerances, a number comes from a mistake (self matches counted, test classes trained on) until
# somebody has looked and committed it.
SUSPICIOUS = 1.5
CLOSING = (Verdict.WORSE, Verdict.SUSPICIOUS, Verdict.MISSING)
COLUMNS = [*KEY, "reference", "measured", "difference", "tolerance", "verdict"]


def compare(tables: Mapping[str, pd.DataFrame], reference: list[dict[str, Any]]) -> pd.DataFrame:
    """Every cell with its reference and a verdict.

    Args:
        tables: cells by table, as ``table_cells`` returns them.
        reference: as `lookalike.reports.tolerance.reference_cells` returned it once.

    Returns:
        Columns `COLUMNS`, in percent. ``verdict`` is ``pass``, ``worse``, ``better``, ``suspicious`` (too good),
        ``missing`` (a reference without a cell) or ``new``.
    """
    expected = pd.DataFrame(reference, columns=[*KEY, "value", "tolerance"]).rename(columns={"value": "reference"})
    measured = measured_cells(tables)[[*KEY, "value"]].rename(columns={"value": "measured"})
    return _judged(expected.merge(measured, on=KEY, how="outer"))


def compare_printed(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every cell whose data, backbone and setting are the printed ones, with the printed number and a verdict.

    Args:
        tables: cells by table.

    Returns:
        As `compare`; the tolerance is that of the larger deviation, ours over seeds or the printed one. A cell with
        neither is ``undecided``.
    """
    cells = pd.concat([frame.assign(table=name) for name, frame in tables.items()], ignore_index=True)
    cells = cells[cells["mean"].notna() & cells["difference"].notna()]
    deviation = cells[["std", "published_std"]].astype(float).max(axis=1)
    tolerance = (DEVIATIONS * deviation).clip(lower=100 * QUERIES / cells["queries"].astype(float))
    cells = cells.assign(tolerance=tolerance.where(deviation.notna()))
    return _judged(cells.rename(columns={"published": "reference", "mean": "measured"}))


def _judged(cells: pd.DataFrame) -> pd.DataFrame:
    cells = cells.assign(difference=cells["measured"] - cells["reference"], verdict=Verdict.PASS)
    cells.loc[cells["difference"] < -cells["tolerance"], "verdict"] = Verdict.WORSE
    cells.loc[cells["difference"] > cells["tolerance"], "verdict"] = Verdict.BETTER
    cells.loc[cells["difference"] > SUSPICIOUS * cells["tolerance"], "verdict"] = Verdict.SUSPICIOUS
    cells.loc[cells["tolerance"].isna(), "verdict"] = Verdict.UNDECIDED
    cells.loc[cells["reference"].isna(), "verdict"] = Verdict.NEW
    cells.loc[cells["measured"].isna(), "verdict"] = Verdict.MISSING
    return cells[COLUMNS].reset_index(drop=True)


def lost(comparison: pd.DataFrame) -> pd.DataFrame:
    """The cells that close the gate: worse than their reference, too good to be true, or missing."""
    return comparison[comparison["verdict"].isin(CLOSING)]
