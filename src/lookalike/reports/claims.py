"""What measured runs say about the papers' claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lookalike.statistics.pairs import Difference, paired_difference
from lookalike.statistics.verdict import OF_CLAIMS, Verdict, counted
from lookalike.tables.layout import DASH

CELL = ["claim", "metric", "direction", "published", "dataset", "changed", "baseline"]
Claims = Mapping[str, Mapping[str, Any]]


def verdict(direction: str, difference: Difference) -> Verdict:
    """Whether a difference is what was claimed.

    Args:
        direction: claimed of the changed recipe: ``higher``, ``lower`` or ``different``.
        difference: changed minus baseline.

    Returns:
        ``holds`` where the interval lies on the claimed side of zero (for ``different``: on either), ``does not hold``
        where it lies on the other side or no seed differs at all, else ``undecided``.
    """
    reached = difference.verdict
    if reached == Verdict.UNDECIDED:
        return reached
    wanted = (Verdict.HIGHER, Verdict.LOWER) if direction == "different" else (Verdict(direction),)
    return Verdict.HOLDS if reached in wanted else Verdict.FAILS


def claim_cells(claims: Claims, runs: pd.DataFrame) -> pd.DataFrame:
    """One row per claim, data set and pair of recipes.

    Args:
        claims: entries of ``params/claims.yaml`` by name.
        runs: per run ``claim, metric, published, dataset, changed, baseline, seed`` and what was measured as fractions,
            ``changed_value`` and ``baseline_value``.

    Returns:
        Columns ``claim, metric, direction, published, dataset, changed, baseline, changed_mean, baseline_mean,
        difference, low, high, n, verdict``, in percent and percent points.
    """
    runs = runs.assign(direction=[claims[name]["direction"] for name in runs["claim"]])
    rows = [
        dict(zip(CELL, key, strict=True)) | _compared(cell, str(cell["direction"].iloc[0]))
        for key, cell in runs.groupby(CELL, sort=False)
    ]
    measured = ["changed_mean", "baseline_mean", "difference", "low", "high", "n", "verdict"]
    return pd.DataFrame(rows, columns=[*CELL, *measured])


def claim_summaries(claims: Claims, runs: pd.DataFrame) -> pd.DataFrame:
    """One row per claim: the difference averaged over its pairs and data sets, and how its single cells came out.

    The average is taken seed by seed first, so that recipes that share a training count once in ``n``.

    Args:
        claims: as for `claim_cells`.
        runs: likewise.

    Returns:
        Columns ``claim``, the measured ones of `claim_cells`, and the numbers of cells ``holds, does not hold,
        undecided``. A claim without a run at this scale has numbers of zero, and nothing else.
    """
    cells = claim_cells(claims, runs)
    rows: list[dict[str, Any]] = []
    for name, claim in claims.items():
        own = runs[runs["claim"] == name]
        by_seed = own.groupby("seed", as_index=False)[["changed_value", "baseline_value"]].mean()
        counts = counted(cells.loc[cells["claim"] == name, "verdict"], OF_CLAIMS)
        rows.append({"claim": name} | (_compared(by_seed, claim["direction"]) if len(own) else {}) | counts)
    return pd.DataFrame(rows)


def markdown(claims: Claims, runs: pd.DataFrame, scale: str) -> str:
    """All claims for readers: a line per claim, then a table per claim.

    Args:
        claims: as for `claim_cells`.
        runs: likewise.
        scale: what the scale calls itself.
    """
    cells, summaries = claim_cells(claims, runs), claim_summaries(claims, runs)
    parts = ["# What the papers claim, and what was measured here", _notes(runs, len(cells), scale)]
    lines = [_summary_line(claims[row["claim"]], row) for _, row in summaries.iterrows()]
    parts.append(pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True))
    for name, claim in claims.items():
        own = [_cell_line(row) for _, row in cells[cells["claim"] == name].iterrows()]
        asked = f"{claim['says']} ({claim['place']}.) Claimed: {claim['metric']} {claim['direction']}."
        table = pd.DataFrame(own).to_markdown(index=False, disable_numparse=True) if own else "Not tested: no data."
        parts += [f"## {name}", asked, table]
    return "\n\n".join(parts) + "\n"


def _compared(values: pd.DataFrame, direction: str) -> dict[str, Any]:
    changed, baseline = 100 * values["changed_value"], 100 * values["baseline_value"]
    difference = paired_difference(list(changed), list(baseline))
    return {
        "changed_mean": changed.mean(),
        "baseline_mean": baseline.mean(),
        "difference": difference.mean,
        "low": difference.low,
        "high": difference.high,
        "n": difference.n,
        "verdict": verdict(direction, difference),
    }


def _notes(runs: pd.DataFrame, cells: int, scale: str) -> str:
    seeds = ", ".join(str(seed) for seed in sorted(runs["seed"].unique()))
    return (
        "In percent, at the epoch with the best R@1 on the test split. Two recipes are compared seed by seed "
        f"(seeds {seeds or DASH}); differences are in percent points, changed minus baseline, with Student's 95 % "
        "interval. A claim *holds* where the interval lies on the claimed side of zero, it *does not hold* where the "
        "interval lies on the other side or no seed differs, else it is *undecided*: few seeds leave wide intervals. "
        "Without any true difference one comparison in twenty is decided by chance; there are "
        f"{cells} below. *On average* is over pairs of recipes and data sets first, then over seeds; the last columns "
        f"count the single comparisons. Scale: {scale}."
    )


def _summary_line(claim: Mapping[str, Any], row: pd.Series) -> dict[str, str]:
    tested = not pd.isna(row.get("difference"))
    return {
        "claim": row["claim"],
        "place": claim["place"],
        "claimed": f"{claim['metric']} {claim['direction']}",
        "difference on average": _interval(row) if tested else DASH,
        "on average": row["verdict"] if tested else "not tested: no data",
        **{each: str(row[each]) for each in OF_CLAIMS},
    }


def _cell_line(row: pd.Series) -> dict[str, str]:
    stand_in = "" if row["dataset"] == row["published"] else f" ({row['dataset']})"
    return {
        "data set": f"{row['published']}{stand_in}",
        "changed": row["changed"],
        "baseline": row["baseline"],
        "changed mean": f"{row['changed_mean']:.1f}",
        "baseline mean": f"{row['baseline_mean']:.1f}",
        "difference": _interval(row),
        "n": str(row["n"]),
        "verdict": row["verdict"],
    }


def _interval(row: pd.Series) -> str:
    return f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
