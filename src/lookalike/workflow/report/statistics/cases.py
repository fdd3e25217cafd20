"""Statements on several differences at once, each a number per seed: that all are so, one of several, or most.

A statistic that chooses among cases, such as the best value or the worst case, profits from noise, also where each seed
reads what the others have chosen: with ten seeds these choose much the same as all, and of twenty cases that are alike
the worst was called below zero in 14 % of trials where 2.5 % were asked. So nothing is chosen: the ends of an interval
come from those of all cases, each at an error that the others leave to it.

Source: Berger 1982, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 24, for all of several;
Bonferroni for one of several; Benjamini and Heller 2008, "Screening for Partial Conjunction Hypotheses", Biometrics 64,
for at least so many.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import


@dataclass(frozen=True, eq=False)
class Cases:
    """Groups of cases, each a number per seed.

    Said is that of one group, whichever, all cases are above zero: of a single case, that it is. Or, where ``needed``
    is given, that so many of a single group are, and their mean is, too.

    Attributes:
        values: ``(G, K, S)``.
        needed: of how many cases it is said; of all where it is left out.

    Raises:
        ValueError: for values of another shape, without any or not finite, or more needed than there are.
    """

    values: NDArray[np.float64]
    needed: int | None = None

    def __post_init__(self) -> None:
        shape = self.values.shape
        if self.values.ndim != 3 or not self.values.size or not np.isfinite(self.values).all():
            raise ValueError(f"values must be (G, K, S) finite numbers, at least one, not {shape}")
        if self.needed is not None and not (shape[0] == 1 and 0 < self.needed <= shape[1]):
            raise ValueError(f"needed={self.needed} of {shape[:2]} cases: 1 to all of a single group can be")

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return len(self.values[0, 0])

    @property
    def mean(self) -> float:
        """Mean of the worst case in the best group.

        Where a number of cases is needed, the lesser of two: the mean that so many reach, and the mean of all.
        """
        means = self.values.mean(axis=2)
        if self.needed is None:
            return float(means.min(axis=1).max())
        return float(min(np.sort(means[0])[-self.needed], means.mean()))

    def estimate(self, seeds: int | None = None) -> Cases:
        """The cases by their first ``seeds``, or by all."""
        return Cases(self.values[:, :, :seeds], self.needed)

    def interval(self, error: float) -> tuple[float, float]:
        """Ends of an interval that misses the truth with a probability of at most ``error``; NaN of a single seed.

        All of a group are above a bound if the lowest of their lower ends is; that holds of the group that happens to
        be the best if it holds of each at its share of the error. One of a group is below a bound if the lowest of
        their upper ends is, each at its share; that holds of the best group if it holds of every one. At least u of K
        are above a bound if u lower ends are, each at the error divided by K - u + 1; fewer are if K - u + 1 upper ends
        are below it, each at the error divided by u. With the mean beside, both are above at the error, and one of both
        is below at half of it.
        """
        if self.seeds == 1:
            return nan, nan
        groups, cases, _ = self.values.shape
        if self.needed is None:
            low, high = _ends(self.values, error / groups)[0], _ends(self.values, error / cases)[1]
            return float(low.min(axis=1).max()), float(high.min(axis=1).max())
        [every], spare = self.values, cases - self.needed
        lows, highs = _ends(every, error / (spare + 1))[0], _ends(every, error / 2 / self.needed)[1]
        together = every.mean(axis=0)
        low = min(_ends(together, error)[0], np.sort(lows)[-self.needed])
        return float(low), float(min(_ends(together, error / 2)[1], np.sort(highs)[spare]))


def _ends(values: NDArray[np.float64], error: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of Student's intervals ``(...)`` of numbers per seed ``(..., S)``."""
    seeds = values.shape[-1]
    means = values.mean(axis=-1)
    halves = float(student_quantile(seeds - 1, 1 - error / 2)) * values.std(axis=-1, ddof=1) / sqrt(seeds)
    return means - halves, means + halves
