"""What DIML's paper varies: candidates that are re-ranked, and the side of the grid."""

from __future__ import annotations

import pandas as pd

from lookalike.figures.parts.form import Check, Figure
from lookalike.figures.parts.measured import best, read_measured
from lookalike.figures.parts.one_axis import Lines
from lookalike.figures.parts.trends import always, groups, least, rising, table

SATURATED = 0.5  # points of P@1 that more candidates may still bring
LOSSES = {"margin": "Margin", "multi_similarity": "Multi-Similarity"}


def check_candidates(frame: pd.DataFrame) -> list[Check]:
    """Few candidates bring most of the gain, more than 100 nothing."""
    tables = [table(rows, "K", "P@1") for _, rows in groups(best(frame), ["dataset", "loss"])]
    later = pd.DataFrame([values.loc[500] - values.loc[100] for values in tables]).reset_index(drop=True)
    either_way = pd.concat([later, -later], ignore_index=True)
    early, late = (sum(values.loc[k] - values.loc[0] for values in tables) / len(tables) for k in (20, 500))
    return [
        always([values.loc[100] - values.loc[0] for values in tables], "100 candidates raise P@1"),
        always(
            [late, early - late / 2],
            f"20 candidates bring most of the gain: {early.mean():+.1f} points of P@1 on average, 500 "
            f"{late.mean():+.1f}",
        ),
        least(
            SATURATED - either_way,
            f"P@1 is saturated at K = 100: K = 500 differs by at most {SATURATED:g} points",
            unit="points to spare",
            margin=0,
        ),
    ]


def check_grid_side(frame: pd.DataFrame) -> list[Check]:
    """A finer grid is better, with P@1 of G = 4 above that of a single location."""
    tables = {key: table(rows, "G", "P@1") for key, rows in groups(best(frame), ["dataset", "loss"])}
    checked = [
        always([values.loc[4] - values.loc[1] for values in tables.values()], "P@1 is higher at G = 4 than at 1")
    ]
    checked += [
        rising(values, f"{dataset}, {LOSSES[loss]}: P@1 rises with G") for (dataset, loss), values in tables.items()
    ]
    return checked


CANDIDATES = Figure(
    read_measured,
    Lines("K", "candidates K", ("P@1", "MAP@R"), series="loss", named=LOSSES, ticks=(0, 100, 300, 500)),
    check_candidates,
)
GRID_SIDE = Figure(
    read_measured,
    Lines("G", "grid side G", ("P@1", "MAP@R"), series="loss", named=LOSSES, ticks=(1, 2, 4, 7)),
    check_grid_side,
)
