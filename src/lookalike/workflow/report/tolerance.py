"""Tolerance of a number of one seed on another machine, around its reference.

Another processor, number of threads or version of torch rounds differently, and training amplifies that. So the same
call with the same seed is measured under several such settings, and a cell's spread over them says what an unbroken
run may show elsewhere.

The rule: the reference is the mean over the settings, of which those that agree in all numbers of a row count once.
The variance of a cell is estimated by few settings, so it is mixed with the mean variance of its column, which counts
as `PRIOR` further settings. A new run lies within the tolerance with Student's probability for a new draw, such that
in all cells together an unbroken run leaves it in one of a hundred runs (Bonferroni). A row that is the same under all
settings has no spread to mix: nothing in it is trained, or nothing that rounding reaches. No cell is held to less than
what two queries are worth.

What a method adds to a row that it is compared with (``against`` in the table) is a cell of its own: both numbers come
from one setting, often from one training, so that the gain is far steadier than either.

Gains of claims are means over several seeds, whose spread says the same without further settings: what another
processor makes of a training is at most another draw of its seed. So a gain of another run lies within Student's
quantile times the error over seeds of both, with the degrees of freedom that the family of its row has lent it
(`lookalike.workflow.report.statistics.moderated`), again such that an unbroken run leaves it once in a hundred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import

KEY = ["table", "label", "dataset", "metric"]
# What a row of claims says of how far its gain lies from that of other seeds, by the prefix of the metric.
GAIN = ["difference", "seeds_error", "seeds_freedom"]
OF_RP = "rp_"
ROW = ["table", "label", "dataset"]
COLUMN = ["table", "dataset", "metric"]
FALSE_ALARMS = 0.01  # of an unbroken run, all cells together
PRIOR = 4  # settings that the spread of the column counts for
QUERIES = 2
FEWEST = 4  # settings


def measured_cells(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Cells of finished tables that we measured, and gains as cells of their own.

    Args:
        tables: cells by table, as ``table_cells`` returns them.

    Returns:
        `KEY`, ``value`` in percent and ``queries``; a gain's metric is ``<metric> over <row>``.
    """
    cells = pd.concat([frame.assign(table=name) for name, frame in tables.items()], ignore_index=True)
    cells = cells[cells["mean"].notna()]
    paired = cells[cells["against_difference"].notna()] if "against_difference" in cells else cells.iloc[:0]
    if len(paired):
        paired = paired.assign(
            metric=paired["metric"] + " over " + paired["against"], mean=paired["against_difference"]
        )
    both = pd.concat([cells, paired], ignore_index=True)
    return both[[*KEY, "mean", "queries"]].rename(columns={"mean": "value"})


def reference_cells(settings: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """Cells to commit, each with ``value``, ``tolerance``, ``deviation``, ``settings`` and ``queries``.

    Args:
        settings: `measured_cells` of one seed by setting.

    Raises:
        ValueError: for fewer than four settings, or settings with other cells than the first.
    """
    if len(settings) < FEWEST:
        raise ValueError(f"a tolerance needs at least {FEWEST} settings, found {len(settings)}: run .ci/reference")
    frames = {name: frame.set_index(KEY).sort_index() for name, frame in settings.items()}
    first_name, first = next(iter(frames.items()))
    for name, frame in frames.items():
        if not frame.index.equals(first.index):
            raise ValueError(f"setting {name} has other cells than {first_name}: make both anew")
    values = pd.DataFrame({name: frame["value"] for name, frame in frames.items()})
    spread = pd.DataFrame(index=values.index, columns=["value", "variance", "settings"], dtype=float)
    for places in values.groupby(level=ROW).indices.values():
        draws = np.array(list(dict.fromkeys(map(tuple, values.to_numpy()[places].T))))  # (settings that differ, cells)
        variance = draws.var(axis=0, ddof=1) if len(draws) > 1 else 0.0
        spread.iloc[places, :] = np.column_stack(np.broadcast_arrays(draws.mean(axis=0), variance, len(draws)))
    moving = spread[spread["settings"] > 1]
    of_column = moving.groupby(level=COLUMN)["variance"].mean().rename("column")
    spread = spread.join(of_column, on=COLUMN)
    freedom = PRIOR + spread["settings"] - 1
    mixed = (PRIOR * spread["column"] + (spread["settings"] - 1) * spread["variance"]) / freedom
    width = student_quantile(freedom, 1 - FALSE_ALARMS / (2 * len(spread))) * np.sqrt(
        mixed * (1 + 1 / spread["settings"])
    )
    floor = 100 * QUERIES / first["queries"].astype(float)
    spread["tolerance"] = np.fmax(np.where(spread["settings"] > 1, width, 0.0), floor)
    spread["deviation"], spread["queries"] = np.sqrt(spread["variance"]), first["queries"].astype(int)
    spread["settings"] = spread["settings"].astype(int)
    kept = spread[["value", "tolerance", "deviation", "settings", "queries"]].reset_index()
    rounded = kept.round({"value": 4, "tolerance": 4, "deviation": 4})
    return [{str(key): value for key, value in row.items()} for row in rounded.to_dict("records")]


def gain_cells(claims: pd.DataFrame) -> pd.DataFrame:
    """Gains of the rows of claims.

    Args:
        claims: as `lookalike.workflow.report.claims.claims` writes them.

    Returns:
        `KEY`, of which the table is the claim, ``value`` in percent points, ``seeds``, ``queries``, and the two other
        columns of `GAIN`; a row that two metrics judge has two.
    """
    labels = claims["changed"] + " over " + claims["baseline"]
    own = claims.assign(table=claims["claim"], label=labels)[["table", "label", "dataset", "queries"]]
    parts = [
        own.assign(metric=metric, **{name: claims[f"{prefix}{name}"] for name in ("seeds", *GAIN)})
        for prefix, metric in (("", claims["metric"]), (OF_RP, "RP"))
    ]
    cells = pd.concat(parts, ignore_index=True).rename(columns={"difference": "value"})
    return cells[cells["value"].notna()].reset_index(drop=True)


def gain_tolerances(cells: pd.DataFrame) -> pd.Series:
    """Tolerance of each gain of another run around the committed one, in percent points.

    Args:
        cells: `gain_cells` of the committed claims, and ``seeds_again``, the number of seeds of the other run.
    """
    quantiles = student_quantile(cells["seeds_freedom"], 1 - FALSE_ALARMS / (2 * len(cells)))
    width: pd.Series[float] = quantiles * cells["seeds_error"] * np.sqrt(1 + cells["seeds"] / cells["seeds_again"])
    return width.clip(lower=(100 * QUERIES / cells["queries"]).fillna(0))
