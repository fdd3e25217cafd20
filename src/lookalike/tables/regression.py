"""Compare finished tables with the numbers that this project has committed, and with the printed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

KEY = ["table", "label", "dataset", "metric"]
# A cell may differ from its reference by what two queries are worth, or by this many deviations over seeds if that is
# more: another processor rounds differently, which after a hundred steps amounts to another seed. A few seeds estimate
# a deviation poorly, so that of a cell is at least the median of its column.
DEVIATIONS, QUERIES = 3.0, 2.0
# Better by so many tolerances, a number comes from a mistake (self matches counted, test classes trained on) until
# somebody has looked and committed it.
SUSPICIOUS = 1.5
VERDICTS = ["pass", "worse", "better", "suspicious", "missing", "new", "undecided"]
COLUMNS = [*KEY, "reference", "measured", "difference", "tolerance", "verdict"]


def reference_cells(tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """What is committed of finished tables: one entry per cell that we measured.

    Args:
        tables: cells by table, as ``table_cells`` returns them.

    Raises:
        ValueError: if the cells have one seed only, which tells nothing about their spread.
    """
    cells = _measured(tables)
    if (cells["n"] < 2).any():
        raise ValueError("a reference needs at least 2 seeds, better 3: --config 'seeds=[0,1,2]'")
    kept = cells[[*KEY, "mean", "std", "n", "queries"]].astype({"n": int, "queries": int})
    kept = kept.round({"mean": 4, "std": 4}).sort_values(KEY)
    return [{str(key): value for key, value in row.items()} for row in kept.to_dict("records")]


def compare(tables: Mapping[str, pd.DataFrame], reference: list[dict[str, Any]]) -> pd.DataFrame:
    """Every cell with its reference and a verdict.

    Args:
        tables: cells by table.
        reference: as ``reference_cells`` returned it once.

    Returns:
        Columns `COLUMNS`, in percent. ``verdict`` is ``pass``, ``worse``, ``better``, ``suspicious`` (too good),
        ``missing`` (a reference without a cell) or ``new``.
    """
    expected = pd.DataFrame(reference, columns=[*KEY, "mean", "std", "n", "queries"])
    of_column = expected.groupby(["table", "dataset", "metric"])["std"].transform("median")
    deviation = expected["std"].clip(lower=of_column)
    expected["tolerance"] = (DEVIATIONS * deviation).clip(lower=100 * QUERIES / expected["queries"])
    measured = _measured(tables)[[*KEY, "mean"]].rename(columns={"mean": "measured"})
    return _judged(expected.rename(columns={"mean": "reference"}).merge(measured, on=KEY, how="outer"))


def compare_printed(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every cell whose data, backbone and setting are the printed ones, with the printed number and a verdict.

    Args:
        tables: cells by table.

    Returns:
        As `compare`; the tolerance is that of the larger deviation, ours over seeds or the printed one. A cell with
        neither is ``undecided``.
    """
    cells = _measured(tables)
    cells = cells[cells["difference"].notna()]
    deviation = cells[["std", "published_std"]].astype(float).max(axis=1)
    tolerance = (DEVIATIONS * deviation).clip(lower=100 * QUERIES / cells["queries"].astype(float))
    cells = cells.assign(tolerance=tolerance.where(deviation.notna()))
    return _judged(cells.rename(columns={"published": "reference", "mean": "measured"}))


def _judged(cells: pd.DataFrame) -> pd.DataFrame:
    cells = cells.assign(difference=cells["measured"] - cells["reference"], verdict="pass")
    cells.loc[cells["difference"] < -cells["tolerance"], "verdict"] = "worse"
    cells.loc[cells["difference"] > cells["tolerance"], "verdict"] = "better"
    cells.loc[cells["difference"] > SUSPICIOUS * cells["tolerance"], "verdict"] = "suspicious"
    cells.loc[cells["tolerance"].isna(), "verdict"] = "undecided"
    cells.loc[cells["reference"].isna(), "verdict"] = "new"
    cells.loc[cells["measured"].isna(), "verdict"] = "missing"
    return cells[COLUMNS].reset_index(drop=True)


def lost(comparison: pd.DataFrame) -> pd.DataFrame:
    """The cells that close the gate: worse than their reference, too good to be true, or missing."""
    return comparison[comparison["verdict"].isin(["worse", "suspicious", "missing"])]


def _measured(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    cells = pd.concat([frame.assign(table=name) for name, frame in tables.items()], ignore_index=True)
    return cells[cells["mean"].notna()]
