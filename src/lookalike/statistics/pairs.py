"""Differences between two recipes over the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import

from lookalike.statistics.verdict import Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences, with its confidence interval.

    Attributes:
        mean: mean of the differences, in the unit of the values.
        low: end of the interval, NaN for a single pair.
        high: upper end of the interval.
        n: pairs.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> Verdict:
        """``higher`` or ``lower`` if the interval leaves zero out, ``equal`` if no pair differs, or ``undecided``."""
        if self.low > 0:
            return Verdict.HIGHER
        if self.high < 0:
            return Verdict.LOWER
        return Verdict.EQUAL if self.mean == self.low == self.high == 0 else Verdict.UNDECIDED


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Difference of two recipes, seed by seed: ``first`` minus ``second``.

    The interval is Student's at 95 %, whose width a handful of seeds makes honest.

    Args:
        first: values of one recipe, one per seed.
        second: values of the other, same seeds, same order.

    Raises:
        ValueError: if the numbers of values differ or there are none.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(f"{len(first)} and {len(second)} values cannot be paired: one of each per seed is needed")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    mean, n = float(differences.mean()), len(differences)
    if n == 1:
        return Difference(mean, nan, nan, n)
    half = float(student_quantile(n - 1, (1 + CONFIDENCE) / 2)) * float(differences.std(ddof=1)) / sqrt(n)
    return Difference(mean, mean - half, mean + half, n)
