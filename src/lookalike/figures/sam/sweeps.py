"""What the paper of similarity attention leaves open: the weight of mining, and the constants of the mask."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lookalike.figures.parts.form import Check, Figure
from lookalike.figures.parts.measured import best, read_measured
from lookalike.figures.parts.one_axis import Lines
from lookalike.figures.parts.trends import compared, table, value_range

SHARES = (0, 0.5, 1)


def check_mining(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed but that mining helps."""
    values = table(best(frame), "gamma", "R@1")
    return [
        compared(values, 0.2, 0.0, "R@1 is higher with weight 0.2 than without mining"),
        value_range(values, "R@1", "γ"),
    ]


def check_mask(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed: how much the constants matter."""
    means: Any = 100 * best(frame).groupby(["alpha", "beta"])["R@1"].mean()
    alpha, beta = means.idxmax()
    says = f"R@1 varies by {means.max() - means.min():.1f} points; it is highest, {means.max():.1f} %, at "
    return [Check(f"{says}α = {alpha:g}, β = {beta:g}", claimed=False)]


MINING = Figure(read_measured, Lines("gamma", "weight of the mining γ", ("R@1", "MAP@R"), ticks=SHARES), check_mining)
MASK = Figure(
    read_measured,
    Lines(
        "beta",
        "threshold β",
        ("R@1", "MAP@R"),
        series="alpha",
        named={f"{alpha:g}": f"α = {alpha:g}" for alpha in (5, 10, 30)},
        ticks=(0.3, 0.5, 0.7),
    ),
    check_mask,
)
