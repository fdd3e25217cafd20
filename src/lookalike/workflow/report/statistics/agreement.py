"""Agreement of measured rows, and of their gains over their baselines, with the printed order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
import pandas as pd

FEWEST = 3  # printed rows, of which an order says something


@dataclass(frozen=True)
class Agreement:
    """Of two orders of the same rows.

    Attributes:
        spearman: correlation of ranks, -1 to 1; NaN of fewer than two rows or where all are equal.
        concordant: share of pairs of rows that both put into the same order, 0 to 1; NaN where no pair counts.
        pairs: of which these are the share: those that neither holds equal.
        rows: that both have.
    """

    spearman: float
    concordant: float
    pairs: int
    rows: int

    @property
    def says(self) -> bool:
        """Whether it is of rows enough that differ."""
        return self.rows >= FEWEST and not isnan(self.spearman)


@dataclass(frozen=True)
class WithPrint:
    """Agreement of a table on one data set: of its rows, and of their gains over their baselines, by one metric."""

    metric: str
    rows: Agreement
    gains: Agreement


def agreement(printed: Sequence[float], measured: Sequence[float]) -> Agreement:
    """Agreement of printed and measured numbers.

    Args:
        printed: one number a row, NaN where none is.
        measured: the same rows in the same order.

    Raises:
        ValueError: if the numbers of rows differ.
    """
    if len(printed) != len(measured):
        raise ValueError(f"{len(printed)} printed and {len(measured)} measured rows do not go together")
    both = np.array([printed, measured], dtype=np.float64)
    both = both[:, ~np.isnan(both).any(axis=0)]
    first, second = np.triu_indices(both.shape[1], k=1)
    signs = np.sign(both[:, first] - both[:, second]).prod(axis=0)
    told = int(np.count_nonzero(signs))
    ranks = np.array([pd.Series(each).rank() for each in both])  # scipy.stats takes a second longer to import
    varies = bool((np.ptp(both, axis=1) > 0).all()) if both.size else False
    return Agreement(
        float(np.corrcoef(ranks)[0, 1]) if varies else nan,
        np.count_nonzero(signs > 0) / told if told else nan,
        told,
        both.shape[1],
    )


def agreement_of_gains(
    printed: Mapping[str, float], measured: Mapping[str, float], pairs: Sequence[tuple[str, str]]
) -> Agreement:
    """Agreement of printed and measured gains of rows over their baselines.

    Args:
        printed: numbers by row.
        measured: the same.
        pairs: a row and its baseline; those of which a number is missing do not count.
    """
    gains = [
        [numbers.get(row, nan) - numbers.get(baseline, nan) for row, baseline in pairs]
        for numbers in (printed, measured)
    ]
    return agreement(*gains)


def with_print(cells: pd.DataFrame, metrics: Sequence[str]) -> WithPrint:
    """Agreement with print of a table on one data set.

    Args:
        cells: as ``read_cells`` gives them, of one data set and what stands in for it.
        metrics: of the table, the first of which counts that has printed and measured numbers.
    """
    both = cells[cells["published"].notna() & cells["mean"].notna()]
    metric = next((name for name in metrics if name in set(both["metric"])), "")
    rows = both[both["metric"] == metric]
    printed, measured = (dict(zip(rows["label"], rows[side], strict=True)) for side in ("published", "mean"))
    pairs = [pair for pair in zip(rows["label"], rows["against"], strict=True) if pair[1]]
    return WithPrint(
        metric, agreement([*printed.values()], [*measured.values()]), agreement_of_gains(printed, measured, pairs)
    )
