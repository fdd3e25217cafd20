"""Differences between two recipes over the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import

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


def of_halves(values: ArrayLike, halves: Sequence[str] = ()) -> tuple[float, float]:
    """Mean of the halves' means, and the deviation of seeds within halves, NaN where each half has one.

    Args:
        values: one per seed.
        halves: of the classes, that each seed trains on; left out where all train on the same.
    """
    parts = _by_half(values, halves)
    freedom = sum(map(len, parts)) - len(parts)
    spread = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return float(np.mean([part.mean() for part in parts])), sqrt(spread / freedom) if freedom else nan


def paired_difference(first: Sequence[float], second: Sequence[float], halves: Sequence[str] = ()) -> Difference:
    """Difference of two recipes, seed by seed: ``first`` minus ``second``.

    The interval is Student's at 95 %, whose width a handful of seeds makes honest. Where seeds train on either half of
    the classes, each half weighs the same, and the halves are fixed.

    Args:
        first: values of one recipe, one per seed.
        second: values of the other, same seeds, same order.
        halves: as for `of_halves`.

    Raises:
        ValueError: if the numbers of values differ or there are none.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(f"{len(first)} and {len(second)} values cannot be paired: one of each per seed is needed")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    mean, deviation = of_halves(differences, halves)
    parts, n = _by_half(differences, halves), len(differences)
    if isnan(deviation):
        return Difference(mean, nan, nan, n)
    error = deviation * sqrt(sum(1 / len(part) for part in parts)) / len(parts)
    half = float(student_quantile(n - len(parts), (1 + CONFIDENCE) / 2)) * error
    return Difference(mean, mean - half, mean + half, n)


def _by_half(values: ArrayLike, halves: Sequence[str]) -> list[NDArray[np.float64]]:
    found = np.asarray(values, dtype=np.float64)
    return [found[np.asarray(halves) == half] for half in dict.fromkeys(halves)] or [found]
