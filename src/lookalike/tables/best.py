"""Which row of a table is the best, and by how much."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lookalike.metrics.names import ON_TRAINING
from lookalike.tables.words import label_words, metric_words

# Metrics without a best value: of training pictures, and gains over another row.
NO_BEST = (ON_TRAINING, "delta_")


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
    said = f"Best by {metric_words(metric)}: {_label(best)} ({best['mean']:.1f}), {', '.join(above)}."
    return f"{said} {_caveat(best, second)}"


def _above(best: pd.Series, other: pd.Series, what: str) -> str:
    points = best["mean"] - other["mean"]
    side = f"{points:.1f} points above" if points >= 0 else f"{-points:.1f} points below"
    return f"{side} {what}{_label(other)} ({other['mean']:.1f})"


def _caveat(best: pd.Series, second: pd.Series) -> str:
    """How much the first place is worth."""
    if best["n"] < 2 or second["n"] < 2:
        return "One seed: another may change the order; several (`seeds: [0, 1, 2]`) say how far they spread."
    spread = max(best["std"], second["std"])
    less = "less than" if best["mean"] - second["mean"] < spread else "against"
    apart = f"The first two are {best['mean'] - second['mean']:.1f} points apart"
    return f"{apart}, {less} a standard deviation of {spread:.1f} over seeds."


def _label(row: pd.Series) -> str:
    return label_words(row["label"], row["setting"], row["embedding_dim"])
