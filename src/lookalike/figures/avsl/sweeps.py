"""What AVSL's paper varies: edges per node, embedding size, momentum."""

from __future__ import annotations

import pandas as pd

from lookalike.figures.parts.form import Check, Figure
from lookalike.figures.parts.measured import best, read_measured
from lookalike.figures.parts.one_axis import Lines
from lookalike.figures.parts.trends import always, compared, rising, table, value_range

POWERS = (8, 32, 128, 512)
SHARES = (0, 0.5, 1)


def check_edges(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with k, and less and less."""
    values = table(best(frame), "k", "R@1")
    half = len(values) // 2
    first, second = values.iloc[half] - values.iloc[0], values.iloc[-1] - values.iloc[half]
    says = (
        f"it rises beyond k = {values.index[half]:g}, by less than up to there: {second.mean():+.1f} against "
        f"{first.mean():+.1f} points"
    )
    return [rising(values, "R@1 rises with k"), always([second, first - second], says)]


def check_size(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with the embedding size."""
    return [rising(table(best(frame), "r", "R@1"), "R@1 rises with the embedding size")]


def check_momentum(frame: pd.DataFrame) -> list[Check]:
    """Momentum helps, and 0.5 is the best of those printed."""
    values = table(best(frame), "gamma", "R@1")
    return [
        compared(values, 0.5, 0.0, "R@1 is higher with momentum 0.5 than without"),
        compared(values, 0.5, 0.95, "R@1 is higher with momentum 0.5 than with 0.95"),
        value_range(values, "R@1", "γ"),
    ]


EDGES = Figure(read_measured, Lines("k", "k of 512 nodes", ("R@1", "MAP@R"), logarithmic=2, ticks=POWERS), check_edges)
SIZE = Figure(
    read_measured, Lines("r", "r, of 512", ("R@1", "MAP@R"), logarithmic=2, ticks=(64, 128, 256, 512)), check_size
)
MOMENTUM = Figure(read_measured, Lines("gamma", "momentum γ", ("R@1", "MAP@R"), ticks=SHARES), check_momentum)
